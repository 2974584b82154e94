"""Ground rules to equivalent ones that need far fewer gates, all rules at once.

Two steps, in turn, until neither finds much more:

*Merging.* Rules that differ in one literal only become one rule that asks for any of these literals, a *set*:
`h :- a, x.  h :- a, y.  h :- a, z.` becomes `h :- a, s.` with s = x or y or z. The same set in other rules is the same
new atom. A rule that could be merged in several ways follows the set that saves most over all rules.

*Factoring.* Rules of a head that share a literal become one: `h :- a, b.  h :- a, c, d.` becomes `h :- a, r.` with the
remainder `r :- b.  r :- c, d.`; equal remainders, of any heads, are the same new atom. Each rule follows that one of
its literals which most rules of its head have. (Algebraic factoring, as in Brayton 1987, but all heads at a time.)
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .ground import GroundProgram
from .groundrules import (
    GroundRules,
    Ints,
    bodies,
    drop_repeated,
    first_of_each,
    grouped,
    hashes,
    literal_hashes,
    mixed,
    numbered,
    rules_of,
    simplify,
    spread,
    wanted_atoms,
    whole_rules,
)

MAX_STEPS = 8
WORTHWHILE = 0.002  # of the rules: a step that finds less is the last of its kind


def fewer_rules(program: GroundProgram) -> GroundRules:
    """The rules that the wanted atoms of a program depend on, with new atoms for sets and remainders."""
    rules = rules_of(program)
    simplify(rules, wanted_atoms(program))
    sets = _Sets()
    sets.merge(rules)
    for _ in range(MAX_STEPS):
        enough = WORTHWHILE * rules.num_rules
        if _factor(rules) <= enough:
            break
        sets.merge(rules)
    sets.define(rules)
    return rules


@dataclass(frozen=True, slots=True)
class _Choice:
    """Places of literals, one in each rule that takes part, sorted by group; each group has several. int64[places]."""

    places: Ints
    group: Ints

    @property
    def firsts(self) -> Ints:
        """int64[groups]: where each group begins."""
        return first_of_each(self.group)

    @property
    def ends(self) -> Ints:
        """int64[groups]: where each group ends."""
        return np.append(self.firsts[1:], len(self.places))


def _places(rules: GroundRules) -> Ints:
    """The places of the literals that have others beside them in their rule."""
    return np.flatnonzero(np.repeat(rules.lengths > 1, rules.lengths))


def _in_groups_of_several(places: Ints, group: Ints) -> _Choice:
    """The groups, numbered anew, that have more than one member."""
    several = np.bincount(group)[group] > 1
    places, group = places[several], group[several]
    return _Choice(places, np.cumsum(np.diff(group, prepend=group[:1]) != 0))


def _choose(rules: GroundRules, offers: _Choice, values: Ints) -> _Choice:
    """Each rule follows its most valuable group, int64[groups]; of equal ones that of its largest literal."""
    rule = rules.rule_of_literal()[offers.places]
    scores = np.minimum(values, 2**31 - 1)[offers.group] << 32 | rules.literals[offers.places]
    best = np.zeros(rules.num_rules, np.int64)
    np.maximum.at(best, rule, scores)
    taken = scores == best[rule]
    return _in_groups_of_several(offers.places[taken], offers.group[taken])


@dataclass(slots=True)
class _Sets:
    """The new atoms for sets, and their members, one after the other: they are no rules before all merging is done."""

    atoms: list[Ints] = field(default_factory=list)
    members: list[Ints] = field(default_factory=list)

    def define(self, rules: GroundRules) -> None:
        """Adds a rule for each member of each set."""
        for atoms, members in zip(self.atoms, self.members, strict=True):
            rules.add_rules(atoms, members[:, None])

    def merge(self, rules: GroundRules) -> None:
        """Merges until little is left to merge."""
        for _ in range(MAX_STEPS):
            enough = WORTHWHILE * rules.num_rules
            if self._merge_once(rules) <= enough:
                return
            drop_repeated(rules)

    def _merge_once(self, rules: GroundRules) -> int:
        """Gives the number of rules saved."""
        offers = _variants(rules)
        _, set_of_group = _equal_sets(rules, offers)
        savings = np.bincount(set_of_group, weights=offers.ends - offers.firsts - 1).astype(np.int64)
        chosen = _choose(rules, offers, savings[set_of_group])
        examples, set_of_group = _equal_sets(rules, chosen)
        atoms = rules.add_atoms(len(examples))
        sizes = (chosen.ends - chosen.firsts)[examples]
        self.atoms.append(np.repeat(atoms, sizes))
        self.members.append(rules.literals[chosen.places[spread(chosen.firsts[examples], chosen.ends[examples])]])
        return _replace(rules, chosen, 2 * atoms[set_of_group])


def _variants(rules: GroundRules) -> _Choice:
    """Groups of literals whose rules differ only there."""
    places = _places(rules)
    of_literals = literal_hashes(rules)
    rest = whole_rules(rules, of_literals)[:, rules.rule_of_literal()[places]]
    rest -= of_literals[:, rules.literals[places]]
    order, group = grouped(rest)
    return _in_groups_of_several(places[order], group)


def _equal_sets(rules: GroundRules, choice: _Choice) -> tuple[Ints, Ints]:
    """One group for each different set of literals, and the set of each group."""
    of_literals = hashes(2 * rules.num_atoms, salt=3)
    members = rules.literals[choice.places]
    firsts = choice.firsts
    return numbered(np.stack([np.add.reduceat(word[members], firsts) for word in of_literals]))


def _replace(rules: GroundRules, chosen: _Choice, literals: Ints) -> int:
    """One rule of each group stays, with another literal at the chosen place. Gives the number of those that go."""
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
    """One step of factoring. Gives the number of rules that had a literal taken out."""
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
    """Groups of rules with the same head and the same literal."""
    places = _places(rules)
    heads = rules.heads[rules.rule_of_literal()[places]]
    keys = heads << 32 | rules.literals[places]
    order = np.argsort(keys)
    keys = keys[order]
    offers = _in_groups_of_several(places[order], np.cumsum(np.diff(keys, prepend=keys[:1]) != 0))
    return _choose(rules, offers, offers.ends - offers.firsts)


def _share_remainders(rules: GroundRules, rule: Ints, chosen: _Choice) -> Ints:
    """Makes the rules, int64[places], those of new atoms, one for each different remainder; gives each group's."""
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
