"""The player: its tree follows the match, its budgets hold, and it plays forced wins."""

from dataclasses import replace
from itertools import count
from math import inf, nan
from time import monotonic, sleep
from types import SimpleNamespace

import numpy as np
import pytest

from bounded_sheets import LEAVING_BASE
from conftest import ONE_SHOT
from gamelore import load
from gamelore.catalogue import play_matches, player
from gamelore.errors import GameloreError
from gamelore.game.game import Game, make
from gamelore.gdl.limits import Limits
from gamelore.gdl.syntax import parse
from gamelore.matches.match import MatchState
from gamelore.players.player import Turn
from gamelore.players.position_graph import PositionGraph
from gamelore.players.random_streams import stream
from gamelore.search import champion, growth, thinking, tree
from gamelore.search.champion import Gamelore
from gamelore.search.choice import MoveReport, best_of, rank, reports_of, together
from gamelore.search.growth import Grown
from gamelore.search.proofs import first_assumption
from gamelore.search.settings import ChampionSettings, GrowthSettings
from gamelore.search.startclock import Pupil
from gamelore.search.teaching import Teacher, can_be_taught
from gamelore.search.thinking import Growers, Search
from gamelore.search.tree import UNRELATED, Tree, compact
from gamelore.search.value import LinearValue


def leaving_base(rules: str = LEAVING_BASE) -> Game:
    """Return a game whose matches leave its bounds, where the reasoner plays."""
    game = make(parse(rules), "bounded", limits=Limits(seconds=5, literals=20_000))
    assert game.is_bounded
    return game


SIDES = [("gamelore:simulations=300", "random"), ("random", "gamelore:simulations=300")]


@pytest.mark.parametrize("players", SIDES)
@pytest.mark.parametrize("name", ["tictactoe", "connect3", "breakthrough"])
def test_it_beats_random_moves(name: str, players: tuple[str, str]) -> None:
    played = play_matches(load(name), players, 10)
    seat = players.index("gamelore:simulations=300")
    assert np.mean([record.goals[seat] for record in played]) >= 90


def test_it_never_loses_tictactoe_to_perfect_play() -> None:
    played = play_matches(load("tictactoe"), ["gamelore:simulations=2000", "perfect"], 10)
    assert {record.goals for record in played} == {(50, 50)}


def test_results_with_simulations_repeat_in_any_number_of_lanes() -> None:
    game, players = load("connect3"), ["gamelore:simulations=100", "gamelore:simulations=60"]
    together = play_matches(game, players, 4, seed=5)
    for number, record in enumerate(together):
        alone = play_matches(game, players, 1, seed=5, first_match=number)
        assert record.moves == alone[0].moves
    assert [record.moves for record in play_matches(game, players, 4, seed=5)] == [r.moves for r in together]


def test_the_tree_follows_the_match(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, kept = list[int](), list[int]()
    begin, run = Search.begin, Search.run

    def counted(self: Search, *arguments: object) -> None:
        begun.append(1)
        begin(self, *arguments)  # type: ignore[arg-type]

    def noted(self: Search, *arguments: object) -> int:
        kept.append(self.visits)
        return run(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Search, "begin", counted)
    monkeypatch.setattr(Search, "run", noted)
    played = play_matches(load("connect3"), ["gamelore:simulations=400", "egreedy"], 3)
    assert len(begun) == len(played), "one new tree in each match"
    assert kept[0] == 0
    assert max(kept) > 0, "walks of earlier moves are kept"


@pytest.mark.parametrize("name", ["goofspiel", "tictactoe3p", "pegsolitaire", ONE_SHOT])
def test_it_plays_every_kind_of_game(name: str) -> None:
    game = load(name)
    played = play_matches(game, ["gamelore:simulations=50"] * game.num_roles, 2)
    assert all(record.end == "terminal" for record in played)


def test_it_plays_on_the_reasoner() -> None:
    game = load("tictactoe", engine="reasoner")
    played = play_matches(game, ["gamelore:simulations=8,playouts=1", "random"], 1)
    assert played[0].end == "terminal"


def test_a_search_stops_in_time_and_when_its_root_is_proved() -> None:
    search = Search(load("connect3"))
    search.begin(search.game.initial, np.uint64(1))
    assert search.run(deadline=0.0) == 0
    walks = search.run()
    assert search.is_proved
    assert search.run(1000) == 0
    assert search.visits == walks == search.num_walks
    report = search.moves(0)
    best = report[search.choice(0, np.uint64(1))]
    assert (best.low, best.high) == (100, 100)
    assert best.plies == min(move.plies for move in report if move.low == 100 and move.plies)
    assert len(search.line()) >= 1


def test_threads_add_up_and_repeat() -> None:
    game, found = load("breakthrough"), []
    for _ in range(2):
        search = Search(game, threads=2)
        search.begin(game.initial, stream(1))
        assert search.run(5001) == 5001
        assert search.visits == sum(move.visits for move in search.moves(0)) == 5001
        assert [stem.visits for stem in search._stems] == [2500, 2501]
        found.append(search.moves(0))
    assert found[0] == found[1]
    alone = Search(game)
    alone.begin(game.initial, stream(1))
    alone.run(2500)
    first = reports_of(search._stems[0].tree, 0, 0)
    assert first == alone.moves(0), "the first thread does what a single one does"


def test_threads_share_a_tree_only_under_a_clock() -> None:
    for spec, trees in (
        ("gamelore:seconds=0.01,threads=2", 1),
        ("gamelore:simulations=200,threads=2", 2),
        ("gamelore:seconds=0.01,threads=2,joint=regret", 2),
    ):
        thinker, state = player(spec), MatchState(PositionGraph(load("connectfour")))
        assert isinstance(thinker, Gamelore)
        thinker.begin(0, state.started(0))
        thinker.choose(turn_of(state, 0))
        assert [len(lane.search._stems) for lane in thinker._lanes.values() if lane.search] == [trees], spec


@pytest.mark.parametrize(
    ("spec", "growers"),
    [("simulations=50", 1), ("simulations=50,threads=2", 2), ("seconds=0.01,threads=2", 1)],
)
def test_lanes_share_growers_and_threads(spec: str, growers: int) -> None:
    thinker, game = player(f"gamelore:{spec}"), load("connectfour")
    assert isinstance(thinker, Gamelore)
    searches = [thinker._search_of(thinker._lane(game, number)) for number in range(4)]
    assert len({id(stem.grower) for search in searches for stem in search._stems}) == growers
    assert len({id(search._pool) for search in searches}) == 1
    assert len({id(stem.tree) for search in searches for stem in search._stems}) == 4 * growers


def test_searches_that_share_growers_do_what_they_do_alone() -> None:
    game = load("connectfour")
    weights = np.random.default_rng(1).normal(0.0, 0.02, (2, 64 * game.num_words)).astype(np.float32)
    values = None, LinearValue(weights, np.full(2, 0.5), determination=0.5)
    growers = Growers(game)
    sharing, alone = ([Search(game, threads=2, growers=own) for _ in values] for own in (growers, None))
    for pair in (sharing, alone):
        for search, value in zip(pair, values, strict=True):
            search.begin(game.initial, stream(1), value)
        for _ in range(3):  # in turn
            for search in pair:
                search.run(1000)
    assert [search.moves(0) for search in sharing] == [search.moves(0) for search in alone]
    assert sharing[0].moves(0) != sharing[1].moves(0)


def test_a_shared_tree_counts_all_walks() -> None:
    search = Search(load("breakthrough"), threads=2, shared=True)
    search.begin(search.game.initial, stream(1))
    assert search.run(20_001) == 20_001 == search.visits
    assert sum(move.visits for move in search.moves(0)) == 20_001
    walks = search.run(deadline=monotonic() + 0.1)
    assert search.visits == 20_001 + walks


@pytest.mark.parametrize("shared", [False, True])
def test_a_proof_of_one_thread_counts_for_all(shared: bool) -> None:
    search = Search(load("connect3"), threads=2, shared=shared)
    search.begin(search.game.initial, stream(1))
    search.run()
    assert search.is_proved
    moves = search.moves(0)
    best = moves[search.choice(0, stream(1))]
    assert (best.low, best.high) == (100, 100)


def report(index: int, visits: int, low: int, high: int, *, is_closed: bool = False) -> MoveReport:
    return MoveReport(index, visits, 50.0, low, high, None, is_closed, value=50.0)


def test_reports_of_trees_that_kept_different_moves_open() -> None:
    """Both trees know that two moves give 50. Each has closed another one of them; the third move may be bad."""
    one = [report(0, 10, 50, 50), report(1, 90, 50, 50, is_closed=True), report(2, 2, 0, 100)]
    two = [report(0, 60, 50, 50, is_closed=True), report(1, 20, 50, 50), report(2, 3, 0, 100)]
    moves = together([one, two])
    assert [(move.visits, move.is_closed) for move in moves] == [(70, True), (110, False), (5, False)]
    assert best_of(moves, stream(1)) == 1, "a proved draw with most visits is better than a doubtful move"


def test_a_tree_within_its_memory_goes_on_growing() -> None:
    search = Search(load("breakthrough"), memory=1)
    search.begin(search.game.initial, np.uint64(1))
    assert search.run(50_000) == 50_000 or search.is_proved
    assert search.num_nodes < 20_000


def test_lanes_with_a_choice_share_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(champion, "monotonic", lambda: 100.0)
    thinker = player("gamelore:seconds=8")
    assert isinstance(thinker, Gamelore)
    state = MatchState(PositionGraph(load("tictactoe")))
    for lanes, done, clock, end in (
        (2, 0, None, 104.0),
        (2, 1, 110.0, 104.0),
        (2, 1, 101.0, 100.95),
        (2, 0, 101.0, 100.475),
    ):
        assert thinker._deadline(turn_of(state, 0, clock), lanes, done) == pytest.approx(end)


def test_options() -> None:
    assert ChampionSettings(simulations=5).growth.leaves == 512
    made = player("gamelore:simulations=5,exploration=1.2,memory=64")
    assert isinstance(made, Gamelore)
    assert made.settings == ChampionSettings(simulations=5, exploration=1.2, memory=64)
    with pytest.raises(GameloreError, match="expected simulations of at least 1, got 0"):
        player("gamelore:simulations=0")
    with pytest.raises(GameloreError, match="expected share of at least 1"):
        player("gamelore:share=0")
    assert champion.DEFAULT_SIMULATIONS == 10_000


def turn_of(state: MatchState, role: int, deadline: float | None = None) -> Turn:
    return replace(state.turn(role, stream(1)), deadline=deadline)


def soon() -> float:
    return monotonic() + 0.05


def test_it_ponders_on_the_position_after_its_move() -> None:
    thinker = player("gamelore:simulations=50,teaching=0,solve=no")
    state = MatchState(PositionGraph(load("connectfour")))
    thinker.prepare(state.graph.game, 0)
    thinker.begin(0, state.started(0))
    assert thinker.ponder(turn_of(state, 0, soon())), "in the startclock"
    search = thinker._lanes[0].search
    before = search.visits
    choice = int(thinker.choose(turn_of(state, 0))[0])
    assert search.visits == before + 50
    assert thinker.ponder(turn_of(state, 0, soon())), "after its move"
    state.play([choice, 0])
    assert search.is_at(state.graph.states[state.row])
    pondered = search.visits
    assert pondered > 0
    assert thinker.ponder(turn_of(state, 0, soon())), "while the other role thinks"
    assert search.visits > pondered
    reply = 4
    state.play([0, reply])
    thinker.choose(turn_of(state, 0))
    assert thinker._lanes[0].search is search
    assert search.visits > 50, "the replies were searched before"


def test_it_finds_its_way_if_another_move_was_played_for_it() -> None:
    thinker, state = player("gamelore:simulations=50"), MatchState(PositionGraph(load("connectfour")))
    thinker.begin(0, state.started(0))
    choice = int(thinker.choose(turn_of(state, 0))[0])
    thinker.ponder(turn_of(state, 0, soon()))
    state.play([(choice + 1) % 8, 0])
    assert thinker.ponder(turn_of(state, 0, soon()))
    assert thinker._lanes[0].search.is_at(state.graph.states[state.row])


def test_a_batch_that_takes_longer_than_the_slice_is_a_whole_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """In slow games each slice is one batch. It grows with the tree like those of a search for a move."""
    search = Search(load("connectfour"))
    search.begin(search.game.initial, stream(1))
    search.run(20_000)
    sizes = []

    def one_batch(walks: list[int], batches: int, seconds: float | None, room: float | None) -> list[Grown]:
        grown = type(search)._grow(search, walks, batches, seconds, room)
        sizes.append((grown[0].walks, grown[0].batches))
        sleep(0.05)
        return grown

    monkeypatch.setattr(search, "_grow", one_batch)
    search._each = 1.0
    for _ in range(8):
        search.ponder(monotonic() + 0.02)
    assert {batches for _, batches in sizes} == {1}
    assert min(walks for walks, _ in sizes) > 4 * search.settings.least
    assert search._each >= 0.05, "so a move that is asked for next is not late"


def test_it_does_not_ponder_if_told_so() -> None:
    thinker, state = player("gamelore:ponder=no"), MatchState(PositionGraph(load("connectfour")))
    thinker.begin(0, state.started(0))
    assert not thinker.ponder(turn_of(state, 0, soon()))
    assert not player("random").ponder(turn_of(state, 0, soon()))


def test_it_does_not_ponder_in_a_solved_game() -> None:
    thinker, state = player("gamelore:seconds=1"), MatchState(PositionGraph(load("tictactoe")))
    thinker.prepare(state.graph.game, 0)
    thinker.begin(0, state.started(0))
    slices = 0
    while thinker.ponder(turn_of(state, 0, soon())):
        slices += 1
    assert slices > 0
    assert isinstance(thinker, Gamelore)
    assert thinker._solution_of(state.graph.game) is not None
    search = thinker._lanes[0].search
    assert search is None or not search.is_proved, "it is the solution that ends the thinking"


def test_it_learns_a_value_in_the_startclock() -> None:
    thinker, state = player("gamelore:simulations=50,solve=no"), MatchState(PositionGraph(load("connect3")))
    assert isinstance(thinker, Gamelore)
    thinker.prepare(state.graph.game, 0)
    thinker.begin(0, state.started(0))
    teacher = thinker._lanes[0].prepared
    assert isinstance(teacher, Pupil)
    while teacher.value is None:
        assert thinker.ponder(turn_of(state, 0, soon()))
    assert not thinker._lanes[0].search.visits > 64, "no search before the lesson ends"
    thinker.choose(turn_of(state, 0))
    spent = teacher.simulations
    assert thinker.ponder(turn_of(state, 0, soon()))
    assert teacher.simulations == spent, "the match has begun"


def test_teaching_with_a_budget_ends_before_the_match_and_repeats() -> None:
    """The first value comes after 250,000 walks, and is used when the walks after them tell how far to trust it."""
    game, spec = load("connect3"), "gamelore:simulations=60,teaching=300000"
    played = [play_matches(game, [spec, "gamelore:simulations=60"], 2, seed=3) for _ in range(2)]
    assert [record.moves for record in played[0]] == [record.moves for record in played[1]]
    untaught = play_matches(game, ["gamelore:simulations=60"] * 2, 2, seed=3)
    assert [record.moves for record in played[0]] != [record.moves for record in untaught]
    thinker, state = player(spec), MatchState(PositionGraph(game))
    assert isinstance(thinker, Gamelore)
    thinker.begin(0, state.started(0))
    lane = thinker._lanes[0]
    teacher = lane.prepared
    assert isinstance(teacher, Teacher)
    assert teacher.is_done, "before the match"
    spent = teacher.simulations
    assert spent >= 300_000
    thinker.choose(turn_of(state, 0))
    assert teacher.simulations == spent
    assert teacher.value is not None
    assert lane.search is not None
    prior = lane.search._stems[0].grower.prior
    assert prior.determination == teacher.value.determination > 0
    assert prior.visits > 0, "the value leads the search of the match"


def test_lanes_share_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    made = player("gamelore:memory=256")
    assert isinstance(made, Gamelore)
    assert [made._memory(lane) for lane in (0, 1, 2, 9)] == [128, 64, 32, 16]
    monkeypatch.setenv("GAMELORE_SEARCH_MIB", "100")
    assert Gamelore()._memory(0) == 50


def test_more_than_a_thousand_lanes_share_the_memory() -> None:
    """A power of two is no float from lane 1,023 on; and 16 MiB for each of so many lanes are too much."""
    made = player("gamelore:memory=1024")
    assert isinstance(made, Gamelore)
    assert [made._memory(lane) for lane in (63, 127, 1023, 4095)] == [16, 8, 1, 0.25]
    assert sum(map(made._memory, range(4096))) < 8 * 1024


def test_a_move_is_chosen_by_the_lower_bound_of_its_value() -> None:
    """With 182 walks, width 0.5: 50 - 50 * sqrt(ln 182 / 100) = 38.6, 60 - 12.8 = 47.2 and 70 - 80.7 = -10.7."""

    visits_and_values = ((100, 50.0), (80, 60.0), (2, 70.0), (0, nan))
    moves = [replace(report(i, n, 0, 100), value=value) for i, (n, value) in enumerate(visits_and_values)]
    moves.append(replace(moves[1], low=48, index=4))
    assert [rank(move, 182, 0.5) for move in moves] == pytest.approx([38.6, 47.2, -10.7, -inf, 48.0], abs=0.05)
    assert [best_of(moves[:4], stream(1), width) for width in (None, 0.5)] == [0, 1]


def test_the_best_of_bad_moves_is_made_though_all_lower_bounds_are_below_zero() -> None:
    """With 1,000 walks, width 0.5: 3 - 50 * sqrt(ln 1000 / 900) = -1.4, 2 - 16.7 and 0.5 - 22.2; one was not tried."""
    visits_and_values = ((900, 3.0), (62, 2.0), (35, 0.5), (0, nan))
    moves = [replace(report(i, n, 0, 100), value=value) for i, (n, value) in enumerate(visits_and_values)]
    assert {best_of(moves, stream(seed), 0.5) for seed in range(20)} == {0}


@pytest.mark.parametrize("seed", range(4))
def test_a_proved_win_is_played_after_its_children_were_dropped(seed: int) -> None:
    """x wins at once by (mark 1 3), after o moves anywhere else; the ends of the match are the first nodes to go."""
    game = load("tictactoe")
    position = game.start()
    for moves in (["(mark 1 1)", "noop"], ["noop", "(mark 3 1)"], ["(mark 1 2)", "noop"]):
        position = position.play(moves)
    search = Search(game)
    search.begin(position.state, stream(seed))
    search.run(400)
    tree = search._stems[0].tree
    compact(tree.arrays, 0, 1, tree.tops)
    reply = position.legal["oplayer"].index("(mark 3 3)")
    search.follow(np.array([0, reply], np.int32))
    search.run(400)
    legal = position.play(["noop", "(mark 3 3)"]).legal["xplayer"]
    assert legal[search.choice(0, stream(seed))] == "(mark 1 3)"


def test_a_move_that_is_worse_than_a_proved_draw_is_not_made() -> None:
    """It may have more visits, because walks go on below it when they would have ended at the proved move."""

    def report(index: int, visits: int, mean: float, low: int, high: int) -> MoveReport:
        plies = 5 if low == high else None
        return MoveReport(index, visits, mean, low, high, plies, is_closed=False, value=mean)

    draw, worse, better = report(0, 80, 50.0, 50, 50), report(1, 100, 49.0, 0, 100), report(2, 90, 51.0, 0, 100)
    noise = np.uint64(1)
    assert best_of([draw, worse], noise) == 0
    assert best_of([draw, worse, better], noise) == 2


def test_of_proved_moves_a_win_is_played_fast_and_all_else_slowly() -> None:
    for goal, best in ((100, 0), (75, 0), (50, 1), (25, 1), (0, 1)):
        moves = [replace(report(i, 10, goal, goal), plies=plies) for i, plies in enumerate((3, 7))]
        assert best_of(moves, stream(1)) == best


def test_a_tree_does_not_count_more_walks_than_fit_into_its_numbers() -> None:
    search = Search(load("connectfour"))
    search.begin(search.game.initial, np.uint64(1))
    search.run(100)
    search._stems[0].tree.arrays.nodes[0, tree.VISITS] = thinking._MOST_VISITS - 20
    assert search.run(100) == 20
    assert search.run(100) == search.ponder(soon()) == 0
    search._stems[0].tree.arrays.nodes[0, tree.VISITS] = thinking._MOST_VISITS + 20  # some walks count twice
    assert search.run(100) == search.ponder(soon()) == 0


def test_a_match_keeps_its_tree_whatever_teaching_finds_out() -> None:
    """Another match side by side has a startclock, in which the teacher of both decides for informed playouts."""
    thinker, state = player("gamelore:simulations=50"), MatchState(PositionGraph(load("connectfour")))
    assert isinstance(thinker, Gamelore)
    thinker.prepare(state.graph.game, 0)
    thinker.begin(0, state.started(0))
    lane = thinker._lanes[0]
    thinker._search_of(lane)
    lane.prepared = SimpleNamespace(growth=GrowthSettings(informed=0.5), value=None, assumption=100, openings=None)
    choice = int(thinker.choose(turn_of(state, 0))[0])
    search = lane.search
    assert search.settings.informed == 0.5, "found out before the first move"
    lane.prepared.growth = GrowthSettings()
    state.play([choice, 0])
    state.play([0, 3])
    thinker.choose(turn_of(state, 0))
    assert lane.search is search


def test_the_openings_are_asked_after_the_tree_has_followed_the_match() -> None:
    """What is kept of the tree counts, so a page with fewer walks than it has is not preferred to it."""
    thinker, state = player("gamelore:simulations=2000,solve=no"), MatchState(PositionGraph(load("connectfour")))
    assert isinstance(thinker, Gamelore)
    thinker.begin(0, state.started(0))
    asked, action = list[int](), int(state.graph.legal(state.row, 0)[3])

    def choice(position: object, role: int, walks: int) -> int | None:
        asked.append(walks)
        return action if len(asked) == 3 else None

    openings = SimpleNamespace(choice=choice)
    thinker._lanes[0].prepared = SimpleNamespace(growth=GrowthSettings(), value=None, assumption=100, openings=openings)
    state.play([int(thinker.choose(turn_of(state, 0))[0]), 0])
    state.play([0, 3])
    thinker.choose(turn_of(state, 0))
    kept = thinker._lanes[0].search.visits - 2000
    assert asked == [2000, kept + 2000]
    assert kept > 0
    state.play([3, 0])
    state.play([0, 3])
    assert thinker.choose(turn_of(state, 0)).tolist() == [3]
    assert thinker._lanes[0].search.is_at(state.graph.states[state.row])


def test_without_a_clock_there_is_no_teacher() -> None:
    thinker, state = player("gamelore:simulations=50"), MatchState(PositionGraph(load("connectfour")))
    assert isinstance(thinker, Gamelore)
    thinker.begin(0, state.started(0))
    assert thinker._schooling is None


def test_a_match_that_took_another_way_gets_a_new_tree() -> None:
    """The move was replaced, and the next request is for the ply after the next."""
    thinker, state = player("gamelore:simulations=50"), MatchState(PositionGraph(load("connectfour")))
    thinker.begin(0, state.started(0))
    choice = int(thinker.choose(turn_of(state, 0))[0])
    thinker.ponder(turn_of(state, 0, soon()))
    state.play([(choice + 1) % 7, 0])
    state.play([0, 3])
    thinker.choose(turn_of(state, 0))
    assert thinker._lanes[0].search.is_at(state.graph.states[state.row])


def test_a_match_that_took_another_way_keeps_what_it_knows_of_the_goals() -> None:
    thinker, state = player("gamelore:simulations=50"), MatchState(PositionGraph(load("connectfour")))
    assert isinstance(thinker, Gamelore)
    thinker.begin(0, state.started(0))
    choice = int(thinker.choose(turn_of(state, 0))[0])
    search = thinker._lanes[0].search
    assert search is not None
    assert search.assumption == 100
    search._stems[0].tree.drop_assumption()
    thinker.ponder(turn_of(state, 0, soon()))
    state.play([(choice + 1) % 8, 0])
    state.play([0, 3])
    thinker.choose(turn_of(state, 0))
    assert thinker._lanes[0].search is search
    assert search.is_at(state.graph.states[state.row])
    assert search.assumption == UNRELATED
    state = MatchState(state.graph)
    thinker.begin(0, state.started(0))
    thinker.choose(turn_of(state, 0))
    assert search.assumption == 100, "a match does not depend on those before it"


@pytest.mark.parametrize("name", ["tictactoe", ONE_SHOT])
def test_a_playout_of_the_reasoner_that_takes_too_long_is_withdrawn(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    search = Search(load(name, engine="reasoner"))
    search.begin(search.game.initial, stream(1))
    search.run(40)
    arrays = search._stems[0].tree.arrays
    before = arrays.visits.copy(), arrays.nodes[: len(arrays.nodes) // 2, tree.VISITS].copy(), arrays.sums.copy()
    num_nodes = search.num_nodes
    assert before[0].any()
    with monkeypatch.context() as patched:
        patched.setattr(growth, "playout_goals", lambda *_, **__: None)
        assert search.run(deadline=monotonic() + 0.5) == 0
    assert np.array_equal(arrays.visits, before[0])
    assert np.array_equal(arrays.nodes[: len(before[1]), tree.VISITS], before[1])
    assert np.array_equal(arrays.sums, before[2])
    assert search.num_nodes >= num_nodes, "the tree is not full, so nothing is dropped"
    assert search.run(40) == 40


@pytest.mark.parametrize("joint", ["uct", "regret", "exp3"])
def test_withdrawn_walks_leave_no_visits_where_roles_choose_at_the_same_time(
    joint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = Search(load(ONE_SHOT, engine="reasoner"), GrowthSettings(joint=joint))  # type: ignore[arg-type]
    search.begin(search.game.initial, stream(1))
    search.run(10)
    arrays = search._stems[0].tree.arrays
    before = arrays.visits.copy()
    with monkeypatch.context() as patched:
        patched.setattr(growth, "playout_goals", lambda *_, **__: None)
        assert search.run(deadline=monotonic() + 0.2) == 0
    assert before.any()
    assert np.array_equal(arrays.visits, before)


def test_the_reasoner_stops_within_a_playout() -> None:
    """The counter makes each playout a thousand plies long."""
    numbers = " ".join(f"(succ {i} {i + 1})" for i in range(1000))
    rules = f"""
        (role a) (role b) (init (step 0)) (legal a left) (legal a right) (legal b noop) {numbers}
        (<= (next (step ?j)) (true (step ?i)) (succ ?i ?j))
        (<= terminal (true (step 1000))) (goal a 50) (goal b 50)
        """
    search = Search(load(rules, engine="reasoner"))
    search.begin(search.game.initial, stream(1))
    assert search.run(1) == 1
    seen, legal = list[float](), search.game.legal
    search.game.legal = lambda states: seen.append(0) or legal(states)  # type: ignore[method-assign,func-returns-value]
    search.begin(search.game.initial, stream(2))
    assert search.run(deadline=monotonic() + 0.002) == 0
    assert 0 < len(seen) < 900


def test_a_tree_that_cannot_be_followed_in_time_begins_anew() -> None:
    search = Search(load("connectfour"), threads=2)
    search.begin(search.game.initial, stream(1))
    search.run(4000)
    search.follow(np.array([0, 0], np.int32), monotonic() + 60.0)
    kept = search.visits
    assert kept > 0
    for stem in search._stems:
        stem._drop_seconds = 1000.0
    search.follow(np.array([0, 0], np.int32), monotonic() + 60.0)
    assert search.visits == 0
    assert np.array_equal(search.state, search.game.start().play(["(drop 1)", "noop"]).play(["noop", "(drop 1)"]).state)


def test_batches_are_larger_only_where_a_move_is_short_of_time() -> None:
    search = Search(load("connectfour"))
    search.begin(search.game.initial, stream(1))
    search._each = 1.0
    search.ponder(monotonic() + 0.01)
    assert search._stems[0].grower.least == 32
    search._each = 1.0
    search.run(deadline=monotonic() + 0.01)
    assert search._stems[0].grower.least == 128


def test_a_move_is_searched_for_even_if_time_is_over_at_once() -> None:
    thinker, state = player("gamelore:seconds=0,teaching=0,solve=no"), MatchState(PositionGraph(load("connectfour")))
    assert isinstance(thinker, Gamelore)
    thinker.begin(0, state.started(0))
    thinker.choose(turn_of(state, 0))
    search = thinker._lanes[0].search
    assert search is not None
    assert search.visits == 32


def test_it_forgets_the_matches_of_another_game() -> None:
    thinker = player("gamelore:simulations=50,teaching=0,solve=no")
    assert isinstance(thinker, Gamelore)
    for name in ("connectfour", "tictactoe"):
        state = MatchState(PositionGraph(load(name)))
        thinker.begin(0, state.started(0))
        thinker.choose(turn_of(state, 0))
        assert [lane.game for lane in thinker._lanes.values()] == [state.graph.game]


def test_an_interrupted_batch_leaves_a_sound_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    search = Search(load("tictactoe", engine="reasoner"))
    search.begin(search.game.initial, stream(1))
    search.run(3)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(growth, "playout_goals", interrupted)
        with pytest.raises(KeyboardInterrupt):
            search.run(5)
    assert search.visits == 0
    assert search.run(4) == 4
    assert search.visits == 4


def test_too_many_moves_for_the_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "MOVES_BY_REASONER", 0)
    small = Tree(load("tictactoe", engine="reasoner"), 600, 4)
    with pytest.raises(GameloreError, match="expected at most 4 moves in the next positions of tictactoe, got 10"):
        small.start(small.game.initial)


def test_a_batch_that_takes_longer_than_the_time_is_played_if_nothing_is_known() -> None:
    search = Search(load("connectfour"))
    search.begin(search.game.initial, stream(1))
    search._each = 1000.0
    assert search.run(32, deadline=monotonic() + 100) >= 32
    search._each = 1000.0
    assert search.run(32, deadline=monotonic() + 100) == 0
    assert search.run(deadline=monotonic() - 1) == 0


def test_an_interrupted_batch_does_not_end_the_search_for_good() -> None:
    search = Search(load("connectfour"))
    search.begin(search.game.initial, stream(1))
    search._each = 1.0
    search._note_time(60.0, 2)
    assert search._each == 2.0
    search._note_time(60.0, 0)  # it made room in a full tree
    assert search._each == 2.0
    search.run(100)
    search._each = 200.0
    done = [search.run(100, deadline=monotonic() + 100) > 0 for _ in range(5)]
    assert done == [False, False, False, False, True]
    search._each = 20.0
    search._note_time = lambda *_: None  # type: ignore[method-assign]
    assert search.run(100, deadline=monotonic() + 50) > 0
    assert search._each == 20.0


def test_a_settled_move_is_made_early() -> None:
    """So many walks as the lead would make the second move the equal of the first."""
    game = load("connectfour")
    search = Search(game)
    search.begin(game.initial, stream(1))
    search.run(2000)
    visits = sorted(move.visits for move in search.moves(0))
    lead = visits[-1] - visits[-2]
    assert lead > 0
    assert search._is_settled(0, lead - 1)
    assert not search._is_settled(0, lead)


def test_a_settled_move_is_made_early_though_another_one_has_no_walk_but_a_prior() -> None:
    game = load("connectfour")
    weights = np.random.default_rng(1).normal(0.0, 0.02, (2, 64 * game.num_words)).astype(np.float32)
    search = Search(game)
    search.begin(game.initial, stream(1), LinearValue(weights, np.full(2, 0.5), determination=0.5))
    search.run(4000)
    assert search._is_settled(0, 1)
    arrays, (first, count) = search._stems[0].tree.arrays, search._stems[0].tree.span(0, 0)
    visits = arrays.visits[first : first + count]
    best, worst, lead = visits.argmax(), visits.argmin(), int(np.diff(np.sort(visits)[-2:])[0])
    virtual = search._stems[0].grower.prior.visits
    visits[best] += visits[worst] - virtual
    visits[worst] = virtual
    for value, is_settled in ((0.1, True), (1.0, False)):
        arrays.sums[first + worst], arrays.guesses[first + worst] = value * virtual, value
        assert search.moves(0)[int(worst)].visits == 0
        assert search._is_settled(0, lead - 1) == is_settled


def test_a_single_open_move_is_settled() -> None:
    game = load("connectfour")
    search = Search(game)
    search.begin(game.initial, stream(1))
    search.run(2000)
    arrays = search._stems[0].tree.arrays
    first, count = search._stems[0].tree.span(0, 0)
    arrays.closed[first : first + count] = 1
    assert not search._is_settled(0, 1e9), "the proofs of several trees can close all moves"
    arrays.closed[first + 3] = 0
    assert search._is_settled(0, 1e9)


def test_a_call_that_ends_long_after_the_deadline_is_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may have the processor for seconds. No walks are left then, and not less than none."""
    game, asked, clock = load("connectfour"), list[float](), count(100.0, 10.0)
    search = Search(game)
    search.begin(game.initial, stream(1))
    search.run(2000)
    is_settled = search._is_settled

    def note(role: int, walks: float) -> bool:
        asked.append(walks)
        return is_settled(role, walks)

    monkeypatch.setattr(search, "_is_settled", note)
    monkeypatch.setattr(thinking, "monotonic", lambda: next(clock))
    search._each = 0.001
    assert search.run(deadline=125.0, chooser=0) > 0
    assert asked == [0.0]


def test_trees_of_threads_are_settled_together() -> None:
    game = load("connectfour")
    search = Search(game, threads=2)
    search.begin(game.initial, stream(1))
    search.run(4000)
    visits = sorted(move.visits for move in search.moves(0))
    lead = visits[-1] - visits[-2]
    assert search._is_settled(0, lead - 1)
    assert not search._is_settled(0, lead)


def test_only_a_search_for_a_move_within_time_ends_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not one with a budget of simulations, and not while the player ponders."""
    asked = list[int]()

    def note(self: Search, role: int, walks: float) -> bool:
        asked.append(role)
        return True

    monkeypatch.setattr(Search, "_is_settled", note)
    for spec, is_asked in (
        ("gamelore:seconds=60,settle=yes", True),
        ("gamelore:seconds=5,simulations=200", False),
        ("gamelore:seconds=0.05", False),
    ):
        thinker, state = player(spec), MatchState(PositionGraph(load("connectfour")))
        thinker.begin(0, state.started(0))
        thinker.choose(turn_of(state, 0))
        assert bool(asked) == is_asked
        asked.clear()
        assert thinker.ponder(turn_of(state, 0, soon()))
        assert not asked


def test_room_is_made_only_if_there_is_time() -> None:
    search = Search(load("breakthrough"), memory=2)
    search.begin(search.game.initial, stream(1))
    stem = search._stems[0]
    while stem.grow(100_000, 100, room=0.0).walks:
        pass
    full = stem.tree.num_nodes
    assert stem.grow(100, 1, room=0.0).walks == 0
    assert stem.tree.num_nodes == full
    stem._drop_seconds = 1.0 / full
    assert stem.grow(100, 1, room=0.99).walks == 0
    assert stem.tree.num_nodes == full
    assert stem.grow(100, 1, room=1.01).walks == 0
    assert stem.tree.num_nodes < full
    assert stem._drop_seconds < 1.0 / full, "it was measured"
    while stem.grow(100_000, 100, room=0.0).walks:
        pass
    stem._drop_seconds = 1000.0
    assert search.run(deadline=monotonic() + 1.0) == 0, "what it knows must do"
    assert search.ponder(monotonic() + 0.01) == 0, "a move may be asked for meanwhile"
    stem._drop_seconds = 0.2 / stem.tree.num_nodes
    assert search.ponder(monotonic() + 0.01) > 0
    assert stem._drop_seconds < 0.2 / full, "it was measured"


def test_a_timed_search_ends_without_a_posix_clock() -> None:
    """It grows one batch in a call, and the time is read between calls."""
    search = Search(load("breakthrough"))
    search._stems[0].grower._code.clock[0] = 0  # type: ignore[attr-defined]
    search.begin(search.game.initial, stream(1))
    search.run(2000)
    begin = monotonic()
    assert search.run(deadline=begin + 0.2) > 0
    assert not search.is_proved
    assert search.num_nodes < 400_000, "the tree is not full"


def test_teaching_with_a_budget_ends_with_the_startclock() -> None:
    player = Gamelore(ChampionSettings(teaching=10**9))
    prepared = player._prepared_for(load("connectfour"), 0.2, monotonic() + 0.2)
    assert prepared is not None
    assert not prepared.is_done


@pytest.mark.parametrize("shared", [False, True])
def test_the_reasoner_plays_in_a_single_thread(shared: bool) -> None:
    """It keeps states in tables without a lock: with two threads, it ended in an IndexError, or the process did."""
    for game in (load("tictactoe", engine="reasoner"), leaving_base()):
        search, alone = Search(game, threads=2, shared=shared), Search(game)
        for each in (search, alone):
            each.begin(game.initial, stream(1))
            assert each.run(20) == 20
        assert search.moves(0) == alone.moves(0)


@pytest.mark.parametrize(("name", "threads"), [("connectfour", 1), ("connect3", 2)])
def test_with_a_budget_of_simulations_a_clock_changes_nothing(name: str, threads: int) -> None:
    """Neither a slow search before nor slices of time do, as long as the clock has time for all simulations."""
    moves = []
    for seconds_of_batch, seconds in ((0.0, None), (30.0, 60.0), (0.0, 60.0)):
        search = Search(load(name), threads=threads)
        search.begin(search.game.initial, stream(1))
        search._each = seconds_of_batch
        search.run(30_000, None if seconds is None else monotonic() + seconds)
        moves.append(search.moves(0))
    assert moves[0] == moves[1] == moves[2]


def test_a_game_that_leaves_its_bounds_keeps_to_the_clock() -> None:
    """Outside of them the reasoner plays. A batch of all lanes, whose playouts nothing stops, took twenty seconds."""
    ticks = " ".join(f"(tick {i} {i + 1})" for i in range(4, 60))
    game = leaving_base(LEAVING_BASE.replace("(true (clock 4))", "(true (clock 60))") + ticks)
    search = Search(game)
    search.begin(game.initial, stream(1))
    for _ in range(20):  # on a busy machine, the first walk may take longer
        begin = monotonic()
        search.run(deadline=begin + 0.5)
        assert monotonic() - begin < 3.0
        if search.visits:
            break
    assert search.visits > 0


def test_a_bounded_game_counts_as_one_of_the_reasoner() -> None:
    """Its playouts can be withdrawn, nothing is taught by them, and nothing thinks ahead."""
    game = leaving_base()
    assert not can_be_taught(game)
    assert first_assumption(game, 1000) == UNRELATED
    thinker, state = player("gamelore"), MatchState(PositionGraph(game))
    thinker.prepare(game, 0)
    thinker.begin(0, state.started(0))
    assert not thinker.ponder(turn_of(state, 0, soon()))
