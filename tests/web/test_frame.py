"""What a browser sends is not what a page expects: fields, sliders, boards and dialogs bear it."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("nicegui", reason="the web page needs NiceGUI: pip install 'gamelore[web]'")

from gamelore.web.pages.clickable_board import ClickableBoard
from gamelore.web.pages.frame import answer_of, place_on, text_in

ODD: list[Any] = [None, True, 7, 0.5, [], {}, [[1]], {"a": 1}]


@pytest.mark.parametrize("value", ODD)
def test_a_field_without_text_is_empty(value: Any) -> None:
    assert text_in(SimpleNamespace(value=value)) == ""  # type: ignore[arg-type]


def test_the_text_of_a_field_is_its_value() -> None:
    assert text_in(SimpleNamespace(value="Mark")) == "Mark"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "place"),
    [(3, 3), (3.0, 3), (-1, 0), (1e308, 0), (float("nan"), 0), (10**400, 0), ("3", 0), (None, 0), ([], 0), ({}, 0)],
)
def test_the_place_of_a_slider_is_a_number(value: Any, place: int) -> None:
    assert place_on(value) == place


@pytest.mark.parametrize(
    "given",
    [*ODD, "x", {"indices": "0", "ply": 0}, {"indices": [], "ply": 0}, {"indices": [0]}, {"indices": [0], "ply": 0}],
)
def test_a_board_takes_no_click_that_is_none(given: Any) -> None:
    moves: list[Any] = []
    board: Any = SimpleNamespace(_on_move=lambda *move: moves.append(move))
    ClickableBoard._moved(board, SimpleNamespace(args=given))  # type: ignore[arg-type]
    assert moves == []
    ClickableBoard._moved(board, SimpleNamespace(args={"indices": [0], "ply": 2, "role": "red"}))  # type: ignore[arg-type]
    assert moves == [([0], 2, "red")]


class Dialog:
    """A dialog that is submitted at once, or was deleted with its page."""

    def __init__(self, is_deleted: bool) -> None:
        self.is_deleted, self.num_deletions = is_deleted, 0

    def __await__(self) -> Iterator[Any]:
        return None if self.is_deleted else True
        yield

    def delete(self) -> None:
        self.num_deletions += 1


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_dialog_is_deleted_once(is_deleted: bool) -> None:
    dialog = Dialog(is_deleted)
    asking = answer_of(dialog)  # type: ignore[arg-type]
    with pytest.raises(StopIteration) as ended:
        asking.send(None)
    assert ended.value.value is (None if is_deleted else True)
    assert dialog.num_deletions == (not is_deleted)
