"""What a hand on the model costs a person: wall time in Chromium from the act to the new result on screen.

    python -m tests.benchmarks.hands_browser [--repeats 20]

Medians over the shipped translator with beam 5 in B. To reach on the reference machine: a word, a row of attention or a gate
within 150 ms, the bars of the next word under a dragged cell within 50 ms, 400 units ranked within 1.5 s, what would make it say
another word within 3 s. What the server alone takes of it is told by tests.benchmarks.hands_speed.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from tests.benchmarks.calibration import print_calibration
from tests.benchmarks.page_speed import IDLE, Bench, served
from tests.shared import PATIENCE
from tools.environment import find_browser

REPEATS = 20
CLAMP = "part: 'decoder', gate: 'forget', layer: 0, direction: 'forward', units: null, positions: null"
EDITS = {  # by the number n, so that each is another one
    "a word forced": "{kind: 'Force', position: n / 8 | 0, pieces: [top(n / 8 | 0)[n % 8]]}",
    "a word forbidden": "{kind: 'Ban', position: n % 3, pieces: [said[n % 3], top(n % 3 + 1)[(n / 3 | 0) % 8]]}",
    "a row of attention": "{kind: 'AttentionRow', position: 1, weights: source.map((_, j) => 1 + (j === 0) * n)}",
    "attention dimmed": "{kind: 'AttentionBlend', factor: (n + 1) / 60, towards: 'uniform', positions: null}",
    "a gate held": "{kind: 'ClampGate', " + CLAMP + ", value: n / 50}",
}
PUT = """const n = %d, {trace} = page.columns.A, said = trace.pieces, source = page.columns.B.source.pieces;
  const top = (place) => trace.top[place].map(([piece]) => piece).filter((piece) => piece !== '</s>');
  page.update((s) => ({...s, columns: [s.columns[0], {...s.columns[1], edits: [%s]}]}), '')"""
# From the movement of the mouse to the first frame with other bars.
FOLLOW = """() => { let moved = null; window.taken = [];
  document.addEventListener('pointermove', () => { moved = performance.now(); }, true);
  const changed = () => { const begun = moved; moved = null;
    if (begun !== null) requestAnimationFrame(() => taken.push(performance.now() - begun)); };
  const everything = {subtree: true, childList: true, characterData: true, attributes: true};
  new MutationObserver(changed).observe(document.querySelector('.s-bars').parentElement, everything); }"""
PROBE = """async (fields) => { const page = window.seqdemo.page, begun = performance.now();
  const answer = await page.hand.probe('B', fields);
  if (answer.error) throw new Error(answer.error);
  return performance.now() - begun; }"""


class HandsBench(Bench):
    def edits(self) -> None:
        for name, edit in EDITS.items():
            self.changes("", f"translate, beam 5: {name}", lambda n, edit=edit: PUT % (n + 1, edit), 150)  # type: ignore[misc]

    def bars(self) -> None:
        """A cell is dragged up and down, and the bars follow."""
        page = self.open("#tab=alignment&open=hands-piece")
        page.wait_for_selector(".s-bars .s-said")
        cells = page.locator("#s-panel-alignment .s-half >> nth=1 >> .s-grid-cells")
        cells.scroll_into_view_if_needed()
        box = cells.bounding_box()
        pieces = page.evaluate("seqdemo.page.columns.B.trace.pieces.length")
        x, y = box["x"] + 20, box["y"] + (box["height"] - 8) / pieces * 1.5
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x, y - 20)
        page.wait_for_selector(".s-bars i")
        page.wait_for_function(IDLE)
        page.evaluate(FOLLOW)
        for number in range(self.repeats):
            page.mouse.move(x, y - 60 - 7 * (number % 10) - number)
            page.wait_for_function("number => taken.length > number", arg=number)
        self.told("bars of the next word under a dragged cell", page.evaluate("taken")[: self.repeats], 50)
        page.close()

    def long_questions(self) -> None:
        page = self.open("")
        page.evaluate(PROBE, {"ask": "gates"})
        words = page.evaluate("seqdemo.page.columns.B.trace.top[2].map(([piece]) => piece).slice(2)")
        asked: tuple[tuple[str, list[dict[str, Any]], float], ...] = (
            ("400 units ranked", [{"ask": "units", "position": place} for place in (0, 1, 2)], 1_500),
            ("what would make it say it", [{"ask": "cheapest", "position": 2, "pieces": [word]} for word in words[:3]], 3_000),
        )
        for name, fields, budget in asked:
            self.told(name, [page.evaluate(PROBE, each) for each in fields], budget)
        page.close()

    def run(self) -> None:
        self.edits()
        self.bars()
        self.long_questions()


def main() -> int:
    from playwright.sync_api import sync_playwright

    print_calibration()
    with served() as (address, _), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"], timeout=1000 * PATIENCE)
        bench = HandsBench(browser, address, REPEATS)
        bench.run()
        browser.close()
    return 0 if all(bench.within) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="What a hand on the model costs a person.")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    REPEATS = parser.parse_args().repeats
    sys.exit(main())
