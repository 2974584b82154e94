"""features; knowledge list, show, export, import, check, delete: find features of a game, manage learned knowledge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from typer import Argument, Option

from ..api.feature_census import Features
from ..api.feature_census import features as features_of
from ..errors import GameloreError, KnowledgeError, counted
from . import console
from .console import Engine, Force, GameName, Json, KnowledgeFile, Seed

if TYPE_CHECKING:
    from ..game.game import Game
    from ..lab.feature_trees import DrawnFeature
    from ..lab.sequence_text import DrawnPair, LearnedPair
    from ..learning.store.knowledge import KnowledgeStore
    from ..learning.store.schema import FeatureRow, StoredLearner

Source = Annotated[str | None, Option("--source", metavar="GAME", help="Only knowledge learned in this game.")]
Role = Annotated[str | None, Option("--role", help="Only knowledge for this role.")]
Opponent = Annotated[
    str | None,
    Option("--opponent", help="Only knowledge learned against this opponent, such as weak, or weak:filler=first."),
]
Numbers = Annotated[
    list[int] | None, Argument(metavar="NUMBER", help="Numbers of learners, as in `gamelore knowledge list`.")
]
Draw = Annotated[
    Path | None,
    Option(
        "--draw",
        metavar="FILE",
        help="Also draw a picture into a .png or .svg file, or into both if FILE has no suffix.",
    ),
]
Sheets = dict[tuple[str, str], list["DrawnFeature"]]
"""Labelled features by (game, role)."""

app = typer.Typer()
knowledge_app = typer.Typer(help="List, show, copy, check and delete learned knowledge.", no_args_is_help=True)
app.add_typer(knowledge_app, name="knowledge")


@console.command(
    app,
    "features",
    "features tictactoe",
    "features tictactoe --role xplayer --draw figure2.png",
    "features othello4 --depth 3 --matches 500 --json",
    loads="games",
)
def features(
    game: GameName,
    role: Annotated[str | None, Option(help="Show only features of this role.", show_default="every role")] = None,
    depth: Annotated[int, Option(min=1, help="Depth of a feature in plies below an afterstate.")] = 2,
    limit: Annotated[
        int, Option(min=1, help="If there are more positions, use only positions of random matches.")
    ] = 100_000,
    matches: Annotated[
        int, Option(min=1, help="Number of random matches, if there are more positions than --limit.")
    ] = 1000,
    draw: Draw = None,
    engine: Engine = "auto",
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Find the game-tree features of a game (Banerjee & Stone 2007, section 3), and draw them."""
    rules = console.load_game(game, engine)
    roles = rules.roles if role is None else (console.known(role, rules.roles, f"a role of {rules.name}"),)
    census = features_of(rules, roles, depth=depth, limit=limit, matches=matches, seed=seed)
    drawn = {(rules.name, name): census.drawn(name) for name in roles} if draw else {}
    files = _draw_sheets(drawn, draw, [(role,) for role in roles]) if draw else []
    console.emit(_census_report(census, seed)) if json else typer.echo(f"{census.text(console.show_width())}\n")
    for file in files:
        console.say(f"wrote the picture {file}")


def _census_report(features: Features, seed: int) -> dict[str, Any]:
    """Return the result of `features` as JSON fields."""
    return {
        "game": features.game.name,
        "rules_hash": features.game.rules_hash,
        "depth": features.depth,
        "seed": seed,
        "roles": [
            {
                "role": role,
                "num_features": len(census.features),
                **{name: getattr(census, name) for name in ("complete", "method", "num_positions", "num_afterstates")},
                "features": [{"feature": feature, "afterstates": count} for feature, count in census.features.items()],
            }
            for role, census in features.items()
        ],
    }


@console.command(knowledge_app, "list", "knowledge list", "knowledge list --source tictactoe --opponent weak --json")
def list_(
    source: Source = None,
    role: Role = None,
    opponent: Opponent = None,
    knowledge: KnowledgeFile = None,
    json: Json = False,
) -> None:
    """List the learners in the store, one on each line."""
    from ..learning.store.knowledge import KnowledgeStore

    with KnowledgeStore(knowledge, create=False, writable=False) as store:
        learners = store.learners(source=source, role=role, opponent=opponent)
        hint = _hint(store)
    if json:
        console.emit([_about(learner) for learner in learners])
    elif learners:
        columns = ("number", "game", "role", "opponent", "learner", "from", "matches", "seed", "since")
        console.show_table(columns, map(_line, learners), numbers=[0, 6, 7])
    else:
        console.say(f"{store.path} has no such learner{hint}")


def _hint(store: KnowledgeStore) -> str:
    """Return where to look, if a store has lessons of the player gamelore."""
    from ..learning.store.lesson_rows import Lessons

    return "; it has lessons: gamelore lessons list" if Lessons(store).games() else ""


def _about(learner: StoredLearner) -> dict[str, Any]:
    """Return a learner as JSON fields."""
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


@console.command(
    knowledge_app,
    "show",
    "knowledge show --source tictactoe",
    "knowledge show 1 3 --draw features.png",
    "knowledge show 4 --top 3 --role xplayer --draw pairs.png",
    loads="games",
)
def show(
    numbers: Numbers = None,
    source: Source = None,
    role: Role = None,
    opponent: Opponent = None,
    draw: Draw = None,
    top: Annotated[int, Option(min=1, help="For a learner of sequences: number of pairs to show.")] = 10,
    min_weight: Annotated[
        float, Option(min=0, max=1, help="For a learner of sequences: show only pairs with at least this weight.")
    ] = 0.0,
    knowledge: KnowledgeFile = None,
    json: Json = False,
) -> None:
    """Draw learned knowledge: features with their values, and context pairs as boards.

    Features are drawn as in Figure 2 and Table 1 of Banerjee & Stone 2007. For a learner of sequences, the pairs with
    the highest weights are drawn, as in Figures 5 to 7 of Lock & Epstein 2004. The drawing of a pair shows the board of
    the context (`#` means any content), the numbered moves, the weight, and how often the advice of the pair agreed
    with the expert.
    """
    from ..learning.store.knowledge import KnowledgeStore

    with KnowledgeStore(knowledge, create=False, writable=False) as store:
        for number in numbers or ():
            if not store.numbers(ids=[number]):
                store.find(number)  # says which learners there are
        chosen = store.numbers(source=source, role=role, opponent=opponent, ids=numbers or None)
        learners, errors = _readable(store, chosen, partial(_shown, store, role, top, min_weight))
        hint = _hint(store)
    if not (json or errors or any(shown.rows or shown.pairs for shown in learners)):
        console.fail(
            f"expected learners with features or pairs in {store.path}, got none; `gamelore knowledge list` shows the "
            f"learners{hint}"
        )
    drawn = {} if json and draw is None else _drawable(_sheets(learners))
    files = _draw_all(drawn, learners, draw) if draw is not None else []
    if json:
        console.emit(_shown_report(learners))
    else:
        _print_sheets(drawn)
        _print_learners(learners)
        _print_pairs([shown.pairs for shown in learners if shown.pairs])
    for file in files:
        console.say(f"wrote the picture {file}")
    if errors:
        num_others = len(errors) - 1
        others = f"; {num_others} more learners are wrong; gamelore knowledge check names them" if num_others else ""
        console.fail(errors[0] + others)


class ShownLearner(NamedTuple):
    """A learner of values with its features and with the weights of its opponents' replies, or one of sequences.

    pairs: the best pairs of a learner of sequences, None if it has none
    """

    learner: StoredLearner
    rows: Sequence[FeatureRow] = ()
    replies: dict[str, float] | None = None
    pairs: ShownPairs | None = None


def _readable(
    store: KnowledgeStore, numbers: Iterable[int], read: Callable[[StoredLearner], ShownLearner]
) -> tuple[list[ShownLearner], list[str]]:
    """Read these learners. Return those that can be read, and an error for each other one."""
    shown, errors = [], []
    for number in numbers:
        try:
            shown.append(read(store.find(number)))
        except GameloreError as error:
            name, path = f"learner {number}", f"{store.path}: "
            errors.append(str(error) if name in str(error) else f"{path}{name}: {str(error).removeprefix(path)}")
    return shown, errors


def _shown(
    store: KnowledgeStore, role: str | None, top: int, min_weight: float, learner: StoredLearner
) -> ShownLearner:
    """Read what is shown of a learner: its features, or the pairs for this role if it is a learner of sequences."""
    if learner.has_sequences:
        return ShownLearner(learner, pairs=_chosen(store, learner, top, min_weight, role))
    _refresh(store, learner)
    with store.reading():
        learner = store.find(learner.id)
        return ShownLearner(learner, store.features(ids=[learner.id]), _reply_weights(store, learner))


def _shown_report(learners: Sequence[ShownLearner]) -> dict[str, Any]:
    """Return the result of `show` as JSON fields."""
    ordered = sorted(learners, key=lambda shown: shown.learner.has_sequences)
    return {
        "learners": [
            _about(shown.learner) | ({} if shown.learner.has_sequences else {"replies": shown.replies})
            for shown in ordered
        ],
        "features": [row._asdict() for shown in learners for row in shown.rows],
        "pairs": [
            {"learner": shown.learner.id, **pair.as_json()}
            for shown in learners
            if shown.pairs
            for pair in shown.pairs.pairs
        ],
    }


def _print_learners(learners: Sequence[ShownLearner]) -> None:
    """Print a line for each learner of values, and the preferences of its opponent if they are known."""
    for learner, _, weights, _ in learners:
        if learner.has_sequences:
            continue
        who = f"learner {learner.id}: {learner.game}, {learner.role} against {learner.opponent}"
        typer.echo(f"{who}, after {learner.features_at} matches")
        if weights:
            shares = ", ".join(f"{name} {weight:.3g}" for name, weight in weights.items())
            typer.echo(f"    the opponent's preference for a move, compared with a neutral move: {shares}")


def _reply_weights(store: KnowledgeStore, learner: StoredLearner) -> dict[str, float] | None:
    """Return the fitted weights of the opponents' replies by class of moves; None if no replies were counted."""
    from ..learning.td.replies import fit

    replies = store.feature_values(learner).replies
    return dict(zip(("wins", "loses", "gives a win"), fit(replies).tolist(), strict=False)) if replies else None


def _draw_all(drawn: Sheets, learners: Sequence[ShownLearner], path: Path) -> list[Path]:
    """Draw features and pairs into files; return the paths of the files."""
    shown = [learner.pairs for learner in learners if learner.pairs]
    features, boards = _paths(path, [("features",), ("pairs",)]) if drawn and shown else (path, path)
    return _draw_sheets(drawn, features, list(drawn)) + _draw_pairs(shown, boards)


def _paths(path: Path, names: Sequence[tuple[str, ...]]) -> list[Path]:
    """Return the path of each picture: `path` itself for a single one, otherwise `path` with its names at the end."""
    from ..lab.figures import file_name

    return [
        path if len(names) == 1 else path.with_name(f"{path.stem}-{file_name(*name)}{path.suffix}") for name in names
    ]


def _refresh(store: KnowledgeStore, learner: StoredLearner) -> None:
    """Compute the features of a learner that was interrupted before it computed them. Store them if this is possible.

    If the file cannot be changed, they are only in a copy of the store, which is in memory from then on.
    """
    from ..learning.sources import computed_features
    from ..learning.store.knowledge import KnowledgeStore

    if learner.features_at == learner.num_matches:
        return
    console.say(f"learner {learner.id} was interrupted before; its features are computed now")
    values = computed_features(store, learner, limits=console.LOADING.get())
    if not store.is_writable:
        try:
            with KnowledgeStore(store.path, create=False) as file:
                file.store_features(learner, values)
            return
        except KnowledgeError:
            store.detach()
    store.store_features(learner, values)


def _sheets(learners: Sequence[ShownLearner]) -> Sheets:
    """Group the features of learners by game and role. Each feature has its values by column."""
    from ..lab.feature_trees import labelled

    columns = _columns([shown.learner for shown in learners])
    values: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    rows = (row for shown in learners for row in shown.rows)
    for row in sorted(rows, key=lambda row: (row.feature, row.learner)):
        of_feature = values.setdefault((row.game, row.role), {}).setdefault(row.feature, {})
        of_feature[columns[row.learner]] = row.value
    return {source: labelled(features.items()) for source, features in sorted(values.items())}


def _drawable(drawn: Sheets) -> Sheets:
    """Return the features of each sheet that are drawn. Say how many are left out."""
    from ..lab.feature_trees import drawable, left_out

    sheets = {sheet: drawable(features) for sheet, features in drawn.items()}
    for (game, role), features in drawn.items():
        if num := len(features) - len(sheets[game, role]):
            console.say(f"{game}, {role}: {left_out(num, len(features))}; --json prints all")
    return sheets


def _columns(learners: Sequence[StoredLearner]) -> dict[int, str]:
    """Return the column title of each learner. No two learners of a game and role have the same title.

    The title is the first unique text of these: the kind of the opponent, the opponent with its options, and the kind
    of the opponent with the number of the learner.
    """

    def names(learner: StoredLearner) -> tuple[str, ...]:
        kind = learner.opponent.partition(":")[0]
        return kind, learner.opponent, f"{kind} ({learner.id})"

    heads = {}
    for learner in learners:
        taken = {
            name
            for other in learners
            if (other.game, other.role) == (learner.game, learner.role) and other != learner
            for name in names(other)
        }
        heads[learner.id] = next(name for name in names(learner) if name not in taken)
    return heads


def _print_sheets(drawn: Sheets) -> None:
    """Print features as trees."""
    from ..lab.feature_trees import feature_sheet

    for (game, role), features in drawn.items():
        typer.echo(f"{game}, {role}: {len(features)} features\n")
        typer.echo(feature_sheet(features, console.show_width()) + "\n")


def _draw_sheets(drawn: Sheets, path: Path, names: Sequence[tuple[str, ...]]) -> list[Path]:
    """Draw each sheet into a picture; return the files. The names of a sheet become part of the name of its file."""
    from ..lab.feature_trees import draw_features

    files = []
    for ((game, role), features), file in zip(drawn.items(), _paths(path, names), strict=True):
        files += draw_features(features, file, title=f"{game}, {role}")
    return files


class ShownPairs(NamedTuple):
    """The pairs to show of one learner, and the number of all its pairs."""

    learner: StoredLearner
    game: Game
    pairs: list[LearnedPair]
    of: int

    @property
    def drawn(self) -> list[DrawnPair]:
        """The drawings of the pairs, numbered from 1."""
        return [drawing for label, pair in enumerate(self.pairs, 1) for drawing in pair.drawn(str(label))]

    @property
    def title(self) -> str:
        """The title: the game, the number of shown pairs and the number of all pairs."""
        return f"{self.game.name}: the best {len(self.pairs)} of {counted(self.of, 'pair')}"


def _chosen(
    store: KnowledgeStore, learner: StoredLearner, top: int, min_weight: float, role: str | None
) -> ShownPairs | None:
    """Return the best pairs of a learner, with weights of at least `min_weight`; None if there are none."""
    from ..game.game import make
    from ..gdl.syntax import parse
    from ..lab.sequence_text import best
    from ..learning.session import load_learner

    game = make(parse(store.rules(learner)), learner.game, limits=console.LOADING.get())
    pairs = load_learner(store, learner, game, only_pairs=True).pairs
    chosen = best(pairs, top, role=role, min_weight=min_weight)
    return ShownPairs(learner, game, chosen, len(pairs)) if chosen else None


def _print_pairs(shown: Sequence[ShownPairs]) -> None:
    """Print a table of pairs for each learner, then the boards of these pairs."""
    from ..lab.sequence_text import pairs_text

    for number, pairs in enumerate(shown):
        learner, game = pairs.learner, pairs.game
        if number:
            typer.echo()
        typer.echo(f"{pairs.title} of learner {learner.id}\n")
        columns = ("pair", "role", "weight", "agreed with expert", "succeeded")
        console.show_table(columns, _pair_lines(pairs.pairs), numbers=[0, 2, 3, 4])
        typer.echo("\n" + pairs_text(game, pairs.drawn, console.show_width()) + "\n")
        typer.echo(f"learner {learner.id}: {game.name}, {learner.opponent}, after {learner.num_matches} matches")


def _pair_lines(pairs: Sequence[LearnedPair]) -> Iterator[tuple[object, ...]]:
    for label, pair in enumerate(pairs, 1):
        agreed = f"{pair.agreements:.0f} of {pair.comments:.0f}"
        yield label, pair.role, f"{pair.weight:.2f}", agreed, f"{pair.successes:g} of {pair.tries:.0f}"


def _draw_pairs(shown: Sequence[ShownPairs], path: Path) -> list[Path]:
    """Draw the pairs of each learner into one picture; return the files."""
    from ..lab.sequence_pictures import draw_pairs

    files = []
    for pairs, file in zip(shown, _paths(path, [(str(pairs.learner.id),) for pairs in shown]), strict=True):
        files += draw_pairs(pairs.game, pairs.drawn, file, pairs.title)
    return files


@console.command(knowledge_app, "export", "knowledge export all.json", "knowledge export some.json 1 3 --force")
def export(
    file: Annotated[Path, Argument(metavar="FILE", help="The JSON file to write.")],
    numbers: Numbers = None,
    force: Force = False,
    knowledge: KnowledgeFile = None,
    json: Json = False,
) -> None:
    """Write learners to a JSON file, as a backup or for use on another machine."""
    from ..learning.exchange import export_learners
    from ..learning.store.knowledge import KnowledgeStore

    console.refuse_existing(file, force)
    with KnowledgeStore(knowledge, create=False, writable=False) as store:
        count = export_learners(store, file, numbers or None)
    console.emit({"file": str(file), "learners": count}) if json else console.say(f"wrote {count} learners to {file}")


@console.command(knowledge_app, "import", "knowledge import all.json", "knowledge import all.json --knowledge other.db")
def import_(
    file: Annotated[Path, Argument(metavar="FILE", help="A JSON file that `gamelore knowledge export` wrote.")],
    knowledge: KnowledgeFile = None,
    json: Json = False,
) -> None:
    """Add the learners in an exported file to the store. A second import of the same file changes nothing."""
    from ..api.memory import Knowledge

    store = Knowledge(knowledge)
    count = store.add(file)
    if json:
        console.emit({"knowledge": str(store.path), "learners": count})
    else:
        console.say(f"imported {count} learners that were not in {store.path}, or had fewer matches there")


@console.command(knowledge_app, "check", "knowledge check", "knowledge check --knowledge other.db --json")
def check(knowledge: KnowledgeFile = None, json: Json = False) -> None:
    """Check the whole store: its file, its games, learners and lessons. Exit with 1 if something is wrong."""
    from ..gdl.syntax import printable
    from ..learning.exchange import problems
    from ..learning.store.knowledge import KnowledgeStore

    wrong = []
    with KnowledgeStore(knowledge, create=False, writable=False) as store:
        for problem in problems(store):
            wrong.append(problem)
            if not json:
                typer.echo(f"{store.path}: {printable(problem, 1000)}")
    if json:
        console.emit({"knowledge": str(store.path), "problems": wrong})
    else:
        console.say(f"{counted(len(wrong), 'problem')} in {store.path}" + (_REMEDY if wrong else ""))
    if wrong:
        raise typer.Exit(1)


_REMEDY = (
    "; remove wrong learners with gamelore knowledge delete, wrong lessons with gamelore lessons delete. If a game or "
    "the file is wrong, export the other learners and lessons, and import them into a new store"
)


@console.command(knowledge_app, "delete", "knowledge delete 3", "knowledge delete 1 2 --json")
def delete(
    numbers: Annotated[
        list[int], Argument(metavar="NUMBER", help="Numbers of learners, as in `gamelore knowledge list`.")
    ],
    knowledge: KnowledgeFile = None,
    json: Json = False,
) -> None:
    """Delete learners with all that they learned. There is no way back, except from an export."""
    from ..gdl.syntax import printable
    from ..learning.store.knowledge import KnowledgeStore

    with KnowledgeStore(knowledge, create=False) as store:
        deleted = store.delete(numbers)
    if json:
        console.emit({"knowledge": str(store.path), "deleted": [learner._asdict() for learner in deleted]})
        return
    for learner in deleted:
        about = f"{learner.game}, {learner.role} against {learner.opponent}, seed {learner.seed}"
        matches = counted(learner.num_matches, "match", "matches")
        console.say(f"deleted learner {learner.number}: {printable(about)}, after {matches}")
