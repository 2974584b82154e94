"""Steps 5 to 8 of the tour: the tree below an afterstate, its feature, values of features, and another game."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from nicegui import ui

from ...errors import counted
from ..pages.frame import fill, told, waiting
from .tour_parts import ENDS, MoveBoard, TourStep, prose, small_board, tree_picture
from .tour_visit import PUPIL, TEACHER

FOLDS = (
    "All boards",
    "Forget the boards. Keep who is to move, and how the match ends",
    "Equal next moves count once",
    "Equal replies count once: this is the feature",
)
SYMBOLS = {  # those of `lab.feature_trees`: a sign, a word, and a colour
    "learner": ("●", "you move", "#2c8a4b"),
    "opponent": ("■", "o moves", "#c9403a"),
    "L": ("○", "loss", "inherit"),
    "W": ("□", "win", "inherit"),
    "D": ("⊠", "draw", "inherit"),
}
Tree: TypeAlias = Mapping[str, Any]
"""An answer of `TourWorker.tree`, or a part of it."""


class ExampleStep(TourStep):
    """A step with a position of tic-tac-toe in which the visitor clicks moves."""

    def _draw_board(self) -> None:
        with ui.column().classes("gap-2").style("flex: none; width: min(100%, 15rem)"):
            self._board = MoveBoard(
                self._tour, TEACHER, self._clicked, "position of tic-tac-toe, x is to move", "14rem"
            )
            ui.button("Another position", icon="shuffle", on_click=told(self._next)).props("outline dense no-caps")

    async def load(self) -> None:
        """See `TourStep`."""
        example = await self._ask("example", number=self._visit.example)
        await self._board.show(example["plies"], "x is to move")
        self._begin()

    async def _next(self) -> None:
        self._visit.example += 1
        self._visit.clicked.clear()
        await self.load()

    @abstractmethod
    def _begin(self) -> None:
        """Begin the task with a new position."""

    @abstractmethod
    async def _clicked(self, move: str) -> None:
        """Answer to a click on a move."""

    async def _tree(self, move: str) -> Tree:
        return await self._ask("tree", game=TEACHER, plies=self._board.plies, move=move)  # type: ignore[no-any-return]


# ---- 5 ----------------------------------------------------------------------------------------------------------


class TreeStep(ExampleStep):
    """All replies to a move, and all answers to them, on boards."""

    title = "Look two moves ahead"

    def draw(self) -> None:
        """See `TourStep`."""
        prose(
            "The values of step 4 belong to boards of tic-tac-toe. In another game there are no such boards, so "
            "these values say nothing there. Is there something that is useful in *every* game?",
            "Yes: look a little ahead. *What can my opponent do now? What can I do then?* These questions make sense "
            "in all games for two players.",
        )
        self._told = self._task(
            "You are x. Find two moves: a *mistake*, after which o can win at once, and a move after which o "
            "*cannot* win at once."
        )
        self._seen: dict[str, bool] = {}
        with self._told.area, ui.row().classes("w-full gap-6 items-start"):
            self._draw_board()
            self._rows = ui.column().classes("gap-2").style("flex: 1; min-width: min(100%, 18rem)")

    def _begin(self) -> None:
        self._seen = {}
        self._rows.clear()
        self._told.tell("Click a cell. Then you see everything that can happen in the next two moves.")

    async def _clicked(self, move: str) -> None:
        tree = await self._tree(move)
        if self._rows.is_deleted:
            return
        self._rows.clear()
        with self._rows:
            ui.label("After your move, o can reply .. and then you can play ..").classes("font-bold")
            draw_replies(tree["replies"])
        losses = sum(reply["end"] == "L" for reply in tree["replies"])
        self._seen[move] = losses > 0
        text = f"After {move}, o has {counted(len(tree['replies']), 'reply', 'replies')}. "
        text += (
            f"{losses} of them {'wins' if losses == 1 else 'win'} at once for o." if losses else "None of them wins."
        )
        if len(set(self._seen.values())) == 2:
            return self._told.finish(f"{text} You have found both: a mistake, and a better move.")
        missing = "a move after which o cannot win" if losses else "a mistake"
        self._told.tell(f"{text} Now find {missing}.")


def draw_replies(replies: Sequence[Tree]) -> None:
    """Draw each reply as a board, with the boards of the answers to it."""
    with ui.element("ul").classes("column gap-2 w-full").style("list-style: none; margin: 0; padding: 0"):
        for reply in replies:
            with (
                ui.element("li")
                .classes("row no-wrap items-center gap-1 gl-card")
                .style("width: fit-content; padding: 0.3rem")
            ):
                _captioned(reply, "o replies")
                if reply["answers"]:
                    ui.icon("arrow_right_alt").props("aria-hidden=true")
                for answer in reply["answers"]:
                    _captioned(answer, "you play")


def _captioned(drawn: Tree, who: str) -> None:
    with ui.column().classes("gap-0 items-center"):
        end = ENDS.get(drawn["end"] or "", "")
        small_board(drawn["svg"], f"{who} {drawn['move']}{f': {end}' if end else ''}", "3.7rem")
        ui.label(end or " ").classes("text-xs font-bold").props("aria-hidden=true")


# ---- 6 ----------------------------------------------------------------------------------------------------------


class FeatureStep(ExampleStep):
    """The tree of a move is folded to a feature; another move has the same one."""

    title = "A feature: the tree without the boards"

    def draw(self) -> None:
        """See `TourStep`."""
        prose(
            "Now make the tree simple. Forget the boards, and keep only two things: *who is to move*, and *how the "
            "match ends*. If two branches are equal, one is enough: we ask what can happen, not how often.",
            "What remains is called a *feature* of the afterstate. No one has told gamelore which features there "
            "are: it finds them by itself. (In the pictures of features, you are the *learner*.)",
        )
        self._told = self._task(
            "Click a move, and fold its tree to a feature. Then click other moves, until you have *two moves with "
            "the same feature*."
        )
        self._fold = 0
        self._current: Tree | None = None
        self._trees: dict[str, Tree] = {}
        with self._told.area:
            with ui.row().classes("w-full gap-6 items-start"):
                self._draw_board()
                with ui.column().classes("gap-2").style("flex: 1; min-width: min(100%, 18rem)"):
                    self._button = ui.button("Fold", icon="compress", on_click=self._fold_once).props(
                        "no-caps data-testid=fold"
                    )
                    self._area = ui.column().classes("w-full gap-2")
            self._features = ui.element("div").classes("gl-cards")
        self._census = ui.column()

    def _begin(self) -> None:
        self._current, self._trees = None, {}
        self._area.clear()
        self._features.clear()
        self._button.set_visibility(False)
        self._told.tell("Click a cell of the board.")

    async def _clicked(self, move: str) -> None:
        self._current = await self._tree(move)
        if self._area.is_deleted:
            return
        if self._fold < len(FOLDS) - 1 or not self._trees:
            self._fold = 0
        self._show_fold()
        if self._fold == len(FOLDS) - 1:
            await self._note()

    async def _fold_once(self) -> None:
        self._fold = (self._fold + 1) % len(FOLDS)
        self._show_fold()
        if self._fold == len(FOLDS) - 1:
            await self._note()

    def _show_fold(self) -> None:
        assert self._current is not None
        self._button.set_visibility(True)
        is_folded = self._fold == len(FOLDS) - 1
        self._button.set_text("Show the boards again" if is_folded else f"Fold ({self._fold + 1} of {len(FOLDS) - 1})")
        self._area.clear()
        with self._area:
            ui.label(FOLDS[self._fold]).classes("font-bold").props("role=status")
            if self._fold == 0:
                draw_replies(self._current["replies"])
            else:
                draw_shapes(folded(self._current["replies"], self._fold))
        if not self._trees:
            self._told.tell("Click the button to fold the tree, three times.")

    async def _note(self) -> None:
        """Note the feature of the present move, and compare it with those of the other moves."""
        assert self._current is not None
        self._trees[self._current["move"]] = self._current
        features = [tree["feature"] for tree in self._trees.values()]
        self._draw_features(features)
        if len(set(features)) < len(features):
            self._told.finish("Two different boards, one feature: what can happen next is of the same kind.")
            await self._show_census()
        else:
            self._told.tell(f"The feature in words: {self._current['words']}. Now click another cell.")

    def _draw_features(self, features: Sequence[str]) -> None:
        self._features.clear()
        with self._features:
            for move, tree in self._trees.items():
                is_shared = features.count(tree["feature"]) > 1
                with ui.column().classes(f"gl-card gap-2 {'gl-same' if is_shared else ''}"):
                    ui.label(
                        "the same feature" if is_shared else "another feature" if len(features) > 1 else "its feature"
                    )
                    with ui.row().classes("no-wrap items-start gap-3"):
                        small_board(tree["svg"], f"afterstate of {move}", "5rem")
                        tree_picture(tree["tree"], tree["words"])

    async def _show_census(self) -> None:
        census = await self._ask("census")
        if self._census.is_deleted or self._census.default_slot.children:
            return
        with self._census:
            prose(
                f"gamelore has looked at all *{census['afterstates']:,}* afterstates of x in tic-tac-toe. "
                f"*{census['with_feature']:,}* of them have a feature; after the others, nothing can end within two "
                f"moves. And there are only *{census['features']}* different features."
            )


Shape: TypeAlias = tuple[str, tuple[str, ...]]
"""A reply: its kind, a key of SYMBOLS, and the kinds of the answers to it."""


def folded(replies: Sequence[Tree], fold: int) -> list[Shape]:
    """Return the replies without boards; equal answers count once from fold 2 on, equal replies from fold 3 on."""
    shapes = [_shape(reply) for reply in replies]
    if fold >= 2:
        shapes = [(kind, tuple(sorted(set(answers)))) for kind, answers in shapes]
    return sorted(set(shapes)) if fold >= 3 else shapes


def _shape(reply: Tree) -> Shape:
    return reply["end"] or "learner", tuple(answer["end"] or "opponent" for answer in reply["answers"])


def draw_shapes(shapes: Sequence[Shape]) -> None:
    """Draw replies as signs, below the sign of the afterstate."""
    _chip("opponent")
    with ui.element("ul").classes("column gap-2 w-full no-wrap").style("list-style: none; margin: 0; padding: 0"):
        for kind, answers in shapes:
            with ui.element("li").classes("row items-start gap-1 no-wrap"):
                _arrow("subdirectory_arrow_right")
                _chip(kind)
                if answers:
                    _arrow("arrow_right_alt")
                with ui.element("div").classes("row gap-1"):
                    for answer in answers:
                        _chip(answer)


def _arrow(icon: str) -> None:
    ui.icon(icon, size="1.3rem").props("aria-hidden=true").classes("gl-faint")


def _chip(kind: str) -> None:
    sign, meaning, colour = SYMBOLS.get(kind, ("□", f"{kind} points", "inherit"))
    with ui.row().classes("gl-chip items-center gap-1 no-wrap"):
        ui.label(sign).style(f"color: {colour}; font-weight: bold").props("aria-hidden=true")
        ui.label(meaning)


# ---- 7 ----------------------------------------------------------------------------------------------------------


class ValueStep(TourStep):
    """A quiz about the values of features, and all of them."""

    title = "What features are worth"

    def draw(self) -> None:
        """See `TourStep`."""
        prose(
            "Now both ideas come together. Some learners play tic-tac-toe as in step 4, and afterstates get values. "
            "The value of a *feature* is the mean value of all afterstates that have this feature. Afterstates that "
            "were visited more often count more.",
            "These values are all that gamelore takes out of tic-tac-toe. It forgets boards, names and moves.",
        )
        self._told = self._task("Which afterstate is worth more to x? Look at what can happen after it, and choose.")
        self._number = self._right = 0
        self._taught: Mapping[str, Any] = {}
        with self._told.area:
            self._area = ui.column().classes("w-full gap-3")
        self._all = ui.column().classes("w-full gap-3")

    async def load(self) -> None:
        """See `TourStep`."""
        await fill(self._area, self._ask("taught"), self._begin, "the learners play")

    def _begin(self, taught: Mapping[str, Any]) -> None:
        self._taught = taught
        self._draw_question()
        self._told.tell(
            f"{taught['runs']} learners have just played {taught['matches']} matches each. Their moves were random, so "
            f"that they met many different afterstates. It took {taught['seconds']:.2f} seconds."
        )

    def _draw_question(self) -> None:
        self._area.clear()
        pair = [self._taught["rows"][i] for i in self._taught["pairs"][self._number]]
        with self._area:
            ui.label(f"Question {self._number + 1} of {len(self._taught['pairs'])}").classes("font-bold")
            with ui.element("div").classes("gl-cards"):
                for choice, row in enumerate(pair):
                    with ui.column().classes("gl-card gap-2 justify-between"):
                        draw_feature(row)
                        ui.button("This one is better", on_click=partial(self._answer, choice)).props(
                            f'no-caps outline data-testid=choice-{choice} aria-label="choice {choice + 1} is better"'
                        )

    def _answer(self, choice: int) -> None:
        """Say whether the choice was right, and ask the next question."""
        pair = [self._taught["rows"][i]["value"] for i in self._taught["pairs"][self._number]]
        is_right = pair[choice] >= pair[1 - choice]
        self._right += is_right
        self._number += 1
        text = f"{'Right' if is_right else 'No'}: their values are {pair[0]:.1f} and {pair[1]:.1f}. "
        if self._number < len(self._taught["pairs"]):
            self._draw_question()
            self._told.tell(f"{text}Here is the next question.")
        else:
            self._area.clear()
            self._told.finish(f"{text}You had {self._right} of {self._number} right. Below are all values.")
            self._draw_all()

    def _draw_all(self) -> None:
        rows = self._taught["rows"]
        self._all.clear()
        with self._all:
            heading = f"The {len(rows)} features that the learners met, the best ones first"
            ui.label(heading).classes("text-lg font-bold").props("role=heading aria-level=2")
            prose(
                "Why is even a sure win not worth 100? All values begin with 50, and each visit changes them only a "
                "little. Here, each learner has seen an afterstate only a few times. Look at the order instead: in a "
                "new game, it matters which afterstates are better than others."
            )
            with ui.element("div").classes("gl-cards"):
                for row in rows:
                    with ui.column().classes("gl-card gap-2"):
                        draw_feature(row)
                        draw_value(row["value"], f"{row['value']:.1f} points, from {counted(row['visits'], 'visit')}")


def draw_feature(row: Tree) -> None:
    """Draw a feature: its tree, a board that has it, and its words."""
    with ui.row().classes("no-wrap items-start gap-3"):
        if row.get("board"):
            small_board(row["board"], "a board with this feature", "5rem")
        tree_picture(row["tree"], row["words"])
    ui.label(f"{row['words'][:1].upper()}{row['words'][1:]}.").classes("text-sm")


def draw_value(value: float, text: str) -> None:
    """Draw a value from 0 to 100 as a bar with a text."""
    ui.label(text).classes("font-bold")
    with (
        ui.element("div")
        .style("width: 100%; border: 1px solid var(--gl-line); border-radius: 3px")
        .props("aria-hidden=true")
    ):
        ui.element("div").classes("gl-bar").style(f"width: {value:.0f}%")


# ---- 8 ----------------------------------------------------------------------------------------------------------


class PupilStep(TourStep):
    """A position of Connect3: which move has a feature that is known from tic-tac-toe?"""

    title = "Another game, the same feature"

    def draw(self) -> None:
        """See `TourStep`."""
        prose(
            "This is *Connect3*. The board has five columns, and a stone falls to the lowest free cell. Three stones "
            "in a line win. Its text has other moves than tic-tac-toe: `(drop 4)`, not `(mark 2 2)`. No board of one "
            "game is a board of the other.",
            "But the trees are made of the same parts: who is to move, and how the match ends. So a feature of "
            "tic-tac-toe can appear here too.",
        )
        self._told = self._task(
            "You are red. Find a move that has the *same feature* as this afterstate of tic-tac-toe."
        )
        self._wanted: Tree = {}
        with self._told.area, ui.row().classes("w-full gap-6 items-start"):
            self._known = (
                ui.column().classes("gap-2 gl-card").style("flex: 1; min-width: min(100%, 15rem); max-width: 20rem")
            )
            with ui.column().classes("gap-2").style("flex: 1; min-width: min(100%, 15rem); max-width: 18rem"):
                self._board = MoveBoard(
                    self._tour, PUPIL, self._clicked, "position of Connect3, red is to move", "17rem"
                )
                ui.button("Another position", icon="shuffle", on_click=told(self._next)).props("outline dense no-caps")
            self._chosen = ui.column().classes("gap-2").style("flex: 1; min-width: min(100%, 13rem)")
        self._shared = ui.column()

    async def load(self) -> None:
        """See `TourStep`."""
        with self._known:
            waiting("gamelore looks for an example")
        example = await self._ask("pupil_example", number=self._visit.pupil_example)
        await self._board.show(example["plies"], "red is to move")
        if self._known.is_deleted:
            return
        self._wanted = example["row"]
        self._known.clear()
        self._chosen.clear()
        with self._known:
            ui.label("Known from tic-tac-toe").classes("font-bold")
            draw_feature(self._wanted)
            draw_value(self._wanted["value"], f"learned value: {self._wanted['value']:.1f} points")
        self._told.tell("Click a column of the board.")

    async def _next(self) -> None:
        self._visit.pupil_example += 1
        await self.load()

    async def _clicked(self, move: str) -> None:
        tree = await self._ask("tree", game=PUPIL, plies=self._board.plies, move=move)
        if self._chosen.is_deleted:
            return
        is_wanted = tree["feature"] == self._wanted["feature"]
        self._chosen.clear()
        with self._chosen, ui.column().classes(f"gl-card gap-2 {'gl-same' if is_wanted else ''}"):
            ui.label("The same feature" if is_wanted else "Not the same").classes("font-bold")
            with ui.row().classes("no-wrap items-start gap-3"):
                small_board(tree["svg"], f"afterstate of {move}", "6rem")
                if tree["tree"]:
                    tree_picture(tree["tree"], tree["words"])
        if not is_wanted:
            return self._told.tell(f"{_about(tree)} Try another column.")
        self._told.finish(
            f"The same feature. A learner that knows tic-tac-toe begins here with {self._wanted['value']:.1f} points "
            "for this move. A beginner begins with 50."
        )
        await self._show_shared()

    async def _show_shared(self) -> None:
        shared = await self._ask("shared", game=TEACHER)
        if self._shared.is_deleted or self._shared.default_slot.children:
            return
        share = shared["fitting"] / max(1, shared["afterstates"])
        with self._shared:
            prose(
                "How often does this happen? gamelore has played random matches of Connect3 and found "
                f"*{shared['met']}* features. *{shared['known']}* of them are known from tic-tac-toe, and "
                f"*{share:.0%}* of the afterstates that have a feature have a known one. Using knowledge of one game "
                "in another one is called *transfer*."
            )


def _about(tree: Tree) -> str:
    """Return what a click has shown, as text."""
    if tree["feature"] is None:
        return (
            "This afterstate ends the match."
            if tree["end"]
            else "This one has no feature: nothing ends within two moves."
        )
    return f"Its feature is another one: {tree['words']}."
