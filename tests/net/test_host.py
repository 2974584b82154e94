"""One match led by a host: what it asks, what it makes of every kind of fault, and how it takes leave."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack

import numpy as np
import pytest

from gamelore import Game, GameloreError, IllegalMoveError, load
from gamelore.matches.match import Event, MatchRecord
from gamelore.net.host import AT_START, HostSettings, LocalSeat, RemoteSeat, run_match
from gamelore.net.http import Client
from gamelore.net.messages import Abort, Play, PlayerInfo, Start, Stop
from gamelore.players.position_graph import PositionGraph
from gamelore.players.random_streams import WHICH, stream, uniform
from scripted import ScriptedPlayer

CLOCKS = HostSettings(startclock=0, playclock=0, extra=0.4)
GENEROUS = HostSettings(startclock=10, playclock=10)
SQUARES = [f"(mark {row} {column})" for row in (1, 2, 3) for column in (1, 2, 3)]


@pytest.fixture(scope="module")
def game() -> Game:
    return load("tictactoe")


class Stub:
    """A seat that gives these moves by turns, "" for none: it waits; keeps what it was asked."""

    def __init__(self, *moves: str, ready: str = "ready", fails: Exception | None = None) -> None:
        self.asked: list[tuple[object, ...]] = []
        self._moves = iter(moves)
        self._ready = ready
        self._fails = fails

    async def start(self, start: Start, number: int, seconds: float) -> str:
        self.asked.append((start, number, seconds))
        return self._ready

    async def play(self, match: str, moves: Sequence[str] | None, seconds: float) -> str:
        self.asked.append(("play", match, moves, seconds))
        move = next(self._moves, "noop")
        if self._fails is not None and not move:
            raise self._fails
        if not move:
            await asyncio.Event().wait()
        return move

    async def stop(self, match: str, moves: Sequence[str] | None, seconds: float) -> str:
        self.asked.append(("stop", match, moves))
        return "done"

    async def abort(self, match: str, seconds: float) -> str:
        self.asked.append(("abort", match))
        return "aborted"

    async def info(self, seconds: float) -> PlayerInfo:
        return PlayerInfo()


def alternate(kind: type[Stub] = Stub) -> tuple[Stub, Stub]:
    """Two players of a match that the first one wins with its third move."""
    first = kind("(mark 1 1)", "noop", "(mark 1 2)", "noop", "(mark 1 3)")
    return first, kind("noop", "(mark 2 1)", "noop", "(mark 2 2)")


async def over_the_wire(game: Game, script: str, settings: HostSettings) -> tuple[MatchRecord, ScriptedPlayer]:
    """A match of a scripted player as xplayer against one of this process that takes first moves."""
    async with AsyncExitStack() as stack:
        player = await stack.enter_async_context(ScriptedPlayer(script, game=game))
        client = await stack.enter_async_context(Client())
        seat = await stack.enter_async_context(LocalSeat("egreedy:filler=first,epsilon=0", game))
        return await run_match(game, [RemoteSeat(player.url, client), seat], settings, 3), player


def test_what_players_are_asked(game: Game) -> None:
    first, second = alternate()
    hosted = asyncio.run(run_match(game, [first, second], HostSettings(7, 4, 0.5), 12, match="m.12"))
    start = Start("m.12", "xplayer", str(game.rulesheet), 7, 4)
    assert first.asked[0] == (start, 12, 7.5)
    assert second.asked[0][0].role == "oplayer"  # type: ignore[attr-defined]
    assert first.asked[1:3] == [("play", "m.12", None, 4.5), ("play", "m.12", ("(mark 1 1)", "noop"), 4.5)]
    assert first.asked[-1] == second.asked[-1] == ("stop", "m.12", ("(mark 1 3)", "noop"))
    assert (hosted.end, hosted.goals, len(hosted.moves), hosted.events) == ("terminal", (100, 0), 5, ())
    assert hosted.errors == (("", ""),) * 6
    assert len(hosted.state_times) == 6
    assert list(hosted.state_times) == sorted(hosted.state_times)


def test_an_opening_overrules_the_players(game: Game) -> None:
    """Illegal, missing and other moves are no faults in these plies; each player hears what was made."""
    first = Stub("nonsense", "noop", "(mark 1 2)", "noop", "(mark 1 3)")
    second = Stub("", "(mark 3 3)", "noop", "(mark 2 2)")
    opening = [("(mark 1 1)", "noop"), ("noop", "(mark 2 1)")]
    hosted = asyncio.run(run_match(game, [first, second], CLOCKS, match="m", opening=opening))
    assert hosted.moves[:2] == tuple(opening)
    assert hosted.moves[2:] == (("(mark 1 2)", "noop"), ("noop", "(mark 2 2)"), ("(mark 1 3)", "noop"))
    assert (hosted.events, hosted.goals, hosted.end) == ((), (100, 0), "terminal")
    assert [asked[2] for asked in second.asked[1:4]] == [None, *opening]


def test_an_opening_that_is_not_legal_ends_the_match(game: Game) -> None:
    first, second = alternate()
    with pytest.raises(IllegalMoveError, match="expected a legal move of xplayer, got noop"):
        asyncio.run(run_match(game, [first, second], GENEROUS, opening=[("noop", "noop")]))
    assert first.asked[-1][0] == second.asked[-1][0] == "abort"


def test_all_roles_are_asked_at_once(game: Game) -> None:
    together = asyncio.Barrier(2)

    class Waiting(Stub):
        async def play(self, match: str, moves: Sequence[str] | None, seconds: float) -> str:
            await together.wait()
            return await super().play(match, moves, seconds)

    assert asyncio.run(run_match(game, alternate(Waiting), GENEROUS)).events == ()


def test_moves_are_read_by_their_meaning(game: Game) -> None:
    first, second = alternate()
    first._moves = iter(["(MARK 1 1)", "( noop )", "(mark 1  2) (taunt ha)", " noop ", "(mark 1 3)"])
    assert asyncio.run(run_match(game, [first, second], GENEROUS)).events == ()
    assert ("play", first.asked[-1][1], ("(mark 1 1)", "noop"), 11.0) in second.asked


@pytest.mark.parametrize(
    ("move", "fails", "kind", "text"),
    [
        ("", None, "TO", ""),
        ("", TimeoutError("late"), "TO", ""),
        ("", ConnectionRefusedError("refused"), "CE", ""),
        ("(mark 1 1)", None, "IL", "(mark 1 1)"),
        ("(mark 9 9)", None, "IL", "(mark 9 9)"),
        ("nil", None, "IL", "nil"),
        ("busy", None, "IL", "busy"),
        (")(", None, "IL", ")("),
        ("(mark\x1b[2J 1", None, "IL", "(mark?[2J 1"),
        ("(" * 50_000, None, "IL", "(" * 197 + "..."),
    ],
)
def test_faults_and_what_is_played_in_place(
    game: Game, move: str, fails: Exception | None, kind: str, text: str
) -> None:
    first = Stub("(mark 1 1)", "noop", move, fails=fails)
    settings = HostSettings(0, 0, 0.05, seed=5, max_plies=3)
    hosted = asyncio.run(run_match(game, [first, Stub("noop", "(mark 2 2)", "noop")], settings, 7))
    assert hosted.events == (Event(2, "xplayer", kind, text),)
    assert hosted.errors[3] == (f"{kind} {text}".strip(), "")
    left = [square for square in SQUARES if square not in ("(mark 1 1)", "(mark 2 2)")]
    drawn = int(uniform(stream(5, 0, "host", 7, 0), 2, WHICH) * len(left))
    assert hosted.moves[2] == (left[drawn], "noop")
    assert hosted.end == "cap"


def test_the_first_move_in_place_of_a_fault(game: Game) -> None:
    settings = HostSettings(0, 0, 0.05, replace="first", max_plies=1)
    hosted = asyncio.run(run_match(game, [Stub("what"), Stub("noop")], settings))
    assert hosted.moves == (("(mark 1 1)", "noop"),)


@pytest.mark.parametrize("ready", ["busy", "nil", ")"])
def test_who_is_not_ready_is_asked_all_the_same(game: Game, ready: str) -> None:
    first, second = alternate()
    first._ready = ready
    hosted = asyncio.run(run_match(game, [first, second], GENEROUS))
    assert hosted.events == (Event(AT_START, "xplayer", "IL", ready),)
    assert hosted.errors[0] == (f"IL {ready}", "")
    assert hosted.goals == (100, 0)


@pytest.mark.parametrize("ready", ["READY", " ready\r\n", "( ready )", "ready or not"])
def test_ready_in_every_dialect(game: Game, ready: str) -> None:
    first, second = alternate()
    first._ready = ready
    assert asyncio.run(run_match(game, [first, second], GENEROUS)).events == ()


@pytest.mark.parametrize(
    ("script", "kinds"),
    [
        ("", set()),
        ("play@2=late:9", {"TO"}),
        ("play@2=silent", {"TO"}),
        ("play@2=stall", {"TO"}),
        ("play@2=close", {"CE"}),
        ("play@2=half", {"CE"}),
        ("play@2=illegal", {"IL"}),
        ("play@2=garbage", {"IL"}),
        ("play@2=wrong-match", {"IL"}),
        ("play@2=huge", {"IL"}),
        ("play@2=redirect", {"IL"}),
        ("play@2=status:500", {"IL"}),
        ("play@2=reply:", {"IL"}),
    ],
)
def test_every_fault_over_the_wire(game: Game, script: str, kinds: set[str]) -> None:
    settings = HostSettings(startclock=0, playclock=0, extra=1.0) if kinds == {"TO"} else GENEROUS
    hosted, player = asyncio.run(over_the_wire(game, script, settings))
    assert {event.kind for event in hosted.events} == kinds
    assert {event.ply for event in hosted.events} == ({2} if kinds else set())
    assert hosted.end == "terminal"
    assert player.count(Stop) == 1
    assert player.count(Play) == len(hosted.moves)
    assert hosted.replay(game).end == "terminal"


def test_a_redirect_is_not_followed(game: Game) -> None:
    hosted, player = asyncio.run(over_the_wire(game, "play=redirect", GENEROUS))
    assert [event.kind for event in hosted.events] == ["IL"] * len(hosted.moves)
    assert player.count(Play) == len(hosted.moves)


@pytest.mark.parametrize("script", ["any=silent", "any=close", "any=garbage"])
def test_a_player_that_is_never_there(game: Game, script: str) -> None:
    settings = HostSettings(0, 0, 0.12)
    hosted, _ = asyncio.run(over_the_wire(game, script, settings))
    assert hosted.end == "terminal"
    assert [event.ply for event in hosted.events] == list(range(-1, len(hosted.moves)))


def test_a_player_that_dies_in_the_match(game: Game) -> None:
    async def talk() -> MatchRecord:
        async with AsyncExitStack() as stack:
            player = await stack.enter_async_context(ScriptedPlayer(game=game))
            client = await stack.enter_async_context(Client())

            class Killer(Stub):
                async def play(self, match: str, moves: Sequence[str] | None, seconds: float) -> str:
                    if moves is not None and moves[1] != "noop":
                        await player.__aexit__(None, None, None)
                    return await super().play(match, moves, seconds)

            other = Killer("noop", "(mark 2 2)", "noop", "(mark 3 3)", "noop", "(mark 2 3)")
            return await run_match(game, [RemoteSeat(player.url, client), other], CLOCKS)

    hosted = asyncio.run(talk())
    assert hosted.end == "terminal"
    assert {event.kind for event in hosted.events if event.role == "xplayer" and event.ply > 2} == {"CE"}


def test_a_wrong_number_of_players(game: Game) -> None:
    with pytest.raises(GameloreError, match="expected 2 players, one for each of xplayer, oplayer, got 1"):
        asyncio.run(run_match(game, [Stub()]))


@pytest.mark.parametrize("options", [{"startclock": -1}, {"extra": -0.5}, {"replace": "best"}, {"max_plies": 0}])
def test_settings_that_make_no_sense(options: dict[str, object]) -> None:
    with pytest.raises(GameloreError):
        HostSettings(**options)  # type: ignore[arg-type]


def test_a_host_that_is_interrupted_takes_leave(game: Game) -> None:
    async def talk() -> ScriptedPlayer:
        async with ScriptedPlayer("play@2=silent", game=game) as player, Client() as client:
            hosting = asyncio.create_task(run_match(game, [RemoteSeat(player.url, client), Stub("noop")], GENEROUS))
            while player.count(Play) < 3:
                await asyncio.sleep(0.001)
            hosting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await hosting
            return player

    player = asyncio.run(talk())
    assert isinstance(player.heard[-1], Abort)
    assert player.count(Stop) == 0


def test_a_local_player_that_fails_ends_the_match(game: Game) -> None:
    first, second = Stub("(mark 1 1)", "", fails=GameloreError("expected more")), Stub("noop", "")
    with pytest.raises(GameloreError, match="expected more"):
        asyncio.run(run_match(game, [first, second], GENEROUS))
    assert first.asked[-1][0] == second.asked[-1][0] == "abort"


def test_what_is_written_down_is_written_before_stop(game: Game) -> None:
    first, second = alternate()
    told: list[MatchRecord] = []

    def over(hosted: MatchRecord) -> None:
        assert first.asked[-1][0] == "play"
        told.append(hosted)

    assert asyncio.run(run_match(game, [first, second], GENEROUS, on_over=over)) is told[0]
    assert first.asked[-1][0] == "stop"


def test_a_record_that_cannot_be_written_counts_as_no_match(game: Game) -> None:
    first, second = alternate()

    def over(hosted: MatchRecord) -> None:
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        asyncio.run(run_match(game, [first, second], GENEROUS, on_over=over))
    assert first.asked[-1][0] == second.asked[-1][0] == "abort"


def test_matches_that_end_stuck() -> None:
    stuck = load(
        "(role r) (init (at 0)) (<= (legal r go) (true (at 0))) (<= (next (at 1)) (does r go)) (goal r 50)"
        " (<= terminal (true (at 2)))"
    )
    hosted = asyncio.run(run_match(stuck, [Stub("go")], GENEROUS))
    assert (hosted.end, len(hosted.moves), hosted.goals) == ("stuck", 1, (None,))


def test_matches_may_share_a_graph(game: Game) -> None:
    graph = PositionGraph(game)
    for _ in range(2):
        assert asyncio.run(run_match(game, alternate(), GENEROUS, graph=graph)).goals == (100, 0)
    assert graph.num_rows == len(np.unique(graph.keys)) <= 12
