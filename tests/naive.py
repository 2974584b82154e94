"""A naive evaluator of GDL: the third opinion of the tests, which shares only the parser with the package.

Rules are evaluated bottom up, one group of mutually recursive relations after the other, each until nothing new comes
out, and only the groups that a question needs. A negation inside a group (`goal` by `not goal`) is settled by the
alternating fixpoint, which gives the perfect model wherever there is one. `base` and `input` are ignored. Everything
is text in lower case: facts `(cell 1 1 b)`, moves `noop`.

Inside, a term is a string, a variable with its question mark, or a tuple (name, argument, ..); so is an atom, always as
a tuple: `(true (cell 1 ?y b))` is ("true", ("cell", "1", "?y", "b")).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain, product
from typing import Any

from gamelore.gdl import syntax

Term = Any  # str, or tuple of terms
Literal = tuple[str, Term]  # + the atom holds, - it does not, = and ! the two terms are equal or differ
QUESTIONS = ("role", "init", "legal", "next", "terminal", "goal")


class Table:
    """The atoms of one relation in the order of their derivation, found by what stands at given paths."""

    def __init__(self, atoms: Iterable[Term] = ()) -> None:
        self.atoms = dict.fromkeys(atoms)
        self.indexes: dict[tuple, dict[tuple, list[Term]]] = {}

    def add(self, atom: Term) -> bool:
        new = atom not in self.atoms
        if new:
            self.atoms[atom] = None
            for paths, index in self.indexes.items():
                index.setdefault(_subterms(atom, paths), []).append(atom)
        return new

    def find(self, pattern: Term) -> list[Term]:
        """The atoms that agree with the pattern's constants."""
        paths = tuple(_constants(pattern))
        if paths not in self.indexes:
            self.indexes[paths] = index = {}
            for atom in self.atoms:
                index.setdefault(_subterms(atom, paths), []).append(atom)
        return self.indexes[paths].get(_subterms(pattern, paths), [])[:]


NOTHING = Table()
Tables = dict[str, Table]


class Naive:
    """The game of a rulesheet. States are frozen sets of facts, a joint move is {role: move}."""

    def __init__(self, text: str) -> None:
        self.rules: dict[str, list[tuple[Term, tuple[Literal, ...]]]] = {}
        for rule in syntax.parse(text).rules:
            for parts in product(*map(_branches, rule.body)):
                self.rules.setdefault(rule.head.name, []).append((_term(rule.head), _ordered(chain(*parts))))
        self.reach = {name: self._reach(name) for name in self.rules}
        groups = {frozenset(b for b in used if a in self.reach.get(b, ())) for a, used in self.reach.items()}
        self.groups = sorted(groups, key=lambda group: len(self.reach[min(group)]))  # the used before the users
        self.static: Tables = {}
        for name in {name for question in QUESTIONS for name in self.reach.get(question, ())}:
            if name in self.reach and not self.reach[name] & {"true", "does"}:
                self._ask(name, self.static)
        self.roles = [_text(role) for _, role in self._ask("role", self.static)]
        self.initial = frozenset(_text(fact) for _, fact in self._ask("init", self.static))
        self._last: tuple[frozenset[str], Tables] = (frozenset(), {})

    def legal(self, state: frozenset[str]) -> dict[str, list[str]]:
        found = self._ask("legal", self._at(state))
        return {role: sorted(_text(move) for _, r, move in found if _text(r) == role) for role in self.roles}

    def next(self, state: frozenset[str], moves: Mapping[str, str]) -> frozenset[str]:
        does = Table(("does", _read(role), _read(move)) for role, move in moves.items())
        return frozenset(_text(fact) for _, fact in self._ask("next", {**self._at(state), "does": does}))

    def terminal(self, state: frozenset[str]) -> bool:
        return bool(self._ask("terminal", self._at(state)))

    def goals(self, state: frozenset[str]) -> dict[str, int | None]:
        """The goal of each role, None where not exactly one value holds."""
        found = self._ask("goal", self._at(state))
        values = {
            role: {int(value) for _, r, value in found if _text(r) == role and _is_goal(value)} for role in self.roles
        }
        return {role: min(given) if len(given) == 1 else None for role, given in values.items()}

    def _at(self, state: frozenset[str]) -> Tables:
        """What is known about a state; that of the last one is kept, since one asks several things about it."""
        if not self._last[1] or self._last[0] != state:
            self._last = (state, {**self.static, "true": Table(("true", _read(fact)) for fact in state)})
        return self._last[1]

    def _reach(self, name: str) -> set[str]:
        """The relations that this one rests on, itself included."""
        found, new = {name}, [name]
        while new:
            bodies = [body for _, body in self.rules.get(new.pop(), ())]
            more = {atom[0] for sign, atom in chain(*bodies) if sign in "+-"} - found
            found |= more
            new += more
        return found

    def _ask(self, relation: str, tables: Tables) -> Iterable[Term]:
        """The atoms of a relation, after evaluating what it rests on and `tables` lacks."""
        for group in self.groups:
            if group <= self.reach.get(relation, set()) and not group <= tables.keys():
                tables.update(self._evaluate(group, tables))
        return tables.get(relation, NOTHING).atoms

    def _evaluate(self, group: frozenset[str], tables: Tables) -> Tables:
        """What must hold (lower) and what may hold (upper), drawn together until both stay and agree."""
        bodies = [body for name in group for _, body in self.rules[name]]
        upper = self._least(group, tables, {name: NOTHING for name in group})
        if not any(sign == "-" and atom[0] in group for sign, atom in chain(*bodies)):
            return upper
        while True:
            lower = self._least(group, tables, upper)
            before, upper = upper, self._least(group, tables, lower)
            if all(before[name].atoms.keys() == upper[name].atoms.keys() for name in group):
                assert all(lower[name].atoms.keys() == upper[name].atoms.keys() for name in group), "no perfect model"
                return lower

    def _least(self, group: frozenset[str], tables: Tables, denied: Tables) -> Tables:
        """The least fixpoint of the group's rules, where `not` reads the group's own relations from `denied`."""
        new = {name: Table() for name in group}
        known, against = {**tables, **new}, {**tables, **denied}
        changed = True
        while changed:
            changed = False
            for head, body in chain(*(self.rules[name] for name in group)):
                atoms = [_fill(head, binding) for binding in _solutions(body, {}, known, against)]
                changed |= any([new[head[0]].add(atom) for atom in atoms])
        return new


def _is_goal(value: Term) -> bool:
    """Whether a term is a whole number that fits into 16 bits; all else is no goal."""
    return isinstance(value, str) and bool(re.fullmatch("0*[0-9]{1,5}", value)) and int(value) < 1 << 15


@lru_cache(maxsize=100_000)
def _read(text: str) -> Term:
    return _term(syntax.parse_term(text))


def _term(term: syntax.Term | syntax.Atom) -> Term:
    if isinstance(term, syntax.Function | syntax.Atom):
        return (term.name, *map(_term, term.args))
    return str(term).lower()


def _text(term: Term) -> str:
    return term if isinstance(term, str) else f"({' '.join(map(_text, term))})"


def _branches(condition: syntax.Condition, holds: bool = True) -> list[list[Literal]]:
    """A condition, or its negation, as a disjunction of conjunctions."""
    if isinstance(condition, syntax.Atom):
        return [[("+" if holds else "-", _term(condition))]]
    if isinstance(condition, syntax.Distinct):
        return [[("!" if holds else "=", (_term(condition.left), _term(condition.right)))]]
    if isinstance(condition, syntax.Not):
        return _branches(condition.condition, not holds)
    either = isinstance(condition, syntax.Or)
    parts = [_branches(part, holds) for part in (condition.branches if either else condition.parts)]
    return list(chain(*parts)) if either == holds else [list(chain(*choice)) for choice in product(*parts)]


def _ordered(body: Iterable[Literal]) -> tuple[Literal, ...]:
    """Tests as soon as their variables are bound; else the positive atom with the fewest free variables."""
    left, ordered, bound = list(body), [], set()
    while left:
        free = [len(_variables(atom) - bound) for _, atom in left]
        ready = [(sign == "+", free[i], i) for i, (sign, _) in enumerate(left) if sign == "+" or not free[i]]
        assert ready, f"an unsafe variable in one of {left}"
        ordered.append(left.pop(min(ready)[2]))
        bound |= _variables(ordered[-1][1])
    return tuple(ordered)


def _variables(term: Term) -> set[str]:
    if isinstance(term, str):
        return {term} if term.startswith("?") else set()
    return set().union(*map(_variables, term))


def _solutions(body: tuple[Literal, ...], binding: dict, known: Tables, against: Tables) -> Iterator[dict]:
    """Every way to satisfy the body, given the binding so far."""
    if not body:
        yield binding
        return
    sign, pattern = body[0][0], _fill(body[0][1], binding)
    if sign == "+":
        for atom in known.get(pattern[0], NOTHING).find(pattern):
            longer = dict(binding)
            if _match(pattern, atom, longer):
                yield from _solutions(body[1:], longer, known, against)
    elif sign == "-" and pattern in against.get(pattern[0], NOTHING).atoms:
        return
    elif sign == "-" or (pattern[0] == pattern[1]) == (sign == "="):
        yield from _solutions(body[1:], binding, known, against)


def _match(pattern: Term, term: Term, binding: dict[str, Term]) -> bool:
    """Extends the binding so that pattern becomes term; False (and a spoilt binding) where that cannot be."""
    if isinstance(pattern, str):
        return (binding.setdefault(pattern, term) if pattern.startswith("?") else pattern) == term
    same_size = isinstance(term, tuple) and len(pattern) == len(term)
    return same_size and all(_match(p, t, binding) for p, t in zip(pattern, term, strict=True))


def _fill(pattern: Term, binding: dict[str, Term]) -> Term:
    if isinstance(pattern, str):
        return binding.get(pattern, pattern)
    return tuple([_fill(part, binding) for part in pattern])


def _constants(pattern: Term, path: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """The paths of all constants in a pattern."""
    if isinstance(pattern, tuple):
        for i, part in enumerate(pattern):
            yield from _constants(part, (*path, i))
    elif not pattern.startswith("?"):
        yield path


def _subterms(term: Term, paths: tuple[tuple[int, ...], ...]) -> tuple:
    """What stands at the paths, None where there is nothing."""
    found = []
    for path in paths:
        part = term
        for i in path:
            part = part[i] if isinstance(part, tuple) and i < len(part) else None
        found.append(part)
    return tuple(found)
