"""Which terms can stand where: for every argument of every relation a set of terms that holds all it can ever get.

The sets are found by letting terms flow through the rules until nothing is new. Conditions on several arguments at
once are forgotten, negation is ignored, and terms are told apart argument by argument: (cell 1 a) and (cell 2 b) give
(cell 1 b) too. From the sets come upper bounds for the size of a relation and estimates for that of a join.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, prod

from .clauses import Clause, Signature, signature
from .gdl import Atom, Constant, Term, Variable
from .relations import variables_of
from .statics import Statics

MAX_DEPTH = 8  # of nested functions that are told apart; a term that is deeper may be any
FLOWS_TO = {("init", 1): ("true", 1), ("next", 1): ("true", 1), ("legal", 2): ("does", 2)}


@dataclass(slots=True)
class Terms:
    """A set of ground terms: constants, and functions with a set for each argument; or any term at all."""

    constants: set[str] = field(default_factory=set)
    functions: dict[Signature, list[Terms]] = field(default_factory=dict)
    any: bool = False

    @property
    def size(self) -> float:
        """How many terms there are at most."""
        if self.any:
            return inf
        return len(self.constants) + sum(prod(part.size for part in parts) for parts in self.functions.values())

    def __bool__(self) -> bool:
        return self.any or bool(self.constants) or bool(self.functions)

    def add(self, other: Terms, depth: int = 0) -> bool:
        """Takes in all of another set; whether that was news."""
        if self.any:
            return False
        if other.any or depth > MAX_DEPTH:
            self.any = True
            return True
        before = len(self.constants)
        self.constants |= other.constants
        changed = len(self.constants) > before
        for name, parts in other.functions.items():
            if name not in self.functions:
                self.functions[name] = [Terms() for _ in parts]
                changed = True
            for mine, theirs in zip(self.functions[name], parts, strict=True):
                changed |= mine.add(theirs, depth + 1)
        return changed

    def common(self, other: Terms) -> Terms:
        """The terms in both sets."""
        if self.any or other.any or self is other:
            return other if self.any else self
        functions = {}
        for name in self.functions.keys() & other.functions.keys():
            parts = [a.common(b) for a, b in zip(self.functions[name], other.functions[name], strict=True)]
            if all(parts):
                functions[name] = parts
        return Terms(self.constants & other.constants, functions)


ANYTHING = Terms(any=True)


def _match(term: Term, terms: Terms, found: dict[str, Terms]) -> bool:
    """Narrows the variables of a term that must be one of `terms`; false where it cannot be."""
    if isinstance(term, Variable):
        found[term.name] = found[term.name].common(terms) if term.name in found else terms
        return bool(found[term.name])
    if isinstance(term, Constant):
        return terms.any or term.name in terms.constants
    parts = [ANYTHING] * len(term.args) if terms.any else terms.functions.get((term.name, len(term.args)))
    return parts is not None and all(_match(inner, part, found) for inner, part in zip(term.args, parts, strict=True))


def _instances(term: Term, variables: Mapping[str, Terms]) -> Terms:
    """All instances of a term."""
    if isinstance(term, Variable):
        return variables.get(term.name, ANYTHING)
    if isinstance(term, Constant):
        return Terms({term.name})
    return Terms(functions={(term.name, len(term.args)): [_instances(inner, variables) for inner in term.args]})


class Domains:
    """The set of every argument of every relation that can hold at all, and sizes that follow from them."""

    def __init__(self, rules: Sequence[Clause], known: Statics) -> None:
        self.of: dict[Signature, list[Terms]] = {}
        self.clauses_of: dict[Signature, list[Clause]] = {}
        self._sizes: dict[Signature, float] = dict(known.sizes)
        self._rows = known.rows
        self._columns = {
            name: [{row[place] for row in rows} for place in range(name[1])] for name, rows in known.rows.items()
        }
        readers: dict[Signature, list[Clause]] = {}
        for rule in rules:
            self.clauses_of.setdefault(signature(rule.head), []).append(rule)
            for atom in rule.positive:
                readers.setdefault(signature(atom), []).append(rule)
        self._flow(rules, readers)

    def _flow(self, rules: Sequence[Clause], readers: Mapping[Signature, list[Clause]]) -> None:
        waiting = {id(rule): rule for rule in rules if rule.positive}
        for rule in rules:
            if not rule.positive:
                self._add(rule.head, {})
        while waiting:
            rule = waiting.pop(next(iter(waiting)))
            variables = self.variables(rule.positive)
            for name in self._add(rule.head, variables) if variables is not None else ():
                waiting.update((id(reader), reader) for reader in readers.get(name, ()))

    def _add(self, head: Atom, variables: Mapping[str, Terms]) -> list[Signature]:
        """Adds the instances of a head; gives the relations that this changes."""
        instances = [_instances(term, variables) for term in head.args]
        changed = []
        name: Signature | None = signature(head)
        while name:
            new = name not in self.of
            known = self.of.setdefault(name, [Terms() for _ in instances])
            if any([mine.add(theirs) for mine, theirs in zip(known, instances, strict=True)]) or new:
                changed.append(name)
            name = FLOWS_TO.get(name)
        return changed

    def variables(self, atoms: Sequence[Atom]) -> dict[str, Terms] | None:
        """What the variables of atoms can be where all of them hold; None where one of them never does."""
        found: dict[str, Terms] = {}
        for atom in atoms:
            known = self.of.get(signature(atom))
            if known is None or not all(
                _match(term, terms, found) for term, terms in zip(atom.args, known, strict=True)
            ):
                return None
        return found if all(self._narrow(atom, found) for atom in atoms) else None

    def _narrow(self, atom: Atom, found: dict[str, Terms]) -> bool:
        """Leaves the variables of an atom only what some row of its relation gives them; false where none fits."""
        rows = self._rows.get(signature(atom))
        if rows is None or len(atom.args) < 2:
            return True
        columns = self._columns[signature(atom)]
        sets = [_instances(term, found) for term in atom.args]
        for place, terms in enumerate(sets):
            if not (terms.any or terms.functions or columns[place] <= terms.constants):
                rows = [row for row in rows if row[place] is None or row[place] in terms.constants]
        if len(rows) < len(self._rows[signature(atom)]):
            columns = [{row[place] for row in rows} for place in range(len(atom.args))]
        for term, terms, column in zip(atom.args, sets, columns, strict=True):
            if isinstance(term, Variable) and None not in column and len(column) < terms.size:
                found[term.name] = Terms({name for name in column if name is not None})
        return bool(rows)

    def declare(self, atom: Atom, positive: Sequence[Atom]) -> None:
        """Adds a new relation, whose atoms are instances of this one where all of `positive` hold."""
        estimate = Estimate(self, positive)
        if estimate.variables is not None:
            name = signature(atom)
            self.of[name] = [_instances(term, estimate.variables) for term in atom.args]
            self._sizes[name] = estimate.instances(atom, positive)

    def product(self, name: Signature) -> float:
        """The size of a relation if every argument could go with every other."""
        return prod(terms.size for terms in self.of[name]) if name in self.of else 0.0

    def size(self, name: Signature) -> float:
        """How many atoms a relation can have, by its arguments and, for one that is not recursive, its clauses."""
        if name not in self._sizes:
            self._sizes[name] = self.product(name)  # what a recursive clause finds
            clauses = self.clauses_of.get(name, ())
            estimates = (Estimate(self, rule.positive).instances(rule.head, rule.positive) for rule in clauses)
            self._sizes[name] = min(self._sizes[name], sum(estimates) if clauses else inf)
        return self._sizes[name]


class Estimate:
    """How many instances conditions of one clause have, by the sizes of their variables' sets."""

    def __init__(self, domains: Domains, positive: Sequence[Atom]) -> None:
        self.domains = domains
        self.variables = domains.variables(positive)

    def join(self, atoms: Iterable[Atom], part: Iterable[str] = (), part_size: float = inf) -> float:
        """Instances of atoms that must all hold, beside a part of the join with these variables and this size.

        The atoms are taken in the order in which each multiplies least, as if all arguments were independent.
        """
        if self.variables is None:
            return 0.0
        known, left = set(part), list(atoms)
        rows = max(1.0, min(part_size, self._product(known)))
        while left:
            factors = [self.factor(atom, known) for atom in left]
            place = min(range(len(left)), key=factors.__getitem__)
            rows = max(1.0, rows * factors[place])
            known |= variables_of_all(left.pop(place))
        return rows

    def instances(self, head: Atom, atoms: Iterable[Atom]) -> float:
        """Instances of a head, which has no variables but those of the atoms that derive it."""
        if self.variables is None:
            return 0.0
        return min(self._product(variables_of_all(head)), self.join(atoms))

    def _product(self, names: Iterable[str]) -> float:
        assert self.variables is not None
        return prod(self.variables[name].size if name in self.variables else inf for name in names)

    def factor(self, atom: Atom, known: set[str]) -> float:
        """Instances of an atom for each instance of the known variables."""
        if self.variables is None:
            return 0.0
        factor = self._product(variables_of_all(atom) - known)
        if factor <= 1:
            return factor
        bound = prod(max(1.0, terms.size) for terms in self._bound_arguments(atom, known))
        return min(factor, self.domains.size(signature(atom)) / bound)

    def _bound_arguments(self, atom: Atom, known: set[str]) -> Iterator[Terms]:
        for term, terms in zip(atom.args, self.domains.of[signature(atom)], strict=True):
            if variables_of(term) <= known:
                yield terms


def variables_of_all(atom: Atom) -> set[str]:
    """The names of the variables in an atom."""
    return {name for term in atom.args for name in variables_of(term)}
