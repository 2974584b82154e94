"""Endpoints on trials made by hand."""

from dataclasses import replace

import numpy as np
import pytest

from gamelore.errors import ExperimentError
from gamelore.lab import stats
from gamelore.lab.claims import Claim
from gamelore.lab.papers.banerjee2007.measures import Cost, Evidence, column_rmse, judge_claims, rmse
from gamelore.lab.papers.banerjee2007.plan import PrintedTable
from gamelore.lab.results import Outcome, ResultStore, Trial
from gamelore.learning.store.features import FeatureValues
from lab.pretended import make_setting, make_source

TABLE = PrintedTable({"a": "L", "b": "{D}"}, {"a": (40.0, 45.0, 50.0), "b": (50.0, 50.0, 50.0)}, ())
CLAIM = Claim("x.y", "place", "words", "difference", {}, "above", (0.0,), 400, margin=1.0, half_width=1.0)


@pytest.fixture
def evidence(store: ResultStore) -> Evidence:
    """Three runs of four matches: one learner gains 50 a match in the second half, 25 in the second run."""
    rewards = {
        "baseline": [[0, 0, 0, 0], [0, 100, 50, 50], [50, 50, 0, 0]],
        "transfer": [[0, 0, 50, 50], [0, 100, 100, 50], [50, 50, 50, 50]],
    }
    for learner, runs in rewards.items():
        setting = make_setting(f"pre/game/egreedy/{learner}")
        for run, row in enumerate(runs):
            add(store, setting, run, row)
    values = [{"L": (30.0, 1), "{D}": (50.0, 2)}, {"L": (44.0, 1)}]
    for run, one in enumerate(values):
        add(store, make_source("pre/source/egreedy/source"), run, [0, 0, 0, 0], FeatureValues(one))
    return Evidence(store, "pre", "source", TABLE, costs={"game": Cost([1.0, 1.5, 2.0], {}, {})})


def add(store: ResultStore, setting: object, run: int, rewards: list[int], values: FeatureValues | None = None) -> None:
    trial = Trial(setting, run)  # type: ignore[arg-type]
    lengths = np.ones(len(rewards), np.int16)
    store.add([Outcome(trial, np.array(rewards, np.float32), lengths, values)], "1.0")


def measured(evidence: Evidence, measure: str, **of: object) -> tuple[float, int]:
    """Mean and number of runs of one measure."""
    (finding,) = judge_claims([replace(CLAIM, measure=measure, of=of)], evidence)
    return pytest.approx(finding.interval.mean), finding.interval.num


def test_rewards(evidence: Evidence) -> None:
    where = {"game": "game", "opponent": "egreedy"}
    late = {"window": [1501, 3000]}  # of 3000; here the last two of four
    assert measured(evidence, "difference", left="transfer", right="baseline", **where, **late) == (
        (50 + 25 + 50) / 3,
        3,
    )
    assert measured(evidence, "level", learner="transfer", **where, **late) == ((50 + 75 + 50) / 3, 3)
    assert measured(evidence, "slope", learner="transfer", **where, window=[1, 3000]) == ((20_000 + 15_000 + 0) / 3, 3)
    fast = {"learner": "transfer", "level": 95, "trailing": 2, "before": 4}
    assert measured(evidence, "reaches", **where, **fast) == (1 / 3, 3)  # the second run, at match 3
    gap = {"learner": "transfer", "left": "game/egreedy", "right": "game/egreedy"}
    assert measured(evidence, "gap", **gap, **late) == (0, 3)


def test_features(evidence: Evidence) -> None:
    assert measured(evidence, "table1_value", feature="a", opponent="egreedy") == (37, 2)
    assert measured(evidence, "table1_value", feature="b", opponent="egreedy") == (50, 1)
    assert measured(evidence, "table1_rmse", opponent="egreedy") == (np.sqrt((37 - 40) ** 2 / 2), 2)
    assert measured(evidence, "table1_difference", feature="a", left="egreedy", right="egreedy") == (0, 2)


def test_a_feature_that_no_run_met(evidence: Evidence) -> None:
    unmet = replace(evidence, table=replace(TABLE, features={"a": "{W}"}))
    (finding,) = judge_claims(
        [replace(CLAIM, measure="table1_value", of={"feature": "a", "opponent": "egreedy"})], unmet
    )
    assert finding.verdict == "undecided"
    assert column_rmse([FeatureValues({"L": (44.0, 1)})], {"L": 40.0, "{W}": 0.0}).mean == 4.0
    assert rmse([FeatureValues({"L": (44.0, 1)})], {"L": 40.0, "{W}": 0.0}) == 4.0


def test_costs(evidence: Evidence) -> None:
    assert measured(evidence, "cost", game="game", opponent="egreedy", left="a", right="b") == (1.5, 3)
    with pytest.raises(ExperimentError, match="expected the times of a and b in chess"):
        measured(evidence, "cost", game="chess", opponent="egreedy", left="a", right="b")


def test_a_finding_names_its_settings_and_the_runs_it_would_need(evidence: Evidence) -> None:
    of = {"game": "game", "opponent": "egreedy", "left": "transfer", "right": "baseline", "window": [1501, 3000]}
    (finding,) = judge_claims([replace(CLAIM, of=of)], evidence)
    assert finding.settings == ("pre/game/egreedy/baseline", "pre/game/egreedy/transfer")
    # the deviation of 50, 25 and 50 is 14.434, its upper limit 14.434 * sqrt(2 / 0.44629) = 30.556
    assert finding.wanted == pytest.approx((1.9608 * 30.556) ** 2, rel=1e-3)
    assert finding.p == finding.adjusted, "a family of one"


def test_directional_claims_are_corrected_together(evidence: Evidence) -> None:
    of = {"game": "game", "opponent": "egreedy", "left": "transfer", "right": "baseline", "window": [1501, 3000]}
    found = judge_claims([replace(CLAIM, id=name, of=of) for name in "abc"], evidence)
    for finding in found:
        assert finding.p is not None
        assert finding.adjusted == pytest.approx(min(1, 3 * finding.p))


def test_a_few_runs_that_all_agree_decide_nothing(evidence: Evidence) -> None:
    of = {"game": "game", "opponent": "egreedy", "learner": "transfer", "window": [1, 1500]}
    claim = replace(CLAIM, measure="level", of=of, test="within", target=(90.0, 100.0))
    name, level = "pre/game/weak/same", [100, 100, 0, 0]
    for run in range(6):
        add(evidence.store, make_setting(name), run, level)
        (finding,) = judge_claims([replace(claim, of={**of, "opponent": "weak", "learner": "same"})], evidence)
        assert finding.interval.mean == 100
        assert finding.verdict == ("reproduced" if run == 5 else "undecided")


def test_every_test_is_undecided_with_too_few_runs(evidence: Evidence) -> None:
    of = {"game": "game", "opponent": "weak", "learner": "some", "window": [1, 1500]}
    claims = [
        replace(CLAIM, id=test, measure="level", of=of, test=test, target=target)
        for test, target in (("above", (0.0,)), ("below", (0.0,)), ("within", (0.0, 9.0)), ("equals", (1.0,)))
    ]
    for run in range(stats.FEWEST_SHOWN):
        add(evidence.store, make_setting("pre/game/weak/some"), run, [48 + run, 52, 0, 0])
        verdicts = [finding.verdict for finding in judge_claims(claims, evidence)]
        if run < stats.FEWEST_SHOWN - 1:
            assert verdicts == ["undecided"] * 4
    assert verdicts == ["reproduced", "contradicted", "contradicted", "contradicted"]
    (equal,) = judge_claims([replace(claims[-1], target=(51.0,))], evidence)
    assert equal.verdict == "undecided", "the interval reaches to both sides of 51"


def test_counted_claims_have_no_p(evidence: Evidence) -> None:
    claim = replace(CLAIM, measure="feature_count", of={"game": "tictactoe", "role": 0}, test="equals", target=(12.0,))
    twelve, ten = judge_claims([claim, replace(claim, id="o", of={"game": "tictactoe", "role": 1})], evidence)
    assert (twelve.p, twelve.verdict, twelve.interval.mean) == (None, "reproduced", 12.0)
    assert (ten.verdict, ten.interval.mean) == ("contradicted", 10.0)


def test_unknown_measures_are_refused(evidence: Evidence) -> None:
    with pytest.raises(ExperimentError, match=r"expected one of the measures .* got 'beauty' in x\.y"):
        judge_claims([replace(CLAIM, measure="beauty")], evidence)
