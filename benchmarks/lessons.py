"""Measure a knowledge store with lessons about many games: `python benchmarks/lessons.py FOLDER --store FILE`.

FOLDER has rulesheets as NAME.kif. The store gets lessons about `--games` different games: the sheets of FOLDER that can
be taught and are not sealed, the shipped ones, MOST_SIZES variants by lot of each shipped sheet with options, and games
of the first two kinds that begin after a random ply, after two, and so on. Each lesson is what a first startclock of
`--seconds` CPU seconds leaves in an empty store (a first generation that needs more gets up to MOST_SECONDS). Games
without a value are left out, as in searches for variants. With `--store`, it is kept, and an interrupted run goes on.

Then `--drawn` games by lot of each kind are begun with a copy of the store, `--repeats` times each, by new processes
that have loaded the game and all that a player needs before its clock starts (the file is in the cache of the system):

    known      a game of the store
    renamed    the same with scrambled names
    moved      a game of the store, after other random plies: other facts, and the same rules
    sized      the same for a shipped sheet with options, whose rules MOST_SIZES games of the store share
    variant    a game whose lesson was deleted, with those of all games with the same rules; others are similar
    unrelated  a game whose lesson was deleted, with those of all that are similar

`open` is KnowledgeStore and Lessons. `retrieval` is GameMemory and its `begin`: all that memory does before learning
begins, with up to three teachers; `teacher` makes one, as a player without memory does. `--clocked` games of each kind
have MATCHES startclocks of each length in CPU seconds, with a GameMemory for each. `tests` are trial matches, what
rivals learn for them, and descriptions of the game for knobs; `other` is mostly for the store.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, islice, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import typer

import cpu_clock  # noqa: F401 - before gamelore
import gamelore
from gamelore import rulesheets
from gamelore.analysis.isomorphism import scramble
from gamelore.analysis.variants import rule_shapes, shape_similarities
from gamelore.errors import GameloreError
from gamelore.gdl.limits import resident_memory
from gamelore.gdl.syntax import parse
from gamelore.lab.duel import sealed_games
from gamelore.lab.studies.memory_study import ready
from gamelore.learning.store.knowledge import KnowledgeStore
from gamelore.learning.store.lesson_rows import KeptLesson, Lessons
from gamelore.learning.store.schema import LESSON_TABLES
from gamelore.memory.course import new_pupil
from gamelore.memory.ledger import Ledger
from gamelore.memory.retrieval import LEAST_LIKENESS, Relatives
from gamelore.memory.rivals import Rivals
from gamelore.memory.schooling import GameMemory
from gamelore.search.rounds import Rounds
from gamelore.search.teaching import Teacher, can_be_taught
from gamelore.search.thinking import Search

SEED, MOST_SIZES, MOST_PLIES, MOST_SECONDS, SLICE, MATCHES = 17, 20, 8, 20.0, 0.05, 2
PARTS: dict[type, dict[str, str]] = {  # of a startclock, by the methods whose time they take
    Teacher: {"teach": "teaching", "pause": "teaching"},
    Rivals: {"by_lot": "tests", "contest": "tests"},
    Rounds: {"advance": "tests"},
    Ledger: {"describe": "tests"},
    Search: {"begin": "openings", "run": "openings"},
}
TABLES = ("game", *LESSON_TABLES)
TIMES = {f"{name} {clock}": 1000.0 for name in ("open", "retrieval", "teacher") for clock in ("CPU", "wall")}
SHARES = dict.fromkeys(("retrieval", "tests", "retrieval and tests", "teaching", "openings", "other"), 100.0)
MEMORY = {"memory": 1 / 1024 / 1024}
Kind = Literal["known", "renamed", "moved", "sized", "variant", "unrelated"]
Row: TypeAlias = dict[str, Any]


def names(folder: Path) -> Iterator[str]:
    """Yield names of games for the store, in their order; NAME@2 begins after two random plies."""
    sheets = list(dict.fromkeys([*sorted(path.stem for path in folder.glob("*.kif")), *rulesheets.names()]))
    yield from sheets
    for name in rulesheets.names():
        options = rulesheets.options(rulesheets.read(name)[0].rules).values()
        values = product(*([f"{option.name}={value}" for value in option.choices] for option in options))
        sizes = [f"{name}:{','.join(chosen)}" for chosen in values if chosen]
        yield from np.random.default_rng(SEED).permutation(sizes)[:MOST_SIZES].tolist()
    yield from (f"{name}@{plies}" for plies in range(1, MOST_PLIES + 1) for name in sheets)


def loaded(name: str, folder: Path) -> gamelore.Game | None:
    """Load a game by its name in `names`; None for one that cannot be taught, or is sealed."""
    base, _, plies = name.partition("@")
    path = folder / f"{base}.kif"
    try:
        game = gamelore.load(path if path.exists() else base)
        if game.rules_hash in sealed_games():
            return None
        if plies:
            game = gamelore.load(moved(game, int(plies), np.random.default_rng(SEED)), name=name)
    except GameloreError:
        return None
    return game if can_be_taught(game) else None


def moved(game: gamelore.Game, plies: int, rng: np.random.Generator) -> str:
    """Return the rules of a game that begins after random plies; after fewer, if the match ends before."""
    position = game.start()
    for _ in range(plies):
        following = position.play({role: str(rng.choice(legal)) for role, legal in position.legal.items()})
        if following.is_terminal:
            break
        position = following
    others = [str(rule) for rule in game.rulesheet.rules if rule.head.name != "init"]
    return "\n".join([*others, *(f"(init {fact})" for fact in sorted(position.facts))])


def taught(game: gamelore.Game, seconds: float) -> KeptLesson | None:
    """Return what a first startclock leaves; None if it has no value."""
    with TemporaryDirectory() as folder, KnowledgeStore(Path(folder, "lesson.db")) as knowledge:
        new_pupil(game, SEED)  # what it computes once for a game is there before the clock starts
        lessons, begin = Lessons(knowledge), time.process_time()
        match = GameMemory(game, lessons, SEED).begin(seconds)
        while not match.is_done and time.process_time() < begin + (seconds if match.value else MOST_SECONDS):
            match.teach(time.process_time() + SLICE)
        match.end()
        kept = lessons.kept(game.rules_hash)
        return kept if kept is not None and kept.lesson.snapshot >= 0 else None


def fill(lessons: Lessons, folder: Path, num: int, seconds: float) -> None:
    """Teach the games that a store lacks."""
    stored, left_out = {row.name for row in lessons.games()}, set[str]()
    for name in names(folder):
        if len(stored) >= num or name in stored or name.partition("@")[0] in left_out:
            continue
        game = loaded(name, folder)
        if game and not lessons.state(game.rules_hash) and (kept := taught(game, seconds)) is not None:
            lessons.add([(game, kept)])
            stored.add(name)
        else:
            left_out.add(name)
        typer.echo(f"{len(stored)} of {num} lessons: {name}{' is left out' * (name in left_out)}", err=True)


class Case(NamedTuple):
    """A game by its rules, and the hashes of the rules of the lessons that are deleted before."""

    kind: Kind
    name: str
    rules: str
    deleted: Sequence[str] = ()

    def measured(self, store: Path, startclock: float | None = None) -> list[Row]:
        """Measure startclocks, or else retrieval, with a copy of the store in a new process."""
        typer.echo(f"{self.kind} {self.name}{f', {startclock} s' if startclock else ''}", err=True)
        with TemporaryDirectory() as folder:
            sheet, copy = Path(folder, "game.kif"), Path(folder, "store.db")
            sheet.write_text(self.rules, encoding="utf-8")
            shutil.copy(store, copy)
            with KnowledgeStore(copy) as knowledge:
                for rules_hash in self.deleted:
                    Lessons(knowledge).delete(rules_hash)
            command = [sys.executable, __file__, folder, "--job", json.dumps([str(sheet), str(copy), startclock])]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        return [{"kind": self.kind, "game": self.name, **row} for row in json.loads(done.stdout)]


def cases(kind: Kind, lessons: Lessons) -> Iterator[Case]:
    """Yield games of a kind by lot."""
    rng, shapes = np.random.default_rng([SEED, get_args(Kind).index(kind)]), lessons.shapes()
    rows = [row for row in lessons.games() if "@" not in row.name and (":" in row.name) == (kind == "sized")]
    for row in map(rows.__getitem__, rng.permutation(len(rows)).tolist()):
        own = rule_shapes(parse(row.rules))
        bounds = dict(zip(shapes, shape_similarities(own, list(shapes.values())).tolist(), strict=True))
        similar = [rules_hash for rules_hash, bound in bounds.items() if bound >= LEAST_LIKENESS]
        equal = [rules_hash for rules_hash in similar if bounds[rules_hash] == 1.0]
        rules = row.rules if kind != "renamed" else str(scramble(parse(row.rules), rng)[0])
        if kind in ("moved", "sized"):
            rules = moved(gamelore.load(rules), int(rng.integers(1, MOST_PLIES + 1)), rng)
        is_new = rules == row.rules or parse(rules).rules_hash not in shapes
        if is_new and (kind != "variant" or len(equal) < len(similar)):
            yield Case(kind, row.name, rules, {"variant": equal, "unrelated": similar}.get(kind, []))


def timed(row: Row, name: str, call: Callable[[], Any]) -> Any:
    """Call a function; put its CPU seconds and its wall-clock seconds into a row."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = call()
    row |= {f"{name} CPU": time.process_time() - cpu, f"{name} wall": time.perf_counter() - wall}
    return result


def in_process(sheet: str, store: str, startclock: float | None) -> list[Row]:
    """Measure a retrieval, or the parts of startclocks, in this process."""
    game, row = ready(sheet), Row()
    lessons: Lessons = timed(row, "open", lambda: Lessons(KnowledgeStore(store)))
    row["lessons"] = len(lessons.games())
    if startclock is not None:
        watch = Stopwatch()
        return [{"match": number + 1, **watch.row(game, lessons, startclock)} for number in range(MATCHES)]
    before = resident_memory()
    match = timed(row, "retrieval", lambda: GameMemory(game, lessons, SEED).begin(1.0))
    row |= {"memory": resident_memory() - before, "used": match.about}
    timed(row, "teacher", lambda: new_pupil(game, SEED))
    is_known = lessons.state(game.rules_hash)
    return [row | {"found": "lesson" if is_known else "variant" if Relatives(game, lessons).variants() else "nothing"}]


class Stopwatch:
    """CPU seconds of the parts of a startclock."""

    def __init__(self) -> None:
        self.seconds, self._is_running = dict[str, float](), False
        for owner, name in ((owner, name) for owner, methods in PARTS.items() for name in methods):
            plain = partial(self.call, PARTS[owner][name], getattr(owner, name))
            setattr(owner, name, lambda *given, plain=plain, **options: plain(*given, **options))  # binds the object

    def call(self, part: str, function: Callable[..., Any], *given: Any, **options: Any) -> Any:
        """Call a function; add its time to a part, unless it is called by another function of a part."""
        is_outer, self._is_running, begin = not self._is_running, True, time.process_time()
        result = function(*given, **options)
        if is_outer:
            self.seconds[part], self._is_running = self.seconds[part] + time.process_time() - begin, False
        return result

    def row(self, game: gamelore.Game, lessons: Lessons, startclock: float) -> Row:
        """Prepare for a match; return the shares of the parts of the startclock."""
        self.seconds, before, begin = dict.fromkeys(SHARES, 0.0), resident_memory(), time.process_time()
        match = self.call("retrieval", lambda: GameMemory(game, lessons, SEED).begin(startclock))
        while not match.is_done and time.process_time() < begin + startclock:
            match.teach(min(time.process_time() + SLICE, begin + startclock))
        match.end()
        self.seconds["other"] = time.process_time() - begin - sum(self.seconds.values())
        self.seconds["retrieval and tests"] = self.seconds["retrieval"] + self.seconds["tests"]
        about = {"startclock": startclock, "memory": resident_memory() - before, "used": match.about}
        return about | {part: seconds / startclock for part, seconds in self.seconds.items()}


def disk_rows(lessons: Lessons) -> list[Row]:
    """Return the bytes in all cells of each game of a store, by table."""
    sums = dict[int, Counter[str]]()
    with lessons.knowledge.reading() as connection:
        for table in TABLES:
            columns = [column[1] for column in connection.execute(f"PRAGMA table_info({table})")]
            cells = " + ".join(f"ifnull(length(CAST({column} AS BLOB)), 0)" for column in columns)
            key = "id" if table == "game" else "game"
            for game, size in connection.execute(f"SELECT {key}, sum({cells}) FROM {table} GROUP BY {key}"):
                sums.setdefault(game, Counter())[table] = size
    return [{"all": own.total(), **{table: own[table] for table in TABLES}} for own in sums.values()]


def table(rows: Sequence[Row], keys: Sequence[str], columns: dict[str, float]) -> Iterator[str]:
    """Yield a line for each combination of keys: median, 95 % quantile and maximum of columns, times their factors."""
    yield f"\n| {' | '.join([*keys, 'rows', *columns])} |"
    yield "|---" * (len(keys) + 1 + len(columns)) + "|"
    for values in dict.fromkeys(tuple(row[key] for key in keys) for row in rows):
        own = [row for row in rows if tuple(row[key] for key in keys) == values]
        cells = [np.quantile([row[name] * factor for row in own], [0.5, 0.95, 1.0]) for name, factor in columns.items()]
        texts = (", ".join(f"{value:.3g}" for value in cell) for cell in cells)
        yield f"| {' | '.join([*map(str, values), str(len(own)), *texts])} |"


def main(
    folder: Annotated[Path, typer.Argument(exists=True, help="Folder with rulesheets as NAME.kif.")],
    games: Annotated[int, typer.Option(help="Number of lessons in the store.")] = 300,
    seconds: Annotated[float, typer.Option(help="CPU seconds of teaching for each.")] = 1.0,
    store: Annotated[Path | None, typer.Option(help="Keep the store in this file.")] = None,
    drawn: Annotated[int, typer.Option(help="Number of games of each kind.")] = 20,
    repeats: Annotated[int, typer.Option(help="Number of retrievals of each.")] = 3,
    clocked: Annotated[int, typer.Option(help="Number of games of each kind with startclocks.")] = 10,
    startclocks: Annotated[str, typer.Option(help="Their CPU seconds, joined by commas.")] = "1,10",
    as_json: Annotated[bool, typer.Option("--json", help="Print every row as JSON.")] = False,
    job: Annotated[str, typer.Option(hidden=True)] = "",
) -> None:
    """Make a store of lessons about many games, and measure what a match takes from its startclock."""
    if job:
        return print(json.dumps(in_process(*json.loads(job))))
    retrievals, clocks = list[Row](), list[Row]()
    with TemporaryDirectory() as temporary:
        path = store or Path(temporary, "store.db")
        with KnowledgeStore(path) as knowledge:
            lessons = Lessons(knowledge)
            fill(lessons, folder, games, seconds)
            disk, chosen = disk_rows(lessons), [[*islice(cases(kind, lessons), drawn)] for kind in get_args(Kind)]
        size = path.stat().st_size
        for case in chain.from_iterable(chosen):
            retrievals += chain.from_iterable(case.measured(path) for _ in range(repeats))
        for case, length in product(chain.from_iterable(own[:clocked] for own in chosen), startclocks.split(",")):
            clocks += case.measured(path, float(length))
    if as_json:
        return print(json.dumps(dict(size=size, disk=disk, retrievals=retrievals, startclocks=clocks), indent=1))
    print(f"{len(disk)} lessons in {size / 1024:.0f} KiB; medians, 95 % quantiles and maxima of KiB, ms, MiB and %")
    print(*table(disk, [], dict.fromkeys(disk[0], 1 / 1024)), sep="\n")
    print(*table(retrievals, ["kind", "found"], {"lessons": 1.0} | TIMES | MEMORY), sep="\n")
    print(*table(clocks, ["kind", "startclock", "match"], SHARES | MEMORY), sep="\n")


if __name__ == "__main__":
    typer.run(main)
