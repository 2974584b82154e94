"""A match that any number of pages show and play: its seats, moves, undo, and the players that think for it.

A match lives in the process of the pages, and knows no rules: a child process tells its positions and legal moves. It
is kept on disk after every ply, so it can be opened again after the server has ended.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from operator import call
from typing import Any, TypeAlias

from ...errors import GameloreError, one_of
from .rule_processes import LEARN_SECONDS, OPEN_SECONDS, POSITION_SECONDS, RuleProcesses, Rules
from .watchers import Watchers

PERSON = "person"
"""The seat of a person at a page."""
MOST_MOVE_SECONDS, MOST_PLIES = 60.0, 1000
SOLVE_SECONDS = 60.0  # limit for solving a game
ADVICE_SECONDS = 120.0  # limit for other questions about a position
SPARE_SECONDS = 60.0  # in addition to the time of a move, for a player that solves the game first or reads its store

View: TypeAlias = Mapping[str, Any]
"""What `RuleWorker.view` returns."""
log = logging.getLogger(__name__)


@dataclass(slots=True)
class TakenSeat:
    """Who plays a role: PERSON, or the name of a player with options; and whether it keeps what it learns."""

    player: str = PERSON
    remembers: bool = False

    @property
    def is_person(self) -> bool:
        """Whether a person at a page plays the role."""
        return self.player == PERSON


@dataclass(frozen=True, slots=True)
class MatchPace:
    """Times of a match.

    move_seconds   for a move of a player that searches by the clock
    first_seconds  more for the first move, in which some players learn
    pause_seconds  at least between two plies of players, so that one can follow
    """

    move_seconds: float = 1.0
    first_seconds: float = 2.0
    pause_seconds: float = 0.3

    def __post_init__(self) -> None:
        for name in ("move_seconds", "first_seconds", "pause_seconds"):
            if not 0 <= getattr(self, name) <= MOST_MOVE_SECONDS:
                raise GameloreError(
                    f"expected {name} from 0 to {MOST_MOVE_SECONDS:g}, got {getattr(self, name):g}; choose another time"
                )


@dataclass(eq=False)
class SharedMatch:
    """A match, see the module.

    Attributes:
        processes: the processes that know the rules
        rules: the game
        store: path of the knowledge store for seats that remember
        plies: joint moves so far
        choosers: for each ply, the roles that had several moves
        view: the present position; None until it is computed
        chosen: moves of roles that have chosen at this ply, hidden until all have
        thinking: roles whose player thinks
        error: why the match cannot go on, such as a player that cannot play the game; empty if it can
    """

    processes: RuleProcesses
    rules: Rules
    store: str
    keep: Callable[[SharedMatch], None] = lambda match: None
    id: str = field(default_factory=lambda: secrets.token_urlsafe(9))
    pace: MatchPace = field(default_factory=MatchPace)
    roles: tuple[str, ...] = ()
    seats: dict[str, TakenSeat] = field(default_factory=dict)
    plies: list[list[str]] = field(default_factory=list)
    choosers: list[list[str]] = field(default_factory=list)
    view: View | None = None
    chosen: dict[str, str] = field(default_factory=dict)
    thinking: set[str] = field(default_factory=set)
    error: str = ""
    is_paused: bool = False
    _going: asyncio.Task[None] | None = None
    _moved: asyncio.Event = field(default_factory=asyncio.Event)
    _learned: int = -1  # ply up to which the seats that remember have learned
    _round: int = 0  # how often they have learned: a match that is played again is another one for them
    _result: str = ""  # as it is kept

    def __post_init__(self) -> None:
        self._watchers: Watchers[Callable[[], None]] = Watchers(self._leave)

    async def open(self) -> None:
        """Load the game. Raise GameloreError if it cannot be played."""
        opened = await self.processes.ask(self.rules, "open", time_limit=OPEN_SECONDS)
        self.roles = tuple(opened["roles"])
        self.seats = {role: self.seats.get(role, TakenSeat()) for role in self.roles}
        await self.view_at(len(self.plies))

    async def view_at(self, ply: int) -> View:
        """Return the position after some plies."""
        return await self._ask("view", plies=self.plies[:ply])  # type: ignore[no-any-return]

    # ---- watching -----------------------------------------------------------------------------------------------

    def watch(self, on_change: Callable[[], None]) -> Callable[[], None]:
        """Call a function after each change, until the returned function is called.

        Players think only while somebody watches: GRACE after the last one has left, they stop.
        """
        leave = self._watchers.add(on_change)
        self._go_on()
        return leave

    @property
    def is_watched(self) -> bool:
        """Whether a page shows the match."""
        return bool(self._watchers)

    def stop(self) -> None:
        """Let the players stop to think. The match goes on when somebody watches it again."""
        if self._going is not None:
            self._going.cancel()
            self._going = None
        self.thinking.clear()

    def try_again(self) -> None:
        """Go on after an error."""
        if not self.is_deleted:
            self._go_on()

    @property
    def is_deleted(self) -> bool:
        """Whether the match is not kept any more."""
        return self.keep is _keep_nothing

    def delete(self) -> None:
        """Stop the match for all pages that show it; it is not kept any more."""
        self._leave()
        self.keep, self.error = _keep_nothing, "the match was deleted on another page; begin a new one"
        self._tell()

    def _tell(self) -> None:
        self._watchers.tell(call)

    # ---- what people do -----------------------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Whether the match has ended."""
        return self.view is not None and (self.view["is_terminal"] or not all(self.view["legal"].values()))

    @property
    def waiting(self) -> list[str]:
        """The roles of persons that have several moves and have not chosen yet, in the order of roles."""
        if self.view is None or self.is_over:
            return []
        return [
            role
            for role, legal in self.view["legal"].items()
            if self.seats[role].is_person and len(legal) > 1 and role not in self.chosen
        ]

    @property
    def is_simultaneous(self) -> bool:
        """Whether several roles have a choice in the present position."""
        return self.view is not None and sum(len(legal) > 1 for legal in self.view["legal"].values()) > 1

    def submit(self, role: str, move: str, ply: int | None = None) -> None:
        """Choose a move for the role of a person.

        Args:
            role: one of `waiting`
            move: a legal move
            ply: number of plies that the page has shown, so that a late click changes nothing; None for the present one

        Raises:
            GameloreError: the role does not wait for a person, or the move is not legal.
        """
        if ply is not None and ply != len(self.plies):
            return
        if role not in self.waiting:
            raise GameloreError(f"expected a role that is to move, got {role}; wait for the other roles")
        assert self.view is not None
        one_of(move, self.view["legal"][role], f"a legal move of {role}")
        self.chosen[role] = move
        self._moved.set()
        self._tell()

    def undo(self) -> None:
        """Take back the last plies: to the last position in which a person had a choice, else one ply."""
        if any(self._is_choice_of_person(role) for role in self.chosen):
            self._back_to(len(self.plies))
        elif self.plies:
            persons = {role for role, seat in self.seats.items() if seat.is_person}
            of_persons = (ply for ply, roles in enumerate(self.choosers) if not persons.isdisjoint(roles))
            self._back_to(max(of_persons, default=len(self.plies) - 1))

    def restart(self) -> None:
        """Begin again, with the same seats."""
        self._back_to(0)

    def take_seat(self, role: str, seat: TakenSeat) -> None:
        """Let somebody else play a role from now on."""
        one_of(role, self.roles, "a role")
        self.seats[role] = seat
        self._back_to(len(self.plies))

    def pause(self, is_paused: bool) -> None:
        """Let the players wait, or go on."""
        self.is_paused = is_paused
        self._back_to(len(self.plies))

    def branch(self, ply: int) -> SharedMatch:
        """Return a new match that begins with the first plies of this one, and has the same seats."""
        seats = {role: TakenSeat(seat.player, seat.remembers) for role, seat in self.seats.items()}
        plies, choosers = ([list(roles) for roles in part[:ply]] for part in (self.plies, self.choosers))
        match = SharedMatch(self.processes, self.rules, self.store, self.keep, pace=self.pace, seats=seats)
        match.roles, match.plies, match.choosers = self.roles, plies, choosers
        return match

    def _back_to(self, ply: int) -> None:
        """Go back to a position, and go on from there."""
        self.stop()
        if ply < len(self.plies):
            del self.plies[ply:], self.choosers[ply:]
            self.view = None
            self._learned, self._result = min(self._learned, ply), ""
        self.chosen.clear()
        self.error = ""
        self.keep(self)
        self._tell()
        self._go_on()

    # ---- going on -----------------------------------------------------------------------------------------------

    def _go_on(self) -> None:
        if self._watchers and (self._going is None or self._going.done()):
            self._going = asyncio.get_running_loop().create_task(self._play())

    async def _play(self) -> None:
        """Play until the match is over, cannot go on, or is stopped."""
        self.error = ""
        try:
            while await self._next_ply():
                pass
        except asyncio.CancelledError:
            raise
        except GameloreError as error:
            self.error = str(error)
        except Exception as error:
            log.exception("a match failed")
            self.error = f"expected the match to go on, got {type(error).__name__}: {error}; restart it"
        finally:
            self.thinking.clear()
        self._tell()

    async def _next_ply(self) -> bool:
        """Show the position, and let all roles choose. Return False if the match is over, or has to wait."""
        if self.view is None:
            self.view = await self._ask("view", plies=self.plies)
            self._tell()
        if self.is_over:
            if self._result != self.result:
                self._result = self.result
                self.keep(self)
            await self._learn()
            return False
        if len(self.plies) >= MOST_PLIES:
            raise GameloreError(f"expected a match of at most {MOST_PLIES} plies, got a longer one; it ends here")
        if self.is_paused and not any(self.seats[role].is_person for role in self.roles):
            return False
        begin = time.monotonic()
        persons = asyncio.ensure_future(self._await_persons())
        try:
            await self._choose_all()
            await persons
        finally:
            persons.cancel()
        if not any(self._is_choice_of_person(role) for role in self.roles):
            await asyncio.sleep(max(0.0, self.pace.pause_seconds - (time.monotonic() - begin)))
        self.plies.append([self.chosen[role] for role in self.roles])
        self.choosers.append([role for role, legal in self.view["legal"].items() if len(legal) > 1])
        self.chosen.clear()
        self.view = None
        self.keep(self)
        return True

    def _is_choice_of_person(self, role: str) -> bool:
        assert self.view is not None
        return self.seats[role].is_person and len(self.view["legal"][role]) > 1

    async def _choose_all(self) -> None:
        """Let the players choose, one after another, and make the moves that are the only ones."""
        assert self.view is not None
        for role, legal in self.view["legal"].items():
            if len(legal) == 1:
                self.chosen[role] = legal[0]
        for role in self.roles:
            if role not in self.chosen and not self.seats[role].is_person:
                with self._thinks(role):
                    self.chosen[role] = await self._choice(role)

    async def _await_persons(self) -> None:
        while self.waiting:
            self._moved.clear()
            await self._moved.wait()

    @contextmanager
    def _thinks(self, role: str) -> Iterator[None]:
        self.thinking.add(role)
        self._tell()
        try:
            yield
        finally:
            self.thinking.discard(role)

    async def _choice(self, role: str) -> str:
        first = self.pace.first_seconds if len(self.plies) < len(self.roles) else 0.0
        move: str = await self._ask(
            "choose",
            lane="players",
            time_limit=OPEN_SECONDS + first + self.pace.move_seconds + SPARE_SECONDS,
            plies=self.plies,
            match=self._key,
            role=role,
            seconds=self.pace.move_seconds,
            startclock=self.pace.first_seconds,
            **self._player(role),
        )
        return move

    async def _learn(self) -> None:
        """Let the seats that remember learn from the finished match, once; then free what the players have used."""
        if self._learned == len(self.plies) or not self.plies:
            return
        for role, seat in self.seats.items():
            if seat.remembers and not seat.is_person:
                with self._thinks(role):
                    await self._ask(
                        "finish",
                        lane="players",
                        time_limit=LEARN_SECONDS,
                        plies=self.plies,
                        match=self._key,
                        role=role,
                        **self._player(role),
                    )
        await self._release()
        self._learned = len(self.plies)
        self._round += 1
        self.keep(self)

    @property
    def _key(self) -> str:
        """What its players call the match."""
        return f"{self.id}-{self._round}" if self._round else self.id

    def _leave(self) -> None:
        """Stop the match, and let its players free their memory."""
        self.stop()
        self._releasing = asyncio.get_running_loop().create_task(self._release())

    async def _release(self) -> None:
        if self.processes.has(self.rules, "players"):
            with suppress(GameloreError):  # such as WorkerDied: then there is nothing to free
                await self._ask("leave", lane="players", match=self._key)

    def _player(self, role: str) -> dict[str, Any]:
        """Return the arguments that name the player of a role, with its options."""
        seat = self.seats[role]
        # the store tells learners apart by their seeds, so one that remembers has the same in every match
        options: dict[str, Any] = {"seed": 0 if seat.remembers else int.from_bytes(self.id.encode()) % 2**31}
        if seat.remembers:
            others = [self.seats[name].player for name in self.roles if name != role]
            options |= {"knowledge": self.store, "opponent": others[0] if len(others) == 1 else None}
        return {"player": seat.player, "options": options}

    async def _ask(
        self, do: str, *, lane: Any = "positions", time_limit: float = POSITION_SECONDS, **given: Any
    ) -> Any:
        return await self.processes.ask(self.rules, do, lane=lane, time_limit=time_limit, **given)

    # ---- opinions, hints and records ----------------------------------------------------------------------------

    async def think(self, seconds: float, ply: int | None = None) -> dict[str, Any]:
        """Search in a position for some seconds, and return what the search thinks so far; see `RuleWorker.think`."""
        plies = self.plies[:ply]
        limit = OPEN_SECONDS + seconds
        return await self._ask("think", lane="advice", time_limit=limit, plies=plies, seconds=seconds)  # type: ignore[no-any-return]

    async def exact(self, ply: int | None = None) -> dict[str, Any]:
        """Return the exact values of the moves in a position; see `RuleWorker.exact`."""
        return await self._ask("exact", lane="advice", time_limit=SOLVE_SECONDS, plies=self.plies[:ply])  # type: ignore[no-any-return]

    async def hints(self, ply: int | None, store: str) -> list[dict[str, Any]]:
        """Return good moves in a position with their reasons; see `RuleWorker.hints`."""
        return await self._ask("hints", lane="advice", time_limit=ADVICE_SECONDS, plies=self.plies[:ply], store=store)  # type: ignore[no-any-return]

    async def learned(self, ply: int | None, store: str, learner: int | None = None) -> dict[str, Any]:
        """Return what a learner has learned about the moves in a position; see `RuleWorker.learned`."""
        given = {"plies": self.plies[:ply], "store": store, "learner": learner}
        return await self._ask("learned", lane="advice", time_limit=ADVICE_SECONDS, **given)  # type: ignore[no-any-return]

    async def record(self) -> str:
        """Return the match as a GGP match record, as JSON text."""
        players = [self.seats[role].player for role in self.roles]
        return await self._ask("record", plies=self.plies, match=self.id, players=players)  # type: ignore[no-any-return]

    @property
    def result(self) -> str:
        """How the match ended, in words; empty if it goes on, or is not loaded."""
        if self.view is None or not self.is_over:
            return ""
        goals = self.view["goals"]
        told = ", ".join(f"{role} {'none' if goal is None else goal}" for role, goal in goals.items())
        if not self.view["is_terminal"]:
            return f"The match cannot go on: a role has no legal move ({told})"
        best = max((goal for goal in goals.values() if goal is not None), default=None)
        winners = [role for role, goal in goals.items() if goal == best]
        if len(goals) == 1 or best is None:
            return f"The match is over: {told}"
        if len(winners) == len(goals):
            return f"A draw: {told}"
        return f"{f'{winners[0]} wins' if len(winners) == 1 else 'No single winner'}: {told}"

    def as_json(self) -> dict[str, Any]:
        """Return what is kept on disk."""
        return {
            "id": self.id,
            "game": self.rules.name,
            "rules": self.rules.text,
            "roles": list(self.roles),
            "seats": {role: [seat.player, seat.remembers] for role, seat in self.seats.items()},
            "plies": self.plies,
            "choosers": self.choosers,
            "pace": [self.pace.move_seconds, self.pace.first_seconds, self.pace.pause_seconds],
            "learned": self._learned,
            "round": self._round,
            "result": self._result,
        }

    @classmethod
    def of_json(cls, kept: Mapping[str, Any], processes: RuleProcesses, store: str, **given: Any) -> SharedMatch:
        """Return a match that was kept. Raise GameloreError for anything else."""
        with suppress(AttributeError, KeyError, TypeError, ValueError):
            seats = {role: TakenSeat(str(name), bool(remembers)) for role, (name, remembers) in kept["seats"].items()}
            match = cls(processes, Rules(kept["rules"], kept["game"]), store, id=kept["id"], seats=seats, **given)
            match.roles, match.plies = tuple(kept["roles"]), [list(map(str, joint)) for joint in kept["plies"]]
            match.choosers = [list(map(str, roles)) for roles in kept["choosers"]]
            match.pace, match._learned = MatchPace(*kept["pace"]), int(kept["learned"])
            match._round, match._result = int(kept.get("round", 0)), str(kept.get("result", ""))
            return match
        raise GameloreError("expected a match that gamelore web has kept, got something else; delete the file")


def _keep_nothing(match: SharedMatch) -> None:
    """Keep no match."""


def joint_text(roles: Sequence[str], joint: Sequence[str]) -> str:
    """Return a joint move as text, without `noop` where another role moves."""
    telling = [f"{role} {move}" for role, move in zip(roles, joint, strict=True) if move.lower() != "noop"]
    return ", ".join(telling or joint)
