"""learn: a learner plays against an opponent, and the knowledge store keeps what it finds out."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from . import sequences
from .console import (
    GAME_HELP,
    USAGE,
    Engine,
    Json,
    KnowledgeFile,
    Seed,
    command,
    emit,
    fail,
    known,
    load_game,
    opponent_settings,
    progress_bar,
    say,
    show_table,
    usage,
)
from .sequences import (
    PAPERS_EXPERT,
    Against,
    Contexts,
    Cycles,
    Draws,
    Expert,
    Length,
    Locality,
    Repeated,
    Tests,
    Trees,
    Weighting,
)

if TYPE_CHECKING:
    from pathlib import Path

    from ..learn.knowledge import Knowledge, StoredLearner
    from ..learn.study import Sources
    from ..rules.game import Game

LEARNER_OPTIONS = "Who learns values, and how"
SOURCE_OPTIONS = "What a transfer learner begins with"
LAST = 100  # matches of the second mean
MATCHES = 100
OF_VALUES = (LEARNER_OPTIONS, SOURCE_OPTIONS)
OF_SEQUENCES = (sequences.SEQUENCE_OPTIONS, sequences.CURRICULUM_OPTIONS)
INSTEAD = {
    "role": "it learns for all roles",
    "opponent": "say with --expert and --against whom it watches",
}


def register(app: typer.Typer) -> None:
    """Adds the command of this module."""
    command(
        app,
        "learn",
        "learn tictactoe --matches 500",
        "learn tictactoe --role oplayer --opponent weak:filler=first --matches 500 --seed 3",
        "learn tictactoe --symmetry all --matches 500",
        "learn connect3 --learner transfer --source tictactoe --initialisation eager --matches 1000",
        "learn othello4 --learner lookahead --heuristic maxmax --opponent weak --matches 300 --json",
        "learn losetictactoe --learner sequences",
        "learn fivemensmorris --learner sequences --length 3 --length 5 --matches 40",
        "learn tictactoe3p --learner sequences --expert uct:simulations=200 --against random,egreedy",
        kept="every finished match is in the knowledge store; the same command goes on from there",
    )(learn)


def learn(
    context: typer.Context,
    game: Annotated[str, typer.Argument(metavar="GAME", help=GAME_HELP)],
    role: Annotated[
        str | None,
        typer.Option("--role", help="Who learns.", show_default="the first role", rich_help_panel=LEARNER_OPTIONS),
    ] = None,
    opponent: Annotated[
        str,
        typer.Option(
            "--opponent",
            help="egreedy, random or weak, with :filler=random|first|hashed,epsilon=..",
            rich_help_panel=LEARNER_OPTIONS,
        ),
    ] = "egreedy",
    matches: Annotated[
        int | None,
        typer.Option(
            "--matches",
            min=1,
            help="How many the learner is to have behind it, earlier ones included; of sequences: in a tournament.",
            show_default=f"{MATCHES}; {sequences.MATCHES} in a tournament",
        ),
    ] = None,
    learner: Annotated[
        Literal["baseline", "transfer", "lookahead", "sequences"],
        typer.Option("--learner", help="Of values, by where first values come from, or of sequences of moves."),
    ] = "baseline",
    initialisation: Annotated[
        Literal["lazy", "siblings", "eager"],
        typer.Option(
            "--initialisation",
            help="First values after the match, for all its candidates, or when first looked at.",
            rich_help_panel=LEARNER_OPTIONS,
        ),
    ] = "lazy",
    heuristic: Annotated[
        Literal["minimax", "maxmax", "avgmax"],
        typer.Option("--heuristic", help="Of the lookahead learner.", rich_help_panel=LEARNER_OPTIONS),
    ] = "minimax",
    depth: Annotated[
        int, typer.Option("--depth", min=0, help="Plies below an afterstate.", rich_help_panel=LEARNER_OPTIONS)
    ] = 2,
    alpha: Annotated[float, typer.Option("--alpha", help="Learning rate.", rich_help_panel=LEARNER_OPTIONS)] = 0.3,
    gamma: Annotated[float, typer.Option("--gamma", help="Discount.", rich_help_panel=LEARNER_OPTIONS)] = 1.0,
    lam: Annotated[float, typer.Option("--lambda", help="Of TD(lambda).", rich_help_panel=LEARNER_OPTIONS)] = 0.7,
    epsilon: Annotated[
        float, typer.Option("--epsilon", help="Probability of a random move.", rich_help_panel=LEARNER_OPTIONS)
    ] = 0.01,
    source: Annotated[
        list[str] | None,
        typer.Option("--source", metavar="GAME", help="A game learned before.", rich_help_panel=SOURCE_OPTIONS),
    ] = None,
    source_role: Annotated[
        str | None,
        typer.Option("--source-role", help="Learned in.", rich_help_panel=SOURCE_OPTIONS, show_default="every role"),
    ] = None,
    source_opponent: Annotated[
        str | None,
        typer.Option(
            "--source-opponent",
            help="Learned against, whole or just its kind.",
            rich_help_panel=SOURCE_OPTIONS,
            show_default="the same opponent",
        ),
    ] = None,
    combine: Annotated[
        Literal["visits", "mean", "first", "most"],
        typer.Option("--combine", help="How several sources become one.", rich_help_panel=SOURCE_OPTIONS),
    ] = "visits",
    equivalence: Annotated[
        str | None,
        typer.Option(
            "--equivalence",
            metavar="PAIRS",
            help="Which goal here counts as which there, as in 0=0,33=50,100=100.",
            rich_help_panel=SOURCE_OPTIONS,
            show_default="best as best, worst as worst, the rest as the middle",
        ),
    ] = None,
    control: Annotated[
        Literal["terminal", "shuffled", "features"] | None,
        typer.Option(
            "--control",
            help="Take a part away: terminal states only, values shuffled, features only.",
            rich_help_panel=SOURCE_OPTIONS,
        ),
    ] = None,
    symmetry: Annotated[
        Literal["all", "none"] | None,
        typer.Option(
            "--symmetry",
            help="Symmetric afterstates, or sequences, count as one, or each for itself.",
            show_default="none for afterstates, all for sequences",
        ),
    ] = None,
    length: Length = None,
    weighting: Weighting = "agreement",
    repeated: Repeated = "encounters",
    contexts: Contexts = "common",
    trees: Trees = "context",
    draws: Draws = "count",
    locality: Locality = "none",
    expert: Expert = PAPERS_EXPERT,
    against: Against = None,
    cycles: Cycles = 2,
    tests: Tests = 50,
    knowledge: KnowledgeFile = None,
    engine: Engine = "auto",
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Let a learner of Banerjee & Stone (2007) play, or one of Lock & Epstein (2004) watch, and keep what it learns.

    Every finished match is in the store at once; of --learner sequences, every finished tournament. Interrupted or
    killed, the same command goes on where it was, and comes to the same values as if it had never stopped.

    A learner of sequences watches an expert play against others, --matches in each of --cycles tournaments with each
    of --against. The perfect expert needs a game that can be solved; for others name one, such as uct:simulations=200.
    """
    from ..learn.knowledge import Knowledge
    from ..learn.settings import LearnerSettings
    from ..learn.study import Sources, study

    _check_options(context, learner)
    rules = load_game(game, engine)
    if learner == "sequences":
        with usage():
            settings = sequences.settings(
                length,
                weighting=weighting,
                repeated=repeated,
                contexts=contexts,
                trees=trees,
                draws=draws,
                locality=locality,
            )
            watched = sequences.curriculum(expert, against, cycles, matches or sequences.MATCHES)
        merged = symmetry or "all"
        sequences.learn(rules, settings, watched, merged, knowledge=knowledge, seed=seed, tests=tests, json=json)
        return
    matches = matches or MATCHES
    chosen = known(role, rules.roles, f"a role of {rules.name}") if role else rules.roles[0]
    with usage():
        made_of = LearnerSettings(
            learner,
            heuristic,
            initialisation,
            alpha,
            gamma,
            lam,
            epsilon,
            depth,
            equivalence=_pairs(equivalence),
            control=control,
            symmetry=symmetry or "none",
        )
        opponent_of = opponent_settings(opponent)
    if (learner == "transfer") != bool(source):
        fail(f"expected --source GAME with --learner transfer, and only there; got --learner {learner}", USAGE)
    sources = Sources(tuple(source), source_opponent, source_role, combine) if source else None
    _look_for(sources, knowledge)
    if made_of.symmetry == "all":
        _look_for_symmetries(rules)
    with (
        Knowledge(knowledge) as store,
        progress_bar("matches", matches) as bar,
        _interrupted_between_matches(bar) as progress,
    ):
        found = study(
            store, rules, chosen, made_of, opponent_of, matches, seed=seed, sources=sources, progress=progress
        )
        report = _report(store, found)
    if found.num_matches > matches:
        say(f"it had {found.num_matches} matches behind it before, none were added")
    emit(report) if json else _show(report)


def _check_options(context: typer.Context, learner: str) -> None:
    """Out where an option is given that this learner does not have."""
    others = OF_VALUES if learner == "sequences" else OF_SEQUENCES
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        is_given = source is not None and source.name == "COMMANDLINE"
        if is_given and getattr(parameter, "rich_help_panel", None) in others:
            instead = INSTEAD.get(parameter.name or "", "leave it out, or choose another --learner")
            fail(f"expected options of --learner {learner}, got {parameter.opts[0]}; {instead}", USAGE)


def _look_for(sources: Sources | None, knowledge: Path | None) -> None:
    """Sources that are neither in the store nor shipped are mistakes in their names."""
    from .. import games
    from ..learn.knowledge import Knowledge

    if sources is None:
        return
    with Knowledge(knowledge) as store:
        learners = store.learners()
    learned = sorted({learner.game for learner in learners} | set(games.names()))
    for name in sources.games:
        if name not in {learner.rules_hash for learner in learners}:
            known(name, learned, "a source that was learned or is shipped")


def _look_for_symmetries(game: Game) -> None:
    """Says so where there are none to count afterstates as one by."""
    from ..rules.symmetry import symmetries

    found = symmetries(game)
    if found.num == 1:
        why = f" that could be found ({found.why})" if found.why else ""
        say(f"{game.name} has no symmetries{why}; every afterstate counts for itself")


def _pairs(text: str | None) -> dict[int, int] | None:
    """`0=0,33=50,100=100` as a dictionary."""
    if text is None:
        return None
    try:
        return {int(here): int(there) for here, there in (pair.split("=") for pair in text.split(","))}
    except ValueError:
        fail(f"expected --equivalence as in 0=0,33=50,100=100, got '{text}'; write HERE=THERE for every goal", USAGE)


@contextmanager
def _interrupted_between_matches(told: Callable[[int], None]) -> Iterator[Callable[[int], None]]:
    """Ctrl-C waits for the end of a match, so that none is cut off from its knowledge; a second one does not wait."""
    asked = False

    def ask(*_: object) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    def tell(completed: int) -> None:
        told(completed)
        if asked:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield tell
    finally:
        signal.signal(signal.SIGINT, before)


def _report(store: Knowledge, learner: StoredLearner) -> dict[str, Any]:
    rewards = [match.reward for match in store.matches(learner)]
    values = store.feature_values(learner)
    return {
        "knowledge": str(store.path),
        "number": learner.id,
        **learner.origin,
        "mean_reward": sum(rewards) / len(rewards),
        f"mean_reward_last_{LAST}": sum(rewards[-LAST:]) / len(rewards[-LAST:]),
        "features": [{"feature": text, "value": value, "visits": visits} for text, (value, visits) in values.items()],
    }


def _show(report: dict[str, Any]) -> None:
    rows = [(row["feature"], f"{row['value']:.2f}", row["visits"]) for row in report["features"]]
    if rows:
        show_table(("feature", "value", "visits"), rows, numbers=[1, 2])
        typer.echo()
    typer.echo(
        f"learner {report['number']}: {report['game']}, {report['role']} against {report['opponent']}; mean reward "
        f"{report['mean_reward']:.1f} in {report['num_matches']} matches, "
        f"{report[f'mean_reward_last_{LAST}']:.1f} in the last {LAST}\nkept in {report['knowledge']}"
    )
