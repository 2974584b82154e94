"""What a paper says, as data: each claim with its endpoint, direction, margin and number of runs.

The file's own header explains its keys. Reading it is strict: an unknown or missing key, a wrong type or a second use
of an id is an ExperimentError that names the entry.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, permutations, product
from pathlib import Path
from typing import Any

from ..errors import ExperimentError
from ..learn.table1 import FIGURE_2, TABLE_1

FORMAT = 1
TESTS = ("above", "below", "within", "equals")
OPPONENTS = ("egreedy", "random", "weak")
"""The columns of Table 1, in its order."""
BANERJEE2007 = Path(__file__).with_name("banerjee2007_claims.toml")


@dataclass(frozen=True)
class Claim:
    """One testable sentence; `target` is (low, high) for the test "within" and (number,) else."""

    id: str
    place: str
    quote: str
    measure: str
    of: dict[str, Any]
    test: str
    target: tuple[float, ...]
    max_runs: int
    margin: float = 0.0
    paper: str = ""
    half_width: float | None = None
    note: str = ""

    @property
    def directional(self) -> bool:
        """Whether it is tested by a p, and so belongs to the family that is corrected."""
        return self.test in ("above", "below")


@dataclass(frozen=True)
class PrintedTable:
    """Table 1: feature text and values (egreedy, random, weak) of every letter, and groups with unknown order."""

    features: dict[str, str]
    values: dict[str, tuple[float, float, float]]
    groups: tuple[str, ...]

    @classmethod
    def of_the_paper(cls) -> PrintedTable:
        """As learn/table1.py has it."""
        pairs = [(letter, text) for group, texts in FIGURE_2.items() for letter, text in zip(group, texts, strict=True)]
        return cls(dict(sorted(pairs)), TABLE_1, tuple(group for group in FIGURE_2 if len(group) > 1))

    def column(self, opponent: str) -> dict[str, float]:
        """Letter -> printed value against this opponent."""
        return {letter: row[OPPONENTS.index(opponent)] for letter, row in self.values.items()}

    def printed(self, opponent: str) -> dict[str, float]:
        """Feature text -> printed value."""
        return {self.features[letter]: value for letter, value in self.column(opponent).items()}

    def assignments(self) -> Iterator[dict[str, str]]:
        """Every letter -> feature text that the paper's words allow, the assumed one first."""
        for orders in product(*(permutations(group) for group in self.groups)):
            moved = dict(zip("".join(self.groups), chain(*orders), strict=True))
            yield {letter: self.features[moved.get(letter, letter)] for letter in self.features}


@dataclass(frozen=True)
class Claims:
    """A paper's claims by id, and its table."""

    claims: dict[str, Claim]
    table: PrintedTable
    path: Path = field(default=BANERJEE2007)

    def __iter__(self) -> Iterator[Claim]:
        return iter(self.claims.values())


def load_claims(path: Path = BANERJEE2007) -> Claims:
    """Reads a file of claims that has a table; raises ExperimentError where it is not one."""
    data = _read(path, {"format", "table1", "claim"})
    table, entries = _table(data["table1"])
    return Claims(_by_id([*map(_claim, data["claim"]), *entries]), table, path)


def read_claims(path: Path) -> dict[str, Claim]:
    """Reads a file of claims alone, by id; raises ExperimentError where it is not one."""
    return _by_id(map(_claim, _read(path, {"format", "claim"})["claim"]))


def _read(path: Path, keys: set[str]) -> dict[str, Any]:
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ExperimentError(f"expected a file of claims at {path}, got: {error}") from error
    _keys(data, keys, set(), "the file")
    if data["format"] != FORMAT:
        raise ExperimentError(f"expected claims of format {FORMAT} in {path}, got {data['format']!r}")
    return data


def _by_id(entries: Iterable[Claim]) -> dict[str, Claim]:
    claims: dict[str, Claim] = {}
    for entry in entries:
        if entry.id in claims:
            raise ExperimentError(f"expected every claim once, got {entry.id} twice; rename one")
        claims[entry.id] = entry
    return claims


_REQUIRED = {"id", "place", "quote", "measure", "of", "test", "target", "max_runs"}
_OPTIONAL = {"margin", "paper", "half_width", "note"}


def _claim(entry: dict[str, Any]) -> Claim:
    where = str(entry.get("id", "a claim without id"))
    _keys(entry, _REQUIRED, _OPTIONAL, where)
    for key in ("id", "place", "quote", "measure", "test", "note"):
        _type(entry.get(key, ""), str, f"{where}.{key}")
    _type(entry["of"], dict, f"{where}.of")
    _type(entry["max_runs"], int, f"{where}.max_runs")
    for key in ("margin", "half_width"):
        _type(entry.get(key, 0), (int, float), f"{where}.{key}")
    if entry["test"] not in TESTS:
        raise ExperimentError(f"expected {' | '.join(TESTS)} as test of {where}, got {entry['test']!r}")
    if entry["max_runs"] and "half_width" not in entry:
        raise ExperimentError(f"expected a half_width in {where}, since runs are spent on it; add one")
    return Claim(**{**entry, "target": _target(entry, where), "paper": str(entry.get("paper", ""))})


def _target(entry: dict[str, Any], where: str) -> tuple[float, ...]:
    target = entry["target"]
    parts = target if isinstance(target, list) else [target]
    for part in parts:
        _type(part, (int, float), f"{where}.target")
    if len(parts) != (2 if entry["test"] == "within" else 1):
        raise ExperimentError(f"expected [low, high] for within and a number else as target of {where}, got {target}")
    return tuple(map(float, parts))


def _table(data: dict[str, Any]) -> tuple[PrintedTable, list[Claim]]:
    _keys(data, {"place", "quote", "margin", "half_width", "max_runs"}, set(), "table1")
    table = PrintedTable.of_the_paper()
    shared = {key: data[key] for key in ("place", "quote", "half_width", "max_runs")}
    cells = product(table.features, OPPONENTS)
    return table, [_cell(table, letter, opponent, data["margin"], shared) for letter, opponent in cells]


def _cell(table: PrintedTable, letter: str, opponent: str, margin: float, shared: dict[str, Any]) -> Claim:
    value = table.column(opponent)[letter]
    return Claim(
        id=f"table1.{letter}-{opponent}",
        measure="table1_value",
        of={"feature": letter, "opponent": opponent},
        test="within",
        target=(value - margin, value + margin),
        margin=margin,
        paper=f"{value:g}",
        **shared,
    )


def _keys(entry: dict[str, Any], required: set[str], optional: set[str], where: str) -> None:
    if missing := required - entry.keys():
        raise ExperimentError(f"expected the key {min(missing)} in {where}, got none; add it")
    if unknown := entry.keys() - required - optional:
        raise ExperimentError(
            f"expected no key {min(unknown)} in {where}; known are {', '.join(sorted(required | optional))}"
        )


def _type(value: object, kind: type | tuple[type, ...], where: str) -> None:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ExperimentError(f"expected another type of value in {where}, got {value!r}")
