"""One game in other words: finding out that it is the same, proving it, and translating.

Two sheets are the same game in other words where their graphs are isomorphic (see sheetgraph.py). In the obvious case
only the names differ, and then the graphs are equal as they are drawn. Else colours are refined in both; a name that
shares its colour gets one of its own, and a name of the other sheet that one, until the names are told apart; and with
these the rules are compared one by one. All edges are compared in the end, which is the proof. (Individualisation and
refinement, as McKay 1981 has it, without its pruning by automorphisms: at each step the names that are still alike are
first tried in the order in which they appear, which ends the search where they are alike because they are equal.)
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .colouring import Colouring, Graph
from .gdl import FORM, Rulesheet, parse, parse_term
from .groundrules import Ints
from .sheetgraph import SheetGraph, sheet_graph

COLOURS = 25_000_000  # in all colourings of a search together, about 400 MB
CONSONANTS, VOWELS = "bdfghjklmnprstvwz", "aeiou"
SYLLABLES = 3  # of a scrambled name, at least

_WORD = re.compile(r"[^\s\ufeff();]+")
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")

Tick = Callable[[], None]
"""Called now and then; raises TimeoutError where time is up."""


@dataclass(frozen=True)
class Renaming:
    """The names of terms in our sheet and in theirs, one for one.

    their_names: ours in lower case -> theirs as spelled there; our_names: theirs in lower case -> ours as spelled here.
    """

    their_names: Mapping[str, str]
    our_names: Mapping[str, str]

    @classmethod
    def between(cls, ours: Sequence[str], theirs: Sequence[str]) -> Renaming:
        """Of names as they are spelled in the two sheets, in the same order. Those of each are different names."""
        pairs = list(zip(ours, theirs, strict=True))
        return cls({own.lower(): other for own, other in pairs}, {other.lower(): own for own, other in pairs})

    @classmethod
    def identity(cls, sheet: Rulesheet) -> Renaming:
        """Every name is called as in the sheet, and spelled as there."""
        terms = sheet_graph(sheet).terms
        return cls.between(terms, terms)

    @cached_property
    def is_identity(self) -> bool:
        """Whether every name is the same in both, and spelled the same."""
        return all(self.our_names.get(theirs.lower()) == theirs for theirs in self.their_names.values())

    def theirs(self, text: str) -> str:
        """A term in our words, as the game prints it, in theirs, spelled as in their sheet; other names stay."""
        return _replaced(text, self.their_names)

    def ours(self, text: str) -> str:
        """A term in their words, in any case and with any space, in ours, as the game prints it; other names stay.

        Raises GDLSyntaxError for what is no term.
        """
        return _replaced(str(parse_term(text)), self.our_names)


def _replaced(text: str, names: Mapping[str, str]) -> str:
    return _WORD.sub(lambda word: names.get(word[0].lower(), word[0]), text)


def scramble(sheet: Rulesheet, key: np.random.Generator) -> tuple[Rulesheet, Renaming]:
    """The sheet with a new name for every name and variable but the words of GDL and whole numbers, drawn at random.

    A word has one new name, wherever it stands. Also gives the renaming from the old sheet to the new one.
    """
    new = {word: word for word in FORM}
    taken = set(FORM)

    def scrambled(match: re.Match[str]) -> str:
        word = match[0].lower()
        if word not in new and not _WHOLE_NUMBER.fullmatch(word):
            new[word] = "?" * word.startswith("?") + _fresh(key, taken)
        return new.get(word, word)

    other = parse(_WORD.sub(scrambled, str(sheet)))
    return other, Renaming.between(sheet_graph(sheet).terms, sheet_graph(other).terms)


def _fresh(key: np.random.Generator, taken: set[str]) -> str:
    """A name that can be pronounced and is not taken; it is then."""
    name = ""
    while name in taken or len(name) < 2 * SYLLABLES:
        name += CONSONANTS[key.integers(len(CONSONANTS))] + VOWELS[key.integers(len(VOWELS))]
    taken.add(name)
    return name


def find_renaming(ours: Rulesheet, theirs: Rulesheet, seconds: float = 2.0) -> Renaming | None:
    """How their sheet names what ours does, where it is the same game in other words; proved.

    None where it is not, or where `seconds` did not suffice to find out. What comes first in both is preferred where
    several names could be meant. Where a rule derives roles, their order, which is the order of moves on the wire, may
    depend on the order of the text, so that only the obvious case is found.
    """
    end = time.monotonic() + seconds

    def tick() -> None:
        if time.monotonic() > end:
            raise TimeoutError

    left, right = sheet_graph(ours), sheet_graph(theirs)
    try:
        images = _isomorphism(left, right, tick)
    except TimeoutError:
        return None
    if images is None:
        return None
    return Renaming.between(left.terms, [right.terms[image] for image in images[: len(left.terms)].tolist()])


def _isomorphism(left: SheetGraph, right: SheetGraph, tick: Tick) -> Ints | None:
    """The image of each vertex, int64[vertices]; None where there is none."""
    if len(left.colours) != len(right.colours) or len(left.rules) != len(right.rules):
        return None
    unmoved = np.arange(len(left.colours))
    if _is_isomorphism(left, right, unmoved):
        return unmoved
    if not (left.roles_stand and right.roles_stand):
        return None
    return _Pair(left, right, tick).isomorphism()


def _is_isomorphism(left: SheetGraph, right: SheetGraph, images: Ints) -> bool:
    """The proof: colours go to the same colours, and edges to edges."""
    same_colours = np.array_equal(left.colours, right.colours[images])
    return same_colours and _edges_go_to_edges(left.graph, right.graph, images)


def _edges_go_to_edges(left: Graph, right: Graph, images: Ints) -> bool:
    def keys(sources: Ints, targets: Ints, kinds: Ints) -> Ints:
        order = np.lexsort((kinds, targets, sources))
        return np.array([sources[order], targets[order], kinds[order]])

    moved = keys(images[left.sources], images[left.targets], left.kinds)
    return np.array_equal(moved, keys(right.sources, right.targets, right.kinds))


class _Pair:
    """Two sheets, in which names and then rules that look alike are looked for."""

    def __init__(self, left: SheetGraph, right: SheetGraph, tick: Tick) -> None:
        self.left, self.right, self.tick = left, right, tick

    def isomorphism(self) -> Ints | None:
        sides = _Sides(self.left.graph, self.right.graph, self.tick)
        return sides.search(self.left.colours, self.right.colours, self.left.num_names, self._with_names_in_order)

    def _with_names_in_order(self, left: Colouring, right: Colouring) -> Ints | None:
        """The images, where names of one colour have those that come at the same place among those of this colour."""
        sides = _Sides(self.left.graph, self.right.graph, self.tick)
        colours = (_with_names_alone(one.colours, self.left.num_names) for one in (left, right))
        refined = sides.refined(*colours)
        if refined is None:
            return None
        images = self._images(*(one.colours for one in refined))
        return images if images is not None and _is_isomorphism(self.left, self.right, images) else None

    def _images(self, left: Ints, right: Ints) -> Ints | None:
        """Where all names have colours of their own: each rule goes to the first that is equal, and not taken."""
        names, waiting = slice(self.left.num_names), dict[int, list[int]]()
        images = np.empty_like(left)
        images[names] = np.argsort(right[names])[np.argsort(np.argsort(left[names]))]
        for rule, colour in enumerate(right[self.right.rules[:-1]].tolist()):
            waiting.setdefault(colour, []).append(rule)
        for rule, colour in enumerate(left[self.left.rules[:-1]].tolist()):
            for other in waiting.get(colour, ()):
                self.tick()
                places = self._places(rule, other, left, right)
                if places is not None:
                    images[self.left.vertices(rule)] = places + self.right.rules[other]
                    waiting[colour].remove(other)
                    break
            else:
                return None
        return images

    def _places(self, rule: int, other: int, left: Ints, right: Ints) -> Ints | None:
        """Where in another rule that stands which stands in a rule; colours of names tell them from each other."""
        left, right = left[self.left.vertices(rule)], right[self.right.vertices(other)]
        places = _in_order(left, right)
        if places is None or len(np.unique(left)) == len(left):
            return places
        one, two = self.left.part(rule), self.right.part(other)

        def fitting(first: Colouring, second: Colouring) -> Ints | None:
            images = _in_order(first.colours, second.colours)
            return images if images is not None and _edges_go_to_edges(one, two, images) else None

        return _Sides(one, two, self.tick).search(left, right, len(left), fitting)


def _in_order(left: Ints, right: Ints) -> Ints | None:
    """The images of what has these colours, the first of each colour to the first; None where they do not agree."""
    first, second = np.argsort(left, kind="stable"), np.argsort(right, kind="stable")
    if not np.array_equal(left[first], right[second]):
        return None
    images = np.empty_like(first)
    images[first] = second
    return images


def _with_names_alone(colours: Ints, num_names: int) -> Ints:
    """Colours that are others for each name, in the order of its colour and, within it, of its appearance."""
    order = np.argsort(colours[:num_names], kind="stable")
    alone = colours + num_names
    alone[order] = np.arange(num_names)
    return alone


@dataclass(frozen=True, slots=True)
class _Sides:
    """Two graphs that are coloured in step."""

    left: Graph
    right: Graph
    tick: Tick

    def search(
        self, left: Ints, right: Ints, points: int, finish: Callable[[Colouring, Colouring], Ints | None]
    ) -> Ints | None:
        """The first that `finish` makes of two stable colourings which look alike and refine these colours.

        More and more of the first `points` vertices have a colour of their own, on the right the first that looks
        like the one on the left first. None where nothing is left to try, or memory is.
        """
        begin = self.refined(left, right)
        most = COLOURS // max(1, self.left.num_vertices)
        waiting = [(begin[0], iter(begin[1:]))] if begin else []
        while waiting:
            one, others = waiting[-1]
            other = next(others, None)
            if other is None:
                waiting.pop()
                continue
            found = finish(one, other)
            if found is not None:
                return found
            shared = np.flatnonzero(~one.is_alone(np.arange(points)))
            if len(shared) and len(waiting) <= most:
                vertex = int(shared[np.argmin(one.sizes[one.colours[shared]])])
                after = one.individualised(vertex, self.left, self.tick)
                waiting.append((after, self._alike(after, one.like(vertex, other), other)))
        return None

    def refined(self, left: Ints, right: Ints) -> tuple[Colouring, Colouring] | None:
        """The stable colourings that refine colours; None where they do not look alike."""
        if not np.array_equal(np.sort(left), np.sort(right)):
            return None
        one = Colouring.of(left).refined(self.left, self.tick)
        other = Colouring.of(right).refined(self.right, self.tick)
        return (one, other) if one.trace == other.trace else None

    def _alike(self, left: Colouring, vertices: Sequence[int], right: Colouring) -> Iterator[Colouring]:
        """The colourings on the right, one of the vertices having a colour of its own, that look like the left one."""
        for vertex in vertices:
            colouring = right.individualised(vertex, self.right, self.tick)
            if colouring.trace == left.trace:
                yield colouring
