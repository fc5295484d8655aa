"""The command line of training: python -m training fit | evaluate | publish | ..., each with --help."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeAlias

from seqdemo.checkpoints.folder import METRICS, ON_DISK
from seqdemo.config import LENGTH_NORMS, SearchOptions
from seqdemo.errors import InputError, not_installed
from training import usage
from training.publish import push as publish
from training.recipes import FORMER_NAMES, RECIPES, Recipe
from training.run.machine import set_up_memory
from training.run.overrides import changed

REMEDY = "training needs some packages more: pip install -e '.[training]'"
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def command(
    commands: Commands, name: str, summary: str, text: str, run: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    plain = argparse.RawDescriptionHelpFormatter
    parser: argparse.ArgumentParser = commands.add_parser(name, help=summary, description=text, formatter_class=plain)
    parser.set_defaults(run=run)
    return parser


def data_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, metavar="DIR", help="read the data from this folder, and download nothing")


def parser() -> argparse.ArgumentParser:
    whole = argparse.ArgumentParser(
        prog="python -m training", description=usage.PROGRAM, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = whole.add_subparsers(metavar="command", required=True)
    add_fit(command(commands, "fit", "train a model", usage.FIT, run_fit))
    add_looking(commands)
    add_measuring(commands)
    add_showing(commands)
    publish.add_arguments(commands).set_defaults(run=publish.run)
    return whole


def add_fit(fit: argparse.ArgumentParser) -> None:
    fit.add_argument("recipe", help="its name; python -m training recipes lists them")
    data_option(fit)
    fit.add_argument("--out", type=Path, metavar="DIR", help="the run's folder (runs/<recipe>)")
    again = fit.add_mutually_exclusive_group()
    again.add_argument("--resume", action="store_true", help="go on with the run in the folder, or begin one where there is none")
    again.add_argument("--fresh", action="store_true", help="delete the run in the folder and start again")
    fit.add_argument("--epochs", metavar="N", help="instead of the recipe's")
    fit.add_argument("--seed", metavar="N", help="instead of the recipe's")
    fit.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any field of the recipe but name, task and weigh, or of its model but encoder and the sizes of the vocabularies",
    )
    fit.add_argument("--device", default="", help="cpu, cuda, cuda:1 (a GPU where there is one)")
    fit.add_argument("--threads", type=int, default=1, help="of the CPU (%(default)s; with more, set OMP_WAIT_POLICY=PASSIVE)")
    fit.add_argument("--save-steps", type=int, default=1_000, metavar="N", help="save a state every N steps (%(default)s)")
    fit.add_argument("--save-seconds", type=float, default=120, metavar="S", help="and every S seconds (%(default)s)")


def add_looking(commands: Commands) -> None:
    recipes = command(commands, "recipes", "list the recipes", usage.RECIPES_HELP, run_recipes)
    recipes.add_argument("recipe", nargs="?", help="show this one in full")
    data = command(commands, "data", "show what a recipe reads", usage.DATA, run_data)
    data.add_argument("recipe", help="a recipe, or a data set such as multi30k")
    data.add_argument("--problems", action="store_true", help="list all rows that could not be used, and nothing else")
    data_option(data)


def add_measuring(commands: Commands) -> None:
    export = command(commands, "export", "write a run's best weights as a checkpoint", usage.EXPORT, run_export)
    export.add_argument("run_folder", type=Path, metavar="run")
    export.add_argument("--out", type=Path, metavar="DIR", help="the checkpoint's folder (the run's own)")
    export.add_argument("--precision", choices=ON_DISK, default="float16", help="of the file (float16)")
    evaluate = command(commands, "evaluate", "measure a checkpoint", usage.EVALUATE, run_evaluate)
    evaluate.add_argument("checkpoint", type=Path)
    evaluate.add_argument(
        "--beside",
        type=Path,
        action="append",
        default=[],
        metavar="DIR",
        help="another candidate, to be recorded beside this one",
    )
    compare = command(commands, "compare", "two checkpoints on the same inputs", usage.COMPARE, run_compare)
    compare.add_argument("checkpoints", type=Path, nargs=2)
    looking = command(commands, "looking", "where attention rests", usage.LOOKING, run_looking)
    looking.add_argument("checkpoint", type=Path)
    looking.add_argument("--record", action="store_true", help="also put it among the figures in metrics.json")
    precision = command(commands, "rounding", "what weights in lower precision change", usage.PRECISION, run_precision)
    precision.add_argument("checkpoint", type=Path)
    precision.add_argument("--record", action="store_true", help="also put it among the figures in metrics.json")
    timing = command(commands, "timing", "how long decoding takes", usage.TIMING, run_timing)
    timing.add_argument("checkpoint", type=Path)
    timing.add_argument("beside", type=Path, help="a checkpoint of equal size")
    timing.add_argument("--record", action="store_true", help="also put it among the figures in metrics.json")
    for one in (evaluate, compare, looking, precision, timing):
        data_option(one)
        one.add_argument("--dataset", default="", metavar="NAME", help="the data set, if it is not recorded or another is meant")
    for one in (evaluate, compare):
        one.add_argument("--split", default="test", choices=("test", "dev", "train"), help="(%(default)s)")
        one.add_argument("--beam", type=int, default=5, metavar="K", help="beam size of the figures that count (%(default)s)")
        one.add_argument("--length-norm", default="none", choices=LENGTH_NORMS, help="choose it on dev (%(default)s)")
        one.add_argument("--alpha", type=float, default=1.0, metavar="A", help="how strongly it normalises (%(default)s)")


def add_showing(commands: Commands) -> None:
    card = command(commands, "card", "render model cards", usage.CARD, run_card)
    card.add_argument("checkpoints", type=Path, nargs="*")
    command(commands, "table", "put the table of models into the README", usage.TABLE, run_table)
    gallery = command(commands, "gallery", "find examples that show something", usage.GALLERY, run_gallery)
    gallery.add_argument("checkpoints", type=Path, nargs="+", help="one or more a task; the page of a task opens with the first")
    data_option(gallery)
    gallery.add_argument("--keep", action="store_true", help="keep the examples of other checkpoints that FILE holds")
    gallery.add_argument("--photographs", type=Path, metavar="DIR", help="folder of photographs, for a captioner")
    gallery.add_argument("--out", type=Path, default=Path("checkpoints/gallery.json"), metavar="FILE", help="(%(default)s)")
    sample = command(commands, "sample", "draw a sample of dev text", usage.SAMPLE, run_sample)
    data_option(sample)
    sample.add_argument("--out", type=Path, default=Path("checkpoints/sample.json"), metavar="FILE", help="(%(default)s)")


def recipe_named(name: str) -> Recipe:
    name = FORMER_NAMES.get(name, name)
    if name not in RECIPES:
        raise InputError(f"There is no recipe {name!r}; choose one of {', '.join(RECIPES)}.")
    return RECIPES[name]


def run_fit(args: argparse.Namespace) -> int:
    import torch

    from training.run.display import display_for
    from training.run.fit import Saving, fit
    from training.run.resume import Start

    check_numbers(args)
    named = [f"{name}={value}" for name in ("epochs", "seed") if (value := getattr(args, name)) is not None]
    recipe = changed(recipe_named(args.recipe), [*named, *args.set])
    torch.set_num_threads(args.threads)
    set_up_memory()
    out, start, saving = (
        args.out or Path("runs") / recipe.name,
        Start(args.resume, args.fresh),
        Saving(args.save_steps, args.save_seconds),
    )
    with cautioned(args.data):
        return fit(recipe, args.data, out, start, args.device, saving, display_for(first_process()))


def check_numbers(args: argparse.Namespace) -> None:
    """The options of `fit` that are no fields of a recipe. NaN fails too."""
    if args.threads < 1:
        raise InputError(f"--threads must be 1 or more, not {args.threads}.")
    if args.save_steps < 1:
        raise InputError(f"--save-steps must be 1 or more, not {args.save_steps}.")
    if not args.save_seconds > 0:
        raise InputError(f"--save-seconds must be above 0, not {args.save_seconds:g}.")


def first_process() -> bool:
    return os.environ.get("RANK", "0") == "0"


def cautioned(data: Path | None) -> AbstractContextManager[None]:
    """Inside this context, the first process reports broken rows in loaded data, and editions other than the recorded one."""
    from training.data import Dataset, caution, heard

    def say(loaded: Dataset) -> None:
        folder = f" --data {data}" if data else ""
        told = caution(loaded, f"python -m training data {loaded.name}{folder} --problems")
        if told and first_process():
            print(told, file=sys.stderr, flush=True)

    return heard(say)


def run_recipes(args: argparse.Namespace) -> int:
    from training.run.overrides import described, listed

    print(described(recipe_named(args.recipe)) if args.recipe else listed(RECIPES.values()))
    return 0


def run_data(args: argparse.Namespace) -> int:
    from training.data import describe, load

    name = FORMER_NAMES.get(args.recipe, args.recipe)
    loaded = load(RECIPES[name].data if name in RECIPES else name, args.data)
    if args.problems:
        print("\n".join(loaded.problems) or f"Every row of {loaded.name} is as it should be.")
    else:
        print(describe(loaded))
    return 0


def run_export(args: argparse.Namespace) -> int:
    from training.run.export import export

    print(f"Wrote the checkpoint {export(args.run_folder, args.out, args.precision)}")
    return 0


def one_thread() -> None:
    """Use one thread. The products of a search are small, and several threads would mostly wait for one another."""
    import torch

    torch.set_num_threads(1)


def run_evaluate(args: argparse.Namespace) -> int:
    from training.measure import decoding, headlines
    from training.measure.evaluate import STANDARD, evaluate

    one_thread()
    plan = STANDARD._replace(options=searching(args))
    with cautioned(args.data):
        found = evaluate(args.checkpoint, args.data, args.split, args.dataset, plan, counted, args.beside)
    if decoding.ranks()[0] == 0:
        kept = headlines.recorded(args.checkpoint) == found
        told = "All figures are in {}" if kept else "They are not written to {}, which is for its own test data."
        print(f"{found['name']}: {headlines.sentence(found)}\n{told.format(args.checkpoint / METRICS)}")
    return 0


def run_compare(args: argparse.Namespace) -> int:
    from training.measure import decoding
    from training.measure.compare import compare, sentences

    one_thread()
    first, second = args.checkpoints
    with cautioned(args.data):
        found = compare(first, second, args.data, args.split, args.dataset, searching(args), progress=counted)
    if decoding.ranks()[0] == 0:
        print(sentences(found))
    return 0


def run_looking(args: argparse.Namespace) -> int:
    from training.measure.looks import looks, sentences

    one_thread()
    with cautioned(args.data):
        print(sentences(looks(args.checkpoint, args.data, args.dataset, args.record)))
    return 0


def run_precision(args: argparse.Namespace) -> int:
    from training.measure.precisions import precisions, sentences

    one_thread()
    with cautioned(args.data):
        print(sentences(precisions(args.checkpoint, args.data, args.dataset, args.record, counted)))
    return 0


def run_timing(args: argparse.Namespace) -> int:
    from training.measure.timing import sentences, timing

    one_thread()
    with cautioned(args.data):
        print(sentences(timing(args.checkpoint, args.beside, args.data, args.dataset, args.record, counted)))
    return 0


def searching(args: argparse.Namespace) -> SearchOptions:
    return SearchOptions(beam=args.beam, length_norm=args.length_norm, alpha=args.alpha)


def run_card(args: argparse.Namespace) -> int:
    from training.publish import card, table

    for folder in args.checkpoints or table.checkpoints_in(Path("checkpoints")):
        for picture in card.draw_pictures(folder):
            print(f"Wrote {picture}")
        print(f"Wrote {card.write(folder)}")
    return 0 if args.checkpoints else run_table(args)


def run_table(args: argparse.Namespace) -> int:
    from training.publish import table

    table.write_table(Path("README.md"), Path("checkpoints"))
    print("Wrote the table of models in README.md")
    return 0


def run_gallery(args: argparse.Namespace) -> int:
    from training.publish.gallery import mine

    found = mine(args.checkpoints, args.data, args.photographs, args.out, progress=counted, keep=args.keep)
    print(f"Wrote {args.out}: " + ", ".join(f"{task} {len(rows)} examples" for task, rows in found["examples"].items()))
    return 0


def run_sample(args: argparse.Namespace) -> int:
    from training.publish.sample import draw

    print(f"Wrote {args.out}: {', '.join(draw(args.data, args.out)['texts'])}")
    return 0


def counted(what: str, done: int, total: int) -> None:
    """Progress on one line of a terminal."""
    if sys.stderr.isatty():
        print(f"\r{what}: {done:,} of {total:,}\x1b[K", end="\n" if done >= total else "", file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    args = parser().parse_args(arguments)
    try:
        return int(args.run(args))
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    except OSError as error:
        full = error.errno == errno.ENOSPC and not error.filename
        told = (
            "The output cannot be written: the disk is full"
            if full
            else f"{error.filename or 'A file'}: {error.strerror or error}"
        )
        print(f"{told}.", file=sys.stderr)
        wrong_names = (FileNotFoundError, NotADirectoryError, IsADirectoryError)  # are wrong usage, a full disk is not
        return 2 if isinstance(error, wrong_names) else 1
    except ModuleNotFoundError as error:
        print(not_installed(error, REMEDY), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
