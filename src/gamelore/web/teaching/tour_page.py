"""The page "Tour": ten steps through what gamelore does, on tic-tac-toe and Connect3."""

from __future__ import annotations

from fastapi import Request
from fastapi.responses import RedirectResponse
from nicegui import ui

from ...errors import GameloreError
from ..pages.frame import YEAR, Services, complain, heading, is_connected, page_frame
from .tour_feature_steps import FeatureStep, PupilStep, TreeStep, ValueStep
from .tour_parts import STYLE, TourStep
from .tour_play_steps import AfterstateStep, LearningStep, PlayStep, TextStep
from .tour_transfer_steps import LimitStep, TransferStep
from .tour_visit import Tour, Visit

COOKIE = "gamelore-tour"  # has the id of the last visit
STEPS: tuple[type[TourStep], ...] = (
    TextStep,
    PlayStep,
    AfterstateStep,
    LearningStep,
    TreeStep,
    FeatureStep,
    ValueStep,
    PupilStep,
    TransferStep,
    LimitStep,
)
# The arrow keys turn pages, but not where they do something else: on a board, in a field, or with a modifier key.
_KEYS = """
<script>
document.addEventListener("keydown", (event) => {
  const name = { ArrowLeft: "previous", ArrowRight: "next" }[event.key];
  if (!name || event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (event.target.closest("input, textarea, select, pre, [contenteditable], [role=radiogroup], [role=slider]")) return;
  document.querySelector(`[data-testid=${name}]`)?.click();
});
</script>
"""


class TourPage:
    """A step of the tour with the list of all steps, and the buttons to the steps before and after it.

    Args:
        tour: what all visitors share
        visit: what this visitor has done
        number: number of the step, from 1
    """

    def __init__(self, tour: Tour, visit: Visit, number: int) -> None:
        self._tour, self._visit, self._number = tour, visit, number

    async def show(self) -> None:
        """Draw the step at once, and fill in what has to be computed when the browser is connected."""
        kind = STEPS[self._number - 1]
        ui.add_css(STYLE)
        ui.add_body_html(_KEYS)
        with page_frame("Tour") as main:
            main.classes("gl-tour gl-stack")
            ui.page_title(f"{self._number}. {kind.title} - tour of gamelore")
            self._list = ui.element("nav").props('aria-label="steps of the tour"')
            self._draw_list()
            heading(kind.title, 1)
            step = kind(self._tour, self._visit, self._done)
            step.draw()
            self._draw_links()
        if not await is_connected():
            return
        try:
            await step.load()
        except GameloreError as error:
            complain(str(error))

    def _done(self) -> None:
        if self._number not in self._visit.done:
            self._visit.done.add(self._number)
            self._draw_list()

    def _draw_list(self) -> None:
        self._list.clear()
        with self._list:
            ui.label(f"Step {self._number} of {len(STEPS)}").classes("gl-faint").props("data-testid=progress")
            with ui.element("ol").classes("gl-steps"):
                for number, kind in enumerate(STEPS, start=1):
                    with ui.element("li"):
                        self._draw_number(number, kind.title)

    def _draw_number(self, number: int, title: str) -> None:
        is_done = number in self._visit.done
        link = ui.link("✓" if is_done and number != self._number else str(number), self._address(number))
        link.classes("gl-done" if is_done else "")
        link.props["aria-label"] = f"step {number}: {title}{', done' if is_done else ''}"
        link.props["title"] = title
        if number == self._number:
            link.props["aria-current"] = "step"

    def _draw_links(self) -> None:
        with ui.element("nav").classes("gl-turn").props('aria-label="turn pages"'):
            if self._visit.done:
                ui.link("Begin the tour anew", "/tour?anew=true").classes("gl-link")
            if self._number > 1:
                self._draw_link("previous", self._number - 1, "arrow_back", "outline")
            ui.label("The arrow keys ← and → turn pages, too.").classes("gl-faint gt-sm")
            if self._number < len(STEPS):
                self._draw_link("next", self._number + 1, "arrow_forward", "unelevated")

    def _draw_link(self, name: str, number: int, icon: str, look: str) -> None:
        title = STEPS[number - 1].title
        button = ui.button(f"{number}. {title}").props(f"{look} no-caps data-testid={name}")
        button.props["icon-right" if name == "next" else "icon"] = icon
        button.props["href"] = self._address(number)
        button.props["aria-label"] = f"{name} step: {number}. {title}"

    def _address(self, number: int) -> str:
        return f"/tour/{number}?visit={self._visit.id}"


def add_pages(services: Services) -> None:
    """Add the pages to the server."""
    tour = Tour(services)

    @ui.page("/tour")
    async def begin(request: Request, anew: bool = False) -> RedirectResponse:
        """Go on where the visitor was, or begin anew."""
        visit = tour.visit("" if anew else request.cookies.get(COOKIE, ""))
        step = next((number for number in range(1, len(STEPS) + 1) if number not in visit.done), 1)
        response = RedirectResponse(f"/tour/{step}?visit={visit.id}")
        response.set_cookie(COOKIE, visit.id, max_age=YEAR, samesite="strict")
        return response

    @ui.page("/tour/{number}", response_timeout=10)
    async def show(number: str, visit: str = "") -> RedirectResponse | None:
        chosen = int(number) if number.isdecimal() and len(number) < 3 else 0
        if not 1 <= chosen <= len(STEPS):
            return RedirectResponse("/tour")
        kept = tour.visit(visit)
        if kept.id != visit:
            return RedirectResponse(f"/tour/{chosen}?visit={kept.id}")
        await TourPage(tour, kept, chosen).show()
        return None
