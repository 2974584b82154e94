"""Damaged, foreign, busy and read-only stores: every command works or tells in one line what is wrong.

No command makes a store worse: what `gamelore knowledge check` passes before a command, it passes after it.
"""

from __future__ import annotations

import shutil
import sqlite3
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from typer.testing import CliRunner

from gamelore import load
from gamelore.cli import app
from gamelore.learning.exchange import import_learners
from gamelore.learning.store import schema
from gamelore.learning.store.knowledge import KnowledgeStore
from gamelore.learning.study import study
from gamelore.learning.td.initial_values import LearnerSettings
from gamelore.matches.opponents import OpponentSettings
from learning.small_stores import fill_all
from privileges import without_override
from reducing import reduced

FORMAT3 = Path(__file__).parent / "learning" / "stores" / "format3.db"
BUSY_SECONDS = 0.4  # in place of half a minute
GREEDY = "egreedy:filler=first,epsilon=0.1"
WATCHING = "--learner sequences --expert random --against random --cycles 1 --matches 3 --tests 0"
COMMANDS = {
    "list": "knowledge list --knowledge STORE",
    "list as JSON": "knowledge list --knowledge STORE --json",
    "show": "knowledge show --knowledge STORE",
    "show as JSON": "knowledge show --knowledge STORE --json",
    "check": "knowledge check --knowledge STORE",
    "export": "knowledge export EXPORT --knowledge STORE --force",
    "export one": "knowledge export EXPORT 1 --knowledge STORE --force",
    "import": f"knowledge import {FORMAT3.with_suffix('.json')} --knowledge STORE",
    "delete": "knowledge delete 2 --knowledge STORE",
    "learn": "learn tictactoe --matches 3 --knowledge STORE",
    "learn on": f"learn tictactoe --matches 27 --seed 5 --opponent {GREEDY} --knowledge STORE",
    "learn with transfer": f"learn connect3 --learner transfer --source tictactoe --matches 2 --opponent {GREEDY} "
    "--knowledge STORE",
    "learn sequences": f"learn losetictactoe {WATCHING} --knowledge STORE",
    "play baseline": "play tictactoe baseline:knowledge=STORE,seed=5,opponent=egreedy random --matches 2",
    "play transfer": "play connect3 transfer:knowledge=STORE random --matches 2",
    "play sequences": "play losetictactoe seqplayer:knowledge=STORE random --matches 1",
    **{f"{word} of a huge number": f"knowledge {word} {'9' * 23} --knowledge STORE" for word in ("show", "delete")},
    "export of a huge number": f"knowledge export EXPORT {'9' * 23} --knowledge STORE --force",
    "list of a source in bytes": "knowledge list --source \udcff --knowledge STORE",
    "show of an opponent in bytes": "knowledge show --opponent \udcff --knowledge STORE --json",
    "show of a role that is an escape": "knowledge show --role a\x1b[2J --knowledge STORE",
}
WORKING = {"full": ("list", "export", "check"), "format 3": ("list", "show", "export", "check")}
"""What always works with a sound store. One game of `full` has no legal moves, so that it cannot be shown."""
REFUSED = {name for name in COMMANDS if " of a" in name}
"""Commands with words that no store has."""
CELLS: list[Any] = [
    None, "", "x", "[]", "{}", "null", "[5]", '[{"game": "x"}]', '{"kind": "baseline", "depth": null}', "egreedy",
    '{"kind": "baseline", "depth": 100}', '{"kind": "baseline", "depth": 100000}', '{"kind": "sequences"}', "L,}",
    '{"kind": "sequences", "lengths": ["x"], "weighting": 5}', '{"kind": "baseline", "alpha": "x", "symmetry": []}',
    "\x1b[2J", "a\nb", "all roles", "terminal", "solo", "{" * 200, "(role x) (init y)", "(", "[[]]", '[["a"]]',
    0, -1, 1, 3, 5, 99, 2**31, 2**63 - 1, 0.5, -0.5, 1e300, {"real": "inf"}, {"column": ""},
    {"blob": ""}, {"blob": "01"}, {"blob": "63000000"}, {"blob": "00" * 400}, {"text": "ff41"},
]  # fmt: skip
"""Values for a cell; {"column": ""} is the value of the same column in another row, {"text": ""} a text in bytes."""
SCHEMAS = [
    "CREATE TRIGGER more AFTER INSERT ON match BEGIN UPDATE learner SET num_matches = num_matches + 1; END",
    "CREATE TRIGGER fewer AFTER UPDATE ON learner BEGIN DELETE FROM match; END",
    "CREATE VIEW seen AS SELECT * FROM match",
    "CREATE INDEX own ON match (reward)",
    "CREATE TABLE other (x)",
    "CREATE VIRTUAL TABLE words USING fts5(x)",
    "DROP TABLE feature",
    "DROP TABLE reply",
    "ALTER TABLE match RENAME COLUMN reward TO rewards",
    "ALTER TABLE match ADD COLUMN more TEXT",
    "DROP INDEX match_id",
    "CREATE TABLE extra AS SELECT id FROM learner",
    "CREATE TABLE extra (learner INTEGER REFERENCES learner)",
    "ALTER TABLE match ADD COLUMN more INT GENERATED ALWAYS AS (1/0) VIRTUAL",
]


# ---- drawing -----------------------------------------------------------------------------------------------------


def drawn(random: Random) -> dict[str, Any]:
    """Draw a store, what befalls it, and what is done with it then."""
    kind = random.choice(["cells", "cells", "cells", "rows", "loose", "schema", "file", "place"])
    damages = [_damage(random, kind) for _ in range(random.randint(1, 3) if kind in ("cells", "rows") else 1)]
    commands = random.sample(sorted(COMMANDS), 3)
    return {"base": random.choice(["full", "full", "format 3"]), "damages": damages, "commands": commands}


def _damage(random: Random, kind: str) -> list[Any]:
    table = random.choice(["game", "fact", "learner", "learner", *schema.LEARNER_TABLES])
    where = [table, random.random(), random.random()]  # table, column and row, of as many as there are
    if kind == "cells":
        return ["cell", *where, random.choice(CELLS)]
    if kind == "rows":
        return [random.choice(["delete", "double"]), table, random.random()]
    if kind == "loose":
        return ["loose", *where, random.choice([None, *CELLS])]
    if kind == "schema":
        return ["schema", random.choice(SCHEMAS)]
    if kind == "file":
        return random.choice(
            [
                ["cut", random.random()],
                ["cut", 0.0],
                ["bytes", random.random(), random.randbytes(random.choice([1, 4, 100, 4096])).hex()],
                ["text", "(role red)\n"],
                ["foreign", "CREATE TABLE learner (id INTEGER PRIMARY KEY, name TEXT)"],
                ["pragma", f"user_version = {random.choice([0, 1, 2, 3, 5, 99, -1])}"],
                ["pragma", f"application_id = {random.choice([0, 1, 0x676C6F72])}"],
                ["pragma", "journal_mode = DELETE"],
            ]
        )
    return random.choice(
        [["lock", random.choice([0.1, 9.0]), random.choice(["IMMEDIATE", "EXCLUSIVE"])], ["read-only"], ["folder"],
         ["no such folder"], ["unfinished", random.random()]]
    )  # fmt: skip


def reduced_example(example: dict[str, Any], fails: Any) -> dict[str, Any]:
    """Leave out commands and damages."""
    commands = reduced(example["commands"], lambda kept: fails({**example, "commands": list(kept)}))
    example = {**example, "commands": list(commands)}
    damages = reduced(example["damages"], lambda kept: fails({**example, "damages": list(kept)}))
    return {**example, "damages": list(damages)}


# ---- stores ------------------------------------------------------------------------------------------------------


@cache
def _bases() -> dict[str, bytes]:
    """Sound stores: one of an old format, and one with rows in every table."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "k.db"
        with KnowledgeStore(path) as knowledge:
            fill_all(knowledge)
            import_learners(knowledge, FORMAT3.with_suffix(".json"))
            study(
                knowledge,
                load("tictactoe"),
                "xplayer",
                LearnerSettings(),
                OpponentSettings("egreedy", "first", 0.1),
                25,
                seed=5,
            )
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # everything into the one file
        return {"full": path.read_bytes(), "format 3": FORMAT3.read_bytes()}


def base_store(path: Path) -> None:
    """Write a sound store with rows in every table."""
    path.write_bytes(_bases()["full"])


def _damage_store(path: Path, damage: Sequence[Any]) -> None:
    """Damage a store; where this cannot be done, leave it as it is."""
    kind, *how = damage
    data = path.read_bytes() if path.is_file() else b""
    if kind == "cut":
        path.write_bytes(data[: int(how[0] * len(data))])
    elif kind == "bytes":
        start, new = int(how[0] * len(data)), bytes.fromhex(how[1])
        path.write_bytes(data[:start] + new + data[start + len(new) :])
    elif kind == "text":
        path.write_text(how[0])
    elif kind == "foreign":
        path.unlink()
        _execute(path, how[0])
    elif kind == "pragma":
        _execute(path, f"PRAGMA {how[0]}")
    elif kind == "schema":
        _execute(path, how[0])
    elif kind == "unfinished":
        _leave_log(path, how[0])
    elif kind in ("cell", "loose", "delete", "double"):
        with closing(sqlite3.connect(path, isolation_level=None)) as connection, suppress(sqlite3.Error):
            _change_row(connection, kind, *how)


def _execute(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection, suppress(sqlite3.Error):
        connection.execute(statement)


def _change_row(connection: sqlite3.Connection, kind: str, table: str, *where: Any) -> None:
    """Delete or double a row, or put another value into one of its cells; `loose`: in a table without constraints."""
    if kind != "cell":
        connection.execute(f"CREATE TABLE loose AS SELECT * FROM {table}")
        connection.execute(f"DROP TABLE {table}")
        connection.execute(f"ALTER TABLE loose RENAME TO {table}")
    names = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]
    rows = connection.execute(f"SELECT * FROM {table}").fetchall()
    if not rows:
        return
    row = list(rows[int(where[-1 if kind in ("delete", "double") else 1] * len(rows))])
    same = " AND ".join(f"{name} IS ?" for name in names)
    if kind == "delete":
        connection.execute(f"DELETE FROM {table} WHERE {same}", row)
    elif kind == "double":
        connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
    else:
        column = int(where[0] * len(names))
        value = rows[0][column] if where[2] == {"column": ""} else _cell(where[2])
        new = "CAST(? AS TEXT)" if _is_text(where[2]) else "?"
        connection.execute(f"UPDATE {table} SET {names[column]} = {new} WHERE {same}", [value, *row])


def _is_text(value: Any) -> bool:
    return isinstance(value, dict) and "text" in value


def _cell(value: Any) -> Any:
    if isinstance(value, dict):
        return float(value["real"]) if "real" in value else bytes.fromhex(value.get("blob", value.get("text")))
    return value


def _leave_log(path: Path, share: float) -> None:
    """Leave a store as a killed process does: with a write-ahead log, whole or cut off."""
    beside = path.with_name("before.db")
    shutil.copy(path, beside)
    with suppress(Exception), KnowledgeStore(beside) as knowledge:
        knowledge.store_features(knowledge.find(1), knowledge.feature_values(knowledge.find(1)))
        log = beside.with_name("before.db-wal").read_bytes()
        shutil.copy(beside, path)
        path.with_name(f"{path.name}-wal").write_bytes(log[: int(2 * share * len(log))])


@contextmanager
def _befallen(path: Path, damages: Sequence[Sequence[Any]]) -> Iterator[None]:
    """Do to a place what shall befall it, while the commands run."""
    kind, *how = damages[0] if damages else [""]
    if kind == "read-only":
        path.chmod(0o444)
        path.parent.chmod(0o555)
        with without_override():
            yield
        path.parent.chmod(0o755)
    elif kind == "folder":
        path.unlink()
        path.mkdir()
        yield
    elif kind == "no such folder":
        shutil.rmtree(path.parent)
        yield
    elif kind == "lock":
        with _locked(path, *how):
            yield
    else:
        yield


@contextmanager
def _locked(path: Path, seconds: float, lock: str) -> Iterator[None]:
    """Hold a lock for some seconds, or until the end."""
    over = threading.Event()
    holds = threading.Event()

    def hold() -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute(f"BEGIN {lock}")
            holds.set()
            over.wait(seconds)
            connection.rollback()

    thread = threading.Thread(target=hold)
    thread.start()
    holds.wait(10)
    try:
        yield
    finally:
        over.set()
        thread.join()


# ---- checking ----------------------------------------------------------------------------------------------------


def assert_stores_stay_sound(example: dict[str, Any]) -> None:
    """Run the commands on the store; see the head of this module."""
    with TemporaryDirectory() as folder, warnings.catch_warnings(), patch.object(schema, "BUSY_SECONDS", BUSY_SECONDS):
        warnings.simplefilter("error")
        path = Path(folder) / "stores" / "k.db"
        path.parent.mkdir()
        path.write_bytes(_bases()[example["base"]])
        for damage in example["damages"]:
            _damage_store(path, damage)
        was_sound = _is_sound(path)
        with _befallen(path, example["damages"]):
            was_sound = _is_sound(path) if example["damages"][0][0] != "read-only" else was_sound
            for name in example["commands"]:
                code = _run(name, path, Path(folder) / "export.json")
                if was_sound:
                    assert _is_sound(path), f"{name} has made the store worse"
                    works = name.startswith(WORKING[example["base"]]) and name not in REFUSED
                    assert code == 0 or not works, f"{name} has failed"


def _is_sound(path: Path) -> bool:
    return path.is_file() and bool(
        CliRunner().invoke(app, ["knowledge", "check", "--knowledge", str(path)]).exit_code == 0
    )


def _run(name: str, store: Path, export: Path) -> int:
    """Run a command and return its exit code. It fails with one line, and with nothing but that."""
    words = COMMANDS[name].replace("STORE", str(store)).replace("EXPORT", str(export)).split()
    result = CliRunner().invoke(app, words)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    errors = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert result.exit_code in (0, 1), (name, result.exit_code, result.stderr)
    if result.exit_code and not (name == "check" and "problem" in result.stderr):
        assert len(errors) == 1, (name, result.stderr)
        assert len(result.stderr) < 3_000, (name, result.stderr)
    else:
        assert not errors, (name, result.stderr)
    return result.exit_code
