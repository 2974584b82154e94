"""Games that are a walk along arrows between nodes, drawn at random, and their values in plain Python.

Each node belongs to white, to black, or is a leaf with goals of both. Arrows may lead back, so a match need not end.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from gamelore.game.game import Position

WALK = """
(role white) (role black)
(init (at n0))
(<= (legal ?p (go ?m)) (true (at ?n)) (owner ?n ?p) (arrow ?n ?m))
(<= (legal ?p noop) (role ?p) (true (at ?n)) (owner ?n ?q) (distinct ?p ?q))
(<= (next (at ?m)) (does ?p (go ?m)))
(<= terminal (true (at ?n)) (leaf ?n ?v ?w))
(<= (goal white ?v) (true (at ?n)) (leaf ?n ?v ?w))
(<= (goal black ?w) (true (at ?n)) (leaf ?n ?v ?w))
"""

# with these, a match is over after so many plies: `(after LAST V W)` says with which goals
COUNTED = """
(init (step 0))
(<= (next (step ?j)) (true (step ?i)) (succ ?i ?j))
(<= out (true (step ?i)) (last ?i))
(<= inside (true (at ?n)) (leaf ?n ?v ?w))
(<= terminal out)
(<= (goal white ?v) out (not inside) (after ?v ?w))
(<= (goal black ?w) out (not inside) (after ?v ?w))
"""


@dataclass(frozen=True)
class Walk:
    """`arrows[n]` of node n, none for a leaf; `owner[n]` 0 or 1; `leaves`: node -> white's goal of 100."""

    arrows: dict[int, list[int]]
    owner: dict[int, int]
    leaves: dict[int, int]

    @property
    def text(self) -> str:
        """The rulesheet."""
        roles = ("white", "black")
        return "\n".join(
            [
                WALK,
                *(f"(owner n{n} {roles[role]})" for n, role in self.owner.items()),
                *(f"(arrow n{n} n{m})" for n, after in self.arrows.items() for m in after),
                *(f"(leaf n{n} {goal} {100 - goal})" for n, goal in self.leaves.items()),
            ]
        )

    def counted(self, last: int, after: tuple[int, int] = (50, 50)) -> str:
        """The rulesheet with a counter that ends a match after `last` plies with these goals."""
        succ = " ".join(f"(succ {i} {i + 1})" for i in range(last))
        return f"{self.text}{COUNTED}{succ} (last {last}) (after {after[0]} {after[1]})"


def copied(walk: Walk, copies: int) -> Walk:
    """White chooses one of so many copies of a walk first. Each arrow to node 1 leads to that of the next copy."""
    size = 1 + max([*walk.arrows, *walk.leaves])

    def number(copy: int, node: int) -> int:
        return 1 + copy % copies * size + node

    arrows = {
        number(copy, n): [number(copy + (m == 1), m) for m in after]
        for copy in range(copies)
        for n, after in walk.arrows.items()
    }
    return Walk(
        {0: [number(copy, 0) for copy in range(copies)]} | arrows,
        {0: 0} | {number(copy, n): role for copy in range(copies) for n, role in walk.owner.items()},
        {number(copy, n): goal for copy in range(copies) for n, goal in walk.leaves.items()},
    )


def drawn_walk(seed: int, nodes: int = 14, leaves: int = 5) -> Walk:
    """A walk over so many inner nodes and leaves."""
    draw = random.Random(seed)
    inner = range(nodes)
    everywhere = range(nodes + leaves)
    return Walk(
        {n: sorted(draw.sample(everywhere, draw.choice([1, 2, 2, 3]))) for n in inner},
        {n: draw.randrange(2) for n in inner},
        {nodes + i: draw.choice([0, 30, 50, 80, 100]) for i in range(leaves)},
    )


Facts = frozenset[str]


@dataclass(frozen=True)
class Plain:
    """A game looked at in plain Python: what follows on each position, who chooses, the first role's goal at an end."""

    after: dict[Facts, list[Facts]]
    chooser: dict[Facts, int]
    ends: dict[Facts, int]
    positions: dict[Facts, Position]

    @classmethod
    def of(cls, start: Position) -> Plain:
        """All positions from here on."""
        plain = cls({}, {}, {}, {})
        waiting = [start]
        while waiting:
            position = waiting.pop()
            if position.facts not in plain.positions:
                waiting += plain._enter(position)
        return plain

    def _enter(self, position: Position) -> list[Position]:
        legal = list(position.legal.values())
        counts = [len(moves) for moves in legal]
        self.positions[position.facts] = position
        if position.is_terminal:
            goal = next(iter(position.goals.values()))
            assert goal is not None
            self.ends[position.facts] = goal
            self.after[position.facts] = []
            return []
        role = counts.index(max(counts))
        joints = [[move if other == role else legal[other][0] for other in range(len(legal))] for move in legal[role]]
        following = [position.play(joint) for joint in joints]
        self.chooser[position.facts] = role
        self.after[position.facts] = [one.facts for one in following]
        return following

    def values(self, middle: int) -> dict[Facts, int]:
        """The first role's goal under best play: minimax with a horizon, until a longer one changes nothing."""
        value = {facts: self.ends.get(facts, middle) for facts in self.after}
        while True:
            further = {
                facts: (min if self.chooser[facts] else max)(value[child] for child in after) if after else value[facts]
                for facts, after in self.after.items()
            }
            if further == value:
                return value
            value = further

    def distances(self, value: dict[Facts, int], middle: int) -> dict[Facts, int]:
        """Plies to the end where who gains hurries and the other tarries, by moves that keep the value; else -1."""
        far = len(value) + 1
        distance = {facts: 0 if facts in self.ends else far for facts in value}
        while True:
            shorter = dict(distance)
            for facts, after in self.after.items():
                if after and value[facts] != middle:
                    gains = (value[facts] > middle) == (self.chooser[facts] == 0)
                    keeping = [distance[child] for child in after if value[child] == value[facts]]
                    shorter[facts] = min(far, 1 + (min if gains else max)(keeping))
            if shorter == distance:
                return {facts: plies if plies < far else -1 for facts, plies in distance.items()}
            distance = shorter
