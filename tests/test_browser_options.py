"""The options of a column: the common ones at hand, the rare ones folded away, all of them in links and in Python."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser_visits import Visit, unfold

pytest_plugins = ["tests.browser_visits"]
pytestmark = pytest.mark.browser


def options(page: Any, part: str) -> list[str]:
    return list(page.eval_on_selector_all(f"#s-column-b {part} label", "(nodes) => nodes.map((node) => node.textContent)"))


def test_rare_options_are_folded_under_more(visit: Visit) -> None:
    page = visit.come()
    visit.settle()
    unfold(page, "#s-column-b .s-more")
    common = options(page, ".s-more > .s-fields")
    assert "Length normalisation" in common and "Groups (diverse beam)" not in common and len(common) <= 6
    unfold(page, "#s-column-b [data-key=more-options-b]")
    rare = options(page, "[data-key=more-options-b]")
    assert {"Groups (diverse beam)", "Siblings", "Repetition penalty", "A finished output"} <= set(rare)
    assert "Patience" not in rare
    page.select_option("#s-B-finished", "free")
    page.wait_for_selector("#s-B-patience")
    assert page.inner_text("#s-column-b [data-key=more-options-b] summary") == "More (1 changed)"


@pytest.mark.parametrize(
    ("strategy", "changes"),
    [
        ("beam", {"beam": 6, "groups": 3, "diversity": 1.5}),
        ("beam", {"siblings": 0.5, "repetition_penalty": 1.5}),
        ("beam", {"finished": "free", "early": "never", "patience": 2}),
        ("sample", {"typical": 0.5, "min_p": 0.1, "samples": 3}),
        ("stochastic", {"beam": 4, "seed": 3}),
        ("beam", {"no_repeat": 2, "may_repeat": "signs"}),
    ],
)
def test_every_search_is_in_the_link_and_in_python(visit: Visit, browser: Any, strategy: str, changes: dict[str, Any]) -> None:
    page = visit.come()
    visit.settle()
    page.evaluate("strategy => seqdemo.page.setOption('B', 'strategy', strategy)", strategy)
    for name, value in changes.items():
        page.evaluate("([name, value]) => seqdemo.page.setOption('B', name, value)", [name, value])
    visit.settle()
    assert not page.is_visible("#s-column-b .s-message")
    again = Visit(browser, visit.address)
    again.come(page.url.removeprefix(visit.address + "/"))
    again.settle()
    options = again.page.evaluate("seqdemo.page.state.columns[1].options")
    assert {name: options[name] for name in changes} == changes and options["strategy"] == strategy
    again.page.get_by_role("button", name="As Python").click()
    code = again.page.inner_text(".s-code pre")
    compile(code, "snippet", "exec")
    assert f'strategy="{strategy}"' in code and "signs" not in code
    assert all(f"{name}=" in code for name in changes if changes[name] != 5)
    again.context.close()
