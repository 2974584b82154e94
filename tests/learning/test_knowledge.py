"""What goes into the store comes out, whoever else writes, whenever a process dies, whatever the file was."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gamelore.errors import KnowledgeError
from gamelore.learning.store import schema
from gamelore.learning.store.features import FeatureValues
from gamelore.learning.store.knowledge import KnowledgeStore, default_path
from gamelore.learning.store.schema import ALL_ROLES, Afterstate, LearnedRows, MatchRow, SequenceRow, StoredLearner
from learning.small_stores import MOVES, Rules, content, fill, fill_all, learner, make_older, record_match, state
from privileges import without_override


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "knowledge.db"


def test_a_match_is_stored_with_the_values_it_changed(path: Path) -> None:
    with KnowledgeStore(path) as knowledge:
        one = learner(knowledge)
        record_match(knowledge, one, 100, 5, [Afterstate(state("b", "a"), 50.25, 1), Afterstate(state(), 1 / 3, 1)])
        record_match(knowledge, one, 0, 9, [Afterstate(state("a", "b"), 40.5, 2), Afterstate(state("c"), 45.0, 1)])
        assert one.num_matches == 2
    with KnowledgeStore(path) as knowledge:
        again = learner(knowledge)
        assert (again.id, again.num_matches) == (one.id, 2)
        assert knowledge.matches(again) == [(100, 5), (0, 9)]
        assert set(knowledge.afterstates(again)) == {
            (state("a", "b"), 40.5, 2),
            (state(), 1 / 3, 1),
            (state("c"), 45.0, 1),
        }
        assert knowledge.rules(again) == Rules.rulesheet


def test_a_learner_is_its_game_role_opponent_settings_and_seed(path: Path) -> None:
    with KnowledgeStore(path) as knowledge:
        make = knowledge.learner
        first = make(Rules(), "red", opponent="random", settings={"a": 1, "b": 2}, seed=1)
        assert make(Rules(), "red", opponent="random", settings={"b": 2, "a": 1}, seed=1).id == first.id
        others = [
            make(Rules(rules_hash="f00d" * 16), "red", opponent="random", settings={"a": 1, "b": 2}, seed=1),
            make(Rules(), "blue", opponent="random", settings={"a": 1, "b": 2}, seed=1),
            make(Rules(), "red", opponent="weak", settings={"a": 1, "b": 2}, seed=1),
            make(Rules(), "red", opponent="random", settings={"a": 1}, seed=1),
            make(Rules(), "red", opponent="random", settings={"a": 1, "b": 2}, seed=2),
        ]
        assert len({first.id, *(other.id for other in others)}) == 6
        with pytest.raises(KnowledgeError, match=r"expected a role of coins \(red, blue\), got green"):
            make(Rules(), "green", opponent="random", settings={}, seed=1)
        with pytest.raises(
            KnowledgeError, match="expected a seed that is a signed 64-bit number, got 9223372036854775808"
        ):
            make(Rules(), "red", opponent="random", settings={}, seed=2**63)


def test_what_a_learner_began_with_stays_and_tells_its_sources(path: Path) -> None:
    with KnowledgeStore(path) as knowledge:
        source = learner(knowledge)
        record_match(knowledge, source, 100, 5, [])

        def target(value: float) -> StoredLearner:
            return knowledge.learner(
                Rules("dice", rules_hash="d1ce" * 16),
                "red",
                opponent="random",
                settings={"kind": "transfer"},
                seed=3,
                inherited=FeatureValues({"L": (value, 8)}, (0, 30, 100)),
                sources=[source],
            )

        first = target(41.5)
        record_match(knowledge, source, 0, 5, [])
        again = target(0.0)
        begun = knowledge.inherited(again)
        assert begun is not None
        assert (dict(begun), begun.outcomes, begun.depth) == ({"L": (41.5, 8)}, (0, 30, 100), 2)
        assert knowledge.inherited(source) is None
        assert again.sources == first.sources
        assert again.sources[0]["game"] == "coins"
        assert again.sources[0]["num_matches"] == 1


def test_features_are_kept_for_each_source_and_opponent(path: Path) -> None:
    with KnowledgeStore(path) as knowledge:
        greedy, weak = learner(knowledge), learner(knowledge, opponent="weak")
        knowledge.store_features(greedy, FeatureValues({"L": (43.5, 10), "L,{W}": (57.25, 4)}))
        knowledge.store_features(weak, FeatureValues({"L": (54.5, 3)}))
        record_match(knowledge, greedy, 50, 9, [])
        knowledge.store_features(greedy, FeatureValues({"L": (40.0, 12)}))
        rows = knowledge.features(source="coins", role="red")
        assert rows == [
            (greedy.id, "coins", "red", "egreedy:filler=first", "L", 40.0, 12),
            (weak.id, "coins", "red", "weak", "L", 54.5, 3),
        ]
        assert dict(knowledge.feature_values(greedy)) == {"L": (40.0, 12)}
        assert knowledge.feature_values(greedy).outcomes == (0, 30, 100)
        assert greedy.features_at == knowledge.find(greedy.id).features_at == 1
        assert knowledge.features(opponent="egreedy") == rows[:1]
        assert knowledge.features(opponent="egreedy:filler=first") == rows[:1]
        assert knowledge.features(opponent="egreed") == []
        assert knowledge.features(source=Rules.rules_hash, ids=[weak.id]) == rows[1:]


def test_two_that_go_on_with_the_same_learner_are_told(path: Path) -> None:
    with KnowledgeStore(path) as here, KnowledgeStore(path) as there:
        mine, theirs = learner(here), learner(there)
        record_match(there, theirs, 100, 5, [])
        with pytest.raises(KnowledgeError, match="expected learner 1 after 0 matches, got 1, because another process"):
            record_match(here, mine, 0, 5, [Afterstate(state("x"), 1.0, 1)])
        assert here.matches(mine) == [(100, 5)]
        assert here.afterstates(mine) == []


def test_a_number_that_came_to_nothing_is_not_used_again(path: Path) -> None:
    with KnowledgeStore(path) as here, KnowledgeStore(path) as there:
        one, two = learner(here, seed=1), learner(there, seed=2)
        with pytest.raises(AttributeError):
            record_match(here, one, 0, 5, [Afterstate(state("lost"), 1.0, 1), None])  # type: ignore[list-item]
        record_match(there, two, 0, 5, [Afterstate(state("kept"), 2.0, 1)])
        record_match(here, one, 0, 5, [Afterstate(state("lost", "kept"), 3.0, 1)])
        assert here.afterstates(one) == [(state("lost", "kept"), 3.0, 1)]
        assert here.afterstates(two) == [(state("kept"), 2.0, 1)]


WRITER = """
import sys
from gamelore.learning.store.knowledge import Afterstate, KnowledgeStore
from learning.small_stores import Rules, learner, record_match, state
with KnowledgeStore(sys.argv[1]) as knowledge:
    me = learner(knowledge, seed=int(sys.argv[2]))
    for number in range(me.num_matches, int(sys.argv[3])):
        new = Afterstate(state("shared", f"{sys.argv[2]} {number}"), number, 1)
        record_match(knowledge, me, number % 101, 5, [new, Afterstate(state("every"), number, number)])
        print(number, flush=True)
"""


def writer(path: Path, seed: int, num_matches: int) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", WRITER, str(path), str(seed), str(num_matches)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def test_several_processes_write_at_once(path: Path) -> None:
    writers = [writer(path, seed, 200) for seed in range(3)]
    assert [(process.communicate()[0].split()[-1], process.returncode) for process in writers] == [("199", 0)] * 3
    with KnowledgeStore(path) as knowledge:
        for seed in range(3):
            one = learner(knowledge, seed)
            assert knowledge.matches(one) == [(number % 101, 5) for number in range(200)]
            expected = {(state("shared", f"{seed} {number}"), number, 1) for number in range(200)}
            assert set(knowledge.afterstates(one)) == {*expected, (state("every"), 199, 199)}


@pytest.mark.parametrize("lines", [1, 2, 60, 211])
def test_a_killed_process_loses_no_finished_match(path: Path, lines: int) -> None:
    process = writer(path, 1, 1_000_000)
    assert process.stdout is not None
    told = [int(process.stdout.readline()) for _ in range(lines)]
    process.send_signal(signal.SIGKILL)
    told += [int(line) for line in process.stdout.read().splitlines()]
    process.wait()
    process.stdout.close()
    with KnowledgeStore(path) as knowledge:
        one = learner(knowledge, 1)
        stored = len(knowledge.matches(one))
        assert stored == one.num_matches
        assert stored in (len(told), len(told) + 1)  # the last may be stored and not yet told
        visits = {after.visits for after in knowledge.afterstates(one) if after.facts == {"every"}}
        assert visits == {stored - 1}  # never half a match
        record_match(knowledge, one, 0, 1, [])


def test_a_process_killed_while_it_makes_the_file_leaves_one_that_opens(path: Path) -> None:
    sqlite3.connect(path).execute("PRAGMA journal_mode = WAL").connection.close()  # as far as it may have come
    assert path.stat().st_size > 0
    with KnowledgeStore(path) as knowledge:
        assert knowledge.learners() == []


def foreign_database(path: Path, application_id: int, user_version: int) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE other (x)")
    connection.execute(f"PRAGMA application_id = {application_id}")
    connection.execute(f"PRAGMA user_version = {user_version}")
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("application_id", "user_version", "message"),
    [
        (0, 0, "got an SQLite file of another application"),
        (0x42, 1, r"another application \(application_id 0x42\); name another file"),
        (
            schema.APPLICATION_ID,
            schema.FORMAT + 1,
            "expected knowledge of format 7 or older, got format 8, .* newer",
        ),
        (schema.APPLICATION_ID, 0, "expected knowledge of format 7 or older, got format 0, .* name another file"),
    ],
)
def test_a_foreign_or_other_format_is_refused_and_left_alone(
    path: Path, application_id: int, user_version: int, message: str
) -> None:
    foreign_database(path, application_id, user_version)
    before = path.read_bytes()
    with pytest.raises(KnowledgeError, match=message):
        KnowledgeStore(path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("version", range(1, schema.FORMAT))
def test_a_store_of_a_format_before_gets_the_tables_that_came_after_it(path: Path, version: int) -> None:
    with KnowledgeStore(path) as knowledge:
        one = fill(knowledge)
        before = content(knowledge)
    make_older(path, version)
    with KnowledgeStore(path) as here, KnowledgeStore(path) as there:  # the second finds it done
        assert content(here) == content(there) == before
        assert here.sequences(one) == here.pairs(one) == []
        row = SequenceRow("red", "solo", ("(does red (put 1))",), state("a"), 2, False)
        watching = here.learner(Rules(), ALL_ROLES, opponent="watched", settings={"kind": "sequences"}, seed=0)
        here.record(watching, [MatchRow(100, 5)], LearnedRows((), [row], []))
        assert there.sequences(there.find(watching.id)) == [row]
        assert there.trajectories(one) == []
        assert here.keep_match(one, "m", MOVES, "terminal") == 3
        record_match(here, one, 100, 2, [], trajectory=3)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (schema.FORMAT,)
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


@pytest.mark.parametrize("version", range(1, schema.FORMAT + 1))
def test_a_store_that_is_only_read_stays_as_it_is_in_any_format(path: Path, version: int) -> None:
    with KnowledgeStore(path) as knowledge:
        one = fill(knowledge)
        before = content(knowledge)
    if version < schema.FORMAT:
        make_older(path, version)
    was = path.read_bytes()
    with KnowledgeStore(path, create=False, writable=False) as knowledge:
        assert content(knowledge) == before
        with pytest.raises(KnowledgeError, match=r"expected a file that can be opened and written, got: .*readonly"):
            record_match(knowledge, one, 100, 1, [])
    assert path.read_bytes() == was
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_there_is_no_reading_where_nothing_is(path: Path) -> None:
    for kind in ("no such", "an empty"):
        with pytest.raises(KnowledgeError, match=f"expected a knowledge store, got {kind} file; learn a game first"):
            KnowledgeStore(path, writable=False)
        path.touch()
    assert path.read_bytes() == b""


def test_a_match_that_is_over_waits_until_it_is_learned_from(path: Path) -> None:
    with KnowledgeStore(path) as knowledge:
        one, other = fill(knowledge, num_matches=2), learner(knowledge)
        assert [knowledge.keep_match(one, match, MOVES, "terminal") for match in ("a", "b")] == [2, 3]
        assert knowledge.keep_match(other, "a", [], "stuck") == 0
    with KnowledgeStore(path) as knowledge:
        one = knowledge.find(one.id)
        assert knowledge.trajectories(one) == [(2, "a", tuple(MOVES), "terminal"), (3, "b", tuple(MOVES), "terminal")]
        record_match(knowledge, one, 100, 2, [Afterstate(state("x"), 1.0, 1)], trajectory=3)
        assert knowledge.matches(one)[2:] == [(100, 2)]
        assert [row.match for row in knowledge.trajectories(one)] == ["a"]
        assert [row.match for row in knowledge.trajectories(other)] == ["a"]
        knowledge.forget_trajectory(one, 2)
        assert knowledge.trajectories(one) == []


def test_a_match_is_kept_once_and_learned_from_once(path: Path) -> None:
    with KnowledgeStore(path) as knowledge:
        one = learner(knowledge)
        assert knowledge.keep_match(one, "a", MOVES, "terminal") == 0
        assert knowledge.keep_match(one, "a", MOVES, "terminal") is None
        record_match(knowledge, one, 100, 2, [], trajectory=0)
        assert knowledge.keep_match(one, "a", MOVES, "terminal") is None
        with pytest.raises(
            KnowledgeError, match="expected trajectory 0 of learner 1, got none, because another process"
        ):
            record_match(knowledge, one, 100, 2, [Afterstate(state("x"), 1.0, 1)], trajectory=0)
        assert (knowledge.matches(one), knowledge.afterstates(one), one.num_matches) == ([(100, 2)], [], 1)


def test_a_match_of_a_learner_that_another_process_continues_is_kept_and_learned_from_once(path: Path) -> None:
    with KnowledgeStore(path) as here, KnowledgeStore(path) as there:
        mine, theirs = learner(here), learner(there)
        record_match(there, theirs, 100, 5, [])
        assert here.keep_match(mine, "a", MOVES, "terminal") == 1
        with pytest.raises(KnowledgeError, match="expected learner 1 after 0 matches, got 1, because another process"):
            record_match(here, mine, 100, 5, [], trajectory=1)
        record_match(there, theirs, 100, 5, [], trajectory=1)
        assert there.trajectories(theirs) == []


WRONG_ROWS: dict[str, Callable[[KnowledgeStore, StoredLearner], object]] = {
    "UPDATE game SET name = x'ff'": lambda knowledge, _: knowledge.games(),
    "UPDATE game SET rules = x'ff'": lambda knowledge, _: knowledge.games(),
    "UPDATE match SET reward = 'much'": lambda knowledge, learner: knowledge.matches(learner),
    "UPDATE match SET length = -1": lambda knowledge, learner: knowledge.matches(learner),
    "UPDATE feature SET value = 'much'": lambda knowledge, learner: knowledge.features(ids=[learner.id]),
    "UPDATE feature SET visits = 0.5": lambda knowledge, learner: knowledge.feature_values(learner),
    "UPDATE feature SET feature = 'L,}'": lambda knowledge, learner: knowledge.feature_values(learner),
    "UPDATE inherited SET value = 9e999": lambda knowledge, learner: knowledge.inherited(learner),
    "UPDATE reply SET chosen = 9": lambda knowledge, learner: knowledge.inherited(learner),
    "UPDATE reply SET chosen = 3, neutrals = 0": lambda knowledge, learner: knowledge.inherited(learner),
    "UPDATE trajectory SET moves = '5'": lambda knowledge, learner: knowledge.trajectories(learner),
    "UPDATE trajectory SET moves = '[[5]]'": lambda knowledge, learner: knowledge.trajectories(learner),
    "UPDATE trajectory SET moves = CAST(x'5bff5d' AS TEXT)": lambda knowledge, learner: knowledge.trajectories(learner),
    "UPDATE game SET rules = CAST(x'ff41' AS TEXT)": lambda knowledge, learner: knowledge.rules(learner),
    "UPDATE trajectory SET end = 'x'": lambda knowledge, learner: knowledge.trajectories(learner),
    "UPDATE afterstate SET q = 'much'": lambda knowledge, learner: knowledge.afterstates(learner),
    "UPDATE afterstate SET state = 'text' WHERE learner = 2": lambda knowledge, learner: knowledge.afterstates(learner),
    "UPDATE afterstate SET state = x'0102' WHERE learner = 2": lambda knowledge, learner: knowledge.afterstates(
        learner
    ),
    "UPDATE fact SET text = x'ff' WHERE number = 1": lambda knowledge, learner: knowledge.afterstates(learner),
    "UPDATE sequence SET kind = 'trio'": lambda knowledge, _: knowledge.sequences(knowledge.find(3)),
    "UPDATE sequence SET several = 2": lambda knowledge, _: knowledge.sequences(knowledge.find(3)),
    "UPDATE pair SET tries = 'many'": lambda knowledge, _: knowledge.pairs(knowledge.find(3)),
    "UPDATE branch SET moves = 'text'": lambda knowledge, _: knowledge.pairs(knowledge.find(3)),
    "UPDATE branch SET kind = 5": lambda knowledge, _: knowledge.pairs(knowledge.find(3)),
}
"""Statements that damage a row, and who reads it."""


@pytest.mark.parametrize("statement", WRONG_ROWS)
def test_a_wrong_row_is_told_when_it_is_read(path: Path, statement: str) -> None:
    with KnowledgeStore(path) as knowledge:
        fill_all(knowledge)
        read, stored = WRONG_ROWS[statement], knowledge.find(2)
        read(knowledge, stored)
        with knowledge.writing() as connection:
            connection.execute(statement)
        with pytest.raises(KnowledgeError, match=re.escape(str(path))):
            read(knowledge, stored)


FOREIGN_TABLES = [
    "CREATE TABLE copy AS SELECT * FROM reply; DROP TABLE reply; ALTER TABLE copy RENAME TO reply",
    "ALTER TABLE match ADD COLUMN more TEXT",
    "DROP TABLE feature",
    "DROP INDEX match_id",
]


@pytest.mark.parametrize("statements", FOREIGN_TABLES)
def test_a_store_with_other_tables_or_keys_is_refused(path: Path, statements: str) -> None:
    with KnowledgeStore(path) as knowledge:
        fill_all(knowledge)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(statements)
    for is_writable in (True, False):
        with pytest.raises(KnowledgeError, match=r"got another .* in"):
            KnowledgeStore(path, create=False, writable=is_writable)


@contextlib.contextmanager
def read_only(path: Path) -> Iterator[None]:
    """Forbid this thread to write a store and its folder. Others may."""
    path.chmod(0o444)
    path.parent.chmod(0o555)
    try:
        with without_override():
            yield
    finally:
        path.parent.chmod(0o755)


def test_a_read_only_store_is_read(path: Path) -> None:
    with KnowledgeStore(path) as knowledge:
        fill_all(knowledge)
        before = content(knowledge)
    with read_only(path):
        with KnowledgeStore(path, create=False, writable=False) as knowledge:
            assert content(knowledge) == before
            with pytest.raises(KnowledgeError, match="readonly"):
                knowledge.delete([1])
        with pytest.raises(KnowledgeError, match="expected a file that can be opened and written"):
            KnowledgeStore(path)


def test_a_read_only_store_that_another_process_changes_is_read_as_it_was(path: Path) -> None:
    with KnowledgeStore(path) as knowledge:
        fill(knowledge, num_matches=3)
        before = content(knowledge)
    with read_only(path):
        reader = KnowledgeStore(path, create=False, writable=False)
    with reader:
        with KnowledgeStore(path) as knowledge:
            fill(knowledge, num_matches=300)
        assert content(reader) == before


def test_a_read_only_store_that_another_process_has_open_is_read(path: Path) -> None:
    with KnowledgeStore(path) as writer:
        fill_all(writer)
        with read_only(path), KnowledgeStore(path, create=False, writable=False) as reader:
            assert content(reader) == content(writer)


def test_a_read_only_store_of_a_killed_process_is_read(path: Path, tmp_path: Path) -> None:
    """Its log has what is not in the file; nobody has the third file of SQLite."""
    copy = tmp_path / "copy" / path.name
    copy.parent.mkdir()
    with KnowledgeStore(path) as knowledge:
        fill_all(knowledge)
        before = content(knowledge)
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
    with read_only(copy), KnowledgeStore(copy, create=False, writable=False) as knowledge:
        assert content(knowledge) == before


def test_a_read_only_store_needs_a_temporary_folder(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise FileNotFoundError("No usable temporary directory")

    with KnowledgeStore(path) as knowledge:
        fill(knowledge, num_matches=3)
    monkeypatch.setattr(schema, "TemporaryDirectory", refuse)
    with read_only(path), pytest.raises(KnowledgeError, match=f"{path}: expected a temporary folder .* set TMPDIR"):
        KnowledgeStore(path, create=False, writable=False)


def test_a_read_only_store_is_copied_again_if_it_changes_meanwhile(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with KnowledgeStore(path) as knowledge:
        fill(knowledge, num_matches=3)
    copy_file, changes = shutil.copyfile, iter([30, 300])

    def copy_and_change(source: Path, target: Path) -> None:
        copy_file(source, target)
        if num_matches := next(changes, 0):
            monkeypatch.setattr(shutil, "copyfile", copy_file)
            with KnowledgeStore(path) as knowledge:
                fill(knowledge, num_matches=num_matches)
            monkeypatch.setattr(shutil, "copyfile", copy_and_change)

    monkeypatch.setattr(shutil, "copyfile", copy_and_change)
    monkeypatch.setattr(schema, "_is_readable", lambda connection: False)
    with KnowledgeStore(path, create=False, writable=False) as knowledge:
        assert [learner.num_matches for learner in knowledge.learners()] == [300]
    changes = iter(range(301, 400))
    with pytest.raises(KnowledgeError, match="another process changes the store"):
        KnowledgeStore(path, create=False, writable=False)


def test_a_detached_store_is_a_copy_that_can_be_changed(path: Path) -> None:
    with KnowledgeStore(path) as knowledge:
        fill_all(knowledge)
        before = content(knowledge)
        with KnowledgeStore(path, create=False, writable=False) as copy:
            copy.detach()
            assert content(copy) == before
            copy.delete([1])
            assert content(knowledge) == before != content(copy)


def test_a_locked_store_is_not_copied(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "BUSY_SECONDS", 0.1)
    with KnowledgeStore(path) as knowledge:
        fill_all(knowledge)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")  # in this mode, writers keep out readers
        with KnowledgeStore(path, create=False, writable=False) as knowledge:
            connection.execute("BEGIN EXCLUSIVE")
            with pytest.raises(KnowledgeError, match="another process has locked the store"):
                knowledge.detach()


def test_the_store_tells_its_games_and_its_size(path: Path) -> None:
    with KnowledgeStore(path) as knowledge:
        assert knowledge.games() == []
        empty = knowledge.size
        learner(knowledge)
        rules = "(role red)\n" * 1000
        knowledge.learner(
            Rules("dice", rules_hash="d1ce" * 16, rulesheet=rules), "red", opponent="x", settings={}, seed=0
        )
        assert knowledge.games() == [
            ("coins", Rules.rules_hash, Rules.rulesheet),
            ("dice", "d1ce" * 16, rules),
        ]
        size = knowledge.size
        assert size > empty > 0
    files = list(path.parent.glob("knowledge.db*"))
    assert size == sum(file.stat().st_size for file in files), "before, some pages are in the log, too"


def test_all_roles_are_none_of_the_games(path: Path) -> None:
    with KnowledgeStore(path) as knowledge:
        watching = knowledge.learner(Rules(), ALL_ROLES, opponent="watched", settings={}, seed=0)
        assert watching.has_sequences
        assert watching.outcomes == [0, 30, 100]
        assert not learner(knowledge).has_sequences
        assert [one.id for one in knowledge.learners(role=ALL_ROLES)] == [watching.id]


def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path) -> None:
    path.write_text("a shopping list, long enough to be mistaken for something else\n" * 99)
    before = path.read_bytes()
    with pytest.raises(KnowledgeError, match=r"knowledge.db: expected a readable .* got: file is not a database; name"):
        KnowledgeStore(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("keep", [0.3, 0.6])
def test_a_damaged_file_is_told(path: Path, keep: float) -> None:
    with KnowledgeStore(path) as knowledge:
        one = learner(knowledge)
        for number in range(300):
            record_match(knowledge, one, 0, 5, [Afterstate(state(f"fact {number}"), 1.0, 1)])
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * keep)])
    with (
        pytest.raises(KnowledgeError, match=r"expected a readable .* malformed; .* from an export"),
        KnowledgeStore(path) as k,
    ):
        k.afterstates(learner(k))


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(KnowledgeError, match=r"can be opened and written, got: .* name another file \(--knowledge"):
        KnowledgeStore(tmp_path / "file" / "knowledge.db")
    with pytest.raises(KnowledgeError, match="can be opened and written, got: unable to open database file"):
        KnowledgeStore(tmp_path)
    with pytest.raises(
        KnowledgeError,
        match=r"expected a knowledge store, got no such file; learn a game first "
        r"\(gamelore learn, gamelore study\)",
    ):
        KnowledgeStore(tmp_path / "missing.db", create=False)
    assert not (tmp_path / "missing.db").exists()


def test_the_place_is_the_users_unless_the_environment_names_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("GAMELORE_KNOWLEDGE", raising=False)
    assert default_path().parts[-2:] == ("gamelore", "knowledge.db")
    monkeypatch.setenv("GAMELORE_KNOWLEDGE", str(tmp_path / "mine.db"))
    with KnowledgeStore() as knowledge:
        assert knowledge.path == tmp_path / "mine.db"
    assert (tmp_path / "mine.db").is_file()


def test_a_deleted_learner_leaves_nothing_but_a_game_of_others(path: Path) -> None:
    with KnowledgeStore(path) as knowledge:
        one, other = fill(knowledge), learner(knowledge)
        knowledge.keep_match(one, "a", MOVES, "terminal")
        record_match(knowledge, other, 100, 5, [Afterstate(state("b"), 50.0, 1)])
        before = content(knowledge)
        with pytest.raises(KnowledgeError, match="expected the number of a learner in this store"):
            knowledge.delete([one.id, 9])
        assert content(knowledge) == before
        assert knowledge.delete([one.id, one.id]) == [(one.id, "coins", "red", "weak", 7, 3)]
        assert content(knowledge) == before[1:]
        assert [game.name for game in knowledge.games()] == ["coins"]


def test_the_last_learner_takes_its_game_with_it(path: Path) -> None:
    with KnowledgeStore(path) as knowledge, KnowledgeStore(path) as other:
        before = other.find(fill(knowledge).id)
        record_match(other, before, 100, 5, [Afterstate(state("z", "(step 1)"), 50.0, 1)])
        knowledge.delete([before.id])
        assert knowledge.games() == []
        with contextlib.closing(sqlite3.connect(path)) as connection:
            assert connection.execute("SELECT * FROM fact").fetchall() == []
        again = learner(knowledge)  # the other store knows the numbers of the facts of the game that was deleted
        record_match(knowledge, again, 100, 5, [Afterstate(state("a"), 50.0, 1)])
        record_match(other, other.find(again.id), 100, 5, [Afterstate(state("(step 1)"), 50.0, 1)])
        assert {after.facts for after in knowledge.afterstates(knowledge.find(again.id))} == {
            state("a"),
            state("(step 1)"),
        }


def test_a_deletion_empties_all_tables_of_learners(path: Path) -> None:
    with KnowledgeStore(path) as knowledge:
        fill_all(knowledge)
        with contextlib.closing(sqlite3.connect(path)) as connection:
            tables = connection.execute(
                "SELECT sqlite_master.name FROM sqlite_master JOIN pragma_table_info(sqlite_master.name) AS field "
                "ON field.name = 'learner' WHERE sqlite_master.type = 'table'"
            )
            counts = [connection.execute(f"SELECT count(*) FROM {table}") for (table,) in tables.fetchall()]
            assert len(counts) == len(schema.LEARNER_TABLES)
            assert all(count.fetchone()[0] > 0 for count in counts)
        knowledge.delete([stored.id for stored in knowledge.learners()])
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for table in ("learner", *schema.LEARNER_TABLES):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)


def test_who_goes_on_with_a_deleted_learner_does_not_write_into_another(path: Path) -> None:
    with KnowledgeStore(path) as here, KnowledgeStore(path) as there:
        mine = learner(here, seed=1)
        there.delete([mine.id])
        other = learner(there, seed=2)
        assert other.id == mine.id  # SQLite gives the number again
        there.keep_match(other, "kept", MOVES, "terminal")
        writes: list[Callable[[], object]] = [
            lambda: record_match(here, mine, 100, 5, [Afterstate(state("b"), 50.0, 1)]),
            lambda: here.store_features(mine, FeatureValues({"L": (50.0, 1)})),
            lambda: here.forget_trajectory(mine, 0),
            lambda: here.keep_match(mine, "a", MOVES, "terminal"),
            lambda: here.afterstates(mine),
        ]
        for write in writes:
            with pytest.raises(
                KnowledgeError, match=r"expected learner 1 of coins, red, .* another one; it was deleted"
            ):
                write()
        assert (there.matches(other), there.features(), len(there.trajectories(other))) == ([], [], 1)


@pytest.mark.parametrize("kind", ["trigger", "view", "table", "TRIGGER", None])
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER more AFTER INSERT ON match BEGIN UPDATE learner SET num_matches = 0; END",
        "CREATE VIEW more AS SELECT * FROM learner",
    ],
)
def test_a_store_with_programs_is_refused(path: Path, kind: str | None, statement: str) -> None:
    with KnowledgeStore(path) as knowledge:
        fill(knowledge)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET type = ? WHERE name = 'more'", [kind])
        connection.commit()
    with pytest.raises(KnowledgeError, match=r"got CREATE (TRIGGER|VIEW) more .*, which no version|malformed"):
        KnowledgeStore(path)


def test_a_number_that_no_store_can_have_is_no_learner(path: Path) -> None:
    with KnowledgeStore(path) as knowledge:
        fill(knowledge)
        for number in (2**63, -(2**63) - 1, 10**30):
            assert knowledge.learners(ids=[number]) == knowledge.features(ids=[number]) == []
            for use in (knowledge.find, lambda one: knowledge.delete([one])):
                with pytest.raises(KnowledgeError, match=rf"a learner in this store \(1\), got {number}"):
                    use(number)
        assert knowledge.numbers() == [1]


@pytest.mark.parametrize("key", ["source", "role", "opponent"])
def test_a_condition_that_no_store_can_have_is_told(path: Path, key: str) -> None:
    with KnowledgeStore(path) as knowledge, pytest.raises(KnowledgeError, match=f"expected the {key} in UTF-8"):
        knowledge.learners(**{key: "\udcff"})  # type: ignore[arg-type]


def test_a_text_that_is_not_utf_8_is_refused_by_name_and_can_be_deleted(path: Path) -> None:
    with KnowledgeStore(path) as knowledge:
        fill(knowledge)
        with knowledge.writing() as connection:
            connection.execute("UPDATE game SET name = CAST(x'ff41' AS TEXT)")
        with pytest.raises(KnowledgeError, match=r"expected learner 1 as gamelore stores it, .* at `\$.game`"):
            knowledge.learners()
        assert [gone.game for gone in knowledge.delete([1])] == ["\udcffA"]


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("CREATE TABLE extra (own INTEGER REFERENCES learner)", "another reference own in extra"),
        ("ALTER TABLE match ADD COLUMN more INT GENERATED ALWAYS AS (1/0) VIRTUAL", "another column more in match"),
    ],
)
def test_a_table_that_would_prevent_changes_is_refused(path: Path, statement: str, what: str) -> None:
    with KnowledgeStore(path) as knowledge:
        fill(knowledge)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement)
    with pytest.raises(KnowledgeError, match=what):
        KnowledgeStore(path)


def test_a_learner_whose_game_is_missing_is_named_with_a_remedy(path: Path) -> None:
    with KnowledgeStore(path) as knowledge:
        fill(knowledge)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM game")
    with KnowledgeStore(path) as knowledge:
        assert (knowledge.numbers(), knowledge.numbers(source="coins")) == ([1], [])
        with pytest.raises(KnowledgeError, match=r"learner 1 as .* its game is missing; remove it \(.* delete 1\)"):
            knowledge.find(1)


def test_learners_are_chosen_by_the_role_for_which_they_learn_in_any_case(path: Path) -> None:
    with KnowledgeStore(path) as knowledge:
        fill_all(knowledge)
        assert [knowledge.numbers(role=role) for role in ("RED", "Blue", "green", ALL_ROLES)] == [
            [1, 3],
            [2, 3],
            [3],
            [3],
        ]
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE learner SET role = 'Ä' WHERE id = 1")
    with KnowledgeStore(path) as knowledge:
        assert knowledge.numbers(role="ä") == [1, 3]


def test_a_role_that_is_not_utf_8_hides_no_other_learner(path: Path) -> None:
    with KnowledgeStore(path) as knowledge:
        fill_all(knowledge)
        with knowledge.writing() as connection:
            connection.execute("UPDATE learner SET role = CAST(x'ff' AS TEXT) WHERE id = 1")
        assert knowledge.numbers(role="blue") == [2, 3]
        assert [stored.id for stored in knowledge.learners(role="blue")] == [2, 3]


def test_what_is_no_number_is_not_stored(path: Path) -> None:
    nan = float("nan")
    with KnowledgeStore(path) as knowledge:
        stored = fill(knowledge)
        before = content(knowledge)
        for write in (
            lambda: record_match(knowledge, stored, 100, 5, [Afterstate(state("b"), nan, 1)]),
            lambda: knowledge.store_features(stored, FeatureValues({"L": (nan, 1)})),
        ):
            with pytest.raises(KnowledgeError, match="expected numbers as the values of learner 1, got nan"):
                write()
        assert content(knowledge) == before
