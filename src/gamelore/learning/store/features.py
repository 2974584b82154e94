"""Features as text and trees, their values, combination of several sources, and equivalence of outcomes.

A feature (Banerjee & Stone 2007, section 3) is the game tree below an afterstate, a few plies deep. Only the kind of
each node matters, and equal siblings are one node. A node is

    "n"             a position below which the tree was not expanded
    0 .. 100        a terminal position; the number is its outcome, the learner's goal value
    (node, ..)      a position with these different subtrees below it

A feature is the node of a position that is not terminal, with a terminal position somewhere below it.

In the text of a feature, the members of a node are in braces, but the outermost braces are omitted. For example,
`L,{n,W}` is a position with two kinds of moves: some move ends the match with a loss, and every other move leads to a
position in which some move wins and some move does not end the match. L, D and W are the outcomes 0, 50 and 100. If a
tree has any other outcome, all outcomes are written as numbers: `0,{n,30}`.

This module needs neither a game nor a graph. The module learning/td/discovery.py finds the features of a game.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, TypeAlias, get_args

import numpy as np

from ...errors import GameloreError, check_word

Tree: TypeAlias = "int | str | tuple[Tree, ...]"
Replies: TypeAlias = Mapping[tuple[int, ...], int]
"""Decisions of the opponents: (number of their moves of each class, class of the chosen move) -> times met. See
`td.replies`."""
Rule = Literal["visits", "mean", "first", "most"]

OPEN = "n"
DEEPEST = 100
"""Maximum depth of features, in plies, so also of the levels of braces in a feature's text; useful depths are a few."""
LETTERS = {"L": 0, "D": 50, "W": 100}
STANDARD = (0, 50, 100)
"""Loss, draw and win, the outcomes of all the paper's games."""

_NAMES = {outcome: letter for letter, outcome in LETTERS.items()}
_TOKEN = re.compile(r"[{},]|n|L|D|W|\d{1,9}")


def to_text(tree: Tree) -> str:
    """Return the canonical text of a tree.

    Among the members of a node, "n" comes first, then the outcomes in ascending order, then the subtrees. Equal members
    are written only once.
    """
    ordered = _ordered(tree)
    named = all(outcome in STANDARD for outcome in outcomes_of(ordered))
    text = _node_text(ordered, named)
    return text[1:-1] if isinstance(ordered, tuple) else text


def parse(text: str) -> Tree:
    """Return the tree of a feature's text. Raise GameloreError if the text is not a feature.

    The members may be in any order, and outcomes may be letters or numbers.
    """
    tokens = _TOKEN.findall(text)
    if "".join(tokens) != re.sub(r"\s", "", text):
        raise _no_feature(text, "it has characters that are not allowed")
    levels = accumulate((token == "{") - (token == "}") for token in tokens)
    if max(levels, default=0) > DEEPEST:
        raise _no_feature(text, f"its braces have more than {DEEPEST} levels")
    tokens.append("}")
    members, end = _members(text, tokens, 0)
    if end != len(tokens):
        raise _no_feature(text, "its braces do not match")
    return _ordered(members)


def canonical_text(text: str) -> str:
    """Return the canonical text of a feature given as text."""
    return to_text(parse(text))


def check_depth(depth: int) -> None:
    """Raise GameloreError if features cannot have this depth."""
    if not 0 <= depth <= DEEPEST:
        raise GameloreError(f"expected a depth from 0 to {DEEPEST}, got {depth}; the depth is a number of plies")


def outcomes_of(tree: Tree) -> set[int]:
    """Return all outcomes in the tree."""
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
    """Return the members that begin at token `at`, and the index of the token after their closing brace."""
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
    """Return the member that begins at token `at`, and the index of the token after the member."""
    token = tokens[at]
    if token == "{":
        return _members(text, tokens, at + 1)
    if token in ",}":
        raise _no_feature(text, "a member is missing")
    if token == OPEN:
        return token, at + 1
    outcome = LETTERS[token] if token in LETTERS else int(token)
    if outcome > 100:
        raise _no_feature(text, f"{outcome} is not a goal value")
    return outcome, at + 1


def _no_feature(text: str, why: str) -> GameloreError:
    return GameloreError(f"expected a feature such as L,{{n,W}} or 0,{{n,30}}, got {text!r}: {why}; correct the text")


class FeatureValues(Mapping[str, tuple[float, int]]):
    """Feature values of one source (Table 1 of the paper): feature text -> (value in units of reward, visits).

    val(F) is the mean of Q over the visited afterstates that match F, weighted by their visits (section 3); `visits`
    is the sum of these weights.

    outcomes  the possible goal values of a match of the source, ascending
    depth     depth of the trees in plies below the afterstate; features of different depths cannot be compared
    replies   how the opponents of the source replied; empty if they were not counted. It may be given as a mapping, or
              as rows: the numbers of a key, followed by the times

    Texts are converted to canonical form. Raises GameloreError for a text that is not a feature.
    """

    def __init__(
        self,
        values: Mapping[str, tuple[float, int]],
        outcomes: Sequence[int] = STANDARD,
        depth: int = 2,
        replies: Replies | Iterable[Sequence[int]] = (),
    ) -> None:
        pairs = ((canonical_text(text), (float(value), int(visits))) for text, (value, visits) in values.items())
        self._values = dict(sorted(pairs))
        self.outcomes = tuple(sorted(outcomes))
        self.depth = depth
        rows = reply_rows(replies) if isinstance(replies, Mapping) else replies
        self.replies = {tuple(key): times for *key, times in sorted(map(tuple, rows))}

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
        """Return the same features with their values in a random order, which depends only on (seed, run)."""
        from ...players.random_streams import stream  # loads numba, which reading a store does not need

        texts = sorted(self._values)
        order = sorted(texts, key=lambda text: int(stream(seed, run, "shuffle", text)))
        moved = {text: self._values[other] for text, other in zip(texts, order, strict=True)}
        return FeatureValues(moved, self.outcomes, self.depth, self.replies)


def reply_rows(replies: Replies) -> list[tuple[int, ...]]:
    """Return counted replies as rows: the numbers of a key, followed by the times; ascending."""
    return sorted((*key, times) for key, times in replies.items())


def checked_reply(row: Sequence[int]) -> tuple[int, ...]:
    """Return a stored row of replies (a `ReplyRow`). Raise ValueError if no move of the chosen class was offered."""
    _, *offered, chosen, _ = row
    if not offered[chosen]:
        raise ValueError(f"expected a chosen move of a class that was offered, got {list(row)}")
    return tuple(row)


def combine(values: Sequence[FeatureValues], rule: Rule = "visits") -> FeatureValues:
    """Combine the feature values of several sources. The rule is applied to each feature and the sources that have it:

    visits  the mean of their values, weighted by visits, as if one learner had made all visits
    mean    the unweighted mean of their values
    first   the value of the first source, in the order of `values`
    most    the value of the source with the most visits of the feature; if several have equally many, the first of them

    The visits of a mean are the sum of the visits. The replies are added up, except that "first" takes those of the
    first source that has any, and "most" those of the source with the most. The result has the outcomes of all sources.

    Raises GameloreError if there is no source, if the rule is unknown, or if the sources have different depths.
    """
    depths = sorted({source.depth for source in values})
    if len(depths) != 1:
        given = f"depths {depths}" if depths else "none"
        raise GameloreError(f"expected sources with the same depth, got {given}; combine only sources of one depth")
    check_word("rule", rule, get_args(Rule))
    cells: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for source in values:
        for text, cell in source.items():
            cells[text].append(cell)
    outcomes = {outcome for source in values for outcome in source.outcomes}
    combined = {text: _combined(own, rule) for text, own in cells.items()}
    return FeatureValues(combined, sorted(outcomes), depths[0], _combined_replies(values, rule))


def _combined_replies(values: Sequence[FeatureValues], rule: Rule) -> Replies:
    """Return the replies of several sources together."""
    counted = [source.replies for source in values if source.replies]
    if rule == "first":
        counted = counted[:1]
    if rule == "most" and counted:
        counted = [max(counted, key=lambda replies: sum(replies.values()))]
    total: Counter[tuple[int, ...]] = Counter()
    for replies in counted:
        total.update(replies)
    return total


def _combined(cells: Sequence[tuple[float, int]], rule: Rule) -> tuple[float, int]:
    """Return the combined (value, visits) of a feature; `cells` are the (value, visits) of its sources."""
    if rule == "first":
        return cells[0]
    if rule == "most":
        return max(cells, key=lambda cell: cell[1])
    total = sum(visits for _, visits in cells)
    weights = [visits for _, visits in cells] if rule == "visits" and total else [1] * len(cells)
    return float(np.average([value for value, _ in cells], weights=weights)), total


@dataclass(frozen=True)
class Equivalence:
    """Mapping of the target's outcomes to outcomes of the source: ((target, source), ..), ascending.

    The paper asks for such a relation if two games have different rewards: "that -10 and 0 in this game corresponds to
    0 in the previous games, and so on" (section 3). The paper does not say how a feature's value is converted back to a
    reward of the target. Our choice is this: a source outcome is converted to the mean of all target outcomes that map
    to it, and other values are interpolated linearly between the source outcomes.
    """

    pairs: tuple[tuple[int, int], ...]

    @classmethod
    def given(cls, pairs: Mapping[int, int], target: Sequence[int]) -> Equivalence:
        """Return the equivalence with these pairs. Raise GameloreError if an outcome of the target is missing."""
        if missing := sorted(set(target) - set(pairs)):
            raise GameloreError(
                f"expected an equivalence for every outcome of the target {tuple(target)}, got none for "
                f"{', '.join(map(str, missing))}; add the missing pairs as {{target: source}}"
            )
        return cls(tuple(sorted(pairs.items())))

    @classmethod
    def default(cls, target: Sequence[int], source: Sequence[int]) -> Equivalence:
        """Map each outcome to itself if the source has all outcomes of the target.

        Otherwise map the best outcome to the source's best, and the worst to its worst. Map all other outcomes to the
        source's outcome that is nearest to the middle between its best and its worst. If two are equally near, use the
        lower one.
        """
        if set(target) <= set(source) or not target or not source:
            return cls(tuple((outcome, outcome) for outcome in sorted(set(target))))
        best, worst = max(source), min(source)
        middle = min(sorted(source), key=lambda outcome: abs(2 * outcome - best - worst))
        ends = {min(target): worst, max(target): best}
        return cls(tuple((outcome, ends.get(outcome, middle)) for outcome in sorted(set(target))))

    @property
    def is_identity(self) -> bool:
        """Whether every outcome maps to itself."""
        return all(target == source for target, source in self.pairs)

    def back(self, value: float) -> float:
        """Convert a value in the source's units to a reward of the target."""
        if self.is_identity:
            return value
        sources = sorted({source for _, source in self.pairs})
        worth = [np.mean([target for target, other in self.pairs if other == source]) for source in sources]
        return float(np.interp(value, sources, worth))
