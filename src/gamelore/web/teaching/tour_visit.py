"""What the tour keeps on the server: the child process that all visitors share, visits by id, and the watched runs."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from ...errors import GameloreError
from ..pages.frame import Services
from ..service.archive import KEPT_ID
from ..service.rule_processes import OPEN_SECONDS, Rules
from ..service.shared_match import MatchPace, SharedMatch, TakenSeat
from .learning_curves import RUN, Row, WatchedRun

MODULE = "gamelore.web.children.tour_examples"
TEACHER, PUPIL = "tictactoe", "connect3"
ASK_SECONDS = 300.0  # limit of a request: the first one may have to compile kernels
MOST_VISITS = 500
SEEDS = 5  # of experiments that are kept on disk
FIRST_SEED = 2007
SPEED = 40.0  # matches of each learner in a second, so that one can follow
RUNS, MATCHES = 20, 300  # of the run that is watched


@dataclass(eq=False)
class Visit:
    """What a visitor has done so far.

    id          part of the address of every step
    done        numbers of the steps whose task is done
    match_id    the match that is played
    lines       two lines of play that lead to afterstates
    seed        seed of the learner
    learned     its number of matches
    example     number of the position of tic-tac-toe whose tree is shown
    clicked     moves that were clicked there
    pupil_example   number of the position of Connect3
    guesses     what the visitor expects from an experiment, by its name
    luck        how often an experiment was repeated with other random numbers, by its name
    """

    id: str
    done: set[int] = field(default_factory=set)
    match_id: str = ""
    lines: tuple[list[list[str]], list[list[str]]] = field(default_factory=lambda: ([], []))
    seed: int = 1
    learned: int = 0
    example: int = 0
    clicked: list[str] = field(default_factory=list)
    pupil_example: int = 0
    guesses: dict[str, str] = field(default_factory=dict)
    luck: dict[str, int] = field(default_factory=dict)


class Tour:
    """The tour of all visitors: its process, visits, and runs."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self._process = services.processes.shared(MODULE)
        self._visits: OrderedDict[str, Visit] = OrderedDict()
        self._runs: dict[int, WatchedRun] = {}

    async def ask(self, do: str, **given: Any) -> Any:
        """Ask for a method of `TourWorker`. Raise its error, or WorkerDied if the request was too much for it."""
        return await self._process.ask(do, ASK_SECONDS, **given)

    def visit(self, id: str = "") -> Visit:
        """Return the visit with an id, or a new one; the oldest is forgotten if there are too many."""
        name = id if KEPT_ID.fullmatch(id) else secrets.token_urlsafe(6)
        if name not in self._visits:
            self._visits[name] = Visit(name)
            if len(self._visits) > MOST_VISITS:
                self._visits.popitem(last=False)
        self._visits.move_to_end(name)
        return self._visits[name]

    def rules(self, game: str) -> Rules:
        """Return the rules of a shipped game."""
        return self.services.library.rules(f"shipped/{game}")

    async def view(self, game: str, plies: list[list[str]]) -> dict[str, Any]:
        """Return a position, see `RuleWorker.view`."""
        ask = self.services.processes.ask
        return await ask(self.rules(game), "view", time_limit=OPEN_SECONDS, plies=plies)  # type: ignore[no-any-return]

    async def match(self, visit: Visit) -> SharedMatch:
        """Return the match of a visitor against a random player; begin one if there is none."""
        archive = self.services.archive
        if visit.match_id:
            try:
                return await archive.find(visit.match_id)
            except GameloreError:  # it was deleted on another page
                visit.match_id = ""
        seats = {"xplayer": TakenSeat(), "oplayer": TakenSeat("random")}
        match = archive.new(rules=self.rules(TEACHER), seats=seats, pace=MatchPace(0.5, 0.0, 0.5))
        visit.match_id = match.id
        await match.open()
        return match

    # ---- the run that is watched --------------------------------------------------------------------------------

    def run(self, number: int) -> WatchedRun:
        """Return the run of the experiment with a number from 0, which is read from disk, or has not begun yet."""
        seed = FIRST_SEED + number % SEEDS
        if seed not in self._runs:
            self._runs[seed] = self._read_run(seed)
        return self._runs[seed]

    def _read_run(self, seed: int) -> WatchedRun:
        id, processes = f"transfer-{seed}", self.services.processes
        folder = self.services.folder / "tour" / id
        if (folder / RUN).is_file():
            try:
                run = WatchedRun.read(folder, processes)
                if run.plan == transfer_plan(seed):
                    return run
            except GameloreError:  # of another version of gamelore
                pass
        return WatchedRun(id, folder, transfer_plan(seed), processes, "the guided tour", speed=SPEED)

    async def forget(self, run: WatchedRun) -> None:
        """Remove a run, so that it begins anew."""
        self._runs = {seed: other for seed, other in self._runs.items() if other is not run}
        await run.delete()


def transfer_plan(seed: int) -> Row:
    """Return the plan of the run: Connect3 without knowledge, and with that of tic-tac-toe."""
    return {
        "target": {"game": PUPIL},
        "learners": ["baseline", "transfer"],
        "sources": [{"game": TEACHER}],
        "runs": RUNS,
        "matches": MATCHES,
        "seed": seed,
    }
