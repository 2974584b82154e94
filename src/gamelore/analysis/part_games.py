"""Parts of a game with one role as games of their own, with a part of the gates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..circuit.aig import FALSE, Builder, Circuit, GateLiteral, drop_dead
from ..circuit.tape import record_circuit
from ..game.engines import NativeEngine, pack_bits, unpack_bits
from ..game.game import Game
from .parts import Parts, conjuncts

HIGHEST = 100


@dataclass(frozen=True, eq=False)
class PartGame:
    """A game that consists of some parts of another one, with a goal of its own.

    game   its facts are those of the parts and the clock; its actions are classes of the actions of the whole game
    facts  int64[facts], the bits of its facts in a state of the whole game
    moves  for each of its actions the actions of the whole game with the same effect on these parts, ascending
    """

    game: Game
    facts: NDArray[np.int64]
    moves: tuple[NDArray[np.int32], ...]

    def states(self, states: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return what states of the whole game, uint64[n, words], are in this game."""
        bits = unpack_bits(states, int(self.facts.max(initial=0)) + 1)
        return pack_bits(bits[:, self.facts].astype(np.bool_), self.game.num_words)


def part_game(
    whole: Parts, numbers: Sequence[int], goal: Sequence[GateLiteral], ends: Sequence[Sequence[GateLiteral]]
) -> PartGame:
    """Return some parts of a game with one role as a game.

    Args:
        whole: the parts of the game
        numbers: which of them to take
        goal: literals of the circuit that read only these parts and the clock; if all of them hold, the goal is 100,
            else 0
        ends: lists of literals of the same kind; the match is over if all literals of one list hold
    """
    game, native = whole.game, whole.game.native
    assert native is not None
    circuit = native.circuit
    own = [fact for number in numbers for fact in whole.parts[number].facts]
    facts = sorted({*own, *whole.clock})
    inside = sum(1 << fact for fact in facts)
    legal = {
        action: frozenset(c for c in conjuncts(circuit, literal) if not whole.reading[c >> 1] & ~inside)
        for action, literal in enumerate(circuit.outputs["legal"])
    }
    moves: dict[tuple[object, ...], list[int]] = {}
    for number, (action,) in enumerate(whole.joint.tolist()):
        classes = tuple(int(whole.parts[part].classes[number]) for part in numbers)
        moves.setdefault((classes, legal[action]), []).append(action)
    first = [actions[0] for actions in moves.values()]
    new = _restricted(circuit, facts, first, [legal[action] for action in first], goal, ends)
    engine = NativeEngine(native.names, native.roles, new, record_circuit(new))
    own_game = Game(game.rulesheet, f"{game.name}, part", engine)
    return PartGame(own_game, np.array(facts), tuple(np.array(sorted(own), np.int32) for own in moves.values()))


def _restricted(
    circuit: Circuit,
    facts: Sequence[int],
    actions: Sequence[int],
    conditions: Sequence[frozenset[GateLiteral]],
    goal: Sequence[GateLiteral],
    ends: Sequence[Sequence[GateLiteral]],
) -> Circuit:
    """Return the part of a circuit that reads only some facts and actions; the other actions are never made."""
    moves = circuit.actions[0]
    own_facts, initial = [circuit.facts[fact] for fact in facts], [circuit.initial[fact] for fact in facts]
    new = Circuit(own_facts, [[moves[action] for action in actions]], [[0, HIGHEST]], initial)
    builder = Builder(new)
    values = {0: FALSE} | {1 + circuit.num_facts + action: FALSE for action in range(circuit.num_actions)}
    values |= {1 + fact: 2 * (1 + place) for place, fact in enumerate(facts)}
    values |= {1 + circuit.num_facts + action: builder.first_action + 2 * i for i, action in enumerate(actions)}

    def value(literal: GateLiteral) -> GateLiteral:
        return values[literal >> 1] ^ literal & 1

    for node, (left, right) in enumerate(zip(circuit.left, circuit.right, strict=True)):
        if left >= 0 and left >> 1 in values and right >> 1 in values:
            values[node] = builder.conjunction(value(left), value(right))
    reached = builder.all_of(map(value, goal))
    new.outputs = {
        "legal": [builder.all_of(map(value, sorted(own))) for own in conditions],
        "terminal": [builder.sum_of_products(list(map(value, own)) for own in ends)],
        "goal": [reached ^ 1, reached],
        "next": [value(circuit.outputs["next"][fact]) for fact in facts],
    }
    drop_dead(new)
    return new
