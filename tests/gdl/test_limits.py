"""The budget of loading: parts of it, what its error says, and that every loop of loading looks at it."""

from __future__ import annotations

import inspect
import mmap
import sys
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

from clocks import Clock, clock_to_set, counted_time, short_rehearsals
from explosions import BEGIN, EXPLOSIONS, explosion
from gamelore import Game, GameloreError, GroundingError, load
from gamelore.game import reasoner
from gamelore.game.engines import ReasonerEngine
from gamelore.game.game import make
from gamelore.game.reasoner import IN_PLAY, _Questions
from gamelore.gdl import limits
from gamelore.gdl.limits import GIB, Limits, check, enforced, resident_memory, spend, within, working_on
from gamelore.gdl.syntax import parse
from gamelore.ground.clingo import state_sentences, terms_of

SECONDS = 0.2  # of the clock that counts calls


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return clock_to_set(monkeypatch)


def test_without_a_budget_nothing_is_checked(clock: Clock) -> None:
    clock.now += 1e9
    check()


def test_the_error_names_the_limit_and_the_longest_step(clock: Clock) -> None:
    with within(Limits(seconds=10)):
        clock.now += 1
        working_on("the rule at line 3")
        clock.now += 5
        working_on("the rule at line 7")
        clock.now += 2
        working_on("the rule at line 3")
        check()
        clock.now += 3
        with pytest.raises(
            GroundingError, match="within 10 s, but it did not; the rule at line 3 took the most time, 8 s"
        ):
            check()
    check()


def test_a_part_ends_before_the_whole_and_names_the_limit_of_the_whole(clock: Clock) -> None:
    whole = Limits(seconds=10)
    with within(whole):
        with within(whole.share(0.5)):
            clock.now += 6
            with pytest.raises(GroundingError, match="within 10 s"):
                check()
        check()
        with within(Limits(seconds=100)) as budget:
            clock.now += 5
            with pytest.raises(GroundingError, match="within 10 s"):
                check()
            assert budget.exceeded == "10 s"


def test_memory_is_counted_from_the_beginning_of_the_budget(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    used = 7 * GIB
    monkeypatch.setattr(limits, "resident_memory", lambda: used)
    with within(Limits(memory=2 * GIB)):
        used = 8 * GIB
        clock.now += 1
        check()
        used = 9 * GIB + 1
        clock.now += 1
        with pytest.raises(GroundingError, match="within 2 GiB of memory"):
            check()


def test_the_memory_of_the_process_is_measured() -> None:
    before = resident_memory()
    with mmap.mmap(-1, 1 << 27) as fresh:  # not from the allocator: it may still hold memory of earlier tests
        for page in range(0, len(fresh), mmap.PAGESIZE):
            fresh[page] = 1
        assert resident_memory() - before > len(fresh) / 2


def endless() -> None:
    """Work that never looks at the budget."""
    number = 0
    while True:
        number += 1


def growing() -> None:
    """The same, with more and more memory."""
    kept = []
    while True:
        kept.append(bytearray(b"x") * 1_000_000)


def test_work_that_does_not_look_at_its_budget_is_ended() -> None:
    with pytest.raises(GroundingError, match=r"expected the work to end within 0\.05 s, but it did not"):
        enforced(endless, Limits(seconds=0.05), "the work to end")
    with pytest.raises(GroundingError, match=r"within 0\.031 GiB of memory"):
        enforced(growing, Limits(memory=1 << 25))


def test_work_in_another_thread_is_ended() -> None:
    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(enforced, endless, Limits(seconds=0.05))
        with pytest.raises(GroundingError, match=r"within 0\.05 s"):
            work.result()


def test_work_inside_other_work_has_what_is_left_of_its_budget() -> None:
    with pytest.raises(GroundingError, match=r"within 0\.05 s"):
        enforced(lambda: enforced(endless, Limits(seconds=100)), Limits(seconds=0.05))


def test_what_is_left_of_an_outer_budget_and_what_other_processes_took_end_work_early() -> None:
    """Each of these would take minutes if the watch knew only the limits of the work itself."""
    with within(Limits(seconds=0.05)), pytest.raises(GroundingError, match=r"within 0\.05 s"):
        enforced(endless, Limits(seconds=1000))

    def helped() -> None:
        spend(10_000)
        endless()

    with pytest.raises(GroundingError, match="within 1000 s"):
        enforced(helped, Limits(seconds=1000))


def test_callbacks_that_ignore_the_end_of_work_are_not_reported() -> None:
    """Python reports other exceptions that a callback ignores. The watch raises its exception again after each."""
    ignored = []

    def ignoring(_: object) -> None:
        try:
            endless()
        finally:
            ignored.append(sys.exc_info()[0])

    def interrupted() -> None:
        for _ in range(3):
            owner = partial(endless)
            reference = weakref.ref(owner, ignoring)
            del owner
            assert reference() is None
        endless()

    before = sys.unraisablehook
    sys.unraisablehook = reported = lambda report: ignored.append(report)
    try:
        with pytest.raises(GroundingError, match=r"within 0\.05 s"):
            enforced(interrupted, Limits(seconds=0.05))
        assert sys.unraisablehook is reported
    finally:
        sys.unraisablehook = before
    assert ignored == 3 * [limits._Overdue]


def test_a_lack_of_memory_names_its_cause() -> None:
    with pytest.raises(GroundingError, match="of memory") as caught, within(Limits()):
        raise MemoryError
    assert isinstance(caught.value.__cause__, MemoryError)


def test_results_and_errors_of_work_are_passed_on() -> None:
    assert enforced(lambda: 7, Limits()) == 7
    with pytest.raises(KeyError):
        enforced(lambda: {}["missing"], Limits())


@pytest.fixture
def quick_switches() -> Iterator[None]:
    """Let threads of Python take turns after ten microseconds."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("quick_switches")
def test_no_exception_comes_after_work_that_ends_at_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of this work is just in time, and half is just late. Slow machines need longer work for both outcomes."""
    monkeypatch.setattr(limits, "BETWEEN_WATCHES", 1e-5)
    monkeypatch.setattr(limits, "OVERTIME", 0.0)

    def work(seconds: float) -> str:
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass
        return "done"

    outcomes = set()
    for seconds in (0.001, 0.004, 0.016, 0.064, 0.256):
        for number in range(400):
            try:
                outcomes.add(enforced(partial(work, (0.2 + 0.005 * number) * seconds), Limits(seconds=seconds)))
            except GroundingError as error:
                outcomes.add(error.message.partition(";")[0].replace(f"{seconds:g} s", "its limit"))
        if len(outcomes) > 1:
            break
    for _ in range(1000):
        check()
    assert outcomes == {"done", "expected the game to load within its limit, but it did not"}


def interrupted_end(place: int) -> bool:
    """End a watch with an exception of the watch before an instruction of Python. Return whether there are so many."""
    left = place

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal left
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left == 0:
                raise limits._Overdue
        return trace

    watch = limits._Watch(Limits())
    watch.begin()
    sys._getframe().f_trace_opcodes = True  # without it, Python 3.12 tells no instructions
    sys.settrace(trace)
    try:
        watch.end()
    except limits._Overdue:  # it came before the first instruction that is protected
        watch.end()
    finally:
        sys.settrace(None)
    return left <= 0


def test_the_end_of_a_watch_is_interrupted_anywhere() -> None:
    """If the exception comes right after a lock was taken, nothing waits for this lock for ever."""
    ended: list[int] = []

    def interrupt_all() -> None:
        while interrupted_end(len(ended) + 1):
            ended.append(len(ended) + 1)

    thread = threading.Thread(target=interrupt_all, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive(), f"waits for ever after an exception before instruction {len(ended) + 1}"
    assert len(ended) > 20


def test_a_watch_that_has_no_memory_itself_lets_the_work_end(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = threading.Semaphore(0)

    def used() -> int:
        if threading.current_thread().name == "limits":
            looks.release()
            raise MemoryError
        return 0

    monkeypatch.setattr(limits, "resident_memory", used)
    ended: list[bool] = []
    thread = threading.Thread(
        target=lambda: ended.append(enforced(lambda: looks.acquire(timeout=30), Limits())), daemon=True
    )
    thread.start()
    thread.join(60)
    assert ended == [True]


def test_rules_that_are_nested_too_deeply_for_python() -> None:
    def deep() -> None:
        deep()

    with pytest.raises(
        GroundingError, match=r"with at most 1000 nested calls, but it needs more\. Remedy: write rules"
    ):
        enforced(deep, Limits())


def test_a_deep_stack_of_the_caller_does_not_refuse_a_sheet_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls around the loading leave it too few; the next loading has them."""
    monkeypatch.setenv("GAMELORE_CACHE", str(tmp_path))
    equal = " ".join(f"(p ?x{i}) (not (distinct ?x{i} (f ?x{i + 1})))" for i in range(40))
    sheet = parse(BEGIN + f"(<= (next won) {equal} (p ?x40)) (p 1)")

    def make_at(depth: int) -> Game:
        return make_at(depth - 1) if depth else make(sheet, "equal", "native")

    depth = sys.getrecursionlimit() - len(inspect.stack()) - 70
    with pytest.raises(GroundingError, match="nested calls"):
        make_at(depth)
    assert make_at(0).engine == "native"


@pytest.mark.parametrize("engine", ["native", "reasoner"])
def test_terms_with_too_many_names_are_refused_whether_rules_nest_them_or_not(engine: Any) -> None:
    """A fact of 200 terms with 150 names; no rule puts a variable into a term inside another one."""
    long = f"(p (h {'a ' * 150})) (<= (next (f {'?x ' * 200})) (p ?x))"
    with pytest.raises(GroundingError, match="terms of at most 10000 names"):
        load(BEGIN + long, engine)
    assert load(BEGIN + long.replace("?x " * 200, "?x " * 60), engine).engine == engine


@pytest.mark.parametrize("relation", ["(input ?x m{0})", "(legal ?x m{0})", "(goal ?x {0})"])
def test_terms_that_double_in_any_place_of_a_keyword_are_refused(relation: str) -> None:
    rows = [relation.format(i).replace("?x", f"(f{i} ?x ?x)") for i in range(1, 15)]
    bodies = [relation.format(i) for i in range(14)]
    doubling = " ".join(f"(<= {head} {body})" for head, body in zip(rows, bodies, strict=True))
    last = relation.format(14)
    text = f"{BEGIN} {relation.format(0).replace('?x', 'a')} {doubling} (<= (next (got ?x)) {last})"
    with pytest.raises(GroundingError, match="terms of at most 10000 names"):
        load(text, "native")


@pytest.mark.parametrize("head", ["(init (got ?x))", "(next (got ?x))", "(legal x (got ?x))"])
@pytest.mark.parametrize("engine", ["auto", "reasoner"])
def test_no_text_of_a_term_that_doubles_is_written(head: str, engine: Any) -> None:
    """clingo writes the texts of the atoms that it shows, and nothing interrupts it; a few more rules take a year."""
    doubling = " ".join(f"(<= (d{i + 1} (f ?x ?x)) (d{i} ?x))" for i in range(22))
    text = f"{BEGIN} (d0 a) {doubling} (<= {head} (d22 ?x))"
    with pytest.raises(GroundingError, match="terms of at most 10000 names"):
        load(text, engine)
    if "next" not in head:
        with pytest.raises(GroundingError, match="terms of at most 10000 names"):
            state_sentences(parse(text), [head[1:].split()[0]])


def test_limits_of_states_and_parts() -> None:
    limits = Limits(seconds=2, literals=30, memory=400)
    assert limits.times(3) == Limits(2, 90, 400)
    assert limits.share(0.5) == Limits(1, 30, 200)


@pytest.mark.parametrize("name", EXPLOSIONS)
@pytest.mark.parametrize("engine", ["auto", "reasoner"])
def test_every_loop_looks_at_the_budget(name: str, engine: Any) -> None:
    """Without checks, the loops of these rulesheets call up to a thousand times as many functions, or never end."""
    text = explosion(name)
    with counted_time() as now:
        try:
            load(text, engine, Limits(seconds=SECONDS))
        except GameloreError as error:
            end, message = now(), str(error)
        else:
            end, message = now(), ""
    assert end < 1.5 * SECONDS
    assert message == "" or "Remedy: " in message or "remedy: " in message


def test_loading_has_one_budget_for_all_attempts() -> None:
    """The rules below are too large as a whole, within their bounds, and for one state."""
    bounds = "(<= (base (f ?a ?b)) (n ?a) (n ?b)) (input x (go a))"
    text = explosion("closure") + bounds
    with counted_time() as now, pytest.raises(GroundingError, match=f"within {SECONDS:g} s"):
        load(text, limits=Limits(seconds=SECONDS))
    assert now() < 1.5 * SECONDS


def test_the_error_names_the_rule_that_costs_most() -> None:
    text = BEGIN + EXPLOSIONS["clique"][0](24)
    line = BEGIN.count("\n") + 1
    reason = f"rewriting the rule at line {line} took the most time"
    with counted_time(), pytest.raises(GroundingError, match=reason):
        load(text, limits=Limits(seconds=2))


def test_a_long_join_in_clingo_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no ground rule, so only the conditions that clingo evaluates can stop it."""
    short_rehearsals(monkeypatch)
    with pytest.raises(GroundingError, match="the longest join is that of the rule at line 3, which"):
        load(BEGIN + EXPLOSIONS["clique"][0](7), "native", Limits(seconds=60))


def test_a_long_join_of_facts_in_clingo_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    short_rehearsals(monkeypatch)
    with pytest.raises(GroundingError, match="the longest join is that of the rule at line 3, which"):
        load(explosion("clique in play"), "native", Limits(seconds=60))


@pytest.mark.parametrize(
    ("name", "engine", "relation", "line"),
    [("lists", "auto", "walk", 5), ("orders", "reasoner", "order", 4), ("joined lists", "auto", "list", 3)],
)
def test_what_computes_with_lists_is_refused_with_the_relation_and_the_reason(
    name: str, engine: Any, relation: str, line: int
) -> None:
    reason = rf"the largest relation is `{relation}`, with .*; line {line}: this recursion may never end: \({relation} "
    with pytest.raises(GroundingError, match=reason):
        load(explosion(name), engine, Limits(literals=20_000))


def test_the_reasoner_refuses_what_it_cannot_play_for_one_ply() -> None:
    """The first state is known at once. Only its successor needs the lists."""
    rules = explosion("orders")
    load(rules.replace("(next (best", "(unused (best"), "reasoner", Limits(literals=20_000))
    with pytest.raises(GroundingError, match="to be evaluated in a state within 20000 literals, but they were not"):
        load(rules, "reasoner", Limits(literals=20_000))


@pytest.mark.parametrize("of_limit", [0.1, 0.45, 0.55, 0.8, 2.0])
@pytest.mark.parametrize("what", ["time", "memory"])
def test_what_the_reasoner_loads_it_answers_in_play(
    what: str, of_limit: float, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each question takes a part of the limits. A third of them may be too little, at loading as in play."""
    answered, used, given = _Questions._answer, 7 * GIB, Limits(seconds=10, memory=GIB)

    def cost(*arguments: Any) -> Any:
        nonlocal used
        answer = answered(*arguments)
        clock.now += of_limit * given.seconds if what == "time" else 1
        used += int(of_limit * given.memory) if what == "memory" else 0
        return answer

    monkeypatch.setattr(limits, "resident_memory", lambda: used)
    monkeypatch.setattr(_Questions, "_answer", cost)
    if of_limit > IN_PLAY:
        part = "3 s" if what == "time" else "0.3 GiB of memory"
        with pytest.raises(GroundingError, match=f"expected the reasoner to answer within {part}, but it did not"):
            load("tictactoe", "reasoner", given)
        return
    game = load("tictactoe", "reasoner", given)
    engine = game._engine
    assert isinstance(engine, ReasonerEngine)
    for _ in range(3):
        engine._known.clear()  # else the answer that loading got would be kept
        legal = game.legal(game.initial[None])
        starts, counts = legal.by_role(2)
        assert counts.tolist() == [[9, 1]]
        game.next(game.initial[None], legal.actions[starts])


def test_states_that_exceed_the_limits_together_are_asked_about_alone(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The nine successors take a fifth of the memory each, and all their successors."""
    answered, used, given = _Questions._answer, 7 * GIB, Limits(seconds=10, memory=GIB)
    batches: list[int] = []

    def cost(questions: _Questions, batch: Sequence[str]) -> Any:
        nonlocal used
        batches.append(len(batch))
        clock.now += 0.1
        used += len(batch) * given.memory // 5
        return answered(questions, batch)

    monkeypatch.setattr(limits, "resident_memory", lambda: used)
    monkeypatch.setattr(_Questions, "_answer", cost)
    game = load("tictactoe", "reasoner", given)
    opened = [game.start().play([mark, "noop"]) for mark in game.start().legal["xplayer"]]
    legal = game.legal(np.array([position.state for position in opened]))
    starts, counts = legal.by_role(2)
    assert counts.tolist() == [[1, 8]] * 9
    states = game.next(np.array([position.state for position in opened]), legal.actions[starts])
    assert len(np.unique(states)) == 9
    assert max(batches) > 1


def test_the_facts_of_the_first_state_are_read_within_the_limits(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    num_read = 0

    def slow(symbol: Any) -> Any:
        nonlocal num_read
        num_read += 1
        clock.now += 1
        return terms_of(symbol)

    monkeypatch.setattr(reasoner, "terms_of", slow)
    facts = " ".join(f"(init (f {i}))" for i in range(100))
    with pytest.raises(GroundingError, match="within 10 s"):
        load(BEGIN + facts, "reasoner", Limits(seconds=10))
    assert num_read <= 11


@pytest.mark.parametrize("conditions", ["(true (c a)) " * 20_000, f"(q {'a ' * 60_000})", f"(or {'(q a) ' * 20_000})"])
def test_a_single_long_rule_is_read_within_the_limits(conditions: str) -> None:
    with counted_time() as now, within(Limits(seconds=0.05)), pytest.raises(GroundingError, match="reading the rules"):
        parse(f"(<= (next won) {conditions})")
    assert now() < 0.07
