"""Every message and every dialect of the GGP protocol, in raw bytes over real sockets, at both ends."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from gamelore import load
from gamelore.net.host import HostSettings
from gamelore.net.hosted_series import HostedSeries, Standing
from gamelore.net.messages import PlayerInfo
from wire import Scripted, exchange, reply, request, rules, say, serving, status_of, words

pytestmark = pytest.mark.xdist_group("conformance")  # so that each of its servers starts once

LEGAL = re.compile(r"\(mark [123] [123]\)")
ids = map("conformance.{}".format, count())


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A player of any game, several matches at once."""
    store = tmp_path_factory.mktemp("player") / "knowledge.db"
    with serving("--player", "egreedy", "--knowledge", store, "--matches-at-once", 50, "--name", "conform") as port:
        yield port


@pytest.fixture(scope="module")
def open_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A player of one match at a time, open to web pages; it soon gives up grounding a game."""
    store = tmp_path_factory.mktemp("open") / "knowledge.db"
    options = ("--player", "random", "--knowledge", store, "--get", "--cors", "--prepare-seconds", 6)
    with serving(*options) as port:
        yield port


def started(port: int, role: str = "xplayer", startclock: int = 5, playclock: int = 5) -> str:
    """The id of a new match of tic-tac-toe."""
    match = next(ids)
    assert say(port, f"( START {match} {role} ( {rules('tictactoe')} ) {startclock} {playclock} )") == "ready"
    return match


@pytest.mark.parametrize("message", ["( INFO )", "(info)", " ( Info )\r\n", "( INFO please )", "( PING )", "(ping)"])
def test_info_in_every_dialect(port: int, message: str) -> None:
    answer = words(say(port, message).lower())
    assert answer[:5] == ["(", "(", "name", "conform", ")"]
    assert answer[5:9] == ["(", "status", "available", ")"]
    assert answer[9:11] == ["(", "species"]


def test_lines_that_end_as_java_ends_them(port: int) -> None:
    """The Java managers write with println: a bare line feed on Unix, and one more behind the body."""
    sent = request("( INFO )").replace(b"\r\n", b"\n") + b"\n"
    answer = exchange(port, sent)
    assert answer.startswith(b"HTTP/1.0 200 OK")
    assert b"available" in answer


@pytest.mark.parametrize("form", ["( PREVIEW ( {} ) 5 )", "(preview ({}) 5 extra (things))", "( PREVIEW ( {} ) )"])
def test_preview(port: int, form: str) -> None:
    """One without a clock has no time at all: `ready` comes before the rules are."""
    assert say(port, form.format(rules("connect3"))) == "ready"


def test_preview_of_rules_that_are_none(port: int) -> None:
    assert say(port, "( PREVIEW ( (role robot) (<= p (not p)) ) 10 )") == "nil"


def test_a_match_from_its_start_to_its_end(port: int) -> None:
    match = started(port)
    first = say(port, f"( PLAY {match} NIL )")
    assert LEGAL.fullmatch(first)
    other = "(mark 1 1)" if first != "(mark 1 1)" else "(mark 3 3)"
    assert say(port, f"( PLAY {match} ( {first} noop ) )") == "noop"
    second = say(port, f"( PLAY {match} ( noop {other} ) )")
    assert LEGAL.fullmatch(second)
    assert second not in (first, other)
    assert say(port, f"( STOP {match} ( {second} noop ) )") == "done"
    assert say(port, f"( STOP {match} ( {second} noop ) )") == "done"
    assert say(port, f"( PLAY {match} ( noop {other} ) )") == "busy"


def test_everything_in_upper_case(port: int) -> None:
    match = next(ids)
    text = f"( start {match} xplayer ( {rules('tictactoe')} ) 5 5 )".upper()
    assert say(port, text) == "ready"
    first = say(port, f"( PLAY {match} NIL )".upper())
    assert LEGAL.fullmatch(first.lower())
    free = "(MARK 2 1)" if first.lower() != "(mark 2 1)" else "(MARK 2 3)"
    assert say(port, f"( PLAY {match} ( {first} NOOP ) )".upper()).lower() == "noop"
    assert LEGAL.fullmatch(say(port, f"( PLAY {match} ( NOOP {free} ) )".upper()).lower())
    assert say(port, f"( ABORT {match} )".upper()) == "aborted"


def test_lower_case_out_and_upper_case_back(port: int) -> None:
    match = started(port)
    first = say(port, f"(play {match} nil)")
    assert say(port, f"(play {match} ({first.upper()} NOOP))").lower() == "noop"
    assert say(port, f"(stop {match} (NOOP (MARK 9 9)))") == "done"


def test_white_space_does_not_matter(port: int) -> None:
    match = next(ids)
    sheet = rules("tictactoe").replace(") (", ")\r\n\t(")
    assert say(port, f"(\n START\t{match}\r\n xplayer (\n{sheet}\n)  5\n5)\n\n") == "ready"
    first = say(port, f"(PLAY   {match}\tNIL)")
    spread = first.replace("(", "(  ").replace(")", " ) ")
    assert say(port, f"( PLAY {match} ({spread}\tnoop))") == "noop"


def test_scrambled_names(port: int) -> None:
    names = {"xplayer": "blorp", "oplayer": "quux", "mark": "zap", "noop": "wub", "cell": "fizz", "control": "gorm"}
    text = rules("tictactoe")
    for name, other in names.items():
        text = re.sub(rf"(?<![\w?]){name}(?!\w)", other, text)
    match = next(ids)
    assert say(port, f"( START {match} blorp ( {text} ) 5 5 )") == "ready"
    first = say(port, f"( PLAY {match} NIL )")
    assert re.fullmatch(r"\(zap [123] [123]\)", first)
    assert say(port, f"( PLAY {match} ( {first} wub ) )") == "wub"


def test_clocks_of_zero(port: int) -> None:
    match = started(port, startclock=0, playclock=0)
    answers = {say(port, f"( PLAY {match} NIL )") for _ in range(3)}
    assert len(answers) == 1  # a message that comes again is the same turn
    (answer,) = answers
    assert answer == "nil" or LEGAL.fullmatch(answer)


def test_arguments_that_nobody_asked_for(port: int) -> None:
    match = next(ids)
    assert say(port, f"( START {match} xplayer ( {rules('tictactoe')} ) 5 5 extra (more things) )") == "ready"
    assert LEGAL.fullmatch(say(port, f"( PLAY {match} NIL extra )"))
    assert say(port, f"( ABORT {match} because (of this) )") == "aborted"
    assert say(port, f"( ABORT {match} )") == "aborted"


def test_a_start_that_comes_again_changes_nothing(port: int) -> None:
    match = started(port)
    first = say(port, f"( PLAY {match} NIL )")
    assert say(port, f"( START {match} xplayer ( {rules('tictactoe')} ) 5 5 )") == "ready"
    assert say(port, f"( PLAY {match} ( {first} noop ) )") == "noop"


@pytest.mark.parametrize("message", ["( PLAY {} NIL )", "( STOP {} ( noop noop ) )", "( ABORT {} )"])
def test_unknown_matches(port: int, message: str) -> None:
    assert say(port, message.format("never.heard.of")) == "busy"


def test_a_second_match_is_busy_where_one_is_allowed(open_port: int) -> None:
    match = started(open_port)
    assert "( status busy )" in say(open_port, "( INFO )")
    assert say(open_port, f"( START other xplayer ( {rules('tictactoe')} ) 5 5 )") == "busy"
    assert say(open_port, f"( PREVIEW ( {rules('tictactoe')} ) 5 )") == "busy"
    assert say(open_port, f"( ABORT {match} )") == "aborted"
    assert say(open_port, f"( START other xplayer ( {rules('tictactoe')} ) 5 5 )") == "ready"
    assert say(open_port, "( ABORT other )") == "aborted"


REASONED = """(role robot) (init (n z)) (<= (legal robot (go ?x)) (true (n ?x))) (<= (next (n (s ?x))) (true (n ?x)))
    (<= terminal (true (n (s (s z))))) (goal robot 50)"""


def test_a_game_that_only_the_reasoner_plays(open_port: int) -> None:
    """Its terms have no bound, so it cannot be ground."""
    match = next(ids)
    assert say(open_port, f"( START {match} robot ( {REASONED} ) 30 5 )") == "ready"
    assert say(open_port, f"( PLAY {match} NIL )") == "(go z)"
    assert say(open_port, f"( PLAY {match} ( (go z) ) )") == "(go (s z))"
    assert say(open_port, f"( STOP {match} ( (go (s z)) ) )") == "done"


@pytest.mark.parametrize("head", ["GET /( INFO ) HTTP/1.0", "GET /%28%20INFO%20%29 HTTP/1.0", "GET / HTTP/1.0"])
def test_messages_by_get_are_off(port: int, head: str) -> None:
    assert status_of(port, f"{head}\r\n\r\n".encode()) >= 400


def test_messages_by_get_and_browsers_where_switched_on(open_port: int) -> None:
    answer = exchange(open_port, b"GET /%28%20INFO%20%29 HTTP/1.0\r\nOrigin: http://example.org\r\n\r\n")
    assert answer.startswith(b"HTTP/1.0 200")
    assert b"access-control-allow-origin" in answer.lower()
    assert b"species" in answer
    options = exchange(open_port, b"OPTIONS / HTTP/1.0\r\nOrigin: http://example.org\r\n\r\n")
    assert options.split(b" ")[1] == b"200"
    assert options.endswith(b"\r\n\r\n")
    assert b"access-control-allow-methods" in options.lower()


def test_options_get_an_empty_reply_without_leave(port: int) -> None:
    answer = exchange(port, b"OPTIONS / HTTP/1.0\r\n\r\n")
    assert answer.endswith(b"\r\n\r\n")
    assert b"access-control" not in answer.lower()


def test_a_web_page_does_not_drive_a_player(port: int) -> None:
    message = "( INFO )"
    assert status_of(port, request(message, "Origin: http://example.org")) == 403
    assert status_of(port, request(message, "Origin: null")) == 403
    assert status_of(port, request(message, "Sec-Fetch-Site: cross-site")) == 403
    assert status_of(port, request(message, "Host: example.org")) == 403
    assert status_of(port, request(message, f"Host: example.org:{port}")) == 403
    assert status_of(port, request(message, f"Host: 127.0.0.1:{port}")) == 200
    assert status_of(port, request(message, f"Host: localhost:{port}")) == 200


def test_lengths_that_count_characters(port: int) -> None:
    match = started(port)
    body = f"( PLAY {match} ; caf\u00e9\n NIL )"
    length = f"Content-Length: {len(body.encode())}".encode()
    sent = request(body).replace(length, f"Content-Length: {len(body)}".encode())
    assert status_of(port, sent) == 400
    assert LEGAL.fullmatch(say(port, f"( PLAY {match} NIL )"))


# the host's end


def hosted(folder: Path, player: Scripted) -> tuple[PlayerInfo | Exception, Standing]:
    """What a host hears of a player of tic-tac-toe, and how that does against one that makes its last legal move."""
    path = folder / "last.py"
    path.write_text(LAST, encoding="utf-8")

    async def play() -> tuple[PlayerInfo | Exception, Standing]:
        players = [player.url, f"{path}:Last"]
        async with HostedSeries(load("tictactoe"), players, HostSettings(startclock=3, playclock=4)) as series:
            (who,) = (await series.ask_who()).values()
            return who, (await series.run(1))[0]

    return asyncio.run(play())


LAST = """
from gamelore.players.player import Player


class Last(Player):
    def choose(self, turn):
        return turn.graph.num_moves[turn.rows, turn.role] - 1
"""


def test_what_a_host_sends(tmp_path: Path) -> None:
    moves = iter(("(mark 1 1)", "noop", "(mark 1 2)", "noop", "(mark 1 3)"))

    def answer(body: str) -> bytes:
        kind = words(body)[1].lower()
        return reply({"info": INFO, "start": "ready", "stop": "done"}.get(kind) or next(moves))

    with Scripted(answer) as player:
        who, standing = hosted(tmp_path, player)
    assert who == PlayerInfo("scripted", "available", "robot")
    assert standing.goals == (100,)
    match = words(player.bodies[1])[2]
    assert player.bodies == [
        "( INFO )",
        f"( START {match} xplayer ( {rules('tictactoe')} ) 3 4 )",
        f"( PLAY {match} NIL )",
        f"( PLAY {match} ( (mark 1 1) noop ) )",
        f"( PLAY {match} ( noop (mark 3 3) ) )",
        f"( PLAY {match} ( (mark 1 2) noop ) )",
        f"( PLAY {match} ( noop (mark 3 2) ) )",
        f"( STOP {match} ( (mark 1 3) noop ) )",
    ]
    for sent, receiver in zip(player.requests, ["", *["scripted"] * 7], strict=True):
        head, _, body = sent.partition(b"\r\n\r\n")
        first, *lines = head.decode("ascii").split("\r\n")
        found = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        assert first == "POST / HTTP/1.0"
        assert found["accept"] == "text/delim"
        assert found["sender"] == "GAMESERVER"
        assert found["receiver"] == receiver
        assert found["content-type"] == "text/acl"
        assert int(found["content-length"]) == len(body)


INFO = "( ( name scripted ) ( status available ) ( species robot ) )"

DIALECTS = {
    "explained": lambda move: reply(f'{move} (explanation "because") (taunt "ha")'),
    "upper case": lambda move: reply(move.upper()),
    "spaces": lambda move: reply(f"\r\n  {move.replace(' ', '   ')}  \r\n"),
    "without a length": lambda move: b"HTTP/1.0 200 OK\r\nContent-type: text/acl\r\n\r\n" + move.encode(),
    "lines as Java ends them": lambda move: reply(move).replace(b"\r\n", b"\n"),
    "HTTP/1.1": lambda move: reply(move, "Connection: close").replace(b"HTTP/1.0", b"HTTP/1.1"),
    "CORS": lambda move: reply(move, "Access-Control-Allow-Origin: *"),
    "other type": lambda move: reply(move).replace(b"text/acl", b"text/html; charset=utf-8"),
}
STATUS = {"other type": INFO, "spaces": "ready", "CORS": "( ( STATUS READY ) )"}  # "available" by itself in the others


@pytest.mark.parametrize("dialect", DIALECTS)
def test_replies_in_every_dialect(tmp_path: Path, dialect: str) -> None:
    squares = iter(f"(mark {row} {column})" for row in (1, 2, 3) for column in (1, 2, 3))

    def answer(body: str) -> bytes:
        kind = words(body)[1].lower()
        if kind != "play":
            return DIALECTS[dialect]({"info": STATUS.get(dialect, "available"), "start": "ready", "stop": "done"}[kind])
        is_mine = body.split()[3] == "NIL" or " noop (" in body
        return DIALECTS[dialect](next(squares) if is_mine else "noop")

    with Scripted(answer) as player:
        who, standing = hosted(tmp_path, player)
    assert isinstance(who, PlayerInfo)
    assert who.is_free
    assert standing.errors == {}
    assert standing.goals == (100,)
