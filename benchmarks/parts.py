"""Find the parts of the games in a folder of rulesheets: `python benchmarks/parts.py FOLDER`.

A row for each compiled sheet of several parts, or with irrelevant facts; see analysis/parts.py. `tied` is the number of
groups of parts if parts that the same condition of a highest goal reads are put together, `seconds` the time of
processor. A last line counts the sheets.

The sheets that `src/gamelore/lab/families.toml` calls sealed are left out.
"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

import gamelore
from gamelore.analysis.parts import Parts, conjuncts, parts
from gamelore.errors import GameloreError
from gamelore.gdl.syntax import parse
from gamelore.lab.duel import sealed_games

COLUMNS = ("sheet", "roles", "kind", "parts", "facts", "tied", "clock facts", "irrelevant", "seconds")


def tied_by_goals(whole: Parts) -> int:
    """Return the number of groups of parts that no condition of a highest goal ties."""
    circuit = whole.game.circuit
    assert circuit is not None
    first = np.cumsum([0, *map(len, circuit.goals[:-1])])
    highest = [int(start + np.argmax(values)) for start, values in zip(first, circuit.goals, strict=True) if values]
    return len(whole.joined(part for goal in highest for part in conjuncts(circuit, circuit.outputs["goal"][goal])))


def row(sheet: Path) -> tuple[str, ...] | None:
    """Return the row of a sheet; None if it has one part and no irrelevant facts."""
    game = gamelore.load(sheet)
    begin = time.process_time()
    whole = parts(game)
    seconds = time.process_time() - begin
    if len(whole.parts) < 2 and not whole.num_irrelevant:
        return None
    sizes = Counter(len(part.facts) for part in whole.parts)
    facts = ", ".join(f"{count} x {size}" if count > 1 else f"{size}" for size, count in sorted(sizes.items())[::-1])
    numbers = len(whole.parts), facts, tied_by_goals(whole), len(whole.clock), whole.num_irrelevant, f"{seconds:.2f}"
    return (sheet.stem, str(game.num_roles), whole.kind, *map(str, numbers))


def main(folder: Annotated[Path, typer.Argument(help="folder of rulesheets, NAME.kif")]) -> None:
    """Print the parts of all games in a folder."""
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    analysed = shown = 0
    for sheet in sorted(folder.glob("*.kif")):
        try:
            if parse(sheet.read_text(encoding="utf-8", errors="replace"), sheet).rules_hash in sealed_games():
                continue
            cells = row(sheet)
        except GameloreError:
            continue
        analysed += 1
        if cells:
            shown += 1
            print(f"| {' | '.join(cells)} |", flush=True)
    print(f"\n{shown} of {analysed} open sheets")


if __name__ == "__main__":
    typer.run(main)
