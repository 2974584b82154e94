"""Any source to any targets."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from gamelore import rulesheets
from gamelore.errors import ExperimentError
from gamelore.lab.experiment import SettingGrid
from gamelore.lab.results import ResultStore
from gamelore.lab.studies.transfer_study import FOUR_GAMES, TransferPlan, every_pair, transfer, windows


def test_every_source_to_every_target_from_both_roles_to_both() -> None:
    plans = every_pair(runs=1, matches=2)
    pairs = {(p.source, p.source_role, t, p.target_role) for p in plans for t in p.targets}
    assert pairs == set(product(FOUR_GAMES, (0, 1), FOUR_GAMES, (0, 1)))
    names = SettingGrid.of(setting for plan in plans for setting in plan.settings()).settings
    assert len(names) == 8 + 64 + 2 * 8  # sources; transfer learners; baselines and lookahead learners, shared


def test_a_small_transfer(tmp_path: Path) -> None:
    targets = ("tictactoe", "losetictactoe")
    plan = TransferPlan("capturego3", targets, target_role=1, runs=2, matches=30, source_matches=20)
    result = transfer(plan, tmp_path, workers=1, progress=False)
    assert [(gain.source, gain.target) for gain in result.gains] == [
        ("capturego3", "tictactoe.role2"),
        ("capturego3", "losetictactoe.role2"),
    ]
    assert json.loads(json.dumps(result.gains[0].as_json()))["late"].keys() == {"baseline", "lookahead"}
    with ResultStore(tmp_path / "results.db") as store:
        baseline = store.rewards("tictactoe.role2/egreedy/baseline")
        moved = store.rewards("tictactoe.role2/egreedy/transfer-from-capturego3")
    wanted = np.mean(moved[:, 3:] - baseline[:, 3:])
    assert result.gains[0].late["baseline"].mean == pytest.approx(wanted, abs=1e-5)
    assert result.report.headline in result.report.markdown.read_text().replace("\\", "")
    assert (tmp_path / "capturego3-to-tictactoe-role2.png").exists()
    assert (tmp_path / "gains.csv").read_text().count("\n") == 1 + 2 * 7


def test_no_report_replaces_that_of_another_experiment(tmp_path: Path) -> None:
    plan = TransferPlan("tictactoe", ("losetictactoe",), runs=2, matches=8, source_matches=8)
    before = transfer(plan, tmp_path, workers=1, progress=False).report.markdown.read_bytes()
    for other in (replace(plan, targets=("tictactoe",)), replace(plan, runs=1), replace(plan, learners=("baseline",))):
        with pytest.raises(ExperimentError, match=r"got run .*, too, which .*; choose another folder with --out"):
            transfer(other, tmp_path, workers=1, progress=False)
        assert (tmp_path / "report.md").read_bytes() == before
    more = replace(plan, targets=("losetictactoe", "tictactoe"), runs=3)
    assert len(transfer(more, tmp_path, workers=1, progress=False).gains) == 2


def test_learners_are_compared_without_a_source(tmp_path: Path) -> None:
    plan = TransferPlan("", ("tictactoe",), learners=("baseline", "lookahead"), runs=2, matches=30)
    result = transfer(plan, tmp_path, workers=1, progress=False)
    assert [(gain.source, gain.target, [*gain.levels], gain.late) for gain in result.gains] == [
        ("", "tictactoe", ["baseline", "lookahead"], {})
    ]
    headline = result.report.headline
    assert headline.startswith("Mean reward of matches 4 to 30 against the egreedy opponent (2 runs, too few for inter")
    assert headline.count(" in tictactoe") == 2
    markdown = result.report.markdown.read_text()
    assert markdown.startswith("# Learning tictactoe\n")
    assert "| target | learner | matches 4-30 |\n" in markdown
    assert "| source | none |" in markdown
    assert "ain" not in markdown.partition("## Curves")[0].replace("against", "")
    assert [picture.name for picture in result.pictures] == ["tictactoe"]
    with pytest.raises(ExperimentError, match="expected a source for the transfer learner, got none"):
        transfer(TransferPlan("", ("tictactoe",)), tmp_path)


def test_many_pairs_are_counted_after_a_correction(tmp_path: Path) -> None:
    plans = [
        TransferPlan(
            "tictactoe", ("tictactoe", "losetictactoe"), runs=2, matches=8, source_matches=8, source_role=source
        )
        for source in (0, 1)
    ]
    plans.append(TransferPlan("losetictactoe", ("tictactoe",), runs=2, matches=8, source_matches=8))
    result = transfer(plans, tmp_path, workers=1, progress=False)
    # two runs that agree have p 0.5, and five differences no p below 0.05 unless one is tiny
    assert result.report.headline.endswith(
        "(2 runs, p < 0.05 after Holm's correction over the pairs): above 0 in 0 of 5 pairs and below in 0."
    )


def test_own_sheets_are_named_not_located(tmp_path: Path) -> None:
    sheets = tmp_path / "some folder"
    sheets.mkdir()
    own = [sheets / "mine.kif", sheets / "yours.kif"]
    for path, game in zip(own, ("tictactoe", "losetictactoe"), strict=True):
        path.write_text(rulesheets.path(game).read_text(encoding="utf-8"), encoding="utf-8")
    plan = TransferPlan(str(own[0]), (str(own[1]), "tictactoe"), runs=3, matches=20, source_matches=10)
    result = transfer(plan, tmp_path / "out", workers=1, progress=False)
    markdown = result.report.markdown.read_text()
    assert markdown.startswith("# Transfer from mine to yours, tictactoe\n")
    for text in (markdown, result.report.html.read_text(), (tmp_path / "out" / "gains.csv").read_text()):
        assert "some folder" not in text
    assert "from mine to yours" in result.report.headline
    gains = [line for line in markdown.splitlines() if line.startswith(("| target", "| yours | ", "| tictactoe | "))]
    assert len(gains) == 1 + 2 * 3
    assert max(map(len, gains)) <= 100
    assert "[" not in result.report.headline, "too few runs for intervals"


def test_the_first_tenth_and_the_rest() -> None:
    assert windows(3000) == ((1, 300), (301, 3000))
    assert windows(1) == ((1, 1), (1, 1))


def test_a_path_that_no_store_keeps_is_refused_before_anything_is_played(tmp_path: Path) -> None:
    for game in ("a\udcff.kif", "a\nb.kif", "\x1b[2J"):
        with pytest.raises(
            ExperimentError, match=r"expected a path without control characters, in UTF-8, got '.*rename"
        ):
            transfer(TransferPlan("tictactoe", (game,)), tmp_path)
    assert not list(tmp_path.iterdir())


def test_targets_are_named_once(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="expected every target once, got connect3, connect3"):
        transfer(TransferPlan("tictactoe", ("connect3", "connect3")), tmp_path)
    with pytest.raises(ExperimentError, match="expected every target once, got no targets"):
        transfer(TransferPlan("tictactoe", ()), tmp_path)
