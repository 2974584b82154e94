"""Series of matches: the same as in process, resumed without loss, and what they add up to."""

from __future__ import annotations

import asyncio
import errno
import io
import json
import math
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gamelore import Game, GameloreError, load
from gamelore.catalogue import player
from gamelore.learning.session import STAGE
from gamelore.learning.store.knowledge import KnowledgeStore
from gamelore.learning.study import study
from gamelore.learning.td.initial_values import LearnerSettings
from gamelore.matches.lockstep import run_lockstep
from gamelore.matches.match import MatchRecord, match_records
from gamelore.matches.opponents import OpponentSettings
from gamelore.net.host import HostSettings, Seat
from gamelore.net.hosted_series import HostedSeries, SeriesFolder, Standing, moving_mean
from gamelore.net.messages import Abort, PlayerInfo, Start, Stop
from gamelore.players.player import Finished, Player
from gamelore.players.position_graph import PositionGraph
from gamelore.players.random_streams import stream
from scripted import ScriptedPlayer, playing

SETTINGS = HostSettings(startclock=10, playclock=10, seed=4)
QUICK = HostSettings(startclock=0, playclock=10, extra=0.3, seed=4)
LOCAL = ["egreedy", "weak:epsilon=0.1"]


@pytest.fixture(scope="module")
def game() -> Game:
    return load("tictactoe")


def play(
    game: Game,
    players: Sequence[str],
    num_matches: int,
    settings: HostSettings = SETTINGS,
    at_once: int = 1,
    **more: object,
) -> HostedSeries:
    """A series that was played."""

    async def talk() -> HostedSeries:
        async with HostedSeries(game, players, settings, **more) as series:  # type: ignore[arg-type]
            await series.run(num_matches, at_once)
        return series

    return asyncio.run(talk())


def records(folder: Path) -> dict[int, MatchRecord]:
    return {int(path.stem[6:]): MatchRecord.read(path) for path in sorted(folder.glob("match-*.json"))}


def moves(folder: Path) -> dict[int, tuple[tuple[str, ...], ...]]:
    return {number: record.moves for number, record in records(folder).items()}


def journal(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]


def cut_journal(folder: Path, lines: int) -> None:
    """Takes the last lines away, as if the host had been killed before it wrote them."""
    path = folder / "journal.jsonl"
    path.write_text("".join(line + "\n" for line in path.read_text().splitlines()[:-lines]))


@pytest.mark.parametrize("at_once", [1, 7])
def test_local_players_play_the_matches_of_the_lockstep_loop(game: Game, tmp_path: Path, at_once: int) -> None:
    ended: list[Finished] = []
    run_lockstep(PositionGraph(game), list(map(player, LOCAL)), [stream(4, 0, STAGE)], 20, on_end=ended.append)
    expected = [record.moves for one in ended for record in match_records(one, LOCAL)]
    play(game, LOCAL, 20, at_once=at_once, folder=tmp_path / "series")
    assert list(moves(tmp_path / "series").values()) == expected


def test_players_and_seats_of_the_caller_play(game: Game, tmp_path: Path) -> None:
    made, taken = list[tuple[int, str | None]](), list[int]()

    def make_player(role: int, opponent: str | None) -> Player:
        made.append((role, opponent))
        return player(LOCAL[role], seed=SETTINGS.seed)

    def take_seats(number: int, seats: list[Seat]) -> list[Seat]:
        taken.append(number)
        return list(seats)

    play(game, LOCAL, 2, folder=tmp_path / "own", make_player=make_player, take_seats=take_seats)
    assert (made, taken) == ([(0, LOCAL[1]), (1, LOCAL[0])], [0, 1])
    play(game, LOCAL, 2, folder=tmp_path / "usual")
    assert moves(tmp_path / "own") == moves(tmp_path / "usual")


def test_every_record_plays_again(game: Game, tmp_path: Path) -> None:
    series = play(game, LOCAL, 5, folder=tmp_path)
    for number, record in records(tmp_path).items():
        assert record.replay(game).goals == series.played[number].goals
        assert record.is_ours
        assert record.key == (4, 0, STAGE, number)
        assert record.players == tuple(LOCAL)
        assert (record.start_clock, record.play_clock) == (10, 10)
    assert load(tmp_path / "rules.kif").rules_hash == game.rules_hash


def test_what_a_series_adds_up_to(game: Game) -> None:
    series = play(game, LOCAL, 12)
    first, second = series.standings()
    goals = [series.played[number].goals[0] for number in range(12)]
    assert first.goals == tuple(goals)
    assert first.mean == pytest.approx(np.mean([goal or 0 for goal in goals]))
    assert second.standard_error == pytest.approx(np.std([100 - (goal or 0) for goal in goals], ddof=1) / math.sqrt(12))
    assert (first.errors, second.errors) == ({}, {})
    assert not first.may_learn


def test_a_series_of_nothing(game: Game) -> None:
    first, _ = play(game, LOCAL, 0).standings()
    assert first.goals == ()
    assert math.isnan(first.mean)
    assert math.isnan(first.standard_error)


def test_moving_means() -> None:
    assert moving_mean([100, 0, None, 50], 2) == [100, 50, 0, 25]
    assert moving_mean([100, 0, None, 50], 100) == [100, 50, pytest.approx(100 / 3), 37.5]
    assert moving_mean([], 3) == []


def test_fifty_matches_at_once(game: Game) -> None:
    async def talk() -> tuple[HostedSeries, ScriptedPlayer, int]:
        most = 0

        def told(number: int, one: MatchRecord) -> None:
            nonlocal most
            most = max(most, wire.count(Start) - wire.count(Stop))

        async with ScriptedPlayer(game=game) as wire, HostedSeries(game, [wire.url, "random"], SETTINGS) as series:
            await series.run(120, 50, told)
            return series, wire, most

    series, player, most = asyncio.run(talk())
    assert sorted(series.played) == list(range(120))
    assert all(not one.events for one in series.played.values())
    assert player.count(Start) == player.count(Stop) == 120
    assert 40 < most <= 50


def test_faults_do_not_stop_a_series(game: Game, tmp_path: Path) -> None:
    script = "play#1@2=illegal; play#2@2=close; play#3@2=late:5; start#4=reply:busy; play#5@2=garbage"

    async def talk() -> tuple[Standing, ...]:
        async with (
            ScriptedPlayer(script, game=game) as player,
            HostedSeries(
                game, [player.url, "egreedy"], replace(QUICK, playclock=0, extra=1.0), folder=tmp_path
            ) as series,
        ):
            return await series.run(8)

    first, second = asyncio.run(talk())
    assert len(first.goals) == 8
    assert (first.errors, second.errors) == ({"CE": 1, "IL": 3, "TO": 1}, {})
    found = {number: [row for row in record.errors if any(row)] for number, record in records(tmp_path).items()}
    assert found[1] == [("IL (no such move)", "")]
    assert found[2] == [("CE", "")]
    assert found[3] == [("TO", "")]
    assert found[4] == [("IL busy", "")]
    assert records(tmp_path)[4].errors[0] == ("IL busy", "")
    assert found[5][0][0].startswith("IL )")
    assert [number for number, rows in found.items() if not rows] == [0, 6, 7]
    for record in records(tmp_path).values():
        record.replay(game)


def test_a_player_that_dies_for_good(game: Game) -> None:
    async def talk() -> tuple[Standing, ...]:
        async with ScriptedPlayer(game=game) as player, HostedSeries(game, [player.url, "egreedy"], QUICK) as series:
            await series.run(2)
            await player.__aexit__(None, None, None)
            return await series.run(5)

    first, second = asyncio.run(talk())
    assert len(first.goals) == 5
    assert set(first.errors) == {"CE"}
    assert second.errors == {}


def test_a_series_gives_up_on_a_player_that_is_gone(game: Game) -> None:
    async def talk() -> int:
        async with ScriptedPlayer(game=game) as player, HostedSeries(game, [player.url, "egreedy"], QUICK) as series:
            await series.run(2, give_up=3)
            await player.__aexit__(None, None, None)
            with pytest.raises(
                GameloreError, match=f"expected replies from {player.url}, got none in the last 3 matches; start"
            ):
                await series.run(9, give_up=3)
            assert [sorted(series.played[number].absent) for number in (1, 2, 4)] == [[], ["xplayer"], ["xplayer"]]
            return len(series.played)

    assert asyncio.run(talk()) == 5


def test_matches_at_once_count_together_for_a_player_that_is_gone(game: Game) -> None:
    async def talk() -> int:
        async with ScriptedPlayer(game=game) as player:
            url = player.url
        async with HostedSeries(game, [url, "egreedy"], replace(QUICK, startclock=0, playclock=0)) as series:
            with pytest.raises(GameloreError, match="got none in the last 3 matches"):
                await series.run(40, at_once=4, give_up=3)
            return len(series.played)

    assert asyncio.run(talk()) == 3


def test_a_player_that_is_there_now_and_then_is_not_given_up(game: Game) -> None:
    script = "start=close; play=close; play@1=silent; " + "; ".join(f"play#{match}@1=ok" for match in range(0, 6, 2))

    async def talk() -> HostedSeries:
        async with (
            ScriptedPlayer(script, game=game) as player,
            HostedSeries(game, [player.url, "egreedy"], replace(QUICK, playclock=0)) as series,
        ):
            await series.run(6, give_up=2)
        return series

    assert [bool(one.absent) for _, one in sorted(asyncio.run(talk()).played.items())] == [False, True] * 3


def test_scrambled_matches_are_the_same_matches(game: Game, tmp_path: Path) -> None:
    async def talk(scramble: bool) -> ScriptedPlayer:
        async with ScriptedPlayer() as player:
            folder = tmp_path / str(scramble)
            async with HostedSeries(
                game, [player.url, "egreedy"], SETTINGS, scramble=scramble, folder=folder
            ) as series:
                await series.run(3)
            return player

    asyncio.run(talk(False))
    player = asyncio.run(talk(True))
    assert moves(tmp_path / "True") == moves(tmp_path / "False")
    assert all(record.scrambled for record in records(tmp_path / "True").values())
    roles = {message.role for message in player.heard if isinstance(message, Start)}
    assert len(roles) == 3
    assert "xplayer" not in roles


def test_one_player_in_two_roles(game: Game) -> None:
    async def talk() -> tuple[HostedSeries, ScriptedPlayer]:
        async with (
            ScriptedPlayer(game=game) as player,
            HostedSeries(game, [player.url, player.url], SETTINGS) as series,
        ):
            await series.run(2)
            return series, player

    series, player = asyncio.run(talk())
    assert all(not one.events for one in series.played.values())
    assert len(player.matches) == 4


def test_who_the_players_are(game: Game) -> None:
    async def talk() -> tuple[dict[str, PlayerInfo | Exception], list[str], str, str]:
        async with (
            ScriptedPlayer(game=game) as good,
            ScriptedPlayer("info=close", game=game) as bad,
            HostedSeries(game, [good.url, bad.url], SETTINGS) as series,
        ):
            return await series.ask_who(), series.names, good.url, bad.url

    found, names, good, bad = asyncio.run(talk())
    assert found[good] == PlayerInfo("scripted", "available")
    assert isinstance(found[bad], ConnectionError)
    assert names == ["scripted", ""]


# a series that lasts


def test_a_series_goes_on(game: Game, tmp_path: Path) -> None:
    whole = play(game, LOCAL, 9, folder=tmp_path / "whole").standings()
    play(game, LOCAL, 4, folder=tmp_path / "parts")
    series = play(game, LOCAL, 9, folder=tmp_path / "parts")
    assert series.standings() == whole
    assert moves(tmp_path / "parts") == moves(tmp_path / "whole")
    assert play(game, LOCAL, 3, folder=tmp_path / "parts").standings() == whole


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"players": ["egreedy", "random"]}, "players"),
        ({"settings": HostSettings(10, 10, seed=5)}, "seed"),
        ({"settings": HostSettings(10, 9, seed=4)}, "playclock"),
        ({"scramble": True}, "scramble"),
        ({"game": load("losetictactoe")}, "game"),
    ],
)
def test_another_series_is_refused(game: Game, tmp_path: Path, change: dict[str, object], told: str) -> None:
    play(game, LOCAL, 1, folder=tmp_path)
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(GameloreError, match=f"expected {told} to be .* as in the series in .*; choose another folder"):
        play(**{"game": game, "players": LOCAL, "num_matches": 2, "folder": tmp_path, **change})  # type: ignore[arg-type]
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_a_folder_of_something_else_is_refused(game: Game, tmp_path: Path) -> None:
    (tmp_path / "rules.kif").write_text("mine")
    with pytest.raises(GameloreError, match=r"has rules\.kif and no series\.json"):
        play(game, LOCAL, 1, folder=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["rules.kif"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"token": 1', "\x00"])
def test_a_series_file_that_is_none(game: Game, tmp_path: Path, text: str) -> None:
    (tmp_path / "series.json").write_text(text)
    with pytest.raises(GameloreError, match="expected"):
        play(game, LOCAL, 1, folder=tmp_path)


def test_a_folder_in_use_is_refused(game: Game, tmp_path: Path) -> None:
    async def talk() -> None:
        async with HostedSeries(game, LOCAL, folder=tmp_path), HostedSeries(game, LOCAL, folder=tmp_path):
            pass

    with pytest.raises(GameloreError, match="which another host uses"):
        asyncio.run(talk())


def test_a_record_of_another_series_is_refused(game: Game, tmp_path: Path) -> None:
    play(game, LOCAL, 2, folder=tmp_path / "one")
    play(game, LOCAL, 1, folder=tmp_path / "other")
    (tmp_path / "one" / "match-000001.json").rename(tmp_path / "other" / "match-000001.json")
    with pytest.raises(GameloreError, match="expected match 1 of this series"):
        play(game, LOCAL, 3, folder=tmp_path / "other")


def test_copies_among_the_records_are_no_matches(game: Game, tmp_path: Path) -> None:
    play(game, LOCAL, 2, folder=tmp_path)
    for name in ("match-000001 (copy).json", "match-one.json", "match-2.json"):
        (tmp_path / name).write_bytes((tmp_path / "match-000001.json").read_bytes())
    assert sorted(play(game, LOCAL, 3, folder=tmp_path).played) == [0, 1, 2]


@pytest.mark.parametrize("room", [9, 0])
def test_a_full_disk_leaves_whole_lines(tmp_path: Path, room: int) -> None:
    class Full(io.FileIO):
        def write(self, data: object) -> int:
            if not room:
                raise OSError(errno.ENOSPC, "No space left on device")  # without the name of the file
            return super().write(bytes(data)[:room])  # type: ignore[call-overload]

    with SeriesFolder(tmp_path, {}, "") as folder:
        folder.note("started", 0, "m.0")
        journal, folder._journal = folder._journal, Full(tmp_path / "journal.jsonl", "a+")
        with folder._journal, pytest.raises(OSError, match=f"No space left on device: '{tmp_path / 'journal.jsonl'}'"):
            folder.note("started", 1, "m.1")
        folder._journal = journal
        folder.note("stopped", 0, "m.0")
        assert folder.num_started(1) == 0
    with SeriesFolder(tmp_path, {}, "") as folder:
        assert (folder.num_started(0), folder.num_started(1), folder.open_matches()) == (1, 0, [])
    assert len((tmp_path / "journal.jsonl").read_text().splitlines()) == 2


async def resumed(game: Game, folder: Path, num_matches: int, player: ScriptedPlayer) -> HostedSeries:
    async with HostedSeries(game, [player.url, "egreedy"], SETTINGS, folder=folder) as series:
        await series.run(num_matches)
    return series


def test_a_match_that_was_killed_is_aborted_and_played_anew(game: Game, tmp_path: Path) -> None:
    async def talk() -> ScriptedPlayer:
        async with ScriptedPlayer(game=game) as player:
            await resumed(game, tmp_path, 3, player)
            (tmp_path / "match-000002.json").unlink()
            cut_journal(tmp_path, 1)
            player.heard.clear()
            assert len((await resumed(game, tmp_path, 3, player)).played) == 3
            return player

    player = asyncio.run(talk())
    (first, again) = [
        entry["match"] for entry in journal(tmp_path) if entry["number"] == 2 and entry["is"] == "started"
    ]
    assert again == f"{first}.1"
    assert player.heard[0] == Abort(str(first))
    assert {message.match for message in player.heard[1:]} == {again}
    assert records(tmp_path)[2].match_id == again


def test_a_match_that_was_not_stopped_gets_its_stop(game: Game, tmp_path: Path) -> None:
    async def talk() -> ScriptedPlayer:
        async with ScriptedPlayer(game=game) as player:
            await resumed(game, tmp_path, 2, player)
            before = moves(tmp_path)
            cut_journal(tmp_path, 1)
            player.heard.clear()
            await resumed(game, tmp_path, 2, player)
            assert moves(tmp_path) == before
            await resumed(game, tmp_path, 2, player)
            return player

    player = asyncio.run(talk())
    record = records(tmp_path)[1]
    assert player.heard == [Stop(record.match_id, record.moves[-1])]


def test_a_journal_whose_last_line_was_cut(game: Game, tmp_path: Path) -> None:
    play(game, LOCAL, 2, folder=tmp_path)
    path = tmp_path / "journal.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    assert len(play(game, LOCAL, 4, folder=tmp_path).played) == 4
    entries = [line for line in path.read_text().splitlines() if line.endswith("}")]
    assert len(entries) == 4 + 4
    assert {json.loads(line)["number"] for line in entries if '"stopped"' in line} == {0, 1, 2, 3}


def test_a_local_learner_learns_from_each_match_once(game: Game, tmp_path: Path) -> None:
    def players(name: str) -> list[str]:
        return [f"baseline:knowledge={tmp_path / name}.db", "egreedy"]

    def rewards(name: str) -> list[float]:
        with KnowledgeStore(tmp_path / f"{name}.db", create=False) as store:
            return [row.reward for row in store.matches(store.learners()[0])]

    whole = play(game, players("whole"), 4)
    assert whole.standings()[0].may_learn
    folder = tmp_path / "series"
    play(game, players("parts"), 2, folder=folder)
    cut_journal(folder, 1)  # killed after it learned
    play(game, players("parts"), 3, folder=folder)
    (tmp_path / "parts.db").replace(tmp_path / "later.db")
    assert rewards("later") == rewards("whole")[:3]
    (tmp_path / "later.db").replace(tmp_path / "parts.db")
    play(game, players("parts"), 4, folder=folder)
    assert rewards("parts") == rewards("whole")
    assert rewards("whole") == list(whole.standings()[0].goals)


def test_a_local_learner_becomes_what_gamelore_learn_makes_of_it(game: Game, tmp_path: Path) -> None:
    def known(name: str) -> tuple[object, ...]:
        with KnowledgeStore(tmp_path / name, create=False) as store:
            (learner,) = store.learners()
            return learner.opponent, learner.seed, store.matches(learner), store.afterstates(learner)

    play(game, [f"baseline:knowledge={tmp_path / 'here.db'}", "egreedy"], 20)
    with KnowledgeStore(tmp_path / "there.db") as store:
        study(store, game, "xplayer", LearnerSettings("baseline"), OpponentSettings(), 20, seed=4)
    assert known("here.db") == known("there.db")


NUM_MATCHES = 25
HOSTING = """
import asyncio, sys
from pathlib import Path
from gamelore import load
from gamelore.net.host import HostSettings
from gamelore.net.hosted_series import HostedSeries

async def main(url, folder, matches, at_once):
    settings = HostSettings(10, 10, seed=4)
    async with HostedSeries(load("tictactoe"), [url, "egreedy"], settings, folder=Path(folder)) as series:
        await series.run(int(matches), int(at_once))

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("at_once", [1, 5])
def test_a_host_that_is_killed_loses_nothing(game: Game, tmp_path: Path, at_once: int) -> None:
    with playing("play=late:0.002", game=game) as wire:
        players = [wire.url, "egreedy"]
        arguments = [wire.url, tmp_path / "killed", str(NUM_MATCHES), str(at_once)]
        with subprocess.Popen([sys.executable, "-c", HOSTING, *arguments]) as process:
            give_up = time.monotonic() + 30
            while wire.count(Stop) < 7 and time.monotonic() < give_up:
                time.sleep(0.01)
            process.kill()
        assert process.returncode == -signal.SIGKILL
        assert 0 < len(records(tmp_path / "killed")) < NUM_MATCHES
        killed = play(game, players, NUM_MATCHES, at_once=at_once, folder=tmp_path / "killed")
        whole = play(game, players, NUM_MATCHES, at_once=at_once, folder=tmp_path / "whole")
        aborted = {message.match for message in wire.heard if isinstance(message, Abort)}
        stopped = {message.match for message in wire.heard if isinstance(message, Stop)}
    assert killed.standings() == whole.standings()
    assert all(one.errors == {} for one in whole.standings())
    assert moves(tmp_path / "killed") == moves(tmp_path / "whole")
    assert {record.match_id for record in records(tmp_path / "killed").values()} <= stopped
    assert not aborted & stopped
    entries = journal(tmp_path / "killed")
    assert {one["match"] for one in entries} == {one["match"] for one in entries if one["is"] != "started"}


def test_a_player_that_is_busy_for_a_while_is_asked_again(game: Game) -> None:
    """As `gamelore serve` while it writes its last match to disk, or plays for another host."""

    async def talk() -> tuple[HostedSeries, int]:
        async with (
            ScriptedPlayer("start=reply:busy", game=game) as player,
            HostedSeries(game, [player.url, "egreedy"], SETTINGS) as series,
        ):
            playing = asyncio.create_task(series.run(1))
            while player.count(Start) < 3:
                await asyncio.sleep(0.01)
            player.steps = []
            await playing
            return series, player.count(Start)

    series, starts = asyncio.run(talk())
    assert starts == 4
    assert (series.played[0].events, series.played[0].end, series.aborted()) == ((), "terminal", ())


def test_a_match_with_a_busy_player_is_aborted_and_does_not_count(game: Game, tmp_path: Path) -> None:
    async def talk(num_matches: int) -> tuple[HostedSeries, ScriptedPlayer, tuple[Standing, ...]]:
        async with (
            ScriptedPlayer("start#1=reply:busy", game=game, port=port) as player,
            HostedSeries(game, [player.url, "egreedy:filler=first"], QUICK, folder=tmp_path) as series,
        ):
            return series, player, await series.run(num_matches)

    port = _free_port()
    series, player, standings = asyncio.run(talk(3))
    assert series.aborted() == (1,)
    assert player.count(Abort) == 1
    assert player.count(Stop) == 2
    goals = [series.played[number].goals for number in (0, 2)]
    for role, standing in enumerate(standings):
        assert standing.counted == tuple(goal[role] for goal in goals)
        assert standing.goals[1] is None
        assert standing.mean == np.mean(standing.counted)
    record = records(tmp_path)[1]
    assert (record.moves, record.end, record.is_aborted, record.is_completed) == ((), None, True, False)
    assert record.errors == (("IL busy", ""),)
    assert record.replay(game).ply == 0
    assert [entry["is"] for entry in journal(tmp_path) if entry["number"] == 1] == ["started", "aborted"]
    cut_journal(tmp_path, 3)  # those of match 2, and that match 1 was aborted
    again, player, _ = asyncio.run(talk(3))
    assert (again.aborted(), player.count(Start), player.count(Abort)) == ((1,), 0, 1)


def test_a_series_gives_up_on_a_player_that_stays_busy(game: Game) -> None:
    async def talk() -> int:
        async with (
            ScriptedPlayer("start=reply:busy", game=game) as player,
            HostedSeries(game, [player.url, "egreedy"], QUICK) as series,
        ):
            with pytest.raises(
                GameloreError, match=f"expected a player that is free at {player.url}, got `busy` to the"
            ):
                await series.run(9, give_up=3)
            return len(series.played)

    assert asyncio.run(talk()) == 3


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
