"""SeqPlayer: votes by hand, tiers, the Enforcer move by move, and whole matches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import gamelore
from gamelore.analysis.symmetry import Symmetries
from gamelore.catalogue import player as by_name
from gamelore.errors import GameloreError
from gamelore.learning.sequences.contexts import ContextPairs
from gamelore.learning.sequences.extraction import DUET, NO_MOVE, SOLO
from gamelore.learning.sequences.patterns import Patterns
from gamelore.learning.sequences.seqlearner import NOBODY as NO_SEAT
from gamelore.learning.sequences.seqlearner import (
    Contexts,
    Curriculum,
    Score,
    SeqLearner,
    SequenceSettings,
    Tournaments,
    score,
    train,
    watch,
)
from gamelore.learning.sequences.seqplayer import (
    NOBODY,
    Enforcer,
    SeqPlayer,
    SeqPlayerSettings,
    consult,
    weight_classes,
)
from gamelore.matches.lockstep import run_lockstep
from gamelore.matches.match import MatchState
from gamelore.players.player import Finished, Player, Turn
from gamelore.players.position_graph import PositionGraph
from gamelore.players.random_streams import extend, stream

Pair = tuple[float, int, list[str], list[tuple[int, list[tuple[int, str]]]]]


@cache
def game_of(name: str) -> gamelore.Game:
    return gamelore.load(name)


@cache
def patterns_of(name: str, symmetric: bool = False) -> Patterns:
    game = game_of(name)
    return Patterns(game) if symmetric else Patterns(game, Symmetries.trivial(game))


def mark(place: int) -> str:
    """A place of the 3x3 board by the paper's number."""
    return f"(mark {(place - 1) // 3 + 1} {(place - 1) % 3 + 1})"


def pairs_of(patterns: Patterns, *pairs: Pair) -> ContextPairs:
    """Pairs of (weight, role, context, branches of (kind, moves))."""
    longest = max(len(moves) for _, _, _, branches in pairs for _, moves in branches)
    formed = []
    for _, role, context, branches in pairs:
        rows = [
            [patterns.move_number(by, move) for by, move in moves] + [NO_MOVE] * (longest - len(moves))
            for _, moves in branches
        ]
        formed.append(
            ContextPairs.form(
                patterns,
                np.full(len(rows), role, np.int8),
                np.array([kind for kind, _ in branches], np.int8),
                np.array(rows, np.int32),
                np.tile(patterns.pack(context), (len(rows), 1)),
            )
        )
    first = formed[0]
    return replace(
        first,
        keys=np.concatenate([one.keys for one in formed]),
        starts=np.cumsum([0, *(len(one.kinds) for one in formed)]).astype(np.int64),
        kinds=np.concatenate([one.kinds for one in formed]),
        moves=np.concatenate([one.moves for one in formed]),
        record=type(first.record).empty(len(pairs)),
        weights=np.array([weight for weight, *_ in pairs]),
    )


def solo(*places: int, role: int = 0) -> tuple[int, list[tuple[int, str]]]:
    return SOLO, [(role, mark(place)) for place in places]


def duet(*places: int, role: int = 0) -> tuple[int, list[tuple[int, str]]]:
    return DUET, [((role + i) % 2, mark(place)) for i, place in enumerate(places)]


X_TO_MOVE = ["(control xplayer)"]


def turns_at_start(name: str, lanes: int = 200) -> Turn:
    graph = PositionGraph(game_of(name))
    graph.list_moves([graph.start])
    keys = extend(stream(5), np.arange(lanes))
    return Turn(graph, 0, np.arange(lanes), np.full(lanes, graph.start, np.int32), keys, np.zeros(lanes, np.int32))


def advised(
    pairs: ContextPairs, tiers: Sequence[float], *, by_branch: bool = False, absent: int = 0
) -> tuple[set[str], set[int]]:
    """The moves that are chosen at the start, over many draws, and the tiers that decide."""
    turn = turns_at_start(pairs.patterns.game.name)
    falling = pairs.chosen(np.argsort(-pairs.weights, kind="stable"))
    allowed = np.ones(9 * len(turn.lanes), np.bool_)
    advice = consult(falling, turn, np.array(tiers), allowed, by_branch=by_branch, absent=absent)
    game, legal = turn.graph.game, turn.graph.legal(turn.graph.start, 0)
    chosen = {game.move_text(0, int(legal[i])) for i in set(advice.choices.tolist()) if i != NOBODY}
    return chosen, set(advice.tiers.tolist())


# ---- votes


def test_the_highest_sum_of_weights_wins() -> None:
    pairs = pairs_of(
        patterns_of("tictactoe"),
        (0.9, 0, X_TO_MOVE, [solo(1, 2)]),
        (0.6, 0, ["(cell 1 1 b)"], [solo(5, 2)]),
        (0.6, 0, ["(cell 2 2 b)"], [solo(5, 3)]),
    )
    assert advised(pairs, [0.55]) == ({mark(5)}, {0})
    assert advised(pairs, [0.9, 0.8, 0.7, 0.55]) == ({mark(1)}, {0})


def test_equal_sums_are_drawn_from() -> None:
    pairs = pairs_of(
        patterns_of("tictactoe"),
        (0.7, 0, X_TO_MOVE, [solo(1), solo(9)]),
        (0.7, 0, ["(cell 1 1 b)"], [solo(5)]),
        (0.6, 0, ["(cell 1 2 b)"], [solo(3)]),
    )
    assert advised(pairs, [0.55])[0] == {mark(1), mark(9), mark(5)}


def test_what_does_not_hold_or_is_not_legal_advises_nothing() -> None:
    pairs = pairs_of(
        patterns_of("tictactoe"),
        (1.0, 0, ["(cell 1 1 x)"], [solo(2)]),
        (1.0, 1, ["(cell 1 1 b)"], [solo(2, role=1)]),
        (0.5, 0, X_TO_MOVE, [solo(3)]),
    )
    assert advised(pairs, [0.55]) == (set(), {NOBODY})
    assert advised(pairs, [0.55, 0.3]) == ({mark(3)}, {1})


def test_a_context_that_holds_in_several_images_advises_all_of_them() -> None:
    pairs = pairs_of(patterns_of("tictactoe", True), (0.8, 0, ["(cell 1 1 b)", "(control xplayer)"], [solo(1)]))
    assert advised(pairs, [0.55])[0] == {mark(place) for place in (1, 3, 7, 9)}


def test_a_state_may_lack_facts_of_a_context() -> None:
    pairs = pairs_of(
        patterns_of("tictactoe"),
        (1.0, 0, ["(cell 1 1 x)", "(cell 1 2 o)", "(cell 1 3 b)"], [solo(2)]),
        (0.6, 0, ["(cell 1 1 x)", "(cell 1 3 b)"], [solo(3)]),
    )
    assert advised(pairs, [0.55]) == (set(), {NOBODY})
    assert advised(pairs, [0.55], absent=1) == ({mark(3)}, {0})
    assert advised(pairs, [0.55], absent=2) == ({mark(2)}, {0})


def test_the_nearest_contexts_are_asked_last() -> None:
    pairs = pairs_of(
        patterns_of("tictactoe"),
        (0.6, 0, X_TO_MOVE, [solo(1)]),
        (1.0, 0, ["(cell 1 1 x)", "(cell 1 3 b)"], [solo(5)]),
    )
    turn = turns_at_start("tictactoe", 20)
    legal = turn.graph.legal(turn.graph.start, 0)
    for known, nearest, wanted in ((pairs, 1, mark(1)), (pairs.chosen(np.array([1])), 1, mark(5))):
        player = SeqPlayer(known, SeqPlayerSettings(nearest=nearest))
        assert {turn.graph.game.move_text(0, int(legal[i])) for i in player.choose(turn)} == {wanted}
        assert sum(player.sources.values()) == len(turn.lanes)
    assert len(set(SeqPlayer(pairs.chosen(np.array([1]))).choose(turn).tolist())) > 1


def test_a_pair_votes_once_for_a_move_or_once_for_each_sequence() -> None:
    pairs = pairs_of(
        patterns_of("tictactoe"),
        (0.6, 0, X_TO_MOVE, [solo(1, 2), solo(1, 3), duet(1, 5)]),
        (0.9, 0, ["(cell 1 1 b)"], [solo(5)]),
    )
    assert advised(pairs, [0.55])[0] == {mark(5)}
    assert advised(pairs, [0.55], by_branch=True)[0] == {mark(1)}


def test_a_sequence_votes_once_for_a_move_to_which_several_symmetries_lead() -> None:
    """At the start, all 8 symmetries keep the middle where it is; two of them lead from a corner to each corner."""
    patterns = patterns_of("tictactoe", True)
    corner = (0.9, 0, ["(cell 1 1 b)", "(control xplayer)"], [solo(1, 2)])
    middle = pairs_of(patterns, corner, (0.6, 0, X_TO_MOVE, [solo(5, 1)]))
    assert advised(middle, [0.55], by_branch=True)[0] == {mark(place) for place in (1, 3, 7, 9)}
    twice = pairs_of(patterns, corner, (0.6, 0, X_TO_MOVE, [solo(5, 1), solo(5, 2)]))
    assert advised(twice, [0.55], by_branch=True)[0] == {mark(5)}


@pytest.mark.parametrize("trees", ["context", "first"])
def test_exact_contexts_advise_the_same_whether_looked_up_or_scanned(trees: str) -> None:
    game = game_of("losetictactoe")
    graph = PositionGraph(game)
    settings = SequenceSettings(lengths=(1,), weighting="trusting", repeated="once", contexts="each", trees=trees)  # type: ignore[arg-type]
    learner = SeqLearner(Patterns(game), settings)
    train(learner, Tournaments(graph, (1,), by_name), Curriculum("random", ("random",), cycles=2, matches=20))
    looked_up = learner.pairs
    assert looked_up.exact
    scanned = replace(looked_up, exact=False)
    rows = np.flatnonzero(graph.acting[:, 0] & ~graph.terminal).astype(np.int32)
    graph.list_moves(rows)
    turn = Turn(graph, 0, np.arange(len(rows)), rows, extend(stream(1), rows), np.zeros(len(rows), np.int32))
    falling = np.argsort(-looked_up.weights, kind="stable")
    allowed = np.ones(int(graph.num_moves[rows, 0].sum()), np.bool_)
    tiers = np.array([0.9, 0.7])
    one = consult(looked_up.chosen(falling), turn, tiers, allowed)
    other = consult(scanned.chosen(falling), turn, tiers, allowed)
    assert (one.choices == other.choices).all()
    assert (one.tiers == other.tiers).all()
    assert 0 < (one.choices >= 0).sum() < len(rows)


# ---- the Enforcer, with move numbers that mean nothing


def enforcer(*sequences: tuple[bool, float, list[int]]) -> Enforcer:
    longest = max(len(moves) for _, _, moves in sequences)
    moves = np.array([moves + [NO_MOVE] * (longest - len(moves)) for _, _, moves in sequences], np.int32)
    return Enforcer(moves, np.array([d for d, _, _ in sequences]), np.array([w for _, w, _ in sequences]))


def test_a_duet_goes_on_where_the_other_follows() -> None:
    assert enforcer((True, 0.7, [1, 2, 3])).follow([2], {3, 4}) == {3: 0.7}


def test_a_duet_is_discarded_where_the_other_does_not_follow() -> None:
    assert enforcer((True, 0.7, [1, 2, 3])).follow([9], {3, 4}) == {}


def test_a_solo_goes_on_whatever_the_others_do_while_it_is_legal() -> None:
    assert enforcer((False, 0.7, [1, 3, 5])).follow([9], {3, 4}) == {3: 0.7}
    assert enforcer((False, 0.7, [1, 3, 5])).follow([9], {4}) == {}


def test_branches_are_merged_and_the_opponent_chooses_among_them() -> None:
    tree = enforcer(
        (True, 0.6, [1, 2, 3, 4, 5]), (True, 0.7, [1, 2, 6]), (True, 0.9, [1, 8, 3]), (False, 0.5, [1, 3, 7])
    )
    support = tree.follow([2], {3, 6})
    assert support == pytest.approx({3: 1.1, 6: 0.7})
    tree.chose(3)
    assert tree.follow([4], {5, 7}) == pytest.approx({5: 0.6, 7: 0.5})


def test_a_sequence_at_its_end_says_nothing() -> None:
    tree = enforcer((True, 0.6, [1, 2, 3]), (True, 0.6, [1, 2]))
    assert tree.follow([2], {3}) == {3: 0.6}
    tree.chose(3)
    assert tree.follow([4], {3, 5}) == {}


def test_several_moves_of_others_are_followed_one_by_one() -> None:
    tree = enforcer((True, 0.6, [1, 2, 3, 4]), (True, 0.8, [1, 2, 9, 5]))
    assert tree.follow([2, 3], {4, 5}) == {4: 0.6}


# ---- whole matches


class Scripted(Player):
    """Plays the moves that it was given, one after the other."""

    def __init__(self, *moves: str) -> None:
        self.moves = moves

    def choose(self, turn: Turn) -> np.ndarray:
        game = turn.graph.game
        chosen = []
        for row, ply in zip(turn.rows.tolist(), turn.plies.tolist(), strict=True):
            texts = [game.move_text(turn.role, action) for action in turn.graph.legal(row, turn.role).tolist()]
            chosen.append(texts.index(self.moves[ply // 2]))
        return np.array(chosen, np.int32)


def moves_of(finished: Finished, lane: int, role: int) -> list[str]:
    """What a role did in a match in which the roles take turns."""
    graph = finished.graph
    return [
        graph.game.move_text(
            role, int(graph.legal(int(finished.rows[lane, ply]), role)[finished.choices[lane, ply, role]])
        )
        for ply in range(role, int(finished.plies[lane]), 2)
    ]


def match(player: Player, other: Player, lanes: int = 1) -> Finished:
    ended: list[Finished] = []
    graph = PositionGraph(game_of("tictactoe"))
    keys = np.full(lanes, stream(8))
    run_lockstep(graph, [player, other], keys, 1, first_match=np.arange(lanes), on_end=ended.append)
    return ended[0]


EMPTY = ["(control xplayer)", "(cell 1 1 b)", "(cell 2 2 b)"]


def test_a_duet_is_executed_to_its_end() -> None:
    pairs = pairs_of(patterns_of("tictactoe"), (1.0, 0, EMPTY, [duet(1, 4, 2, 5, 3)]))
    player = SeqPlayer(pairs)
    finished = match(player, Scripted(mark(4), mark(5)))
    assert moves_of(finished, 0, 0) == [mark(1), mark(2), mark(3)]
    assert player.sources == {"enforcer": 2, "tier 1": 1, "tier 2": 0, "tier 3": 0, "tier 4": 0, "random": 0}


def test_version_1_enforces_and_version_2s_tier_3_does_not() -> None:
    pairs = pairs_of(patterns_of("tictactoe"), (0.6, 0, EMPTY, [solo(1, 2, 3)]))
    first = SeqPlayer(pairs, SeqPlayerSettings(1))
    assert moves_of(match(first, Scripted(mark(4), mark(5))), 0, 0) == [mark(1), mark(2), mark(3)]
    second = SeqPlayer(pairs, SeqPlayerSettings(2))
    finished = match(second, by_name("random"), lanes=30)
    assert {moves_of(finished, lane, 0)[0] for lane in range(len(finished.lanes))} == {mark(1)}
    assert second.sources["enforcer"] == 0
    assert second.sources["random"] > 30


@pytest.mark.parametrize(("enforce", "enforced"), [("all", True), ("duets", False), ("none", False)])
def test_what_is_enforced_can_be_chosen(enforce: str, enforced: bool) -> None:
    pairs = pairs_of(patterns_of("tictactoe"), (1.0, 0, EMPTY, [solo(1, 2, 3)]))
    player = SeqPlayer(pairs, SeqPlayerSettings(enforce=enforce))  # type: ignore[arg-type]
    match(player, by_name("random"), lanes=20)
    assert (player.sources["enforcer"] > 0) == enforced


def test_a_proven_loss_is_not_advised() -> None:
    """X at 1 and 9, O at 5 and 2, X to move: whoever does not take 8 loses at once."""
    context = ["(cell 2 2 o)", "(control xplayer)", "(cell 1 2 o)"]
    pairs = pairs_of(patterns_of("tictactoe"), (1.0, 0, context, [solo(3)]))
    graph = PositionGraph(game_of("tictactoe"))
    state = MatchState(graph)
    for place in (1, 5, 9, 2):
        actor = int(np.flatnonzero(graph.acting[state.row])[0])
        for role in state.pending():
            state.submit(role, mark(place) if role == actor else 0)
    turn = state.turn(0, stream(1))
    legal = state.legal(0)
    assert legal[SeqPlayer(pairs).choose(turn)[0]] == mark(3)
    assert legal[SeqPlayer(pairs, SeqPlayerSettings(verify=2, fallback="verified")).choose(turn)[0]] == mark(8)


def test_a_lane_is_the_same_alone_and_among_others() -> None:
    game = game_of("losetictactoe")
    graph = PositionGraph(game)
    learner = SeqLearner(Patterns(game))
    train(learner, Tournaments(graph, (1,), by_name), Curriculum("minimax:depth=3", ("random",), matches=10))
    played = {}
    for lanes in (1, 12):
        ended: list[Finished] = []
        seats = [SeqPlayer(learner.pairs), by_name("random")]
        run_lockstep(graph, seats, np.full(lanes, stream(4)), 1, first_match=np.arange(lanes), on_end=ended.append)
        finished = next(one for one in ended if one.lanes[0] == 0)
        played[lanes] = finished.rows[0, : finished.plies[0] + 1].tolist()
    assert played[1] == played[12]


def test_one_player_in_both_seats_plays_as_two() -> None:
    pairs = pairs_of(
        patterns_of("tictactoe"),
        (1.0, 0, EMPTY, [solo(1, 2, 6)]),
        (1.0, 1, ["(control oplayer)"], [solo(5, 4, 3, 7, role=1)]),
    )
    both = SeqPlayer(pairs)
    together = match(both, both, lanes=5)
    apart = match(SeqPlayer(pairs), SeqPlayer(pairs), lanes=5)
    assert (together.rows == apart.rows).all()
    assert moves_of(together, 0, 0)[:3] == [mark(1), mark(2), mark(6)]
    assert moves_of(together, 0, 1)[:3] == [mark(5), mark(4), mark(3)]


def test_a_match_is_the_same_in_lockstep_and_by_itself() -> None:
    game = game_of("losetictactoe")
    graph, learner = PositionGraph(game), SeqLearner(Patterns(game), SequenceSettings(weighting="trusting"))
    train(learner, Tournaments(graph, (1,), by_name), Curriculum("minimax:depth=3", ("random",), matches=10))
    ended: list[Finished] = []
    both = SeqPlayer(learner.pairs)
    run_lockstep(graph, [both, both], np.full(6, stream(4)), 1, first_match=np.arange(6), on_end=ended.append)
    rows = {
        int(one.matches[i]): one.rows[i, : one.plies[i] + 1].tolist() for one in ended for i in range(len(one.lanes))
    }
    for number in range(6):
        state = MatchState(graph)
        for role in range(2):
            both.begin(role, state.started(number))
        while state.end is None:
            for role in state.pending():
                key = extend(extend(stream(4), number), role)
                choice = both.choose(state.turn(role, key))[0] if state.has_choice(role) else 0
                state.submit(role, int(choice))
        for role in range(2):
            both.end(role, state.finished(number))
        assert state.finished().rows[0].tolist() == rows[number]
    assert both.sources["enforcer"] > 0


def test_what_somebody_else_answered_for_it_is_not_gone_on_with() -> None:
    pairs = pairs_of(patterns_of("tictactoe"), (1.0, 0, EMPTY, [solo(1, 2, 3)]))
    graph, player = PositionGraph(game_of("tictactoe")), SeqPlayer(pairs)
    for answer in (mark(1), mark(9)):
        state = MatchState(graph)
        player.begin(0, state.started())
        assert state.legal(0)[player.choose(state.turn(0, stream(1)))[0]] == mark(1)
        for moves in ((answer, 0), (0, mark(5))):
            for role, move in enumerate(moves):
                state.submit(role, move)
        player.choose(state.turn(0, stream(1)))
    assert player.sources["enforcer"] == player.sources["random"] == 1


def test_another_game_is_refused() -> None:
    pairs = pairs_of(patterns_of("tictactoe"), (1.0, 0, EMPTY, [solo(1)]))
    graph = PositionGraph(game_of("losetictactoe"))
    with pytest.raises(GameloreError, match="expected a match of tictactoe"):
        run_lockstep(graph, [SeqPlayer(pairs), by_name("random")], [stream(1)], 1)


def test_without_the_log_of_the_match_there_is_no_enforcing() -> None:
    pairs = pairs_of(patterns_of("tictactoe"), (1.0, 0, EMPTY, [solo(1, 2)]))
    player, turn = SeqPlayer(pairs), turns_at_start("tictactoe", 1)
    player.choose(turn)
    with pytest.raises(GameloreError, match="log"):
        player.choose(turn)


@pytest.mark.parametrize(
    "settings",
    [
        {"version": 3},
        {"verify": -1},
        {"nearest": -1},
        {"fallback": "perfect"},
        {"fallback": "verified"},
        {"enforce": "solos"},
        {"votes": "all"},
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, object]) -> None:
    with pytest.raises(GameloreError, match="expected"):
        SeqPlayerSettings(**settings)  # type: ignore[arg-type]


# ---- tournaments


@pytest.mark.parametrize(("name", "seats"), [("tictactoe", {0: 4, 1: 3}), ("tictactoe3p", {0: 3, 1: 2, 2: 2})])
def test_the_first_player_takes_all_roles_in_turn(name: str, seats: dict[int, int]) -> None:
    tournaments = Tournaments(PositionGraph(game_of(name)), (1,), by_name)
    random = tournaments.named("random")
    counts: dict[int, int] = {}
    for seated in tournaments.play(random, random, 7, "test"):
        assert (seated.finished.matches % len(seats) == seated.role).all()
        counts[seated.role] = counts.get(seated.role, 0) + len(seated.finished.lanes)
    assert counts == seats


def test_in_a_game_of_one_role_they_play_in_turn() -> None:
    tournaments = Tournaments(PositionGraph(game_of("pegsolitaire")), (1,), by_name)
    random = tournaments.named("random")
    played = list(tournaments.play(random, random, 5, "test"))
    counts = {role: sum(len(s.finished.lanes) for s in played if s.role == role) for role in (0, NO_SEAT)}
    assert counts == {0: 3, NO_SEAT: 2}
    assert score(iter(played)).matches == 3


@pytest.mark.parametrize("nothing", [{"opponents": ()}, {"cycles": 0}, {"matches": 0}])
def test_a_curriculum_has_something_to_watch(nothing: dict[str, object]) -> None:
    with pytest.raises(GameloreError, match="expected at least one opponent, cycle and match"):
        Curriculum(**nothing)  # type: ignore[arg-type]


def test_reliability_counts_draws_and_power_does_not() -> None:
    found = Score(matches=50, wins=10, draws=15)
    assert (found.reliability, found.power) == (50.0, 20.0)


@pytest.mark.parametrize("contexts", ["common", "grown", "each"])
def test_training_goes_on_where_it_stopped(contexts: Contexts) -> None:
    game = game_of("losetictactoe")
    curriculum = Curriculum("random", ("random",), cycles=3, matches=8)
    learners = [SeqLearner(Patterns(game), SequenceSettings(contexts=contexts)) for _ in range(2)]
    train(learners[0], Tournaments(PositionGraph(game), (6,), by_name), curriculum)
    for number in range(3):
        watch(learners[1], Tournaments(PositionGraph(game), (6,), by_name), curriculum, number)
    whole, parts = (learner.pairs for learner in learners)
    assert (whole.keys == parts.keys).all()
    assert (whole.weights == parts.weights).all()
    assert whole.weights.any()


def test_the_usual_opponents_of_an_expert() -> None:
    assert Curriculum.of("perfect") == Curriculum()
    assert Curriculum.of("greedy", cycles=3) == Curriculum("greedy", ("random", "greedy"), 3)
    assert Curriculum.of("greedy", ["perfect"]).opponents == ("perfect",)
    with pytest.raises(GameloreError, match="expected at least one opponent"):
        Curriculum.of("greedy", [])


def test_classes_of_weights_count_every_pair_once() -> None:
    weights = np.array([1.0, 0.9, 0.89, 0.55, 0.54, 0.0])
    assert weight_classes(weights) == [(0.9, 2), (0.8, 1), (0.7, 0), (0.55, 1), (0.0, 2)]
