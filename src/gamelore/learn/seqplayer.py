"""SeqPlayer: plays by context pairs that it learned (Lock & Epstein 2004, section 1.3).

Version 1 has two tiers. Tier 1 is the Enforcer, which goes on with sequences that were begun, as long as the others
follow them; tier 2 are the pairs whose weight is at least .55, which vote. Version 2 (Figure 4) has the pairs of tier 2
vote in three subclasses, the best first, and behind them a tier 3, whose advice is for one move and is not enforced.
Where nobody advises a move, a random one is made.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ..errors import GameloreError
from ..play.player import Player, Turn
from ..play.search import choice_values
from ..play.streams import WHICH, uniform
from .advice import NOBODY, Advice, consult
from .contexts import ContextPairs
from .excerpts import DUET, NO_MOVE

if TYPE_CHECKING:
    from ..play.graph import Graph
    from ..play.player import Finished, Started

Enforce = Literal["all", "duets", "none"]
Votes = Literal["pairs", "sequences"]
Fallback = Literal["random", "verified"]
Seat = tuple[int, int]  # role, lane

THRESHOLD = 0.55
TIERS = {1: (THRESHOLD,), 2: (0.9, 0.8, 0.7, THRESHOLD)}
ONE_MOVE_ONLY = {1: NOBODY, 2: 3}  # the tier whose advice is not enforced


@dataclass(frozen=True, slots=True)
class SeqPlayerSettings:
    """How advice is used.

    version   of the decision-making module, 1 or 2
    enforce   which sequences the Enforcer goes on with: "all", "duets" or "none" of them
    votes     one for each of the "pairs" that advise a move, or one for each of their "sequences" that begin with it
    verify    plies of minimax search by which a move is proved to lose; such a move is neither advised nor enforced as
              long as there is another (the paper's discussion proposes a narrow search); 0 for none, as in the paper
    fallback  what is done without advice: "random" as in the paper, or "verified", a random move of those that the
              search has not proved to lose
    """

    version: Literal[1, 2] = 2
    enforce: Enforce = "all"
    votes: Votes = "pairs"
    verify: int = 0
    fallback: Fallback = "random"

    def __post_init__(self) -> None:
        if self.version not in TIERS:
            raise GameloreError(f"expected version 1 or 2 of SeqPlayer, got {self.version}; choose one of these")
        known = {"enforce": get_args(Enforce), "votes": get_args(Votes), "fallback": get_args(Fallback)}
        for name, words in known.items():
            if getattr(self, name) not in words:
                found = getattr(self, name)
                raise GameloreError(f"expected {name} {' | '.join(words)}, got {found!r}; choose one of these")
        if self.verify < 0:
            raise GameloreError(f"expected a depth of at least 0 for verify, got {self.verify}; it counts plies")
        if self.fallback == "verified" and not self.verify:
            raise GameloreError("expected a depth for verify with fallback verified, got 0; give one, such as verify=2")


class Enforcer:
    """The sequences that are being executed in one lane, merged: those of whose moves all were made so far.

    moves: int32[sequences, longest], move numbers as the match itself has them.
    """

    def __init__(self, moves: NDArray[np.int32], duets: NDArray[np.bool_], weights: NDArray[np.float64]) -> None:
        self._moves, self._duets, self._weights = moves, duets, weights
        self._next = np.ones(len(moves), np.intp)

    def follow(self, others: list[int], allowed: set[int]) -> dict[int, float]:
        """What may come next after these moves of the others, with its support; what does not fit is discarded."""
        going_on = np.ones(len(self._moves), np.bool_)
        for move in others:
            going_on &= ~self._duets | (self._column() == move)
            self._next += self._duets
        wanted = self._column()
        keep = going_on & np.isin(wanted, list(allowed))
        self._moves, self._duets, self._weights = self._moves[keep], self._duets[keep], self._weights[keep]
        self._next = self._next[keep]
        support: dict[int, float] = {}
        for move, weight in zip(wanted[keep].tolist(), self._weights.tolist(), strict=True):
            support[move] = support.get(move, 0.0) + weight
        return support

    def _column(self) -> NDArray[np.int32]:
        """The move that each sequence has next; NO_MOVE where it is at its end."""
        inside = np.minimum(self._next, self._moves.shape[1] - 1)
        found = self._moves[np.arange(len(self._moves)), inside]
        return np.where(self._next < self._moves.shape[1], found, NO_MOVE)

    def chose(self, move: int) -> None:
        """Goes on with the sequences that have this move next."""
        keep = self._column() == move
        self._moves, self._duets, self._weights = self._moves[keep], self._duets[keep], self._weights[keep]
        self._next = self._next[keep] + 1


@dataclass(frozen=True, slots=True)
class Begun:
    """What is being executed in one seat, and the last move of it: in which ply, at which place of the legal ones."""

    enforcer: Enforcer
    ply: int
    choice: int


class SeqPlayer(Player):
    """Plays by the pairs of at least the lowest threshold; serves any number of matches, in any number of seats.

    sources: how often each source decided, {"enforcer", "tier 1" .., "random"}; an Enforcer's move counts where it had
    to be chosen among the legal moves like any other.
    """

    def __init__(self, pairs: ContextPairs, settings: SeqPlayerSettings | None = None) -> None:
        self.settings = settings or SeqPlayerSettings()
        tiers = TIERS[self.settings.version]
        falling = np.argsort(-pairs.weights, kind="stable")
        self.pairs = pairs.chosen(falling[pairs.weights[falling] >= tiers[-1]])
        self.sources: dict[str, int] = {}
        self._tiers = np.array(tiers)
        self._begun: dict[Seat, Begun] = {}

    def begin(self, role: int, started: Started) -> None:
        """Forgets what was enforced in these lanes. Raises GameloreError for another game than that of the pairs."""
        game = self.pairs.patterns.game
        if started.graph.game.rules_hash != game.rules_hash:
            raise GameloreError(
                f"expected matches of {game.name}, whose sequences were learned, got {started.graph.game.name}; "
                "learn that game first (gamelore learn GAME --learner sequences)"
            )
        self._forget(role, started.lanes)

    def end(self, role: int, finished: Finished) -> None:
        """Forgets what was enforced in these lanes."""
        self._forget(role, finished.lanes)

    def _forget(self, role: int, lanes: NDArray[np.int64]) -> None:
        for lane in lanes.tolist():
            self._begun.pop((role, lane), None)

    def choose(self, turn: Turn) -> NDArray[np.int32]:
        """See `Player.choose`."""
        offsets, allowed = self._allowed(turn)
        choices = np.full(len(turn.lanes), NOBODY, np.int32)
        for i, lane in enumerate(turn.lanes.tolist()):
            if (turn.role, lane) in self._begun:
                choices[i] = self._enforce(turn, i, lane, allowed[offsets[i] : offsets[i + 1]])
        self._count("enforcer", int((choices >= 0).sum()))
        asking = np.flatnonzero(choices < 0)
        if asking.size:
            choices[asking] = self._ask(_part(turn, asking), _parts(allowed, offsets, asking))
        return choices

    def _count(self, source: str, times: int) -> None:
        self.sources[source] = self.sources.get(source, 0) + times

    def _allowed(self, turn: Turn) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """(offsets int64[n + 1], which of the legal moves are not proved to lose; all where all are)."""
        graph, role, depth = turn.graph, turn.role, self.settings.verify
        if not depth:
            offsets = np.append(0, np.cumsum(graph.num_moves[turn.rows, role])).astype(np.int64)
            return offsets, np.ones(offsets[-1], np.bool_)
        offsets, values = choice_values(graph, role, turn.rows, depth)
        worst = graph.game.goal_values[role][0]
        safe = values > worst
        any_safe = np.logical_or.reduceat(safe, offsets[:-1])
        return offsets, safe | ~np.repeat(any_safe, np.diff(offsets))

    def _enforce(self, turn: Turn, i: int, lane: int, allowed: NDArray[np.bool_]) -> int:
        """The next move of a sequence that was begun, as a position within the legal moves; NOBODY where none fits."""
        begun = self._begun.pop((turn.role, lane))
        if not _was_made(turn, i, lane, begun):
            return NOBODY
        legal = turn.graph.legal(int(turn.rows[i]), turn.role) * turn.graph.game.num_roles + turn.role
        support = begun.enforcer.follow(_others_moves(turn, i, lane, begun.ply), set(legal[allowed].tolist()))
        if not support:
            return NOBODY
        best = max(support.values())
        # in the order of actions, so that the draw does not depend on that of the sequences
        tied = sorted(move for move, weight in support.items() if weight > best - 1e-9)
        move = tied[int(uniform(turn.keys[i], turn.plies[i], WHICH) * len(tied))]
        begun.enforcer.chose(move)
        choice = int(np.flatnonzero(legal == move)[0])
        self._begun[turn.role, lane] = Begun(begun.enforcer, int(turn.plies[i]), choice)
        return choice

    def _ask(self, turn: Turn, allowed: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Choices int32[n] by the votes of the pairs, or else at random."""
        by_branch = self.settings.votes == "sequences"
        advice = consult(self.pairs, turn, self._tiers, allowed, by_branch=by_branch)
        for tier in range(len(self._tiers)):
            self._count(f"tier {tier + 1}", int((advice.tiers == tier).sum()))
        if self.settings.enforce != "none":
            one_move = ONE_MOVE_ONLY[self.settings.version]
            for i in np.flatnonzero((advice.tiers >= 0) & (advice.tiers != one_move)).tolist():
                begun = Begun(self._enforcer(advice, i), int(turn.plies[i]), int(advice.choices[i]))
                self._begun[turn.role, int(turn.lanes[i])] = begun
        alone = np.flatnonzero(advice.choices < 0)
        self._count("random", len(alone))
        if alone.size:
            advice.choices[alone] = self._at_random(_part(turn, alone), _parts(allowed, _offsets(turn), alone))
        return advice.choices

    def _enforcer(self, advice: Advice, i: int) -> Enforcer:
        """All branches that voted for the chosen move, each once."""
        votes = slice(advice.offsets[i], advice.offsets[i + 1])
        pairs, patterns = self.pairs, self.pairs.patterns
        moves = pairs.moves[advice.branches[votes]]
        images = patterns.move_images(moves)
        inverse = patterns.symmetries.inverse[advice.symmetries[votes]]
        own = np.where(moves >= 0, images[inverse[:, None], np.maximum(moves, 0)], NO_MOVE)
        voters = advice.pairs[votes]
        rows = np.unique(np.column_stack([voters, pairs.kinds[advice.branches[votes]], own]), axis=0)
        if self.settings.enforce == "duets":
            rows = rows[rows[:, 1] == DUET]
        return Enforcer(rows[:, 2:].astype(np.int32), rows[:, 1] == DUET, pairs.weights[rows[:, 0]])

    def _at_random(self, turn: Turn, allowed: NDArray[np.bool_]) -> NDArray[np.int32]:
        """int32[n]: uniformly random among the legal moves, or among those allowed."""
        draws = uniform(turn.keys, turn.plies, WHICH)
        counts = turn.graph.num_moves[turn.rows, turn.role]
        if self.settings.fallback == "random":
            return np.asarray(draws * counts).astype(np.int32)
        parts = np.split(allowed, np.cumsum(counts)[:-1])
        return np.array(
            [np.flatnonzero(part)[int(draw * part.sum())] for draw, part in zip(draws, parts, strict=True)], np.int32
        )


def _offsets(turn: Turn) -> NDArray[np.int64]:
    """int64[n + 1]: where the legal moves of each lane begin, lane after lane."""
    return np.append(0, np.cumsum(turn.graph.num_moves[turn.rows, turn.role])).astype(np.int64)


def _part(turn: Turn, lanes: NDArray[np.intp]) -> Turn:
    """The same question for some of the lanes."""
    rows, keys, plies = turn.rows[lanes], turn.keys[lanes], turn.plies[lanes]
    return replace(turn, lanes=turn.lanes[lanes], rows=rows, keys=keys, plies=plies)


def _parts(values: NDArray[np.bool_], offsets: NDArray[np.int64], lanes: NDArray[np.intp]) -> NDArray[np.bool_]:
    """The values of some lanes, one after the other."""
    return np.concatenate([values[offsets[lane] : offsets[lane + 1]] for lane in lanes])


def _was_made(turn: Turn, i: int, lane: int, begun: Begun) -> bool:
    """Whether the last move of what was begun is the one that was made: somebody may have answered for the player."""
    if turn.log is None:
        raise GameloreError("expected a log of the match in the turn, got none; ask SeqPlayer within a match")
    return bool(begun.ply < turn.plies[i] and turn.log.choices[lane, begun.ply, turn.role] == begun.choice)


def _others_moves(turn: Turn, i: int, lane: int, since: int) -> list[int]:
    """What the others did in this lane from ply `since` on, as move numbers."""
    assert turn.log is not None
    graph: Graph = turn.graph
    found, num_roles = [], graph.game.num_roles
    for ply in range(since, int(turn.plies[i])):
        row = turn.log.rows[lane, ply]
        for role in range(num_roles):
            if role != turn.role and (graph.acting[row, role] or graph.num_moves[row, role] > 1):
                action = graph.move_actions[graph.move_start[row, role] + turn.log.choices[lane, ply, role]]
                found.append(int(action) * num_roles + role)
    return found
