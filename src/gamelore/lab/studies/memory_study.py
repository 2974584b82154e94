"""Study of the memory: contests between the player gamelore with memory and the same player with an empty one.

The unit is a *teaching*: `gamelore study` of a game with a seed of its own, whose store then serves all contests of
this seed. A contest has sessions. In each session, both sides get the same startclock, in CPU seconds of one core, and
then play some pairs of matches with what they know. Matches of a pair have exchanged roles, the same beginning, which
has two random plies in half of the pairs by lot, and the same time for each move. Each side keeps the store that it
has from session to session. So the scores of the pairs of a teaching scatter by play and by startclocks, and those of
several teachings by teaching, too.

The rival has a store that is empty at first. So it also gains what a memory gains by its own earlier startclocks, and
a score above 50 % comes from earlier study, or from other games. The arms are what the first side has:

    known      the lesson about the game
    variant    lessons about other games of its family (lab/families.toml), without that about the game
    unrelated  lessons about games of other families
    shuffled   the lesson of another game: its weights in random order, on the facts of this game. It was tried
               against the rivals of this game, for as long as all tests of a study together. A gain that remains is no
               memory
    default    no store: the player learns anew in each startclock

and, to see what the parts of a lesson are worth, the lesson about the game without openings (`no-openings`) or without
tests of knobs (`no-knobs`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ...gdl.syntax import parse
from ...learning.lesson_exchange import LessonGame
from ...learning.store.knowledge import KnowledgeStore
from ...learning.store.lesson_rows import LESSON, OPENINGS, KeptLesson, Lessons, StoredLesson
from ...learning.store.taught_rows import StoredNetwork, Taught
from ...matches.match import MatchState
from ...memory.course import SHARES, Course, Part, new_pupil
from ...memory.lesson import network_arrays, restored_value, stored_network
from ...memory.schooling import GameMemory, MatchMemory
from ...networks.network import Network
from ...networks.tuples import draw_tuples
from ...players.kernel import load_kernels
from ...players.player import Player
from ...players.position_graph import PositionGraph
from ...players.random_streams import extend, stream
from ...rulesheets import load, title
from ...search.champion import Gamelore, Prepared, Schooling
from ...search.rounds import Openings
from ...search.settings import ChampionSettings, GrowthSettings
from ...search.startclock import has_network
from ...search.value import LinearValue
from ...workers.processes import Report
from ..results import Outcome, ResultStore, Setting, Trial

if TYPE_CHECKING:
    from ...game.game import Game

Arm = Literal["known", "variant", "unrelated", "shuffled", "default", "no-openings", "no-knobs"]
STUDY = "study"  # stage of the random numbers
RANDOM_PLIES = (0, 2)  # at the beginning of a pair, by lot
MOST_PLIES = 500  # of a match; a longer one counts as a draw
_SLICE = 0.05  # seconds
UNFINISHED = "unfinished-"
"""First letters of the folders of teachings that are being made."""
PARTS = ("state", "openings", "knob")
"""What `used_by` tells about the parts of a lesson."""
ABOUT_GAME: tuple[Arm, ...] = ("known", "no-openings", "no-knobs")
"""Arms whose first side has the lesson about the game."""
_DRAW = 50.0
OTHER_SEED = 1000
"""Factor of the seeds of teachings beside the memory."""
_OF_SEED = 1_000_000  # the same for the seed of a setting


@dataclass(frozen=True)
class MemorySetting(Setting):
    """A contest in a game; each run has teachings of its own.

    arm           see the module
    others        games whose lessons are in the store in place of that about the game; for a shuffled lesson, the
                  first of them that has one
    study         CPU seconds of each study
    startclock    CPU seconds before the first move of a session
    milliseconds  time for each move
    sessions      number of sessions
    pairs         number of pairs of matches of each session
    """

    arm: Arm
    others: tuple[str, ...]
    study: float
    startclock: float
    milliseconds: float
    sessions: int
    pairs: int

    @property
    def size(self) -> int:
        """See `Setting.size`; a study without contests counts as one."""
        return 2 * self.sessions * self.pairs or 1


@dataclass(frozen=True)
class MemoryJob:
    """A contest. `folder` has the stores of all teachings."""

    trial: Trial[MemorySetting]
    folder: Path

    @property
    def size(self) -> int:
        """See `MemorySetting.size`."""
        return self.trial.setting.size


def memory_jobs(folder: Path, trials: Iterable[Trial[MemorySetting]]) -> list[MemoryJob]:
    """Return a job for each contest: first those of the first teaching of all games, so a part of them is a sample.

    The longest studies come last. Of a teaching, one contest with all games comes after the other, so that several
    processes hardly ever wait for the same study, or make it twice.
    """

    def order(trial: Trial[MemorySetting]) -> tuple[float, int, int, float, float]:
        setting = trial.setting
        return setting.study, trial.run, get_args(Arm).index(setting.arm), setting.startclock, setting.milliseconds

    return [MemoryJob(trial, folder) for trial in sorted(trials, key=order)]


def play_memory_job(job: MemoryJob, report: Report) -> list[Outcome]:
    """Teach, unless the store of the teaching is there, and play a contest."""
    trial, game, begin = job.trial, ready(job.trial.setting.game), time.perf_counter()
    result = _contest(game, job)
    report(trial.setting.size)
    seconds = time.perf_counter() - begin
    return [Outcome(trial, rules_hash=game.rules_hash, engine=game.engine, seconds=seconds, result=result)]


def ready(name: str) -> Game:
    """Load a game, and all that a player needs before its clock starts, such as the code for informed playouts.

    What is computed once for a game would otherwise cost the side that comes first.
    """
    load_kernels()
    game = load(name)
    _ = game.informed_runner
    new_pupil(game, 0).teach(time.monotonic() + _SLICE)
    return game


# ---- teachings ----


def store_of_teaching(folder: Path, name: str, run: int, seconds: float) -> Path:
    """Return the file of the store of a teaching."""
    return folder / f"{title(name)}-{run}-{seconds:g}.db"


def studied(game: Game, run: int, seconds: float, folder: Path) -> Path:
    """Return the store of a teaching of so many CPU seconds; make it if it is missing."""
    path = store_of_teaching(folder, game.name, run, seconds)
    return _made(path, lambda lessons: _study(Course(game, lessons, run), seconds))


def _made(path: Path, fill: Callable[[Lessons], None]) -> Path:
    """Return a store; make and fill it if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        with TemporaryDirectory(dir=path.parent, prefix=UNFINISHED) as temporary:
            new = Path(temporary, path.name)
            with KnowledgeStore(new) as knowledge:
                fill(Lessons(knowledge))
            with suppress(FileExistsError):  # made by another process in the meantime; all contests use the same one
                path.hardlink_to(new)
    return path


def _study(course: Course, seconds: float, parts: Collection[Part] = get_args(Part)) -> None:
    """Study for so many CPU seconds, or until there is nothing more to do."""
    end = time.process_time() + seconds
    while (left := end - time.process_time()) > 0 and course.go_on(time.monotonic() + min(left, _SLICE), parts=parts):
        pass
    course.store_lesson()


def shuffled(game: Game, lesson: StoredLesson, rng: np.random.Generator) -> StoredLesson:
    """Return the lesson of another game for a game: its weights in random order, and entries drawn from its network.

    The weights are on the facts of the game, and the entries are those of tuples of the game.
    """
    weights = np.array(list(lesson.value.weights.values()), np.float64)
    weights = weights.reshape(-1, max(1, len(lesson.value.constants)))
    facts = game.fact_texts
    rows = rng.permutation(len(facts))[: len(weights)]
    columns = np.arange(game.num_roles) % max(1, len(lesson.value.constants))
    drawn = rng.permutation(len(weights))[: len(rows)]
    own = {facts[row]: tuple(weights[place, columns].tolist()) for row, place in zip(rows, drawn, strict=True)}
    constants = tuple(lesson.value.constants[column] for column in columns) if lesson.value.constants else ()
    network = _shuffled_network(game, lesson.value.network, rng, columns)
    value = lesson.value._replace(weights=own, constants=constants, network=network)
    return replace(lesson, value=value, progress=b"")


def _shuffled_network(
    game: Game, stored: StoredNetwork | None, rng: np.random.Generator, columns: NDArray[np.int64]
) -> StoredNetwork | None:
    """Return a network for a game whose entries are drawn from those of another one; None if there is none.

    columns: the role of the other game that takes the place of each role
    """
    arrays = network_arrays(stored) if stored is not None and has_network(game) else None
    if arrays is None:
        return None
    tuples = draw_tuples(game, rng)
    learned = (own[own != 0] for own in arrays[2].astype(np.float32))  # the others were never met
    entries = np.stack([rng.choice(own, tuples.room) if len(own) else np.zeros(tuples.room) for own in learned])
    return stored_network(game, Network(tuples.strides, tuples.offsets, entries[columns]))


# ---- contests ----


@dataclass(frozen=True)
class Frozen:
    """What a side has learned before a contest, which does not change any more; see `search.champion.Schooling`."""

    game: Game
    value: LinearValue | None
    growth: GrowthSettings
    assumption: int
    openings: Openings | None
    is_done: bool = True

    def begin(self, startclock: float | None) -> Prepared:
        """Return this."""
        return self

    def teach(self, deadline: float | None = None) -> None:
        """Do nothing."""

    def end(self) -> None:
        """Do nothing."""


def playing(champion: ChampionSettings, frozen: Frozen) -> Gamelore:
    """Return the player with what it has learned, after a first move: memory for its tree takes up to a second."""
    player, state = Gamelore(champion, lambda game: frozen), MatchState(PositionGraph(frozen.game))
    for role in filter(state.has_choice, state.pending()):
        player.begin(role, state.started())
        player.choose(state.turn(role, np.uint64(0)))
    return player


def used_by(match: Prepared) -> dict[str, Any]:
    """Return which state of a lesson, which knob, and whether openings are used in a match."""
    if isinstance(match, MatchMemory):
        return {"state": match.snapshot, "knob": match.knob, "openings": match.openings is not None}
    return {"state": None, "knob": None, "openings": False}


def has_used(used: Mapping[str, Any], part: str) -> bool:
    """Return whether a match was played with one of PARTS; see `used_by`. A state may be 0."""
    return used[part] is not None and used[part] is not False


class ContestSide:
    """A side of a contest.

    Args:
        game: game
        lessons: store that it keeps from session to session; None for a side that learns anew in each
        seed: seed of its teaching

    Attributes:
        retrieval: CPU seconds in which it reads its memory, or makes a teacher, at the beginning of each session
        startclocks: CPU seconds that its startclocks really took, these included
        used: what it used of its memory in each session
    """

    def __init__(self, game: Game, lessons: Lessons | None, seed: int) -> None:
        self._game, self._lessons, self._seed = game, lessons, seed
        self._schooling: Schooling | None = None
        self._match: Prepared | None = None
        self.retrieval, self.startclocks, self.used = list[float](), list[float](), list[dict[str, Any]]()

    def learn(self, startclock: float) -> Frozen:
        """Begin a session; return what the side knows after a startclock of so many CPU seconds."""
        begin = time.process_time()
        match = self._match = self._school().begin(startclock)
        self.retrieval.append(time.process_time() - begin)
        frozen = learned(self._game, match, startclock - self.retrieval[-1])
        self.startclocks.append(time.process_time() - begin)
        self.used.append(used_by(match))
        return frozen

    def _school(self) -> Schooling:
        """Return the memory of the side, or a new teacher for each session."""
        if self._lessons is None:
            return new_pupil(self._game, self._seed + len(self.retrieval))
        if self._schooling is None:
            self._schooling = GameMemory(self._game, self._lessons, self._seed)
        return self._schooling

    def end(self) -> None:
        """End a session: store what was learned."""
        if self._match is not None:
            self._match.end()

    @property
    def variant(self) -> str:
        """The rules of the game with whose value its lesson began; "" if there is none."""
        return self._schooling.course.variant if isinstance(self._schooling, GameMemory) else ""


def _contest(game: Game, job: MemoryJob) -> dict[str, Any]:
    """Play one contest; return the scores of its pairs by session, what was used, and times."""
    trial, setting = job.trial, job.trial.setting
    key = stream(setting.seed, trial.run, STUDY, game.rules_hash)
    champion = ChampionSettings(seconds=setting.milliseconds / 1000, threads=1, solve=False)
    scores, times = list[list[float]](), [MoveTimes(), MoveTimes()]
    with TemporaryDirectory() as temporary, ExitStack() as stack:
        own, other = (
            Lessons(stack.enter_context(KnowledgeStore(Path(temporary, f"{name}.db")))) for name in ("own", "other")
        )
        _fill(own, game, job)
        stores, seed = (own if setting.arm != "default" else None, other), _OF_SEED * setting.seed
        sides = [  # a side without a store adds the number of the session to its seed
            ContestSide(game, lessons, seed + OTHER_SEED * (2 * trial.run + number))
            for number, lessons in enumerate(stores, start=1)
        ]
        num_lessons = len(own.games())
        for session in range(setting.sessions):
            players = [playing(champion, side.learn(setting.startclock)) for side in sides]
            numbers = range(session * setting.pairs, (session + 1) * setting.pairs)
            scores.append([pair_score(game, players, np.uint64(extend(key, number)), times) for number in numbers])
            for side in sides:
                side.end()
        return {
            "scores": scores,
            "lessons": num_lessons,  # with which the first side began
            "used": sides[0].used,
            "used_by_rival": sides[1].used,
            "variant": sides[0].variant,
            "retrieval": sides[0].retrieval,
            "startclocks": [*zip(*(side.startclocks for side in sides), strict=True)],
            "cpu": [side.seconds for side in times],
            "choices": [side.choices for side in times],
        }


def _fill(lessons: Lessons, game: Game, job: MemoryJob) -> None:
    """Put into an empty store what the side with memory remembers."""
    arm, others = job.trial.setting.arm, job.trial.setting.others
    if arm == "shuffled":
        name = store_of_teaching(job.folder, f"{game.name}-shuffled", job.trial.run, job.trial.setting.study)
        paths = [_made(name, lambda own: _add_shuffled(own, game, job))]
    else:
        paths = [_studied(name, job) for name in ((job.trial.setting.game,) if arm in ABOUT_GAME else others)]
    for path in paths:
        _copy(path, lessons, arm)


def _studied(name: str, job: MemoryJob) -> Path:
    """Return the store of a teaching of a game by its name. The game is loaded only if the teaching is to be made."""
    run, seconds = job.trial.run, job.trial.setting.study
    path = store_of_teaching(job.folder, title(name), run, seconds)
    return path if path.exists() else studied(load(name), run, seconds, job.folder)


def _copy(path: Path, lessons: Lessons, arm: Arm) -> None:
    """Copy what a store has about its game, if there is anything, without the part that an arm leaves out."""
    with KnowledgeStore(path, writable=False) as knowledge:
        stored = Lessons(knowledge)
        for row in stored.games():
            kept, sheet = stored.kept(row.rules_hash), parse(row.rules)
            if kept is not None:
                game = LessonGame(row.rules_hash, row.name, stored.roles(row.rules_hash), sheet)
                lessons.add([(game, _part(kept, arm))])


def _part(kept: KeptLesson, arm: Arm) -> KeptLesson:
    """Return a lesson without the part that an arm leaves out."""
    if arm == "no-openings":
        return kept._replace(openings={}, trials=[row for row in kept.trials if row.advice != OPENINGS])
    if arm == "no-knobs":
        return kept._replace(trials=[row for row in kept.trials if row.advice in (LESSON, OPENINGS)])
    return kept


def _kept(game: Game, job: MemoryJob) -> KeptLesson | None:
    """Return all that a teaching of a game has given; None if that is nothing."""
    return _stored(game, studied(game, job.trial.run, job.trial.setting.study, job.folder))


def _stored(game: Game, path: Path) -> KeptLesson | None:
    """Return all that a store has about a game; None if that is nothing."""
    with KnowledgeStore(path, writable=False) as knowledge:
        return Lessons(knowledge).kept(game.rules_hash)


def _trusted(game: Game, job: MemoryJob) -> StoredLesson | None:
    """Return the lesson about a game, if a search gives virtual visits by its value."""
    kept = _kept(game, job)
    if kept is None or not kept.lesson.snapshot:
        return None
    value = restored_value(game, kept.lesson.value)
    return kept.lesson if value is not None and value.virtual_visits(GrowthSettings()) else None


def _add_shuffled(lessons: Lessons, game: Game, job: MemoryJob) -> None:
    """Put a shuffled lesson of another game into the store, with the rivals of a game, and try it.

    Its tests have the time that all tests of a study have, those of openings and knobs and the learning of rivals
    included.

    The other game is the first one with a value that a search trusts.
    """
    trial, own = job.trial, _kept(game, job)
    lesson = next(filter(None, (_trusted(load(name), job) for name in trial.setting.others)), None)
    if own is None or lesson is None:
        return
    lesson = shuffled(game, lesson, np.random.default_rng(int(stream(trial.setting.seed, trial.run, STUDY))))
    rivals = {pupil: values for pupil, values in own.taught.items() if pupil != LESSON}
    value = Taught(lesson.snapshot, lesson.walks, lesson.seconds, lesson.value)
    kept = own._replace(lesson=lesson, taught={**rivals, LESSON: [value]}, openings={}, matches=(), trials=())
    lessons.add([(game, kept)])
    _study(Course(game, lessons, trial.run), SHARES["trials"] * trial.setting.study, ["trials"])


def learned(game: Game, learning: Prepared, startclock: float) -> Frozen:
    """Return what a side has learned after a startclock of so many CPU seconds."""
    end = time.process_time() + startclock
    while not learning.is_done and (left := end - time.process_time()) > 0:
        learning.teach(time.monotonic() + min(left, _SLICE))
    return Frozen(game, learning.value, learning.growth, learning.assumption, learning.openings)


@dataclass
class MoveTimes:
    """CPU seconds of all choices of a side, and their number."""

    seconds: float = 0.0
    choices: int = 0


def pair_score(game: Game, sides: Sequence[Player], key: np.uint64, times: Sequence[MoveTimes]) -> float:
    """Return the mean score of the first side, 0 to 100, in two matches with exchanged roles; add up their times."""
    graph, rng = PositionGraph(game), np.random.default_rng(int(key))
    opening = _random_plies(graph, rng)
    scores = []
    for own in (0, 1):
        match_key = np.uint64(extend(key, own))
        goals = _match(graph, opening, [sides[int(role != own)] for role in (0, 1)], match_key, times, own)
        scores.append(_DRAW if goals is None else 50.0 + (goals[own] - goals[1 - own]) / 2)
    return sum(scores) / 2


def _random_plies(graph: PositionGraph, rng: np.random.Generator) -> list[list[int]]:
    """Return random joint moves at the beginning of a match, as indices into the legal moves."""
    state, num_plies = MatchState(graph, max_plies=MOST_PLIES), int(rng.choice(RANDOM_PLIES))
    while state.end is None and state.ply < num_plies:
        state.play([int(rng.integers(num)) for num in graph.num_moves[state.row].tolist()])
    return state.choices if state.end is None else []


def _match(
    graph: PositionGraph,
    opening: Sequence[Sequence[int]],
    players: Sequence[Player],
    key: np.uint64,
    times: Sequence[MoveTimes],
    own: int,
) -> tuple[int, ...] | None:
    """Play a match from an opening; return the goals, None if it has none. `own`: the role of the first side."""
    state = MatchState.after(graph, opening, max_plies=MOST_PLIES)
    for role, player in enumerate(players):
        player.begin(role, state.started())
    while state.end is None:
        for role in state.pending():
            choice = 0
            if state.has_choice(role):
                begin = time.process_time()
                choice = int(players[role].choose(state.turn(role, np.uint64(extend(key, role))))[0])
                spent = times[int(role != own)]
                spent.seconds, spent.choices = spent.seconds + time.process_time() - begin, spent.choices + 1
            state.submit(role, choice)
    goals = [goal for goal in state.goals if goal is not None]
    return (goals[0], goals[1]) if len(goals) == len(players) else None


# ---- results ----


def teachings(store: ResultStore, name: str) -> dict[int, list[float]]:
    """Return the scores of the pairs of each teaching of a setting, session after session."""
    return {run: [*chain.from_iterable(result["scores"])] for run, result in store.by_run(name).items()}
