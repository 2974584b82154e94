"""learn: let a learner of values play against an opponent, or let a learner of sequences watch an expert."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Option

from ..api.learn import learn as learn_game
from ..api.memory import Knowledge, Learned
from ..api.playing import player
from ..api.progress import progress_bars
from ..errors import counted
from . import console
from .console import Engine, GameName, Json, KnowledgeFile, Seed

if TYPE_CHECKING:
    from ..game.game import Game
    from ..learning.sequences.seqlearner import Curriculum

LAST = 100  # number of last matches in the mean reward at the end of a series
MATCHES, TOURNAMENT = 100, 20  # default number of matches in a series, and in a tournament
PAPERS_EXPERT, PAPERS_OPPONENTS = "perfect", ("random", "novice", "expert", "perfect")
KEPT = "every finished {} is in the knowledge store; run the same command again to continue"
INSTEAD = {
    "role": "leave it out, because this learner learns for all roles",
    "opponent": "name the players that it watches with --expert and --against",
}
OF_ONE_LEARNER = {"heuristic": "lookahead", **dict.fromkeys(("source_opponent", "source_role", "combine"), "transfer")}
PANELS = {
    "values": ("Learners of values", "Initial values of the transfer learner"),
    "sequences": ("Learner of sequences", "Matches that the learner of sequences watches"),
}
of_learner, of_source, of_sequences, of_curriculum = (
    partial(Option, rich_help_panel=panel) for panels in PANELS.values() for panel in panels
)

app = typer.Typer()


@console.command(
    app,
    "learn",
    "learn tictactoe --matches 500",
    "learn tictactoe --role oplayer --opponent weak:filler=first --matches 500 --seed 3",
    "learn tictactoe --symmetry all --matches 500",
    "learn connect3 --learner transfer --source tictactoe --initialisation eager --matches 1000",
    "learn othello4 --learner lookahead --heuristic maxmax --opponent weak --matches 300 --json",
    "learn othello4 --learner oracle --opponent random --initialisation eager --matches 300",
    "learn losetictactoe --learner sequences",
    "learn fivemensmorris --learner sequences --length 3 --length 5 --matches 40",
    "learn tictactoe3p --learner sequences --expert uct:simulations=200 --against random,egreedy",
    kept=KEPT.format("match"),
    loads="within memory",
)
def learn(
    context: typer.Context,
    game: GameName,
    role: Annotated[str | None, of_learner(help="The learner's role.", show_default="the first role")] = None,
    opponent: Annotated[
        str,
        of_learner(
            help="The opponent: egreedy, random or weak, for example weak:filler=first,epsilon=0.05; any other player, "
            "for example uct:simulations=200; or self: a learner of the same kind in every other role."
        ),
    ] = "egreedy",
    matches: Annotated[
        int | None,
        Option(
            min=1,
            help="Total number of matches; for the learner of sequences, number in each tournament.",
            show_default=f"{MATCHES}; for sequences {TOURNAMENT}",
        ),
    ] = None,
    learner: Annotated[
        Literal["baseline", "transfer", "lookahead", "oracle", "sequences"],
        Option(
            help="baseline, transfer, lookahead and oracle learn values, and have different initial values (oracle: "
            "the exact ones against this opponent, in a small game); sequences learns sequences."
        ),
    ] = "baseline",
    initialisation: Annotated[
        Literal["lazy", "siblings", "eager"],
        of_learner(
            help="Set initial values after a match, for its own afterstates (lazy) or also for "
            "alternatives (siblings), or before the first choice (eager)."
        ),
    ] = "lazy",
    heuristic: Annotated[
        Literal["minimax", "maxmax", "avgmax"], of_learner(help="The search of the lookahead learner.")
    ] = "minimax",
    depth: Annotated[int, of_learner(min=0, help="Depth of features in plies below an afterstate.")] = 2,
    turns: Annotated[
        int,
        of_source(
            min=0,
            help="Begin with the values of features so many turns below an afterstate, and with the replies that the "
            "opponents of the sources preferred. With 0, as in the paper, the afterstate's own feature counts.",
        ),
    ] = 0,
    alpha: Annotated[float, of_learner(help="Learning rate.")] = 0.3,
    gamma: Annotated[float, of_learner(help="Discount.")] = 1.0,
    lam: Annotated[float, of_learner("--lambda", help="Trace decay of TD(lambda).")] = 0.7,
    epsilon: Annotated[float, of_learner(help="Probability of a random move.")] = 0.01,
    source: Annotated[
        list[str] | None, of_source(metavar="GAME", help="A game that was learned before; repeatable.")
    ] = None,
    source_role: Annotated[
        str | None, of_source(help="The role of the learner of the source game.", show_default="every role")
    ] = None,
    source_opponent: Annotated[
        str | None,
        of_source(
            help="The opponent in the source game, such as weak, or weak:filler=first.",
            show_default="the same opponent",
        ),
    ] = None,
    combine: Annotated[
        Literal["visits", "mean", "first", "most"], of_source(help="How to combine the values of several source games.")
    ] = "visits",
    equivalence: Annotated[
        str | None,
        of_source(
            metavar="PAIRS",
            help="Goals of this game and equivalent goals of the sources, for example 0=0,33=50,100=100.",
            show_default="best=best, worst=worst, others=middle",
        ),
    ] = None,
    control: Annotated[
        Literal["terminal", "shuffled", "features", "replies", "minimax", "optimal"] | None,
        of_source(
            help="Ablation for comparison: use only terminal states, shuffled feature values, or only feature values; "
            "with --turns, shuffled feature values, no feature values (replies), or no model of the replies (minimax); "
            "for the oracle, optimal: values without the learner's own random moves."
        ),
    ] = None,
    symmetry: Annotated[
        Literal["all", "none"] | None,
        Option(
            help="Merge symmetric afterstates or sequences.", show_default="none for afterstates, all for sequences"
        ),
    ] = None,
    lengths: Annotated[
        list[int] | None,
        of_sequences("--length", min=1, help="Number of moves in a sequence; repeatable.", show_default="3"),
    ] = None,
    weighting: Annotated[
        str,
        of_sequences(
            help="Formula for the weights of pairs: agreement, laplace, plain, trusting (trusts the expert) or results."
        ),
    ] = "agreement",
    repeated: Annotated[
        Literal["encounters", "origins", "once"],
        of_sequences(
            help="A sequence gets a context after two encounters, after encounters in two different "
            "states, or after one."
        ),
    ] = "encounters",
    contexts: Annotated[
        Literal["common", "grown", "each"],
        of_sequences(
            help="The context of a sequence: the common facts of the states in which it began (grown: the contexts of "
            "earlier tournaments stay beside it), or each of these states."
        ),
    ] = "common",
    trees: Annotated[
        Literal["context", "first"],
        of_sequences(help="One tree of sequences for each context, or for each first move in a context."),
    ] = "context",
    draws: Annotated[Literal["count", "lose"], of_sequences(help="Count draws as successes or as losses.")] = "count",
    locality: Annotated[
        Literal["none", "moves", "contexts", "both"],
        of_sequences(
            help="Keep only sequences whose moves are near each other, only facts of contexts near "
            "these moves, or both."
        ),
    ] = "none",
    expert: Annotated[str, of_curriculum(metavar="PLAYER", help="The player to learn from.")] = PAPERS_EXPERT,
    against: Annotated[
        list[str] | None,
        of_curriculum(
            metavar="PLAYER,PLAYER",
            help="The opponents of the expert; it plays one tournament against each of them.",
            show_default=f"{','.join(PAPERS_OPPONENTS)}; with another --expert: random and the expert",
        ),
    ] = None,
    cycles: Annotated[int, of_curriculum(min=1, help="Number of tournaments against each opponent.")] = 2,
    tests: Annotated[
        int, of_curriculum(min=0, help="Number of test matches of SeqPlayer after learning; 0 for none.")
    ] = 50,
    knowledge: KnowledgeFile = None,
    engine: Engine = "auto",
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Let a learner play (Banerjee & Stone 2007) or watch matches (Lock & Epstein 2004), and store its knowledge.

    Learners of values store their knowledge after each match, the learner of sequences after each tournament. After an
    interruption, run the same command again: it continues, and ends with the same values as an uninterrupted run.

    A learner of sequences watches matches of an expert. The expert plays --cycles tournaments against each player of
    --against, and each tournament has --matches matches. The default expert, perfect, plays only games that can be
    solved. For other games, choose another expert, for example --expert uct:simulations=200.
    """
    _check_options(context, learner)
    if (learner == "transfer") != bool(source):
        console.fail(
            f"expected --source GAME together with --learner transfer, and never without it, got --learner {learner}",
            console.USAGE,
        )
    rules = console.load_game(game, engine)
    if learner == "sequences":
        with console.usage():
            watched = curriculum(expert, against, cycles, matches or TOURNAMENT)
        report = _learn_sequences(rules, watched, context.params)
        console.emit(report) if json else _show_sequences(report)
    else:
        report = _learn_values(rules, context.params)
        console.emit(report) if json else _show_values(report)


def _check_options(context: typer.Context, learner: str) -> None:
    """Exit if the user gave an option that belongs to the other kind of learner, or to another learner of values."""
    others = PANELS["values" if learner == "sequences" else "sequences"]
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        is_given = source is not None and source.name == "COMMANDLINE"
        wanted = OF_ONE_LEARNER.get(parameter.name or "", learner)
        if is_given and (learner != wanted or getattr(parameter, "rich_help_panel", None) in others):
            instead = INSTEAD.get(parameter.name or "", "leave it out, or choose another --learner")
            console.fail(
                f"expected only options for --learner {learner}, got {parameter.opts[0]}; {instead}", console.USAGE
            )


def _settings(kind: type[Any], options: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a learner, taken from the options with the same names. Raises GameloreError if invalid."""
    names = {field.name for field in fields(kind)}
    settings = {name: value for name, value in options.items() if name in names and value not in (None, ())}
    kind(**settings)
    return settings


# learners of values


def _learn_values(game: Game, options: dict[str, Any]) -> dict[str, Any]:
    """Let a learner of values play; return the report. `options` are those of `learn`."""
    from ..learning.study import SELF
    from ..learning.td.initial_values import LearnerSettings

    role = console.known(options["role"] or game.roles[0], game.roles, f"a role of {game.name}")
    matches, store = options["matches"] or MATCHES, Knowledge(options["knowledge"])
    with console.usage():
        equivalence = _equivalence(options["equivalence"])
        settings = _settings(LearnerSettings, {**options, "kind": options["learner"], "equivalence": equivalence})
        del settings["kind"]  # the parameter `learner` of `learn`
        if options["opponent"] != SELF:
            player(options["opponent"])
        _check_sources(store, options["source"] or ())
    if settings.get("symmetry") == "all":
        _report_no_symmetries(game)
    about = {name: options[name] for name in ("opponent", "source_opponent", "source_role", "combine", "seed")}
    about |= {"role": role, "sources": options["source"] or None, "matches": matches, "store": store}
    with progress_bars() as tell:
        learned = learn_game(game, options["learner"], progress=tell, **about, **settings)
    if learned.num_matches > matches:
        console.say(f"the learner already had {learned.num_matches} matches, so no matches were added")
    return _value_report(store, learned)


def _check_sources(store: Knowledge, names: Sequence[str]) -> None:
    """Raise GameloreError for the name of a game that is neither in the store nor shipped."""
    from ..learning.sources import Sources, check_games
    from ..learning.store.knowledge import KnowledgeStore as Store

    if names:
        with Store(store.path) as opened:
            check_games(opened, Sources(tuple(names)))


def _report_no_symmetries(game: Game) -> None:
    """Print a message if no afterstates can be merged because the game has no symmetries."""
    from ..analysis.symmetry import symmetries

    group = symmetries(game)
    if group.num == 1:
        why = f" that were found ({group.why})" if group.why else ""
        console.say(f"{game.name} has no symmetries{why}, so afterstates cannot be merged")


def _equivalence(text: str | None) -> dict[int, int] | None:
    """Parse a text such as `0=0,33=50,100=100` into a dictionary; exit if it has another format."""
    if text is None:
        return None
    try:
        return {int(here): int(there) for here, there in (pair.split("=") for pair in text.split(","))}
    except ValueError:
        console.fail(
            f"expected --equivalence such as 0=0,33=50,100=100, got '{text}'; write GOAL=SOURCEGOAL for every goal",
            console.USAGE,
        )


def _value_report(store: Knowledge, learned: Learned) -> dict[str, Any]:
    """Return the result of a learner of values as JSON fields."""
    return {
        "knowledge": str(store.path),
        "number": learned.number,
        **learned.stored.origin,
        "mean_reward": learned.mean_reward,
        f"mean_reward_last_{LAST}": float(learned.rewards[-LAST:].mean()),
        "features": [
            {"feature": text, "value": value, "visits": visits} for text, (value, visits) in learned.features.items()
        ],
    }


def _show_values(report: dict[str, Any]) -> None:
    """Print the features with their values, and the mean rewards."""
    rows = [(row["feature"], f"{row['value']:.2f}", row["visits"]) for row in report["features"]]
    if rows:
        console.show_table(("feature", "value", "visits"), rows, numbers=[1, 2])
        typer.echo()
    typer.echo(
        f"learner {report['number']}: {report['game']}, {report['role']} against {report['opponent']}; mean reward "
        f"{report['mean_reward']:.1f} in {report['num_matches']} matches, "
        f"{report[f'mean_reward_last_{LAST}']:.1f} in the last {LAST}\nstored in {report['knowledge']}"
    )


# learners of sequences


def curriculum(expert: str, against: Sequence[str] | None, cycles: int, matches: int) -> Curriculum:
    """Return the tournaments to watch. Raises GameloreError for an unknown player."""
    from ..catalogue import player
    from ..learning.sequences.seqlearner import Curriculum

    # in random,uct:simulations=50,leaves=8 the last part is an option of the player uct, not a third player
    names = re.split(r",(?!\s*\w+\s*=)", ",".join(against)) if against else None
    opponents = None if names is None else [name.strip() for name in names if name.strip()]
    watched = Curriculum.of(expert, opponents, cycles, matches)
    for name in (expert, *watched.opponents):
        player(name)
    return watched


def _learn_sequences(game: Game, watched: Curriculum, options: dict[str, Any]) -> dict[str, Any]:
    """Let a learner of sequences watch matches, then test SeqPlayer; return the report. `options`: those of `learn`."""
    from ..learning.sequences.seqlearner import SequenceSettings

    store = Knowledge(options["knowledge"])
    with console.usage():
        settings = _settings(SequenceSettings, options)
    about: dict[str, Any] = {
        "expert": watched.expert,
        "against": watched.opponents,
        "cycles": watched.cycles,
        "matches": watched.matches,
    }
    about |= {"tests": options["tests"], "symmetry": options["symmetry"] or "all", "seed": options["seed"]}
    with console.reported(KEPT.format("tournament")), progress_bars() as tell:
        learned = learn_game(game, "sequences", store=store, progress=tell, **about, **settings)
    return {
        "knowledge": str(store.path),
        "number": learned.number,
        **learned.stored.origin,
        "tournaments": len(watched.tournaments),
        "sequences": learned.num_sequences,
        "with_context": learned.num_with_context,
        "pairs": len(learned.pairs),
        "classes": [{"from": low, "pairs": pairs} for low, pairs in learned.weight_classes()],
        "tests": learned.tests,
    }


def _show_sequences(report: dict[str, Any]) -> None:
    """Print the numbers of pairs and the test results. Print advice if the learner has learned no useful pair."""
    classes = [(f"{bounds['from']:.2f}", bounds["pairs"]) for bounds in report["classes"]]
    console.show_table(("weight at least", "pairs"), classes, numbers=[0, 1])
    typer.echo()
    if report["tests"]:
        columns = ("player", "against", "won or drawn %", "95 % interval", "won %", "matches")
        console.show_table(columns, map(_test_row, report["tests"]), numbers=[2, 3, 4, 5])
        typer.echo()
    typer.echo(
        f"learner {report['number']}: {report['game']}, {report['opponent']}; {report['num_matches']} matches with "
        f"{counted(report['sequences'], 'sequence')}, {report['with_context']} of them with a context, in "
        f"{counted(report['pairs'], 'pair')}\nstored in {report['knowledge']}; gamelore knowledge show "
        f"{report['number']} draws the best pairs, and seqplayer plays by them"
    )
    *trusted, _ = report["classes"]
    if not report["sequences"]:
        console.say(
            "no sequence was found: the matches were shorter than a sequence (--length), or no role won or drew"
        )
    elif not any(bounds["pairs"] for bounds in trusted):
        console.say(
            f"no pair has a weight of at least {trusted[-1]['from']}, so seqplayer plays at random; let the learner "
            "watch more matches (--matches, --cycles), or use another formula for weights (--weighting plain)"
        )


def _test_row(test: dict[str, Any]) -> tuple[object, ...]:
    interval = "{:.1f} to {:.1f}".format(*test["interval"]) if test["interval"] else "too few matches"
    won = f"{100 * test['wins'] / test['matches']:.1f}"
    return test["player"], test["against"], f"{test['reliability']:.1f}", interval, won, test["matches"]
