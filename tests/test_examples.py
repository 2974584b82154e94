"""The programs of examples/ that use other libraries do what they say."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def printed(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Run an example; return what it prints."""
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return capsys.readouterr().out


@pytest.mark.slow
def test_cfr_finds_the_value_that_is_known_by_hand(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyspiel", reason="OpenSpiel is not installed")
    told = printed("cfr.py", capsys)
    assert told.startswith("the row gets 22.5 of 100 points")
    # p gold against q gold: 90 p q + 30 (1 - p)(1 - q) is the same for every q where p = 1/4, and then 22.5
    assert "names gold and silver with [0.25 0.75]" in told


@pytest.mark.slow
def test_a_tournament_in_pettingzoo(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pettingzoo", reason="PettingZoo is not installed")
    means = dict(
        re.findall(r"^(\w+) +mean reward \+([\d.]+)$", printed("pettingzoo_tournament.py", capsys), re.MULTILINE)
    )
    assert means.keys() == {"uniform", "leftmost", "central"}
    assert sum(map(float, means.values())) == pytest.approx(1.5, abs=0.02)  # a point a match, two of three play in each
    assert float(means["uniform"]) < min(float(means["leftmost"]), float(means["central"]))


@pytest.mark.long
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("name", "library"), [("maskable_ppo", "sb3_contrib"), ("torchrl_ppo", "torchrl")], ids=["sb3-contrib", "TorchRL"]
)
def test_a_network_learns(name: str, library: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed: it needs torch, which no extra installs")
    before, after = map(float, re.findall(r"(?:before|steps) (0\.\d+)", printed(f"{name}.py", capsys)))
    assert before < 0.4 < 0.8 < after
