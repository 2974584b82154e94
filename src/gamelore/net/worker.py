"""The worker process that plays matches, with limited memory and time. pool.py starts it and sends JSON requests.

The process reads requests from standard input. Each request is one line with a JSON object, {"do": name, ..}. The
process answers each request with one line, {"ok": value} or {"error": kind, ..}. The first request creates the
`Worker`; all later requests call its methods. Rules from the network are untrusted, so only this process parses,
grounds, compiles and plays them. The process sets limits on its own memory and processor time. When it exceeds the
memory, it exits with OUT_OF_MEMORY. When it exceeds the processor time, the system kills it (SIGXCPU). The pool kills
the process when a request takes too long for any other reason.

The pipes of standard input and standard output carry only requests and answers. So the output of the player goes to
standard error, and the player's standard input is empty.
"""

from __future__ import annotations

import json
import logging
import math
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import IO, Any

from ..catalogue import player as by_name
from ..errors import GameloreError, GDLError, KnowledgeError, player_bug
from ..game.game import Game, make
from ..gdl.lint import refuse
from ..gdl.syntax import parse
from ..ground.clingo import Limits
from ..learning.session import LastingLearner
from ..learning.sources import KnownRules, Recognised, Recognition, rules_hash
from ..learning.store.knowledge import Knowledge, default_path
from ..learning.td.series import CAP_VARIABLE
from .belief import Advanced, Ended, LastingPlayer, PlayerMatches

OUT_OF_MEMORY = 70  # exit code
MAX_LINE = 16_000_000  # maximum bytes of a request or an answer
LITERAL = 250  # approximate bytes for a ground literal and all data derived from it
GROUNDING = 0.25  # share of the preparation time for one grounding; two may run before the reasoner is tried
POSITIONS = 1 / 8  # share of the memory for the position graph of a game; a larger graph is discarded

log = logging.getLogger(__name__)


class Worker:
    """One player in any number of games.

    player, options   arguments for `catalogue.player`; the option `seed` is also the seed of the matches
    memory            bytes for the process; the reasoner plays a game that is too large to compile in this memory
    prepare_seconds   processor time for each call of `recognise` or `prepare`

    Rules, roles and moves have the names that the host uses. `match` is a key that no other match ever has: with it the
    store knows from which matches the player has learned. `new_games` lists games that were new to other workers: for
    each, its name, the hash of its rules, and its rules. Raise GameloreError for an unknown player and KnowledgeError
    for a store that cannot be read.
    """

    def __init__(self, player: str, options: Mapping[str, Any], memory: int, prepare_seconds: float) -> None:
        usual = Limits()
        self.limits = Limits(min(usual.seconds, GROUNDING * prepare_seconds), min(usual.literals, memory // LITERAL))
        self.prepare_seconds = prepare_seconds
        self.max_graph = int(POSITIONS * memory)
        self._player = partial(by_name, player, **options)
        self._known = Recognition()
        self._recognised = lru_cache(maxsize=8)(self._recognise)
        self._games: dict[str, PlayerMatches] = {}
        sample = self._player()
        self.is_lasting = isinstance(sample, LastingPlayer)
        if isinstance(sample, LastingLearner):
            sample.open()  # report an unusable store before the first match
            sample.close()
            self._seed, self._store = sample.seed, sample.path
        else:
            self._seed = options.get("seed", 0)
            self._store = Path(options.get("knowledge") or default_path())
        if self.is_lasting:
            self._note_stored_games()

    def recognise(self, rules: str, new_games: Sequence[Sequence[str]] = ()) -> dict[str, Any]:
        """Identify a game. Return the hash of the rules to play (`key`), its `name`, and whether it `is_new`.

        Raise GDLError for invalid rules.
        """
        self._note(new_games)
        with _processor_time(self.prepare_seconds):
            key, game = self._recognised(rules)
        return {"key": key, "name": game.name, "is_new": game.is_new}

    def prepare(self, rules: str, new_games: Sequence[Sequence[str]] = ()) -> None:
        """Load a game. Raise GDLError for a game that cannot be played."""
        self._note(new_games)
        with _processor_time(self.prepare_seconds):
            self._game(rules)

    def opening(self, role: str, rules: str) -> tuple[str, ...]:
        """See `PlayerMatches.opening`."""
        matches, game = self._game(rules)
        return matches.opening(role, game.renaming)

    def start(
        self, match: str, role: str, rules: str, number: int | None = None, history: Sequence[Sequence[str] | None] = ()
    ) -> tuple[int, Advanced]:
        """Begin a match, or continue a match that another worker began.

        `history` holds the joint moves that the host has reported since the start. Return the number of the match (see
        `PlayerMatches.start`) and its present state.
        """
        matches, game = self._game(rules)
        number = matches.start(match, role, number, game.renaming)
        for moves in (None, *history):
            state = matches.advance(match, moves)
        return number, state

    def advance(self, match: str, moves: Sequence[str] | None) -> Advanced:
        """See `PlayerMatches.advance`."""
        return self._at(match).advance(match, moves)

    def choose(self, match: str, deadline: float) -> str:
        """See `PlayerMatches.choose`. The deadline is valid here because all processes share the monotonic clock."""
        return self._at(match).choose(match, deadline)

    def stop(self, match: str, moves: Sequence[str] | None) -> Ended:
        """See `PlayerMatches.stop`."""
        return self._at(match).stop(match, moves)

    def abort(self, match: str) -> None:
        """See `PlayerMatches.abort`."""
        for matches in self._games.values():
            matches.abort(match)

    def learn(self) -> None:
        """Let the player learn from the finished matches."""
        for matches in self._games.values():
            matches.learn()

    def _at(self, match: str) -> PlayerMatches:
        for matches in self._games.values():
            if match in matches.running:
                return matches
        raise GameloreError(f"expected a running match, got {match}; start it first")

    def _note(self, new_games: Sequence[Sequence[str]]) -> None:
        for game in new_games:
            self._known.add(KnownRules(*game))

    def _note_stored_games(self) -> None:
        if self._store.exists():
            with Knowledge(self._store, create=False, writable=False) as store:
                self._note(store.games())

    def _recognise(self, rules: str) -> tuple[str, Recognised]:
        """Return the hash of the rules to play, and the recognised game."""
        try:
            self._note_stored_games()
        except KnowledgeError as error:  # other games can still be played
            log.warning("the games in the store cannot be recognised: %s", error)
        game = self._known.recognise(parse(rules))
        key = rules_hash(game.sheet)
        if game.is_new:
            refuse(game.sheet)
            self._note([(game.name, key, rules)])
        return key, game

    def _game(self, rules: str) -> tuple[PlayerMatches, Recognised]:
        """Return the matches of the game with these rules, and the recognised game. Load the game if necessary."""
        key, recognised = self._recognised(rules)
        if key not in self._games:
            game = self._load(recognised)
            self._games[key] = PlayerMatches(game, self._player(), seed=self._seed, max_graph=self.max_graph)
        return self._games[key], recognised

    def _load(self, recognised: Recognised) -> Game:
        with suppress(MemoryError):
            return make(recognised.sheet, recognised.name, limits=self.limits)
        return make(recognised.sheet, recognised.name, "reasoner", self.limits)


@contextmanager
def _processor_time(seconds: float) -> Iterator[None]:
    """Let the system kill the process if the `with` block uses more processor time than `seconds`."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft, hard = _lowered(resource.RLIMIT_CPU, math.ceil(used.ru_utime + used.ru_stime + seconds))
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_CPU, (hard, hard))


def _limit(memory: int) -> None:
    """Limit the address space to `memory` bytes, and disable core files.

    The graph of positions is limited to a share of this memory (POSITIONS), so learners need no lower cap, unless the
    user has set one.
    """
    os.environ.setdefault(CAP_VARIABLE, str(memory >> 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    most, _ = _lowered(resource.RLIMIT_AS, memory)
    refusals = () if sys.platform == "linux" else (ValueError, OSError)  # macOS may refuse the limit
    with suppress(*refusals):
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _lowered(limit: int, most: int) -> tuple[int, int]:
    """Return a soft value for a system limit, at most `most`, and the present hard value."""
    _, hard = resource.getrlimit(limit)
    return most if hard == resource.RLIM_INFINITY else min(most, hard), hard


def _end_with_the_parent() -> None:
    """Let Linux kill this process when its parent ends; on other systems it ends when it next reads a request."""
    if sys.platform == "linux":
        import ctypes

        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


def _pipes() -> tuple[IO[str], IO[str]]:
    """Move requests and answers to new file descriptors.

    The player then has an empty standard input, and its output goes to standard error.
    """
    requests, answers = (os.fdopen(os.dup(number), mode, encoding="utf-8") for number, mode in ((0, "r"), (1, "w")))
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return requests, answers


def _answer(ask: Callable[..., Any], request: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a request. Turn every error except MemoryError into an answer."""
    try:
        return {"ok": ask(**request)}
    except MemoryError:
        raise
    except GDLError as error:
        place = {name: getattr(error, name) for name in ("message", "line", "column", "rule", "remedy")}
        return {"error": type(error).__name__, **place}
    except GameloreError as error:
        if bug := player_bug(error):
            _print(bug)
        return {"error": type(error).__name__, "message": str(error)}
    except Exception as error:  # most likely an error in the code of the player
        _print(player_bug(error) or traceback.format_exc())
        return {"error": "GameloreError", "message": f"the player failed with {type(error).__name__}: {error}"}


def _print(text: str) -> None:
    """Print a text on standard error, without control characters."""
    print("".join(mark if mark.isprintable() or mark == "\n" else "?" for mark in text), file=sys.stderr, flush=True)


def _line(answer: dict[str, Any]) -> str:
    line = json.dumps(answer)
    if len(line) < MAX_LINE:
        return line
    message = f"expected an answer of at most {MAX_LINE} bytes, got {len(line)}; the position has too many moves"
    return json.dumps({"error": "GameloreError", "message": message})


def main() -> None:
    """Answer requests until the input ends.

    The first request creates the worker; the answer to it is `Worker.is_lasting`.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with_the_parent()
    requests, answers = _pipes()
    worker: Worker | None = None

    def ask(do: str, **given: Any) -> Any:
        nonlocal worker
        if worker is not None:
            return getattr(worker, do)(**given)
        _limit(given["memory"])
        worker = Worker(**given)
        return worker.is_lasting

    try:
        for line in requests:
            answers.write(_line(_answer(ask, json.loads(line))) + "\n")
            answers.flush()
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    except BrokenPipeError:  # the process of the pool has ended
        os._exit(1)


if __name__ == "__main__":
    main()
