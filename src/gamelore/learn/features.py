"""Features as data: their text, the values learned for them, and how values travel between games.

A feature (Banerjee & Stone 2007, section 3) is the game tree below an afterstate, a few plies deep, in which only
the kind of each node counts and equal siblings count once. So a node is

    "n"             a position below which the tree was not followed
    0 .. 100        a terminal position, by its outcome: the learner's goal value
    (node, ..)      a position with these different subtrees below it

and a feature is the node of a position that is not terminal, with a terminal position somewhere below. As text the
members stand between braces, the outermost ones left out: `L,{n,W}` is a position where some move ends the match
with a loss, and every other leads to positions in which some move wins and some move decides nothing. L, D and W are
the outcomes 0, 50 and 100; a tree with any other outcome has numbers instead, `0,{n,30}`.

Nothing here needs a game or a graph; trees.py finds features.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from ..errors import GameloreError

Tree: TypeAlias = "int | str | tuple[Tree, ...]"
Rule = Literal["visits", "mean", "first", "most"]

OPEN = "n"
LETTERS = {"L": 0, "D": 50, "W": 100}
STANDARD = (0, 50, 100)
"""Loss, draw and win, the outcomes of all the paper's games."""

_NAMES = {outcome: letter for letter, outcome in LETTERS.items()}
_TOKEN = re.compile(r"[{},]|n|L|D|W|\d+")


def to_text(tree: Tree) -> str:
    """The canonical text of a tree: members in the order n, outcomes ascending, sets; equal ones once."""
    ordered = _ordered(tree)
    named = all(outcome in STANDARD for outcome in outcomes_of(ordered))
    text = _node_text(ordered, named)
    return text[1:-1] if isinstance(ordered, tuple) else text


def parse(text: str) -> Tree:
    """The tree of a feature's text, letters or numbers, in any order. Raises GameloreError for anything else."""
    tokens = _TOKEN.findall(text)
    if "".join(tokens) != re.sub(r"\s", "", text):
        raise _no_feature(text, "it has other signs")
    tokens.append("}")
    members, end = _members(text, tokens, 0)
    if end != len(tokens):
        raise _no_feature(text, "its braces do not match")
    return _ordered(members)


def canonical(text: str) -> str:
    """The same feature in its canonical text."""
    return to_text(parse(text))


def outcomes_of(tree: Tree) -> set[int]:
    """Every outcome that stands in the tree."""
    if isinstance(tree, tuple):
        return set().union(*map(outcomes_of, tree))
    return {tree} if isinstance(tree, int) else set()


def _node_text(tree: Tree, named: bool) -> str:
    if isinstance(tree, tuple):
        return "{" + ",".join(_node_text(member, named) for member in tree) + "}"
    return _NAMES[tree] if named and isinstance(tree, int) else str(tree)


def _ordered(tree: Tree) -> Tree:
    if isinstance(tree, tuple):
        return tuple(sorted(set(map(_ordered, tree)), key=_order))
    return tree


def _order(tree: Tree) -> tuple[int, int, tuple[object, ...]]:
    if isinstance(tree, tuple):
        return 2, 0, tuple(map(_order, tree))
    return (1, tree, ()) if isinstance(tree, int) else (0, 0, ())


def _members(text: str, tokens: Sequence[str], at: int) -> tuple[Tree, int]:
    """The members from a place in the text on, and the place behind the brace that ends them."""
    members: list[Tree] = []
    while at < len(tokens) and tokens[at] != "}":
        if members:
            if tokens[at] != ",":
                raise _no_feature(text, "a comma is missing")
            at += 1
        member, at = _member(text, tokens, at)
        members.append(member)
    return tuple(members), at + 1


def _member(text: str, tokens: Sequence[str], at: int) -> tuple[Tree, int]:
    token = tokens[at]
    if token == "{":
        return _members(text, tokens, at + 1)
    if token in ",}":
        raise _no_feature(text, "a member is missing")
    return token if token == OPEN else _outcome(text, token), at + 1


def _outcome(text: str, token: str) -> int:
    outcome = LETTERS[token] if token in LETTERS else int(token)
    if outcome > 100:
        raise _no_feature(text, f"{outcome} is no goal value")
    return outcome


def _no_feature(text: str, why: str) -> GameloreError:
    return GameloreError(f"expected a feature such as L,{{n,W}} or 0,{{n,30}}, got {text!r}: {why}; mend its text")


class FeatureValues(Mapping[str, tuple[float, int]]):
    """Feature text -> (value in units of reward, visits): what one source taught (Table 1 of the paper).

    val(F) is the mean of Q over the visited afterstates that match F, weighted by their visits (section 3); `visits`
    is the sum of these weights.

    outcomes  what a match of the source could pay, ascending
    depth     plies below the afterstate; features of another depth are other features

    Texts are made canonical. Raises GameloreError for a text that is no feature.
    """

    def __init__(
        self, values: Mapping[str, tuple[float, int]], outcomes: Sequence[int] = STANDARD, depth: int = 2
    ) -> None:
        pairs = ((canonical(text), (float(value), int(visits))) for text, (value, visits) in values.items())
        self._values = dict(sorted(pairs))
        self.outcomes = tuple(sorted(outcomes))
        self.depth = depth

    def __getitem__(self, text: str) -> tuple[float, int]:
        return self._values[text]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        values = ", ".join(f"{text} {value:.2f}" for text, (value, _) in self._values.items())
        return f"<FeatureValues of depth {self.depth}: {values}>"

    def shuffled(self, seed: int, run: int) -> FeatureValues:
        """The same features and values, each value at another place: a permutation drawn from (seed, run)."""
        from ..play.streams import stream

        texts = sorted(self._values)
        order = sorted(texts, key=lambda text: int(stream(seed, run, "shuffle", text)))
        moved = {text: self._values[other] for text, other in zip(texts, order, strict=True)}
        return FeatureValues(moved, self.outcomes, self.depth)


def combine(values: Sequence[FeatureValues], rule: Rule = "visits") -> FeatureValues:
    """One table from several sources. For each feature, over the sources that know it:

    visits  the mean, weighted by visits: as if one learner had seen all of it
    mean    the plain mean: every source counts alike, however long it learned
    first   the value of the first source in the order given
    most    the value of the source that visited the feature most, the first of those

    Visits add up for the means. Outcomes are those of all sources together. Raises GameloreError for no source, an
    unknown rule, or sources of different depth.
    """
    depths = sorted({source.depth for source in values})
    if len(depths) != 1:
        found = f"depths {depths}" if depths else "none"
        raise GameloreError(f"expected sources of one depth, got {found}; combine those that fit")
    if rule not in get_args(Rule):
        raise GameloreError(f"expected rule {' | '.join(get_args(Rule))}, got {rule!r}; choose one of these")
    known = {text: [source[text] for source in values if text in source] for text in dict.fromkeys(_all(values))}
    outcomes = {outcome for source in values for outcome in source.outcomes}
    return FeatureValues({text: _one(cells, rule) for text, cells in known.items()}, sorted(outcomes), depths[0])


def _all(values: Sequence[FeatureValues]) -> Iterator[str]:
    for source in values:
        yield from source


def _one(cells: Sequence[tuple[float, int]], rule: Rule) -> tuple[float, int]:
    if rule == "first":
        return cells[0]
    if rule == "most":
        return max(cells, key=lambda cell: cell[1])
    total = sum(visits for _, visits in cells)
    weights = [visits for _, visits in cells] if rule == "visits" and total else [1] * len(cells)
    return float(np.average([value for value, _ in cells], weights=weights)), total


@dataclass(frozen=True)
class Equivalence:
    """Which outcome of the source a target's outcome counts as: ((target, source), ..), ascending.

    The paper asks for such a relation where two games pay differently: "that -10 and 0 in this game corresponds to 0
    in the previous games, and so on" (section 3). It says nothing of the way back, from a feature's value to the
    target's reward. Ours (a guess): linear between the source's outcomes, each of which is worth the mean of
    the target's outcomes that count as it.
    """

    pairs: tuple[tuple[int, int], ...]

    @classmethod
    def given(cls, pairs: Mapping[int, int], target: Sequence[int]) -> Equivalence:
        """By hand. Raises GameloreError where an outcome of the target is missing."""
        if missing := sorted(set(target) - set(pairs)):
            raise GameloreError(
                f"expected an equivalence for every outcome of the target {tuple(target)}, got none for "
                f"{', '.join(map(str, missing))}; add it, as in {{target: source}}"
            )
        return cls(tuple(sorted(pairs.items())))

    @classmethod
    def default(cls, target: Sequence[int], source: Sequence[int]) -> Equivalence:
        """Each outcome as itself, where the source knows all of the target's. Otherwise the best counts as the
        best, the worst as the worst, and any other as the source's outcome nearest to the middle between its best
        and worst, the lower of two.
        """
        if set(target) <= set(source) or not target or not source:
            return cls(tuple((outcome, outcome) for outcome in sorted(set(target))))
        best, worst = max(source), min(source)
        middle = min(sorted(source), key=lambda outcome: abs(2 * outcome - best - worst))
        ends = {min(target): worst, max(target): best}
        return cls(tuple((outcome, ends.get(outcome, middle)) for outcome in sorted(set(target))))

    @property
    def is_identity(self) -> bool:
        """Whether every outcome counts as itself."""
        return all(target == source for target, source in self.pairs)

    def back(self, value: float) -> float:
        """A value in the source's units as reward of the target."""
        if self.is_identity:
            return value
        sources = sorted({source for _, source in self.pairs})
        worth = [np.mean([target for target, other in self.pairs if other == source]) for source in sources]
        return float(np.interp(value, sources, worth))
