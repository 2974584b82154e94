"""The pages of what was learned: a learner, a lesson of the strong player, and two learners side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from nicegui import ui

from ...errors import counted
from ...memory.advice import STARTCLOCKS
from .frame import fill, heading, told
from .knowledge_parts import (
    BLUE,
    GREY,
    RED,
    Row,
    StoreProcess,
    add_trees,
    band_lines,
    chart_of,
    curve_line,
    curve_options,
    draw_facts,
    export_file,
    faint,
    number_text,
    table_of,
    wide_picture,
)

KINDS = {
    "baseline": "begins without knowledge",
    "transfer": "begins with what others have learned in other games",
    "lookahead": "begins with values of a short search",
    "oracle": "begins with exact values",
    "sequences": "watches an expert, and remembers sequences of moves",
}
SETTINGS = {
    "kind": "how it begins",
    "alpha": "learning rate",
    "gamma": "discount of later rewards",
    "lam": "how far a reward reaches back (lambda)",
    "epsilon": "probability of a random move",
    "depth": "plies that a feature looks ahead",
    "default": "value of what is unknown",
    "heuristic": "assumed behaviour of the others in its search",
    "initialisation": "when an unknown position gets its first value",
    "ties": "choice among equally good moves",
    "symmetry": "whether symmetric positions share a value",
    "symmetries": "number of symmetries",
    "turns": "turns that it looks ahead to features",
    "lengths": "lengths of the sequences",
    "curriculum.expert": "whom it watched",
    "curriculum.opponents": "against whom the expert played",
    "sources.games": "games that taught it",
    "sources.rule": "how the values of several sources are combined",
}
MOST_LETTERS = 200  # of a feature in a table
VERDICTS = {"taken": "used", "refused": "not used", "open": "not decided"}

# ---- a learner --------------------------------------------------------------------------------------------------


class LearnerPage:
    """The page of a learner: how it learned, its curve, and its features or sequences."""

    def __init__(self, process: StoreProcess, number: int) -> None:
        self._process, self._number = process, number
        self._role: str | None = None

    async def draw(self) -> None:
        """Draw the page: first what is read at once, then pictures."""
        ui.link("All knowledge", "/knowledge").classes("gl-link")
        area = ui.column().classes("w-full gap-2")
        self._below = ui.column().classes("w-full gap-2")
        self._about: Row = {}
        await fill(area, self._ask("learner"), self._draw_learner)
        if not self._about:
            return
        if self._about["has_sequences"]:
            await self._draw_sequences()
        else:
            await self._draw_features()

    async def _ask(self, do: str, **given: Any) -> Any:
        return await self._process.ask(do, number=self._number, **given)

    def _draw_learner(self, about: Row) -> None:
        self._about = about
        heading(f"Learner {about['number']}: {about['game']}, {about['role']}", 1)
        faint(f"{about['kind']}: {KINDS.get(about['kind'], 'a kind of another version')}")
        with ui.row().classes("w-full gap-8 items-start"):
            with ui.column().classes("gap-2").style("flex: 2; min-width: min(100%, 20rem)"):
                self._draw_facts(about)
            with ui.column().classes("gap-1").style("flex: 3; min-width: min(100%, 20rem)"):
                self._draw_curve(about)

    def _draw_facts(self, about: Row) -> None:
        plies = f", {about['plies']:.1f} plies long on average" if about["plies"] is not None else ""
        draw_facts(
            [
                ("opponent", about["opponent"]),
                ("matches", f"{about['matches']:,}{plies}"),
                ("mean reward", number_text(about["mean"])),
                ("seed", str(about["seed"])),
                ("since", f"{about['created'][:10]}, gamelore {about['version']}"),
            ]
        )
        self._draw_relatives(about)
        with ui.row().classes("gap-2"):
            export = partial(export_file, self._process, f"learner-{about['number']}.json", numbers=[about["number"]])
            ui.button("Export", icon="download", on_click=told(export)).props("outline dense no-caps")
        with ui.expansion("Settings", value=False).props("dense data-testid=settings").classes("w-full"):
            rows = [
                {"id": name, "name": name, "value": value, "meaning": SETTINGS.get(name, "")}
                for name, value in about["settings"].items()
                if (name != "heuristic" or about["kind"] == "lookahead")
            ]
            table_of({"name": "setting", "value": "value", "meaning": "meaning"}, rows, wide=["meaning"])

    def _draw_relatives(self, about: Row) -> None:
        for title, others in (("taught by", about["teachers"]), ("taught", about["pupils"])):
            if others:
                with ui.row().classes("gap-x-3 gap-y-0 items-baseline"):
                    ui.label(title).classes("gl-faint")
                    for other in others:
                        _link_to(other)
        if about["siblings"]:
            with ui.row().classes("gap-x-3 gap-y-0 items-baseline"):
                ui.label("the same with other seeds").classes("gl-faint")
                for other in about["siblings"]:
                    ui.link(str(other["number"]), f"/knowledge/learner/{other['number']}").classes("gl-link")
        others = [*about["siblings"], *about["pupils"]]
        others += [teacher for teacher in about["teachers"] if teacher["number"] is not None]
        if others:
            shown = {other["number"]: f"learner {other['number']}: {other['game']}" for other in others}
            target = f"/knowledge/compare/{about['number']}"
            ui.select(
                shown, label="Compare it with", on_change=lambda event: ui.navigate.to(f"{target}/{event.value}")
            ).classes("w-60")

    def _draw_curve(self, about: Row) -> None:
        curve, whose = about["curve"], "the expert that it watched" if about["has_sequences"] else "the learner"
        heading("Learning curve")
        if not curve["points"]:
            return _draw_nothing("no match yet")
        trailing = f"mean of the last {curve['trailing']} matches"
        lines = [curve_line("mean reward so far", (point[:2] for point in curve["points"]), BLUE)]
        if curve["trailing"] > 1:
            last_points = ((point[0], point[2]) for point in curve["points"])
            lines += [curve_line(trailing, last_points, GREY, "dotted", 1)]
        if curve["band"]:
            lines += [curve_line(f"mean of {curve['runs']} runs, 95 % interval", curve["band"], RED, "dashed")]
            lines += band_lines(curve["band"], RED)
        chart_of(curve_options(lines, "matches", "reward"), "19rem", "learning curve; its last value is written below")
        last = curve["points"][-1]
        faint(f"After {last[0]:,} matches, {whose} had {last[1]:.1f} points on average. {_runs_text(curve)}")

    # ---- features -----------------------------------------------------------------------------------------------

    async def _draw_features(self) -> None:
        with self._below:
            heading("Features")
            faint(
                "A feature is what the next moves can lead to, whatever the board looks like: ■ the opponent is to "
                "move, ● the learner is to move, □ a win, ○ a loss, ⊠ a draw. Its value is the mean reward that the "
                "learner expects where it sees this. It can be carried into other games."
            )
            area, drawn = ui.column().classes("w-full gap-2"), ui.column().classes("w-full gap-2")
        await fill(area, self._ask("features"), self._draw_feature_table)
        await fill(drawn, self._ask("feature_picture"), lambda svg: _draw_picture(svg, "Features as a picture"))

    def _draw_feature_table(self, features: Row) -> None:
        if not features["rows"]:
            return _draw_nothing("no feature yet: it has met no position from which the match goes on")
        values = {f"value{i}": column["opponent"] for i, column in enumerate(features["columns"])}
        columns = {"label": "", "tree": "tree", "feature": "as text", "visits": "visits"} | values
        rows = [{**_shown_feature(row), "id": row["label"]} for row in features["rows"]]
        if len(values) > 1:
            numbers = ", ".join(f"learner {column['number']}" for column in features["columns"][1:])
            faint(f"One column of values for each opponent. Those of other opponents are from {numbers}.")
        table = table_of(columns, rows, numbers=["visits"], decimals=dict.fromkeys(values, 1))
        add_trees(table.props("data-testid=features"))
        if features["num"] > len(rows) or features["left_out"]:
            faint(f"{len(rows)} of {counted(features['num'], 'feature')}. {features['left_out']}")

    # ---- sequences ----------------------------------------------------------------------------------------------

    async def _draw_sequences(self) -> None:
        with self._below:
            heading("Sequences")
            faint(
                "The learner watches an expert, and remembers sequences of moves that often occur together with the "
                "position in which they begin, the context (hatched places may contain anything). A pair of a context "
                "and its sequences advises a move; its weight says how often this advice was good."
            )
            self._sequences = ui.column().classes("w-full gap-2")
        await self._read_sequences()

    async def _read_sequences(self) -> None:
        self._sequences.clear()
        await fill(self._sequences, self._ask("sequences", role=self._role), self._draw_pairs)

    def _draw_pairs(self, learned: Row) -> None:
        ui.label(
            f"{counted(learned['num_sequences'], 'sequence')}, {counted(learned['num_pairs'], 'pair')} with a context. "
            f"{_classes_text(learned['classes'])}"
        ).props("data-testid=pairs-count")
        roles = {None: "all roles"} | {role: role for role in learned["roles"]}
        ui.select(roles, value=self._role, label="Advice for", on_change=self._choose_role).classes("w-44")
        if not learned["pairs"]:
            return _draw_nothing("no pair for this role")
        _draw_picture(learned["svg"], "The best pairs on boards")
        columns = {
            "label": "", "role": "role", "weight": "weight", "agreed": "agreed with the expert",
            "succeeded": "succeeded", "moves": "moves", "context": "context",
        }  # fmt: skip
        rows = [{**row, "id": row["label"]} for row in learned["pairs"]]
        table_of(
            columns,
            rows,
            numbers=["label"],
            decimals={"weight": 2},
            wide=("moves", "context"),
            pagination=10 if len(rows) > 10 else None,
        )

    async def _choose_role(self, event: Any) -> None:
        self._role = event.value
        await self._read_sequences()


def _classes_text(classes: Sequence[tuple[float, int]]) -> str:
    """Return in words how many pairs have weights of each class; `classes`: lowest weight, number of pairs."""
    highest = [1.0, *(low for low, _ in classes)]
    told = [f"{num} with {low:g} to {high:g}" for high, (low, num) in zip(highest, classes, strict=False) if num]
    return f"By weight: {', '.join(told)}." if told else ""


def _shown_feature(row: Row) -> dict[str, Any]:
    """Return a row of a feature with a text of at most MOST_LETTERS."""
    text = row["feature"] if len(row["feature"]) <= MOST_LETTERS else f"{row['feature'][:MOST_LETTERS]} .."
    return {**row, "feature": text, "tree": row["tree"] or "not drawn"}


def _link_to(other: Row) -> None:
    """Draw a link to a learner, or its name if it is not in the store any more."""
    if other["number"] is None:
        ui.label(f"{other['game']}, {other['role']} (not in the store any more)")
    else:
        text = f"learner {other['number']} ({other['game']})"
        ui.link(text, f"/knowledge/learner/{other['number']}").classes("gl-link")


def _runs_text(curve: Row) -> str:
    """Say whether a curve has an interval, and why not."""
    if curve["band"]:
        return f"The interval is that of the mean of {curve['runs']} learners that differ only in the seed."
    runs = "One run: no interval" if curve["runs"] <= 1 else f"{curve['runs']} runs: too few for an interval"
    return f"{runs}; five learners that differ only in the seed are needed."


def _draw_nothing(text: str) -> None:
    faint(text)


def _draw_picture(svg: str, title: str) -> None:
    if svg:
        heading(title, 3)
        wide_picture(svg)


# ---- a lesson ---------------------------------------------------------------------------------------------------


class LessonPage:
    """The page of a lesson of the strong player: weights on boards, generations, tests, opponents."""

    def __init__(self, process: StoreProcess, key: str) -> None:
        self._process, self._key = process, key

    async def draw(self) -> None:
        """Draw the page."""
        ui.link("All knowledge", "/knowledge").classes("gl-link")
        area = ui.column().classes("w-full gap-2")
        await fill(area, self._process.ask("lesson", key=self._key), self._draw_lesson)

    def _draw_lesson(self, lesson: Row) -> None:
        heading(f"Lesson about {lesson['game']}", 1)
        faint("What the player gamelore has learned about this game from its own searches.")
        with ui.row().classes("w-full gap-8 items-start"):
            with ui.column().classes("gap-2").style("flex: 2; min-width: min(100%, 20rem)"):
                draw_facts(_lesson_facts(lesson))
                export = partial(export_file, self._process, "lesson.json", lessons=[lesson["rules_hash"]])
                ui.button("Export", icon="download", on_click=told(export)).props("outline dense no-caps")
            with ui.column().classes("gap-1").style("flex: 3; min-width: min(100%, 20rem)"):
                _draw_generations(lesson["generations"])
        _draw_tests(lesson["tests"])
        _draw_opponents(lesson["opponents"])
        _draw_weights(lesson)


def _lesson_facts(lesson: Row) -> list[tuple[str, str]]:
    informed, variant = lesson["informed"], lesson["variant"]
    whose = "its" if lesson["has_own_value"] else f"{variant}'s"
    return [
        ("teaching", f"{lesson['seconds']:.0f} s of processor time, {lesson['simulations']:,} simulations"),
        ("explains", f"{lesson['determination']:.0%} of what {whose} searches find"),
        ("openings", counted(lesson["openings"], "position")),
        ("matches", f"{counted(lesson['matches'], 'match', 'matches')} over the network"),
        ("playouts that see wins", "not decided" if informed is None else f"{informed:.0%}"),
        ("began with", f"the lesson of {variant} (likeness {lesson['likeness']:.0%})" if variant else "nothing"),
        ("used", used_text(lesson["taken_for"])),
    ]


def used_text(taken_for: int | None) -> str:
    """Say in which matches a lesson is used. `taken_for`: see `LessonSummary`."""
    if taken_for is None:
        return "not yet: no test has shown that it helps"
    if taken_for >= STARTCLOCKS[-1]:
        return "in all matches"
    return f"in matches with at most {taken_for} s before the first move"


def _draw_generations(generations: Sequence[Row]) -> None:
    heading("Generations")
    if not generations:
        return _draw_nothing("No generation of teaching has ended yet.")
    points = [[row["number"], round(100 * row["determination"], 1)] for row in generations if not row["is_network"]]
    if points:
        line = curve_line("what its value explains, in %", points, BLUE) | {"showSymbol": True, "symbolSize": 7}
        options = curve_options([line], "generation", "%")
        chart_of(options, "16rem", "what the lesson explains after each generation; the table below says the same")
    columns = {"number": "generation", "walks": "simulations", "seconds": "seconds", "explains": "explains"}
    columns |= {"value": "value"}
    rows = [
        {"id": row["number"], "number": row["number"], "walks": f"{row['walks']:,}", "seconds": round(row["seconds"])}
        | {"explains": "-" if row["is_network"] else f"{row['determination']:.0%}"}
        | {"value": "network" if row["is_network"] else "linear"}
        for row in generations
    ]
    with ui.expansion("The same as a table").props("dense").classes("w-full"):
        table_of(columns, rows, numbers=[*columns][:-1])


def _draw_tests(tests: Sequence[Row]) -> None:
    heading("Tests: what is used, and why")
    faint(
        "Nothing is used untested. The player with the advice meets the same player without it, in rounds of matches "
        "with sides swapped. Scores are in percent; 50 is even."
    )
    if not tests:
        return _draw_nothing("No test has been played yet.")
    columns = {
        "verdict": "verdict", "what": "what was tried", "against": "against", "rounds": "rounds",
        "score": "score", "why": "why",
    }  # fmt: skip
    rows = [
        {**test, "id": number, "verdict": VERDICTS[test["verdict"]], "score": f"{test['score']:.0f} %"}
        for number, test in enumerate(tests)
    ]
    table_of(columns, rows, numbers=("rounds", "score"), wide=("what", "against", "why")).props("data-testid=tests")


def _draw_opponents(opponents: Mapping[str, Mapping[str, float]]) -> None:
    heading("Opponents that it has recognised")
    if not opponents:
        return _draw_nothing(
            "None yet: it compares the moves of others in matches over the network with known players."
        )
    rows = [
        {"id": f"{role} {player}", "role": role, "player": player, "share": f"{share:.0%}"}
        for role, posterior in opponents.items()
        for player, share in posterior.items()
        if share >= 0.005
    ]
    columns = {"role": "role of the opponent", "player": "is probably", "share": "probability"}
    table_of(columns, rows, numbers=["share"])


def _draw_weights(lesson: Row) -> None:
    heading("Weights on boards")
    if not lesson["svg"]:
        return _draw_nothing("No weights yet: they come with the first generation.")
    faint(
        "What each fact adds to the value of a position for a role, in points. Blue is good for the role, red is bad. "
        "Each picture shows one kind of piece; the number stands where the piece stands."
    )
    if lesson["fidelity"] is not None:
        faint(
            "A network values positions, which knows more than such sums. These are the weights that are nearest to "
            f"it: they explain {lesson['fidelity']:.0%} of its values."
        )
    wide_picture(lesson["svg"])
    with ui.expansion("The largest weights as a table").props("dense").classes("w-full"):
        rows = [{**row, "id": number} for number, row in enumerate(lesson["weights"])]
        columns = {"role": "after a move of", "fact": "fact", "weight": "weight"}
        table_of(columns, rows, decimals={"weight": 1})


# ---- two learners -----------------------------------------------------------------------------------------------


class ComparePage:
    """The page of two learners side by side."""

    def __init__(self, process: StoreProcess, left: int, right: int) -> None:
        self._process, self._numbers = process, (left, right)

    async def draw(self) -> None:
        """Draw the page."""
        ui.link("All knowledge", "/knowledge").classes("gl-link")
        heading(f"Learners {self._numbers[0]} and {self._numbers[1]}", 1)
        area = ui.column().classes("w-full gap-2")
        left, right = self._numbers
        await fill(area, self._process.ask("compare", left=left, right=right), self._draw_both)

    def _draw_both(self, both: Row) -> None:
        left, right = self._names = [f"learner {number}" for number in self._numbers]
        with ui.row().classes("gap-x-6 gap-y-1"):
            for about in both["learners"]:
                _link_to(about)
        with ui.row().classes("w-full gap-8 items-start"):
            with ui.column().classes("gap-1").style("flex: 2; min-width: min(100%, 20rem)"):
                heading("What differs")
                rows = [
                    {"id": name, "name": name, "left": ours, "right": theirs, "meaning": SETTINGS.get(name, "")}
                    for name, ours, theirs in both["settings"]
                ]
                columns = {"name": "setting", "left": left, "right": right, "meaning": "meaning"}
                table_of(columns, rows, wide=["meaning"]).props("data-testid=differences")
                faint(f"{both['num_equal']} other settings are equal.")
            with ui.column().classes("gap-1").style("flex: 3; min-width: min(100%, 20rem)"):
                self._draw_curves(both)
        if both["features"] is not None:
            self._draw_features(both["features"])
        if both["pairs"] is not None:
            self._draw_pairs(both["pairs"])

    def _draw_curves(self, both: Row) -> None:
        heading("Learning curves")
        lines = []
        for name, curve, colour, dash in zip(
            self._names, both["curves"], (BLUE, RED), ("solid", "dashed"), strict=True
        ):
            if curve["band"]:
                shown = f"{name}: mean of {curve['runs']} runs, 95 % interval"
                lines += [curve_line(shown, (point[:2] for point in curve["band"]), colour, dash)]
                lines += band_lines(curve["band"], colour)
            else:
                lines += [curve_line(f"{name}: mean so far", (point[:2] for point in curve["points"]), colour, dash)]
        chart_of(curve_options(lines, "matches", "reward"), "20rem", "both learning curves; the difference is below")
        for name, curve in zip(self._names, both["curves"], strict=True):
            faint(f"{name}: {_runs_text(curve)}")
        ui.label(f"Difference, {self._names[1]} less {self._names[0]}: {both['difference']}").props(
            "data-testid=difference"
        )

    def _draw_features(self, features: Sequence[Row]) -> None:
        heading("Values of features")
        faint(
            "Features that both know come first. The values of different games can be compared, which is why they can "
            "be carried over."
        )
        columns = {"tree": "tree", "feature": "as text", "left": self._names[0], "right": self._names[1]}
        columns["difference"] = "difference"
        values = ("left", "right", "difference")
        rows = [{**_shown_feature(row), "id": number} for number, row in enumerate(features)]
        add_trees(table_of(columns, rows, decimals=dict.fromkeys(values, 1)).props("data-testid=common-features"))

    def _draw_pairs(self, pairs: Row) -> None:
        heading("Pairs that both have")
        left, right = pairs["only"]
        faint(f"{pairs['both']} in both, {left} only in {self._names[0]}, {right} only in {self._names[1]}.")
        columns = {"role": "role", "moves": "moves", "context": "context"}
        columns |= {"left": f"weight in {self._names[0]}", "right": f"weight in {self._names[1]}"}
        rows = [{**row, "id": row["label"]} for row in pairs["rows"]]
        table_of(columns, rows, decimals={"left": 2, "right": 2}, wide=("moves", "context"))
