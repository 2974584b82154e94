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
Path = tuple[int, ...]  # in a term: the place in the atom, in its argument, ..
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

    def find(self, paths: tuple[Path, ...], terms: tuple) -> list[Term]:
        """The atoms that have these terms at these paths."""
        if paths not in self.indexes:
            self.indexes[paths] = index = {}
            for atom in self.atoms:
                index.setdefault(_subterms(atom, paths), []).append(atom)
        return self.indexes[paths].get(terms, [])[:]


NOTHING = Table()
Tables = dict[str, Table]


class Condition:
    """A literal of a body, read once: which of its variables are bound before it is the same whenever it is asked.

    fixed     constants and bound variables, at `paths` of the atom
    first     where the other variables stand first in an atom, and `again`, where they stand once more
    sizes     the numbers of arguments of the functions at some paths; names of functions are among `fixed`
    """

    def __init__(self, sign: str, pattern: Term, bound: set[str]) -> None:
        self.sign, self.pattern = sign, pattern
        parts = list(_parts(pattern)) if sign == "+" else []
        fixed = [(path, part) for path, part in parts if isinstance(part, str) and (part[0] != "?" or part in bound)]
        self.paths, self.fixed = tuple(path for path, _ in fixed), tuple(part for _, part in fixed)
        self.first: dict[str, Path] = {}
        self.again: list[tuple[Path, str]] = []
        for path, part in parts:
            if isinstance(part, str) and part[0] == "?" and part not in bound:
                if part in self.first:
                    self.again.append((path, part))
                else:
                    self.first[part] = path
        self.sizes = [(path, len(part)) for path, part in parts if isinstance(part, tuple)]

    def matches(self, binding: dict, known: Tables) -> Iterator[dict]:
        """Every longer binding with which an atom holds."""
        table = known.get(self.pattern[0], NOTHING)
        if not self.first:
            if _fill(self.pattern, binding) in table.atoms:
                yield binding
            return
        for atom in table.find(self.paths, tuple([binding.get(part, part) for part in self.fixed])):
            if all([_has_size(_at(atom, path), size) for path, size in self.sizes]):
                longer = binding | {name: _at(atom, path) for name, path in self.first.items()}
                if all([_at(atom, path) == longer[name] for path, name in self.again]):
                    yield longer


class Naive:
    """The game of a rulesheet. States are frozen sets of facts, a joint move is {role: move}."""

    def __init__(self, text: str) -> None:
        self.rules: dict[str, list[tuple[Term, tuple[Literal, ...]]]] = {}
        self.conditions: dict[tuple[Literal, ...], tuple[Condition, ...]] = {}
        for rule in syntax.parse(text).rules:
            for parts in product(*map(_branches, rule.body)):
                body = _ordered(chain(*parts))
                self.rules.setdefault(rule.head.name, []).append((_term(rule.head), body))
                self.conditions[body] = self.conditions.get(body) or _conditions(body)
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
        bodies = chain(*(body for name in group for _, body in self.rules[name]))
        is_recursive = any(sign == "+" and atom[0] in group for sign, atom in bodies)
        changed, is_first = True, True
        while changed and (is_recursive or is_first):
            changed = is_first = False
            for head, body in chain(*(self.rules[name] for name in group)):
                atoms = [_fill(head, binding) for binding in _solutions(self.conditions[body], {}, known, against)]
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


def _conditions(body: tuple[Literal, ...]) -> tuple[Condition, ...]:
    conditions, bound = [], set()
    for sign, pattern in body:
        conditions.append(Condition(sign, pattern, bound))
        bound |= _variables(pattern)
    return tuple(conditions)


def _solutions(body: tuple[Condition, ...], binding: dict, known: Tables, against: Tables) -> Iterator[dict]:
    """Every way to satisfy the body, given the binding so far."""
    if not body:
        yield binding
        return
    condition, rest = body[0], body[1:]
    if condition.sign == "+":
        for longer in condition.matches(binding, known):
            yield from _solutions(rest, longer, known, against)
        return
    pattern = _fill(condition.pattern, binding)
    if condition.sign == "-":
        holds = pattern not in against.get(pattern[0], NOTHING).atoms
    else:
        holds = (pattern[0] == pattern[1]) == (condition.sign == "=")
    if holds:
        yield from _solutions(rest, binding, known, against)


def _fill(pattern: Term, binding: dict[str, Term]) -> Term:
    if isinstance(pattern, str):
        return binding.get(pattern, pattern)
    return tuple([_fill(part, binding) for part in pattern])


def _parts(pattern: Term, path: Path = ()) -> Iterator[tuple[Path, Term]]:
    """All terms in a pattern with their paths, the pattern itself first."""
    yield path, pattern
    if isinstance(pattern, tuple):
        for i, part in enumerate(pattern):
            yield from _parts(part, (*path, i))


def _at(term: Term, path: Path) -> Term:
    """What stands at the path, None where there is nothing."""
    for i in path:
        if not isinstance(term, tuple) or i >= len(term):
            return None
        term = term[i]
    return term


def _has_size(term: Term, size: int) -> bool:
    return isinstance(term, tuple) and len(term) == size


def _subterms(term: Term, paths: tuple[Path, ...]) -> tuple:
    """What stands at the paths, None where there is nothing."""
    return tuple([_at(term, path) for path in paths])
