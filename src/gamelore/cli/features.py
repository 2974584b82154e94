"""features: the game-tree features of a game, as text, picture or JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .console import GAME_HELP, Engine, Json, Seed, command, emit, known, load_game, say, show_width

if TYPE_CHECKING:
    from ..lab.trees import DrawnFeature
    from ..learn.trees import FeatureCensus
    from ..rules.game import Game


def register(app: typer.Typer) -> None:
    """Adds the command of this module."""
    command(
        app,
        "features",
        "features tictactoe",
        "features tictactoe --role xplayer --draw figure2.png",
        "features othello4 --depth 3 --matches 500 --json",
    )(features)


def features(
    game: Annotated[str, typer.Argument(metavar="GAME", help=GAME_HELP)],
    role: Annotated[str | None, typer.Option("--role", help="Only for this role.", show_default="every role")] = None,
    depth: Annotated[int, typer.Option("--depth", min=1, help="Plies below an afterstate that are looked at.")] = 2,
    limit: Annotated[
        int, typer.Option("--limit", min=1, help="With more positions than this, random matches are looked at.")
    ] = 100_000,
    matches: Annotated[int, typer.Option("--matches", min=1, help="How many, in such a large game.")] = 1000,
    draw: Annotated[
        Path | None, typer.Option("--draw", metavar="FILE", help="Also draw them: .png or .svg; both without a suffix.")
    ] = None,
    engine: Engine = "auto",
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Find the game-tree features of a game (Banerjee & Stone 2007, section 3) and draw them."""
    from ..learn.trees import reachable_features
    from ..play.graph import Graph

    rules = load_game(game, engine)
    roles = rules.roles if role is None else (known(role, rules.roles, f"a role of {rules.name}"),)
    graph = Graph(rules)
    found = {
        name: reachable_features(rules, name, depth=depth, limit=limit, num_matches=matches, seed=seed, graph=graph)
        for name in roles
    }
    files = _draw(rules, found, draw) if draw is not None else []
    if json:
        emit(_report(rules, found, depth, seed))
    else:
        _show(rules, found)
    for file in files:
        say(f"drawn in {file}")


def _drawn(census: FeatureCensus) -> list[DrawnFeature]:
    from ..lab.trees import DrawnFeature, labels

    return [DrawnFeature(label, text) for label, text in zip(labels(), census.features, strict=False)]


def _show(game: Game, found: dict[str, FeatureCensus]) -> None:
    from ..lab.trees import feature_sheet

    for role, census in found.items():
        typer.echo(f"{game.name}, {role}: {len(census.features)} features in {census.method}\n")
        typer.echo(feature_sheet(_drawn(census), show_width()) + "\n")


def _draw(game: Game, found: dict[str, FeatureCensus], path: Path) -> list[Path]:
    from ..lab.drawing import draw_features

    files = []
    for role, census in found.items():
        chosen = path if len(found) == 1 else path.with_name(f"{path.stem}-{role}{path.suffix}")
        files += draw_features(_drawn(census), chosen, title=f"{game.name}, {role}")
    return files


def _report(game: Game, found: dict[str, FeatureCensus], depth: int, seed: int) -> dict[str, Any]:
    return {
        "game": game.name,
        "rules_hash": game.rules_hash,
        "depth": depth,
        "seed": seed,
        "roles": [
            {
                "role": role,
                "num_features": len(census.features),
                "complete": census.complete,
                "method": census.method,
                "num_positions": census.num_positions,
                "num_afterstates": census.num_afterstates,
                "features": [{"feature": feature, "afterstates": count} for feature, count in census.features.items()],
            }
            for role, census in found.items()
        ],
    }
