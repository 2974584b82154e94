"""Atoms that only say how many of some other atoms hold, such as those that count pieces one cell after the other.

    (<= (at_least ?k ?n) (next_cell ?j ?k) (at_least ?j ?n))
    (<= (at_least ?k ?n) (next_cell ?j ?k) (true (cell ?k x)) (succ ?m ?n) (at_least ?j ?m))

What such rules derive for the last cell does not depend on the order of the cells, but the rules do. So symmetries of
the game are not symmetries of these rules; they are again when one rule says the same of all cells at once.

A *tally* of an atom: it holds as a function of how many of its members hold. It is found bottom up: rules whose bodies
speak of tallies with equal or disjoint members are tabulated over the numbers of members that may hold in each, and
where the table depends on the sum alone the head is a tally of all of them. So what is found is proven.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .cycles import components
from .groundrules import GroundRules, drop_unneeded

LARGEST_TABLE = 5000
MOST_LITERALS = 200  # in the rules of one atom
MOST_WORK = 500_000  # literals in all tables together, about four seconds; where there would be more, none is replaced


@dataclass(frozen=True, slots=True)
class Tally:
    """The atom holds where `holds[n]`, n being how many of the members do."""

    members: frozenset[int]
    holds: tuple[bool, ...]


def count_at_once(rules: GroundRules, wanted: Sequence[int]) -> dict[int, tuple[bool, ...]]:
    """Puts one rule in the place of those that count step by step.

    Its body are the members and a new atom, an input that stands for how many must hold; the result says for what. The
    rules, simplified before, are then none for a simulator, nor to be simplified again. Equal rules would be treated
    equally.
    """
    return _Counting(rules, wanted).replace()


class _Counting:
    """`tallies` has those of each atom, the largest first; `bodies` the rules of each atom that has some."""

    def __init__(self, rules: GroundRules, wanted: Sequence[int]) -> None:
        self.rules, self.wanted = rules, wanted
        self.bodies: dict[int, list[list[int]]] = {}
        literals, offsets = rules.literals.tolist(), rules.offsets.tolist()
        for rule, head in enumerate(rules.heads.tolist()):
            self.bodies.setdefault(head, []).append(literals[offsets[rule] : offsets[rule + 1]])
        self.tallies: dict[int, list[Tally]] = {}
        self.work = 0

    def _dependencies(self, atom: int) -> list[int]:
        return [literal >> 1 for body in self.bodies.get(atom, ()) for literal in body]

    def replace(self) -> dict[int, tuple[bool, ...]]:
        for component in components(self.wanted, self._dependencies):
            atom = component[0]
            read = self._dependencies(atom)
            if len(component) == 1 and atom not in read and 1 < len(read) <= MOST_LITERALS:
                self.tallies[atom] = self._found(atom)
            if self.work > MOST_WORK:
                return {}
        return self._written({atom: found[0] for atom, found in self.tallies.items() if self._says_more(atom, found)})

    def _says_more(self, atom: int, found: Sequence[Tally]) -> bool:
        """Whether there is a tally of others than those that the rules ask about themselves."""
        return bool(found) and found[0].members != frozenset(self._dependencies(atom))

    def _found(self, atom: int) -> list[Tally]:
        """The tallies of an atom with different members, the largest first."""
        found: dict[frozenset[int], Tally] = {}
        for reading in self._readings(frozenset(self._dependencies(atom))):
            tally = self._tally(self.bodies[atom], reading)
            if tally is not None:
                found.setdefault(tally.members, tally)
        return sorted(found.values(), key=lambda tally: -len(tally.members))

    def _readings(self, atoms: frozenset[int]) -> Iterator[dict[int, Tally]]:
        """What may be put in the place of the atoms: nothing, tallies of the same members, the largest tallies."""
        themselves = {atom: Tally(frozenset([atom]), (False, True)) for atom in atoms}
        yield themselves
        known = [(atom, tally) for atom in atoms for tally in self.tallies.get(atom, ())]
        for members in {tally.members for _, tally in known}:
            yield themselves | {atom: tally for atom, tally in known if tally.members == members}
        yield themselves | dict(reversed(known))

    def _tally(self, bodies: Sequence[Sequence[int]], reading: Mapping[int, Tally]) -> Tally | None:
        """What the bodies say, if it is a tally."""
        blocks = list({tally.members: None for tally in reading.values()})
        sizes = [len(block) + 1 for block in blocks]
        if np.prod(sizes, dtype=np.float64) > LARGEST_TABLE or not _are_disjoint(blocks):
            return None
        self.work += sum(map(len, bodies))
        axes = {block: axis for axis, block in enumerate(blocks)}
        table = np.zeros(sizes, np.bool_)
        for body in bodies:
            holds = np.ones(sizes, np.bool_)
            for literal in body:
                tally = reading[literal >> 1]
                own = np.array(tally.holds) ^ bool(literal & 1)
                holds &= own.reshape([-1 if axis == axes[tally.members] else 1 for axis in range(len(sizes))])
            table |= holds
        number = np.add.reduce(np.indices(sizes)).ravel()
        often, positive = np.bincount(number), np.bincount(number, table.ravel())
        if ((positive > 0) & (positive < often)).any():
            return None
        return Tally(frozenset().union(*blocks), tuple((positive > 0).tolist()))

    def _written(self, chosen: Mapping[int, Tally]) -> dict[int, tuple[bool, ...]]:
        """The rules with these tallies in the place of others; what each of the new atoms stands for."""
        if not chosen:
            return {}
        rules = self.rules
        kinds = sorted({tally.holds for tally in chosen.values()})
        atoms = rules.add_atoms(len(kinds))
        rules.is_input[atoms] = True
        stands_for = dict(zip(kinds, atoms.tolist(), strict=True))
        rules.keep_rules(~np.isin(rules.heads, list(chosen)))
        for size in {len(tally.members) for tally in chosen.values()}:
            own = [(head, tally) for head, tally in chosen.items() if len(tally.members) == size]
            bodies = [[*sorted(tally.members), stands_for[tally.holds]] for _, tally in own]
            rules.add_rules(np.array([head for head, _ in own], np.int64), 2 * np.array(bodies, np.int64))
        drop_unneeded(rules, self.wanted)  # and no more: members may exclude each other, or never hold
        return {atom: holds for holds, atom in stands_for.items()}


def _are_disjoint(blocks: Sequence[frozenset[int]]) -> bool:
    return len(frozenset().union(*blocks)) == sum(map(len, blocks))
