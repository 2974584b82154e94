"""Memory of learners that look ahead: the estimate before a series, the cap while it runs."""

from pathlib import Path

import pytest

from gamelore.catalogue import play_matches, player
from gamelore.errors import GameloreError
from gamelore.learning import study
from gamelore.learning.store.features import FeatureValues
from gamelore.learning.store.knowledge import KnowledgeStore
from gamelore.learning.td import series
from gamelore.learning.td.initial_values import Initialisation, LearnerSettings
from gamelore.learning.td.series import (
    CAP_VARIABLE,
    Growth,
    Series,
    check_estimate,
    check_growth,
    looks_ahead,
    play_series,
)
from gamelore.matches import lockstep
from gamelore.matches.opponents import Kind, OpponentSettings
from gamelore.players.position_graph import PositionGraph
from gamelore.rulesheets import load

LARGE = "breakthrough:width=8,height=8,rows=2"


def play(game: str, initialisation: Initialisation, matches: int, graph: PositionGraph | None = None) -> Series:
    """A lookahead learner in one lane."""
    settings = LearnerSettings("lookahead", initialisation=initialisation)
    opponents = [OpponentSettings(filler="hashed")]
    return play_series(load(game), 0, [settings], None, opponents, matches, [(1, 0, "test")], graph=graph)


@pytest.mark.parametrize("initialisation", ["eager", "siblings"])
def test_twenty_matches_of_breakthrough_are_refused_before_the_first(
    initialisation: Initialisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GAMELORE_LOOKAHEAD_MIB", "256")
    graph = PositionGraph(load(LARGE))
    with pytest.raises(
        GameloreError,
        match=r"at most 256 MiB, got an estimate of \d[\d,]* MiB .* choose "
        r"lazy",
    ) as raised:
        play(LARGE, initialisation, 20, graph)
    assert f"{initialisation} initialisation" in str(raised.value)
    assert "1 x 20 matches of breakthrough" in str(raised.value)
    assert graph.num_rows == 1, "nothing was played"


def test_lazy_learners_and_fewer_matches_are_not() -> None:
    assert play(LARGE, "lazy", 2).rewards.shape == (1, 2)
    assert play("tictactoe", "eager", 50).rewards.shape == (1, 50)


def test_the_cap_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CAP_VARIABLE, "0")
    with pytest.raises(GameloreError, match=rf"at most 0 MiB.*environment variable {CAP_VARIABLE}"):
        play("tictactoe", "eager", 2)
    monkeypatch.setenv(CAP_VARIABLE, "lots")
    with pytest.raises(GameloreError, match="expected a number of MiB in GAMELORE_LOOKAHEAD_MIB, got 'lots'"):
        play("tictactoe", "eager", 2)


def test_a_graph_that_grows_beyond_the_cap_ends_the_series(monkeypatch: pytest.MonkeyPatch) -> None:
    series = play("tictactoe", "eager", 50)
    check_growth(series.graph)
    monkeypatch.setenv(CAP_VARIABLE, "0")
    with pytest.raises(GameloreError, match=r"got [\d,]+ positions of tictactoe, which need 0 MiB; choose lazy"):
        check_growth(series.graph)


def test_a_learner_that_only_plays_begins_no_match_beyond_the_cap(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Both learners keep the matches that ended before."""
    monkeypatch.setenv(CAP_VARIABLE, "1")
    spec = f"lookahead:initialisation=eager,knowledge={tmp_path / 'k.db'}"
    seats, ended = [player(spec), player(spec)], []
    with pytest.raises(GameloreError, match=r"at most 1 MiB, got [\d,]+ positions of connect3, .* choose lazy"):
        play_matches(load("connect3"), [spec, spec], 20, seats=seats, one_by_one=True, on_end=ended.append)
    with KnowledgeStore(tmp_path / "k.db") as knowledge:
        assert [learner.num_matches for learner in knowledge.learners()] == [len(ended)] * 2
    assert 0 < len(ended) < 20


def test_a_new_graph_in_time_keeps_it_below_the_cap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(CAP_VARIABLE, "1")
    monkeypatch.setattr(lockstep, "_MAX_GRAPH", 1 << 18)
    spec = f"lookahead:initialisation=eager,knowledge={tmp_path / 'k.db'}"
    seats = [player(spec), player("random")]
    assert len(play_matches(load("tictactoe"), [spec, "random"], 20, seats=seats, one_by_one=True)) == 20


def test_a_learner_that_studies_begins_no_match_beyond_the_cap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings, told = LearnerSettings("lookahead", initialisation="eager"), list[int]()
    monkeypatch.setattr(study, "check_estimate", lambda *_: None)
    monkeypatch.setenv(CAP_VARIABLE, "1")
    with KnowledgeStore(tmp_path / "k.db") as knowledge:
        with pytest.raises(GameloreError, match=r"at most 1 MiB, got [\d,]+ positions of connect3"):
            study.study(knowledge, load("connect3"), "red", settings, OpponentSettings(), 50, progress=told.append)
        assert told == list(range(knowledge.learners()[0].num_matches + 1))
    assert 1 < len(told) < 50


def test_the_estimate_is_of_the_right_size() -> None:
    growth = Growth((100, 150, 180, 200), 94.0)
    assert growth.expected_rows(1, 2) == 150
    assert growth.expected_rows(3, 4) == 600
    assert growth.expected_rows(1, 16) == 400  # twice as many in four times the matches: the square root
    assert Growth((100,), 94.0).expected_rows(2, 10) == 2000
    played = play("connect3", "eager", 40).graph
    assert 1 / 3 < played.num_bytes / (played.num_rows * 94.0) < 3


def test_who_looks_ahead() -> None:
    eager = [LearnerSettings(kind, initialisation="eager") for kind in ("baseline", "lookahead", "transfer")]
    assert list(map(looks_ahead, eager)) == [False, True, True]
    assert not looks_ahead(LearnerSettings("transfer", initialisation="eager", control="terminal"))
    assert not looks_ahead(LearnerSettings("lookahead", initialisation="eager", depth=0))
    assert not looks_ahead(LearnerSettings("lookahead"))


def test_many_lanes_of_a_small_game_are_not_refused() -> None:
    lane = LearnerSettings("lookahead", initialisation="eager"), None, OpponentSettings("random")
    check_estimate(load("othello4"), 0, [lane] * 300, 3000)


@pytest.mark.parametrize("order", [1, -1])
def test_the_lane_that_needs_most_is_refused_in_any_order(order: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CAP_VARIABLE, "30")
    settings = [LearnerSettings("lookahead", initialisation="eager", depth=depth) for depth in (1, 6)]
    lanes = [(one, None, OpponentSettings("random")) for one in settings]
    with pytest.raises(GameloreError, match=r"at most 30 MiB, got an estimate of .* for 2 x 100 matches of connect3"):
        check_estimate(load("connect3"), 0, lanes[::order], 100)
    check_estimate(load("connect3"), 0, lanes[:1], 100)


@pytest.mark.parametrize("kind", ["egreedy", "random"])
def test_a_large_first_match_of_a_game_that_fits_is_not_refused(kind: Kind) -> None:
    """One match of Breakthrough with turns=2 has 200,000 positions, and 3000 matches have 3.5 million."""
    settings = LearnerSettings("transfer", initialisation="eager", turns=2, control="minimax")
    lane = settings, FeatureValues({}), OpponentSettings(kind, filler="hashed")
    check_estimate(load("breakthrough"), 0, [lane] * 100, 3000)


def test_the_probe_counts_the_match_in_which_its_graph_was_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series, "PROBE_ROWS", 1 << 14)
    monkeypatch.setattr(series, "_growths", {})
    monkeypatch.setenv(CAP_VARIABLE, "1")
    lane = LearnerSettings("lookahead", initialisation="eager"), None, OpponentSettings("random")
    with pytest.raises(GameloreError, match=r"an estimate of \d MiB \(16,384 positions\) for 1 x 1 "):
        check_estimate(load(LARGE), 0, [lane], 1)
