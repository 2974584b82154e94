"""Features drawn as in Figure 2 of B&S 2007, their values per opponent (Table 1) beneath."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import GameloreError
from .trees import LEARNER, MEANINGS, OPPONENT, DrawnFeature, Node, feature_tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAGE_WIDTH = 7.2
MARGIN = 0.25
SIDE = 0.15  # of a square; also a circle's diameter
LEAF_STEP, LEVEL_STEP = 0.27, 0.36
LINE_STEP = 0.155  # between lines of text
NARROWEST = (PAGE_WIDTH - 2 * MARGIN) / 4  # at most four features to a row, as in the paper
CAPTION_LETTER, NAME_LETTER = 0.075, 0.056  # wide, about
VALUE_WIDTH = 0.5
INK, FAINT, RULE = "#22262b", "#7a828b", "#e3e6e9"
COLOURS = {LEARNER: "#3a9d5d", OPPONENT: "#c9403a"}

Entry: TypeAlias = tuple[DrawnFeature, Node]


def draw_features(features: Sequence[DrawnFeature], path: str | Path, *, title: str = "") -> list[Path]:
    """Draw the features and return the files written.

    The suffix of `path` says PNG, SVG or another format of matplotlib's; without one, a PNG and an SVG. Raises
    GameloreError for a suffix that is no format.
    """
    return save(features_figure(features, title=title), path)


def save(figure: Figure, path: str | Path) -> list[Path]:
    """Writes a picture as its suffix says, as PNG and SVG without one; returns the files. Raises GameloreError."""
    chosen = Path(path)
    known = figure.canvas.get_supported_filetypes()
    if chosen.suffix and chosen.suffix[1:].lower() not in known:
        raise GameloreError(
            f"expected a picture as {', '.join(sorted(known))}; got '{chosen.suffix}'; "
            "choose one of these, or leave the suffix out"
        )
    files = [chosen] if chosen.suffix else [chosen.with_suffix(".png"), chosen.with_suffix(".svg")]
    for file in files:
        _save(figure, file)
    return files


def _save(figure: Figure, path: Path) -> None:
    import matplotlib

    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {"Date": None} if path.suffix == ".svg" else None
    with matplotlib.rc_context({"svg.hashsalt": "gamelore"}):  # the same picture, the same bytes
        figure.savefig(path, dpi=200, metadata=metadata)


def features_figure(features: Sequence[DrawnFeature], *, title: str = "") -> Figure:
    """The picture: as wide as a page (or its widest feature), as high as it must be."""
    from matplotlib.figure import Figure

    rows = _rows([(feature, feature_tree(feature.text)) for feature in features])
    width = max([PAGE_WIDTH, *(sum(map(_width, row)) + 2 * MARGIN for row in rows)])
    first = MARGIN + (0.35 if title else 0.0)
    height = first + sum(map(_height, rows)) + 0.5
    figure = Figure(figsize=(width, height), facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))  # y grows downwards
    axes.set_axis_off()
    axes.text(MARGIN, MARGIN + 0.05, title, size=11, weight="bold", color=INK, va="center")
    _draw_rows(axes, rows, first, width)
    _draw_legend(axes, rows, width, height - 0.27)
    return figure


def _rows(entries: Sequence[Entry]) -> list[list[Entry]]:
    """The features in their order, as many to a row as the page takes."""
    rows: list[list[Entry]] = []
    room = 0.0
    for entry in entries:
        if _width(entry) > room + 1e-9:
            rows.append([])
            room = PAGE_WIDTH - 2 * MARGIN
        rows[-1].append(entry)
        room -= _width(entry)
    return rows


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
    return max(LEVEL_STEP, 0.04 * tree.num_leaves)  # flat edges would run through their neighbours


def _draw_rows(axes: Axes, rows: Sequence[Sequence[Entry]], top: float, width: float) -> None:
    for row in rows:
        # a full row fills the page; a last, short one keeps the columns of the others
        stretch = max(1.0, (width - 2 * MARGIN) / max(sum(map(_width, row)), 4 * NARROWEST))
        left = MARGIN
        for entry in row:
            cell_width = _width(entry) * stretch
            _draw_feature(axes, entry, left + cell_width / 2, top + 0.1, _tree_height(row))
            left += cell_width
        top += _height(row)


def _draw_feature(axes: Axes, entry: Entry, centre: float, top: float, tree_height: float) -> None:
    feature, tree = entry
    left = centre - tree.num_leaves * LEAF_STEP / 2
    _draw_tree(axes, tree, left, top + SIDE / 2, _level_step(tree))
    y = top + tree_height + 0.17
    axes.text(centre, y, _caption(feature), size=8, color=INK, ha="center", va="center")
    split = centre + (_name_width(feature) - VALUE_WIDTH) / 2  # names end here, so that both together are centred
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
    """Draw a subtree over its leaves from `left` on; returns the x of its root."""
    below = []
    for child in node.children:
        below.append(_draw_tree(axes, child, left, y + step, step))
        left += child.num_leaves * LEAF_STEP
    x = (below[0] + below[-1]) / 2 if below else left + LEAF_STEP / 2
    for child_x in below:
        axes.plot([x, child_x], [y, y + step], color=INK, linewidth=0.8, zorder=1)
    _draw_node(axes, node.kind, x, y)
    return x


def _draw_node(axes: Axes, kind: str, x: float, y: float) -> None:
    from matplotlib.patches import Circle, Rectangle

    style: dict[str, Any] = {
        "facecolor": COLOURS.get(kind, "white"),
        "edgecolor": INK,
        "linewidth": 0.9,
        "zorder": 2,
    }
    if kind in (LEARNER, "L"):
        axes.add_patch(Circle((x, y), SIDE / 2 * 1.08, **style))
        return
    axes.add_patch(Rectangle((x - SIDE / 2, y - SIDE / 2), SIDE, SIDE, **style))
    if kind == "D":
        half = SIDE / 2
        for slope in (-half, half):
            axes.plot([x - half, x + half], [y - slope, y + slope], color=INK, linewidth=0.8, zorder=3)
    elif kind not in (OPPONENT, "W"):
        axes.text(x, y, kind, size=5, color=INK, ha="center", va="center", zorder=3)


def _draw_legend(axes: Axes, rows: Sequence[Sequence[Entry]], width: float, y: float) -> None:
    found = {kind for row in rows for _, tree in row for kind in _kinds(tree)}
    shown = [(kind, meaning) for kind, meaning in MEANINGS.items() if kind in found]
    shown += [(kind, "ends with this goal value") for kind in sorted(found - MEANINGS.keys())[:1]]
    axes.plot([MARGIN, width - MARGIN], [y - 0.2, y - 0.2], color=RULE, linewidth=0.8)
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
