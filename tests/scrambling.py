"""The same game in other words: every name another, or rules and conditions in another order. Neither changes play."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from evaluators import native_game, reasoned_game
from gamelore.rules import gdl, relations
from gamelore.rules.engine import States
from gamelore.rules.game import Game
from gamelore.rules.perft import levels

Rename = Mapping[str, str]
LETTERS = "abcxyzABCXYZ0189_+-'<=>.é%#\"@\\{}[]|&!*~^$:,?"
# Names that other layers use for themselves: clingo's words, numbered names, relations that rewriting makes.
TAKEN = ("c0", "r0", "r1", "state", "State", "V1", "_", "#show", "part:1", "part:2", "wanted:p", "always:f", "-1")


@dataclass(frozen=True)
class Names:
    """New names, by the old ones in lower case. Keywords stay, and numbers where they may be goals."""

    terms: Rename
    relations: Rename
    variables: Rename

    def condition(self, condition: gdl.Condition) -> gdl.Condition:
        place = condition.location
        match condition:
            case gdl.Atom():
                return self.atom(condition)
            case gdl.Distinct(left, right):
                return gdl.Distinct(self.term(left), self.term(right), place)
            case gdl.Not(inner):
                return gdl.Not(self.condition(inner), place)
            case gdl.Or(parts) | gdl.And(parts):
                return type(condition)(tuple(map(self.condition, parts)), place)

    def atom(self, atom: gdl.Atom) -> gdl.Atom:
        name = self.relations.get(atom.name, atom.spelling)
        return gdl.Atom(name.lower(), tuple(map(self.term, atom.args)), name, atom.location)

    def term(self, term: gdl.Term) -> gdl.Term:
        if isinstance(term, gdl.Variable):
            return gdl.Variable(self.variables[term.name], term.location)
        name = self.terms.get(term.name, term.spelling)
        if isinstance(term, gdl.Constant):
            return gdl.Constant(name.lower(), name, term.location)
        return gdl.Function(name.lower(), tuple(map(self.term, term.args)), name, term.location)

    def sheet(self, text: str) -> str:
        """The rulesheet with its new names."""
        rules = gdl.parse(text).rules
        return "\n".join(
            str(gdl.Rule(self.atom(rule.head), tuple(map(self.condition, rule.body)), rule.location, rule.arrow))
            for rule in rules
        )

    def text(self, term: str) -> str:
        """A fact or a move with its new names, in lower case."""
        return str(self.term(gdl.parse_term(term))).lower()


def scrambled(text: str, random: Random) -> Names:
    """New names at random for everything in a rulesheet."""
    rules = gdl.parse(text).rules
    terms = [term.name for rule in rules for term in relations.named_terms(rule)]
    atoms = [s.name for rule in rules for s in relations.sentences(rule) if isinstance(s, gdl.Atom)]
    variables = [v.name for rule in rules for v in relations.variables(*relations.sentences(rule))]
    return Names(
        _renaming(set(terms) - _possible_goals(rules), random),
        _renaming(set(atoms) - gdl.KEYWORD_ARITY.keys(), random),
        {old: new.lower() for old, new in _renaming(set(variables), random).items()},
    )


def _possible_goals(rules: Sequence[gdl.Rule]) -> set[str]:
    """Numbers that goals are written with; any number where a goal is a variable."""
    values = [rule.head.args[1] for rule in rules if rule.head.name == "goal"]
    if all(isinstance(value, gdl.Constant) for value in values):
        return {str(value).lower() for value in values}
    return {term.name for rule in rules for term in relations.named_terms(rule) if term.name.isdecimal()}


def _renaming(names: Iterable[str], random: Random) -> dict[str, str]:
    new: dict[str, str] = {}
    forbidden = {*gdl.FORM}
    for name in sorted(names):
        fresh = _name(random)
        while fresh.lower() in forbidden or fresh.startswith("?") or fresh.isdecimal():
            fresh = _name(random)
        forbidden.add(fresh.lower())
        new[name] = fresh
    return new


def _name(random: Random) -> str:
    letters = "".join(random.choice(LETTERS) for _ in range(random.randint(1, 6)))
    return random.choice((letters, letters, letters, letters, random.choice(TAKEN)))


def shuffled(text: str, random: Random) -> str:
    """The rulesheet with its rules, their conditions and the parts of these in another order."""
    rules = [
        str(gdl.Rule(rule.head, _mixed(rule.body, random), rule.location, rule.arrow)) for rule in gdl.parse(text).rules
    ]
    return "\n".join(random.sample(rules, len(rules)))


def _mixed(conditions: Sequence[gdl.Condition], random: Random) -> tuple[gdl.Condition, ...]:
    return tuple(_inside(condition, random) for condition in random.sample(conditions, len(conditions)))


def _inside(condition: gdl.Condition, random: Random) -> gdl.Condition:
    match condition:
        case gdl.Not(inner):
            return gdl.Not(_inside(inner, random), condition.location)
        case gdl.Or(parts) | gdl.And(parts):
            return type(condition)(_mixed(parts, random), condition.location)
        case _:
            return condition


ENGINES: dict[str, Callable[[gdl.Rulesheet], Game]] = {"native": native_game, "reasoner": reasoned_game}


def counts(game: Game, most: int, deepest: int = 6) -> list[tuple[int, int, int]]:
    """Sequences, complete matches and positions depth by depth, as far as about `most` sequences."""
    branches = int(game.legal(game.initial[None]).by_role(game.num_roles)[1].prod())
    found: list[tuple[int, int, int]] = []
    for level in levels(game):
        found.append((level.sequences, level.complete, level.positions))
        if level.sequences * branches > most or level.depth == deepest:
            break
    return found


def assert_names_do_not_matter(text: str, names: Names, engine: str = "native", most: int = 20_000) -> None:
    """The renamed game has the same counts, and along a random match the same facts and moves in the same order."""
    plain, other = (ENGINES[engine](gdl.parse(sheet)) for sheet in (text, names.sheet(text)))
    _assert_same("roles", list(map(names.text, plain.roles)), other.roles)
    _assert_same("counts", counts(plain, most), counts(other, most))
    states = [plain.initial[None], other.initial[None]]
    random = Random(0)
    for _ in range(20):
        facts = sorted(map(names.text, plain.facts(states[0][0])))
        _assert_same("facts", facts, sorted(fact.lower() for fact in other.facts(states[1][0])))
        moves, others = _legal(plain, states[0]), _legal(other, states[1])
        for own, own_of_other in zip(moves, others, strict=True):
            _assert_same("moves", list(map(names.text, own)), own_of_other)
        if not all(moves):
            break
        chosen = [random.randrange(len(own)) for own in moves]
        states = [_after(plain, states[0], moves, chosen), _after(other, states[1], others, chosen)]


def assert_order_does_not_matter(text: str, other: str, most: int = 20_000) -> None:
    """The counts of two sheets are the same."""
    _assert_same("counts", *(counts(native_game(gdl.parse(sheet)), most) for sheet in (text, other)))


def _assert_same(what: str, plain: Sequence[object], other: Sequence[object]) -> None:
    got = [item.lower() if isinstance(item, str) else item for item in other]
    assert got == list(plain), f"other {what}: expected {list(plain)}, got {got}"


def _legal(game: Game, state: States) -> list[list[str]]:
    legal = game.legal(state)
    parts = np.split(legal.actions, legal.offsets[1:-1])
    return [[game.move_text(role, int(action)) for action in part] for role, part in enumerate(parts)]


def _after(game: Game, state: States, moves: list[list[str]], chosen: list[int]) -> States:
    joint = [game.action(role, own[place]) for role, (own, place) in enumerate(zip(moves, chosen, strict=True))]
    return game.next(state, np.array([joint], np.int32))
