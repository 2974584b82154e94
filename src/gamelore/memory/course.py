"""Course of lessons in one game: teach, search openings, try both, and store all, from where an earlier course stopped.

The time is shared between teaching (tuition.py), the book of openings (book.py), trials of what these have
given, and of knobs in the order of the ledger (advice.py, ledger.py), and comparisons of the moves of opponents with
those of known players (recogniser.py). The part that is farther behind its share is next. As long as the value of a
variant is tried, nearly all time is for that, because nothing else can be used sooner. Every piece of work is stored
at once, and teaching every `_BETWEEN` seconds. So a course can be stopped or killed at any time. Several processes can
study the same game without harm; but only one of them gets ahead with teaching.

Times are CPU times, so a course finds out the same on a busy machine. Trials never repeat random numbers, so that the
same matches cannot count twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from time import monotonic, process_time
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args
from weakref import WeakValueDictionary

from ..learning.store.lesson_rows import LESSON, OPENINGS, WITHOUT, Lessons, StoredLesson, TrialRow
from ..learning.store.taught_rows import Taught
from ..search.rounds import Rounds
from ..search.settings import GrowthSettings, TeachingSettings
from ..search.startclock import LEAST_STARTCLOCK, Pupil
from ..search.teaching import Teacher, teaching_key
from ..search.thinking import Search
from ..search.value import LinearValue
from .advice import STARTCLOCKS, is_decided, is_in_order, passed, rival_name, startclock_of, with_scores
from .book import Book, state_of_book
from .evidence import MIDDLE
from .ledger import KNOBS, Ledger, with_knob
from .lesson import restored_value
from .recogniser import Encounters
from .retrieval import CarriedValue, Relatives
from .rivals import DEFAULT_GROWTH, TRIAL_SECONDS, Rivals, SearchPlan, with_decision
from .tuition import Tuition

if TYPE_CHECKING:
    from ..game.game import Game
    from ..players.player import Player

_SLICE = 0.25  # seconds of teaching, or of trials, before the next part may be due
_BETWEEN = 10.0  # seconds of teaching, after which it is stored
Part = Literal["teaching", "openings", "trials", "opponents"]
SHARES: dict[Part, float] = {"teaching": 0.55, "openings": 0.1, "trials": 0.3, "opponents": 0.05}
_CARRIED = 0  # the state of a lesson that began with the value of a variant: this value
_SELECTION_MOVES = 2000  # the choice among several variants takes the time of so many moves of trials, at most
_OF_CARRIED = 20  # times the share of trials, while the value of a variant is tried
_MOVE_OF_STARTCLOCK = 1 / 4000  # time for a move of a trial, at most; four rounds have about 500 moves
_LONGER = 2  # a state is tried against rivals with a startclock if its teaching took so many times as long
_FEW_ROUNDS, _ENOUGH_ROUNDS = 8, 400  # of a trial: before its evidence counts in the order, and at most
_OUTDATED, _YOUNG = 2, 3.0  # a state of the lesson is tried until another one was taught for so many times as long
_PROMISING = 1.0  # logarithm of a capital: won by bets for a state, it is worth more time; against it, none
_HALFWAY, _PATIENCE = 2.5, 4  # with so much in an open trial, a state is not outdated before
_AGAIN = 4  # a state is tried where another one has passed if its teaching took so many times as long
_SHARE_OF_TEACHING = 0.5  # a state that promises nothing is tried for so many times as long as its teaching took
_OPENINGS_FROM = 6.0  # seconds of teaching before openings are searched, with its value, unless it ends before
_FEWEST_OPENINGS, _MOST_OPENINGS = 8, 2000  # positions in the book when it is tried first, and when it is full
_OPENING_SECONDS, _OPENING_MIB = 1.0, 128  # of the search of a position for the book
_RANDOM_PLIES = {OPENINGS: [0, 2]}  # at the beginning of trial matches
_OTHER_PLIES = [2]  # at the beginning of matches about other advice
_KNOB = "knob"
_TURNS = (LESSON, LESSON, OPENINGS, LESSON, LESSON, _KNOB)  # of kinds of advice in trials; lessons are worth most
_MOST_CONTESTS = 4  # under way, each with a tree
_REREAD = 1.0  # seconds after which evidence is read again

Told: TypeAlias = StoredLesson | TrialRow | int
"""What a course reports: a lesson that was stored, evidence from trials, or the number of positions in the book."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A value that was taught, with the parameters of the search that go with it, see `StoredLesson.snapshot`.

    The value is made when it is first needed, because it takes some tens of milliseconds to make a network.

    number   of the state of the lesson, or of the rival
    seconds  CPU seconds of teaching
    growth   parameters of the search
    restore  makes the value of what was stored
    """

    number: int
    seconds: float
    growth: GrowthSettings
    restore: Callable[[], LinearValue | None]

    @classmethod
    def of(cls, game: Game, taught: Taught) -> Snapshot:
        """Return the snapshot of a value from the store."""
        growth = with_decision(taught.value.informed)
        return cls(taught.number, taught.seconds, growth, partial(restored_value, game, taught.value))

    @cached_property
    def value(self) -> LinearValue | None:
        return self.restore()

    @property
    def plan(self) -> SearchPlan:
        """What a player with this value plays with."""
        return SearchPlan(self.value, self.growth)


class Course:
    """Lessons in a game.

    Args:
        game: game with opponents and a circuit
        lessons: store for what is learned
        seed: seed of the random numbers of teaching
        opponents: known players by name, with whom the opponents of the last matches are compared; none by default
        may_adopt: whether the lesson of the same game under other names may be copied

    Attributes:
        tuition: the teaching, which goes on from the stored lesson
        snapshot: the newest state of the lesson; None if there is none
        startclocks: startclocks of the rivals, in seconds
    """

    startclocks: Sequence[int] = STARTCLOCKS

    def __init__(
        self,
        game: Game,
        lessons: Lessons,
        seed: int = 0,
        opponents: Mapping[str, Player] | None = None,
        *,
        may_adopt: bool = True,
    ) -> None:
        self.game, self._lessons, self._may_adopt = game, lessons, may_adopt
        self._encounters = Encounters(game, lessons, opponents) if opponents else None
        self._key = teaching_key(seed, game)
        self._rivals = Rivals(game, lessons, self._key)
        self._spent: dict[Part, float] = dict.fromkeys(SHARES, 0.0)
        self._contests: dict[TrialRow, Rounds] = {}
        self._variants: list[CarriedValue] | None = None  # until it is known that there is no lesson
        self._has_others = False  # whether there may be more variants, which are not read before trials begin
        self._selection: _Selection | None = None
        self._search: Search | None = None
        self._searched = 0.0  # CPU seconds
        self._ledger = Ledger(game, lessons, self._key)
        self._following: tuple[float, TrialRow | None] | None  # the trial to go on with, and when it was chosen
        self._turn = 0  # of _TURNS, the next one
        self._snapshots = WeakValueDictionary[tuple[str, int], Snapshot]()  # those in use, by pupil and number
        self._book: Book | None = None  # until it is needed
        self.tuition = self._resumed()

    def _resumed(self) -> Tuition:
        """Return teaching that goes on from the stored lesson, or begins one, perhaps with the value of a variant."""
        lesson = self._lessons.find(self.game.rules_hash)
        if lesson is None and self._may_adopt:
            self._relatives.adopt()
            lesson = self._lessons.find(self.game.rules_hash)
        if lesson is None:
            self._book = None  # with the lesson, it may have been deleted
        self._stored_walks = lesson.walks if lesson else 0
        # a short first match leaves a lesson without a value
        is_blank = lesson is None or not (lesson.generation or lesson.value.constants)
        begun = self._carried() if is_blank else None
        self._is_new = lesson is None or begun is not None
        if begun is not None:
            lesson = replace(begun, id=lesson.id if lesson else "")
        self._stored_at = lesson.seconds if lesson else 0.0
        self._variant = (lesson.origin, lesson.likeness) if lesson else ("", 0.0)
        self._id = lesson.id if lesson else ""
        self._num_generations = lesson.generation if lesson else 0
        self._contests.clear()
        self._snapshots.clear()
        self._following = None
        self.snapshot: Snapshot | None = None
        self._candidate: Snapshot | None = None  # the state of the lesson that is tried
        self._tuned: Snapshot | None = None  # the state with which knobs are tried
        if lesson is not None and lesson.snapshot >= 0:
            self.snapshot = self.stored_snapshot(LESSON, lesson.snapshot)
            if self.snapshot is None:  # the value of a variant is not stored yet
                self.snapshot = Snapshot.of(self.game, Taught(lesson.snapshot, 0, 0.0, lesson.value))
        return Tuition(self.game, self._key, lesson)

    @cached_property
    def _relatives(self) -> Relatives:
        return Relatives(self.game, self._lessons)

    def _carried(self) -> StoredLesson | None:
        """Return a lesson that begins with the value of a variant; None if the store has no variant of the game."""
        if self._variants is None:
            self._variants = [*filter(None, [self._relatives.first_variant()])]
            self._has_others = len(self._variants) > 0 and self._relatives.has_several
        if not self._variants:
            return None
        variant = self._variants[0]
        return StoredLesson(0, 0, 0, 0.0, variant.value, b"", variant.rules_hash, variant.likeness)

    @property
    def variant(self) -> str:
        """Hash of the rules of the variant whose lesson was the start; "" for none."""
        return self._variant[0]

    @property
    def book(self) -> Book:
        """The openings."""
        if self._book is None:
            self._book = Book(self.game, self._lessons.openings(self.game.rules_hash))
        return self._book

    @property
    def book_state(self) -> int:
        """State of the openings, see `Book.state`."""
        return state_of_book(self._num_openings)

    @property
    def _num_openings(self) -> int:
        return len(self._book) if self._book is not None else self._lessons.num_openings(self.game.rules_hash)

    def prepare_for(self, startclock: int) -> None:
        """Try the lesson against rivals with this startclock only, in matches so short that some of them end in it."""
        before, self.startclocks = (self.startclocks, self._rivals.seconds), [startclock] if startclock else []
        self._rivals.seconds = min(TRIAL_SECONDS, _MOVE_OF_STARTCLOCK * startclock)
        if self.startclocks != before[0]:
            self._selection = None  # its rivals had another startclock
        if self._rivals.seconds != before[1]:
            self._contests.clear()
        self._following = None

    def refresh(self) -> None:
        """Go on from what other processes have stored, if they have taught more, or deleted the lesson."""
        state = self._lessons.state(self.game.rules_hash)
        if state is None:
            self._snapshots.clear()
        is_ahead = state is not None and (state[0] != self._id or state[1] > self._stored_walks)
        if is_ahead or (state is None and self._id):  # another process has taught more, or deleted the lesson
            self.tuition = self._resumed()
        if self._book is not None and self._lessons.num_openings(self.game.rules_hash) != len(self._book):
            self._book = None
        self._following = None

    @property
    def is_done(self) -> bool:
        """Whether there is nothing more to study."""
        return next(self._parts(), None) is None

    @property
    def seconds(self) -> float:
        """CPU seconds of teaching so far, those of earlier courses included."""
        return self.tuition.seconds

    def go_on(
        self,
        deadline: float,
        tell: Callable[[Told], None] = lambda told: None,
        parts: Collection[Part] = get_args(Part),
    ) -> bool:
        """Study until the deadline, or until there is nothing more to study; return whether there is more.

        Each piece of work takes some milliseconds, and some tenths of a second where matches begin, a network or the
        book is read, or self-play is stored.

        Args:
            deadline: in seconds of `time.monotonic`
            tell: gets all that is stored
            parts: what to do
        """
        steps: dict[Part, Callable[[float], Told | None]] = {
            "teaching": self._teach,
            "openings": self._explore,
            "trials": self._try,
            "opponents": self._compare,
        }
        while monotonic() < deadline:
            due = (part for part in self._parts(parts) if part in parts)
            part = min(due, key=lambda part: self._spent[part] / SHARES[part], default=None)
            if part is None:
                return False
            begin, cost = process_time(), self._cost(part)
            told = steps[part](min(deadline, monotonic() + _SLICE))
            self._spent[part] += cost * (process_time() - begin)
            if told is not None:
                tell(told)
        return True

    def _cost(self, part: Part) -> float:
        """Return how much of its time counts for the share of a part; little as long as a carried value is tried."""
        trial = self._next_trial() if self._variant[0] and part == "trials" else None
        tries_carried = trial is not None and trial[:2] == (LESSON, _CARRIED)
        return 1 / _OF_CARRIED if tries_carried or self._is_selecting else 1.0

    def _seconds_of(self, number: int) -> float:
        """Return the CPU seconds of teaching before a state of the lesson; 0 if the store lacks it."""
        generations = self._lessons.generations(self.game.rules_hash)
        return next((row.seconds for row in generations if row.number == number), 0.0)

    def _parts(self, wanted: Collection[Part] = get_args(Part)) -> Iterator[Part]:
        """Yield the parts of the course that have something to do."""
        if self._is_selecting and "trials" in wanted:
            yield "trials"
            return
        if not self.tuition.is_done:
            yield "teaching"
        is_taught = self.seconds >= _OPENINGS_FROM or self.tuition.is_done
        if is_taught and len(self.book) < _MOST_OPENINGS and self.book.unsearched is not None:
            yield "openings"
        if self._next_trial() is not None or self._is_to_be_described:
            yield "trials"
        if self._encounters is not None and not self._encounters.is_done:
            yield "opponents"

    # teaching

    def _teach(self, deadline: float) -> StoredLesson | None:
        """Teach until the deadline; return the lesson if it is time to store it."""
        before = self.seconds
        self.tuition.teach(deadline)
        self._keep_youth(before)
        is_due = self.seconds >= self._stored_at + _BETWEEN or self.tuition.is_done
        return self.store_lesson() if is_due or self.tuition.generation > self._num_generations else None

    def _keep_youth(self, before: float) -> None:
        """Store what the teacher knows when its teaching has just taken the startclock of a rival, as that rival.

        A teacher that began with the value of a variant is none, and in longer startclocks, rivals learn more than
        linear values.

        Args:
            before: CPU seconds of teaching some tens of milliseconds ago
        """
        teacher = self.tuition.teacher
        if self._variant[0] or teacher is None:
            return
        for startclock in (own for own in STARTCLOCKS if own < LEAST_STARTCLOCK):
            is_present = before < startclock <= self.seconds
            if is_present and not self._lessons.pupils(self.game.rules_hash).get(rival_name(startclock)):
                self.store_rival(teacher, startclock, self.seconds)

    def store_rival(self, learner: Pupil | Teacher, startclock: int, seconds: float) -> None:
        """Store what was learned in a startclock, which began with nothing, as a rival."""
        self._rivals.store(learner, startclock, seconds)

    def store_lesson(self) -> StoredLesson | None:
        """Store what the teacher has taught, and return it; None if it is not new, or another process is ahead.

        If the lesson was deleted, teaching begins anew, and nothing is stored.

        A choice among variants ends with the best so far.
        """
        was_selecting = self._is_selecting
        if was_selecting:
            self._end_selection()
        return self._store() if was_selecting or self._stored_at != self.seconds else None

    def _store(self) -> StoredLesson | None:
        """Store the lesson as it is now, and return it; None as in `store_lesson`."""
        self._stored_at = self.seconds
        lesson, rules = self._present_lesson(), self.game.rules_hash
        became, state = self._lessons.put(self.game, lesson, self._id), self._lessons.state(rules)
        # another process may have begun with another variant, and taught nothing either
        is_foreign = became == "same" and self._is_new
        self._num_generations, self._is_new = lesson.generation, False
        if became == "behind" or is_foreign or state is None or (self._id and state[0] != self._id):
            self.tuition = self._resumed()
            return None
        self._id = state[0]
        if became != "stored":
            return None
        self._stored_walks = lesson.walks
        if lesson.generation and (self.snapshot is None or lesson.snapshot > self.snapshot.number):
            # which another process may have stored before
            self.snapshot = self.stored_snapshot(LESSON, lesson.snapshot)
            self._following = None
        return lesson

    def _present_lesson(self) -> StoredLesson:
        """Return what was taught so far, for the store."""
        return replace(self.tuition.lesson(), id=self._id, origin=self._variant[0], likeness=self._variant[1])

    # openings

    def _explore(self, deadline: float) -> int | None:
        """Search a position for the book; after `_OPENING_SECONDS`, store what was found.

        Return the number of positions in the book if it has a new one.
        """
        state = self.book.unsearched
        assert state is not None
        search = self._search = self._search or Search(self.game, DEFAULT_GROWTH, _OPENING_MIB)
        if not search.is_at(state):
            search.begin(state, self._rivals.new_key(), self.snapshot.value if self.snapshot else None)
            self._searched = 0.0
        begin = process_time()
        walks = search.run(deadline=deadline)
        self._searched += process_time() - begin
        if self._searched < _OPENING_SECONDS and (walks or not search.is_proved):
            return None
        moves = self.book.add(state, search)
        self._lessons.put_opening(self.game, self.game.facts(state), moves)
        return len(self.book)

    # trials

    def _next_trial(self) -> TrialRow | None:
        """Return the trial to go on with, with its evidence so far; None if there is nothing to try.

        The evidence is read again after `_REREAD` seconds, because other processes may have added to it.
        """
        if self._following is None or monotonic() > self._following[0] + _REREAD:
            self._following = monotonic(), self._chosen_trial(self._lessons.trials(self.game.rules_hash))
        return self._following[1]

    def _chosen_trial(self, rows: Sequence[TrialRow]) -> TrialRow | None:
        """Return the trial to go on with by all evidence for the game. Kinds of advice take turns, see _TURNS.

        While a rival learns for a trial, others go on, because it may take longer than the process lives.
        """
        self._choose_candidate(rows)
        openings = [TrialRow(OPENINGS, self.book_state, WITHOUT)] if self._num_openings >= _FEWEST_OPENINGS else []
        kinds = {
            LESSON: sorted(self._due_trials(rows, self._candidate), key=_urgency),
            OPENINGS: [*self._open_trials(rows, openings)],
            _KNOB: [*islice(self._open_trials(rows, self._knob_trials(rows)), 1)],
        }
        ready = {kind: [trial for trial in own if self._is_ready(trial)] for kind, own in kinds.items()}
        trials = ready if any(ready.values()) else kinds
        for turn in range(self._turn, self._turn + len(_TURNS)):
            if own := trials[_TURNS[turn % len(_TURNS)]]:
                self._turn = turn
                return own[0]
        return None

    def _is_ready(self, trial: TrialRow) -> bool:
        """Return whether matches of a trial can begin, or its rival has time to learn first."""
        startclock = startclock_of(trial.against)
        return startclock is None or self._rivals.is_ready(startclock)

    def _choose_candidate(self, rows: Sequence[TrialRow]) -> None:
        """Go on with the state of the lesson that is being tried, or begin with the newest one."""
        newest, candidate = self.snapshot, self._candidate
        if newest is None or candidate is newest:
            return
        if candidate is None:
            numbers = [row.number for row in rows if row.advice == LESSON and row.number < newest.number]
            candidate = (self.stored_snapshot(LESSON, max(numbers)) if numbers else None) or newest
        is_halfway = any(row.better >= _HALFWAY for row in self._due_trials(rows, candidate))
        factor = _PATIENCE if is_halfway else _OUTDATED
        is_outdated = newest.seconds >= factor * max(candidate.seconds, _YOUNG)
        if is_outdated or not any(self._due_trials(rows, candidate)):
            candidate = newest
        if candidate is not self._candidate:
            self._candidate = candidate
            self._contests.clear()

    def stored_snapshot(self, pupil: str, number: int) -> Snapshot | None:
        """Return what a pupil, `LESSON` or a rival, knew with a number; None if the store lacks it.

        It is read from the store once, as long as something uses it.
        """
        snapshot = self._snapshots.get((pupil, number))
        if snapshot is None:
            for taught in self._lessons.taught(self.game.rules_hash, pupil, number):
                snapshot = self._snapshots[pupil, number] = Snapshot.of(self.game, taught)
        return snapshot

    def _lesson_trials(self, rows: Sequence[TrialRow], snapshot: Snapshot | None) -> Iterator[TrialRow]:
        """Yield the trials of a state of the lesson, without evidence.

        Where another state has passed, a state is tried again only if its teaching was much longer. A state that has
        passed against this startclock or a longer one needs no trial. The value of a variant is tried against a longer
        startclock once it has passed against the shorter ones. States that it has led are tried at once, except against
        rivals with networks, which take a minute to learn.
        """
        if snapshot is None:
            return
        for startclock in self.startclocks:
            is_led = self._variant[0] and startclock < LEAST_STARTCLOCK
            least = 0.0 if is_led or snapshot.number == _CARRIED else _LONGER * startclock
            number = passed(rows, [startclock])
            if number is not None and number != snapshot.number:
                least = max(least, _AGAIN * self._seconds_of(number))
            if number != snapshot.number and snapshot.seconds >= least and _differs(snapshot):
                yield TrialRow(LESSON, snapshot.number, rival_name(startclock))
            if snapshot.number == _CARRIED and number is None:
                break

    def _due_trials(self, rows: Sequence[TrialRow], snapshot: Snapshot | None) -> Iterator[TrialRow]:
        """Yield the open trials of a state of the lesson which promise something, or have not taken long.

        A trial that speaks against the state is given up. So the time for trials is saved for states that know more,
        and these are tried as soon as they are there.
        """
        if snapshot is None:
            return
        num = sum(row.num for row in rows if row[:2] == (LESSON, snapshot.number))
        is_carried = not snapshot.seconds
        has_time = is_carried or self._rivals.seconds_of(num) < _SHARE_OF_TEACHING * snapshot.seconds
        for row in self._open_trials(rows, self._lesson_trials(rows, snapshot)):
            if row.better >= _PROMISING or (has_time and row.worse < _PROMISING):
                yield row

    def _knob_trials(self, rows: Sequence[TrialRow]) -> Iterator[TrialRow]:
        """Yield the trials of knobs with the newest state of the lesson that has passed, the next one first."""
        number = passed(rows, self.startclocks)
        if self._tuned is None or self._tuned.number != number:
            self._tuned = self.stored_snapshot(LESSON, number) if number is not None else None
        if self._tuned is not None:
            yield from self._ledger.trials(rows, self._tuned.value, self._tuned.growth)

    @property
    def _is_to_be_described(self) -> bool:
        """Whether knobs could be tried if the game were described."""
        return self._tuned is not None and not self._ledger.is_described

    def _open_trials(self, rows: Sequence[TrialRow], trials: Iterable[TrialRow]) -> Iterator[TrialRow]:
        """Yield the trials that more rounds can still decide, with their evidence."""
        stored_rows = {row[:3]: row for row in rows}
        for trial in trials:
            row = stored_rows.get(trial[:3], trial)
            if row.num < _ENOUGH_ROUNDS and is_in_order(rows, row) and not is_decided(rows, row):
                yield row

    def _try(self, deadline: float) -> TrialRow | None:
        """Play trial matches until the deadline; store the evidence, and return its row, if some rounds have ended.

        The game is described before knobs are tried.
        """
        if self._is_selecting:
            self._select(deadline)
            return None
        if self._is_to_be_described:
            self._ledger.describe(deadline)
            self._following = None
            return None
        trial = self._next_trial()
        if trial is None:  # another process has just brought it to an end
            return None
        key = TrialRow(*trial[:3])
        rounds = self._contests.get(key) or self._rounds(trial, deadline)
        return self._advance(key, rounds, deadline) if rounds is not None else None

    # the choice among variants

    @property
    def _is_selecting(self) -> bool:
        """Whether the lesson may begin with the value of one of several variants, and matches are to show of which."""
        return self._is_new and (self._has_others or len(self._variants or ()) > 1) and len(self.startclocks) > 0

    def _select(self, deadline: float, rival: SearchPlan | None = None) -> None:
        """Play matches of the values of variants against a rival until the deadline; in the end, begin with the best.

        These matches are no test. The chosen value has to pass one of its own.

        Args:
            deadline: in seconds of `time.monotonic`
            rival: one of the shortest startclock if it is None
        """
        if self._has_others:
            self._read_others()
            return
        assert self._variants is not None
        begin = process_time()
        selection = self._selection = self._selection or _Selection({n: [] for n in range(len(self._variants))})
        if selection.rounds is None:
            other = rival or self._rivals.by_lot(self.startclocks[0], 0, deadline)
            if other is None:
                return
            value = self._variants[selection.following].value
            own = SearchPlan(restored_value(self.game, value), with_decision(value.informed))
            selection.rounds = self._rivals.contest(own, other, _OTHER_PLIES)
        while not selection.rounds.scores and monotonic() < deadline:
            selection.rounds.advance()
        if selection.rounds.scores:
            self._rivals.note(selection.rounds)
            selection.end_rounds()
        selection.seconds += process_time() - begin
        if len(selection.scores) == 1 or selection.seconds > _SELECTION_MOVES * self._rivals.seconds:
            self._end_selection()

    def _read_others(self) -> None:
        """Read the other variants, which takes some tens of milliseconds for each."""
        self._variants, self._has_others = self._relatives.variants(), False

    def _end_selection(self) -> None:
        """Begin the lesson with the value of the best variant so far."""
        if self._has_others:
            self._read_others()
        assert self._variants is not None
        self._variants = [self._variants[self._selection.best if self._selection is not None else 0]]
        self.tuition = self._resumed()

    def try_against(self, pupil: Pupil, startclock: int, deadline: float) -> None:
        """Play matches between the newest state of the lesson and a player that learns in the present startclock.

        Args:
            pupil: what this player has learned
            startclock: in seconds
            deadline: in seconds of `time.monotonic`
        """
        if self.snapshot is None:
            return
        other = SearchPlan(pupil.value, pupil.growth)
        if self._is_selecting:
            self._select(deadline, other)
            return
        key = TrialRow(LESSON, self.snapshot.number, rival_name(startclock))
        rounds = self._contests.get(key) or self._rivals.contest(self.snapshot.plan, other, _OTHER_PLIES)
        self._advance(key, rounds, deadline)

    def _advance(self, key: TrialRow, rounds: Rounds, deadline: float) -> TrialRow | None:
        """Play rounds of a trial until the deadline, or until some end; then store the evidence and return it."""
        # first the value of the variant, so that its tests have a lesson they belong to
        if self._is_new and self._variant[0] and self._store() is None:
            return None  # another process has a lesson already
        if key not in self._contests and len(self._contests) == _MOST_CONTESTS:
            del self._contests[next(iter(self._contests))]  # perhaps one that will not go on, and each has a tree
        self._contests[key] = rounds
        while not rounds.scores and monotonic() < deadline:
            rounds.advance()
        if not rounds.scores:
            return None
        del self._contests[key]  # the next rounds are against another rival
        self._rivals.note(rounds)
        self._following, self._turn = None, self._turn + 1
        row = self._lessons.add_evidence(self.game, key, lambda row: with_scores(row, rounds.scores), self._id)
        if row is None:
            self.refresh()
        return row

    def _rounds(self, trial: TrialRow, deadline: float) -> Rounds | None:
        """Return matches between the player with some advice and without it, in the same time.

        Return None as long as the rival has not learned for the whole of its startclock.
        """
        candidate = self._candidate if trial.advice == LESSON else self._tuned
        plan = candidate.plan if candidate is not None else self._plan_without_lesson(deadline)
        startclock = startclock_of(trial.against)
        num = sum(row.num for row in self._lessons.trials(self.game.rules_hash) if row.against == trial.against)
        other = plan if startclock is None else self._rivals.by_lot(startclock, num, deadline)
        if plan is None or other is None:
            return None
        growth = with_knob(plan.growth, trial.advice if trial.advice in KNOBS else None)
        own = SearchPlan(plan.value, growth, self.book if trial.advice == OPENINGS else None)
        return self._rivals.contest(own, other, _RANDOM_PLIES.get(trial.advice, _OTHER_PLIES))

    def _plan_without_lesson(self, deadline: float) -> SearchPlan | None:
        """Return what matches are played with, and openings are tried with, until a state of the lesson has passed.

        Return None as long as the first rival has not learned for the whole of its startclock.
        """
        if not self.startclocks:
            return SearchPlan(None, DEFAULT_GROWTH)
        return self._rivals.by_lot(self.startclocks[0], 0, deadline)

    # opponents

    def _compare(self, deadline: float) -> None:
        """Compare the moves of opponents with those of known players until the deadline."""
        assert self._encounters is not None
        self._encounters.go_on(deadline)


@dataclass
class _Selection:
    """Matches of candidates against rivals: after each pass with as many rounds for each, the worst one is out.

    scores   scores of the rounds of each candidate that is left, by number
    rounds   matches of the next one; None before they begin
    seconds  CPU seconds so far
    """

    scores: dict[int, list[float]]
    rounds: Rounds | None = None
    seconds: float = 0.0

    @property
    def following(self) -> int:
        """Number of the candidate that plays next."""
        return min(self.scores, key=lambda number: len(self.scores[number]))

    def end_rounds(self) -> None:
        """Keep the scores of the rounds that are over; leave out the worst candidate at the end of a pass."""
        assert self.rounds is not None
        self.scores[self.following] += self.rounds.scores
        self.rounds = None
        if len({len(scores) for scores in self.scores.values()}) == 1:
            del self.scores[min(self.scores, key=self._rank)]

    @property
    def best(self) -> int:
        """Number of the best candidate so far; of equal ones, the first."""
        return max(self.scores, key=self._rank)

    def _rank(self, number: int) -> tuple[float, int]:
        scores = self.scores[number]
        return sum(scores) / len(scores) if scores else MIDDLE, -number


def _urgency(trial: TrialRow) -> tuple[int, int]:
    """Return what orders the trials of a kind of advice; the least is next.

    What passes against a longer startclock is taken for shorter ones, too. So the longest one is first, until some
    rounds have shown that it promises nothing; then the trial with the fewest rounds.
    """
    is_first = trial.num < _FEW_ROUNDS or trial.better >= _PROMISING
    return (0, -(startclock_of(trial.against) or 0)) if is_first else (1, trial.num)


def _differs(snapshot: Snapshot) -> bool:
    """Return whether a player with a snapshot plays otherwise than one that knows nothing."""
    has_value = snapshot.value is not None and snapshot.value.virtual_visits(snapshot.growth) > 0
    return has_value or bool(snapshot.growth.informed)


def new_pupil(game: Game, seed: int) -> Pupil:
    """Return a pupil that knows nothing, as that of a player without memory."""
    return Pupil(game, teaching_key(seed, game), DEFAULT_GROWTH, TeachingSettings())
