"""What a person is told when the Hub does not give what was asked, one sentence for each kind of failure."""

from __future__ import annotations

import os
import re

from seqdemo.checkpoints.client import Failure
from seqdemo.errors import InputError

SENTENCES = {
    "offline-mode": "Offline mode is on (HF_HUB_OFFLINE) and {repo} is not in the cache; switch it off, or use a bundled one.",
    "no-connection": "The Hub at {endpoint} cannot be found: this machine seems to be offline, and {repo} is not in the cache.",
    "refused": "The Hub at {endpoint} refuses the connection; it may be down, or HF_ENDPOINT may be wrong. Try again later.",
    "proxy": "The proxy that the environment names (HTTP_PROXY, HTTPS_PROXY) cannot be used: {detail}. Correct it or unset it.",
    "certificate": "The connection to {endpoint} is not secure by this machine's clock and certificates; check the date first.",
    "slow": "The Hub at {endpoint} does not answer; try again later.",
    "deadline": "{repo}: not done after {detail} seconds, so the attempt was ended; try again when the connection is better.",
    "cut-short": "The connection broke off several times while {repo} was on its way; try again.",
    "damaged": "{detail} of {repo} arrives damaged every time; try again over another connection.",
    "rate-limited": "The Hub asks for a pause of {detail} seconds before anything more is asked (rate limit); try again then.",
    "gated": "{repo} is gated: its owner must grant access first, on {endpoint}/{repo}.",
    "revoked": "The Hub no longer accepts this machine's token; run `hf auth login` again, or unset HF_TOKEN.",
    "no-token": "This needs an account: run `hf auth login`, or set HF_TOKEN to a token that may write.",
    "read-only": "The token of this machine may only read; make one that may write and run `hf auth login` with it.",
    "not-found": "There is no repository {repo} at {endpoint}, or it is private; check the spelling.",
    "no-revision": "{repo} has no revision {revision}; leave it empty for the newest, or give a commit, branch or tag.",
    "no-file": "{repo} lacks a file that it lists; its owner may be changing it just now. Try again.",
    "disabled": "The Hub has disabled {repo}.",
    "payment": "The Hub wants a paid plan for this ({detail}).",
    "forbidden": "The account or its token may not do this with {repo} ({detail}).",
    "conflict": "Someone else changed {repo} at the same moment; nothing of yours was written. Look at it, then run this again.",
    "server": "The Hub reports a fault of its own ({detail}); try again later.",
    "rejected": "The Hub rejects the request ({detail}).",
    "not-a-hub": "What answers at {endpoint} is not the Hub: a log-in page? Open it in a browser, or check HF_ENDPOINT.",
    "hostile": "The answer from {endpoint} is unsafe and was not used ({detail}).",
    "too-big": "A file of {repo} is larger than was announced, and was not kept.",
    "disk-full": "The disk is full; make room in {cache}, or set HF_HOME to another disk.",
    "unwritable": "The cache folder {cache} cannot be written; set HF_HOME to a folder that can.",
    "differs": "{repo} does not hold what was sent ({detail}); run this again.",
    "public": "{repo} exists and is public, but a private one was asked for; change that on its page, or choose another name.",
    "cancelled": "Stopped; {repo} was not loaded.",
    "crashed": "The process that talks to the Hub ended unexpectedly; try again.",
    "unknown": "{repo}: {detail}.",
}
USER_AND_PASSWORD = re.compile(r"//[^/\s]*@")  # in an address; visitors of the app read these sentences


class HubError(InputError):
    """The Hub did not give what was asked; `kind` is a key of SENTENCES."""

    def __init__(self, kind: str, sentence: str) -> None:
        super().__init__(sentence)
        self.kind = kind


def hub_error(failure: Failure, repo: str, revision: str = "", cache: str = "") -> InputError:
    if failure.kind == "refused-file":
        return InputError(failure.detail)
    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    detail = " ".join(failure.detail.split()).rstrip(".") or "no reason given"
    words = {
        "repo": repo,
        "revision": revision,
        "cache": cache,
        "detail": USER_AND_PASSWORD.sub("//", detail),
        "endpoint": USER_AND_PASSWORD.sub("//", endpoint),
    }
    return HubError(failure.kind, SENTENCES.get(failure.kind, SENTENCES["unknown"]).format(**words))
