"""The claims of a paper: read from claims.toml, judged by statistics, and written as a table and as claims.csv.

The comment at the top of each claims.toml explains its keys. The reader is strict: it raises an ExperimentError that
names the entry for an unknown key, a missing key, a value of a wrong type, or an id that is used twice.

A *measure* of a paper is a function. Its arguments are the evidence (the results of the runs) and the parameters of
the claim. It returns samples (one number per run), booleans (one per run), an interval, or an interval with its
p-value.
"""

from __future__ import annotations

import csv
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import ExperimentError
from . import stats
from .figures import VERDICT_COLOURS, write_rows
from .report import TableBlock, p_text, span
from .stats import Array, Interval, Verdict

FORMAT = 1
TESTS = {"above": ">", "below": "<", "within": "in", "equals": "="}


@dataclass(frozen=True)
class Claim:
    """A statement that can be tested. `target` is (low, high) for the test "within", and (number,) for other tests."""

    id: str
    place: str
    quote: str
    measure: str
    of: dict[str, Any]
    test: str
    target: tuple[float, ...]
    max_runs: int = 0
    margin: float = 0.0
    paper: str = ""
    half_width: float | None = None
    note: str = ""

    @property
    def directional(self) -> bool:
        """Whether the claim is tested by a p-value. Holm's correction is made over all such claims."""
        return self.test in ("above", "below")


# ---- files of claims ----


def read_claims(path: Path) -> dict[str, Claim]:
    """Read a file of claims and return them by id. Raise ExperimentError if it is not a valid file of claims."""
    return by_id(entries(read_tables(path)))


def read_tables(path: Path, tables: Iterable[str] = ()) -> dict[str, Any]:
    """Read a file of claims, which must also have these tables, and return all its tables.

    Raise ExperimentError if the file cannot be read, has another format, or has other tables.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ExperimentError(f"expected a file of claims at {path}, got: {error}") from error
    check_keys(data, {"format", "claim", *tables}, set(), "the file")
    if data["format"] != FORMAT:
        raise ExperimentError(f"expected claims of format {FORMAT} in {path}, got format {data['format']!r}")
    return data


def entries(data: dict[str, Any]) -> Iterator[Claim]:
    """Yield the claim of each [[claim]] of a file. Raise ExperimentError for an entry that is not valid."""
    yield from map(_claim, data["claim"])


def by_id(claims: Iterable[Claim]) -> dict[str, Claim]:
    """Return the claims by id. Raise ExperimentError if an id occurs twice."""
    named: dict[str, Claim] = {}
    for claim in claims:
        if claim.id in named:
            raise ExperimentError(f"expected every claim id once, got {claim.id} twice; rename one of the claims")
        named[claim.id] = claim
    return named


_REQUIRED = {"id", "place", "quote", "measure", "of", "test", "target", "max_runs"}
_OPTIONAL = {"margin", "paper", "half_width", "note"}
_TYPES: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("id", "place", "quote", "measure", "test", "note"), str), "of": dict, "max_runs": int,
    **dict.fromkeys(("margin", "half_width"), (int, float)),
}  # fmt: skip


def _claim(entry: dict[str, Any]) -> Claim:
    where = str(entry.get("id", "a claim without id"))
    check_keys(entry, _REQUIRED, _OPTIONAL, where)
    for key in _TYPES.keys() & entry.keys():
        _check_type(entry[key], _TYPES[key], f"{where}.{key}")
    if entry["test"] not in TESTS:
        raise ExperimentError(f"expected one of {', '.join(TESTS)} as the test of {where}, got {entry['test']!r}")
    if entry["max_runs"] and "half_width" not in entry:
        raise ExperimentError(f"expected a half_width in {where}, because it has max_runs, got none; add half_width")
    target = entry["target"] if isinstance(entry["target"], list) else [entry["target"]]
    for number in target:
        _check_type(number, (int, float), f"{where}.target")
    if len(target) != (2 if entry["test"] == "within" else 1):
        wanted = "[low, high] for the test within, and one number for other tests,"
        raise ExperimentError(f"expected {wanted} as the target of {where}, got {entry['target']}")
    return Claim(**{**entry, "target": tuple(map(float, target)), "paper": str(entry.get("paper", ""))})


def check_keys(entry: dict[str, Any], required: set[str], optional: set[str], where: str) -> None:
    """Raise ExperimentError if a table of the file lacks a required key or has an unknown key."""
    if missing := required - entry.keys():
        raise ExperimentError(f"expected the key {min(missing)} in {where}, got none; add this key")
    if unknown := entry.keys() - required - optional:
        raise ExperimentError(
            f"expected only the keys {', '.join(sorted(required | optional))} in {where}, got {min(unknown)}; remove it"
        )


def _check_type(value: object, kind: type | tuple[type, ...], where: str) -> None:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ExperimentError(f"expected a value of another type in {where}, got {value!r}")


# ---- findings ----

Samples: TypeAlias = "Array | NDArray[np.bool_] | Interval | tuple[Interval, float]"
"""The result of a measure."""


@dataclass(frozen=True)
class ClaimFinding:
    """The measured number of a claim, and its verdict.

    p         the p-value before Holm's correction; None if the test has no p-value
    adjusted  the p-value after Holm's correction; None if the test has no p-value
    settings  ids of the settings that the number was computed from; empty if the evidence does not record them
    wanted    cautious estimate of the number of runs that gives an interval of the wanted half-width; 0 if the claim
              is not measured on runs
    """

    claim: Claim
    interval: Interval
    p: float | None
    adjusted: float | None
    verdict: Verdict
    settings: tuple[str, ...]
    wanted: int

    @property
    def sampled(self) -> bool:
        """Whether the number comes from runs. Other numbers are counted in the games and are equal in every reading."""
        return bool(self.settings) or self.interval.num > 0


def judge(
    claims: Iterable[Claim], measures: Mapping[str, Callable[..., Samples]], evidence: Any, touched: set[str]
) -> list[ClaimFinding]:
    """Measure and judge every claim. Holm's correction is made over all directional claims together.

    touched: a set that belongs to the evidence. Whenever a measure reads a setting, the evidence adds the id of the
        setting to this set.
    """
    claims, tested, settings = list(claims), [], []
    for claim in claims:
        if claim.measure not in measures:
            raise ExperimentError(
                f"expected one of the measures {', '.join(measures)}, got {claim.measure!r} in {claim.id}"
            )
        touched.clear()
        tested.append(_tested(measures[claim.measure](evidence, **claim.of), claim))
        settings.append(tuple(sorted(touched)))
    family = [i for i, (interval, p) in enumerate(tested) if p is not None]
    adjusted = dict(zip(family, stats.holm([p for _, p in tested if p is not None]).tolist(), strict=True))
    findings = []
    for i, (claim, (interval, p)) in enumerate(zip(claims, tested, strict=True)):
        verdict, sampled = _verdict(claim, interval, adjusted.get(i)), claim.max_runs and claim.half_width
        wanted = stats.runs_for(stats.cautious_spread(interval), claim.half_width or 0.0) if sampled else 0
        findings.append(ClaimFinding(claim, interval, p, adjusted.get(i), verdict, settings[i], wanted))
    return findings


def _tested(samples: Samples, claim: Claim) -> tuple[Interval, float | None]:
    """Return the interval of the samples, and the two-sided p-value if the claim is directional."""
    null = claim.target[0] if claim.directional else 0.0
    if isinstance(samples, tuple):
        interval, p = samples
    elif isinstance(samples, Interval):
        interval, p = samples, stats.interval_p_value(samples, null)
    elif samples.dtype == np.bool_:
        hits, num = int(samples.sum()), samples.size
        interval, p = stats.share_interval(hits, num), stats.share_p_value(hits, num, null)
    else:
        interval, p = stats.mean_interval(samples), stats.p_value(samples, null)
    return interval, p if claim.directional and interval.num else None


def _verdict(claim: Claim, interval: Interval, adjusted: float | None) -> Verdict:
    if np.isnan(interval.mean) or interval.few_that_agree:
        return "undecided"
    if claim.test in ("within", "equals"):
        return stats.judge_within(interval, claim.target[0], claim.target[-1])
    sign = 1 if claim.test == "above" else -1
    return stats.judge_side(interval, adjusted or 0.0, sign, claim.target[0], claim.margin)


def verdict_counts(verdicts: Iterable[str]) -> str:
    """Return the number of claims with each verdict as text, such as `5 reproduced, 2 undecided`."""
    counts = Counter(verdicts)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICT_COLOURS if counts[verdict])


# ---- the project's own verdicts ----


@dataclass(frozen=True)
class CommittedVerdict:
    """The project's own number and verdict for a claim, from hundreds of runs with fresh seeds."""

    interval: Interval
    verdict: str

    def words(self, decimals: int = 2, sign: bool = False) -> str:
        """Return the verdict as text: `verdict of 500 runs: undecided, +0.27 [+0.00, +0.54]`."""
        return f"verdict of {self.interval.num} runs: {self.verdict}, {span(self.interval, decimals, sign)}"


Committed: TypeAlias = Mapping[tuple[str, str], CommittedVerdict]
"""(claim id, reading) -> verdict. The reading is an empty text if the paper has only one reading."""


@cache
def read_committed(path: Path) -> Committed:
    """Read the project's own verdicts from the file `committed.csv` in the folder of a paper's code.

    The file is a copy of docs/PAPER/claims.csv. An installed package does not contain the folder docs.
    """
    verdicts = {}
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            mean, low, high = (float(row[name]) for name in ("mean", "low", "high"))
            interval = Interval(mean, low, high, int(row["runs"]))
            verdicts[row["claim"], row.get("reading", "")] = CommittedVerdict(interval, row["verdict"])
    return verdicts


# ---- findings as rows ----


def claims_table(
    findings: Iterable[tuple[str, ClaimFinding]], committed: Committed | None, readings: bool = False
) -> TableBlock:
    """Return the table of claims with their verdicts.

    `findings` are pairs (reading, finding). `readings` adds a column with the reading; a paper may have several.
    If `committed` is given, the verdicts of the findings are marked as preliminary, and a further column has the
    project's own verdicts.
    """
    rows = []
    for reading, finding in findings:
        claim = finding.claim
        claimed = f"{TESTS[claim.test]} {' to '.join(f'{round(number, 2):g}' for number in claim.target)}"
        if claim.directional and claim.margin:
            claimed += f" (margin {claim.margin:g})"
        words = f"“{claim.quote}” ({claim.place}).{f' Here: {claim.note}.' if claim.note else ''}"
        shown = (reading if finding.sampled else "any",) if readings else ()
        number, runs, p = span(finding.interval), str(finding.interval.num or ""), p_text(finding.adjusted)
        final = (committed[claim.id, reading].verdict,) if committed else ()
        rows.append((f"`{claim.id}`", words, *shown, claim.paper, claimed, number, runs, p, finding.verdict, *final))
    last = ("preliminary", "the project's verdict") if committed else ("verdict",)
    reading_name = ("reading",) if readings else ()
    header = ("claim", "words and place in the paper", *reading_name, "paper", "claimed", "ours", "runs", "p", *last)
    first = 4 + readings
    return TableBlock(header, rows, (first, first + 1, first + 2))


def write_findings(
    path: Path,
    columns: Sequence[str],
    findings: Iterable[tuple[str, ClaimFinding]],
    more: Callable[[ClaimFinding], dict[str, str]] = lambda finding: {},
) -> Path:
    """Write a CSV file with these columns and one row for each pair (reading, finding).

    `more` returns the cells of a finding in columns that not every file of findings has.
    """
    cells = [_cells(reading, finding) | more(finding) for reading, finding in findings]
    return write_rows(path, columns, [[row[column] for column in columns] for row in cells])


def _cells(reading: str, finding: ClaimFinding) -> dict[str, object]:
    claim, interval = finding.claim, finding.interval
    p, p_holm = ("" if p is None else f"{p:.3g}" for p in (finding.p, finding.adjusted))
    return {
        "claim": claim.id, "reading": reading, "place": claim.place, "measure": claim.measure, "test": claim.test,
        "target": " ".join(f"{x:g}" for x in claim.target), "margin": claim.margin, "paper": claim.paper,
        "mean": interval.mean, "low": interval.low, "high": interval.high, "runs": interval.num,
        "runs_wanted": finding.wanted, "p": p, "p_holm": p_holm, "verdict": finding.verdict,
        "settings": " ".join(finding.settings),
    }  # fmt: skip
