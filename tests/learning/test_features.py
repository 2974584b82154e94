"""Features as data: text, values, several sources, other rewards."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from figure2 import TWELVE
from gamelore import load
from gamelore.errors import GameloreError
from gamelore.lab.papers.banerjee2007.plan import FIGURE_2, TABLE_1, printed_values
from gamelore.learning.store.features import (
    DEEPEST,
    Equivalence,
    FeatureValues,
    canonical_text,
    combine,
    outcomes_of,
    parse,
    to_text,
)
from gamelore.learning.td.discovery import reachable_features
from gamelore.learning.td.initial_values import LearnerSettings

TREES = st.recursive(
    st.one_of(st.just("n"), st.integers(0, 100)), lambda trees: st.lists(trees, max_size=4).map(tuple), max_leaves=12
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("L,{n,W}", "L,{n,W}"),
        ("{W,n} , 0", "L,{n,W}"),
        ("{n,100},{n},0,0", "L,{n},{n,W}"),
        ("{n},{D,n},{n,30}", "{n},{n,30},{n,50}"),
        ("L,{W},30", "0,30,{100}"),  # one strange outcome, and all are numbers
        ("{}", "{}"),
        ("", ""),
        ("W,{{n,W},{L}}", "W,{{n,W},{L}}"),
    ],
)
def test_a_text_becomes_canonical(text: str, expected: str) -> None:
    assert canonical_text(text) == expected


CHAIN = """
(role a) (init (at 0))
(<= (legal a ?m) (true (at ?x)) (next_to ?x ?y) (move ?m)) (move go) (move stop)
(<= (next (at ?y)) (does a go) (true (at ?x)) (next_to ?x ?y)) (<= (next (at 120)) (does a stop))
(<= terminal (true (at 120))) (<= (goal a 100) (true (at 120)))
""" + "\n".join(f"(next_to {i} {i + 1})" for i in range(120))


def test_features_of_the_greatest_depth_can_be_read() -> None:
    deepest = reachable_features(load(CHAIN), "a", depth=DEEPEST).features
    text = max(deepest, key=len)
    assert text.count("{") == DEEPEST - 1
    assert canonical_text(text) == text
    for make in (LearnerSettings, lambda depth: reachable_features(load(CHAIN), "a", depth=depth)):
        with pytest.raises(GameloreError, match="expected a depth from 0 to 100, got 101"):
            make(depth=DEEPEST + 1)


@pytest.mark.parametrize("text", TWELVE)
def test_the_features_of_the_readings_are_canonical(text: str) -> None:
    assert canonical_text(text) == text


@given(st.lists(TREES, max_size=4).map(tuple))
def test_parsing_gives_back_what_was_written(tree: tuple[object, ...]) -> None:
    text = to_text(tree)  # type: ignore[arg-type]
    assert to_text(parse(text)) == text
    assert outcomes_of(parse(text)) == outcomes_of(tree)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("L,{n", "its braces do not match"),
        ("L}", "its braces do not match"),
        ("L,,W", "a member is missing"),
        (",L", "a member is missing"),
        ("L{n}", "a comma is missing"),
        ("L,x", "it has characters that are not allowed"),
        ("101", "101 is not a goal value"),
        ("9" * 5000, "is not a goal value|a comma is missing"),
    ],
)
def test_other_texts_are_refused(text: str, why: str) -> None:
    with pytest.raises(GameloreError, match=why):
        parse(text)


def test_values_are_a_mapping_with_canonical_texts() -> None:
    values = FeatureValues({"{W,n},0": (43.5, 7)})
    assert dict(values) == {"L,{n,W}": (43.5, 7)}
    assert (values.outcomes, values.depth) == ((0, 50, 100), 2)


def test_shuffling_moves_values_and_keeps_them() -> None:
    values = FeatureValues({text: (float(i), i) for i, text in enumerate(TWELVE)})
    runs = [values.shuffled(1, run) for run in range(4)]
    assert all(sorted(run.values()) == sorted(values.values()) for run in runs)
    assert len({tuple(run.values()) for run in runs}) == 4
    assert dict(values.shuffled(1, 2)) == dict(runs[2])


ONE = FeatureValues({"L": (40.0, 30), "{W}": (60.0, 1)})
OTHER = FeatureValues({"L": (44.0, 10), "{n,W}": (55.0, 4)}, outcomes=(0, 100))


@pytest.mark.parametrize(
    ("rule", "loss"),
    [
        ("visits", (41.0, 40)),  # (30 * 40 + 10 * 44) / 40
        ("mean", (42.0, 40)),
        ("first", (40.0, 30)),
        ("most", (40.0, 30)),
    ],
)
def test_sources_combine_by_rule(rule: str, loss: tuple[float, int]) -> None:
    both = combine([ONE, OTHER], rule)  # type: ignore[arg-type]
    assert dict(both) == {"L": loss, "{W}": (60.0, 1), "{n,W}": (55.0, 4)}
    assert both.outcomes == (0, 50, 100)


def test_the_order_of_sources_decides_who_is_first_not_who_has_most() -> None:
    assert combine([OTHER, ONE], "first")["L"] == (44.0, 10)
    assert combine([OTHER, ONE], "most")["L"] == (40.0, 30)


def test_what_does_not_combine() -> None:
    with pytest.raises(GameloreError, match=r"depths \[2, 3\]"):
        combine([ONE, FeatureValues({}, depth=3)])
    with pytest.raises(GameloreError, match="got none"):
        combine([])
    with pytest.raises(GameloreError, match="expected the setting rule"):
        combine([ONE], "best")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("target", "source", "pairs"),
    [
        ((0, 50, 100), (0, 50, 100), {0: 0, 50: 50, 100: 100}),
        ((0, 100), (0, 50, 100), {0: 0, 100: 100}),
        ((10, 20, 60), (0, 50, 100), {10: 0, 20: 50, 60: 100}),
        ((0, 25, 50, 75, 100), (0, 50, 100), {0: 0, 25: 50, 50: 50, 75: 50, 100: 100}),
        ((0, 50, 100), (0, 100), {0: 0, 50: 0, 100: 100}),  # 0 and 100 are as near to 50: the lower
    ],
)
def test_outcomes_find_their_like(target: tuple[int, ...], source: tuple[int, ...], pairs: dict[int, int]) -> None:
    assert dict(Equivalence.default(target, source).pairs) == pairs


def test_values_come_back_in_the_targets_coins() -> None:
    # the paper's example, shifted: 0 and 10 count as 0, 20 as 50, 60 as 100; so 0 is worth (0 + 10) / 2 = 5
    relation = Equivalence.given({0: 0, 10: 0, 20: 50, 60: 100}, (0, 10, 20, 60))
    assert [relation.back(value) for value in (0.0, 25.0, 50.0, 75.0, 100.0)] == [5.0, 12.5, 20.0, 40.0, 60.0]
    assert Equivalence.default((0, 100), (0, 50, 100)).back(104.0) == 104.0


def test_an_equivalence_must_cover_the_target() -> None:
    with pytest.raises(GameloreError, match="got none for 20"):
        Equivalence.given({10: 0, 60: 100}, (10, 20, 60))


def test_the_papers_letters_stand_for_the_twelve_features() -> None:
    assert sorted(text for texts in FIGURE_2.values() for text in texts) == sorted(TWELVE)
    assert sorted("".join(FIGURE_2)) == list(TABLE_1) == list("abcdefghijkl")


def test_table_1_as_feature_values() -> None:
    assert printed_values("random")["{D}"] == (50.0, 1)
    assert printed_values("egreedy")["L"] == (38.0, 1)
    # the group {c, d} against weak: (54.63 + 61.5) / 2
    assert printed_values("weak", "mean")["{D},{W}"][0] == pytest.approx(58.065)
    with pytest.raises(GameloreError, match="got 'perfect'"):
        printed_values("perfect")
