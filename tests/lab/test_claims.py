"""The file of claims: complete, strict, and consistent with what can be measured."""

from pathlib import Path

import pytest

from gamelore.errors import ExperimentError
from gamelore.lab.papers.banerjee2007.measures import MEASURES
from gamelore.lab.papers.banerjee2007.plan import load_claims, printed_values

ENTRY = """
format = 1
[table1]
place = "Table 1"
quote = "values"
margin = 5.0
half_width = 1.0
max_runs = 200
[margins]
early = { egreedy = 0.5, weak = 0.5, random = 0.5 }
late = { egreedy = 0.1, weak = 0.1, random = 0.3 }
[headroom]
place = "Figures 6 and 7"
quote = "faster"
max_runs = 100
[room]
place = "Figures 6 and 7"
quote = "faster"
max_runs = 100
note = "later"
[turns]
place = "Section 6"
quote = "deeper"
max_runs = 100
[turns-deep]
place = "Section 6"
quote = "deeper"
max_runs = 100
[[claim]]
id = "a.b"
place = "here"
quote = "words"
measure = "level"
of = {}
test = "above"
target = 0
max_runs = 0
"""


def test_the_papers_claims() -> None:
    claims = load_claims().claims
    cells = [name for name, claim in claims.items() if claim.measure == "table1_value" and claim.test == "within"]
    assert len(cells) == 36
    assert {claim.measure for claim in claims.values()} <= MEASURES.keys()
    for figure, game in ((3, "connect3"), (4, "othello4"), (5, "capturego3")):
        assert claims[f"figure{figure}.transfer-over-baseline"].of["game"] == game
        assert f"figure{figure}.lookahead-over-transfer" in claims
    assert {"figure6.transfer-over-lookahead", "figure7.transfer-over-lookahead"} <= claims.keys()
    assert {"figure6.maxmax-over-minimax", "figure7.avgmax-over-minimax", "features.tictactoe"} <= claims.keys()


def test_claims_that_are_sampled_say_how_precisely() -> None:
    for claim in load_claims():
        assert claim.quote, claim.id
        assert claim.place, claim.id
        assert (claim.half_width is not None) or not claim.max_runs, claim.id


def test_table_1_is_that_of_the_paper() -> None:
    claims = load_claims()
    assert claims.claims["table1.f-egreedy"].target == (33.0, 43.0)
    assert claims.claims["table1.f-egreedy"].paper == "38"
    assert claims.table.column("weak")["l"] == 63.36
    for opponent in ("egreedy", "random", "weak"):
        assert claims.table.printed(opponent) == {x: value for x, (value, _) in printed_values(opponent).items()}


def test_letters_can_be_given_in_288_ways() -> None:
    table = load_claims().table
    assignments = list(table.assignments())
    assert len({tuple(one.values()) for one in assignments}) == 24 * 2 * 6
    assert assignments[0] == table.features
    for one in assignments:
        assert sorted(one.values()) == sorted(table.features.values())
        assert all(one[letter] == table.features[letter] for letter in "fhi")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'test = "above"',
            'test = "over"',
            "expected one of above, below, within, equals as the test of a.b, got 'over'",
        ),
        (
            'test = "above"',
            'test = "within"',
            "expected [low, high] for the test within, and one number for other tests, as the target of a.b",
        ),
        ("target = 0", "target = [0, 1]", "as the target of a.b, got [0, 1]"),
        ("target = 0", 'target = "zero"', "a value of another type in a.b.target, got 'zero'"),
        ('place = "here"', "", "expected the key place in a.b, got none; add this key"),
        ('place = "here"', 'place = "here"\ncolour = "red"', "in a.b, got colour; remove it"),
        ("max_runs = 0", "max_runs = 10", "expected a half_width in a.b"),
        ("max_runs = 0", "max_runs = true", "a value of another type in a.b.max_runs, got True"),
        ('"a.b"', '"table1.f-weak"', "expected every claim id once, got table1.f-weak twice"),
        ("format = 1", "format = 2", "expected claims of format 1"),
        ("format = 1", "format = ", "expected a file of claims"),
    ],
)
def test_bad_entries_are_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in ENTRY
    path = tmp_path / "claims.toml"
    path.write_text(new.join(ENTRY.rsplit(old, 1)))
    with pytest.raises(ExperimentError) as caught:
        load_claims(path)
    assert message in str(caught.value)


def test_a_good_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "claims.toml"
    path.write_text(ENTRY)
    claim = load_claims(path).claims["a.b"]
    assert (claim.test, claim.target, claim.directional) == ("above", (0.0,), True)
