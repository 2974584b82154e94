"""Ground rules in flat arrays, and what can be simplified about all of them at once.

A literal is `2 * atom + negated`. Nothing here changes which atoms hold in a state in which at most one atom of each
group holds (the actions of a role are such a group); only rules that no wanted atom depends on are lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .ground import GroundProgram

Ints: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
Words: TypeAlias = NDArray[np.uint64]

NO_GROUP = -1
MAX_ROUNDS = 16  # of propagating constants; what is left then is for the gates to simplify


@dataclass(slots=True)
class GroundRules:
    """Rule i derives atom `heads[i]` where all of `literals[offsets[i]:offsets[i + 1]]` hold.

    heads: int64[rules], offsets: int64[rules + 1], literals: int64 (numpy indexes ten times as fast with these).
    `is_input`: bool[atoms], the facts and actions, which no rule derives. `groups`: int64[atoms], atoms of the same
    group exclude each other; NO_GROUP for the others. Atoms from `num_own_atoms` on are new ones.
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
        """int64[rules]: the number of literals of each rule."""
        return np.diff(self.offsets)

    def rule_of_literal(self) -> Ints:
        """int64[literals]: the rule that each stands in."""
        return np.repeat(np.arange(self.num_rules), self.lengths)

    def by_head(self) -> GroundRules:
        """The same rules, sorted by head."""
        order = np.argsort(self.heads, kind="stable")
        places = spread(self.offsets[order], self.offsets[order + 1])
        return replace(
            self, heads=self.heads[order], offsets=_offsets(self.lengths[order]), literals=self.literals[places]
        )

    def negating_themselves(self) -> Ints:
        """The atoms with `not` themselves in one of their rules."""
        heads = np.repeat(self.heads, self.lengths)
        return np.unique(heads[self.literals == 2 * heads + 1])

    def keep_rules(self, kept: Mask) -> None:
        """Only these rules, bool[rules], stay."""
        lengths = self.lengths
        self.literals = self.literals[np.repeat(kept, lengths)]
        self.heads = self.heads[kept]
        self.offsets = _offsets(lengths[kept])

    def keep_literals(self, kept: Mask) -> None:
        """Only these literals, bool[literals], stay; the rules do not change their places."""
        before = np.concatenate([[0], np.cumsum(kept)])
        self.literals = self.literals[kept]
        self.offsets = before[self.offsets]

    def add_atoms(self, number: int) -> Ints:
        """New atoms, int64[number]."""
        first = self.num_atoms
        self.is_input = np.concatenate([self.is_input, np.zeros(number, np.bool_)])
        self.groups = np.concatenate([self.groups, np.full(number, NO_GROUP)])
        return np.arange(first, first + number)

    def add_rules(self, heads: Ints, bodies: Ints) -> None:
        """Adds rules whose bodies, int64[rules, length], have one length."""
        self.heads = np.concatenate([self.heads, heads])
        self.literals = np.concatenate([self.literals, bodies.ravel()])
        ends = self.offsets[-1] + bodies.shape[1] * np.arange(1, len(heads) + 1)
        self.offsets = np.concatenate([self.offsets, ends])


def _offsets(lengths: Ints) -> Ints:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def rules_of(program: GroundProgram) -> GroundRules:
    """The rules of a ground program; each role's actions are a group."""
    literals = 2 * np.abs(program.literals.astype(np.int64)) + (program.literals < 0)
    named = [*program.true.values(), *program.does.values(), *wanted_atoms(program)]
    largest = max(int(program.heads.max(initial=0)), int(literals.max(initial=0)) >> 1, max(named, default=0))
    is_input, groups = np.zeros(largest + 1, np.bool_), np.full(largest + 1, NO_GROUP)
    is_input[[*program.true.values(), *program.does.values()]] = True
    for (role, _), atom in program.does.items():
        groups[atom] = program.roles.index(role)
    return GroundRules(program.heads.astype(np.int64), program.offsets, literals, is_input, groups, largest + 1)


def wanted_atoms(program: GroundProgram) -> list[int]:
    """The atoms that a state machine asks for."""
    relations = (program.legal, program.next, program.goal, program.init)
    return [*(atom for relation in relations for atom in relation.values()), program.terminal]


def simplify(rules: GroundRules, wanted: Sequence[int]) -> None:
    """Drops what is constant, what another atom says as well, what can not hold, and what nobody wants."""
    _propagate_constants(rules)
    _replace_aliases(rules)
    drop_unneeded(rules, wanted)
    normalise(rules)


def _propagate_constants(rules: GroundRules) -> None:
    """Atoms without rules are false, atoms with an empty body true, and so on; other rules of a true atom go."""
    for _ in range(MAX_ROUNDS):
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
    """An atom with one rule, of one literal, is that literal, wherever it is used. The rule itself stays.

    Not so with `not`, but before an input: a cycle through two of them would no longer be seen to be one through
    negation.
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
        same = same[same]
    in_circle = is_alias[same >> 1]  # aliases of each other, which the loops of the circuit take care of
    same[in_circle] = np.flatnonzero(in_circle)
    rules.literals = same[rules.literals]


def drop_unneeded(rules: GroundRules, wanted: Sequence[int]) -> None:
    """Keeps the rules that the wanted atoms depend on."""
    by_head = np.argsort(rules.heads, kind="stable")
    ends = np.cumsum(np.bincount(rules.heads, minlength=rules.num_atoms))
    starts = np.concatenate([[0], ends[:-1]])
    needed = np.zeros(rules.num_atoms, np.bool_)
    frontier = np.unique(np.asarray(wanted, np.int64))
    while len(frontier):
        needed[frontier] = True
        own = by_head[spread(starts[frontier], ends[frontier])]
        atoms = rules.literals[spread(rules.offsets[own], rules.offsets[own + 1])] >> 1
        frontier = np.unique(atoms[~needed[atoms]])
    rules.keep_rules(needed[rules.heads])


def spread(starts: Ints, ends: Ints) -> Ints:
    """The numbers of all the ranges [start, end), one range after the other."""
    lengths = ends - starts
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))


def normalise(rules: GroundRules) -> None:
    """Sorts each body, drops what stands in it twice or follows from the rest, and rules that can not hold or repeat.

    At most one atom of a group holds: two of them make a body false, and one of them makes `not` of another true.
    """
    keys = rules.rule_of_literal() << 32 | rules.literals
    keys.sort()
    keys = keys[_is_first(keys)]
    rule, literals = keys >> 32, keys & 0xFFFFFFFF
    impossible = np.zeros(rules.num_rules, np.bool_)
    opposite = (keys[1:] == keys[:-1] + 1) & (literals[1:] & 1 == 1)
    impossible[rule[1:][opposite]] = True
    impossible[rule[literals == 2 * rules.heads[rule]]] = True  # to hold because it holds is not to hold
    groups = rules.groups[literals >> 1]
    grouped, negated = groups != NO_GROUP, literals & 1 == 1
    members = rule << 32 | groups
    held = np.sort(members[grouped & ~negated])
    impossible[held[1:][held[1:] == held[:-1]] >> 32] = True
    excluded = grouped & negated
    excluded[excluded] = _is_among(members[excluded], held)
    rules.literals = literals
    rules.offsets = np.searchsorted(rule, np.arange(rules.num_rules + 1))
    rules.keep_literals(~excluded)
    rules.keep_rules(~impossible)
    drop_repeated(rules)


def _is_first(values: Ints) -> Mask:
    """Of sorted values, the first of each run of equal ones."""
    first = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=first[1:])
    return first


def _is_among(values: Ints, known: Ints) -> Mask:
    """Which of the values are among sorted ones."""
    if not len(known):
        return np.zeros(len(values), np.bool_)
    places = np.minimum(np.searchsorted(known, values), len(known) - 1)
    found: Mask = known[places] == values
    return found


def drop_repeated(rules: GroundRules) -> None:
    """Keeps one of rules with the same head and body; bodies must have no literal twice."""
    examples, _ = numbered(whole_rules(rules, literal_hashes(rules)))
    if len(examples) < rules.num_rules:
        kept = np.zeros(rules.num_rules, np.bool_)
        kept[examples] = True
        rules.keep_rules(kept)


# Rules and sets are compared by 128-bit sums of hashes, which do not depend on any order: two words, uint64[2, n]. That
# two different ones among ten million agree has a chance of about 1e-25.


def hashes(count: int, salt: int) -> Words:
    """uint64[2, count]: hashes of the numbers from 0; another salt gives other ones."""
    return mixed(np.arange(2 * count, dtype=np.uint64) + np.uint64(salt << 40)).reshape(2, count)


def mixed(words: Words) -> Words:
    """Each word hashed, by splitmix64 (Steele, Lea & Flood 2014)."""
    words = (words + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ words >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ words >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return words ^ words >> np.uint64(31)


def literal_hashes(rules: GroundRules) -> Words:
    """uint64[2, 2 * atoms]."""
    return hashes(2 * rules.num_atoms, salt=1)


def bodies(rules: GroundRules, of_literals: Words) -> Words:
    """uint64[2, rules]: the sum over each body."""
    sums = np.zeros((2, len(rules.literals) + 1), np.uint64)
    for word in range(2):
        np.cumsum(of_literals[word][rules.literals], out=sums[word, 1:])
    return sums[:, rules.offsets[1:]] - sums[:, rules.offsets[:-1]]


def whole_rules(rules: GroundRules, of_literals: Words) -> Words:
    """uint64[2, rules]: head and body."""
    return bodies(rules, of_literals) + hashes(rules.num_atoms, salt=2)[:, rules.heads]


def grouped(keys: Words) -> tuple[Ints, Ints]:
    """An order that puts equal keys, uint64[2, n], side by side, and the number of each one's group in that order."""
    order = np.argsort(keys[0])
    new = np.zeros(len(order), np.bool_)
    for word in keys:
        inside = word[order]
        new[1:] |= inside[1:] != inside[:-1]
    return order, np.cumsum(new)


def numbered(keys: Words) -> tuple[Ints, Ints]:
    """The first of each of the different keys, uint64[2, n], and which of these each key is."""
    order, group = grouped(keys)
    number = np.empty_like(group)
    number[order] = group
    return np.minimum.reduceat(order, first_of_each(group)) if len(order) else order, number


def first_of_each(group: Ints) -> Ints:
    """Where each group begins, of groups that are numbered and sorted."""
    return np.flatnonzero(np.diff(group, prepend=-1))
