"""What SeqLearner makes of matches, once more and as plainly as possible: facts and moves as text, sets and loops."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import product
from math import isnan

Facts = frozenset[str]
Move = tuple[int, str]  # role, move
Ply = tuple[Facts, dict[int, str], dict[int, list[str]]]  # state, moves made, legal moves of who made one
Symmetry = Callable[[str], str]
Branch = tuple[str, tuple[Move, ...]]  # kind, moves

SQUARE: list[Callable[[int, int], tuple[int, int]]] = [
    lambda x, y: (x, y),
    lambda x, y: (y, x),
    lambda x, y: (4 - x, y),
    lambda x, y: (x, 4 - y),
    lambda x, y: (4 - x, 4 - y),
    lambda x, y: (4 - y, x),
    lambda x, y: (y, 4 - x),
    lambda x, y: (4 - y, 4 - x),
]


def on_the_square(place: Callable[[int, int], tuple[int, int]]) -> Symmetry:
    """A symmetry of the 3x3 board as a change of the text of a fact or a move."""

    def changed(match: re.Match[str]) -> str:
        return "({} {} {}".format(match[1], *place(int(match[2]), int(match[3])))

    return lambda text: re.sub(r"\((cell|mark) (\d) (\d)", changed, text)


EIGHT = [on_the_square(place) for place in SQUARE]


def image(symmetry: Symmetry, facts: Facts) -> Facts:
    return frozenset(map(symmetry, facts))


@dataclass
class PlainPair:
    comments: int = 0
    agreements: int = 0
    tries: int = 0
    successes: int = 0


@dataclass
class PlainLearner:
    """`facts_order` and `move_order` say which of several images is the smallest: a matter of taste, but of one."""

    lengths: tuple[int, ...]
    symmetries: list[Symmetry]
    facts_order: Callable[[Facts], tuple[int, ...]]
    move_order: Callable[[Move], int]
    met: dict[tuple[str, int, tuple[Move, ...]], list[Facts]] = field(default_factory=dict)
    pairs: dict[tuple[int, Facts], tuple[set[tuple[str, tuple[Move, ...]]], PlainPair]] = field(default_factory=dict)

    def watch(self, plies: list[Ply], outcomes: list[float], experts: list[bool]) -> None:
        for state, moves, legal in plies:
            for role, move in moves.items():
                self._weigh(state, role, move, legal[role], experts[role], outcomes[role])
        for role, outcome in enumerate(outcomes):
            if outcome >= 0.5:
                self._take(plies, role)

    def _take(self, plies: list[Ply], role: int) -> None:
        listed = [
            (state, by, moves[by]) for state, moves, _ in plies for by in sorted(moves, key=lambda by: (by != role, by))
        ]
        own = [i for i, (_, by, _) in enumerate(listed) if by == role]
        for place, length in product(range(len(own)), self.lengths):
            start = own[place]
            duet = tuple((by, move) for _, by, move in listed[start : start + length])
            if len(duet) == length and any(by != role for by, _ in duet):
                self._add("duet", role, duet, listed[start][0])
            solo = tuple((role, listed[i][2]) for i in own[place : place + length])
            if len(solo) == length:
                self._add("solo", role, solo, listed[start][0])

    def _add(self, kind: str, role: int, moves: tuple[Move, ...], state: Facts) -> None:
        images = [(self._moved(s, moves), image(s, state)) for s in self.symmetries]
        best, facts = min(images, key=lambda one: (self._order(one[0]), self.facts_order(one[1])))
        self.met.setdefault((kind, role, best), []).append(facts)

    def _order(self, moves: Iterable[Move]) -> list[int]:
        return [self.move_order(move) for move in moves]

    def _moved(self, symmetry: Symmetry, moves: Iterable[Move]) -> tuple[Move, ...]:
        return tuple((by, symmetry(move)) for by, move in moves)

    def extract(self, repeated: str = "encounters") -> None:
        old = {key: record for key, (_, record) in self.pairs.items()}
        found: dict[tuple[int, Facts], tuple[set[tuple[str, tuple[Move, ...]]], PlainPair]] = {}
        for (kind, role, moves), states in self.met.items():
            if len(set(states) if repeated == "origins" else states) < (1 if repeated == "once" else 2):
                continue
            context = frozenset.intersection(*states)
            images = [(image(s, context), self._moved(s, moves)) for s in self.symmetries]
            facts, moved = min(images, key=lambda one: (self.facts_order(one[0]), self._order(one[1])))
            key = role, facts
            found.setdefault(key, (set(), old.get(key, PlainPair())))[0].add((kind, moved))
        self.pairs = found

    def _weigh(self, state: Facts, role: int, move: str, legal: list[str], expert: bool, outcome: float) -> None:
        for (advised, context), (branches, record) in self.pairs.items():
            if advised != role:
                continue
            # a symmetry that takes the context into the state takes its moves there, too
            fitting = [s for s in self.symmetries if image(s, context) <= state]
            advice = {s(moves[0][1]) for s in fitting for _, moves in branches} & set(legal)
            if advice and expert:
                record.comments += 1
                record.agreements += move in advice
            if move in advice and not isnan(outcome):
                record.tries += 1
                record.successes += outcome >= 0.5
