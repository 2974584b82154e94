"""Steps 9 and 10 of the tour: learning Connect3 with and without knowledge, and knowledge that does not help."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from nicegui import ui

from ...errors import GameloreError
from ..pages.frame import told
from .learning_curves import LearningCurves, WatchedRun
from .tour_feature_steps import draw_feature, draw_value
from .tour_parts import Guess, TourStep, TourTask, gain_text, guess_text, prose, verdict
from .tour_visit import MATCHES, SPEED, Tour, Visit

SPEEDS = {SPEED / 2: "slow", SPEED: "normal", 0.0: "as fast as possible"}
FRAMES, FRAME_SECONDS = 25, 0.12  # of the curves of an experiment
FEW, MANY = 40, 400  # learners of each kind
FIRST = MATCHES // 10  # matches in which learners are compared, as in the lab; see FIRST_MATCHES of the child
TRANSFER = "transfer"  # name of the first experiment in a visit
MOST_COMPARED = 3  # features whose values against two opponents are shown


# ---- 9 ----------------------------------------------------------------------------------------------------------


class TransferStep(TourStep):
    """A watched run: Connect3 with and without the values of tic-tac-toe."""

    title = "Does it help?"

    def draw(self) -> None:
        """See `TourStep`."""
        prose(
            "Now the experiment. Two learners begin Connect3. The *beginner* (its curve is called `baseline`) knows "
            "nothing: all its values begin with 50. The *pupil* (`transfer`) begins with the values of the features "
            "of tic-tac-toe. From then on, both learn in the same way, against the same kind of opponent.",
            "Chance plays a part in every match. One pair of learners proves nothing. So the experiment is repeated "
            "many times, each time with other luck.",
        )
        self._leave = _nothing
        self._told = self._task("First guess, then watch. Both learn live, on this computer.")
        with self._told.area:
            given = self._visit.guesses.get(TRANSFER, "")
            question = f"In the first {FIRST} matches of Connect3, the pupil will be, compared with the beginner, .."
            self._guess = Guess(question, given, self._start)
            self._area = ui.column().classes("w-full gap-2")
        ui.label("What the shaded bands mean").classes("text-lg").props("role=heading aria-level=2")
        prose(
            "A line is the mean of all repetitions. The band around it is a *95 % interval*. It says how exactly we "
            "know the mean: if we did the whole experiment again and again, about 95 of 100 such intervals would "
            "contain the true mean. More repetitions make the band narrower.",
            "A *difference* has an interval, too. If all of it lies above 0, the pupil is ahead, and that is hardly "
            "luck. If 0 is inside, we do not know.",
        )

    async def load(self) -> None:
        """See `TourStep`."""
        self._client.on_delete(lambda: self._leave())
        if self._guess.given:
            self._watch()
        else:
            self._told.tell("Choose one of the three answers. Then the experiment begins.")

    @property
    def _run(self) -> WatchedRun:
        return self._tour.run(self._visit.luck.get(TRANSFER, 0))

    async def _start(self, guess: str) -> None:
        self._visit.guesses[TRANSFER] = guess
        self._watch()

    def _watch(self) -> None:
        """Show the run, which begins if nobody has begun it before."""
        self._leave()
        run = self._run
        self._area.clear()
        with self._area:
            with ui.row().classes("items-center gap-3"):
                self._speed = ui.toggle(
                    SPEEDS, value=run.speed or 0.0, on_change=lambda event: run.set_speed(event.value or None)
                ).props('no-caps unelevated padding="2px 12px"')
                self._speed.props["aria-label"] = "speed"
                self._again = ui.button("Again, with other luck", icon="replay", on_click=self._repeat).props(
                    "outline no-caps dense data-testid=again"
                )
                self._retry = ui.button("Try again", icon="refresh", on_click=partial(self._begin_anew, run)).props(
                    "outline no-caps dense"
                )
            self._stage = ui.label().classes("gl-faint")
            self._spinner = ui.spinner(size="2em").props("role=status aria-label=starting")
            self._chart = ui.column().classes("w-full")
            with self._chart:
                self._curves = LearningCurves(height="19rem")
        self._leave = run.watch(partial(self._show, run))
        self._show(run)

    def _repeat(self) -> None:
        self._visit.luck[TRANSFER] = self._visit.luck.get(TRANSFER, 0) + 1
        self._watch()

    async def _begin_anew(self, run: WatchedRun) -> None:
        self._leave()
        self._leave = _nothing
        await self._tour.forget(run)
        self._watch()

    def _show(self, run: WatchedRun) -> None:
        """Show how far the run is."""
        if run is not self._run:  # somebody else has begun it anew
            return self._watch()
        curves = [curve for curve in run.progress["curves"] if curve["learner"] != "source"]
        has_curves, is_done = any(curve["points"] for curve in curves), run.figures is not None
        self._curves.update(run.progress)
        self._chart.set_visibility(has_curves)
        self._spinner.set_visibility(not has_curves and not run.error)
        self._stage.set_text(stage_text(run))
        self._speed.set_visibility(not is_done and not run.error)
        self._again.set_visibility(is_done)
        self._retry.set_visibility(bool(run.error))
        if run.error:
            self._told.tell(run.error)
        elif run.figures is not None:
            self._told.finish(self._result(run.figures["gains"]))
        else:
            self._told.tell("Each curve is the mean of all points so far. The shaded band is its interval.")

    def _result(self, rows: Sequence[Mapping[str, Any]]) -> str:
        """Return what has come out, as text."""
        early, late = (gain_of(rows, quantity) for quantity in ("early gain", "late gain"))
        outcome = verdict(early)
        return (
            f"In the first {FIRST} matches, the pupil got {gain_text(early)}. {guess_text(self._guess.given, outcome)} "
            f"{_AFTERWARDS[outcome]} In all later matches, it got {gain_text(late)}."
        )


_AFTERWARDS = {
    "better": "The knowledge of another game has helped.",
    "equal": "0 is inside the interval: this may be luck.",
    "worse": "The knowledge of another game has done harm.",
}


def _nothing() -> None:
    return


def gain_of(rows: Sequence[Mapping[str, Any]], quantity: str) -> dict[str, float]:
    """Return a difference of pupil and beginner from the rows of a transfer experiment."""
    row = next(row for row in rows if (row["quantity"], row["learner"]) == (quantity, "baseline"))
    return {name: float(row[name]) for name in ("mean", "low", "high")}


def stage_text(run: WatchedRun) -> str:
    """Return what a run does now, in words."""
    runs = run.plan["runs"]
    if run.figures is not None:
        return f"Done: {runs} repetitions, {run.plan['matches']} matches of each learner in each of them."
    stage = str(run.progress["stage"])
    begins = ("learning the source", "First, tic-tac-toe is learned"), ("learning", "Both learn Connect3")
    words = next((words for begin, words in begins if stage.startswith(begin)), "The learners get ready")
    return f"{words} ({runs} repetitions at the same time)."


# ---- 10 ---------------------------------------------------------------------------------------------------------


class Puzzle(NamedTuple):
    """An experiment with a guess.

    name      name of the experiment in the child process
    heading   heading
    story     what it is about
    question  question of the guess
    pupil     the pupil that is meant: the name of its teacher in the child process
    reasons   request whose answer explains the result
    """

    name: str
    heading: str
    story: str
    question: str
    pupil: str
    reasons: Mapping[str, str]


UNLIKE = Puzzle(
    "unlike",
    "First experiment: a teacher of another kind",
    "*Lose tic-tac-toe* has the same board, the same moves and the same names as tic-tac-toe. Only the goal is "
    "turned round: three in a line *lose*. To a person, it looks much more like tic-tac-toe than Connect3 does. Can "
    "its pupil use that in Connect3?",
    f"In the first {FIRST} matches of Connect3, the pupil of lose tic-tac-toe will be, compared with the beginner, ..",
    "lose tic-tac-toe",
    {"do": "shared", "game": "losetictactoe"},
)
CHANGED = Puzzle(
    "changed",
    "Second experiment: the same game, another opponent",
    "A teacher has learned tic-tac-toe against a *weak* opponent, which does not win even if it can. Its pupil plays "
    "the very same game, tic-tac-toe. But it plays against the careful opponent, which wins if it can.",
    f"In the first {FIRST} matches, the pupil of this teacher will be, compared with the beginner, ..",
    "weak opponent",
    {"do": "opponents_compared"},
)


class LimitStep(TourStep):
    """Two experiments in which knowledge does not help as one thinks, and where to go next."""

    title = "When it does not help"

    def draw(self) -> None:
        """See `TourStep`."""
        prose(
            "Knowledge of one game does not always help in another one. Here are two experiments. Whatever comes out "
            "on this computer is told as it is."
        )
        self._finished: set[str] = set()
        self._experiments = [
            GuessedExperiment(self._tour, self._visit, puzzle, partial(self._one_done, puzzle.name))
            for puzzle in (UNLIKE, CHANGED)
        ]
        ui.label("What to remember").classes("text-xl").props("role=heading aria-level=2")
        prose(
            "Knowledge transfers if two things fit. The features of the old game must *occur* in the new game. And "
            "what was good against the old opponent must be *good* against the new one."
        )
        draw_ways_on()

    async def load(self) -> None:
        """See `TourStep`."""
        for experiment in self._experiments:
            await experiment.load()

    def _one_done(self, name: str) -> None:
        self._finished.add(name)
        if len(self._finished) == len(self._experiments):
            self._task_done()


class GuessedExperiment:
    """A box with a guess, growing curves, and what they say.

    Args:
        tour: what all visitors share
        visit: what this visitor has done
        puzzle: the experiment
        on_done: called when its result is shown
    """

    def __init__(self, tour: Tour, visit: Visit, puzzle: Puzzle, on_done: Callable[[], None]) -> None:
        self._tour, self._visit, self._puzzle = tour, visit, puzzle
        self._runs, self._turn = FEW, 0
        ui.label(puzzle.heading).classes("text-xl").props("role=heading aria-level=2")
        prose(puzzle.story)
        self._told = TourTask("First guess, then look.", on_done, level=3)
        with self._told.area.props(f"data-testid=experiment-{puzzle.name}"):
            self._guess = Guess(puzzle.question, visit.guesses.get(puzzle.name, ""), self._start)
            self._area = ui.column().classes("w-full gap-2")
        self._reasons = ui.element("div").classes("gl-stack")
        with ui.row().classes("gap-2") as self._buttons:
            ui.button("Again, with other luck", icon="replay", on_click=told(self._repeat)).props(
                "outline no-caps dense"
            )
            self._many = ui.button(f"Repeat with {MANY} learners", icon="groups", on_click=told(self._repeat_many))
            self._many.props("outline no-caps dense data-testid=many")
        self._buttons.set_visibility(False)
        self._many.set_visibility(puzzle is CHANGED)

    async def load(self) -> None:
        """Show the result if the visitor has guessed before."""
        if self._guess.given:
            await self._run(is_slow=False)
        else:
            self._told.tell("Choose one of the three answers. Then the experiment begins.")

    async def _start(self, guess: str) -> None:
        self._visit.guesses[self._puzzle.name] = guess
        await self._run()

    async def _repeat(self) -> None:
        luck, name = self._visit.luck, self._puzzle.name
        luck[name] = luck.get(name, 0) + 1
        await self._run()

    async def _repeat_many(self) -> None:
        self._runs = MANY
        await self._repeat()

    async def _run(self, *, is_slow: bool = True) -> None:
        """Play the experiment, and let its curves grow, unless it is begun anew meanwhile."""
        self._turn = turn = self._turn + 1
        self._reasons.clear()
        self._buttons.set_visibility(False)
        self._told.tell(f"{self._runs} learners of each kind play ..")
        seed = 1 + self._visit.luck.get(self._puzzle.name, 0)
        try:
            result = await self._ask("experiment", name=self._puzzle.name, seed=seed, runs=self._runs)
            answer = await self._ask(**self._puzzle.reasons)
        except GameloreError as error:
            return self._told.tell(str(error))
        if self._area.is_deleted or turn != self._turn:
            return
        curves = self._draw_curves(result, is_slow)
        for matches in frames(result["matches"]) if is_slow else [result["matches"]]:
            if self._area.is_deleted or turn != self._turn:
                return
            curves.update({"curves": [until(curve, matches) for curve in result["curves"]]})
            await asyncio.sleep(FRAME_SECONDS if is_slow else 0)
        self._tell_result(result, answer)

    async def _ask(self, do: str, **given: Any) -> Any:
        return await self._tour.ask(do, **given)

    def _draw_curves(self, result: Mapping[str, Any], is_slow: bool) -> LearningCurves:
        self._area.clear()
        with self._area:
            slower = " The curves are shown slower." if is_slow else ""
            ui.label(
                f"{result['runs']} learners of each kind have played {result['matches']} matches each, in "
                f"{result['seconds']:.1f} seconds.{slower}"
            ).classes("gl-faint")
            return LearningCurves(height="18rem")

    def _tell_result(self, result: Mapping[str, Any], answer: Any) -> None:
        """Say what has come out, and why."""
        gains = {gain["name"]: gain for gain in result["gains"]}
        gain = gains[self._puzzle.pupil]
        outcome, (first, last) = verdict(gain), result["window"]
        guess = guess_text(self._guess.given, outcome)
        self._told.finish(f"In matches {first} to {last}, this pupil got {gain_text(gain)}. {guess}")
        with self._reasons:
            tell_reasons = tell_unlike if self._puzzle is UNLIKE else tell_changed
            tell_reasons(gains, outcome, answer)
        self._buttons.set_visibility(True)
        self._many.set_visibility(self._puzzle is CHANGED and self._runs < MANY)


Gains: TypeAlias = Mapping[str, Mapping[str, float]]
"""Differences of each pupil and the beginner, by the name of the teacher."""


def tell_unlike(gains: Gains, outcome: str, shared: Mapping[str, int]) -> None:
    """Say why a teacher of lose tic-tac-toe helps as it does. `shared`: its answer of `TourWorker.shared`."""
    prose(
        f"Why? The teacher has learned *{shared['features']}* features of lose tic-tac-toe. *{shared['known']}* of "
        f"the *{shared['met']}* features of Connect3 are among them. In Connect3, the opponent's next move can end "
        "the match with your loss. In lose tic-tac-toe, it can end it only with your win or a draw, because who "
        "makes a line loses. So the trees end in other ways."
    )
    nobody = gains["nobody"]
    if nobody["mean"] == gains["lose tic-tac-toe"]["mean"] and outcome == "better":
        prose(
            "But this pupil *was* better than the beginner! Look at the third pupil: its teacher is *nobody*, and it "
            "has exactly the same points. The reason: every pupil looks whether its own move ends the match, so it "
            "does not miss a win. It does not know this from another game. Without the third pupil, we would have "
            "praised the wrong teacher."
        )
    prose(
        f"The pupil of tic-tac-toe got {gain_text(gains['tic-tac-toe'])}. The pupil of nobody got "
        f"{gain_text(nobody)}. What is between them is what tic-tac-toe has taught."
    )


def tell_changed(gains: Gains, outcome: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Say why a teacher with a weak opponent helps as it does. `rows`: see `TourWorker.opponents_compared`."""
    prose(_CHANGED_WORDS[outcome])
    prose(
        "Why? Look at what both teachers have learned about the same features. Here are those with the largest "
        "differences:"
    )
    with ui.element("div").classes("gl-cards"):
        for row in rows[:MOST_COMPARED]:
            with ui.column().classes("gl-card gap-2"):
                draw_feature(row)
                draw_value(row["careful"], f"against the careful opponent: {row['careful']:.1f}")
                draw_value(row["weak"], f"against the weak opponent: {row['weak']:.1f}")
    prose(
        "An opponent that does not take its win makes a dangerous afterstate look good. The teacher with the careful "
        f"opponent has a better pupil: it got {gain_text(gains['careful opponent'])}. That is why gamelore "
        "remembers against whom it has learned."
        if gains["careful opponent"]["mean"] > gains["weak opponent"]["mean"]
        else f"The pupil of the teacher with the careful opponent got {gain_text(gains['careful opponent'])}."
    )


_CHANGED_WORDS = {
    "better": "This pupil was better than the beginner. Is it always so? Try other luck, or more learners.",
    "equal": "0 is inside the interval of the difference. With so few learners, we cannot say whether this teacher "
    "helps or harms. More learners make the interval narrower: try it.",
    "worse": "This teacher does *harm*: its pupil is worse than a learner that knows nothing, in the very same game.",
}


def frames(matches: int) -> list[int]:
    """Return the numbers of matches after which growing curves are drawn."""
    return sorted({max(1, round(matches * (i + 1) / FRAMES)) for i in range(FRAMES)})


def until(curve: Mapping[str, Any], matches: int) -> dict[str, Any]:
    """Return a curve as it was after some matches."""
    return {**curve, "done": matches, "points": [point for point in curve["points"] if point[0] <= matches]}


def draw_ways_on() -> None:
    """Draw links to the other pages."""
    ui.label("Where to go next").classes("text-xl").props("role=heading aria-level=2")
    with ui.element("ul").classes("column gap-2").style("margin: 0; padding-left: 1.4rem; list-style: disc"):
        for name, target, about in WAYS_ON:
            with ui.element("li"), ui.row().classes("gap-x-2 gap-y-0 items-baseline"):
                ui.link(name, target).classes("gl-link")
                ui.label(about)
    prose(
        "The idea of features is from B. Banerjee and P. Stone, *General Game Learning using Knowledge Transfer* "
        "(2007). There is another way to remember: *sequences* of moves that worked, each with its context, that is, "
        "what the positions had in common in which it worked (E. Lock and S. L. Epstein, 2004). gamelore learns them "
        "on the command line (*gamelore learn tictactoe --learner sequences*); then the page Knowledge shows them."
    )


WAYS_ON = (
    ("Play", "/", "Play any game against any player. Ask what a player thinks."),
    ("Watch learning", "/learning", "Make your own experiment: other games, teachers and opponents."),
    ("Knowledge", "/knowledge", "See what was learned: features, values, sequences, and who taught whom."),
    ("Rulesheets", "/rulesheets", "Change the rules of a game, or invent a game, and play it at once."),
)
