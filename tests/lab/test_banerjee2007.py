"""The reproduction of Banerjee & Stone 2007: its plan, and a small run of all of it."""

import csv
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gamelore.errors import ExperimentError
from gamelore.lab.claims import Claim
from gamelore.lab.experiment import SettingGrid
from gamelore.lab.papers.banerjee2007 import READINGS, demo, measures, reproduce
from gamelore.lab.papers.banerjee2007 import page as page_module
from gamelore.lab.papers.banerjee2007 import plan as plan_module
from gamelore.lab.papers.banerjee2007.measures import Cost, Evidence, Headroom, judge_claims
from gamelore.lab.papers.banerjee2007.page import _made_by, _verdict_words
from gamelore.lab.papers.banerjee2007.plan import (
    CONTROLS,
    FIGURES,
    HEADROOM_ARMS,
    TARGETS,
    TURNS,
    TURNS_ARMS,
    Plan,
    load_claims,
)
from gamelore.lab.report import ReportPaths
from gamelore.lab.results import Outcome, ResultStore, Trial

pytestmark = pytest.mark.xdist_group("banerjee2007")  # so that the small run is made once
RUNS, MATCHES = 2, 60


@pytest.fixture(scope="module", autouse=True)
def few_repeats() -> Iterator[None]:
    """Measure the costs of learners only twice."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measures, "REPEATS", 2)
        yield


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> ReportPaths:
    """The reading "figures" with two short runs, and with verdicts."""
    folder = tmp_path_factory.mktemp("small")
    return reproduce(
        folder, "figures", runs=RUNS, matches=MATCHES, workers=1, progress=False, verdicts=True, max_runs=3,
        parts=("controls", "sensitivity"),
    )  # fmt: skip


def plan_of(reading: str, runs: int = RUNS) -> Plan:
    return Plan(READINGS[reading], runs, MATCHES, 2007)


def test_learners_that_are_compared_share_seed_stage_and_opponent() -> None:
    for reading in READINGS:
        plan = plan_of(reading)
        for figure in FIGURES:
            settings = [plan.target(figure.game, figure.opponent, learner) for learner in figure.learners]
            assert len({(one.seed, one.stage, one.opponent, one.game, one.role) for one in settings}) == 1


def test_the_paper_states_these_numbers() -> None:
    for reading in READINGS:
        for setting in SettingGrid.of(plan_of(reading).parts(("core", "controls"))).settings.values():
            learner = setting.learner
            assert (learner.alpha, learner.gamma, learner.lam, learner.default) == (0.3, 1.0, 0.7, 50.0)
            if setting.stage == "target":
                assert learner.epsilon == 0.01
            assert setting.role == 0, "the learner moves first"


def test_a_transfer_learner_has_its_own_opponents_values() -> None:
    for opponent in ("egreedy", "random", "weak"):
        setting = plan_of("figures").target("othello4", opponent, "transfer")
        assert setting.source is not None
        assert setting.source.opponent == setting.opponent
        assert setting.source.game == "tictactoe"


def test_controls_differ_from_transfer_in_one_thing() -> None:
    plan = plan_of("figures")
    base = plan.target("connect3", "egreedy", "transfer").describe()
    changed = {}
    for kind in CONTROLS:
        other = plan.control("connect3", kind).describe()
        changed[kind] = {key for key in base if key != "id" and base[key] != other[key]}
    assert changed == {
        "terminal": {"learner"}, "features": {"learner"}, "shuffled": {"learner"}, "printed": {"source", "printed"},
        "from-random": {"source"}, "from-weak": {"source"},
    }  # fmt: skip


def test_verdicts_have_other_seeds_and_names() -> None:
    plan = plan_of("text")
    fresh = plan.verdicts()
    assert fresh.seed != plan.seed
    assert fresh.target("connect3", "egreedy", "transfer").id == "text-verdicts/connect3/egreedy/transfer"
    assert fresh.source("weak").seed == fresh.seed


def test_a_small_run_of_everything(small: ReportPaths) -> None:
    markdown, page = small.markdown.read_text(), small.html.read_text()
    assert small.headline in markdown
    for figure in range(3, 8):
        stem = small.folder / f"figure{figure}-figures"
        for suffix in (".png", ".svg", ".csv"):
            assert stem.with_suffix(suffix).stat().st_size > 0
        assert f"({stem.name}.png)" in markdown
    assert (
        page.count("data:image/svg+xml;base64,") == 10
    )  # figures 2 to 7 and the second mover's 2, Table 1, controls, claims
    for claim in load_claims():
        assert f"`{claim.id}`" in markdown


def test_a_figure_can_be_traced_to_its_trials(small: ReportPaths) -> None:
    with (small.folder / "figure3-figures.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["match"] == str(MATCHES) and row["averaged_from"] == "1"]
    with ResultStore(small.folder / "results.db") as store:
        for row in rows:
            rewards = store.rewards(f"figures/connect3/egreedy/{row['learner']}")
            assert float(row["mean"]) == pytest.approx(rewards.mean(), abs=1e-5)
            assert rewards.shape == (RUNS, MATCHES)


def test_every_claim_has_a_row_with_its_settings(small: ReportPaths) -> None:
    with (small.folder / "claims.csv").open(newline="") as file:
        rows = {row["claim"]: row for row in csv.DictReader(file)}
    assert rows.keys() == load_claims().claims.keys()
    assert rows["features.tictactoe"]["verdict"] == "reproduced"
    row = rows["figure3.transfer-over-baseline"]
    assert row["settings"] == " ".join(f"figures-verdicts/connect3/egreedy/{x}" for x in ("baseline", "transfer"))
    assert row["runs"] == "3", "as many as the limit allows"


def test_running_again_plays_nothing_and_finds_the_same(small: ReportPaths, draw_only: Callable[[str], None]) -> None:
    draw_only("nothing")
    before = (small.folder / "claims.csv").read_bytes()
    again = reproduce(
        small.folder, "figures", runs=RUNS, matches=MATCHES, workers=1, progress=False, verdicts=True, max_runs=3,
        parts=("controls", "sensitivity"),
    )  # fmt: skip
    assert again.headline == small.headline
    assert (small.folder / "claims.csv").read_bytes() == before
    assert "(0 trials played" in again.markdown.read_text()


def test_other_settings_are_refused(small: ReportPaths) -> None:
    with pytest.raises(ExperimentError, match="choose another folder with --out"):
        reproduce(small.folder, "figures", runs=RUNS, matches=MATCHES + 1, workers=1, progress=False)
    with pytest.raises(ExperimentError, match=r"expected the reading text, figures or both, got 'tea leaves'"):
        reproduce(small.folder, "tea leaves", runs=RUNS)  # type: ignore[arg-type]


def test_verdict_runs_are_as_many_as_claims_ask_for(small: ReportPaths) -> None:
    plan, claims = plan_of("figures"), load_claims()
    with ResultStore(small.folder / "results.db") as store:
        costs = {game: _cost(store, game) for game in TARGETS}
        findings = judge_claims(claims, Evidence(store, "figures", "tictactoe", claims.table, RUNS, costs))
    settings = plan.verdicts().of_findings(findings).settings
    by_claim = {finding.claim.id: finding for finding in findings}
    level = by_claim["figure3.level-baseline"]
    baseline = settings["figures-verdicts/connect3/egreedy/baseline"]
    assert baseline.runs >= min(level.wanted, level.claim.max_runs)
    assert baseline.runs <= max(claim.max_runs for claim in claims)
    assert baseline.seed == plan.verdicts().seed
    assert not any("~" in name for name in settings), "controls judge no claim"


def _cost(store: ResultStore, game: str) -> Cost:
    return Cost(**store.noted(f"cost/figures/{game}"))


def test_runs_are_the_same_in_a_longer_experiment(small: ReportPaths, tmp_path: Path) -> None:
    from gamelore.lab.experiment import run_grid

    name = "figures/capturego3/egreedy/transfer"
    longer = plan_of("figures", runs=4).target("capturego3", "egreedy", "transfer")
    with ResultStore(tmp_path / "longer.db") as store, ResultStore(small.folder / "results.db") as first:
        run_grid(SettingGrid.of([longer]), store, workers=1, progress=False)
        assert np.array_equal(store.rewards(name, RUNS), first.rewards(name))


def test_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "SWEPT_MATCHES", (10, 30))
    paths = demo(tmp_path, runs=2, matches=20, workers=1, progress=False)
    assert paths.html.parent == tmp_path
    assert "2 runs" in paths.headline
    assert "(verdict of 500 runs: undecided, +0.27 [+0.00, +0.54]) against the random opponent" in paths.headline
    assert paths.headline.count("(too few runs) (verdict of ") == 5
    assert "The 2 runs of this report are too few for verdicts" in paths.headline
    markdown = paths.markdown.read_text()
    assert not re.search(
        r"\d \[[+-]?[\d.inf]+, [+-]?[\d.inf]+\]", markdown.replace(paths.headline, "").split("## What")[0]
    )
    assert "| preliminary | the project's verdict |" in markdown
    assert "95 % bands" not in markdown


# ---- how far initial values can go ----


def test_every_endpoint_of_the_headroom_compares_the_oracle_with_lookahead() -> None:
    endpoints = load_claims().headroom
    assert len(endpoints) == len({claim.id for claim in endpoints}) == 6 * 3 * 2
    assert {claim.id for claim in endpoints}.isdisjoint(load_claims().claims)
    for claim in endpoints:
        assert (claim.measure, claim.of["left"], claim.of["right"]) == ("difference", "oracle", "lookahead")
        assert (claim.test, claim.target) == ("above", (0.0,))
    margins = {claim.id: claim.margin for claim in endpoints}
    assert margins["headroom.othello4-weak-late"] == 0.1
    assert margins["headroom.othello4-random-late"] == 0.3
    assert margins["headroom.goofspiel-random-early"] == 0.5


def test_the_arms_of_the_headroom_differ_only_in_their_initial_values() -> None:
    plan = plan_of("figures")
    settings = {setting.id: setting for setting in plan.headroom()}
    assert len(settings) == 6 * 3 * (4 + 4)
    for game, opponent in (("othello4", "weak"), ("breakthrough", "random")):
        arms = [settings[f"figures/{game}/{opponent}/{arm}"] for arm in HEADROOM_ARMS]
        assert [arm.learner.kind for arm in arms] == list(HEADROOM_ARMS)
        assert len({replace(arm.learner, kind="baseline") for arm in arms}) == 1
        assert len({(arm.seed, arm.stage, arm.opponent, arm.matches) for arm in arms}) == 1


def test_every_endpoint_of_turns_compares_with_lookahead_or_baseline() -> None:
    endpoints = load_claims().turns
    assert len(endpoints) == len({claim.id for claim in endpoints}) == 6 * 3 * 2 * 2
    assert {claim.id for claim in endpoints}.isdisjoint(load_claims().claims)
    assert {(claim.of["left"], claim.of["right"]) for claim in endpoints} == {
        ("turns", "lookahead"),
        ("turns", "baseline"),
    }
    margins = {claim.id: claim.margin for claim in endpoints}
    assert margins["turns.othello4-random-baseline-late"] == 0.3
    assert margins["turns.connect3-weak-lookahead-early"] == 0.5


def test_the_learner_with_turns_its_ablations_and_the_lookahead_of_equal_depth() -> None:
    settings = {setting.id: setting for setting in plan_of("figures").headroom()}
    arms = {arm: settings[f"figures/othello4/weak/{arm}"] for arm in ("transfer", *TURNS_ARMS)}
    whole = arms["turns"].learner
    assert whole == replace(arms["transfer"].learner, turns=TURNS)
    assert arms["turns-replies"].learner == replace(whole, control="replies")
    assert arms["turns-minimax"].learner == replace(whole, control="minimax")
    deep = arms["lookahead-deep"].learner
    assert (deep.kind, deep.depth) == ("lookahead", whole.depth + 2 * TURNS)
    assert [arm.source == arms["transfer"].source for arm in arms.values()] == [True] * 4 + [False]


def test_endpoints_that_a_review_added_have_a_note_and_the_same_margins() -> None:
    claims = load_claims()
    assert len({claim.id for claim in (*claims.room, *claims.deep)}) == 6 * 3 * 2 * 2
    assert all("before any result" in claim.note for claim in (*claims.room, *claims.deep))
    for room, deep, oracle in zip(claims.room, claims.deep, claims.headroom, strict=True):
        cell = [{key: claim.of[key] for key in ("game", "opponent", "window")} for claim in (room, deep, oracle)]
        assert cell[0] == cell[1] == cell[2]
        assert (room.measure, room.of["learner"], room.test) == ("below_ceiling", "lookahead", "within")
        assert room.target == (-math.inf, oracle.margin)
        assert (deep.of["left"], deep.of["right"]) == ("turns", "lookahead-deep")
        assert (deep.measure, deep.test, deep.target, deep.margin) == ("difference", "above", (0.0,), oracle.margin)
    assert claims.margin_words == "0.5 early; 0.1 late, 0.3 against Random"


def headroom_of(store: ResultStore, ceiling: list[float], rewards: dict[str, list[float]]) -> Headroom:
    """The endpoints of one cell (Othello, weak opponent, late). Arms that are not in `rewards` always get 90 points."""
    plan, claims, runs = plan_of("text", len(ceiling)), load_claims(), range(len(ceiling))
    for setting in plan.headroom():
        _, game, opponent, arm = setting.id.split("/")
        for run in runs if (game, opponent) == ("othello4", "weak") else ():
            reward = np.array([rewards.get(arm, [90.0] * len(runs))[run]], np.float32)
            result = {"expected": ceiling[run]} if arm == "oracle" else {}
            store.add([Outcome(Trial(setting, run), reward, np.ones(1, np.int16), result=result)], "1.0")

    def of_cell(family: str) -> tuple[Claim, ...]:
        return tuple(x for x in getattr(claims, family) if "othello4-weak" in x.id and x.id.endswith("late"))

    claims = replace(claims, **{family: of_cell(family) for family in ("headroom", "room", "turns", "deep")})
    return Headroom.judged(claims, Evidence(store, "text", "tictactoe", claims.table, len(runs)))


@pytest.mark.parametrize(
    ("distance", "verdict", "word"),
    [
        (0.05, "reproduced", "no room"), (0.1, "undecided", "undecided"), (0.5, "contradicted", "room"),
        (-1.0, "reproduced", "no room"),
    ],
)  # fmt: skip
def test_room_is_judged_by_the_ceiling_and_not_by_the_oracle(
    store: ResultStore, distance: float, verdict: str, word: str
) -> None:
    ceiling = (90 + distance + np.linspace(-0.02, 0.02, 8)).tolist()
    judged = headroom_of(store, ceiling, {"oracle": [80.0] * 8})
    assert [finding.verdict for finding in judged.room] == [verdict]
    assert _verdict_words(judged.room[0]) == {"ahead": "", "room": word}
    assert judged.room[0].interval.mean == pytest.approx(distance)
    assert _verdict_words(judged.oracle[0]) == {"ahead": "behind", "room": ""}


def test_holms_correction_of_turns_includes_the_lookahead_of_equal_depth(store: ResultStore) -> None:
    judged = headroom_of(store, [99.0] * 8, {"turns": [90.5, 91, 91.5, 92, 90.5, 91, 91.5, 89], "oracle": [80.0] * 8})
    assert list(judged.turns) == ["lookahead", "baseline", "lookahead-deep"]
    for (finding,) in judged.turns.values():
        assert finding.p is not None
        assert finding.adjusted == pytest.approx(3 * finding.p)
    assert len(judged.findings) == 5


def test_a_small_headroom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, draw_only: Callable[[str], None]) -> None:
    draw_only("headroom")
    monkeypatch.setattr(plan_module, "HEADROOM_GAMES", ("capturego3", "goofspiel"))
    given = {"runs": 5, "matches": MATCHES, "workers": 1, "progress": False, "parts": (), "headroom": True}
    made = reproduce(tmp_path, "figures", **given)
    markdown = made.markdown.read_text()
    assert "## How far initial values can go, reading figures" in markdown
    assert (tmp_path / "headroom-figures.png").stat().st_size > 0
    with (tmp_path / "headroom.csv").open(newline="") as file:
        rows = {row["claim"]: row for row in csv.DictReader(file)}
    assert len(rows) == 2 * 3 * 2 * 5
    row = rows["headroom.goofspiel-random-late"]
    assert row["runs"] == "5"
    assert float(row["mean"]) > 5
    assert row["settings"] == "figures/goofspiel/random/lookahead figures/goofspiel/random/oracle"
    assert (row["ahead"], row["room"]) == ("undecided", "")
    room = rows["room.goofspiel-random-late"]
    assert (room["ahead"], room["room"], room["target"]) == ("", "room", "-inf 0.3")
    assert (
        "| turns - lookahead | turns - baseline | turns - lookahead-deep | turns - replies | turns - minimax |"
        in markdown
    )
    assert "not at equal depth" in markdown
    assert " (0.5 early; 0.1 late, 0.3 against Random)" in markdown
    assert "--headroom" not in markdown.split("Where the numbers come from")[0]
    assert "headroom=True, parts=())`" in markdown.split("Where the numbers come from")[1]
    with ResultStore(tmp_path / "results.db") as store:
        ceilings = [result["expected"] for result in store.results("figures/goofspiel/random/oracle")]
        assert ceilings == pytest.approx([90.463] * 5, abs=1e-3)
        hashed = [result["expected"] for result in store.results("figures/goofspiel/weak/oracle")]
        assert len(set(hashed)) == 5
        assert "expected" not in store.results("figures/goofspiel/weak/lookahead")[0]
    with (tmp_path / "claims.csv").open(newline="") as file:
        assert {row["claim"] for row in csv.DictReader(file)} == load_claims().claims.keys()


def test_claims_of_the_paper_have_their_own_runs_with_and_without_headroom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, draw_only: Callable[[str], None]
) -> None:
    """The runs of --headroom have the same ids as those of the claims, and here they are 8 instead of 6."""
    draw_only("nothing")
    monkeypatch.setattr(plan_module, "HEADROOM_GAMES", ("capturego3",))
    claims = load_claims()
    fewer = {name: replace(claim, max_runs=min(6, claim.max_runs)) for name, claim in claims.claims.items()}
    monkeypatch.setattr(page_module, "load_claims", lambda: replace(claims, claims=fewer))
    given = {"runs": 5, "matches": 20, "workers": 1, "progress": False, "parts": (), "verdicts": True, "max_runs": 8}
    first, second = tmp_path / "first", tmp_path / "second"
    reproduce(first, "figures", **given)
    before = (first / "claims.csv").read_bytes()
    reproduce(first, "figures", **given, headroom=True)
    assert (first / "claims.csv").read_bytes() == before
    with ResultStore(first / "results.db") as store, ResultStore(second / "results.db") as copy:
        assert len(store.results("figures-verdicts/tictactoe/egreedy/source")) == 8
        assert len(store.results("figures-verdicts/capturego3/egreedy/transfer")) == 8
        for name in (f"cost/figures/{game}" for game in TARGETS):  # times differ from call to call
            copy.note(name, store.noted(name))
    made = reproduce(second, "figures", **given, headroom=True)
    assert (second / "claims.csv").read_bytes() == before
    with (second / "claims.csv").open(newline="") as file:
        runs = {row["claim"]: row["runs"] for row in csv.DictReader(file)}
    assert {runs[f"table1.rmse-{opponent}"] for opponent in ("egreedy", "random", "weak")} == {"6"}
    with (second / "headroom.csv").open(newline="") as file:
        assert {row["runs"] for row in csv.DictReader(file)} == {"8"}
    assert "Further runs of the same settings, as those of `--headroom`, are not used." in made.markdown.read_text()


def test_the_report_names_what_made_it() -> None:
    given = {"runs": 5, "matches": 60, "seed": 1, "verdicts": True, "headroom": True}
    nothing = {"max_runs": None, "parts": None}
    options = "--reading both --runs 5 --matches 60 --seed 1 --verdicts --headroom --out out"
    assert _made_by(Path("out"), "both", given, nothing) == ("command", f"`gamelore reproduce banerjee2007 {options}`")
    options = "out='out', reading='both', runs=5, matches=60, seed=1, verdicts=True, headroom=True, max_runs=3"
    call = f"`gamelore.lab.papers.banerjee2007.reproduce({options})`"
    assert _made_by(Path("out"), "both", given, {**nothing, "max_runs": 3}) == ("call", call)
