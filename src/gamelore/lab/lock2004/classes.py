"""The 264 classes of sequences of length 3 that lose tic-tac-toe allows, and which of them can be learned.

A duet or solo of three moves of either contestant is a triple of different squares; under the 8 symmetries of the
square there are 66 classes of triples, so 4 x 66 = 264. Which can stand in a match is found by going through all
matches of the game: all, those that the contestant won or drew, and those of them in which a perfect player took part,
as in all of the training.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...games import load
from ...learn.excerpts import DUET, KIND_NAMES, SOLO, excerpts
from ...learn.patterns import Patterns
from ...learn.seqtable import canonical
from ...learn.sequences import results
from ...play.graph import Graph
from ...play.perfect import SolvedMoves
from ...play.player import TERMINAL, Finished

GAME, LENGTH = "losetictactoe", 3
CONTESTANTS = ("xplayer", "oplayer")
Class: TypeAlias = tuple[int, int, tuple[int, ...]]
"""Contestant, kind, and the smallest image of its moves."""
Kind: TypeAlias = tuple[int, int]
"""Contestant and kind."""
KINDS: tuple[Kind, ...] = tuple((role, kind) for kind in (DUET, SOLO) for role in (0, 1))


def kind_name(kind: Kind) -> str:
    return f"{KIND_NAMES[kind[1]]}s of {CONTESTANTS[kind[0]]}"


@dataclass(frozen=True)
class Possible:
    """Classes: all that are allowed, those that stand in any match, in one that its contestant won or drew, and in
    such a one with a perfect player in either seat; `lines`: solos with three squares in a line."""

    allowed: frozenset[Class]
    in_match: frozenset[Class]
    in_success: frozenset[Class]
    in_training: frozenset[Class]
    lines: frozenset[Class]


@dataclass(frozen=True)
class _Matches:
    """All matches of some length: rows int32[n, ply + 1], choices int32[n, ply, 2], and whether each role was perfect
    so far, bool[n, 2]."""

    rows: NDArray[np.int32]
    choices: NDArray[np.int32]
    perfect: NDArray[np.bool_]


@lru_cache
def possible() -> Possible:
    """Goes through all 255,168 matches."""
    graph = Graph(load(GAME))
    patterns = Patterns(graph.game)
    found: list[set[Class]] = [set(), set(), set()]
    for matches in _ended(graph):
        finished = _finished(graph, matches)
        success = results(finished) >= 0.5
        trained = success & matches.perfect.any(axis=1, keepdims=True)
        for classes, counted in zip(found, (np.ones_like(success), success, trained), strict=True):
            met = excerpts(finished, counted, (LENGTH,))
            classes |= _classes(patterns, met.roles, met.kinds, met.moves)
    return Possible(*map(frozenset, (_allowed(patterns), *found, _lines(patterns))))


def _ended(graph: Graph) -> Iterator[_Matches]:
    """All matches that end, by their length."""
    solved = graph.memo(SolvedMoves)
    start = np.array([[graph.start]], np.int32)
    going = _Matches(start, np.zeros((1, 0, 2), np.int32), np.ones((1, 2), np.bool_))
    while len(going.rows):
        going = _one_more(graph, solved, going)
        over = graph.terminal[going.rows[:, -1]]
        yield _Matches(going.rows[over], going.choices[over], going.perfect[over])
        going = _Matches(going.rows[~over], going.choices[~over], going.perfect[~over])


def _one_more(graph: Graph, solved: SolvedMoves, matches: _Matches) -> _Matches:
    """Every way to go on by one move."""
    last = matches.rows[:, -1]
    graph.expand(last)
    solved.look(last)
    role = int(np.argmax(graph.acting[last[0]]))  # they take turns, so it is the same in all
    counts = graph.num_moves[last, role]
    parent = np.repeat(np.arange(len(last)), counts)
    choice = np.arange(len(parent)) - np.repeat(np.cumsum(counts) - counts, counts)
    rows = graph.successors[graph.succ_start[last][parent] + choice]
    lossless = solved.optimal[graph.move_start[last, role][parent] + choice]
    choices = np.zeros((len(parent), 1, 2), np.int32)
    choices[:, 0, role] = choice
    perfect = matches.perfect[parent]
    perfect[:, role] &= lossless
    return _Matches(
        np.hstack([matches.rows[parent], rows[:, None]]), np.hstack([matches.choices[parent], choices]), perfect
    )


def _finished(graph: Graph, matches: _Matches) -> Finished:
    num, plies = matches.choices.shape[:2]
    numbers = np.arange(num, dtype=np.int64)
    return Finished(
        graph, numbers, numbers, np.full(num, plies, np.int32), np.ascontiguousarray(matches.rows, np.int32),
        np.ascontiguousarray(matches.choices), graph.goals[matches.rows[:, -1]], np.full(num, TERMINAL, np.uint8),
    )  # fmt: skip


def _classes(
    patterns: Patterns, roles: NDArray[np.int8], kinds: NDArray[np.int8], moves: NDArray[np.int32]
) -> set[Class]:
    base = int(moves.max(initial=0)) + 1
    codes = (roles * 2 + kinds).astype(np.int64)
    for column in moves.T:
        codes = codes * base + column
    _, first = np.unique(codes, return_index=True)
    blank = np.zeros((len(first), patterns.num_words), np.uint64)
    small, _ = canonical(patterns, np.ascontiguousarray(moves[first]), blank)
    return set(zip(roles[first].tolist(), kinds[first].tolist(), map(tuple, small.tolist()), strict=True))


def _allowed(patterns: Patterns) -> set[Class]:
    squares = [(row, column) for row in (1, 2, 3) for column in (1, 2, 3)]
    return _of_triples(patterns, permutations(squares, LENGTH), KINDS)


def _lines(patterns: Patterns) -> set[Class]:
    lines = [
        *([(row, column) for column in (1, 2, 3)] for row in (1, 2, 3)),
        *([(row, column) for row in (1, 2, 3)] for column in (1, 2, 3)),
        [(1, 1), (2, 2), (3, 3)],
        [(1, 3), (2, 2), (3, 1)],
    ]
    triples = [order for line in lines for order in permutations(line)]
    return _of_triples(patterns, triples, [(role, SOLO) for role in (0, 1)])


def _of_triples(
    patterns: Patterns, triples: Iterable[tuple[tuple[int, int], ...]], kinds: Iterable[Kind]
) -> set[Class]:
    """The classes of sequences of these squares."""
    triples, found = list(triples), set()
    for role, kind in kinds:
        makers = [role, 1 - role, role] if kind == DUET else [role] * LENGTH
        moves = [
            [
                patterns.move_number(maker, f"(mark {row} {column})")
                for maker, (row, column) in zip(makers, triple, strict=True)
            ]
            for triple in triples
        ]
        numbers = np.full(len(moves), role, np.int8), np.full(len(moves), kind, np.int8)
        found |= _classes(patterns, *numbers, np.array(moves, np.int32))
    return found


def share_of(kind: Kind, classes: Iterable[Class]) -> int:
    """How many of the classes are of a kind."""
    return sum(one[:2] == kind for one in classes)


def squares(patterns: Patterns, one: Class) -> str:
    """A class as the squares of its moves: `1 9 5`, numbered in rows."""
    texts = (patterns.move_text(number)[1].strip("()").split() for number in one[2])
    return " ".join(str(3 * (int(row) - 1) + int(column)) for _, row, column in texts)
