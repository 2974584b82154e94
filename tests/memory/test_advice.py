"""When advice is taken or refused: against which rivals, for which startclocks, and at which levels."""

from math import log

import pytest

from gamelore.learning.store.lesson_rows import LESSON, WITHOUT, TrialRow
from gamelore.memory.advice import (
    LEVEL,
    MOST_KNOBS,
    OPENINGS,
    STARTCLOCKS,
    is_decided,
    is_in_order,
    level_of,
    passed,
    rival_name,
    startclock_of,
    verdict,
    with_scores,
)


def row(startclock: int, better: float = 0.0, worse: float = 0.0, number: int = 0) -> TrialRow:
    return TrialRow(LESSON, number, rival_name(startclock), 10, 5.0, 1.0, better, worse)


@pytest.mark.parametrize(
    ("startclock", "said"), [(0, "taken"), (1, "taken"), (2, "taken"), (10, "taken"), (11, "open")]
)
def test_a_lesson_is_taken_if_it_beats_a_rival_that_learned_as_long(startclock: float, said: str) -> None:
    assert verdict([row(10, better=20.0)], LESSON, 0, startclock) == said


@pytest.mark.parametrize(("startclock", "said"), [(1, "open"), (10, "refused"), (60, "refused")])
def test_a_lesson_is_refused_if_it_loses_to_a_rival_that_learned_no_longer(startclock: float, said: str) -> None:
    assert verdict([row(10, worse=20.0)], LESSON, 0, startclock) == said


def test_the_longest_rival_stands_for_all_longer_startclocks() -> None:
    assert verdict([row(60, better=20.0)], LESSON, 0, 600) == "taken"
    assert verdict([row(60, better=20.0)], LESSON, 0, 60) == "taken"
    assert verdict([row(59, better=20.0)], LESSON, 0, 600) == "open"


def test_each_state_has_tests_of_its_own() -> None:
    rows = [row(1, better=20.0, number=3), row(1, worse=20.0, number=4)]
    assert [verdict(rows, LESSON, number, 1) for number in (2, 3, 4)] == ["open", "taken", "refused"]


def test_openings_are_tried_against_the_player_without_them() -> None:
    rows = [TrialRow(OPENINGS, 3, WITHOUT, 10, 5.0, 1.0, 20.0, 0.0)]
    assert verdict(rows, OPENINGS, 3, 60) == verdict(rows, OPENINGS, 3, 0) == "taken"
    assert verdict(rows, LESSON, 3, 0) == "open"


def test_rivals_of_other_kinds_are_left_out() -> None:
    """A later version may know other rivals."""
    rows = [row(1)._replace(against="another player", better=99.0), row(1)._replace(against="startclock=", worse=99.0)]
    assert verdict(rows, LESSON, 0, 1) == "open"
    assert [startclock_of(name) for name in ("startclock=10", "startclock=x", "without")] == [10, None, None]


NUM_TESTS = len(STARTCLOCKS) + 3


def test_the_levels_of_the_states_add_up() -> None:
    """Four states share four fifths of the level for each test of a state, the others the last one."""
    rows = [row(1, number=number) for number in (3, 5, 8, 9, 11, 12, 20)]
    levels = [level_of(rows, trial) for trial in rows]
    assert [5 * NUM_TESTS * level / LEVEL for level in levels] == pytest.approx([1, 1, 1, 1, 1 / 2, 1 / 6, 1 / 12])


def test_states_are_tried_in_their_order() -> None:
    """An older state goes on, but does not begin; otherwise two states would have the level of the first one."""
    rows = [row(1, number=3), row(1, number=5), row(10, number=2)]
    assert is_in_order(rows, row(1, number=6))
    assert is_in_order(rows, row(1, number=3))
    assert not is_in_order(rows, row(1, number=4)._replace(num=0))
    assert is_in_order(rows, row(10, number=4)._replace(num=0))
    assert not is_in_order(rows, row(10, number=1)._replace(num=0))


def test_the_levels_of_all_tests_add_up() -> None:
    """Whatever is tried, and in whatever order: here everything, in 60 states."""
    knobs = [f"knob {number}" for number in range(MOST_KNOBS)]
    rows = [row(startclock, number=number) for startclock in range(1, 200) for number in range(60)]
    rows += [TrialRow(OPENINGS, number, WITHOUT) for number in range(60)]
    by_kind = {advice: [own for own in rows if own.advice == advice] for advice in (LESSON, OPENINGS)}
    first = {advice: [level_of(own, trial) for trial in own if trial.number == 0] for advice, own in by_kind.items()}
    total = 5 * sum(map(sum, first.values()))  # the first state has a fifth of what all states have
    total += sum(level_of(rows, TrialRow(knob, 0, WITHOUT)) for knob in knobs)
    assert 0.9 * LEVEL < total <= LEVEL


def test_other_startclocks_have_shares_of_their_own() -> None:
    rows = [row(startclock) for startclock in (1, 2, 5, 15, 60)]
    shares = [level_of(rows, trial) / level_of(rows, rows[0]) for trial in rows]
    assert shares == pytest.approx([1, 1 / 24, 1 / 20, 1 / 20, 1])
    assert level_of(rows, TrialRow(OPENINGS, 0, WITHOUT)) == level_of(rows, rows[0])
    assert level_of(rows, TrialRow("exploration=1", 0, WITHOUT)) == pytest.approx(
        5 * level_of(rows, rows[0]) / MOST_KNOBS
    )


def test_the_newest_state_that_passed() -> None:
    rows = [row(10, better=20.0, number=2), row(1, better=20.0, number=4), row(1, number=5)]
    assert [passed(rows, [startclock]) for startclock in (1, 10, 60)] == [4, 2, None]
    assert passed(rows, [1, 10]) == 4
    assert passed(rows, []) is None


def test_the_level_is_that_of_the_state() -> None:
    """State 9 is the fourth one that is tried, or the fifth one."""
    capital = -log(LEVEL / 6 / 5) + 1e-9
    rows = [*(row(1, number=number) for number in (2, 3, 4)), row(1, better=capital, number=9)]
    assert is_decided(rows, rows[-1])
    assert verdict(rows, LESSON, 9, 1) == "taken"
    rows = [row(1, number=0), *rows]
    assert not is_decided(rows, rows[-1])
    assert verdict(rows, LESSON, 9, 1) == "open"


def test_scores_become_evidence() -> None:
    """The first bet is 0. After a score of 1, the mean is 3/4 with the imagined score, and the variance 5/32."""
    after = with_scores(TrialRow(LESSON, 1, "startclock=1"), [1.0])
    assert after == TrialRow(LESSON, 1, "startclock=1", 1, 1.0, 1 / 16, 0.0, 0.0)
    stake = 0.25 / ((0.25 + 1 / 16) / 2 + 1 / 16)
    assert with_scores(after, [1.0]).better == pytest.approx(log(1 + stake / 2))
