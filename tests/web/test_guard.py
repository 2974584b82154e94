"""The guard of the web page: each rule on requests made by hand, then a real server, raw sockets and a real browser.

As a program (`python tests/web/test_guard.py FOLDER`), this file is the server: a small page of NiceGUI behind the
guard, as `gamelore web` assembles it.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import importlib.util
import json
import logging
import os
import random
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gamelore.errors import GameloreError
from gamelore.web.service.guard import SOCKET_PATH, Application, Guard, GuardSettings, Message, Receive, Scope, Send
from visitors import PATIENCE, Address, Reply, Visitor, WebSocket, elements_of, fetch, malformed

PORT = 8080
HOST = "127.0.0.1:8080"
ORIGIN = f"http://{HOST}"
SETTINGS = GuardSettings(port=PORT, max_body=100, max_message=200, max_sockets=2, message_rate=10.0, message_burst=5)
GOOD_MESSAGES = (
    "3",
    "1",
    "40",
    '40{"token":1}',
    "41",
    '42["ack",{"client_id":"a","next_message_id":1}]',
    '420["handshake",{"client_id":"a","tab_id":"b","document_id":"c","implicit_handshake":true}]',
    '42["event",{"id":5,"client_id":"a","listener_id":"x","args":["{\\"a\\":[1]}"]}]',
    '42["javascript_response",{"request_id":"r","client_id":"a","result":42}]',
    '42["log",{"client_id":"a","level":"error","message":"two\\nlines"}]',
)
BAD_MESSAGES = (
    "",
    "x",
    "0{}",
    "2probe",
    "5",
    "6",
    "b" + base64.b64encode(b"attachment").decode(),
    "4",
    "40/admin,",
    "42",
    "42{}",
    "42[]",
    '42["event"]',
    '42["event",1]',
    '42["event",{}]',
    '42["event",{"client_id":"a"}]',
    '42["event",{"id":5,"client_id":5,"listener_id":"x","args":[]}]',
    '42["event",{"id":5,"client_id":"a","listener_id":["x"],"args":[]}]',
    '42["event",{"id":5,"client_id":"a","listener_id":"x","args":[7]}]',
    '42["event",{"id":5,"client_id":"a","listener_id":"x","args":[""]}]',
    '42["event",{"id":5,"client_id":"a","listener_id":"x","args":[null,"{}","NaN"]}]',
    '42["event",{"id":5,"client_id":"a","listener_id":"x","args":["[1,"]}]',
    '42["ack",{"client_id":"a","next_message_id":"1"}]',
    '42["handshake",{"client_id":"a"}]',
    '42["javascript_response",{"client_id":"a","request_id":{}}]',
    '42["log",{"client_id":"a","level":"quit","message":""}]',
    '42["event",{"client_id":"a"},2]',
    '42["event",{"client_id":"a"}',
    '42["connect",{"client_id":"a"}]',
    '42["shutdown",{"client_id":"a"}]',
    '42[5,{"client_id":"a"}]',
    '42/admin,["event",{"client_id":"a"}]',
    "42" + "9" * 50 + '["event",{"client_id":"a"}]',
    '43["ack"]',
    '44{"message":"no"}',
    '459999999999-["event",{"_placeholder":true,"num":0}]',
    '461-["event",{"_placeholder":true,"num":0}]',
    '42["event",{"client_id":"a","args":' + "[" * 50 + "}]",
    "³",
    "42\x00",
)


END = {"type": "websocket.disconnect", "code": 1000}
OTHER_HOSTS = "evil.example|evil.example:8080|127.0.0.1|127.0.0.1:8081|127.0.0.1:8080.evil.example||localhost.:8080"
ODD_HOSTS = "127.0.0.1:08080|0.0.0.0:8080|[::]:8080|127.0.0.1:8080, evil.example|\u00ff\n|127.1:8080|a@127.0.0.1:8080"
ODD_NAMES = "|*|*.local|a b|box.local/|box.local?x|ftp://box.local|box.local:x|me@box.local|[fe80::x]|::1|-b|b\u00f6x"
OTHER_ORIGINS = "http://evil.example|null|https://127.0.0.1:8080|http://127.0.0.1:8081|http://localhost:8080||file://"


# the guard alone


class Inner:
    """An application that replies with fixed headers, and keeps what it received."""

    def __init__(self, *parts: bytes, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.parts = parts or (b"hello",)
        self.status = status
        self.headers = {"content-type": "text/plain"} if headers is None else headers
        self.scopes: list[Scope] = []
        self.received: list[Message] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scopes.append(scope)
        while not self.received or self.received[-1].get("more_body", False):
            self.received.append(await receive())
        headers = [(name.encode(), value.encode()) for name, value in self.headers.items()]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        for place, part in enumerate(self.parts, 1):
            await send({"type": "http.response.body", "body": part, "more_body": place < len(self.parts)})


def fields(host: str | None = HOST, **others: str) -> list[tuple[bytes, bytes]]:
    """Headers of a request."""
    headers = {} if host is None else {"host": host}
    headers |= {name.replace("_", "-"): value for name, value in others.items()}
    return [(name.encode(), value.encode()) for name, value in headers.items()]


def request(headers: list[tuple[bytes, bytes]], *, method: str = "GET", path: str = "/") -> Scope:
    return {"type": "http", "method": method, "path": path, "headers": headers, "client": ("127.0.0.1", 5)}


def handshake(headers: list[tuple[bytes, bytes]], *, path: str = SOCKET_PATH) -> Scope:
    return {"type": "websocket", "path": path, "headers": headers, "client": ("127.0.0.1", 5)}


def sent_by(app: Application, scope: Scope, messages: list[Message]) -> list[Message]:
    """All messages that an application sends when it receives these."""
    queue, sent = iter(messages), list[Message]()

    async def receive() -> Message:
        return next(queue)

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(asyncio.wait_for(_awaited(app(scope, receive, send)), PATIENCE))
    return sent


async def _awaited(answer: Awaitable[None]) -> None:
    await answer


def ask(app: Application, scope: Scope, *parts: bytes) -> Reply:
    """The reply to a request with these parts of a body."""
    parts = parts or (b"",)
    messages: list[Message] = [
        {"type": "http.request", "body": part, "more_body": place < len(parts)} for place, part in enumerate(parts, 1)
    ]
    start, *rest = sent_by(app, scope, messages)
    assert start["type"] == "http.response.start"
    headers = {name.decode(): value.decode() for name, value in start["headers"]}
    assert len(headers) == len(start["headers"])
    return Reply(start["status"], headers, b"".join(message.get("body", b"") for message in rest))


def status_of(scope: Scope, settings: GuardSettings = SETTINGS) -> int:
    """The status of a reply; of a refused request, after a look at whether the application was left alone."""
    inner = Inner()
    reply = ask(Guard(inner, settings), scope)
    assert (reply.status == 200) == bool(inner.scopes)
    return reply.status


def is_refused(scope: Scope) -> bool:
    """Whether a handshake is refused before the application sees it."""
    listener = Listener()
    sent = sent_by(Guard(listener, SETTINGS), scope, [{"type": "websocket.connect"}, END])
    assert [message["type"] for message in sent] == ["websocket.accept" if listener.was_called else "websocket.close"]
    return not listener.was_called


class Listener:
    """An application that accepts a websocket, and keeps the messages until its end."""

    def __init__(self) -> None:
        self.was_called = False
        self.received: list[Message] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.was_called = True
        await receive()
        await send({"type": "websocket.accept"})
        while not self.received or self.received[-1]["type"] == "websocket.receive":
            self.received.append(await receive())
        if self.received[-1].get("code") != 1000:
            assert (await receive())["type"] == "websocket.disconnect"
            await send({"type": "websocket.close"})  # as Engine.IO does, whoever closed it


def heard(*messages: str | bytes, settings: GuardSettings = SETTINGS, clock: Callable[[], float] | None = None) -> Any:
    """What the application receives of the messages of a websocket, and the code with which the guard closes it."""
    listener = Listener()
    guard = Guard(listener, settings, clock or (lambda: 0.0))
    received: list[Message] = [
        {"type": "websocket.receive", "text" if isinstance(m, str) else "bytes": m} for m in messages
    ]
    ends = [{"type": "websocket.connect"}, *received, END]
    sent = sent_by(guard, handshake(fields(origin=ORIGIN)), ends)
    assert guard.num_sockets == 0
    closes = [message.get("code") for message in sent if message["type"] == "websocket.close"]
    assert len(closes) <= 1  # a server takes no second one
    return [message.get("text") for message in listener.received[:-1]], closes[0] if closes else None


@pytest.mark.parametrize("host", [HOST, "localhost:8080", "LocalHost:8080", "[::1]:8080"])
def test_the_loopback_names_with_the_port_are_served(host: str) -> None:
    assert status_of(request(fields(host))) == 200
    assert not is_refused(handshake(fields(host, origin=f"http://{host.lower()}")))


@pytest.mark.parametrize("host", [*OTHER_HOSTS.split("|"), *ODD_HOSTS.split("|")])
def test_other_hosts_are_refused_with_a_remedy(host: str, caplog: pytest.LogCaptureFixture) -> None:
    inner = Inner()
    reply = ask(Guard(inner, SETTINGS), request(fields(host)))
    assert reply.status == 421
    assert not inner.scopes
    assert b"--allow-host NAME" in reply.body
    (line,) = caplog.messages
    assert line.startswith("refused GET / from 127.0.0.1: expected Host 127.0.0.1:8080, got ")
    assert "\n" not in line
    assert is_refused(handshake(fields(host, origin=f"http://{host}")))


def test_a_request_has_one_host() -> None:
    assert status_of(request(fields(None))) == 400
    assert status_of(request([*fields(), *fields()])) == 400
    assert status_of(request([*fields(), (b"HOST", b"evil.example")])) == 400
    assert is_refused(handshake(fields(None, origin=ORIGIN)))
    assert is_refused(handshake([*fields(origin=ORIGIN), *fields()]))


@pytest.mark.parametrize(
    ("name", "host", "origin"),
    [
        ("box.local", "box.local:8080", "http://box.local:8080"),
        ("Box.local:9000", "box.local:9000", "http://box.local:9000"),
        ("192.168.0.7", "192.168.0.7:8080", "http://192.168.0.7:8080"),
        ("[fe80::1]", "[fe80::1]:8080", "http://[fe80::1]:8080"),
        ("box.local:80", "box.local", "http://box.local"),
        ("https://box.local", "box.local", "https://box.local"),
        ("https://box.local", "box.local:443", "https://box.local"),
        ("https://box.local:444", "box.local:444", "https://box.local:444"),
    ],
)
def test_names_of_the_user_are_served(name: str, host: str, origin: str) -> None:
    settings = GuardSettings(port=PORT, names=(name,))
    assert settings.origins[host] == {origin}
    assert status_of(request(fields(host, origin=origin), method="POST"), settings) == 200
    assert status_of(request(fields(host, origin=ORIGIN), method="POST"), settings) == 403
    assert status_of(request(fields()), settings) == 200


@pytest.mark.parametrize("name", [*ODD_NAMES.split("|"), "box.local:99999", "http://"])
def test_other_names_raise(name: str) -> None:
    settings = GuardSettings(port=PORT, names=(name,))
    for use in (settings.check_names, lambda: Guard(Inner(), settings)):
        with pytest.raises(GameloreError, match="expected the name of a host"):
            use()


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "OPTIONS"])
@pytest.mark.parametrize("origin", [*OTHER_ORIGINS.split("|"), "http://127.0.0.1:8080/", "HTTP://127.0.0.1:8080"])
def test_other_origins_are_refused(method: str, origin: str) -> None:
    assert status_of(request(fields(origin=origin), method=method)) == 403
    assert is_refused(handshake(fields(origin=origin)))


def test_own_origins_are_served() -> None:
    assert status_of(request(fields(origin=ORIGIN), method="POST")) == 200
    assert status_of(request(fields(), method="POST")) == 200  # a program, not a browser
    assert not is_refused(handshake(fields(origin=ORIGIN)))


def test_a_websocket_has_one_origin(caplog: pytest.LogCaptureFixture) -> None:
    assert is_refused(handshake(fields()))
    assert "expected Origin http://127.0.0.1:8080, got none" in caplog.messages[0]
    assert is_refused(handshake([*fields(origin=ORIGIN), *fields(None, origin=ORIGIN)]))


@pytest.mark.parametrize(
    ("site", "mode", "destination", "status"),
    [
        ("same-origin", "cors", "empty", 200),
        ("none", "navigate", "document", 200),
        ("cross-site", "navigate", "document", 200),  # a link to the page
        ("same-site", "navigate", "document", 200),
        ("cross-site", "navigate", "iframe", 403),
        ("cross-site", "no-cors", "image", 403),
        ("cross-site", "no-cors", "script", 403),
        ("cross-site", "cors", "empty", 403),
        ("same-site", "no-cors", "empty", 403),  # another port of this machine
        ("cross-site", "no-cors", "document", 403),
        ("unheard-of", "cors", "empty", 403),
    ],
)
def test_other_pages_can_only_link(site: str, mode: str, destination: str, status: int) -> None:
    headers = fields(sec_fetch_site=site, sec_fetch_mode=mode, sec_fetch_dest=destination)
    assert status_of(request(headers)) == status
    posted = request(headers, method="POST")
    assert status_of(posted) == (200 if site in ("same-origin", "none") else 403)
    assert is_refused(handshake([*headers, *fields(None, origin=ORIGIN)])) == (site not in ("same-origin", "none"))


def test_websockets_are_at_one_path_and_polling_at_none(caplog: pytest.LogCaptureFixture) -> None:
    for path in ("/", "/_nicegui_ws/", "/_nicegui_ws/socket.io", "/_nicegui_ws/other/"):
        assert is_refused(handshake(fields(origin=ORIGIN), path=path))
    for path in (SOCKET_PATH, "/_nicegui_ws", "/_nicegui_ws/"):
        for method in ("GET", "POST", "OPTIONS"):
            assert status_of(request(fields(origin=ORIGIN), method=method, path=path)) == 403
    assert "long polling" in caplog.messages[-1]


def test_a_declared_length_is_limited() -> None:
    assert status_of(request(fields(content_length="100"), method="POST")) == 200
    assert status_of(request(fields(content_length="101"), method="POST")) == 413
    for length in ("", "-1", "1e3", "+5", "9" * 30, "1, 2"):
        assert status_of(request(fields(content_length=length), method="POST")) == 400
    assert status_of(request([*fields(content_length="1"), *fields(None, content_length="1")], method="POST")) == 400


def test_a_streamed_body_is_cut(caplog: pytest.LogCaptureFixture) -> None:
    inner = Inner()
    reply = ask(Guard(inner, SETTINGS), request(fields(), method="POST"), b"x" * 60, b"x" * 40)
    assert (reply.status, [len(part["body"]) for part in inner.received]) == (200, [60, 40])
    inner = Inner()
    reply = ask(Guard(inner, SETTINGS), request(fields(), method="POST"), b"x" * 60, b"x" * 41, b"x" * 1000)
    assert reply.status == 413
    assert reply.body.startswith(b"refused: expected a body of at most 100 bytes, got more")
    assert [part["type"] for part in inner.received] == ["http.request", "http.disconnect"]
    assert len(caplog.messages) == 1


def test_a_cut_request_may_raise_and_others_reach_the_server() -> None:
    async def reads(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        raise RuntimeError("the client is gone")

    assert ask(Guard(reads, SETTINGS), request(fields(), method="POST"), b"x" * 101).status == 413

    async def breaks(scope: Scope, receive: Receive, send: Send) -> None:
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        ask(Guard(breaks, SETTINGS), request(fields()))


@pytest.mark.parametrize(("more", "raises"), [(True, False), (False, True)])
def test_only_a_request_that_ends_before_its_body_may_raise(more: bool, raises: bool) -> None:
    async def reads(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        raise RuntimeError("the client is gone")

    messages: list[Message] = [{"type": "http.request", "body": b"x", "more_body": more}, {"type": "http.disconnect"}]
    with pytest.raises(RuntimeError) if raises else nullcontext():
        assert sent_by(Guard(reads, SETTINGS), request(fields(), method="POST"), messages) == []


def test_a_reply_that_has_begun_is_not_begun_again(caplog: pytest.LogCaptureFixture) -> None:
    async def early(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        assert (await receive())["type"] == "http.disconnect"
        assert (await receive())["type"] == "http.disconnect"
        await send({"type": "http.response.body", "body": b"late"})

    messages: list[Message] = [{"type": "http.request", "body": b"x" * 101}]
    (start,) = sent_by(Guard(early, SETTINGS), request(fields(), method="POST"), messages)
    assert start["status"] == 200
    assert "got more" in caplog.messages[0]


@pytest.mark.parametrize("message", GOOD_MESSAGES)
def test_messages_of_the_page_pass(message: str) -> None:
    assert heard(message, message) == ([message, message], None)


@pytest.mark.parametrize("message", BAD_MESSAGES)
def test_other_messages_close_the_websocket(message: str, caplog: pytest.LogCaptureFixture) -> None:
    assert heard("40", message, "3") == (["40"], 1003)
    (line,) = caplog.messages
    assert line.startswith(f"refused websocket {SOCKET_PATH} from 127.0.0.1: expected a message of NiceGUI's page, got")
    assert line.isprintable()


def test_bytes_deep_nesting_and_long_messages_close_the_websocket() -> None:
    assert heard("40", b"40") == (["40"], 1003)
    settings = GuardSettings(port=PORT)
    for name in ("args", "message", "other"):
        deep = f'42["log",{{"client_id":"a","level":"info","{name}":{"[" * 400_000}{"]" * 400_000}}}]'
        assert heard(deep, settings=settings) == ([], 1003)
    long = '42["log",{"client_id":"%s","level":"info","message":0}]'
    fits = long % ("x" * (1_000_000 - len(long) + 2))
    assert heard(fits, settings=settings) == ([fits], None)
    assert heard(fits.replace("x", "xx", 1), settings=settings) == ([], 1009)
    assert settings.max_frame >= len(("\u20ac" * 1_000_000).encode())


def test_the_rate_of_messages_is_limited() -> None:
    assert heard(*["3"] * 5) == (["3"] * 5, None)
    assert heard(*["3"] * 6) == (["3"] * 5, 1008)
    ticks = iter(range(1000))
    assert heard(*["3"] * 100, clock=lambda: next(ticks) * 0.1) == (["3"] * 100, None)
    ticks = iter(range(1000))
    allowed, code = heard(*["3"] * 100, clock=lambda: next(ticks) * 0.05)  # twice the rate
    assert (len(allowed), code) == (9, 1008)  # 5, and every second one refilled
    pauses = iter([0, 0, 0, 0, 0, 0, 1e6, *[1e6] * 9])
    assert heard(*["3"] * 11, clock=lambda: next(pauses)) == (["3"] * 10, 1008)  # a pause saves up no more than a burst


def test_the_number_of_websockets_is_limited(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> list[int]:
        """The numbers of open websockets after each step."""
        end = asyncio.Event()
        numbers = []

        async def waits(scope: Scope, receive: Receive, send: Send) -> None:
            await end.wait()
            raise RuntimeError("a bug")

        guard = Guard(waits, SETTINGS)
        sent: list[Message] = []

        async def send(message: Message) -> None:
            sent.append(message)

        async def receive() -> Message:
            return {"type": "websocket.connect"}

        scope = handshake(fields(origin=ORIGIN))
        tasks = [asyncio.ensure_future(_awaited(guard(scope, receive, send))) for _ in range(2)]
        await asyncio.sleep(0)
        numbers.append(guard.num_sockets)
        await asyncio.wait_for(_awaited(guard(scope, receive, send)), PATIENCE)
        assert [message["type"] for message in sent] == ["websocket.close"]
        numbers.append(guard.num_sockets)
        end.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        return [*numbers, guard.num_sockets]

    assert asyncio.run(scenario()) == [2, 2, 0]
    assert "expected at most 2 websockets" in caplog.messages[0]


def test_replies_and_refusals_have_the_headers() -> None:
    old = {
        "content-type": "image/svg+xml",
        "Content-Security-Policy": "none",
        "x-own": "1",
        "Referrer-Policy": "origin",
    }
    reply = ask(Guard(Inner(headers=old), SETTINGS), request(fields()))
    refused = ask(Guard(Inner(), SETTINGS), request(fields("evil.example")))
    for headers in (reply.headers, refused.headers):
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"
        policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
        assert policy["default-src"] == policy["form-action"] == "'self'"
        assert policy["script-src"].strip() == "'self'"
        assert policy["frame-ancestors"] == policy["object-src"] == policy["base-uri"] == "'none'"
        assert policy["connect-src"] == "'self' ws://127.0.0.1:8080 ws://localhost:8080"
    assert (reply.headers["x-own"], reply.body) == ("1", b"hello")
    assert refused.headers["content-type"] == "text/plain; charset=utf-8"
    assert "evil.example" in refused.body.decode()


@pytest.mark.parametrize(
    ("status", "before", "after"),
    [(200, "public, max-age=5", "public, max-age=5"), (404, "public, max-age=5", "no-store"), (200, None, "no-store")],
)
def test_only_good_replies_may_be_kept(status: int, before: str | None, after: str) -> None:
    headers = {"content-type": "text/css"} | ({"Cache-Control": before} if before else {})
    assert (
        ask(Guard(Inner(status=status, headers=headers), SETTINGS), request(fields())).headers["cache-control"] == after
    )


def test_a_page_may_run_its_own_scripts_only() -> None:
    page = b'<html><script src="/a.js"></script><SCRIPT type="module">\r\nlet x = "<b>";\r\n</SCRIPT><b onclick="f()">'
    page += b"<script>one()</script><script>one()</script>"
    inner = Inner(page[:30], page[30:90], page[90:], headers={"Content-Type": "text/html; charset=utf-8", "a": "b"})
    reply = ask(Guard(inner, SETTINGS), request(fields()))
    assert (reply.status, reply.body, reply.headers["a"]) == (200, page, "b")
    scripts = [b'\nlet x = "<b>";\n', b"one()"]  # a parser of HTML makes line feeds of all ends of lines
    hashes = [base64.b64encode(hashlib.sha256(script).digest()).decode() for script in scripts]
    sources = " ".join(f"'sha256-{value}'" for value in hashes)
    assert f"script-src 'self' 'unsafe-eval' {sources};" in reply.headers["content-security-policy"]


def test_pages_come_uncompressed_and_prefixes_are_not_believed() -> None:
    inner = Inner()
    headers = fields(accept_encoding="gzip", x_forwarded_prefix="/<script>", accept="*/*")
    for path in ("/", "/_nicegui/3/static/vue.js"):
        ask(Guard(inner, SETTINGS), request(headers, path=path))
    names = [[name for name, _ in scope["headers"]] for scope in inner.scopes]
    assert names == [[b"host", b"accept"], [b"host", b"accept-encoding", b"accept"]]


def test_the_start_of_the_server_passes() -> None:
    async def starts(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": f"{(await receive())['type']}.complete"})

    assert sent_by(Guard(starts, SETTINGS), {"type": "lifespan"}, [{"type": "lifespan.startup"}]) == [
        {"type": "lifespan.startup.complete"}
    ]


def test_a_refusal_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    ask(Guard(Inner(), SETTINGS), request(fields(), path="/_nicegui_ws/\r\nERROR \u2028\x1b[31m" + "x" * 10_000))
    (line,) = caplog.messages
    assert line.isascii()
    assert line.isprintable()
    assert len(line) < 500


# a real server


class Server(NamedTuple):
    """A running server, the folder where it writes, and the file with its log."""

    process: subprocess.Popen[str]
    address: Address
    folder: Path
    log: Path

    @property
    def host(self) -> str:
        return self.address.host

    @property
    def port(self) -> int:
        return self.address.port


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """Run this file as a server in a process of its own, which must end within PATIENCE after a signal."""
    log = folder / "log.txt"
    command = [sys.executable, "-W", "error::ResourceWarning", __file__, str(folder / "storage")]
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))  # this file imports others of the tests
    with (
        log.open("w", encoding="utf-8") as errors,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, cwd=folder, env=environment, text=True
        ) as process,
    ):
        try:
            assert process.stdout is not None
            port = process.stdout.readline()
            assert port, log.read_text(encoding="utf-8")
            yield Server(process, Address(int(port)), folder, log)
        finally:
            process.kill()


def stop(server: Server, sent: signal.Signals) -> int:
    """Send a signal, and return the exit code."""
    server.process.send_signal(sent)
    return server.process.wait(PATIENCE)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A running server, the same for all tests."""
    for name in ("nicegui", "uvicorn", "fastapi"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"no {name}: install gamelore[web]")
    with serving(tmp_path_factory.mktemp("guarded")) as running:
        yield running
        assert stop(running, signal.SIGTERM) == 0


class Clicker(Visitor):
    """A visitor of the small page: it clicks, and reads the number that changes."""

    def count(self) -> int:
        """Click, and return the number that the page shows then."""
        ((button, event),) = self.events("click")
        self.send(button, event["listener_id"], "{}")
        while True:
            if match := re.search(r"clicked (\d+) times", json.dumps(self.receive())):
                return int(match[1])


def test_a_raw_websocket_with_a_foreign_origin_is_refused(server: Server) -> None:
    for origin in (
        "http://evil.example",
        "null",
        f"https://{server.host}",
        f"http://127.0.0.1:{server.port + 1}",
    ):
        with WebSocket(server.address, Host=server.host, Origin=origin) as refused:
            assert refused.status == 403
    with WebSocket(server.address, Host=server.host) as refused:
        assert refused.status == 403
    with WebSocket(server.address, **server.address.own) as accepted:
        assert accepted.status == 101
        assert str(accepted.receive()).startswith('0{"sid"')


def test_dns_rebinding_is_refused(server: Server) -> None:
    evil = {"Host": f"evil.example:{server.port}", "Origin": f"http://evil.example:{server.port}"}
    assert fetch(server.address, **evil).status == 421
    with WebSocket(server.address, **evil) as refused:
        assert refused.status == 403
    assert fetch(server.address).status == 200
    assert f"expected Host {server.host}, got 'evil.example:{server.port}'" in server.log.read_text(encoding="utf-8")


def test_doubled_and_missing_hosts_are_refused(server: Server) -> None:
    for lines in (["Host: {0}", "Host: {0}"], ["Host: {0}", "Host: evil.example"], []):
        with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as stream:
            head = ["GET / HTTP/1.1", *(line.format(server.host) for line in lines), "Connection: close", "", ""]
            stream.sendall("\r\n".join(head).encode())
            assert stream.recv(100).split()[1] == b"400"


def test_giant_uploads_are_refused(server: Server) -> None:
    path = "/_nicegui/client/a/upload/5"
    giant = b"x" * (10 << 20)

    def outcome(**options: Any) -> int:
        try:
            return fetch(server.address, path, method="POST", **options).status
        except ConnectionError:  # the server closed the connection while the client was still sending
            return 413

    assert outcome(body=giant) == 413
    chunks = (giant[:65_536] for _ in range(160))
    assert outcome(body=chunks, Transfer_Encoding="chunked") in (404, 413)  # nobody reads a body at an unknown path
    log = server.log.read_text(encoding="utf-8")
    assert "expected a body of at most 2097152 bytes, got 10485760" in log
    page = fetch(server.address, "/upload").body.decode()
    (real,) = [url for element in elements_of(page).values() if (url := element.get("props", {}).get("url"))]
    chunks = (giant[:65_536] for _ in range(160))
    boundary = b'--b\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n'
    parts = (part for parts in ([boundary], chunks) for part in parts)
    form = {"Transfer_Encoding": "chunked", "Content_Type": "multipart/form-data; boundary=b"}
    with suppress(ConnectionError):
        assert fetch(server.address, real, method="POST", body=parts, **form).status == 413
    assert "expected a body of at most 2097152 bytes, got more" in server.log.read_text(encoding="utf-8")
    assert fetch(server.address).status == 200


def test_malformed_messages_leave_the_server_serving(server: Server) -> None:
    with Clicker(server.address) as bystander, Visitor(server.address) as attacker:
        assert bystander.count() == 1
        messages = malformed(random.Random(18), attacker.client_id)
        num_closed = num_passed = 0
        while num_closed + num_passed < 1000:
            with WebSocket(server.address, **server.address.own) as websocket:
                websocket.send("40")
                while num_closed + num_passed < 1000 and is_open_after(websocket, next(messages)):
                    num_passed += 1
            num_closed += 1
        assert min(num_closed, num_passed) > 200
        assert bystander.count() == 2
        assert fetch(server.address).status == 200


def is_open_after(websocket: WebSocket, message: str | bytes) -> bool:
    """Whether the server still replies on a websocket after a message."""
    try:
        websocket.send(message)
        websocket.send('427["handshake",{"client_id":"nobody","tab_id":"t","document_id":"d"}]')
    except ConnectionError:
        return False
    while isinstance(reply := websocket.receive(), str):
        if reply == "437[false]":
            return True
        if reply == "2":
            websocket.send("3")
    return False


def test_real_sockets_have_limits(server: Server) -> None:
    with WebSocket(server.address, **server.address.own) as websocket:
        websocket.send('42["log",{"client_id":"' + "x" * 1_000_000 + '","level":"debug","message":""}]')
        assert websocket.closed_with() == 1009
    with WebSocket(server.address, **server.address.own) as websocket:
        with suppress(ConnectionError):  # the server need not read to the end
            websocket.send("\u20ac" * 1_100_000)  # more bytes than the server keeps for the guard
        assert websocket.closed_with() in (1006, 1009)
    with WebSocket(server.address, **server.address.own) as websocket:
        with suppress(ConnectionError):
            for _ in range(20_000):
                websocket.send("3")
        assert websocket.closed_with() in (1006, 1008)
    assert "expected at most 200 messages in a second" in server.log.read_text(encoding="utf-8")


def test_there_are_no_documents_about_the_server_and_no_tracebacks(server: Server) -> None:
    for path in (
        "/docs",
        "/redoc",
        "/openapi.json",
        "/_nicegui/none",
        "/_nicegui_ws/socket.io/?EIO=4&transport=polling",
    ):
        assert fetch(server.address, path).status in (403, 404)
    reply = fetch(server.address, "/broken")
    assert reply.status == 500
    assert b"Traceback" not in reply.body
    assert b".py" not in reply.body


def test_files_of_nicegui_are_kept_and_pages_are_not(server: Server) -> None:
    page = fetch(server.address)
    assert page.headers["cache-control"] == "no-store"
    assert "server" not in page.headers
    (path, *_) = re.findall(r'src="(/_nicegui/[^"]+/static/nicegui.js)"', page.body.decode())
    script = fetch(server.address, path, Accept_Encoding="gzip")
    assert "immutable" in script.headers["cache-control"]
    assert script.headers["content-encoding"] == "gzip"
    assert fetch(server.address, f"{path}.none").headers["cache-control"] == "no-store"


def test_the_server_stops_with_open_pages(server: Server, tmp_path: Path) -> None:
    with serving(tmp_path) as other, Clicker(other.address) as visitor:  # a second server at once, in its own process
        assert visitor.count() == 1
        assert stop(other, signal.SIGINT) == 0
        assert visitor.socket.closed_with() in (1006, 1012)
    assert "Traceback" not in other.log.read_text(encoding="utf-8")
    assert {path.name for path in tmp_path.iterdir()} <= {"log.txt", "storage"}  # nothing in the working directory


# a real browser


def test_pages_work_in_a_browser_and_injected_scripts_do_not(server: Server, new_tab: Any) -> None:
    page = new_tab
    reported: list[str] = []
    hosts: set[str] = set()
    page.on("console", lambda message: reported.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: reported.append(str(error)))
    page.on("requestfinished", lambda request: hosts.add(request.url.split("/")[2]))
    page.goto(f"http://{server.host}/elements")
    page.get_by_text("ready 42").wait_for()  # by JavaScript that the server asked for
    page.locator(".cm-content").wait_for()
    page.locator("canvas, .nicegui-echart svg").first.wait_for()
    page.locator("input[type=file]").set_input_files({"name": "a.kif", "mimeType": "text/plain", "buffer": b"(role x)"})
    page.get_by_text("uploaded a.kif 8").wait_for()
    assert reported == []
    page.goto(f"http://{server.host}/injected")
    page.get_by_text("bold").click()
    page.get_by_text("address").click()
    page.get_by_text("ready 42").wait_for()
    assert page.evaluate("window.ran") is None
    assert any("Executing inline event handler violates" in text for text in reported)
    assert hosts == {server.host}


def test_another_page_of_this_machine_gets_nothing(server: Server, new_tab: Any) -> None:
    page = new_tab
    page.route("http://localhost:1/", lambda route: route.fulfill(body="<p>elsewhere</p>", content_type="text/html"))
    page.goto("http://localhost:1/")
    connect = """host => new Promise(done => {
        const socket = new WebSocket(`ws://${host}/_nicegui_ws/socket.io/?EIO=4&transport=websocket`);
        socket.onopen = () => done("open");
        socket.onerror = () => done("refused");
    })"""
    assert page.evaluate(connect, server.host) == "refused"
    load = """url => new Promise(done => {
        const image = document.createElement("script");
        image.onload = () => done("loaded");
        image.onerror = () => done("refused");
        image.src = url;
        document.body.append(image);
    })"""
    (path, *_) = re.findall(r'src="(/_nicegui/[^"]+/static/nicegui.js)"', fetch(server.address).body.decode())
    assert page.evaluate(load, f"http://{server.host}{path}") == "refused"
    page.goto(f"http://{server.host}/")  # a link to the page works
    page.get_by_text("clicked 0 times").wait_for()


def serve(storage: str) -> None:
    """Serve a small page of NiceGUI behind the guard, as `gamelore web` does."""
    os.environ["NICEGUI_STORAGE_PATH"] = storage  # read when nicegui is imported
    import uvicorn
    from fastapi import FastAPI
    from nicegui import app, ui

    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)

    @ui.page("/")
    def count() -> None:
        label = ui.label("clicked 0 times")

        def click() -> None:
            label.set_text(f"clicked {int(label.text.split()[1]) + 1} times")

        ui.button("click", on_click=click)

    async def ready() -> None:
        answer = await ui.run_javascript("return 6 * 7", timeout=PATIENCE)
        ui.label(f"ready {answer}")

    @ui.page("/elements")
    async def elements() -> None:
        app.storage.general["visited"] = True
        ui.add_head_html("<script>window.own = 1</script>")
        ui.dark_mode(None)
        ui.html("<b>html</b>")
        ui.markdown("# title")
        ui.codemirror("(role x)", language="Common Lisp")
        ui.echart({"xAxis": {"data": ["a"]}, "yAxis": {}, "series": [{"type": "line", "data": [1]}], "tooltip": {}})
        ui.table(columns=[{"name": "a", "label": "A", "field": "a"}], rows=[{"a": 1}])
        ui.select(["x", "y"], value="x", with_input=True)
        ui.slider(min=0, max=9, value=3)
        ui.icon("home")
        ui.image("data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
        upload()
        await ui.context.client.connected(PATIENCE)
        await ready()

    @ui.page("/injected")
    async def injected() -> None:
        ui.html(
            """<img src="/none" onerror="window.ran = 1"><b onclick="window.ran = 2">bold</b>
            <a href="javascript:window.ran = 3">address</a>
            <iframe srcdoc="<script>parent.ran = 4</script >"></iframe>
            <img src="http://192.0.2.1/beacon"><link rel="stylesheet" href="http://192.0.2.1/style">""",
            sanitize=False,
        )
        await ui.context.client.connected(PATIENCE)
        await ready()

    @ui.page("/broken")
    def broken() -> None:
        raise ValueError("a bug")

    @ui.page("/upload")
    def upload() -> None:
        heading = ui.label("uploads")
        ui.upload(
            on_upload=lambda event: heading.set_text(f"uploaded {event.file.name} {event.file.size()}"),
            auto_upload=True,
        )

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)  # uvicorn repeats the signal after its own end
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # asyncio sets it for its own listeners only
        settings = GuardSettings(port=listener.getsockname()[1])
        parent = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
        app.config.socket_io_js_transports = ["websocket"]
        ui.run_with(parent, show_welcome_message=False, reconnect_timeout=PATIENCE)
        config = uvicorn.Config(
            Guard(parent, settings),
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            ws_max_size=settings.max_frame,
            timeout_graceful_shutdown=3,
        )
        print(settings.port, flush=True)
        asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))


if __name__ == "__main__":
    serve(sys.argv[1])
