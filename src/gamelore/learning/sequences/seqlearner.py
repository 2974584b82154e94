"""SeqLearner: learns context pairs from matches, weighs them by PWL and stores them; tournaments to train and test.

After every match SeqLearner counts how often the advice of its context pairs agreed with the moves of the experts, and
adds the sequences of the successful contestants to the SeqTable. After every tournament it forms the context pairs
again from the SeqTable, with new weights (Lock & Epstein 2004, 1.1).

PWL, probabilistic weight learning: "It takes the states where it was the expert's turn to act, checks whether a context
pair's advice supports or opposes the expert's decision, and revises the pair's weight in [0,1] accordingly." The paper
does not print the formula (readings.md, L&E 7). WEIGHTS contains several formulas by name. A formula can be any
function of a `Record`.

In the store, facts and moves are text, because engines and versions number them differently. The numbers also decide
which of several symmetric images is the smallest. Therefore rows are converted to canonical form when they are read.
Rows that are already canonical do not change. So a learner that is stored, and continues later on the same engine, gets
the same values as a learner that is never interrupted.

In match i of a tournament (section 2) the first player has role i modulo the number of roles, and the second player has
all other roles. In a game of one role the two players take turns, match by match. Random streams are keyed by (seed,
run, stage, match, role).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from ...analysis.locality import Vicinity
from ...errors import GameloreError, GDLError, IllegalMoveError, KnowledgeError, check_word
from ...game.engines import pack_bits
from ...matches.lockstep import run_lockstep
from ...players.kernel import F64, I8, I32, I64, Bool, I32x2, I64x2, U64x2, U64x4, kernel
from ...players.player import TERMINAL, Player
from ...players.random_streams import stream
from ..store.schema import LearnedRows, PairRow, SequenceRow
from .contexts import ContextPairs, Record, Trees, candidates, holds, pair_keys, smallest
from .extraction import KIND_NAMES, NO_MOVE, Entries, Moves, SeqTable, canonical_pairs, excerpts, turns
from .patterns import Bits, Patterns, image, padded

if TYPE_CHECKING:
    from ...players.player import Finished
    from ...players.position_graph import PositionGraph

Weighting: TypeAlias = Callable[[Record], NDArray[np.float64]]
FULLY_TRUSTED = 10  # smallest number of comments with which the weight of `agreement` can be 1


def agreement(record: Record) -> NDArray[np.float64]:
    """Return agreements / max(comments, 10). The weight is high for advice that often agrees and often applies."""
    return record.agreements / np.maximum(record.comments, FULLY_TRUSTED)


def laplace(record: Record) -> NDArray[np.float64]:
    """Return (agreements + 1) / (comments + 2), the rule of succession."""
    return (record.agreements + 1.0) / (record.comments + 2.0)


def plain(record: Record) -> NDArray[np.float64]:
    """Return agreements / comments, or 0 without comments."""
    return record.agreements / np.maximum(record.comments, 1.0)


def trusting(record: Record) -> NDArray[np.float64]:
    """Return (agreements + 1) / (comments + 1). The weight is 1 until the expert makes another move than advised."""
    return (record.agreements + 1.0) / (record.comments + 1.0)


def results(record: Record) -> NDArray[np.float64]:
    """Return (successes + 1) / (tries + 1): the share of successes after any role made the move; 1 without tries."""
    return (record.successes + 1.0) / (record.tries + 1.0)


WEIGHTS: Mapping[str, Weighting] = {
    "agreement": agreement, "laplace": laplace, "plain": plain, "trusting": trusting, "results": results
}  # fmt: skip


def weigh(
    pairs: ContextPairs,
    graph: PositionGraph,
    rows: NDArray[np.int32],
    roles: NDArray[np.int8],
    moves: NDArray[np.int32],
    by_expert: NDArray[np.bool_],
    successes: NDArray[np.float64],
) -> None:
    """Count in the record of the pairs what they advised in these turns.

    rows       int32[n], the positions, as rows of the graph
    roles      int8[n], the roles that moved
    moves      int32[n], their moves, as move numbers
    by_expert  bool[n], whether an expert plays the role
    successes  float64[n], whether the match was a success for the role, 1 or 0; NaN for a match without a result
    """
    if not len(pairs) or not len(rows):
        return
    patterns = pairs.patterns
    starts, firsts = pairs.first_moves
    states, record = patterns.of(graph, rows), pairs.record
    listed = (graph.num_moves, graph.move_start, graph.move_actions)
    contexts = (pairs.roles, padded(pairs.contexts, states.shape[1]), pairs.by_context)
    images = (starts, firsts, patterns.move_images(firsts, graph), patterns.symmetries.inverse, patterns.byte_tables)
    counts = (record.comments, record.agreements, record.tries, record.successes)
    own = (states, rows, roles, moves, by_expert, successes)
    _weigh(*own, *(listed + contexts), *images, *counts)


@kernel
def _weigh(
    states: U64x2,
    rows: I32,
    roles: I8,
    played: I32,
    by_expert: Bool,
    succeeded: F64,
    num_moves: I32x2,
    move_start: I64x2,
    move_actions: I32,
    pair_roles: I8,
    contexts: U64x2,
    by_context: I64,
    starts: I64,
    firsts: I32,
    move_images: I32x2,
    inverse: I32,
    byte_tables: U64x4,
    comments: F64,
    agreements: F64,
    tries: F64,
    successes: F64,
) -> None:
    """See `weigh`."""
    num_symmetries, num_roles = move_images.shape[0], num_moves.shape[1]
    images = np.empty((num_symmetries, states.shape[1]), np.uint64)
    legal_in = np.full(move_images.shape[1], -1, np.int64)  # the last turn in which a move was legal
    for turn in range(rows.size):
        role = roles[turn]
        for symmetry in range(num_symmetries):
            image(states[turn], symmetry, byte_tables, images[symmetry])
        begin = move_start[rows[turn], role]
        for action in move_actions[begin : begin + num_moves[rows[turn], role]]:
            legal_in[action * num_roles + role] = turn
        low, high = candidates(pair_roles, contexts, by_context, role, images[smallest(images)])
        for place in range(low, high):
            pair = by_context[place] if by_context.size else place
            if pair_roles[pair] != role:
                continue
            advises, agrees = False, False
            for symmetry in range(num_symmetries):
                if not holds(contexts, pair, images, symmetry, 0):
                    continue
                for first in firsts[starts[pair] : starts[pair + 1]]:
                    move = move_images[inverse[symmetry], first]
                    advises |= legal_in[move] == turn
                    agrees |= move == played[turn]
            if advises and by_expert[turn]:
                comments[pair] += 1
                agreements[pair] += agrees
            if agrees and not np.isnan(succeeded[turn]):
                tries[pair] += 1
                successes[pair] += succeeded[turn]


Draws = Literal["count", "lose"]
Repeated = Literal["encounters", "origins", "once"]
Contexts = Literal["common", "grown", "each"]
Locality = Literal["none", "moves", "contexts", "both"]
LONGEST = 1_000  # maximum number of moves in a sequence
_WORDS = {"repeated": Repeated, "contexts": Contexts, "trees": Trees, "draws": Draws, "locality": Locality}


@dataclass(frozen=True, slots=True)
class SequenceSettings:
    """Settings of SeqLearner. The defaults are the paper's, where it names them.

    lengths    lengths of the sequences, in moves; the paper has 3 for lose tic-tac-toe, 3 and 5 for five men's morris
    weighting  formula of PWL, a key of WEIGHTS
    repeated   when a sequence gets a context. "encounters": when it occurred twice; "origins": when it occurred in two
               different origin states (readings.md, L&E 9); "once": when it occurred once
    contexts   "common": the context contains the facts that hold in all origin states of the sequence; "grown": in
               addition, the pairs of earlier tournaments stay when the context of their sequence becomes more general
               (section 1.1: "engendering new, more general context pairs"); "each": each origin state is a context
    trees      "context": sequences with the same context form one tree; "first": sequences form one tree only if they
               have the same first move as well
    draws      "count": a draw is a success for a contestant, as in the paper for games whose value is a draw; "lose":
               a draw is not a success
    locality   "moves": only sequences whose moves are all near the first move are used; "contexts": contexts contain
               only facts near the moves; "both": both restrictions; "none": no restriction (the paper's section 3)
    """

    lengths: tuple[int, ...] = (3,)
    weighting: str = "agreement"
    repeated: Repeated = "encounters"
    contexts: Contexts = "common"
    trees: Trees = "context"
    draws: Draws = "count"
    locality: Locality = "none"

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengths", tuple(sorted(set(self.lengths))))
        if not self.lengths or self.lengths[0] < 1 or self.lengths[-1] > LONGEST:
            raise GameloreError(
                f"expected sequences of 1 to {LONGEST} moves, got the lengths {self.lengths}; choose others (the paper "
                "has 3)"
            )
        check_word("weighting", self.weighting, WEIGHTS)
        for name, words in _WORDS.items():
            check_word(name, getattr(self, name), get_args(words))


class SeqLearner:
    """A learner of sequences of one game.

    pairs  the context pairs that `extract` formed last, with their weights at that time
    """

    def __init__(self, patterns: Patterns, settings: SequenceSettings | None = None) -> None:
        self.patterns = patterns
        self.settings = settings or SequenceSettings()
        self.table = SeqTable(patterns, self.settings.lengths[-1], apart=self.settings.contexts == "each")
        self.pairs = ContextPairs.none(patterns, self.settings.lengths[-1])
        self.num_matches = 0

    def restore(self, learned: LearnedRows, num_matches: int) -> None:
        """Replace the learner's knowledge by these rows. Rows of pairs are enough to play.

        Raises KnowledgeError for roles, moves and facts that the game does not have.
        """
        self.num_matches = num_matches
        if sequences := list(learned.sequences):
            self.table.restore(_entries(self, sequences))
        if pairs := list(learned.pairs):
            self.pairs = _pairs(self, pairs)

    def changes(self) -> LearnedRows:
        """Return the whole knowledge of the learner as rows of the store."""
        return LearnedRows(sequences=sequence_rows(self), pairs=pair_rows(self))

    def watch(self, finished: Finished, experts: NDArray[np.bool_]) -> None:
        """Update the record of the pairs with these matches, and add the sequences of the matches to the table.

        experts  bool[n, roles], whether an expert plays the role in the match
        """
        outcomes = match_results(finished)
        successful = outcomes == 1.0 if self.settings.draws == "lose" else outcomes >= 0.5
        made = turns(finished)
        weigh(
            self.pairs,
            finished.graph,
            made.rows,
            made.roles,
            made.moves,
            experts[made.matches, made.roles],
            np.where(np.isnan(outcomes), np.nan, successful)[made.matches, made.roles],
        )
        met = excerpts(finished, successful, self.settings.lengths)
        if self.settings.locality in ("moves", "both"):
            met = met.chosen(self._vicinity.close_together(met.moves // finished.graph.game.num_roles))
        self.table.add(met, self.patterns.of(finished.graph, met.rows))
        self.num_matches += len(finished.lanes)

    def extract(self) -> None:
        """Form the context pairs again from the SeqTable, with new weights. Pairs that existed keep their record."""
        entries, trees = self.repeated, self.settings.trees
        roles, kinds, moves, contexts = entries.roles, entries.kinds, entries.moves, entries.contexts
        if self.settings.locality in ("contexts", "both"):
            actions = moves // self.patterns.game.num_roles
            contexts = contexts & pack_bits(self._vicinity.around(actions), contexts.shape[1])
        if self.settings.contexts == "grown":
            earlier, width = self.pairs, contexts.shape[1]
            roles, moves = np.append(roles, earlier.branch_roles), np.vstack([moves, earlier.moves])
            kinds = np.append(kinds, earlier.kinds)
            contexts = np.vstack([contexts, padded(earlier.branch_contexts, width)])
        pairs = ContextPairs.form(self.patterns, roles, kinds, moves, contexts, trees, exact=self.is_exact)
        pairs.inheriting(self.pairs)
        self.pairs = pairs.weighed(WEIGHTS[self.settings.weighting](pairs.record))

    @property
    def is_exact(self) -> bool:
        """Whether each context is a whole state."""
        return self.table.apart and self.settings.locality in ("none", "moves")

    @cached_property
    def _vicinity(self) -> Vicinity:
        return Vicinity.of(self.patterns.game)

    @property
    def repeated(self) -> Entries:
        """The entries of the SeqTable that get a context, see `SequenceSettings.repeated`."""
        entries = self.table.entries
        if self.settings.repeated == "origins":
            return entries[entries.several]
        return entries[entries.encounters >= (1 if self.settings.repeated == "once" else 2)]


def match_results(finished: Finished) -> NDArray[np.float64]:
    """Return the result of each match for each role, float64[n, roles].

    A win is 1, a draw 0.5, a loss 0, and a match without a result NaN. A role wins if its goal value is higher than
    that of every other role. It draws if another role has the same value and no role has a higher one. In a game of
    one role, the role wins if it gets its best goal value, and loses otherwise.
    """
    goals = finished.goals.astype(np.float64)
    if goals.shape[1] == 1:
        values = finished.graph.game.goal_values[0]
        outcome = (goals == values[-1]).astype(np.float64) if values else np.zeros_like(goals)
    else:
        others = np.stack([np.delete(goals, role, axis=1).max(axis=1) for role in range(goals.shape[1])], axis=1)
        outcome = np.where(goals == others, 0.5, (goals > others).astype(np.float64))
    missing = (finished.goals < 0).any(axis=1) | (finished.ends != TERMINAL)
    outcome[missing] = np.nan
    return np.asarray(outcome)


def sequence_rows(learner: SeqLearner) -> Iterator[SequenceRow]:
    """Yield the entries of the learner's SeqTable as rows of the store, in the order of the table."""
    entries, names, roles = learner.table.entries, _Names(learner.patterns), learner.patterns.game.roles
    for i, (role, kind) in enumerate(zip(entries.roles.tolist(), entries.kinds.tolist(), strict=True)):
        moves, context = names.texts(entries.moves[i]), names.facts(entries.contexts[i])
        count, several = int(entries.encounters[i]), bool(entries.several[i])
        yield SequenceRow(roles[role], KIND_NAMES[kind], moves, context, count, several)


def pair_rows(learner: SeqLearner) -> Iterator[PairRow]:
    """Yield the learner's pairs as rows of the store, in the order of the pairs."""
    pairs, names, roles = learner.pairs, _Names(learner.patterns), learner.patterns.game.roles
    record = np.stack([pairs.record.comments, pairs.record.agreements, pairs.record.tries, pairs.record.successes], 1)
    for i, role in enumerate(pairs.roles.tolist()):
        numbers = range(int(pairs.starts[i]), int(pairs.starts[i + 1]))
        branches = tuple((KIND_NAMES[pairs.kinds[j]], names.texts(pairs.moves[j])) for j in numbers)
        yield PairRow(roles[role], names.facts(pairs.contexts[i]), branches, *record[i].tolist())


def _entries(learner: SeqLearner, rows: Sequence[SequenceRow]) -> Entries:
    """Return the entries of the SeqTable for stored sequences, in canonical form."""
    patterns, names = learner.patterns, _Names(learner.patterns)
    moves = names.numbers([row.moves for row in rows], learner.settings.lengths[-1])
    contexts = _packed(patterns, [row.context for row in rows])
    own_moves, own_contexts = canonical_pairs(patterns, moves, contexts)
    # A context contains the facts that the canonical origin states of a sequence have in common. A symmetry that maps
    # the sequence to itself may map the context to a smaller context, but the origin states need not contain the facts
    # of the smaller one. So a canonical sequence keeps its context.
    stays = (own_moves == moves).all(axis=1, keepdims=True) & (not learner.table.apart)
    return Entries(
        np.array([names.role(row.role) for row in rows], np.int8),
        np.array([_kind(row.kind) for row in rows], np.int8),
        own_moves,
        np.where(stays, contexts, own_contexts),
        np.array([row.encounters for row in rows], np.int32),
        np.array([row.several for row in rows], np.bool_),
    )


def _pairs(learner: SeqLearner, rows: Sequence[PairRow]) -> ContextPairs:
    """Return the context pairs for stored pairs, in canonical form, with their record."""
    patterns, names, trees = learner.patterns, _Names(learner.patterns), learner.settings.trees
    sizes = [len(row.branches) for row in rows]
    if not all(sizes):
        raise KnowledgeError(
            "expected at least one sequence in each pair, got a pair without sequences; the file may be damaged"
        )
    branches = [branch for row in rows for branch in row.branches]
    roles = np.repeat(np.array([names.role(row.role) for row in rows], np.int8), sizes)
    kinds = np.array([_kind(kind) for kind, _ in branches], np.int8)
    moves = names.numbers([moves for _, moves in branches], learner.settings.lengths[-1])
    contexts = np.repeat(_packed(patterns, [row.context for row in rows]), sizes, axis=0)
    pairs = ContextPairs.form(patterns, roles, kinds, moves, contexts, trees, exact=learner.is_exact)
    first = np.cumsum([0, *sizes[:-1]])
    keys = pair_keys(roles[first], *canonical_pairs(patterns, moves[first], contexts[first], moves_first=False), trees)
    record = Record(*np.array([row[3:] for row in rows], np.float64).T.copy())
    pairs.inheriting(replace(pairs, keys=keys, record=record))
    return pairs.weighed(WEIGHTS[learner.settings.weighting](pairs.record))


def _kind(name: str) -> int:
    """Return DUET or SOLO for its name. Raise KnowledgeError for any other name."""
    if name not in KIND_NAMES:
        raise KnowledgeError(f"expected {' or '.join(KIND_NAMES)}, got {name!r}; the file may be damaged")
    return KIND_NAMES.index(name)


def _packed(patterns: Patterns, contexts: Iterable[frozenset[str]]) -> Bits:
    """Return the patterns of contexts, uint64[n, words]."""
    packed = [patterns.pack(sorted(context))[None] for context in contexts]  # may widen the patterns of the reasoner
    return np.concatenate([padded(pattern, patterns.num_words) for pattern in packed])


class _Names:
    """Conversion of facts and moves of a game to text and back. The text of a move is (does ROLE MOVE).

    Results are cached, so that each fact and each move is converted only once.
    """

    def __init__(self, patterns: Patterns) -> None:
        self._patterns = patterns
        self._game = patterns.game
        self._facts = cache(lambda key: patterns.facts(np.frombuffer(key, np.uint64)))
        self._text = cache(self._move_text)
        self._number = cache(self._move_number)

    def facts(self, pattern: Bits) -> frozenset[str]:
        """Return the facts of one pattern, uint64[words]. Results are cached, since many sequences share a pattern."""
        return self._facts(pattern.tobytes())

    def texts(self, moves: Moves) -> tuple[str, ...]:
        """Return the moves of one sequence, int32[longest], as text."""
        return tuple(self._text(number) for number in moves.tolist() if number != NO_MOVE)

    def role(self, name: str) -> int:
        """Return the number of a role in any case. Raise KnowledgeError for a role that the game does not have."""
        roles = [role.lower() for role in self._game.roles]
        if name.lower() not in roles:
            names = ", ".join(self._game.roles)
            raise KnowledgeError(f"expected a role of {self._game.name} ({names}), got {name}; {_OTHER_RULES}")
        return roles.index(name.lower())

    def numbers(self, sequences: Sequence[tuple[str, ...]], longest: int) -> Moves:
        """Return sequences as move numbers, int32[n, longest], with NO_MOVE after the end of a sequence."""
        numbers = np.full((len(sequences), longest), NO_MOVE, np.int32)
        for row, moves in zip(numbers, sequences, strict=True):
            if len(moves) > longest:
                raise KnowledgeError(f"expected at most {longest} moves, got {len(moves)}; the file may be damaged")
            row[: len(moves)] = [self._number(move) for move in moves]
        return numbers

    def _move_text(self, number: int) -> str:
        role, move = self._patterns.move_text(number)
        return f"(does {self._game.roles[role]} {move})"

    def _move_number(self, text: str) -> int:
        role, _, move = text.removeprefix("(does ").removesuffix(")").partition(" ")
        try:
            return self._patterns.move_number(self.role(role), move)
        except (GDLError, IllegalMoveError):
            raise KnowledgeError(f"expected moves of {self._game.name}, got {text}; {_OTHER_RULES}") from None


_OTHER_RULES = "this knowledge may come from other rules"


@dataclass(frozen=True, slots=True)
class Curriculum:
    """The tournaments that SeqLearner watches: the expert plays against each opponent, and all of this `cycles` times.

    matches  number of matches in each tournament; the paper has 20 for lose tic-tac-toe, 40 for five men's morris
    """

    expert: str = "perfect"
    opponents: tuple[str, ...] = ("random", "novice", "expert", "perfect")
    cycles: int = 2
    matches: int = 20

    def __post_init__(self) -> None:
        if not self.opponents or self.cycles < 1 or self.matches < 1:
            given = f"{len(self.opponents)} opponents, {self.cycles} cycles and {self.matches} matches"
            raise GameloreError(f"expected at least one opponent, cycle and match to watch, got {given}")

    @classmethod
    def of(cls, expert: str, opponents: Sequence[str] | None = None, cycles: int = 2, matches: int = 20) -> Curriculum:
        """Return the curriculum of an expert.

        Without `opponents`, the paper's expert plays against the paper's opponents, another expert against a random
        player and against itself.
        """
        paper = cls()
        if opponents is None:
            opponents = paper.opponents if expert == paper.expert else list(dict.fromkeys(["random", expert]))
        return cls(expert, tuple(opponents), cycles, matches)

    @property
    def tournaments(self) -> tuple[str, ...]:
        """The opponent of each tournament."""
        return self.opponents * self.cycles

    @property
    def num_matches(self) -> int:
        return self.matches * len(self.tournaments)

    def __str__(self) -> str:
        return f"{self.cycles} x {self.matches} matches each of {self.expert} with {', '.join(self.opponents)}"


@dataclass(frozen=True, slots=True)
class Seated:
    """Finished matches of a tournament in which the first player had the same role.

    role  the role of the first player; NOBODY: it did not play in these matches
    """

    finished: Finished
    role: int


NOBODY = -1


class Tournaments:
    """Tournaments on one graph between players that are given by name.

    key     key of the random streams, without the stage
    player  function that creates a player from its name
    named   function that returns the player of a name; each player is created only once
    """

    def __init__(self, graph: PositionGraph, key: tuple[int | str, ...], player: Callable[[str], Player]) -> None:
        self.graph = graph
        self._key = key
        self.named = cache(player)

    def play(self, first: Player, second: Player, num_matches: int, stage: str) -> Iterator[Seated]:
        """Play a tournament, and yield its matches. `stage` is the last part of the key of its random numbers."""
        roles = self.graph.game.num_roles
        seatings = max(roles, 2)
        for seat in range(seatings):
            numbers = np.arange(seat, num_matches, seatings)
            seats = [first if role == seat else second for role in range(roles)]
            ended: list[Finished] = []
            keys = np.full(len(numbers), stream(*self._key, stage))  # type: ignore[arg-type]
            run_lockstep(self.graph, seats, keys, 1, first_match=numbers, on_end=ended.append)
            for finished in ended:
                yield Seated(finished, seat if seat < roles else NOBODY)


def train(learner: SeqLearner, tournaments: Tournaments, curriculum: Curriculum) -> None:
    """Let the learner watch all tournaments of a curriculum."""
    for number in range(len(curriculum.tournaments)):
        watch(learner, tournaments, curriculum, number)


def watch(learner: SeqLearner, tournaments: Tournaments, curriculum: Curriculum, number: int) -> list[Seated]:
    """Let the learner watch the tournament with this number in its curriculum, and return the matches."""
    opponent = curriculum.tournaments[number]
    expert, other = tournaments.named(curriculum.expert), tournaments.named(opponent)
    played = list(tournaments.play(expert, other, curriculum.matches, f"train/{number}"))
    for seated in played:
        experts = np.full(seated.finished.goals.shape, opponent == curriculum.expert)
        if seated.role != NOBODY:
            experts[:, seated.role] = True
        learner.watch(seated.finished, experts)
    learner.extract()
    return played


@dataclass(frozen=True, slots=True)
class Score:
    """The result of a tournament for its first player."""

    matches: int
    wins: int
    draws: int

    @property
    def reliability(self) -> float:
        """Percentage of matches that the first player won or drew."""
        return 100.0 * (self.wins + self.draws) / self.matches

    @property
    def power(self) -> float:
        """Percentage of matches that the first player won."""
        return 100.0 * self.wins / self.matches


def score(played: Iterator[Seated]) -> Score:
    """Return the score of a tournament. A match without a result counts as a loss."""
    results_of_seats = [match_results(seated.finished)[:, seated.role] for seated in played if seated.role != NOBODY]
    outcomes = np.concatenate(results_of_seats)
    return Score(len(outcomes), int((outcomes == 1.0).sum()), int((outcomes == 0.5).sum()))
