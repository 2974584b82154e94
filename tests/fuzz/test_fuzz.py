"""A few examples of every fuzzer, new ones each time, and all that `make fuzz` and `make hostile` ever found."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import mutants
import scrambling
from agreement import assert_agreement, walk
from evaluators import Gates, Make, Plainly, Unfit, eagerly, program_of
from fuzz import running
from fuzz.fuzzer import FOUND, Check, Example, Fuzzer, load, store
from fuzz.fuzzers import EVERY, FUZZERS, texts
from gamelore import rulesheets
from gamelore.circuit.aig import Builder
from gamelore.gdl import clauses, syntax
from gamelore.ground.optimize import rewrite, rewrite_for_a_state
from parsing import assert_work_grows_with_size
from random_programs import rulesheet
from reducing import reduced, reduced_sheet

EXAMPLES = dict(
    **dict(programs=4, mutants=4, matches=4, proofs=4, circuits=3, parser=15, names=5, order=6),
    **dict(floods=4, imports=8, messages=1, kills=1, sheets=2, stores=3, disks=1, rivals=1, actions=40, pickles=1),
    pages=1,
)
LONG = {"kills", "rivals"}  # an example takes a quarter of a minute


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.long if name in LONG else ()) for name in EVERY])
def test_a_few_examples(name: str) -> None:
    @settings(
        max_examples=EXAMPLES[name],
        derandomize=True,
        deadline=None,
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
    )
    @given(st.integers(0, 2**32 - 1))
    def holds(seed: int) -> None:
        """`make fuzz FUZZERS=name SEED=seed` cuts down an example that fails."""
        with suppress(Unfit):
            check(EVERY[name].draw(Random(seed)))

    with EVERY[name].checking(steadily=True) as check:
        holds()


@pytest.fixture(scope="module")
def check_of() -> Iterator[Callable[[str], Check]]:
    """The check of each fuzzer; what takes long to start for it is started once for all examples."""
    with ExitStack() as stack:
        yield cache(lambda name: stack.enter_context(EVERY[name].checking()))


@pytest.mark.parametrize("path", sorted(FOUND.rglob("*.*")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_what_was_found(check_of: Callable[[str], Check], path: Path) -> None:
    check_of(path.parent.name)(load(path))


@pytest.mark.parametrize("name", rulesheets.names())
def test_names_and_order_of_shipped_games_do_not_matter(name: str) -> None:
    text = rulesheets.path(name).read_text(encoding="utf-8")
    scrambling.assert_names_do_not_matter(text, scrambling.scrambled(text, Random(name)))
    scrambling.assert_order_does_not_matter(text, scrambling.shuffled(text, Random(name)))


def test_names_do_not_matter_to_the_reasoner() -> None:
    text = rulesheets.path("tictactoe").read_text(encoding="utf-8")
    scrambling.assert_names_do_not_matter(text, scrambling.scrambled(text, Random(1)), engine="reasoner", most=500)


# ---- the fuzzers find what is planted ------------------------------------------------------------------------------


def without_first_test(sheet: syntax.Rulesheet) -> syntax.Rulesheet:
    """A rewriting gone wrong: the first `distinct` of the sheet is lost."""
    for place, rule in enumerate(sheet.rules):
        body = tuple(part for part in rule.body if not isinstance(part, syntax.Distinct))
        if len(body) < len(rule.body):
            changed = syntax.Rule(rule.head, body, rule.location, bool(body))
            return syntax.Rulesheet((*sheet.rules[:place], changed, *sheet.rules[place + 1 :]), sheet.text)
    return sheet


def first_found(fuzzer: Fuzzer) -> Any:
    """The first example that fails, cut down."""
    drawn = (fuzzer.draw(Random(seed)) for seed in range(200))
    return fuzzer.reduced(next(filter(fuzzer.fails, drawn)))


def test_a_wrong_rewriting_is_found_and_cut_down() -> None:
    wrong: dict[str, Make] = {"gates, wrong": lambda sheet: Gates(program_of(without_first_test(sheet)))}
    small = syntax.parse(first_found(Fuzzer(rulesheet, lambda text: assert_agreement(text, wrong), reduced_sheet)))
    assert 1 <= len(small.rules) <= 12
    assert sum(isinstance(part, syntax.Distinct) for rule in small.rules for part in rule.body) == 1


def test_a_wrong_gate_is_found_and_cut_down() -> None:
    def wrong(builder: Builder, a: int, b: int) -> int:
        return builder.conjunction(a, b)

    with patch.object(Builder, "disjunction", wrong):
        small = first_found(FUZZERS["circuits"])
    assert 1 <= len(small["steps"]) <= 3
    assert "or" in {step["kind"] for step in small["steps"]}
    FUZZERS["circuits"].check(small)


def test_a_game_of_other_counts_is_not_the_same() -> None:
    text, other = (rulesheets.path(name).read_text(encoding="utf-8") for name in ("tictactoe", "connect3"))
    with pytest.raises(AssertionError):
        scrambling.assert_order_does_not_matter(text, other)


def test_reading_a_text_again_and_again_is_found() -> None:
    plain = syntax.parse_around_errors

    def slow(text: str) -> Any:
        return [plain(text[:end]) for end in range(0, len(text), 100)][-1]

    assert_work_grows_with_size("(role a) (init b)")
    with patch.object(syntax, "parse_around_errors", slow), pytest.raises(AssertionError):
        assert_work_grows_with_size("(role a) (init b)")


class Planted:
    """A fuzzer of texts that are all x. A text is too long from three letters on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.found = folder / "found" / "planted"
        self.present = folder / "present"
        self.present.mkdir()
        self._monkeypatch = monkeypatch
        monkeypatch.setattr("fuzz.fuzzer.FOUND", self.found.parent)
        monkeypatch.setattr(running, "START", "fork")  # a new process would not know this fuzzer

    def plant(self, check: Callable[[str], object], at_end: Callable[[], object] = lambda: None) -> None:
        @contextmanager
        def session() -> Iterator[Callable[[str], object]]:
            yield check
            at_end()

        fuzzer = Fuzzer(lambda random: "x" * random.randint(0, 9), check, self.shorter, session)  # type: ignore[arg-type]
        self._monkeypatch.setitem(EVERY, "planted", fuzzer)

    @staticmethod
    def shorter(text: str, fails: Callable[[Any], bool]) -> str:
        return "".join(reduced(text, lambda parts: fails("".join(parts))))

    @staticmethod
    def fails_on_long(text: str) -> None:
        assert len(text) < 3, "too long"

    @staticmethod
    def fail() -> None:
        raise OSError("the session ends badly")

    def stored(self) -> list[Example]:
        return [load(path) for path in self.found.iterdir()] if self.found.exists() else []


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Planted:
    return Planted(monkeypatch, tmp_path)


@pytest.mark.parametrize("at_end", [lambda: None, Planted.fail])
def test_what_is_found_is_stored_and_cut_down_whatever_the_session_does(
    planted: Planted, at_end: Callable[[], object]
) -> None:
    planted.plant(Planted.fails_on_long, at_end)
    with pytest.raises(SystemExit, match="True"):
        running.fuzz("planted", 1, seed=0, present=planted.present)
    assert planted.stored() == ["xxx"]
    assert not [*planted.present.iterdir()]


def test_what_is_found_is_stored_before_it_is_cut_down(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    planted.plant(Planted.fails_on_long)
    monkeypatch.setattr(running, "cut_down", lambda name, seed: os._exit(9))
    assert not running.run("planted", 1, seed=0)
    (stored,) = planted.stored()
    assert len(stored) >= 3


@pytest.mark.parametrize("end", [lambda: os.kill(os.getpid(), signal.SIGKILL), lambda: os._exit(3), Planted.fail])
def test_the_present_example_is_stored_if_the_process_ends_badly(
    planted: Planted, end: Callable[[], object], capfd: pytest.CaptureFixture[str]
) -> None:
    if end is Planted.fail:
        planted.plant(lambda text: None, end)
    else:
        planted.plant(lambda text: end() if len(text) >= 3 else None)
    assert not running.run("planted", minutes=0.002, seed=0)
    (path,) = planted.found.iterdir()
    assert f"{path.stem}: the process ended with " in capfd.readouterr().out
    assert planted.stored() == [EVERY["planted"].draw(Random(int(path.stem.removeprefix("seed"))))]


def test_a_fuzzer_that_finds_nothing_leaves_nothing(planted: Planted) -> None:
    planted.plant(lambda text: None)
    assert running.run("planted", minutes=0.002, seed=0)
    assert planted.stored() == []


def test_a_fuzzer_ends_with_the_process_that_started_it(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its parent, it would go on for its hour, beside the next fuzzer."""
    planted.plant(lambda text: None)
    ended = get_context("fork").Process()
    ended.start()
    ended.join()
    monkeypatch.setattr("multiprocessing.parent_process", lambda: ended)
    with pytest.raises(SystemExit, match="False"):
        running.fuzz("planted", 60, seed=0, present=planted.present)


@pytest.mark.parametrize("example", ["(p)\r\n(q) \ufeff", {"text": "é\n", "seed": [1, None]}])
def test_what_is_stored_is_read_as_it_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, example: Any) -> None:
    monkeypatch.setattr("fuzz.fuzzer.FOUND", tmp_path)
    assert load(store("any", example, "name")) == example


# ---- the generators draw what they shall -------------------------------------------------------------------------


def test_random_rulesheets_have_everything_that_rules_may_have() -> None:
    drawn = [rulesheet(Random(seed)) for seed in range(120)]
    for part in ("(or ", "(and ", "(not ", "(distinct ", "(not (or", "(not (not", "(player a)", "nobody", "(true ?f"):
        assert any(part in text for text in drawn), part
    sheets = list(map(syntax.parse, drawn))
    dependencies = [clauses.RelationGraph(sheet) for sheet in sheets]
    for word in ("legal", "goal"):
        assert any((word, 2) in found.toward((word, 2)) for found in dependencies), f"no recursion in {word}"
    assert any(len(rule.body) >= 8 for sheet in sheets for rule in sheet.rules)
    assert {len({rule.head for rule in sheet.rules if rule.head.name == "role"}) for sheet in sheets} == {1, 2, 3}


def test_random_rulesheets_are_played() -> None:
    walks = [walk(Plainly(syntax.parse(rulesheet(Random(seed))))) for seed in range(20)]
    assert sum(len(walked.states) > 1 for walked in walks) > 10
    assert sum(len(walked.steps) for walked in walks) > 75


@pytest.mark.parametrize("rewriting", [rewrite, rewrite_for_a_state])
def test_eager_rewriting_leaves_its_mark(rewriting: Callable[[syntax.Rulesheet], syntax.Rulesheet]) -> None:
    """What keeps rewriting from small sheets must be what `eagerly` changes."""
    new: Counter[str] = Counter()
    for seed in range(10):
        sheet = syntax.parse(rulesheet(Random(seed)))
        known = {atom.name for rule in sheet.rules for atom in (rule.head, *syntax.body_atoms(rule))}
        with eagerly():
            rules = rewriting(sheet).rules
        new.update({rule.head.name[:4] for rule in rules if rule.head.name not in known})
    (_, cuts), (_, guards) = new.most_common(2)
    assert cuts > 5
    assert guards > 5


def test_a_text_is_its_tokens() -> None:
    for text in texts(3_000):
        assert "".join(mutants.tokens(text)) == text
        printed = "\n".join(map(mutants.printed, mutants.expressions(text)))
        assert syntax.parse(printed).rules == syntax.parse(text).rules


@pytest.mark.parametrize("needed", [{3}, {0, 7}, set(), {2, 3, 4, 9}])
def test_reducing_keeps_what_is_needed(needed: set[int]) -> None:
    assert list(reduced(range(10), lambda parts: needed <= set(parts))) == sorted(needed)
