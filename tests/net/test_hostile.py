"""Bad input from the network: every message gets a reply or a closed connection, and the next good one works."""

from __future__ import annotations

import random
import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import count

import pytest

from processes import descendants, resident
from wire import request, rules, say, served, status_of, words

pytestmark = pytest.mark.xdist_group("hostile")  # so that each of its servers starts once

MEMORY = 1500 << 20  # bytes for each worker
SERVER_MEMORY = 400 << 20  # resident, of the process that listens; of this about 100 MB are its imports
NUM_MUTANTS = 150
AT_ONCE = 2  # matches
ids = map("hostile.{}".format, count())

CHUNKED = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"

FRAME = """(role robot) (<= (legal robot go)) (init (at 0)) (<= (next (at ?x)) (true (at ?x)))
    (<= terminal (true (at 99))) (goal robot 50)"""


def exploding() -> dict[str, str]:
    """Rulesheets that pass for games and cannot be ground, or hardly."""
    digits = " ".join(f"(digit {i})" for i in range(100))
    variables = " ".join(f"?{name}" for name in "abcdefgh")
    all_digits = " ".join(f"(digit ?{name})" for name in "abcdefgh")
    return {
        "ten to the sixteen instances": f"{FRAME} {digits} (<= (big {variables}) {all_digits}) "
        f"(<= (next (seen {variables})) (big {variables}) (does robot go))",
        "terms that grow": f"{FRAME} (number z) (<= (number (s ?x)) (number ?x)) (<= (legal robot ?x) (number ?x))",
        "facts that grow": f"{FRAME} (init (n z)) (<= (next (n (s ?x))) (true (n ?x)))"
        " (<= (legal robot ?x) (true (n ?x)))",
        "a hundred to the eighth moves": f"{FRAME} {digits} (<= (legal robot (m {variables})) {all_digits})",
        "a binary counter of terms": f"{FRAME} (p (b 0 0)) (<= (p (b ?x ?x)) (p ?x)) (<= (legal robot ?x) (p ?x))",
    }


def broken() -> dict[str, str]:
    """Rulesheets that are none."""
    return {
        "empty": "",
        "no role": "(init (at 0))",
        "unsafe": f"{FRAME} (<= (legal robot ?x) (not (true (at ?x))))",
        "negation in a cycle": f"{FRAME} (<= p (not p)) (<= (legal robot p) p)",
        "arities": f"{FRAME} (true a b c) (next) (does robot)",
        "a rule in a rule": f"{FRAME} (<= (<= p q) r)",
        "variables for names": "(<= (?x ?y) (?z))",
        "nested": f"{FRAME} (init " + "(f " * 5000 + "a" + ")" * 5000 + ")",
        "long names": f"{FRAME} (init (at {'a' * 200_000}))",
        "many arguments": f"{FRAME} (init (at {' '.join(map(str, range(50_000)))}))",
        "many roles": " ".join(f"(role r{i})" for i in range(5000)),
        "paths and shells": f"{FRAME} (init ../../etc/passwd) (init $(reboot)) (init `id`) (init a|b)",
    }


def start(text: str, match: str = "") -> bytes:
    """A message that starts a match by these rules."""
    return f"( START {match or next(ids)} robot ( {text} ) 10 1 )".encode()


def messages() -> dict[str, bytes]:
    """Bodies of requests. Those that start a match leave time to look at its rules, and are answered before."""
    sheet = rules("tictactoe")
    made = {
        "nothing": b"",
        "space": b"   \r\n",
        "no message": b"hello",
        "unknown": b"( LAUNCH missiles )",
        "unclosed": b"( PLAY",
        "unopened": b"PLAY m NIL )",
        "two messages": b"( INFO ) ( INFO )",
        "null bytes": b"( PL\0AY m NIL )",
        "only null bytes": b"\0" * 1000,
        "non-ASCII": "( PLAY \u00fcber NIL )".encode(),
        "latin-1": "( PLAY \u00fcber NIL )".encode("latin-1"),
        "not unicode": b"( PLAY \xff\xfe NIL )",
        "wide": "( PLAY m NIL )".encode("utf-16"),
        "nested": b"(" * 100_000,
        "nested and closed": b"(" * 100_000 + b")" * 100_000,
        "nested play": b"( PLAY m ( " + b"(a " * 20_000 + b")" * 20_000 + b" ) )",
        "long id": b"( PLAY " + b"m" * 500_000 + b" NIL )",
        "id of a path": b"( PLAY ../../../../tmp/x NIL )",
        "id of a list": b"( PLAY (a b) NIL )",
        "no clocks": f"( START m xplayer ( {sheet} ) )".encode(),
        "negative clocks": f"( START m xplayer ( {sheet} ) -1 -5 )".encode(),
        "clocks of words": f"( START m xplayer ( {sheet} ) soon later )".encode(),
        "endless clocks": f"( START m xplayer ( {sheet} ) {'9' * 400} 1 )".encode(),
        "no rules": b"( START m xplayer 1 1 )",
        "no such role": f"( START m zplayer ( {sheet} ) 1 1 )".encode(),
        "too large": b"( PREVIEW ( " + b"(role r) " * 2_000_000 + b") 1 )",
        "play without moves": b"( PLAY m )",
        "stop without all": b"( STOP )",
        "an escape sequence": b"( PLAY \x1b]0;owned\x07 NIL )",
        "an html page": b"<script>alert(1)</script>",
        "a json message": b'{"method": "info"}',
    }
    made |= {f"rules: {name}": start(text) for name, text in broken().items()}
    return made | mutants(sheet)


def mutants(sheet: str) -> dict[str, bytes]:
    """Good messages with bytes changed, left out, doubled and put elsewhere."""
    draw = random.Random(5)
    good = [
        "( INFO )",
        "( PLAY conf ( (mark 1 1) noop ) )",
        "( STOP conf ( noop (mark 2 2) ) )",
        "( ABORT conf )",
        f"( START conf xplayer ( {sheet} ) 10 1 )",
        f"( PREVIEW ( {sheet} ) 10 )",
    ]
    made = {}
    for number in range(NUM_MUTANTS):
        text = bytearray(good[number % len(good)].encode())
        for _ in range(draw.randint(1, 8)):
            at = draw.randrange(len(text))
            match draw.randrange(4):
                case 0:
                    text[at] = draw.randrange(256)
                case 1:
                    del text[at : at + draw.randint(1, 20)]
                case 2:
                    text[at:at] = text[at : at + draw.randint(1, 200)]
                case 3:
                    text[at:at] = draw.choice([b"(", b")", b";", b"?", b"<=", b"\0", b"\xc3\xa9", b"not", b"NIL"])
            text = text or bytearray(b"(")
        made[f"mutant {number}"] = bytes(text)
    return made


def raw_requests() -> dict[str, bytes]:
    """What is no proper HTTP request."""
    good = request("( INFO )")
    return {
        "no HTTP": b"( INFO )\r\n\r\n",
        "garbage": bytes(range(256)) * 20,
        "a TLS hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 500 + b"\r\n\r\n",
        "an endless line": b"POST /" + b"a" * 300_000 + b" HTTP/1.0\r\n\r\n",
        "endless headers": b"POST / HTTP/1.0\r\n" + b"X: y\r\n" * 50_000 + b"\r\n",
        "a long header": b"POST / HTTP/1.0\r\nX: " + b"y" * 300_000 + b"\r\n\r\n",
        "a negative length": good.replace(b"Content-Length: 8", b"Content-Length: -8"),
        "a length of words": good.replace(b"Content-Length: 8", b"Content-Length: eight"),
        "a length too large for any": good.replace(b"Content-Length: 8", b"Content-Length: 99999999999999"),
        "two lengths": good.replace(b"Content-Length: 8", b"Content-Length: 8\r\nContent-Length: 4"),
        "another method": good.replace(b"POST", b"DELETE"),
        "no method": good.replace(b"POST ", b""),
        "an expectation": good.replace(b"Content-Length", b"Expect: 100-continue\r\nContent-Length"),
        "an upgrade": good.replace(b"Content-Length", b"Connection: upgrade\r\nUpgrade: h2c\r\nContent-Length"),
        "null bytes in the head": good.replace(b"Accept", b"Acc\0ept"),
        "bad chunks": CHUNKED + b"zz\r\n( INFO )\r\n0\r\n\r\n",
        "packed": good.replace(b"Content-Length", b"Content-Encoding: gzip\r\nContent-Length"),
    }


@pytest.fixture(scope="module")
def player(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, int]]:
    """(process id, port) of a learning player with small limits."""
    store = tmp_path_factory.mktemp("hostile") / "knowledge.db"
    limits = ("--memory", f"{MEMORY >> 20}M", "--prepare-seconds", 2, "--matches-at-once", AT_ONCE, "--patience", 2)
    with served("--player", "baseline", "--knowledge", store, *limits) as (process, port):
        yield process.pid, port


def check(player: tuple[int, int]) -> None:
    """The server answers the next good message, and is not too large, nor are its workers."""
    pid, port = player
    assert "species" in say(port, "( INFO )")
    workers = [child.pid for child in descendants(pid)]
    assert resident(pid) < SERVER_MEMORY
    assert all(resident(worker) < MEMORY for worker in workers)


def free(port: int, body: bytes) -> None:
    """Aborts the match that a message may have started, for this player takes few at a time."""
    if b"start" in body[:100].lower():
        for word in words(body.decode("latin-1"))[1:5]:
            status_of(port, request(f"( ABORT {word} )"))


def test_there_are_enough_of_them() -> None:
    assert len(messages()) + len(raw_requests()) + len(exploding()) >= 200


def test_rules_made_to_explode_cost_their_match_only(player: tuple[int, int]) -> None:
    port = player[1]
    with ThreadPoolExecutor(AT_ONCE) as hosts:
        exploded = [hosts.submit(explode, port, text, match) for match, text in enumerate(exploding().values())]
        while not all(one.done() for one in exploded):
            check(player)
            wait(exploded, 0.2)
    outcomes = dict(zip(exploding(), (one.result() for one in exploded), strict=True))
    assert outcomes.pop("facts that grow") in ("nil", "go")  # the reasoner can play it, if it is there in time
    assert set(outcomes.values()) == {"nil"}
    check(player)


def explode(port: int, text: str, match: int) -> str:
    """What comes of a match by such rules: the first move, if the player can play at all."""
    reply = say(port, f"( START explosion.{match} robot ( {text} ) 30 5 )")
    if reply == "ready":
        reply = say(port, f"( PLAY explosion.{match} NIL )")
        assert say(port, f"( ABORT explosion.{match} )") == "aborted"
    return reply


def test_hostile_messages(player: tuple[int, int]) -> None:
    for number, (name, body) in enumerate(messages().items()):
        assert status_of(player[1], request(body)) in (0, 200, 400, 413), name
        free(player[1], body)
        if number % 10 == 0:
            check(player)
    check(player)
    assert "available" in say(player[1], "( INFO )")


@pytest.mark.parametrize("name", raw_requests())
def test_hostile_requests(player: tuple[int, int], name: str) -> None:
    with socket.create_connection(("127.0.0.1", player[1]), 30) as connection:
        try:
            connection.sendall(raw_requests()[name])
            connection.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        except ConnectionError:
            answer = b""
    assert not answer or answer.startswith(b"HTTP/")
    check(player)


def test_a_good_match_after_all_that(player: tuple[int, int]) -> None:
    port = player[1]
    match = next(ids)
    assert say(port, f"( START {match} xplayer ( {rules('tictactoe')} ) 10 10 )") == "ready"
    first = say(port, f"( PLAY {match} NIL )")
    assert re.fullmatch(r"\(mark [123] [123]\)", first)
    assert say(port, f"( PLAY {match} ( {first} noop ) )") == "noop"
    assert say(port, f"( ABORT {match} )") == "aborted"


def test_silent_and_slow_connections_are_dropped(player: tuple[int, int]) -> None:
    port = player[1]
    silent = socket.create_connection(("127.0.0.1", port), 30)
    slow = socket.create_connection(("127.0.0.1", port), 30)
    slow.sendall(b"POST / HTTP/1.0\r\nContent-Length: 100\r\n\r\n( IN")
    check(player)
    for connection in (silent, slow):
        with connection:
            assert dropped(connection)
    check(player)


def dropped(connection: socket.socket) -> bool:
    """Whether the other side ends the connection, by and by."""
    try:
        while connection.recv(65536):
            pass
    except ConnectionError:
        pass
    except TimeoutError:
        return False
    return True
