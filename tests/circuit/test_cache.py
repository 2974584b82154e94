"""The cache of compiled games: a second load takes it, and nothing that is wrong with it stops a load."""

import subprocess
import sys

import numpy as np
import pytest

import gamelore
from gamelore import rulesheets
from gamelore.circuit import cache
from gamelore.game import compile as pipeline
from gamelore.gdl.limits import Limits
from gamelore.gdl.syntax import parse

RULES = rulesheets.path("tictactoe").read_text()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GAMELORE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "compiled"


def moves():
    return gamelore.load(RULES, engine="native").start().play(["(mark 2 2)", "noop"]).legal


def test_a_second_load_neither_grounds_nor_compiles(folder, monkeypatch):
    expected = moves()

    def never(*_):
        raise AssertionError("grounded in spite of the cache")

    monkeypatch.setattr(pipeline, "ground", never)
    assert moves() == expected
    assert len(list(folder.glob("*.game"))) == 1
    assert folder.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("damage", [b"", b"not an archive", None])
def test_a_damaged_entry_is_made_again(folder, damage):
    expected = moves()
    (entry,) = folder.glob("*.game")
    data = entry.read_bytes()
    entry.write_bytes(data[: len(data) // 2] if damage is None else damage)
    assert moves() == expected
    assert entry.read_bytes()[:2] == b"PK"


@pytest.mark.parametrize("part", range(8))
def test_an_entry_cut_off_or_changed_anywhere_is_made_again(folder, part):
    expected = moves()
    (entry,) = folder.glob("*.game")
    data = entry.read_bytes()
    at = len(data) * part // 8
    for damaged in (data[:at], data[:at] + bytes([data[at] ^ 255]) + data[at + 1 :], data[:at] + data[at + 8 :]):
        entry.write_bytes(damaged)
        assert moves() == expected


def test_machine_code_that_was_changed_anywhere_is_made_again(folder):
    assert cache.object_file("text", str.encode) == b"text"
    (entry,) = folder.glob("*.kernel")
    data = entry.read_bytes()
    for at in range(len(data)):
        entry.write_bytes(data[:at] + bytes([data[at] ^ 255]) + data[at + 1 :])
        assert cache.object_file("text", str.encode) == b"text"


def test_another_machine_has_keys_of_its_own(monkeypatch):
    key = cache.key(parse(RULES), 1000)
    monkeypatch.setattr(cache, "_machine", lambda: "another")
    assert cache.key(parse(RULES), 1000) != key


def test_an_entry_of_another_game_is_not_taken(folder):
    expected = moves()
    (entry,) = folder.glob("*.game")
    gamelore.load("connect3", engine="native")
    (other,) = set(folder.glob("*.game")) - {entry}
    entry.write_bytes(other.read_bytes())
    assert cache.load(entry.stem) is None
    assert moves() == expected


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


def test_nothing_is_read_from_or_written_to_a_folder_that_others_may_write_to(folder):
    too_large = gamelore.GroundingError("too large", "raise the limit")
    cache.store_refusal("key", Limits(), too_large)
    cache.store_arrays("key", {"numbers": np.arange(3)})
    assert str(cache.refusal("key", Limits())) == "too large. Remedy: raise the limit"
    folder.chmod(0o777)
    assert (cache.refusal("key", Limits()), cache.load_arrays("key")) == (None, None)
    entries = sorted(folder.iterdir())
    cache.store_refusal("other", Limits(), too_large)
    cache.store_arrays("other", {"numbers": np.arange(3)})
    assert cache.object_file("text", str.encode) == b"text"
    assert moves()["xplayer"] == ["noop"]
    assert sorted(folder.iterdir()) == entries


def test_a_cache_inside_a_folder_that_others_may_write_to(folder):
    folder.parent.mkdir(mode=0o775)
    folder.parent.chmod(0o775)
    moves()
    assert cache.load(cache.key(parse(RULES), Limits().literals)) is not None


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
    assert {path.suffix for path in folder.iterdir()} == {".game", ".kernel"}
    assert moves()["xplayer"] == ["noop"]


def test_code_that_all_games_share_is_compiled_once_and_again_where_the_file_is_damaged(folder):
    made = []

    def make(text):
        made.append(text)
        return text.encode()

    for _ in range(2):
        assert cache.object_file("text", make) == b"text"
    assert cache.object_file("other", make) == b"other"
    assert made == ["text", "other"]
    for file in folder.iterdir():
        file.write_bytes(file.read_bytes()[:30])
    assert cache.object_file("text", make) == b"text"
    folder.chmod(0o777)
    assert cache.object_file("text", make) == b"text"
    assert made == ["text", "other", "text", "text"]


COUNTER = (
    "(role r) (legal r go) (init (n z)) (<= (next (n (s ?x))) (true (n ?x))) (goal r 0) (<= terminal (true (n ?x)))"
)


def test_a_game_that_is_too_large_is_not_tried_again(folder, monkeypatch):
    limits = Limits(seconds=60, literals=1000)
    with pytest.raises(gamelore.GroundingError, match="1000 literals") as first:
        gamelore.load(COUNTER, engine="native", limits=limits)
    monkeypatch.setattr(pipeline, "ground", None)
    with pytest.raises(gamelore.GroundingError) as second:
        gamelore.load(COUNTER, engine="native", limits=limits)
    assert str(second.value) == str(first.value)
    assert gamelore.load(COUNTER, limits=limits).engine_reason == first.value.message


def test_what_took_too_much_memory_is_tried_again(folder, monkeypatch):
    """Other threads of the process may have used the memory."""
    sheet = parse(COUNTER)
    with monkeypatch.context() as patched:
        patched.setattr("gamelore.gdl.limits.resident_memory", iter(range(0, 1 << 62, 1 << 40)).__next__)
        with pytest.raises(gamelore.GroundingError, match="GiB of memory"):
            pipeline.native_engine(sheet, sheet, Limits(), rewrite=True)
    assert not list(folder.glob("*.refused"))


def test_what_took_too_long_is_tried_again_with_more_time(folder):
    sheet = parse(COUNTER)
    for seconds in (0, 0.01):
        with pytest.raises(gamelore.GroundingError, match=f"within {seconds} s"):
            pipeline.native_engine(sheet, sheet, Limits(seconds, literals=10**7), rewrite=True)
    assert len(list(folder.glob("*.refused"))) == 2
