"""The parts of the pages about knowledge: the process that reads the store, charts, tables and pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from nicegui import ui

from ...errors import counted
from .frame import Services, picture

MODULE = "gamelore.web.children.knowledge_worker"
REQUEST_SECONDS = 180.0  # limit of a request, which may load a game or read the whole store
MOST_BYTES = 2_000_000  # of a file that is exported or imported here; the guard refuses more than 2 MiB
MOST_IN_A_ROW = 8  # games on the map
MOST_LABELLED = 15  # arrows on the map; of more, the texts would cover each other
BOX = 92, 52  # width and height of a game on the map, in pixels
STEP = 100, 118  # distances between games on the map
BLUE, RED, GREY, INK, PAPER = "#1d5fa8", "#b3261e", "#5b6570", "#22262b", "#ffffff"  # pictures are on white paper

WIDE_STYLE = ".gl-wide { overflow-x: auto; max-width: 100%; } .gl-wide.gl-picture svg { max-width: none; }"
"""Style of pictures with small letters: a narrow page scrolls them, and does not shrink them."""

Row: TypeAlias = Mapping[str, Any]
Options: TypeAlias = dict[str, Any]


class StoreProcess:
    """The process that reads and writes the store for all pages."""

    def __init__(self, services: Services) -> None:
        self._process, self._store = services.processes.shared(MODULE), str(services.store)

    async def ask(self, do: str, **given: Any) -> Any:
        """Ask for a method of `KnowledgeWorker`. Raise its error, or WorkerDied if the request was too much for it."""
        return await self._process.ask(do, REQUEST_SECONDS, store=self._store, **given)


async def export_file(process: StoreProcess, file: str, **chosen: Sequence[Any]) -> None:
    """Let the browser save an export. Raise KnowledgeError if it would be too large."""
    text = await process.ask("export", most_bytes=MOST_BYTES, **chosen)
    ui.download.content(text, file, "application/json")


# ---- charts -----------------------------------------------------------------------------------------------------


def map_options(rows: Sequence[Sequence[Row]], teachings: Sequence[Row], width: float) -> Options:
    """Return a graph of games, with an arrow from each teacher to its pupil.

    Args:
        rows: games, see `KnowledgeWorker.overview`
        teachings: see `Teaching`
        width: of the page, in pixels
    """
    lines = _lines(rows, width)
    nodes = [
        _node(game, (x - (len(line) - 1) / 2) * STEP[0], y * STEP[1])
        for y, line in enumerate(lines)
        for x, game in enumerate(line)
    ]
    shown = {node["id"] for node in nodes}
    arrows: dict[tuple[str, str], list[Row]] = {}
    for teaching in teachings:
        if shown >= {teaching["teacher"], teaching["pupil"]}:
            arrows.setdefault((teaching["teacher"], teaching["pupil"]), []).append(teaching)
    right = (max(map(len, lines), default=1) - 1) / 2 * STEP[0] or 1.0
    corners = [_corner("upper left", -right, 0), _corner("lower right", right, max(1, len(lines) - 1) * STEP[1])]
    series = {
        "type": "graph",
        "layout": "none",
        "preserveAspect": True,
        "data": [*nodes, *corners],
        "links": [_arrow(*ends, own, len(arrows) <= MOST_LABELLED) for ends, own in arrows.items()],
        "edgeSymbol": ["none", "arrow"],
        "edgeSymbolSize": 11,
        "top": BOX[1],
        "bottom": BOX[1],
        "left": BOX[0] / 2 + 2,
        "right": BOX[0] / 2 + 2,
        "roam": False,
        "emphasis": {"disabled": True},
    }
    return {"backgroundColor": PAPER, "animation": False, "tooltip": {"show": False}, "series": [series]}


def map_height(rows: Sequence[Sequence[Row]], width: float) -> int:
    """Return the height of a graph of games, in pixels."""
    return 2 * BOX[1] + STEP[1] * max(1, len(_lines(rows, width)) - 1)


def _lines(rows: Sequence[Sequence[Row]], width: float) -> list[Sequence[Row]]:
    """Return rows that are not wider than a page."""
    most = max(1, min(MOST_IN_A_ROW, int((width - BOX[0]) // STEP[0]) + 1))
    return [row[i : i + most] for row in rows for i in range(0, len(row), most)]


def _node(game: Row, x: float, y: float) -> Options:
    """Return a game of the map: a full box if the store has something about it, else an empty one."""
    counts = [counted(game["learners"], "learner")] * bool(game["learners"])
    counts += [counted(game["lessons"], "lesson")] * bool(game["lessons"])
    label = {
        "show": True,
        "color": PAPER if counts else INK,
        "fontSize": 12,
        "lineHeight": 15,
        "width": BOX[0] - 6,
        "overflow": "truncate",
    }
    return {
        "id": game["key"],
        "name": "\n".join([game["name"], *(counts or ["not stored now"])]),
        "value": game["learners"],  # a click on a node without a value is an error in NiceGUI 3.18
        "x": x,
        "y": y,
        "symbol": "roundRect",
        "symbolSize": list(BOX),
        "itemStyle": {"color": BLUE if counts else PAPER, "borderColor": BLUE if counts else GREY, "borderWidth": 1.5},
        "label": label,
    }


def _corner(name: str, x: float, y: float) -> Options:
    """Return an invisible node, so that the map always has the same scale."""
    return {"id": name, "name": name, "x": x, "y": y, "symbolSize": 0, "label": {"show": False}, "silent": True}


def _arrow(teacher: str, pupil: str, teachings: Sequence[Row], is_labelled: bool) -> Options:
    """Return an arrow with the most certain gain as its text."""
    gains = [teaching["gain"] for teaching in teachings if teaching["gain"]]
    best = max(gains, key=lambda gain: (gain["low"] is not None, gain["runs"]), default=None)
    more = f" and {len(teachings) - 1} more" if len(teachings) > 1 else ""
    colour = GREY if best is None else BLUE if best["mean"] >= 0 else RED
    return {
        "source": teacher,
        "target": pupil,
        "lineStyle": {"color": colour, "width": 2, "opacity": 1, "curveness": 0.12},
        "label": {
            "show": is_labelled,
            "formatter": f"{best['short'] if best else 'gain not known'}{more}",
            "color": colour,
            "fontSize": 12,
            "backgroundColor": PAPER,
            "padding": 2,
            "rotate": 0,
            "align": "center",
            "verticalAlign": "middle",
            "opacity": 1,
        },
    }


def curve_options(lines: Sequence[Options], x: str, y: str) -> Options:
    """Return a chart of curves with values from 0 to 100; see `curve_line` and `band_lines`."""
    named = [line["name"] for line in lines if "name" in line]
    highest = max((point[1] for line in lines for point in line["data"]), default=100.0)
    axis = {"type": "value", "nameLocation": "middle", "axisLabel": {"color": INK}, "nameTextStyle": {"color": INK}}
    return {
        "backgroundColor": PAPER,
        "animation": False,
        "grid": {"left": 54, "right": 24, "top": 16 + 22 * len(named), "bottom": 46},
        "legend": {"data": named, "orient": "vertical", "left": 8, "top": 4, "textStyle": {"color": INK}},
        "tooltip": {"trigger": "axis", "renderMode": "richText"},
        "xAxis": {**axis, "name": x, "nameGap": 28, "min": "dataMin", "max": "dataMax", "minInterval": 1},
        "yAxis": {**axis, "name": y, "nameGap": 36, "min": 0, "max": min(100, 20 * (int(highest / 20) + 1))},
        "series": list(lines),
    }


def curve_line(
    name: str, points: Iterable[Sequence[float]], colour: str, dash: str = "solid", width: float = 2
) -> Options:
    return {
        "name": name,
        "type": "line",
        "data": [list(point) for point in points],
        "showSymbol": False,
        "color": colour,
        "lineStyle": {"type": dash, "width": width},
    }


def band_lines(points: Sequence[Sequence[float]], colour: str) -> list[Options]:
    """Return both ends of the interval of a curve, as thin lines. `points`: match, mean, low, high."""
    look: Options = {"type": "line", "showSymbol": False, "color": colour, "silent": True, "tooltip": {"show": False}}
    style = {"type": "dotted", "width": 1}
    return [
        {**look, "lineStyle": style, "data": [[point[0], min(100.0, max(0.0, point[i]))] for point in points]}
        for i in (2, 3)
    ]


# ---- parts of pages ---------------------------------------------------------------------------------------------


def faint(text: str) -> ui.label:
    return ui.label(text).classes("gl-faint").style("white-space: pre-wrap; max-width: 48rem")


def chart_of(options: Options, height: str, told_as: str) -> ui.echart:
    """Draw a chart. `told_as`: what a screen reader says; it must not have names from a store."""
    chart = ui.echart(options, renderer="svg").classes("w-full rounded").style(f"height: {height}")
    return chart.props(f'role=img aria-label="{told_as}"')


def table_of(
    columns: Mapping[str, str],
    rows: Sequence[Row],
    *,
    numbers: Iterable[str] = (),
    decimals: Mapping[str, int] | None = None,
    wide: Iterable[str] = (),
    **given: Any,
) -> ui.table:
    """Draw a table.

    Args:
        columns: field -> title
        rows: its rows; only the fields of columns, and "id", are sent to the browser
        numbers: fields that are aligned to the right
        decimals: the same, with the number of decimals
        wide: fields with long texts
        given: further arguments of `ui.table`
    """
    decimals, numbers, wide = decimals or {}, set(numbers), set(wide)
    shown = [
        {
            "name": field,
            "label": label,
            "field": field,
            "sortable": True,
            "align": "right" if field in numbers or field in decimals else "left",
            "headerClasses": "text-no-wrap",
            "style": "min-width: 11rem" if field in wide else "",
            **({":format": _FORMAT.format(decimals[field])} if field in decimals else {}),
        }
        for field, label in columns.items()
    ]
    kept = [{field: row.get(field) for field in (*columns, "id")} for row in rows]
    given = {"pagination": 20 if len(kept) > 20 else None, "row_key": "id"} | given
    return ui.table(columns=shown, rows=kept, **given).classes("w-full").props("dense flat bordered wrap-cells")


_FORMAT = "value => typeof value === 'number' ? value.toFixed({}) : value"


def add_links(table: ui.table, field: str, target: str) -> None:
    """Let the cells of a column be links. `target`: the path before the value of the field "id"."""
    table.add_slot(
        f"body-cell-{field}",
        f"""<q-td :props="props"><a class="gl-link" :href="'{target}' + encodeURIComponent(props.row.id)">
        {{{{ props.value }}}}</a></q-td>""",
    )


def add_trees(table: ui.table) -> None:
    """Let the cells of the column "tree" keep their lines."""
    table.add_slot(
        "body-cell-tree",
        '<q-td :props="props"><pre class="gl-mono" style="line-height: 1.15; margin: 0">{{ props.value }}</pre></q-td>',
    )


def add_choice(table: ui.table, what: str) -> None:
    """Give the boxes of a table names for screen readers."""
    table.add_slot(
        "body-selection",
        f"""<q-checkbox dense v-model="props.selected" :aria-label="'choose {what} ' + props.row.id" />""",
    )
    table.add_slot(
        "header-selection", f'<q-checkbox dense v-model="props.selected" aria-label="choose every {what}" />'
    )


def number_text(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def draw_facts(pairs: Iterable[tuple[str, str]]) -> None:
    """Draw names and values below each other."""
    with ui.element("dl").classes("grid gap-x-4 gap-y-1").style("grid-template-columns: max-content 1fr; margin: 0"):
        for name, value in pairs:
            with ui.element("dt").classes("gl-faint"):
                ui.label(name)
            with ui.element("dd").style("margin: 0; overflow-wrap: anywhere"):
                ui.label(value)


def wide_picture(svg: str) -> None:
    """Show a picture with small letters; see WIDE_STYLE."""
    picture(svg).classes("gl-wide").props('tabindex=0 role=region aria-label="picture, which may be scrolled sideways"')
