"""SeqPlayer: plays by learned context pairs, with votes in tiers and an Enforcer (Lock & Epstein 2004, section 1.3).

Version 1 has two tiers. Tier 1 is the Enforcer: it continues the sequences that were begun, as long as the other roles
make the moves of these sequences. In tier 2 the pairs with a weight of at least .55 vote.

Version 2 (Figure 4) divides tier 2 into three subclasses. The pairs with the highest weights vote first. Then follows a
tier 3 with the lowest weights. Its advice is for one move only, so the Enforcer does not continue its sequences.

If no pair advises a move, the player makes a random move.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ...errors import GameloreError, check_word
from ...players.kernel import F64, I8, I32, I64, U64, Bool, I32x2, I64x2, U64x2, U64x4, kernel
from ...players.lookahead import choice_values
from ...players.player import Player, Turn
from ...players.random_streams import WHICH, below, uniform
from .contexts import ContextPairs, candidates, holds, smallest
from .extraction import DUET, NO_MOVE
from .patterns import image, padded

if TYPE_CHECKING:
    from ...players.player import Finished, Started

NOBODY = -1


@dataclass(frozen=True, slots=True)
class Advice:
    """The advised moves, and the branches that voted for them.

    choices     int32[n], the advised move as index of a legal move; NOBODY if no pair advises a move
    tiers       int8[n], the tier that decided; NOBODY if no pair advises a move
    offsets     int64[n + 1]; the votes of lane i are offsets[i] : offsets[i + 1]
    branches    int32[votes], the branches that begin with the advised move
    symmetries  int32[votes], the symmetry under which the context of the branch holds
    pairs       int32[votes], the pair of the branch
    """

    choices: NDArray[np.int32]
    tiers: NDArray[np.int8]
    offsets: NDArray[np.int64]
    branches: NDArray[np.int32]
    symmetries: NDArray[np.int32]
    pairs: NDArray[np.int32]


def consult(
    pairs: ContextPairs,
    turn: Turn,
    tiers: NDArray[np.float64],
    allowed: NDArray[np.bool_],
    *,
    by_branch: bool = False,
    absent: int = 0,
) -> Advice:
    """Return the advice for each lane of the turn. It comes from the first tier in which a pair advises a move.

    Each move gets the sum of the weights that vote for it. The move with the highest sum is advised. If several moves
    have this sum, one of them is chosen at random.

    pairs      the pairs, sorted by descending weight
    tiers      float64[tiers], the lowest weight in each tier, descending
    allowed    bool[total], whether each legal move may be advised; the moves of all lanes, one lane after another
    by_branch  True: each branch of a pair has one vote for each different image of its first move; False: each pair has
               one vote for each different first move of its branches, images included
    absent     number of facts of a context that the state may lack
    """
    patterns, graph = pairs.patterns, turn.graph
    starts, firsts = (pairs.starts, np.ascontiguousarray(pairs.moves[:, 0])) if by_branch else pairs.first_moves
    states = patterns.of(graph, turn.rows)
    lanes = (states, turn.rows, turn.keys, turn.plies, turn.role, allowed)
    moves = (graph.num_moves, graph.move_start, graph.move_actions)
    contexts = (pairs.roles, padded(pairs.contexts, states.shape[1]), _no_order if absent else pairs.by_context)
    branches = (pairs.weights, starts, firsts, pairs.starts, pairs.moves)
    images = (patterns.move_images(firsts, graph), patterns.symmetries.inverse, patterns.byte_tables)
    return Advice(*_consult(*lanes, *(moves + contexts), *branches, *images, tiers, by_branch, absent))


_no_order = np.zeros(0, np.int64)  # as in inexact pairs: every context is compared


@kernel
def _consult(
    states: U64x2,
    rows: I32,
    keys: U64,
    plies: I32,
    role: int,
    allowed: Bool,
    num_moves: I32x2,
    move_start: I64x2,
    move_actions: I32,
    roles: I8,
    contexts: U64x2,
    by_context: I64,
    weights: F64,
    first_starts: I64,
    firsts: I32,
    starts: I64,
    moves: I32x2,
    move_images: I32x2,
    inverse: I32,
    byte_tables: U64x4,
    tiers: F64,
    by_branch: bool,
    absent: int,
) -> tuple[I32, I8, I64, I32, I32, I32]:
    """See `consult`."""
    num_symmetries, num_roles = move_images.shape[0], num_moves.shape[1]
    images = np.empty((num_symmetries, states.shape[1]), np.uint64)
    fits = np.empty(num_symmetries, np.int64)  # the symmetries under which the context of a pair holds
    legal_in = np.full(move_images.shape[1], -1, np.int64)  # for each move, the last lane in which it may be advised
    voted_by = np.full(move_images.shape[1], -1, np.int64)  # for each move, the last (lane, pair or branch) for it
    support = np.zeros(move_images.shape[1])
    choices, decided = np.full(rows.size, NOBODY, np.int32), np.full(rows.size, NOBODY, np.int8)
    offsets = np.zeros(rows.size + 1, np.int64)
    votes = np.empty((3, 256), np.int32)
    size, seen = 0, 0
    for lane in range(rows.size):
        begin, num = move_start[rows[lane], role], num_moves[rows[lane], role]
        for i in range(num):
            move = move_actions[begin + i] * num_roles + role
            support[move] = 0.0
            if allowed[seen + i]:
                legal_in[move] = lane
        seen += num
        for symmetry in range(num_symmetries):
            image(states[lane], symmetry, byte_tables, images[symmetry])
        low, high = candidates(roles, contexts, by_context, role, images[smallest(images)])
        tier, any_vote, tier_begin, end = -1, False, low, low
        while tier + 1 < tiers.size and not any_vote:
            tier += 1
            tier_begin = low if by_context.size else end
            end = tier_begin
            while end < high:
                voter = by_context[end] if by_context.size else end
                if weights[voter] < tiers[tier] and not by_context.size:
                    break  # all later pairs have lower weights
                end += 1
                if roles[voter] != role or weights[voter] < tiers[tier]:
                    continue
                num_fits = 0
                for symmetry in range(num_symmetries):
                    if holds(contexts, voter, images, symmetry, absent):
                        fits[num_fits] = symmetry
                        num_fits += 1
                for branch in range(first_starts[voter], first_starts[voter + 1]):
                    vote = lane * firsts.size + (branch if by_branch else first_starts[voter])
                    for symmetry in fits[:num_fits]:
                        move = move_images[inverse[symmetry], firsts[branch]]
                        if legal_in[move] == lane and voted_by[move] != vote:
                            voted_by[move] = vote
                            support[move] += weights[voter]
                            any_vote = True
        if any_vote:
            best, count = 0.0, 0
            for i in range(num):
                move = move_actions[begin + i] * num_roles + role
                if legal_in[move] == lane:
                    # sums of the same weights in a different order may differ in their last bits
                    if support[move] > best + 1e-9:
                        best, count = support[move], 0
                    if support[move] > best - 1e-9:
                        count += 1
            which = below(keys[lane], np.uint64(plies[lane]), np.uint64(WHICH), count)
            for i in range(num):
                move = move_actions[begin + i] * num_roles + role
                if legal_in[move] == lane and support[move] > best - 1e-9:
                    if which == 0:
                        choices[lane] = i
                        break
                    which -= 1
            decided[lane] = tier
            chosen = move_actions[begin + choices[lane]] * num_roles + role
            for place in range(tier_begin, end):
                voter = by_context[place] if by_context.size else place
                if roles[voter] != role or weights[voter] < tiers[tier]:
                    continue
                for symmetry in range(num_symmetries):
                    if not holds(contexts, voter, images, symmetry, absent):
                        continue
                    for branch in range(starts[voter], starts[voter + 1]):
                        if move_images[inverse[symmetry], moves[branch, 0]] == chosen:
                            if size == votes.shape[1]:
                                more = np.empty((3, 2 * size), np.int32)
                                more[:, :size] = votes
                                votes = more
                            votes[0, size], votes[1, size], votes[2, size] = branch, symmetry, voter
                            size += 1
        offsets[lane + 1] = size
    return choices, decided, offsets, votes[0, :size].copy(), votes[1, :size].copy(), votes[2, :size].copy()


Enforce = Literal["all", "duets", "none"]
Votes = Literal["pairs", "sequences"]
Fallback = Literal["random", "verified"]
Seat = tuple[int, int]  # (role, lane)

THRESHOLD = 0.55
TIERS = {1: (THRESHOLD,), 2: (0.9, 0.8, 0.7, THRESHOLD)}
ONE_MOVE_ONLY = {1: NOBODY, 2: 3}  # by version: the tier whose advice is for one move only and is not enforced


def weight_classes(weights: NDArray[np.float64]) -> list[tuple[float, int]]:
    """Return (lowest weight, number of pairs) of each class of weights of version 2, highest first, the rest last."""
    lowest = [*TIERS[2], 0.0]
    bounds = zip([np.inf, *lowest], lowest, strict=False)
    return [(low, int(((weights >= low) & (weights < high)).sum())) for high, low in bounds]


@dataclass(frozen=True, slots=True)
class SeqPlayerSettings:
    """Settings of SeqPlayer.

    version   version of the paper's decision-making module, 1 or 2
    enforce   which sequences the Enforcer continues: "all", "duets" or "none"
    votes     "pairs": each pair has one vote for each move that it advises; "sequences": each sequence of a pair has
              one vote for its first move, however many symmetries lead to this move
    nearest   if no context holds in a state, ask the pairs of whose context the state lacks one fact, then two, up to
              this number. Their advice is for one move only. 0: ask only pairs whose context holds, as in the paper
    verify    depth of a minimax search in plies; 0: no search, as in the paper. If the search proves that a move
              loses, the move is not advised and not enforced, unless all moves lose. The paper's discussion proposes
              a narrow search
    fallback  the move if no pair advises one. "random": a random legal move, as in the paper; "verified": a random
              move among those that are not proved to lose
    """

    version: Literal[1, 2] = 2
    enforce: Enforce = "all"
    votes: Votes = "pairs"
    nearest: int = 0
    verify: int = 0
    fallback: Fallback = "random"

    def __post_init__(self) -> None:
        if self.version not in TIERS:
            raise GameloreError(f"expected version 1 or 2 of SeqPlayer, got {self.version}; choose one of these")
        check_word("enforce", self.enforce, get_args(Enforce))
        check_word("votes", self.votes, get_args(Votes))
        check_word("fallback", self.fallback, get_args(Fallback))
        for name, of, number in ("verify", "plies", self.verify), ("nearest", "facts", self.nearest):
            if number < 0:
                raise GameloreError(
                    f"expected a number of {of} of at least 0 for {name}, got {number}; choose a larger one"
                )
        if self.fallback == "verified" and not self.verify:
            raise GameloreError(
                "expected verify of at least 1 with fallback=verified, got 0; set it, for example verify=2"
            )


class Enforcer:
    """The sequences that a player executes in one lane. All of their moves up to now were made in the match.

    moves    int32[sequences, longest], move numbers of the match; NO_MOVE after the end of a sequence
    duets    bool[sequences], whether the sequence is a duet
    weights  float64[sequences], the weight of the pair to which the sequence belongs
    """

    def __init__(self, moves: NDArray[np.int32], duets: NDArray[np.bool_], weights: NDArray[np.float64]) -> None:
        self._moves, self._duets, self._weights = moves, duets, weights
        self._next = np.ones(len(moves), np.intp)

    def follow(self, others: list[int], allowed: set[int]) -> dict[int, float]:
        """Return the next moves of the sequences with the sums of their weights, after these moves of other roles.

        Drop duets that do not continue with these moves, and sequences whose next move is not in `allowed`.
        """
        fits = np.ones(len(self._moves), np.bool_)
        for move in others:
            fits &= ~self._duets | (self._column() == move)
            self._next += self._duets
        self._keep(fits & np.isin(self._column(), list(allowed)))
        support: dict[int, float] = {}
        for move, weight in zip(self._column().tolist(), self._weights.tolist(), strict=True):
            support[move] = support.get(move, 0.0) + weight
        return support

    def _keep(self, chosen: NDArray[np.bool_]) -> None:
        """Drop all sequences except those for which `chosen`, bool[sequences], is True."""
        self._moves, self._duets = self._moves[chosen], self._duets[chosen]
        self._weights, self._next = self._weights[chosen], self._next[chosen]

    def _column(self) -> NDArray[np.int32]:
        """Return the next move of each sequence, NO_MOVE if the sequence has ended."""
        inside = np.minimum(self._next, self._moves.shape[1] - 1)
        moves = self._moves[np.arange(len(self._moves)), inside]
        return np.where(self._next < self._moves.shape[1], moves, NO_MOVE)

    def chose(self, move: int) -> None:
        """Keep only the sequences whose next move is this move, and go to the move after it."""
        self._keep(self._column() == move)
        self._next += 1


@dataclass(frozen=True, slots=True)
class Begun:
    """The sequences that are executed in one seat, and the last move that the player made there.

    ply     ply of this move
    choice  index of this move among the legal moves
    """

    enforcer: Enforcer
    ply: int
    choice: int


class SeqPlayer(Player):
    """A player that follows the advice of context pairs. It can play any number of matches and roles at once.

    pairs    the pairs whose weight is at least the lowest weight of any tier, sorted by descending weight
    sources  number of decisions of each source; the sources are "enforcer", "tier 1", "tier 2", .. and "random"
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
        """Forget the sequences that were begun in these lanes. Raise GameloreError if the pairs are of another game."""
        game = self.pairs.patterns.game
        if started.graph.game.rules_hash != game.rules_hash:
            raise GameloreError(
                f"expected a match of {game.name}, because the sequences are of this game, got "
                f"{started.graph.game.name}; learn the other game first (gamelore learn GAME --learner sequences)"
            )
        self._forget(role, started.lanes)

    def end(self, role: int, finished: Finished) -> None:
        """Forget the sequences that were begun in these lanes."""
        self._forget(role, finished.lanes)

    def _forget(self, role: int, lanes: NDArray[np.int64]) -> None:
        for lane in lanes.tolist():
            self._begun.pop((role, lane), None)

    def choose(self, turn: Turn) -> NDArray[np.int32]:
        """See `Player.choose`."""
        allowed = self._allowed(turn)
        counts = turn.graph.num_moves[turn.rows, turn.role]
        offsets = np.append(0, np.cumsum(counts))
        choices = np.full(len(turn.lanes), NOBODY, np.int32)
        for i, lane in enumerate(turn.lanes.tolist()):
            if (turn.role, lane) in self._begun:
                choices[i] = self._enforce(turn, i, lane, allowed[offsets[i] : offsets[i + 1]])
        self._count("enforcer", int((choices >= 0).sum()))
        asking = choices < 0
        if asking.any():
            choices[asking] = self._ask(_part(turn, asking), allowed[np.repeat(asking, counts)])
        return choices

    def _count(self, source: str, times: int) -> None:
        self.sources[source] = self.sources.get(source, 0) + times

    def _allowed(self, turn: Turn) -> NDArray[np.bool_]:
        """Return whether each legal move may be made, bool[total]; the moves of all lanes, one lane after another.

        Moves that are proved to lose may not be made. If all moves of a lane are proved to lose, all may be made.
        """
        graph, role, depth = turn.graph, turn.role, self.settings.verify
        if not depth or not graph.game.goal_values[role]:
            return np.ones(graph.num_moves[turn.rows, role].sum(), np.bool_)
        offsets, values = choice_values(graph, role, turn.rows, depth)
        safe = values > graph.game.goal_values[role][0]
        any_safe = np.logical_or.reduceat(safe, offsets[:-1])
        return np.asarray(safe | ~np.repeat(any_safe, np.diff(offsets)))

    def _enforce(self, turn: Turn, i: int, lane: int, allowed: NDArray[np.bool_]) -> int:
        """Return the next move of the sequences that were begun, as index of a legal move; NOBODY if there is none."""
        begun = self._begun.pop((turn.role, lane))
        if turn.log is None:
            raise GameloreError(
                "expected a turn with the log of its match, got one without; use SeqPlayer only within a match"
            )
        if begun.ply >= turn.plies[i] or turn.log.choices[lane, begun.ply, turn.role] != begun.choice:
            return NOBODY  # the match has another move than the one that the player chose
        legal = turn.graph.legal(int(turn.rows[i]), turn.role) * turn.graph.game.num_roles + turn.role
        support = begun.enforcer.follow(_others_moves(turn, i, lane, begun.ply), set(legal[allowed].tolist()))
        if not support:
            return NOBODY
        best = max(support.values())
        # sorted, so that the random choice does not depend on the order of the sequences
        tied = sorted(move for move, weight in support.items() if weight > best - 1e-9)
        move = tied[int(uniform(turn.keys[i], turn.plies[i], WHICH) * len(tied))]
        begun.enforcer.chose(move)
        choice = int(np.flatnonzero(legal == move)[0])
        self._begun[turn.role, lane] = Begun(begun.enforcer, int(turn.plies[i]), choice)
        return choice

    def _ask(self, turn: Turn, allowed: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Return the choice in each lane, int32[n]: the advice of the pairs, or a random move if there is none."""
        advice = self._advice(turn, allowed)
        for tier in range(len(self._tiers)):
            self._count(f"tier {tier + 1}", int((advice.tiers == tier).sum()))
        if self.settings.enforce != "none":
            one_move = ONE_MOVE_ONLY[self.settings.version]
            for i in np.flatnonzero((advice.tiers >= 0) & (advice.tiers != one_move)).tolist():
                begun = Begun(self._enforcer(advice, i), int(turn.plies[i]), int(advice.choices[i]))
                self._begun[turn.role, int(turn.lanes[i])] = begun
        all_facts = 64 * self.pairs.contexts.shape[1]
        for absent in range(1, min(self.settings.nearest, all_facts) + 1):
            self._ask_near(turn, allowed, advice.choices, absent)
        unadvised = advice.choices < 0
        self._count("random", int(unadvised.sum()))
        if unadvised.any():
            of_these = np.repeat(unadvised, turn.graph.num_moves[turn.rows, turn.role])
            advice.choices[unadvised] = self._at_random(_part(turn, unadvised), allowed[of_these])
        return advice.choices

    def _advice(self, turn: Turn, allowed: NDArray[np.bool_], absent: int = 0) -> Advice:
        by_branch = self.settings.votes == "sequences"
        return consult(self.pairs, turn, self._tiers, allowed, by_branch=by_branch, absent=absent)

    def _ask_near(self, turn: Turn, allowed: NDArray[np.bool_], choices: NDArray[np.int32], absent: int) -> None:
        """Replace NOBODY in the choices by the advice of pairs whose contexts lack at most `absent` facts."""
        asking = choices < 0
        if asking.any():
            of_these = np.repeat(asking, turn.graph.num_moves[turn.rows, turn.role])
            advice = self._advice(_part(turn, asking), allowed[of_these], absent)
            choices[asking] = advice.choices
            self._count(f"{absent} absent", int((advice.choices >= 0).sum()))

    def _enforcer(self, advice: Advice, i: int) -> Enforcer:
        """Return an Enforcer with all branches that voted for the chosen move in lane i, each of them once."""
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
        """Return a uniformly random choice in each lane, int32[n], from all legal moves or only the allowed ones."""
        draws = uniform(turn.keys, turn.plies, WHICH)
        counts = turn.graph.num_moves[turn.rows, turn.role]
        if self.settings.fallback == "random":
            return np.asarray(draws * counts).astype(np.int32)
        parts = np.split(allowed, np.cumsum(counts)[:-1])
        return np.array(
            [np.flatnonzero(part)[int(draw * part.sum())] for draw, part in zip(draws, parts, strict=True)], np.int32
        )


def _part(turn: Turn, lanes: NDArray[np.bool_]) -> Turn:
    """Return a turn with only the lanes for which `lanes` is True."""
    rows, keys, plies = turn.rows[lanes], turn.keys[lanes], turn.plies[lanes]
    return replace(turn, lanes=turn.lanes[lanes], rows=rows, keys=keys, plies=plies)


def _others_moves(turn: Turn, i: int, lane: int, since: int) -> list[int]:
    """Return the moves of the other roles in this lane from ply `since` on, as move numbers."""
    assert turn.log is not None
    graph, num_roles = turn.graph, turn.graph.game.num_roles
    moves: list[int] = []
    for ply in range(since, int(turn.plies[i])):
        row = turn.log.rows[lane, ply]
        for role in range(num_roles):
            if role != turn.role and (graph.acting[row, role] or graph.num_moves[row, role] > 1):
                action = graph.move_actions[graph.move_start[row, role] + turn.log.choices[lane, ply, role]]
                moves.append(int(action) * num_roles + role)
    return moves
