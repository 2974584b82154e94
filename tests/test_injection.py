"""No name becomes markup: reports and drawings of hostile names have the elements of the same with harmless names.

Names come from rulesheets (any characters but white space, parentheses and semicolons), from the names of files, and
from the options of players and stores.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar
from xml.etree import ElementTree

import numpy as np
import pytest
from markdown_it import MarkdownIt

import gamelore
from gamelore.cli import network_commands
from gamelore.drawing.position import position_svg
from gamelore.game.game import Game
from gamelore.gdl.syntax import parse
from gamelore.lab.feature_trees import DrawnFeature, draw_features
from gamelore.lab.figures import save
from gamelore.lab.report import Bullets, Heading, TableBlock, Text, literal, write_report
from gamelore.lab.sequence_pictures import draw_pairs
from gamelore.lab.sequence_text import DrawnPair
from gamelore.lab.studies import transfer_study
from gamelore.rulesheets import path

SYMBOLS = {
    "xplayer": "<script>alert1</script>",
    "oplayer": "'onclick='y",
    "x": '"onload="x',
    "o": "]]>&lt&#60",
    "b": "-->",
    "mark": '</text><a/href="javascript:x">',
    "cell": "</title><img/src=x/onerror=y>",
    "control": "$x^2$\x1b[31m\x9b\ufffe",
}
"""Hostile words of a rulesheet, in place of those of tic-tac-toe."""
NAMES = [
    "<script>alert(1)</script>",
    "</title><img src=x onerror=alert(1)>",
    '" onload="alert(1)',
    "]]> --> <!-- & &lt; &#x3c;script&#x3e;",
    "[a](javascript:alert(1)) ![b](javascript:c)",
    "<javascript:alert(1)> https://x.example www.x.example",
    "a\n\n# b\n- c\n<b>\n\x1b[31m\udcff",
    "**bold** `code` _it_ ~~gone~~ \\` \\\\ | x |",
    "[a]: javascript:b",
]
"""Names of games, roles, players and learners."""


def harmless(name: str, letter: str = "n") -> str:
    """A name of the same length, in words where the other has words."""
    return re.sub(r"\S", letter, name.strip())


def hostile_game() -> Game:
    return _game(SYMBOLS)


def harmless_game() -> Game:
    return _game({word: harmless(name, "abcdefgh"[i]) for i, (word, name) in enumerate(SYMBOLS.items())})


def _game(words: dict[str, str]) -> Game:
    rules = str(parse(path("tictactoe").read_text(encoding="utf-8")))
    return gamelore.load(re.sub(r"[^\s()]+", lambda match: words.get(match[0], match[0]), rules))


# ---- the elements of a page --------------------------------------------------------------------------------------


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.elements: list[Any] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, [name for name, _ in attributes]))
        self.links = [value for name, value in attributes if name in ("href", "src")]
        assert all(str(link).startswith(("data:image/svg+xml;base64,", "figure")) for link in self.links), self.links

    def handle_endtag(self, tag: str) -> None:
        self.elements.append(f"/{tag}")

    def handle_comment(self, text: str) -> None:
        self.elements.append(f"comment {text}")

    def handle_decl(self, text: str) -> None:
        self.elements.append(text)

    def unknown_decl(self, text: str) -> None:
        self.elements.append(text)

    def handle_pi(self, text: str) -> None:
        self.elements.append(text)


def html_elements(page: str) -> list[Any]:
    parser = _Elements()
    parser.feed(page)
    parser.close()
    return parser.elements


def markdown_elements(page: str) -> list[Any]:
    return html_elements(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(page))


def svg_elements(picture: str) -> list[Any]:
    return [(element.tag, sorted(element.attrib)) for element in ElementTree.fromstring(picture).iter()]


def kinds_of_elements(picture: str) -> set[Any]:
    """The same for pictures of matplotlib, which draws each letter as an element."""
    root = ElementTree.fromstring(picture)
    links = [value for element in root.iter() for name, value in element.attrib.items() if name.endswith("href")]
    assert all(link.startswith("#") for link in links)
    return {(element.tag, *element.attrib) for element in root.iter() if not element.tag.endswith("path")}


# ---- drawings ----------------------------------------------------------------------------------------------------


def test_words_of_a_rulesheet_open_no_element_in_a_drawing() -> None:
    drawn = []
    for game in (hostile_game(), harmless_game()):
        position = game.start()
        thought = gamelore.think(position, simulations=30)
        pages = [thought._repr_html_()]
        pictures = [thought._repr_svg_()]
        for _ in range(2):
            pictures += [position_svg(position), position_svg(position, matrix=True)]
            position = position.play([moves[0] for moves in position.legal.values()])
        drawn.append((list(map(html_elements, pages)), list(map(svg_elements, pictures))))
    assert drawn[0] == drawn[1]


def pictures(game: Game, names: list[str], folder: Path) -> Iterator[set[Any]]:
    """The pictures of learned knowledge and of learning curves."""
    position = game.start()
    moves = tuple((role, moves[-1]) for role, moves in position.legal.items())
    pair = DrawnPair("1", 0.5, frozenset(position.facts), (moves[:1],), "solo")
    features = [DrawnFeature("a", "L,{n,W}", dict.fromkeys(names[:2], 50.0))]
    standings = [
        SimpleNamespace(role=role, player=player, counted=[0, 100], may_learn=True)
        for role, player in zip(game.roles, names, strict=False)
    ]
    series = SimpleNamespace(game=SimpleNamespace(name=names[-1]), standings=lambda: standings)
    files = draw_features(features, folder / "features.svg", title=", ".join([*names, *game.roles]))
    files += draw_pairs(game, [pair], folder / "pairs.svg", names[0])
    files += save(network_commands._figure(series, 2), folder / "curve.svg")  # type: ignore[arg-type]
    return (kinds_of_elements(file.read_text(encoding="utf-8")) for file in files)


@pytest.mark.filterwarnings("ignore:Glyph")
def test_names_open_no_element_in_a_picture(tmp_path: Path) -> None:
    hostile = pictures(hostile_game(), NAMES, tmp_path)
    assert list(hostile) == list(pictures(harmless_game(), list(map(harmless, NAMES)), tmp_path))


# ---- reports -----------------------------------------------------------------------------------------------------


def report(names: list[str], folder: Path) -> list[Any]:
    """A page with names in all of its parts."""
    texts = list(map(literal, names))
    blocks = [Heading(texts[0]), Text(f"{texts[1]} and `code` and **{texts[2]}**"), *map(Text, texts), Bullets(texts)]
    table = TableBlock(texts, [texts], (1,), texts[3])
    written = write_report(texts[0], texts[1], [*blocks, table], folder)
    page, markdown = (file.read_text(encoding="utf-8") for file in (written.html, written.markdown))
    return [html_elements(page), markdown_elements(markdown)]


@pytest.mark.parametrize("number", range(len(NAMES)))
def test_names_open_no_element_in_a_report(tmp_path: Path, number: int) -> None:
    names = NAMES[number:] + NAMES[:number]
    assert report(names, tmp_path) == report([" ".join(harmless(name).split()) for name in names], tmp_path)


def test_names_are_shown_as_they_are(tmp_path: Path) -> None:
    shown: list[str] = []
    parser = _Elements()
    parser.handle_data = shown.append  # type: ignore[method-assign]
    for name in NAMES[:6]:
        written = write_report("Heading", "Headline", [Text(literal(name))], tmp_path)
        pages = [
            written.html.read_text(encoding="utf-8"),
            MarkdownIt("commonmark").render(written.markdown.read_text()),
        ]
        for page in pages:
            shown.clear()
            parser.feed(page)
            assert name in "".join(shown)


class _Results:
    """Trials of a study that were never played; `names` are those of its games."""

    names: ClassVar[list[str]] = []

    def __init__(self, place: Path) -> None:
        self.path = place

    def __enter__(self) -> _Results:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def check_trials(self, trials: object) -> None:
        pass

    def rewards(self, name: str, runs: int) -> Any:
        return np.full((runs, 20), 50.0, np.float32)

    def totals(self) -> dict[str, int]:
        return {"trials": 1, "matches": 20}

    def rules(self) -> dict[str, str]:
        return dict.fromkeys(self.names, "0" * 64)


def study(names: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    monkeypatch.setattr(transfer_study, "ResultStore", _Results)
    monkeypatch.setattr(transfer_study, "run_grid", lambda *_, **__: None)
    monkeypatch.setattr(_Results, "names", names)
    plan = transfer_study.TransferPlan(names[0], tuple(names[1:]), runs=2, matches=20)
    written = transfer_study.transfer(plan, folder).report
    markdown = re.sub(r"\]\([A-Za-z0-9_.-]*\.(png|svg|csv)\)", "](figure)", written.markdown.read_text())
    pictures = sorted(folder.glob("*.svg"))
    assert len(pictures) == len(names) - 1
    return [html_elements(written.html.read_text(encoding="utf-8")), markdown_elements(markdown)]


@pytest.mark.filterwarnings("ignore:Glyph")
def test_names_of_games_open_no_element_in_a_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [name.replace("/", "").replace("\n", " ") for name in NAMES[:4]]
    plain = [harmless(name, letter) for name, letter in zip(names, "abcd", strict=True)]
    assert study(names, tmp_path / "1", monkeypatch) == study(plain, tmp_path / "2", monkeypatch)
