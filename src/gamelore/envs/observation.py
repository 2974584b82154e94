"""Observations: the facts of a state as numbers 0 and 1, in a row or as planes on the board."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from ..circuit.lanes import NOWHERE
from ..drawing.board import Board, Boards, Kind, Place
from ..errors import GameloreError, check_word
from ..game.engines import unpack_bits
from ..game.game import Game

ObservationKind: TypeAlias = Literal["auto", "facts", "planes"]
MOST_OTHERS = 64  # facts on no board up to which "auto" makes planes; each of them fills a whole plane


@dataclass(frozen=True)
class Observation:
    """How a state is observed: an array of 0 and 1 in which each place belongs to a fact.

    Nothing is turned or exchanged for the role that observes, so all roles see the same.

    Attributes:
        kind: "facts" for a row of all facts, or "planes" for planes of height x width: one for each content of the
            board's places, and a plane that is all 0 or all 1 for each fact that is on no board.
        shape: the shape of an observation.
        index: int64[size], the number of the fact for each place in order, or -1 where there is none: always 0.
        meanings: what each fact or plane means.
    """

    kind: str
    shape: tuple[int, ...]
    index: NDArray[np.int64]
    meanings: tuple[str, ...]

    @classmethod
    def of(cls, game: Game, kind: ObservationKind = "auto") -> Observation:
        """Return the observation of a game.

        Args:
            game: a game that is compiled as a whole.
            kind: "facts" or "planes"; "auto" takes planes if the game has a board of squares, and at most
                MOST_OTHERS facts on no board of this size.

        Raises:
            GameloreError: the game is not compiled as a whole, or has no board of squares for planes.
        """
        check_word("observation", kind, get_args(ObservationKind))
        if game.native is None:
            raise GameloreError(
                f"expected a game that is compiled as a whole, got {game.name} on the {game.engine} engine: "
                f"{game.engine_reason}"
            )
        texts = game.fact_texts
        grid = _Grid.of(game, texts) if kind != "facts" else None
        if grid is None and kind == "planes":
            raise GameloreError(
                f"expected a game with a board of squares for planes, got {game.name}; take the observation facts"
            )
        if grid is None or (kind == "auto" and len(grid.others) > MOST_OTHERS):
            return cls("facts", (len(texts),), np.arange(len(texts)), texts)
        return grid.planes()

    def observe(self, states: NDArray[np.uint64]) -> NDArray[np.uint8]:
        """Return the observations of states, uint64[batch, words]: uint8[batch, *shape]."""
        bits = unpack_bits(states, 64 * states.shape[1])
        seen = np.where(self.index == NOWHERE, 0, bits[:, self.index])
        return seen.reshape(len(states), *self.shape).astype(np.uint8)

    def describe(self) -> str:
        """Return a text about the shape, and the meaning of each fact or plane."""
        what = "fact" if self.kind == "facts" else "plane"
        head = f"{self.kind}, shape {' x '.join(map(str, self.shape))}, of 0 and 1; each {what} by its number:"
        return "\n".join([head, *(f"{number:>4}  {text}" for number, text in enumerate(self.meanings))])


@dataclass(frozen=True)
class _Grid:
    """The boards of squares of one size, and the facts that lie on them.

    facts: (number of the board, layer, row, column, content) -> number of the fact
    others: the facts on none of these boards, number -> text
    """

    boards: Sequence[Board]
    height: int
    width: int
    facts: dict[tuple[int, int, int, int, str], int]
    others: dict[int, str]

    @classmethod
    def of(cls, game: Game, texts: Sequence[str]) -> _Grid | None:
        """Return the grid of the largest boards of squares; None if there is none."""
        kinds: tuple[Kind, ...] = ("squares",)
        boards = Boards.of(game, kinds=kinds)
        sizes = {(len(board.rows), len(board.columns)) for board in boards.boards if len(board.order) > 1}
        if not sizes:
            return None
        height, width = max(sizes, key=prod)
        chosen = [board for board in boards.boards if (len(board.rows), len(board.columns)) == (height, width)]
        numbers, facts, others = {board.function: i for i, board in enumerate(chosen)}, {}, {}
        for number, text in enumerate(texts):
            lying = boards.place_of(text)
            if lying is None or lying[0].function not in numbers:
                others[number] = text
            else:
                board = numbers[lying[0].function]
                facts[board, *_spot(chosen[board], lying[0]), lying[1]] = number
        return cls(chosen, height, width, facts, others)

    def planes(self) -> Observation:
        """Return the observation by planes: first of the boards, then of the other facts."""
        meanings, planes = [], []
        for board, layer, content, text in self._contents():
            plane = np.full((self.height, self.width), NOWHERE, np.int64)
            for (of, on, row, column, what), fact in self.facts.items():
                if (of, on, what) == (board, layer, content):
                    plane[row, column] = fact
            meanings.append(text)
            planes.append(plane)
        for fact, text in self.others.items():
            meanings.append(text)
            planes.append(np.full((self.height, self.width), fact, np.int64))
        shape = (len(planes), self.height, self.width)
        return Observation("planes", shape, np.array(planes, np.int64).ravel(), tuple(meanings))

    def _contents(self) -> Iterator[tuple[int, int, str, str]]:
        """Yield the planes of the boards: (number of the board, layer, content, text)."""
        for board, layer, content in dict.fromkeys((of, on, what) for of, on, _, _, what in sorted(self.facts)):
            name = self.boards[board].name
            several = len({on for of, on, *_ in self.facts if of == board}) > 1
            yield board, layer, content, f"({name} .. {content})" + (f", layer {layer + 1}" if several else "")


def _spot(board: Board, place: Place) -> tuple[int, int, int]:
    """Return layer, row and column of a place; rows count from the top."""
    at, layers = place.at, [layer for row in board.layers for layer in row]
    fixed = {number: value for number, value in enumerate(at) if number not in (board.across, board.down)}
    return layers.index(fixed), board.rows.index(at[board.down]), board.columns.index(at[board.across])
