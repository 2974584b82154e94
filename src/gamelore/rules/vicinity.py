"""Which facts and moves lie near each other, read off the ground rules: locality, as Lock & Epstein (2004, 3) call it.

Facts that differ in one argument and of which one at most was seen to hold in any state, such as all that may lie in a
cell, are one *variable*. Two variables are neighbours where rules need a fact of each and of few others, such as the
cells of a line. A variable that would have more than half of all as neighbours keeps those that it meets more often
than the median of them: a move that may take any piece brings any two places together, but a line does it once more.
Where that leaves it too many, or none, or where more than a quarter of a role's actions touch it, a variable is
*everywhere*, such as whose turn it is: it makes nothing near and is near to everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..errors import GameloreError
from .game import Game
from .gdl import Function, parse_term
from .ground import GroundProgram, ground
from .names import GroundTerm, Names

MOST_TOGETHER = 4  # variables in a rule that makes neighbours
MATCHES, PLIES = 64, 100  # looked at for facts that exclude each other


@dataclass(frozen=True, eq=False)
class Vicinity:
    """Facts by their bit number, actions by their flat number.

    variables   int64[num_facts], the variable of each fact
    neighbours  bool[variables, variables], reflexive and symmetric
    touched     bool[actions, variables], the variables with a fact whose truth the action has a say in
    everywhere  bool[variables]
    """

    variables: NDArray[np.int64]
    neighbours: NDArray[np.bool_]
    touched: NDArray[np.bool_]
    everywhere: NDArray[np.bool_]

    @classmethod
    def of(cls, game: Game) -> Vicinity:
        """Grounds the rules as they are written. Raises GameloreError where they are not compiled, GroundingError."""
        if game.circuit is None or game.is_bounded:
            raise GameloreError(
                f"expected a game that is compiled as a whole, got {game.name}: {game.engine_reason}; "
                "leave out locality"
            )
        program = ground(game.rulesheet, names=Names(game.rulesheet))
        variables = _variables(game)
        bits = {fact: bit for bit, fact in enumerate(game.circuit.facts)}
        variable_of = {atom: int(variables[bits[fact]]) for fact, atom in program.true.items() if fact in bits}
        together = _together(program, variable_of, int(variables.max()) + 1)
        neighbours, everywhere = _neighbours(together)
        touched = np.zeros((game.circuit.num_actions, len(neighbours)), np.bool_)
        for action, fact in _touches(game, program):
            if fact in bits:
                touched[action, variables[bits[fact]]] = True
        return cls(variables, neighbours, touched, everywhere | _often_touched(game, touched))

    @cached_property
    def near(self) -> NDArray[np.bool_]:
        """bool[actions, actions]: whether what the two touch, beside what is everywhere, is the same or neighbours.

        An action that touches only what is everywhere is near to all.
        """
        nowhere = self._own.sum(axis=1) == 0
        return np.asarray((self._reached @ self._own.T > 0) | nowhere | nowhere[:, None])

    @cached_property
    def _own(self) -> NDArray[np.int64]:
        return (self.touched & ~self.everywhere).astype(np.int64)

    @cached_property
    def _reached(self) -> NDArray[np.int64]:
        """The variables around each action, those excepted that are everywhere."""
        local = self.neighbours & ~self.everywhere & ~self.everywhere[:, None]
        return np.asarray(self._own @ local.astype(np.int64) > 0).astype(np.int64)

    def close_together(self, sequences: NDArray[np.int32]) -> NDArray[np.bool_]:
        """bool[n]: in which sequences int32[n, longest] each action is near the first; negative is behind the end."""
        near = self.near[sequences[:, :1], np.maximum(sequences, 0)]
        return np.asarray((near | (sequences < 0)).all(axis=1))

    def around(self, sequences: NDArray[np.int32]) -> NDArray[np.bool_]:
        """bool[n, num_facts]: the facts that are near what an action of the sequence touches, or everywhere."""
        reached = np.zeros((len(sequences), len(self.everywhere)), np.bool_)
        for column in sequences.T:
            reached |= (self._reached[np.maximum(column, 0)] > 0) & (column >= 0)[:, None]
        return np.asarray((reached | self.everywhere)[:, self.variables])


def _variables(game: Game) -> NDArray[np.int64]:
    """The variable of each fact: the last argument in which facts differ that exclude each other is its value."""
    assert game.circuit is not None
    facts = [game.fact_text(bit) for bit in range(game.circuit.num_facts)]
    held = _sampled(game, len(facts))
    found = -np.ones(len(facts), np.int64)
    size = 0
    for group in _groups(facts):
        open_bits = [bit for bit in group if found[bit] < 0]
        if len(open_bits) == len(group) and held[:, group].sum(axis=1).max() <= 1:
            found[group] = size
            size += 1
    alone = found < 0
    found[alone] = size + np.arange(alone.sum())
    return found


def _groups(facts: list[str]) -> Iterator[list[int]]:
    """Bits of facts that are equal but for one argument, the last argument first."""
    terms = [parse_term(fact) for fact in facts]
    parts = [
        (str(term.name), *map(str, term.args)) if isinstance(term, Function) else (str(term.name),) for term in terms
    ]
    for behind in range(max(map(len, parts)) - 1):
        groups: dict[tuple[object, ...], list[int]] = {}
        for bit, part in enumerate(parts):
            if len(part) > behind + 1:
                place = len(part) - 1 - behind
                groups.setdefault((len(part), *part[:place], "", *part[place + 1 :]), []).append(bit)
        yield from groups.values()


def _sampled(game: Game, num_facts: int) -> NDArray[np.uint8]:
    """uint8[states, facts] of states in random matches."""
    rng = np.random.default_rng(0)
    states = np.repeat(game.initial[None], MATCHES, axis=0)
    seen = [states]
    for _ in range(PLIES):
        legal = game.legal(states)
        starts, counts = legal.by_role(game.num_roles)
        playing = counts.min(axis=1) > 0
        if not playing.any():
            break
        starts, counts = starts[playing], counts[playing]
        picked = legal.actions[starts + (rng.random(counts.shape) * counts).astype(np.int64)]
        states = game.next(states[playing], picked)
        seen.append(states)
    rows = np.unique(np.concatenate(seen), axis=0)
    return np.unpackbits(rows.view(np.uint8), axis=1, count=num_facts, bitorder="little")


def _bodies(program: GroundProgram) -> Iterator[tuple[int, list[int]]]:
    offsets, literals = program.offsets.tolist(), program.literals.tolist()
    for rule, head in enumerate(program.heads.tolist()):
        yield head, literals[offsets[rule] : offsets[rule + 1]]


def _neighbours(together: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(bool[variables, variables] reflexive and symmetric; bool[variables], which of them are everywhere)."""
    met = together > 0
    crowded = 2 * met.sum(axis=1) > len(together)
    usual = np.array([np.median(row[row > 0]) if row.any() else 0 for row in together])
    more_often = together > usual[:, None]
    # where a variable meets all others equally often there is nothing to tell them apart by
    tells_apart = crowded & more_often.any(axis=1)
    kept = np.where(tells_apart[:, None], more_often, met)
    mutual = kept & kept.T
    # whose turn it is meets some cells more often than others, but no cell meets it as often as its own line
    one_sided = tells_apart & (2 * mutual.sum(axis=1) < kept.sum(axis=1))
    everywhere = one_sided | (2 * mutual.sum(axis=1) > len(together))
    everywhere |= ~(mutual & ~everywhere).any(axis=1)
    return mutual | np.eye(len(together), dtype=np.bool_), np.asarray(everywhere)


def _together(program: GroundProgram, variable_of: dict[int, int], num: int) -> NDArray[np.int64]:
    """int64[variables, variables]: in how many rules facts of both stand, or in the only rule of what stands there."""
    rules: dict[int, list[list[int]]] = {}
    for head, body in _bodies(program):
        rules.setdefault(head, []).append(body)
    together = np.zeros((num, num), np.int64)
    for body in (body for bodies in rules.values() for body in bodies):
        needed = sorted({variable for literal in body for variable in _needed(literal, rules, variable_of, 3)})
        if 2 <= len(needed) <= MOST_TOGETHER:
            together[np.ix_(needed, needed)] += 1
    np.fill_diagonal(together, 0)
    return together


def _needed(literal: int, rules: dict[int, list[list[int]]], variable_of: dict[int, int], depth: int) -> Iterator[int]:
    """The variables of the facts that a condition needs to hold."""
    if literal in variable_of:
        yield variable_of[literal]
    elif literal > 0 and depth and len(rules.get(literal, ())) == 1:
        for part in rules[literal][0]:
            yield from _needed(part, rules, variable_of, depth - 1)


def _touches(game: Game, program: GroundProgram) -> Iterator[tuple[int, GroundTerm]]:
    """(action, fact) where whether the fact is true next depends on whether the action is made."""
    numbers = {pair: action for action, pair in enumerate(_role_moves(game))}
    actions_of = {atom: 1 << numbers[pair] for pair, atom in program.does.items() if pair in numbers}
    bodies, changed = list(_bodies(program)), True
    while changed:
        changed = False
        for head, body in bodies:
            before = actions_of.get(head, 0)
            after = before
            for literal in body:
                after |= actions_of.get(abs(literal), 0)
            if after != before:
                actions_of[head], changed = after, True
    for fact, atom in program.next.items():
        actions = actions_of.get(atom, 0)
        while actions:
            action = actions.bit_length() - 1
            actions ^= 1 << action
            yield action, fact


def _role_moves(game: Game) -> Iterator[tuple[GroundTerm, GroundTerm]]:
    """(role, move) of every action, as ground terms, in the order of their numbers."""
    assert game.circuit is not None
    for role, moves in zip(game.role_terms, game.circuit.actions, strict=True):
        for move in moves:
            yield role, move


def _often_touched(game: Game, touched: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """bool[variables]: by more than a quarter of a role's actions."""
    assert game.circuit is not None
    ends = np.cumsum([len(moves) for moves in game.circuit.actions])
    parts = np.split(touched, ends[:-1])
    return np.asarray(np.any([4 * part.sum(axis=0) > len(part) for part in parts], axis=0))
