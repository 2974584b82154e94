"""The verdicts that the package ships."""

from pathlib import Path

import pytest

from gamelore.lab import papers
from gamelore.lab.claims import Committed, read_committed
from gamelore.lab.papers.banerjee2007.plan import load_claims
from gamelore.lab.papers.lock2004.measures import claims

DOCS = Path(__file__).parents[2] / "docs"
PAPERS = Path(papers.__file__).parent


def committed(paper: str) -> Committed:
    return read_committed(PAPERS / paper / "committed.csv")


@pytest.mark.parametrize("paper", ["banerjee2007", "lock2004"])
def test_they_are_those_of_the_docs(paper: str) -> None:
    copied = f"cp docs/{paper}/claims.csv src/gamelore/lab/papers/{paper}/committed.csv"
    assert (PAPERS / paper / "committed.csv").read_bytes() == (DOCS / paper / "claims.csv").read_bytes(), copied


def test_every_claim_has_one() -> None:
    readings = {(claim, reading) for claim in load_claims().claims for reading in ("figures", "text")}
    assert committed("banerjee2007").keys() == readings
    assert committed("lock2004").keys() == {(claim.id, reading) for claim in claims() for reading in ("text", "tables")}


def test_in_words() -> None:
    found = committed("banerjee2007")["figure7.transfer-over-lookahead", "figures"]
    assert found.words(sign=True) == "verdict of 500 runs: undecided, +0.27 [+0.00, +0.54]"
