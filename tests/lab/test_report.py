"""The two pages of a report."""

from html.parser import HTMLParser
from pathlib import Path

import pytest

from gamelore.lab.figures import ReportPicture
from gamelore.lab.report import Bullets, Heading, Pictures, TableBlock, Text, machine, peak_memory, span, write_report
from gamelore.lab.stats import FEWEST_SHOWN, UNKNOWN, Interval, exact


class Checker(HTMLParser):
    """Counts tags, and whether every one that opens is closed in its turn."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture
def picture(tmp_path: Path) -> ReportPicture:
    paths = [tmp_path / f"curve.{suffix}" for suffix in ("png", "svg", "csv")]
    for path in paths:
        path.write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    return ReportPicture("curve", "A curve & its band.", *paths)


def test_both_pages(tmp_path: Path, picture: ReportPicture) -> None:
    blocks = [
        Heading("Part"),
        Text("some **bold** words, `code` and <tags>"),
        Bullets(["one", "two"]),
        Pictures([picture], 2),
        TableBlock(("name", "n"), [("a|b", "1"), ("c", "undecided")], (1,), "A caption."),
    ]
    paths = write_report("Title", "The headline.", blocks, tmp_path)
    markdown, page = paths.markdown.read_text(), paths.html.read_text()
    assert markdown.startswith("# Title\n\n**The headline.**\n\n## Part\n")
    assert "| name | n |\n| --- | ---: |\n| a\\|b | 1 |\n" in markdown
    assert "![A curve & its band.](curve.png)" in markdown
    assert "some <strong>bold</strong> words, <code>code</code> and &lt;tags&gt;" in page
    assert '<span class="verdict undecided">undecided</span>' in page
    assert (paths.headline, paths.folder) == ("The headline.", tmp_path)


def test_the_html_stands_alone_and_is_well_formed(tmp_path: Path, picture: ReportPicture) -> None:
    page = write_report("Title", "x", [Pictures([picture]), TableBlock(("a",), [("b",)])], tmp_path).html.read_text()
    checker = Checker()
    checker.feed(page)
    assert checker.open == []
    assert checker.seen.count("img") == 1
    assert "data:image/svg+xml;base64," in page
    assert 'src="http' not in page
    assert "href=" not in page


@pytest.mark.parametrize(
    ("interval", "sign", "text"),
    [
        (Interval(98.123, 97.9, 98.35, 10), False, "98.12 [97.90, 98.35]"),
        (Interval(0.5, -0.25, 1.25, 10), True, "+0.50 [-0.25, +1.25]"),
        (Interval(2.63, -192.0, 185.0, 3), True, "+2.63 (too few runs)"),
        (Interval(2.63, 1.0, 4.26, FEWEST_SHOWN), True, "+2.63 [+1.00, +4.26]"),
        (exact(12.0), False, "12"),
        (exact(0.253), False, "0.25"),
        (UNKNOWN, False, "not met"),
    ],
)
def test_intervals_as_text(interval: Interval, sign: bool, text: str) -> None:
    assert span(interval, sign=sign) == text


def test_where_it_ran() -> None:
    assert "Python 3" in machine()
    assert "MiB" in peak_memory() or peak_memory() == "unknown"
