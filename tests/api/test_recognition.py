"""`recognise`: what it returns and refuses, and the command `gamelore recognise`."""

from pathlib import Path

import numpy as np
import pytest

import gamelore
from commands import run, run_json
from gamelore import GameloreError, Matches, RecognisedOpponent, recognise

KNOWN = ["random", "egreedy", "minimax:depth=2"]


@pytest.fixture(scope="module")
def matches() -> Matches:
    return gamelore.play("tictactoe", ["minimax:depth=2", "random"], matches=4, seed=3)


@pytest.fixture(scope="module")
def recognised(matches: Matches) -> RecognisedOpponent:
    return recognise(matches, "xplayer", KNOWN, progress=False)


def test_who_it_is(recognised: RecognisedOpponent) -> None:
    assert recognised.player == "minimax:depth=2"
    assert len(recognised.posteriors) == 4
    for posterior in recognised.posteriors:
        assert set(posterior) == {*KNOWN, "unknown"}
        assert sum(posterior.values()) == pytest.approx(1)
    assert recognised.posteriors[3]["minimax:depth=2"] > recognised.posteriors[0]["minimax:depth=2"]
    assert str(recognised).splitlines()[0] == "tictactoe, xplayer"
    assert "after match 4: minimax:depth=2" in str(recognised)


def test_what_the_command_is_given(tmp_path: Path, matches: Matches) -> None:
    matches.save(file := tmp_path / "matches.jsonl")
    given = ["recognise", file, "--role", "xplayer", "--known", "random", "--known", "egreedy"]
    table = tmp_path / "posterior.csv"
    run(*given, "--csv", table, "--engine", "reasoner")
    assert table.read_text().startswith("match,")
    assert "expected a file that ends in .csv" in run(*given, "--csv", tmp_path / "post.v2", code=2).stderr
    assert "within 0 s" in run(*given, "--load-seconds", 0, code=1).stderr
    file.write_text(file.read_text().replace("(mark 1 1)", "(mark 9 9)"))
    assert "matches.jsonl" in run(*given, code=1).stderr


def test_rows_and_pictures(recognised: RecognisedOpponent, tmp_path: Path) -> None:
    assert len(recognised.rows) == 4 * 4
    assert recognised.rows[-1].keys() == {"match", "player", "probability"}
    recognised.save(tmp_path / "shares.csv")
    assert (tmp_path / "shares.csv").read_text().startswith("match,player,probability")
    (axes,) = recognised.plot().axes
    assert len(axes.lines) == 4
    assert np.asarray(axes.lines[0].get_ydata()).max() <= 1


def test_the_stages_of_the_work(matches: Matches) -> None:
    told = []
    recognise(matches, "xplayer", ["random"], progress=lambda *stage: told.append(stage))
    assert told[0][:2] == ("comparing moves", 0)
    assert len(told) == told[0][2]


def test_what_is_refused(matches: Matches) -> None:
    with pytest.raises(GameloreError, match="a role of tictactoe"):
        recognise(matches, "zplayer", KNOWN)
    with pytest.raises(GameloreError, match="expected the name of at least one known player, got none"):
        recognise(matches, "xplayer", [])
    with pytest.raises(GameloreError, match="expected matches in which xplayer had a choice, got none"):
        recognise(matches[:0], "xplayer", KNOWN)
    with pytest.raises(GameloreError, match="nobody"):
        recognise(matches, "xplayer", ["nobody"])


def test_the_command(matches: Matches, tmp_path: Path) -> None:
    matches.save(tmp_path / "matches.jsonl")
    known = [word for name in KNOWN for word in ("--known", name)]
    given = ["recognise", tmp_path / "matches.jsonl", "--role", "xplayer", *known]
    told = run(*given, "--csv", tmp_path / "shares.csv").stdout
    assert "after match 4: minimax:depth=2" in told
    assert (tmp_path / "shares.csv").exists()
    report = run_json(*given)
    assert next(iter(report["matches"][-1])) == "minimax:depth=2"
    assert "a role of tictactoe" in run("recognise", tmp_path / "matches.jsonl", "--role", "x", code=2).stderr
