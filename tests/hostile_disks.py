"""Disks that are full, read-only, closed or gone: commands that write, and what they leave behind.

Under a fault a command succeeds, or it fails with one line that names a file, and leaves nothing that is half written.
Once there is room again, the same command ends as it does on a sound disk.

A full disk is a small file system in memory. Without the right to mount one, files may not grow beyond a limit instead.
"""

from __future__ import annotations

import atexit
import csv
import json
import os
import re
import resource
import shutil
import sqlite3
import subprocess
import threading
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory, gettempdir, mkdtemp
from typing import Any
from unittest.mock import patch

import commands
from gamelore.gdl.syntax import parse
from gamelore.learning.store.knowledge import KnowledgeStore
from gamelore.matches.match import MatchRecord
from hostile_stores import GREEDY, WATCHING, base_store
from privileges import drop_override
from wire import GAMELORE

SIZE = 8 << 20  # bytes of a disk with room for everything
LONGEST = 300  # seconds of a command
SHEET = (
    "(role   x)\n; a comment\n(init (a))   (<= (legal x n) (role x)) (<= (goal x 50) (role x)) (<= terminal (true b))\n"
)
HOST = "host tictactoe --player xplayer=random --player oplayer=random --matches 8 --seed 1"


def learned(disk: Path) -> Any:
    """All that the learners of a store have learned, without the time of day."""
    with KnowledgeStore(disk / "k.db", create=False, writable=False) as knowledge:
        return [
            (
                learner.origin,
                knowledge.matches(learner),
                set(knowledge.afterstates(learner)),
                sorted(knowledge.feature_values(learner).items()) if not learner.has_sequences else (),
                knowledge.sequences(learner),
                knowledge.pairs(learner),
            )
            for learner in knowledge.learners()
        ]


def stored(disk: Path) -> None:
    base_store(disk / "k.db")


def trials(disk: Path) -> Any:
    """The results of an experiment, without times."""
    with closing(sqlite3.connect(f"file:{disk / 't' / 'results.db'}?mode=ro", uri=True)) as connection:
        return connection.execute("SELECT id, run, rewards, lengths FROM trial ORDER BY id, run").fetchall()


def played(pattern: str) -> Callable[[Path], Any]:
    """The matches in records."""

    def matches(disk: Path) -> Any:
        texts = [line for path in sorted(disk.glob(pattern)) for line in path.read_text().splitlines()]
        return [(record.moves, record.goals, record.end) for record in map(MatchRecord.from_json, texts)]

    return matches


def bytes_of(*names: str) -> Callable[[Path], Any]:
    return lambda disk: [(disk / name).read_bytes() for name in names]


@dataclass(frozen=True)
class Job:
    """A command that writes: its words, where DISK is the disk, and what it leaves there.

    final   the file or folder that it makes; empty if it is there before
    before  puts on the disk what must be there before
    weight  how often it is drawn; what takes long is drawn rarely
    always  whether it succeeds also without a disk
    adds    whether a second run adds its matches to those that the first has stored before it failed
    """

    words: str
    result: Callable[[Path], Any]
    final: str = ""
    before: Callable[[Path], object] = lambda disk: None
    weight: int = 4
    always: bool = False
    adds: bool = False


JOBS = {
    "learn": Job("learn tictactoe --matches 40 --seed 1 --knowledge DISK/k.db", learned, "k.db"),
    "learn on": Job(
        f"learn tictactoe --matches 60 --seed 5 --opponent {GREEDY} --knowledge DISK/k.db", learned, before=stored
    ),
    "sequences": Job(f"learn losetictactoe {WATCHING} --knowledge DISK/k.db", learned, "k.db", weight=2),
    "import": Job("knowledge import STORE.json --knowledge DISK/k.db", learned, "k.db"),
    "export": Job("knowledge export DISK/k.json --knowledge STORE", bytes_of("k.json"), "k.json"),
    "delete": Job("knowledge delete 2 3 --knowledge DISK/k.db", learned, before=stored),
    "records in a file": Job(
        "play tictactoe random random --matches 60 --records DISK/m.jsonl", played("m.jsonl"), "m.jsonl"
    ),
    "records in a folder": Job(
        "play tictactoe random random --matches 30 --records DISK/records",
        played("records/match-*.json"),
        before=lambda disk: (disk / "records").mkdir(),
    ),
    "player that learns": Job(
        "play tictactoe baseline:knowledge=DISK/k.db random --matches 20", learned, "k.db", adds=True
    ),
    "series": Job(f"{HOST} --record DISK/series", played("series/match-*.json"), "series"),
    "cache": Job("solve tictactoe", lambda disk: None, always=True),
    "duel": Job(
        "duel random random --game tictactoe --matches 4 --cores CORE --share-core --out DISK/duel",
        lambda disk: len([*(disk / "duel").rglob("*")]) > 1,
        "duel",
        weight=1,
    ),
    "transfer": Job(
        "transfer tictactoe connect3 --runs 1 --matches 12 --source-matches 6 --workers 1 --out DISK/t",
        trials,
        "t",
        weight=1,
    ),
    "demo": Job("demo --runs 1 --matches 6 --workers 1 --out DISK/t", lambda disk: len(trials(disk)), "t", weight=1),
    "matches": Job("matches EXPERIMENT DISK/m.csv", bytes_of("m.csv"), "m.csv"),
    "picture of a position": Job("show tictactoe --svg DISK/p.svg", bytes_of("p.svg"), "p.svg"),
    "picture of features": Job(
        "knowledge show --knowledge STORE --source tictactoe --draw DISK/f.png", bytes_of("f.png"), "f.png", weight=2
    ),
    "two pictures": Job(
        "features tictactoe --role xplayer --draw DISK/f", bytes_of("f.png", "f.svg"), "f.svg", weight=2
    ),
    "format": Job("fmt DISK/x.kif", bytes_of("x.kif"), before=lambda disk: (disk / "x.kif").write_text(SHEET)),
}
FAULTS = ("full", "filling", "limit", "read-only", "closed", "vanishing", "missing", "taken")


# ---- drawing -----------------------------------------------------------------------------------------------------


def drawn(random: Random) -> dict[str, Any]:
    """Draw a command and a fault: `room` is the share of the bytes it needs, `after` seconds until it strikes."""
    names = sorted(JOBS)
    job = random.choices(names, [JOBS[name].weight for name in names])[0]
    fault = random.choice(FAULTS if JOBS[job].final else FAULTS[:-2])
    fault = "missing" if (job, fault) == ("records in a file", "taken") else fault  # it takes a folder, too
    room = random.choice([0.0, random.random(), random.random(), 1.2 * random.random()])
    return {"job": job, "fault": fault, "room": room, "after": round(1.5 * random.random(), 3)}


# ---- disks -------------------------------------------------------------------------------------------------------


@cache
def can_mount() -> bool:
    """Whether this process may mount file systems."""
    with TemporaryDirectory() as folder, suppress(OSError), mounted(Path(folder), 1 << 16):
        return True
    return False


@contextmanager
def mounted(folder: Path, size: int) -> Iterator[None]:
    """Mount a file system in memory of this size. Raise OSError where this is not allowed."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise OSError(done.stderr)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def remount(folder: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True)


@contextmanager
def disk() -> Iterator[Path]:
    """A folder to write to, a file system of its own where possible."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "disk"
        path.mkdir()
        if not can_mount():
            yield path
        else:
            with mounted(path, SIZE):
                yield path


def fill(folder: Path, room: int) -> None:
    """Leave this many bytes free."""
    free = os.statvfs(folder)
    with suppress(OSError), (folder / "ballast").open("wb") as ballast:
        ballast.write(bytes(max(0, free.f_bavail * free.f_frsize - room)))


def used(folder: Path) -> int:
    """The bytes of all files, in whole blocks, and one for each folder."""
    return sum(-(-path.stat().st_size // 4096) * 4096 if path.is_file() else 4096 for path in folder.rglob("*"))


@contextmanager
def struck(folder: Path, example: dict[str, Any], needed: int) -> Iterator[dict[str, Any]]:
    """Let the fault happen, and end; give the options of `subprocess` to run the command with."""
    fault, room, options = example["fault"], int(example["room"] * needed), {}
    taken, later = folder / JOBS[example["job"]].final, list[threading.Timer]()
    if fault in ("full", "filling") and not can_mount():
        fault = "limit"
    if fault == "full":
        fill(folder, room)
    elif fault == "filling":
        later = [threading.Timer(example["after"], fill, (folder, room // 4))]
    elif fault == "limit":
        options["preexec_fn"] = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
    elif fault in ("read-only", "closed"):
        folder.chmod(0o555 if fault == "read-only" else 0)
        options["preexec_fn"] = drop_override
    elif fault == "vanishing":
        later = [threading.Timer(example["after"], _remove, (folder,))]
    elif fault == "taken" and taken.suffix:
        (taken / "inside").mkdir(parents=True)
    elif fault == "taken":
        taken.write_text("a file")
    for timer in later:
        timer.start()
    try:
        yield options
    finally:
        for timer in later:
            timer.cancel()
            timer.join()
        folder.chmod(0o755)
        (folder / "ballast").unlink(missing_ok=True)
        if fault == "taken":
            shutil.rmtree(taken) if taken.is_dir() else taken.unlink()


def _remove(folder: Path) -> None:
    """Remove all that lies in a folder."""
    for path in [*folder.iterdir()]:
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


# ---- commands ----------------------------------------------------------------------------------------------------


@cache
def _materials() -> Path:
    """A folder that is removed at the end of the process."""
    folder = Path(mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _material(word: str) -> Path:
    """A store, its export or an experiment, for the commands that read them; made when it is needed first."""
    place = _materials() / {"STORE": "k.db", "STORE.json": "k.json", "EXPERIMENT": "experiment"}[word]
    if not place.exists():
        if word == "STORE":
            base_store(place)
        elif word == "STORE.json":
            run_here("knowledge export DISK/k.json --knowledge STORE", _materials())
        else:
            words = JOBS["transfer"].words.replace("DISK/t", "DISK/experiment")
            run_here(words, _materials())
    return place


def run(words: str, folder: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command of gamelore that writes to this folder, in a process of its own."""
    environment = {**os.environ, **_variables(words, folder)}
    return subprocess.run(
        [*GAMELORE, *_arguments(words, folder)],
        **dict(capture_output=True, text=True, timeout=LONGEST, env=environment, cwd=folder.parent.parent),
        **options,
    )


def run_here(words: str, folder: Path) -> None:
    """Run the same command in this process, which has imported all that it needs; assert that it succeeds."""
    with patch.dict(os.environ, _variables(words, folder)):
        commands.run(*_arguments(words, folder))


def _variables(words: str, folder: Path) -> dict[str, str]:
    return {"GAMELORE_CACHE": str(folder)} if words == JOBS["cache"].words else {}


def _arguments(words: str, folder: Path) -> list[str]:
    def filled(match: re.Match[str]) -> str:
        if match[0] == "DISK":
            return str(folder)
        return str(min(os.sched_getaffinity(0)) if match[0] == "CORE" else _material(match[0]))

    return [re.sub(r"\b(DISK|CORE|STORE\.json|STORE|EXPERIMENT)\b", filled, word) for word in words.split()]


@cache
def _reference(name: str) -> tuple[Any, int]:
    """What a command leaves on a sound disk, and the bytes that this needs."""
    job = JOBS[name]
    with disk() as folder:
        job.before(folder)
        run_here(job.words, folder)
        return job.result(folder), used(folder)


# ---- checking ----------------------------------------------------------------------------------------------------


def assert_nothing_is_lost(example: dict[str, Any]) -> None:
    """Run a command under a fault, and again without; see the head of this module."""
    job, fault = JOBS[example["job"]], example["fault"]
    expected, needed = _reference(example["job"])
    with disk() as folder:
        target = folder / "absent" / "deeper" if fault == "missing" else folder
        job.before(folder)
        with struck(folder, example, needed) as options:
            done = run(job.words, target, **options)
        assert_told(done)
        assert not (job.always and done.returncode), done.stderr
        if fault == "vanishing":
            if done.returncode == 0:
                return  # it had ended before, or SQLite wrote to a file without a name
            _remove(folder)
            job.before(folder)
        assert_whole(folder)
        if done.returncode:
            target.mkdir(parents=True, exist_ok=True)
            kept = num_matches(target) if job.adds else 0
            run_here(job.words, target)
            if kept:
                assert num_matches(target) == kept + sum(len(learner[1]) for learner in expected)
                return
        assert job.result(target) == expected, (done.returncode, done.stderr)


def num_matches(folder: Path) -> int:
    """The number of matches in a store; 0 if there is none."""
    if not (folder / "k.db").exists():
        return 0
    with KnowledgeStore(folder / "k.db") as knowledge:
        return sum(learner.num_matches for learner in knowledge.learners())


def assert_told(done: subprocess.CompletedProcess[str]) -> None:
    """Assert that a command succeeded, or told what is wrong in one line that names a file."""
    assert done.returncode in (0, 1, 2), (done.returncode, done.stderr)
    assert "Traceback" not in done.stderr, done.stderr
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == (done.returncode > 0), (done.returncode, done.stderr)
    assert all(gettempdir() in error for error in errors), done.stderr


def assert_whole(folder: Path) -> None:
    """Assert that every file is whole, and that nothing is left that is not final."""
    for path in folder.rglob("*"):
        assert not path.name.startswith("."), f"{path.name} is left"
        if path.is_file() and (check := WHOLE.get(path.suffix)) is not None:
            assert check(path.read_bytes()), f"{path.name} is not whole"
        if path.suffix == ".db":
            with closing(sqlite3.connect(path)) as connection:
                assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def _is_json(data: bytes) -> bool:
    return all(isinstance(json.loads(line), dict) for line in data.splitlines()) and data[-1:] in (b"\n", b"")


def _is_table(data: bytes) -> bool:
    sizes = set(map(len, csv.reader(data.decode().splitlines())))
    return len(sizes) == 1 and data.endswith(b"\n")


WHOLE: dict[str, Callable[[bytes], bool]] = {
    ".jsonl": _is_json,
    ".json": lambda data: isinstance(json.loads(data), dict),
    ".csv": _is_table,
    ".svg": lambda data: ET.fromstring(data).tag.endswith("svg"),
    ".png": lambda data: data.endswith(b"IEND\xaeB`\x82"),
    ".kif": lambda data: bool(parse(data.decode()).rules),
    ".html": lambda data: data.endswith(b"</html>\n"),
}
"""Suffix of a file -> whether its content is whole."""
