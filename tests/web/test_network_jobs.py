"""Player servers and series of the pages: what their child processes tell, what is kept, and that none is left over."""

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

import gamelore
from gamelore import rulesheets
from gamelore.errors import GameloreError
from gamelore.matches.match import MatchRecord
from gamelore.net import messages
from gamelore.net.http import listen
from gamelore.net.messages import Abort, Info, Play, Start, Stop
from gamelore.web.children.hosting_job import HostingJob, LiveMatch, WatchedSeat
from gamelore.web.children.serving_job import ServedMatches
from gamelore.web.pages.series_page import fault_text, match_text
from gamelore.web.service import network_desk, watchers
from gamelore.web.service.network_desk import (
    NetworkDesk,
    SeatPlan,
    SeriesPlan,
    SeriesRun,
    ServerPlan,
    ServerRun,
    checked_address,
)
from gamelore.web.service.rule_processes import RuleProcesses, Rules, TooBusy
from processes import Process, descendants, name_of, wait_until

ROLES = ("xplayer", "oplayer")
RULES = Rules(rulesheets.path("tictactoe").read_text(encoding="utf-8"), "tictactoe")
RANDOM = SeatPlan("random", "random")
MEMORY = 2 << 30
EMPTY_MATCH = Start("m.1", "xplayer", "(role xplayer)", 10, 5)


def plan_of(*players: str, **changes: Any) -> dict[str, Any]:
    """The plan of a series of tic-tac-toe, without pauses."""
    seats = tuple(SeatPlan(player, player) for player in players)
    return SeriesPlan(
        RULES, ROLES, seats, **{"matches": 2, "startclock": 5, "playclock": 5, "pause": 0, "seed": 7, **changes}
    ).for_job()


def hosted(
    plan: dict[str, Any], folder: Path, until: Callable[[dict[str, Any]], bool] = lambda _: False
) -> dict[str, Any]:
    """Host a series in this process until a condition is met, then stop it; return the last progress."""
    job = HostingJob(memory=MEMORY, prepare_seconds=60.0)
    job.begin(plan, str(folder))
    while (progress := job.progress())["state"] == "running":
        json.dumps(progress, allow_nan=False)
        if until(progress):
            job.stop()
        time.sleep(0.005)
    assert job.progress(progress["version"]) == {"version": progress["version"]}
    return progress


def run_of(folder: Path) -> SeriesRun:
    """The series in a folder, as the pages see it when it has ended."""
    plan = SeriesPlan(RULES, ROLES, (RANDOM, RANDOM))
    series = SeriesRun(folder.name, folder, plan, RuleProcesses(), lambda: None)
    return series


# ---- series -----------------------------------------------------------------------------------------------------


def test_a_series_of_players_by_name(tmp_path: Path) -> None:
    progress = hosted(plan_of("random", "minimax:depth=1"), tmp_path)
    assert (progress["state"], progress["error"], progress["live"]) == ("done", "", None)
    assert [row[0] for row in progress["finished"]] == [0, 1]
    game = gamelore.load("tictactoe")
    for number, num_plies, goals, num_faults, is_aborted in progress["finished"]:
        record = MatchRecord.read(tmp_path / f"match-{number:06}.json")
        assert record.replay(game).ply == num_plies
        assert (record.goals, num_faults, is_aborted) == (tuple(goals), 0, False)
        assert len(json.loads((tmp_path / f"seconds-{number:06}.json").read_text())) == num_plies
    first, second = progress["standings"]
    assert (first["role"], first["matches"], first["low"], first["errors"]) == ("xplayer", 2, None, {})
    assert first["mean"] == sum(row[2][0] for row in progress["finished"]) / 2
    assert first["mean"] + second["mean"] == 100
    assert [len(curve["points"]) for curve in progress["curves"]] == [2, 2]


def test_another_plan_is_refused(tmp_path: Path) -> None:
    job = HostingJob(memory=MEMORY, prepare_seconds=60.0)
    with pytest.raises(GameloreError, match=r"expected the plan of a job, got another value: .* `\$.matches`; correct"):
        job.begin(plan_of("random", "random") | {"matches": "many"}, str(tmp_path))


def test_a_series_goes_on_where_it_was(tmp_path: Path) -> None:
    hosted(plan_of("random", "random", matches=1), tmp_path)
    before = (tmp_path / "match-000000.json").read_bytes()
    progress = hosted(plan_of("random", "random", matches=6), tmp_path)
    assert [row[0] for row in progress["finished"]] == list(range(6))
    assert (tmp_path / "match-000000.json").read_bytes() == before
    assert progress["standings"][0]["low"] <= progress["standings"][0]["mean"] <= progress["standings"][0]["high"]


def test_a_stopped_series_has_no_unfinished_match(tmp_path: Path) -> None:
    progress = hosted(plan_of("random", "random", pause=0.1), tmp_path, lambda now: now["live"] is not None)
    assert progress["state"] == "stopped"
    assert not progress["finished"]
    assert list(tmp_path.glob("match-*.json")) == []


def test_who_cannot_be_reached_is_told(tmp_path: Path) -> None:
    progress = hosted(plan_of("http://127.0.0.1:1", "random"), tmp_path)
    assert progress["state"] == "failed"
    assert progress["error"].startswith("expected a player at http://127.0.0.1:1, got no connection (")
    assert progress["error"].endswith("; start the player, or correct the address")


@pytest.fixture
def stubborn_player() -> Iterator[str]:
    """The address of a player that answers every PLAY with the same move, and does not say that it is ready."""
    address: list[str] = []
    listening, over = Event(), Event()

    async def answer(text: str) -> str:
        match messages.parse(text):
            case Info():
                return "hello"
            case Play():
                return "(mark 2 2)"
        return messages.DONE

    async def serve() -> None:
        async with listen(answer) as port:
            address.append(f"http://127.0.0.1:{port}")
            listening.set()
            await asyncio.to_thread(over.wait)

    thread = Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    listening.wait()
    yield address[0]
    over.set()
    thread.join()


def test_illegal_answers_are_told_while_and_after_the_match(tmp_path: Path, stubborn_player: str) -> None:
    seen: list[dict[str, Any]] = []
    progress = hosted(
        plan_of(stubborn_player, "random", matches=1, pause=0.02),
        tmp_path,
        lambda now: bool(now["live"] and seen.append(now["live"])),
    )
    assert progress["state"] == "done"
    series = run_of(tmp_path)
    series.progress = progress
    turns = asyncio.run(series.turns(0))
    assert turns[0].faults == [("xplayer", "IL", "done")]
    illegal = [turn for turn in turns[1:] if turn.faults]
    assert illegal
    assert progress["finished"][0][3] == 1 + len(illegal)
    assert {fault for turn in illegal for fault in turn.faults} == {("xplayer", "IL", "(mark 2 2)")}
    assert progress["standings"][0]["errors"] == {"IL": 1 + len(illegal)}
    told = max(seen, key=lambda live: len(live["moves"]))
    num = len(told["moves"])
    assert told["moves"] == [tuple(turn.moves) for turn in turns[1:]][:num]
    assert [[tuple(fault) for fault in row] for row in told["faults"][:num]] == [turn.faults for turn in turns[:num]]
    with pytest.raises(GameloreError, match="expected a match of this series, got number 2; choose another"):
        asyncio.run(series.turns(1))


def test_a_late_answer_is_noted_with_its_role() -> None:
    live = LiveMatch(0, ROLES, lambda: None)

    class Silent:
        async def play(self, match: str, moves: object, seconds: float) -> str:
            assert live.as_json()["waiting"] == ["xplayer"]
            raise TimeoutError

    live.ask(0, "xplayer", None)
    live.answer("xplayer", "ready")
    seat = WatchedSeat(Silent(), "xplayer", live, 0.0, 0)  # type: ignore[arg-type]
    with pytest.raises(TimeoutError):
        asyncio.run(seat.play("m", None, 1.0))
    live.ask(2, "xplayer", ["(mark 1 1)", "noop"])
    told = live.as_json()
    assert told["faults"] == [[], [("xplayer", "TO", "")], []]
    assert (told["moves"], told["waiting"], len(told["seconds"])) == ([("(mark 1 1)", "noop")], ["xplayer"], 1)


def test_faults_in_words() -> None:
    fault = network_desk.Fault
    moves = ("(mark 1 1)", "noop")
    assert fault_text(fault("xplayer", "TO", ""), ROLES, moves) == (
        "xplayer: no answer in time; (mark 1 1) was played instead"
    )
    assert fault_text(fault("oplayer", "IL", "(mark 9 9)"), ROLES, moves) == (
        "oplayer: the answer (mark 9 9) is not legal; noop was played instead"
    )
    assert fault_text(fault("oplayer", "CE", ""), ROLES, ()) == "At the start, oplayer could not be reached"
    assert match_text(1, (100, None), False, 2) == "match 2: 100 - ?, 2 late or illegal answers"
    assert match_text(1, (None, None), True, 1) == "match 2: not played, because a player was busy"


@pytest.mark.parametrize(
    "text", ["https://127.0.0.1:9147", "file:///etc/passwd", "127.0.0.1:9147", "http://", "ftp://a:1", ""]
)
def test_other_addresses_are_refused(text: str) -> None:
    with pytest.raises(GameloreError, match=r"expected the address of a player, got .*; write http://ADDRESS:PORT"):
        checked_address(text)


def test_addresses_of_players() -> None:
    assert checked_address(" http://127.0.0.1:9147 ") == "http://127.0.0.1:9147"


@pytest.mark.parametrize(
    "changes", [{"matches": 0}, {"matches": 1001}, {"startclock": 0}, {"playclock": 601}, {"pause": -1}]
)
def test_numbers_out_of_range_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(GameloreError, match=r"expected a .* from \d+ to \d+, got -?\d+; choose another number"):
        plan_of("random", "random", **changes)


def test_a_series_is_read_again_from_its_folder(tmp_path: Path) -> None:
    series = SeriesRun(
        "abcd", tmp_path / "abcd", SeriesPlan(RULES, ROLES, (RANDOM, RANDOM)), RuleProcesses(), lambda: None
    )
    series.keep()
    desk = NetworkDesk(tmp_path, RuleProcesses())
    assert [kept.plan for kept in desk.kept(5)] == [series.plan]
    assert desk.series("abcd").plan == series.plan
    for id in ("../abcd", "none", "a"):
        with pytest.raises(GameloreError, match="expected the address of a series, got one that is not kept here"):
            desk.series(id)
    (tmp_path / "abcd" / network_desk.PLAN).write_text('{"matches": 1}')
    assert list(NetworkDesk(tmp_path, RuleProcesses()).kept(5)) == []
    desk.delete(desk.series("abcd"))
    assert not (tmp_path / "abcd").exists()


def test_old_series_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that go on are not, nor is one in memory that a page shows: it is the same object for all pages."""
    monkeypatch.setattr(network_desk, "MOST_OPEN", 2)
    monkeypatch.setattr(network_desk, "MOST_SERIES", 5)
    monkeypatch.setattr(SeriesRun, "start", lambda series: None)
    first_id: list[str] = []
    monkeypatch.setattr(SeriesRun, "is_on", property(lambda series: series.id in first_id))
    plan = SeriesPlan(RULES, ROLES, (RANDOM, RANDOM))

    async def hosted_in_turn() -> None:
        desk = NetworkDesk(tmp_path, RuleProcesses())
        desk.watch(lambda: None)
        first_id.append(desk.host(plan).id)
        shown = desk.host(plan)
        ids = [desk.host(plan).id for _ in range(7)]
        gc.collect()
        assert list(desk._open) == [*first_id, *ids[-2:]]
        assert set(desk._series) == {*first_id, *ids[-2:]}, "the one that the page shows is removed"
        assert desk._kept == [*reversed(ids[-5:]), *first_id]
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted(desk._kept)
        assert not shown.folder.exists()
        held = desk.series(ids[-5])
        assert [series.id for series in desk.kept(5)] == desk._kept[:5]
        gc.collect()
        assert len(desk._open) <= 3
        assert desk.series(held.id) is held
        with pytest.raises(GameloreError, match="got one that is not kept here"):
            desk.series(ids[0])

    asyncio.run(hosted_in_turn())


def test_few_matches_of_a_series_are_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_desk, "MOST_TURNS", 2)
    series = run_of(tmp_path / "abcd")
    series.progress = {"finished": [[number] for number in range(5)]}
    monkeypatch.setattr(series, "_recorded_turns", lambda number: [number])

    async def read() -> list[Any]:
        return [await series.turns(number) for number in (0, 1, 2, 3, 4, 0)]

    assert asyncio.run(read()) == [[0], [1], [2], [3], [4], [0]]
    assert list(series._turns) == [4, 0]


# ---- the matches of a server ------------------------------------------------------------------------------------


def said(served: ServedMatches, *exchanges: tuple[messages.Message, str]) -> dict[str, Any]:
    """Let a server hear messages and answer them; return what it tells."""
    for message, reply in exchanges:
        served.hear(message)
        served.tell(message, reply, 0.25)
    return served.as_json()


def test_a_served_match_from_start_to_stop() -> None:
    served = ServedMatches(1)
    served.hear(EMPTY_MATCH)
    assert served.as_json()["matches"][0]["stage"] == "preparing"
    told = said(served, (EMPTY_MATCH, "ready"), (Play("M.1", None), "a"), (Play("m.1", ("a", "b")), "c"))
    (match,) = told["matches"]
    assert (match["stage"], match["num_plies"], match["reply"], match["clocks"]) == ("playing", 1, "c", (10, 5))
    assert served.told("m.1", 0) == {"rules": "(role xplayer)", "plies": [("a", "b")]}
    assert served.told("m.1", 1) == {"rules": "", "plies": []}
    told = said(served, (Stop("m.1", ("c", "d")), "done"), (Stop("m.1", ("c", "d")), "done"))
    assert (told["matches"][0]["stage"], told["matches"][0]["num_plies"], told["num_played"]) == ("over", 2, 1)
    assert [(row["message"], row["reply"], row["seconds"]) for row in told["replies"]][:3] == [
        ("STOP", "done", 0.25),
        ("STOP", "done", 0.25),
        ("PLAY", "c", 0.25),
    ]


def test_a_repeated_play_is_one_ply() -> None:
    served = ServedMatches(1)
    said(served, (EMPTY_MATCH, "ready"))
    served.hear(Play("m.1", ("a", "b")))
    served.hear(Play("m.1", ("a", "b")))
    assert served.as_json()["matches"][0]["num_plies"] == 1


def test_refused_aborted_and_abandoned_matches_are_forgotten() -> None:
    served = ServedMatches(1)
    assert said(served, (EMPTY_MATCH, "busy"))["matches"] == []
    assert said(served, (EMPTY_MATCH, "ready"), (Abort("m.1"), "aborted"))["matches"] == []
    with pytest.raises(GameloreError, match="expected a match of this server"):
        served.told("m.1", 0)
    other = Start("m.2", "oplayer", "", 1, 1)
    told = said(served, (EMPTY_MATCH, "ready"), (other, "busy"), (other, "ready"))
    assert [match["id"] for match in told["matches"]] == ["m.2"], "the server has given up the first one"


class ServerProcess:
    """A server with a match."""

    num_plies = 1

    async def ask(self, do: str, time_limit: float, /, **given: Any) -> Any:
        match do:
            case "progress":
                match = {"key": "m.1", "stage": "playing", "num_plies": self.num_plies}
                return {"version": self.num_plies, "state": "ready", "error": "", "matches": [match]}
            case "told":
                return {"rules": EMPTY_MATCH.rules, "plies": [["a"]] * (self.num_plies - given["ply"])}


class DrawingProcesses:
    """Processes that draw a match. Its last ply is made during the first picture, and then no process is free once."""

    def __init__(self) -> None:
        self.server = ServerProcess()
        self.num_asked = 0

    @asynccontextmanager
    async def job(self, module: str) -> AsyncIterator[ServerProcess]:
        yield self.server

    async def ask(self, rules: Rules, do: str, *, time_limit: float, plies: list[list[str]]) -> Any:
        self.num_asked += 1
        num_plies = len(plies)
        if self.num_asked == 1:
            self.server.num_plies = 2
            await asyncio.sleep(0.1)  # meanwhile, the page hears of the last ply
        if self.num_asked == 2:
            raise TooBusy("all think")
        return {"ply": num_plies}


def test_the_last_position_of_a_served_match_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_desk, "POLL_SECONDS", 0.01)

    async def run() -> None:
        processes = DrawingProcesses()
        server = ServerRun(ServerPlan(RANDOM), processes, lambda: None)  # type: ignore[arg-type]
        server.start()
        await asyncio.wait_for(until(lambda: server.position and server.position.view == {"ply": 2}), 60)
        assert processes.num_asked == 3

    asyncio.run(run())


# ---- all of it, with child processes ----------------------------------------------------------------------------


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


def watched(folder: Path, play: Callable[[NetworkDesk, Callable[[], None]], Awaitable[None]]) -> None:
    """Run a test with a desk that is watched by one page."""

    async def run() -> None:
        async with RuleProcesses() as processes:
            desk = NetworkDesk(folder, processes)
            await play(desk, desk.watch(lambda: None))

    asyncio.run(run())


def test_a_server_plays_a_series_and_both_end_with_the_last_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchers, "GRACE", 0.0)
    left, before = list[Process](), {process.pid for process in descendants(os.getpid())}

    async def play(desk: NetworkDesk, leave: Callable[[], None]) -> None:
        server = desk.serve(ServerPlan(RANDOM))
        await until(lambda: server.url or not server.is_on)
        assert server.error == ""
        other = desk.serve(ServerPlan(RANDOM, port=int(server.url.rpartition(":")[2])))
        seats = SeatPlan(server.url, "the server"), RANDOM
        series = desk.host(SeriesPlan(RULES, ROLES, seats, matches=2, startclock=60, playclock=60, pause=0))
        await series.ended()
        assert (series.error, series.is_done) == ("", True)
        assert [goals is not None for goals in series.finished[0][2]] == [True, True]
        assert series.progress["standings"][0]["name"] == "random"
        await until(lambda: not server.is_on or server.progress["num_played"] == 2)
        await until(lambda: server.position and (server.position.view or server.position.error))
        assert server.position is not None
        assert (server.error, server.position.error) == ("", "")
        assert server.progress["matches"][-1]["stage"] == "over"
        assert server.position.view
        plies = [turn.moves for turn in (await series.turns(1))[1:]]
        assert (await series.view_at(plies))["is_terminal"]
        again = NetworkDesk(tmp_path, RuleProcesses()).series(series.id)
        assert (again.is_done, again.finished) == (True, series.finished)
        assert series.all_records().read_text().count("\n") == 2
        await other.ended()
        assert other.error.startswith("expected a port that can be used, got ")
        left.extend(
            each for each in descendants(os.getpid()) if each.pid not in before and name_of(each.pid) != "fork_server"
        )
        second_page = desk.watch(lambda: None)
        leave()
        await asyncio.sleep(0.05)
        assert server.is_on
        assert not server.is_stopping
        second_page()
        await server.ended()
        assert server.progress["state"] == "stopped"

    watched(tmp_path, play)
    assert left
    wait_until(lambda: not any(process.is_alive for process in left), "no process to be left", 60)


HOLDING = """
import asyncio, sys
from pathlib import Path
from gamelore.web.service.network_desk import NetworkDesk, SeatPlan, ServerPlan
from gamelore.web.service.rule_processes import RuleProcesses

async def serve():
    async with RuleProcesses() as processes:
        desk = NetworkDesk(Path(sys.argv[1]), processes)
        server = desk.serve(ServerPlan(SeatPlan("random", "random")))
        while not server.url:
            await asyncio.sleep(0.01)
        print(server.url, flush=True)
        await asyncio.sleep(1000)

asyncio.run(serve())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, a process may go on until it reads its next request")
def test_no_process_outlives_the_server_of_the_pages(tmp_path: Path) -> None:
    command = (sys.executable, "-c", HOLDING, str(tmp_path))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as pages:
        assert pages.stdout is not None
        assert pages.stdout.readline().startswith("http://127.0.0.1:")
        processes = descendants(pages.pid)
        pages.send_signal(signal.SIGKILL)
    assert len(processes) >= 3
    deadline = time.monotonic() + 30
    while any(process.is_alive for process in processes) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(process.is_alive for process in processes)
