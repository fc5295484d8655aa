"""Thousands of spoiled tokenizer files, in a process that may crash: python -m tests.fuzz_pieces KIND FILE FIRST LAST.

Prints the number of the file before it is read and "done" at the end. A file is refused in the way a child process refuses it,
or accepted; then all that is done with an accepted one afterwards must succeed. Anything else ends with a traceback.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

from seqdemo.checkpoints import pieces
from seqdemo.errors import InputError, harmless

NASTY = [b'"\\ud800"', b'"\\udfff\\ud800"', b'""', b'"\\u0000"', b'"\\u001b[2J"', b'"\xff"', b'" "', b"7", b"null", b"[]"]
NASTY += [
    b'"' + b"x" * 300 + b'"',
    b'"<eos>"',
    b'"\\u202e"',
    b'"\\u200d"',
    b'"\\n"',
    b"-1",
    b"99999999999999999999",
    b"{}",
    b"1e999",
]
TEXTS = ("", "a b", "one two 7", "नमस्ते", "x" * 200)


def spoiled(data: bytes, number: int) -> bytes:
    """The file with one to three faults: bits, bytes, stretches of it, or a value of JSON replaced by a nasty one."""
    chance = random.Random(number)
    for _ in range(chance.randint(1, 3)):
        at, length = chance.randrange(len(data)), chance.randint(1, 20)
        values = [place for place in range(len(data)) if data[place : place + 1] == b'"'] if number % 2 else []
        if len(values) > 3:
            first = chance.randrange(0, len(values) - 1)
            data = data[: values[first]] + chance.choice(NASTY) + data[values[first + 1] + 1 :]
        else:
            stretch = data[at : at + length]
            change = [b"", stretch * 2, bytes(chance.randrange(256) for _ in stretch), chance.choice(NASTY)]
            data = data[:at] + chance.choice(change) + data[at + length :]
        data = data or b"x"
    return data


def outcome(kind: str, data: bytes) -> str:
    """What `parse_tokenizer` and `check_fit` do with a stranger's file, in this one process."""
    spec = {"kind": kind, "file": "target.json"}
    try:
        pieces.examine(spec, data)
    except Exception:  # in life this is the child; all that it does not accept is one sentence
        return "refused"
    tokenizer = pieces.parse(spec, data)
    config = {"model": {"target_vocabulary": len(tokenizer)}, "tokenizers": {"target": spec}}
    try:
        pieces.check_fit(config, None, tokenizer)
    except InputError as error:
        str(error).encode()
        return "refused"
    use(tokenizer)
    return "accepted"


def use(tokenizer: pieces.Tokenizer) -> None:
    """Use the tokenizer in every way that a page, a terminal and saving do."""
    names = [tokenizer.piece(index) for index in range(len(tokenizer))]
    json.dumps(names, ensure_ascii=False).encode()
    assert all(names) and all(harmless(name) == name or name.isspace() for name in names)
    tokenizer.decode(range(len(tokenizer))).encode()
    for text in TEXTS:
        found = tokenizer.encode(text)
        assert all(0 <= index < len(tokenizer) for index in found.ids)
        json.dumps(found.strings, ensure_ascii=False).encode()
    again = type(tokenizer).parse(tokenizer.dump())
    assert [again.piece(index) for index in range(len(again))] == names


def main(kind: str, file: str, first: str, last: str) -> None:
    pieces.EXERCISE = TEXTS
    data, found = Path(file).read_bytes(), {"refused": 0, "accepted": 0}
    for number in range(int(first), int(last)):
        print(number, flush=True)
        found[outcome(kind, spoiled(data, number))] += 1
    print("done", json.dumps(found), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
