"""Checks of a rulesheet (lint): one function for each kind of flaw, the table CHECKS, findings with place and remedy.

Each check takes a `Sheet` and yields flaws in the order of the text. Some checks yield a `Flaw` for every place, others
only for the first place of every name. Lint checks only the text. Flaws that appear only in play, such as a role
without a move or a match without an end, are found by `analysis.playcheck`. Negation inside a cycle of relations is a
warning. If ground atoms form such a cycle, there is no perfect model, and `game.compile.rulesheet_findings` reports an
error.

The definitions are those of Love, Hinrichs, Haley, Schkufza and Genesereth, "General Game Playing: Game Description
Language Specification" (2008). Some errors of the specification are only warnings here, because public rulesheets have
them and can be played.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from ..errors import GDLSemanticError, GDLSyntaxError, GroundingError, shortened
from . import limits, syntax
from .clauses import RelationGraph, Signature, followed, keyword, shape, signature
from .syntax import KEYWORD_ARITY, And, Atom, Condition, Constant, Distinct, Function, Location, Not, Or, Rule, Variable

NEEDED = {
    "role": "(role xplayer)",
    "legal": "(<= (legal ?r noop) (role ?r))",
    "goal": "(<= (goal ?r 50) (role ?r))",
    "terminal": "(<= terminal (true done))",
}
GDL_II_WORDS = frozenset({"sees", "random"})
GOAL = re.compile(r"0*(100|[0-9]{1,2})")
USUAL_NAME = re.compile(r"[A-Za-z0-9_+.-]+")
VARIABLE = re.compile(r"\?[^\s\ufeff();]+")
SHOWN_RELATIONS = 10  # maximum number of relations in a path of a message


class Flaw(NamedTuple):
    """A flaw of a rulesheet, with its place and its remedy."""

    location: Location
    message: str
    remedy: str
    rule: Rule | None = None


Name: TypeAlias = Atom | Constant | Function
Named = TypeVar("Named", Atom, Function, Constant | Function, Atom | Constant)


class _FirstUses(NamedTuple):
    """First uses of names and variables, each with its rule; see the properties of `Sheet`."""

    names: dict[tuple[type, str, int], tuple[Rule, Name]]
    variables: dict[str, tuple[Rule, Variable]]
    opened_propositions: dict[str, tuple[Rule, Name]]
    opened_constants: dict[str, tuple[Rule, Name]]


class Sheet:
    """A rulesheet with lookups that several checks need.

    A sheet may have millions of terms. Checks of names need only the first use of each spelling. All loops over rules,
    atoms and compounds look at the budget.

    atoms: every atom with its rule, heads included. compounds: every other condition with its rule. Both include the
        conditions inside other conditions.
    """

    def __init__(self, rulesheet: syntax.Rulesheet) -> None:
        self._rules = rulesheet.rules
        self.text = rulesheet.text
        self.heads = {rule.head.name for rule in self.rules}
        self.dependencies = RelationGraph(rulesheet)
        self._atoms: list[tuple[Rule, Atom]] = []
        self._compounds: list[tuple[Rule, Condition]] = []
        for rule in self.rules:
            self._atoms.append((rule, rule.head))
            for condition in syntax.conditions(rule.body):
                if isinstance(condition, Atom):
                    self._atoms.append((rule, condition))
                else:
                    self._compounds.append((rule, condition))

    @property
    def rules(self) -> Iterator[Rule]:
        return limits.checked(self._rules)

    @property
    def atoms(self) -> Iterator[tuple[Rule, Atom]]:
        return limits.checked(self._atoms)

    @property
    def compounds(self) -> Iterator[tuple[Rule, Condition]]:
        return limits.checked(self._compounds)

    @property
    def body_atoms(self) -> Iterator[tuple[Rule, Atom]]:
        """Every atom of a body with its rule."""
        return ((rule, atom) for rule, atom in self.atoms if atom is not rule.head)

    @cached_property
    def lines(self) -> list[str]:
        return syntax.lines(self.text)

    def at(self, location: Location, length: int) -> str:
        """Return the text of this length at a place; empty if the rulesheet was not parsed from its text."""
        begin = location.column - 1
        return self.lines[location.line - 1][begin : begin + length] if location.line <= len(self.lines) else ""

    def written(self, variable: Variable) -> str:
        """Return a variable as it is spelled in the text, with its question mark."""
        spelling = self.at(variable.location, len(str(variable)))
        return spelling if spelling.lower() == str(variable) else str(variable)

    @cached_property
    def respells_variables(self) -> bool:
        """Whether a variable in the text is not in lower case."""
        if self.text == self.text.lower():
            return False
        return any(match[0] != match[0].lower() for match in limits.checked(VARIABLE.finditer(self.text)))

    @cached_property
    def recursive_rules(self) -> list[Rule]:
        """The rules with a condition that is in a cycle with their head."""
        recursive = (rule for rule, atom in self.body_atoms if self.dependencies.recursive(rule.head, atom))
        return [rule for rule, _ in groupby(recursive)]

    @cached_property
    def _first_uses(self) -> _FirstUses:
        uses = _FirstUses({}, {}, {}, {})
        for rule in self.rules:
            for use in _uses(rule):
                if isinstance(use, Variable):
                    uses.variables.setdefault(use.name, (rule, use))
                    continue
                arity = 0 if isinstance(use, Constant) else len(use.args)
                uses.names.setdefault((type(use), use.spelling, arity), (rule, use))
                if not arity and self.at(use.location, 1) == "(":
                    opened = uses.opened_propositions if isinstance(use, Atom) else uses.opened_constants
                    opened.setdefault(use.name, (rule, use))
        return uses

    @property
    def first_uses(self) -> tuple[Collection[tuple[Rule, Name]], Collection[tuple[Rule, Variable]]]:
        """The first use of every name in each spelling and with each number of arguments, and of every variable."""
        return self._first_uses.names.values(), self._first_uses.variables.values()

    @property
    def opened_propositions(self) -> Collection[tuple[Rule, Name]]:
        """The first use of every relation without arguments that is in parentheses."""
        return self._first_uses.opened_propositions.values()

    @property
    def opened_constants(self) -> Collection[tuple[Rule, Name]]:
        """The first use of every constant that is in parentheses."""
        return self._first_uses.opened_constants.values()

    @cached_property
    def first_relations(self) -> list[tuple[Rule, Atom]]:
        """The first use of every relation in each spelling and with each number of arguments."""
        return [(rule, use) for rule, use in self.first_uses[0] if isinstance(use, Atom)]

    @cached_property
    def first_functions(self) -> list[tuple[Rule, Function]]:
        """The first use of every function in each spelling and with each number of arguments."""
        return [(rule, use) for rule, use in self.first_uses[0] if isinstance(use, Function)]


def _uses(rule: Rule) -> Iterator[Name | Variable]:
    """Yield all atoms and terms of a rule, in the order of the text."""
    for sentence in syntax.sentences(rule):
        limits.check()
        if isinstance(sentence, Atom):
            yield sentence
        yield from syntax.terms(sentence)


def _first_places(uses: Iterable[tuple[Rule, Named]]) -> Iterable[tuple[Rule, Named]]:
    """Return the first use of every name."""
    first: dict[str, tuple[Rule, Named]] = {}
    for rule, named in uses:
        first.setdefault(named.name, (rule, named))
    return first.values()


def missing(sheet: Sheet) -> Iterator[Flaw]:
    for word, example in NEEDED.items():
        if word not in sheet.heads:
            message = f"expected at least one rule for '{word}', got none"
            yield Flaw(
                Location(1, 1), message, f"no match can be played without such a rule; add one, such as {example}"
            )


def given_in_head(sheet: Sheet) -> Iterator[Flaw]:
    instead = {"true": "next' or 'init", "does": "legal"}
    for rule in sheet.rules:
        head = rule.head
        if head.name in instead:
            message = f"'{head.name}' is in the head of a rule, but only the facts or moves of a match determine it"
            yield Flaw(head.location, message, f"use '{instead[head.name]}' in the head", rule)
        elif head.name == "role" and rule.body:
            message = "'role' is in the head of a rule with a body, but roles are declared by facts"
            yield Flaw(head.location, message, "write one fact for each role, such as (role xplayer)", rule)


def output_in_body(sheet: Sheet) -> Iterator[Flaw]:
    remedies = {
        "next": "derive the same atoms in a new relation, and use the new relation here and in a rule for 'next'",
        "init": "define a new relation, use it here, and derive 'init' from it",
        "base": "define a new relation, use it here, and derive 'base' from it",
        "input": "use 'legal', or define a new relation, use it here, and derive 'input' from it",
    }
    for rule, atom in sheet.body_atoms:
        if atom.name in remedies:
            yield Flaw(atom.location, f"'{atom.name}' is in the body of a rule", remedies[atom.name], rule)


def _depends(sheet: Sheet, heads: frozenset[str], given: str, remedy: str) -> Iterator[Flaw]:
    """Yield a flaw for every condition that makes a rule for one of `heads` depend on `given`."""
    target = keyword(given)
    steps = sheet.dependencies.toward(target)
    for rule, atom in sheet.body_atoms:
        if rule.head.name in heads and (atom.name == given or signature(atom) in steps):
            path = _path([signature(rule.head), *followed(steps, signature(atom), target)])
            yield Flaw(atom.location, f"'{rule.head.name}' depends on '{given}': {path}", remedy, rule)


def _path(relations: Sequence[Signature]) -> str:
    """Return a path of relations on one line. If it is long, leave out relations in the middle."""
    names = [name for name, _ in relations]
    if len(names) > SHOWN_RELATIONS:
        first, last = names[: SHOWN_RELATIONS // 2], names[-SHOWN_RELATIONS // 2 :]
        names = [*first, f"... {len(names) - len(first) - len(last)} more ...", *last]
    return " -> ".join(names)


def fixed_depends_on_state(sheet: Sheet) -> Iterator[Flaw]:
    for given in ("true", "does", "next", "legal", "goal", "terminal"):
        yield from _depends(sheet, frozenset({"init"}), given, _same_in_every_state(given))


def bounds_depend_on_state(sheet: Sheet) -> Iterator[Flaw]:
    """Check `base` and `input`. If they depend on the state or the moves, they bound nothing, and are not used."""
    for given in ("true", "does"):
        yield from _depends(sheet, frozenset({"base", "input"}), given, _same_in_every_state(given))


def _same_in_every_state(given: str) -> str:
    return f"this relation is the same in every state: derive it without '{given}'"


def state_depends_on_moves(sheet: Sheet) -> Iterator[Flaw]:
    remedy = (
        "this relation is needed before the moves are chosen: record the move in a fact with 'next', and use 'true' "
        "here"
    )
    yield from _depends(sheet, frozenset({"terminal", "legal", "goal"}), "does", remedy)


def not_a_sentence(sheet: Sheet) -> Iterator[Flaw]:
    remedy = "define a new relation for the condition inside, and negate that relation"
    for rule, condition in sheet.compounds:
        match condition:
            case Not(Or() | And() | Not() as inner):
                word = type(inner).__name__.lower()
                yield Flaw(inner.location, f"expected a sentence after 'not', got ({word} ...)", remedy, rule)


def unsafe(sheet: Sheet) -> Iterator[Flaw]:
    for rule in filter(_may_be_unsafe, sheet.rules):
        first: dict[str, tuple[Variable, str]] = {}
        for variable, where in _unbound(rule):
            first.setdefault(variable.name, (variable, where))
        has_or = bool(first) and any(isinstance(part, Or) for part in syntax.conditions(rule.body))
        in_or = "; in an 'or', every branch needs such a condition" if has_or else ""
        for variable, where in first.values():
            message = f"the variable {variable} in {where} is in no positive condition"
            remedy = f"add a positive condition that gives {variable} its values, such as (some_relation {variable})"
            yield Flaw(variable.location, message, remedy + in_or, rule)


def _may_be_unsafe(rule: Rule) -> bool:
    """Return whether a variable of a rule is in no atom of its body; the branches of an `or` may still bind it."""
    bound = _variables(condition for condition in rule.body if isinstance(condition, Atom))
    others = (condition for condition in rule.body if not isinstance(condition, Atom))
    inside = (part for part in syntax.conditions(others) if isinstance(part, Atom | Distinct))
    return not _variables(chain([rule.head] if rule.body else [], inside)) <= bound


def _variables(sentences: Iterable[syntax.Sentence]) -> set[str]:
    """Return the names of the variables in sentences."""
    names: set[str] = set()
    for sentence in sentences:
        limits.check()
        waiting = [*syntax.arguments(sentence)]
        for term in waiting:  # the list grows while it is read
            if isinstance(term, Variable):
                names.add(term.name)
            elif isinstance(term, Function):
                waiting += term.args
    return names


def _unbound(rule: Rule) -> Iterator[tuple[Variable, str]]:
    """Yield the variables of a rule that no condition binds. Also yield the kind of place where each variable is."""
    if rule.body:
        bound = syntax.bound(rule)
        yield from ((var, "the head") for var in syntax.term_variables(rule.head) if var.name not in bound)
    for sentence, positive, bound_here in syntax.in_context(rule):
        if not positive or isinstance(sentence, Distinct):
            where = "a 'not'" if not positive else "a 'distinct'"
            yield from ((var, where) for var in syntax.term_variables(sentence) if var.name not in bound_here)


def variable_in_fact(sheet: Sheet) -> Iterator[Flaw]:
    for rule in sheet.rules:
        variable = None if rule.body else next(syntax.term_variables(rule.head), None)
        if variable:
            remedy = f"write a rule, such as (<= {rule.head} (some_relation {variable})), or one fact for each value"
            yield Flaw(variable.location, f"the variable {variable} is in a fact", remedy, rule)


def unlimited_recursion(sheet: Sheet) -> Iterator[Flaw]:
    """Check the recursion restriction of the specification. This restriction keeps the derived relations finite."""
    for rule in sheet.recursive_rules:
        yield from _unlimited_terms(rule, partial(sheet.dependencies.recursive, rule.head))


def _unlimited_terms(rule: Rule, recursive: Callable[[Atom], bool]) -> Iterator[Flaw]:
    remedy = "add a positive condition outside the cycle that gives the variables of this argument their values"
    in_head = set(rule.head.args)
    for sentence, positive, bound in syntax.in_context(rule, binds=lambda atom: not recursive(atom)):
        if positive and isinstance(sentence, Atom) and recursive(sentence):
            for term in sentence.args:
                if term not in in_head and not all(name in bound for name in syntax.variables_of(term)):
                    message = (
                        f"this recursion may never end: {sentence} is in a cycle with the head, and no positive "
                        f"condition outside the cycle limits its argument {term}, which is not an argument of the head"
                    )
                    yield Flaw(term.location, message, remedy, rule)


def goal_out_of_range(sheet: Sheet) -> Iterator[Flaw]:
    for rule in sheet.rules:
        if rule.head.name == "goal" and not _may_be_goal(value := rule.head.args[1]):
            message = f"expected a goal that is a whole number from 0 to 100, got {value}"
            yield Flaw(value.location, message, "scale the goals of all roles to the range from 0 to 100", rule)


def _may_be_goal(value: syntax.Term) -> bool:
    return isinstance(value, Variable) or bool(isinstance(value, Constant) and GOAL.fullmatch(value.name))


def unknown_role(sheet: Sheet) -> Iterator[Flaw]:
    declared = {rule.head.args[0]: None for rule in sheet.rules if rule.head.name == "role"}
    if not declared or any(syntax.variables_of(role) for role in declared):
        return
    roles = shortened(", ".join(map(str, declared)))
    for rule, atom in sheet.atoms:
        if atom.name in ("legal", "goal", "does", "input"):
            role = atom.args[0]
            if not syntax.variables_of(role) and role not in declared:
                message = f"'{atom.name}' has {role} as its role, but {role} is not declared as a role"
                yield Flaw(role.location, message, f"use one of the roles {roles}, or add (role {role})", rule)


def negation_in_cycle(sheet: Sheet) -> Iterator[Flaw]:
    remedy = "remove the negation from the cycle; the rules have a meaning only if no atom depends on its own negation"
    for rule, negated in _negations_in_cycles(sheet):
        path = _path(sheet.dependencies.path(signature(negated), signature(rule.head)))
        message = f"a cycle of relations has a negation in it: {rule.head.name} -> not {path}"
        yield Flaw(negated.location, message, remedy, rule)


def _negations_in_cycles(sheet: Sheet) -> Iterator[tuple[Rule, Atom]]:
    """Yield every negated atom that is in a cycle with the head of its rule."""
    for rule in sheet.recursive_rules:
        for sentence, positive, _ in syntax.in_context(rule):
            if isinstance(sentence, Atom) and not positive and sheet.dependencies.recursive(rule.head, sentence):
                yield rule, sentence


def used_but_never_derived(sheet: Sheet) -> Iterator[Flaw]:
    remedy = "add a rule or a fact for it, or correct its name; without a rule or a fact it is always false"
    derived = sheet.heads | syntax.GIVEN_RELATIONS
    for rule, atom in _first_places(sheet.first_relations):
        if atom.name not in derived:
            yield Flaw(atom.location, f"the relation '{atom.name}' is used but never derived", remedy, rule)


def derived_but_never_used(sheet: Sheet) -> Iterator[Flaw]:
    """Find names of relations that no other relation uses. Uses within the relation's own recursion do not count."""
    groups = sheet.dependencies.groups
    bodies = limits.checked(sheet.dependencies.bodies.items())
    edges = ((groups[head], groups[use]) for head, uses in bodies for use in uses)
    used = {target for source, target in edges if source != target}
    words = KEYWORD_ARITY.keys() | GDL_II_WORDS
    used |= {group for (name, _), group in groups.items() if name in words}
    names = {name for (name, _), group in groups.items() if group in used}
    for rule, head in _first_places((rule, rule.head) for rule in sheet.rules):
        if head.name not in names:
            message = f"the relation '{head.name}' is derived but never used"
            yield Flaw(head.location, message, "remove its rules, or correct its name", rule)


def few_branches(sheet: Sheet) -> Iterator[Flaw]:
    for rule, condition in sheet.compounds:
        match condition:
            case Or([]):
                message = "an 'or' without branches never holds"
                yield Flaw(condition.location, message, "add branches, or remove the 'or'", rule)
            case Or([_]):
                remedy = "write the branch without the 'or', or add more branches"
                yield Flaw(condition.location, "an 'or' with one branch", remedy, rule)


def and_word(sheet: Sheet) -> Iterator[Flaw]:
    remedy = "write the conditions side by side in the body; inside an 'or', define a new relation for them"
    for rule, condition in sheet.compounds:
        if isinstance(condition, And):
            yield Flaw(condition.location, "'and' is not in the definition of GDL", remedy, rule)


def not_distinct(sheet: Sheet) -> Iterator[Flaw]:
    remedy = (
        "gamelore reads this as equality, but other systems may not: remove it, and write the same term in both places"
    )
    for rule, condition in sheet.compounds:
        if isinstance(condition, Not) and isinstance(condition.condition, Distinct):
            yield Flaw(condition.location, "a 'not' is before a 'distinct'", remedy, rule)


def empty_body(sheet: Sheet) -> Iterator[Flaw]:
    for rule in sheet.rules:
        if rule.arrow and not rule.body:
            yield Flaw(rule.location, "this rule has an empty body", f"write the fact {rule.head}", rule)


def keyword_as_name(sheet: Sheet) -> Iterator[Flaw]:
    remedy = "use another name, or close the parenthesis that is open before this word"
    terms = [(rule, use) for rule, use in sheet.first_uses[0] if not isinstance(use, Atom)]
    for rule, term in _first_places(terms):
        if term.name in syntax.FORM:
            kind = "function" if isinstance(term, Function) else "constant"
            yield Flaw(term.location, f"the GDL keyword '{term.name}' is used as a {kind}", remedy, rule)


def several_arities(sheet: Sheet) -> Iterator[Flaw]:
    remedy = "add or remove arguments, or rename one of the two, because they never match each other"
    for kind, uses in (("relation", sheet.first_relations), ("function", sheet.first_functions)):
        arities: dict[str, list[int]] = {}
        for rule, named in uses:
            arity = len(named.args)
            before = arities.setdefault(named.name, [arity])
            if arity not in before:
                before.append(arity)
                message = f"the {kind} '{named.name}' has {_arguments(arity)} here but {_arguments(before[0])} before"
                yield Flaw(named.location, message, remedy, rule)


def _arguments(number: int) -> str:
    return f"{number} argument{'s' * (number != 1)}"


def several_spellings(sheet: Sheet) -> Iterator[Flaw]:
    """Compare the spellings of each name in the whole sheet, and the spellings of each variable in its rule."""
    spellings: _Spellings = {}
    names: dict[int, list[_Written]] = {}  # by the identity of the rule
    for rule, use in sheet.first_uses[0]:
        if use.name not in KEYWORD_ARITY:
            names.setdefault(id(rule), []).append(_Written(use.name, use.spelling, use.location))
    for rule in sheet.rules:
        if id(rule) in names:
            yield from _differing(rule, names[id(rule)], spellings)
        if sheet.respells_variables:
            yield from _differing(rule, _written_variables(sheet, rule), {})


_Spellings: TypeAlias = dict[str, dict[str, None]]
"""The spellings of each name, in the order of the text."""


def _differing(rule: Rule, written: Iterable[_Written], spellings: _Spellings) -> Iterator[Flaw]:
    remedy = "write it the same way everywhere; for gamelore these are one name, but for other systems they may be two"
    for name, spelling, location in written:
        before = spellings.setdefault(name, {spelling: None})
        if spelling not in before:
            before[spelling] = None
            message = f"the same name is written '{spelling}' here and '{next(iter(before))}' before"
            yield Flaw(location, message, remedy, rule)


class _Written(NamedTuple):
    """A name in lower case, its spelling in the text, and its place."""

    name: str
    spelling: str
    location: Location


def _written_variables(sheet: Sheet, rule: Rule) -> Iterator[_Written]:
    """Yield the variables of a rule. They are in lower case if the rule was not parsed from the text of the sheet."""
    for variable in limits.checked(syntax.term_variables(*syntax.sentences(rule))):
        yield _Written(variable.name, sheet.written(variable), variable.location)


def unusual_characters(sheet: Sheet) -> Iterator[Flaw]:
    remedy = "use only letters, digits, '_', '-', '+' and '.'; other systems may not read other characters"
    usual: set[str] = set()
    told: set[str] = set()
    for rule, (name, spelling, location) in _written_names(sheet):
        bare = spelling.removeprefix("?")
        if bare in usual:
            continue
        if USUAL_NAME.fullmatch(bare):
            usual.add(bare)
        elif name not in told:
            told.add(name)
            unusual = USUAL_NAME.sub("", bare)[0]
            yield Flaw(location, f"the name {spelling} has the unusual character {unusual!r}", remedy, rule)


def _written_names(sheet: Sheet) -> list[tuple[Rule, _Written]]:
    """Return the first use of every name and variable in each spelling, rule by rule; names before variables."""
    names, variables = sheet.first_uses
    uses = [(rule, _Written(use.name, use.spelling, use.location)) for rule, use in names]
    if sheet.respells_variables:
        uses += [(rule, written) for rule in sheet.rules for written in _written_variables(sheet, rule)]
    else:
        uses += [(rule, _Written(use.name, str(use), use.location)) for rule, use in variables]
    order = {id(rule): number for number, rule in enumerate(sheet.rules)}
    return sorted(uses, key=lambda use: order[id(use[0])])


def relation_and_function(sheet: Sheet) -> Iterator[Flaw]:
    remedy = (
        "rename one of the two; the name is a function inside 'true', 'next' and 'does', and a relation as a condition"
    )
    relations = {name for name, _ in sheet.dependencies.bodies} - KEYWORD_ARITY.keys()
    for rule, term in _first_places(sheet.first_functions):
        if term.name in relations:
            message = f"the name '{term.name}' is used for both a function and a relation"
            yield Flaw(term.location, message, remedy, rule)


def parenthesised(sheet: Sheet) -> Iterator[Flaw]:
    for kind, uses in (("proposition", sheet.opened_propositions), ("constant", sheet.opened_constants)):
        for rule, named in uses:
            remedy = f"write {named}: for some systems these are two different {kind}s"
            yield Flaw(named.location, f"the {kind} {named} has parentheses around it", remedy, rule)


Severity: TypeAlias = Literal["error", "warning"]
Moves: TypeAlias = tuple[tuple[str, ...], ...]
"""Joint moves from the initial state. Each joint move has one move for each role, in the order of the roles."""
SHOWN_MOVES = 8  # maximum number of moves in the text of a finding


@dataclass(frozen=True, slots=True)
class Finding:
    """A flaw of a rulesheet, with its severity and its place.

    line, column: the place of the flaw, counted from 1.
    rule: the text of the rule with the flaw; empty if no rule has it.
    witness: for a flaw that appears only in play, the moves that lead to it.

    Long texts are shortened.
    """

    severity: Severity
    code: str
    message: str
    path: Path | None
    line: int
    column: int
    rule: str
    remedy: str
    witness: Moves | None = None

    def __post_init__(self) -> None:
        for name in ("message", "rule", "remedy"):
            object.__setattr__(self, name, shortened(getattr(self, name)))

    def __str__(self) -> str:
        place = f"{self.path or '<text>'}:{self.line}:{self.column}"
        in_rule = f"\n  in {self.rule}" if self.rule else ""
        after = "" if self.witness is None else f"\n  {_after(self.witness)}"
        return f"{place}: {self.severity}: {self.message} [{self.code}]{in_rule}{after}\n  remedy: {self.remedy}"


def _after(moves: Moves) -> str:
    """Return moves on one line as options of `gamelore show`. If there are many, leave out those in the middle."""
    if not moves:
        return "at the start"
    joint = [f"--play {shlex.quote(' '.join(move))}" for move in moves]
    if len(joint) > SHOWN_MOVES:
        joint[SHOWN_MOVES // 2 : -SHOWN_MOVES // 2] = [f"... {len(joint) - SHOWN_MOVES} more ..."]
    return f"after {len(moves)} move{'s' * (len(moves) != 1)}: {shortened(' '.join(joint))}"


class Check(NamedTuple):
    """A check of a rulesheet: a function that finds flaws.

    code, severity: code and severity of the findings.
    refuses: whether a rulesheet with such a finding cannot be loaded.
    """

    code: str
    severity: Severity
    refuses: bool
    find: Callable[[Sheet], Iterator[Flaw]]


CHECKS = (
    Check("missing", "error", True, missing),
    Check("given-in-head", "error", True, given_in_head),
    Check("fixed-depends-on-state", "error", True, fixed_depends_on_state),
    Check("state-depends-on-moves", "error", True, state_depends_on_moves),
    Check("unsafe-variable", "error", True, unsafe),
    Check("variable-in-fact", "error", True, variable_in_fact),
    Check("bounds-depend-on-state", "error", False, bounds_depend_on_state),
    Check("output-in-body", "error", False, output_in_body),
    Check("keyword-as-name", "error", False, keyword_as_name),
    Check("not-a-sentence", "error", False, not_a_sentence),
    Check("unlimited-recursion", "error", False, unlimited_recursion),
    Check("goal-out-of-range", "error", False, goal_out_of_range),
    Check("unknown-role", "error", False, unknown_role),
    Check("several-spellings", "error", False, several_spellings),
    Check("several-arities", "warning", False, several_arities),
    Check("negation-in-cycle", "warning", False, negation_in_cycle),
    Check("unusual-character", "warning", False, unusual_characters),
    Check("never-derived", "warning", False, used_but_never_derived),
    Check("never-used", "warning", False, derived_but_never_used),
    Check("relation-and-function", "warning", False, relation_and_function),
    Check("few-branches", "warning", False, few_branches),
    Check("and", "warning", False, and_word),
    Check("not-distinct", "warning", False, not_distinct),
    Check("empty-body", "warning", False, empty_body),
    Check("parenthesised", "warning", False, parenthesised),
)

OF_THE_WHOLE_SHEET = frozenset({"missing", "unknown-role", "never-derived", "never-used", "negation-in-cycle"})
REFUSED = frozenset(check.code for check in CHECKS if check.refuses)


MOST_FINDINGS = 50  # of one code in a rulesheet
MORE = "there are more findings of this kind, which are not shown"
MEND_FIRST = "mend the findings of this kind that are shown, and check again"


def lint(rulesheet: syntax.Rulesheet) -> list[Finding]:
    """Return the findings in the text of a rulesheet, in the order of the text.

    Of each kind there are at most MOST_FINDINGS. After these, one finding tells that there are more.
    """
    return _findings(rulesheet, CHECKS)


CHECK = "the check of the rulesheet to end"  # the task of a budget


@limits.collector_paused()
def lint_text(text: str, path: Path | None = None, allowed: limits.Limits | None = None) -> list[Finding]:
    """Return the findings of `lint`, and a finding with the code "syntax" for every rule that does not parse.

    If a rule does not parse, checks of the whole sheet are left out. Such a check could report that a rule is missing,
    and the missing rule could be the rule that does not parse.

    If the limits `allowed` are used up before, return the findings until then, and one with the code "too-large".
    """
    findings: list[Finding] = []
    add = partial(findings.extend, _findings_of_text(text, path))  # keeps what it has got at an error
    try:
        limits.enforced(add, allowed or limits.Limits(), CHECK)
    except GroundingError as error:
        findings.append(Finding("error", "too-large", error.message, path, 1, 1, "", error.remedy))
    return sorted(findings, key=_place)


def _findings_of_text(text: str, path: Path | None) -> Iterator[Finding]:
    """Yield the findings of `lint_text` as they are made."""
    rules: list[Rule] = []
    num_errors = 0
    for part in syntax.rules_and_errors(text, path):
        if isinstance(part, Rule):
            rules.append(part)
        elif num_errors == MOST_FINDINGS:
            yield Finding("error", "syntax", MORE, path, part.line, part.column, "", MEND_FIRST)
            break
        else:
            yield Finding("error", "syntax", part.message, path, part.line, part.column, part.rule, part.remedy)
            num_errors += 1
    checks = (check for check in CHECKS if not num_errors or check.code not in OF_THE_WHOLE_SHEET)
    yield from _each_finding(syntax.Rulesheet(tuple(rules), text, path), checks)


def _place(finding: Finding) -> tuple[int, int]:
    return finding.line, finding.column


def refuse(rulesheet: syntax.Rulesheet) -> None:
    """Raise GDLSemanticError for the first finding of a check that refuses the rulesheet.

    A game with such a finding has no perfect model, or it cannot be played.
    """
    limits.working_on("checking the rules")
    for finding in _findings(rulesheet, [check for check in CHECKS if check.refuses])[:1]:
        raise _error(finding, finding.message, finding.remedy)


def placed(error: GDLSemanticError, rulesheet: syntax.Rulesheet, head: str, negated: str) -> GDLSemanticError:
    """Return the error about a negation in a cycle with the place of this negation.

    If no such rule has the two relations, as after rewriting, take the first negation in a cycle.

    Args:
        error: the error.
        rulesheet: the rules as written.
        head: text of the ground atom that depends on its own negation.
        negated: text of the negated atom.
    """
    negations = list(_negations_in_cycles(Sheet(rulesheet)))
    relations = _relation(head), _relation(negated)
    fitting = [(rule, atom) for rule, atom in negations if (signature(rule.head), signature(atom)) == relations]
    for rule, atom in (fitting or negations)[:1]:
        place = Finding("error", "negation-in-cycle", "", rulesheet.path, *atom.location, str(rule), "")
        return _error(place, error.message, error.remedy)
    return error


def _relation(text: str) -> Signature | None:
    """Return the relation of an atom; None if the text is no atom, but names a part of a rule."""
    try:
        return shape(syntax.parse_term(text))
    except GDLSyntaxError:
        return None


def findings_of(rulesheet: syntax.Rulesheet, code: str) -> list[Finding]:
    """Return the findings of one check."""
    return _findings(rulesheet, [check for check in CHECKS if check.code == code])


def _error(place: Finding, message: str, remedy: str) -> GDLSemanticError:
    return GDLSemanticError(
        message, path=place.path, line=place.line, column=place.column, rule=place.rule, remedy=remedy
    )


@limits.collector_paused()
def _findings(rulesheet: syntax.Rulesheet, checks: Iterable[Check]) -> list[Finding]:
    return sorted(_each_finding(rulesheet, checks), key=_place)


def _each_finding(rulesheet: syntax.Rulesheet, checks: Iterable[Check]) -> Iterator[Finding]:
    sheet, path = Sheet(rulesheet), rulesheet.path
    texts: dict[int, str] = {}  # of rules by identity; a long rule may have many findings
    for check in checks:
        limits.check()
        flaws = check.find(sheet)
        for place, message, remedy, rule in islice(flaws, MOST_FINDINGS):
            limits.check()
            if id(rule) not in texts:
                texts[id(rule)] = shortened(str(rule or ""))
            yield Finding(check.severity, check.code, message, path, *place, texts[id(rule)], remedy)
        if next(flaws, None) is not None:
            yield Finding(check.severity, check.code, MORE, path, *place, "", MEND_FIRST)
