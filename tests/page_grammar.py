"""Hostile things done to the server of the web pages, drawn at random: what is sent, not how it is borne.

Bytes are written as latin-1. What only a running server knows is written as a word: `$HOST`, `$ORIGIN`, and `$CLIENT`
for the id of an open page.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any, TypeAlias
from urllib.parse import quote

import hostile_sheets
import mutants
from gamelore import rulesheets
from gamelore.web.service.guard import SOCKET_PATH
from visitors import BINARY, CLOSE, PING, TEXT, malformed

Step: TypeAlias = dict[str, Any]
MOST_STEPS = 8
PAGES = {
    "/": "start",
    "/?game=shipped/tictactoe": "start",
    "/rulesheets": "new-sheet",
    "/rulesheets?sheet=shipped/tictactoe": "verdict",
    "/learning": "start",
    "/knowledge": "empty",
    "/network": "start-server",
    "$MATCH": "status",
}
"""Pages with elements, and the test id of an element that is there when they are complete. $MATCH: of a new match."""
UNTOUCHED = {("/learning", "start"), ("/network", "start-server"), ("/network", "begin-series")}
"""Buttons that begin what goes on for minutes beside the next batches, or opens a port."""
TEXTS = ("mutated", "altered", "noise", "unicode", "control", "parens", "markup", "explosion", "endless", "long")
"""Kinds of texts for the editor, see `text_of`."""
SHEETS = ("tictactoe", "connectfour", "losetictactoe")
MARKUP = (
    "<script>alert(1)</script>",
    "<img/src=x/onerror=alert(1)>",
    "{{7*7}}",
    "${7}",
    "`+1+`",
    "</script>",
    "'onx='y",
)
FILE_NAMES = (
    *("a.kif", "../../../canary", "..\\..\\canary", "/etc/passwd", "C:\\canary.kif", ".", "..", "", "-", "~/canary"),
    *("a\0b.kif", "<script>alert(1)</script>.kif", "x" * 5000, "con.kif", "a\r\nSet-Cookie: b=c", '"', "\xff\xfe.kif"),
)
PATHS = (
    *("/../canary.txt", "/%2e%2e/%2e%2e/canary.txt", "/..%2f..%2fcanary.txt", "/..%5c..%5ccanary.txt", "/%00", "/\0"),
    *("//evil.example/", "http://evil.example/", "*", "", "?", "/%", "/%ff%fe", "/play/../../canary", "/play/%2e%2e"),
    *(
        "/play/..%2f..%2fcanary",
        f"/play/{'x' * 3000}",
        "/play/a%0ab",
        "/play/<script>",
        "/rulesheets?sheet=own/../../x",
    ),
    *("/rulesheets?sheet=new/%00", "/rulesheets?sheet=%ff", f"/rulesheets?sheet={'y' * 9000}", "/?game=../../canary"),
    *(
        "/_nicegui/",
        "/_nicegui/3.0/static/../../../canary.txt",
        "/_nicegui/client/x/upload/1",
        "/docs",
        "/openapi.json",
    ),
    *("/_nicegui/0/static/%2e%2e/%2e%2e/server.py", "/_nicegui/auto/static/..%2f..%2fcanary.txt", SOCKET_PATH),
    *(f"{SOCKET_PATH}?EIO=4&transport=polling", f"{SOCKET_PATH}?EIO=4&transport=websocket", "/favicon.ico", "/\u00e4"),
    *("/learning?run=%3Cscript%3E", "/knowledge/learner/-1", "/knowledge/learner/99999999999999999999", "/tour/%00"),
)
HOSTS = (
    "$HOST",
    "evil.example",
    "evil.example:80",
    "127.0.0.1",
    "localhost:1",
    "$HOST.evil.example",
    "",
    "[::1]",
    "\xff",
)
ORIGINS = ("$ORIGIN", "http://evil.example", "null", "file://", "https://$HOST", "$ORIGIN.evil.example", "$ORIGIN/", "")
METHODS = (
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "DELETE",
    "OPTIONS",
    "TRACE",
    "CONNECT",
    "PATCH",
    "get",
    "PRI",
    "M" * 3000,
    "\0",
)
FIELDS = (
    *(
        "Sec-Fetch-Site: cross-site",
        "X-Forwarded-Prefix: /<script>",
        "X-Forwarded-Host: evil.example",
        "Expect: 100-continue",
    ),
    *("Content-Length: -1", "Content-Length: 9" + 17 * "9", "Content-Length: 5\r\nContent-Length: 6", "Upgrade: h2c"),
    *(
        "Transfer-Encoding: chunked",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: x",
        "Connection: keep-alive",
    ),
    *(
        "Cookie: " + "a=b; " * 3000,
        "X: " + "y" * 200_000,
        "X: y\r\n" * 3000 + "X: z",
        "no colon",
        " folded: a\r\n b",
        "\0: a",
    ),
    *(
        "Range: bytes=0-99999999999",
        "Range: bytes=-1,0-",
        "If-Modified-Since: \xff",
        "Accept-Language: <script>",
        "Cookie: id=\xff",
    ),
    *(
        "Accept-Encoding: gzip",
        "Content-Type: multipart/form-data",
        "Content-Type: multipart/form-data; boundary=",
        "Host: x",
    ),
)
ODD: tuple[Any, ...] = (
    *(
        None,
        True,
        -1,
        0,
        10**400,
        1e308,
        0.5,
        "",
        "x",
        "\ud800",
        "\0",
        "<script>",
        "x" * 20_000,
        [],
        {},
        [None],
        [[[]]],
    ),
    *(
        {"": None},
        {"a": {"b": []}},
        {"value": {}},
        {"length": -1},
        {"indices": [0], "ply": -1, "role": "xplayer"},
        {"indices": [10**9], "ply": 0, "role": "xplayer"},
        {"indices": [0], "ply": 0, "role": "nobody"},
    ),
    *({"indices": "0", "ply": 0}, {"indices": [True], "ply": False}, {"text": "x", "edits": 10**30, "base": 10**30}),
    *({"text": None, "edits": 1, "base": 0}, {"text": "\ud800", "edits": 1, "base": 0}, {"label": "x", "value": 10**9}),
)
"""Arguments of events that a page does not send, or sends for another element."""


def drawn(random: Random) -> dict[str, Any]:
    """Draw a batch of steps."""
    kinds, weights = list(STEPS), [weight for _, weight in STEPS.values()]
    chosen = random.choices(kinds, weights, k=random.randint(2, MOST_STEPS))
    return {"steps": [{"kind": kind, **STEPS[kind][0](random)} for kind in chosen]}


# ---- requests ---------------------------------------------------------------------------------------------------


def _request(random: Random) -> Step:
    """Draw a request over HTTP, and how it is sent."""
    method = random.choice(("GET", "GET", "POST", *METHODS))
    path = random.choice((*PATHS, "/", quote(mutants.noise(random)[:300])))
    fields = [f"Host: {random.choice(('$HOST',) * 9 + HOSTS)}", "Connection: close"]
    fields += random.sample(FIELDS, random.choice((0, 1, 1, 2)))
    if random.random() < 0.3:
        fields.append(f"Origin: {random.choice(ORIGINS)}")
    body = random.choice(("", "", _chunks(random), random.randbytes(random.choice((10, 5000))).decode("latin-1")))
    sent = "\r\n".join(
        [f"{method} {path} HTTP/{random.choice(('1.1',) * 8 + ('1.0', '0.9', '2.0'))}", *fields, "", body]
    )
    return {"sent": _damaged(sent, random) if random.random() < 0.15 else sent, "way": random.choice(WAYS)}


WAYS = ("whole", "whole", "whole", "pieces", "cut", "held", "unread", "shut")
"""How bytes are sent, see `message_grammar.WAYS`."""


def _chunks(random: Random) -> str:
    """Return the body of a chunked request that is broken."""
    size = random.choice(("5", "ffffffffffffffffff", "-1", "0x5", "", "5;x=" + "y" * 9000, "G", "5\n", "00000005"))
    return f"{size}\r\n{random.choice(('hello', 'he', 'hello world', ''))}\r\n{random.choice(('0', '', 'x'))}\r\n\r\n"


def _damaged(text: str, random: Random) -> str:
    """Change some characters of the first thousand."""
    letters = list(text)
    for _ in range(random.randint(1, 6)):
        letters[random.randrange(min(1000, len(letters)))] = chr(random.randrange(256))
    return "".join(letters)


def _upload(random: Random) -> Step:
    """Draw a file for the real address of an upload: its name, its content, and what is wrong with the form."""
    content = random.choice(("text", "bytes", "zeros", "empty", "giant"))
    return {
        "page": random.choice(("/rulesheets", "/")),
        "name": random.choice((*FILE_NAMES, "a.kif")),
        "content": content,
        "size": random.choice((100, 20_000, 1_400_000, 2_200_000, 8_000_000)) if content != "giant" else 20_000_000,
        "seed": random.getrandbits(30),
        "fault": random.choice(("none", "none", *FORM_FAULTS)),
    }


FORM_FAULTS = ("longer", "shorter", "no end", "other boundary", "no file", "many parts", "odd head", "chunked", "cut")
"""What is wrong with a form: it says that it is longer or shorter than it is, has no end, and so on."""


def form_of(step: Step) -> tuple[bytes, list[str]]:
    """Return the body of an upload, and the fields of its head."""
    random, fault = Random(step["seed"]), step["fault"]
    name = step["name"].encode("latin-1", "replace")
    opening = (
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\nContent-Type: text/plain\r\n\r\n' % name
    )
    if fault == "no file":
        opening = b'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\n'
    if fault == "odd head":
        opening = opening.replace(b"form-data", random.choice((b"", b"\xff\xfe", b"form-data; " * 500, b"x\r\n\r\n")))
    body = opening + _content(step, random) + (b"\r\n" if fault == "no end" else b"\r\n--b--\r\n")
    if fault == "many parts":
        body = opening.join([b"", *[b"x\r\n"] * 3000]) + body
    boundary = "c" if fault == "other boundary" else "b"
    length = len(body) + {"longer": 1000, "shorter": -50}.get(fault, 0)
    fields = [f"Content-Type: multipart/form-data; boundary={boundary}"]
    if fault != "chunked":
        return body, [*fields, f"Content-Length: {max(0, length)}"]
    return b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body), [*fields, "Transfer-Encoding: chunked"]


def _content(step: Step, random: Random) -> bytes:
    size = step["size"]
    if step["content"] == "text":
        return text_of({"text": random.choice(TEXTS), "size": 20, "seed": step["seed"]}).encode("utf-8", "replace")[
            :size
        ]
    return {"empty": b"", "bytes": random.randbytes(min(size, 1_000_000))}.get(step["content"], b"\0" * size)


# ---- websockets -------------------------------------------------------------------------------------------------


def _messages(random: Random) -> Step:
    """Draw messages of a websocket whose page is open; `frames` are sent as they are, after the messages."""
    stream = malformed(random, "$CLIENT")
    sent = [message for _ in range(random.randint(1, 60)) if isinstance(message := next(stream), str)]
    frames = [_frame(random) for _ in range(random.choice((0, 0, 1, 3)))]
    return {"sent": [_shown(message) for message in sent if len(message) < 100_000], "frames": frames}


def _shown(message: str) -> str:
    """Return a message as it can be written: surrogates cannot be sent either."""
    return message.encode("utf-8", "replace").decode()


def _frame(random: Random) -> str:
    """Return a frame that is broken, cut, reserved, or longer than it may be."""
    kind, payload = random.choice((TEXT, BINARY, CLOSE, PING, 0, 3, 11, 15)), random.randbytes(random.randrange(130))
    head = bytes([random.choice((128, 0, 192, 240)) | kind])
    length = random.choice(
        (b"\xff" + b"\xff" * 8, b"\xff" + (1 << 40).to_bytes(8), b"\xfe\0\x01", b"\x05", bytes([128 | 126]))
    )
    whole = head + bytes([128 | min(len(payload), 125)]) + random.randbytes(4) + payload[:125]
    frames = (whole, whole[: len(whole) // 2], head + length + payload, head + length, random.randbytes(300))
    return random.choice(frames).decode("latin-1")


def _handshake(random: Random) -> Step:
    """Draw the handshake of a websocket, mostly with a foreign Host or Origin."""
    fields = [f"Host: {random.choice(HOSTS)}", f"Origin: {random.choice(ORIGINS)}"]
    fields += [random.choice(fields)] if random.random() < 0.2 else []
    if random.random() < 0.2:
        fields.pop(random.randrange(len(fields)))
    if random.random() < 0.3:
        fields.append(
            random.choice(("Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Sec-Fetch-Site: none"))
        )
    query = random.choice(
        ("EIO=4&transport=websocket", "EIO=3", "", "transport=polling", "EIO=4&transport=websocket&client_id=%00")
    )
    path = random.choice((SOCKET_PATH, SOCKET_PATH, SOCKET_PATH, "/", "/_nicegui_ws/", "/%5fnicegui_ws/socket.io/"))
    key = random.choice(("dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZSBub25jZQ==", "", "x" * 2000))
    lines = [f"GET {path}?{query} HTTP/1.1", *fields, "Upgrade: websocket", "Connection: Upgrade"]
    lines += [f"Sec-WebSocket-Version: {random.choice(('13', '13', '8', 'x'))}", f"Sec-WebSocket-Key: {key}"]
    sent = "\r\n".join([*lines, "", ""])
    return {"sent": _damaged(sent, random) if random.random() < 0.1 else sent, "way": "first"}


def handshake_step(host: str, origin: str) -> Step:
    """Return the step of a sound handshake with a Host and an Origin."""
    lines = [f"GET {SOCKET_PATH}?EIO=4&transport=websocket HTTP/1.1", f"Host: {host}", f"Origin: {origin}"]
    lines += ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"]
    return {"kind": "handshake", "sent": "\r\n".join([*lines, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "", ""])}


def _flood(random: Random) -> Step:
    """Draw many connections at once that are dropped after a part of their handshake, or after all of it."""
    return {"number": random.choice((20, 100, 250)), "share": random.choice((0.0, 0.3, 0.9, 1.0, 1.0))}


# ---- pages ------------------------------------------------------------------------------------------------------


def _events(random: Random) -> Step:
    """Draw events of the real elements of a page, with odd arguments. Places are modulo the number of events."""
    events = []
    for _ in range(random.randint(1, 25)):
        args = [json.dumps(random.choice(ODD)) for _ in range(random.choice((1, 1, 1, 0, 2)))]
        if random.random() < 0.1:
            args = [random.choice(("{", "", "[" * 100_000, "nan", "NaN", "9" * 5000, None))]
        events.append([random.randrange(1000), args])
    return {"page": random.choice(list(PAGES)), "events": events}


def _typed(random: Random) -> Step:
    """Draw texts that are typed in the editor, and whether to wait for the verdict on the last one."""
    texts = [{"text": random.choice(TEXTS), "size": random.choice((3, 10, 40)), "seed": random.getrandbits(30)}]
    texts += [{**texts[0], "text": random.choice(TEXTS)}] if random.random() < 0.3 else []
    return {"sheet": f"shipped/{random.choice(SHEETS)}", "texts": texts, "waits": random.random() < 0.25}


def text_of(recipe: dict[str, Any]) -> str:
    """Return the text of a recipe: its kind `text`, a size of 1 to 100, and a seed."""
    random = Random(recipe["seed"])
    return _TEXTS[recipe["text"]](recipe["size"], random)


def _sheet(random: Random) -> str:
    return rulesheets.path(random.choice(SHEETS)).read_text(encoding="utf-8")


def _unicode(size: int, random: Random) -> str:
    text = "".join(
        chr(random.choice((random.randrange(0xD800), random.randrange(0xE000, 0x110000)))) for _ in range(500)
    )
    return _sheet(random) + f"(role {text})" + text * size


def _control(size: int, random: Random) -> str:
    signs = "".join(chr(code) for code in (*range(32), 0x7F, *range(0x80, 0xA0), 0x2028, 0xFEFF, 0x202E, 0xFFFE))
    parts = mutants.tokens(_sheet(random))
    for _ in range(size):
        parts.insert(random.randrange(len(parts)), random.choice(signs))
    return "".join(parts)


def _parens(size: int, random: Random) -> str:
    depth = random.choice((100, 10_000, 100_000))
    return random.choice(
        ("(" * depth, "(" * depth + ")" * depth, ")" * depth, "(<= (p ?x) " + "(not " * depth, "(role " * depth)
    )


def _markup(size: int, random: Random) -> str:
    text = _sheet(random)
    for word in random.sample(("xplayer", "red", "white", "mark", "cell", "control", "drop", "role"), 4):
        text = text.replace(word, random.choice(MARKUP))
    return text


def _explosion(size: int, random: Random) -> str:
    return hostile_sheets.text_of(hostile_sheets.drawn(random))


def _endless(size: int, random: Random) -> str:
    goals = random.choice(("(goal a 0)", "(goal a 100)", "", "(goal a 101)", "(goal a (f a))"))
    step = "(<= (next (at ?y)) (true (at ?x)) (after ?x ?y))" if random.random() < 0.5 else "(next (at z))"
    after = " ".join(f"(after {number} {(number + 1) % size})" for number in range(size))
    return f"(role a) (init (at 0)) (legal a noop) {after} {step} {goals}"


def _long(size: int, random: Random) -> str:
    """Return a text of up to several megabytes, of which the largest are no message of a page."""
    length = random.choice((500_000, 599_999, 600_001, 900_000, 3_000_000))
    part = random.choice(("(p a) ", "x", "\n", "; a comment\n", "\u20ac", "(", '"'))
    return _sheet(random) + part * (length // len(part))


_TEXTS: dict[str, Callable[[int, Random], str]] = {
    "mutated": lambda size, random: mutants.mutated(_sheet(random), random, size),
    "altered": lambda size, random: mutants.altered(_sheet(random), random, size),
    "noise": lambda size, random: "".join(mutants.noise(random) for _ in range(size)),
    "unicode": _unicode,
    "control": _control,
    "parens": _parens,
    "markup": _markup,
    "explosion": _explosion,
    "endless": _endless,
    "long": _long,
}

STEPS: dict[str, tuple[Callable[[Random], Step], int]] = {
    "request": (_request, 10),
    "upload": (_upload, 4),
    "messages": (_messages, 4),
    "handshake": (_handshake, 5),
    "flood": (_flood, 1),
    "events": (_events, 6),
    "typed": (_typed, 4),
}
"""What draws each kind of steps, and how often."""
