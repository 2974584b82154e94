"""play and players: matches between players of any kind, and which kinds there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .console import (
    GAME_HELP,
    USAGE,
    Engine,
    Json,
    Seed,
    command,
    counted,
    emit,
    fail,
    load_game,
    show_table,
    status,
    usage,
)
from .solve import solved, without_counter

if TYPE_CHECKING:
    from ..play.match import MatchRecord
    from ..play.player import Finished, Player
    from ..rules.game import Game


def register(app: typer.Typer) -> None:
    """Adds the commands of this module."""
    command(
        app,
        "play",
        "play tictactoe egreedy random",
        "play othello4 minimax:depth=4 egreedy:filler=first,epsilon=0.05 --matches 1000 --seed 7",
        "play connectfour uct:simulations=5000 egreedy",
        "play connectfour uct:seconds=0.5 uct:simulations=1000,leaves=8",
        "play connect3 weak random --matches 100 --records matches.jsonl --json",
        "play losetictactoe expert random --matches 1000 --regret",
        "play losetictactoe seqplayer perfect --matches 100",
        "play tictactoe human egreedy",
        "play connect3 baseline egreedy --matches 500",
        kept="no record was written",  # but learners among the players keep every finished match
    )(play)
    command(app, "players", "players", "players --json")(players)


def play(
    game: Annotated[str, typer.Argument(metavar="GAME", help=GAME_HELP)],
    players: Annotated[
        list[str],
        typer.Argument(
            metavar="PLAYER",
            help="One for each role: egreedy, random, uct, .. (see `gamelore players`), with :option=value,..",
        ),
    ],
    matches: Annotated[int, typer.Option("--matches", min=1, help="How many; one is shown move by move.")] = 1,
    records: Annotated[
        Path | None, typer.Option("--records", metavar="FILE", help="Write every match as a line of JSON.")
    ] = None,
    regret: Annotated[
        bool, typer.Option("--regret", help="Also how many points a move of each loses against best play.")
    ] = False,
    engine: Engine = "auto",
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Let players play matches, and count what they got.

    The strongest is uct: 1000 simulations a move unless told otherwise, as in uct:simulations=5000 or uct:seconds=0.5.
    The seconds are for one move of all matches that are played side by side.

    The players perfect, xreasonable, expert and novice, and --regret, need the game to be solved, see `gamelore solve`;
    that is done first. A step counter that it leaves out is unknown to them, too.

    The player human is you: the board is drawn, and you type the number of a move, the move, or a part of it.

    The players baseline, transfer and lookahead learn from every match, and keep it in your knowledge store: those of
    the same seed against the same opponent are the learners of `gamelore learn`, and go on from what they know.
    """
    from ..learn.lasting import LastingLearner
    from ..play.perfect import Perfect
    from ..play.reasonable import XReasonable
    from ..play.regret import RegretCount
    from .human import Human, play_here, player

    rules = load_game(game, engine)
    with usage():
        seats = [player(spec, seed=seed, opponent=_opponent(players, role)) for role, spec in enumerate(players)]
    if len(players) != rules.num_roles:
        fail(f"expected {rules.num_roles} players, for {', '.join(rules.roles)}; got {len(players)}", USAGE)
    losses = RegretCount(rules.num_roles) if regret else None
    needed = regret or any(isinstance(seat, Perfect | XReasonable) for seat in seats)
    solution = solved(rules) if needed else None  # held here, it is there for all who ask for it
    on_end = losses.add if losses else None
    has_human = any(isinstance(seat, Human) for seat in seats)
    if has_human:
        played = play_here(rules, seats, players, matches, seed, on_end=on_end, err=json)
    else:
        learns = any(isinstance(seat, LastingLearner) for seat in seats)
        played = _played(rules, players, seats if learns else [], matches, seed, on_end)
    if records is not None:
        records.parent.mkdir(parents=True, exist_ok=True)
        records.write_text("".join(f"{record.to_json()}\n" for record in played), encoding="utf-8")
    if not played:  # a human left before the first match was over
        return emit({"game": rules.name, "matches": 0}) if json else None
    summary = _summary(rules, players, played, seed)
    if solution is not None and solution.left_out:
        summary["left_out"] = list(solution.left_out)
    if losses:
        for result, mean in zip(summary["players"], losses.per_move, strict=True):
            result["regret"] = mean
    if json:
        emit(summary)
    else:
        _show(summary, played[0] if matches == 1 and not has_human else None)


def _opponent(players: list[str], role: int) -> str | None:
    """Against whom the player of a role plays, where that is one."""
    return players[1 - role] if len(players) == 2 else None


def _played(
    game: Game,
    players: list[str],
    learning: list[Player],
    num_matches: int,
    seed: int,
    on_end: Callable[[Finished], None] | None,
) -> list[MatchRecord]:
    """The matches; where there are players who learn from each, they come one after the other."""
    from ..play.lockstep import play_matches
    from .human import one_by_one

    over = f"of {counted(num_matches, 'match', 'matches')} are over"
    with status() as doing:
        doing(f"playing {counted(num_matches, 'match', 'matches')}")
        if not learning:
            return play_matches(
                game, players, num_matches, seed, on_end=on_end, on_progress=lambda number: doing(f"{number} {over}")
            )

        def end(finished: Finished) -> None:
            doing(f"{int(finished.matches[0]) + 1} {over}")
            if on_end is not None:
                on_end(finished)

        return one_by_one(game, learning, players, num_matches, seed, end)


def _summary(game: Game, players: list[str], played: list[MatchRecord], seed: int) -> dict[str, Any]:
    lengths = [len(record.moves) for record in played]
    return {
        "game": game.name,
        "rules_hash": game.rules_hash,
        "engine": game.engine,
        "seed": seed,
        "matches": len(played),
        "ends": dict(Counter(record.end for record in played)),
        "plies": {"least": min(lengths), "mean": sum(lengths) / len(lengths), "most": max(lengths)},
        "players": [
            result_of(name, player, [record.goals[role] for record in played])
            for role, (name, player) in enumerate(zip(game.roles, players, strict=True))
        ],
    }


def result_of(role: str, player: str, goals: Sequence[int | None]) -> dict[str, Any]:
    """What one player got; a goal that the rules do not give counts 0 and is counted apart."""
    counts = Counter(goals)
    return {
        "role": role,
        "player": player,
        "mean_goal": sum(goal or 0 for goal in goals) / len(goals),
        "goals": {str(goal): counts[goal] for goal in sorted((g for g in counts if g is not None), reverse=True)},
        "missing": counts[None],
    }


def goals_text(result: dict[str, Any]) -> str:
    """How often a player got which goal."""
    counts = [*result["goals"].items(), ("none", result["missing"])]
    return "  ".join(f"{goal}: {count}" for goal, count in counts if count)


def _show(summary: dict[str, Any], match: MatchRecord | None) -> None:
    if match is not None:
        show_table(("ply", *match.roles), [(ply, *moves) for ply, moves in enumerate(match.moves, 1)], numbers=[0])
        typer.echo()
    rows = [
        (
            result["role"],
            result["player"],
            f"{result['mean_goal']:.2f}",
            *([f"{result['regret']:.2f}"] if "regret" in result else []),
            goals_text(result),
        )
        for result in summary["players"]
    ]
    regret = ("regret per move",) if "regret" in summary["players"][0] else ()
    show_table(("role", "player", "mean goal", *regret, "goals"), rows, numbers=range(2, 3 + len(regret)))
    plies = summary["plies"]
    ends = ", ".join(f"{count} {end}" for end, count in summary["ends"].items())
    typer.echo(
        f"\n{counted(summary['matches'], 'match', 'matches')} ({ends}) of {plies['least']} to {plies['most']} plies, "
        f"{plies['mean']:.1f} on average; {summary['engine']} engine, seed {summary['seed']}"
    )
    if "left_out" in summary:
        typer.echo(f"best play and regret are those of the game {without_counter(summary['left_out'])}")


def players(json: Json = False) -> None:
    """List the players that `gamelore play` takes, and what can be set of each: name:option=value,option=value."""
    from .human import ROSTER

    rows = [(name, list(entry.options), entry.about) for name, entry in ROSTER.items()]
    if json:
        emit([dict(zip(("name", "options", "about"), row, strict=True)) for row in rows])
    else:
        show_table(("player", "about", "options"), [(name, about, ", ".join(options)) for name, options, about in rows])
