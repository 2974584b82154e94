"""The words in which the pages describe a learning run: its plan, how far it is, and what its results mean."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import counted
from .learning_curves import Row, WatchedRun

LEARNERS = {
    "baseline": "begins without any knowledge, and learns only from its own matches",
    "transfer": "first learns other games, and begins with what it learned there",
    "lookahead": "begins with values that it finds by looking two moves ahead",
    "oracle": "begins with the exact value of every position, in small games only; it shows what can be reached",
}
OPPONENTS = {
    "egreedy": "careful: wins if it can, gives no win away",
    "random": "random: makes any legal move",
    "weak": "weak: loses if it can",
}
FILLERS = {
    "hashed": "the same one in the same position",
    "random": "a new choice each time",
    "first": "the first one in the order of the rules",
}
INITIALISATIONS = {
    "eager": "when it is first compared with others",
    "siblings": "after a match in which it could have been reached",
    "lazy": "after a match in which it was reached",
}
HEURISTICS = {"minimax": "they play against it", "maxmax": "they play for it", "avgmax": "they play at random"}
FEW_RUNS = 5  # from which on there are intervals
SPEEDS: tuple[float | None, ...] = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, None)
STATES = {
    "idle": "not begun",
    "running": "goes on",
    "paused": "paused",
    "stopped": "interrupted",
    "failed": "failed",
    "done": "done",
}


def upper_first(text: str) -> str:
    """Return a text with a capital letter at its beginning."""
    return text[:1].upper() + text[1:]


def game_name(game: Row) -> str:
    """Return the name of a game of a plan."""
    return str(game.get("name", "game") if "(" in game["game"] else game["game"])


def matches_text(number: int) -> str:
    """Return a number of matches in words."""
    return f"{number:,} {'match' if number == 1 else 'matches'}"


def learners_text(plan: Row) -> str:
    """Return the learners of a plan in a few words."""
    sources = " and ".join(game_name(source) for source in plan["sources"])
    return ", ".join(f"{kind} (after {sources})" if kind == "transfer" else kind for kind in plan["learners"])


def plan_facts(plan: Row) -> list[tuple[str, str]]:
    """Return what is compared, as names and values."""
    kind, _, options = plan["opponent"].partition(":")
    role = plan["target"].get("role")
    facts = [("learners", learners_text(plan))]
    facts += [("they play", str(role))] if role else []
    facts += [("opponent", f"{OPPONENTS.get(kind, kind)} ({kind})"), ("", opponent_text(options))]
    facts += [("runs", f"{counted(plan['runs'], 'run')} of {matches_text(plan['matches'])}")]
    for source in plan["sources"]:
        share = f"{100 * plan['source_epsilon']:g} % random moves"
        facts += [("learned first", f"{game_name(source)}: {matches_text(plan['source_matches'])} with {share}")]
    facts += [("first values", INITIALISATIONS.get(plan["initialisation"], ""))]
    return [(name, value) for name, value in [*facts, ("seed", str(plan["seed"]))] if value]


def opponent_text(options: str) -> str:
    """Return options of an opponent in words."""
    given = dict(option.split("=") for option in options.split(",") if "=" in option)
    texts = [f"{100 * float(given['epsilon']):g} % random moves"] if "epsilon" in given else []
    texts += [f"among equally good moves {FILLERS[given['filler']]}"] if given.get("filler") in FILLERS else []
    return "; ".join(texts)


def stage_text(run: WatchedRun) -> str:
    """Return what a run does now, in words."""
    progress, stage = run.progress, run.progress["stage"]
    state = progress["state"]
    if state == "done":
        return "Done: all matches are played"
    if state == "failed" or run.error:
        return "The run cannot go on"
    if not run.is_on:
        return "Interrupted; finished curves are kept, the others are played again"
    if run.is_paused:
        return f"Paused while {stage}" if stage else "Paused"
    return f"{upper_first(stage)} .." if stage else "Starting a process .."


def left_text(progress: Row) -> str:
    """Return how long a run takes, in words; empty if this is unknown."""
    left, rate = progress["seconds_left"], progress["matches_per_second"]
    if progress["state"] != "running" or left is None or not rate:
        return ""
    return f"{seconds_text(left)} left, {rate:,.0f} matches a second at present"


def seconds_text(seconds: float) -> str:
    """Return a time in words, rounded."""
    if seconds < 5:
        return "a few seconds"
    if seconds < 90:
        return f"about {5 * round(seconds / 5)} seconds"
    if seconds < 5400:
        return f"about {counted(round(seconds / 60), 'minute')}"
    return f"about {seconds / 3600:.1f} hours"


def done_share(curves: Sequence[Row]) -> float:
    """Return the share of all matches that are played."""
    matches = sum(curve["matches"] * curve["runs"] for curve in curves)
    return sum(curve["done"] * curve["runs"] for curve in curves) / matches if matches else 0.0


def speed_index(speed: float | None) -> int:
    """Return the position of the slider for a speed: that of the next one that is not lower."""
    if speed is None:
        return len(SPEEDS) - 1
    return next(i for i, level in enumerate(SPEEDS) if level is None or level >= speed)


def speed_text(speed: float | None) -> str:
    """Return a speed in words."""
    return "full speed" if speed is None else f"{matches_text(int(speed))} a second"


def windows_text(matches: int) -> tuple[str, str]:
    """Return both parts of the matches of a run, as in the report: the first tenth, and the others."""
    cut = max(1, matches // 10)
    return f"matches 1 to {cut}", f"matches {min(cut + 1, matches)} to {matches}"


def span_text(row: Row | None, sign: str = "") -> str:
    """Return a mean with its interval in brackets, as text."""
    if row is None:
        return ""
    mean = f"{row['mean']:{sign}.1f}"
    return mean if row["low"] is None else f"{mean} [{row['low']:{sign}.1f}, {row['high']:{sign}.1f}]"


def gain_text(row: Row | None) -> str:
    """Return a gain with its interval, and what the interval says in a word."""
    if row is None:
        return ""
    if row["low"] is None:
        return f"{span_text(row, '+')}: too few runs"
    says = "contains 0" if contains_0(row) else "more" if row["mean"] > 0 else "fewer"
    return f"{span_text(row, '+')}: {says}"


def contains_0(row: Row) -> bool:
    """Return whether the interval of a gain contains 0."""
    return bool(row["low"] <= 0 <= row["high"])


def gain_rows(gains: Sequence[Row]) -> list[dict[str, str]]:
    """Return a row of the table of results for each learner of each source; see `TransferExperiment.rows`."""
    by_place = {(row["source"], row["quantity"], row["learner"]): row for row in gains}
    is_several = len({row["source"] for row in gains}) > 1
    return [
        {
            "id": f"{source} {learner}",
            "learner": _learner_text(learner, source, is_several),
            "level": span_text(level),
            "early": gain_text(by_place.get((source, "early gain", learner))),
            "late": gain_text(by_place.get((source, "late gain", learner))),
        }
        for (source, quantity, learner), level in by_place.items()
        if quantity == "level"
    ]


def _learner_text(learner: str, source: str, is_several: bool) -> str:
    if learner == "transfer":
        return f"transfer (after {source})"
    return f"{learner} (beside transfer after {source})" if is_several else learner


def verdicts(gains: Sequence[Row], runs: int) -> list[str]:
    """Return what the gains over the baseline mean, in words; over all other learners if there is no baseline."""
    differences = [row for row in gains if row["quantity"] != "level"]
    shown = [row for row in differences if row["learner"] == "baseline"] or differences
    several = len({row["source"] for row in gains}) > 1
    return [verdict(row, runs, f"transfer after {row['source']}" if several else "transfer") for row in shown]


def verdict(row: Row, runs: int, name: str = "transfer") -> str:
    """Return what a gain means, in words."""
    when = "In the first tenth of the matches" if row["quantity"] == "early gain" else "After that"
    more = "more" if row["mean"] >= 0 else "fewer"
    difference = f"{name} got {abs(row['mean']):.1f} points {more} per match than {row['learner']}"
    if row["low"] is None:
        return f"{when}, {difference}; {counted(runs, 'run')} are too few to say whether this is chance."
    interval = f"the interval from {row['low']:+.1f} to {row['high']:+.1f}"
    if contains_0(row):
        return (
            f"{when}, {difference}, but {interval} contains 0: these runs do not show which of the two is better. "
            "More runs make the interval narrower."
        )
    return f"{when}, {difference}; {interval} does not contain 0, so this is hardly chance."
