"""The command line: python -m seqdemo translate | transliterate | caption | complete | score

What is asked for is settled here, without torch; `commandline` answers the lines.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from seqdemo import __version__
from seqdemo.config import EARLY_RULES, FINISHED_RULES, LENGTH_NORMS, LIMIT_RULES, SearchOptions
from seqdemo.errors import InputError

COMMANDS = {
    "translate": "translate each line",
    "transliterate": "spell each line in another script",
    "caption": "describe the photograph each line names",
    "complete": "continue each line, as a language model would",
    "score": "the log probability of a given output: source, TAB, target (for a language model, a text)",
}
EPILOG = """\
Lines come from standard input and are answered in order, one line each. A line that cannot be used gives an empty line and a
sentence on standard error (with --json an object with "error"), and the rest go on; a line unlike what the model was trained on
is answered, with a sentence there too (with --json "note"), and so is one whose exact search proved nothing. Exit code: 0 all
lines answered, 1 some not, 2 wrong usage."""
ONLY_WITH = {
    "temperature": "sample",
    "top_k": "sample",
    "top_p": "sample",
    "seed": "sample",
    "samples": "sample",
    "expansions": "exact",
    "frontier": "exact",
    "finished": "beam",
    "early": "beam",
}


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def program() -> str:
    return "seqdemo" if Path(sys.argv[0]).stem == "seqdemo" else "python -m seqdemo"


def parser() -> argparse.ArgumentParser:
    every = argparse.ArgumentParser(prog=program(), description="Recurrent encoder-decoders at work.", epilog=EPILOG)
    every.add_argument("--version", action="version", version=f"seqdemo {__version__}")
    commands = every.add_subparsers(dest="command", required=True, metavar="|".join(COMMANDS))
    for name, about in COMMANDS.items():
        command = commands.add_parser(name, help=about, description=about.capitalize() + ".", epilog=EPILOG)
        command.add_argument("--checkpoint", help="a name, a folder, or user/name on the Hub")
        command.add_argument("--json", action="store_true", help="one object a line: tokens, log probabilities, scores")
        if name in ("transliterate", "translate", "score"):
            command.add_argument("--to", default="", metavar="LANGUAGE", help="target language, such as hi")
        if name != "score":
            add_search(command)
    return every


def add_search(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("search (one of the first four)").add_mutually_exclusive_group()
    group.add_argument("--beam", type=int, metavar="K", help="beam search that keeps K hypotheses (5, if nothing is said)")
    for name, about in (
        ("greedy", "the most probable piece at each step"),
        ("sample", "draw from the model's distribution"),
        ("exact", "the best output of all, proved where the budget allows"),
    ):
        group.add_argument(f"--{name}", dest="strategy", action="store_const", const=name, help=about)
    more = command.add_argument_group("options of the search")
    more.add_argument("--nbest", type=int, metavar="N", help="how many outputs a line, TABs between them (1)")
    more.add_argument("--length-norm", choices=LENGTH_NORMS, help="what totals are divided by before they are ranked (none)")
    more.add_argument("--alpha", type=float, help="its exponent (1)")
    more.add_argument("--coverage", type=float, help="weight of the penalty for source left unattended (0)")
    more.add_argument("--min-length", type=int, metavar="N", help="pieces before the end (0)")
    more.add_argument("--max-length", type=int, metavar="N", help="pieces including the end (the model's own limit)")
    more.add_argument("--at-limit", choices=LIMIT_RULES, help="what becomes of the unfinished there (cut)")
    more.add_argument("--no-repeat", type=int, metavar="N", help="no N pieces in a row twice")
    more.add_argument("--finished", choices=FINISHED_RULES, help="a finished hypothesis keeps its place in the beam or frees it")
    more.add_argument("--early", choices=EARLY_RULES, help="with --finished free, when to stop")
    more.add_argument("--samples", type=int, metavar="N", help="with --sample, how many outputs a line (1)")
    more.add_argument("--temperature", type=float, help="with --sample (1)")
    more.add_argument("--top-k", type=int, metavar="K", help="with --sample: only the K most probable pieces")
    more.add_argument("--top-p", type=float, metavar="P", help="with --sample: only the smallest set of probability P")
    more.add_argument("--seed", type=int, help="with --sample (0)")
    more.add_argument("--expansions", type=int, metavar="N", help="with --exact, the budget of prefixes looked into")
    more.add_argument("--frontier", type=int, metavar="N", help="with --exact, the budget of prefixes left open")


def search_options(asked: argparse.Namespace) -> SearchOptions:
    """SearchOptions of what was given; two options that contradict each other are an error."""
    known = {field.name for field in fields(SearchOptions)}
    given: dict[str, Any] = {name: value for name, value in vars(asked).items() if name in known and value is not None}
    given.setdefault("strategy", "beam")
    check_together(given)
    return SearchOptions(**{"nbest": 1, **given})


def check_together(given: dict[str, Any]) -> None:
    strategy = given["strategy"]
    for name, needed in ONLY_WITH.items():
        if name in given and strategy != needed:
            raise InputError(f"{flag(name)} goes with {flag(needed)} search, not with --{strategy}.")
    if "alpha" in given and given.get("length_norm", "none") == "none":
        raise InputError("--alpha is the exponent of a length normalisation; add --length-norm power or gnmt.")
    if "early" in given and given.get("finished") != "free":
        raise InputError("--early says when a beam that frees places stops; add --finished free.")
    most = {"greedy": 1, "sample": 1, "beam": given.get("beam", SearchOptions().beam)}.get(strategy)
    if most is not None and 1 <= most < given.get("nbest", 1):
        instead = {"greedy": "use --beam", "sample": "use --samples", "beam": "widen --beam"}[strategy]
        raise InputError(f"--nbest {given['nbest']} is more than this search has to offer ({most}); {instead}.")


def work(argv: Sequence[str] | None) -> int:
    asked = parser().parse_args(argv)
    options = SearchOptions() if asked.command == "score" else search_options(asked)
    if sys.stdin is None or sys.stdout is None:
        raise InputError("Lines come from standard input and go to standard output; one of them is closed.")
    from seqdemo.commandline import Job, converse, open_checkpoint, silent_choice

    language = getattr(asked, "to", "")
    err = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - closed when all is
    job = Job(open_checkpoint(asked.command, asked.checkpoint, language), options, language, asked.command == "score")
    print(silent_choice(job.checkpoint, language), end="", file=err)
    if sys.stdin.isatty() and err.isatty():
        print("Type one line after another; Ctrl-D (on Windows Ctrl-Z, Enter) ends.", file=err)
    sys.stdout.reconfigure(encoding="utf-8", errors="replace", newline="\n")  # type: ignore[union-attr]
    given = open(sys.stdin.fileno(), "rb", closefd=False)  # noqa: SIM115 - a thread may still be reading it at the end
    return converse(job, given, sys.stdout, err, asked.json)


def main(argv: Sequence[str] | None = None) -> int:
    try:
        return work(argv)
    except InputError as error:
        print(f"{program()}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            print(f"{program()}: {error}", file=sys.stderr)
            return 1
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads on: let nothing complain at the end
        return 141


if __name__ == "__main__":
    sys.exit(main())
