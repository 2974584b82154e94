"""The cache of compiled games: a second load takes it, and nothing that is wrong with it stops a load."""

import subprocess
import sys

import pytest

import gamelore
from gamelore import games
from gamelore.rules import cache, game
from gamelore.rules.gdl import parse
from gamelore.rules.ground import Limits

RULES = games.path("tictactoe").read_text()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GAMELORE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def moves():
    return gamelore.load(RULES, engine="native").start().play(["(mark 2 2)", "noop"]).legal


def test_a_second_load_neither_grounds_nor_compiles(folder, monkeypatch):
    expected = moves()

    def never(*_):
        raise AssertionError("grounded in spite of the cache")

    monkeypatch.setattr(game, "ground", never)
    assert moves() == expected
    assert [path.suffix for path in folder.iterdir()] == [".game"]
    assert folder.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("damage", [b"", b"not an archive", None])
def test_a_damaged_entry_is_made_again(folder, damage):
    expected = moves()
    (entry,) = folder.iterdir()
    data = entry.read_bytes()
    entry.write_bytes(data[: len(data) // 2] if damage is None else damage)
    assert moves() == expected
    assert entry.read_bytes()[:2] == b"PK"


def test_an_unwritable_place_is_no_cache(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_text("in the way")
    monkeypatch.setenv("GAMELORE_CACHE", str(file / "below"))
    assert moves()["xplayer"] == ["noop"]


def test_the_key_tells_rules_spelling_and_limits_apart_but_not_comments():
    sheet = parse(RULES)
    key = cache.key(sheet, 1000)
    assert key == cache.key(parse(RULES + "\n; a comment"), 1000)
    assert key != cache.key(parse(RULES.replace("xplayer", "Xplayer")), 1000)
    assert key != cache.key(parse(RULES + "\n(another fact)"), 1000)
    assert key != cache.key(sheet, 1001)


def test_a_limit_holds_though_the_game_was_compiled_before(folder):
    gamelore.load(RULES, engine="native")
    with pytest.raises(gamelore.GroundingError, match="within 10 literals"):
        gamelore.load(RULES, engine="native", limits=Limits(literals=10))


def test_a_folder_that_others_may_write_to_is_not_read(folder, monkeypatch):
    moves()
    assert cache.load(cache.key(parse(RULES), Limits().literals)) is not None
    folder.chmod(0o777)
    assert cache.load(cache.key(parse(RULES), Limits().literals)) is None


def test_an_entry_that_cannot_be_written_leaves_nothing_behind(folder, monkeypatch):
    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(cache.zipfile.ZipFile, "writestr", full)
    assert moves()["xplayer"] == ["noop"]
    assert list(folder.iterdir()) == []


def test_several_processes_may_write_the_same_entry(folder):
    program = "import sys, gamelore; gamelore.load(sys.argv[1], engine='native')"
    children = [subprocess.Popen([sys.executable, "-c", program, RULES]) for _ in range(3)]
    assert [child.wait() for child in children] == [0, 0, 0]
    assert [path.suffix for path in folder.iterdir()] == [".game"]
    assert moves()["xplayer"] == ["noop"]
