"""python -m training fit | ..."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from training.fit import fit
from training.recipes import RECIPES


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m training")
    commands = parser.add_subparsers(dest="command", required=True)
    train = commands.add_parser("fit")
    train.add_argument("recipe", choices=RECIPES)
    train.add_argument("--data", type=Path)
    train.add_argument("--out", type=Path)
    train.add_argument("--resume", action="store_true")
    args = parser.parse_args()
    return fit(RECIPES[args.recipe], args.data, args.out or Path("runs") / args.recipe, args.resume)


if __name__ == "__main__":
    sys.exit(main())
