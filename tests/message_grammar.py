"""Sequences of GGP messages from a grammar: whole matches, interleaved, then disturbed; and how each is sent."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any, TypeAlias

import mutants
from explosions import BEGIN, EXPLOSIONS
from gamelore import load
from gamelore.rulesheets import path
from random_programs import rulesheet
from wire import request

GAMES = ("tictactoe", "losetictactoe", "connect3")
MOST_MATCHES = 3  # in a sequence
SIZES = (20_000, 20_000, 20_000, 700_000)  # characters of a rulesheet that explodes, at most
CLOCKS = ("0", "1", "1", "2", "5", "5", "10000000")
FOREIGN = (
    *("", "()", "NIL", "((()))", "m" * 600, "(mark 9 9)", "(mark 1 1)", "noop", "nil", "-1", "9" * 400, "1e3", "0.5"),
    *("../../x", "$(id)", "`id`", "( a . b )", "\0", "\x1b[2J", "ü", "; comment\n", "?x", "(<= p (not p))", '"a"'),
    *("(" * 300, ")" * 300, "(a " * 300 + ")" * 300, "xplayer", "oplayer", "START", "INFO", " ".join(["noop"] * 2000)),
)
"""Texts that take the place of a part of a message."""
WAYS = {"whole": 16, "pieces": 2, "cut": 1, "held": 1, "unread": 1, "shut": 1}
"""How the bytes of a message are sent, and how often.

pieces  slowly, in pieces
cut     only the first half, then the connection is closed
held    only the first half; the connection stays open until the end of the sequence
unread  all, and the connection is closed before the reply
shut    all, and the sender's side of the connection is closed
"""

Parts: TypeAlias = list[str]
"""The words and lists of a message."""


def drawn(random: Random) -> dict[str, Any]:
    """Draw a sequence of messages.

    Each step has the bytes to send (as latin-1), the way to send them, and whether to wait for the reply. `newcomer` is
    a fact that makes the game of an innocent match beside them a new one; it is empty if that is a known game.
    """
    scripts = [_match(random) for _ in range(random.randint(1, MOST_MATCHES))]
    messages = _interleaved(scripts, random)
    for _ in range(random.choice((0, 1, 3, 6))):
        random.choice(DISTURBANCES)(messages, random)
    newcomer = f"(another {random.getrandbits(40):x})" if random.random() < 0.1 else ""
    return {"steps": [_step(parts, random) for parts in messages], "newcomer": newcomer}


def _interleaved(scripts: list[list[Parts]], random: Random) -> list[Parts]:
    order = [script for script in scripts for _ in script]
    random.shuffle(order)
    following = {id(script): iter(script) for script in scripts}
    return [list(next(following[id(script)])) for script in order]


# ---- matches ----------------------------------------------------------------------------------------------------


def _match(random: Random) -> list[Parts]:
    """Draw the messages of one match, from START to STOP or ABORT, some of which may be missing."""
    match, clocks = f"hostile.{random.getrandbits(40):x}", [random.choice(CLOCKS), random.choice(CLOCKS)]
    kind = random.choices((_shipped, _random_program, _mutant, _explosion), (20, 2, 2, 1))[0]
    rules, role, joints = kind(random)
    script = [["INFO"]] if random.random() < 0.3 else []
    if random.random() < 0.1:
        script.append(["PREVIEW", f"( {rules} )", clocks[0]])
    script.append(["START", match, role, f"( {rules} )", *clocks])
    shown = ["NIL", *(f"( {' '.join(joint)} )" for joint in joints)]
    script += [["PLAY", match, moves] for moves in shown[: random.randint(0, len(shown))]]
    end = random.random()
    if end < 0.6:
        script.append(["STOP", match, shown[-1]])
    elif end < 0.8:
        script.append(["ABORT", match])
    return script


Drawn: TypeAlias = tuple[str, str, list[list[str]]]
"""Rules, a role, and joint moves."""


def _shipped(random: Random) -> Drawn:
    """Draw a random match of a shipped game."""
    name = random.choice(GAMES)
    position, joints = _start_of(name), []
    while not position.is_terminal:
        joints.append([random.choice(moves) for moves in position.legal.values()])
        position = position.play(joints[-1])
    return _line(path(name).read_text(encoding="utf-8")), random.choice(list(position.legal)), joints


@cache
def _start_of(name: str) -> Any:
    return load(name).start()


def _random_program(random: Random) -> Drawn:
    return _with_words(rulesheet(random), random)


def _mutant(random: Random) -> Drawn:
    text = path(random.choice(GAMES)).read_text(encoding="utf-8")
    return _with_words((mutants.mutated if random.random() < 0.5 else mutants.altered)(text, random), random)


def _explosion(random: Random) -> Drawn:
    """Draw rules that explode, of any size up to the one at which they do, or as large as fits."""
    make, size = EXPLOSIONS[random.choice(list(EXPLOSIONS))]
    size, most = random.randint(max(1, size // 4), size), random.choice(SIZES)
    while len(text := BEGIN + make(size)) > most and size > 1:
        size = max(1, size * most // (len(text) + most // 10))
    return _with_words(text, random)


def _with_words(rules: str, random: Random) -> Drawn:
    """Draw a role and joint moves from the words of the rules."""
    roles = re.findall(r"\(role ([^()\s?]+)\)", rules) or ["robot"]
    moves = re.findall(r"\(legal [^()\s]+ ([^()\s?]+|\([^()?]*\))\)", rules) or ["noop"]
    joints = [[random.choice(moves) for _ in roles[:5]] for _ in range(random.randint(0, 4))]
    return _line(rules), random.choice(roles), joints


def _line(rules: str) -> str:
    return " ".join(re.sub(r";[^\r\n]*", "", rules).split())


# ---- disturbances -----------------------------------------------------------------------------------------------


def _place(messages: list[Parts], random: Random) -> int:
    return random.randrange(len(messages))


def _drop(messages: list[Parts], random: Random) -> None:
    if len(messages) > 1:
        del messages[_place(messages, random)]


def _repeat(messages: list[Parts], random: Random) -> None:
    place = _place(messages, random)
    messages[place:place] = [list(messages[place])] * random.choice((1, 1, 2, 12))


def _move(messages: list[Parts], random: Random) -> None:
    """Let a message come earlier or later."""
    parts = messages.pop(_place(messages, random))
    messages.insert(random.randint(0, len(messages)), parts)


def _exchange(messages: list[Parts], random: Random) -> None:
    """Put a part of a message, such as an id, a role or a joint move, into another one."""
    source, target = random.choice(messages), random.choice(messages)
    target[random.randrange(len(target))] = random.choice(source)


def _replace(messages: list[Parts], random: Random) -> None:
    parts = random.choice(messages)
    parts[random.randrange(len(parts))] = random.choice(FOREIGN)


def _remove_part(messages: list[Parts], random: Random) -> None:
    parts = random.choice(messages)
    if len(parts) > 1:
        del parts[random.randrange(len(parts))]


def _add_part(messages: list[Parts], random: Random) -> None:
    parts = random.choice(messages)
    parts.insert(random.randint(0, len(parts)), random.choice(FOREIGN))


def _respell(messages: list[Parts], random: Random) -> None:
    parts = random.choice(messages)
    parts[:] = [random.choice((str.upper, str.lower, str.capitalize))(part) for part in parts]


def _mutate(messages: list[Parts], random: Random) -> None:
    """Change some characters of a message; its parts are one text then."""
    parts = random.choice(messages)
    text = " ".join(parts) or "INFO"
    for _ in range(random.randint(1, 8)):
        begin = random.randrange(len(text) + 1)
        end = begin + random.choice((0, 0, 1, 1, 20))
        scrap = random.choice((*mutants.SCRAPS, chr(random.randrange(256)), text[begin : begin + 100]))
        text = text[:begin] + scrap + text[end:]
    parts[:] = [text]


DISTURBANCES: tuple[Callable[[list[Parts], Random], None], ...] = (
    *(_drop, _repeat, _move, _move, _exchange, _exchange, _replace, _replace, _add_part, _respell, _mutate, _mutate),
    _remove_part,
)


# ---- requests ---------------------------------------------------------------------------------------------------


def _step(parts: Parts, random: Random) -> dict[str, Any]:
    body = f"( {' '.join(parts)} )" if random.random() < 0.97 else " ".join(parts)
    sent = request(body.encode("utf-8", "surrogatepass"))
    if random.random() < 0.12:
        sent = random.choice(HEADS)(sent, random)
    way = random.choices(list(WAYS), list(WAYS.values()))[0]
    return {"sent": sent.decode("latin-1"), "way": way, "waits": random.random() < 0.8}


def _other_length(sent: bytes, random: Random) -> bytes:
    shown = str(random.choice((0, 1, 5, 100, 10_000, -8, 2**31, 10**15, "eight", "", "8, 8")))
    return re.sub(rb"Content-Length: \d+", b"Content-Length: " + shown.encode(), sent, count=1)


def _other_method(sent: bytes, random: Random) -> bytes:
    method = random.choice((b"GET", b"PUT", b"OPTIONS", b"DELETE", b"post", b"", b"POST POST", b"\0"))
    return sent.replace(b"POST", method, 1)


def _other_field(sent: bytes, random: Random) -> bytes:
    """Add or replace a field."""
    field = random.choice(
        (
            *("Host: localhost", "Host: evil.example", "Host: 127.0.0.1:9147", "Host:", "Origin: http://evil.example"),
            *("Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: none", "Transfer-Encoding: chunked", "no colon at all"),
            *(
                "Content-Type: application/json",
                "User-Agent: Mozilla/5.0",
                "Expect: 100-continue",
                "X: " + "y" * 20_000,
            ),
            *(
                "Connection: keep-alive",
                "Content-Length: 4",
                "Content-Encoding: gzip",
                "Upgrade: h2c",
                "X: y\r\n" * 3000,
            ),
        )
    ).encode()
    others = sent.replace(b"Content-Type: text/acl\r\n", b"", random.randint(0, 1))
    return others.replace(b"\r\n", b"\r\n" + field + b"\r\n", 1)


def _form(sent: bytes, random: Random) -> bytes:
    """Make the message one that a web page may send by a form."""
    fields = b"Content-Type: text/plain\r\nUser-Agent: Mozilla/5.0"
    return sent.replace(b"Content-Type: text/acl", fields, 1)


def _bare_lines(sent: bytes, random: Random) -> bytes:
    return sent.replace(b"\r\n", b"\n")


def _damaged_head(sent: bytes, random: Random) -> bytes:
    head, blank, body = sent.partition(b"\r\n\r\n")
    damaged = bytearray(head)
    for _ in range(random.randint(1, 5)):
        damaged[random.randrange(len(damaged))] = random.randrange(256)
    return bytes(damaged) + blank + body


def _no_head(sent: bytes, random: Random) -> bytes:
    return sent.partition(b"\r\n\r\n")[2] + random.choice((b"", b"\r\n\r\n", b"\n\n"))


def _garbage(sent: bytes, random: Random) -> bytes:
    return random.randbytes(random.choice((1, 100, 20_000))) + random.choice((b"", b"\r\n\r\n"))


HEADS: tuple[Callable[[bytes, Random], bytes], ...] = (
    *(_other_length, _other_length, _other_method, _other_field, _other_field, _form, _bare_lines, _damaged_head),
    *(_no_head, _garbage),
)
