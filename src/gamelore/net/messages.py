"""Messages of the GGP protocol: parse them, write them, and compute thinking times. This module sends nothing.

A message of a host is one s-expression, such as `( PLAY match ( (mark 1 1) noop ) )`. A reply of a player is an
expression, too. The parser is tolerant: it ignores case, white space, comments and additional arguments, and accepts
missing arguments if the meaning is clear. The writer is exact. Names keep their spelling, because only code that knows
the game can compare names by meaning. All messages are ASCII, because some programs count characters instead of bytes
for Content-Length.

The parser returns a message or raises a ProtocolError, in time linear in the length of the text. It matches parentheses
by counting, not by recursion, and copies rules without parsing them.

Times are in seconds. Deadlines are in seconds of `time.monotonic`. A clock of the protocol includes the time that the
reply travels over the network, so the player server keeps a margin of each clock unused. The reply is sent half of the
margin before the clock ends. The player has to stop thinking another half of the margin before that. Even with a
margin of 0 the player has to stop a little before the reply is sent, or its move would always be late.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import ProtocolError
from ..gdl import syntax
from ..gdl.syntax import printable

READY, BUSY, DONE, ABORTED, NIL = "ready", "busy", "done", "aborted", "nil"  # replies of a player that are not moves
AVAILABLE = "available"  # status of a player that is free; BUSY is the status of one that is not

MAX_NESTING = (
    syntax.MAX_NESTING + 2
)  # nested parentheses: those in the rules, one pair around the rules and one around the message
MAX_MATCH_ID = 500  # characters
MAX_TERM = 10_000  # characters in a role or a move
MAX_MOVES = 1_000  # moves in a joint move
MAX_CLOCK = 10_000_000  # seconds, about four months
MARGIN = 0.5  # seconds of each clock that the player server leaves unused by default
LEAST = 0.2  # seconds; minimum of `answer_time`, even for a clock of 0: managers wait a second longer than the clock


@dataclass(frozen=True, slots=True)
class Info:
    """`( INFO )`, also `( PING )`: the host asks for the name of the player and whether it is free."""


@dataclass(frozen=True, slots=True)
class Preview:
    """`( PREVIEW ( rules ) clock )`: rules to prepare. `clock` is in seconds, `rules` has no outer parentheses."""

    rules: str
    clock: int


@dataclass(frozen=True, slots=True)
class Start:
    """`( START match role ( rules ) startclock playclock )`: a match begins. Clocks are in whole seconds, from 0."""

    match: str
    role: str
    rules: str
    startclock: int
    playclock: int


@dataclass(frozen=True, slots=True)
class Play:
    """`( PLAY match ( move ... ) )`: the last joint move, in the order of roles. None (NIL) in the first turn."""

    match: str
    moves: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Stop:
    """`( STOP match ( move ... ) )`: the match is over. `moves` is the last joint move, or None if there was none."""

    match: str
    moves: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Abort:
    """`( ABORT match )`: the match is cancelled and does not count."""

    match: str


Message: TypeAlias = Info | Preview | Start | Play | Stop | Abort


class PlayerInfo(NamedTuple):
    """The reply of a player to INFO. A missing value is an empty string. `status` is in lower case."""

    name: str = ""
    status: str = ""
    species: str = ""

    @property
    def is_free(self) -> bool:
        """Whether the player accepts a match now."""
        return self.status in (AVAILABLE, READY)


def parse(text: str) -> Message:
    """Read a message of a host.

    A missing clock counts as 0: the player then replies as fast as possible. A missing joint move counts as NIL. A
    joint move that is a single word needs no parentheses. `rules` keeps its lines; blanks replace the comments.
    Raise ProtocolError for a text that is not a message.
    """
    expressions = _expressions(_ascii(_without_comments(text)))
    if len(expressions) != 1:
        raise ProtocolError(
            f"expected one message, got {len(expressions)} expressions; send ( INFO ) or another message"
        )
    words = _arguments(expressions[0])
    keyword = words[0].upper() if words else "nothing"
    if keyword not in _FORMS:
        keywords = ", ".join(_FORMS)
        raise ProtocolError(f"expected one of the messages {keywords}, got {printable(keyword, 40)}; send one of these")
    kind, form = _FORMS[keyword]
    try:
        return kind(*(_FIELDS[name].argument(words[index:]) for index, name in enumerate(kind.__match_args__, 1)))
    except _UnfitError as error:
        expected, got = error.args
        raise ProtocolError(f"expected {expected} in {keyword}, got {printable(got, 40)}; write {form}") from None


def show(message: Message) -> str:
    """Return a message as one line without comments. Raise ProtocolError for a value that cannot be written."""
    arguments = (_FIELDS[name].show(getattr(message, name)) for name in message.__match_args__)
    return f"( {' '.join([type(message).__name__.upper(), *arguments])} )"


def parse_reply(text: str) -> str:
    """Return the first expression of a player's reply in canonical form; ignore the text after it.

    Raise ProtocolError if the reply has no expression, or if its first expression is not a term.
    """
    text = _without_comments(text.removeprefix(_BYTE_ORDER_MARK)).lstrip(_SPACE)
    if not text.startswith("("):
        word = _WORD.match(text)
        return term(word.group() if word else "")
    ends = np.flatnonzero(_depths(text) == 0)
    if not ends.size:
        raise ProtocolError(
            f"expected a reply, got {printable(text, 40)}, in which a '(' is never closed; add the missing ')'"
        )
    return term(text[: int(ends[0]) + 1])


def parse_status(text: str) -> PlayerInfo:
    """Read a player's reply to INFO: `((name X) (status available) (species Y))`, or only a status.

    The outer parentheses may be missing, and a name may have several words. Raise ProtocolError for an empty reply.
    """
    expressions = _expressions(_without_comments(text.encode("ascii", "replace").decode()))
    if len(expressions) == 1 and expressions[0].startswith("("):
        inner = _arguments(expressions[0])
        expressions = inner if any(part.startswith("(") for part in inner) or len(inner) == 1 else expressions
    values: dict[str, str] = {}
    for part in expressions:
        words = _arguments(part) if part.startswith("(") else ["status", part]
        if len(words) > 1:
            values.setdefault(words[0].lower(), " ".join(words[1:]))
    info = {key: printable(values[key]) for key in PlayerInfo._fields if key in values}
    if not info:
        got = printable(text, 40) or "nothing"
        raise ProtocolError(f"expected ( ( name X ) ( status available ) ), got {got}; answer INFO in this form")
    return PlayerInfo(info.get("name", ""), info.get("status", "").lower(), info.get("species", ""))


def show_info(info: PlayerInfo) -> str:
    """Return a player's reply to INFO as text. Raise ProtocolError for a value that is not one word."""
    parts = [f"( {key} {_word(value, key)} )" for key, value in info._asdict().items() if value]
    return f"( {' '.join(parts)} )"


def term(text: str) -> str:
    """Return a term in canonical form, `(mark 1 1)` or `noop`: single spaces, no parentheses around a word.

    Raise ProtocolError for a text that is not a term.
    """
    if len(text) <= MAX_TERM and _CANONICAL.fullmatch(text):
        return text  # the usual case
    if len(text) > MAX_TERM:
        raise ProtocolError(f"expected a term of at most {MAX_TERM} characters, got {len(text)}; write a shorter one")
    spaced = _ascii(_without_comments(text)).replace("(", " ( ").replace(")", " ) ")
    shown = " ".join(spaced.split()).replace("( ", "(").replace(" )", ")")
    if "((" in shown or "()" in shown or len(_expressions(shown)) != 1:
        raise ProtocolError(f"expected a term such as (mark 1 1), got {printable(text, 40) or 'nothing'}; send a term")
    return _ALONE.sub(r"\1", shown)


def match_id(text: str) -> str:
    """Return the id of a match after checking it. Raise ProtocolError for a text that is not one word."""
    if len(text) > MAX_MATCH_ID:
        raise ProtocolError(
            f"expected a match id of at most {MAX_MATCH_ID} characters, got {len(text)}; choose a shorter one"
        )
    return _word(text, "the id of a match")


def thinking_time(clock: float, margin: float = MARGIN) -> float:
    """Return the thinking time in seconds: the clock minus the margin, but at least half of the clock.

    The result is always less than `answer_time`.
    """
    return max(answer_time(clock, margin) - max(margin, LEAST) / 2, clock / 2, LEAST / 2)


def answer_time(clock: float, margin: float = MARGIN) -> float:
    """Return the seconds from the arrival of a message to the latest time at which the reply is sent.

    This is the clock minus half of the margin, but at least 3/4 of the clock and at least LEAST.
    """
    return max(clock - margin / 2, clock * 3 / 4, LEAST)


def left(deadline: float) -> float:
    """Return the seconds until a deadline; 0 if the deadline has passed."""
    return max(0.0, deadline - time.monotonic())


_FORMS: dict[str, tuple[type[Message], str]] = {
    "INFO": (Info, "( INFO )"),
    "PING": (Info, "( PING )"),
    "PREVIEW": (Preview, "( PREVIEW ( rules ) clock )"),
    "START": (Start, "( START match role ( rules ) startclock playclock )"),
    "PLAY": (Play, "( PLAY match ( move ... ) ), or NIL for the moves"),
    "STOP": (Stop, "( STOP match ( move ... ) )"),
    "ABORT": (Abort, "( ABORT match )"),
}

_SPACE = " \t\r\n\f\v"
_BYTE_ORDER_MARK = "\ufeff"
_STRAY = re.compile(r"[^ -~\t\r\n\f\v]")  # neither printable ASCII nor white space
_COMMENT = re.compile(r";[^\r\n]*")
_WORD = re.compile(r"[^\s()]+")
_ALONE = re.compile(r"\(([^() ]+)\)")
_CANONICAL = re.compile(r"[!-'*-:<-~]+|\([!-'*-:<-~]+(?: [!-'*-:<-~]+)+\)")  # a word, or a list of words
_SECONDS = re.compile(r"\d{1,9}(\.\d{0,9})?", re.ASCII)


def _ascii(text: str) -> str:
    """Return the text without a byte order mark. Raise ProtocolError for a character that is not allowed."""
    text = text.removeprefix(_BYTE_ORDER_MARK)
    if stray := _STRAY.search(text):
        fault = f"the character {stray.group()!a} at position {stray.start()}"
        raise ProtocolError(f"expected printable ASCII, got {fault}; leave this character out")
    return text


def _without_comments(text: str) -> str:
    """Return the text with each comment replaced by blanks, so that lines and columns stay the same."""
    return _COMMENT.sub(lambda comment: " " * len(comment.group()), text) if ";" in text else text


def _depths(text: str) -> NDArray[np.int32]:
    """Return the number of open parentheses after each character, int32[characters].

    The number is negative after a closing parenthesis too many.
    """
    characters = np.frombuffer(text.encode("ascii", "replace"), np.uint8)
    steps = (characters == ord("(")).astype(np.int8) - (characters == ord(")")).astype(np.int8)
    return np.cumsum(steps, dtype=np.int32)


def _matched(text: str) -> NDArray[np.int32]:
    """Return `_depths` of the text. Raise ProtocolError if parentheses do not match or are nested too deeply."""
    depths = _depths(text)
    if depths.size and (depths.min() < 0 or depths[-1] != 0):
        fault = "a ')' without a '('" if depths.min() < 0 else "a '(' without a ')'"
        raise ProtocolError(
            f"expected matching parentheses, got {fault} in {printable(text, 40)}; correct the parentheses"
        )
    if depths.size and depths.max() > MAX_NESTING:
        raise ProtocolError(
            f"expected at most {MAX_NESTING} levels of parentheses, got more; write the term with fewer levels"
        )
    return depths


def _expressions(text: str) -> list[str]:
    """Return the words and lists of a text, but not those inside a list. Raise ProtocolError as `_matched` does."""
    depths = _matched(text)
    inside = np.concatenate(([False], depths > 0, [False]))
    edges = np.flatnonzero(
        inside[1:] != inside[:-1]
    ).tolist()  # index of the first and the last character of each list, in turn
    if len(edges) > 2 * MAX_MOVES:
        raise ProtocolError(f"expected at most {MAX_MOVES} lists side by side, got {len(edges) // 2}; send fewer lists")
    expressions, next_index = [], 0
    for begin, end in zip(edges[::2], edges[1::2], strict=True):
        expressions += text[next_index:begin].split()
        expressions.append(text[begin : end + 1])
        next_index = end + 1
    return expressions + text[next_index:].split()


def _arguments(expression: str) -> list[str]:
    """Return the elements of a list. A single word counts as a list with one element."""
    return _expressions(expression[1:-1] if expression.startswith("(") else expression)


def _word(text: str, what: str) -> str:
    if not _WORD.fullmatch(text) or ";" in text or not (text.isascii() and text.isprintable()):
        got = printable(text, 40) or "nothing"
        raise ProtocolError(f"expected one word in ASCII as {what}, got {got}; leave out blanks and parentheses")
    return text


class _UnfitError(Exception):
    """An unsuitable argument of a message. The arguments of the error are the expected kind and the text found."""


def _rules(text: str) -> str:
    if not text.startswith("("):
        raise _UnfitError("rules in parentheses", text)
    return text[1:-1].strip()


def _shown_rules(rules: str) -> str:
    text = _ascii(_without_comments(rules))
    _matched(text)
    return f"( {' '.join(text.split())} )"


def _clock(text: str) -> int:
    """Return a clock in whole seconds, rounded down."""
    if not _SECONDS.fullmatch(text) or float(text) > MAX_CLOCK:
        raise _UnfitError(f"a clock from 0 to {MAX_CLOCK} seconds", text)
    return int(float(text))


def _shown_clock(clock: int) -> str:
    if not 0 <= clock <= MAX_CLOCK:
        raise ProtocolError(f"expected a clock from 0 to {MAX_CLOCK} seconds, got {clock}; choose another clock")
    return str(int(clock))


def _moves(text: str) -> tuple[str, ...] | None:
    moves = _arguments(text)
    if len(moves) > MAX_MOVES:
        raise _UnfitError(f"at most {MAX_MOVES} moves", str(len(moves)))
    return None if not moves or text.lower() == NIL else tuple(map(term, moves))


def _shown_moves(moves: tuple[str, ...] | None) -> str:
    return f"( {' '.join(map(term, moves))} )" if moves else NIL.upper()


class _Field(NamedTuple):
    """An argument of a message: its description, its parser, its writer, and its default value if it is optional."""

    what: str
    read: Callable[[str], Any]
    show: Callable[[Any], str]
    default: str | None = None

    def argument(self, words: list[str]) -> Any:
        """Return the value of the first word, or the default value if there is no word."""
        text = words[0] if words else self.default
        if text is None:
            raise _UnfitError(self.what, "nothing")
        return self.read(text)


_CLOCK = _Field("a clock", _clock, _shown_clock, "0")
_FIELDS = {
    "match": _Field("the id of a match", match_id, match_id),
    "role": _Field("a role", term, term),
    "rules": _Field("rules in parentheses", _rules, _shown_rules),
    "clock": _CLOCK,
    "startclock": _CLOCK,
    "playclock": _CLOCK,
    "moves": _Field("a joint move", _moves, _shown_moves, NIL),
}
