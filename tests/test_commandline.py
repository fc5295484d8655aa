"""Lines in, lines out: in order, one answer each, whatever the line; and what the exit code tells."""

from __future__ import annotations

import errno
import io
import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from seqdemo.__main__ import main, parser, search_options
from seqdemo.checkpoints import Checkpoint
from seqdemo.commandline import MOST_BYTES, SHOWN_AS, Job, Line, Progress, converse, finite, read_lines, windows
from seqdemo.config import TOLERANCE, SearchOptions
from seqdemo.errors import InputError
from seqdemo.hub import load
from seqdemo.playground import run, score
from tests import tiny
from tests.shared import PATIENCE

ROOT = Path(__file__).resolve().parent.parent
SENTENCES = ["Der hund singt im garten.", "Ein kind.", "Die frau und der mann laufen auf gras.", "Das haus.", "Rot."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of each task, in a subfolder named after it."""
    root = tmp_path_factory.mktemp("tiny")
    for task, make in tiny.MAKERS.items():
        make(root / task)
    return root


class Terminal:
    """Runs a command in this process, as a terminal would: bytes in, lines out."""

    def __init__(self, folder: Path, place: Path, patch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[str]) -> None:
        self.folder, self.place, self.patch, self.captured = folder, place, patch, captured

    def __call__(self, command: str, *options: str, given: bytes | str, checkpoint: str = "") -> tuple[int, list[str], list[str]]:
        file = self.place / "given.txt"
        file.write_bytes(given if isinstance(given, bytes) else given.encode())
        with file.open() as opened:
            self.patch.setattr(sys, "stdin", opened)
            code = main([command, "--checkpoint", str(self.folder / (checkpoint or command)), *options])
        printed = self.captured.readouterr()
        assert not printed.out or printed.out.endswith("\n")
        return code, printed.out.split("\n")[:-1], printed.err.split("\n")[:-1]


@pytest.fixture
def terminal(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Terminal:
    return Terminal(folder, tmp_path, monkeypatch, capsys)


def lines_of(texts: list[str]) -> str:
    return "".join(text + "\n" for text in texts)


def best(checkpoint: Checkpoint, text: Any, **options: Any) -> str:
    return run(checkpoint, text, SearchOptions(**options)).texts[0]


@pytest.mark.parametrize("strategy", ["beam", "greedy", "sample", "exact"])
def test_answers_come_in_order_one_line_each_and_are_the_playgrounds(terminal: Terminal, strategy: str) -> None:
    code, out, err = terminal("translate", *([] if strategy == "beam" else [f"--{strategy}"]), given=lines_of(SENTENCES))
    checkpoint = load(terminal.folder / "translate")
    assert (code, err) == (0, [])
    assert out == [best(checkpoint, text, strategy=strategy, nbest=1) for text in SENTENCES]


def test_long_input_is_answered_in_order_across_batches_and_windows(terminal: Terminal) -> None:
    several = [" ".join(SENTENCES[: 1 + number % 4]) for number in range(1100)]
    code, out, _ = terminal("translate", "--greedy", "--max-length", "6", given=lines_of(several))
    checkpoint = load(terminal.folder / "translate")
    expected = {text: best(checkpoint, text, strategy="greedy", max_length=6) for text in set(several)}
    assert code == 0 and out == [expected[text] for text in several] and len(set(out)) > 1


def test_long_input_is_completed_and_scored_in_order_too(terminal: Terminal) -> None:
    beginnings = ["The dog"[: number % 8] + " sings" * (number % 5) for number in range(700)]
    code, out, _ = terminal("complete", "--greedy", "--max-length", "5", given=lines_of(beginnings))
    checkpoint = load(terminal.folder / "complete")
    expected = {text: best(checkpoint, text, strategy="greedy", max_length=5) for text in set(beginnings)}
    assert code == 0 and out == [expected[text].translate(SHOWN_AS) for text in beginnings] and len(set(out)) == 40
    texts = [text or "The cat" for text in beginnings]
    _, out, _ = terminal("score", given=lines_of(texts), checkpoint="complete")
    totals = {text: score(checkpoint, "", text).total for text in set(texts)}
    assert all(math.isclose(float(line), totals[text], abs_tol=2e-4) for line, text in zip(out, texts, strict=True))


def test_arguments_are_lines_and_standard_input_is_left_alone(terminal: Terminal, folder: Path) -> None:
    checkpoint, (one, other) = load(folder / "translate"), SENTENCES[:2]
    code, out, err = terminal("translate", one, "--beam", "3", other, "", given="Rot.\n")
    assert code == 1 and out == [*(best(checkpoint, text, beam=3) for text in (one, other)), ""]
    assert len(err) == 1 and err[0].startswith("line 3:")


def test_an_argument_is_one_line_whatever_it_holds(terminal: Terminal) -> None:
    code, (told,), _ = terminal("complete", "--json", "a\nb", given="")
    assert code == 0 and json.loads(told)["input"] == "a\nb"


def test_lines_follow_an_option_of_several_values_after_two_dashes(terminal: Terminal) -> None:
    code, out, _ = terminal("translate", "--may-repeat", "5", "6", "--no-repeat", "2", "--", "Ein kind.", given="")
    assert code == 0 and len(out) == 1


def test_arguments_of_hands_follow_their_options(terminal: Terminal) -> None:
    code, (told,), err = terminal("units", "--position", "0", "--json", "Ein kind.", given="", checkpoint="translate")
    assert code == 0 and err == [] and json.loads(told)["input"] == "Ein kind."


def test_a_target_language_is_spoken(terminal: Terminal) -> None:
    answers = [terminal("transliterate", "--to", language, given="namaste\n")[1] for language in ("hi", "ur")]
    checkpoint = load(terminal.folder / "transliterate")
    assert answers == [list(run(checkpoint, "namaste", language=language).texts[:1]) for language in ("hi", "ur")]
    assert answers[0] != answers[1]


def test_file_names_are_captioned(terminal: Terminal, tmp_path: Path) -> None:
    for name, colour in (("red.png", "red"), ("white space.jpg", "white")):
        Image.new("RGB", (50, 40), colour).save(tmp_path / name)
    names = [str(tmp_path / "red.png"), "missing.png", str(tmp_path), str(tmp_path / "white space.jpg")]
    code, out, err = terminal("caption", given=lines_of(names))
    checkpoint = load(terminal.folder / "caption")
    assert code == 1 and out == [best(checkpoint, names[0]), "", "", best(checkpoint, names[3])]
    assert [line.split(":")[0] for line in err] == ["line 2", "line 3"] and "'missing.png'" in err[0]


def test_several_outputs_stand_on_one_line(terminal: Terminal) -> None:
    _, out, _ = terminal("translate", "--nbest", "3", given=lines_of(SENTENCES[:2]))
    checkpoint = load(terminal.folder / "translate")
    assert [line.split("\t") for line in out] == [list(run(checkpoint, text).texts[:3]) for text in SENTENCES[:2]]


def test_line_breaks_inside_an_output_are_written_out_and_json_keeps_them(terminal: Terminal) -> None:
    options = ("--sample", "--samples", "40", "--max-length", "40", "--temperature", "3")
    _, out, _ = terminal("complete", *options, given="The dog\n\n")
    _, objects, _ = terminal("complete", *options, "--json", given="The dog\n\n")
    texts = [[output["text"] for output in json.loads(line)["outputs"]] for line in objects]
    assert any("\n" in text for text in texts[0])
    assert [line.split("\t") for line in out] == [[text.replace("\n", "\\n") for text in each] for each in texts]


def test_json_says_what_was_found_and_how_probable_it_is(terminal: Terminal) -> None:
    _, out, _ = terminal("translate", "--json", "--nbest", "2", "--length-norm", "power", given=lines_of(SENTENCES[:2]))
    for text, line in zip(SENTENCES, out):
        answer = json.loads(line)
        assert answer["input"] == text and len(answer["outputs"]) == 2
        first, second = answer["outputs"]
        assert first["score"] >= second["score"]
        assert math.isclose(sum(first["logps"]), first["logp"], rel_tol=1e-6)
        assert math.isclose(first["logp"] / len(first["tokens"]), first["score"], rel_tol=1e-6)
        assert len(first["pieces"]) == len(first["tokens"]) == len(first["logps"])


def test_exact_search_hands_out_its_certificate(terminal: Terminal) -> None:
    _, out, _ = terminal("translate", "--json", "--exact", given="Ein kind.\n")
    certificate = json.loads(out[0])["certificate"]
    assert certificate["proved"] is True and certificate["empty_logp"] < 0 and "Proved" in certificate["sentence"]


BAD = b"Ein kind.\n\xff\xfe\n\n\xed\xa0\x80\n" + b"a" * 1_001 + b"\nDas haus.\n"


def test_a_bad_line_gives_an_empty_line_and_a_sentence_and_the_rest_go_on(terminal: Terminal) -> None:
    code, out, err = terminal("translate", given=BAD)
    checkpoint = load(terminal.folder / "translate")
    assert code == 1 and out == [best(checkpoint, "Ein kind."), "", "", "", "", best(checkpoint, "Das haus.")]
    assert [line.split(":")[0] for line in err] == [f"line {number}" for number in (2, 3, 4, 5)]
    assert "not UTF-8" in err[0] and "type at least one letter" in err[1] and "1,001 characters" in err[3]


def test_a_bad_line_gives_an_object_with_an_error(terminal: Terminal) -> None:
    code, out, err = terminal("translate", "--json", given=BAD)
    answers = [json.loads(line) for line in out]
    assert code == 1 and not err
    good = ["input", "outputs", "precision", "tolerance"]
    assert [sorted(answer) for answer in answers] == [good, *[["error", "input"]] * 4, good]
    assert answers[4]["input"] == "a" * 1_001 and answers[1]["input"] == "\ufffd\ufffd"


def test_one_line_that_does_not_fit_the_options_spoils_no_other(terminal: Terminal) -> None:
    given = "Rot.\nDie frau und der mann laufen auf gras und der hund singt.\n"
    code, out, err = terminal("translate", "--min-length", "40", given=given)
    assert code == 1 and out[0] == "" and out[1] and err[0].startswith("line 1: ") and "leaves no room" in err[0]


def test_scores_are_log_probabilities(terminal: Terminal) -> None:
    given = "Ein kind.\tThe dog.\nEin kind.\nEin kind.\t\n\tThe dog.\n"
    code, out, err = terminal("score", given=given, checkpoint="translate")
    checkpoint = load(terminal.folder / "translate")
    expected = [f"{score(checkpoint, 'Ein kind.', text).total:.4f}" for text in ("The dog.", "")]
    assert code == 1 and out == [expected[0], "", expected[1], ""]
    assert "this one has no TAB" in err[0] and "type at least one letter" in err[1]


def test_a_line_to_score_has_one_tab(terminal: Terminal) -> None:
    code, out, err = terminal("score", given="Ein kind.\tOne child.\t0.93\nEin kind.\tOne child.\n", checkpoint="translate")
    assert code == 1 and out[0] == "" and float(out[1]) < 0 and len(err) == 1 and "more than one TAB" in err[0]


def test_an_exact_search_that_proved_nothing_says_so_beside_the_answer(terminal: Terminal) -> None:
    code, out, err = terminal("translate", "--exact", "--expansions", "2", given=lines_of(SENTENCES[:1]))
    assert code == 0 and len(out) == 1 and len(err) == 1 and err[0].startswith("line 1: The budget ended after 2 expansions")


def test_the_language_that_nobody_chose_is_said_and_stands_in_the_json(terminal: Terminal) -> None:
    code, out, err = terminal("transliterate", "--json", given="dilli\n")
    assert code == 0 and json.loads(out[0])["language"] == "hi"
    assert err == ["Written in Hindi; choose with --to: hi, ur."]
    assert terminal("transliterate", "--to", "ur", given="dilli\n")[2] == []


@pytest.mark.parametrize("words", [("translate", SENTENCES[0]), ("score", f"{SENTENCES[0]}\tThe dog")])
def test_the_precision_and_its_tolerance_are_said(terminal: Terminal, words: tuple[str, str]) -> None:
    command, line = words
    code, out, err = terminal(command, "--json", "--precision", "int8", given=line + "\n", checkpoint="translate")
    if code == 2:
        assert "int8 brings nothing on this processor" in err[0]
        return
    told = json.loads(out[0])
    assert code == 0 and (told["precision"], told["tolerance"]) == ("int8", TOLERANCE["int8"]) and "int8" in err[0]
    _, out, err = terminal(command, "--json", given=line + "\n", checkpoint="translate")
    told = json.loads(out[0])
    assert (told["precision"], told["tolerance"]) == ("float32", TOLERANCE["float32"]) and "int8" not in " ".join(err)


def test_a_closed_standard_error_is_no_reason_to_say_nothing(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    code, out, _ = terminal("translate", given=lines_of(SENTENCES[:1]))
    assert code == 0 and out[0]


def test_a_text_is_scored_by_a_language_model_tabs_and_all(terminal: Terminal) -> None:
    _, out, _ = terminal("score", "--json", given="The\tdog\n", checkpoint="complete")
    (output,) = json.loads(out[0])["outputs"]
    assert math.isclose(output["logp"], score(load(terminal.folder / "complete"), "", "The\tdog").total, rel_tol=1e-6)
    assert len(output["tokens"]) == 7


def test_what_the_model_never_saw_is_said_beside_the_answer(terminal: Terminal) -> None:
    code, out, err = terminal("translate", given="Ein 犬.\nEin kind.\n犬\n")
    assert code == 1 and all(out[:2]) and out[2] == "" and len(err) == 2
    assert err[0] == "line 1: The model has never seen 1 piece of this; it reads a blank there."
    assert err[1].startswith("line 3: The model knows none of these letters")
    _, out, err = terminal("translate", "--json", given="Ein 犬.\n")
    assert "1 piece of this" in json.loads(out[0])["note"] and err == []


def test_a_blank_that_is_priced_is_said(terminal: Terminal) -> None:
    given = "Ein 犬.\tThe 犬 dog.\nEin kind.\tThe dog.\n"
    code, out, err = terminal("score", given=given, checkpoint="translate")
    assert code == 0 and len(out) == 2 and len(err) == 1
    assert "1 piece of this; it reads a blank" in err[0] and "1 piece of the output; a blank is scored in its place" in err[0]
    _, out, _ = terminal("score", "--json", given=given, checkpoint="translate")
    assert ["note" in json.loads(line) for line in out] == [True, False]


def read(data: bytes) -> list[Line]:
    return list(read_lines(io.BytesIO(data)))


def test_lines_end_with_a_line_feed_and_nothing_else() -> None:
    texts = ["\ufeffa", "b\u2028c\x85d\x0be\rf", "", "no end"]
    assert [line.text for line in read("\r\n".join(texts).encode())] == ["a", *texts[1:]]
    assert [line.number for line in read(b"a\nb\n")] == [1, 2] and read(b"") == []


@pytest.mark.parametrize("size", [MOST_BYTES - 1, MOST_BYTES, MOST_BYTES + 1, 3 * MOST_BYTES])
def test_a_line_too_long_to_be_meant_is_one_bad_line(size: int) -> None:
    first, second = read(b"a" * size + b"\nb\n")
    assert second == Line(2, "b") and bool(first.error) == (size >= MOST_BYTES)
    assert len(first.text) == (1000 if first.error else size)


@given(st.integers(0, 40), st.integers(1, 9))
def test_windows_hold_every_line_once_in_order(count: int, size: int) -> None:
    lines = [Line(number, "") for number in range(count)]
    cut = list(windows(iter(lines), size))
    assert [line for window in cut for line in window] == lines
    assert all(1 <= len(window) <= size for window in cut)


def test_a_fault_while_reading_is_not_swallowed() -> None:
    def broken() -> Any:
        yield Line(1, "a")
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        list(windows(broken(), 4))


def test_json_has_no_infinities() -> None:
    assert finite({"a": [1.0, -math.inf], "b": (math.nan, True, "x")}) == {"a": [1.0, None], "b": [None, True, "x"]}


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("task", "strategy", "scoring"),
    [("translate", "greedy", False), ("translate", "exact", False), ("complete", "greedy", False), ("complete", "", True)],
)
def test_progress_stands_on_a_terminal_until_something_else_is_written(
    folder: Path, task: str, strategy: str, scoring: bool
) -> None:
    job = Job(load(folder / task), SearchOptions(strategy=strategy or "beam", max_length=5), scoring=scoring)
    out, screen = io.StringIO(), Screen()
    text = SENTENCES[1].encode() if task == "translate" else b"The dog"
    assert converse(job, read_lines(io.BytesIO(text + b"\n\xff\n" + text + b"\n")), out, screen, False) == 1
    before, *_ = screen.getvalue().partition("line 2: ")
    assert " lines, " in before and before.endswith("\r\033[K") and out.getvalue().count("\n") == 3
    quiet = io.StringIO()
    Progress(quiet).show(3)
    assert quiet.getvalue() == ""


def options_of(*words: str) -> SearchOptions:
    return search_options(parser().parse_args(["translate", *words]))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", SearchOptions(nbest=1)),
        ("--beam 12 --nbest 12", SearchOptions(beam=12, nbest=12)),
        ("--greedy --coverage 0.2", SearchOptions(strategy="greedy", coverage=0.2, nbest=1)),
        ("--beam 3 --finished free --early never", SearchOptions(beam=3, finished="free", early="never", nbest=1)),
        ("--length-norm gnmt --alpha 0.6 --min-length 2", SearchOptions(length_norm="gnmt", alpha=0.6, min_length=2, nbest=1)),
        ("--max-length 9 --at-limit force --no-repeat 2", SearchOptions(max_length=9, at_limit="force", no_repeat=2, nbest=1)),
        ("--exact --expansions 9 --frontier 7", SearchOptions(strategy="exact", expansions=9, frontier=7, nbest=1)),
        (
            "--sample --samples 3 --temperature 0.5 --top-k 4 --top-p 0.9 --seed 7",
            SearchOptions(strategy="sample", samples=3, temperature=0.5, top_k=4, top_p=0.9, seed=7, nbest=1),
        ),
    ],
)
def test_every_option_reaches_the_search(words: str, expected: SearchOptions) -> None:
    assert options_of(*words.split()) == expected


def test_new_searches_can_be_asked_for() -> None:
    def asked(words: str) -> SearchOptions:
        return search_options(parser().parse_args(["translate", *words.split()]))

    assert asked("--stochastic 4 --seed 2") == SearchOptions(strategy="stochastic", beam=4, nbest=4, seed=2)
    repeats = {"no_repeat": 2, "may_repeat": (7,), "repetition_penalty": 1.2}
    words = "--beam 6 --groups 3 --diversity 0.2 --prefix 5 6 --no-repeat 2 --may-repeat 7 --repetition-penalty 1.2"
    assert asked(words) == SearchOptions(beam=6, groups=3, diversity=0.2, nbest=1, prefix=(5, 6), **repeats)  # type: ignore[arg-type]
    assert asked("--finished free --patience 2 --nbest 7") == SearchOptions(finished="free", patience=2.0, nbest=7)
    assert asked("--sample --typical 0.9 --min-p 0.1") == SearchOptions(strategy="sample", typical=0.9, min_p=0.1, nbest=1)


def test_every_field_of_the_options_can_be_given() -> None:
    known = set(vars(parser().parse_args(["translate"])))
    assert set(SearchOptions().to_json()) <= known


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--greedy --temperature 0.5", "--temperature goes with --sample"),
        ("--exact --early true", "--early goes with --beam"),
        ("--frontier 3", "--frontier goes with --exact"),
        ("--alpha 2", "add --length-norm"),
        ("--early never", "add --finished free"),
        ("--nbest 6", r"--nbest 6 is more than .* \(5\); widen --beam"),
        ("--greedy --nbest 2", "use --beam"),
        ("--stochastic 3 --nbest 4", r"\(3\); widen --stochastic"),
        ("--seed 3", "--seed goes with --sample or --stochastic search"),
        ("--patience 2", "--patience needs a beam that frees places: add --finished free"),
        ("--diversity 1", "add --groups"),
        ("--exact --siblings 1", "--siblings goes with --beam"),
        ("--beam 5 --groups 2", "cannot be cut into 2 equal groups"),
        ("--sample --nbest 2", "use --samples"),
        ("--beam 101", "from 1 to 100"),
        ("--beam 0", "from 1 to 100"),
        ("--beam -1", "from 1 to 100"),
        ("--beam 0 --nbest 3", "from 1 to 100"),
        ("--min-length 5 --max-length 5", "lower one"),
    ],
)
def test_options_against_each_other_are_told_so(words: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        options_of(*words.split())


@pytest.mark.parametrize(
    "words", [[], ["chat"], ["translate", "--beam", "x"], ["translate", "--greedy", "--exact"], ["score", "--beam", "2"]]
)
def test_wrong_usage_has_code_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2 and "usage:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "checkpoint", "options", "says"),
    [
        ("translate", "transliterate", [], "tiny-transliterator cannot translate; it can transliterate."),
        ("transliterate", "transliterate", ["--to", "xx"], "no target language 'xx'; it knows hi, ur."),
        ("translate", "translate", ["--to", "fr"], "no target language 'fr'; it knows en."),
        ("translate", "translate", ["--greedy", "--nbest", "2"], "use --beam"),
        ("translate", "nothing here", [], "nothing here"),
    ],
)
def test_what_cannot_be_used_is_told_before_anything_is_read(
    terminal: Terminal, command: str, checkpoint: str, options: list[str], says: str
) -> None:
    code, out, err = terminal(command, *options, given="Ein kind.\n", checkpoint=checkpoint)
    assert code == 2 and out == [] and len(err) == 1 and says in err[0]


@pytest.mark.parametrize("command", ["translate", "transliterate", "caption", "complete", "score"])
def test_a_missing_checkpoint_is_told_so(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEQDEMO_CHECKPOINTS", str(tmp_path))
    monkeypatch.delenv("SEQDEMO_HUB_OWNER", raising=False)
    monkeypatch.setattr(sys, "stdin", sys.__stdin__)
    assert main([command]) == 2
    assert "There is no checkpoint '" in capsys.readouterr().err


def test_without_the_model_of_many_scripts_the_one_of_hindi_is_taken(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny.transliterator(tmp_path / "transliterator-hi-attention")
    monkeypatch.setenv("SEQDEMO_CHECKPOINTS", str(tmp_path))
    (tmp_path / "given").write_text("namaste\n")
    with (tmp_path / "given").open() as opened:
        monkeypatch.setattr(sys, "stdin", opened)
        assert main(["transliterate"]) == 0
    assert capsys.readouterr().out == best(load(terminal.folder / "transliterate"), "namaste") + "\n"


def test_a_folder_below_this_one_is_a_checkpoint_and_no_repository(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny.transliterator(tmp_path / "runs" / "mine")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "given").write_text("dilli\n")
    with (tmp_path / "given").open() as opened:
        monkeypatch.setattr(sys, "stdin", opened)
        assert main(["transliterate", "--checkpoint", "runs/mine"]) == 0
    assert capsys.readouterr().out == best(load(folder / "transliterate"), "dilli") + "\n"


def started(*words: str, **more: Any) -> subprocess.Popen[bytes]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    surroundings = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests in the background ignores it
    try:
        return subprocess.Popen([sys.executable, "-m", "seqdemo", *words], cwd=ROOT, env=surroundings, **pipes)
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX's")
def test_answers_do_not_wait_for_the_next_line_and_ctrl_c_is_quiet(folder: Path) -> None:
    process = started("translate", "--checkpoint", str(folder / "translate"))
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    checkpoint = load(folder / "translate")
    for text in SENTENCES[:2]:
        process.stdin.write(text.encode() + b"\n")
        process.stdin.flush()
        assert process.stdout.readline().decode() == best(checkpoint, text) + "\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == 130
    assert process.stderr.read() == b""
    for pipe in (process.stdin, process.stdout, process.stderr):
        pipe.close()


@pytest.mark.skipif(os.name == "nt", reason="pipes break otherwise there")
def test_a_reader_that_leaves_is_no_error_to_talk_about(folder: Path) -> None:
    process = started("translate", "--greedy", "--max-length", "2", "--checkpoint", str(folder / "translate"))
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    _, err = process.communicate(b"Ein kind.\n" * 3000, timeout=PATIENCE)
    assert process.returncode == 141 and err == b""


def test_help_and_wrong_usage_need_no_torch() -> None:
    code = """
import sys
from seqdemo.__main__ import main
for words in (["--help"], ["translate", "--help"], ["--version"], ["translate", "--greedy", "--nbest", "2"]):
    try:
        main(words)
    except SystemExit:
        pass
sys.exit("torch" in sys.modules or "numpy" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for word in ("transliterate", "--checkpoint", "--length-norm", "Exit code"):
        assert word in done.stdout


def test_the_public_names_are_there_and_come_late() -> None:
    code = """
import sys
import seqdemo
assert not {"torch", "numpy", "gradio"} & set(sys.modules)
assert set(seqdemo.__all__) <= set(dir(seqdemo))
print(*(getattr(seqdemo, name).__name__ for name in seqdemo.__all__))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [name.removeprefix("seqdemo.") for name in done.stdout.split()] == sorted(done.stdout.replace("seqdemo.", "").split())
    import seqdemo

    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = seqdemo.nothing


def test_an_empty_name_is_no_checkpoint(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", "--checkpoint", "", "Rot."]) == 2
    assert "There is no checkpoint ''" in capsys.readouterr().err


def test_a_full_disk_is_told_in_words(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def full(argv: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("seqdemo.__main__.work", full)
    assert main([]) == 1
    assert capsys.readouterr().err.endswith(": The output cannot be written: the disk is full.\n")


@pytest.mark.parametrize("asked", [("next", "--top"), ("words", "--most"), ("units", "--steps"), ("units", "--length")])
@pytest.mark.parametrize("number", ["0", "-1", "x"])
def test_a_count_begins_at_1(asked: tuple[str, str], number: str, capsys: pytest.CaptureFixture[str]) -> None:
    command, option = asked
    with pytest.raises(SystemExit):
        main([command, option, number, "Rot."])
    told = capsys.readouterr().err
    assert f"argument {option}: must be a whole number, 1 or more, not '{number}'" in told or f"{option}: expected one" in told
