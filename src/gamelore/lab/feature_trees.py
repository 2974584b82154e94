"""Drawings of features as small trees, in text and in pictures, like Figure 2 of Banerjee & Stone 2007.

A node is a state. The root is the afterstate, in which the opponent is to move. The player to move changes from each
level to the next. A solid square is a state in which the opponent is to move, a solid circle a state in which the
learner is to move. The other nodes are terminal states: an empty circle is a loss for the learner, an empty square is a
win, a crossed square is a draw. A game can have goal values other than those of a loss, a draw and a win. A terminal
state with such a goal value is drawn as a box that contains this value. The values of the feature against each opponent
are written below the tree. The paper prints them in Table 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..drawing.board import FAINT, INK
from ..drawing.position import beside, drawn_text, svg
from ..learning.store.features import LETTERS, STANDARD, Tree, outcomes_of, parse
from .figures import FORMULA, MARGIN, WIDTH, circle, cross, first_row, in_rows, page, rule, save, square

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GAP = 3  # number of blanks between two features
MOST_FEATURES = 200  # on a sheet; a picture of so many takes half a minute
MOST_LETTERS = 400  # of the text of a feature on a sheet; a longer one has hundreds of nodes
MOST_LETTERS_OF_A_SHEET = 10_000
LEARNER, OPPONENT = "learner", "opponent"
SYMBOLS = {LEARNER: "●", OPPONENT: "■", "L": "○", "W": "□", "D": "⊠"}
COLOURS = {LEARNER: "#3a9d5d", OPPONENT: "#c9403a"}
MEANINGS = {OPPONENT: "opponent to move", LEARNER: "learner to move", "L": "loss", "D": "draw", "W": "win"}


@dataclass(frozen=True)
class DrawnFeature:
    """A feature to draw: its label ("a"), its text ("L,{n,W}"), and its value, in points, against each opponent."""

    label: str
    text: str
    values: Mapping[str, float] = field(default_factory=dict)


def labels() -> Iterator[str]:
    """Yield the endless sequence of labels a, b, .., z, aa, ab, .."""
    alphabet = "abcdefghijklmnopqrstuvwxyz"
    longer = [""]
    while True:
        longer = [start + letter for start in longer for letter in alphabet]
        yield from longer


def labelled(features: Iterable[tuple[str, Mapping[str, float]]]) -> list[DrawnFeature]:
    """Label features in the given order. Each feature is given as its text and its values."""
    return [DrawnFeature(label, text, values) for label, (text, values) in zip(labels(), features, strict=False)]


def drawable(features: Sequence[DrawnFeature]) -> list[DrawnFeature]:
    """Return the features that are drawn on a sheet: the first ones that are not too large or too many."""
    small = [feature for feature in features if len(feature.text) <= MOST_LETTERS][:MOST_FEATURES]
    sizes = accumulate(len(feature.text) for feature in small)
    return [feature for feature, size in zip(small, sizes, strict=True) if size <= MOST_LETTERS_OF_A_SHEET]


def left_out(num: int, of: int) -> str:
    """Say how many features are not drawn, and why."""
    return (
        f"{num} of {of} features are not drawn, only the first {MOST_FEATURES} of at most {MOST_LETTERS} characters, "
        f"together at most {MOST_LETTERS_OF_A_SHEET:,}"
    )


@dataclass(frozen=True)
class Node:
    """A state. `kind` is the player to move (LEARNER or OPPONENT), or the outcome of a terminal state ("L" or "30")."""

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
    """Return the root of the tree of a feature.

    For example, the root of "L,{n,W}" has two children: a loss, and a state in which the learner is to move. Raise
    GameloreError if the text is not a feature.
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
    """Return a drawing of one feature in box characters, with the root at the top."""
    lines, _ = _block(feature_tree(text))
    return "\n".join(lines)


def feature_sheet(features: Sequence[DrawnFeature], width: int = 80) -> str:
    """Return a drawing of features in rows of at most `width` characters, each above its label, text and values."""
    trees = [feature_text(feature.text).splitlines() for feature in features]
    texts = [[f"({feature.label}) {feature.text}", *_values(feature.values)] for feature in features]
    size = max((len(line) for cell in (*trees, *texts) for line in cell), default=0)
    per_row = max(1, (width + GAP) // (size + GAP))
    rows = [slice(start, start + per_row) for start in range(0, len(features), per_row)]
    return "\n\n".join("\n".join(_in_cells(trees[row], size) + _in_cells(texts[row], size)) for row in rows)


def _values(values: Mapping[str, float]) -> list[str]:
    longest = max(map(len, values), default=0)
    return [f"{name:<{longest}} {value:6.2f}" for name, value in values.items()]


def _in_cells(blocks: Sequence[list[str]], size: int) -> list[str]:
    return beside([[line.ljust(size) for line in block] for block in blocks], GAP)


def _block(node: Node) -> tuple[list[str], int]:
    """Return the drawing of a subtree as lines, and the column of its root."""
    if not node.children:
        return [node.symbol], (len(node.symbol) - 1) // 2
    blocks = [_block(child) for child in node.children]
    starts = accumulate((max(map(len, lines)) + 1 for lines, _ in blocks), initial=0)
    anchors = [start + anchor for start, (_, anchor) in zip(starts, blocks, strict=False)]
    root = (anchors[0] + anchors[-1]) // 2
    return [node.symbol.rjust(root + 1), _branches(anchors, root), *beside([lines for lines, _ in blocks], 1)], root


def _branches(anchors: Sequence[int], root: int) -> str:
    first, last = anchors[0], anchors[-1]
    if first == last:
        return "│".rjust(first + 1)
    marks = {anchor: "┬" for anchor in anchors} | {first: "┌", last: "┐"}
    marks[root] = "┼" if root in anchors else "┴"
    return " " * first + "".join(marks.get(column, "─") for column in range(first, last + 1))


# ---- one feature, in words and as a small picture ---------------------------------------------------------------

_ENDS = {0: "ROLE loses at once", 50: "the match ends in a draw at once", 100: "ROLE wins at once"}
_ROUTES = {0: "lose at once", 50: "draw at once", 100: "win at once"}
LEAF_PIXELS, LEVEL_PIXELS, LEGEND_PIXELS, LETTER_PIXELS = 26, 34, 18, 6.6
RADIUS = 7  # pixels


def feature_words(text: str, role: str, others: str = "the opponent") -> str:
    """Say in words what a feature means for a role that has moved: what the replies of the others lead to.

    For example, "L,{n,W}" means: after some replies of the opponent, xplayer loses at once; after others, xplayer can
    play on or win at once. Raise GameloreError if the text is not a feature.
    """
    tree = parse(text)
    told = [_reply_words(member, role) for member in (tree if isinstance(tree, tuple) else (tree,))]
    if len(told) == 1:
        return f"after every reply of {others}, {told[0]}"
    return f"after some replies of {others}, " + "; after others, ".join(told)


def _reply_words(tree: Tree, role: str) -> str:
    if isinstance(tree, int):
        return _ENDS.get(tree, f"the match ends at once with {tree} points for ROLE").replace("ROLE", role)
    if isinstance(tree, str):
        return "the match goes on"
    *first, last = map(_route_words, tree)
    return f"{role} can {', '.join(first)} or {last}" if first else f"{role} can only {last}"


def _route_words(tree: Tree) -> str:
    return _ROUTES.get(tree, f"end the match with {tree} points") if isinstance(tree, int) else "play on"


def feature_svg(text: str) -> str:
    """Draw the tree of one feature as SVG text, with a legend. Raise GameloreError if the text is not a feature."""
    tree = feature_tree(text)
    _, shapes = _grown(tree, RADIUS, 2 * RADIUS)
    height, legend = (tree.height - 1) * LEVEL_PIXELS + 4 * RADIUS, _meanings(set(_kinds(tree)))
    for number, (kind, meaning) in enumerate(legend):
        y = height + LEGEND_PIXELS * (number + 0.7)
        shapes += [*_node_shapes(kind, (2 * RADIUS, y)), drawn_text((4 * RADIUS, y), meaning, 12, FAINT, "start")]
    longest = max(len(meaning) for _, meaning in legend)
    width = max(tree.num_leaves * LEAF_PIXELS + 2 * RADIUS, 5 * RADIUS + longest * LETTER_PIXELS)
    return svg((width, height + LEGEND_PIXELS * (len(legend) + 0.5)), shapes)


def _grown(node: Node, left: float, y: float) -> tuple[float, list[str]]:
    """Return the x of the root of a subtree whose leaves begin at x = `left`, and the shapes of the subtree."""
    starts = accumulate((child.num_leaves * LEAF_PIXELS for child in node.children), initial=left)
    below = [_grown(child, start, y + LEVEL_PIXELS) for child, start in zip(node.children, starts, strict=False)]
    x = (below[0][0] + below[-1][0]) / 2 if below else left + LEAF_PIXELS / 2
    edges = [
        f'<line x1="{x:g}" y1="{y:g}" x2="{child:g}" y2="{y + LEVEL_PIXELS:g}" stroke="{INK}"/>' for child, _ in below
    ]
    return x, [*edges, *(shape for _, shapes in below for shape in shapes), *_node_shapes(node.kind, (x, y))]


def _node_shapes(kind: str, spot: tuple[float, float]) -> Iterator[str]:
    (x, y), look = spot, f'fill="{COLOURS.get(kind, "#ffffff")}" stroke="{INK}"'
    if kind in (LEARNER, "L"):
        yield f'<circle cx="{x:g}" cy="{y:g}" r="{RADIUS}" {look}/>'
        return
    left, right, top, bottom = x - RADIUS, x + RADIUS, y - RADIUS, y + RADIUS
    yield f'<rect x="{left:g}" y="{top:g}" width="{2 * RADIUS}" height="{2 * RADIUS}" {look}/>'
    if kind == "D":
        yield f'<path d="M{left:g} {top:g}L{right:g} {bottom:g}M{left:g} {bottom:g}L{right:g} {top:g}" stroke="{INK}"/>'
    elif kind not in (OPPONENT, "W"):
        yield drawn_text(spot, kind, 8, INK)


def _meanings(kinds: set[str]) -> list[tuple[str, str]]:
    """Return the kinds of nodes with their meanings, in the order of a legend; one number stands for all."""
    named = [(kind, meaning) for kind, meaning in MEANINGS.items() if kind in kinds]
    return named + [(kind, "ends with this goal value") for kind in sorted(kinds - MEANINGS.keys())[:1]]


# ---- pictures ---------------------------------------------------------------------------------------------------

SIDE = 0.15  # side of a square and diameter of a circle, in inches; all lengths below are in inches
LEAF_STEP, LEVEL_STEP = 0.27, 0.36
LINE_STEP = 0.155  # distance between two lines of text
NARROWEST = (WIDTH - 2 * MARGIN) / 4  # smallest width of a feature, so that a row has at most four, as in the paper
CAPTION_LETTER, NAME_LETTER = 0.075, 0.056  # approximate widths of a letter
VALUE_WIDTH = 0.5
Entry: TypeAlias = tuple[DrawnFeature, Node]


def draw_features(features: Sequence[DrawnFeature], path: str | Path, *, title: str = "") -> list[Path]:
    """Draw the features and return the files written.

    The suffix of `path` selects the format: PNG, SVG or another format of matplotlib. Without a suffix, the function
    writes a PNG file and an SVG file. Raise GameloreError if matplotlib does not have the format.
    """
    return save(features_figure(features, title=title), path)


def features_figure(features: Sequence[DrawnFeature], *, title: str = "") -> Figure:
    """Return the picture. It is as wide as a page, or wider if the widest feature does not fit on a page."""
    rows = in_rows([(feature, feature_tree(feature.text)) for feature in features], _width)
    width = max([WIDTH, *(sum(map(_width, row)) + 2 * MARGIN for row in rows)])
    height = first_row(title) + sum(map(_height, rows)) + 0.5
    figure, axes = page(width, height, title)
    _draw_rows(axes, rows, first_row(title), width)
    _draw_legend(axes, rows, width, height - 0.27)
    return figure


def _width(entry: Entry) -> float:
    feature, tree = entry
    caption = CAPTION_LETTER * (len(feature.text) + len(feature.label) + 3)
    values = _name_width(feature) + VALUE_WIDTH + SIDE
    return max(NARROWEST, (tree.num_leaves + 1) * LEAF_STEP, caption, values)


def _height(row: Sequence[Entry]) -> float:
    num_lines = max(len(feature.values) for feature, _ in row)
    return _tree_height(row) + (num_lines + 1) * LINE_STEP + 0.42


def _tree_height(row: Sequence[Entry]) -> float:
    return max((tree.height - 1) * _level_step(tree) for _, tree in row) + SIDE


def _level_step(tree: Node) -> float:
    return max(LEVEL_STEP, 0.04 * tree.num_leaves)  # flatter edges would cross other nodes


def _draw_rows(axes: Axes, rows: Sequence[Sequence[Entry]], y: float, width: float) -> None:
    for row in rows:
        # a full row fills the width of the page; a shorter last row has the columns of the rows above it
        stretch = max(1.0, (width - 2 * MARGIN) / max(sum(map(_width, row)), 4 * NARROWEST))
        left = MARGIN
        for entry in row:
            cell_width = _width(entry) * stretch
            _draw_feature(axes, entry, left + cell_width / 2, y + 0.1, _tree_height(row))
            left += cell_width
        y += _height(row)


def _draw_feature(axes: Axes, entry: Entry, centre: float, y: float, tree_height: float) -> None:
    feature, tree = entry
    left = centre - tree.num_leaves * LEAF_STEP / 2
    _draw_tree(axes, tree, left, y + SIDE / 2, _level_step(tree))
    y += tree_height + 0.17
    axes.text(centre, y, _caption(feature), size=8, color=INK, ha="center", va="center", label=FORMULA)
    split = centre + (_name_width(feature) - VALUE_WIDTH) / 2  # right end of the names; names and values are centred
    for line, (name, value) in enumerate(feature.values.items(), start=1):
        at = y + line * LINE_STEP + 0.02
        axes.text(split, at, name, size=7, color=FAINT, ha="right", va="center")
        axes.text(split + VALUE_WIDTH, at, f"{value:.2f}", size=7, color=INK, ha="right", va="center")


def _name_width(feature: DrawnFeature) -> float:
    return NAME_LETTER * max(map(len, feature.values), default=0)


def _caption(feature: DrawnFeature) -> str:
    text = feature.text.replace("{", r"\{").replace("}", r"\}").replace(",", "{,}\\,")
    return rf"$\bf{{({feature.label})}}$  $\mathrm{{{text}}}$"


def _draw_tree(axes: Axes, node: Node, left: float, y: float, step: float) -> float:
    """Draw a subtree whose leaves begin at x = `left`, with its root at height `y`; return the x of its root."""
    starts = accumulate((child.num_leaves * LEAF_STEP for child in node.children), initial=left)
    children = zip(node.children, starts, strict=False)
    below = [_draw_tree(axes, child, start, y + step, step) for child, start in children]
    x = (below[0] + below[-1]) / 2 if below else left + LEAF_STEP / 2
    for child_x in below:
        axes.plot([x, child_x], [y, y + step], color=INK, linewidth=0.8, zorder=1)
    _draw_node(axes, node.kind, x, y)
    return x


def _draw_node(axes: Axes, kind: str, x: float, y: float) -> None:
    look: dict[str, Any] = {"facecolor": COLOURS.get(kind, "white"), "edgecolor": INK, "linewidth": 0.9, "zorder": 2}
    if kind in (LEARNER, "L"):
        circle(axes, (x, y), SIDE / 2 * 1.08, **look)
        return
    square(axes, (x, y), SIDE, **look)
    if kind == "D":
        cross(axes, (x, y), SIDE / 2, color=INK, linewidth=0.8, zorder=3)
    elif kind not in (OPPONENT, "W"):
        axes.text(x, y, kind, size=5, color=INK, ha="center", va="center", zorder=3)


def _draw_legend(axes: Axes, rows: Sequence[Sequence[Entry]], width: float, y: float) -> None:
    kinds = {kind for row in rows for _, tree in row for kind in _kinds(tree)}
    shown = _meanings(kinds)
    rule(axes, width, y - 0.2)
    lengths = [0.38 + 0.058 * len(meaning) for _, meaning in shown]
    x = (width - sum(lengths)) / 2 + SIDE
    for (kind, meaning), length in zip(shown, lengths, strict=True):
        _draw_node(axes, kind, x, y)
        axes.text(x + SIDE, y, meaning, size=7, color=FAINT, va="center")
        x += length


def _kinds(node: Node) -> Iterator[str]:
    yield node.kind
    for child in node.children:
        yield from _kinds(child)
