"""The learners once more, one match at a time, with dictionaries and recursion over single positions.

It shares with the package the loop, the opponents and the keyed numbers, and nothing of learning/ but the text of
features. Only for games that take turns.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from gamelore.game.game import Game, Position
from gamelore.learning.store.features import FeatureValues, Tree, to_text
from gamelore.learning.td.initial_values import LearnerSettings
from gamelore.players.player import Finished, Player, Turn
from gamelore.players.random_streams import EXPLORE, WHICH, uniform

Facts = frozenset[str]


class PlainGame:
    """Positions by their facts."""

    def __init__(self, game: Game) -> None:
        self.game = game

    @cache  # noqa: B019
    def position(self, facts: Facts) -> Position:
        return self.game.position(facts)

    @cache  # noqa: B019
    def successors(self, facts: Facts) -> tuple[Facts, ...]:
        """After each move of the one role that has a choice, in action order."""
        position = self.position(facts)
        legal = list(position.legal.values())
        mover = max(range(len(legal)), key=lambda role: len(legal[role]))
        joint = [[moves[0] for moves in legal] for _ in legal[mover]]
        for moves, own in zip(joint, legal[mover], strict=True):
            moves[mover] = own
        return tuple(position.play(moves).facts for moves in joint)

    def reward(self, facts: Facts, role: str) -> float:
        return float(self.position(facts).goals[role] or 0)

    def is_terminal(self, facts: Facts) -> bool:
        return self.position(facts).is_terminal

    def tree(self, facts: Facts, role: str, depth: int) -> Tree:
        """The feature's tree, straight from its definition."""
        if self.is_terminal(facts):
            return int(self.reward(facts, role))
        return tuple(self.tree(after, role, depth - 1) for after in self.successors(facts)) if depth else "n"

    def search(self, facts: Facts, role: str, depth: int, heuristic: str) -> float:
        """Minimax, maxmax or avgmax, an open leaf being worth 50."""
        if self.is_terminal(facts):
            return self.reward(facts, role)
        if not depth:
            return 50.0
        values = [self.search(after, role, depth - 1, heuristic) for after in self.successors(facts)]
        if len(self.position(facts).legal[role]) > 1 or heuristic == "maxmax":
            return max(values)
        return min(values) if heuristic == "minimax" else sum(values) / len(values)


class PlainLearner(Player):
    """One lane's learner; `q` and `visits` by facts. Every afterstate is taken for what `canonical` makes of it."""

    def __init__(
        self,
        plain: PlainGame,
        role: int,
        settings: LearnerSettings,
        values: FeatureValues | None,
        canonical: Callable[[Facts], Facts] = lambda facts: facts,
    ) -> None:
        self.plain = plain
        self.role = role
        self.settings = settings
        self.values = values
        self.canonical = canonical
        self.q: dict[Facts, float] = {}
        self.visits: dict[Facts, int] = {}

    def first_value(self, facts: Facts) -> float:
        name, settings = self.plain.game.roles[self.role], self.settings
        if settings.kind == "lookahead":
            return self.plain.search(facts, name, settings.depth, settings.heuristic)
        if settings.kind == "transfer" and self.plain.is_terminal(facts):
            return self.plain.reward(facts, name)
        if settings.kind == "transfer" and self.values is not None:
            text = to_text(self.plain.tree(facts, name, settings.depth))
            return self.values[text][0] if text in self.values else 50.0
        return 50.0

    def choose(self, turn: Turn) -> np.ndarray:
        facts = turn.graph.facts(int(turn.rows[0]))
        explore, which = (float(uniform(turn.keys[0], turn.plies[0], draw)) for draw in (EXPLORE, WHICH))
        afters = self.plain.successors(facts)
        if explore < self.settings.epsilon:
            return np.array([int(which * len(afters))], np.int32)
        values = [self.score(self.canonical(after)) for after in afters]
        ties = [i for i, value in enumerate(values) if value == max(values)]
        chosen = ties[0] if self.settings.ties == "first" else ties[int(which * len(ties))]
        return np.array([chosen], np.int32)

    def score(self, facts: Facts) -> float:
        if facts not in self.q and self.settings.initialisation == "eager":
            return self.first_value(facts)
        return self.q.get(facts, 50.0)

    def end(self, role: int, finished: Finished) -> None:
        graph = finished.graph
        rows = finished.rows[0, : finished.plies[0] + 1].tolist()
        own = [ply for ply in range(len(rows) - 1) if graph.acting[rows[ply], self.role]]
        trail = [graph.facts(rows[ply + 1]) for ply in own]
        if trail[-1] != graph.facts(rows[-1]):
            trail.append(graph.facts(rows[-1]))
        known = list(trail)
        if self.settings.initialisation == "siblings":
            known += [after for ply in own for after in self.plain.successors(graph.facts(rows[ply]))]
        for facts in map(self.canonical, known):
            if facts not in self.q:
                self.q[facts], self.visits[facts] = self.first_value(facts), 0
        self.learn(list(map(self.canonical, trail)), float(max(finished.goals[0, self.role], 0)))

    def learn(self, trail: list[Facts], reward: float) -> None:
        alpha, gamma, lam = self.settings.alpha, self.settings.gamma, self.settings.lam
        for t, facts in enumerate(trail):
            self.visits[facts] += 1
            ahead = gamma * self.q[trail[t + 1]] if t + 1 < len(trail) else reward
            delta = ahead - self.q[facts]
            for p in range(t + 1):
                self.q[trail[p]] += alpha * lam ** (t - p) * delta
