"""Whether conditions can hold together in a state that play reaches: a search for a contradiction.

Conditions over variables are closed under the equalities that must hold, which is the chase of Maier, Mendelzon and
Sagiv (1979): a role plays one move, of some facts at most one holds, an atom of a known relation is one of its rows.
What then is still open is split into cases: an atom into the bodies of its clauses, a move into the ways in which it is
legal. Conditions are refuted where every case ends in a contradiction. That none was found says nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple, TypeAlias

from .clauses import Clause, Literal, Signature, equated, signature, unfolded, without_comparisons
from .gdl import NOWHERE, Atom, Constant, Distinct, Function, Term, Variable
from .statics import Row, Statics
from .stratification import Dependencies

NOTHING = Atom("", (), "", NOWHERE)  # the head of conditions that derive nothing
PLAYED = "does legally"  # no name of a sheet has a space
MAX_DEPTH = 12  # of cases within cases
MAX_CASES = 2_000  # of one question
MAX_ROWS = 4  # of a known relation that are taken one by one

Equality: TypeAlias = tuple[Term, Term]


class Group(NamedTuple):
    """Facts of one shape with constants in some places: (cell ?x ?y wk) is `(("cell", 3), ((2, "wk"),))`."""

    fact: Signature
    fixed: tuple[tuple[int, str], ...] = ()

    def holds(self, fact: Term) -> bool:
        """Whether all instances of a term are in the group."""
        return (
            isinstance(fact, Function)
            and (fact.name, len(fact.args)) == self.fact
            and all(isinstance(term := fact.args[place], Constant) and term.name == name for place, name in self.fixed)
        )

    def pattern(self) -> Function:
        """The facts as one term, with a variable that no sheet can have, for its space, in every place that is free."""
        name, arity = self.fact
        fixed = dict(self.fixed)
        terms = (
            _constant(fixed[place]) if place in fixed else Variable(f"at {place}", NOWHERE) for place in range(arity)
        )
        return Function(name, tuple(terms), name, NOWHERE)


class Chase:
    """Refutes conditions by the rules, by known relations, and by groups of which at most one fact holds.

    cases: how many may be looked at for all questions together, taken up or not; after that, nothing more is refuted.
    `used` collects the groups that were relied on.
    """

    def __init__(
        self, rules: Sequence[Clause], known: Statics, groups: Collection[Group] = (), cases: int = 40_000
    ) -> None:
        self.groups = sorted(groups)
        self.used: set[Group] = set()
        self.rows = {name: rows for name, rows in known.rows.items() if all(None not in row for row in rows)}
        self.cases_left, self._cases_left_now = cases, 0
        self._index: dict[tuple[Signature, tuple[int, ...]], dict[Row, list[Row]]] = {}
        self._keys: dict[tuple[Signature, tuple[int, ...]], bool] = {}
        self.clauses_of: dict[Signature, list[Clause]] = {}
        for rule in rules:
            self.clauses_of.setdefault(signature(rule.head), []).append(rule)
        self.recursive = Dependencies(rules).recursive()

    def refutes(self, conditions: Iterable[Literal]) -> bool:
        """Whether the conditions are found never to hold together."""
        self._cases_left_now = given = min(MAX_CASES, self.cases_left)
        refuted = self._refuted(Clause(NOTHING, tuple(conditions), NOWHERE), MAX_DEPTH)
        self.cases_left -= given - self._cases_left_now
        return refuted

    def _refuted(self, conditions: Clause, depth: int) -> bool:
        if self._cases_left_now <= 0:
            return False
        self._cases_left_now -= 1
        closed = self._closed(_with_legal(conditions))
        if closed is None:
            return True
        cases = self._cases(closed) if depth else None
        return cases is not None and all(self._refuted(case, depth - 1) for case in cases)

    # ---- equalities and contradictions ---------------------------------------------------------------------------

    def _closed(self, conditions: Clause) -> Clause | None:
        """The conditions with all equalities put in; None for a contradiction."""
        current = self._shorter(conditions)
        while current is not None:
            if self._contradicts(current):
                return None
            equality = next(self._equalities(current), None)
            if equality is None:
                return current
            put_in = equated(current, *equality)
            current = put_in and self._shorter(put_in)
        return None

    def _shorter(self, conditions: Clause) -> Clause | None:
        """Without what is said twice or always holds; None for a comparison that never does."""
        body = dict.fromkeys(conditions.body)
        open_ = (literal for literal in body if not (literal.positive and self._always(literal.sentence)))
        return without_comparisons(Clause(NOTHING, tuple(open_), NOWHERE))

    def _equalities(self, conditions: Clause) -> Iterator[Equality]:
        """Pairs of terms that differ as they are written and must be the same."""
        atoms = conditions.positive
        for left, right in combinations((atom for atom in atoms if atom.name == PLAYED), 2):
            if left.args[0] == right.args[0]:
                yield from _different(left.args, right.args)
        facts = [atom.args[0] for atom in atoms if atom.name == "true"]
        for group in self.groups:
            mine = [fact for fact in facts if group.holds(fact)]
            for pair in _different(mine[:-1], mine[1:]):
                self.used.add(group)
                yield pair
        yield from self._by_rows([atom for atom in atoms if signature(atom) in self.rows])

    def _by_rows(self, known: Sequence[Atom]) -> Iterator[Equality]:
        """What follows where one row fits an atom, or two atoms of a relation have so much in common that one does."""
        for atom in known:
            rows = self._matching(atom)
            if rows is not None and len(rows) == 1:
                yield from _different(atom.args, _terms(rows[0]))
        for left, right in combinations(known, 2):
            if signature(left) == signature(right) and self._same_row(left, right):
                yield from _different(left.args, right.args)

    def _same_row(self, left: Atom, right: Atom) -> bool:
        """Whether no two rows of a known relation agree where these two atoms do."""
        common = tuple(place for place, term in enumerate(left.args) if term == right.args[place])
        key = signature(left), common
        if key not in self._keys:
            rows = self.rows[signature(left)]
            self._keys[key] = len({tuple(row[place] for place in common) for row in rows}) == len(rows) > 0
        return self._keys[key]

    def _contradicts(self, conditions: Clause) -> bool:
        positive = set(conditions.positive)
        atoms = ((positive, atom) for positive, atom in conditions.body if isinstance(atom, Atom))
        return any(self._never(atom) if holds else atom in positive or self._always(atom) for holds, atom in atoms)

    def _never(self, atom: Atom) -> bool:
        name = signature(atom)
        given = atom.name in ("true", PLAYED)
        return self._matching(atom) == [] or not (given or name in self.clauses_of)

    def _always(self, sentence: Atom | Distinct) -> bool:
        return (
            isinstance(sentence, Atom)
            and all(isinstance(term, Constant) for term in sentence.args)
            and bool(self._matching(sentence))
        )

    def _matching(self, atom: Atom) -> Sequence[Row] | None:
        """The rows that an atom of a known relation may be; None for another relation."""
        name = signature(atom)
        if name not in self.rows:
            return None
        constants = {place: term.name for place, term in enumerate(atom.args) if isinstance(term, Constant)}
        places = tuple(constants)
        if (name, places) not in self._index:
            index: dict[Row, list[Row]] = {}
            for row in self.rows[name]:
                index.setdefault(tuple(row[place] for place in places), []).append(row)
            self._index[name, places] = index
        rows = self._index[name, places].get(tuple(constants.values()), [])
        if len(set(atom.args)) == len(atom.args):
            return rows
        same = [(atom.args.index(term), place) for place, term in enumerate(atom.args)]
        return [row for row in rows if all(row[first] == row[place] for first, place in same)]

    # ---- cases -------------------------------------------------------------------------------------------------

    def _cases(self, conditions: Clause) -> list[Clause] | None:
        """All ways in which one of the atoms can hold; None where no atom is to be split.

        Who plays is split first, then what, for most hangs on these; then the atom with the fewest ways.
        """
        first = {"role": 0, "legal": 1}
        atoms = sorted(conditions.positive, key=lambda atom: first.get(atom.name, 2))
        best: list[Clause] | None = None
        for atom in atoms:
            cases = self._cases_of(conditions, atom)
            if cases is not None and (best is None or len(cases) < len(best)):
                best = cases
            if best is not None and (len(best) <= 1 or atom.name in first):
                break
        return best

    def _cases_of(self, conditions: Clause, atom: Atom) -> list[Clause] | None:
        rows = self._matching(atom)
        if rows is not None:
            if len(rows) > MAX_ROWS:
                return None
            definitions = [Clause(_atom(atom.name, _terms(row)), (), NOWHERE) for row in rows]
        elif signature(atom) in self.recursive or atom.name in ("true", PLAYED):
            return None
        else:
            definitions = self.clauses_of.get(signature(atom), [])
        self._cases_left_now -= len(definitions)
        if self._cases_left_now <= 0:
            return None
        cases = (unfolded(conditions, atom, definition) for definition in definitions)
        return [case for case in cases if case is not None]


def _with_legal(conditions: Clause) -> Clause:
    """What is played is legal, and by a role: `does` is said anew as PLAYED together with that."""
    body: list[Literal] = []
    for positive, sentence in conditions.body:
        if not isinstance(sentence, Atom) or sentence.name != "does":
            body.append(Literal(positive, sentence))
            continue
        body.append(Literal(positive, _atom(PLAYED, sentence.args)))
        if positive:
            body += [Literal(True, _atom("legal", sentence.args)), Literal(True, _atom("role", sentence.args[:1]))]
    return Clause(NOTHING, tuple(body), NOWHERE)


def _different(left: Iterable[Term], right: Iterable[Term]) -> Iterator[Equality]:
    """The pairs that are not the same already."""
    return (pair for pair in zip(left, right, strict=True) if pair[0] != pair[1])


def _terms(row: Row) -> tuple[Term, ...]:
    return tuple(_constant(name) for name in row if name is not None)


def _constant(name: str) -> Constant:
    return Constant(name, name, NOWHERE)


def _atom(name: str, args: tuple[Term, ...]) -> Atom:
    return Atom(name, args, name, NOWHERE)
