"""knowledge list | show | export | import: what is in the store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import pairs
from .console import Json, KnowledgeFile, command, emit, fail, say, show_table, show_width

if TYPE_CHECKING:
    from ..lab.trees import DrawnFeature
    from ..learn.knowledge import FeatureRow, Knowledge, StoredLearner

app = typer.Typer(help="List, show, export and import what was learned.", no_args_is_help=True)

Source = Annotated[str | None, typer.Option("--source", metavar="GAME", help="Only what was learned in this game.")]
Role = Annotated[
    str | None, typer.Option("--role", help="Only what was learned in this role, or of sequences: for it.")
]
Opponent = Annotated[
    str | None, typer.Option("--opponent", help="Only against this opponent, whole or just its kind (egreedy).")
]
Numbers = Annotated[
    list[int] | None, typer.Argument(metavar="NUMBER", help="Learners by their number in `knowledge list`.")
]


def list_(
    source: Source = None,
    role: Role = None,
    opponent: Opponent = None,
    knowledge: KnowledgeFile = None,
    json: Json = False,
) -> None:
    """List who learned what: one line for each learner."""
    from ..learn.knowledge import Knowledge

    with Knowledge(knowledge, create=False) as store:
        learners = [
            learner
            for learner in store.learners(source=source, opponent=opponent)
            if learner.has_sequences or role in (None, learner.role)
        ]
    if json:
        emit([_about(learner) for learner in learners])
    elif learners:
        columns = ("number", "game", "role", "opponent", "learner", "from", "matches", "seed", "since")
        show_table(columns, map(_line, learners), numbers=[0, 6, 7])
    else:
        say(f"{store.path} holds no such learner")


def _about(learner: StoredLearner) -> dict[str, Any]:
    return {
        "number": learner.id,
        **learner.origin,
        "features_at": learner.features_at,
        "sources": learner.sources,
        "created": learner.created,
        "gamelore": learner.version,
    }


def _line(learner: StoredLearner) -> tuple[object, ...]:
    sources = ", ".join(sorted({source["game"] for source in learner.sources})) or "-"
    about = (learner.id, learner.game, learner.role, learner.opponent, learner.settings.get("kind", "?"), sources)
    return (*about, learner.num_matches, learner.seed, learner.created[:10])


def show(
    numbers: Numbers = None,
    source: Source = None,
    role: Role = None,
    opponent: Opponent = None,
    draw: Annotated[
        Path | None, typer.Option("--draw", metavar="FILE", help="Also draw them: .png or .svg; both without a suffix.")
    ] = None,
    top: Annotated[int, typer.Option("--top", min=1, help="Of a learner of sequences: how many of its pairs.")] = 10,
    min_weight: Annotated[
        float, typer.Option("--min-weight", min=0.0, max=1.0, help="Of its pairs only those of at least this weight.")
    ] = 0.0,
    knowledge: KnowledgeFile = None,
    json: Json = False,
) -> None:
    """Draw what was learned: features with their values, context pairs as boards.

    Features are drawn as in Figure 2 and Table 1 of Banerjee & Stone 2007. Of a learner of sequences the pairs are
    drawn, the best first, as in Figures 5 to 7 of Lock & Epstein 2004: the board before, `#` where anything may lie,
    the moves numbered, the weight, and how often the pair advised what the expert did.
    """
    from ..learn.knowledge import ALL_ROLES, Knowledge

    with Knowledge(knowledge, create=False) as store:
        ids = None if not numbers else [store.find(number).id for number in numbers]
        _refresh(store, store.learners(source=source, role=role, opponent=opponent, ids=ids))
        with store.reading():
            found = store.learners(source=source, role=role, opponent=opponent, ids=ids)
            learners = [learner for learner in found if not learner.has_sequences]
            rows = store.features(source=source, role=role, opponent=opponent, ids=ids)
        watching = store.learners(source=source, role=ALL_ROLES, opponent=opponent, ids=ids)
        shown = pairs.chosen(store, watching, top, min_weight, role)
    drawn = _drawn(learners, rows)
    files = _draw_all(drawn, shown, draw) if draw is not None else []
    if json:
        about = [_about(learner) for learner in (*learners, *watching)]
        emit({"learners": about, "features": [row._asdict() for row in rows], "pairs": pairs.as_json(shown)})
    elif drawn or shown:
        _print_sheets(learners, drawn)
        pairs.print_pairs(shown)
    else:
        fail(f"{store.path} holds no features or pairs of such learners; see gamelore knowledge list")
    for file in files:
        say(f"drawn in {file}")


def _draw_all(drawn: Sheets, shown: Sequence[pairs.Shown], path: Path) -> list[Path]:
    """Pictures of features and of pairs; where there are both, their names tell them apart."""
    if not drawn or not shown:
        return _draw(drawn, path) if drawn else pairs.draw(shown, path)
    features, boards = (path.with_name(f"{path.stem}-{what}{path.suffix}") for what in ("features", "pairs"))
    return _draw(drawn, features) + pairs.draw(shown, boards)


def _refresh(store: Knowledge, learners: Sequence[StoredLearner]) -> None:
    """Works out the features of learners that were interrupted."""
    from ..learn.study import refresh_features

    for learner in learners:
        if not learner.has_sequences and learner.features_at != learner.num_matches:
            say(f"learner {learner.id} was interrupted; working out its features")
            refresh_features(store, learner)


Sheets = dict[tuple[str, str], list["DrawnFeature"]]


def _drawn(learners: Sequence[StoredLearner], rows: Sequence[FeatureRow]) -> Sheets:
    """(game, role) -> its features, labelled in their order, a value for each learner's column."""
    from ..lab.trees import DrawnFeature, labels

    columns = _columns(learners)
    values: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    for row in sorted(rows, key=lambda row: (row.feature, row.learner)):
        of_feature = values.setdefault((row.game, row.role), {}).setdefault(row.feature, {})
        of_feature[columns[row.learner]] = row.value
    return {
        source: [
            DrawnFeature(label, text, found) for label, (text, found) in zip(labels(), features.items(), strict=False)
        ]
        for source, features in sorted(values.items())
    }


def _columns(learners: Sequence[StoredLearner]) -> dict[int, str]:
    """Learner -> the head of its column: its opponent's kind, or all of it, or its kind with the learner's number:
    the first that tells it from the others of its game and role."""

    def names(learner: StoredLearner) -> tuple[str, ...]:
        kind = learner.opponent.partition(":")[0]
        return kind, learner.opponent, f"{kind} ({learner.id})"

    heads = {}
    for learner in learners:
        others = [one for one in learners if (one.game, one.role) == (learner.game, learner.role) and one != learner]
        taken = {name for other in others for name in names(other)}
        heads[learner.id] = next(name for name in names(learner) if name not in taken)
    return heads


def _print_sheets(learners: Sequence[StoredLearner], drawn: Sheets) -> None:
    from ..lab.trees import feature_sheet

    for (game, role), features in drawn.items():
        typer.echo(f"{game}, {role}: {len(features)} features\n")
        typer.echo(feature_sheet(features, show_width()) + "\n")
    for learner in learners:
        who = f"learner {learner.id}: {learner.game}, {learner.role} against {learner.opponent}"
        typer.echo(f"{who}, after {learner.features_at} matches")


def _draw(drawn: Sheets, path: Path) -> list[Path]:
    from ..lab.drawing import draw_features

    files = []
    for (game, role), features in drawn.items():
        chosen = path if len(drawn) == 1 else path.with_name(f"{path.stem}-{game}-{role}{path.suffix}")
        files += draw_features(features, chosen, title=f"{game}, {role}")
    return files


def export(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The JSON file to write.")],
    numbers: Numbers = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that exists.")] = False,
    knowledge: KnowledgeFile = None,
    json: Json = False,
) -> None:
    """Write learners into one JSON file, for another machine or to keep."""
    from ..learn.exchange import export_learners
    from ..learn.knowledge import Knowledge

    if file.exists() and not force:
        fail(f"{file}: expected a new file, got one that exists; name another, or write over it with --force")
    with Knowledge(knowledge, create=False) as store:
        count = export_learners(store, file, numbers or None)
    emit({"file": str(file), "learners": count}) if json else say(f"wrote {count} learners to {file}")


def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A JSON file that `knowledge export` wrote.")],
    knowledge: KnowledgeFile = None,
    json: Json = False,
) -> None:
    """Take in the learners of an exported file; doing it twice changes nothing."""
    from ..learn.exchange import import_learners
    from ..learn.knowledge import Knowledge

    with Knowledge(knowledge) as store:
        count = import_learners(store, file)
    if json:
        emit({"knowledge": str(store.path), "learners": count})
    else:
        say(f"took {count} learners that were new or had played on into {store.path}")


command(app, "list", "knowledge list", "knowledge list --source tictactoe --opponent weak --json")(list_)
command(
    app,
    "show",
    "knowledge show --source tictactoe",
    "knowledge show 1 3 --draw features.png",
    "knowledge show 4 --top 3 --role xplayer --draw pairs.png",
)(show)
command(app, "export", "knowledge export all.json", "knowledge export some.json 1 3 --force")(export)
command(app, "import", "knowledge import all.json", "knowledge import all.json --knowledge other.db")(import_)
