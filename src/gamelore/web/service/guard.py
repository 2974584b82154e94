"""ASGI middleware around the whole web application: who may ask, how much, and what browsers may do with the replies.

NiceGUI answers any host and any origin. So a web page from elsewhere could use the browser of the user to play, read
and delete here: by requests to a loopback address, or by DNS rebinding, where a foreign name leads to this machine.

- Host: the name and the port that the user opened. A foreign name shows DNS rebinding, and is refused.
- Origin and Sec-Fetch-Site: the page that sends a request. Browsers set them, and pages cannot change them. Requests of
  other pages are refused, except for links to the page.
- Limits: size of bodies and messages, number of websockets, rate of messages. A websocket carries only the messages
  that NiceGUI's own page sends. There is no long polling, since it would evade the limits of websockets.
- Headers: browsers load everything from this server, and run only the scripts that the server put into the page.

Every refusal is one warning in the log. The module needs neither NiceGUI nor Starlette.
"""

from __future__ import annotations

import base64
import hashlib
import logging
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_address
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec

from ...errors import GameloreError
from ...gdl.syntax import printable

SOCKET_PATH = "/_nicegui_ws/socket.io/"  # the only path of websockets
SOCKET_MOUNT = "/_nicegui_ws/"
STATIC_PATH = "/_nicegui/"  # scripts, styles and fonts of NiceGUI, which may be compressed
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
HOST_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?")
DEFAULT_PORTS = {"http": 80, "https": 443}
SOCKET_SCHEMES = {"http": "ws", "https": "wss"}
SAME_SITE = {b"same-origin", b"none"}  # Sec-Fetch-Site of requests from our own page, or from the user
UNSUPPORTED, TOO_FAST, TOO_BIG = 1003, 1008, 1009  # codes that close a websocket
INLINE_SCRIPT = re.compile(rb"<script\b[^>]*>(.*?)</script", re.DOTALL | re.IGNORECASE)
# A message of Socket.IO over Engine.IO: close, pong, connect, disconnect, or an event with an optional number. Binary
# messages and announcements of attachments (which Socket.IO would collect without a limit) are not among them.
SOCKET_MESSAGE = re.compile(r'1|3|40(?:\{.*)?|41|42[0-9]{0,9}(?P<event>\["(?P<name>[a-z_]+)".*)', re.DOTALL)
HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
}
POLICY = (
    "default-src 'self'; connect-src 'self' {sockets}; script-src 'self' {scripts}; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; frame-src 'none'; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)

Message: TypeAlias = MutableMapping[str, Any]
Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
Fields: TypeAlias = dict[bytes, list[bytes]]

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class GuardSettings:
    """Allowed hosts and limits of a Guard.

    port           port at which the server listens
    names          allowed hosts in addition to the loopback names: NAME, NAME:PORT, or https://NAME behind a proxy
    max_body       maximum number of bytes in the body of a request
    max_message    maximum number of characters in a message of a websocket; NiceGUI's page and Engine.IO have the same
    max_sockets    maximum number of websockets at the same time
    message_rate   number of messages in a second that a websocket may send for a long time
    message_burst  number of messages that it may send at once
    """

    port: int
    names: tuple[str, ...] = ()
    max_body: int = 2 << 20
    max_message: int = 1_000_000
    max_sockets: int = 200
    message_rate: float = 200.0
    message_burst: int = 1000

    def check_names(self) -> None:
        """Raise GameloreError if a name is no name of a host."""
        for name in self.names:
            _site(name, self.port)

    @cached_property
    def origins(self) -> dict[str, set[str]]:
        """Allowed values of the header Host, each with the origins of the pages that have this host."""
        origins: dict[str, set[str]] = {}
        for name in (*LOOPBACK, *self.names):
            scheme, host, port = _site(name, self.port)
            is_default = port == DEFAULT_PORTS[scheme]
            origin = f"{scheme}://{host}" if is_default else f"{scheme}://{host}:{port}"
            for value in {f"{host}:{port}", host if is_default else f"{host}:{port}"}:
                origins.setdefault(value, set()).add(origin)
        return origins

    @property
    def max_frame(self) -> int:
        """Maximum number of bytes in a message of a websocket: `ws_max_size` of uvicorn."""
        return 3 * self.max_message  # UTF-8 has at most 3 bytes for each UTF-16 unit, which JavaScript counts


def _site(name: str, served_port: int) -> tuple[str, str, int]:
    """Return scheme, host and port of an allowed host."""
    error = GameloreError(f"expected the name of a host, such as box.local or box.local:8080, got {name!r}; correct it")
    try:
        parts = urlsplit(name if "://" in name else f"http://{name}")
        scheme, host, port = parts.scheme, parts.hostname or "", parts.port
        if ":" in host:
            host = f"[{ip_address(host)}]"
    except ValueError:
        raise error from None
    has_extra = parts.path or parts.query or parts.fragment or parts.username is not None
    if scheme not in DEFAULT_PORTS or has_extra or not (host.startswith("[") or HOST_NAME.fullmatch(host)):
        raise error
    return scheme, host, port or (DEFAULT_PORTS[scheme] if "://" in name else served_port)


def _socket_sources(origins: set[str]) -> str:
    """Return the websockets of pages as sources of a content security policy, which cannot have an IPv6 address.

    Old versions of Safari do not count them as 'self'.
    """
    parts = [origin.split("://") for origin in sorted(origins)]
    return " ".join(f"{SOCKET_SCHEMES[scheme]}://{host}" for scheme, host in parts if not host.startswith("["))


class _RefusedError(Exception):
    """A request that the guard refuses with an HTTP status."""

    def __init__(self, status: int, reason: str) -> None:
        self.status = status
        super().__init__(reason)


class Guard:
    """ASGI application that passes allowed requests of browsers to another application.

    Args:
        app: The application, which may be NiceGUI in FastAPI.
        settings: Allowed hosts and limits.
        clock: Seconds, for the rate of messages.
    """

    def __init__(self, app: Application, settings: GuardSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self.app = app  # by this name, NiceGUI looks for its own application
        self.settings = settings
        self.num_sockets = 0
        self._clock = clock
        self._origins = settings.origins
        self._example = f"127.0.0.1:{settings.port}"
        self._sockets = _socket_sources(set().union(*self._origins.values()))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on. Messages about the start and the end of the server are passed on."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        try:
            self._check(scope)
        except _RefusedError as refused:
            await self.refuse(scope, send, refused)
            return
        if scope["type"] == "websocket":
            await self._serve_socket(scope, receive, send)
        else:
            await self._serve_page(scope, receive, send)

    # checks

    def _check(self, scope: Scope) -> None:
        """Raise _RefusedError if the request is not allowed."""
        is_socket = scope["type"] == "websocket"
        fields: Fields = {}
        for name, value in scope["headers"]:
            fields.setdefault(bytes(name).lower(), []).append(bytes(value))
        origins = self._check_host(fields)
        _check_origin(fields, origins, is_needed=is_socket)
        _check_fetch_site(fields, may_navigate=not is_socket and scope["method"] in ("GET", "HEAD"))
        _check_path(scope["path"], is_socket)
        self._check_length(fields)
        if is_socket and self.num_sockets >= self.settings.max_sockets:
            most = self.settings.max_sockets
            raise _RefusedError(503, f"expected at most {most} websockets at the same time, got one more; close pages")

    def _check_host(self, fields: Fields) -> set[str]:
        """Return the origins that belong to the host of a request."""
        hosts = fields.get(b"host", [])
        if len(hosts) != 1:
            raise _RefusedError(400, f"expected one header Host, got {len(hosts)}; use a browser")
        host = hosts[0].decode("latin-1").lower()
        if host not in self._origins:
            remedy = "add --allow-host NAME if this name is yours"
            raise _RefusedError(421, f"expected Host {self._example}, got {printable(host)!r}; {remedy}")
        return self._origins[host]

    def _check_length(self, fields: Fields) -> None:
        lengths = fields.get(b"content-length", [b"0"])
        if len(lengths) != 1 or not re.fullmatch(rb"[0-9]{1,18}", lengths[0]):
            raise _RefusedError(
                400, "expected one number of bytes as Content-Length, got something else; use a browser"
            )
        if int(lengths[0]) > self.settings.max_body:
            raise _too_long(self.settings, f"{int(lengths[0])}")

    # refusals

    async def refuse(self, scope: Scope, send: Send, refused: _RefusedError) -> None:
        """Reply with an error, instead of the application. A refused handshake of a websocket has the status 403."""
        _log(scope, refused)
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": TOO_FAST, "reason": ""})
            return
        text = f"refused: {refused}\n".encode()
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(text))]
        headers = [*headers, (b"connection", b"close"), *self.headers(refused.status, [])]
        await send({"type": "http.response.start", "status": refused.status, "headers": headers})
        await send({"type": "http.response.body", "body": text})

    def headers(self, status: int, headers: list[tuple[bytes, bytes]], scripts: str = "") -> list[tuple[bytes, bytes]]:
        """Return the headers of a reply with those of the guard in addition. `scripts`: sources of allowed scripts."""
        policy = POLICY.format(sockets=self._sockets, scripts=scripts).encode("ascii")
        own = {**HEADERS, b"content-security-policy": policy}
        if status >= 400 or not any(name.lower() == b"cache-control" for name, _ in headers):
            own[b"cache-control"] = b"no-store"
        return [*((name, value) for name, value in headers if name.lower() not in own), *own.items()]

    # requests that are passed on

    async def _serve_page(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = _Exchange(self, scope, receive, send)
        try:
            await self.app(_plain(scope), exchange.receive, exchange.send)
        except Exception:
            if not exchange.is_cut and not exchange.is_lost:  # a request that ends early may raise what it likes
                raise

    async def _serve_socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.num_sockets += 1
        try:
            socket = _Socket(self.settings, self._clock, scope, receive, send)
            await self.app(scope, socket.receive, socket.send)
        finally:
            self.num_sockets -= 1


def _too_long(settings: GuardSettings, length: str) -> _RefusedError:
    reason = f"expected a body of at most {settings.max_body} bytes, got {length}; send a smaller file"
    return _RefusedError(413, reason)


def _check_origin(fields: Fields, origins: set[str], *, is_needed: bool) -> None:
    """Refuse the pages of other origins. Browsers send an origin with every handshake of a websocket."""
    values = [value.decode("latin-1") for value in fields.get(b"origin", [])]
    example = min(origins)
    if is_needed and not values:
        raise _RefusedError(403, f"expected Origin {example}, got none; use a browser, or send this header")
    if len(values) > 1 or not origins.issuperset(values):
        remedy = "open the page itself, instead of using it from another page"
        raise _RefusedError(403, f"expected Origin {example}, got {printable(', '.join(values))!r}; {remedy}")


def _check_fetch_site(fields: Fields, *, may_navigate: bool) -> None:
    """Refuse what other pages load, embed or send, except for opening the page in a tab."""
    if SAME_SITE.issuperset(fields.get(b"sec-fetch-site", [])):
        return
    opens = fields.get(b"sec-fetch-mode") == [b"navigate"] and fields.get(b"sec-fetch-dest") == [b"document"]
    if not (may_navigate and opens):
        site = printable(b", ".join(fields[b"sec-fetch-site"]).decode("latin-1"))
        remedy = "open the page itself, instead of using it from another page"
        raise _RefusedError(403, f"expected Sec-Fetch-Site same-origin, got {site!r}; {remedy}")


def _check_path(path: str, is_socket: bool) -> None:
    """Refuse websockets elsewhere than at NiceGUI's path, and long polling there."""
    if is_socket and path != SOCKET_PATH:
        raise _RefusedError(403, f"expected a websocket at {SOCKET_PATH}, got another path; reload the page")
    if not is_socket and f"{path}/".startswith(SOCKET_MOUNT):
        raise _RefusedError(403, "expected a websocket, got long polling; let the proxy or browser pass websockets")


def _plain(scope: Scope) -> Scope:
    """Return a scope without headers that NiceGUI believes, and without compression of pages, which are hashed."""
    unwanted = {b"x-forwarded-prefix"}
    if not scope["path"].startswith(STATIC_PATH):
        unwanted.add(b"accept-encoding")
    return {**scope, "headers": [field for field in scope["headers"] if bytes(field[0]).lower() not in unwanted]}


def _log(scope: Scope, reason: object) -> None:
    sender = (scope.get("client") or ["unknown"])[0]
    what = scope.get("method", "websocket")
    log.warning("refused %s %s from %s: %s", printable(what), printable(scope["path"]), sender, reason)


class _Exchange:
    """Receiver and sender of a request over HTTP: a body under a limit, and the headers of the guard in the reply.

    Attributes:
        is_cut: whether the guard has ended the request, because its body is too long
        is_lost: whether the connection has ended before the body
    """

    def __init__(self, guard: Guard, scope: Scope, receive: Receive, send: Send) -> None:
        self.is_cut = self.is_lost = False
        self._has_all = False
        self._guard, self._scope, self._receive, self._send = guard, scope, receive, send
        self._num_received = 0
        self._is_started = False
        self._start: Message | None = None  # begin of a reply whose scripts are not yet known
        self._page = bytearray()

    async def receive(self) -> Message:
        """Return the next part of the body; the end of the connection if the body is too long."""
        if self.is_cut:
            return {"type": "http.disconnect"}
        message = await self._receive()
        self.is_lost = self.is_lost or (message["type"] == "http.disconnect" and not self._has_all)
        self._has_all = self._has_all or not message.get("more_body", False)
        self._num_received += len(message.get("body", b""))
        if self._num_received <= self._guard.settings.max_body:
            return message
        self.is_cut = True
        refused = _too_long(self._guard.settings, "more")
        if self._is_started:
            _log(self._scope, refused)
        else:
            await self._guard.refuse(self._scope, self._send, refused)
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Send a part of the reply. A page is kept until its end, because a header has the hashes of its scripts."""
        if self.is_cut:
            return
        if message["type"] == "http.response.start":
            await self._begin(message)
        elif self._start is not None and message["type"] == "http.response.body":
            await self._collect(self._start, message)
        else:
            await self._send(message)

    async def _begin(self, message: Message) -> None:
        headers = [(bytes(name).lower(), bytes(value)) for name, value in message["headers"]]
        if any(name == b"content-type" and value.lower().startswith(b"text/html") for name, value in headers):
            self._start = message
            return
        self._is_started = True
        await self._send({**message, "headers": self._guard.headers(message["status"], headers)})

    async def _collect(self, start: Message, message: Message) -> None:
        self._page += message.get("body", b"")
        if message.get("more_body", False):
            return
        page = bytes(self._page)
        headers = self._guard.headers(start["status"], list(start["headers"]), f"'unsafe-eval' {_hashes(page)}")
        self._is_started = True
        await self._send({**start, "headers": headers})
        await self._send({**message, "body": page})


def _hashes(page: bytes) -> str:
    """Return the hashes of all scripts in a page, as sources of a content security policy."""
    scripts = dict.fromkeys(INLINE_SCRIPT.findall(page.replace(b"\r\n", b"\n").replace(b"\r", b"\n")))
    hashes = [base64.b64encode(hashlib.sha256(script).digest()).decode("ascii") for script in scripts if script]
    return " ".join(f"'sha256-{value}'" for value in hashes)


class _Event(msgspec.Struct):
    """An event of NiceGUI's page, with those fields that NiceGUI reads."""

    client_id: str


class _Handshake(_Event):
    tab_id: str
    document_id: str
    old_tab_id: str | None = None
    next_message_id: int | str | None = None


class _ElementEvent(_Event):
    id: int | str
    listener_id: str
    args: list[str | None]  # each in JSON


class _ScriptResult(_Event):
    request_id: str


class _Acknowledgement(_Event):
    next_message_id: int


class _LogLine(_Event):
    level: Literal["debug", "info", "warning", "error"]
    message: Any


EVENTS: dict[str, msgspec.json.Decoder[Any]] = {
    "handshake": msgspec.json.Decoder(tuple[str, _Handshake]),
    "event": msgspec.json.Decoder(tuple[str, _ElementEvent]),
    "javascript_response": msgspec.json.Decoder(tuple[str, _ScriptResult]),
    "ack": msgspec.json.Decoder(tuple[str, _Acknowledgement]),
    "log": msgspec.json.Decoder(tuple[str, _LogLine]),
}
ARGUMENT = msgspec.json.Decoder(msgspec.Raw)  # which looks at the syntax only


class _Socket:
    """Receiver and sender of a websocket, with limits on what it receives."""

    def __init__(
        self, settings: GuardSettings, clock: Callable[[], float], scope: Scope, receive: Receive, send: Send
    ) -> None:
        self._settings, self._clock, self._scope, self._receive, self._send = settings, clock, scope, receive, send
        self._is_closed = False
        self._num_allowed = float(settings.message_burst)  # token bucket
        self._filled = clock()

    async def receive(self) -> Message:
        """Return the next message; the end of the connection if the message is not allowed."""
        if self._is_closed:
            return {"type": "websocket.disconnect", "code": UNSUPPORTED}
        message = await self._receive()
        problem = self._problem(message) if message["type"] == "websocket.receive" else None
        if problem is None:
            return message
        code, reason = problem
        self._is_closed = True
        _log(self._scope, reason)
        await self._send({"type": "websocket.close", "code": code, "reason": ""})
        return {"type": "websocket.disconnect", "code": code}

    async def send(self, message: Message) -> None:
        """Send a message, unless the guard has closed the websocket."""
        if not self._is_closed:
            await self._send(message)

    def _problem(self, message: Message) -> tuple[int, str] | None:
        """Return the code and the reason for closing the websocket because of a message; None if it is allowed."""
        text = message.get("text")
        most, rate = self._settings.max_message, self._settings.message_rate
        if not self._may_send():
            return TOO_FAST, f"expected at most {rate:g} messages in a second, got more; reload the page"
        if text is None:
            return UNSUPPORTED, "expected a message of NiceGUI's page, got bytes; use a browser"
        if len(text) > most:
            return TOO_BIG, f"expected a message of at most {most} characters, got {len(text)}; enter a shorter text"
        if not _is_of_page(text):
            return UNSUPPORTED, f"expected a message of NiceGUI's page, got {printable(text, 80)!r}; use a browser"
        return None

    def _may_send(self) -> bool:
        now = self._clock()
        refilled = self._num_allowed + (now - self._filled) * self._settings.message_rate
        self._filled, self._num_allowed = now, min(refilled, float(self._settings.message_burst)) - 1.0
        return self._num_allowed >= 0.0


def _is_of_page(text: str) -> bool:
    """Whether NiceGUI's page may have sent a message."""
    match = SOCKET_MESSAGE.fullmatch(text)
    if match is None or match["event"] is None:
        return match is not None
    try:
        _, event = EVENTS[match["name"]].decode(match["event"])
        for argument in event.args if isinstance(event, _ElementEvent) else ():
            ARGUMENT.decode("null" if argument is None else argument)
    except (KeyError, msgspec.MsgspecError, RecursionError):
        return False
    return True
