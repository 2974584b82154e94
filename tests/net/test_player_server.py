"""The player server on workers that are played by a fake: every message has its answer, whatever the worker does."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from gamelore.errors import GameloreError, GDLSyntaxError, ProtocolError
from gamelore.net import player_server as server_module
from gamelore.net.player_server import PlayerServer
from gamelore.net.pool import Workers, WorkerSettings
from gamelore.net.requests import Advanced, Ended
from wire import PATIENCE, rules

T = TypeVar("T")
LEGAL = ("a", "b", "c")
START = "( START m1 robot ( (role robot) ) {} {} )"


class FakeMatch:
    """A match that never ends; what it is told is noted, and each of its methods can be made to wait or to fail."""

    def __init__(self, workers: FakeWorkers) -> None:
        self.workers = workers
        self.reports: list[tuple[str, ...] | None] = []

    async def advance(self, moves: Sequence[str] | None) -> Advanced:
        await self.workers.happen("advance")
        report = tuple(moves) if moves else None
        if not self.reports or self.reports[-1] != report:
            self.reports.append(report)
        return Advanced(self.workers.legal, len(self.reports) - 1, None, False)

    async def thinks(self) -> bool:
        self.workers.thoughts -= 1
        return self.workers.thoughts >= 0

    async def choose(self, seconds: float) -> str:
        assert 0 <= seconds <= 10
        await self.workers.happen("choose")
        return self.workers.legal[len(self.reports) % 3]

    async def stop(self, moves: Sequence[str] | None) -> Ended:
        await self.workers.happen("stop")
        return Ended("terminal", (100, None), False, True, "state 3 of the lesson")

    async def abort(self) -> None:
        await self.workers.happen("abort")


class FakeWorkers:
    """Notes what happens; `hold` are the things that wait until it is `freed`, `errors` those that fail."""

    def __init__(self) -> None:
        self.happened: list[str] = []
        self.cancelled: list[str] = []
        self.hold: set[str] = set()
        self.errors: dict[str, Exception] = {}
        self.freed = asyncio.Event()
        self.legal = LEGAL
        self.opens = False
        self.thoughts = 0  # number of times that the player says that it uses the startclock
        self.matches: list[FakeMatch] = []
        self.startclocks: list[float | None] = []

    async def happen(self, what: str) -> None:
        self.happened.append(what)
        try:
            if what in self.hold:
                await self.freed.wait()
        except asyncio.CancelledError:
            self.cancelled.append(what)
            raise
        if what in self.errors:
            raise self.errors[what]

    async def prepare(self, rules: str) -> str:
        await self.happen("prepare")
        return "game"

    async def start(
        self,
        match: str,
        role: str,
        rules: str,
        on_opening: Callable[[tuple[str, ...]], None],
        deadline: float | None = None,
        startclock: float | None = None,
    ) -> FakeMatch:
        self.startclocks.append(startclock)
        if self.opens:
            on_opening(self.legal)
        await self.happen("start")
        self.matches.append(FakeMatch(self))
        return self.matches[-1]


def played(scenario: Callable[[PlayerServer, FakeWorkers], Awaitable[T]], **options: Any) -> T:
    """What comes out of a scenario; no task of the server's is left behind."""

    async def play() -> T:
        workers: Any = FakeWorkers()
        async with PlayerServer(workers, "robot", **options) as server:
            result = await scenario(server, workers)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return result

    async def limited() -> T:
        async with asyncio.timeout(PATIENCE):
            return await play()

    return asyncio.run(limited())


async def begun(server: PlayerServer, startclock: int = 10, playclock: int = 10) -> None:
    assert await server.answer(START.format(startclock, playclock)) == "ready"


async def soon(condition: Callable[[], bool]) -> None:
    """Waits until the other tasks have brought something about."""
    while not condition():
        await asyncio.sleep(0.001)


def test_a_match_from_start_to_end(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)

    async def match(server: PlayerServer, workers: FakeWorkers) -> list[str]:
        messages = [
            "( INFO )",
            START.format(10, 10),
            "(info)",
            "( PLAY m1 NIL )",
            "( PLAY M1 ( b ) )",
            "(stop m1 (c))",
            "( INFO )",
        ]
        return [await server.answer(message) for message in messages]

    assert played(match) == [
        "( ( name robot ) ( status available ) ( species gamelore ) )",
        "ready",
        "( ( name robot ) ( status busy ) ( species gamelore ) )",
        "b",
        "c",
        "done",
        "( ( name robot ) ( status available ) ( species gamelore ) )",
    ]
    lines = [record.getMessage() for record in caplog.records]
    assert lines == [
        "match m1: begins, the role is robot, the clocks are 10 and 10 s",
        "match m1: over (terminal), goals 100 ?, the player learned from it, played with state 3 of the lesson",
    ]


def test_a_text_that_is_no_message():
    async def ask(server: PlayerServer, workers: FakeWorkers) -> None:
        with pytest.raises(ProtocolError):
            await server.answer("( DANCE )")

    played(ask)


def test_a_name_of_two_words():
    with pytest.raises(ProtocolError, match="one word"):
        PlayerServer(None, "two words")  # type: ignore[arg-type]


def test_unknown_matches_are_busy():
    async def ask(server: PlayerServer, workers: FakeWorkers) -> set[str]:
        return {await server.answer(message) for message in ("( PLAY x NIL )", "( STOP x (a) )", "( ABORT x )")}

    assert played(ask) == {"busy"}


# START


@pytest.mark.parametrize("error", [GDLSyntaxError("expected a rule"), GameloreError("no"), RuntimeError("a mistake")])
def test_rules_that_cannot_be_played(error: Exception):
    async def start(server: PlayerServer, workers: FakeWorkers) -> list[str]:
        workers.errors["start"] = error
        messages = [START.format(10, 10), "( PLAY m1 NIL )", "( INFO )"]
        replies = [await server.answer(message) for message in messages]
        workers.errors.clear()
        return [*replies, await server.answer(messages[0])]

    nil, busy, info, ready = played(start)
    assert (nil, busy, ready) == ("nil", "busy", "ready")
    assert "available" in info


def test_a_slow_start_is_ready_in_time():
    async def start(server: PlayerServer, workers: FakeWorkers) -> None:
        workers.hold.add("start")
        await begun(server, 0, 0)
        assert await server.answer("( PLAY m1 NIL )") == "nil"
        assert await server.answer("( PLAY m1 ( a ) )") == "nil"
        assert workers.happened == ["start"]
        workers.freed.set()
        assert await server.answer("( PLAY m1 ( b ) )") == "a"
        assert workers.matches[0].reports == [None, ("a",), ("b",)]

    played(start)


def test_a_player_that_has_thought_enough_is_ready_before_the_clock_ends(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(server_module, "STILL_THINKING", 0.01)

    async def start(server: PlayerServer, workers: FakeWorkers) -> None:
        workers.thoughts = 3
        await begun(server, startclock=100)
        assert workers.thoughts == -1, "it was asked until it had nothing to think about"

    played(start)


def test_the_player_is_told_the_startclock():
    async def start(server: PlayerServer, workers: FakeWorkers) -> None:
        await begun(server, startclock=7)
        assert workers.startclocks == [7]

    played(start)


def test_a_player_uses_the_startclock(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(server_module, "STILL_THINKING", 0.01)

    async def start(server: PlayerServer, workers: FakeWorkers) -> None:
        workers.thoughts, begin = 1000, time.monotonic()
        await begun(server, startclock=1)
        assert 0.5 <= time.monotonic() - begin < 1
        assert 0 < workers.thoughts < 1000

    played(start)


@pytest.mark.parametrize("message", ["( PLAY m1 NIL )", "( ABORT m1 )"])
def test_a_host_need_not_wait_for_ready(message: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(server_module, "STILL_THINKING", 0.01)

    async def start(server: PlayerServer, workers: FakeWorkers) -> None:
        workers.thoughts = 1_000_000
        starting = asyncio.ensure_future(server.answer(START.format(100, 10)))
        await soon(lambda: workers.thoughts < 999_998)
        assert await server.answer(message) in ("b", "aborted")
        assert await starting == "ready"
        asked = workers.thoughts
        await asyncio.sleep(0.05)
        assert workers.thoughts == asked, "it thinks on, and is not asked again"

    played(start)


def test_nil_is_not_repeated_when_the_match_has_begun(monkeypatch: pytest.MonkeyPatch):
    times = iter([0.01, 0.01])  # for START and the first PLAY
    monkeypatch.setattr(server_module, "answer_time", lambda clock, margin: next(times, PATIENCE))

    async def start(server: PlayerServer, workers: FakeWorkers) -> None:
        workers.hold.add("start")
        await begun(server, 0, 0)
        assert await server.answer("( PLAY m1 NIL )") == "nil"
        workers.freed.set()
        assert await server.answer("( PLAY m1 NIL )") in LEGAL
        await soon(lambda: not server._sessions["m1"]._order.locked())
        assert await server.answer("( PLAY m1 NIL )") == await server.answer("( PLAY m1 NIL )") != "nil"

    played(start)


@pytest.mark.parametrize("is_early", [True, False])
def test_while_the_player_gets_ready_the_first_answer_is_legal(is_early: bool):
    async def start(server: PlayerServer, workers: FakeWorkers) -> None:
        workers.opens = is_early
        workers.hold.add("start")
        await begun(server, 0, 0)
        playing = asyncio.create_task(server.answer("( PLAY m1 NIL )"))
        await asyncio.sleep(0)
        if not is_early:
            server._sessions["m1"].open(LEGAL)
        assert await playing == await server.answer("( PLAY m1 NIL )") == LEGAL[0]
        assert await server.answer("( PLAY m1 ( a ) )") == "nil"
        workers.freed.set()

    played(start)


def test_a_start_that_fails_late():
    async def start(server: PlayerServer, workers: FakeWorkers) -> list[str]:
        workers.hold.add("start")
        workers.errors["start"] = GameloreError("out of memory")
        await begun(server, 0)
        playing = asyncio.create_task(server.answer("( PLAY m1 NIL )"))
        await asyncio.sleep(0.01)
        workers.freed.set()
        return [await playing, await server.answer("( PLAY m1 NIL )")]

    assert played(start) == ["nil", "busy"]


def test_a_match_goes_on_with_its_follower_if_the_player_cannot_begin(caplog: pytest.LogCaptureFixture):
    """The first legal moves are made, and the log says that they are not the player's."""
    followers: Any = FakeWorkers()

    async def start(server: PlayerServer, workers: FakeWorkers) -> list[str]:
        workers.errors["start"] = GameloreError("out of memory")
        texts = (START.format(10, 10), "( PLAY m1 NIL )", "( PLAY m1 ( b ) )", "( STOP m1 ( a ) )", "( INFO )")
        replies = [await server.answer(text) for text in texts]
        await soon(lambda: "abort" in followers.happened)
        return replies

    *replies, info = played(start, followers=followers)
    assert replies == ["ready", "a", "a", "done"]
    assert "available" in info
    assert followers.happened == ["start", "advance", "advance", "abort"]
    assert caplog.text.count("the player made no move: it could not begin the match") == 2


def test_a_match_without_player_and_follower_is_refused():
    followers: Any = FakeWorkers()

    async def start(server: PlayerServer, workers: FakeWorkers) -> list[str]:
        workers.errors["start"] = followers.errors["start"] = GameloreError("out of memory")
        return [await server.answer(text) for text in (START.format(10, 10), "( PLAY m1 NIL )")]

    assert played(start, followers=followers) == ["nil", "busy"]


@pytest.mark.parametrize("rules", ["(role robot)", "(role robot) (init up)"])
def test_a_host_that_was_started_anew_begins_the_match_anew(rules: str):
    """It counts its matches from 1 again; the old match is aborted before the new one begins."""
    followers: Any = FakeWorkers()

    async def start(server: PlayerServer, workers: FakeWorkers) -> None:
        await begun(server)
        assert await server.answer("( PLAY m1 NIL )") == "b"
        assert await server.answer("( PLAY m1 ( b ) )") == "c"
        assert await server.answer(f"( START m1 robot ( {rules} ) 10 10 )") == "ready"
        assert workers.happened[-2:] == ["abort", "start"]
        assert await server.answer("( PLAY m1 NIL )") == "b"
        assert [len(match.reports) for match in workers.matches] == [2, 1]
        assert [len(match.reports) for match in followers.matches] == [2, 1]

    played(start, followers=followers)


def test_a_match_with_other_rules_begins_even_before_the_first_turn():
    async def start(server: PlayerServer, workers: FakeWorkers) -> None:
        await begun(server)
        assert await server.answer("( START m1 robot ( (role robot) (init up) ) 10 10 )") == "ready"
        assert workers.happened == ["start", "abort", "start"]

    played(start)


def test_a_start_that_comes_again_changes_nothing():
    async def start(server: PlayerServer, workers: FakeWorkers) -> None:
        workers.hold.add("start")
        first = asyncio.create_task(server.answer(START.format(10, 10)))
        second = asyncio.create_task(server.answer(START.format(10, 10)))
        await soon(lambda: bool(workers.happened))
        workers.freed.set()
        assert await asyncio.gather(first, second) == ["ready", "ready"]
        await begun(server)
        assert await server.answer("( START M1 other ( (role robot) ) 1 1 )") == "busy"
        assert workers.happened == ["start"]

    played(start)


def test_no_more_matches_than_allowed():
    async def start(server: PlayerServer, workers: FakeWorkers) -> list[str]:
        names = ["x", "y", "z"]
        replies = [await server.answer(f"( START {name} robot ( (role robot) ) 1 1 )") for name in names]
        await server.answer("( ABORT x )")
        return [*replies, await server.answer("( START z robot ( (role robot) ) 1 1 )")]

    assert played(start, most_matches=2) == ["ready", "ready", "busy", "ready"]


def test_a_match_without_messages_is_given_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(server_module, "STALE_LEAST", 0.0)

    async def start(server: PlayerServer, workers: FakeWorkers) -> None:
        await begun(server, 0, 0)
        assert await server.answer("( START m2 robot ( (role robot) ) 0 0 )") == "ready"
        assert await server.answer("( PLAY m1 NIL )") == "busy"
        await soon(lambda: "abort" in workers.happened)

    played(start)


@pytest.mark.parametrize(
    ("startclock", "playclock", "seconds"),
    [(0, 0, 60), (3, 2, 60), (30, 10, 300), (10, 100, 700), (600, 3600, 4200), (10, 10**7, 86_400)],
)
def test_the_time_until_a_match_is_given_up(
    monkeypatch: pytest.MonkeyPatch, startclock: int, playclock: int, seconds: float
):
    async def start(server: PlayerServer, workers: FakeWorkers) -> list[bool]:
        await begun(server, startclock, playclock)
        session, now = server._sessions["m1"], time.monotonic()
        session.heard = now - seconds + 30
        stale = [session.is_stale()]
        session.heard = now - seconds
        return [*stale, session.is_stale()]

    assert played(start) == [False, True]


def test_lines_about_a_match_are_its_own_when_it_is_steady(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(server_module, "STEADY_SECONDS", 1000.0)

    async def start(server: PlayerServer, workers: FakeWorkers) -> None:
        await begun(server)
        server._sessions["m1"]._since -= server_module.STEADY_SECONDS
        await server.answer("( ABORT m1 )")

    played(start)
    keys = [(record.getMessage().split(",")[0], getattr(record, "match", None)) for record in caplog.records]
    assert keys == [("match m1: begins", None), ("match m1: aborted", "m1")]


def test_an_id_may_be_used_again():
    async def again(server: PlayerServer, workers: FakeWorkers) -> None:
        for _ in range(2):
            await begun(server)
            assert await server.answer("( PLAY m1 NIL )") == "b"
            assert await server.answer("( STOP m1 ( b ) )") == "done"
        assert len(workers.matches) == 2

    played(again)


# PLAY


def test_a_question_that_comes_again_has_the_same_answer():
    async def ask(server: PlayerServer, workers: FakeWorkers) -> None:
        await begun(server)
        workers.hold.add("choose")
        first = asyncio.create_task(server.answer("( PLAY m1 NIL )"))
        second = asyncio.create_task(server.answer("( PLAY m1 NIL )"))
        await soon(lambda: "choose" in workers.happened)
        workers.freed.set()
        assert await asyncio.gather(first, second) == ["b", "b"]
        assert await server.answer("( PLAY m1 NIL )") == "b"
        assert workers.happened.count("choose") == 1

    played(ask)


def test_a_player_that_is_late_has_the_first_legal_move():
    async def ask(server: PlayerServer, workers: FakeWorkers) -> None:
        await begun(server, 10, 0)
        workers.hold.add("choose")
        assert await server.answer("( PLAY m1 NIL )") == "a"
        await soon(lambda: workers.cancelled == ["choose"])
        workers.hold.clear()
        assert await server.answer("( PLAY m1 NIL )") == "a"
        assert await server.answer("( PLAY m1 ( a ) )") == "c"

    played(ask)


def test_a_worker_that_hangs_has_no_move():
    async def ask(server: PlayerServer, workers: FakeWorkers) -> None:
        await begun(server, 10, 0)
        workers.hold.add("advance")
        assert await server.answer("( PLAY m1 NIL )") == "nil"
        assert workers.cancelled == []
        workers.freed.set()
        assert await server.answer("( PLAY m1 ( a ) )") == "c"
        assert workers.happened == ["start", "advance", "advance", "choose"]

    played(ask)


def test_a_newer_question_ends_the_older_one():
    async def ask(server: PlayerServer, workers: FakeWorkers) -> None:
        await begun(server)
        workers.hold.add("choose")
        old = asyncio.create_task(server.answer("( PLAY m1 NIL )"))
        await soon(lambda: "choose" in workers.happened)
        workers.hold.clear()
        assert await server.answer("( PLAY m1 ( c ) )") == "c"
        assert await old == "a"

    played(ask)


def test_where_there_is_no_choice_nobody_is_asked():
    async def ask(server: PlayerServer, workers: FakeWorkers) -> None:
        workers.legal = ("noop",)
        await begun(server)
        assert await server.answer("( PLAY m1 NIL )") == "noop"
        workers.legal = ()
        assert await server.answer("( PLAY m1 ( noop ) )") == "nil"
        assert "choose" not in workers.happened

    played(ask)


@pytest.mark.parametrize("where", ["advance", "choose"])
@pytest.mark.parametrize("error", [GameloreError("the worker died"), RuntimeError("a mistake")])
def test_an_error_costs_a_turn_only(where: str, error: Exception, caplog: pytest.LogCaptureFixture):
    async def ask(server: PlayerServer, workers: FakeWorkers) -> list[str]:
        await begun(server)
        workers.errors[where] = error
        replies = [await server.answer("( PLAY m1 NIL )")]
        workers.errors.clear()
        if where == "choose":
            assert await server.answer("( PLAY m1 NIL )") == replies[0]
        return [*replies, await server.answer("( PLAY m1 ( a ) )")]

    assert played(ask) == (["nil", "b"] if where == "advance" else ["a", "c"])
    assert str(error) in caplog.text


def test_a_question_that_comes_again_has_the_same_answer_though_the_worker_hangs():
    async def ask(server: PlayerServer, workers: FakeWorkers) -> None:
        await begun(server, 10, 0)
        assert await server.answer("( PLAY m1 NIL )") == "b"
        workers.hold.add("advance")
        assert await server.answer("( PLAY m1 NIL )") == "b"
        assert await server.answer("( PLAY m1 ( a ) )") == "nil"

    played(ask)


def test_a_legal_move_called_nil_is_a_move():
    async def ask(server: PlayerServer, workers: FakeWorkers) -> None:
        workers.legal = ("a", "nil", "c")
        await begun(server)
        assert [await server.answer("( PLAY m1 NIL )") for _ in range(3)] == ["nil"] * 3
        assert workers.happened.count("choose") == 1

    played(ask)


def test_only_so_many_wait_for_the_same():
    """Each holds a connection, and INFO and ABORT need one, too."""

    async def repeat(server: PlayerServer, message: str) -> list[asyncio.Task[str]]:
        """Those that wait of so many more than may."""
        asked = [asyncio.create_task(server.answer(message)) for _ in range(9)]
        await soon(lambda: any(task.done() for task in asked))
        *waiting, refused = asked
        assert await refused == "busy"
        return waiting

    async def ask(server: PlayerServer, workers: FakeWorkers) -> None:
        workers.hold |= {"start", "choose", "stop"}
        starting = await repeat(server, START.format(10, 10))
        playing = asyncio.create_task(server.answer("( PLAY m1 NIL )"))  # it is no repetition
        await asyncio.sleep(0)
        workers.freed.set()
        assert await asyncio.gather(*starting, playing) == [*["ready"] * 8, "b"]
        workers.freed.clear()
        playing_on = await repeat(server, "( PLAY m1 ( a ) )")
        workers.freed.set()
        assert await asyncio.gather(*playing_on) == ["c"] * 8
        workers.freed.clear()
        stopping = await repeat(server, "( STOP m1 ( a ) )")
        workers.freed.set()
        assert await asyncio.gather(*stopping) == ["done"] * 8

    played(ask)


def test_a_match_with_more_turns_than_can_be_kept_is_given_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(server_module, "MOST_TOLD", 2 * server_module.EACH_TOLD + 10)

    async def ask(server: PlayerServer, workers: FakeWorkers) -> list[str]:
        await begun(server)
        replies = [await server.answer(f"( PLAY m1 {moves} )") for moves in ("NIL", "( a )", "( b )", "( c )")]
        await soon(lambda: "abort" in workers.happened)
        return replies

    assert played(ask) == ["b", "c", "busy", "busy"]


# STOP and ABORT


def test_a_stop_that_comes_again_changes_nothing():
    async def stop(server: PlayerServer, workers: FakeWorkers) -> None:
        await begun(server)
        workers.hold.add("stop")
        first = asyncio.create_task(server.answer("( STOP m1 ( a ) )"))
        second = asyncio.create_task(server.answer("( STOP m1 ( a ) )"))
        await soon(lambda: "stop" in workers.happened)
        assert await server.answer("( PLAY m1 ( a ) )") == "busy"
        assert "busy" in await server.answer("( INFO )")
        workers.freed.set()
        assert await asyncio.gather(first, second) == ["done", "done"]
        assert await server.answer("( STOP m1 ( a ) )") == "done"
        assert await server.answer("( ABORT m1 )") == "aborted"
        assert await server.answer("( PLAY m1 ( a ) )") == "busy"
        assert workers.happened == ["start", "stop"]

    played(stop)


def test_the_next_match_waits_for_the_end_of_the_last_one():
    async def stop(server: PlayerServer, workers: FakeWorkers) -> None:
        await begun(server)
        workers.hold.add("stop")
        stopping = asyncio.create_task(server.answer("( STOP m1 ( a ) )"))
        await soon(lambda: "stop" in workers.happened)
        assert await server.answer(START.replace("m1", "m2").format(0, 1)) == "busy"
        starting = asyncio.create_task(server.answer(START.replace("m1", "m2").format(10, 10)))
        await asyncio.sleep(0.01)
        assert not starting.done()
        workers.freed.set()
        assert await asyncio.gather(stopping, starting) == ["done", "ready"]
        assert await server.answer(START.replace("m1", "m3").format(10, 10)) == "busy"

    played(stop)


def test_a_match_that_ends_slowly_does_not_keep_others_from_beginning(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(server_module, "ENDING_SECONDS", 0.05)
    monkeypatch.setattr(server_module, "MOST_ENDING", 2)

    async def stop(server: PlayerServer, workers: FakeWorkers) -> None:
        workers.hold.add("stop")
        stopping = []
        for i in range(3):
            assert await server.answer(START.replace("m1", f"n{i}").format(10, 10)) == "ready"
            stopping.append(asyncio.create_task(server.answer(f"( STOP n{i} ( a ) )")))
            await soon(lambda i=i: workers.happened.count("stop") == i + 1)
            assert "busy" in await server.answer("( INFO )")
            await asyncio.sleep(0.06)
            assert ("busy" if i == 2 else "available") in await server.answer("( INFO )")
        assert await server.answer(START.replace("m1", "n3").format(10, 10)) == "busy"
        workers.freed.set()
        assert await asyncio.gather(*stopping) == ["done"] * 3

    played(stop)


def test_a_stop_is_not_done_before_it_is(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(server_module, "STOP_SECONDS", 0.02)

    async def stop(server: PlayerServer, workers: FakeWorkers) -> None:
        await begun(server)
        workers.hold.add("stop")
        assert await server.answer("( STOP m1 ( a ) )") == "busy"
        assert await server.answer("( ABORT m1 )") == "aborted"
        workers.freed.set()
        await soon(lambda: not server._tasks)
        assert await server.answer("( STOP m1 ( a ) )") == "done"
        assert workers.happened == ["start", "stop"]

    played(stop)


def test_a_stop_of_a_match_that_never_begins():
    """It ends with ABORT, or whoever sends START, STOP and ABORT in turn has any number of them on their way."""

    async def stop(server: PlayerServer, workers: FakeWorkers) -> None:
        workers.hold.add("start")
        await begun(server, 0, 0)
        stopping = asyncio.create_task(server.answer("( STOP m1 ( a ) )"))
        await asyncio.sleep(0.01)
        assert await server.answer("( ABORT m1 )") == "aborted"
        assert await stopping == "nil"
        assert workers.cancelled == ["start"]
        assert not server._tasks

    played(stop)


def test_a_start_while_the_match_is_stopped():
    async def start(server: PlayerServer, workers: FakeWorkers) -> None:
        await begun(server)
        workers.hold.add("stop")
        stopping = asyncio.create_task(server.answer("( STOP m1 ( a ) )"))
        await soon(lambda: "stop" in workers.happened)
        assert await server.answer(START.format(10, 10)) == "busy"
        workers.freed.set()
        assert await stopping == "done"

    played(start)


def test_a_stop_that_fails():
    async def stop(server: PlayerServer, workers: FakeWorkers) -> None:
        await begun(server)
        workers.errors["stop"] = GameloreError("the disk is full")
        assert await server.answer("( STOP m1 ( a ) )") == "nil"
        assert await server.answer("( STOP m1 ( a ) )") == "busy"
        assert "available" in await server.answer("( INFO )")

    played(stop)


def test_a_stop_while_the_player_thinks():
    async def stop(server: PlayerServer, workers: FakeWorkers) -> None:
        await begun(server)
        workers.hold.add("choose")
        playing = asyncio.create_task(server.answer("( PLAY m1 NIL )"))
        await soon(lambda: "choose" in workers.happened)
        assert await server.answer("( STOP m1 ( a ) )") == "done"
        assert await playing == "a"
        assert workers.cancelled == ["choose"]

    played(stop)


def test_a_stop_waits_for_the_turns_before_it():
    async def stop(server: PlayerServer, workers: FakeWorkers) -> None:
        workers.hold.add("start")
        await begun(server, 0, 0)
        assert await server.answer("( PLAY m1 NIL )") == "nil"
        stopping = asyncio.create_task(server.answer("( STOP m1 ( a ) )"))
        await asyncio.sleep(0.01)
        workers.freed.set()
        assert await stopping == "done"
        assert workers.happened == ["start", "advance", "stop"]

    played(stop)


@pytest.mark.parametrize("busy_with", ["advance", "choose"])
def test_info_and_abort_while_the_player_thinks(busy_with: str):
    async def abort(server: PlayerServer, workers: FakeWorkers) -> None:
        await begun(server)
        workers.hold.add(busy_with)
        playing = asyncio.create_task(server.answer("( PLAY m1 NIL )"))
        await soon(lambda: busy_with in workers.happened)
        assert "busy" in await server.answer("( INFO )")
        assert await server.answer("( ABORT m1 )") == "aborted"
        assert await playing == ("nil" if busy_with == "advance" else "a")
        assert "available" in await server.answer("( INFO )")
        assert await server.answer("( ABORT m1 )") == "aborted"
        workers.freed.set()
        await soon(lambda: "abort" in workers.happened)

    played(abort)


def test_abort_while_the_rules_are_read():
    async def abort(server: PlayerServer, workers: FakeWorkers) -> None:
        workers.hold.add("start")
        starting = asyncio.create_task(server.answer(START.format(10, 10)))
        await soon(lambda: bool(workers.happened))
        playing = asyncio.create_task(server.answer("( PLAY m1 NIL )"))
        await asyncio.sleep(0)
        assert await server.answer("( ABORT m1 )") == "aborted"
        assert await starting == "nil"
        assert await playing == "nil"
        assert workers.cancelled == ["start"]
        workers.hold.clear()
        await begun(server)

    played(abort)


def test_aborted_matches_are_remembered_up_to_a_number(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(server_module, "MOST_ENDED", 2)

    async def abort(server: PlayerServer, workers: FakeWorkers) -> list[str]:
        for number in range(3):
            await server.answer(f"( START m{number} robot ( (role robot) ) 1 1 )")
            await server.answer(f"( ABORT m{number} )")
        return [await server.answer(f"( ABORT m{number} )") for number in range(3)]

    assert played(abort) == ["busy", "aborted", "aborted"]


# PREVIEW


def test_preview():
    async def preview(server: PlayerServer, workers: FakeWorkers) -> list[str]:
        message = "( PREVIEW ( (role robot) ) 0 )"
        replies = [await server.answer(message)]
        workers.errors["prepare"] = GDLSyntaxError("expected a rule")
        replies.append(await server.answer(message))
        workers.hold.add("prepare")
        replies += [await server.answer(message), await server.answer(message)]
        workers.freed.set()
        await soon(lambda: not server._tasks)
        await begun(server)
        return [*replies, await server.answer(message)]

    assert played(preview) == ["ready", "nil", "ready", "busy", "busy"]


# the end


def test_matches_that_run_are_let_go_at_the_end():
    async def leave(server: PlayerServer, workers: FakeWorkers) -> FakeWorkers:
        await begun(server)
        workers.hold.add("choose")
        playing = asyncio.create_task(server.answer("( PLAY m1 NIL )"))
        await soon(lambda: "choose" in workers.happened)
        playing.cancel()
        await asyncio.gather(playing, return_exceptions=True)
        return workers

    assert played(leave).cancelled == ["choose"]


# with real processes

STUCK = """
import time
from pathlib import Path
from gamelore.players.player import Player

class Stuck(Player):
    def begin(self, role, started):
        self.hang("begin")

    def choose(self, turn):
        self.hang("choose")
        return turn.graph.num_moves[turn.rows, turn.role] - 1

    def hang(self, where):
        if where in Path(__file__).with_name("where").read_text():
            time.sleep(600)
"""


def test_a_player_that_hangs_wherever_it_can(tmp_path: Path):
    """The answers are in time; the process that hangs is replaced, and the match goes on in the next one."""
    path, where = tmp_path / "stuck.py", tmp_path / "where"
    path.write_text(STUCK)
    where.write_text("")
    start = f"( START {{}} xplayer ( {rules('tictactoe')} ) {{}} 0 )"

    async def play() -> None:
        settings = WorkerSettings(f"{path}:Stuck", prepare_seconds=10, patience=0.1)
        async with Workers(settings) as workers, PlayerServer(workers, "stuck", most_matches=2) as server:
            assert await server.answer(start.format("good", 10)) == "ready"
            where.write_text("choose")
            assert await server.answer("( PLAY good NIL )") == "(mark 1 1)"
            where.write_text("begin")
            assert await server.answer(start.format("bad", 0)) == "ready"
            assert await server.answer("( PLAY bad NIL )") in ("nil", "(mark 1 1)")  # the first legal one, if known
            assert await server.answer("( ABORT bad )") == "aborted"
            where.write_text("")
            assert await server.answer("( STOP good ( (mark 1 1) noop ) )") == "done"

    async def limited() -> None:
        async with asyncio.timeout(PATIENCE):
            await play()

    asyncio.run(limited())
