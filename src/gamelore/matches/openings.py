"""Random openings of matches, and rulesheets that begin at another position of their game."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..errors import GameloreError
from ..gdl.syntax import NOWHERE, And, Atom, Condition, Not, Or, Rule, Rulesheet, body_atoms, natural_order, parse_term
from ..players.random_streams import WHICH, extend, uniform

if TYPE_CHECKING:
    from ..game.game import Game, Position

INIT = "init"
ATTEMPTS = 1000  # maximum number of openings that are drawn until one does not end the match


@dataclass(frozen=True, slots=True)
class Opening:
    """The first joint moves of a match, and the facts of the position after them, in natural order."""

    moves: tuple[tuple[str, ...], ...]
    facts: tuple[str, ...]


def draw_opening(game: Game, plies: int, key: np.uint64) -> Opening:
    """Return an opening of `plies` random joint moves, drawn from the stream `key`. Its position is not the last one.

    Raise GameloreError if no such opening is found: all that were drawn end the match.
    """
    for attempt in range(ATTEMPTS):
        position, moves = game.start(), []
        for ply in range(plies):
            if _is_over(position):
                break
            moves.append(_joint_move(position, extend(key, attempt), ply))
            position = position.play(moves[-1])
        if not _is_over(position):
            return Opening(tuple(moves), tuple(sorted(position.facts, key=natural_order)))
    raise GameloreError(
        f"expected an opening of {plies} plies after which {game.name} goes on, got the end of the match {ATTEMPTS} "
        "times; choose fewer plies"
    )


def _is_over(position: Position) -> bool:
    """Return whether a match ends here: the position is terminal, or a role has no legal move."""
    return position.is_terminal or not all(position.legal.values())


def _joint_move(position: Position, key: np.ndarray, ply: int) -> tuple[str, ...]:
    draws = uniform(extend(key, np.arange(position.game.num_roles)), ply, WHICH)
    return tuple(moves[int(draw * len(moves))] for moves, draw in zip(position.legal.values(), draws, strict=True))


def sheet_from(sheet: Rulesheet, facts: Iterable[str]) -> str:
    """Return the text of a rulesheet whose first state has these facts, and whose other rules are those of `sheet`.

    If a rule asks for `init` in its body, as in `(<= (base ?fact) (init ?fact))`, it must still get the facts of the
    former first state. A relation of another name then takes the place of the former `init`.
    """
    former = _unused_name(sheet) if any(atom.name == INIT for rule in sheet.rules for atom in body_atoms(rule)) else ""
    first = [str(_atom(INIT, fact)) for fact in facts]
    lines: list[str] = []
    for rule in sheet.rules:
        if rule.head.name == INIT:
            lines += first
            first = []
            if not former:
                continue
        lines.append(str(_renamed(rule, former) if former else rule))
    return "\n".join([*first, *lines]) + "\n"


def _atom(relation: str, fact: str) -> Atom:
    return Atom(relation, (parse_term(fact),), relation, NOWHERE)


def _unused_name(sheet: Rulesheet) -> str:
    """Return a name that occurs nowhere in a rulesheet."""
    name, text = "former_init", str(sheet).lower()
    while name in text:
        name += "_"
    return name


def _renamed(rule: Rule, name: str) -> Rule:
    """Return a rule with `name` in place of the relation `init`."""

    def atom(old: Atom) -> Atom:
        return replace(old, name=name, spelling=name) if old.name == INIT else old

    def condition(old: Condition) -> Condition:
        match old:
            case Atom():
                return atom(old)
            case Not():
                return replace(old, condition=condition(old.condition))
            case Or():
                return replace(old, branches=tuple(map(condition, old.branches)))
            case And():
                return replace(old, parts=tuple(map(condition, old.parts)))
            case _:
                return old

    return replace(rule, head=atom(rule.head), body=tuple(map(condition, rule.body)))
