"""learn --learner sequences: SeqLearner watches an expert in tournaments; SeqPlayer is tested with what it found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from .console import INTERRUPTED, counted, emit, progress_bar, say, show_table, status
from .solve import solved

if TYPE_CHECKING:
    from ..learn.sequences import SeqLearner, SequenceSettings
    from ..learn.settings import Symmetric
    from ..learn.training import Curriculum
    from ..play.player import Player
    from ..play.solve import Solution
    from ..rules.game import Game

SEQUENCE_OPTIONS = "What a learner of sequences looks for"
CURRICULUM_OPTIONS = "Whom a learner of sequences watches"
MATCHES = 20  # of a tournament
PAPERS_EXPERT, PAPERS_OPPONENTS = "perfect", ("random", "novice", "expert", "perfect")

Length = Annotated[
    list[int] | None,
    typer.Option(
        "--length",
        min=1,
        help="Moves of a sequence; several lengths may be given.",
        show_default="3",
        rich_help_panel=SEQUENCE_OPTIONS,
    ),
]
Weighting = Annotated[
    str,
    typer.Option(
        "--weighting",
        help="How pairs are weighed: by agreement, laplace, plain or trusting of the expert, or results.",
        rich_help_panel=SEQUENCE_OPTIONS,
    ),
]
Repeated = Annotated[
    Literal["encounters", "origins", "once"],
    typer.Option(
        "--repeated",
        help="What gets a sequence a context: two encounters, two states that it began in, or one encounter.",
        rich_help_panel=SEQUENCE_OPTIONS,
    ),
]
Contexts = Annotated[
    Literal["common", "each"],
    typer.Option(
        "--contexts",
        help="What the states that it began in have in common, or each of them.",
        rich_help_panel=SEQUENCE_OPTIONS,
    ),
]
Trees = Annotated[
    Literal["context", "first"],
    typer.Option(
        "--trees",
        help="One tree for all sequences of a context, or one for each first move.",
        rich_help_panel=SEQUENCE_OPTIONS,
    ),
]
Draws = Annotated[
    Literal["count", "lose"],
    typer.Option(
        "--draws", help="Whether who drew counts as successful, or as lost.", rich_help_panel=SEQUENCE_OPTIONS
    ),
]
Locality = Annotated[
    Literal["none", "moves", "contexts", "both"],
    typer.Option(
        "--locality",
        help="Only sequences of moves near each other, contexts of what is near them.",
        rich_help_panel=SEQUENCE_OPTIONS,
    ),
]
Expert = Annotated[
    str,
    typer.Option(
        "--expert", metavar="PLAYER", help="Whom it learns from, see `players`.", rich_help_panel=CURRICULUM_OPTIONS
    ),
]
Against = Annotated[
    list[str] | None,
    typer.Option(
        "--against",
        metavar="PLAYER,..",
        help="Whom the expert meets, one tournament each.",
        show_default=f"{','.join(PAPERS_OPPONENTS)}; random and itself with another expert than {PAPERS_EXPERT}",
        rich_help_panel=CURRICULUM_OPTIONS,
    ),
]
Cycles = Annotated[
    int, typer.Option("--cycles", min=1, help="How often it meets all of them.", rich_help_panel=CURRICULUM_OPTIONS)
]
Tests = Annotated[
    int,
    typer.Option(
        "--tests",
        min=0,
        help="Matches of SeqPlayer against random and the expert afterwards; 0 for none.",
        rich_help_panel=CURRICULUM_OPTIONS,
    ),
]


def settings(lengths: Sequence[int] | None, **words: Any) -> SequenceSettings:
    """What to look for, by the names of `SequenceSettings`. Raises GameloreError for what there is not."""
    from ..learn.sequences import SequenceSettings

    if lengths:
        words["lengths"] = tuple(lengths)
    return SequenceSettings(**words)


def curriculum(expert: str, against: Sequence[str] | None, cycles: int, matches: int) -> Curriculum:
    """Whom to watch. Raises GameloreError for players that there are not."""
    from ..learn.players import player
    from ..learn.training import Curriculum

    opponents = PAPERS_OPPONENTS if expert == PAPERS_EXPERT else tuple(dict.fromkeys(["random", expert]))
    if against:
        opponents = tuple(name for text in against for name in _names(text))
    for name in (expert, *opponents):
        player(name)
    return Curriculum(expert, opponents, cycles, matches)


def _names(text: str) -> list[str]:
    """Players in a list such as random,uct:simulations=50,leaves=8: what is an option goes with what is before it."""
    return [name.strip() for name in re.split(r",(?!\s*\w+\s*=)", text) if name.strip()]


def learn(
    game: Game,
    settings: SequenceSettings,
    watched: Curriculum,
    symmetry: Symmetric,
    *,
    knowledge: Path | None,
    seed: int,
    tests: int,
    json: bool,
) -> None:
    """Studies, tests, and prints what came out."""
    from ..learn.knowledge import Knowledge
    from ..learn.seqstudy import load_learner, study_sequences

    solution = _solve_for(game, watched)  # held to the end: what has no file would be worked out again
    total = len(watched.tournaments)
    with _interrupted(), Knowledge(knowledge) as store:
        with progress_bar("tournaments", total) as progress:
            stored = study_sequences(store, game, settings, watched, symmetry=symmetry, seed=seed, progress=progress)
        learner = load_learner(store, stored, game)
        place = {"knowledge": str(store.path), "number": stored.id}
        about = {**place, **stored.origin, "tournaments": total, **_learned(learner)}
        report = {**about, "tests": list(_tested(game, learner, watched.expert, seed, tests))}
    del solution
    emit(report) if json else _show(report)


def _solve_for(game: Game, watched: Curriculum) -> Solution | None:
    """Solves the game, with a bar, where somebody needs that."""
    from ..errors import GameloreError
    from ..learn.players import player
    from ..learn.seqstudy import cannot_play
    from ..play.perfect import Perfect
    from ..play.reasonable import XReasonable

    names = (watched.expert, *watched.opponents)
    needing = next((name for name in names if isinstance(player(name), Perfect | XReasonable)), None)
    if needing is None:
        return None
    try:
        return solved(game)
    except GameloreError as error:
        raise cannot_play(game, needing, error) from error


@contextmanager
def _interrupted() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        say("interrupted; every finished tournament is in the knowledge store; the same command goes on from there")
        raise typer.Exit(INTERRUPTED) from None


def _learned(learner: SeqLearner) -> dict[str, Any]:
    from ..learn.seqplayer import TIERS

    weights = learner.pairs.weights
    bounds = [float("inf"), *TIERS[2], 0.0]
    return {
        "sequences": len(learner.table),
        "with_context": len(learner.repeated),
        "pairs": len(learner.pairs),
        "classes": [
            {"from": low, "pairs": int(((weights >= low) & (weights < high)).sum())} for high, low in pairwise(bounds)
        ],
    }


def _tested(game: Game, learner: SeqLearner, expert: str, seed: int, matches: int) -> Iterator[dict[str, Any]]:
    """How a random player and both versions of SeqPlayer do against a random player and the expert."""
    from ..lab.stats import share_interval
    from ..learn.seqplayer import TIERS, SeqPlayer, SeqPlayerSettings
    from ..learn.training import Tournaments, score
    from ..play.graph import Graph

    tournaments = Tournaments(Graph(game), (seed, 0))
    players: dict[str, Player] = {"random": tournaments.named("random")}
    for version in TIERS:
        settings = SeqPlayerSettings(version)  # type: ignore[arg-type]
        players[f"seqplayer:version={version}"] = SeqPlayer(learner.pairs, settings)
    for name, player in players.items() if matches else ():
        for other in dict.fromkeys(["random", expert]):
            with status() as doing:
                doing(f"testing {name} against {other}")
                played = tournaments.play(player, tournaments.named(other), matches, f"test/{name}/{other}")
                found = score(played)
            interval = share_interval(found.wins + found.draws, found.matches)
            yield {
                "player": name,
                "against": other,
                "matches": found.matches,
                "wins": found.wins,
                "draws": found.draws,
                "reliability": found.reliability,
                "interval": [100 * interval.low, 100 * interval.high],
            }


def _show(report: dict[str, Any]) -> None:
    show_table(("weight from", "pairs"), _classes(report["classes"]), numbers=[0, 1])
    typer.echo()
    if report["tests"]:
        rows = [
            (
                test["player"],
                test["against"],
                f"{test['reliability']:.1f}",
                "{:.1f} to {:.1f}".format(*test["interval"]),
                f"{100 * test['wins'] / test['matches']:.1f}",
                test["matches"],
            )
            for test in report["tests"]
        ]
        columns = ("player", "against", "won or drawn %", "95 % interval", "won %", "matches")
        show_table(columns, rows, numbers=[2, 3, 4, 5])
        typer.echo()
    typer.echo(
        f"learner {report['number']}: {report['game']}, {report['opponent']}; {report['num_matches']} matches with "
        f"{counted(report['sequences'], 'sequence')}, {report['with_context']} of them with a context, in "
        f"{counted(report['pairs'], 'pair')}\nkept in {report['knowledge']}; gamelore knowledge show "
        f"{report['number']} draws the best, and seqplayer plays by them"
    )
    *trusted, _ = report["classes"]
    if not report["sequences"]:
        say("no sequence was found: the matches were shorter than one (--length), or nobody won or drew")
    elif not any(one["pairs"] for one in trusted):
        say(
            f"no pair weighs {trusted[-1]['from']} or more, so that seqplayer plays at random; let it watch more "
            "matches (--matches, --cycles), or weigh them otherwise (--weighting plain)"
        )


def _classes(classes: Iterable[dict[str, Any]]) -> list[tuple[str, int]]:
    return [(f"{one['from']:.2f}", one["pairs"]) for one in classes]
