"""Files that are written in one step: whole or absent, whatever happens."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from gamelore.files import whole_file, write_whole
from gamelore.matches import match
from gamelore.matches.match import MatchRecord, write_records
from privileges import without_override


def interrupted(path: Path) -> None:
    with whole_file(path) as file:
        file.write_text("half")
        raise OSError(28, "No space left on device")


def test_a_file_is_whole_or_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    write_whole(path, "é")
    assert path.read_bytes() == "é".encode()
    with pytest.raises(OSError, match=rf"No space left on device: '{path}'"):
        interrupted(path)
    with pytest.raises(OSError, match="No space left on device"):
        interrupted(path.with_name("other"))
    assert [(file.name, file.read_text()) for file in path.parent.iterdir()] == [("file", "é")]


def test_what_is_no_file_is_written_directly(tmp_path: Path) -> None:
    link, pipe, read = tmp_path / "link", tmp_path / "pipe", list[str]()
    link.symlink_to(tmp_path / "target")
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_whole(pipe, "through a pipe")
    reader.join()
    write_whole(link, b"through a link")
    assert read == ["through a pipe"]
    assert link.is_symlink()
    assert (tmp_path / "target").read_text() == "through a link"
    with pytest.raises(OSError, match=f"'{tmp_path}'"):
        write_whole(tmp_path, "a folder")


def test_a_closed_folder_is_named(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    with without_override(), pytest.raises(OSError, match=rf"Permission denied: '{closed / 'file'}'"):
        write_whole(closed / "file", "text")
    closed.chmod(0o700)


def test_a_folder_gets_all_records_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[Path] = []

    def full(path: Path, text: str) -> None:
        writes.append(path)
        if len(writes) > 2:
            raise OSError(28, "No space left on device", str(path))
        write_whole(path, text)

    monkeypatch.setattr(match, "write_whole", full)
    monkeypatch.setattr(MatchRecord, "to_json", lambda _: "{}")
    records: list[MatchRecord] = [MatchRecord.__new__(MatchRecord) for _ in range(3)]
    with pytest.raises(OSError, match="No space"):
        write_records(tmp_path, records, "(role x)")
    assert (len(writes), list(tmp_path.iterdir())) == (3, [])
