"""The board of a page: a picture of a position on which moves are made by clicks, see clickable_board.js."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nicegui.element import Element
from nicegui.events import GenericEventArguments


class ClickableBoard(Element, component="clickable_board.js"):
    """A picture of a position whose places can be clicked, also by keyboard.

    Args:
        on_move: called with the indices of the moves that the clicks mean, and the ply and the role that were shown
        label: name of the board for screen readers
    """

    def __init__(self, on_move: Callable[[list[int], int, str], None], label: str = "board") -> None:
        super().__init__()
        self._props.update(svg="", paths=[], ply=0, role="", label=label, spoken="")
        self._on_move = on_move
        self.on("move", self._moved)

    def show(
        self, svg: str, paths: Sequence[Sequence[Sequence[int]]], ply: int, spoken: str = "", role: str = ""
    ) -> None:
        """Show a position.

        Args:
            svg: picture made by `state_svg` with handles; it is not escaped again
            paths: for each legal move its steps of clicks; empty if nobody may move
            ply: number of the position
            spoken: what screen readers say
            role: the role whose moves they are
        """
        shown = {"svg": svg, "paths": paths, "ply": ply, "spoken": spoken, "role": role}
        if any(self._props[name] != value for name, value in shown.items()):  # a picture is large
            self._props.update(shown)
            self.update()

    def _moved(self, event: GenericEventArguments) -> None:
        given = event.args if isinstance(event.args, dict) else {}
        indices, ply, role = given.get("indices"), given.get("ply"), given.get("role")
        if not (isinstance(indices, list) and isinstance(ply, int) and isinstance(role, str)):
            return
        if indices and all(isinstance(i, int) for i in indices):
            self._on_move(indices, ply, role)
