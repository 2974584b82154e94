"""An export comes back whole, and a file that is no export, or a damaged one, changes nothing."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import pytest

import exports
from gamelore import load
from gamelore.errors import KnowledgeError
from gamelore.gdl.syntax import parse
from gamelore.learning import exchange
from gamelore.learning.exchange import export_learners, import_learners, problems
from gamelore.learning.sources import computed_features
from gamelore.learning.store.knowledge import KnowledgeStore
from gamelore.learning.store.schema import Afterstate
from gamelore.learning.study import study
from gamelore.learning.td.initial_values import LearnerSettings
from gamelore.matches.opponents import OpponentSettings
from gamelore.net.http import WebLimits
from learning.small_stores import (
    MOVES,
    SETTINGS,
    Rules,
    content,
    fill,
    fill_all,
    learner,
    make_older,
    record_match,
    state,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "knowledge.db"


def test_an_export_comes_back_whole_and_twice_is_as_good_as_once(path: Path, tmp_path: Path) -> None:
    with KnowledgeStore(path) as here, KnowledgeStore(tmp_path / "other.db") as there:
        record_match(there, learner(there), 0, 1, [Afterstate(state("(step 1)", "own"), 9.0, 1)])
        own = content(there)
        fill(here)
        assert export_learners(here, tmp_path / "k.json") == 1
        assert import_learners(there, tmp_path / "k.json") == 1
        assert content(there) == own + content(here)
        assert import_learners(there, tmp_path / "k.json") == 0
        assert content(there) == own + content(here)


def test_of_two_ages_of_a_learner_the_older_one_stays(path: Path, tmp_path: Path) -> None:
    with KnowledgeStore(path) as here, KnowledgeStore(tmp_path / "other.db") as there:
        fill(here)
        export_learners(here, tmp_path / "young.json")
        import_learners(there, tmp_path / "young.json")
        fill(here, num_matches=5)
        export_learners(here, tmp_path / "old.json")
        assert import_learners(there, tmp_path / "old.json") == 1
        assert import_learners(there, tmp_path / "young.json") == 0
        assert content(there) == content(here)


def test_matches_that_wait_travel_with_their_learner(path: Path, tmp_path: Path) -> None:
    with KnowledgeStore(path) as here, KnowledgeStore(tmp_path / "other.db") as there:
        mine, theirs = fill(here, num_matches=1), fill(there, num_matches=1)
        for store, stored in ((here, mine), (there, theirs)):
            store.keep_match(stored, "learned from in the other store", MOVES, "terminal")
        record_match(here, mine, 100, 1, [Afterstate(state("(step 1)"), 1 / 3, 2)], trajectory=1)
        here.keep_match(mine, "a", MOVES, "terminal")
        here.keep_match(mine, "b", [], "stuck")
        export_learners(here, tmp_path / "k.json")
        assert import_learners(there, tmp_path / "k.json") == 1
        assert there.trajectories(theirs) == here.trajectories(mine)
        assert content(there) == content(here)
        export_learners(there, tmp_path / "fewer.json")
        here.keep_match(mine, "c", MOVES, "terminal")
        export_learners(here, tmp_path / "k.json")
        assert import_learners(there, tmp_path / "k.json") == 1  # one more waits, no more were learned from
        assert import_learners(there, tmp_path / "fewer.json") == 0
        assert content(there) == content(here)
        old = json.loads((tmp_path / "k.json").read_text())
        del old["learners"][0]["trajectories"]
        (tmp_path / "k.json").write_text(json.dumps({**old, "version": 2}))
        with KnowledgeStore(tmp_path / "third.db") as third:
            assert import_learners(third, tmp_path / "k.json") == 1
            assert content(third) == content(here)


def test_ids_of_matches_travel_so_that_none_is_learned_from_twice_or_lost(path: Path, tmp_path: Path) -> None:
    file = tmp_path / "k.json"
    with KnowledgeStore(path) as here, KnowledgeStore(tmp_path / "other.db") as there:
        mine, theirs = fill(here, num_matches=1), fill(there, num_matches=1)
        here.keep_match(mine, "both", MOVES, "terminal")
        record_match(here, mine, 100, 2, [], trajectory=1)
        here.keep_match(mine, "here", MOVES, "terminal")
        for match in ("both", "there"):
            there.keep_match(theirs, match, MOVES, "terminal")
        whole = exported(here, file)
        assert whole["learners"][0]["match_ids"] == [[1, "both"]]
        assert import_learners(there, file) == 1
        assert [kept.match for kept in there.trajectories(theirs)] == ["here", "there"]
        assert there.keep_match(theirs, "both", MOVES, "terminal") is None
        assert import_learners(there, file) == 0
        assert list(problems(there)) == []
        with KnowledgeStore(tmp_path / "third.db") as third:
            third.keep_match(fill(third, num_matches=1), "third", MOVES, "terminal")
            del whole["learners"][0]["match_ids"]
            file.write_text(json.dumps(whole))
            assert import_learners(third, file) == 1  # which of its matches wait in the store is not known
            assert [kept.match for kept in third.trajectories(third.find(1))] == ["here"]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([[0, "a"], [0, "b"]], "a number of match_ids occurs twice"),
        ([[0, "a"], [1, "a"]], "the id of a match occurs twice"),
        ([[0, "waiting"]], "the id of a match occurs twice"),
        ([[3, "a"]], "the id of a match that is none of 3"),
    ],
)
def test_wrong_ids_of_matches_are_refused(path: Path, tmp_path: Path, ids: list[object], message: str) -> None:
    file = tmp_path / "k.json"
    with KnowledgeStore(path) as here, KnowledgeStore(tmp_path / "other.db") as there:
        here.keep_match(fill(here), "waiting", MOVES, "terminal")
        whole = exported(here, file)
        whole["learners"][0]["match_ids"] = ids
        file.write_text(json.dumps(whole))
        with pytest.raises(KnowledgeError, match=rf"learners\[0\]: {message}"):
            import_learners(there, file)


@pytest.mark.parametrize("number", [1, 2])
def test_a_learner_with_other_ids_of_matches_is_another_one(path: Path, tmp_path: Path, number: int) -> None:
    file = tmp_path / "k.json"
    with KnowledgeStore(path) as here, KnowledgeStore(tmp_path / "other.db") as there:
        mine, theirs = fill(here, num_matches=1), fill(there, num_matches=number)
        for store, stored, match in ((here, mine, "a"), (there, theirs, "b" if number == 1 else "a")):
            kept = store.keep_match(stored, match, MOVES, "terminal")
            record_match(store, stored, 100, stored.num_matches, [], trajectory=kept)
        fill(here, num_matches=4)
        export_learners(here, file)
        with pytest.raises(KnowledgeError, match="got different matches or initial values; import into a new store"):
            import_learners(there, file)


@pytest.mark.parametrize("differs", ["in what it began with", "in a match"])
def test_another_learner_of_the_same_name_is_refused_whole(path: Path, tmp_path: Path, differs: str) -> None:
    with KnowledgeStore(path) as here, KnowledgeStore(tmp_path / "other.db") as there:
        fill(here)
        learner(here, seed=1)
        export_learners(here, tmp_path / "k.json", [2, 1])
        if differs == "in a match":
            record_match(there, fill(there, num_matches=1), 0, 9, [])
        else:
            there.learner(Rules(), "red", opponent="weak", settings=SETTINGS, seed=7)
        before = content(there)
        with pytest.raises(KnowledgeError, match=r"red against weak \(seed 7\) .* import into a new store"):
            import_learners(there, tmp_path / "k.json")
        assert content(there) == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "expected JSON, got: .*; import a file that `gamelore knowledge export` wrote"),
        ("[]", 'expected JSON with "format": "gamelore-knowledge"'),
        (
            '{"format": "gamelore-knowledge", "version": 5}',
            "expected version 4 or an older one, got 5; use the version of gamelore that wrote the file",
        ),
        (
            '{"format": "gamelore-knowledge", "version": 1, "games": []}',
            "with this error: Object missing required field `learners`",
        ),
        (
            '{"format": "gamelore-knowledge", "version": 1, "games": [7]}',
            r"Expected `object`, got `int` - at `\$.games\[0\]`",
        ),
        ('{"format": "gamelore-knowledge", "version": true}', "expected JSON with .format."),
        (
            '{"format": "gamelore-knowledge", "version": 4, "x": ' + "[" * 100_000,
            "expected JSON, got: maximum recursion",
        ),
        ('{"format": "gamelore-knowledge", "version": ' + "9" * 5000 + "}", "expected JSON with .format."),
    ],
)
def test_what_is_no_export_is_told(path: Path, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "k.json").write_text(text)
    with KnowledgeStore(path) as knowledge, pytest.raises(KnowledgeError, match=message):
        import_learners(knowledge, tmp_path / "k.json")


def test_half_an_export_leaves_nothing_behind(path: Path, tmp_path: Path) -> None:
    with KnowledgeStore(path) as here, KnowledgeStore(tmp_path / "other.db") as there:
        fill(here)
        export_learners(here, tmp_path / "k.json")
        damaged = json.loads((tmp_path / "k.json").read_text())
        damaged["learners"][0]["afterstates"][2][0] = [99]
        (tmp_path / "k.json").write_text(json.dumps(damaged))
        with pytest.raises(KnowledgeError, match=r"learners\[0\]: 99 is no index of the 4 facts of coins"):
            import_learners(there, tmp_path / "k.json")
        assert there.learners() == []


def test_an_export_never_leaves_half_a_file(path: Path, tmp_path: Path) -> None:
    with KnowledgeStore(path) as knowledge:
        fill(knowledge)
        with pytest.raises(KnowledgeError, match="expected a file that can be written"):
            export_learners(knowledge, path / "below a file.json")
        with pytest.raises(KnowledgeError, match=r"expected the number of a learner in this store \(1\), got 9"):
            export_learners(knowledge, tmp_path / "k.json", [9])
        assert not (tmp_path / "k.json").exists()


def test_a_file_that_is_too_large_is_neither_written_nor_read(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with KnowledgeStore(path) as here, KnowledgeStore(tmp_path / "other.db") as there:
        fill(here)
        export_learners(here, tmp_path / "k.json")
        monkeypatch.setattr(exchange, "MOST_BYTES", (tmp_path / "k.json").stat().st_size - 1)
        with pytest.raises(KnowledgeError, match=r"expected knowledge of at most 0 MiB, .* export fewer learners"):
            export_learners(here, tmp_path / "again.json")
        assert not (tmp_path / "again.json").exists()
        with pytest.raises(KnowledgeError, match="expected a file of at most 0 MiB"):
            import_learners(there, tmp_path / "k.json")


def test_all_tables_come_back_and_have_no_problems(path: Path, tmp_path: Path) -> None:
    with KnowledgeStore(path) as here, KnowledgeStore(tmp_path / "other.db") as there:
        fill_all(here)
        export_learners(here, tmp_path / "k.json")
        assert import_learners(there, tmp_path / "k.json") == 3
        assert content(there) == content(here)
        for stored in there.learners():
            assert there.learned(stored) == here.learned(here.find(stored.id))
            assert there.trajectories(stored) == here.trajectories(here.find(stored.id))
        assert list(problems(here)) == list(problems(there)) == []


@pytest.mark.parametrize("version", range(2))
@pytest.mark.parametrize("number", range(3))
def test_a_changed_export_is_refused_whole_or_does_no_harm(version: int, number: int) -> None:
    whole = exports.exports()[version]
    learner = whole["learners"][number]
    games = [game for game in whole["games"] if game["rules_hash"] == learner["game"]]
    one = {**whole, "games": games, "learners": [learner]}
    some = islice(exports.mutants(one), 0, None, 5)
    outcomes = Counter(exports.outcomes(some))
    assert outcomes["refused"] > 50
    assert outcomes["imported"] > 5


DAMAGES = {
    "UPDATE learner SET settings = 'null'": "learner 1: Expected `object`, got `null`",
    """UPDATE learner SET settings = '{"kind":"baseline","alpha":"a"}'""": "learner 1: Expected `float`",
    """UPDATE learner SET settings = '{"kind":"basic"}'""": "learner 1: Invalid enum value 'basic'",
    """UPDATE learner SET settings = '{"kind":"baseline","depth":null}'""": "learner 1: Expected `int`, got `null`",
    """UPDATE learner SET settings = '{"kind":"baseline","depth":1000000}'""": "learner 1: expected a depth from 0 to",
    "UPDATE learner SET sources = '[5]'": "learner 1: .* got `int`",
    """UPDATE learner SET sources = '[{"game": "x"}]'""": "learner 1: .* missing required field",
    "UPDATE learner SET num_matches = 5": "learner 1: 3 matches instead of 5",
    "UPDATE learner SET role = 'green'": "learner 1: green is no role of coins",
    "UPDATE match SET reward = 'much'": "learner 1: Expected `float`, got `str`",
    "UPDATE feature SET feature = 'L,}'": "learner 1: expected a feature",
    "UPDATE afterstate SET state = x'01' WHERE q = 0": "learner 1: unpack requires",
    "UPDATE afterstate SET state = 'text' WHERE q = 0": "learner 1: Expected `bytes`, got `str`",
    "UPDATE afterstate SET state = x'63000000' WHERE q = 0": "learner 1: 99 is no index of the 4 facts",
    "UPDATE learner SET outcomes = '[100,0]'": "learner 1: outcomes that are not in ascending order",
    "UPDATE learner SET outcomes = '[0,0]'": "learner 1: outcomes .* not different",
    """UPDATE learner SET settings = '{"kind":"baseline","depth":1}'""": "learner 1: .*: a feature of depth 2, instead",
    """UPDATE learner SET role = 'all roles', settings = '{"kind":"sequences"}'""": "learner 1: expected no inherited",
    "UPDATE learner SET opponent = CAST(x'ff41' AS TEXT)": "learner 1: Expected `str` matching",
}
"""Statements that damage a learner, and what a check says."""
OTHER_DAMAGES = {
    "UPDATE fact SET number = 99 WHERE number = 3": "game [0-9a-f]*: 4 facts with numbers up to 99",
    "UPDATE game SET rules = '(role red)'": "game [0-9a-f]*: the rules of coins have the hash",
    "UPDATE game SET rules = '(role red'": "game [0-9a-f]*: .* never closed; remedy: add",
    """UPDATE game SET roles = '["red", "green"]'""": "the roles of coins are red, blue, not red, green",
    "DELETE FROM learner": "3 rows of the table match have no learner",
    "UPDATE fact SET text = '(((' WHERE number = 0": r"game [0-9a-f]*: expected a fact, got \(\(\(: .* never closed",
    "UPDATE fact SET text = '(step ?x)' WHERE number = 0": "game [0-9a-f]*: expected a fact, .*: it has variables",
    "UPDATE fact SET text = 'a b' WHERE number = 0": "game [0-9a-f]*: expected a fact, got a b: expected one term",
    "UPDATE game SET id = 9223372036854775807": "no game can be added, because a game has",
    "UPDATE game SET name = CAST(x'ff41' AS TEXT)": r"game [0-9a-f]*: Expected `str` matching .* at `\$.name`",
}
DAMAGED_SEQUENCES = {
    "DELETE FROM branch": "learner 3: Expected `array` of length >= 1",
    "UPDATE pair SET comments = -1": "learner 3: Expected `float` >= 0",
    "UPDATE pair SET role = 'nobody'": "learner 3: nobody is no role of coins",
    "UPDATE sequence SET role = 'nobody'": "learner 3: nobody is no role of coins",
    """UPDATE learner SET role = 'red', settings = '{"kind":"baseline"}' WHERE id = 3""": "expected no sequences of a",
}


def damaged(path: Path, statement: str) -> None:
    with KnowledgeStore(path) as knowledge:
        fill(knowledge)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(statement)


@pytest.mark.parametrize("statement", [*DAMAGES, *OTHER_DAMAGES])
def test_a_check_names_what_is_wrong_in_a_store(path: Path, statement: str) -> None:
    damaged(path, statement)
    with KnowledgeStore(path, writable=False) as knowledge:
        told = "\n".join(problems(knowledge))
    assert re.search((DAMAGES | OTHER_DAMAGES)[statement], told)
    assert str(path) not in told


@pytest.mark.parametrize("statement", DAMAGED_SEQUENCES)
def test_wrong_sequences_and_pairs_are_neither_sound_nor_imported(path: Path, statement: str) -> None:
    with KnowledgeStore(path) as knowledge:
        fill_all(knowledge)
        with knowledge.writing() as connection:
            connection.execute(statement)
        (told,) = problems(knowledge)
        assert re.search(DAMAGED_SEQUENCES[statement], told)
        knowledge.delete([3])
        assert list(problems(knowledge)) == []


def test_facts_of_other_rules_name_the_learner_and_one_remedy(tmp_path: Path) -> None:
    path = Path(shutil.copy(exports.OLD.with_suffix(".db"), tmp_path / "k.db"))
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE fact SET text = text || '((('")
        connection.commit()
    with KnowledgeStore(path) as knowledge, pytest.raises(KnowledgeError) as told:
        computed_features(knowledge, knowledge.find(1))
    assert str(told.value).startswith(f"{path}: learner 1 of tictactoe: expected afterstates of ")
    assert str(told.value).endswith("; remove it (gamelore knowledge delete 1)")
    assert "remedy" not in str(told.value)


@pytest.mark.parametrize("statement", DAMAGES)
def test_a_wrong_learner_can_be_deleted(path: Path, statement: str) -> None:
    damaged(path, statement)
    with KnowledgeStore(path) as knowledge:
        with contextlib.suppress(KnowledgeError):
            for stored in knowledge.learners():
                knowledge.learned(stored)
        assert [gone.number for gone in knowledge.delete([1])] == [1]
        assert list(problems(knowledge)) == []
        assert knowledge.learners() == []


def test_a_check_of_a_damaged_page_says_so(path: Path) -> None:
    with KnowledgeStore(path) as knowledge:
        fill(knowledge, num_matches=300)
    content = bytearray(path.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 4096] = b"\xff" * 4096
    path.write_bytes(content)
    with KnowledgeStore(path, writable=False) as knowledge:
        assert any(line.startswith("the file is damaged: ") for line in problems(knowledge))


def test_a_store_of_any_format_is_checked_as_it_is() -> None:
    with KnowledgeStore(exports.OLD.with_suffix(".db"), writable=False) as knowledge:
        assert list(problems(knowledge)) == []


@pytest.mark.parametrize("version", [1, 2])
def test_a_store_before_ids_of_matches_is_exported_as_it_is(path: Path, tmp_path: Path, version: int) -> None:
    with KnowledgeStore(path) as knowledge:
        fill(knowledge)
    make_older(path, version)
    with KnowledgeStore(path, writable=False) as knowledge:
        assert list(problems(knowledge)) == []
        assert exported(knowledge, tmp_path / "k.json")["learners"][0]["match_ids"] == []


def test_a_check_finds_an_index_without_a_row(path: Path) -> None:
    with KnowledgeStore(path) as knowledge:
        fill(knowledge)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        index = connection.execute("SELECT * FROM sqlite_master WHERE name = 'match_id'").fetchone()
    for statement, values in [
        ("DELETE FROM sqlite_master WHERE name = 'match_id'", ()),
        ("UPDATE match SET id = 'm' WHERE number = 0", ()),
        ("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", index),
    ]:
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute(statement, values)
    with KnowledgeStore(path, writable=False) as knowledge:
        assert "missing from index match_id" in "\n".join(problems(knowledge))


def test_a_file_is_decoded_once(path: Path, tmp_path: Path) -> None:
    with KnowledgeStore(path) as here, KnowledgeStore(tmp_path / "other.db") as there:
        fill(here)
        export_learners(here, tmp_path / "k.json")
        with patch.object(msgspec.json, "decode", wraps=msgspec.json.decode) as decode:
            import_learners(there, tmp_path / "k.json")
    size = (tmp_path / "k.json").stat().st_size
    assert [len(call.args[0]) for call in decode.call_args_list].count(size) == 1


HOSTILE = ["\x1b[2J", "two\nlines", "\udcff", "\x9b", "x" * 100_001]


@pytest.mark.parametrize("text", HOSTILE)
def test_what_an_import_refuses_is_neither_stored_nor_exported(path: Path, tmp_path: Path, text: str) -> None:
    with KnowledgeStore(path) as knowledge:
        for game in (Rules(name=text), Rules(roles=("red", text)), Rules(rulesheet=f"(role red) (init {text}\x00)")):
            with pytest.raises(KnowledgeError, match=r"expected .* in UTF-8, .* of at most [0-9,]+ characters"):
                knowledge.learner(game, "red", opponent="weak", settings=SETTINGS, seed=1)
        with pytest.raises(KnowledgeError, match="expected the opponent in UTF-8"):
            knowledge.learner(Rules(), "red", opponent=text, settings=SETTINGS, seed=1)
        stored = fill(knowledge)
        with pytest.raises(KnowledgeError, match="expected the id of a match in UTF-8"):
            knowledge.keep_match(stored, text, MOVES, "terminal")
        with pytest.raises(KnowledgeError, match="expected a fact or a move in UTF-8"):
            record_match(knowledge, stored, 100, 5, [Afterstate(state(text), 1.0, 1)])
        assert list(problems(knowledge)) == []
        if text.isascii():
            with knowledge.writing() as connection:
                connection.execute("UPDATE game SET name = ?", [text])
            with pytest.raises(KnowledgeError, match=r"learner 1 .*expected|expected learner 1 as gamelore stores it"):
                export_learners(knowledge, tmp_path / "k.json")
            assert not (tmp_path / "k.json").exists()


def exported(knowledge: KnowledgeStore, file: Path) -> dict[str, Any]:
    export_learners(knowledge, file)
    whole: dict[str, Any] = json.loads(file.read_text())
    return whole


def test_games_without_a_learner_are_refused(path: Path, tmp_path: Path) -> None:
    file, rules = tmp_path / "k.json", "(role red)"
    with KnowledgeStore(path) as here, KnowledgeStore(tmp_path / "other.db") as there:
        fill(here)
        whole = exported(here, file)
        idle = {**whole["games"][0], "name": "idle", "rules": rules, "rules_hash": parse(rules).rules_hash}
        idle["roles"] = ["red"]
        for changes in ({"learners": []}, {"games": [*whole["games"], idle]}):
            file.write_text(json.dumps({**whole, **changes}))
            with pytest.raises(KnowledgeError, match=r"the game (coins|idle) has no learner"):
                import_learners(there, file)
        assert there.games() == []


def test_rules_are_not_longer_than_those_of_a_message(path: Path, tmp_path: Path) -> None:
    assert WebLimits().body == exchange.MOST_RULES
    file = tmp_path / "k.json"
    with KnowledgeStore(path) as here, KnowledgeStore(tmp_path / "other.db") as there:
        fill(here)
        export_learners(here, file)
        with patch.object(exchange, "MOST_RULES", 20):
            assert list(problems(here)) == []
            with pytest.raises(KnowledgeError, match=r"the rules of coins have 22 .*; export .* copy the store itself"):
                export_learners(here, tmp_path / "again.json")
            with pytest.raises(
                KnowledgeError, match=r"games\[0\]: the rules of coins have 22 characters, more than 20"
            ):
                import_learners(there, file)
        assert there.games() == []


@pytest.mark.parametrize("case", [str.upper, str.title])
def test_a_learner_of_a_role_in_another_case_goes_on(path: Path, tmp_path: Path, case: Callable[[str], str]) -> None:
    game, role = load("tictactoe"), case("xplayer")
    settings, greedy = LearnerSettings(), OpponentSettings("egreedy", "first")
    with KnowledgeStore(path) as here, KnowledgeStore(tmp_path / "other.db") as there:
        study(here, game, "xplayer", settings, greedy, 5)
        whole = exported(here, tmp_path / "k.json")
        whole["learners"][0] |= {"role": role, "features_at": 0}
        (tmp_path / "k.json").write_text(json.dumps(whole))
        assert import_learners(there, tmp_path / "k.json") == 1
        assert list(problems(there)) == []
        (stored,) = there.learners()
        there.store_features(stored, computed_features(there, stored))
        assert there.feature_values(stored) == here.feature_values(here.find(1))
        study(there, game, "xplayer", settings, greedy, 9)
        assert [(one.role, one.num_matches) for one in there.learners()] == [(role, 9)]
        assert there.learners(role="xplayer") == there.learners()
        assert list(problems(there)) == []


def test_empty_sequences_and_those_longer_than_the_settings_are_refused(path: Path, tmp_path: Path) -> None:
    file = tmp_path / "k.json"
    with KnowledgeStore(path) as here, KnowledgeStore(tmp_path / "other.db") as there:
        fill_all(here)
        export_learners(here, file, [3])
        empty = json.loads(file.read_text())
        empty["learners"][0]["sequences"] = [["red", "solo", [], [], 2, 0]]
        (tmp_path / "empty.json").write_text(json.dumps(empty))
        with pytest.raises(KnowledgeError, match=r"learners\[0\]: a sequence has no moves"):
            import_learners(there, tmp_path / "empty.json")
        for long in ({"sequences": [["red", "solo", [0, 0, 0, 0], [], 2, 0]]}, {"settings": {"lengths": [1]}}):
            whole = json.loads(file.read_text())
            learner = whole["learners"][0]
            learner |= long | {"settings": learner["settings"] | long.get("settings", {})}
            (tmp_path / "long.json").write_text(json.dumps(whole))
            with pytest.raises(KnowledgeError, match=r"learners\[0\]: a sequence has more than [13] moves"):
                import_learners(there, tmp_path / "long.json")


def test_full_numbers_of_an_import_stay_within_the_schema(path: Path, tmp_path: Path) -> None:
    game, settings, greedy = load("tictactoe"), LearnerSettings(), OpponentSettings("egreedy", "first")
    with KnowledgeStore(path) as here, KnowledgeStore(tmp_path / "other.db") as there:
        study(here, game, "xplayer", settings, greedy, 20)
        whole = exported(here, tmp_path / "k.json")
        for row, q in zip(whole["learners"][0]["afterstates"], cycle([1e9, -1e9]), strict=False):
            row[1:] = [q, 2**31 - 1]
        for row in whole["learners"][0]["replies"]:
            row[-1] = 2**31 - 1
        (tmp_path / "k.json").write_text(json.dumps(whole))
        import_learners(there, tmp_path / "k.json")
        assert list(problems(there)) == []
        study(there, game, "xplayer", settings, greedy, 30)
        assert list(problems(there)) == []


def test_an_export_names_the_learner_that_an_import_would_refuse(path: Path, tmp_path: Path) -> None:
    with KnowledgeStore(path) as knowledge:
        fill_all(knowledge)
        with knowledge.writing() as connection:
            connection.execute("UPDATE afterstate SET visits = -1 WHERE learner = 2")
        with pytest.raises(KnowledgeError, match=r"learner 2 \(coins\): expected what an import would take.* delete"):
            export_learners(knowledge, tmp_path / "k.json")
        assert not (tmp_path / "k.json").exists()
        assert export_learners(knowledge, tmp_path / "k.json", [1, 3]) == 2


def test_sound_knowledge_of_unusual_games_comes_back(path: Path, tmp_path: Path) -> None:
    rules = str(parse("(init (control White)) (role white) (role Black)"))
    game = Rules("odd", ("White", "Black"), ((0, 150), (0, 32767)), rules, parse(rules).rules_hash)
    with KnowledgeStore(path) as here, KnowledgeStore(tmp_path / "other.db") as there:
        here.learner(game, "White", opponent="weak", settings=SETTINGS, seed=1)
        here.learner(replace(game, roles=("white", "black")), "black", opponent="weak", settings=SETTINGS, seed=1)
        assert list(problems(here)) == []
        export_learners(here, tmp_path / "k.json")
        assert import_learners(there, tmp_path / "k.json") == 2
        assert content(there) == content(here)


def test_all_roles_have_one_spelling(path: Path, tmp_path: Path) -> None:
    file = tmp_path / "k.json"
    with KnowledgeStore(path) as here, KnowledgeStore(tmp_path / "other.db") as there:
        fill(here)
        document = exported(here, file)
        document["learners"][0]["role"] = "ALL ROLES"
        file.write_text(json.dumps(document))
        with pytest.raises(KnowledgeError, match=r"learners\[0\]: ALL ROLES is no role of coins"):
            import_learners(there, file)
