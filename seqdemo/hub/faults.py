"""What the user is told when the Hub fails: one sentence for each kind of failure, which says whose fault it is and what to
do."""

from __future__ import annotations

import os
import re
from urllib.parse import urlsplit

from seqdemo.child.parent import REFUSED, Failure
from seqdemo.errors import InputError

SENTENCES = {
    # this machine, its settings, its connection
    "offline-mode": "Offline mode is on (HF_HUB_OFFLINE), so {repo} cannot be fetched; switch it off, or use a model you have.",
    "no-connection": "The address of the Hub, {endpoint}, is not found; this machine seems to be offline. Check its connection.",
    "refused": "The Hub at {endpoint} refuses the connection; it may be down, or HF_ENDPOINT may be wrong. Try again later.",
    "proxy": "The proxy that the environment names (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY) does not work: {detail}. "
    "Correct it or unset it.",
    "certificate": "The connection to {endpoint} is not secure by this machine's clock and certificates; check the date first.",
    "disk-full": "The disk is full; make room in {cache}, or set HF_HOME to a folder on another disk.",
    "unwritable": "The cache folder {cache} cannot be written; set HF_HOME to a folder that can.",
    "obstructed": "{detail} is in the cache where a file should be; remove it, then try again.",
    "endpoint": "HF_ENDPOINT must be an address such as https://huggingface.co, not {detail!r}; correct it or unset it.",
    # the way between
    "slow": "The Hub at {endpoint} does not answer; try again later.",
    "deadline": "{repo} was not loaded within {detail} seconds: the Hub or the connection to it is slow. Try again later.",
    "cut-short": "The connection broke off each time while {repo} was on its way; try again.",
    "garbled": "Each answer from {endpoint} about {repo} arrives unreadable; try again over another connection.",
    "damaged": "{detail} of {repo} arrives damaged each time; try again over another connection.",
    "expired-link": "The link that the Hub gave for a file of {repo} has expired; check this machine's clock, then try again.",
    "not-a-hub": "What answers at {endpoint} is not the Hub; perhaps a log-in page. Open it in a browser, or check HF_ENDPOINT.",
    # the account
    "revoked": "The Hub refuses the token of this machine, and {repo} is private or does not exist; check its name, "
    "or unset HF_TOKEN and run `hf auth login` again.",
    "forbidden": "The account of this machine, or its token, may not do this with {repo} ({detail}); ask its owner.",
    "no-account": "The Hub lets nobody read {repo} without an account ({detail}); run `hf auth login`, or set HF_TOKEN.",
    "gated": "{repo} is gated: its owner must grant access first, on {endpoint}/{repo}; then run `hf auth login` here.",
    "full": "The Hub has no more room for {repo} ({detail}); remove something there, or use another account.",
    "payment": "The Hub wants a paid plan for this ({detail}); use an account that has one.",
    # what was asked for
    "not-found": "There is no repository {repo} at {endpoint}, or it is private; check the spelling, "
    "or run `hf auth login` with an account that may read it.",
    "no-revision": "{repo} has no revision {revision}; leave it empty for the newest, or give a commit, branch or tag.",
    "no-file": "{repo} lacks a file that it lists; its owner may be changing it just now. Try again.",
    "disabled": "The Hub has disabled {repo}, so nobody can load it.",
    "too-big": "A file of {repo} is larger than was announced, and was not kept; tell its owner.",
    # the Hub
    "server": "The Hub has a fault of its own ({detail}); try again later.",
    "rate-limited": "The Hub has been asked too often from here and wants a pause{detail}; try again after it.",
    "conflict": "The Hub is busy changing {repo} ({detail}); try again in a minute.",
    "rejected": "The Hub rejects the request ({detail}); correct what it names, then try again.",
    "hostile": "The answer from {endpoint} is unsafe and was not used ({detail}); check HF_ENDPOINT and the connection.",
    # ourselves
    "cancelled": "Stopped; {repo} was not loaded.",
    "crashed": "The process that talks to the Hub ended unexpectedly; try again.",
    "unknown": "Something unforeseen happened with {repo} ({detail}); try again, and report it if it happens again.",
}
WHEN_PUBLISHING = {
    "offline-mode": "Offline mode is on (HF_HUB_OFFLINE), so nothing can be published; switch it off.",
    "no-token": "Publishing needs an account: run `hf auth login`, or set HF_TOKEN to a token that may write.",
    "revoked": "The Hub does not accept the token of this machine; run `hf auth login` with a new one, or set HF_TOKEN to it.",
    "read-only": "The token of this machine may only read; make one that may write and run `hf auth login` with it.",
    "deadline": "{repo} was not published within {detail} seconds; run this again, what has arrived is not sent twice.",
    "silent": "The Hub at {endpoint} has said nothing for {detail} seconds, so publishing was given up; run this again later.",
    "cut-short": "The connection broke off each time while {repo} was being sent; run this again.",
    "garbled": "Each answer from {endpoint} arrives unreadable; run this again over another connection.",
    "expired-link": "The link that the Hub gave for sending a file has expired; check this machine's clock, then run this again.",
    "not-found": "There is no repository {repo} at {endpoint}, and it was not made; check the name of the account.",
    "no-revision": "{repo} has no branch main; make one on its page, or choose another name.",
    "forbidden": "The account of this machine, or its token, may not write to {repo} ({detail}); choose another name.",
    "conflict": "Someone else changed {repo} at the same moment; nothing of yours was written. Look at it, then run this again.",
    "unseen": "The Hub does not show {repo} yet, though it should be there; run this again in a minute.",
    "differs": "{repo} does not hold what was sent ({detail}); run this again.",
    "public": "{repo} exists and is public, but a private one was asked for; change that on its page, or choose another name.",
    "something-else": "{repo} holds something else ({detail}), so nothing was sent; choose another name, or say --replace.",
    "cancelled": "Stopped; look at {repo} before you publish again.",
}
TO_STRANGERS = {  # who did not choose the machine, its settings or its account
    "offline-mode": "This app is offline, so {repo} cannot be fetched; use a model that is here.",
    "disk-full": "The disk of the machine that runs this app is full; tell whoever runs it.",
    "unwritable": "The machine that runs this app cannot keep downloads; tell whoever runs it.",
    "obstructed": "Something on the machine that runs this app is in the way of {repo}; tell whoever runs it.",
    "not-found": "There is no repository {repo} at {endpoint}, or it is private; check the spelling.",
    "gated": "{repo} is gated: only accounts that its owner lets in may read it, and this app has none; load it elsewhere.",
    "no-account": "The Hub lets nobody read {repo} without an account ({detail}), and this app has none for visitors.",
}
USER_AND_PASSWORD = re.compile(r"//[^/\s]*@")  # in an address; visitors of the app read these sentences
UNITS = ((86_400, "days"), (3_600, "hours"), (60, "minutes"), (1, "seconds"))


class HubError(InputError):
    """A request to the Hub failed; `kind` is a key of SENTENCES or WHEN_PUBLISHING."""

    def __init__(self, kind: str, sentence: str) -> None:
        super().__init__(sentence)
        self.kind = kind


def hub_error(
    failure: Failure, repo: str, revision: str = "", cache: str = "", table: dict[str, str] | None = None
) -> InputError:
    """`table`: sentences that take precedence over the ordinary ones."""
    if failure.kind == REFUSED:
        return InputError(failure.detail)
    sentences = {**SENTENCES, **(table or {})}
    detail = pause(failure.detail) if failure.kind == "rate-limited" else as_part(failure.detail)
    words = {"repo": repo, "revision": revision, "cache": cache, "detail": detail, "endpoint": as_part(endpoint())}
    return HubError(failure.kind, sentences.get(failure.kind, SENTENCES["unknown"]).format(**words))


def endpoint() -> str:
    return os.environ.get("HF_ENDPOINT", "").strip().rstrip("/") or "https://huggingface.co"


def as_part(text: str) -> str:
    """A detail as a part of a sentence: on one line, without passwords."""
    return USER_AND_PASSWORD.sub("//", " ".join(text.split()).rstrip(".")) or "no reason given"


def check_endpoint() -> None:
    try:
        parts = urlsplit(endpoint())
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable:
        raise hub_error(Failure("endpoint", endpoint()), "")


def pause(seconds: str) -> str:
    """ " of 5 minutes"; empty if the Hub does not say how long."""
    if not seconds:
        return ""
    number = int(seconds)
    size, unit = next(((size, unit) for size, unit in UNITS if number >= 2 * size), UNITS[-1])
    count = -(-number // size)
    return f" of {count:,} {unit if count != 1 else unit[:-1]}"
