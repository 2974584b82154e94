"""Invariants of reachable states: facts that never change, and groups of facts of which at most one holds.

*Persistent facts.* The only rule for a persistent fact says that the fact stays:

    (init (wall 3 0 north))   (<= (next (wall ?x ?y ?d)) (true (wall ?x ?y ?d)))

A condition on a persistent fact can therefore ask the first state. All relations that depend only on persistent facts
are then known when the rules are ground. The result is correct in every reachable state, but not in an arbitrary state
with other walls.

*Chase.* `Chase` tries to prove that given conditions never hold together in a reachable state. It searches for a
contradiction.
First it makes terms equal that must be equal (the chase of Maier, Mendelzon and Sagiv, 1979). Three properties give
equalities. Each role plays only one move. At most one fact of each given group holds. An atom of a *known* relation
equals one of its *rows*; a static relation is known if all its atoms (the rows) have been computed.
Then it splits an atom into cases, one case for each clause of the atom, and a move into cases by the rules for `legal`.
The conditions are refuted if every case ends in a contradiction. If a case does not, nothing is proved.

*Unique facts.* If at most one fact of a group holds, conditions on the single facts can be replaced by one condition on
the whole group, which needs a smaller relation. A rule with

    (true (cell ?x ?y king)) (not (threatened ?x ?y ?u ?v))

needs `threatened` for every square. With at most one king, the following conditions are equivalent. They say that a
king exists and that no king is threatened:

    (true (cell ?x ?y king)) (not (some:1 ?u ?v))
    (<= (some:1 ?u ?v) (true (cell ?x ?y king)) (threatened ?x ?y ?u ?v))

Then ?x and ?y can be projected out of the rules for `threatened`. Uniqueness is proved by induction: at most one fact
of the group holds in the first state, and if at most one holds in a state, at most one holds after every joint move.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, combinations_with_replacement, product
from math import prod
from typing import NamedTuple, TypeAlias

from ..gdl import clauses
from ..gdl.clauses import Clause, Literal, Signature, equated, shape, signature, unfolded, variables
from ..gdl.limits import check
from ..gdl.syntax import KEYWORD_ARITY, NOWHERE, Atom, Constant, Distinct, Function, Term, Variable
from .domains import Domains, Row, Statics, Terms


def without_persistent_facts(rules: Sequence[Clause], prefix: str) -> list[Clause]:
    """Return clauses that read persistent facts from the first state. New relations, named with `prefix`, hold them."""
    shapes = persistent(rules)
    changed: list[Clause] = []
    definitions: list[Clause] = []
    for rule in rules:
        is_persistent = rule.head.name in ("init", "next") and shape(rule.head.args[0]) in shapes
        changed.append(rule if is_persistent and rule.head.name == "next" else _reading(rule, shapes, prefix))
        if is_persistent and rule.head.name == "init":
            definitions.append(Clause(_always(rule.head, prefix), rule.body, rule.location))
    return changed + definitions


def persistent(rules: Sequence[Clause]) -> set[Signature]:
    """Return the shapes of persistent facts: the first state may have them, and `next` rules only keep them."""
    following = [rule for rule in rules if rule.head.name == "next"]
    changing = {shape(rule.head.args[0]) for rule in following if not _only_keeps(rule)}
    kept = {shape(rule.head.args[0]) for rule in following if _keeps_all(rule)}
    initial = {shape(rule.head.args[0]) for rule in rules if rule.head.name == "init"}
    if None in changing | kept | initial:
        return set()
    return {fact for fact in (kept - changing) & initial if fact is not None}


def _only_keeps(rule: Clause) -> bool:
    """Return whether a `next` rule has the form `(<= (next f) (true f) ..)`. Such a rule adds no new fact."""
    check()
    return any(atom.name == "true" and atom.args == rule.head.args for atom in rule.positive)


def _keeps_all(rule: Clause) -> bool:
    """Return whether a `next` rule keeps all facts of a shape.

    Such a rule has one condition, and all arguments of the fact are different variables.
    """
    fact = rule.head.args[0]
    arguments = fact.args if isinstance(fact, Function) else ()
    free = {argument.name for argument in arguments if isinstance(argument, Variable)}
    return _only_keeps(rule) and len(rule.body) == 1 and len(free) == len(arguments) and not isinstance(fact, Variable)


def _reading(rule: Clause, shapes: Collection[Signature], prefix: str) -> Clause:
    """Return the clause with facts of these shapes replaced by atoms of the new relations."""
    check()
    body = (
        Literal(positive, _always(sentence, prefix))
        if isinstance(sentence, Atom) and sentence.name == "true" and shape(sentence.args[0]) in shapes
        else Literal(positive, sentence)
        for positive, sentence in rule.body
    )
    return Clause(rule.head, tuple(body), rule.location)


def _always(atom: Atom, prefix: str) -> Atom:
    """Return the atom of the new relation for a persistent fact. `atom` has the fact as its argument."""
    fact = atom.args[0]
    assert not isinstance(fact, Variable)
    arguments = fact.args if isinstance(fact, Function) else ()
    return Atom(f"{prefix}{fact.name}", arguments, f"{prefix}{fact.spelling}", atom.location)


NOTHING = Atom("", (), "", NOWHERE)  # head of a clause that serves as a list of conditions
PLAYED = "does legally"  # no relation of a sheet has this name, because it contains a space
MAX_DEPTH = 12  # maximum nesting of cases
MAX_CASES = 2_000  # maximum number of cases of one call of `refutes`
MAX_ROWS = 4  # a known relation is split into cases if at most this number of rows match

Equality: TypeAlias = tuple[Term, Term]


class Group(NamedTuple):
    """Group of facts: all facts of one shape that have given constants at some places.

    For example, (cell ?x ?y wk) is `(("cell", 3), ((2, "wk"),))`.
    """

    fact: Signature
    fixed: tuple[tuple[int, str], ...] = ()

    def holds(self, fact: Term) -> bool:
        """Return whether all instances of a term are in the group."""
        return (
            isinstance(fact, Function)
            and (fact.name, len(fact.args)) == self.fact
            and all(isinstance(term := fact.args[place], Constant) and term.name == name for place, name in self.fixed)
        )

    def pattern(self) -> Function:
        """Return a term whose instances are the facts of the group.

        Places without a constant have variables. The names of the variables contain a space, so no sheet has them.
        """
        name, arity = self.fact
        terms: list[Term] = [Variable(f"at {place}", NOWHERE) for place in range(arity)]
        for place, constant in self.fixed:
            terms[place] = _constant(constant)
        return Function(name, tuple(terms), name, NOWHERE)


class Chase:
    """Refutation of conditions by the rules, by known relations, and by groups of which at most one fact holds.

    cases: the maximum number of cases of all calls of `refutes` together. Once this number is reached, `refutes`
        returns False.
    `used` collects the groups on which the refutations rely.
    """

    def __init__(
        self, rules: Sequence[Clause], static: Statics, groups: Collection[Group] = (), cases: int = 40_000
    ) -> None:
        self.groups = sorted(groups)
        self.used: set[Group] = set()
        self.rows = {name: rows for name, rows in static.rows.items() if all(None not in row for row in rows)}
        self.cases_left, self._cases_left_now = cases, 0
        self._index: dict[tuple[Signature, tuple[int, ...]], dict[Row, list[Row]]] = {}
        self._keys: dict[tuple[Signature, tuple[int, ...]], bool] = {}
        self.clauses_of: dict[Signature, list[Clause]] = {}
        for rule in rules:
            self.clauses_of.setdefault(signature(rule.head), []).append(rule)
        self.recursive = clauses.Dependencies(rules).recursive()

    def refutes(self, conditions: Iterable[Literal]) -> bool:
        """Return whether the chase proves that the conditions never hold together."""
        self._cases_left_now = given = min(MAX_CASES, self.cases_left)
        try:
            refuted = self._refuted(Clause(NOTHING, tuple(conditions), NOWHERE), MAX_DEPTH)
        except clauses.TermsTooLargeError:
            refuted = False
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
        """Return the conditions after all equalities are applied; None for a contradiction."""
        current = self._shorter(conditions)
        while current is not None:
            check()
            if self._contradicts(current):
                return None
            equality = next(self._equalities(current), None)
            if equality is None:
                return current
            equal = equated(current, *equality)
            current = equal and self._shorter(equal)
        return None

    def _shorter(self, conditions: Clause) -> Clause | None:
        """Drop repeated conditions, and conditions that always hold. Return None if a comparison can never hold."""
        body = dict.fromkeys(conditions.body)
        open_ = (literal for literal in body if not (literal.positive and self._always(literal.sentence)))
        return clauses.without_comparisons(Clause(NOTHING, tuple(open_), NOWHERE))

    def _equalities(self, conditions: Clause) -> Iterator[Equality]:
        """Yield pairs of different terms that must be equal."""
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

    def _by_rows(self, atoms: Sequence[Atom]) -> Iterator[Equality]:
        """Yield the equalities that follow from atoms of known relations.

        If only one row matches an atom, the atom equals this row. Two atoms that must be the same row are equal.
        """
        for atom in atoms:
            rows = self._matching(atom)
            if rows is not None and len(rows) == 1:
                yield from _different(atom.args, _terms(rows[0]))
        for left, right in combinations(atoms, 2):
            if signature(left) == signature(right) and self._same_row(left, right):
                yield from _different(left.args, right.args)

    def _same_row(self, left: Atom, right: Atom) -> bool:
        """Return whether two atoms of a known relation must be the same row.

        This is so if the places with equal terms in both atoms form a key: different rows differ in these places.
        """
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
        """Return the rows that match an atom of a known relation; None if the relation is not known."""
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
        """Choose an atom and return its cases; None if no atom can be split.

        Atoms of `role` are chosen first, then atoms of `legal`, since most conditions depend on roles and moves. After
        them, the atom with the fewest cases is chosen.
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
    """Replace `does` by PLAYED. Add the conditions that the move is legal and that its player is a role."""
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
    """Return the pairs of terms at the same place that are different."""
    return (pair for pair in zip(left, right, strict=True) if pair[0] != pair[1])


def _terms(row: Row) -> tuple[Term, ...]:
    return tuple(_constant(name) for name in row if name is not None)


def _constant(name: str) -> Constant:
    return Constant(name, name, NOWHERE)


def _atom(name: str, args: tuple[Term, ...]) -> Atom:
    return Atom(name, args, name, NOWHERE)


LARGE = 20_000  # a relation with at least this number of atoms is large
GAIN = 8  # minimum number of possible values of the variables that a fact and the large relation share
MAX_GROUPS = 8  # maximum number of groups for the facts of one condition


class FactQuestion(NamedTuple):
    """Two conditions of a clause: a fact of some groups, and a negated atom of a large relation about this fact."""

    fact: Atom
    negated: Atom
    values: tuple[str, ...]  # names of the variables that occur in both conditions
    num_values: float  # number of values of these variables
    groups: frozenset[Group]


def unique(rules: Sequence[Clause], static: Statics, candidates: Collection[Group]) -> dict[Group, set[Group]]:
    """Return the groups of which provably at most one fact holds in every reachable state.

    The proofs are by induction. They assume that at most one fact of each group holds in a state, and show the same for
    the next state. Groups without a proof are dropped, and the other groups are proved again if their proofs relied on
    them. Each group is mapped to the groups on which its proof relies.
    """
    start = Chase(rules, static)
    kept = {group for group in sorted(candidates) if _at_most_one(group, "init", rules, start)}
    proofs: dict[Group, set[Group]] = {}
    while unsure := sorted(group for group in kept if group not in proofs or not proofs[group] <= kept):
        step = Chase(rules, static, kept)
        for group in unsure:
            step.used = set()
            if _at_most_one(group, "next", rules, step):
                proofs[group] = step.used
            else:
                kept.remove(group)
    return {group: proofs[group] for group in kept}


def _at_most_one(group: Group, head: str, rules: Sequence[Clause], chase: Chase) -> bool:
    """Return whether it is proved that the clauses with this head derive at most one fact of the group.

    The proof refutes that two clauses, or two instances of one clause, derive different facts of the group. Too large
    terms count as no proof.
    """
    try:
        deriving = list(_deriving(group, head, rules))
    except clauses.TermsTooLargeError:
        return False
    for left, other in combinations_with_replacement(deriving, 2):
        right = clauses.apart(other, left)
        two = Literal(True, Distinct(left.head.args[0], right.head.args[0], NOWHERE))
        if not chase.refutes([two, *left.body, *right.body]):
            return False
    return True


def _deriving(group: Group, head: str, rules: Sequence[Clause]) -> Iterator[Clause]:
    """Yield the clauses of `init` or `next`, each restricted to the facts of the group."""
    for rule in rules:
        if rule.head.name == head and (restricted := equated(rule, rule.head.args[0], group.pattern())):
            yield restricted


class Unique:
    """Rewriting of rules that ask a large relation about facts of which at most one holds.

    `rules` are the rewritten rules; see *Unique facts* in the docstring of the module.
    `groups` are the groups that the rewriting uses, and the groups on which their proofs rely. If at most one fact of
    each group holds in a state, the same is true in all following states.
    """

    def __init__(self, rules: Sequence[Clause], static: Statics, domains: Domains, prefix: str) -> None:
        self.static, self.domains = static, domains
        self.recursive = clauses.Dependencies(rules).recursive()
        wanted = {group for rule in rules for question in self._questions(rule) for group in question.groups}
        self.proved = unique(rules, static, wanted | _single(rules)) if wanted else {}
        self.groups: set[Group] = set()
        self.some = clauses.NewRelations(prefix)
        self.rules = [new for rule in rules for new in self._rewritten(rule)]

    def _questions(self, rule: Clause) -> Iterator[FactQuestion]:
        """Yield every pair of a fact and a negated large relation in a clause that can be rewritten."""
        large = [atom for atom in rule.negative if self._is_large(signature(atom))]
        of = self.domains.variables(rule.positive) if large else None
        if of is not None:
            for fact, atom in product((atom for atom in rule.positive if atom.name == "true"), large):
                values = tuple(name for name in variables([fact]) if name in variables([atom]))
                num_values = prod(of[name].size for name in values)
                groups = _groups(fact.args[0], values, of) if num_values >= GAIN else frozenset()
                if groups:
                    yield FactQuestion(fact, atom, values, num_values, groups)

    def _is_large(self, name: Signature) -> bool:
        defined = name in self.domains.clauses_of and name[0] not in KEYWORD_ARITY
        return defined and name not in self.recursive and self.domains.size(name) >= LARGE

    def _rewritten(self, rule: Clause) -> Iterator[Clause]:
        """Replace the most expensive question of a clause until none is left. Yield the clause and new definitions."""
        questions = (question for question in self._questions(rule) if question.groups <= self.proved.keys())
        question = max(questions, key=lambda question: question.num_values, default=None)
        if question is None:
            yield rule
            return
        self._rely_on(question.groups)
        some, definitions = self._some(rule, question)
        body = (Literal(False, some) if literal.sentence is question.negated else literal for literal in rule.body)
        yield from definitions
        yield from self._rewritten(Clause(rule.head, tuple(body), rule.location))

    def _rely_on(self, groups: Collection[Group]) -> None:
        for group in groups:
            if group not in self.groups:
                self.groups.add(group)
                self._rely_on(self.proved[group])

    def _some(self, rule: Clause, question: FactQuestion) -> tuple[Atom, list[Clause]]:
        """Return the atom that says that the relation holds for some fact. Return its clauses if the atom is new."""
        names = variables([question.fact, question.negated])
        inner = (question.fact, *self._context(rule, question.fact, set(names)), question.negated)
        outer = [name for name in names if name not in question.values]
        body = tuple(Literal(True, atom) for atom in inner)
        some, is_new = self.some.atom(body, outer, rule.location)
        if not is_new:
            return some, []
        whole = Clause(some, body, rule.location)
        definitions = self.domains.clauses_of.get(signature(question.negated), [])
        try:
            cases = [unfolded(whole, question.negated, definition) for definition in definitions]
        except clauses.TermsTooLargeError:
            return some, [whole]
        return some, [case for case in cases if case is not None]

    def _context(self, rule: Clause, fact: Atom, names: set[str]) -> Iterator[Atom]:
        """Yield the atoms of known relations that restrict the variables of the fact."""
        mine = variables([fact]).keys()
        for atom in rule.positive:
            own = variables([atom]).keys()
            if signature(atom) in self.static.rows and own & mine and own <= names:
                yield atom


def _groups(fact: Term, values: Collection[str], of: Mapping[str, Terms]) -> frozenset[Group]:
    """Return the groups to which a fact can belong, one for each combination of constants in its other arguments.

    The other arguments are those that are not variables of `values`. Return no groups if there are more than
    MAX_GROUPS.
    """
    if not isinstance(fact, Function):
        return frozenset()
    fixed = [
        [(place, name) for name in _constants(argument, of)]
        for place, argument in enumerate(fact.args)
        if not (isinstance(argument, Variable) and argument.name in values)
    ]
    if prod(map(len, fixed)) > MAX_GROUPS:
        return frozenset()
    return frozenset(Group((fact.name, len(fact.args)), choice) for choice in product(*fixed))


def _constants(term: Term, of: Mapping[str, Terms]) -> Collection[str]:
    """Return the constants that an argument can be; none if the argument can also be a term other than a constant."""
    if isinstance(term, Constant):
        return (term.name,)
    terms = of.get(term.name) if isinstance(term, Variable) else None
    return () if terms is None or terms.any or terms.functions else sorted(terms.constants)


def _single(rules: Sequence[Clause]) -> set[Group]:
    """Return one group for each shape of facts, such as (control ?role). Proofs may need such groups."""
    facts = (rule.head.args[0] for rule in rules if rule.head.name == "next")
    return {Group((fact.name, len(fact.args))) for fact in facts if isinstance(fact, Function)}
