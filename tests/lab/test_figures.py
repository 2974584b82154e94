"""Pictures and the rows they are drawn from."""

import csv
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.text import Annotation

from gamelore.lab import figures, stats
from gamelore.lab.figures import (
    Bars,
    CurvePlan,
    Dot,
    ReportPicture,
    bar_figure,
    dot_figure,
    file_name,
    graph_figure,
    learning_figure,
    sweep_figure,
)
from gamelore.lab.stats import Interval

REWARDS = {
    "transfer": np.array([[0, 100, 100, 100] * 50, [100, 100, 50, 100] * 50], np.float32),
    "baseline": np.array([[0, 0, 100, 100] * 50, [0, 100, 50, 100] * 50], np.float32),
}


def rows(picture: ReportPicture) -> list[dict[str, str]]:
    with picture.csv.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def draw(folder: Path, axis: tuple[float, float] | None = (45.0, 90.0)) -> ReportPicture:
    plan = CurvePlan("figure9", "Figure 9", "A caption.", axis, 21, 1, 2)
    shown = {x: stats.mean_curve(r, 21) for x, r in REWARDS.items()}
    extra = {x: stats.mean_curve(r, 1, 21) for x, r in REWARDS.items()}
    return learning_figure(plan, shown, folder, extra)


def test_a_learning_figure_has_both_averages_in_its_rows(tmp_path: Path) -> None:
    picture = draw(tmp_path / "new folder")
    assert picture.png.read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in picture.svg.read_bytes()
    found = rows(picture)
    assert len(found) == 2 * 2 * 180
    last = [row for row in found if row["match"] == "200" and row["learner"] == "transfer"]
    assert {row["averaged_from"]: float(row["mean"]) for row in last} == {
        "21": pytest.approx(REWARDS["transfer"][:, 20:].mean()),
        "1": pytest.approx(REWARDS["transfer"].mean()),
    }


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = draw(tmp_path / "a"), draw(tmp_path / "b")
    assert first.svg.read_bytes() == second.svg.read_bytes()


def test_a_figure_without_an_axis_of_the_papers(tmp_path: Path) -> None:
    assert "paper" not in draw(tmp_path, axis=None).svg.read_text()


def test_a_file_name_is_safe_and_tells_names_apart() -> None:
    assert file_name("tictactoe", "xplayer") == "tictactoe-xplayer"
    names = ["../x", "a/b", "a_b", "<img/src=x>", "x" * 300, "x" * 301, "", "-x", ".", "a:b", "CON\x00", "é", "a-b-c"]
    files = [file_name(name) for name in (*names, file_name("a/b"))]
    files += [file_name("a", "b_c"), file_name("a_b", "c"), file_name("a-b", "c"), file_name("a", "b-c")]
    assert len(set(files)) == len(files)
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,109}", file) for file in files)
    assert file_name("a_b") == "a_b"


def test_dots(tmp_path: Path) -> None:
    one, two = Dot("one", Interval(1, 0, 2, 5), paper=1.5), Dot("two", Interval(3, -np.inf, np.inf, 1))
    dots = [one, two, Dot("none", stats.UNKNOWN)]
    picture = dot_figure("dots", "A caption.", [("left", dots), ("right", dots[:1])], tmp_path, xlabel="points", zero=0)
    found = rows(picture)
    assert [(row["panel"], row["row"], row["mean"], row["paper"]) for row in found] == [
        ("left", "one", "1", "1.500000"),
        ("left", "two", "3", ""),
        ("left", "none", "nan", ""),
        ("right", "one", "1", "1.500000"),
    ]


def test_sweeps(tmp_path: Path) -> None:
    points = [(30, Interval(4.0, 3.0, 5.0, 9)), (100, Interval(2.0, 1.0, 3.0, 9))]
    picture = sweep_figure("sweep", "A caption.", {"p": {"line": points}}, tmp_path, "RMSE")
    assert [(row["matches"], float(row["low"])) for row in rows(picture)] == [("30", 3.0), ("100", 1.0)]


def test_bars(tmp_path: Path) -> None:
    ours = Bars("ours", [Interval(40, 30, 50, 9), Interval(60, -np.inf, np.inf, 1)], "#123456")
    paper = Bars("paper", [Interval(50, 45, 55, 9), Interval(98, 94, 102, 9)], "#123456", hatched=True)
    picture = bar_figure("bars", "A caption.", ("one", "two"), [("game", [ours, paper])], tmp_path, "%")
    assert [(row["bars"], row["group"], float(row["mean"])) for row in rows(picture)] == [
        ("ours", "one", 40.0),
        ("ours", "two", 60.0),
        ("paper", "one", 50.0),
        ("paper", "two", 98.0),
    ]
    assert picture.png.stat().st_size > 0


def test_a_figure_draws_itself_where_pyplot_is_not_imported() -> None:
    figure = figures.new_figure(3, 2)
    figure.add_subplot().plot([1, 2])
    for drawn in (figure, pickle.loads(pickle.dumps(figure))):
        assert drawn._repr_png_().startswith(b"\x89PNG")  # what IPython calls


def test_the_graph_has_an_arrow_for_each_pair() -> None:
    names = ["a", "b", "$c_1$"]
    (axes,) = graph_figure(names, {("a", "b"): 90.0, ("b", "$c_1$"): 25.0}).axes
    texts = [text.get_text() for text in axes.texts if text.get_text()]
    assert texts == names
    arrows = [text.arrow_patch for text in axes.texts if isinstance(text, Annotation)]
    green, red = sorted(arrows, key=lambda arrow: -arrow.get_linewidth())
    assert green.get_linewidth() > red.get_linewidth(), "90 is farther from 50 than 25"
    assert green.get_edgecolor() != red.get_edgecolor()
    assert graph_figure([], {}).axes, "without findings"
