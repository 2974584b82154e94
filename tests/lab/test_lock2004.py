"""The reproduction of Lock & Epstein 2004: its plan, its numbers by hand, and a small run of one game."""

import csv
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gamelore.catalogue import player
from gamelore.errors import ExperimentError
from gamelore.lab.papers.lock2004 import page, reproduce, tables
from gamelore.lab.papers.lock2004.measures import (
    MEASURES,
    Study,
    arm_results,
    claims,
    judge_claims,
    per_cent,
    printed_interval,
    tried,
    within_deviation,
)
from gamelore.lab.papers.lock2004.plan import (
    COLUMNS,
    DEFAULT,
    GAMES,
    LENGTHS,
    TABLE_1,
    TABLES,
    TABLES_ARM,
    TEXT,
    TEXT_ARM,
    Column,
    Plan,
    arms,
    improvements,
    sensitivity,
)
from gamelore.lab.papers.lock2004.runs import (
    AdviceTally,
    Observed,
    graph_of,
    play_run,
    shows,
    symmetry_group,
    time_run,
    trained,
)
from gamelore.lab.papers.lock2004.tables import classes_words, exact_baselines, z_score
from gamelore.lab.report import ReportPaths
from gamelore.lab.results import STORE, Outcome, ResultStore, Trial
from gamelore.lab.sequence_text import LearnedPair, best
from gamelore.learning.sequences.seqlearner import WEIGHTS, Tournaments, score
from gamelore.learning.sequences.seqplayer import SeqPlayer
from gamelore.rulesheets import load

pytestmark = pytest.mark.xdist_group("lock2004")  # so that the small run is made once
LTTT, MORRIS = GAMES
SMALL: dict[str, Any] = {"runs": 2, "fresh": 2, "share": 0.2, "games": (LTTT,), "workers": 1, "progress": False}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> ReportPaths:
    """Everything about lose tic-tac-toe, with two short runs."""
    return reproduce(tmp_path_factory.mktemp("small"), verdicts=True, **SMALL)


# ---- the plan ----


def test_the_paper_states_these_numbers() -> None:
    core = {one.id: one for one in Plan().core()}
    lttt, morris = (core[f"core/{game}/learner"] for game in GAMES)
    assert (lttt.curriculum.num_matches, morris.curriculum.num_matches) == (160, 320)
    assert [one.size - one.curriculum.num_matches for one in (lttt, morris)] == [2 * 4 * 50] * 2
    assert [one.learner and one.learner.lengths for one in (lttt, morris)] == [(3,), (3, 5)]
    for game in GAMES:
        baseline = core[f"core/{game}/baseline"]
        assert baseline.runs * baseline.matches == 1000
        assert baseline.size == 4 * 50


def test_the_bold_cells_of_the_paper() -> None:
    bold = {
        (game, row): [column for column in COLUMNS if cells[column].bold]
        for game, rows in TABLE_1.items()
        for row, cells in rows.items()
    }
    assert {key: len(cells) for key, cells in bold.items()} == {
        (LTTT, "baseline"): 0, (LTTT, "version 1"): 7, (LTTT, "version 2"): 2,
        (MORRIS, "baseline"): 0, (MORRIS, "version 1"): 3, (MORRIS, "version 2"): 6,
    }  # fmt: skip
    assert sum(claim.measure == "over" and claim.test == "above" for claim in claims()) == 18


def test_experiments_have_names_and_seeds_of_their_own() -> None:
    plan = Plan()
    parts = [plan.core(), plan.speed(), plan.sensitivity(), plan.improvements(), plan.verdicts()]
    names = [one.id for part in parts for one in part]
    assert len(names) == len(set(names))
    seeds = [{one.seed for one in part} for part in parts]
    assert seeds[0] == seeds[1] == seeds[2] == {2004}
    assert len(seeds[0] | seeds[3] | seeds[4]) == 3


def test_the_readings_differ_in_these_settings() -> None:
    text, tables = (Plan(reading=reading).core() for reading in (TEXT, TABLES))
    assert [one.id for one in tables] == [f"tables-{one.id}" for one in text]
    for one, other in zip(text, tables, strict=True):
        assert replace(other, id=one.id, best=one.best, choice="drawn", tests=one.tests) == one
        assert [test.player.enforce for test in other.tests] == ["duets"] * len(one.tests)
    assert {one.spec("expert") for one in tables} == {"expert:best=fastest,choice=symmetric"}
    assert {one.spec("random") for one in tables} == {"random"}


@pytest.mark.parametrize("game", GAMES)
def test_the_arms_contain_both_readings(game: str) -> None:
    named = {arm.name: arm for arm in arms(game)}
    assert len(named) == len(arms(game)) == 15 + (game == MORRIS)
    for reading, name in ((TEXT, TEXT_ARM), (TABLES, TABLES_ARM)):
        arm, tests = named[name], Plan(reading=reading).reading.versions
        assert (arm.best, arm.choice, arm.player) == (reading.best[game], reading.choice, tests[1].player)
    made = [experiment for experiment in Plan(reading=TABLES).arms() if experiment.sheet == game]
    assert sum(len(experiment.tests) for experiment in made) == 2 * len(named)
    assert {opponents for experiment in made for opponents in (test.opponents for test in experiment.tests)} == {
        ("perfect", "expert", "novice", "random")
    }
    base = named[TABLES_ARM]
    for arm in arms(game)[9:]:
        parts = ("learner", "player", "group", "options", "best", "choice")
        assert sum(getattr(arm, part) != getattr(base, part) for part in parts) == 1, arm.name


@pytest.mark.parametrize("game", GAMES)
def test_a_variant_changes_one_thing(game: str) -> None:
    default, *others = sensitivity(game)
    assert default.name == DEFAULT
    assert default.learner.lengths == LENGTHS[game]
    for one in others:
        changed = [
            name
            for name in ("learner", "player", "group", "options", "best")
            if getattr(one, name) != getattr(default, name)
        ]
        assert len(changed) == 1, one.name
    assert improvements(game)[0] == default


def test_variants_that_learn_the_same_are_learned_once() -> None:
    first, *others = Plan(games=(LTTT,)).sensitivity()
    assert {DEFAULT, "weighting=plain", "enforce=none"} <= {test.name for test in first.tests}
    assert [one.name for one in first.tests if one.weighting == "plain"] == ["weighting=plain"]
    assert len({replace(one, id="", tests=()) for one in (first, *others)}) == 1 + len(others)


def test_unknown_games_are_refused() -> None:
    with pytest.raises(
        ExperimentError, match=r"expected games of the paper \(losetictactoe, fivemensmorris\), got chess"
    ):
        Plan(games=("chess",))


def test_the_papers_symmetries_of_morris() -> None:
    game = load(MORRIS)
    assert [symmetry_group(game, which).num for which in ("paper", "all", "none")] == [8, 16, 1]


# ---- numbers by hand ----


def test_reliability_and_power() -> None:
    scores = [[50, 10, 5], [20, 0, 1]]
    assert per_cent(scores, "reliability").tolist() == [30.0, 5.0]
    assert per_cent(scores, "power").tolist() == [20.0, 0.0]


def test_the_papers_own_interval() -> None:
    # t(0.975, 9) = 2.262157
    half = 2.262157 * 13.24 / 10**0.5
    assert printed_interval(82.0, 13.24, 10) == pytest.approx((82 - half, 82 + half), abs=1e-5)


def test_exact_baselines() -> None:
    wanted = (21.07, 25.69, 7.18, 47.45, 35.15, 56.35, 43.65)  # readings.md, L&E 5
    assert [round(exact_baselines()[column], 2) for column in COLUMNS] == list(wanted)
    assert z_score(52.0, 50.0, 2500) == pytest.approx(2.0)
    assert z_score(0.0, 0.0) == 0.0


def study_of(learner: list[dict[str, Any]], baseline: list[list[int]]) -> Study:
    blocks = [
        {"scores": {"random player": {name: scores for name in ("perfect", "expert", "novice", "random")}}}
        for scores in baseline
    ]
    return Study(
        Plan(games=(LTTT,)), "core", {"core/losetictactoe/learner": learner, "core/losetictactoe/baseline": blocks}
    )


def test_a_cell_against_the_one_above() -> None:
    runs = [
        {
            "scores": {
                name: {other: scores for other in ("perfect", "expert", "novice", "random")}
                for name in ("version 1", "version 2")
            }
        }
        for scores in ([50, 0, 20], [50, 5, 25])
    ]
    study = study_of(runs, [[50, 0, 10], [50, 0, 10], [50, 0, 13]])
    found = study.over(LTTT, "version 1", *Column("perfect", "reliability"))[0]
    assert found.mean == pytest.approx(50 - 22)
    second = [one for one in study.compared if one.row == "version 2"]
    assert {one.difference.mean for one in second} == {0.0}
    assert not any(one.improved or one.worse for one in second)


def test_a_cell_fits_within_one_deviation() -> None:
    cell = TABLE_1[LTTT]["version 1"][Column("random", "power")]
    assert (cell.mean, cell.deviation) == (55.4, 5.52)
    assert [within_deviation(mean, cell) for mean in (49.87, 49.89, 55.4, 60.91, 60.93)] == [
        False, True, True, True, False
    ]  # fmt: skip


def test_the_cells_of_an_arm_are_counted() -> None:
    experiments = Plan(games=(LTTT,), runs=2, fresh=2, reading=TABLES).arms()
    fits = {"perfect": [50, 0, 30], "expert": [50, 5, 29], "novice": [50, 20, 22], "random": [50, 28, 15]}
    result = {"sequences": 70, "classes": {name: [4, 3, 2, 1] for name in WEIGHTS}}
    results = {
        one.id: [result | {"scores": {test.name: fits for test in one.tests}} for _ in range(2)] for one in experiments
    }
    first, *_ = arm_results(experiments, results, LTTT)
    # against version 1's 66, 70.8 and 12.8, 83.5 and 42.7, 85.3 and 55.4: 60, 68 and 10, 84 and 40, 86 and 56
    assert first.name == TEXT_ARM
    assert first.distance == pytest.approx(
        sum(
            abs(ours - cell.mean) / cell.deviation
            for version in ("version 1", "version 2")
            for ours, cell in zip((60, 68, 10, 84, 40, 86, 56), TABLE_1[LTTT][version].values(), strict=True)
        )
    )
    assert first.cells == (7, 5)  # 60 and 68 are not within 82.0 +- 13.24 and 83.8 +- 9.73 of version 2
    assert [one.mean for one in (*first.perfect, *first.power)] == [60.0, 60.0, 56.0, 56.0]
    assert (first.sequences.mean, first.pairs.mean) == (70.0, 10.0)


def test_variants_are_compared_run_by_run() -> None:
    experiments = Plan(games=(LTTT,), runs=3).improvements()[:1]
    scores = {test.name: [10, 20, 30] for test in experiments[0].tests} | {DEFAULT: [5, 10, 30]}
    results = {
        experiments[0].id: [
            {"scores": {name: {"perfect": [50, 0, draws[run]]} for name, draws in scores.items()}} for run in range(3)
        ]
    }
    default, other, *_ = tried(experiments, results, LTTT)
    assert (default.name, default.difference) == (DEFAULT, None)
    assert default.reliability.mean == pytest.approx(30.0)
    assert other.difference is not None
    assert other.difference.mean == pytest.approx((10 + 20 + 0) / 3)


def test_a_tally_counts_states_in_which_a_move_can_be_wrong() -> None:
    tally = AdviceTally()
    tally.add(np.array([1.0, 0.5, 0.25]), np.array([True, True, False]))
    assert tally.as_json() == [2, 1, 0.75]


# ---- strategies ----

CENTRE = frozenset({"(cell 2 2 x)", "(control xplayer)"})
PLACING = frozenset({"(stage placing)", "(cell 3 black)", "(cell 16 black)", "(control white)"})


def pair(role: str, facts: frozenset[str], *branches: tuple[str, str]) -> LearnedPair:
    """A pair; a branch is its kind and moves such as `w place 10; b place 14`."""
    names = {"x": "xplayer", "o": "oplayer", "w": "white", "b": "black"}
    moves = [(kind, tuple((names[move[0]], f"({move[2:]})") for move in text.split("; "))) for kind, text in branches]
    return LearnedPair(role, facts, tuple(moves), 1.0, 20.0, 20.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("strategy", "shown", "found"),
    [
        ("reflection", pair("xplayer", CENTRE, ("duet", "x mark 1 1; o mark 1 2; x mark 3 2")), True),
        ("reflection", pair("xplayer", CENTRE, ("duet", "x mark 1 1; o mark 1 2; x mark 3 3")), False),
        ("reflection", pair("xplayer", frozenset(), ("duet", "x mark 1 1; o mark 1 2; x mark 3 2")), False),
        ("reflection", pair("xplayer", CENTRE, ("solo", "x mark 1 1; x mark 1 2; x mark 3 2")), False),
        (
            "reflection",
            pair(
                "xplayer", CENTRE, ("duet", "x mark 1 1; o mark 1 2; x mark 3 2"),
                ("duet", "x mark 1 1; o mark 1 2; x mark 2 3"),
            ),
            False,
        ),
        # the paper's Figure 6: 10 blocks 3-10-16, 15 blocks 14-15-16
        ("block", pair("white", PLACING, ("duet", "w place 10; b place 14; w place 15")), True),
        ("block", pair("white", PLACING, ("duet", "w place 9; b place 14; w place 15")), False),
        ("block", pair("white", PLACING - {"(stage placing)"}, ("duet", "w place 10; b place 14; w place 15")), False),
        # Figure 7
        ("shuttle", pair("black", frozenset(), ("solo", "b move_take 2 3 8; b move 3 2; b move_take 2 3 9")), True),
        ("shuttle", pair("black", frozenset(), ("solo", "b move 2 3; b move 3 2; b move 2 3")), False),
        ("shuttle", pair("black", frozenset(), ("solo", "b move_take 2 3 8; b move 3 2; b move 2 5")), False),
    ],
)  # fmt: skip
def test_strategies_are_found_by_their_content(strategy: str, shown: LearnedPair, found: bool) -> None:
    assert shows(shown, strategy) == found


def test_pairs_are_kept_as_text() -> None:
    shown = pair("xplayer", CENTRE, ("duet", "x mark 1 1; o mark 1 2; x mark 3 2"), ("solo", "x mark 1 1; x mark 1 2"))
    assert LearnedPair.from_json(json.loads(json.dumps(shown.as_json()))) == shown
    drawn = next(shown.drawn("a"))
    assert (drawn.kind, len(drawn.sequences), drawn.weight) == ("duet", 1, 1.0)


# ---- classes of sequences ----


def test_which_classes_of_sequences_can_be_learned() -> None:
    found = tables.possible()
    assert [len(some) for some in (found.allowed, found.in_match, found.in_success)] == [264, 264, 246]
    assert found.in_match - found.in_success == found.lines, "who has three in a line has lost"
    assert found.in_training < found.in_success
    assert {tables.kind_name(kind): tables.share_of(kind, found.in_training) for kind in tables.KINDS} == {
        "duets of xplayer": 16, "duets of oplayer": 66, "solos of xplayer": 27, "solos of oplayer": 57
    }  # fmt: skip


# ---- runs ----


def test_the_docstring_of_the_tables_has_no_quotes_within() -> None:
    assert '"' not in (tables.__doc__ or '"')


def test_observing_changes_nothing() -> None:
    (experiment,) = [one for one in Plan(games=(LTTT,), share=0.4).core() if one.learner]
    tournaments = Tournaments(graph_of(LTTT), (experiment.seed, 0), player)
    pairs = trained(experiment, tournaments).pairs
    plain, observed = SeqPlayer(pairs), Observed(pairs, SeqPlayer(pairs).settings)
    perfect = tournaments.named(experiment.spec("perfect"))
    found = [score(tournaments.play(player, perfect, 20, "test")) for player in (plain, observed)]
    assert found[0] == found[1]
    assert plain.sources == observed.sources
    states, right, random = observed.as_json()["0.9"]
    assert states >= right > random, "the best class knows better than chance"


def test_a_run_is_the_same_every_time() -> None:
    (experiment,) = [one for one in Plan(games=(LTTT,), share=0.2).core() if one.learner]
    (first,), (second,) = (play_run(Trial(experiment, 1), lambda matches: None) for _ in range(2))
    assert {**first.result, "seconds": []} == {**second.result, "seconds": []}
    assert first.result != play_run(Trial(experiment, 0), lambda matches: None)[0].result


def test_the_best_pairs_come_first() -> None:
    (experiment,) = [one for one in Plan(games=(LTTT,), share=0.4).core() if one.learner]
    pairs = trained(experiment, Tournaments(graph_of(LTTT), (1, 0), player)).pairs
    found = best(pairs, 5)
    assert [one.weight for one in found] == sorted(pairs.weights.tolist(), reverse=True)[:5]


def test_decisions_are_timed() -> None:
    (experiment,) = Plan(games=(LTTT,), share=0.04).speed()
    (done,) = time_run(Trial(experiment, 0), lambda matches: None)
    assert done.result["microseconds"].keys() == {"version 1", "version 2"}
    assert min(done.result["microseconds"].values()) > 0


# ---- the store ----


def test_a_run_is_never_overwritten(tmp_path: Path) -> None:
    experiment = Plan(games=(LTTT,)).core()[0]
    done = Outcome(Trial(experiment, 0), rules_hash="rules", seconds=1.0, result={"scores": {}})
    with ResultStore(tmp_path / STORE) as store:
        store.add([done], "1")
        with pytest.raises(ExperimentError, match="expected a run that is not yet in"):
            store.add([done], "1")
        with pytest.raises(ExperimentError, match="expected the rules of losetictactoe"):
            store.add([replace(done, trial=Trial(experiment, 1), rules_hash="others")], "1")
        assert store.finished() == {(experiment.id, 0)}
        with pytest.raises(ExperimentError, match=r"expected 2 finished runs .* got 1; run the command again"):
            store.results(experiment.id, 2)
        with pytest.raises(ExperimentError, match="expected results of gamelore 2, got results of 1"):
            store.check({experiment.id: experiment}, "2")


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / STORE).write_text("some other file, long enough to be looked at as a database of whatever kind")
    with pytest.raises(ExperimentError, match="choose another folder with --out"):
        ResultStore(tmp_path / STORE)


# ---- the whole ----


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_small_run_of_everything(small: ReportPaths) -> None:
    markdown, page = small.markdown.read_text(), small.html.read_text()
    assert small.headline in markdown
    for name in ("reliability", "changes", "sensitivity", "improvements", "best-losetictactoe"):
        for suffix in (".png", ".svg", ".csv"):
            assert (small.folder / f"{name}{suffix}").stat().st_size > 0
        assert f"({name}.png)" in markdown
    assert page.count("data:image/svg+xml;base64,") >= 5
    assert "morris" not in small.headline


def test_without_verdicts_the_headline_has_the_committed_ones(tmp_path: Path, draw_only: Callable[[str], None]) -> None:
    draw_only("nothing")
    report = reproduce(tmp_path, core=True, **SMALL)
    assert "(too few runs) % (the paper 82: verdict of 200 runs: contradicted, 43.0 [41.3, 44.6])" in report.headline
    assert "The 2 runs of this report are too few for verdicts; all verdicts are the project's own." in report.headline
    assert "| preliminary | the project's verdict |" in report.markdown.read_text()


def test_both_readings_in_one_report(tmp_path: Path, draw_only: Callable[[str], None]) -> None:
    draw_only("tables-")
    report = reproduce(tmp_path, "both", core=True, **SMALL)
    readings = {(row["claim"], row["reading"]) for row in rows(tmp_path / "claims.csv")}
    ids = {claim.id for claim in claims() if claim.of["game"] == LTTT}
    assert readings == {(claim, reading) for claim in ids for reading in ("text", "tables")}
    markdown = report.markdown.read_text()
    for reading, prefix in (("text", ""), ("tables", "tables-")):
        assert f"## Table 1: how well SeqPlayer plays, reading {reading}" in markdown
        assert f"({prefix}reliability.png)" in markdown
        assert rows(tmp_path / f"{prefix}table1.csv") != []
    assert "--reading both" in markdown
    assert "Arms" not in markdown


def test_the_arms_are_in_the_report_of_the_tables(tmp_path: Path, draw_only: Callable[[str], None]) -> None:
    draw_only("arms")
    report = reproduce(tmp_path, "tables", **SMALL)
    markdown = report.markdown.read_text()
    for arm in arms(LTTT):
        assert f"| {arm.name} | " in markdown
    assert "| the paper |  |  |  | 66.0 (21.0) | 82.0 (13.2) | 55.4 (5.5) | 57.4 (7.0) | 78 | 31 |" in markdown
    assert (tmp_path / "arms.png").stat().st_size > 0


def test_an_unknown_reading_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="expected the reading text, tables or both, got 'figures'"):
        reproduce(tmp_path, "figures", **SMALL)  # type: ignore[arg-type]


def test_every_claim_is_judged(small: ReportPaths) -> None:
    found = {row["claim"]: row for row in rows(small.folder / "claims.csv")}
    assert found.keys() == {claim.id for claim in claims() if claim.of["game"] == LTTT}
    assert {claim.measure for claim in claims()} == MEASURES.keys()
    assert len({claim.id for claim in claims()}) == len(claims())
    assert found["lttt.version2.perfect-reliability-level"]["target"] == "72.5287 91.4713"
    assert {row["verdict"] for row in found.values()} <= {"reproduced", "contradicted", "equivalent", "undecided"}


def test_tables_can_be_traced_to_their_runs(small: ReportPaths) -> None:
    (cell,) = [
        row
        for row in rows(small.folder / "table1.csv")
        if (row["row"], row["opponent"], row["what"]) == ("version 2", "novice", "power")
    ]
    with ResultStore(small.folder / STORE) as store:
        results = store.results("core/losetictactoe/learner", 2)
    scores = [result["scores"]["version 2"]["novice"] for result in results]
    assert float(cell["mean"]) == pytest.approx(np.mean([100 * wins / matches for matches, wins, _ in scores]))
    assert (cell["paper"], cell["paper_bold"]) == ("46.700000", "0")
    sequences = [int(row["sequences"]) for row in rows(small.folder / "table2.csv")]
    assert sequences == [len(result["met"]) for result in results]


def test_what_was_met_is_possible(small: ReportPaths) -> None:
    plan = Plan(runs=2, games=(LTTT,))
    with ResultStore(small.folder / STORE) as store:
        study = Study(plan, "core", {"core/losetictactoe/learner": store.results("core/losetictactoe/learner", 2)})
    words = " ".join(classes_words(study))
    assert "these are exactly the solos with three squares in a line" in words
    assert "a mistake of the program" not in words


def test_running_again_makes_no_run_and_finds_the_same(small: ReportPaths, draw_only: Callable[[str], None]) -> None:
    draw_only("nothing")
    before = (small.folder / "claims.csv").read_bytes()
    again = reproduce(small.folder, verdicts=True, **SMALL)
    assert again.headline == small.headline
    assert (small.folder / "claims.csv").read_bytes() == before
    assert "core 0.0 s (0 trials played, 6 already finished)" in again.markdown.read_text()


def test_other_settings_and_other_code_are_refused(small: ReportPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ExperimentError, match=r"got other settings in core/losetictactoe/\w+: seed was 2004, is 5"):
        reproduce(small.folder, seed=5, **SMALL)
    monkeypatch.setattr(page, "version", lambda: "another")
    with pytest.raises(ExperimentError, match="expected results of gamelore another"):
        reproduce(small.folder, **SMALL)


def test_a_run_that_broke_off_goes_on_where_it_stopped(
    small: ReportPaths, tmp_path: Path, draw_only: Callable[[str], None]
) -> None:
    draw_only("nothing")
    made: list[Trial] = []

    def break_off(trial: Trial, report: Any) -> list[Outcome]:
        if len(made) == 5:
            raise KeyboardInterrupt
        made.append(trial)
        return play_run(trial, report)

    core = page.Part("core", Plan(runs=2, share=0.2, games=(LTTT,)).core(), break_off)
    with ResultStore(tmp_path / STORE) as store:
        with pytest.raises(KeyboardInterrupt):
            page.run_part(core, store, workers=1, progress=False)
        assert store.finished() == {trial.key for trial in made}
    paths = reproduce(tmp_path, core=True, **SMALL)
    assert re.search(r"core \d+\.\d s \(1 trials played, 5 already finished\)", paths.markdown.read_text())
    assert (tmp_path / "table1.csv").read_bytes() == (small.folder / "table1.csv").read_bytes()


def test_more_runs_go_on_with_those_that_are_there(tmp_path: Path) -> None:
    found = []
    with ResultStore(tmp_path / STORE) as store:
        for runs in (1, 2):
            plan = Plan(runs=runs, share=0.2, games=(LTTT,))
            found.append(page.run_part(page.Part("core", plan.core()), store, workers=1, progress=False))
    assert [(one.played, one.stored) for one in found] == [(3, 0), (3, 3)]


def test_claims_rest_on_the_runs_that_are_judged() -> None:
    runs = [
        {
            "scores": {
                name: {other: [50, 0, 40] for other in ("perfect", "expert", "novice", "random")}
                for name in ("version 1", "version 2")
            },
            "classes": {"agreement": [9 + run % 2, 1, 1, 1]},
            "sequences": 80,
            "strategies": {"reflection": {"strong": 1, "num": 1, "best": None}},
        }
        for run in range(8)
    ]
    study = study_of(runs, [[50, 0, draws] for draws in (9, 10, 11, 10, 12, 8)])
    verdicts = {finding.claim.id: finding.verdict for finding in judge_claims(study)}
    assert verdicts["lttt.version2.perfect-reliability-level"] == "reproduced"
    assert verdicts["lttt.version1.perfect-reliability-rises"] == "reproduced"
    assert verdicts["lttt.version2.perfect-reliability-rises"] == "equivalent"
    assert verdicts["lttt.class1-over-all-others"] == "reproduced"
    assert verdicts["lttt.sequences"] == "reproduced"
    assert verdicts["lttt.strong-pairs"] == "contradicted"
