from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqdemo.figures import places
from training.measure import units


def marked(text: str, labels: np.ndarray) -> str:
    """The characters after which the label holds, the others as dots."""
    return "".join(char if label > 0 else "." for char, label in zip(text, labels))


def test_a_quotation_begins_with_its_mark_and_ends_before_the_closing_one() -> None:
    text = 'He said "Go (now)" and left.'
    labels = places.prose_labels(text)
    assert marked(text, labels["quotation"]) == '........"Go (now)...........'
    assert marked(text, labels["parentheses"]) == "............(now............"


def test_an_unclosed_speech_ends_with_its_paragraph_because_the_next_one_opens_it_again() -> None:
    text = 'A "one\n\n"two" b'
    assert marked(text, places.prose_labels(text)["quotation"]) == '.."one\n."two...'


def test_code_tells_strings_comments_and_characters_apart() -> None:
    parts = ["x = ", '"a/*\\"b', '" + /', '* "no" *', "/ c", "(", '"/', '", ', "'\"', (d)", ");"]
    text = "".join(parts)

    def only(*chosen: int) -> str:
        return "".join(part if i in chosen else "." * len(part) for i, part in enumerate(parts))

    labels = places.code_labels(text)
    assert marked(text, labels["quotation"]) == only(1, 6)
    assert marked(text, labels["comment"]) == only(3)
    assert marked(text, labels["parentheses"]) == only(5, 6, 7, 8)


def test_a_comment_is_not_closed_by_the_star_that_opened_it() -> None:
    text = "/*/ a */*b"
    assert marked(text, places.code_labels(text)["comment"]) == ".*/ a *..."


def test_a_line_comment_hides_a_quote() -> None:
    text = '// "a\nb'
    assert not places.code_labels(text)["quotation"].any()


def test_indentation_is_the_number_of_leading_blanks_once_they_are_over() -> None:
    labels = places.code_labels("if\n  a b\n    c")["indentation"]
    assert np.isnan(labels[2]) and np.isnan(labels[3])
    assert labels[~np.isnan(labels)].tolist() == [0, 0, 2, 2, 2, 4]


@given(st.text(alphabet="a\"'/*\\()\n {}", max_size=60))
def test_a_label_never_depends_on_what_follows(text: str) -> None:
    for read in (places.prose_labels, places.code_labels):
        whole = read(text)
        for cut in range(len(text)):
            for name, labels in read(text[:cut]).items():
                assert np.array_equal(labels, whole[name][:cut], equal_nan=True)


def test_code_is_known_by_its_comments() -> None:
    assert "comment" in places.labels_of("/* one */ int a;")
    assert "comment" not in places.labels_of("Well, Prince." * 600 + "/*")


def found_in(name: str, dev_NU: np.ndarray, dev: places.Labels, test_NU: np.ndarray, test: places.Labels) -> dict[str, Any]:
    choice = units.choose(dev_NU, dev)[name]
    return units.judge(name, choice, test_NU[:, choice.unit], test[name])


@pytest.mark.parametrize("sign", [1, -1])
def test_the_planted_unit_is_found_whichever_way_up_and_judged_on_test(sign: int) -> None:
    chance = np.random.default_rng(0)
    texts = ['a "b c" (d) ' * 60, '"e" f (g h) "i" ' * 40]
    dev, test = (places.prose_labels(text) for text in texts)
    dev_NU, test_NU = (chance.normal(size=(len(labels["quotation"]), 12)) for labels in (dev, test))
    dev_NU[:, 7] = sign * (3 * dev["quotation"] + chance.normal(size=len(dev_NU)))
    test_NU[:, 7] = sign * (3 * test["quotation"] + chance.normal(size=len(test_NU)))
    found = found_in("quotation", dev_NU, dev, test_NU, test)
    assert (found["unit"], found["sign"]) == (7, sign)
    assert 0.95 < found["dev"] <= 1 and 0.95 < found["test"] <= 1
    chosen_by_chance = found_in("quotation", dev_NU[:, :7], dev, test_NU[:, :7], test)
    assert chosen_by_chance["dev"] < 0.7 and abs(chosen_by_chance["test"] - 0.5) < 0.1


def test_indentation_is_judged_by_correlation_where_it_is_known() -> None:
    text = "a\n  b {\n    c\n" * 50
    labels = places.code_labels(text)
    states = np.zeros((len(text), 2))
    states[:, 1] = 5 - 2 * np.nan_to_num(labels["indentation"], nan=99)
    found = found_in("indentation", states, labels, states, labels)
    assert (found["unit"], found["sign"], found["measure"]) == (1, -1, "correlation")
    assert found["dev"] == pytest.approx(1) and found["test"] == pytest.approx(1)
