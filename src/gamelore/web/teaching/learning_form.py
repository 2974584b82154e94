"""The form in which a learning run is planned: game, learners, sources, opponent and numbers.

It knows no rules: a child process tells the roles of the game and the options of its sheet.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from nicegui import ui

from ...errors import GameloreError
from ...rulesheets import split
from ..pages.frame import Services, choice, complaint, heading, rulesheet_address, whole
from ..pages.knowledge_parts import faint
from ..service.rule_processes import OPEN_SECONDS, Rules
from ..service.sheet_library import SheetLibrary
from .learning_curves import Row
from .learning_words import FEW_RUNS, FILLERS, HEURISTICS, INITIALISATIONS, LEARNERS, OPPONENTS

FIRST_GAME = "shipped/connect3"
MOST_SOURCES, MOST_RUNS, MOST_MATCHES, MOST_SEED = 8, 30, 10_000, 2**31 - 1


class LearningForm:
    """Fields for the plan of a run, drawn into the present element of the page.

    Args:
        services: the services of the pages
        key: the game that is chosen first
        plan: a plan whose values the fields have at the beginning
    """

    def __init__(self, services: Services, key: str, plan: Row | None = None) -> None:
        self._services = services
        self._plan: Row = plan or {}
        self._choices: dict[str, str] = {}
        self._rules: Rules | None = None
        self._has_own_sources = bool(self._plan.get("sources"))
        self._sheets = services.library.labels()
        if plan is not None:
            key, self._choices = planned_sheet(services.library, plan["target"])
        self._key = key if key in self._sheets else FIRST_GAME
        self._draw()

    # ---- drawing ------------------------------------------------------------------------------------------------

    def _draw(self) -> None:
        self._game = choice(self._sheets, self._key, "Game to learn", lambda event: self.load(event.value))
        self._game.classes("w-full").props("data-testid=game")
        self._role_area = ui.row().classes("gap-4 w-full")
        self._problem = ui.column().classes("w-full gap-1").props("role=status aria-live=polite")
        self._draw_learners()
        self._draw_sources()
        opponent, _, options = self._plan.get("opponent", "egreedy").partition(":")
        self._opponent = ui.select(OPPONENTS, value=opponent, label="Opponent in all games")
        self._opponent.classes("w-full").props("data-testid=opponent")
        self._draw_numbers()
        with ui.expansion("More options").classes("w-full").props("dense data-testid=more"):
            self._draw_more(dict(part.split("=") for part in options.split(",") if "=" in part))
        self._show_amount()

    def _draw_learners(self) -> None:
        heading("Learners to compare")
        chosen = self._plan.get("learners", ("baseline", "transfer", "lookahead"))
        self._learners: dict[str, ui.checkbox] = {}
        with ui.column().classes("gap-0 w-full").props('role=group aria-label="learners to compare"'):
            for name, about in LEARNERS.items():
                box = ui.checkbox(f"{name}: {about}", value=name in chosen, on_change=self._learners_changed)
                self._learners[name] = box.props(f"data-testid=learner-{name}")

    def _draw_sources(self) -> None:
        self._source_area = ui.column().classes("w-full gap-0")
        with self._source_area:
            library = self._services.library
            planned = [planned_sheet(library, source)[0] for source in self._plan.get("sources", ())]
            self._sources = ui.select(
                self._sheets,
                value=[key for key in planned if key in self._sheets] or [default_source(self._key)],
                label="Games that transfer learns first",
                multiple=True,
                on_change=self._sources_changed,
            )
            self._sources.classes("w-full").props("use-chips data-testid=sources")
            faint("With several games, it learns the game once after each of them.")

    def _draw_numbers(self) -> None:
        with ui.row().classes("gap-4 w-full"):
            self._runs = self._number("Runs", "runs", 10, 1, MOST_RUNS)
            self._matches = self._number("Matches of each run", "matches", 1000, 1, MOST_MATCHES)
            self._seed = self._number("Seed", "seed", 2007, 0, MOST_SEED)
        self._amount = faint("").props("data-testid=amount")

    def _number(self, label: str, name: str, default: float, least: float, most: float, step: float = 1) -> ui.number:
        """Draw a field for a number of the plan."""
        number = ui.number(
            label, value=self._plan.get(name, default), min=least, max=most, step=step, on_change=self._show_amount
        )
        return number.classes("w-40").props(f"data-testid={name.replace('_', '-')}")

    def _draw_more(self, opponent: Mapping[str, str]) -> None:
        with ui.column().classes("w-full gap-3"):
            with ui.row().classes("gap-4 w-full"):
                self._source_matches = self._number("Matches in a game learned first", "source_matches", 100, 1, 10_000)
                self._source_epsilon = self._number(
                    "Share of random moves there (0 to 1)", "source_epsilon", 1.0, 0, 1, 0.05
                )
                epsilon = float(opponent.get("epsilon", 0.01))
                label = "Opponent's share of random moves"
                self._epsilon = ui.number(label, value=epsilon, min=0, max=1, step=0.01)
            for field in (self._source_matches, self._source_epsilon, self._epsilon):
                field.classes("w-64", remove="w-40")
            self._filler = _choice("The opponent's choice among equally good moves", FILLERS, opponent.get("filler"))
            self._initialisation = _choice(
                "When a position gets its first value", INITIALISATIONS, self._plan.get("initialisation")
            )
            self._heuristic = _choice(
                "What lookahead assumes about the others", HEURISTICS, self._plan.get("heuristic")
            )

    # ---- the game -----------------------------------------------------------------------------------------------

    async def load(self, key: str | None = None, choices: Mapping[str, str] | None = None) -> None:
        """Load the chosen game, or another one, and offer its roles and options."""
        if key is not None and key != self._key:
            self._key, self._choices = key, {}
            self._choose_default_source()
        if choices is not None:
            self._choices = dict(choices)
        asked, self._rules = (self._key, dict(self._choices)), None
        self._tell("Loading the game; a large one takes a minute", waits=True)
        try:
            rules = self._services.library.rules(self._key, self._choices)
            opened = await self._services.processes.ask(rules, "open", time_limit=OPEN_SECONDS)
        except GameloreError as error:
            if asked == (self._key, self._choices):
                self._tell(str(error), waits=False)
            return
        if asked == (self._key, self._choices) and not self._problem.is_deleted:
            self._rules = rules
            self._problem.clear()
            self._draw_roles(opened)

    def _tell(self, text: str, *, waits: bool) -> None:
        """Show that the game is being loaded, or why it cannot be loaded."""
        if self._problem.is_deleted:
            return
        self._problem.clear()
        with self._problem:
            if waits:
                with ui.row().classes("items-center gap-3"):
                    ui.spinner(size="1.5em")
                    ui.label(text)
            else:
                complaint(text)
                ui.link("Open it in the editor", rulesheet_address(self._key)).classes("gl-link")

    def _draw_roles(self, opened: Row) -> None:
        """Draw a field for the role of the learners, and one for each option of the rulesheet."""
        roles = list(opened["roles"])
        wanted = self._plan.get("target", {}).get("role")
        self._role_area.clear()
        with self._role_area:
            self._role = ui.select(roles, value=wanted if wanted in roles else roles[0], label="Role of the learners")
            self._role.classes("w-40").props("data-testid=role")
            for name, (value, values) in opened["options"].items():
                load = partial(self._load_with, name)
                if values:
                    field = ui.select(
                        values, value=value, label=name, on_change=lambda event, load=load: load(event.value)
                    )
                    field.classes("w-40")
                else:
                    word = ui.input(name, value=value).classes("w-40")
                    word.on("keydown.enter", lambda load=load, word=word: load(word.value))

    async def _load_with(self, option: str, value: str) -> None:
        await self.load(choices={**self._choices, option: value})

    # ---- changes ------------------------------------------------------------------------------------------------

    def _learners_changed(self) -> None:
        self._source_area.set_visibility(self._learners["transfer"].value)
        self._show_amount()

    def _sources_changed(self) -> None:
        if self._sources.value != [default_source(self._key)]:
            self._has_own_sources = True
        self._show_amount()

    def _choose_default_source(self) -> None:
        if not self._has_own_sources:
            self._sources.set_value([default_source(self._key)])

    def _show_amount(self) -> None:
        """Say how many matches are played, and that few runs have no intervals."""
        runs, matches = int(self._runs.value or 0), int(self._matches.value or 0)
        series = sum(len(self._sources.value) if kind == "transfer" else 1 for kind in self._kinds)
        text = f"{runs * matches * series:,} matches in all"
        if 0 < runs < FEW_RUNS:
            text += f". With fewer than {FEW_RUNS} runs there are no intervals: nobody can say what is chance."
        self._amount.set_text(text)

    @property
    def _kinds(self) -> list[str]:
        return [name for name, box in self._learners.items() if box.value]

    # ---- the plan -----------------------------------------------------------------------------------------------

    def plan(self) -> dict[str, Any]:
        """Return the chosen plan, see `learning_run.LearningPlan`. Raise GameloreError for what no plan has."""
        if self._rules is None:
            raise GameloreError("expected a game that is loaded, got none; wait for it, or choose another game")
        kinds, keys = self._kinds, list(self._sources.value)
        if not kinds:
            raise GameloreError("expected at least one learner, got none; choose some")
        if "transfer" in kinds and not 1 <= len(keys) <= MOST_SOURCES:
            raise GameloreError(
                f"expected 1 to {MOST_SOURCES} games that transfer learns first, got {len(keys)}; choose other games, "
                "or leave out transfer"
            )
        role = self._role.value
        return {
            "target": {**planned_game(self._services.library, self._key, self._rules), "role": role},
            "learners": kinds,
            "sources": [self._planned_source(key) for key in keys] if "transfer" in kinds else [],
            "opponent": self._opponent_text(),
            "runs": whole(self._runs, "runs", 1, MOST_RUNS),
            "matches": whole(self._matches, "matches", 1, MOST_MATCHES),
            "seed": whole(self._seed, "a seed", 0, MOST_SEED),
            "source_matches": whole(self._source_matches, "matches in a game learned first", 1, MOST_MATCHES),
            "source_epsilon": share(self._source_epsilon, "a share of random moves there"),
            "initialisation": self._initialisation.value,
            "heuristic": self._heuristic.value,
        }

    def _planned_source(self, key: str) -> dict[str, Any]:
        library = self._services.library
        return planned_game(library, key, library.rules(key))

    def _opponent_text(self) -> str:
        kind = str(self._opponent.value)
        if kind == "random":
            return kind
        epsilon = share(self._epsilon, "a share of random moves of the opponent")
        return f"{kind}:filler={self._filler.value},epsilon={epsilon}"


def _choice(label: str, choices: Mapping[str, str], value: Any) -> ui.select:
    """Draw a field for one of several values; the first one is the default."""
    default = value if value in choices else next(iter(choices))
    return ui.select(dict(choices), value=default, label=label).classes("w-full")


def share(field: ui.number, what: str) -> float:
    """Return the number from 0 to 1 in a field. Raise GameloreError if it has no such number."""
    value = field.value
    if value is None or not 0 <= value <= 1:
        got = "nothing" if value is None else f"{value:g}"
        raise GameloreError(f"expected {what} from 0 to 1, got {got}; choose another number")
    return float(value)


def default_source(key: str) -> str:
    """Return the game that transfer learns first if nothing else was chosen."""
    return "shipped/connect3" if key == "shipped/tictactoe" else "shipped/tictactoe"


def planned_game(library: SheetLibrary, key: str, rules: Rules) -> dict[str, Any]:
    """Return a game as it is in a plan: a shipped game by its name with options, another one by its text."""
    if library.sheet(key).origin == "shipped":
        return {"game": rules.name}
    return {"game": rules.text, "name": rules.name}


def planned_sheet(library: SheetLibrary, game: Row) -> tuple[str, dict[str, str]]:
    """Return the key of the sheet of a planned game, and the chosen options; an empty key if there is none."""
    if "(" not in game["game"]:
        name, options = split(game["game"])
        return f"shipped/{name}", dict(part.split("=") for part in options.split(",") if "=" in part)
    own = [sheet.key for sheet in library.sheets() if sheet.origin != "shipped" and sheet.name == game.get("name")]
    return (own[0] if own else ""), {}
