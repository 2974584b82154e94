"""Rules to ground rules over integer atoms, by clingo's grounder.

The rules become an answer-set program in which the facts of a state and the actions of the roles are choices:
`{true(F)} :- init(F).`, `{true(F)} :- next(F).`, `{does(R,M)} :- legal(R,M), role(R).` Grounding that program
instantiates every rule that any reachable state could need (and perhaps more: reachability is relaxed).
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import GroundingError
from .asp import RULES_BETWEEN_CHECKS, Budget, Limits, Translator, control, ground_within, terms_of
from .chase import Group
from .gdl import KEYWORD_ARITY, Rulesheet
from .names import GroundTerm, Names
from .rewrite import Rewritten


@dataclass(slots=True)
class GroundProgram:
    """Ground rules over atoms, which are numbers from 1; a body literal is an atom or minus an atom.

    Rule i derives atom `heads[i]` from `literals[offsets[i]:offsets[i + 1]]`: int32[rules], int64[rules + 1],
    int32[literals].
    `init`, `true`, `next` (fact -> atom), `does`, `legal` ((role, move) -> atom), `goal` ((role, value) -> atom) and
    `terminal` (0 where nothing derives it) say which atom stands for what; `texts` gives any atom's text. Atoms that
    no rule derives are false. Whether an atom holds is for its rules to say: the grounder lists what may hold. Of each
    list of facts in `unique`, the rules rely on no two to hold in a state.
    """

    names: Names
    heads: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    offsets: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))
    literals: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    roles: list[GroundTerm] = field(default_factory=list)
    init: dict[GroundTerm, int] = field(default_factory=dict)
    true: dict[GroundTerm, int] = field(default_factory=dict)
    next: dict[GroundTerm, int] = field(default_factory=dict)
    does: dict[tuple[GroundTerm, GroundTerm], int] = field(default_factory=dict)
    legal: dict[tuple[GroundTerm, GroundTerm], int] = field(default_factory=dict)
    goal: dict[tuple[GroundTerm, GroundTerm], int] = field(default_factory=dict)
    terminal: int = 0
    unique: list[list[GroundTerm]] = field(default_factory=list)
    texts: dict[int, str] = field(default_factory=dict)


CHOICES = """
{true(F)} :- init(F).
{true(F)} :- next(F).
{does(R,M)} :- legal(R,M), role(R).
"""


COUNTED = 100_000  # atoms of a relation that an error message counts


class _Recorder(Budget):
    """Keeps the rules."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self.heads, self.lengths, self.literals = array("i"), array("i"), array("i")
        self.given: set[int] = set()  # the atoms that the state and the players choose

    def rule(self, choice: bool, head: list[int], body: list[int]) -> None:
        if choice:
            self.given.update(head)
            return
        self.heads.append(head[0])
        self.lengths.append(len(body))
        self.literals.fromlist(body)
        if not len(self.heads) % RULES_BETWEEN_CHECKS:
            self.check(len(self.heads) + len(self.literals))

    def program(self, names: Names, guards: NDArray[np.int32]) -> GroundProgram:
        """The rules. Guards, which say what is wanted, are taken to hold: they only had to bound the grounding."""
        heads, lengths = np.array(self.heads, np.int32), np.array(self.lengths, np.int64)
        literals = np.array(self.literals, np.int32)
        rule_of = np.repeat(np.arange(len(heads)), lengths)
        kept_rules = ~np.isin(heads, guards)
        kept = ~np.isin(literals, guards) & kept_rules[rule_of]
        lengths = np.bincount(rule_of[kept], minlength=len(heads))[kept_rules]
        return GroundProgram(names, heads[kept_rules], np.concatenate([[0], np.cumsum(lengths)]), literals[kept])


def ground(sheet: Rulesheet, limits: Limits | None = None, names: Names | None = None) -> GroundProgram:
    """Grounds a rulesheet. Raises GroundingError over a limit, GDLSemanticError where `or`s explode.

    names: those of the rules as somebody wrote them, where the sheet is rewritten; they decide the order of actions.
    """
    names = names or Names(sheet)
    written = set(names.relations)
    names.add_relations(sheet)
    translator = Translator(names)
    made = {  # by rewriting; the user knows them as the line of a rule
        translator.relation(rule.head.name): rule.location.line
        for rule in reversed(sheet.rules)
        if rule.head.name not in written
    }
    recorder = _Recorder(limits or Limits())
    clingo = control("\n".join(translator.rules(sheet)) + CHOICES, recorder)
    if not ground_within(clingo, recorder):
        raise GroundingError(_too_large(recorder.exceeded, clingo, translator, made))
    rewritten = sheet if isinstance(sheet, Rewritten) else Rewritten(sheet.rules, sheet.text)
    program = recorder.program(names, _atoms(clingo, map(translator.relation, rewritten.guards)))
    _read_atoms(clingo, program, recorder.given)
    program.unique = [_facts(group, program) for group in sorted(rewritten.unique)]
    program.texts = _LazyTexts(clingo, translator, made)
    return program


def _atoms(clingo: Any, relations: Iterable[str]) -> NDArray[np.int32]:
    """All atoms of some relations."""
    chosen = set(relations)
    signatures = (found for found in clingo.symbolic_atoms.signatures if found[0] in chosen)
    atoms = (atom.literal for name, arity, _ in signatures for atom in clingo.symbolic_atoms.by_signature(name, arity))
    return np.fromiter(atoms, np.int32)


def _too_large(limit: str, clingo: Any, translator: Translator, made: Mapping[str, int]) -> str:
    """made: the relations that rewriting made, with the line of the rule that each is a part of."""
    atoms = clingo.symbolic_atoms
    sizes: Counter[str] = Counter()
    for name, arity, _ in atoms.signatures:
        sizes[name] += sum(1 for _ in islice(atoms.by_signature(name, arity), COUNTED))
    largest = ""
    for name, size in sizes.most_common(1):
        relation = _part(made[name]) if name in made else f"`{translator.relation_spelling(name)}`"
        number = f"{size} atoms" if size < COUNTED else f"{COUNTED} atoms or more"
        largest = f"; the largest relation is {relation}, with {number} so far"
    return (
        f"expected the rules to ground within {limit}, but they go on{largest}. "
        'Remedy: bound that relation, raise the limit, or use engine="reasoner", which grounds one state at a time'
    )


def _part(line: int) -> str:
    return f"a part of the rule at line {line}"


def _read_atoms(clingo: Any, program: GroundProgram, given: set[int]) -> None:
    """Sorts clingo's atoms into the words of GDL; a fact or move that is only ever negated is none."""
    unary = {"init": program.init, "true": program.true, "next": program.next}
    binary = {"does": program.does, "legal": program.legal, "goal": program.goal}
    for name in unary.keys() | binary.keys() | {"role", "terminal"}:
        for atom in clingo.symbolic_atoms.by_signature(name, KEYWORD_ARITY[name]):
            number = atom.literal
            if name in ("true", "does") and number not in given:
                continue
            terms = terms_of(atom.symbol)
            if name in unary:
                unary[name][terms[0]] = number
            elif name in binary:
                binary[name][terms[0], terms[1]] = number
            elif name == "terminal":
                program.terminal = number
            else:
                program.roles.append(terms[0])
    program.roles.sort(key=program.names.place_of_role)


def _facts(group: Group, program: GroundProgram) -> list[GroundTerm]:
    """The facts of a group."""
    numbers = program.names.numbers
    name, arity = numbers[group.fact[0]], group.fact[1]
    fixed = [(place, (numbers[constant], ())) for place, constant in group.fixed]
    return sorted(
        (number, terms)
        for number, terms in program.true
        if number == name and len(terms) == arity and all(terms[place] == term for place, term in fixed)
    )


class _LazyTexts(dict[int, str]):
    """Atom number to text, made when an error message asks for it."""

    def __init__(self, control: Any, translator: Translator, made: Mapping[str, int]) -> None:
        super().__init__()
        self.control, self.translator, self.made = control, translator, made

    def __missing__(self, number: int) -> str:
        for atom in self.control.symbolic_atoms:
            if atom.literal == number:
                if atom.symbol.name in self.made:
                    return _part(self.made[atom.symbol.name])
                arguments = map(self.translator.names.text, terms_of(atom.symbol))
                return f"({' '.join([self.translator.relation_spelling(atom.symbol.name), *arguments])})"
        return f"atom {number}"
