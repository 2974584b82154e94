"""Measure what the memory of the player gamelore is worth: `python benchmarks/memory.py FOLDER --out DIR`.

FOLDER has rulesheets as NAME.kif. The games are those for two roles in which never both have a choice, in 64 random
matches, and that can be studied; those of sealed families (lab/families.toml) are left out, or, with `--sealed`, the
only ones. Games that the player solves in SOLVED_IN seconds of CPU time are studied for the transfer map, but play no
contests: it plays them by their solutions, with memory and without. Games that are too large for self-play play none,
either, see `contestants`. What is played, and how, is the protocol in docs/memory/protocol.md; `plan` is the same in
code. All lots are drawn with the seed SEED.

`--stage study` makes the teachings only, `--stage contests` plays the contests, `--stage replay` plays fresh matches of
the games in which memory may be of harm, and `--stage report` prints the tables. A run that was interrupted goes on.
The contests of the first teaching come first, so a part of a run is a sample of all games; `--arm known --startclock
10` leaves out all others than those with the lesson about the game and 1 or 10 s, and a later run without these options
plays the rest. A contest that fails is told, and played again by the next run. Two runs may share `--out` if they do
different things. Results and teachings belong to a version of the code: after a change that cannot change them,
`--version NAME` goes on with those of an earlier version.

All times are CPU times, so other work on the machine hardly matters. Games that seem worse by their pairs are only
suspects. The fresh matches decide, when all of an arm are played: a game is worse if the mean of its five teachings is
below 50 % in a one-sided t-test, by Benjamini & Hochberg at 5 % over the contests of the arm that are played again.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from math import ceil
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Annotated, Any, Literal

import numpy as np
import typer

import cpu_clock  # noqa: F401 - before gamelore
import gamelore
import long_runs
from gamelore.errors import GameloreError
from gamelore.game.engines import random_moves
from gamelore.lab.duel import families, sealed_games
from gamelore.lab.experiment import SettingGrid, code_version, run_grid
from gamelore.lab.results import Outcome, ResultStore, Trial, store_path
from gamelore.lab.stats import Interval, clustered_interval, mean_interval, p_value
from gamelore.lab.studies.map_study import significant
from gamelore.lab.studies.memory_study import (
    PARTS,
    UNFINISHED,
    Arm,
    MemoryJob,
    MemorySetting,
    has_used,
    memory_jobs,
    play_memory_job,
    teachings,
)
from gamelore.search.startclock import Solving, has_network, may_be_solved
from gamelore.search.teaching import can_be_taught
from gamelore.workers.processes import Report
from long_runs import shown

SEED = "0f846e8"  # commit of main before the first protocol
TEACHINGS, STUDY, LONG_STUDY = 5, 120.0, 600.0  # for each game; CPU seconds of each, and where the startclock is 60 s
PAIRS, LONG_PAIRS = 20, 80  # of each contest, and where the startclock is 60 s, which costs far more than its moves
SESSIONS: Mapping[Arm, Mapping[float, int]] = {  # by startclock in seconds
    "known": {1.0: 5, 10.0: 1, 60.0: 1},
    "variant": {1.0: 20},
    "unrelated": {1.0: 5, 10.0: 1},
    "shuffled": {1.0: 5, 10.0: 1},
    "default": {1.0: 5},
    "no-openings": {1.0: 5},
    "no-knobs": {1.0: 5},
}
IN_PARTS: tuple[Arm, ...] = "no-openings", "no-knobs"  # in the games by lot with slow moves only
LEVELS: Mapping[Arm, float] = {"shuffled": 0.90, "default": 0.90}  # of intervals; 0.95 for the others
CONTRASTS: Sequence[tuple[Arm, Arm]] = [("known", "shuffled"), *(("known", arm) for arm in IN_PARTS)]
FAST, SLOW = 2.0, 40.0  # milliseconds for a move
SOLVED_IN, SOLVED_MIB, SLICE = 10.0, 2048, 0.1  # CPU seconds, memory, and seconds between two looks at the clock
ABANDONED = 3600.0  # seconds without a change, after which an unfinished teaching is that of a killed run
FOLDS, NUM_OTHERS, NUM_LONG, NUM_SLOW = 5, 12, 15, 15
MOST_DRAWN = 1 / 4  # of the games, with a startclock of 60 s, and with slow moves: few of the sealed ones
SUSPECT = 0.1  # one-sided p of the pairs of a game, below which it is played again
LEVEL, FRESH_SEED, FRESH_PAIRS = 0.05, 2, 80  # of tests of single games; 800 fresh matches over five teachings
RANDOM_MATCHES, MOST_PLIES = 64, 150

Stage = Literal["study", "contests", "replay", "report"]


@dataclass(frozen=True)
class Sheet:
    """A game of the protocol, with the number of its family and the fold of that."""

    path: str
    name: str
    family: int
    fold: int


def takes_turns(game: gamelore.Game) -> bool:
    """Return whether at most one role has a choice in all positions of some random matches."""
    rng, states = np.random.default_rng(0), np.repeat(game.initial[None], RANDOM_MATCHES, axis=0)
    for _ in range(MOST_PLIES):
        legal = game.legal(states)
        starts, counts = legal.by_role(game.num_roles)
        going = counts.all(axis=1)
        if ((counts > 1).sum(axis=1) > 1).any():
            return False
        if not going.any():
            break
        states = game.next(states[going], legal.actions[random_moves(starts, counts, rng)[going]])
    return True


def eligible(folder: Path, out: Path, sealed: bool = False) -> list[Sheet]:
    """Return the games of the protocol, of the sealed families or of all others; a file in `out` keeps them."""
    find = lambda: [path.stem for path in sorted(folder.glob("*.kif")) if _is_eligible(path, sealed)]  # noqa: E731
    names = kept(_list_file(out, "games", sealed), find)
    own = {name: families().get(name, -number - 1) for number, name in enumerate(names)}
    order = _rng("folds").permutation(sorted(set(own.values()))).tolist()
    return [Sheet(str(folder / f"{name}.kif"), name, own[name], order.index(own[name]) % FOLDS) for name in names]


def _list_file(out: Path, name: str, sealed: bool) -> Path:
    """Return the file that keeps a list of games, of the sealed families or of all others."""
    return out / f"{'sealed-' if sealed else ''}{name}.json"


def unsolved(sheets: Sequence[Sheet], out: Path, sealed: bool = False) -> list[Sheet]:
    """Return the games that the player does not solve; a file in `out` keeps the names of the others."""
    find = lambda: [sheet.name for sheet in sheets if _is_solved(sheet.path)]  # noqa: E731
    solved = set(kept(_list_file(out, "solved", sealed), find))
    return [sheet for sheet in sheets if sheet.name not in solved]


def contestants(sheets: Sequence[Sheet], out: Path, sealed: bool = False) -> list[Sheet]:
    """Return the games with contests: those that are not solved, and not too large for self-play.

    In the large ones, a move takes several hundred milliseconds in place of two, with memory and without. A file in
    `out` keeps their names.
    """
    find = lambda: [sheet.name for sheet in sheets if not has_network(gamelore.load(sheet.path))]  # noqa: E731
    large = set(kept(_list_file(out, "large", sealed), find))
    return [sheet for sheet in unsolved(sheets, out, sealed) if sheet.name not in large]


def kept(file: Path, find: Callable[[], list[str]]) -> list[str]:
    """Return the names in a file; find and write them if it is missing."""
    if not file.exists():
        names = find()
        file.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile("w", dir=file.parent) as new, suppress(FileExistsError):  # of another run
            new.write(json.dumps(names))
            new.flush()
            file.hardlink_to(new.name)
    return list(json.loads(file.read_text()))


def _is_eligible(path: Path, sealed: bool) -> bool:
    try:
        game = gamelore.load(path)
    except GameloreError:
        return False
    is_wanted = (game.rules_hash in sealed_games()) == sealed
    return is_wanted and game.num_roles == 2 and can_be_taught(game) and takes_turns(game)


def _is_solved(path: str) -> bool:
    game = gamelore.load(path)
    if not may_be_solved(game):
        return False
    solving, end = Solving(game, SOLVED_MIB << 20), time.process_time() + SOLVED_IN
    while not solving.is_done and time.process_time() < end:  # the solver's thread has a clock of its own
        solving.run(time.monotonic() + SLICE)
    solving.close()
    return solving.solution is not None


def _rng(lot: str) -> np.random.Generator:
    """Return the random numbers of a lot."""
    return np.random.default_rng([ord(letter) for letter in SEED + lot])


def drawn(lot: str, names: Sequence[str], num: int) -> list[str]:
    """Return so many of the names by lot."""
    return sorted(_rng(lot).permutation(sorted(names)).tolist()[:num])


def plan(
    sheets: Sequence[Sheet], study: float = STUDY, num: int = TEACHINGS, strangers: Sequence[Sheet] = ()
) -> list[MemorySetting]:
    """Return all contests of the protocol, with so many teachings of so many seconds for each game.

    strangers: the games that are unrelated to all; none for those of other folds
    """
    names = [sheet.name for sheet in sheets]
    most = ceil(MOST_DRAWN * len(names))
    long, slow = (drawn(lot, names, min(own, most)) for lot, own in (("60 s", NUM_LONG), ("slow", NUM_SLOW)))
    settings = []
    for sheet in sheets:
        others = _others(sheet, sheets, strangers)
        for arm, sessions in SESSIONS.items():
            is_played = sheet.name in slow if arm in IN_PARTS else arm not in others or others[arm]
            for startclock in sessions if is_played else ():
                setting = _setting(sheet, arm, others, startclock)
                if startclock < 60 or sheet.name in long:
                    settings.append(setting)
                if startclock == 1 and arm in ("known", "default") and sheet.name in slow:
                    settings.append(replace(setting, id=f"{setting.id}/{SLOW:g}ms", milliseconds=SLOW))
    return [replace(setting, study=setting.study * study / STUDY, runs=num) for setting in settings]


def _others(sheet: Sheet, sheets: Sequence[Sheet], strangers: Sequence[Sheet]) -> dict[Arm, tuple[str, ...]]:
    """Return the games whose lessons the side with memory has in each arm."""
    path_of = {other.name: other.path for other in (*sheets, *strangers)}
    family = [other.name for other in sheets if other.family == sheet.family and other is not sheet]
    others = sorted(other.name for other in strangers or sheets if strangers or other.fold != sheet.fold)
    unrelated = drawn(f"u {sheet.name}", others, NUM_OTHERS)
    in_turn = _rng(f"s {sheet.name}").permutation(others).tolist()  # the first one with a lesson is shuffled
    chosen: Mapping[Arm, list[str]] = {"variant": family, "unrelated": unrelated, "shuffled": in_turn}
    return {arm: tuple(path_of[name] for name in names) for arm, names in chosen.items()}


def _setting(sheet: Sheet, arm: Arm, others: Mapping[Arm, tuple[str, ...]], startclock: float) -> MemorySetting:
    name, sessions = f"{sheet.name}/{arm}/{startclock:g}s", SESSIONS[arm][startclock]
    study = LONG_STUDY if startclock == 60 else STUDY
    pairs = (LONG_PAIRS if startclock == 60 else PAIRS) // sessions
    about = arm, others.get(arm, ()), study, startclock, FAST, sessions, pairs
    return MemorySetting(name, sheet.path, 1, TEACHINGS, *about)


def studies_of(
    settings: Sequence[MemorySetting], sheets: Sequence[Sheet], study: float, num: int
) -> list[MemorySetting]:
    """Return the studies of all games, and the longer ones of those with contests with a startclock of 60 s."""
    long = [x for x in settings if x.startclock == 60]  # their lot is drawn among the games with contests
    known = [*(x for x in plan(sheets, study, num) if x.arm == "known" and x.startclock < 60), *long]
    return [*{(x.game, x.study): replace(x, id=f"{x.game}/study/{x.study:g}", sessions=0) for x in known}.values()]


def chosen(settings: Sequence[MemorySetting], arm: Arm | None, startclock: float) -> list[MemorySetting]:
    """Return the contests of an arm, or of all for None, with startclocks of so many seconds at most."""
    return [setting for setting in settings if arm in (None, setting.arm) and setting.startclock <= startclock]


def jobs(folder: Path, trials: Iterable[Trial[MemorySetting]], *_: object) -> list[MemoryJob]:
    """Return a job for each contest, so that each is stored as soon as it is over."""
    return memory_jobs(folder, trials)


def play(job: MemoryJob, report: Report) -> list[Outcome]:
    """Play a contest; a function of this script, so that processes import it, and with it the CPU clock."""
    assert time.monotonic is time.process_time
    return play_memory_job(job, report)


def worse(settings: Sequence[MemorySetting], store: ResultStore) -> list[MemorySetting]:
    """Return the contests in which memory may be of harm: the one-sided p of their pairs is below SUSPECT.

    Nothing is corrected for the number of games: fresh matches decide, so one too many costs time only.
    """
    pairs = {x.id: [*chain.from_iterable(teachings(store, x.id).values())] for x in settings}
    return [x for x in settings if x.arm != "default" and p_of_harm(pairs[x.id]) < SUSPECT]


def p_of_harm(scores: Sequence[float]) -> float:
    """Return the one-sided p that scores are below 50 %; 1 if their mean is not, or without scores."""
    return p_value(scores, 50.0) / 2 if scores and np.mean(scores) < 50 else 1.0


def fresh(setting: MemorySetting) -> MemorySetting:
    """Return a contest with fresh matches: FRESH_PAIRS pairs for each teaching."""
    return replace(setting, seed=FRESH_SEED, pairs=FRESH_PAIRS // setting.sessions)


def _means(store: ResultStore, name: str) -> dict[int, float]:
    """Return the mean score of each teaching of a contest."""
    return {run: float(np.mean(pairs)) for run, pairs in teachings(store, name).items()}


def table(settings: Sequence[MemorySetting], store: ResultStore, sheets: Sequence[Sheet]) -> Iterator[str]:
    """Yield a row for each arm, startclock and time for a move: mean over the games of the mean over the teachings.

    Related games are alike, so the intervals are those of clustered samples, and the mean over families of the mean
    over their games stands beside. `used` is the share of the sessions in which the side with memory used a lesson,
    openings or a knob, `where used` the mean over the games in which it did so in at least half of them, and `used by
    rival` the same share for the rival.
    """
    family_of = {sheet.path: sheet.family for sheet in sheets}
    kinds = dict.fromkeys((setting.arm, setting.startclock, setting.milliseconds) for setting in settings)
    yield (
        "| arm | startclock | ms a move | games | score | level | by family | sd of games | of teachings | of pairs "
        "| used | where used | used by rival | by session | CPU ratio of moves | of startclocks | retrieval in ms "
        "| without lessons |"
    )
    yield f"|{'---|' * 18}"
    for arm, startclock, milliseconds in kinds:
        own = [x for x in settings if (x.arm, x.startclock, x.milliseconds) == (arm, startclock, milliseconds)]
        scores = {setting.game: list(teachings(store, setting.id).values()) for setting in own}
        scores = {game: teaching for game, teaching in scores.items() if teaching}
        if scores:
            means = {game: float(np.mean([np.mean(pairs) for pairs in own])) for game, own in scores.items()}
            families: dict[int, list[float]] = {}
            for game, mean in means.items():
                families.setdefault(family_of[game], []).append(mean)
            level = LEVELS.get(arm, 0.95)
            by_family = mean_interval([float(np.mean(members)) for members in families.values()], level)
            about = f"{arm} | {startclock:g} | {milliseconds:g} | {len(scores)}"
            parts = " | ".join("-" if part is None else f"{part:.1f}" for part in deviations([*scores.values()]))
            used = {setting.game: used_share(store, setting.id) for setting in own if setting.game in scores}
            shares = (
                f"{np.mean([*used.values()]):.0%}",
                shown(by_games({game: mean for game, mean in means.items() if used[game] >= 0.5}, family_of, level)),
                f"{np.mean([used_share(store, x.id, 'used_by_rival') for x in own if x.game in scores]):.0%}",
            )
            intervals = f"{shown(by_games(means, family_of, level))} | {level:.0%} | {shown(by_family)}"
            results = [result for setting in own for result in store.by_run(setting.id).values()]
            yield f"| {about} | {intervals} | {parts} | {' | '.join(shares)} | {' | '.join(_checks(results))} |"


def _checks(results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield cells about contests: the mean score of each session; CPU time of the first side divided by the rival's.

    That of moves is for a choice, because one side may have more of them. Then the median of the times in which memory
    was read, and the time that 95 % of them do not exceed; and the number of contests in which the first side had no
    lesson.
    """
    yield " ".join(f"{np.mean(pairs):.0f}" for pairs in zip(*(result["scores"] for result in results), strict=True))
    moves, choices = (np.sum([result[name] for result in results], axis=0) for name in ("cpu", "choices"))
    startclocks = np.sum([*chain.from_iterable(result["startclocks"] for result in results)], axis=0)
    for own, other in (moves / np.maximum(choices, 1), startclocks):
        yield f"{own / other:.2f}" if other else "-"
    milliseconds = [1000 * seconds for result in results for seconds in result["retrieval"]]
    yield f"{np.median(milliseconds):.0f}, {np.quantile(milliseconds, 0.95):.0f}"
    yield str(sum(not result["lessons"] for result in results))


def parts_table(settings: Sequence[MemorySetting], store: ResultStore, sheets: Sequence[Sheet]) -> Iterator[str]:
    """Yield a row for each arm and startclock: the share of the sessions that used each part of a lesson, and variants.

    `variants` is the share of the contests whose lesson began with the value of a variant. The last two columns are the
    means over games of the teachings in which that was so, and in which it was not.
    """
    family_of = {sheet.path: sheet.family for sheet in sheets}
    yield "| arm | startclock | ms a move | lesson | openings | knob | variants | score with variants | without |"
    yield f"|{'---|' * 9}"
    for kind in dict.fromkeys((x.arm, x.startclock, x.milliseconds) for x in settings):
        own = [x for x in settings if (x.arm, x.startclock, x.milliseconds) == kind]
        results = {x.game: [*store.by_run(x.id).values()] for x in own}
        flat = [*chain.from_iterable(results.values())]
        if flat:
            used = [session for result in flat for session in result["used"]]
            parts = (np.mean([has_used(session, part) for session in used]) for part in PARTS)
            cells = [f"{share:.0%}" for share in (*parts, np.mean([bool(result["variant"]) for result in flat]))]
            for is_wanted in (True, False):
                chosen = {game: [x for x in runs if bool(x["variant"]) == is_wanted] for game, runs in results.items()}
                means = {game: float(np.mean([x["scores"] for x in runs])) for game, runs in chosen.items() if runs}
                cells.append(shown(by_games(means, family_of, LEVELS.get(kind[0], 0.95))) if means else "")
            yield f"| {kind[0]} | {kind[1]:g} | {kind[2]:g} | {' | '.join(cells)} |"


def decided(losers: Sequence[MemorySetting], again: ResultStore, open_arms: Container[Arm]) -> Iterator[str]:
    """Yield what the fresh matches of each contest say, and whether it is worse; see the module.

    losers     the contests of all arms that need fresh matches
    open_arms  arms of which contests are missing, so that more may need them: nothing is decided there
    """
    for arm in dict.fromkeys(setting.arm for setting in losers):
        own = [setting for setting in losers if setting.arm == arm]
        means = {setting.id: [*_means(again, setting.id).values()] for setting in own}
        is_whole = arm not in open_arms and all(len(means[setting.id]) == setting.runs for setting in own)
        values = {name: p_of_harm(runs) for name, runs in means.items() if runs}
        are_worse = significant(values, LEVEL) if is_whole else []
        for setting in own:
            runs = means[setting.id]
            about = shown(mean_interval(runs)) if runs else "no"
            verdict = ", worse" if setting.id in are_worse else ""
            yield f"{setting.id}: {about} in {len(runs)} of {setting.runs} teachings{verdict}"


def by_games(means: Mapping[str, float], family_of: Mapping[str, int], level: float = 0.95) -> Interval:
    """Return the mean over games, with an interval for games of families."""
    return clustered_interval([*means.values()], [family_of[game] for game in means], level)


def used_share(store: ResultStore, name: str, side: Literal["used", "used_by_rival"] = "used") -> float:
    """Return the share of the sessions of a contest in which a side used something of its memory."""
    used = [session for result in store.by_run(name).values() for session in result[side]]
    return float(np.mean([is_used(session) for session in used]))


def is_used(session: Mapping[str, Any]) -> bool:
    """Return whether a session was played with a lesson, a knob or openings."""
    return any(has_used(session, part) for part in PARTS)


def deviations(scores: Sequence[Sequence[Sequence[float]]]) -> tuple[float | None, float | None, float]:
    """Return the standard deviations between games, between teachings of a game, and between pairs of a teaching.

    The first two are None where no game has two teachings, because the scores of games then scatter by both.
    """
    pairs = float(np.mean([np.var(own, ddof=1) for teaching in scores for own in teaching if len(own) > 1] or [0.0]))
    means = [[float(np.mean(own)) for own in teaching] for teaching in scores]
    variances = [np.var(own, ddof=1) for own in means if len(own) > 1]
    if not variances:
        return None, None, pairs**0.5
    num_pairs = float(np.mean([len(own) for teaching in scores for own in teaching]))
    within, num = float(np.mean(variances)), float(np.mean([len(own) for own in means]))
    between = float(np.var([np.mean(own) for own in means], ddof=1)) if len(means) > 1 else 0.0
    return max(between - within / num, 0.0) ** 0.5, max(within - pairs / num_pairs, 0.0) ** 0.5, pairs**0.5


def contrasts(settings: Sequence[MemorySetting], store: ResultStore, sheets: Sequence[Sheet]) -> Iterator[str]:
    """Yield a row for each contrast of two arms: the mean over games of the difference, teaching by teaching."""
    family_of = {sheet.path: sheet.family for sheet in sheets}
    means = {setting.id: _means(store, setting.id) for setting in settings}
    yield "| contrast | startclock | ms a move | games | difference |"
    yield "|---|---|---|---|---|"
    for first, second, startclock in ((*pair, startclock) for pair in CONTRASTS for startclock in SESSIONS[pair[1]]):
        own = dict[str, float]()
        for setting in settings:
            if (setting.arm, setting.startclock, setting.milliseconds) == (first, startclock, FAST):
                left, right = (means.get(setting.id.replace(f"/{first}/", f"/{arm}/"), {}) for arm in (first, second))
                differences = [left[run] - right[run] for run in left.keys() & right.keys()]
                own |= {setting.game: float(np.mean(differences))} if differences else {}
        if own:
            cells = f"{startclock:g}", f"{FAST:g}", str(len(own)), shown(by_games(own, family_of))
            yield f"| {first} - {second} | {' | '.join(cells)} |"


def main(
    folder: Annotated[Path, typer.Argument(help="folder of rulesheets, NAME.kif")],
    out: Annotated[Path, typer.Option(help="folder of the teachings and results")],
    stage: Annotated[Stage, typer.Option(help="what to do")] = "contests",
    workers: Annotated[int, typer.Option(help="number of processes")] = 2,
    study: Annotated[float, typer.Option(help="CPU seconds of each study")] = STUDY,
    num: Annotated[int, typer.Option("--teachings", help="number of teachings for each game")] = TEACHINGS,
    sealed: Annotated[bool, typer.Option(help="the games of sealed families, in the folder of the others")] = False,
    version: Annotated[str, typer.Option(help="version of the code whose results go on")] = "",
    arm: Annotated[Arm | None, typer.Option(help="leave out the contests of other arms")] = None,
    most: Annotated[float, typer.Option("--startclock", help="leave out contests with longer startclocks")] = 60,
) -> None:
    """Make teachings, play the contests that are missing, or print the tables."""
    long_runs.check_gamelore()
    version = version or code_version("lab.studies.memory_study")
    folder = folder.resolve()  # paths are parts of the settings
    sheets = eligible(folder, out, sealed)
    strangers = contestants(eligible(folder, out), out) if sealed else ()
    settings = plan(contestants(sheets, out, sealed), study, num, strangers)
    wanted = chosen(settings, arm, most)
    if settings and not wanted:
        raise typer.BadParameter(f"expected an arm with contests at {most:g} s or less, got none; see SESSIONS")
    studies = studies_of(wanted, sheets, study, num)
    knowledge = out / "teachings" / long_runs.provenance(version)
    if stage != "report":
        remove_abandoned(knowledge)
    with ResultStore(store_path(out)) as store, ResultStore(store_path(out / "replay")) as again:
        store.check({setting.id: setting for setting in (*settings, *studies)}, version)
        if stage == "study":
            _play(studies, store, knowledge, workers, version)
        elif stage == "contests":
            _play(wanted, store, knowledge, workers, version)
        losers = [fresh(setting) for setting in worse(settings, store)] if stage != "study" else []
        if stage == "replay":
            _play(chosen(losers, arm, most), again, knowledge, workers, version, "replay")
        if stage != "study":
            for part in (table, parts_table, contrasts):
                print(*part(wanted, store, sheets), "", sep="\n")
            print(f"perhaps worse: {', '.join(setting.id for setting in losers) or 'none'}")
            print(*decided(losers, again, {x.arm for x in settings if len(store.by_run(x.id)) < x.runs}), sep="\n")
        parts = {"contests": store, "replay": again}
        failed = sum(long_runs.told_failures(_failures(knowledge, part), parts[part].finished()) for part in parts)
    print(f"{len(list(knowledge.glob('*.db')))} teachings")
    raise typer.Exit(1 if failed else 0)


def _failures(knowledge: Path, part: str) -> Path:
    """Return the folder for the errors of studies and contests, or of the replay, beside that of the teachings."""
    return knowledge.with_name(f"{knowledge.name}-{part}-failures")


def remove_abandoned(knowledge: Path) -> None:
    """Remove the teachings that killed runs have not finished: no file of theirs has changed for a long time."""
    for left in knowledge.glob(f"{UNFINISHED}*"):
        with suppress(FileNotFoundError):  # the teaching ends just now
            changes = [file.stat().st_mtime for file in (left, *left.iterdir())]
            if time.time() > max(changes) + ABANDONED:
                shutil.rmtree(left, ignore_errors=True)


def _play(
    settings: Iterable[MemorySetting],
    store: ResultStore,
    knowledge: Path,
    workers: int,
    version: str,
    part: str = "contests",
) -> None:
    """Play the contests that are missing."""
    grid = SettingGrid.of(list(settings))
    are_studies = all(not setting.sessions for setting in grid.settings.values())
    label, progress = ("teachings", long_runs.Progress(1)) if are_studies else ("matches", long_runs.Progress())
    about: dict[str, Any] = {"workers": workers, "label": label, "progress": progress, "version": version}
    run_grid(
        grid, store, jobs=partial(jobs, knowledge), play=long_runs.Tolerant(play, _failures(knowledge, part)), **about
    )


if __name__ == "__main__":
    typer.run(main)
