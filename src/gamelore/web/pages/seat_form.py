"""The fields in which one chooses who plays a role: a person, or any player by name, with its options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nicegui import ui

from ..service.shared_match import PERSON, TakenSeat
from .frame import choice, text_in


class SeatForm:
    """Fields for the player of a role.

    Args:
        role: name of the role
        seat: who plays it so far
        kinds: name of each player -> `about`, `options`, and whether it `remembers`
    """

    def __init__(self, role: str, seat: TakenSeat, kinds: Mapping[str, Any]) -> None:
        self.role, self._kinds = role, kinds
        name, _, options = seat.player.partition(":")
        names = {PERSON: "person"} | {name: name for name in kinds}
        with ui.column().classes("gap-0 w-full"):
            self._name = choice(names, name, role, self._chosen).classes("w-full")
            self._options = (
                ui.input("Options, such as simulations=400", value=options).classes("w-full gl-mono").props("dense")
            )
            self._remembers = ui.checkbox("remembers: keeps what it learns in the store", value=seat.remembers)
            with ui.expansion("About this player").props("dense").classes("text-sm w-full") as self._more:
                self._about = ui.label().classes("gl-faint")
                self._names = ui.label().classes("gl-mono")
        self._chosen()

    @property
    def seat(self) -> TakenSeat:
        """The seat as it was chosen."""
        name = self._name.value or PERSON
        if name == PERSON:
            return TakenSeat()
        options = text_in(self._options).strip()
        return TakenSeat(f"{name}:{options}" if options else name, self._keeps(name))

    def _keeps(self, name: str) -> bool:
        """Return whether the player keeps what it learns; learners always do."""
        kind = self._kinds[name]
        return bool(kind["always"] or (kind["remembers"] and self._remembers.value))

    def _chosen(self) -> None:
        kind = self._kinds.get(self._name.value)
        self._options.set_visibility(bool(kind and kind["options"]))
        self._remembers.set_visibility(bool(kind and kind["remembers"] and not kind["always"]))
        self._more.set_visibility(kind is not None)
        self._about.set_text(kind["about"] if kind else "")
        self._names.set_text(f"Options: {', '.join(kind['options'])}" if kind and kind["options"] else "")
