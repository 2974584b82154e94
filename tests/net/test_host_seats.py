"""Seats: what goes over the wire to a player, and a player of this process in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gamelore import Game, GameloreError, load
from gamelore.analysis.isomorphism import scramble
from gamelore.game.game import EngineName, make
from gamelore.gdl.limits import Limits
from gamelore.gdl.syntax import Rulesheet
from gamelore.net.host import Disguise, LocalSeat, RemoteSeat
from gamelore.net.messages import PlayerInfo, Start
from gamelore.players.player import Finished, Player, Turn
from gamelore.search.champion import Gamelore
from gamelore.search.settings import ChampionSettings
from wire import PATIENCE


@pytest.fixture(scope="module")
def game() -> Game:
    return load("tictactoe")


class Wire:
    """In the place of http.Client: keeps what is sent, and replies as it is told."""

    def __init__(self, reply: str | Callable[[str], str] = "ready") -> None:
        self.sent: list[tuple[str, str, float, str]] = []
        self._reply = reply

    async def post(self, url: str, text: str, seconds: float, receiver: str = "") -> str:
        self.sent.append((url, text, seconds, receiver))
        return self._reply if isinstance(self._reply, str) else self._reply(text)

    @property
    def texts(self) -> list[str]:
        return [text for _, text, _, _ in self.sent]


def remote(wire: Wire, **options: Any) -> RemoteSeat:
    return RemoteSeat("http://host:1", wire, **options)  # type: ignore[arg-type]


def test_what_a_player_behind_a_wire_is_sent() -> None:
    wire = Wire()
    seat = remote(wire, receiver="them")

    async def talk() -> None:
        await seat.start(Start("m", "xplayer", "(role xplayer)\n(role oplayer)", 3, 4), 7, 4.5)
        await seat.play("m", None, 5)
        await seat.play("m", ("(mark 1 1)", "noop"), 5)
        await seat.stop("m", ("noop", "(mark 3 3)"), 5)
        await seat.abort("m", 2)

    asyncio.run(talk())
    assert wire.texts == [
        "( START m xplayer ( (role xplayer) (role oplayer) ) 3 4 )",
        "( PLAY m NIL )",
        "( PLAY m ( (mark 1 1) noop ) )",
        "( STOP m ( noop (mark 3 3) ) )",
        "( ABORT m )",
    ]
    assert wire.sent[0] == ("http://host:1", wire.texts[0], 4.5, "them")


def test_who_a_player_says_it_is() -> None:
    wire = Wire("( ( name Alice ) ( status busy ) )")
    assert asyncio.run(remote(wire).info(1)) == PlayerInfo("Alice", "busy")
    assert wire.texts == ["( INFO )"]


def test_two_roles_of_one_player_have_ids_of_their_own() -> None:
    wire = Wire()
    seat = remote(wire, suffix=".1")

    async def talk() -> None:
        await seat.start(Start("m", "oplayer", "(role oplayer)", 1, 1), 0, 1)
        await seat.play("m", None, 1)
        await seat.stop("m", ("noop",), 1)
        await seat.abort("m", 1)

    asyncio.run(talk())
    assert [text.split()[2] for text in wire.texts] == ["m.1"] * 4


def test_a_disguise_covers_what_goes_out_and_is_taken_off_what_comes_back(game: Game) -> None:
    sheet, renaming = scramble(game.rulesheet, np.random.default_rng(5))
    wire = Wire(lambda text: f"  {renaming.theirs('(mark 2 2)').upper()} (explanation why)")
    seat = remote(wire, disguise=Disguise(str(sheet), renaming))

    async def talk() -> str:
        await seat.start(Start("m", "xplayer", str(game.rulesheet), 1, 1), 0, 1)
        return await seat.play("m", ("(mark 1 1)", "noop"), 1)

    assert asyncio.run(talk()) == "(mark 2 2)"
    for text in wire.texts:
        assert not {"xplayer", "mark", "noop", "cell"} & set(text.replace("(", " ").replace(")", " ").split())
    assert wire.texts[0] == f"( START m {renaming.theirs('xplayer')} ( {' '.join(str(sheet).split())} ) 1 1 )"
    assert wire.texts[1] == f"( PLAY m ( {renaming.theirs('(mark 1 1)')} {renaming.theirs('noop')} ) )"


def refusing(times: int, monkeypatch: pytest.MonkeyPatch) -> Wire:
    """A player that is not there when it is tried so many times."""
    monkeypatch.setattr("gamelore.net.host.AGAIN", 0.01)

    def reply(text: str) -> str:
        if len(wire.sent) <= times:
            raise ConnectionRefusedError("nobody")
        return "ready"

    wire = Wire(reply)
    return wire


def test_a_player_that_is_being_started_is_waited_for_at_start(monkeypatch: pytest.MonkeyPatch) -> None:
    wire = refusing(2, monkeypatch)
    assert asyncio.run(remote(wire).start(start("m"), 0, PATIENCE)) == "ready"
    assert len(set(wire.texts)) == 1
    left = [seconds for _, _, seconds, _ in wire.sent]
    assert left[0] == PATIENCE > left[1] > left[2] > 0


def test_a_player_that_is_gone_for_good_is_waited_for_until_the_clock_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    wire = refusing(1 << 30, monkeypatch)
    with pytest.raises(ConnectionRefusedError):
        asyncio.run(remote(wire).start(start("m"), 0, 0.1))
    assert len(wire.sent) > 1
    assert all(seconds > 0 for _, _, seconds, _ in wire.sent)


def test_a_player_that_was_busy_and_then_says_nothing_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last attempt may end with the clock, while the player still waits for its other match."""
    monkeypatch.setattr("gamelore.net.host.AGAIN", 0.01)

    def reply(text: str) -> str:
        if len(wire.sent) > 1:
            raise TimeoutError
        return "busy"

    wire = Wire(reply)
    assert asyncio.run(remote(wire).start(start("m"), 0, PATIENCE)) == "busy"
    with pytest.raises(TimeoutError):
        asyncio.run(remote(wire).start(start("m"), 0, PATIENCE))


def test_a_busy_player_that_waits_is_busy_before_the_clock_ends(game: Game) -> None:
    """The host gives up a reply at the end of the clock; the last attempt ends before."""

    class Waiting(Wire):
        async def post(self, url: str, text: str, seconds: float, receiver: str = "") -> str:
            reply = await super().post(url, text, seconds, receiver)
            if len(self.sent) > 1:
                async with asyncio.timeout(seconds):
                    await asyncio.sleep(PATIENCE)
            return reply

    async def talk() -> str:
        async with asyncio.timeout(2):
            return await remote(Waiting("busy")).start(start("m"), 0, 2)

    assert asyncio.run(talk()) == "busy"


def test_only_start_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    seat = remote(wire := refusing(1 << 30, monkeypatch))
    for call in (seat.play("m", None, 1), seat.stop("m", None, 1), seat.abort("m", 1), seat.info(1)):
        with pytest.raises(ConnectionRefusedError):
            asyncio.run(call)
    assert len(wire.sent) == 4


@pytest.mark.parametrize("reply", ["", ") (", "(mark 1"])
def test_a_reply_that_is_no_term_stays_what_it_is(game: Game, reply: str) -> None:
    sheet, renaming = scramble(game.rulesheet, np.random.default_rng(5))
    seat = remote(Wire(reply), disguise=Disguise(str(sheet), renaming))
    assert asyncio.run(seat.play("m", None, 1)) == reply


class Slow(Player):
    """Waits until it may go on; tells of what it was told."""

    def __init__(self) -> None:
        self.may_go_on = threading.Event()
        self.ended: list[Finished] = []
        self.threads: set[int] = set()

    def choose(self, turn: Turn) -> NDArray[np.int32]:
        self.threads.add(threading.get_ident())
        assert self.may_go_on.wait(PATIENCE)
        return np.zeros(len(turn.rows), np.int32)

    def end(self, role: int, finished: Finished) -> None:
        self.ended.append(finished)


def start(match: str, role: str = "xplayer") -> Start:
    return Start(match, role, "", 1, 1)


def test_a_local_player_plays(game: Game) -> None:
    async def talk() -> list[str]:
        async with LocalSeat("egreedy:filler=first", game) as seat:
            replies = [await seat.start(start("m"), 0, 1), await seat.play("m", None, 1)]
            replies.append(await seat.play("m", ("(MARK 1  1)", "noop"), 1))
            return [*replies, await seat.abort("m", 1), seat.name]

    assert asyncio.run(talk()) == ["ready", "(mark 1 1)", "noop", "aborted", "egreedy:filler=first"]


def test_a_local_player_uses_the_startclock(game: Game) -> None:
    """It thinks before the first move until it has solved the game, and would do so for a minute."""
    player = Gamelore()

    async def talk() -> str:
        async with LocalSeat(player, game) as seat:
            return await seat.start(Start("m", "xplayer", "", 60, 1), 0, 60)

    assert asyncio.run(talk()) == "ready"
    assert player._solution_of(game) is not None


def test_a_local_player_is_told_the_startclock_that_is_left(game: Game, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[float | None] = []
    monkeypatch.setattr(Gamelore, "prepare", lambda self, game, role: time.sleep(0.5))
    monkeypatch.setattr(Gamelore, "begin", lambda self, role, started: told.append(started.startclock))

    async def talk() -> str:
        async with LocalSeat(Gamelore(ChampionSettings(ponder=False)), game) as seat:
            return await seat.start(Start("m", "xplayer", "", 20, 1), 0, 20)

    assert asyncio.run(talk()) == "ready"
    assert told[0] is not None
    assert 0.0 < told[0] <= 19.5


def test_a_local_player_stops_thinking_when_nobody_waits_for_it(game: Game) -> None:
    """It would think for far longer than the test waits."""
    clock, player = int(3 * PATIENCE), Gamelore(ChampionSettings(solve=False))

    async def talk() -> str:
        async with asyncio.timeout(PATIENCE), LocalSeat(player, load("connectfour")) as seat:
            thinking = asyncio.create_task(seat.start(Start("m", "red", "", clock, 1), 0, clock))
            while not (player._lanes and player._lanes[0].prepared):
                await asyncio.sleep(0.01)
            assert not thinking.done()
            assert await seat.abort("m", 1) == "aborted"
            return await thinking

    assert asyncio.run(talk()) == "ready"


class Punctual(Player):
    """Tells how much time it has."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def choose(self, turn: Turn) -> NDArray[np.int32]:
        assert turn.deadline is not None
        self.times.append(turn.deadline - time.monotonic())
        return np.zeros(len(turn.rows), np.int32)


def test_matches_side_by_side_share_the_playclock_of_a_local_player(game: Game) -> None:
    player = Punctual()

    async def talk() -> None:
        async with LocalSeat(player, game) as seat:
            for match in "abcd":
                await seat.start(Start(match, "xplayer", "", 1, 100), 0, 1)
            await asyncio.gather(*(seat.play(match, None, 1) for match in "abcd"))

    asyncio.run(talk())
    assert len(player.times) == 4
    assert max(player.times) <= 25
    assert min(player.times) > 5


class Unreadable(Player):
    def choose(self, turn: Turn) -> NDArray[np.int32]:
        raise FileNotFoundError("weights.npz")


def test_an_error_of_a_local_player_is_no_broken_connection(game: Game) -> None:
    async def talk() -> str:
        async with LocalSeat(Unreadable(), game) as seat:
            await seat.start(start("m"), 0, 1)
            return await seat.play("m", None, 1)

    with pytest.raises(GameloreError, match=r"the player failed with FileNotFoundError: weights\.npz"):
        asyncio.run(talk())


def test_a_slow_local_player_holds_up_nobody(game: Game) -> None:
    player = Slow()

    async def talk() -> str:
        async with LocalSeat(player, game) as slow, LocalSeat("random", game) as quick:
            await slow.start(start("m"), 0, 1)
            await quick.start(start("m"), 0, 1)
            waiting = asyncio.create_task(slow.play("m", None, 1))
            assert await quick.play("m", None, 1)
            assert not waiting.done()
            player.may_go_on.set()
            return await waiting

    assert asyncio.run(talk()) == "(mark 1 1)"
    assert threading.get_ident() not in player.threads


def test_a_local_player_that_is_no_longer_waited_for_goes_along_all_the_same(game: Game) -> None:
    player = Slow()

    async def talk() -> str:
        async with LocalSeat(player, game) as seat:
            await seat.start(start("m"), 0, 1)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await seat.play("m", None, 1)
            player.may_go_on.set()
            return await seat.play("m", ("(mark 3 3)", "noop"), 1)

    assert asyncio.run(talk()) == "noop"


def test_a_local_player_is_told_of_the_end(game: Game) -> None:
    player = Slow()
    player.may_go_on.set()
    squares = ["(mark 1 1)", "(mark 2 1)", "(mark 1 2)", "(mark 2 2)", "(mark 1 3)"]
    moves = [(square, "noop") if ply % 2 == 0 else ("noop", square) for ply, square in enumerate(squares)]

    async def talk() -> str:
        async with LocalSeat(player, game) as seat:
            await seat.start(start("m"), 0, 1)
            for joint in [None, *moves[:-1]]:
                await seat.play("m", joint, 1)
            return await seat.stop("m", moves[-1], 1)

    assert asyncio.run(talk()) == "done"
    assert [one.goals[0].tolist() for one in player.ended] == [[100, 0]]


def test_a_match_that_a_local_player_does_not_know(game: Game) -> None:
    async def talk() -> str:
        async with LocalSeat("random", game) as seat:
            assert await seat.abort("other", 1) == "aborted"
            return await seat.stop("other", ("noop", "noop"), 1)

    assert asyncio.run(talk()) == "busy"


def test_what_learning_raises_is_not_lost(game: Game) -> None:
    class Broken(Slow):
        def end(self, role: int, finished: Finished) -> None:
            raise GameloreError("expected another player")

    player = Broken()
    player.may_go_on.set()

    async def talk() -> None:
        async with LocalSeat(player, game, max_plies=1) as seat:
            await seat.start(start("m"), 0, 1)
            await seat.play("m", None, 1)
            await seat.stop("m", ("(mark 1 1)", "noop"), 1)
            await seat.start(start("n"), 1, 1)

    with pytest.raises(GameloreError, match="another player"):
        asyncio.run(talk())


def test_matches_end_and_begin_while_a_local_player_thinks(game: Game) -> None:
    player = Slow()

    async def talk() -> list[str]:
        async with LocalSeat(player, game, max_plies=0) as seat:
            for match in ("a", "b", "c"):
                await seat.start(start(match), 0, 1)
            thinking = asyncio.create_task(seat.play("a", None, 1))
            asked = [seat.stop("b", None, 1), seat.start(start("d"), 0, 1), seat.stop("c", None, 1)]
            waiting = asyncio.gather(*asked)
            await asyncio.sleep(0)
            player.may_go_on.set()
            async with asyncio.timeout(PATIENCE):
                return [await thinking, *await waiting]

    assert asyncio.run(talk()) == ["(mark 1 1)", "done", "ready", "done"]
    assert len(player.ended) == 2


def test_local_players_of_a_game_on_the_reasoner_have_one_each() -> None:
    game = load("tictactoe", "reasoner")

    async def talk() -> list[str]:
        async with LocalSeat("random", game) as left, LocalSeat("random", game) as right:
            await left.start(start("m"), 0, 1)
            await right.start(start("m", "oplayer"), 0, 1)
            return list(await asyncio.gather(left.play("m", None, 1), right.play("m", None, 1)))

    mark, noop = asyncio.run(talk())
    assert mark.startswith("(mark")
    assert noop == "noop"


def test_a_local_player_on_the_reasoner_gets_the_limits_of_the_game(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Limits] = []

    def remake(sheet: Rulesheet, name: str, engine: EngineName, limits: Limits) -> Game:
        given.append(limits)
        return make(sheet, name, engine, limits)

    monkeypatch.setattr("gamelore.net.host.make", remake)
    LocalSeat("random", load("tictactoe", "reasoner", Limits(seconds=7)))
    assert given == [Limits(seconds=7)]


def test_a_player_that_stays_busy_is_asked_again_until_the_clock_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gamelore.net.host.AGAIN", 0.01)
    wire = Wire(" BUSY\r\n")
    assert asyncio.run(remote(wire).start(start("m"), 0, 0.1)) == " BUSY\r\n"
    assert len(wire.sent) > 1
    assert len(set(wire.texts)) == 1
