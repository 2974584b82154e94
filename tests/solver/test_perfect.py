from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from copy import copy

import numpy as np
import pytest
from numpy.typing import NDArray

import gamelore
from gamelore import GameloreError
from gamelore.analysis.symmetry import symmetries
from gamelore.catalogue import play_matches
from gamelore.catalogue import player as by_name
from gamelore.matches.match import MatchState
from gamelore.matches.opponents import Reasonable, XReasonable
from gamelore.players.lookahead import MoveClasses
from gamelore.players.player import Player, Turn
from gamelore.players.position_graph import PositionGraph
from gamelore.players.random_streams import extend, stream
from gamelore.solver.perfect import Choice, Graded, Perfect, RegretCount, SolvedMoves, best_line, moves_in, regret
from gamelore.solver.solution import solve
from gamelore.solver.statespace import Canonical
from walks import Plain, Walk, drawn_walk

# White at a: straight to the end (one ply), by way of b (three plies), to c where black draws, to d where black wins.
CHOICES = Walk(
    arrows={0: [1, 2, 3, 4], 1: [], 2: [5], 5: [1], 3: [6, 1], 6: [], 4: [7, 8], 7: [], 8: [7]},
    owner={0: 0, 2: 1, 5: 0, 3: 1, 4: 1, 8: 0},
    leaves={1: 100, 6: 50, 7: 0},
)


def everything(graph: PositionGraph) -> NDArray[np.int32]:
    """The rows of all positions that are not terminal; expands them."""
    done = 0
    while done < graph.num_rows:
        end = graph.num_rows
        graph.expand(np.arange(done, end))
        done = end
    return np.flatnonzero(~graph.terminal).astype(np.int32)


def of_moves(graph: PositionGraph, row: int, role: int, table: NDArray[np.generic]) -> dict[str, object]:
    """What a table says of the legal moves, by their text."""
    begin, legal = graph.move_start[row, role], graph.legal(row, role)
    values = table[begin : begin + len(legal)].tolist()
    return {graph.game.move_text(role, int(a)): value for a, value in zip(legal, values, strict=True)}


def turn_at(graph: PositionGraph, row: int, role: int, times: int, seed: int = 1) -> Turn:
    """The same position in many lanes."""
    graph.list_moves([row])
    keys = extend(stream(seed), np.arange(times))
    return Turn(graph, role, np.arange(times), np.full(times, row, np.int32), keys, np.zeros(times, np.int32))


def shares(graph: PositionGraph, row: int, role: int, player: Player, times: int = 20_000) -> NDArray[np.float64]:
    """How often a player makes each of its moves."""
    choices = player.choose(turn_at(graph, row, role, times))
    return np.bincount(choices, minlength=graph.num_moves[row, role]) / times


def test_the_moves_of_one_position() -> None:
    graph = PositionGraph(gamelore.load(CHOICES.text))
    solved = graph.memo(SolvedMoves)
    solved.look(np.array([graph.start], np.int32))
    values, optimal, best = (
        of_moves(graph, graph.start, 0, table) for table in (solved.values, solved.optimal, solved.best)
    )
    assert values == {"(go n1)": 100, "(go n2)": 100, "(go n3)": 50, "(go n4)": 0}
    assert optimal == {"(go n1)": True, "(go n2)": True, "(go n3)": False, "(go n4)": False}
    assert best == {"(go n1)": True, "(go n2)": False, "(go n3)": False, "(go n4)": False}
    assert of_moves(graph, graph.start, 1, solved.best) == {"noop": True}
    assert of_moves(graph, graph.start, 1, solved.values) == {"noop": 0}


@pytest.mark.parametrize("seed", range(6))
def test_moves_agree_with_plain_python(seed: int) -> None:
    game = gamelore.load(drawn_walk(seed).text)
    plain = Plain.of(game.start())
    value = plain.values(50)
    distance = plain.distances(value, 50)
    graph = PositionGraph(game)
    rows = everything(graph)
    solved = graph.memo(SolvedMoves)
    solved.look(rows)
    for row in rows.tolist():
        facts = graph.facts(row)
        role, after = plain.chooser[facts], plain.after[facts]
        keeping = [value[child] == value[facts] for child in after]
        in_time = [distance[facts] < 0 or distance[child] == distance[facts] - 1 for child in after]
        part = slice(graph.move_start[row, role], graph.move_start[row, role] + len(after))
        assert solved.values[part].tolist() == [value[c] if role == 0 else 100 - value[c] for c in after]
        assert solved.optimal[part].tolist() == keeping
        assert solved.best[part].tolist() == [a and b for a, b in zip(keeping, in_time, strict=True)]
        assert any(solved.best[part])


@pytest.mark.parametrize("name", ["tictactoe", "losetictactoe", "capturego3", "walk1", "walk4"])
def test_the_classes_are_those_of_decisive_moves(load: Callable[..., gamelore.Game], name: str) -> None:
    graph = PositionGraph(gamelore.load(drawn_walk(int(name[-1])).text) if name.startswith("walk") else load(name))
    rows = everything(graph)
    solved, classes = graph.memo(SolvedMoves), graph.memo(MoveClasses)
    solved.look(rows)
    for role in range(2):
        chosen = rows[graph.num_moves[rows, role] > 1]
        classes.classify(chosen, role)
        for row in chosen.tolist():
            assert of_moves(graph, row, role, solved.classes) == of_moves(graph, row, role, classes.classes)


def test_perfect_draws_among_its_best_moves(load: Callable[..., gamelore.Game]) -> None:
    graph = PositionGraph(load("tictactoe"))
    assert shares(graph, graph.start, 0, Perfect()) == pytest.approx(np.full(9, 1 / 9), abs=0.01)
    lose = PositionGraph(load("losetictactoe"))
    assert shares(lose, lose.start, 0, Perfect()).tolist() == [0, 0, 0, 0, 1, 0, 0, 0, 0]
    walk = PositionGraph(gamelore.load(CHOICES.text))
    moves = [walk.game.move_text(0, int(action)) for action in walk.legal(walk.start, 0)]
    drawn = dict(zip(moves, shares(walk, walk.start, 0, Perfect()).tolist(), strict=True))
    assert drawn == {"(go n1)": 1, "(go n2)": 0, "(go n3)": 0, "(go n4)": 0}
    drawn = dict(zip(moves, shares(walk, walk.start, 0, Perfect("value")).tolist(), strict=True))
    assert drawn == pytest.approx({"(go n1)": 0.5, "(go n2)": 0.5, "(go n3)": 0, "(go n4)": 0}, abs=0.02)


def test_perfect_players_draw_and_never_lose(load: Callable[..., gamelore.Game]) -> None:
    for players in (["perfect", "perfect"], ["perfect", "random"], ["random", "perfect"]):
        goals = Counter(record.goals for record in play_matches(load("losetictactoe"), players, 200))
        for role, player in enumerate(players):
            assert player == "random" or all(result[role] for result in goals)
        assert players != ["perfect", "perfect"] or goals == {(50, 50): 200}


def test_reasonable_wins_at_once_and_gives_nothing(
    load: Callable[..., gamelore.Game], row_at: Callable[[PositionGraph, str], int]
) -> None:
    graph = PositionGraph(load("tictactoe"))
    assert shares(graph, row_at(graph, "xx. oo. ..."), 0, Reasonable()).tolist() == [1, 0, 0, 0, 0]
    assert shares(graph, row_at(graph, "x.. oo. .x."), 0, Reasonable()).tolist() == [0, 0, 1, 0, 0]
    assert shares(graph, graph.start, 0, Reasonable()) == pytest.approx(np.full(9, 1 / 9), abs=0.01)


def test_reasonable_does_not_mind_its_own_line_unless_told(
    load: Callable[..., gamelore.Game], row_at: Callable[[PositionGraph, str], int]
) -> None:
    graph = PositionGraph(load("losetictactoe"))
    row = row_at(graph, "xx. o.. .o.")
    assert shares(graph, row, 0, Reasonable()) == pytest.approx(np.full(5, 0.2), abs=0.01)
    assert shares(graph, row, 0, Reasonable("avoid")) == pytest.approx([0, 0.25, 0.25, 0.25, 0.25], abs=0.01)


def test_reasonable_that_avoids_is_egreedy_without_exploring(load: Callable[..., gamelore.Game]) -> None:
    graph = PositionGraph(load("losetictactoe"))
    for row in everything(graph)[::97].tolist():
        role = int(graph.num_moves[row, 1] > 1)
        turn = turn_at(graph, row, role, 50)
        egreedy = by_name("egreedy:epsilon=0").choose(turn)
        assert (by_name("reasonable:own=avoid").choose(turn) == egreedy).all()


@pytest.mark.parametrize(
    "spec", ["perfect", "perfect:best=value", "reasonable", "expert", "novice:own=avoid", "xreasonable:x=40"]
)
def test_players_move_as_their_distribution_says(
    load: Callable[..., gamelore.Game], row_at: Callable[[PositionGraph, str], int], spec: str
) -> None:
    graph = PositionGraph(load("losetictactoe"))
    player = by_name(spec)
    for drawing, role in (("x.. .o. ...", 0), ("xo. .x. ...", 1), ("xx. o.. .o.", 0)):
        row = row_at(graph, drawing)
        expected = player.distribution(graph, np.array([row], np.int32), role)  # type: ignore[attr-defined]
        assert expected.sum() == pytest.approx(1)
        assert shares(graph, row, role, player) == pytest.approx(expected, abs=0.015)


def test_mixtures_by_name() -> None:
    expert, novice = by_name("expert"), by_name("novice:best=value")
    assert isinstance(expert, XReasonable)
    assert isinstance(novice, XReasonable)
    assert (expert.x, novice.x, novice.perfect.best) == (10, 70, "value")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("xreasonable:x=101", "from 0 to 100"),
        ("reasonable:own=maybe", "ignore or avoid"),
        ("perfect:best=quick", "fastest or value"),
    ],
)
def test_settings_that_make_no_sense(spec: str, message: str) -> None:
    with pytest.raises(GameloreError, match=message):
        by_name(spec)


def test_perfect_cannot_play_what_cannot_be_solved(load: Callable[..., gamelore.Game]) -> None:
    with pytest.raises(GameloreError, match="one role at a time"):
        play_matches(load("goofspiel"), ["perfect", "random"], 1)


def test_regret_of_one_match() -> None:
    match = MatchState(PositionGraph(gamelore.load(CHOICES.text)))
    # white gives away a win for a draw, 50 points, and black the draw for a loss
    for white, black in (("(go n3)", "noop"), ("noop", "(go n1)")):
        match.submit(0, white)
        match.submit(1, black)
    lost, turns = regret(match.finished())
    assert lost.tolist() == [[50, 50]]
    assert turns.tolist() == [[1, 1]]


def test_regret_is_nothing_for_the_perfect_and_something_for_the_random(load: Callable[..., gamelore.Game]) -> None:
    count = RegretCount(2)
    played = play_matches(load("losetictactoe"), ["perfect", "random"], 300, on_end=count.add)
    assert count.per_move[0] == 0
    assert count.per_move[1] > 5
    assert count.turns.sum() == sum(len(record.moves) for record in played)
    lost_by_o = sum(50 - (record.goals[1] or 0) for record in played)
    assert count.lost[1] == lost_by_o  # what the perfect player gets in a drawn game, the other one lost


@pytest.mark.parametrize("name", ["tictactoe", "losetictactoe"])
def test_a_search_to_the_end_loses_nothing_by_the_solution(load: Callable[..., gamelore.Game], name: str) -> None:
    for seat, players in enumerate((["minimax:depth=9", "random"], ["random", "minimax:depth=9"])):
        count = RegretCount(2)
        play_matches(load(name), players, 60, on_end=count.add)
        assert count.lost[seat] == 0
        assert count.lost[1 - seat] > 0


def test_first_moves_and_the_best_line_of_a_draw(load: Callable[..., gamelore.Game]) -> None:
    solved = SolvedMoves(PositionGraph(load("losetictactoe")))
    moves = moves_in(solved, solved.graph.start)
    assert [move.move for move in moves if move.best] == ["(mark 2 2)"]
    assert {(move.goals, move.distance) for move in moves if not move.best} == {((0, 100), 8)}
    assert {move.role for move in moves} == {"xplayer"}
    line = best_line(solved)
    assert (line.end, len(line.moves)) == ("terminal", 9)


def test_the_best_line_of_a_win_is_as_long_as_its_distance(load: Callable[..., gamelore.Game]) -> None:
    for name in ("othello4", "capturego3", "pegsolitaire"):
        graph = PositionGraph(load(name))
        line = best_line(SolvedMoves(graph))
        position = graph.game.start()
        for joint in line.moves:
            position = position.play(joint)
        assert len(line.moves) == solve(load(name)).distance
        assert tuple(position.goals.values()) == solve(load(name)).values


def test_a_line_that_need_not_end_says_why_it_stops() -> None:
    ring = Walk({0: [1, 3], 1: [2], 2: [0]}, {0: 0, 1: 1, 2: 0}, {3: 30})
    line = best_line(SolvedMoves(PositionGraph(gamelore.load(ring.counted(90)))))
    assert (line.end, len(line.moves)) == ("repetition", 3)
    assert best_line(SolvedMoves(PositionGraph(gamelore.load(ring.text))), most_plies=2).end == "cut"


# ---- choices that are not drawn


def rows_after(
    graph: PositionGraph, rows: NDArray[np.int32], choices: NDArray[np.int32], role: int
) -> NDArray[np.int32]:
    joint = np.zeros((len(rows), graph.game.num_roles), np.int32)
    joint[:, role] = choices
    return graph.successor(rows, joint)


def own_rows(graph: PositionGraph, role: int) -> NDArray[np.int32]:
    rows = everything(graph)
    return rows[graph.acting[rows, role]]


@pytest.mark.parametrize("choice", ["fixed", "symmetric"])
@pytest.mark.parametrize("player", [Perfect("value"), Reasonable()])
def test_a_fixed_choice_is_among_the_drawn_ones_and_the_only_one(player: Graded, choice: Choice) -> None:
    graph = PositionGraph(gamelore.load("losetictactoe"))
    rows = own_rows(graph, 0)
    repeating = copy(player)
    Graded.__init__(repeating, choice, 5)
    drawn, fixed = (x.distribution(graph, rows, 0) for x in (player, repeating))
    assert set(np.unique(fixed)) == {0.0, 1.0}
    assert (drawn[fixed == 1.0] > 0).all()
    counts = graph.num_moves[rows, 0]
    assert (np.add.reduceat(fixed, np.cumsum(counts) - counts) == 1.0).all()
    for seed in (1, 2):
        keys, plies = extend(stream(seed), np.arange(len(rows))), np.full(len(rows), seed, np.int32)
        choices = repeating.choose(Turn(graph, 0, np.arange(len(rows)), rows, keys, plies))
        assert (fixed[np.cumsum(counts) - counts + choices] == 1.0).all()


def test_other_keys_fix_other_choices_and_all_alike() -> None:
    graph = PositionGraph(gamelore.load("losetictactoe"))
    rows = own_rows(graph, 0)[1:200]
    mean = np.mean([Perfect("value", "fixed", key).distribution(graph, rows, 0) for key in range(400)], axis=0)
    expected = Perfect("value").distribution(graph, rows, 0)
    assert np.abs(mean - expected).max() < 5 * (0.25 / 400) ** 0.5


def test_a_choice_is_fixed_whatever_the_step_counter_shows() -> None:
    ring = Walk({0: [1, 3], 1: [2], 2: [0], 3: [4, 5], 4: [0], 5: [0]}, {0: 0, 1: 1, 2: 0, 3: 1, 4: 0, 5: 0}, {})
    graph = PositionGraph(gamelore.load(ring.counted(90)))
    rows = own_rows(graph, 0)
    places = [frozenset(fact for fact in graph.facts(row) if "step" not in fact) for row in rows.tolist()]
    assert len(set(places)) < len(places)
    for key in range(20):
        shares_of: dict[frozenset[str], set[bytes]] = {}
        player = Perfect("value", "fixed", key)
        for row, place in zip(rows, places, strict=True):
            shares_of.setdefault(place, set()).add(player.distribution(graph, np.array([row]), 0).tobytes())
        assert all(len(several) == 1 for several in shares_of.values())


def test_symmetric_positions_get_symmetric_choices() -> None:
    game = gamelore.load("losetictactoe")
    group = symmetries(game)
    graph = PositionGraph(game)
    canonical = Canonical(group)
    met: dict[str, dict[bytes, set[bytes]]] = {"fixed": {}, "symmetric": {}}
    rows = own_rows(graph, 1)
    for choice, after in met.items():
        choices = Perfect("value", choice, 3).choose(  # type: ignore[arg-type]
            Turn(graph, 1, np.arange(len(rows)), rows, np.zeros(len(rows), np.uint64), np.zeros(len(rows), np.int32))
        )
        own, reached = (canonical.of(graph.states[x]) for x in (rows, rows_after(graph, rows, choices, 1)))
        for before, state in zip(own, reached, strict=True):
            after.setdefault(before.tobytes(), set()).add(state.tobytes())
    assert {len(states) for states in met["symmetric"].values()} == {1}
    assert max(len(states) for states in met["fixed"].values()) > 1


def test_only_the_perfect_moves_of_an_expert_are_fixed() -> None:
    graph = PositionGraph(gamelore.load("losetictactoe"))
    rows = own_rows(graph, 0)
    expert = XReasonable(10.0, best="value", choice="fixed", hash_key=9)
    perfect, reasonable = Perfect("value", "fixed", 9), Reasonable()
    expected = 0.1 * reasonable.distribution(graph, rows, 0) + 0.9 * perfect.distribution(graph, rows, 0)
    assert np.allclose(expert.distribution(graph, rows, 0), expected)


def test_a_role_without_a_move_has_no_share() -> None:
    graph = PositionGraph(gamelore.load("losetictactoe"))
    everything(graph)
    done = int(np.flatnonzero(graph.terminal)[0])
    rows = np.array([done, graph.start, done], np.int32)
    for choice in ("drawn", "fixed"):
        found = Reasonable(choice=choice).distribution(graph, rows, 0)  # type: ignore[arg-type]
        assert (found.sum(), len(found)) == (1.0, 9)
        assert not len(Reasonable(choice=choice).distribution(graph, rows[:1], 0))  # type: ignore[arg-type]


def test_a_counter_that_decides_which_moves_are_best_decides_the_choice() -> None:
    ring = Walk({0: [1, 3], 1: [2], 2: [0]}, {0: 0, 1: 0, 2: 0}, {3: 30})
    graph = PositionGraph(gamelore.load(ring.counted(9)))
    assert set(Perfect("value", "fixed").distribution(graph, own_rows(graph, 0), 0)) == {0.0, 1.0}


def test_an_unknown_choice_is_refused() -> None:
    with pytest.raises(GameloreError, match=r"expected .*drawn, fixed or symmetric.*got 'first'"):
        Perfect(choice="first")  # type: ignore[arg-type]
