"""Perfect play in sums of impartial games, such as nim: a nimber for each part, however large the sum is.

The rules must have all of these properties; each is checked in the circuit, or in every position of every part.

- Two roles move in turns, and each move changes one part (a *serial* sum, see analysis/parts.py).
- A position of a part offers both roles the same next positions, and none leads back to an earlier one.
- The match is over exactly where no part offers a move, and then only the turn decides who wins.

In *normal play*, who cannot move loses. By the theorem of Sprague (1935) and Grundy (1939), a position of a part equals
a heap of nim with as many stones as the smallest number that no next position has, and the role to move loses if the
exclusive or of all heaps is 0. In *misère play*, who cannot move wins. Then equal numbers do not make equal games,
unless each position of a part offers exactly the smaller heaps, as nim itself does. In this case the role to move loses
if the exclusive or is 0 and a heap has several stones, or if it is 1 and no heap has (Bouton 1901).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..analysis.parts import MOST_GATES, GamePart, Parts, conjuncts, parts, truth
from ..circuit.aig import needed_nodes
from ..game.engines import unpack_bits

if TYPE_CHECKING:
    from ..circuit.aig import GateLiteral
    from ..game.game import Game

MOST_POSITIONS = 20_000  # of a part
MOST_MOVES = 2_000_000  # that are looked at for all parts together, which takes some seconds
_ROLES = 2
_AT_ONCE, _STATES_AT_ONCE = 64, 2048  # positions whose moves, or conditions, are computed together

States = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class ImpartialSum:
    """A sum of impartial games.

    nimbers     for each part the nimber of each of its positions, by the bytes of the state masked with the part
    is_misere   whether the role that cannot move wins
    """

    whole: Parts
    nimbers: tuple[dict[bytes, int], ...]
    is_misere: bool

    def mover_loses(self, state: States) -> bool:
        """Return whether the role to move loses in a state, uint64[words], if the other one plays perfectly."""
        return bool(self._losing(state[None])[0])

    def winning(self, state: States, role: int) -> list[int]:
        """Return the indices of the winning moves among the legal moves of the role that has the turn."""
        game = self.whole.game
        joint = game.legal(state[None]).joint_moves(role, _ROLES)
        following = game.next(np.repeat(state[None], len(joint), axis=0), joint)
        return np.flatnonzero(self._losing(np.concatenate([state[None], following]))[1:]).tolist()

    def _losing(self, states: States) -> NDArray[np.bool_]:
        """Return whether the role to move loses in each of the states, uint64[n, words], see `mover_loses`.

        Parts that are as in the first state are looked up once: after a move, these are all but one.
        """
        heaps = np.empty((len(states), len(self.nimbers)), np.int64)
        for number, (part, own) in enumerate(zip(self.whole.parts, self.nimbers, strict=True)):
            positions = states & part.mask
            heaps[:, number] = own[positions[0].tobytes()]
            for row in np.flatnonzero((positions != positions[0]).any(axis=1)).tolist():
                heaps[row, number] = own[positions[row].tobytes()]
        losing: NDArray[np.bool_] = np.bitwise_xor.reduce(heaps, axis=1) == (self.is_misere & (heaps.max(axis=1) <= 1))
        return losing


@dataclass
class _Work:
    """How many moves may still be looked at."""

    moves_left: int


def impartial_sum(game: Game) -> ImpartialSum | None:
    """Return the nimbers of a game; None if it is no sum of impartial games, or if it or a part is too large."""
    if game.num_roles != _ROLES or not _turn_decides(game):
        return None
    whole = parts(game)
    if whole.kind != "serial" or (whole.possible.sum(axis=0) != 1).any():
        return None
    num_touched = np.sum([part.touches for part in whole.parts], axis=0)
    if (num_touched[whole.possible] != 1).any():  # a pass changes no part
        return None
    turns, ends = _turns(whole), _ends(whole)
    if turns is None or ends is None:
        return None
    clocks, is_misere = turns
    nimbers, work = [], _Work(MOST_MOVES)
    for part, own_ends in zip(whole.parts, ends, strict=True):
        options = _options(whole, part, clocks, work)
        own = None if options is None else _nimbers(options, is_misere)
        if options is None or own is None or not _ends_without_options(whole, part, options, own_ends):
            return None
        nimbers.append(own)
    return ImpartialSum(whole, tuple(nimbers), is_misere)


def _turn_decides(game: Game) -> bool:
    """Return whether no move influences, directly, a fact on which the goals depend; a test that takes little time."""
    circuit = game.circuit
    if circuit is None or circuit.num_gates > MOST_GATES:
        return False
    facts = slice(1, 1 + circuit.num_facts)
    asked = np.flatnonzero(needed_nodes(circuit, circuit.outputs["goal"])[facts])
    below = needed_nodes(circuit, [circuit.outputs["next"][fact] for fact in asked.tolist()])
    return not below[1 + circuit.num_facts : 1 + circuit.num_inputs].any()


def _turns(whole: Parts) -> tuple[list[States], bool] | None:
    """Return the clock when each role has the turn, and whether the role that has it at the end wins.

    None if the roles do not move in turns, or if anything but the turn decides.
    """
    game, circuit = whole.game, whole.game.circuit
    assert circuit is not None
    if len(whole.possible) != _ROLES or any(whole.reads(literal) for literal in circuit.outputs["goal"]):
        return None
    first = game.initial & whole.clock_mask
    joint = whole.joint[:1]  # any joint move will do
    second = game.next(game.initial[None], joint)[0] & whole.clock_mask
    again = game.next((game.initial & ~whole.clock_mask | second)[None], joint)[0] & whole.clock_mask
    if (first == second).all() or (again != first).any():
        return None
    clocks, goals = list[States](), list[tuple[int, int]]()
    for role in range(_ROLES):
        own = [clock for clock in (first, second) if _has_turn(whole, clock, role)]
        if len(own) != 1:
            return None
        clocks += own
        reached = game.evaluate((game.initial & ~whole.clock_mask | own[0])[None])[1][0]
        goals.append((int(reached[role]), int(reached[1 - role])))
    if goals[0] != goals[1] or goals[0][0] == goals[0][1]:
        return None
    return clocks, goals[0][0] > goals[0][1]


def _has_turn(whole: Parts, clock: States, role: int) -> bool:
    """Return whether only this role has a choice at a time of the clock, in the first position of all parts."""
    _, counts = whole.game.legal((whole.game.initial & ~whole.clock_mask | clock)[None]).by_role(_ROLES)
    return bool(counts[0, role] > 1 and counts[0, 1 - role] == 1)


def _ends(whole: Parts) -> list[list[GateLiteral]] | None:
    """Return for each part the conditions of the end that read it; None if one reads the clock or several parts."""
    circuit = whole.game.circuit
    assert circuit is not None
    facts = [sum(1 << fact for fact in part.facts) for part in whole.parts]
    ends: list[list[GateLiteral]] = [[] for _ in facts]
    for literal in conjuncts(circuit, circuit.outputs["terminal"][0]):
        read = whole.reading[literal >> 1]
        own = [number for number, inside in enumerate(facts) if read and not read & ~inside]
        if len(own) != 1:
            return None
        ends[own[0]].append(literal)
    return ends


def _options(
    whole: Parts, part: GamePart, clocks: Sequence[States], work: _Work
) -> dict[bytes, frozenset[bytes]] | None:
    """Return the next positions of each position of a part, as bytes; None if they differ between the roles.

    Also None if waiting changes the part, or if there are too many positions or moves.
    """
    rest = whole.game.initial & ~part.mask & ~whole.clock_mask
    touches = np.asarray(part.touches.any(axis=0))
    first = (whole.game.initial & part.mask).tobytes()
    options: dict[bytes, frozenset[bytes]] = {}
    reached, todo = {first}, [first]
    while todo:
        batch, todo = todo[:_AT_ONCE], todo[_AT_ONCE:]
        positions = np.frombuffer(b"".join(batch), np.uint64).reshape(len(batch), -1)
        following = [_after(whole, part, rest | positions | clock, touches, work) for clock in clocks]
        if following[0] is None or following[0] != following[1]:
            return None
        for position, own in zip(batch, following[0], strict=True):
            options[position] = own
            todo += own - reached
            reached |= own
        if len(reached) > MOST_POSITIONS:
            return None
    return options


def _after(
    whole: Parts, part: GamePart, states: States, touches: NDArray[np.bool_], work: _Work
) -> list[frozenset[bytes]] | None:
    """Return the next positions of a part after moves that touch it, for each of the states uint64[n, words].

    None if another move changes the part, or if there are too many moves.
    """
    game = whole.game
    legal = game.legal(states)
    starts, counts = legal.by_role(_ROLES)
    rows, roles = np.arange(len(states)), counts.argmax(axis=1)
    if (counts[rows, 1 - roles] != ~legal.terminal).any():  # one move, or none where the match is over
        return None
    num_moves = counts[rows, roles]
    work.moves_left -= int(num_moves.sum())
    if work.moves_left < 0:
        return None
    rows, index = np.repeat(rows, num_moves), np.arange(num_moves.sum())
    index -= np.repeat(np.cumsum(num_moves) - num_moves, num_moves)
    joint = legal.actions[starts[rows]]
    joint[np.arange(len(rows)), roles[rows]] = legal.actions[starts[rows, roles[rows]] + index]
    moves = [whole.moves.get(tuple(actions)) for actions in joint.tolist()]
    if None in moves:
        return None
    following = game.next(states[rows], joint) & part.mask
    own = touches[np.array(moves, np.intp)]
    if (following[~own] != states[rows[~own]] & part.mask).any():
        return None
    sets: list[set[bytes]] = [set() for _ in states]
    for row, after in zip(rows[own].tolist(), following[own], strict=True):
        sets[row].add(after.tobytes())
    return [frozenset(positions) for positions in sets]


def _nimbers(options: dict[bytes, frozenset[bytes]], is_misere: bool) -> dict[bytes, int] | None:
    """Return the nimbers of positions; None if a position can repeat, or in misère play if one is no heap of nim."""
    nimbers: dict[bytes, int] = {}
    on_path: set[bytes] = set()
    for root in options:
        path = [root] if root not in nimbers else []
        while path:
            position = path[-1]
            on_path.add(position)
            missing = [after for after in options[position] if after not in nimbers]
            if not on_path.isdisjoint(missing):
                return None
            if missing:
                path.append(missing[0])
                continue
            values = {nimbers[after] for after in options[position]}
            nimbers[position] = smallest_missing(values)
            if is_misere and len(values) > nimbers[position]:
                return None
            on_path.remove(path.pop())
    return nimbers


def smallest_missing(values: Iterable[int]) -> int:
    """Return the smallest number from 0 on that is not among the values."""
    own, number = set(values), 0
    while number in own:
        number += 1
    return number


def _ends_without_options(
    whole: Parts, part: GamePart, options: dict[bytes, frozenset[bytes]], conditions: Sequence[GateLiteral]
) -> bool:
    """Return whether the conditions hold in exactly those positions of a part that offer no move."""
    circuit = whole.game.circuit
    assert circuit is not None
    states = np.array([np.frombuffer(position, np.uint64) for position in options])
    is_stuck = np.array([not following for following in options.values()])
    for first in range(0, len(states), _STATES_AT_ONCE):
        rows = slice(first, first + _STATES_AT_ONCE)
        held = unpack_bits(states[rows], circuit.num_facts).astype(np.bool_)
        values = truth(circuit, {1 + fact: held[:, fact] for fact in part.facts}, len(held))
        over = np.ones(len(held), np.bool_)
        for literal in conditions:
            over &= values[literal >> 1] ^ bool(literal & 1)
        if (over != is_stuck[rows]).any():
            return False
    return True
