"""Both ends of HTTP on real sockets: what is taken, what is refused, and that the next good message always works."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import TypeVar

import pytest

from gamelore.errors import GameloreError, ProtocolError
from gamelore.net import http
from gamelore.net.http import MOST_REPLY, Client, WebLimits, listen
from wire import PATIENCE

T = TypeVar("T")
PATIENT = WebLimits()
GOOD = b"POST / HTTP/1.0\r\nContent-Length: 8\r\n\r\n( INFO )"


async def echo(text: str) -> str:
    if text == "refuse":
        raise ProtocolError("expected something else")
    if text == "break":
        raise OSError("the disk is full")
    return f"got {text}"


async def exchange(port: int, sent: bytes, *, is_end: bool = False) -> bytes:
    """All that comes back; the sending side stays open unless it `is_end`."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    if is_end:
        writer.write_eof()
    try:
        return await reader.read()
    finally:
        writer.transport.abort()


def listening(
    scenario: Callable[[int], Awaitable[T]],
    limits: WebLimits = PATIENT,
    *,
    answer: Callable[[str], Awaitable[str]] = echo,
    address: str = "127.0.0.1",
) -> T:
    """What comes out of a scenario with the port of a listener, which must answer a good message afterwards."""

    async def play() -> T:
        async with listen(answer, address, limits=limits) as port:
            result = await scenario(port)
            reply = await exchange(port, GOOD)
            while limits.seconds < 1 and reply.startswith(b"HTTP/1.0 408 "):  # the machine is slow
                reply = await exchange(port, GOOD)
            assert reply.startswith(b"HTTP/1.0 200 OK\r\n")
            return result

    return asyncio.run(asyncio.wait_for(play(), PATIENCE))


def replied(sent: bytes, limits: WebLimits = PATIENT, *, is_end: bool = False, address: str = "127.0.0.1") -> bytes:
    return listening(lambda port: exchange(port, sent, is_end=is_end), limits, address=address)


def status(sent: bytes, limits: WebLimits = PATIENT, *, is_end: bool = False, address: str = "127.0.0.1") -> int:
    """The status of the reply to some bytes, 0 where there is none."""
    reply = replied(sent, limits, is_end=is_end, address=address)
    return int(reply.split()[1]) if reply else 0


def message(*fields: str, body: bytes = b"( INFO )", first: str = "POST / HTTP/1.0") -> bytes:
    return "\r\n".join([first, *fields, f"Content-Length: {len(body)}", "", ""]).encode("latin-1") + body


def test_a_message_and_its_reply():
    assert replied(GOOD) == (
        b"HTTP/1.0 200 OK\r\nContent-type: text/acl\r\nContent-length: 12\r\nConnection: close\r\n\r\ngot ( INFO )"
    )


TAKEN = {
    "as the field's managers send it": message("Accept: text/delim", "Sender: GAMESERVER", "Receiver: x"),
    "bare line feeds": GOOD.replace(b"\r\n", b"\n"),
    "a line feed behind the body": GOOD + b"\r\n",
    "a line feed before the head": b"\r\n\n" + GOOD,
    "upper case": GOOD.replace(b"Content-Length", b"CONTENT-LENGTH"),
    "lower case": GOOD.replace(b"Content-Length", b"content-length").replace(b"POST", b"post"),
    "no space behind the colon": GOOD.replace(b": ", b":"),
    "a space before the colon": GOOD.replace(b": ", b" : "),
    "HTTP/1.1 without a host": GOOD.replace(b"1.0", b"1.1"),
    "another path": GOOD.replace(b"POST /", b"POST /any/path?at=all"),
    "a whole address": GOOD.replace(b"POST /", b"POST http://127.0.0.1/"),
    "another type": message("Content-Type: application/json"),
    "an empty field": message("Receiver:", "Sender: "),
    "a field that is none": message("Receiver"),
    "a field of a name in UTF-8": message("Receiver: M\u00c3\u00bc"),
    "garbage behind it": GOOD + b"\0\xff" * 1000,
    "another message behind it": GOOD + GOOD,
}


@pytest.mark.parametrize("what", TAKEN)
def test_what_is_taken(what: str):
    assert replied(TAKEN[what]).endswith(b"\r\n\r\ngot ( INFO )")


REFUSED = {
    "no head": (b"( INFO )\r\n\r\n", 400),
    "HTTP/0.9": (b"POST /\r\nContent-Length: 8\r\n\r\n( INFO )", 400),
    "garbage": (bytes(range(256)) + b"\r\n\r\n", 400),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\n\n", 400),
    "a long line": (b"POST /" + b"a" * 100_000 + b" HTTP/1.0\r\n\r\n", 431),
    "a line without an end": (b"POST /" + b"a" * 100_000, 431),
    "many fields": (b"POST / HTTP/1.0\r\n" + b"X: y\r\n" * 10_000 + b"\r\n", 431),
    "empty lines only": (b"\n" * 100_000, 431),
    "no length": (GOOD.replace(b"Content-Length", b"Content-Size"), 411),
    "a negative length": (GOOD.replace(b": 8", b": -8"), 411),
    "a length that is no number": (GOOD.replace(b": 8", b": eight"), 411),
    "a length in other digits": (GOOD.replace(b": 8", ": \u0668".encode()), 411),
    "two lengths": (message("Content-Length: 4"), 411),
    "in pieces": (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n( INFO )\r\n0\r\n\r\n", 411),
    "in pieces, with a length": (message("Transfer-Encoding: chunked"), 411),
    "nothing": (message(body=b""), 400),
    "too large": (message(body=b"a" * 1_000_000)[:500_000], 413),
    "too large for any": (GOOD.replace(b": 8", b": 999999999999"), 413),
    "GET": (b"GET /(%20INFO%20) HTTP/1.0\r\n\r\n", 405),
    "HEAD": (GOOD.replace(b"POST", b"HEAD"), 405),
    "DELETE": (GOOD.replace(b"POST", b"DELETE"), 405),
    "no message of ours": (message(body=b"refuse"), 400),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused(what: str):
    sent, expected = REFUSED[what]
    assert status(sent, WebLimits(body=400_000)) == expected


@pytest.mark.parametrize("end", ["\n", "\r\n", " \r\n"])
def test_a_message_that_comes_byte_by_byte(end: str):
    sent = end.join(["", "POST / HTTP/1.0", "Content-Length: 10", "X:y", "", "\n( INFO )\n"]).encode()

    async def dribble(port: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for number in range(len(sent)):
            writer.write(sent[number : number + 1])
            await asyncio.sleep(0)
        try:
            return await reader.read()
        finally:
            writer.transport.abort()

    assert listening(dribble).endswith(b"\r\n\r\ngot \n( INFO )\n")


def test_a_length_that_is_too_short_cuts_the_message():
    assert replied(GOOD.replace(b": 8", b": 4")).endswith(b"\r\n\r\ngot ( IN")


def test_a_length_in_characters_cuts_bytes():
    body = "( PLAY caf\u00e9 NIL )"
    sent = f"POST / HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
    assert replied(sent).endswith(b"\r\n\r\ngot ( PLAY caf? NIL ")


def test_a_length_that_is_too_long_is_waited_for_in_vain():
    too_long = GOOD.replace(b": 8", b": 9")
    assert status(too_long, WebLimits(seconds=0.05)) == 408
    assert status(too_long, is_end=True) == 400


def test_bytes_that_are_no_text_do_no_harm():
    body = bytes(range(256))
    assert replied(message(body=body)).split(b"\r\n\r\n", 1)[1].startswith(b"got \0\x01\x02")


def test_a_client_that_asks_first_is_told_to_go_on():
    reply = replied(message("Expect: 100-continue", first="POST / HTTP/1.1"))
    assert reply.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 200 OK\r\n")


def test_the_words_of_a_refusal_are_the_reply():
    assert replied(message(body=b"refuse")).endswith(b"\r\n\r\nexpected something else\n")


def test_an_error_inside_is_told_to_the_log_only(caplog: pytest.LogCaptureFixture):
    reply = replied(message(body=b"break"))
    assert reply.startswith(b"HTTP/1.0 500 ")
    assert b"disk" not in reply
    assert "the disk is full" in caplog.text


def test_logs_hold_no_control_characters(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    assert status(message("Host: a\x1b[31m\u0085b")) == 403
    assert status(b"\x1b]0;owned\x07\n\n") == 400
    lines = [record.getMessage() for record in caplog.records if record.name == "gamelore.net.http"]
    assert len(lines) == 2
    assert all(line.isprintable() for line in lines)


# messages by GET, and browsers


def test_messages_by_get_where_they_are_allowed():
    limits = WebLimits(is_get_allowed=True)
    for target in ("( INFO )", "(%20INFO%20)", "%28+INFO+%29"):
        assert replied(f"GET /{target} HTTP/1.0\r\n\r\n".encode(), limits).endswith(b"\r\n\r\ngot ( INFO )")
    assert status(b"GET /%ff%00 HTTP/1.0\r\n\r\n", limits) == 200
    assert status(b"GET / HTTP/1.0\r\nOrigin: http://example.org\r\n\r\n", limits) == 403


def test_options_get_an_empty_reply():
    reply = replied(b"OPTIONS / HTTP/1.1\r\nOrigin: http://example.org\r\n\r\n")
    assert reply.startswith(b"HTTP/1.0 200 OK\r\n")
    assert reply.endswith(b"\r\n\r\n")
    assert b"Access-Control" not in reply


def test_pages_where_they_are_allowed():
    limits = WebLimits(is_cors_allowed=True)
    for sent in (b"OPTIONS / HTTP/1.1\r\nOrigin: null\r\n\r\n", message("Origin: null", "Sec-Fetch-Site: cross-site")):
        reply = replied(sent, limits)
        assert reply.startswith(b"HTTP/1.0 200 OK\r\n")
        assert b"\r\nAccess-Control-Allow-Origin: *\r\n" in reply
    assert status(message("Origin: null", "Host: example.org"), limits) == 403


@pytest.mark.parametrize(
    "field",
    [
        "Origin: http://example.org",
        "ORIGIN: null",
        "origin:",
        "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: same-site",
        "User-Agent: Mozilla/4.0 (compatible; MSIE 6.0)\r\nContent-Type: text/plain",
        "User-Agent: Opera/9.80\r\nContent-Type: Multipart/Form-Data; boundary=x",
        "Host: example.org",
        "Host: example.org:80",
        "Host: 127.0.0.1.example.org",
        "Host: localhost.example.org",
        "Host: example.org#localhost",
        "Host: localhost@example.org",
        "Host: 10.0.0.1",
        "Host: 0.0.0.0",
        "Host: [::2]",
        "Host: [localhost",
        "Host: 127.1",
        "Host: localhost, example.org",
        "Host: localhost\r\nHost: example.org",
    ],
)
def test_pages_are_refused(field: str):
    assert status(message(field)) == 403


@pytest.mark.parametrize(
    "field",
    [
        "Host: localhost",
        "Host: LOCALHOST:9147",
        "Host: localhost.",
        "Host: 127.0.0.1:9147",
        "Host: 127.0.0.2",
        "Host: [::1]:9147",
        "Host:",
        "Sec-Fetch-Site: none",
        "User-Agent: curl/8.5.0\r\nContent-Type: application/x-www-form-urlencoded",
        "User-Agent: Mozilla/5.0\r\nContent-Type: text/acl",
    ],
)
def test_own_names_are_taken(field: str):
    assert status(message(field)) == 200


def test_names_that_were_allowed():
    limits = WebLimits(hosts=("Player.Example.org",))
    assert status(message("Host: player.example.org:9147"), limits) == 200
    assert status(message("Host: example.org"), limits) == 403


def test_numbers_are_names_where_all_addresses_are_listened_on():
    assert status(message("Host: 192.168.1.7:9147"), address="0.0.0.0") == 200
    assert status(message("Host: example.org"), address="0.0.0.0") == 403


# clients that keep us waiting


def test_silent_and_dribbling_clients_are_dropped():
    async def wait(port: int) -> tuple[bytes, bytes]:
        async def dribble() -> bytes:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                while not reader.at_eof():
                    writer.write(b"a")
                    await asyncio.sleep(0.01)
                    if reader._buffer:  # type: ignore[attr-defined]
                        break
                return await reader.readline()
            finally:
                writer.transport.abort()

        return await exchange(port, b""), await dribble()

    silent, dribbled = listening(wait, WebLimits(seconds=0.1))
    assert silent.startswith(b"HTTP/1.0 408 ")
    assert dribbled.startswith(b"HTTP/1.0 408 ")


def test_a_client_that_does_not_take_its_reply_is_dropped(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(http, "LINGER", 0.1)
    caplog.set_level(logging.DEBUG, http.__name__)

    async def endless(text: str) -> str:
        return "a" * 50_000_000 if text == "endless" else "short"

    async def leave_lying(port: int) -> bool:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(message(body=b"endless"))
        writer.transport.pause_reading()
        while "was lost" not in caplog.text:
            await asyncio.sleep(0.01)
        writer.transport.resume_reading()
        try:
            return len(await reader.read()) < 50_000_000
        except ConnectionError:
            return True
        finally:
            writer.transport.abort()

    assert listening(leave_lying, answer=endless)


def test_beyond_the_limit_of_connections_the_oldest_has_to_go():
    async def crowd(port: int) -> int:
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(20)]
        for _ in range(10):
            assert b"200 OK" in await exchange(port, GOOD)
        ended = 0
        for reader, writer in silent:
            ended += reader.at_eof()
            writer.transport.abort()
        return ended

    assert listening(crowd, WebLimits(connections=5)) >= 15


def test_too_many_messages_at_once():
    is_full, is_enough = asyncio.Event(), asyncio.Event()
    asked: list[str] = []

    async def slow(text: str) -> str:
        if text == "slow":
            asked.append(text)
            if len(asked) == 4:
                is_full.set()
            await is_enough.wait()
        return text

    async def crowd(port: int) -> tuple[list[bytes], list[bytes]]:
        first = [asyncio.create_task(exchange(port, message(body=b"slow"))) for _ in range(4)]
        await is_full.wait()
        refused = [await exchange(port, GOOD) for _ in range(6)]
        is_enough.set()
        return [await task for task in first], refused

    answered, refused = listening(crowd, WebLimits(connections=4), answer=slow)
    assert all(reply.endswith(b"\r\n\r\nslow") for reply in answered)
    assert all(reply.startswith(b"HTTP/1.0 503 ") for reply in refused)


def test_where_no_more_connections_can_be_opened_they_wait(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(http, "PAUSE", 0.05)
    accept = socket.socket.accept
    errors = [OSError(errno.EMFILE, "too many open files"), ConnectionAbortedError()]

    def fail(listener: socket.socket) -> object:
        if errors:
            raise errors.pop(0)
        return accept(listener)

    monkeypatch.setattr(socket.socket, "accept", fail)
    assert replied(GOOD).endswith(b"got ( INFO )")
    assert caplog.messages == ["no new connections are accepted for 0.05 s: [Errno 24] too many open files"]


def test_many_messages_at_once():
    async def crowd(port: int) -> set[bytes]:
        return set(await asyncio.gather(*(exchange(port, GOOD) for _ in range(200))))

    (reply,) = listening(crowd)
    assert reply.endswith(b"got ( INFO )")


def test_an_answer_is_worked_out_where_its_client_has_gone():
    is_asked, is_gone, is_answered = asyncio.Event(), asyncio.Event(), asyncio.Event()
    answered: list[str] = []

    async def slow(text: str) -> str:
        is_asked.set()
        await is_gone.wait()
        await asyncio.sleep(0.05)  # the end of the connection can be seen now
        answered.append(text)
        is_answered.set()
        return text

    async def go(port: int) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(message(body=b"gone"))
        await is_asked.wait()
        writer.transport.abort()
        is_gone.set()
        await is_answered.wait()

    listening(go, answer=slow)
    assert answered == ["gone", "( INFO )"]


def test_answers_under_way_go_out_when_the_listener_ends(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(http, "CLOSING", PATIENCE)
    is_asked = asyncio.Event()

    async def slow(text: str) -> str:
        is_asked.set()
        await asyncio.sleep(0.1)
        return text

    async def end() -> tuple[bytes, bytes]:
        async with listen(slow) as port:
            silent = asyncio.create_task(exchange(port, b""))
            asked = asyncio.create_task(exchange(port, GOOD))
            await is_asked.wait()
        return await silent, await asked

    silent, asked = asyncio.run(asyncio.wait_for(end(), PATIENCE))
    assert silent == b""
    assert asked.endswith(b"( INFO )")


def test_answers_that_take_too_long_then_are_given_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(http, "CLOSING", 0.02)
    is_asked = asyncio.Event()

    async def never(text: str) -> str:
        is_asked.set()
        await asyncio.Event().wait()
        return text

    async def end() -> bytes:
        async with listen(never) as port:
            asked = asyncio.create_task(exchange(port, GOOD))
            await is_asked.wait()
        return await asked

    assert asyncio.run(asyncio.wait_for(end(), PATIENCE)) == b""
    assert caplog.text == ""


@pytest.mark.parametrize("address", ["", "::"])
def test_all_addresses(address: str):
    if not socket.has_dualstack_ipv6():
        pytest.skip("no IPv6 here")

    async def ask(port: int) -> list[str]:
        async with Client() as client:
            return [
                await client.post(f"http://{host}:{port}", "( INFO )", PATIENCE)
                for host in ("127.0.0.1", "[::1]", "localhost")
            ]

    assert listening(ask, address=address) == ["got ( INFO )"] * 3


def test_a_port_in_use():
    async def twice() -> None:
        async with listen(echo) as port:
            with pytest.raises(OSError, match="in use"):
                async with listen(echo, port=port):
                    pass

    asyncio.run(twice())


# the client


def told(reply: bytes, text: str = "( INFO )", *, receiver: str = "x", seconds: float = PATIENCE) -> tuple[str, bytes]:
    """What the client makes of a reply, and the request that it sent."""
    requests: list[bytes] = []

    async def player(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await reader.readuntil(b"\r\n\r\n") + await reader.readexactly(len(text)))
        if reply == b"never":
            await reader.read()
        writer.write(reply)
        writer.close()

    async def ask() -> str:
        server = await asyncio.start_server(player, "127.0.0.1", 0)
        async with Client() as client:
            try:
                port = server.sockets[0].getsockname()[1]
                return await client.post(f"http://127.0.0.1:{port}", text, seconds, receiver)
            finally:
                server.close()

    return asyncio.run(asyncio.wait_for(ask(), PATIENCE)), requests[0]


def test_what_the_client_sends():
    text, request = told(b"HTTP/1.0 200 OK\r\nContent-length: 5\r\n\r\nready", receiver="a\r\nX: b")
    assert text == "ready"
    head, _, body = request.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[2].startswith("Host: 127.0.0.1:")
    assert lines[:2] + lines[3:] == [
        "POST / HTTP/1.0",
        "Accept: text/delim",
        "Sender: GAMESERVER",
        "Receiver: a X: b",
        "Content-Type: text/acl",
        "Content-Length: 8",
    ]
    assert body == b"( INFO )"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (b"HTTP/1.0 200 OK\nContent-type: text/acl\nContent-length: 5\n\nready\n", "ready"),
        (b"HTTP/1.0 200 OK\r\n\r\nready", "ready"),
        (b"HTTP/1.1 200\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\nready", "ready"),
        (b"HTTP/1.0 200 OK\r\nContent-length: 5\r\n\r\nready and more", "ready"),
        (b"HTTP/1.0 200 OK\r\nContent-length: 50\r\n\r\nready", "ready"),
        (b"HTTP/1.0 200 OK\r\nContent-length: -1\r\n\r\nready", "ready"),
        (b"HTTP/1.0 200 OK\r\nContent-length: 5\r\nContent-Length: 5\r\n\r\nready", "ready"),
        ("HTTP/1.0 200 OK\r\n\r\nnoop (taunt \u00fc)".encode(), "noop (taunt ?)"),
        (b"HTTP/1.0 200 OK\r\n\r\n\xff\0", "?\0"),
        (b"HTTP/1.0 200 OK\r\n\r\n", ""),
        (b"HTTP/1.0 200 OK\r\n\r\n" + b"a" * MOST_REPLY, "a" * MOST_REPLY),
    ],
)
def test_replies_that_are_taken(reply: bytes, expected: str):
    assert told(reply)[0] == expected


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (b"ready\n\n", "in HTTP"),
        (b"HTTP/1.0 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n", "status 200, got 'HTTP/1.0 302 Found'"),
        (b"HTTP/1.0 500 Oops\r\n\r\nready", "500"),
        (b"HTTP/1.0 2000 OK\r\n\r\nready", "2000"),
        (b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nready\r\n0\r\n\r\n", "Transfer-Encoding"),
        (b"HTTP/1.0 200 OK\r\n\r\n" + b"a" * (MOST_REPLY + 1), "at most 65536 bytes"),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 99999999\r\n\r\n" + b"a" * 1_000_000, "at most 65536 bytes"),
        (b"HTTP/1.0 200 OK\r\n" + b"X: y\r\n" * 10_000 + b"\r\nready", "head"),
    ],
)
def test_replies_that_are_refused(reply: bytes, words: str):
    with pytest.raises(ProtocolError, match=words):
        told(reply)


def test_a_reply_that_is_late():
    with pytest.raises(TimeoutError, match=r"within 0\.05 s"):
        told(b"never", seconds=0.05)


def test_a_reply_that_breaks_off():
    with pytest.raises(ConnectionError):
        told(b"HTTP/1.0 200 OK\r\nContent-")


def test_nobody_there():
    async def ask() -> str:
        async with listen(echo) as port:
            pass
        async with Client() as client:
            return await client.post(f"http://127.0.0.1:{port}", "( INFO )", PATIENCE)

    with pytest.raises(ConnectionRefusedError, match="expected a player at"):
        asyncio.run(ask())


def test_a_connection_that_nobody_takes():
    async def ask(port: int) -> str:
        async with Client() as client:
            return await client.post(f"http://127.0.0.1:{port}", "( INFO )", 0.1)

    with ExitStack() as stack:
        full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        with pytest.raises(TimeoutError):
            asyncio.run(ask(full.getsockname()[1]))


def test_a_name_that_is_none():
    async def ask() -> str:
        async with Client() as client:
            return await client.post(f"http://{'a' * 64}.invalid", "( INFO )", PATIENCE)

    with pytest.raises(ConnectionRefusedError, match="expected a player at"):
        asyncio.run(ask())


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:9147", "https://a", "http://", "http://:9147", "http://a:b", "http://a:99999", "http://a b"]
)
def test_addresses_that_are_none(url: str):
    async def ask() -> str:
        async with Client() as client:
            return await client.post(url, "( INFO )", PATIENCE)

    with pytest.raises(GameloreError, match="http://ADDRESS:PORT"):
        asyncio.run(ask())


def test_both_ends_together():
    async def ask(port: int) -> list[str]:
        async with Client() as client:
            large = "a" * 1_000_000
            texts = ["( INFO )", large, "\u00fc"]
            return [(await client.post(f"http://localhost:{port}/x", text, PATIENCE))[:10] for text in texts]

    async def length(text: str) -> str:
        return f"{len(text)} {text}" if len(text) < 100 else str(len(text))

    assert listening(ask, answer=length) == ["8 ( INFO )", "1000000", "1 ?"]


def test_the_client_hears_why_a_large_message_was_refused():
    async def ask(port: int) -> str:
        async with Client() as client:
            return await client.post(f"http://127.0.0.1:{port}", "a" * 5_000_000, PATIENCE)

    with pytest.raises(ProtocolError, match="413"):
        listening(ask)


def test_connections_end_with_their_client():
    is_asked = asyncio.Event()

    async def end(port: int) -> BaseException | None:
        async with Client() as client:
            asked = asyncio.create_task(client.post(f"http://127.0.0.1:{port}", "slow", PATIENCE))
            await is_asked.wait()
        (error,) = await asyncio.gather(asked, return_exceptions=True)
        return error if isinstance(error, BaseException) else None

    async def slow(text: str) -> str:
        is_asked.set()
        await asyncio.sleep(1 if text == "slow" else 0)
        return text

    assert isinstance(listening(end, answer=slow), ConnectionError)
