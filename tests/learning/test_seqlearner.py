"""SeqLearner on matches written by hand, and beside a plain one on many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import cycle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gamelore
from bounded_sheets import LEAVING_BASE
from gamelore.analysis.symmetry import Symmetries, step_counter
from gamelore.catalogue import player as by_name
from gamelore.errors import GameloreError
from gamelore.learning.sequences.contexts import ContextPairs, Record
from gamelore.learning.sequences.extraction import DUET, KIND_NAMES, SOLO, Excerpts, SeqTable, excerpts, turns
from gamelore.learning.sequences.patterns import Patterns
from gamelore.learning.sequences.seqlearner import WEIGHTS, SeqLearner, SequenceSettings, match_results, weigh
from gamelore.learning.sequences.seqplayer import SeqPlayer, consult
from gamelore.matches.lockstep import run_lockstep
from gamelore.matches.match import MatchState
from gamelore.players.player import TERMINAL, Finished, Turn
from gamelore.players.position_graph import PositionGraph
from gamelore.players.random_streams import extend, stream
from learning.plain_sequences import EIGHT, Branch, Facts, PlainLearner, Ply, Symmetry, image


@cache
def game_of(name: str) -> gamelore.Game:
    return gamelore.load(name)


def played(graph: PositionGraph, moves: Sequence[str]) -> Finished:
    """A match of a game in which the roles take turns, by its moves; stopped behind them where it is not over."""
    match = MatchState(graph, max_plies=len(moves))
    for move in moves:
        actor = int(np.flatnonzero(graph.acting[match.row])[0])
        for role in match.pending():
            match.submit(role, move if role == actor else 0)
    return match.finished()


def marks(places: Sequence[int]) -> list[str]:
    """Moves on the 3x3 board by the paper's numbers, row by row from 1."""
    return [f"(mark {(place - 1) // 3 + 1} {(place - 1) % 3 + 1})" for place in places]


def all_of(finished: Finished) -> np.ndarray:
    return np.ones(finished.goals.shape, np.bool_)


def texts(graph: PositionGraph, moves: np.ndarray) -> list[str]:
    patterns = Patterns(graph.game)
    return [patterns.move_text(move)[1] for move in moves.tolist() if move >= 0]


DRAWN = marks([1, 2, 3, 5, 4, 6, 8, 7, 9])  # tic-tac-toe without a line


# ---- sequences in matches


def test_duets_and_solos_of_a_match_written_by_hand() -> None:
    graph = PositionGraph(game_of("tictactoe"))
    finished = played(graph, marks([1, 5, 2, 6, 3]))  # x wins
    found = excerpts(finished, np.array([[True, False]]), [3])
    listed = [(KIND_NAMES[kind], texts(graph, moves)) for kind, moves in zip(found.kinds, found.moves, strict=True)]
    assert listed == [
        ("duet", marks([1, 5, 2])),
        ("solo", marks([1, 2, 3])),
        ("duet", marks([2, 6, 3])),
    ]
    assert found.roles.tolist() == [0, 0, 0]
    assert found.rows.tolist() == finished.rows[0, [0, 0, 2]].tolist()


def random_match(name: str) -> Finished:
    graph = PositionGraph(game_of(name))
    ended: list[Finished] = []
    seats = [by_name("random")] * graph.game.num_roles
    run_lockstep(graph, seats, [stream(3, name)], 1, on_end=ended.append)
    return ended[0]


def test_alone_there_are_solos_only() -> None:
    finished = random_match("pegsolitaire")
    found = excerpts(finished, all_of(finished), [2])
    assert set(found.kinds.tolist()) == {SOLO}
    assert len(found.roles) == finished.plies[0] - 1


def test_who_was_not_successful_teaches_nothing() -> None:
    finished = random_match("tictactoe")
    assert not len(excerpts(finished, ~all_of(finished), [2]).roles)


def test_at_the_same_time_the_contestants_own_move_comes_first() -> None:
    finished = random_match("goofspiel")
    graph = finished.graph
    found = excerpts(finished, all_of(finished), [2])
    first = {role: np.flatnonzero((found.roles == role) & (found.kinds == DUET))[0] for role in (0, 1)}
    choices, start = finished.choices[0, 0], graph.start
    own = [2 * int(graph.legal(start, role)[choices[role]]) + role for role in (0, 1)]
    assert found.moves[first[0]].tolist() == own
    assert found.moves[first[1]].tolist() == own[::-1]


def test_turns_are_all_moves_in_order() -> None:
    graph = PositionGraph(game_of("tictactoe"))
    made = turns(played(graph, marks([1, 5, 2, 6, 3])))
    assert made.roles.tolist() == [0, 1, 0, 1, 0]
    assert texts(graph, made.moves) == marks([1, 5, 2, 6, 3])


def test_results_by_role() -> None:
    graph = PositionGraph(game_of("tictactoe"))
    assert match_results(played(graph, marks([1, 5, 2, 6, 3]))).tolist() == [[1.0, 0.0]]
    assert match_results(played(graph, DRAWN)).tolist() == [[0.5, 0.5]]


@pytest.mark.parametrize(
    ("goals", "outcome"),
    [([100, 0, 0], [1, 0, 0]), ([50, 50, 0], [0.5, 0.5, 0]), ([33, 33, 33], [0.5, 0.5, 0.5]), ([0, 30, 60], [0, 0, 1])],
)
def test_of_three_who_share_the_most_have_drawn(goals: list[int], outcome: list[float]) -> None:
    finished = random_match("tictactoe3p")
    assert finished.ends.tolist() == [TERMINAL]
    assert match_results(replace(finished, goals=np.array([goals], np.int16))).tolist() == [outcome]


def test_without_goals_there_is_no_result() -> None:
    graph = PositionGraph(game_of("tictactoe"))
    assert np.isnan(match_results(played(graph, marks([1, 5])))).all()


# ---- the table


def test_a_match_and_its_images_are_one() -> None:
    """Each sequence of a match and of its seven images is stored once, with one context."""
    game = game_of("losetictactoe")
    graph, patterns = PositionGraph(game), Patterns(game)
    assert patterns.symmetries.num == 8
    once = SeqLearner(patterns)
    once.watch(played(graph, DRAWN), np.ones((1, 2), np.bool_))
    eightfold = SeqLearner(patterns)
    for symmetry in EIGHT:
        finished = played(graph, [symmetry(move) for move in DRAWN])
        eightfold.watch(finished, np.ones((1, 2), np.bool_))
    one, eight = once.table.entries, eightfold.table.entries
    assert len(once.table) == len(eightfold.table) > 5
    assert (one.moves == eight.moves).all()
    assert (one.contexts == eight.contexts).all()
    assert (8 * one.encounters == eight.encounters).all()
    assert not eight.several.any()
    eightfold.extract()
    assert int(np.diff(eightfold.pairs.starts).sum()) == len(once.table)


def test_the_context_of_figure_3() -> None:
    """What <X to 1, O to 3, X to 7> has in common: blank at 1, 3 and 7, X at 5, O at 9 (Figure 3's example)."""
    game = game_of("losetictactoe")
    graph = PositionGraph(game)
    patterns = Patterns(game, Symmetries.trivial(game))
    table = SeqTable(patterns, 3)
    for first, second in ((2, 4), (6, 8), (4, 2)):
        finished = played(graph, marks([5, 9, first, second, 1, 3, 7]))
        met = excerpts(finished, all_of(finished), [3])
        wanted = (met.kinds == DUET) & np.array([texts(graph, moves) == marks([1, 3, 7]) for moves in met.moves])
        part = Excerpts(met.roles[wanted], met.kinds[wanted], met.rows[wanted], met.moves[wanted])
        table.add(part, patterns.of(graph, part.rows))
    entries = table.entries
    assert entries.encounters.tolist() == [3]
    assert entries.several.tolist() == [True]
    assert patterns.facts(entries.contexts[0]) == {
        "(cell 1 1 b)", "(cell 1 3 b)", "(cell 2 2 x)", "(cell 3 1 b)", "(cell 3 3 o)", "(control xplayer)",
    }  # fmt: skip


def test_a_table_goes_on_where_another_stopped() -> None:
    game = game_of("losetictactoe")
    graph, patterns = PositionGraph(game), Patterns(game)
    matches = [played(graph, marks(places)) for places in ([5, 1, 9, 2, 8], [5, 2, 8, 1, 3], [1, 5, 9, 2, 4])]
    whole, first, second = (SeqLearner(patterns) for _ in range(3))
    for finished in matches:
        take(whole, finished)
    take(first, matches[0])
    second.table.restore(first.table.entries)
    for finished in matches[1:]:
        take(second, finished)
    for one, other in zip(columns(whole), columns(second), strict=True):
        assert (one == other).all()


def take(learner: SeqLearner, finished: Finished) -> None:
    met = excerpts(finished, all_of(finished), [3])
    learner.table.add(met, learner.patterns.of(finished.graph, met.rows))


def columns(learner: SeqLearner) -> tuple[np.ndarray, ...]:
    entries = learner.table.entries
    return entries.kinds, entries.roles, entries.moves, entries.contexts, entries.encounters, entries.several


# ---- context pairs


def test_sequences_of_one_context_become_a_tree() -> None:
    """Figure 2: <X to 1, O to 2, X to 8>, <X to 1, O to 2, X to 7> and <X to 1, O to 4, X to 6> in one context."""
    game = game_of("losetictactoe")
    patterns = Patterns(game, Symmetries.trivial(game))
    moves = [marks(places) for places in ([1, 2, 8], [1, 2, 7], [1, 4, 6], [3, 4, 6])]
    rows = np.array([[patterns.move_number(i % 2, move) for i, move in enumerate(one)] for one in moves], np.int32)
    context = patterns.pack(["(cell 2 2 x)", "(control xplayer)"])
    arguments = (np.zeros(4, np.int8), np.zeros(4, np.int8), rows, np.tile(context, (4, 1)))
    pairs = ContextPairs.form(patterns, *arguments)
    assert pairs.starts.tolist() == [0, 4]
    by_first = ContextPairs.form(patterns, *arguments, trees="first")
    assert np.diff(by_first.starts).tolist() == [3, 1]
    starts, firsts = pairs.first_moves
    assert starts.tolist() == [0, 2]
    assert [patterns.move_text(move) for move in firsts.tolist()] == [(0, move) for move in marks([1, 3])]


def test_pairs_that_stay_keep_their_record() -> None:
    game = game_of("tictactoe")
    patterns = Patterns(game, Symmetries.trivial(game))
    move = patterns.move_number(0, "(mark 1 1)")
    contexts = np.stack([patterns.pack([fact]) for fact in ("(cell 1 1 b)", "(cell 2 2 b)")])
    moves = np.full((2, 1), move, np.int32)
    nobody = np.zeros(2, np.int8)
    both = ContextPairs.form(patterns, nobody, nobody, moves, contexts)
    both.record.comments[:] = [3, 4]
    later = ContextPairs.form(patterns, nobody[:1], nobody[:1], moves[:1], contexts[1:]).inheriting(both)
    place = both.keys.tolist().index(later.keys[0].tolist())
    assert later.record.comments.tolist() == [both.record.comments[place]]
    assert both.chosen(np.array([1, 0])).record.comments.tolist() == [4, 3]


def test_grown_contexts_stay_beside_the_more_general_ones() -> None:
    """Three matches with the same sequence: its context loses facts, and the pairs of the earlier contexts stay."""
    graph = PositionGraph(game_of("losetictactoe"))
    patterns = Patterns(graph.game, Symmetries.trivial(graph.game))
    tails = [[1, 2, 5, 4, 9, 3, 8, 7, 6], [4, 2, 5, 1, 9, 3, 8, 7, 6], [2, 1, 5, 4, 9, 3, 8, 7, 6]]
    contexts = {}
    for chosen in (SequenceSettings(), SequenceSettings(contexts="grown")):
        learner = SeqLearner(patterns, chosen)
        contexts[chosen.contexts] = []
        for moves in ([tails[0], tails[0]], [tails[1]], [tails[2]]):
            for places in moves:
                take(learner, played(graph, marks(places)))
            learner.extract()
            contexts[chosen.contexts].append(set(map(tuple, learner.pairs.keys.tolist())))
    common, grown = contexts["common"], contexts["grown"]
    assert common[0] == grown[0]
    assert not common[0] <= common[2]
    assert [pairs for pairs in grown] == [common[0], common[0] | common[1], common[0] | common[1] | common[2]]


# ---- weights


def record(comments: float, agreements: float, tries: float, successes: float) -> Record:
    return Record(*(np.array([value]) for value in (comments, agreements, tries, successes)))


@pytest.mark.parametrize(
    ("formula", "weight"),
    [("agreement", 3 / 4 * 4 / 10), ("laplace", 4 / 6), ("plain", 3 / 4), ("trusting", 4 / 5), ("results", 6 / 7)],
)
def test_weights_by_hand(formula: str, weight: float) -> None:
    assert WEIGHTS[formula](record(4, 3, 6, 5))[0] == pytest.approx(weight)


def test_what_nothing_known_weighs() -> None:
    found = {name: float(weighting(record(0, 0, 0, 0))[0]) for name, weighting in WEIGHTS.items()}
    assert found == {"agreement": 0.0, "laplace": 0.5, "plain": 0.0, "trusting": 1.0, "results": 1.0}


def test_many_comments_are_trusted_fully() -> None:
    assert WEIGHTS["agreement"](record(40, 30, 0, 0))[0] == 0.75


# ---- beside a plain learner

ALONE: list[Symmetry] = [lambda text: text]
SYMMETRIES = {"losetictactoe": EIGHT}  # of the other games no more than the identity is used here


def orbit(symmetries: Sequence[Symmetry], facts: Facts, branches: set[Branch]) -> frozenset[object]:
    """A context with its branches, in whatever image it stands."""
    return frozenset(
        (
            image(symmetry, facts),
            frozenset((kind, tuple((by, symmetry(move)) for by, move in moves)) for kind, moves in branches),
        )
        for symmetry in symmetries
    )


def plies_of(finished: Finished, i: int) -> list[Ply]:
    graph, game = finished.graph, finished.graph.game
    plies: list[Ply] = []
    for ply in range(int(finished.plies[i])):
        row = int(finished.rows[i, ply])
        actors = [role for role in range(game.num_roles) if graph.acting[row, role] or graph.num_moves[row, role] > 1]
        legal = {role: [game.move_text(role, action) for action in graph.legal(row, role).tolist()] for role in actors}
        moves = {role: legal[role][finished.choices[i, ply, role]] for role in actors}
        plies.append((graph.facts(row), moves, legal))
    return plies


def known_of(pairs: ContextPairs, symmetries: Sequence[Symmetry]) -> Counter[object]:
    """Each pair, as far as symmetries do not matter, with its record."""
    patterns, r = pairs.patterns, pairs.record
    found: Counter[object] = Counter()
    for i in range(len(pairs)):
        branches = {
            (
                KIND_NAMES[pairs.kinds[b]],
                tuple(patterns.move_text(move) for move in pairs.moves[b].tolist() if move >= 0),
            )
            for b in range(int(pairs.starts[i]), int(pairs.starts[i + 1]))
        }
        record = tuple(float(column[i]) for column in (r.comments, r.agreements, r.tries, r.successes))
        found[int(pairs.roles[i]), orbit(symmetries, patterns.facts(pairs.contexts[i]), branches), record] += 1
    return found


def known_to(plain: PlainLearner) -> Counter[object]:
    return Counter(
        (role, orbit(plain.symmetries, context, branches), (r.comments, r.agreements, r.tries, r.successes))
        for (role, context), (branches, r) in plain.pairs.items()
    )


class Both:
    """SeqLearner and the plain learner, who watch the same."""

    def __init__(self, name: str, settings: SequenceSettings) -> None:
        self.graph = PositionGraph(game_of(name))
        self.symmetries = SYMMETRIES.get(name, ALONE)
        game = self.graph.game
        patterns = Patterns(game, None if name in SYMMETRIES else Symmetries.trivial(game))
        self.learner = SeqLearner(patterns, settings)
        order: Callable[[Facts], tuple[int, ...]] = lambda facts: tuple(patterns.pack(facts).tolist())  # noqa: E731
        self.plain = PlainLearner(settings.lengths, self.symmetries, order, lambda move: patterns.move_number(*move))

    def watch(self, finished: Finished, experts: Sequence[bool]) -> None:
        outcomes = match_results(finished)
        self.learner.watch(finished, np.tile(experts, (len(outcomes), 1)))
        for i in range(len(outcomes)):
            # comparisons with NaN are false: a match without a result teaches no sequence
            self.plain.watch(plies_of(finished, i), outcomes[i].tolist(), list(experts))

    def extract(self) -> None:
        self.learner.extract()
        self.plain.extract(self.learner.settings.repeated)

    def check(self) -> None:
        assert len(self.learner.table) == len(self.plain.met)
        assert known_of(self.learner.pairs, self.symmetries) == known_to(self.plain)


@pytest.mark.parametrize("lengths", [(3,), (2, 4)])
@pytest.mark.parametrize("repeated", ["encounters", "origins"])
def test_it_learns_what_a_plain_learner_learns(lengths: tuple[int, ...], repeated: str) -> None:
    both = Both("losetictactoe", SequenceSettings(lengths=lengths, repeated=repeated))  # type: ignore[arg-type]
    for tournament in range(3):
        ended: list[Finished] = []
        seats = [by_name("minimax:depth=2"), by_name("random")]
        keys = np.full(6, stream(1, tournament))
        run_lockstep(both.graph, seats, keys, 1, first_match=np.arange(6), on_end=ended.append)
        for finished in ended:
            both.watch(finished, [True, False])
        both.extract()
    both.check()
    assert sum(both.learner.pairs.record.comments) > 0


def played_by(graph: PositionGraph, draws: Sequence[int], max_plies: int) -> Finished:
    """A match in which these numbers say which of the legal moves are made, again and again."""
    match, numbers = MatchState(graph, max_plies=max_plies), cycle(draws)
    while match.end is None:
        for role in match.pending():
            match.submit(role, next(numbers) % len(match.legal(role)))
    return match.finished()


OF_ANY_KIND = ["losetictactoe", "tictactoe3p", "goofspiel", "pegsolitaire", "connect3", LEAVING_BASE]


@pytest.mark.parametrize("name", OF_ANY_KIND, ids=[*OF_ANY_KIND[:-1], "bounded"])
@settings(deadline=None, max_examples=20, derandomize=True)
@given(data=st.data())
def test_it_learns_what_a_plain_learner_learns_of_any_match(name: str, data: st.DataObject) -> None:
    """One role, two, three; moves in turn and at the same time; forced ones, matches that are cut off, any lengths."""
    lengths = data.draw(st.sets(st.integers(1, 6), min_size=1, max_size=2))
    repeated = data.draw(st.sampled_from(["encounters", "origins", "once"]))
    both = Both(name, SequenceSettings(lengths=tuple(lengths), repeated=repeated))
    matches = st.lists(st.integers(0, 3), min_size=1, max_size=4)
    for _ in range(3):
        for draws in data.draw(st.lists(matches, min_size=1, max_size=3)):
            finished = played_by(both.graph, draws, data.draw(st.sampled_from([4, 1000])))
            num_roles = both.graph.game.num_roles
            both.watch(finished, data.draw(st.lists(st.booleans(), min_size=num_roles, max_size=num_roles)))
        both.extract()
        both.check()


@pytest.mark.parametrize("wanted", [{}, {"repeated": "once", "contexts": "each"}], ids=["common", "each"])
def test_both_engines_learn_the_same(wanted: dict[str, str]) -> None:
    """By the reasoner facts get their bits as they are met; without symmetries all is as on the native engine."""
    found, advised = [], []
    matches = [[5, 1, 9, 2, 8, 3], [5, 1, 9, 4, 8, 7], [5, 3, 7, 2, 4, 1]]
    for engine in ("native", "reasoner"):
        game = gamelore.load("losetictactoe", engine=engine)  # type: ignore[arg-type]
        learner = SeqLearner(Patterns(game, Symmetries.trivial(game)), SequenceSettings((2,), "plain", **wanted))  # type: ignore[arg-type]
        graph = PositionGraph(game)
        for places in matches:
            learner.watch(played(graph, marks(places)), np.ones((1, 2), np.bool_))
            learner.extract()
        found.append(known_of(learner.pairs, ALONE))
        ended: list[Finished] = []
        seats = [SeqPlayer(learner.pairs), by_name("random")]
        run_lockstep(graph, seats, np.full(8, stream(2)), 1, first_match=np.arange(8), on_end=ended.append)
        advised.append(sorted(str(ply) for one in ended for i in range(len(one.lanes)) for ply in moves_of(one, i)))
    assert found[0] == found[1]
    assert found[0]
    assert advised[0] == advised[1]


def moves_of(finished: Finished, i: int) -> list[tuple[int, dict[int, str]]]:
    return [(int(finished.matches[i]) * 100 + ply, moves) for ply, (_, moves, _) in enumerate(plies_of(finished, i))]


def test_patterns_that_grow_wider_find_the_contexts_from_before() -> None:
    """Facts beyond the first 64 take a second word, while pairs are there that have one."""
    game = gamelore.load("connectfour", engine="reasoner")
    patterns, graph = Patterns(game), PositionGraph(game)
    learner = SeqLearner(patterns, SequenceSettings((1,), "plain", "once", "each"))
    first = played(graph, ["(drop 1)"])
    learner.watch(first, np.ones((1, 2), np.bool_))
    width = patterns.num_words
    context = patterns.of(graph, first.rows[0, :1])
    move = patterns.move_number(0, "(drop 1)")
    nobody = np.zeros(1, np.int8)
    pairs = ContextPairs.form(patterns, nobody, nobody, np.array([[move]], np.int32), context, exact=True)
    columns = [1, 2, 3, 4, 5, 6, 7] * 5
    long = played(graph, [f"(drop {column})" for column in columns])
    patterns.of(graph, long.rows[0])
    assert patterns.num_words > width
    rows = np.append(long.rows[0, :20:2], graph.start).astype(np.int32)
    turn = Turn(graph, 0, np.arange(len(rows)), rows, extend(stream(1), rows), np.zeros(len(rows), np.int32))
    allowed = np.ones(int(graph.num_moves[rows, 0].sum()), np.bool_)
    advice = consult(pairs.weighed(np.ones(1)), turn, np.ones(1), allowed)
    assert (advice.choices >= 0).tolist() == (rows == graph.start).tolist()
    weigh(
        pairs, graph, rows, np.zeros(len(rows), np.int8), np.full(len(rows), move, np.int32),
        np.ones(len(rows), np.bool_), np.ones(len(rows)),
    )  # fmt: skip
    assert pairs.record.comments.tolist() == [float((rows == graph.start).sum())]


def test_contexts_say_nothing_of_what_counts_steps() -> None:
    game = game_of("fivemensmorris")
    counter = step_counter(game)
    assert counter is not None
    learner, finished = SeqLearner(Patterns(game), SequenceSettings(repeated="once")), random_match("fivemensmorris")
    learner.watch(finished, all_of(finished))
    learner.extract()
    counting = {game.fact_text(fact) for fact in counter.facts}
    contexts = [learner.patterns.facts(context) for context in learner.pairs.contexts]
    assert len(contexts) > 5
    assert all(counting.isdisjoint(context) for context in contexts)
    assert all(counting & finished.graph.facts(row) for row in finished.rows[0].tolist())


def test_more_symmetries_than_their_tables_have_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    game = game_of("fivemensmorris")
    assert Patterns(game).symmetries.num == 16
    monkeypatch.setattr("gamelore.learning.sequences.patterns.MOST_TABLES", 9 * 8 * 256 * 8 * game.num_words**2)
    assert 1 < Patterns(game).symmetries.num < 10


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"lengths": ()}, "lengths"),
        ({"lengths": (0,)}, "lengths"),
        ({"weighting": "best"}, "weighting to be agreement"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, object], word: str) -> None:
    with pytest.raises(GameloreError, match=word):
        SequenceSettings(**settings)  # type: ignore[arg-type]
