"""The families of the public rulesheets, and the lot that sealed a fifth of them."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import gamelore
from gamelore.gdl.syntax import parse

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "sealed.py"
SEALED = runpy.run_path(str(SCRIPT))
FILE: dict[str, Any] = tomllib.loads(SEALED["FAMILIES"].read_text(encoding="ascii"))
FAMILIES = {game: set(family["games"]) for family in FILE["family"] for game in family["games"]}
KIND = {game: family["kind"] for family in FILE["family"] for game in family["games"]}

# Rooms of the tests in which games are played, not only evaluated. The tests outside of rooms play, too, and so do the
# benchmarks but for that of playouts. In hanoi, of public_sheets.py, the tests of environments make random moves only.
PLAYING = [
    *("players", "solver", "matches", "search", "puzzles", "networks", "learning", "memory", "net", "lab", "envs"),
    *("api", "cli", "web"),
]


def shape(text: str) -> str:
    (rule,) = parse(text).rules
    return SEALED["shape"](rule)


def test_the_file_is_what_the_script_makes(shared: Path) -> None:
    done = subprocess.run([sys.executable, SCRIPT, shared / "games", "--check"], capture_output=True, text=True)
    assert (done.stderr, done.returncode) == ("", 0)


def test_a_changed_file_is_noticed(shared: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    changed = tmp_path / "families.toml"
    changed.write_text(SEALED["FAMILIES"].read_text(encoding="ascii").replace('kind = "open"', 'kind = "sealed"', 1))
    monkeypatch.setitem(SEALED["main"].__globals__, "FAMILIES", changed)
    with pytest.raises(SystemExit, match="the lot is drawn once"):
        SEALED["main"](shared / "games", check=True)


def test_variants_are_in_one_family() -> None:
    for variants in (
        {"connectFour", "connectFourLarger", "connectFourSimultaneous", "connectFour_9x6", "connect4", "dualConnect4"},
        {"breakthrough", "breakthroughSmall", "breakthroughSmallHoles", "breakthroughWalls"},
        {"ticTacToe", "tictactoe2", "ticTacToeLargeSuicide", "ticTacToeParallel", "tictactoe_3player", "toetictac"},
        {"checkers", "checkersTiny", "checkersTorus", "checkersBarrelNoKings", "checkers-mustjump"},
        {"skirmish", "skirmishHoles", "strangeSkirmish"},
        {"chess", "chess_200", "speedChess", "minichess"},
    ):
        assert variants <= FAMILIES[min(variants)]
    for left, right in (("hex", "reversi"), ("chess", "checkers"), ("pentago", "quartoSuicide"), ("amazons", "hex")):
        assert FAMILIES[left].isdisjoint(FAMILIES[right])


def test_a_fifth_of_the_families_is_sealed_and_no_named_one() -> None:
    kinds = [family["kind"] for family in FILE["family"]]
    assert kinds.count("sealed") == round((kinds.count("sealed") + kinds.count("open")) / 5)
    assert {KIND[name] for name in SEALED["NAMED"]} == {"named"}
    assert FILE["sealed"].keys() == {game for game, kind in KIND.items() if kind == "sealed"}
    assert len(KIND) == FILE["sheets"] == 183
    assert FILE["commit"] == "32e7b0a8c5060a642c892386581b555da8969e92"


def test_the_hashes_are_those_of_the_rules(shared: Path) -> None:
    for name in ("hanoi", "cittaceot"):
        assert FILE["sealed"][name] == gamelore.load(shared / "games" / f"{name}.kif", "reasoner").rules_hash


def test_names_do_not_change_a_shape_but_keywords_do() -> None:
    rule = "(<= (next (cell ?x 1 b)) (does white (move ?x ?y)) (free ?y) (distinct ?x ?y))"
    renamed = "(<= (next (square ?m a z)) (does red (go ?m ?n)) (empty ?n) (distinct ?m ?n))"
    assert shape(rule) == shape(renamed)
    assert shape(rule) == ("(<= (next (f0 ?0 c0 c1)) (does c2 (f1 ?0 ?1)) (r0 ?1) (distinct ?0 ?1))")
    assert shape(rule) != shape(rule.replace("next", "base"))
    assert shape(rule) != shape(rule.replace("(free ?y)", "(free ?x)"))


def test_similarity_weighs_rare_shapes_more() -> None:
    sheets = {
        name: frozenset(texts.split()) for name, texts in {"a": "x y", "b": "x z", "c": "z y v", "d": "z"}.items()
    }
    similar = SEALED["similarity"](sheets)
    assert similar("a", "a") == 1
    assert similar("a", "d") == 0
    assert similar("a", "b") > similar("b", "c") > 0  # x is in two sheets, z in three


def test_like_names() -> None:
    alike = SEALED["have_like_names"]
    assert alike("connect4", "dualConnect4")
    assert alike("nim1", "nim4")
    assert alike("quad", "quad_7x7")
    assert not alike("snakeParallel", "ticTacToeParallel")
    assert not alike("hex", "hexagons")  # too short to be more than an accident


def test_nothing_plays_a_sealed_game() -> None:
    names = re.compile(rf"\b({'|'.join(FILE['sealed'])})\b|open[-_]sealed")
    files = [path for room in PLAYING for path in (ROOT / "tests" / room).glob("*.py")]
    files += (ROOT / "tests").glob("test_*.py")
    files += [path for path in (ROOT / "benchmarks").glob("*.py") if path.name != "peers.py"]
    assert {path.parent.name for path in files} == {*PLAYING, "tests", "benchmarks"}
    assert len(files) > 50
    own = {Path(__file__), SCRIPT, Path(__file__).with_name("test_duel.py")}  # which tests the refusal
    # by whole paths, because several rooms have a conftest.py
    named = {path: names.findall(path.read_text(encoding="utf-8")) for path in files if path not in own}
    assert named == {path: [] for path in files if path not in own}
