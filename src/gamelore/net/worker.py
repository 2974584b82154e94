"""The worker process that plays matches, with limited memory and time. pool.py starts it and sends JSON requests.

Rules from the network are untrusted, so only this process and the follower (follower.py) parse, ground, compile and
play them. requests.py reads the requests, which call the methods of `Worker`, and sets the limits.

Nothing is compiled during a match: the code that all games share is loaded before the first request is answered, the
game in `prepare`, and what else the player needs in `start`.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from ..catalogue import player as by_name
from ..circuit.playout import load_shared_code
from ..errors import GameloreError, KnowledgeError, player_bug
from ..game.game import Game, make
from ..gdl.lint import refuse
from ..gdl.syntax import parse
from ..learning.session import LastingLearner
from ..learning.sources import KnownRules, Recognised, Recognition
from ..learning.store.knowledge import KnowledgeStore, default_path
from ..learning.td.series import CAP_VARIABLE
from ..players.kernel import load_kernels
from ..players.uct import FOREST_VARIABLE
from .belief import SLICE, LastingPlayer, PlayerMatches
from .requests import Advanced, Ended, answer_requests, limits_within, processor_time

POSITIONS = 1 / 8  # share of the memory for the position graph of a game; a larger graph is discarded
MOST_PONDERING = 300.0  # seconds after the last request
FOREST = 1 / 2  # share of the memory for search trees
SAMPLE = """
(role robot) (init start) (legal robot left) (legal robot right)
(<= (next end) (true start)) (<= terminal (true end)) (goal robot 100)
"""  # rules of a game that is loaded before the first match

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
        self.limits = limits_within(memory, prepare_seconds)
        self.prepare_seconds = prepare_seconds
        self.max_graph = int(POSITIONS * memory)
        self._player = partial(by_name, player, **options)
        self._asked = time.monotonic()  # time of the last request for a match
        self._known = Recognition()
        self._recognised = lru_cache(maxsize=8)(self._recognise)
        self._games: dict[str, PlayerMatches] = {}
        self._idled = 0  # number of times that a match was pondered on
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
        make(parse(SAMPLE), "sample")  # imports what loads a game
        load_kernels()
        load_shared_code()

    def recognise(self, rules: str, new_games: Sequence[Sequence[str]] = ()) -> dict[str, Any]:
        """Identify a game. Return the hash of the rules to play (`key`), its `name`, and whether it `is_new`.

        Raise GDLError for invalid rules.
        """
        self._note(new_games)
        with processor_time(self.prepare_seconds):
            key, game = self._recognised(rules)
        return {"key": key, "name": game.name, "is_new": game.is_new}

    def prepare(self, rules: str, new_games: Sequence[Sequence[str]] = ()) -> None:
        """Load a game. Raise GDLError for a game that cannot be played."""
        self._note(new_games)
        with processor_time(self.prepare_seconds):
            self._game(rules)

    def prepare_player(self, rules: str) -> None:
        """Let the player get ready for a game, in any role; see `Player.prepare`."""
        matches, _ = self._game(rules)
        for role in range(matches.game.num_roles):
            matches.player.prepare(matches.game, role)

    def opening(self, role: str, rules: str) -> tuple[str, ...]:
        """See `PlayerMatches.opening`."""
        matches, game = self._game(rules)
        return matches.opening(role, game.renaming)

    def start(
        self,
        match: str,
        role: str,
        rules: str,
        number: int | None = None,
        history: Sequence[Sequence[str] | None] = (),
        deadline: float | None = None,
        startclock: float | None = None,
    ) -> tuple[int, Advanced]:
        """Begin a match, or continue a match that another worker began.

        The startclock ends at the deadline, which is valid here because all processes share the monotonic clock.
        `history` holds the joint moves that the host has reported since the start. Return the number of the match (see
        `PlayerMatches.start`) and its present state.
        """
        matches, game = self._game(rules)
        self._asked = time.monotonic()
        number = matches.start(match, role, number, game.renaming, startclock, deadline)
        for moves in (None, *history):
            state = matches.advance(match, moves)
        return number, state

    def advance(self, match: str, moves: Sequence[str] | None) -> Advanced:
        """See `PlayerMatches.advance`."""
        return self._at(match).advance(match, moves)

    def choose(self, match: str, deadline: float, share: float) -> str:
        """See `PlayerMatches.choose`. The player has `share` seconds from now, but only until the deadline.

        The deadline is valid here because all processes share the monotonic clock.
        """
        return self._at(match).choose(match, min(deadline, time.monotonic() + share))

    def idle(self) -> bool:
        """Let the player think about the running matches for a moment; return whether it did.

        A host that disappears leaves its matches behind, so the player stops some time after the last request.
        """
        if time.monotonic() - self._asked > MOST_PONDERING:
            return False
        running = [(matches, match) for matches in self._games.values() for match in matches.running]
        for _ in running:  # in turn, one at a time, because a request may be waiting
            self._idled += 1
            if _has_pondered(*running[self._idled % len(running)]):
                return True
        return False

    def ponder(self, match: str) -> bool:
        """Let the player think about a match for a moment; return whether it did."""
        return _has_pondered(self._at(match), match)

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
        self._asked = time.monotonic()
        for matches in self._games.values():
            if match in matches.running:
                return matches
        raise GameloreError(f"expected a running match, got {match}; start it first")

    def _note(self, new_games: Sequence[Sequence[str]]) -> None:
        for game in new_games:
            self._known.add(KnownRules(*game))

    def _note_stored_games(self) -> None:
        if self._store.exists():
            with KnowledgeStore(self._store, create=False, writable=False) as store:
                self._note(store.games())

    def _recognise(self, rules: str) -> tuple[str, Recognised]:
        """Return the hash of the rules to play, and the recognised game."""
        try:
            self._note_stored_games()
        except KnowledgeError as error:  # other games can still be played
            log.warning("the games in the store cannot be recognised: %s", error)
        game = self._known.recognise(parse(rules))
        key = game.sheet.rules_hash
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


def _has_pondered(matches: PlayerMatches, match: str) -> bool:
    try:
        return matches.ponder(match, time.monotonic() + SLICE)
    except MemoryError:
        raise
    except Exception as error:
        log.warning("the player failed while it pondered: %s", player_bug(error) or error)
        return False


def _created(memory: int, **given: Any) -> Worker:
    """Return the worker of this process.

    The graph of positions is limited to a share of the memory (POSITIONS), so learners need no lower cap, unless the
    user has set one.
    """
    os.environ.setdefault(CAP_VARIABLE, str(memory >> 20))
    os.environ.setdefault(FOREST_VARIABLE, str(int(FOREST * memory) >> 20))
    return Worker(memory=memory, **given)


def main() -> None:
    """Answer the requests of a pool."""
    answer_requests(_created)


if __name__ == "__main__":
    main()
