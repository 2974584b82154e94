"""Ground programs by clingo, as flat arrays; simplification and algebraic factoring of all ground rules at once.

*Grounding.* The rules become an answer-set program in which the facts of a state and the actions of the roles are
choices: `{true(F)} :- init(F).`, `{true(F)} :- next(F).`, `{does(R,M)} :- legal(R,M), role(R).` Grounding this program
makes every ground rule that any reachable state can need. It may make more rules, because it treats some unreachable
states as reachable.

*Simplification.* A literal of `GroundRules` is `2 * atom + negated`. A *group* is a set of atoms of which at most one
holds, such as the actions of a role. Simplification and factoring do not change the answers in any state that respects
all groups: the same wanted atoms hold. Rules on which no wanted atom depends are dropped.

*Factoring* gives equivalent rules that need far fewer gates. Two steps alternate until neither saves much more:

- Merging. If several rules are equal except for one literal, one rule replaces them. The different literals form a
  *set*; the new rule has a new atom in their place, which holds if one of them holds. For example,
  `h :- a, x.  h :- a, y.  h :- a, z.` becomes `h :- a, s.` with s = x or y or z. Equal sets get the same new atom. If a
  rule can be merged in several ways, the set that saves most over all rules is chosen.
- Factoring. If several rules of a head share a literal, one rule replaces them: `h :- a, b.  h :- a, c, d.` becomes
  `h :- a, r.` with the *remainder* `r :- b.  r :- c, d.` Equal remainders get the same new atom, even for different
  heads. For each rule, the literal that occurs in the most rules of its head is chosen. This is algebraic factoring
  (Brayton 1987), for all heads at once.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..gdl.limits import Limits, check, working_on
from ..gdl.syntax import Rulesheet
from .clingo import (
    Grounding,
    GroundTerm,
    LongJoins,
    Names,
    Translator,
    atoms_of,
    control,
    ground_within,
    terms_of,
    too_large,
)
from .domains import GIVEN, long_joins
from .invariants import Group
from .optimize import Rewritten


@dataclass(slots=True)
class GroundProgram:
    """Ground rules over atoms. An atom is a number from 1; a literal of a body is an atom, or minus an atom.

    Rule i derives atom `heads[i]` from `literals[offsets[i]:offsets[i + 1]]`.

    heads: int32[rules]. offsets: int64[rules + 1]. literals: int32[literals].
    init, true, next: fact -> atom. does, legal: (role, move) -> atom. goal: (role, value) -> atom. These mappings list
        the atoms that may hold. Atoms that no rule derives are false.
    terminal: the atom of `terminal`; 0 if no rule derives it.
    texts: the text of any atom.
    unique: lists of facts. The rules are correct only in states in which at most one fact of each list holds.
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


class _Recorder(Grounding):
    """Grounding that records the ground rules."""

    def __init__(self, limits: Limits, long_joins: LongJoins) -> None:
        super().__init__(limits, long_joins)
        self.heads, self.lengths, self.literals = array("i"), array("i"), array("i")
        self.given: set[int] = set()  # atoms of facts and actions: the state and the players choose them

    def rule(self, choice: bool, head: list[int], body: list[int]) -> None:
        if choice:
            self.given.update(head)
        else:
            self.heads.append(head[0])
            self.lengths.append(len(body))
            self.literals.fromlist(body)
        super().rule(choice, head, body)

    def program(self, names: Names, guards: NDArray[np.int32]) -> GroundProgram:
        """Return the ground program. Guards count as true: their only purpose is to limit the grounding."""
        heads, lengths = np.array(self.heads, np.int32), np.array(self.lengths, np.int64)
        literals = np.array(self.literals, np.int32)
        rule_of = np.repeat(np.arange(len(heads)), lengths)
        kept_rules = ~np.isin(heads, guards)
        kept = ~np.isin(literals, guards) & kept_rules[rule_of]
        lengths = np.bincount(rule_of[kept], minlength=len(heads))[kept_rules]
        return GroundProgram(names, heads[kept_rules], _offsets(lengths), literals[kept])


def ground(sheet: Rulesheet, limits: Limits | None = None, names: Names | None = None) -> GroundProgram:
    """Ground a rulesheet.

    names: the names of the original rules if the sheet is rewritten. The names decide the order of actions.

    Raises GroundingError if a limit is exceeded, and GDLSemanticError if the `or`s of a rule give too many
    conjunctions.
    """
    names = names or Names(sheet)
    names.add_made_relations(sheet)
    if isinstance(sheet, Rewritten):
        rewritten = sheet
    else:
        rewritten = Rewritten(sheet.rules, sheet.text, long_joins=long_joins(sheet, GIVEN))
    translator = Translator(names)
    working_on("grounding")
    recorder = _Recorder(limits or Limits(), rewritten.long_joins)
    clingo = control("\n".join(translator.rules(sheet)) + CHOICES, recorder)
    if not ground_within(clingo, recorder):
        raise too_large(recorder, clingo, translator)
    program = recorder.program(names, _atoms(clingo, map(translator.relation, rewritten.guards)))
    _read_atoms(clingo, program, recorder.given)
    program.unique = [_facts(group, program) for group in sorted(rewritten.unique)]
    program.texts = _LazyTexts(clingo, translator)
    return program


def _atoms(clingo: Any, relations: Iterable[str]) -> NDArray[np.int32]:
    """Return all atoms of some relations, int32[atoms]."""
    chosen = set(relations)
    signatures = ((name, arity) for name, arity, _ in clingo.symbolic_atoms.signatures if name in chosen)
    return np.fromiter((atom.literal for key in signatures for atom in atoms_of(clingo, *key)), np.int32)


def _read_atoms(clingo: Any, program: GroundProgram, given: set[int]) -> None:
    """Read the atoms of the GDL keywords from clingo. Leave out facts and moves that appear only negated."""
    sizes = program.names.sizes()
    for name, by_term in (("init", program.init), ("true", program.true), ("next", program.next)):
        for atom in atoms_of(clingo, name, 1):
            if name != "true" or atom.literal in given:
                by_term[terms_of(atom.symbol, sizes)[0]] = atom.literal
    for name, by_pair in (("does", program.does), ("legal", program.legal), ("goal", program.goal)):
        for atom in atoms_of(clingo, name, 2):
            if name != "does" or atom.literal in given:
                role, term = terms_of(atom.symbol, sizes)
                by_pair[role, term] = atom.literal
    roles = (terms_of(atom.symbol, sizes)[0] for atom in atoms_of(clingo, "role", 1))
    program.roles = sorted(roles, key=program.names.place_of_role)
    program.terminal = next((atom.literal for atom in atoms_of(clingo, "terminal", 0)), 0)


def _facts(group: Group, program: GroundProgram) -> list[GroundTerm]:
    """Return the facts of a group that are in the ground program."""
    numbers = program.names.numbers
    name, arity = numbers[group.fact[0]], group.fact[1]
    fixed = [(place, (numbers[constant], ())) for place, constant in group.fixed]
    return sorted(
        (number, terms)
        for number, terms in program.true
        if number == name and len(terms) == arity and all(terms[place] == term for place, term in fixed)
    )


class _LazyTexts(dict[int, str]):
    """Texts of atoms by number, computed when an error message asks for one."""

    def __init__(self, control: Any, translator: Translator) -> None:
        super().__init__()
        self.control, self.translator = control, translator

    def __missing__(self, number: int) -> str:
        for atom in self.control.symbolic_atoms:
            if atom.literal == number:
                if made := self.translator.made_part(atom.symbol.name):
                    return made
                arguments = map(self.translator.names.text, terms_of(atom.symbol, {}))
                return f"({' '.join([self.translator.relation_spelling(atom.symbol.name), *arguments])})"
        return f"atom {number}"


Ints: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
Words: TypeAlias = NDArray[np.uint64]

NO_GROUP = -1
MAX_ROUNDS = 16  # maximum number of rounds of constant propagation; the circuit removes the remaining constants


@dataclass(slots=True)
class GroundRules:
    """Ground rules as arrays. Rule i derives atom `heads[i]` if all of `literals[offsets[i]:offsets[i + 1]]` hold.

    heads: int64[rules]. offsets: int64[rules + 1]. literals: int64. With int64, numpy indexes ten times as fast.
    is_input: bool[atoms], whether the atom is a fact or an action. No rule derives these atoms.
    groups: int64[atoms], the group of each atom; NO_GROUP for atoms without a group. At most one atom of a group holds.
    num_own_atoms: the number of atoms of the ground program. Atoms from this number on were added later.
    """

    heads: Ints
    offsets: Ints
    literals: Ints
    is_input: Mask
    groups: Ints
    num_own_atoms: int

    @property
    def num_rules(self) -> int:
        return len(self.heads)

    @property
    def num_atoms(self) -> int:
        return len(self.is_input)

    @property
    def lengths(self) -> Ints:
        """Number of literals of each rule, int64[rules]."""
        return np.diff(self.offsets)

    def rule_of_literal(self) -> Ints:
        """Return the rule of each literal, int64[literals]."""
        return np.repeat(np.arange(self.num_rules), self.lengths)

    def by_head(self) -> GroundRules:
        """Return the rules sorted by head."""
        order = np.argsort(self.heads, kind="stable")
        literals = self.literals[joined_ranges(self.offsets[order], self.offsets[order + 1])]
        return replace(self, heads=self.heads[order], offsets=_offsets(self.lengths[order]), literals=literals)

    def negating_themselves(self) -> Ints:
        """Return the atoms that have their own negation in the body of one of their rules."""
        heads = np.repeat(self.heads, self.lengths)
        return np.unique(heads[self.literals == 2 * heads + 1])

    def keep_rules(self, kept: Mask) -> None:
        """Keep only these rules, bool[rules]."""
        lengths = self.lengths
        self.literals = self.literals[np.repeat(kept, lengths)]
        self.heads = self.heads[kept]
        self.offsets = _offsets(lengths[kept])

    def keep_literals(self, kept: Mask) -> None:
        """Keep only these literals, bool[literals]. Every rule keeps its index."""
        self.literals = self.literals[kept]
        self.offsets = _offsets(kept)[self.offsets]

    def add_atoms(self, number: int) -> Ints:
        """Add new atoms and return them, int64[number]."""
        first = self.num_atoms
        self.is_input = np.concatenate([self.is_input, np.zeros(number, np.bool_)])
        self.groups = np.concatenate([self.groups, np.full(number, NO_GROUP)])
        return np.arange(first, first + number)

    def add_rules(self, heads: Ints, bodies: Ints) -> None:
        """Add rules with bodies of equal length, int64[rules, length]."""
        self.heads = np.concatenate([self.heads, heads])
        self.literals = np.concatenate([self.literals, bodies.ravel()])
        ends = self.offsets[-1] + bodies.shape[1] * np.arange(1, len(heads) + 1)
        self.offsets = np.concatenate([self.offsets, ends])


def _offsets(lengths: Ints | Mask) -> Ints:
    """Return 0 followed by the cumulative sums of the lengths, int64[n + 1]."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def rules_of(program: GroundProgram) -> GroundRules:
    """Return the rules of a ground program; the actions of each role are a group."""
    literals = 2 * np.abs(program.literals.astype(np.int64)) + (program.literals < 0)
    named = [*program.true.values(), *program.does.values(), *wanted_atoms(program)]
    largest = max(int(program.heads.max(initial=0)), int(literals.max(initial=0)) >> 1, max(named, default=0))
    is_input, groups = np.zeros(largest + 1, np.bool_), np.full(largest + 1, NO_GROUP)
    is_input[[*program.true.values(), *program.does.values()]] = True
    number = {role: number for number, role in enumerate(program.roles)}
    for (role, _), atom in program.does.items():
        groups[atom] = number[role]
    return GroundRules(program.heads.astype(np.int64), program.offsets, literals, is_input, groups, largest + 1)


def wanted_atoms(program: GroundProgram) -> list[int]:
    """Return the atoms that a game needs: `legal`, `next`, `goal`, `init` and `terminal`."""
    relations = (program.legal, program.next, program.goal, program.init)
    return [*(atom for relation in relations for atom in relation.values()), program.terminal]


def simplify(rules: GroundRules, wanted: Sequence[int]) -> None:
    """Simplify the rules: remove constants, aliases, impossible bodies, and rules on which no wanted atom depends."""
    _propagate_constants(rules)
    _replace_aliases(rules)
    drop_unneeded(rules, wanted)
    normalise(rules)


def _propagate_constants(rules: GroundRules) -> None:
    """Propagate constants. Atoms without rules are false, and atoms with an empty body are true.

    The other rules of a true atom are dropped.
    """
    for _ in range(MAX_ROUNDS):
        check()
        can_hold = rules.is_input.copy()
        can_hold[rules.heads] = True
        holds = np.zeros(rules.num_atoms, np.bool_)
        holds[rules.heads[rules.lengths == 0]] = True
        atoms, negated = rules.literals >> 1, (rules.literals & 1).astype(np.bool_)
        is_true = np.where(negated, ~can_hold[atoms], holds[atoms])
        is_false = np.where(negated, holds[atoms], ~can_hold[atoms])
        if not (is_true.any() or is_false.any()):
            return
        possible = np.ones(rules.num_rules, np.bool_)
        possible[rules.rule_of_literal()[is_false]] = False
        rules.keep_literals(~is_true)
        possible &= ~(holds[rules.heads] & (rules.lengths > 0))
        rules.keep_rules(possible)


def _replace_aliases(rules: GroundRules) -> None:
    """Replace an atom whose only rule has one literal by this literal in all bodies. The rule itself stays.

    A negated literal is substituted only if its atom is an input. Otherwise two negations in a cycle could cancel each
    other, and the cycle would no longer be recognised as a cycle through negation.
    """
    alone = np.bincount(rules.heads, minlength=rules.num_atoms)[rules.heads] == 1
    alone &= rules.lengths == 1
    heads, meanings = rules.heads[alone], rules.literals[rules.offsets[:-1][alone]]
    fits = (meanings & 1 == 0) | rules.is_input[meanings >> 1]
    heads, meanings = heads[fits], meanings[fits]
    same = np.arange(2 * rules.num_atoms)
    same[2 * heads], same[2 * heads + 1] = meanings, meanings ^ 1
    is_alias = np.zeros(rules.num_atoms, np.bool_)
    is_alias[heads] = True
    for _ in range(rules.num_atoms.bit_length()):
        check()
        same = same[same]
    in_cycle = is_alias[same >> 1]  # atoms that are aliases of each other stay; the circuit treats them as a loop
    same[in_cycle] = np.flatnonzero(in_cycle)
    rules.literals = same[rules.literals]


def drop_unneeded(rules: GroundRules, wanted: Sequence[int]) -> None:
    """Keep only the rules on which the wanted atoms depend."""
    by_head = np.argsort(rules.heads, kind="stable")
    firsts = _offsets(np.bincount(rules.heads, minlength=rules.num_atoms))
    needed = np.zeros(rules.num_atoms, np.bool_)
    frontier = np.unique(np.asarray(wanted, np.int64))
    while len(frontier):
        check()
        needed[frontier] = True
        own = by_head[joined_ranges(firsts[frontier], firsts[frontier + 1])]
        atoms = rules.literals[joined_ranges(rules.offsets[own], rules.offsets[own + 1])] >> 1
        frontier = np.unique(atoms[~needed[atoms]])
    rules.keep_rules(needed[rules.heads])


def joined_ranges(starts: Ints, ends: Ints) -> Ints:
    """Return all integers of the ranges [start, end), one range after the other."""
    lengths = ends - starts
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))


def normalise(rules: GroundRules) -> None:
    """Sort each body. Drop repeated and implied literals, repeated rules, and rules whose body can never hold.

    At most one atom of a group holds. Therefore a body with two atoms of a group never holds, and an atom of a group
    implies the negations of the other atoms of the group.
    """
    keys = rules.rule_of_literal() << 32 | rules.literals
    keys.sort()
    keys = keys[np.diff(keys, prepend=-1) != 0]
    rule, literals = keys >> 32, keys & 0xFFFFFFFF
    impossible = np.zeros(rules.num_rules, np.bool_)
    opposite = (keys[1:] == keys[:-1] + 1) & (literals[1:] & 1 == 1)
    impossible[rule[1:][opposite]] = True
    impossible[rule[literals == 2 * rules.heads[rule]]] = True  # a rule whose body contains its head derives nothing
    groups = rules.groups[literals >> 1]
    grouped, negated = groups != NO_GROUP, literals & 1 == 1
    members = rule << 32 | groups
    held = np.sort(members[grouped & ~negated])
    impossible[held[1:][held[1:] == held[:-1]] >> 32] = True
    excluded = grouped & negated
    asked = members[excluded]
    excluded[excluded] = np.append(held, -1)[np.searchsorted(held, asked)] == asked
    rules.literals = literals
    rules.offsets = np.searchsorted(rule, np.arange(rules.num_rules + 1))
    rules.keep_literals(~excluded)
    rules.keep_rules(~impossible)
    drop_repeated(rules)


def drop_repeated(rules: GroundRules) -> None:
    """Keep one rule of all rules with equal head and equal body. No body may contain a literal twice."""
    examples, _ = numbered(whole_rules(rules, literal_hashes(rules)))
    if len(examples) < rules.num_rules:
        kept = np.zeros(rules.num_rules, np.bool_)
        kept[examples] = True
        rules.keep_rules(kept)


# Rules and sets are compared by sums of 128-bit hashes, which do not depend on the order of the literals. A sum is two
# words: n sums are uint64[2, n]. The probability of a collision among ten million sums is about 1e-25.


def hashes(count: int, salt: int) -> Words:
    """Return hashes of the numbers 0 to count - 1, uint64[2, count]. Different salts give different hashes."""
    return mixed(np.arange(2 * count, dtype=np.uint64) + np.uint64(salt << 40)).reshape(2, count)


def mixed(words: Words) -> Words:
    """Return the hash of each word by splitmix64 (Steele, Lea & Flood 2014)."""
    words = (words + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ words >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ words >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return words ^ words >> np.uint64(31)


def literal_hashes(rules: GroundRules) -> Words:
    """Return the hashes of all literals, uint64[2, 2 * atoms]."""
    return hashes(2 * rules.num_atoms, salt=1)


def bodies(rules: GroundRules, of_literals: Words) -> Words:
    """Return the sum of the literals' hashes for each body, uint64[2, rules]."""
    sums = np.zeros((2, len(rules.literals) + 1), np.uint64)
    for word in range(2):
        np.cumsum(of_literals[word][rules.literals], out=sums[word, 1:])
    return sums[:, rules.offsets[1:]] - sums[:, rules.offsets[:-1]]


def whole_rules(rules: GroundRules, of_literals: Words) -> Words:
    """Return a hash of the head and the body of each rule, uint64[2, rules]."""
    return bodies(rules, of_literals) + hashes(rules.num_atoms, salt=2)[:, rules.heads]


def grouped(keys: Words) -> tuple[Ints, Ints]:
    """Group equal keys. Return an order of the keys and the group index of each key in this order, int64[n] each.

    keys: uint64[2, n]. Equal keys are adjacent in the order.
    """
    order = np.argsort(keys[0])
    new = np.zeros(len(order), np.bool_)
    for word in keys:
        inside = word[order]
        new[1:] |= inside[1:] != inside[:-1]
    return order, np.cumsum(new)


def numbered(keys: Words) -> tuple[Ints, Ints]:
    """Number the different keys. Return an example of each number, and the number of each key, int64[n].

    keys: uint64[2, n]. Equal keys have equal numbers. The example is the index of the first key with the number.
    """
    order, group = grouped(keys)
    number = np.empty_like(group)
    number[order] = group
    return np.minimum.reduceat(order, first_of_each(group)) if len(order) else order, number


def first_of_each(group: Ints) -> Ints:
    """Return the start of each group in an array of sorted group numbers."""
    return np.flatnonzero(np.diff(group, prepend=-1))


MAX_STEPS = 8
WORTHWHILE = 0.002  # a step is not repeated if it has saved less than this fraction of the rules


def factor_rules(program: GroundProgram) -> GroundRules:
    """Return the factored rules of a program. They contain new atoms for sets and remainders."""
    working_on("simplifying the ground rules")
    rules = rules_of(program)
    simplify(rules, wanted_atoms(program))
    sets = _Sets()
    sets.merge(rules)
    for _ in range(MAX_STEPS):
        check()
        enough = WORTHWHILE * rules.num_rules
        if _factor(rules) <= enough:
            break
        sets.merge(rules)
    sets.define(rules)
    return rules


@dataclass(frozen=True, slots=True)
class _Choice:
    """Groups of places. A place is the index of a literal in the array of all literals.

    The places of a group are in different rules.

    places: int64[places], sorted by group.
    group: int64[places], the group of each place.
    """

    places: Ints
    group: Ints

    @property
    def firsts(self) -> Ints:
        """Start of each group, int64[groups]."""
        return first_of_each(self.group)

    @property
    def ends(self) -> Ints:
        """End of each group, int64[groups]."""
        return np.append(self.firsts[1:], len(self.places))


def _places(rules: GroundRules) -> Ints:
    """Return the places of the literals in rules with more than one literal."""
    return np.flatnonzero(np.repeat(rules.lengths > 1, rules.lengths))


def _in_groups_of_several(places: Ints, group: Ints) -> _Choice:
    """Return the groups that have more than one member. They get new numbers from 0."""
    several = np.bincount(group)[group] > 1
    places, group = places[several], group[several]
    return _Choice(places, np.cumsum(np.diff(group, prepend=group[:1]) != 0))


def _choose(rules: GroundRules, offers: _Choice, values: Ints) -> _Choice:
    """Choose for each rule the group with the largest value. In a tie, choose the largest literal.

    values: int64[groups].
    """
    rule = rules.rule_of_literal()[offers.places]
    scores = np.minimum(values, 2**31 - 1)[offers.group] << 32 | rules.literals[offers.places]
    best = np.zeros(rules.num_rules, np.int64)
    np.maximum.at(best, rule, scores)
    taken = scores == best[rule]
    return _in_groups_of_several(offers.places[taken], offers.group[taken])


@dataclass(slots=True)
class _Sets:
    """New atoms for sets, and the members of the sets. Their rules are added only after all merging."""

    atoms: list[Ints] = field(default_factory=list)
    members: list[Ints] = field(default_factory=list)

    def define(self, rules: GroundRules) -> None:
        """Add a rule for each member of each set."""
        for atoms, members in zip(self.atoms, self.members, strict=True):
            rules.add_rules(atoms, members[:, None])

    def merge(self, rules: GroundRules) -> None:
        """Merge rules step by step until a step saves only few rules."""
        for _ in range(MAX_STEPS):
            check()
            enough = WORTHWHILE * rules.num_rules
            if self._merge_once(rules) <= enough:
                return
            drop_repeated(rules)

    def _merge_once(self, rules: GroundRules) -> int:
        """Merge once. Return the number of rules that this saves."""
        offers = _variants(rules)
        _, set_of_group = _equal_sets(rules, offers)
        savings = np.bincount(set_of_group, weights=offers.ends - offers.firsts - 1).astype(np.int64)
        chosen = _choose(rules, offers, savings[set_of_group])
        examples, set_of_group = _equal_sets(rules, chosen)
        atoms = rules.add_atoms(len(examples))
        sizes = (chosen.ends - chosen.firsts)[examples]
        self.atoms.append(np.repeat(atoms, sizes))
        self.members.append(
            rules.literals[chosen.places[joined_ranges(chosen.firsts[examples], chosen.ends[examples])]]
        )
        return _replace(rules, chosen, 2 * atoms[set_of_group])


def _variants(rules: GroundRules) -> _Choice:
    """Return groups of places. The rules of a group are equal except for the literals at these places."""
    places = _places(rules)
    of_literals = literal_hashes(rules)
    rest = whole_rules(rules, of_literals)[:, rules.rule_of_literal()[places]]
    rest -= of_literals[:, rules.literals[places]]
    order, group = grouped(rest)
    return _in_groups_of_several(places[order], group)


def _equal_sets(rules: GroundRules, choice: _Choice) -> tuple[Ints, Ints]:
    """Compare the sets of literals of all groups. Return an example group for each set, and the set of each group."""
    of_literals = hashes(2 * rules.num_atoms, salt=3)
    members = rules.literals[choice.places]
    firsts = choice.firsts
    return numbered(np.stack([np.add.reduceat(word[members], firsts) for word in of_literals]))


def _replace(rules: GroundRules, chosen: _Choice, literals: Ints) -> int:
    """Keep one rule of each group, and put a new literal at its chosen place. Return the number of dropped rules."""
    firsts = chosen.places[chosen.firsts]
    rule = rules.rule_of_literal()
    kept = np.ones(rules.num_rules, np.bool_)
    kept[rule[chosen.places]] = False
    kept[rule[firsts]] = True
    rules.literals = rules.literals.copy()
    rules.literals[firsts] = literals
    rules.keep_rules(kept)
    return len(chosen.places) - len(firsts)


def _factor(rules: GroundRules) -> int:
    """Factor once. Return the number of rules that lose a literal."""
    chosen = _choose_factors(rules)
    firsts = chosen.places[chosen.firsts]
    rule = rules.rule_of_literal()
    heads, factors, rule = rules.heads[rule[firsts]], rules.literals[firsts], rule[chosen.places]
    kept = np.ones(len(rules.literals), np.bool_)
    kept[chosen.places] = False
    rules.keep_literals(kept)
    remainders = _share_remainders(rules, rule, chosen)
    rules.add_rules(heads, np.stack([factors, 2 * remainders], axis=1))
    return len(chosen.places)


def _choose_factors(rules: GroundRules) -> _Choice:
    """Return groups of places. The rules of a group have the same head and the same literal at these places."""
    places = _places(rules)
    heads = rules.heads[rules.rule_of_literal()[places]]
    keys = heads << 32 | rules.literals[places]
    order = np.argsort(keys)
    keys = keys[order]
    offers = _in_groups_of_several(places[order], np.cumsum(np.diff(keys, prepend=keys[:1]) != 0))
    return _choose(rules, offers, offers.ends - offers.firsts)


def _share_remainders(rules: GroundRules, rule: Ints, chosen: _Choice) -> Ints:
    """Turn the rules that lost a literal into rules of new atoms, one atom for each different remainder.

    rule: the rule of each chosen place, int64[places].

    Return the new atom of each group.
    """
    of_bodies = mixed(bodies(rules, literal_hashes(rules))[:, rule])
    firsts = chosen.firsts
    examples, number = numbered(np.stack([np.add.reduceat(word, firsts) for word in of_bodies]))
    atoms = rules.add_atoms(len(examples))
    rules.heads = rules.heads.copy()
    rules.heads[rule] = atoms[number][chosen.group]
    is_example = np.zeros(len(number), np.bool_)
    is_example[examples] = True
    kept = np.ones(rules.num_rules, np.bool_)
    kept[rule] = is_example[chosen.group]
    rules.keep_rules(kept)
    return atoms[number]
