"""Dead rules: those whose conditions hold in none of the given states."""

from __future__ import annotations

from gamelore import load
from gamelore.analysis.dead_rules import dead_rules

RULES = """
(role a) (init (n 0)) (succ 0 1) (succ 1 2) (legal a go)
(<= (next (n ?y)) (true (n ?x)) (succ ?x ?y))
(<= terminal (true (n 2)))
(<= (goal a 100) (true (n 2)))
"""


def dead(text: str) -> list[str]:
    """Return the dead rules of RULES and some more in the only match."""
    game = load(RULES + text)
    positions = [game.start()]
    while not positions[-1].is_terminal:
        positions.append(positions[-1].play("go"))
    moves = [{"a": "go"} for _ in positions[:-1]]
    return list(map(str, dead_rules(game.rulesheet, [position.facts for position in positions], [*moves, {}])))


def test_a_rule_is_dead_if_no_state_fulfils_its_conditions() -> None:
    never = "(<= (goal a 50) (true (n 3)))"
    assert dead(f"(<= (goal a 50) (true (n 1))) {never}") == [never]


def test_rules_that_read_next_are_alive_as_their_conditions_say() -> None:
    """The facts by which rules are marked are facts of no rule of the sheet."""
    alive = "(<= (next ends) (next (n 2))) (<= quiet (not (next (n 1))))"
    never = ["(<= odd (next (n 3)))", "(<= (next stays) (next ?f) (true (n 2)))"]
    assert dead(f"{alive} {' '.join(never)}") == never
