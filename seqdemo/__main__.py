"""The command line: python -m seqdemo translate | transliterate | caption | complete | score, or a question about
the best output: next | bound | words | units | sweep | cheapest | gates | followers | closing

The arguments are checked here, without torch; `commandline` answers the lines.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from seqdemo import __version__
from seqdemo.config import EARLY_RULES, FINISHED_RULES, LENGTH_NORMS, LIMIT_RULES, PRECISIONS, SearchOptions
from seqdemo.edits import BLENDS, edit_from_json
from seqdemo.errors import InputError, not_installed

REMEDY = "in a clone, run python3 tools/start.py once, then: source .venv/bin/activate"
COMMANDS = {
    "translate": "translate each line",
    "transliterate": "spell each line in another script",
    "caption": "describe the photograph each line names",
    "complete": "continue each line, as a language model would",
    "score": "the log probability of a given output: source, TAB, target (for a language model, a text)",
}
HANDS = {
    "next": "the likeliest next words at a place of the best output, as things are or under a row of attention",
    "bound": "how far the word at a place depends on where the model looks",
    "words": "the words that a typed beginning may become at a place, ordered by their probability and that of their end",
    "units": "which unit matters for the word at a place",
    "sweep": "the output with attention weakened step by step (the dimmer), at each beam size, or in each precision",
    "cheapest": "what would make it say a word at a place",
    "gates": "when each gate closes and opens",
    "followers": "which units of a language model follow a quotation or a comment",
    "closing": "how many texts close their quotation or comment, as the model is and with what --edit holds",
}
COUNTING = ("next", "bound", "words", "units", "cheapest", "sweep")  # those that name places of pieces
EPILOG = """\
Lines are arguments or, without any, come from standard input; write -- before lines that follow an option of several values. They
are answered in order, one line each. A line that cannot be used gives an empty line and a sentence on standard error (with --json
an object with "error"), and the rest go on. A line unlike the training data is answered, with a warning on standard error (with
--json "note"); an exact search without a proof is reported there too. Exit code: 0 all lines answered, 1 some not, 2 wrong
usage."""
ONLY_WITH: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("temperature", "top_k", "top_p", "typical", "min_p", "samples"), ("sample",)),
    "seed": ("sample", "stochastic"),
    **dict.fromkeys(("expansions", "frontier"), ("exact",)),
    **dict.fromkeys(("finished", "early", "patience", "groups", "diversity", "siblings"), ("beam",)),
}


def count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"must be a whole number, 1 or more, not {text!r}")
    return int(text)


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def program() -> str:
    return "seqdemo" if Path(sys.argv[0]).stem == "seqdemo" else "python -m seqdemo"


def parser() -> argparse.ArgumentParser:
    every = argparse.ArgumentParser(prog=program(), description="Recurrent encoder-decoders at work.", epilog=EPILOG)
    every.add_argument("--version", action="version", version=f"seqdemo {__version__}")
    commands = every.add_subparsers(dest="command", required=True, metavar="|".join([*COMMANDS, *HANDS]))
    for name, about in {**COMMANDS, **HANDS}.items():
        command = commands.add_parser(name, help=about, description=about.capitalize() + ".", epilog=EPILOG)
        command.add_argument("lines", nargs="*", metavar="LINE", help="what to answer (standard input)")
        command.add_argument("--checkpoint", help="a name, a folder, or user/name on the Hub")
        command.add_argument("--json", action="store_true", help="one object per line: tokens, log probabilities, scores")
        if name in ("transliterate", "translate", "score", *HANDS):
            command.add_argument("--to", default="", metavar="LANGUAGE", help="target language, such as hi")
        command.add_argument("--precision", choices=PRECISIONS, default="float32", help="what the weights are held in (float32)")
        if name != "score":
            add_search(command)
        if name in HANDS:
            add_hand(command, name)
    return every


def add_hand(command: argparse.ArgumentParser, name: str) -> None:
    """The question about each best output."""
    about = "Arguments count pieces from 0; sentences in the answer count them from 1." if name in COUNTING else None
    own = command.add_argument_group("what is asked of each best output", about)
    if name in ("next", "bound", "words", "units", "cheapest"):
        own.add_argument("--position", type=int, metavar="N", help="a piece, from 0 in the whole text (the first written)")
    if name in ("next", "bound"):
        own.add_argument("--layer", type=int, metavar="N", help="of which layer's attention (all)")
        own.add_argument("--head", type=int, metavar="N", help="of which head's attention (all)")
    if name == "next":
        own.add_argument("--row", type=float, nargs="+", metavar="W", help="a weight for each source position, made to sum to 1")
        own.add_argument("--top", type=count, metavar="N", help="how many words (8)")
    if name == "words":
        own.add_argument("--typed", metavar="TEXT", help="the beginning of the word (nothing)")
        own.add_argument("--most", type=count, metavar="N", help="how many words (8)")
    if name == "units":
        own.add_argument("--length", type=count, metavar="N", help="how many pieces the word has (1)")
        own.add_argument("--part", choices=("decoder", "encoder"), help="whose units (decoder)")
        own.add_argument("--direction", choices=("forward", "backward"), help="of an encoder (forward)")
        own.add_argument("--layer", type=int, metavar="N", help="of which layer (0)")
        own.add_argument("--what", choices=("cell", "hidden"), help="cell, where there is one, or hidden state")
        own.add_argument("--steps", type=count, metavar="N", help="hold them during the last N steps up to the word (all)")
    if name in ("units", "gates"):
        own.add_argument("--over", choices=("input", "sample"), help="this input, or a recorded sample of dev text (input)")
    if name == "sweep":
        own.add_argument("--along", choices=("dimmer", "beam", "precision"), default="beam", help="(%(default)s)")
        own.add_argument("--towards", choices=BLENDS, help="what the dimmer blends attention with (uniform)")
        own.add_argument("--wanted", metavar="TEXT", help="the answer that beams are held against")
    if name in ("followers", "closing"):
        own.add_argument("--place", choices=("quotation", "comment"), help="the one that was recorded for the model")
    if name == "cheapest":
        own.add_argument("--word", required=True, metavar="TEXT", help="the word that it should say there")
    command.set_defaults(own=[action.dest for action in own._group_actions])


def add_search(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("search (one of these five)").add_mutually_exclusive_group()
    group.add_argument("--beam", type=int, metavar="K", help="beam search that keeps K hypotheses (5, if nothing is said)")
    for name, about in (
        ("greedy", "the most probable piece at each step"),
        ("sample", "draw from the model's distribution"),
        ("exact", "the best output of all, proved where the budget allows"),
    ):
        group.add_argument(f"--{name}", dest="strategy", action="store_const", const=name, help=about)
    group.add_argument("--stochastic", type=int, metavar="K", help="draw K different outputs: a beam of perturbed scores")
    more = command.add_argument_group("options of the search")
    about = 'a what-if, such as {"kind": "Ban", "position": 0, "tokens": [17]}; again for more'
    more.add_argument("--edit", type=edit_value, action="append", default=[], metavar="JSON", help=about)
    more.add_argument("--nbest", type=int, metavar="N", help="how many outputs per line, TABs between them (1)")
    more.add_argument("--length-norm", choices=LENGTH_NORMS, help="what totals are divided by before they are ranked (none)")
    more.add_argument("--alpha", type=float, help="exponent of --length-norm (1)")
    more.add_argument("--coverage", type=float, help="weight of the penalty for source left unattended (0)")
    more.add_argument("--min-length", type=int, metavar="N", help="pieces before the end (0)")
    more.add_argument("--max-length", type=int, metavar="N", help="pieces including the end (the model's own limit)")
    more.add_argument("--at-limit", choices=LIMIT_RULES, help="what happens to outputs that are unfinished there (cut)")
    more.add_argument("--no-repeat", type=int, metavar="N", help="no N pieces in a row twice")
    more.add_argument("--may-repeat", type=int, nargs="+", metavar="ID", help="numbers of pieces that repeats may hold")
    more.add_argument("--repetition-penalty", type=float, metavar="P", help="divides the score of a piece that was said (1)")
    more.add_argument("--prefix", type=int, nargs="+", metavar="ID", help="numbers of the pieces that outputs begin with")
    about = "a finished hypothesis keeps its place in the beam (stay), frees it, or leaves it empty"
    more.add_argument("--finished", choices=FINISHED_RULES, help=about)
    about = """with --finished free, once enough are finished, stop at once (true), when the best open one cannot win at its
        present length (false), or only when none can win (never)"""
    more.add_argument("--early", choices=EARLY_RULES, help=about)
    more.add_argument("--patience", type=float, metavar="P", help="with --finished free, stop after P times K finished (1)")
    more.add_argument("--groups", type=int, metavar="G", help="with --beam, cut it into G groups that avoid each other (1)")
    more.add_argument("--diversity", type=float, metavar="D", help="with --groups, what a piece costs that another chose (0.5)")
    more.add_argument(
        "--siblings",
        type=float,
        metavar="R",
        help="with --beam, the k-th best continuation of the same hypothesis loses k times R (0)",
    )
    more.add_argument("--samples", type=int, metavar="N", help="with --sample, how many outputs per line (1)")
    more.add_argument("--temperature", type=float, help="with --sample (1)")
    more.add_argument("--top-k", type=int, metavar="K", help="with --sample: only the K most probable pieces")
    more.add_argument("--top-p", type=float, metavar="P", help="with --sample: only the smallest set of probability P")
    more.add_argument("--typical", type=float, metavar="P", help="with --sample: only the most typical pieces of probability P")
    more.add_argument("--min-p", type=float, metavar="P", help="with --sample: only pieces of P times the best one's probability")
    more.add_argument("--seed", type=int, help="with --sample or --stochastic (0)")
    more.add_argument("--expansions", type=int, metavar="N", help="with --exact, the budget of prefixes looked into")
    more.add_argument("--frontier", type=int, metavar="N", help="with --exact, the budget of prefixes left open")


def edit_value(text: str) -> Any:
    """The edits of --edit, checked without the model."""
    try:
        return json.loads(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not JSON") from None


def search_options(asked: argparse.Namespace) -> SearchOptions:
    """The SearchOptions of the arguments. Options that contradict each other are an error."""
    known = {field.name for field in fields(SearchOptions)}
    given: dict[str, Any] = {name: value for name, value in vars(asked).items() if name in known and value is not None}
    given.setdefault("strategy", "beam")
    if getattr(asked, "stochastic", None) is not None:
        given = {"nbest": max(1, asked.stochastic), **given, "strategy": "stochastic", "beam": asked.stochastic}
    check_together(given)
    return SearchOptions(**{"nbest": 1, **given})


def check_together(given: dict[str, Any]) -> None:
    strategy = given["strategy"]
    for name, needed in ONLY_WITH.items():
        if name in given and strategy not in needed:
            raise InputError(f"{flag(name)} goes with {' or '.join(map(flag, needed))} search, not with --{strategy}.")
    if "alpha" in given and given.get("length_norm", "none") == "none":
        raise InputError("--alpha is the exponent of a length normalisation; add --length-norm power or gnmt.")
    for name in ("early", "patience"):
        if name in given and given.get("finished") != "free":
            raise InputError(f"{flag(name)} needs a beam that frees places: add --finished free.")
    if "diversity" in given and given.get("groups", 1) == 1:
        raise InputError("--diversity is what groups of the beam pay; add --groups.")
    width = given.get("beam", SearchOptions().beam)
    most = {"greedy": 1, "sample": 1, "beam": width, "stochastic": width}.get(strategy)
    if given.get("finished") == "leave" or given.get("patience", 1.0) > 1:
        most = None  # more outputs are banked than the beam holds
    if most is not None and 1 <= most < given.get("nbest", 1):
        instead = {"greedy": "use --beam", "sample": "use --samples"}.get(strategy, f"widen --{strategy}")
        raise InputError(f"--nbest {given['nbest']} is more than this search has to offer ({most}); {instead}.")


def work(argv: Sequence[str] | None) -> int:
    asked = arguments_of(argv)
    options = SearchOptions() if asked.command == "score" else search_options(asked)
    if sys.stdout is None or (sys.stdin is None and not asked.lines):
        raise InputError("Lines come from standard input and go to standard output; one of them is closed.")
    from seqdemo.commandline import Job, arguments, converse, lower_precision, open_checkpoint, read_lines, silent_choice

    language = getattr(asked, "to", "")
    err = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - closed at exit
    checkpoint = open_checkpoint(asked.command, asked.checkpoint, language, asked.precision)
    edits = tuple(edit_from_json(edit, checkpoint.target_text) for edit in getattr(asked, "edit", []))
    settings = {name: value for name in getattr(asked, "own", []) if (value := getattr(asked, name)) is not None}
    hand = asked.command if asked.command in HANDS else ""
    job = Job(checkpoint, options, language, asked.command == "score", edits, hand, settings)
    print(silent_choice(job.checkpoint, language) + lower_precision(job.checkpoint), end="", file=err)
    sys.stdout.reconfigure(encoding="utf-8", errors="replace", newline="\n")  # type: ignore[union-attr]
    if asked.lines:
        return converse(job, arguments(asked.lines), sys.stdout, err, asked.json)
    if sys.stdin.isatty() and err.isatty():
        print("Type one line after another; Ctrl-D (on Windows Ctrl-Z, Enter) ends.", file=err)
    given = open(sys.stdin.fileno(), "rb", closefd=False)  # noqa: SIM115 - a thread may still be reading it at the end
    return converse(job, read_lines(given), sys.stdout, err, asked.json)


def arguments_of(argv: Sequence[str] | None) -> argparse.Namespace:
    """The arguments; lines may stand before and after options."""
    every = parser()
    asked, more = every.parse_known_args(argv)
    if any(word.startswith("-") for word in more):
        every.error(f"unrecognized arguments: {' '.join(more)}")
    asked.lines += more
    return asked


def main(argv: Sequence[str] | None = None) -> int:
    try:
        return work(argv)
    except InputError as error:
        print(f"{program()}: {error}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        print(f"{program()}: {not_installed(error, REMEDY)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            full = error.errno == errno.ENOSPC
            print(f"{program()}: {'The output cannot be written: the disk is full.' if full else error}", file=sys.stderr)
            return 1
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader is gone: no error message at exit
        return 141


if __name__ == "__main__":
    sys.exit(main())
