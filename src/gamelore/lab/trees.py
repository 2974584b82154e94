"""Features as small trees, and those trees in a terminal; `drawing` makes pictures of them.

A node is a state. Levels alternate: the afterstate at the root and every second level below are the
opponent's to move (solid squares), those between are the learner's (solid circles). Terminal nodes are empty:
a circle is a loss for the learner, a square a win, a crossed square a draw. An outcome of another game (a
goal value that is none of these) is its number in a box.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..learn.features import LETTERS, STANDARD, Tree, outcomes_of, parse

LEARNER, OPPONENT = "learner", "opponent"
SYMBOLS = {LEARNER: "●", OPPONENT: "■", "L": "○", "W": "□", "D": "⊠"}
MEANINGS = {
    OPPONENT: "opponent to move",
    LEARNER: "learner to move",
    "L": "loss",
    "D": "draw",
    "W": "win",
}


@dataclass(frozen=True)
class DrawnFeature:
    """A feature to draw: its label ("a"), its text ("L,{n,W}"), its value (a reward) for each opponent."""

    label: str
    text: str
    values: Mapping[str, float] = field(default_factory=dict)


def labels() -> Iterator[str]:
    """a, b, .., z, aa, ab, .. without end."""
    alphabet = "abcdefghijklmnopqrstuvwxyz"
    longer = [""]
    while True:
        longer = [start + letter for start in longer for letter in alphabet]
        yield from longer


@dataclass(frozen=True)
class Node:
    """A state: LEARNER or OPPONENT, whose move it is, else its outcome; and what is below."""

    kind: str
    children: tuple[Node, ...] = ()

    @property
    def symbol(self) -> str:
        return SYMBOLS.get(self.kind, self.kind)

    @property
    def num_leaves(self) -> int:
        return sum(child.num_leaves for child in self.children) or 1

    @property
    def height(self) -> int:
        return 1 + max((child.height for child in self.children), default=0)


def feature_tree(text: str) -> Node:
    """The nodes of a feature from its text: below the root of "L,{n,W}" are a loss and a circle.

    Raises GameloreError where the text is no feature.
    """
    tree = parse(text)
    named = all(outcome in STANDARD for outcome in outcomes_of(tree))
    return _node(tree, {outcome: letter for letter, outcome in LETTERS.items()} if named else {}, depth=0)


def _node(tree: Tree, names: Mapping[int, str], depth: int) -> Node:
    mover = LEARNER if depth % 2 else OPPONENT
    if isinstance(tree, int):
        return Node(names.get(tree, str(tree)))
    if isinstance(tree, str):
        return Node(mover)
    return Node(mover, tuple(_node(child, names, depth + 1) for child in tree))


def feature_text(text: str) -> str:
    """One feature with box characters, the root on top."""
    lines, _ = _block(feature_tree(text))
    return "\n".join(line.rstrip() for line in lines)


def feature_sheet(features: Sequence[DrawnFeature], width: int = 80) -> str:
    """All features in rows of at most `width` characters, each with its label, text and values."""
    trees = [feature_text(feature.text).splitlines() for feature in features]
    texts = [[f"({feature.label}) {feature.text}", *_values(feature.values)] for feature in features]
    cell_width = max((len(line) for cell in (*trees, *texts) for line in cell), default=0) + 3
    per_row = max(1, (width + 3) // cell_width)
    rows = [slice(start, start + per_row) for start in range(0, len(features), per_row)]
    return "\n\n".join("\n".join((*_beside(trees[row], cell_width), *_beside(texts[row], cell_width))) for row in rows)


def _values(values: Mapping[str, float]) -> list[str]:
    longest = max(map(len, values), default=0)
    return [f"{name:<{longest}} {value:6.2f}" for name, value in values.items()]


def _beside(cells: Sequence[list[str]], cell_width: int) -> Iterator[str]:
    for line in range(max(map(len, cells))):
        yield "".join((cell[line] if line < len(cell) else "").ljust(cell_width) for cell in cells).rstrip()


def _block(node: Node) -> tuple[list[str], int]:
    """A subtree as lines of equal length, and the column of its root."""
    if not node.children:
        return [node.symbol], (len(node.symbol) - 1) // 2
    lines, anchors = _side_by_side([_block(child) for child in node.children])
    root = (anchors[0] + anchors[-1]) // 2
    width = len(lines[0])
    return [node.symbol.rjust(root + 1).ljust(width), _branches(anchors, root).ljust(width), *lines], root


def _side_by_side(blocks: Sequence[tuple[list[str], int]]) -> tuple[list[str], list[int]]:
    height = max(len(lines) for lines, _ in blocks)
    padded = [lines + [" " * len(lines[0])] * (height - len(lines)) for lines, _ in blocks]
    starts = [sum(len(lines[0]) + 1 for lines in padded[:index]) for index in range(len(padded))]
    anchors = [start + anchor for start, (_, anchor) in zip(starts, blocks, strict=True)]
    return [" ".join(parts) for parts in zip(*padded, strict=True)], anchors


def _branches(anchors: Sequence[int], root: int) -> str:
    first, last = anchors[0], anchors[-1]
    if first == last:
        return "│".rjust(first + 1)
    marks = {anchor: "┬" for anchor in anchors} | {first: "┌", last: "┐"}
    marks[root] = "┼" if root in anchors else "┴"
    return " " * first + "".join(marks.get(column, "─") for column in range(first, last + 1))
