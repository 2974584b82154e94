"""The trial of informed playouts in the startclock: its pairs of matches, its points, its budget and its result."""

import gc
import weakref
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from gamelore import Game, GameloreError, load
from gamelore.players.random_streams import stream
from gamelore.search import teaching
from gamelore.search.growth import Grower, Grown
from gamelore.search.native_growth import grower
from gamelore.search.rounds import Rounds, Side
from gamelore.search.settings import GrowthSettings, TeachingSettings
from gamelore.search.teaching import INFORMED_SHARE, Teacher, _Trial
from gamelore.search.thinking import Search
from gamelore.search.tree import UNRELATED, VISITS, Tree
from gamelore.search.value import no_prior

SHORT = TeachingSettings(matches=8, trial=8, trial_walks=64)
FIRST_WINS = """
; two roles in turn say something, and in the fourth ply first has won, whatever was said
(role first) (role second) (init (control first)) (init (ply 0))
(word a) (word b) (follows 0 1) (follows 1 2) (follows 2 3) (follows 3 4)
(<= (legal ?r (say ?w)) (true (control ?r)) (word ?w))
(<= (legal first noop) (true (control second)))
(<= (legal second noop) (true (control first)))
(<= (next (control first)) (true (control second)))
(<= (next (control second)) (true (control first)))
(<= (next (ply ?m)) (true (ply ?n)) (follows ?n ?m))
(<= (next (said ?w)) (does ?r (say ?w)))
(<= terminal (true (ply 4)))
(goal first 100) (goal second 0)
"""


class NoSearch:
    """A way that grows nothing, so that the moves are any."""

    def __init__(self, game: Game) -> None:
        self.prior, self.least = no_prior(game), 1

    def grow(
        self, tree: Tree, walks: int, key: np.uint64, batches: tuple[int, int], seconds: float | None = None
    ) -> Grown:
        return Grown(0, 0, True)


def trial_of(game: Game, settings: TeachingSettings = SHORT, budget: int = 10**9) -> _Trial:
    return _Trial(game, stream(1), GrowthSettings(), settings, None, budget)


def finished(trial: _Trial) -> _Trial:
    while not trial.is_done:
        trial.advance()
    return trial


def test_a_trial_repeats(load: Callable[..., Game]) -> None:
    first, second = (finished(trial_of(load("connectfour"))) for _ in range(2))
    assert len(first.scores) == SHORT.trial / 2
    assert (first.walks, first.scores) == (second.walks, second.scores)
    assert first.walks > SHORT.trial * SHORT.trial_walks


def test_both_kinds_play_each_side_of_each_opening(load: Callable[..., Game]) -> None:
    """Where the first role always wins, each kind gets half of the points in each pair."""
    trial = finished(trial_of(load(FIRST_WINS)))
    assert trial.scores == [0.5] * (SHORT.trial // 2)


@pytest.mark.parametrize("searching", [0, 1])
def test_scores_are_those_of_the_first_way(load: Callable[..., Game], searching: int) -> None:
    game = load("connectfour")
    growth = GrowthSettings()
    growers: list[Grower] = [NoSearch(game), NoSearch(game)]
    growers[searching] = grower(game, growth)
    first, second = (Side(each, SHORT.trial_walks, growth) for each in growers)
    rounds = Rounds(game, stream(1), (first, second), [2])
    while len(rounds.scores) < 4:
        rounds.advance()
    mean = np.mean(rounds.scores)
    assert mean < 0.1 if searching else mean > 0.9


def test_the_budget_ends_a_trial(load: Callable[..., Game]) -> None:
    trial = finished(trial_of(load("connectfour"), budget=1000))
    assert 1000 <= trial.walks < 2000
    assert not trial.scores
    assert not trial.is_won


@pytest.mark.parametrize(
    ("matches", "points", "is_won"),
    [(8, 8.0, False), (16, 9.5, False), (16, 10.0, True), (64, 35.5, False), (64, 36.0, True)],
)
def test_a_trial_is_won_by_a_standard_deviation_after_a_quarter_of_the_matches(
    load: Callable[..., Game], matches: int, points: float, is_won: bool
) -> None:
    trial = trial_of(load("connectfour"), replace(SHORT, trial=64))
    trial.scores[:] = [points / matches] * (matches // 2)
    assert trial.is_won == is_won


@pytest.mark.parametrize("is_won", [False, True])
def test_a_worthless_value_is_followed_by_a_trial(
    load: Callable[..., Game], monkeypatch: pytest.MonkeyPatch, is_won: bool
) -> None:
    monkeypatch.setattr(teaching, "_FEWEST_VISITS", 1000)
    monkeypatch.setattr(teaching, "_ENOUGH", 0)
    monkeypatch.setattr(_Trial, "is_won", property(lambda _: is_won))
    game, lessons = load("connectfour"), replace(SHORT, simulations=300_000, first=10_000, walks=64)
    teacher = Teacher(game, stream(1), GrowthSettings(), lessons)
    teacher.teach()
    assert teacher.is_done
    assert teacher._trial is not None
    assert len(teacher._trial.scores) == SHORT.trial / 2
    assert teacher.simulations == teacher._lesson_walks + teacher._trial.walks < lessons.simulations
    assert teacher.growth == GrowthSettings(informed=INFORMED_SHARE if is_won else None)


@pytest.mark.parametrize("informed", [-0.1, 1.5, float("nan")])
def test_a_share_outside_its_range_is_refused(informed: float) -> None:
    with pytest.raises(GameloreError, match=f"expected informed from 0 to 1, got {informed}; choose another value"):
        GrowthSettings(informed=informed)


@pytest.mark.parametrize("informed", [0.0, 0.7])
def test_a_given_share_needs_no_trial(
    load: Callable[..., Game], monkeypatch: pytest.MonkeyPatch, informed: float
) -> None:
    monkeypatch.setattr(teaching, "_FEWEST_VISITS", 1000)
    monkeypatch.setattr(teaching, "_ENOUGH", 0)
    growth = GrowthSettings(informed=informed)
    lessons = replace(SHORT, simulations=300_000, first=10_000, walks=64)
    teacher = Teacher(load("connectfour"), stream(1), growth, lessons)
    teacher.teach()
    assert teacher._trial is None
    assert teacher.growth is growth


def test_informed_playouts_change_what_a_search_finds(load: Callable[..., Game]) -> None:
    game, values = load("connectfour"), []
    for informed in (None, 0.0, 0.5, 0.5, 1.0):
        search = Search(game, GrowthSettings(informed=informed), memory=16)
        search.begin(game.initial, stream(1))
        search.run(2000)
        values.append([move.mean for move in search.moves(0)])
    assert values[0] == values[1]
    assert values[2] == values[3]
    assert len({tuple(value) for value in values}) == 3


def test_where_there_are_no_informed_playouts_all_are_plain(load: Callable[..., Game]) -> None:
    game, values = load("goofspiel"), []
    for informed in (None, 1.0):
        search = Search(game, GrowthSettings(informed=informed), memory=16)
        search.begin(game.initial, stream(1))
        search.run(500)
        values.append([move.mean for move in search.moves(0)])
    assert values[0] == values[1]


@pytest.mark.parametrize(("name", "roles"), [("tictactoe3p", 3), ("goofspiel", 2)])
def test_rounds_in_other_kinds_of_games(load: Callable[..., Game], name: str, roles: int) -> None:
    """Equal ways score 1/2 on average, and each way has every role equally often."""
    game, growth = load(name), GrowthSettings()
    first, second = (Side(grower(game, growth), 64, growth) for _ in range(2))
    rounds = Rounds(game, stream(1), (first, second), [1])
    while len(rounds.scores) < 60:
        rounds.advance()
    assert game.num_roles == roles
    assert abs(np.mean(rounds.scores) - 0.5) < 4 * np.std(rounds.scores) / np.sqrt(len(rounds.scores)) + 1e-9


def test_so_many_matches_run_at_once(load: Callable[..., Game]) -> None:
    game, growth = load("tictactoe"), GrowthSettings()
    first, second = (Side(grower(game, growth), 8, growth) for _ in range(2))
    rounds = Rounds(game, stream(1), (first, second), [1], 12)
    while not rounds.scores:
        rounds.advance()
    assert len(rounds.scores) == 12 / 2


def test_rounds_that_are_not_over_free_their_tree(load: Callable[..., Game]) -> None:
    game, growth = load("connectfour"), GrowthSettings()
    first, second = (Side(grower(game, growth), 64, growth) for _ in range(2))
    rounds = Rounds(game, stream(1), (first, second), [2])
    rounds.advance()
    (tree,) = [weakref.ref(value) for value in vars(rounds._matches).values() if isinstance(value, Tree)]
    gc.collect()
    gc.disable()  # whatever is freed now is not part of a cycle
    try:
        del rounds
        assert tree() is None
    finally:
        gc.enable()


class OddGoals:
    """Growth in which the goals of the first batch do not add up."""

    def __init__(self, game: Game) -> None:
        self._grower = grower(game, GrowthSettings())
        self.prior, self.least, self.totals = self._grower.prior, self._grower.least, list[int]()

    def grow(
        self, tree: Tree, walks: int, key: np.uint64, batches: tuple[int, int], seconds: float | None = None
    ) -> Grown:
        self.totals.append(tree.assumption)
        grown = self._grower.grow(tree, walks, key, batches, seconds)
        return grown._replace(as_assumed=len(self.totals) > 1)


def test_trial_matches_begin_a_search_anew_if_goals_do_not_add_up() -> None:
    game = load("connect3")
    odd = OddGoals(game)
    sides = Side(odd, 256, GrowthSettings()), Side(grower(game, GrowthSettings()), 256, GrowthSettings())
    rounds = Rounds(game, stream(1), sides, [2])
    while len(odd.totals) < 3:
        rounds.advance()
    assert odd.totals == [100, UNRELATED, UNRELATED]
    assert rounds._matches._tree.arrays.nodes[0, VISITS] <= 2 * 64, "the walks of the first batch are forgotten"


def test_teaching_begins_a_search_anew_if_goals_do_not_add_up() -> None:
    teacher = Teacher(load("connect3"), stream(1), GrowthSettings(), replace(SHORT, simulations=10_000, walks=64))
    odd = teacher._grower = OddGoals(teacher.game)
    while not odd.totals:
        teacher._step()
    assert teacher._left == 8 * 64
    assert (teacher._batch, teacher._begins_round) == (0, True), "as a teacher that begins with the state here"
    teacher.teach()
    assert set(odd.totals[1:]) == {UNRELATED}
    assert teacher.value is not None, "it teaches all the same"


DEAD_END = """
; one of two moves leads to a position where first has several moves and second has none
(role first) (role second) (init start) (word a) (word b)
(<= (legal first on) (true start)) (<= (legal first dead) (true start)) (<= (legal second noop) (true start))
(<= (legal first (say ?w)) (true end) (word ?w)) (<= (legal first (say ?w)) (true won) (word ?w))
(<= (legal second noop) (true won))
(<= (next won) (does first on)) (<= (next end) (does first dead)) (<= (next over) (true won))
(<= terminal (true over)) (<= (goal first 100) (true over)) (goal second 0)
"""


def test_a_stuck_match_leaves_the_others_alone(load: Callable[..., Game]) -> None:
    """With NoSearch, moves are drawn, and half of the matches get stuck; only whole rounds count."""
    game = load(DEAD_END)
    first, second = (Side(NoSearch(game), 8, GrowthSettings()) for _ in range(2))
    rounds = Rounds(game, stream(1), (first, second), [0])
    for _ in range(1000):
        rounds.advance()
    assert rounds.scores == [0.5] * len(rounds.scores)
    assert len(rounds.scores) > 10
