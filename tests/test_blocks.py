"""The drawings in another app's Blocks: they draw, their events tell the user's actions, and hostile text stays text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import gradio as gr
import pytest

from seqdemo import figures
from seqdemo.errors import InputError
from seqdemo.figures.drawing import SCRIPTS, mounting
from seqdemo.ui import blocks
from tests.browser_visits import FRAMES
from tests.shared import free_port, new_page
from tests.test_figures import TARGET, a_look, a_picture, a_trace, a_tree

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HOSTILE = "${document.body.setAttribute('data-hacked', 1)} {{x}} <img src=x onerror=document.body.setAttribute('data-hacked',1)>"


def named(token: int) -> str:
    return HOSTILE if token == 4 else TARGET[token % len(TARGET)]


def app() -> gr.Blocks:
    with gr.Blocks() as demo:
        tree = blocks.drawing(figures.tree(a_tree(), named, best=4), elem_id="a-tree")
        alignment = blocks.drawing(figures.alignment(a_trace()), {"mode": "drag"}, elem_id="an-alignment")
        said = gr.Textbox(elem_id="said")

        def picked(event: gr.EventData) -> str:
            return f"row {event._data['detail']}"

        def raised(event: gr.EventData) -> tuple[str, dict[str, Any]]:
            weights = event._data["detail"]["weights"]
            return f"sum {sum(weights):.3f}", blocks.value_of(figures.tree(a_tree(), str, best=5))

        tree.select(picked, None, said)
        alignment.row(raised, None, [said, tree])
    return demo


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    demo = app()
    _, address, _ = demo.launch(server_port=free_port(), prevent_thread_lock=True, quiet=True, _frontend=False)
    yield address
    demo.close()


def test_every_kind_of_drawing_has_its_events_and_its_files() -> None:
    modules = {path.stem: path.read_text("utf-8") for path in SCRIPTS.glob("*.js")}
    entries = {name for name, text in modules.items() if f"export function {mounting(name)}(" in text}
    assert entries == set(blocks.EVENTS)
    for kind in entries:
        files = blocks.drawing_files(kind)
        assert f'["{kind}"] = mount' in files["script"] and ".s-drawing" in files["sheet"]
    with pytest.raises(InputError, match="kind"):
        blocks.drawing_files("../../secret")


@pytest.mark.browser
def test_drawings_work_in_anybody_s_blocks(address: str, browser: Browser) -> None:
    page = new_page(browser)
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(address)
    page.wait_for_selector("#a-tree .s-node")
    assert page.locator("#a-tree [aria-label*='{{x}}']").count() == 1
    page.locator("#a-tree .s-node").nth(1).click()
    page.wait_for_function("document.querySelector('#said textarea, #said input').value === 'row 1'")
    cells = page.locator("#an-alignment .s-grid-cells")
    cells.focus()
    page.keyboard.press("ArrowRight")
    assert "attention" in page.inner_text("#an-alignment [aria-live]")
    page.keyboard.press("+")
    page.wait_for_function("document.querySelector('#said textarea, #said input').value === 'sum 1.000'")
    page.wait_for_function("document.querySelector('#a-tree').textContent.includes('2')")
    box = cells.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 10, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + 10, box["y"] - 60)
    page.mouse.up()
    assert page.evaluate("document.body.dataset.hacked") is None and not wrong
    page.close()


@pytest.mark.browser
def test_a_photograph_and_gates_can_be_painted(browser: Browser) -> None:
    with gr.Blocks() as demo:
        photograph = blocks.drawing(figures.photograph(a_look(), a_picture()), {"mode": "paint"}, elem_id="a-photograph")
        gates = blocks.drawing(figures.gates(a_trace()), {"mode": "brush"}, elem_id="some-gates")
        said = gr.Textbox(elem_id="said")
        photograph.paint(_cells, None, said)
        gates.brush(_units, None, said)
    _, address, _ = demo.launch(server_port=free_port(), prevent_thread_lock=True, quiet=True, _frontend=False)
    page = new_page(browser)
    page.goto(address)
    look = "document.querySelector('#a-photograph .s-overlay')?.getContext('2d')"
    page.wait_for_function(f"{look}?.getImageData(9, 9, 1, 1).data[3] === 255")
    page.wait_for_selector("#some-gates .s-grid-cells")
    page.evaluate(FRAMES)
    big = page.locator("#a-photograph .s-overlay").bounding_box()
    assert big is not None
    page.mouse.move(big["x"] + 10, big["y"] + 10)
    page.mouse.down()
    page.mouse.move(big["x"] + big["width"] / 2, big["y"] + 10, steps=4)
    page.mouse.up()
    page.wait_for_function("document.querySelector('#said textarea, #said input').value === '[0, 1]'")
    cells = page.locator("#some-gates .s-grid-cells").first
    cells.focus()
    for key in ("ArrowRight", "Shift+ArrowRight", "Shift+ArrowDown", "Enter"):
        page.keyboard.press(key)
    page.wait_for_function("document.querySelector('#said textarea, #said input').value === 'steps [0, 1] units [0, 1]'")
    page.close()
    demo.close()


def _cells(event: gr.EventData) -> str:
    return str(event._data["detail"]["cells"])


def _units(event: gr.EventData) -> str:
    detail = event._data["detail"]
    return f"steps {detail['steps']} units {detail['units']}"
