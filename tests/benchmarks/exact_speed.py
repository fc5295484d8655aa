"""How long exact search takes on the trained models: CPU time of one thread, the best output alone, up to two seconds each.

Then the same inputs all at once, each with the library's own budget.

To reach: about 1 ms at the median on a model of characters, 50 ms on a translator, 95 of 100 proved within two seconds.

    python -m tests.benchmarks.exact_speed
"""

from __future__ import annotations

import statistics
import time
from typing import NamedTuple

import torch

from seqdemo.checkpoints import Checkpoint
from seqdemo.config import SearchOptions
from seqdemo.hub import load, names
from seqdemo.playground import find
from seqdemo.prompts import Prompt, prepare
from seqdemo.records import Certificate
from seqdemo.search import error_between
from tests.benchmarks.calibration import print_calibration

SECONDS = 2.0
REPEATS = 60  # inputs a model, at most
USUAL = SearchOptions(strategy="exact", nbest=1)
BUDGET = SearchOptions(strategy="exact", nbest=1, expansions=10_000_000, frontier=10_000_000)
INPUTS = {
    "translator-de-en": """
        Das gefällt mir.|Ich gehe nach Hause.|Wo ist der Bahnhof?|Er hat das Buch gelesen.|Ein Mann fährt Fahrrad.
        Zwei Kinder spielen im Garten.|Ein Hund läuft durch den Schnee.|Sie wollte nicht mit uns kommen.|Kannst du mir helfen?
        Eine Frau in einem roten Kleid singt auf einer Bühne.|Es regnet seit gestern.|Ich habe keinen Hunger.|Das ist mir egal.
        Drei Männer stehen vor einem Geschäft und unterhalten sich.|Tom weiß nicht, was er tun soll.|Wie spät ist es?
        Ein kleines Mädchen in einem blauen Mantel hält einen Ball.|Wir haben den Zug verpasst.|Sie ist meine Schwester.
        Mehrere Menschen warten an einer Haltestelle auf den Bus.|Ich verstehe dich nicht.|Morgen fahren wir ans Meer.
        Ein junger Mann springt mit seinem Skateboard von einer Treppe.|Mach bitte die Tür zu.|Er spricht sehr gut Englisch.
        Eine Gruppe von Leuten sitzt um ein Lagerfeuer.|Das Wasser ist zu kalt zum Schwimmen.|Hast du meinen Schlüssel gesehen?
        Ein alter Mann mit einem Hut liest auf einer Bank die Zeitung.|Ich hätte gern eine Tasse Tee.|Niemand hat mir geglaubt.
        Zwei Hunde spielen mit einem Stock am Strand.|Warum hast du das gesagt?|Sie arbeitet in einem Krankenhaus.
        Eine Frau gießt die Blumen auf ihrem Balkon.|Der Film war langweilig.|Wir sollten jetzt gehen.|Ich bin müde.
        Ein Junge klettert auf einen Baum, während sein Vater zusieht.|Das Kind schläft schon.|Er kam zu spät zur Arbeit.
        """,
    "transliterator-hi-attention": """
        namaste|dilli|bharat|kitab|pani|dost|zindagi|mohabbat|hindustan|vidyalaya|pustak|aasman|sapna|mandir|gaanv|ladka|ladki
        shukriya|kshama|gyan|shanti|prakash|krishna|lakshmi|mumbai|kolkata|rajasthan|khubsurat|samosa|chai|garmi|barsat|rasta
        angrezi|sarkar|chunav|patrakar|vishwavidyalaya|bachpan|ghar|phool|chhota|bada|thanda|paisa|dukaan|yatra|jeevan|mitra
        """,
}


class Timed(NamedTuple):
    seconds: float
    certificate: Certificate
    missed: bool | None  # by a beam of five


def timed(checkpoint: Checkpoint, prompt: Prompt) -> Timed:
    began = time.process_time()
    (exact,) = find(checkpoint, [prompt], BUDGET, cancel=lambda: time.process_time() - began > SECONDS)
    taken = time.process_time() - began
    (beam,) = find(checkpoint, [prompt], SearchOptions(), record=False)
    assert exact.certificate is not None
    return Timed(taken, exact.certificate, error_between(exact, beam).missed)


def measure(name: str, inputs: list[str]) -> None:
    checkpoint = load(name)
    prompts = [prepare(checkpoint, text) for text in inputs]
    timed(checkpoint, prompts[0])
    found = [timed(checkpoint, prompt) for prompt in prompts]
    taken = sorted(1000 * each.seconds for each in found)
    expansions = statistics.median(each.certificate.expansions for each in found)
    proved = sum(each.certificate.proved for each in found) / len(found)
    print(f"{name}, {len(found)} inputs of {statistics.median(len(prompt.pieces.ids) for prompt in prompts):.0f} pieces")
    print(f"  median {statistics.median(taken):.1f} ms, 95th percentile {taken[int(0.95 * (len(taken) - 1))]:.0f} ms", end="")
    print(f", {expansions:.0f} expansions;   proved within {SECONDS:.0f} s: {proved:.0%}", end="")
    print(f";   a beam of five missed the best of {sum(each.missed is True for each in found) / len(found):.0%}")
    print(f"  all at once {statistics.median(all_at_once(checkpoint, prompts) for _ in range(3)):.2f} ms a sentence")


def all_at_once(checkpoint: Checkpoint, prompts: list[Prompt]) -> float:
    """CPU milliseconds a sentence."""
    began = time.process_time()
    find(checkpoint, prompts, USUAL)
    return 1000 * (time.process_time() - began) / len(prompts)


def main() -> None:
    print_calibration()
    torch.set_num_threads(1)
    for name, text in INPUTS.items():
        if name in names():
            measure(name, text.replace("\n", "|").replace("  ", "").strip("|").split("|")[:REPEATS])
        else:
            print(f"{name} is not among the checkpoints here; nothing was measured")


if __name__ == "__main__":
    main()
