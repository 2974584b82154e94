"""What is said on the wire: text to messages and back. Pure functions, nothing is sent here.

A message of a host is one s-expression, `( PLAY match ( (mark 1 1) noop ) )`; a reply of a player is an expression as
well. Reading is tolerant (case, white space, comments, further arguments, arguments left out where the meaning is
clear), writing is exact. Names keep the spelling with which they came: comparing them by meaning is for those who know
the game. Everything is ASCII, for some peers count characters, not bytes, in Content-Length.

Whatever a text holds, reading it ends in a message or in a ProtocolError, in a time that grows with its length only:
parentheses are matched by counting, never by recursion, and rules are cut out without a look into them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import ProtocolError
from ..rules import gdl

READY, BUSY, DONE, ABORTED, NIL = "ready", "busy", "done", "aborted", "nil"  # replies of a player, besides moves
AVAILABLE = "available"  # of its status; the other is BUSY

MAX_NESTING = gdl.MAX_NESTING + 2  # parentheses inside parentheses: those of rules, within theirs, within a message
MAX_MATCH_ID = 500  # characters
MAX_TERM = 10_000  # characters of a role or a move
MAX_MOVES = 1_000  # of a joint move
MAX_CLOCK = 10_000_000  # seconds, some months


@dataclass(frozen=True, slots=True)
class Info:
    """`( INFO )`, also `( PING )`: who is there, and is it free?"""


@dataclass(frozen=True, slots=True)
class Preview:
    """`( PREVIEW ( rules ) clock )`: rules that will be played; `clock` in seconds, `rules` without the parentheses."""

    rules: str
    clock: int


@dataclass(frozen=True, slots=True)
class Start:
    """`( START match role ( rules ) startclock playclock )`: clocks in whole seconds, 0 happens."""

    match: str
    role: str
    rules: str
    startclock: int
    playclock: int


@dataclass(frozen=True, slots=True)
class Play:
    """`( PLAY match ( move .. ) )`: the joint move before this one, in the order of roles; None (NIL) at first."""

    match: str
    moves: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Stop:
    """`( STOP match ( move .. ) )`: the match is over, with this last joint move; None where there was none."""

    match: str
    moves: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Abort:
    """`( ABORT match )`: the match ends here and counts for nothing."""

    match: str


Message: TypeAlias = Info | Preview | Start | Play | Stop | Abort


class PlayerInfo(NamedTuple):
    """What a player says of itself; empty where it says nothing. `status` is in lower case."""

    name: str = ""
    status: str = ""
    species: str = ""

    @property
    def is_free(self) -> bool:
        """Whether it would take a match now."""
        return self.status in (AVAILABLE, READY)


def parse(text: str) -> Message:
    """Reads a message of a host.

    A clock that is left out counts as 0, which is answered as fast as can be; a joint move that is left out as NIL; a
    joint move of one word may lack its parentheses. `rules` keep their lines, with blanks in the place of comments.
    Raises ProtocolError for everything else.
    """
    expressions = _expressions(_without_comments(_ascii(text)))
    if len(expressions) != 1:
        raise ProtocolError(f"expected one message, got {len(expressions)} expressions; send ( INFO ) or another one")
    words = _arguments(expressions[0])
    keyword = words[0].upper() if words else "nothing"
    if keyword not in _READERS:
        known = ", ".join(_READERS)
        raise ProtocolError(f"expected a message ({known}), got {printable(keyword, 40)}; send one of these")
    return _READERS[keyword](_Arguments(keyword, words[1:]))


def show(message: Message) -> str:
    """A message as it goes out: on one line, without comments. Raises ProtocolError for what cannot be said."""
    match message:
        case Info():
            words: tuple[str, ...] = ("INFO",)
        case Preview(rules, clock):
            words = ("PREVIEW", _shown_rules(rules), _shown_clock(clock))
        case Start(match, role, rules, startclock, playclock):
            clocks = _shown_clock(startclock), _shown_clock(playclock)
            words = ("START", match_id(match), term(role), _shown_rules(rules), *clocks)
        case Play(match, moves):
            words = ("PLAY", match_id(match), _shown_moves(moves))
        case Stop(match, moves):
            words = ("STOP", match_id(match), _shown_moves(moves))
        case Abort(match):
            words = ("ABORT", match_id(match))
    return f"( {' '.join(words)} )"


def parse_reply(text: str) -> str:
    """The first expression of a player's reply in canonical form; what comes behind it does not matter.

    Raises ProtocolError where there is none, or one that is no term.
    """
    text = _without_comments(text.removeprefix(_BYTE_ORDER_MARK)).lstrip(_SPACE)
    if not text.startswith("("):
        word = _WORD.match(text)
        return term(word.group() if word else "")
    ends = np.flatnonzero(_depths(text) == 0)
    if not ends.size:
        raise ProtocolError(f"expected a reply, got {printable(text, 40)}, where a '(' is never closed; close it")
    return term(text[: int(ends[0]) + 1])


def parse_status(text: str) -> PlayerInfo:
    """Reads a player's reply to INFO: `((name X) (status available) (species Y))`, or a bare status.

    The outer parentheses may be missing, a name may have several words. Raises ProtocolError where nothing is said.
    """
    expressions = _expressions(_without_comments(text.encode("ascii", "replace").decode()))
    if len(expressions) == 1 and expressions[0].startswith("("):
        inner = _arguments(expressions[0])
        expressions = inner if any(part.startswith("(") for part in inner) or len(inner) == 1 else expressions
    said: dict[str, str] = {}
    for part in expressions:
        words = _arguments(part) if part.startswith("(") else ["status", part]
        if len(words) > 1:
            said.setdefault(words[0].lower(), " ".join(words[1:]))
    known = {key: printable(said[key]) for key in PlayerInfo._fields if key in said}
    if not known:
        got = printable(text, 40) or "nothing"
        raise ProtocolError(f"expected ( ( name X ) ( status available ) ), got {got}; answer INFO with that")
    return PlayerInfo(known.get("name", ""), known.get("status", "").lower(), known.get("species", ""))


def show_info(info: PlayerInfo) -> str:
    """A player's reply to INFO. Raises ProtocolError where something is not one word."""
    parts = [f"( {key} {_word(value, key)} )" for key, value in info._asdict().items() if value]
    return f"( {' '.join(parts)} )"


def term(text: str) -> str:
    """A term in canonical form, `(mark 1 1)` or `noop`: one space between arguments, no parentheses around a word.

    Raises ProtocolError for what is none.
    """
    if len(text) <= MAX_TERM and _CANONICAL.fullmatch(text):
        return text  # as nearly all are
    if len(text) > MAX_TERM:
        raise ProtocolError(f"expected a term of at most {MAX_TERM} characters, got {len(text)}; write a shorter one")
    spaced = _without_comments(_ascii(text)).replace("(", " ( ").replace(")", " ) ")
    shown = " ".join(spaced.split()).replace("( ", "(").replace(" )", ")")
    if "((" in shown or "()" in shown or len(_expressions(shown)) != 1:
        raise ProtocolError(f"expected a term such as (mark 1 1), got {printable(text, 40) or 'nothing'}; send one")
    return _ALONE.sub(r"\1", shown)


def match_id(text: str) -> str:
    """The id of a match, which is one word. Raises ProtocolError where it is not."""
    if len(text) > MAX_MATCH_ID:
        raise ProtocolError(f"expected a match id of at most {MAX_MATCH_ID} characters, got {len(text)}; shorten it")
    return _word(text, "the id of a match")


def printable(text: str, most: int = 200) -> str:
    """Text from the network as a log can take it: one line of at most `most` ASCII characters."""
    line = _UNPRINTABLE.sub("?", " ".join(text[: 4 * most].split()))
    return line if len(line) <= most and len(text) <= 4 * most else f"{line[: most - 2]}.."


class _Arguments:
    """The arguments of a message, taken by the place at which they stand."""

    def __init__(self, keyword: str, arguments: list[str]) -> None:
        self._keyword = keyword
        self._arguments = arguments

    def match(self) -> str:
        return match_id(self._at(0, "the id of a match"))

    def role(self) -> str:
        return term(self._at(1, "a role"))

    def rules(self, place: int) -> str:
        text = self._at(place, "rules in parentheses")
        if not text.startswith("("):
            self._fail("rules in parentheses", text)
        return text[1:-1].strip()

    def clock(self, place: int) -> int:
        """Whole seconds; a fraction is dropped."""
        text = self._at(place, "a clock") if place < len(self._arguments) else "0"
        if not _SECONDS.fullmatch(text) or float(text) > MAX_CLOCK:
            self._fail(f"a clock from 0 to {MAX_CLOCK} seconds", text)
        return int(float(text))

    def moves(self) -> tuple[str, ...] | None:
        text = self._at(1, "a joint move") if len(self._arguments) > 1 else NIL
        moves = _arguments(text)
        if len(moves) > MAX_MOVES:
            self._fail(f"at most {MAX_MOVES} moves", str(len(moves)))
        return None if not moves or text.lower() == NIL else tuple(map(term, moves))

    def _at(self, place: int, what: str) -> str:
        if place >= len(self._arguments):
            self._fail(what, "nothing")
        return self._arguments[place]

    def _fail(self, expected: str, got: str) -> NoReturn:
        raise ProtocolError(
            f"expected {expected} in {self._keyword}, got {printable(got, 40)}; write {_FORMS[self._keyword]}"
        )


_FORMS = {
    "INFO": "( INFO )",
    "PING": "( PING )",
    "PREVIEW": "( PREVIEW ( rules ) clock )",
    "START": "( START match role ( rules ) startclock playclock )",
    "PLAY": "( PLAY match ( move .. ) ), or NIL for the moves",
    "STOP": "( STOP match ( move .. ) )",
    "ABORT": "( ABORT match )",
}
_READERS: dict[str, Callable[[_Arguments], Message]] = {
    "INFO": lambda arguments: Info(),
    "PING": lambda arguments: Info(),
    "PREVIEW": lambda arguments: Preview(arguments.rules(0), arguments.clock(1)),
    "START": lambda arguments: Start(
        arguments.match(), arguments.role(), arguments.rules(2), arguments.clock(3), arguments.clock(4)
    ),
    "PLAY": lambda arguments: Play(arguments.match(), arguments.moves()),
    "STOP": lambda arguments: Stop(arguments.match(), arguments.moves()),
    "ABORT": lambda arguments: Abort(arguments.match()),
}

_SPACE = " \t\r\n\f\v"
_BYTE_ORDER_MARK = "\ufeff"
_STRAY = re.compile(r"[^ -~\t\r\n\f\v]")  # neither printable ASCII nor white space
_UNPRINTABLE = re.compile(r"[^ -~]")
_COMMENT = re.compile(r";[^\r\n]*")
_WORD = re.compile(r"[^\s()]+")
_ALONE = re.compile(r"\(([^() ]+)\)")
_CANONICAL = re.compile(r"[!-'*-:<-~]+|\([!-'*-:<-~]+(?: [!-'*-:<-~]+)+\)")  # a word, or a list of words
_SECONDS = re.compile(r"\d{1,9}(\.\d{0,9})?", re.ASCII)


def _ascii(text: str) -> str:
    """The text without a byte order mark. Raises ProtocolError where a character has no place in a message."""
    text = text.removeprefix(_BYTE_ORDER_MARK)
    stray = _STRAY.search(text)
    if stray:
        raise ProtocolError(
            f"expected printable ASCII, got the character {stray.group()!a} at {stray.start()}; leave it out"
        )
    return text


def _without_comments(text: str) -> str:
    """The same text with blanks for its comments, so that lines and columns stay."""
    return _COMMENT.sub(lambda comment: " " * len(comment.group()), text) if ";" in text else text


def _depths(text: str) -> NDArray[np.int32]:
    """How many parentheses are open behind each character, int32[characters]; below 0 where too many were closed."""
    characters = np.frombuffer(text.encode("ascii", "replace"), np.uint8)
    steps = (characters == ord("(")).astype(np.int8) - (characters == ord(")")).astype(np.int8)
    return np.cumsum(steps, dtype=np.int32)


def _matched(text: str) -> NDArray[np.int32]:
    """`_depths`. Raises ProtocolError where parentheses do not match, or too many are open."""
    depths = _depths(text)
    if depths.size and (depths.min() < 0 or depths[-1] != 0):
        what = "a ')' that closes nothing" if depths.min() < 0 else "a '(' that is never closed"
        raise ProtocolError(f"expected parentheses that match, got {what} in {printable(text, 40)}; count them")
    if depths.size and depths.max() > MAX_NESTING:
        raise ProtocolError(f"expected at most {MAX_NESTING} nested parentheses, got more; flatten the term")
    return depths


def _expressions(text: str) -> list[str]:
    """The words and lists that stand side by side in a text. Raises ProtocolError as `_matched` does."""
    depths = _matched(text)
    inside = np.concatenate(([False], depths > 0, [False]))
    edges = np.flatnonzero(inside[1:] != inside[:-1]).tolist()  # of the lists, by turns where one begins and ends
    if len(edges) > 2 * MAX_MOVES:
        raise ProtocolError(f"expected at most {MAX_MOVES} lists side by side, got {len(edges) // 2}; send fewer")
    expressions, behind = [], 0
    for begin, end in zip(edges[::2], edges[1::2], strict=True):
        expressions += text[behind:begin].split()
        expressions.append(text[begin : end + 1])
        behind = end + 1
    return expressions + text[behind:].split()


def _arguments(expression: str) -> list[str]:
    """What stands in a list; a word by itself is taken for a list of it."""
    return _expressions(expression[1:-1] if expression.startswith("(") else expression)


def _word(text: str, what: str) -> str:
    if not _WORD.fullmatch(text) or ";" in text or _UNPRINTABLE.search(text):
        got = printable(text, 40) or "nothing"
        raise ProtocolError(f"expected one word of ASCII as {what}, got {got}; leave out blanks and parentheses")
    return text


def _shown_rules(rules: str) -> str:
    text = _ascii(_without_comments(rules))
    _matched(text)
    return f"( {' '.join(text.split())} )"


def _shown_clock(clock: int) -> str:
    if not 0 <= clock <= MAX_CLOCK:
        raise ProtocolError(f"expected a clock from 0 to {MAX_CLOCK} seconds, got {clock}; choose another one")
    return str(int(clock))


def _shown_moves(moves: tuple[str, ...] | None) -> str:
    return f"( {' '.join(map(term, moves))} )" if moves else NIL.upper()
