"""A process that plays: `python -m gamelore.net.worker`, started, fed and killed by workers.py.

It reads requests from standard input, one a line in JSON, {"do": name, ..}, and answers each with a line: {"ok": value}
or {"error": kind, ..}. What can be asked for are the methods of `Worker`, and first of all to make one. Rules from the
network are untrusted: they are looked at, grounded, compiled and played here, within limits of memory and of processor
time that the process sets itself. Over its memory it ends (OUT_OF_MEMORY), over its time the system kills it (SIGXCPU);
whatever else takes too long, the other side kills.

What the player prints goes to standard error, and it reads nothing: the pipes are the protocol's alone.
"""

from __future__ import annotations

import json
import logging
import math
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ..errors import GameloreError, GDLError, KnowledgeError

if TYPE_CHECKING:
    from ..learn.recognition import Recognised, Recognition
    from ..play.player import Player
    from ..rules.game import Game
    from ..rules.gdl import Rulesheet
    from .table import Ended, Table

OUT_OF_MEMORY = 70  # exit code
MAX_LINE = 16_000_000  # bytes of a request or an answer
LITERAL = 250  # bytes, about, that a ground literal takes with all that is made of it
GROUNDING = 0.25  # of the seconds for preparing are for grounding; it may be tried twice, and the reasoner comes then
RENAMED = 100_000  # moves of a match whose names in the other words are kept
POSITIONS = 1 / 8  # of the memory may be positions that a game has met; then they are forgotten

History = Sequence[Sequence[str] | None]
Known = Sequence[Sequence[str]]  # of each game the name, the hash of its rules, and their text

log = logging.getLogger(__name__)


class Worker:
    """One player at any number of games, each at a table of its own.

    player, options   as `players.player` takes them; `seed` among the options is that of the tables, too
    memory            bytes that the process may have; its answer to too large a game is to play it on the reasoner
    prepare_seconds   of processor time for each `recognise` and `prepare`

    Rules, roles and moves are in the words of the wire. `match` is a key that no other match ever has: the store knows
    by it which matches were learned from. Raises GameloreError for a player that there is not, KnowledgeError for a
    store that cannot be read.
    """

    def __init__(self, player: str, options: Mapping[str, Any], memory: int, prepare_seconds: float) -> None:
        from ..rules.asp import Limits

        usual = Limits()
        self.limits = Limits(min(usual.seconds, GROUNDING * prepare_seconds), min(usual.literals, memory // LITERAL))
        self.prepare_seconds = prepare_seconds
        self.max_graph = int(POSITIONS * memory)
        self._player, self._seed, self._store, self.is_lasting = _player(player, options)
        self._known = _shipped()
        self._recognised = lru_cache(maxsize=8)(self._recognise)
        self._tables: dict[str, Table] = {}
        self._seats: dict[str, _Seat] = {}
        if self.is_lasting:
            self._look_into_store()

    def recognise(self, rules: str, known: Known = ()) -> dict[str, Any]:
        """Which game this is: its `key`, the hash of the rules that are played here, its name, and whether it is new.

        known: games that were new to other workers. Raises GDLError for rules that are none.
        """
        self._note(known)
        with _processor_time(self.prepare_seconds):
            key, found = self._recognised(rules)
        return {"key": key, "name": found.name, "is_new": found.is_new}

    def prepare(self, rules: str, known: Known = ()) -> None:
        """Loads the game. Raises GDLError for one that cannot be played."""
        self._note(known)
        with _processor_time(self.prepare_seconds):
            self._table(*self._recognised(rules))

    def opening(self, role: str, rules: str) -> list[str]:
        """See `Table.opening`."""
        key, found = self._recognised(rules)
        legal = self._table(key, found).opening(found.renaming.ours(role))
        return list(map(found.renaming.theirs, legal))

    def start(
        self, match: str, role: str, rules: str, number: int | None = None, history: History = ()
    ) -> dict[str, Any]:
        """Begins a match, or takes up one that another worker began: `history` is what it was told.

        Gives its `number` (see `Table.start`) and where it is now, `at`.
        """
        key, found = self._recognised(rules)
        seat = _Seat(self._table(key, found), match, found.renaming.ours, lru_cache(RENAMED)(found.renaming.theirs))
        number = seat.table.start(match, seat.ours(role), number)
        self._seats[match] = seat
        at = seat.advance(None)
        for moves in history:
            at = seat.advance(moves)
        return {"number": number, "at": at}

    def advance(self, match: str, moves: Sequence[str] | None) -> dict[str, Any]:
        """See `Table.advance`; an `Advanced` as JSON."""
        return self._seat(match).advance(moves)

    def choose(self, match: str, deadline: float) -> str:
        """See `Table.choose`. All processes of a machine have the same monotonic clock."""
        seat = self._seat(match)
        return seat.theirs(seat.table.choose(match, deadline))

    def stop(self, match: str, moves: Sequence[str] | None) -> dict[str, Any]:
        """See `Table.stop`; an `Ended` as JSON."""
        ended = asdict(self._seat(match).stop(moves))
        del self._seats[match]
        return ended

    def abort(self, match: str) -> None:
        """See `Table.abort`."""
        seat = self._seats.pop(match, None)
        if seat is not None:
            seat.table.abort(match)

    def learn(self) -> None:
        """Lets the player learn from the matches that have ended."""
        for table in self._tables.values():
            table.learn()

    def _seat(self, match: str) -> _Seat:
        if match not in self._seats:
            raise GameloreError(f"expected a match that runs, got {match}; start it first")
        return self._seats[match]

    def _note(self, known: Known) -> None:
        from ..learn.recognition import KnownRules

        for name, rules_hash, text in known:
            self._known.add(KnownRules(name, rules_hash, text))

    def _look_into_store(self) -> None:
        """Takes note of the games that are in it by now."""
        from ..learn.knowledge import Knowledge

        if self._store.exists():
            with Knowledge(self._store, create=False, writable=False) as store:
                self._note(store.games())

    def _recognise(self, rules: str) -> tuple[str, Recognised]:
        """The game, and the hash of the rules that are played."""
        from ..learn.recognition import rules_hash
        from ..rules.check import refuse
        from ..rules.gdl import parse

        try:
            self._look_into_store()
        except KnowledgeError as error:  # other games are played all the same
            log.warning("the games in the store are not recognised: %s", error)
        found = self._known.recognise(parse(rules))
        key = rules_hash(found.sheet)
        if found.is_new:
            refuse(found.sheet)
            self._note([(found.name, key, rules)])
        return key, found

    def _table(self, key: str, found: Recognised) -> Table:
        from .table import Table

        if key not in self._tables:
            game = self._load(found.sheet, found.name)
            self._tables[key] = Table(game, self._player(), seed=self._seed, max_graph=self.max_graph)
        return self._tables[key]

    def _load(self, sheet: Rulesheet, name: str) -> Game:
        from ..rules.game import make

        with suppress(MemoryError):
            return make(sheet, name, limits=self.limits)
        return make(sheet, name, "reasoner", self.limits)


class _Seat:
    """A match at a table, in the words of the wire."""

    def __init__(self, table: Table, match: str, ours: Callable[[str], str], theirs: Callable[[str], str]) -> None:
        self.table = table
        self.theirs = theirs
        self._match = match
        self._ours = ours

    def ours(self, text: str) -> str:
        """A role or a move in our words; what is no term stays, and is no legal move of anybody."""
        with suppress(GDLError):
            return self._ours(text)
        return text

    def advance(self, moves: Sequence[str] | None) -> dict[str, Any]:
        """See `Worker.advance`."""
        at = self.table.advance(self._match, moves and [self.ours(move) for move in moves])
        return {
            "legal": [self.theirs(move) for move in at.legal],
            "ply": at.ply,
            "end": at.end,
            "is_desynchronised": at.is_desynchronised,
        }

    def stop(self, moves: Sequence[str] | None) -> Ended:
        """See `Worker.stop`."""
        return self.table.stop(self._match, moves and [self.ours(move) for move in moves])


def _player(spec: str, options: Mapping[str, Any]) -> tuple[Callable[[], Player], int, Path, bool]:
    """(what makes the player, the seed of its tables, its store, whether its learning lasts)."""
    from ..learn.knowledge import default_path
    from ..learn.lasting import LastingLearner
    from ..learn.players import player
    from .table import LastingPlayer

    one = player(spec, **options)
    if isinstance(one, LastingLearner):
        one.open()  # what is wrong with the store is said before anybody plays
        one.close()
        return lambda: player(spec, **options), one.seed, one.path, True
    store = Path(options.get("knowledge") or default_path())
    return lambda: player(spec, **options), options.get("seed", 0), store, isinstance(one, LastingPlayer)


def _shipped() -> Recognition:
    from ..learn.recognition import Recognition

    return Recognition()


@contextmanager
def _processor_time(seconds: float) -> Iterator[None]:
    """The system kills the process if it works for longer."""
    try:
        import resource
    except ImportError:  # Windows
        yield
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    most = math.ceil(used.ru_utime + used.ru_stime + seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_CPU, (hard, hard))


def _limit(memory: int) -> None:
    """Bounds the address space, which is what memory can be bounded by; leaves no core files."""
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
    refusals = () if sys.platform == "linux" else (ValueError, OSError)  # macOS
    with suppress(*refusals):
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _end_with_the_parent() -> None:
    """Whatever it is doing then; where the system cannot do that, it ends when it next looks for a request."""
    if sys.platform == "linux":
        import ctypes

        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


def _pipes() -> tuple[IO[str], IO[str]]:
    """Standard input and output under other numbers; the player's own go to nowhere and to standard error."""
    requests, answers = (os.fdopen(os.dup(number), mode, encoding="utf-8") for number, mode in ((0, "r"), (1, "w")))
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return requests, answers


def _answer(ask: Callable[..., Any], request: dict[str, Any]) -> dict[str, Any]:
    """What there is to say to a request; only MemoryError is let through."""
    try:
        return {"ok": ask(**request)}
    except MemoryError:
        raise
    except GDLError as error:
        told = {name: getattr(error, name) for name in ("message", "line", "column", "rule", "remedy")}
        return {"error": type(error).__name__, **told}
    except GameloreError as error:
        return {"error": type(error).__name__, "message": str(error)}
    except Exception as error:  # of a player, most likely
        print(_printable(traceback.format_exc()), file=sys.stderr, flush=True)
        return {"error": "GameloreError", "message": f"a player failed: {type(error).__name__}: {error}"}


def _printable(text: str) -> str:
    return "".join(mark if mark.isprintable() or mark == "\n" else "?" for mark in text)


def _line(answer: dict[str, Any]) -> str:
    line = json.dumps(answer)
    if len(line) < MAX_LINE:
        return line
    message = f"expected at most {MAX_LINE} bytes to tell of a position, got {len(line)}; its moves are too many"
    return json.dumps({"error": "GameloreError", "message": message})


class _Desk:
    """Where requests come in: the first is what `Worker` takes, and answered with whether its learning lasts."""

    def __init__(self) -> None:
        self._worker: Worker | None = None

    def ask(self, do: str, **given: Any) -> Any:
        if self._worker is not None:
            return getattr(self._worker, do)(**given)
        _limit(given["memory"])
        self._worker = Worker(**given)
        return self._worker.is_lasting


def main() -> None:
    """Answers until there are no more requests."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with_the_parent()
    requests, answers = _pipes()
    desk = _Desk()
    try:
        for line in requests:
            answers.write(_line(_answer(desk.ask, json.loads(line))) + "\n")
            answers.flush()
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    except BrokenPipeError:  # nobody listens any more
        os._exit(1)


if __name__ == "__main__":
    main()
