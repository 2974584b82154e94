"""Interface to clingo: numbers of names, translation of rules, limits of grounding, sentences of a state.

The numbers of names decide the order of actions. This order is the same in all engines. Only this module translates
names for clingo: constant or function number n becomes `c<n>`, and relation number n becomes `r<n>`.

`state_sentences` returns all sentences of some relations that hold in one state, as text. It answers questions that the
engines do not answer, such as several goals of a role, or the facts of `base`. Each call runs clingo once. The results
are not cached.

clingo keeps all names and terms that it has seen until the process ends, about 80 bytes each. So a process should not
ground many large rulesheets that it does not need; `gamelore serve` has processes of their own for new ones.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from ..errors import GDLSemanticError, GroundingError
from ..gdl import syntax
from ..gdl.clauses import Literal, RelationGraph, conjunctions, keyword, reachable, signature
from ..gdl.limits import Budget, Limits, check, spend
from ..gdl.syntax import KEYWORD_ARITY, Atom, Distinct, Function, Rule, Rulesheet, Term, Variable
from .rehearsal import RULES_BETWEEN_LOOKS, Rehearsed, Text, rehearse

MOST_NAMES = 10_000  # of an atom; clingo keeps equal terms once, but the text of an atom repeats them
MAX_GOAL = 32767  # goals are stored in 16 bits; lint reports goals above 100, but such games can be played

GroundTerm: TypeAlias = tuple[int, tuple["GroundTerm", ...]]
"""Number of the name, and the arguments. Actions are sorted by Python's order of these tuples."""


class Names:
    """Numbers and spellings of constants, functions and relations.

    The numbers follow the order of first appearance in the sheet. The spelling is that of the first appearance.

    made: number of a relation made by rewriting -> line of the rule of which it is a part; for error messages.
    """

    def __init__(self, sheet: Rulesheet) -> None:
        self.numbers: dict[str, int] = {}
        self.spellings: list[str] = []
        self.relations: dict[str, int] = {}
        self.relation_spellings: list[str] = []
        self.made: dict[int, int] = {}
        self.declared_roles: dict[GroundTerm, int] = {}
        self.add_relations(sheet)
        self._num_written, nests, longest, widest = len(self.relations), False, 0, 0
        for rule in sheet.rules:
            check()
            nests = nests or _nests(rule)
            names = list(syntax.named_terms(rule))
            longest, widest = max(longest, len(names)), max(widest, sum(1 for _ in syntax.term_variables(rule.head)))
            for term in names:
                self.intern(term.name, term.spelling)
            if rule.head.name == "role" and not rule.body and not any(syntax.term_variables(rule.head)):
                self.declared_roles.setdefault(self.ground_term(rule.head.args[0]), len(self.declared_roles))
        # If no rule nests terms, variables stand for terms that are written in a rule, and atoms have those of a head.
        self._has_large_terms = nests or longest * (widest + 1) > MOST_NAMES

    def add_relations(self, sheet: Rulesheet) -> None:
        """Number the relations of a sheet by first appearance."""
        for rule in sheet.rules:
            for atom in (rule.head, *syntax.body_atoms(rule)):
                if atom.name not in self.relations:
                    self.relations[atom.name] = len(self.relation_spellings)
                    self.relation_spellings.append(atom.spelling)

    def add_made_relations(self, rewritten: Rulesheet) -> None:
        """Number the relations that a rewriting has made, after those of the sheet."""
        self.add_relations(rewritten)
        for rule in reversed(rewritten.rules):
            number = self.relations[rule.head.name]
            if number >= self._num_written:
                self.made[number] = rule.location.line

    def intern(self, name: str, spelling: str) -> int:
        """Return the number of a name. A name that is not in the sheet gets a new number."""
        if name not in self.numbers:
            self.numbers[name] = len(self.spellings)
            self.spellings.append(spelling)
        return self.numbers[name]

    def has_names_of(self, term: Term) -> bool:
        """Return whether all constants and functions of a term have numbers."""
        if isinstance(term, Variable):
            return True
        arguments = term.args if isinstance(term, Function) else ()
        return term.name in self.numbers and all(map(self.has_names_of, arguments))

    def ground_term(self, term: Term) -> GroundTerm:
        """Return the numbered form of a term. Raises GDLSemanticError for a variable."""
        if isinstance(term, Variable):
            raise GDLSemanticError(
                f"expected a fact or a move without variables, got {term}",
                **term.location._asdict(),
                remedy=f"replace {term} by a term without variables",
            )
        number = self.intern(term.name, term.spelling)
        arguments = term.args if isinstance(term, Function) else ()
        return number, tuple(self.ground_term(argument) for argument in arguments)

    def place_of_role(self, role: GroundTerm) -> tuple[int, GroundTerm]:
        """Return the sort key of a role: roles have the order of their facts in the rules; other terms come last."""
        return self.declared_roles.get(role, len(self.declared_roles)), role

    def goal_value(self, term: GroundTerm) -> int | None:
        """Return the goal value of a term; None if it is no whole number from 0 to MAX_GOAL."""
        return goal_value(self.text(term))

    def sizes(self) -> dict[Any, int] | None:
        """Return an empty table of sizes for `terms_of`; None if no atom of the rules can have too many names."""
        return {} if self._has_large_terms else None

    def text(self, term: GroundTerm) -> str:
        """Return the canonical text in the spelling of the sheet: `(cell 1 1 b)`."""
        number, arguments = term
        if not arguments:
            return self.spellings[number]
        return f"({self.spellings[number]} {' '.join(map(self.text, arguments))})"


def _nests(rule: Rule) -> bool:
    """Return whether the head has a function with variables, or the body a variable that stands for a fact or move.

    In `(next (f ?x))`, only the arguments of f count.
    """
    places = rule.head.args
    if rule.head.name in _OF_FACTS_AND_MOVES and isinstance(places[-1], Function):
        places = (*places[:-1], *places[-1].args)
    return any(isinstance(term, Function) and syntax.variables_of(term) for term in places) or any(
        isinstance(atom.args[-1], Variable) for atom in syntax.body_atoms(rule) if atom.name in _OF_FACTS_AND_MOVES
    )


_OF_FACTS_AND_MOVES = KEYWORD_ARITY.keys() - {"role", "goal", "terminal"}


def goal_value(text: str) -> int | None:
    """Return the goal value that a text denotes; None if it is no whole number from 0 to MAX_GOAL."""
    digits = text.lstrip("0") or text[-1:]
    fits = digits.isascii() and digits.isdecimal() and len(digits) <= len(str(MAX_GOAL))
    return value if fits and (value := int(digits)) <= MAX_GOAL else None


TOKEN = re.compile(r"\d+|[()]")
RELATION = re.compile(r"(?:state_)?r(\d+)")
HOUR = 3600
COUNTED = 20_000  # an error message counts the atoms of a relation only up to this number


def _variable(name: str) -> str:
    return "V" + "".join(
        character if character.isalnum() and character.isascii() else f"_{ord(character)}_" for character in name
    )


class Translator:
    """Translator of rules to the text of an answer-set program. Subclasses may override `atom` and `conditions`."""

    def __init__(self, names: Names) -> None:
        self.names = names

    def term(self, term: Term) -> str:
        if isinstance(term, Variable):
            return _variable(term.name)
        arguments = term.args if isinstance(term, Function) else ()
        return _applied(f"c{self.names.numbers[term.name]}", map(self.term, arguments))

    def ground(self, term: GroundTerm) -> str:
        number, arguments = term
        return _applied(f"c{number}", map(self.ground, arguments))

    def relation(self, name: str) -> str:
        return name if name in KEYWORD_ARITY else f"r{self.names.relations[name]}"

    def atom(self, atom: Atom) -> str:
        return _applied(self.relation(atom.name), map(self.term, atom.args))

    def literal(self, literal: Literal) -> str:
        match literal.sentence:
            case Distinct(left, right):
                return f"{self.term(left)}{'!=' if literal.positive else '='}{self.term(right)}"
            case atom:
                return ("" if literal.positive else "not ") + self.atom(atom)

    def rules(self, sheet: Rulesheet) -> Iterator[str]:
        return (text for rule in sheet.rules for text in self.of_rule(rule, sheet.path))

    def of_rule(self, rule: Rule, path: Path | None) -> Iterator[str]:
        """Yield the text of a rule. A rule with an `or` gives one text for each conjunction."""
        head = self.atom(rule.head)
        for body in conjunctions(rule, path):
            conditions = self.conditions(rule, body)
            yield f"{head} :- {', '.join(conditions)}." if conditions else f"{head}."

    def conditions(self, rule: Rule, body: Iterable[Literal]) -> list[str]:
        """Return the texts of the conditions of one conjunction."""
        return list(map(self.literal, body))

    def relation_spelling(self, name: str) -> str:
        """Return the spelling of a relation, given its name in clingo."""
        number = _relation_number(name)
        return name if number is None else self.names.relation_spellings[number]

    def made_part(self, name: str) -> str:
        """Return a text for a relation that rewriting has made, given its name in clingo; "" for other relations."""
        number = _relation_number(name)
        return f"a part of the rule at line {self.names.made[number]}" if number in self.names.made else ""


def _relation_number(name: str) -> int | None:
    """Return the number of a relation, given its name in clingo; None for a keyword."""
    match = RELATION.fullmatch(name)
    return int(match[1]) if match else None


def _applied(name: str, arguments: Iterable[str]) -> str:
    """Return a name with its arguments in parentheses; the name alone if there are none."""
    text = ",".join(arguments)
    return f"{name}({text})" if text else name


def terms_of(symbol: Any, sizes: dict[Any, int] | None = None) -> tuple[GroundTerm, ...]:
    """Return the arguments of a clingo atom as numbered terms. A number n becomes the term `(n, ())`.

    This function parses the text of the atom, because it is slower to ask clingo for each part of a symbol.

    sizes: the numbers of names in the terms read before, see `Names.sizes`; None if the atom cannot be too large.

    Raises GroundingError for a term that `syntax.parse_term` would not read, because it has too many levels, and for
    more than MOST_NAMES names.
    """
    if sizes is not None:
        _refuse_large_terms(symbol, sizes)
    text = str(symbol)
    begin = text.find("(")
    return terms_in(text[begin:]) if begin >= 0 else ()


def terms_in(text: str) -> tuple[GroundTerm, ...]:
    """Return the terms of a text in parentheses, as they are in the text of a clingo atom; see `terms_of`."""
    open_: list[list[GroundTerm]] = [[]]
    for token in TOKEN.findall(text):
        if token == "(":
            open_.append([])
            if len(open_) > syntax.MAX_NESTING:
                raise GroundingError(
                    f"expected terms of at most {syntax.MAX_NESTING} levels, got a deeper one",
                    "limit the terms that a rule builds from other terms; a fact may grow with each move",
                )
        elif token == ")":
            arguments, outer = tuple(open_.pop()), open_[-1]
            if not outer:
                return arguments
            outer[-1] = outer[-1][0], arguments
        else:
            open_[-1].append((int(token), ()))
    raise AssertionError(f"expected an atom, got {text}")


def _refuse_large_terms(symbol: Any, sizes: dict[Any, int]) -> None:
    """Raise GroundingError for an atom of more than MOST_NAMES names."""
    if _num_names(symbol, sizes) > MOST_NAMES:
        raise GroundingError(
            f"expected terms of at most {MOST_NAMES} names, got a larger one",
            "limit the terms that a rule builds from other terms; they may double with each rule or move",
        )


def _num_names(symbol: Any, sizes: dict[Any, int]) -> int:
    """Return the number of names in the text of an atom. Its terms are visited once, and their numbers are kept."""
    terms = symbol.arguments
    stack = [term for term in terms if term not in sizes]
    while stack:
        check()
        parts = _parts(stack[-1])
        waiting = [part for part in parts if part not in sizes]
        if waiting:
            stack += waiting
        else:
            sizes[stack.pop()] = 1 + sum(sizes[part] for part in parts)
    return 1 + sum(sizes[term] for term in terms)


def _parts(symbol: Any) -> list[Any]:
    import clingo

    return symbol.arguments if symbol.type is clingo.SymbolType.Function else []


LongJoins: TypeAlias = Mapping[Rule, float]
"""Rule -> seconds for which its join may hold clingo, an upper bound; see `domains`."""
Part: TypeAlias = tuple[str, Sequence[Any]]
"""Part of a program that is to be ground: its name, and the values of its parameters, which are numbers of clingo."""
BASE: tuple[Part, ...] = (("base", ()),)
# part of the time that is left for a rehearsal; grounding and compiling take more than twice as long
REHEARSED = 0.3


class Grounding:
    """One grounding: the observer of clingo that counts ground rules, and that stops clingo at the limits.

    clingo tells the observer about each ground rule. It may also join conditions for a long time without a new ground
    rule. Therefore a program with joins that may be long is ground twice, first in a process that can be ended.

    sizes: see `Names.sizes`; None if no atom can be too large. If a program is solved, clingo writes the text of each
        atom that it shows, and nothing interrupts that. So large atoms are refused before.
    text: the program with long joins; "" for other programs.
    """

    def __init__(
        self,
        limits: Limits,
        long_joins: LongJoins = MappingProxyType({}),
        sizes: dict[Any, int] | None = None,
    ) -> None:
        self.long_joins, self.text = long_joins, ""
        if sizes is not None:  # clingo calls only the methods that an observer has, and a call for each atom is slow
            self.output_atom = lambda symbol, _: _refuse_large_terms(symbol, sizes)
        self.renew(limits)

    def renew(self, limits: Limits) -> None:
        """Restart counting, with new limits."""
        self.limits, self._num_rules, self.num_literals = limits, 0, 0
        self.exceeded = ""
        self._last = Rehearsed("ended", 0, 0.0)
        self._budget = Budget(limits)

    def rule(self, choice: bool, head: list[int], body: list[int]) -> None:
        """Count a ground rule. clingo calls this method for every ground rule."""
        if not choice:
            self.num_literals += len(body) + 1
        self._num_rules += 1
        if not self._num_rules % RULES_BETWEEN_LOOKS or self._num_rules == self._last.num_rules:
            self.check()

    @property
    def is_held(self) -> bool:
        """Whether a rehearsal used up its time in a join."""
        return self._last.end == "held"

    @property
    def is_out_of_budget(self) -> bool:
        """Whether the time or the memory is used up."""
        return bool(self._budget.exceeded)

    def check(self) -> None:
        """Raise GroundingError if there are too many literals, or if the time or the memory is used up.

        The grounding stops where a rehearsal that did not end had its last ground rule: what follows may take for ever.
        """
        end = self._last.end if self._num_rules >= self._last.num_rules else "ended"
        if self.num_literals > self.limits.literals or end == "literals":
            self.exceeded = f"{self.limits.literals} literals"
            raise GroundingError(self.exceeded)
        if end == "time" or end == "memory":
            self._within(partial(self._budget.fail, end))
        self._within(self._budget.check)

    def rehearse(self, added: Sequence[Text], parts: Sequence[Part]) -> None:
        """If joins may take too long, ground the program with more texts in a process of its own.

        Raises GroundingError if a join holds it for the part REHEARSED of the time that is left.
        """
        left = self._budget.left()
        seconds = REHEARSED * left.seconds
        if not left.rehearses or sum(self.long_joins.values()) < seconds:
            return
        if not seconds:
            self._within(partial(self._budget.fail, "time"))
        plain = [(name, [value.number for value in values]) for name, values in parts]
        texts = [("base", (), self.text), *added]
        self._last = rehearse(texts, plain, seconds, left.memory, self.limits.literals)
        spend(self._last.seconds)
        if self.is_held:
            self._within(partial(self._budget.fail, "time"))

    def _within(self, check: Callable[[], None]) -> None:
        try:
            check()
        except GroundingError:
            self.exceeded = self._budget.exceeded
            raise


def control(program: str, grounding: Grounding, *options: str, solves: bool = False) -> Any:
    """Return a clingo control with a program and its observer.

    solves: whether the solver of the control gets the ground rules, too.
    """
    import clingo

    made: Any = clingo.Control(["--warn=none", *options], message_limit=0)
    made.add("base", [], program)
    made.register_observer(grounding, replace=not solves)
    if solves:
        made.register_propagator(_Solving())
    grounding.text = program if grounding.long_joins else ""
    return made


class _Solving:
    """Propagator without constraints, by which clingo looks at the budget while it searches for a model.

    Rules without recursion through negation need no search. Others may be as hard as any puzzle.
    """

    def init(self, init: Any) -> None:
        """Let clingo call `check` before each guess."""
        import clingo

        init.check_mode = clingo.PropagatorCheckMode.Fixpoint

    def check(self, control: Any) -> None:
        """Raise GroundingError if the present budget is used up."""
        check()


def ground_within(
    control: Any,
    grounding: Grounding,
    parts: Sequence[Part] = BASE,
    added: Sequence[Text] = (),
) -> bool:
    """Ground parts of a program with clingo. Return False if the limits stopped the grounding.

    added: parts that are added to the program before.

    Raises GroundingError for a shown atom with too many names, see `Grounding`.
    """
    try:
        if grounding.text:
            grounding.rehearse(added, parts)
        for part in added:
            control.add(*part)
        control.ground(parts)
    except RuntimeError:
        if not grounding.exceeded:
            raise
    except GroundingError as error:
        if not grounding.exceeded:
            raise _of_callback(error) from None
    return not grounding.exceeded


def too_large(grounding: Grounding, control: Any, translator: Translator) -> GroundingError:
    """Return the error for a grounding that exceeds a limit: it names the largest relation or join."""
    return GroundingError(
        f"expected grounding to end within {grounding.exceeded}, but it did not"
        f"{largest_part(grounding, control, translator)}",
        'bound this relation, raise the limit, or use engine="reasoner", which grounds one state at a time',
    )


_SHARE = f"; joins may take {REHEARSED:.0%} of the time that is left"


def largest_part(grounding: Grounding, control: Any, translator: Translator) -> str:
    """Return a part of an error message: "; the largest relation is ..", or the same about the longest join."""
    if grounding.is_held:
        rule, seconds = max(grounding.long_joins.items(), key=itemgetter(1))
        duration = f"{seconds:.0f} s" if seconds < HOUR else "more than an hour"
        return f"; the longest join is that of the rule at line {rule.location.line}, which may take {duration}{_SHARE}"
    atoms = control.symbolic_atoms
    sizes: Counter[str] = Counter()
    for name, arity, _ in atoms.signatures:
        sizes[name] += sum(1 for _ in islice(atoms.by_signature(name, arity), COUNTED))
    largest = ""
    for name, size in sizes.most_common(1):
        relation = translator.made_part(name) or f"`{translator.relation_spelling(name)}`"
        number = f"{size} atoms" if size < COUNTED else f"at least {COUNTED} atoms"
        largest = f"; the largest relation is {relation}, with {number} so far"
    return largest


def atoms_of(control: Any, name: str, arity: int) -> Iterator[Any]:
    """Yield the symbolic atoms of a relation of a ground control."""
    for atom in control.symbolic_atoms.by_signature(name, arity):
        check()
        yield atom


def only_model(control: Any) -> list[Any]:
    """Return the shown atoms of the only model of a ground control that was made with "--models=2".

    Raises GDLSemanticError if there is not exactly one model.
    """
    models: list[list[Any]] = []
    try:
        control.solve(on_model=lambda model: models.append(list(model.symbols(shown=True))))
    except GroundingError as error:
        raise _of_callback(error) from None
    if len(models) != 1:
        raise GDLSemanticError(
            "no perfect model: a relation depends on its own negation in this state",
            remedy="break the cycle; `gamelore check` names the rule",
        )
    return models[0]


def _of_callback(error: GroundingError) -> GroundingError:
    """Return the error that a callback raised: clingo makes it the message of another one."""
    cause = error.args[0]
    return cause if isinstance(cause, GroundingError) else error


Sentences: TypeAlias = dict[str, list[tuple[str, ...]]]


def state_sentences(
    sheet: Rulesheet,
    words: Collection[str],
    facts: Iterable[str] = (),
    limits: Limits | None = None,
    long_joins: LongJoins = MappingProxyType({}),
) -> Sentences:
    """Return the arguments of all sentences of some GDL keywords that hold in a state.

    They are sorted like actions. `long_joins`: those of the sheet, see `domains`.

    Raises GroundingError if the limits are exceeded, and GDLSemanticError if the state has no perfect model.
    """
    names = Names(sheet)
    translator = Translator(names)
    needed = Rulesheet(tuple(_needed(sheet, words)), sheet.text, sheet.path)
    given = (f"true({translator.ground(names.ground_term(syntax.parse_term(fact)))})." for fact in facts)
    shown = (f"#show {word}/{KEYWORD_ARITY[word]}." for word in words)
    program = "\n".join((*translator.rules(needed), *given, "#show.", *shown))
    rows: dict[str, list[tuple[Any, ...]]] = {word: [] for word in words}
    grounding = Grounding(limits or Limits(), long_joins, names.sizes())
    asked = control(program, grounding, "--models=2", solves=True)
    if not ground_within(asked, grounding):
        raise GroundingError(f"expected an answer within {grounding.exceeded}, got none", "raise the limit")
    for symbol in only_model(asked):
        check()
        rows[symbol.name].append(terms_of(symbol))
    return {word: [tuple(map(names.text, terms)) for terms in sorted(rows[word])] for word in rows}


def _needed(sheet: Rulesheet, words: Collection[str]) -> Iterator[Rule]:
    """Return the rules on which the keywords `words` depend."""
    bodies = RelationGraph(sheet).bodies
    needed = reachable(bodies, map(keyword, words))
    return (rule for rule in sheet.rules if signature(rule.head) in needed)
