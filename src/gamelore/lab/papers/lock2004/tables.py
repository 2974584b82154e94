"""The tables of the report on Lock & Epstein 2004: results of runs, exact baselines, and classes of sequences.

The exact baselines and the classes of sequences are computed for lose tic-tac-toe without any runs. A sequence of three
moves is a triple of different squares. The 8 symmetries of the square divide these triples into 66 classes. A sequence
is a duet or a solo, and belongs to one of two contestants. So there are 2 x 2 x 66 = 264 classes of sequences.

All matches of the game are enumerated to find out which classes can be learned. The tables count three sets of classes:
1. the classes that occur in some match;
2. the classes that occur in some match that their contestant won or drew;
3. the classes that occur in some such match with at least one perfect player. All training matches have such a player.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cache, lru_cache
from itertools import chain, permutations, product
from pathlib import Path
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from ....catalogue import player
from ....learning.sequences.extraction import DUET, KIND_NAMES, SOLO, canonical_pairs, excerpts
from ....learning.sequences.patterns import Patterns
from ....learning.sequences.seqlearner import WEIGHTS, Curriculum, match_results
from ....matches.lockstep import Uniform, expected
from ....players.player import TERMINAL, Finished, Memoryless
from ....players.position_graph import PositionGraph
from ....rulesheets import load
from ....solver.perfect import SolvedMoves
from ... import stats
from ...figures import write_rows
from ...report import TableBlock, p_text, span
from ...stats import Array
from . import plan as paper
from .measures import ArmResult, Raised, Study, Tried
from .plan import Column
from .runs import SOURCES, STRATEGIES

CLASS_NAMES = (".9 to 1", ".8 to .9", ".7 to .8", ".55 to .7 (tier 3)")
_COUNTS: tuple[tuple[str, str, dict[str, float]], ...] = (
    ("strong pairs", "pairs with weights .55 to 1, in total", paper.PAIRS),
    ("sequences", "sequences in SeqTable", paper.SEQUENCES),
    ("twice", "of these, met at least twice", {}),
    ("origins", "of these, met in at least two origin states", {}),
    ("pairs", "context pairs in all", {}),
)
_ROW_NAMES = {"baseline": "Baseline", "version 1": "Experiment 1", "version 2": "Experiment 2"}


def mean_and_deviation(samples: Array) -> str:
    """Return the mean and the standard deviation over runs as text, such as `82.0 (13.2)`."""
    return f"{samples.mean():.1f} ({_deviation(samples):.1f})"


def _deviation(samples: Array) -> float:
    return float(samples.std(ddof=1)) if len(samples) > 1 else 0.0


# ---- Table 1 ----


def table1(study: Study, game: str) -> TableBlock:
    """Return Table 1 of one game. Each row of our numbers is followed by the row of the paper's numbers."""
    improved = {(x.row, x.column) for x in study.compared if x.game == game and x.improved}
    rows = []
    for row in paper.ROWS:
        ours = [_bold(mean_and_deviation(study.samples(game, row, *x)), (row, x) in improved) for x in paper.COLUMNS]
        cells = [paper.TABLE_1[game][row][column] for column in paper.COLUMNS]
        printed = [_bold(f"{cell.mean:.1f} ({cell.deviation:.1f})", cell.bold) for cell in cells]
        rows += [(_ROW_NAMES[row], "ours", *ours), ("", "paper", *printed)]
    header = ("", "", *(f"{column.opponent}, {column.what}" for column in paper.COLUMNS))
    caption = (
        f"{paper.TITLES[game]}: per cent of matches won or drawn (reliability) and won (power). Means, with standard "
        f"deviations in brackets, are taken over {study.plan.runs} runs, and for the baseline over "
        f"{2 * study.plan.runs} blocks of matches; a block has as many matches as the test of a run. Bold: improved "
        "over the row above (ours: Welch's test, p < 0.05 after Holm's correction over all such comparisons in both "
        "games)."
    )
    return TableBlock(header, rows, tuple(range(2, 2 + len(paper.COLUMNS))), caption)


def cells_words(study: Study) -> str:
    """Return how many cells of each game and row lie within the printed standard deviation, as text."""
    num = len(paper.COLUMNS)
    return "; ".join(
        f"{paper.TITLES[game]}: {', '.join(f'{row} {study.cells_within(game, row)} of {num}' for row in paper.ROWS)}"
        for game in study.games
    )


def arms_table(arms_of: Mapping[str, Sequence[ArmResult]], game: str, runs: int) -> TableBlock:
    """Return the table of the arms in one game. The last row has the paper's numbers."""
    rows = [
        (
            arm.name,
            *(f"{cells} of {len(paper.COLUMNS)}" for cells in arm.cells),
            f"{arm.distance:.1f}",
            *(span(interval, 1) for interval in (*arm.perfect, *arm.power)),
            *(f"{interval.mean:.0f}" for interval in (arm.sequences, arm.pairs)),
        )
        for arm in arms_of[game]
    ]
    printed = [paper.TABLE_1[game][row] for row in paper.ROWS[1:]]
    levels = [cells[Column(*column)] for column in _ARM_COLUMNS for cells in printed]
    sizes = f"{paper.SEQUENCES[game]:.0f}", f"{paper.PAIRS[game]:.0f}"
    rows.append(("the paper", "", "", "", *(f"{cell.mean:.1f} ({cell.deviation:.1f})" for cell in levels), *sizes))
    header = (
        *("arm", "version 1: cells that fit", "version 2: cells that fit", "distance"),
        *(f"version {number}, {opponent}, {what}" for opponent, what in _ARM_COLUMNS for number in (1, 2)),
        *("sequences", "pairs from .55"),
    )
    caption = f"{paper.TITLES[game]}: means over {runs} runs with fresh seeds, with 95 % intervals."
    return TableBlock(header, rows, tuple(range(1, len(header))), caption)


_ARM_COLUMNS = (("perfect", "reliability"), ("random", "power"))


def _bold(text: str, bold: bool) -> str:
    return f"**{text}**" if bold else text


def exact_table(study: Study) -> TableBlock:
    """Return the table of the baselines of lose tic-tac-toe, with their exact expectations."""
    exact, rows = exact_baselines(), []
    baselines = study.of("losetictactoe", "baseline")
    num = sum(result["scores"][paper.RANDOM]["perfect"][0] for result in baselines)
    for column in paper.COLUMNS:
        ours = float(study.samples("losetictactoe", "baseline", *column).mean())
        printed = paper.TABLE_1["losetictactoe"]["baseline"][column].mean
        scores = f"{z_score(ours, exact[column], num):+.2f}", f"{z_score(printed, exact[column]):+.2f}"
        numbers = f"{exact[column]:.2f}", f"{ours:.2f}", scores[0], f"{printed:.2f}", scores[1]
        rows.append((f"{column.opponent}, {column.what}", *numbers))
    header = ("random player against", "exact", f"ours, {num} matches", "z", "paper, 1000 matches", "z")
    caption = (
        "Lose tic-tac-toe: the exact expectation of the baseline, computed from the solution and the probability of "
        "each position (sides alternate). z: the distance of a sample from this expectation, in standard errors."
    )
    return TableBlock(header, rows, (1, 2, 3, 4, 5), caption)


def compared_table(study: Study) -> TableBlock:
    """Return the table that compares every cell of Table 1 with the cell above it.

    Our comparison is beside that of the paper, which marks improvements by bold numbers.
    """
    rows = []
    for cell in study.compared:
        above = paper.ROWS[paper.ROWS.index(cell.row) - 1]
        printed, before = (paper.TABLE_1[cell.game][row][cell.column] for row in (cell.row, above))
        tests = f"{_ROW_NAMES[cell.row]} over {_ROW_NAMES[above]}", f"{cell.column.opponent}, {cell.column.what}"
        ours = "improved" if cell.improved else "worse" if cell.worse else ""
        numbers = span(cell.difference, 1, sign=True), p_text(cell.adjusted), ours
        printed_change = "improved" if printed.bold else "", f"{printed.mean - before.mean:+.1f}"
        rows.append((paper.TITLES[cell.game], *tests, *numbers, *printed_change))
    header = ("game", "experiment", "against", "ours: change", "p (Holm)", "ours", "paper", "paper: change")
    caption = (
        "Change from the row above in points, with 95 % intervals (Welch). Improved, worse: p < 0.05 after Holm's "
        f"correction over these {len(rows)} comparisons."
    )
    return TableBlock(header, rows, (3, 4, 7), caption)


# ---- Table 2 and the counts ----


def table2(study: Study) -> TableBlock:
    """Return Table 2, our numbers beside those of the paper.

    The rows are the number of pairs in each weight class, and further numbers of sequences and pairs.
    """
    rows: list[tuple[str, ...]] = []
    for number, name in enumerate(CLASS_NAMES):
        cells = []
        for game in study.games:
            printed = paper.TABLE_2[game][number]
            cells += [
                mean_and_deviation(study.class_size(game, number)),
                f"{printed.mean:.2f} ({printed.deviation:.2f})",
            ]
        rows.append((f"pairs with weights {name}", *cells))
    for what, words, of in _COUNTS:
        counts = [(mean_and_deviation(study.count(game, what)), f"{of[game]:g}" if of else "") for game in study.games]
        rows.append((words, *chain(*counts)))
    header = ("", *(cell for game in study.games for cell in (f"{paper.TITLES[game]}, ours", "paper")))
    return TableBlock(header, rows, tuple(range(1, len(header))), "Means with standard deviations over runs.")


def formulas_table(study: Study) -> TableBlock:
    """Return Table 2 for each formula for the weights of pairs (PWL in the paper)."""
    rows = []
    for game in study.games:
        for formula in WEIGHTS:
            sizes = study.classes(game, formula)
            rows.append(
                (
                    paper.TITLES[game],
                    formula,
                    *(mean_and_deviation(size) for size in sizes.T),
                    mean_and_deviation(sizes.sum(axis=1)),
                )
            )
        rows.append(
            (
                paper.TITLES[game],
                "the paper",
                *(f"{cell.mean:g}" for cell in paper.TABLE_2[game]),
                f"{paper.PAIRS[game]:g}",
            )
        )
    caption = (
        "Number of pairs in each weight class with each formula for PWL; the paper does not print its formula. The "
        "matches and the pairs are the same for all formulas."
    )
    return TableBlock(("game", "formula", *CLASS_NAMES, "together"), rows, (2, 3, 4, 5, 6), caption)


# ---- variants ----


def tried_table(variants_of: Mapping[str, Sequence[Tried]], runs: int, matches: int) -> TableBlock:
    """Return the table of the variants' results against the perfect player."""
    rows = [
        (paper.TITLES[game], variant.name, span(variant.reliability, 1), span(variant.difference, 1, sign=True))
        for game, variants in variants_of.items()
        for variant in variants
    ]
    caption = (
        f"Reliability of version 2 against the perfect player, {runs} runs of {matches} matches each, with 95 % "
        "intervals over runs; differences from the default are computed run by run, on the same training matches if "
        "the rules are the same."
    )
    return TableBlock(("game", "variant", "won or drawn, %", "minus the default"), rows, (2, 3), caption)


def raised_table(tests: Sequence[Raised], runs: int) -> TableBlock:
    """Return the table of results in games that are not in the paper."""
    rows = []
    for test in tests:
        numbers = span(test.baseline, 1), span(test.reliability, 1), span(test.difference, 1, sign=True)
        rows.append((paper.OTHERS[test.game], test.test, test.opponent, *numbers))
    header = ("game", "player", "against", "random player: won or drawn, %", "SeqPlayer", "difference")
    caption = (
        f"Reliability with 95 % intervals. SeqPlayer has watched {Curriculum().num_matches} matches and learned "
        f"sequences of three moves. There are {runs} runs with fresh seeds; each has 50 test matches against each "
        "opponent."
    )
    return TableBlock(header, rows, (3, 4, 5), caption)


def write_table1(study: Study, folder: Path) -> Path:
    """Write table1.csv: our numbers with intervals, the paper's numbers, and exact numbers for known baselines."""
    header = (
        "game", "row", "opponent", "what", "mean", "deviation", "low", "high", "runs", "paper", "paper_deviation",
        "paper_bold", "exact",
    )  # fmt: skip
    rows = []
    for game, row, column in product(study.games, paper.ROWS, paper.COLUMNS):
        samples, printed = study.samples(game, row, *column), paper.TABLE_1[game][row][column]
        mean, *interval = astuple(stats.mean_interval(samples))
        exact = (
            exact_baselines()[column]
            if (game, row) == ("losetictactoe", "baseline") and study.plan.reading.is_text
            else ""
        )
        numbers = printed.mean, printed.deviation, int(printed.bold), exact
        rows.append((game, row, *column, mean, _deviation(samples), *interval, *numbers))
    return write_rows(folder / f"{study.plan.reading.prefix}table1.csv", header, rows)


def write_table2(study: Study, folder: Path) -> Path:
    """Write table2.csv: for each run, the numbers of sequences and pairs, and of pairs in each weight class."""
    header = ("game", "run", "sequences", "twice", "origins", "pairs", *(f"from_{low:g}" for low in paper.CLASSES))
    rows = [
        (game, run, *(result[what] for what in header[2:6]), *result["classes"][paper.PAPER.weighting])
        for game in study.games
        for run, result in enumerate(study.learned(game))
    ]
    return write_rows(folder / f"{study.plan.reading.prefix}table2.csv", header, rows)


# ---- the baselines of lose tic-tac-toe, exactly ----

MATCHES = 1000
"""Number of matches of a baseline against each opponent, in the paper and by default here."""


@cache
def exact_baselines() -> dict[Column, float]:
    """Return the exact cells of the baseline's row for lose tic-tac-toe, in per cent, under the reading "text".

    Matches alternate sides.
    """
    graph, uniform, shares = PositionGraph(load("losetictactoe")), Uniform(), {}
    best = paper.TEXT.best["losetictactoe"]
    for opponent, what in paper.COLUMNS:
        other = uniform if opponent == "random" else cast(Memoryless, player(f"{opponent}:best={best}"))
        seats = expected(graph, [uniform, other]), expected(graph, [other, uniform])
        both = (x.better(role) if what == "power" else x.not_worse(role) for role, x in enumerate(seats))
        shares[Column(opponent, what)] = 100 * sum(both) / 2
    return shares


def z_score(mean: float, exact: float, matches: int = MATCHES) -> float:
    """Return the distance of a measured share from its exact value, in standard errors.

    Both shares are in per cent. The standard error is that of a sample of `matches` matches.
    """
    share = exact / 100
    error = 100 * (share * (1 - share) / matches) ** 0.5
    return (mean - exact) / error if error else 0.0


# ---- the classes of sequences that lose tic-tac-toe allows ----

GAME, LENGTH = "losetictactoe", 3
CONTESTANTS = ("xplayer", "oplayer")
SequenceClass: TypeAlias = tuple[int, int, tuple[int, ...]]
"""Contestant, kind, and moves of a class. The moves are the smallest of all images under the symmetries."""
Kind: TypeAlias = tuple[int, int]
"""Contestant and kind (duet or solo) of a sequence."""
KINDS: tuple[Kind, ...] = tuple((role, kind) for kind in (DUET, SOLO) for role in (0, 1))


def kind_name(kind: Kind) -> str:
    return f"{KIND_NAMES[kind[1]]}s of {CONTESTANTS[kind[0]]}"


@dataclass(frozen=True)
class PossibleClasses:
    """Sets of classes of sequences in lose tic-tac-toe.

    allowed      all 264 classes
    in_match     the classes that occur in some match
    in_success   the classes that occur in some match that their contestant won or drew
    in_training  the classes that occur in some such match with a perfect player on at least one side
    lines        the classes of solos whose three squares are in a line
    """

    allowed: frozenset[SequenceClass]
    in_match: frozenset[SequenceClass]
    in_success: frozenset[SequenceClass]
    in_training: frozenset[SequenceClass]
    lines: frozenset[SequenceClass]


@dataclass(frozen=True)
class _Matches:
    """All matches of one length.

    rows     int32[matches, plies + 1], the row of each position in the graph
    choices  int32[matches, plies, 2], the index of the chosen move of each role
    perfect  bool[matches, 2], whether a role has made only moves that lose nothing
    """

    rows: NDArray[np.int32]
    choices: NDArray[np.int32]
    perfect: NDArray[np.bool_]


@lru_cache
def possible() -> PossibleClasses:
    """Return the sets of classes of sequences. All 255,168 matches are enumerated to find them."""
    graph = PositionGraph(load(GAME))
    patterns = Patterns(graph.game)
    occurring: list[set[SequenceClass]] = [set(), set(), set()]
    for matches in _ended(graph):
        finished = _finished(graph, matches)
        success = match_results(finished) >= 0.5
        trained = success & matches.perfect.any(axis=1, keepdims=True)
        for classes, counted in zip(occurring, (np.ones_like(success), success, trained), strict=True):
            met = excerpts(finished, counted, (LENGTH,))
            classes |= _classes(patterns, met.roles, met.kinds, met.moves)
    squares = list(product((1, 2, 3), repeat=2))
    triples = list(permutations(squares, LENGTH))
    lines = [(a, b, c) for a, b, c in triples if (b[0] - a[0]) * (c[1] - a[1]) == (c[0] - a[0]) * (b[1] - a[1])]
    allowed = _of_triples(patterns, triples, KINDS)
    solos = _of_triples(patterns, lines, [(role, SOLO) for role in (0, 1)])
    return PossibleClasses(*map(frozenset, (allowed, *occurring, solos)))


def _ended(graph: PositionGraph) -> Iterator[_Matches]:
    """Yield all finished matches of each length, the shortest first."""
    solved = graph.memo(SolvedMoves)
    start = np.array([[graph.start]], np.int32)
    going = _Matches(start, np.zeros((1, 0, 2), np.int32), np.ones((1, 2), np.bool_))
    while len(going.rows):
        going = _one_more(graph, solved, going)
        over = graph.terminal[going.rows[:, -1]]
        yield _Matches(going.rows[over], going.choices[over], going.perfect[over])
        going = _Matches(going.rows[~over], going.choices[~over], going.perfect[~over])


def _one_more(graph: PositionGraph, solved: SolvedMoves, matches: _Matches) -> _Matches:
    """Return all matches that continue one of these matches by one move."""
    last = matches.rows[:, -1]
    graph.expand(last)
    solved.look(last)
    role = int(np.argmax(graph.acting[last[0]]))  # roles move in turn, so it is equal in all rows
    counts = graph.num_moves[last, role]
    parent = np.repeat(np.arange(len(last)), counts)
    choice = np.arange(len(parent)) - np.repeat(np.cumsum(counts) - counts, counts)
    rows = graph.successors[graph.succ_start[last][parent] + choice]
    lossless = solved.optimal[graph.move_start[last, role][parent] + choice]
    choices = np.zeros((len(parent), 1, 2), np.int32)
    choices[:, 0, role] = choice
    perfect = matches.perfect[parent]
    perfect[:, role] &= lossless
    longer = np.hstack([matches.rows[parent], rows[:, None]])
    return _Matches(longer, np.hstack([matches.choices[parent], choices]), perfect)


def _finished(graph: PositionGraph, matches: _Matches) -> Finished:
    num, plies = matches.choices.shape[:2]
    numbers = np.arange(num, dtype=np.int64)
    return Finished(
        graph, numbers, numbers, np.full(num, plies, np.int32), np.ascontiguousarray(matches.rows, np.int32),
        np.ascontiguousarray(matches.choices), graph.goals[matches.rows[:, -1]], np.full(num, TERMINAL, np.uint8),
    )  # fmt: skip


def _classes(
    patterns: Patterns, roles: NDArray[np.int8], kinds: NDArray[np.int8], moves: NDArray[np.int32]
) -> set[SequenceClass]:
    base = int(moves.max(initial=0)) + 1
    codes = (roles * 2 + kinds).astype(np.int64)
    for column in moves.T:
        codes = codes * base + column
    _, first = np.unique(codes, return_index=True)
    blank = np.zeros((len(first), patterns.num_words), np.uint64)
    small, _ = canonical_pairs(patterns, np.ascontiguousarray(moves[first]), blank)
    return set(zip(roles[first].tolist(), kinds[first].tolist(), map(tuple, small.tolist()), strict=True))


def _of_triples(
    patterns: Patterns, triples: Sequence[tuple[tuple[int, ...], ...]], kinds: Iterable[Kind]
) -> set[SequenceClass]:
    """Return the classes of the sequences of these kinds on these triples of squares."""
    classes: set[SequenceClass] = set()
    for role, kind in kinds:
        makers = [role, 1 - role, role] if kind == DUET else [role] * LENGTH
        texts = [[f"(mark {row} {column})" for row, column in triple] for triple in triples]
        moves = [[*map(patterns.move_number, makers, marks)] for marks in texts]
        numbers = np.full(len(moves), role, np.int8), np.full(len(moves), kind, np.int8)
        classes |= _classes(patterns, *numbers, np.array(moves, np.int32))
    return classes


def share_of(kind: Kind, classes: Iterable[SequenceClass]) -> int:
    """Return how many of the classes are of this kind."""
    return sum(sequence[:2] == kind for sequence in classes)


def squares(patterns: Patterns, sequence: SequenceClass) -> str:
    """Return the squares of the moves of a class as text, such as `1 9 5`. Squares are numbered row by row."""
    texts = (patterns.move_text(number)[1].strip("()").split() for number in sequence[2])
    return " ".join(str(3 * (int(row) - 1) + int(column)) for _, row, column in texts)


_SHOWN_CLASSES = 12  # number of classes shown as examples


def classes_table(study: Study) -> TableBlock:
    """Return the table that counts the 264 classes of sequences in lose tic-tac-toe.

    Its columns count the classes that can be learned, and the classes that were met in the runs.
    """
    met, classes, rows = _met(study), possible(), []
    for name, kinds in (*((kind_name(kind), {kind}) for kind in KINDS), ("together", set(KINDS))):

        def num(sequences: Iterable[SequenceClass], kinds: set[Kind] = kinds) -> int:
            return sum(sequence[:2] in kinds for sequence in sequences)

        counted = (classes.allowed, classes.in_match, classes.in_success, classes.in_training)
        counts = (
            [num(run) for run in met],
            [num(c for c, (times, _) in run.items() if times > 1) for run in met],
            [num(c for c, (_, several) in run.items() if several) for run in met],
        )
        means = [f"{np.mean(numbers):.1f}" for numbers in counts]
        rows.append((name, *(str(num(some)) for some in counted), *means, str(num(set().union(*met)))))
    header = (
        "", "allowed", "possible in a match", "that the contestant won or drew", "and with a perfect player",
        "met in a run", "twice", "from two origins", "met in any run",
    )  # fmt: skip
    caption = (
        "Classes of sequences of length 3 under the 8 symmetries. The first columns count all matches of the game; "
        f"the last four count the classes met in training: means over {study.plan.runs} runs, and the classes "
        "that any run met."
    )
    return TableBlock(header, rows, tuple(range(1, len(header))), caption)


def _met(study: Study) -> list[dict[SequenceClass, tuple[int, bool]]]:
    """Return for each run: class met -> (number of encounters, whether it occurred in several origin states)."""
    return [
        {(role, kind, tuple(moves)): (num, bool(several)) for role, kind, *moves, num, several in result["met"]}
        for result in study.learned(GAME)
    ]


def classes_words(study: Study) -> list[str]:
    """Return sentences on the classes that were not met, with the reasons."""
    classes, met = possible(), _met(study)
    ever: set[SequenceClass] = set().union(*met)
    patterns = Patterns(load(GAME))
    lost = classes.in_match - classes.in_success
    are_lines = "these are exactly" if lost == classes.lines else "these include"
    shut_out = classes.in_success - classes.in_training
    unmet = sorted(classes.in_training - ever)
    kinds = {kind_name(kind): share_of(kind, shut_out) for kind in KINDS}
    examples = ", ".join(squares(patterns, sequence) for sequence in unmet[:_SHOWN_CLASSES])
    words = [
        f"{len(classes.allowed) - len(classes.in_match)} of the {len(classes.allowed)} classes are not "
        "possible in any match.",
        f"{len(lost)} are possible only in matches that their contestant lost: {are_lines} the solos with three "
        "squares in a line, because a line loses.",
        f"{len(shut_out)} more are possible in matches that their contestant won or drew, but only in those without "
        "a perfect player. All matches of the training have a perfect player, so these classes cannot be learned: "
        + ", ".join(f"{count} {name}" for name, count in kinds.items() if count)
        + ". (A perfect first player takes the centre. After that, few of its moves avoid a loss.)",
        f"So the training can meet {len(classes.in_training)} classes; {len(ever)} of them were met in at least one "
        f"of {len(met)} runs.",
    ]
    if unmet:
        named = f", by their squares numbered in rows: {examples}" + (" ..." if len(unmet) > _SHOWN_CLASSES else "")
        words.append(
            f"The other {len(unmet)} need rare moves of the weaker side and by chance did not occur in these "
            f"runs{named}."
        )
    outside = len(ever - classes.in_training)
    if outside:
        words.append(f"{outside} classes were met that should be impossible: this is a bug in the program.")
    return words


# ---- speed, advice, strategies ----


def speed_table(study: Study) -> TableBlock:
    """Return the table of the time of a decision by each version of SeqPlayer."""
    rows = []
    for game in study.games:
        times = study.times(game)
        cells = [
            mean_and_deviation(np.array([medians[version] for medians in times]))
            for version in ("version 1", "version 2")
        ]
        printed = f"{paper.FASTER:g}" if game == "fivemensmorris" else ""
        rows.append((paper.TITLES[game], *cells, span(stats.mean_interval(study.faster(game)), 1), printed))
    caption = (
        "Microseconds of processor time per decision, with the same pairs against the same opponents: the median of "
        f"several repeats for each run, mean and standard deviation over {len(times)} runs. The last two columns: the "
        "percentage by which version 2 is faster."
    )
    return TableBlock(("", "version 1", "version 2", "faster by, ours", "paper"), rows, (1, 2, 3, 4), caption)


def advice_table(study: Study) -> TableBlock:
    """Return the table of the share of advised moves that lose nothing. The solution of the game decides this."""
    rows = []
    names = {source: f"pairs {name}" for source, name in zip(SOURCES, CLASS_NAMES, strict=False)}
    for game in study.games:
        for source, tallies in study.advice(game).items():
            name = names.get(source, "moves that the Enforcer made")
            rows.append((paper.TITLES[game], name, f"{tallies[:, 0].mean():.1f}", *_shares(tallies)))
    caption = (
        "How often a move loses nothing against best play, in the states that version 2 met in testing and in which "
        "some legal move does lose something. Each class of pairs is asked by itself in every such state; the "
        "comparison is with a random move in the same states. Means over states with 95 % intervals over runs "
        "(jackknife)."
    )
    header = ("game", "advice of", "states per run", "loses nothing, %", "a random move, %", "difference")
    return TableBlock(header, rows, (2, 3, 4, 5), caption)


def _shares(tallies: Array) -> tuple[str, ...]:
    """Return the shares of moves that lose nothing, over all runs, as text.

    They are the share of advised moves, the share of random moves, and the difference of both with its interval.
    """
    if not tallies[:, 0].sum():
        return "none met", "", ""

    states, right, random = tallies.sum(axis=0).tolist()
    met = tallies[tallies[:, 0] > 0]
    difference = stats.jackknife(met, lambda some: float(100 * (some[:, 1] - some[:, 2]).sum() / some[:, 0].sum()))
    return f"{100 * right / states:.1f}", f"{100 * random / states:.1f}", span(difference, 1, sign=True)


def strategies_table(study: Study) -> TableBlock:
    """Return the table of the number of runs that learned each strategy of Figures 5 to 7."""
    figures = {"reflection": "Figure 5", "block": "Figure 6", "shuttle": "Figure 7"}
    rows = []
    for strategy, game in STRATEGIES.items():
        if game in study.games:
            counts = [study.shown(game, strategy, what) for what in ("num", "strong")]
            best = study.best_shown(game, strategy)
            words = f"{best.weight:.2f} ({best.comments:.0f})" if best else "none"
            in_runs = (f"{int((count > 0).sum())} of {len(count)}" for count in counts)
            rows.append(
                (strategy, f"{paper.TITLES[game]}, {figures[strategy]}", *in_runs, f"{counts[0].mean():.1f}", words)
            )
    runs = "runs with such a pair", "with weight .9 or more", "pairs per run"
    header = ("strategy", "where", *runs, "best weight (comments)")
    return TableBlock(header, rows, (2, 3, 4, 5))
