"""The same game in other words: every name another, or rules and conditions in another order. Neither changes play."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from evaluators import native_game, reasoned_game
from gamelore.analysis.perft import levels
from gamelore.game.engines import States
from gamelore.game.game import Game
from gamelore.gdl import syntax

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

    def condition(self, condition: syntax.Condition) -> syntax.Condition:
        place = condition.location
        match condition:
            case syntax.Atom():
                return self.atom(condition)
            case syntax.Distinct(left, right):
                return syntax.Distinct(self.term(left), self.term(right), place)
            case syntax.Not(inner):
                return syntax.Not(self.condition(inner), place)
            case syntax.Or(parts) | syntax.And(parts):
                return type(condition)(tuple(map(self.condition, parts)), place)

    def atom(self, atom: syntax.Atom) -> syntax.Atom:
        name = self.relations.get(atom.name, atom.spelling)
        return syntax.Atom(name.lower(), tuple(map(self.term, atom.args)), name, atom.location)

    def term(self, term: syntax.Term) -> syntax.Term:
        if isinstance(term, syntax.Variable):
            return syntax.Variable(self.variables[term.name], term.location)
        name = self.terms.get(term.name, term.spelling)
        if isinstance(term, syntax.Constant):
            return syntax.Constant(name.lower(), name, term.location)
        return syntax.Function(name.lower(), tuple(map(self.term, term.args)), name, term.location)

    def sheet(self, text: str) -> str:
        """The rulesheet with its new names."""
        rules = syntax.parse(text).rules
        return "\n".join(
            str(syntax.Rule(self.atom(rule.head), tuple(map(self.condition, rule.body)), rule.location, rule.arrow))
            for rule in rules
        )

    def text(self, term: str) -> str:
        """A fact or a move with its new names, in lower case."""
        return str(self.term(syntax.parse_term(term))).lower()


def scrambled(text: str, random: Random) -> Names:
    """New names at random for everything in a rulesheet."""
    rules = syntax.parse(text).rules
    terms = [term.name for rule in rules for term in syntax.named_terms(rule)]
    atoms = [s.name for rule in rules for s in syntax.sentences(rule) if isinstance(s, syntax.Atom)]
    variables = [v.name for rule in rules for v in syntax.term_variables(*syntax.sentences(rule))]
    return Names(
        _renaming(set(terms) - _possible_goals(rules), random),
        _renaming(set(atoms) - syntax.KEYWORD_ARITY.keys(), random),
        {old: new.lower() for old, new in _renaming(set(variables), random).items()},
    )


def _possible_goals(rules: Sequence[syntax.Rule]) -> set[str]:
    """Numbers that goals are written with; any number where a goal is a variable."""
    values = [rule.head.args[1] for rule in rules if rule.head.name == "goal"]
    if all(isinstance(value, syntax.Constant) for value in values):
        return {str(value).lower() for value in values}
    return {term.name for rule in rules for term in syntax.named_terms(rule) if term.name.isdecimal()}


def _renaming(names: Iterable[str], random: Random) -> dict[str, str]:
    new: dict[str, str] = {}
    forbidden = {*syntax.FORM}
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
        str(syntax.Rule(rule.head, _mixed(rule.body, random), rule.location, rule.arrow))
        for rule in syntax.parse(text).rules
    ]
    return "\n".join(random.sample(rules, len(rules)))


def _mixed(conditions: Sequence[syntax.Condition], random: Random) -> tuple[syntax.Condition, ...]:
    return tuple(_inside(condition, random) for condition in random.sample(conditions, len(conditions)))


def _inside(condition: syntax.Condition, random: Random) -> syntax.Condition:
    match condition:
        case syntax.Not(inner):
            return syntax.Not(_inside(inner, random), condition.location)
        case syntax.Or(parts) | syntax.And(parts):
            return type(condition)(_mixed(parts, random), condition.location)
        case _:
            return condition


ENGINES: dict[str, Callable[[syntax.Rulesheet], Game]] = {"native": native_game, "reasoner": reasoned_game}


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
    plain, other = (ENGINES[engine](syntax.parse(sheet)) for sheet in (text, names.sheet(text)))
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
    _assert_same("counts", *(counts(native_game(syntax.parse(sheet)), most) for sheet in (text, other)))


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
