"""The shipped rulesheets with their perft counts, `load` for names and paths, and the options of rulesheets.

    tictactoe            3x3, three in a line wins
    losetictactoe        3x3, three in a line loses
    tictactoe3p          three players, 4x4, three in a line wins
    connect3             5x5 with gravity, three in a line wins
    connectfour          7 columns by 6 rows, four in a line wins
    othello4             Othello on 4x4, with passes
    capturego3           Go on 3x3, the first capture wins, no suicide
    capturego3_suicide   capturego3, but suicide is legal and loses
    goofspiel            two players bid at the same time for five prizes
    pegsolitaire         one player, fifteen holes in a triangle, fewer pegs left give more points
    fivemensmorris       place and move five pieces, three in a line capture one; options cap, flying, removal
    breakthrough         pawns on 4x5 or larger, first pawn in the last row wins; options width, height, rows

Each game has two files: `NAME.kif` is GDL with comments, and `NAME.perft` has its counts. A line of a perft file is
`depth sequences positions`. `sequences` is the number of joint-move sequences of length `depth` from the start; a match
that has ended is not continued. `positions` is the number of distinct positions (sets of facts) after these sequences.
If all positions of the game were counted, two more lines follow: `complete N` is the number of complete matches, and
`reachable N` is the number of distinct positions at all depths. `#` begins a comment.

Options are facts with values that the caller of `load` may choose. So one sheet describes several variants of a game:

    (option cap 100)                 ; the default value
    (choice cap 80) (choice cap 100) ; the allowed values; without any, every word is allowed
    (<= (chosen ?name ?value) (option ?name ?value) (choice ?name ?value))

The last line is a rule that the sheet has to contain. Other rules of the sheet then read the values with `chosen`, as
in `(chosen cap ?n)`. `load` writes the chosen values into the text of the sheet, so that findings, hash and cache work
as for a sheet without options. Grounding removes the options, because they do not depend on the state. A caller gives
the values after a colon, after the name of a game or the path of its sheet:

    load("fivemensmorris:cap=80,flying=yes")     load("my/game.kif:width=6")

`gamelore games` lists the options and their values. The name of the game contains the chosen values, in the order of
the sheet. The hash of the game is the hash of the rules with these values. Perft files have the counts for the default
values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from ..errors import GameloreError, one_of
from ..game.game import EngineName, Game, make
from ..gdl.limits import LOADING, Limits, enforced
from ..gdl.syntax import Constant, Rule, Rulesheet, lines, parse, parse_around_errors, refuse_binary

_WORD = re.compile(r"[^\s();?][^\s();]*")
_BEFORE_WORD = re.compile(r"(?:[(\s\ufeff]|;[^\n]*)*")  # a constant in parentheses begins with the parenthesis


@dataclass(frozen=True, slots=True)
class Option:
    """An option: its name, its default value, and its allowed values. Without choices, every word is allowed."""

    name: str
    value: str
    choices: tuple[str, ...]

    def allowed(self, value: str) -> str:
        """Return a value in the spelling of the sheet. Raise GameloreError, with the nearest value, for a wrong one."""
        spelled = {choice.lower(): choice for choice in self.choices}
        if value.lower() in spelled:
            return spelled[value.lower()]
        if self.choices or not _WORD.fullmatch(value):
            expected = f"one of {', '.join(self.choices)}" if self.choices else "a word"
            raise GameloreError(f"expected {expected} for the option {self.name}, got {value!r}; {self._near(value)}")
        return value

    def _near(self, value: str) -> str:
        numbers = [choice for choice in self.choices if choice.isdecimal()]
        if value.isdecimal() and numbers:
            return f"the nearest is {min(numbers, key=lambda number: abs(int(number) - int(value)))}"
        near = get_close_matches(value, self.choices, n=2, cutoff=0.5)
        return f"did you mean {' or '.join(near)}?" if near else f"leave the option out for the default {self.value}"


def options(rules: Iterable[Rule]) -> dict[str, Option]:
    """Return the options of a rulesheet by name, in the order of the sheet."""
    rules = list(rules)
    choices: dict[str, list[str]] = {}
    for name, value in _facts("choice", rules):
        choices.setdefault(name.name, []).append(str(value))
    facts = _facts("option", rules)
    return {name.name: Option(name.name, str(value), tuple(choices.get(name.name, ()))) for name, value in facts}


def with_choices(text: str, chosen: Mapping[str, str], game: str) -> tuple[str, dict[str, str]]:
    """Return the text with the chosen values of its options, and these values in the order and spelling of the sheet.

    The function accepts a text with syntax errors and does not change them. Raise GameloreError, with the nearest name
    or value, for an option that the sheet does not have and for a value that it does not allow. `game` is the name of
    the game for error messages.
    """
    rules = parse_around_errors(text)[0].rules
    by_name = options(rules)
    for wanted in chosen:
        if not by_name:
            raise GameloreError(f"expected no options, because {game} has none, got {wanted!r}; leave it out")
        one_of(wanted, by_name, f"an option of {game}")
    values = {option.name: option.allowed(chosen[option.name]) for option in by_name.values() if option.name in chosen}
    rows = lines(text)
    text, starts = "\n".join(rows), list(accumulate((len(row) + 1 for row in rows), initial=0))
    facts = list(_facts("option", rules))
    for name, old in reversed(facts):  # the last option first, so that the places of the others stay valid
        if name.name in values:
            before = _BEFORE_WORD.match(text, starts[old.location.line - 1] + old.location.column - 1)
            assert before is not None
            text = text[: before.end()] + values[name.name] + text[before.end() + len(old.spelling) :]
    return text, values


def _facts(relation: str, rules: Iterable[Rule]) -> Iterator[tuple[Constant, Constant]]:
    """Yield the two constants of every fact of a relation."""
    for rule in rules:
        match rule.head.args:
            case (Constant() as name, Constant() as value) if rule.head.name == relation and not rule.body:
                yield name, value


_FOLDER = Path(__file__).parent


class Counts(NamedTuple):
    """The perft counts of one game, by depth from 1 on.

    `complete` and `reachable` are None if the positions of the game were not all counted.
    """

    sequences: dict[int, int]
    positions: dict[int, int]
    complete: int | None
    reachable: int | None


def names() -> tuple[str, ...]:
    """Return the names of the shipped games, in alphabetical order."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.kif")))


def path(name: str) -> Path:
    """Return the path of a shipped rulesheet. Raise GameloreError, with the nearest names, if there is no such game."""
    if name not in names():
        remedy = _instead(Path(name), names(), "the shipped games are")
        raise GameloreError(f"expected the name of a shipped game, got '{name}'; {remedy}")
    return _FOLDER / f"{name}.kif"


def place(base: str, shipped: bool = True) -> Path:
    """Return the path of a rulesheet. `base` is the path of a file or, if `shipped`, the name of a shipped game.

    Raise GameloreError, with the nearest names, if there is no such file.
    """
    games = names() if shipped else ()
    file = path(base) if base in games else Path(base)
    if file.exists() and not file.is_dir():
        return file
    expected = "a shipped game or the path of a rulesheet" if shipped else "the path of a rulesheet"
    raise GameloreError(f"expected {expected}, got {base!r}; {_instead(file, games)}")


def _instead(path: Path, names: Sequence[str], listing: str = "the shipped games are") -> str:
    """Return the advice for a name or path that is not a file: where no file is, and the nearest games and files."""
    if path.is_dir():
        return f"this is a folder: name the files in it, for example {path / '*.kif'}"
    has_folder, folder = path.name != str(path), path.absolute().parent
    names = () if has_folder else names  # the name of a shipped game has no folder
    advice = []
    if has_folder or path.suffix == ".kif" or not names:
        advice.append(f"there is no such file in {folder}" if folder.is_dir() else f"there is no folder {folder}")
    files = {place.stem.lower(): str(place) for place in path.parent.glob("*.kif")}
    stem = path.stem.lower()
    near = get_close_matches(stem, names) + [files[name] for name in get_close_matches(stem, files)]
    if near:
        advice.append(f"did you mean {' or '.join(near)}?")
    elif names:
        advice.append(f"{listing} {', '.join(names)}")
    return "; ".join(advice)


def perft(name: str) -> dict[int, int]:
    """Return the number of joint-move sequences from the start, by their length. Raise the errors of `path`."""
    return counts(name).sequences


def counts(name: str) -> Counts:
    """Return the counts in the perft file of a shipped game. Raise the errors of `path`."""
    sequences, positions, totals = {}, {}, {}
    for line in path(name).with_suffix(".perft").read_text(encoding="utf-8").splitlines():
        words = line.partition("#")[0].split()
        if len(words) == 3:
            depth = int(words[0])
            sequences[depth], positions[depth] = int(words[1]), int(words[2])
        elif words:
            totals[words[0]] = int(words[1])
    return Counts(sequences, positions, totals.get("complete"), totals.get("reachable"))


def load(
    source: str | Path,
    engine: EngineName = "auto",
    limits: Limits | None = None,
    *,
    name: str | None = None,
    rewrite: bool = True,
) -> Game:
    """Return a game from a shipped name, a path or GDL text.

    A source with a parenthesis is GDL text, unless it is a path that ends in ".kif". A shipped name takes precedence
    over a file with the same name. Options may follow a name or a path, as in "fivemensmorris:cap=80,flying=yes".

    Args:
        source: a shipped name, a path, or GDL text.
        engine: "native" compiles the rules and raises GroundingError beyond the limits of grounding; "reasoner" queries
            the rules in each state; "auto" is "native" if the limits allow it, else "reasoner".
        limits: limits of processor time, memory and size; the default is `Limits()`.
        name: the name of the game, in messages and records. None is the shipped name or the name of the file, with the
            chosen options, or "unnamed" for GDL text.
        rewrite: False to use the rules as written, without rewriting for a small grounding. Tests compare both.

    Returns:
        The game, ready to play.

    Raises:
        GDLError: the game of the rulesheet cannot be played.
        GroundingError: the game exceeds the limits. With the engine "auto", no engine can play it within the limits.
        GameloreError: the name, an option or the engine is unknown, or the file does not exist.
        OSError: the file cannot be read.
    """
    chosen = limits or Limits()

    def read_and_make() -> Game:
        sheet, own_name = read(source)
        return make(sheet, own_name if name is None else name, engine, chosen, rewrite)

    return enforced(read_and_make, chosen, LOADING)


def loaded(game: Game | str | Path, limits: Limits | None = None) -> Game:
    """Return a game as it is, or load it from a shipped name, a path or GDL text, within the limits."""
    return game if isinstance(game, Game) else load(game, limits=limits)


def read(source: str | Path) -> tuple[Rulesheet, str]:
    """Parse the rules from a shipped name, a path or GDL text. Return (rulesheet, name of the game).

    Raise the errors of `load`.
    """
    place, text, name = sheet_or_text(source)
    return parse(text, place), name


def sheet_or_text(source: str | Path) -> tuple[Path | None, str, str]:
    """Return path, text and name of the game as `sheet` does; for GDL text there is no path, and no real name."""
    return (None, source, "unnamed") if isinstance(source, str) and _is_text(source) else sheet(source)


def sheet(source: str | Path) -> tuple[Path, str, str]:
    """Return the path of a rulesheet, its text with the chosen options, and the game's name.

    Raise GameloreError for an unknown name or option and for a missing or binary file; OSError for an unreadable file.
    """
    base, settings = split(source)
    is_file = Path(base).exists() and not Path(base).is_dir()
    is_path = base not in names() and (Path(base).suffix or is_file or Path(base).name != base)
    file = place(base) if isinstance(source, Path) or is_path else path(base)
    text = file.read_text(encoding="utf-8", errors="replace")
    refuse_binary(text, file)
    chosen = _chosen(settings, str(source))
    if not chosen:
        return file, text, _stem(file)
    text, values = with_choices(text, chosen, file.stem)
    return file, text, f"{_stem(file)}:{','.join(map('='.join, values.items()))}"


def split(source: str | Path) -> tuple[str, str]:
    """Split a source into (name or path, options).

    Examples of results: ("connect3", ""), ("my/game.kif", "cap=80,flying=yes").
    """
    base, colon, settings = str(source).rpartition(":")
    has_options = colon and ("=" in settings or base in names() or base.endswith(".kif"))
    if not has_options or any(mark in settings for mark in "/\\") or Path(source).is_file():
        return str(source), ""
    return base, settings


def title(source: str | Path) -> str:
    """Return a short name for tables: the source without its folder and `.kif`, but with its options."""
    base, settings = split(source)
    return ":".join(filter(None, (_stem(Path(base)), settings)))


def _stem(file: Path) -> str:
    """Return the name of a file without its suffix; a question mark stands for bytes that are not UTF-8."""
    return file.stem.encode(errors="replace").decode()


def _is_text(source: str) -> bool:
    return "(" in source and ("\n" in source or not re.search(r"\.kif(:[^()]*)?$", source))


def _chosen(settings: str, source: str) -> dict[str, str]:
    """Return the values by name of an option text such as `flying=yes,cap=80`."""
    chosen: dict[str, str] = {}
    for part in filter(None, map(str.strip, settings.split(","))):
        name, equals, value = (word.strip() for word in part.partition("="))
        if not equals:
            raise GameloreError(
                f"expected option=value, got {part!r} in {source!r}; write name:option=value,option=value"
            )
        if name.lower() in chosen:
            raise GameloreError(f"expected the option {name} once, got it twice in {source!r}; leave one out")
        chosen[name.lower()] = value
    return chosen
