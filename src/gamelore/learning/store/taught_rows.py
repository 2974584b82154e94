"""Values of a game in a knowledge store: what a lesson or a rival has taught, and n-tuple networks.

taught   see lesson_rows.py; a value may have a network as well
network  game, pupil, number, facts,   networks, for the value of the same pupil and number. facts: JSON, the texts of
         packed                        the facts that the tuples read; packed: see memory/lesson.py
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

from .schema import Count, Line, Real, Small, Weight, from_json, to_json, typed

Share = Annotated[float, Meta(ge=0, le=1)]
Single = Annotated[float, Meta(ge=-1e30, le=1e30)]
"""A number of a value: sums of many of them are finite in float32, too."""
UNDECIDED = -1.0  # stored as the share of informed playouts without a decision


class StoredNetwork(NamedTuple):
    """An n-tuple network as the store has it.

    facts   the facts that its tuples read, as texts
    packed  its arrays, in the form of memory/lesson.py
    """

    facts: tuple[Line, ...]
    packed: bytes


class StoredValue(NamedTuple):
    """A value as the store has it, with the playouts that go with it; facts are texts.

    determination, foresight  see `search.value.LinearValue`
    informed   share of the playouts that are informed; None if no trial has decided
    constants  a number for each role; () if there is no value
    weights    for each fact, a weight for each role
    network    the network that takes the place of the weights in the search; None for none
    """

    determination: float
    foresight: float
    informed: float | None
    constants: tuple[float, ...]
    weights: Mapping[str, tuple[float, ...]]
    network: StoredNetwork | None = None


NOTHING = StoredValue(0.0, 0.0, None, (), {})
"""The value of a lesson before the end of its first generation."""


class Taught(NamedTuple):
    """A value that was taught, with the walks, or positions of self-play, and the CPU seconds that this took."""

    number: int
    walks: int
    seconds: float
    value: StoredValue


class GenerationRow(NamedTuple):
    """A generation of teaching: how long it took together with all before, and what its linear value explains.

    is_network  whether it has taught a network, beside which the linear value stays as it was
    """

    number: Small
    walks: Count
    seconds: Weight
    determination: Share
    foresight: Share
    is_network: bool


class _GenerationCells(NamedTuple):
    number: Small
    walks: Count
    seconds: Weight
    determination: Share
    foresight: Share
    kind: Literal["network", "linear"]


class _TaughtCells(NamedTuple):
    number: Small
    walks: Count
    seconds: Weight
    determination: Share
    foresight: Share
    informed: Real
    constants: str
    weights: str
    roles: str  # of the game
    facts: str | None
    packed: bytes | None


_TAUGHT = (
    "SELECT taught.number, walks, seconds, determination, foresight, informed, constants, weights, roles, facts, "
    "packed FROM taught JOIN game ON game.id = taught.game LEFT JOIN network ON network.game = taught.game AND "
    "network.pupil = taught.pupil AND network.number = taught.number WHERE taught.game = ? AND taught.pupil = ?"
)
_GENERATIONS = (
    "SELECT number, walks, seconds, determination, foresight, iif(EXISTS (SELECT 1 FROM network WHERE "
    "game = taught.game AND pupil = taught.pupil AND number = taught.number), 'network', 'linear') FROM taught "
    "WHERE game = ? AND pupil = ? ORDER BY number"
)


def put_rows(
    connection: sqlite3.Connection,
    table: str,
    rows: Iterable[Sequence[Any]],
    otherwise: Literal["REPLACE", "IGNORE"] = "REPLACE",
) -> None:
    """Insert rows. `otherwise`: what becomes of a row whose key is in the table already."""
    rows = list(rows)
    if rows:
        places = ", ".join("?" * len(rows[0]))
        connection.executemany(f"INSERT OR {otherwise} INTO {table} VALUES ({places})", rows)


def decided(informed: float) -> float | None:
    """Return the share of informed playouts in a cell; None without a decision."""
    return None if informed == UNDECIDED else informed


def values_of(
    connection: sqlite3.Connection, game: int | None, pupil: str, number: int | Literal["all", "newest"] = "all"
) -> list[Taught]:
    """Return the values of a pupil, in their order; with a number, or with "newest", at most one of them."""
    order = {"all": "ORDER BY taught.number", "newest": "ORDER BY taught.number DESC LIMIT 1"}
    chosen = f"AND taught.number = {number:d}" if isinstance(number, int) else order[number]
    rows = typed(connection.execute(f"{_TAUGHT} {chosen}", (game, pupil)), _TaughtCells)
    return [Taught(row.number, row.walks, row.seconds, _value(row)) for row in rows]


def generations_of(connection: sqlite3.Connection, game: int | None, pupil: str) -> list[GenerationRow]:
    """Return the generations of a pupil that have ended, in their order."""
    rows = typed(connection.execute(_GENERATIONS, (game, pupil)), _GenerationCells)
    return [GenerationRow(*row[:-1], row.kind == "network") for row in rows]


def put_values(
    connection: sqlite3.Connection,
    game: int,
    pupil: str,
    values: Sequence[Taught],
    otherwise: Literal["REPLACE", "IGNORE"] = "REPLACE",
) -> None:
    """Write values of a pupil. `otherwise`: what becomes of one whose number is in the store already."""
    if otherwise == "IGNORE":
        query = "SELECT number FROM taught WHERE game = ? AND pupil = ?"
        numbers = {number for (number,) in connection.execute(query, (game, pupil))}
        values = [value for value in values if value.number not in numbers]
    put_rows(connection, "taught", ((game, pupil, *_cells(value)) for value in values))
    networks = ((taught.number, taught.value.network) for taught in values)
    rows = [(game, pupil, number, to_json(list(own.facts)), own.packed) for number, own in networks if own is not None]
    put_rows(connection, "network", rows)


def delete_values(connection: sqlite3.Connection, game: int, pupil: str) -> None:
    """Delete the values of a pupil."""
    for table in ("taught", "network"):
        connection.execute(f"DELETE FROM {table} WHERE game = ? AND pupil = ?", (game, pupil))


def _value(row: _TaughtCells) -> StoredValue:
    """Return the value in a row. Raise a MsgspecError if it lacks a number for a role."""
    constants = msgspec.convert(from_json(row.constants), tuple[Single, ...])
    weights = msgspec.convert(from_json(row.weights), dict[Line, tuple[Single, ...]])
    if len(constants) not in (0, num_roles := len(from_json(row.roles))):
        raise msgspec.ValidationError(f"{len(constants)} constants for {num_roles} roles")
    if any(len(own) != len(constants) for own in weights.values()):
        raise msgspec.ValidationError(f"expected {len(constants)} weights for each fact, got another number")
    network = None
    if row.facts is not None and row.packed is not None:
        network = StoredNetwork(msgspec.convert(from_json(row.facts), tuple[Line, ...]), row.packed)
    return StoredValue(row.determination, row.foresight, decided(row.informed), constants, weights, network)


def _cells(taught: Taught) -> tuple[object, ...]:
    """Return the cells of a value after the game and the pupil."""
    value = taught.value
    informed = UNDECIDED if value.informed is None else value.informed
    texts = to_json(list(value.constants)), to_json(dict(value.weights))
    return *taught[:3], value.determination, value.foresight, informed, *texts
