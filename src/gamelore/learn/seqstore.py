"""What SeqLearner knows, as rows of the knowledge store and back: facts and moves as text, nobody's bits or numbers.

Engines and versions number facts and moves in ways of their own, and so disagree on which of symmetric images is the
smallest. Rows are brought to the canonical form of whoever reads them. What is canonical there already stays as it is:
a learner that goes on where it was written comes to the same values as without the stop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from ..errors import GDLError, IllegalMoveError, KnowledgeError
from .contexts import ContextPairs, Record
from .excerpts import KIND_NAMES, NO_MOVE
from .patterns import Bits, Patterns
from .seqtable import Entries, Moves, canonical, canonical_contexts
from .sequences import SeqLearner, SequenceSettings
from .tables import PairRow, SequenceRow
from .weighing import WEIGHTS


def sequence_rows(learner: SeqLearner) -> Iterator[SequenceRow]:
    """The learner's SeqTable, in its order."""
    entries, facts = learner.table.entries, _Facts(learner.patterns)
    names, roles = _Moves(learner.patterns), learner.patterns.game.roles
    for i, (role, kind) in enumerate(zip(entries.roles.tolist(), entries.kinds.tolist(), strict=True)):
        moves, context = names.texts(entries.moves[i]), facts.of(entries.contexts[i])
        count, several = int(entries.encounters[i]), bool(entries.several[i])
        yield SequenceRow(roles[role], KIND_NAMES[kind], moves, context, count, several)


def pair_rows(learner: SeqLearner) -> Iterator[PairRow]:
    """The learner's pairs, in their order."""
    pairs, facts = learner.pairs, _Facts(learner.patterns)
    names, roles = _Moves(learner.patterns), learner.patterns.game.roles
    record = np.stack([pairs.record.comments, pairs.record.agreements, pairs.record.tries, pairs.record.successes], 1)
    for i, role in enumerate(pairs.roles.tolist()):
        numbers = range(int(pairs.starts[i]), int(pairs.starts[i + 1]))
        branches = tuple((KIND_NAMES[pairs.kinds[j]], names.texts(pairs.moves[j])) for j in numbers)
        yield PairRow(roles[role], facts.of(pairs.contexts[i]), branches, *record[i].tolist())


def restored(
    patterns: Patterns,
    settings: SequenceSettings,
    num_matches: int,
    sequences: Sequence[SequenceRow],
    pairs: Sequence[PairRow],
) -> SeqLearner:
    """The learner that knows what stands in these rows; to play, its pairs will do.

    Raises KnowledgeError for roles, moves and facts that the game does not have.
    """
    learner = SeqLearner(patterns, settings)
    learner.num_matches = num_matches
    if sequences:
        learner.table.restore(_entries(learner, sequences))
    if pairs:
        learner.pairs = _pairs(learner, pairs)
    return learner


def _entries(learner: SeqLearner, rows: Sequence[SequenceRow]) -> Entries:
    patterns, names = learner.patterns, _Moves(learner.patterns)
    moves = names.numbers([row.moves for row in rows], learner.settings.lengths[-1])
    contexts = _packed(patterns, [row.context for row in rows])
    own_moves, own_contexts = canonical(patterns, moves, contexts)
    # a context is what canonical states have in common: its own image may come before it and be none of that
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
    """The pairs in their canonical forms, with their record."""
    patterns, names, trees = learner.patterns, _Moves(learner.patterns), learner.settings.trees
    sizes = [len(row.branches) for row in rows]
    if not all(sizes):
        raise KnowledgeError("expected pairs with a sequence at least, got one without; was the file changed?")
    branches = [branch for row in rows for branch in row.branches]
    roles = np.repeat(np.array([names.role(row.role) for row in rows], np.int8), sizes)
    kinds = np.array([_kind(kind) for kind, _ in branches], np.int8)
    moves = names.numbers([moves for _, moves in branches], learner.settings.lengths[-1])
    contexts = np.repeat(_packed(patterns, [row.context for row in rows]), sizes, axis=0)
    pairs = ContextPairs.form(patterns, roles, kinds, moves, contexts, trees, exact=learner.is_exact)
    first = np.cumsum([0, *sizes[:-1]])
    own_moves, own_contexts = canonical_contexts(patterns, moves[first], contexts[first])
    told_apart = own_moves[:, :1] + 1 if trees == "first" else np.zeros((len(rows), 1), np.int32)
    columns = (roles[first, None], told_apart, own_contexts)
    keys = np.hstack([column.astype(np.uint64) for column in columns])
    record = Record(*np.array([row[3:] for row in rows], np.float64).T.copy())
    pairs.inheriting(replace(pairs, keys=keys, record=record))
    return pairs.weighed(WEIGHTS[learner.settings.weighting](pairs.record))


def _kind(name: str) -> int:
    if name not in KIND_NAMES:
        raise KnowledgeError(f"expected {' or '.join(KIND_NAMES)}, got {name!r}; was the file changed?")
    return KIND_NAMES.index(name)


def _packed(patterns: Patterns, contexts: Iterable[frozenset[str]]) -> Bits:
    """uint64[n, words]."""
    packed = [patterns.pack(sorted(context)) for context in contexts]  # the reasoner's patterns grow by it
    rows = np.zeros((len(packed), patterns.num_words), np.uint64)
    for row, bits in zip(rows, packed, strict=True):
        row[: len(bits)] = bits
    return rows


class _Facts:
    """The facts of patterns; sequences of one state have one context, which is read once."""

    def __init__(self, patterns: Patterns) -> None:
        self._patterns = patterns
        self._known: dict[bytes, frozenset[str]] = {}

    def of(self, pattern: Bits) -> frozenset[str]:
        """The facts of one pattern, uint64[words]."""
        key = pattern.tobytes()
        if key not in self._known:
            self._known[key] = self._patterns.facts(pattern)
        return self._known[key]


class _Moves:
    """The moves of a game as terms, (does ROLE MOVE), and back."""

    def __init__(self, patterns: Patterns) -> None:
        self._patterns = patterns
        self._game = patterns.game
        self._texts: dict[int, str] = {}
        self._numbers: dict[str, int] = {}

    def role(self, name: str) -> int:
        """The number of a role."""
        if name not in self._game.roles:
            roles = ", ".join(self._game.roles)
            raise KnowledgeError(f"expected a role of {self._game.name} ({roles}), got {name}; {_OTHER_RULES}")
        return self._game.roles.index(name)

    def texts(self, moves: Moves) -> tuple[str, ...]:
        """The moves of one sequence, int32[longest]."""
        return tuple(self._text(number) for number in moves.tolist() if number != NO_MOVE)

    def _text(self, number: int) -> str:
        if number not in self._texts:
            role, move = self._patterns.move_text(number)
            self._texts[number] = f"(does {self._game.roles[role]} {move})"
        return self._texts[number]

    def numbers(self, sequences: Sequence[tuple[str, ...]], longest: int) -> Moves:
        """Sequences as move numbers, int32[n, longest], NO_MOVE behind the end."""
        found = np.full((len(sequences), longest), NO_MOVE, np.int32)
        for row, moves in zip(found, sequences, strict=True):
            if len(moves) > longest:
                raise KnowledgeError(f"expected at most {longest} moves, got {len(moves)}; was the file changed?")
            row[: len(moves)] = [self._number(move) for move in moves]
        return found

    def _number(self, text: str) -> int:
        if text not in self._numbers:
            role, _, move = text.removeprefix("(does ").removesuffix(")").partition(" ")
            try:
                self._numbers[text] = self._patterns.move_number(self.role(role), move)
            except (GDLError, IllegalMoveError):
                raise KnowledgeError(f"expected moves of {self._game.name}, got {text}; {_OTHER_RULES}") from None
        return self._numbers[text]


_OTHER_RULES = "was this learned with other rules?"
