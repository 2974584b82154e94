"""The same game in other words is found, proved, and plays the same; what differs in anything else is refused."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import scrambling
from gamelore import rulesheets
from gamelore.analysis import isomorphism
from gamelore.analysis.isomorphism import Renaming, find_renaming, scramble, shape_hash
from gamelore.errors import GDLSyntaxError
from gamelore.game.game import Position, make
from gamelore.gdl import syntax

TIC_TAC_TOE = rulesheets.path("tictactoe").read_text()
ROLES = "(role a) (role b)"
SHARED_SAMPLE = (
    *("2pffa", "aipsrovers01", "battle", "blobwars", "checkers", "chess", "chineseCheckers3", "gt_tinfoil"),
    *("kalaha_2009", "nim4", "point_grab", "queens31lg", "ruleDepthExponential", "stateSpaceLarge", "sudoku"),
    *("survival", "tictactoe_3d_2player", "troublemaker01", "twisty-passages", "untwistycomplex2", "wargame01"),
)


def key(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def shipped(name: str) -> syntax.Rulesheet:
    return syntax.parse(rulesheets.path(name).read_text())


def facts(lines: Iterable[str]) -> syntax.Rulesheet:
    return syntax.parse(f"{ROLES} {' '.join(lines)}")


def shuffled(sheet: syntax.Rulesheet, seed: int = 0) -> syntax.Rulesheet:
    """Rules, conditions, branches and the sides of `distinct` in another order; the roles stay in theirs."""
    rules = syntax.parse(scrambling.shuffled(str(sheet), Random(seed))).rules
    roles = iter([rule for rule in sheet.rules if rule.head.name == "role"])
    texts = [str(next(roles) if rule.head.name == "role" else rule) for rule in rules]
    return syntax.parse(
        "\n".join(re.sub(r"\(distinct ([^\s()]+) ([^\s()]+)\)", r"(distinct \2 \1)", text) for text in texts)
    )


def assert_plays_the_same(
    ours: syntax.Rulesheet, theirs: syntax.Rulesheet, renaming: Renaming, plies: int = 12
) -> None:
    """Facts, moves, goals and the end are the same but for the names, both ways, along random matches."""
    games_of = [make(sheet, "test", "reasoner") for sheet in (ours, theirs)]
    random = Random(1)
    for _ in range(2):
        one, other = (game.start() for game in games_of)
        for _ in range(plies):
            assert_same(one, other, renaming)
            if one.is_terminal or not all(one.legal.values()):
                break
            joint = [random.choice(moves) for moves in one.legal.values()]
            one, other = one.play(joint), other.play([renaming.theirs(move) for move in joint])


def assert_same(one: Position, other: Position, renaming: Renaming) -> None:
    assert list(map(renaming.theirs, one.game.roles)) == list(other.game.roles)
    assert set(map(renaming.theirs, one.facts)) == other.facts
    assert set(map(renaming.ours, other.facts)) == one.facts
    assert one.is_terminal == other.is_terminal
    assert list(one.goals.values()) == list(other.goals.values())
    for own, moves in zip(one.legal.values(), other.legal.values(), strict=True):
        assert set(map(renaming.theirs, own)) == set(moves)
        assert set(map(renaming.ours, moves)) == set(own)


def assert_found(ours: syntax.Rulesheet, theirs: syntax.Rulesheet) -> Renaming:
    assert shape_hash(ours) == shape_hash(theirs)
    renaming = find_renaming(ours, theirs, seconds=30.0)
    assert renaming is not None
    return renaming


@pytest.mark.parametrize("name", rulesheets.names())
def test_other_names(name):
    sheet = shipped(name)
    other, known = scramble(sheet, key())
    renaming = assert_found(sheet, other)
    assert renaming == known
    assert_plays_the_same(sheet, other, renaming)


@pytest.mark.parametrize("name", rulesheets.names())
def test_another_order(name):
    sheet = shipped(name)
    other = shuffled(scramble(sheet, key())[0])
    assert_plays_the_same(sheet, other, assert_found(sheet, other))


@pytest.mark.parametrize("name", SHARED_SAMPLE)
def test_public_sheets(name, shared: Path):
    sheet = syntax.parse((shared / "games" / f"{name}.kif").read_text(errors="replace"))
    other, known = scramble(sheet, key())
    assert assert_found(sheet, other) == known
    assert_found(sheet, shuffled(other))


def test_a_public_game_plays_the_same_in_other_words_and_order(shared: Path):
    sheet = syntax.parse((shared / "games" / "aipsrovers01.kif").read_text(errors="replace"))
    other = shuffled(scramble(sheet, key())[0])
    assert_plays_the_same(sheet, other, assert_found(sheet, other), plies=4)


def test_one_public_game_is_another_in_other_words(shared: Path):
    one, other = (syntax.parse((shared / "games" / f"{n}.kif").read_text()) for n in ("bunk_t", "doubletoetictac"))
    assert_plays_the_same(one, other, assert_found(one, other))


def test_of_all_public_sheets_no_others_are_the_same(shared: Path):
    paths = sorted((shared / "games").glob("*.kif"))
    shapes: dict[str, list[str]] = {}
    for path in paths:
        shapes.setdefault(shape_hash(syntax.parse(path.read_text(errors="replace"))), []).append(path.stem)
    assert [names for names in shapes.values() if len(names) > 1] == [["bunk_t", "doubletoetictac"]]


CHANGES = {
    "another constant": ("(init (cell ?x ?y b))", "(init (cell ?x ?y o))"),
    "two names merged": ("(piece oplayer o)", "(piece oplayer x)"),
    "two relations merged": ("(index ", "(role "),
    "a name split": ("(init (control xplayer))", "(init (controls xplayer))"),
    "a condition removed": (" (not (marked ?x ?y))", ""),
    "a condition twice": ("(<= (line ?p)", "(<= (line ?p) (piece ?p ?mark)"),
    "a not removed": ("(not open)", "open"),
    "roles swapped": ("(role xplayer)\n(role oplayer)", "(role oplayer)\n(role xplayer)"),
    "another number": ("(goal ?p 50)", "(goal ?p 60)"),
    "numbers swapped": ("(index 2)\n(index 3)", "(index 2)\n(index 4)"),
    "another variable": ("(<= (line ?p)\n    (piece ?p ?mark)", "(<= (line ?p)\n    (piece ?q ?mark)"),
    "arguments swapped": ("(opponent ?p ?q) (line ?q)", "(opponent ?q ?p) (line ?p)"),
    "another keyword": ("(<= (base (control ?p))", "(<= (init (control ?p))"),
    "a rule more": ("(index 1)", "(index 1) (index 1)"),
    "an argument more": ("(does ?p (mark ?x ?y))", "(does ?p (mark ?x ?y b))"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_small_difference_is_another_game(change):
    old, new = CHANGES[change]
    assert old in TIC_TAC_TOE
    sheet, changed = syntax.parse(TIC_TAC_TOE), syntax.parse(TIC_TAC_TOE.replace(old, new))
    for other in (changed, scramble(changed, key())[0], shuffled(changed)):
        assert shape_hash(sheet) != shape_hash(other)
        assert find_renaming(sheet, other) is None
        assert find_renaming(other, sheet) is None


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("(<= (p ?x) (q ?x ?y) (q ?y ?x) (distinct ?x ?y))", "(<= (p ?b) (distinct ?a ?b) (q ?a ?b) (q ?b ?a))", True),
        ("(<= (p ?x) (q ?x ?y) (distinct ?x ?x))", "(<= (p ?x) (q ?x ?y) (distinct ?x ?y))", False),
        ("(<= p (or (and q r) s))", "(<= p (or s (and r q)))", True),
        ("(<= p (or (and q r) s))", "(<= p (and (or q r) s))", False),
        ("(<= p q r)", "(<= p (and q r))", False),
        ("(<= p (not q) r)", "(<= r p (not q))", True),
        ("(p a b c d e f g h)", "(p a b c d e f g h)", True),
        ("(p a a a a a a a b) (p 1 1 1 1 1 1 1 1)", "(p a a a a a a b a) (p 1 1 1 1 1 1 1 1)", False),
        ("(p (f a b) a)", "(p (f a b) b)", False),
        ("(p (f a)) (p f)", "(p (f a)) (p a)", False),
        ("(p p)", "(p q)", True),  # a relation and a term of one name have nothing to do with each other
        ("(p a) (p a)", "(p a) (p b)", False),
        ("(<= (p a))", "(p b)", True),
        ("(p -1)", "(p one)", True),  # not every scrambler keeps it, and it means nothing
        ("(p 1)", "(p one)", False),
        ("(p 1)", "(p 01)", False),
        ("(true a)", "(does a b)", False),
        ("(<= (next ?x) (true ?x))", "(<= (next ?x) (p ?x))", False),
    ],
)
def test_what_is_the_same(one, other, same):
    one, other = syntax.parse(one), syntax.parse(other)
    assert (shape_hash(one) == shape_hash(other)) == same
    assert (find_renaming(one, other) is not None) == same


# Found or not, against all bijections of names and variables tried one by one.

TERMS = ("a", "b", "f", "1", "?x", "?y", "(f a)", "(f ?x)", "(f ?y)", "(g b)")
WORDS = ("a", "b", "1", "?x", "?y")
ATOMS = ("p", "(q {})", "(q {})", "(r {} {})", "(r {} {})", "(true {})")
CONDITIONS = (*ATOMS, *ATOMS, "(not (q {}))", "(distinct {} {})", "(or (q {}) (r {} {}))")


@st.composite
def rules(draw: st.DrawFn) -> str:
    def filled(form: str) -> str:
        return re.sub(r"\{\}", lambda _: draw(st.sampled_from(TERMS)), form)

    head = filled(draw(st.sampled_from(ATOMS)))
    body = draw(st.lists(st.sampled_from(CONDITIONS), max_size=3))
    return f"(<= {head} {' '.join(map(filled, body))})"


@st.composite
def two_sheets(draw: st.DrawFn) -> tuple[syntax.Rulesheet, syntax.Rulesheet]:
    """A sheet, and it in other words, often with a word or two changed."""
    sheet = syntax.parse(" ".join(draw(st.lists(rules(), min_size=1, max_size=4))))
    other = shuffled(sheet, draw(st.integers(0, 100)))
    words = re.findall(r"[()]|[^\s()]+", str(other))
    arguments = [place for place, word in enumerate(words) if word in WORDS and words[place - 1] != "("]
    for place in draw(st.lists(st.sampled_from(arguments), max_size=2)) if arguments else ():
        words[place] = draw(st.sampled_from(WORDS))
    other = syntax.parse(" ".join(words))
    return sheet, scramble(other, key(draw(st.integers(0, 100))))[0]


def names_of(sheet: syntax.Rulesheet) -> tuple[list[str], list[str]]:
    terms = {term.name for rule in sheet.rules for term in syntax.named_terms(rule)}
    atoms = {s.name for rule in sheet.rules for s in syntax.sentences(rule) if isinstance(s, syntax.Atom)}
    return sorted(terms - {"1"}), sorted(atoms - {"true"})


def form(sheet: syntax.Rulesheet, terms: dict[str, str], atoms: dict[str, str]) -> list[object]:
    """The rules with other names, sorted; each the first of all that name its variables otherwise."""
    return sorted((min(_forms(rule, terms, atoms), key=repr) for rule in sheet.rules), key=repr)


def _forms(rule: syntax.Rule, terms: dict[str, str], atoms: dict[str, str]) -> Iterable[object]:
    variables = sorted({variable.name for variable in syntax.term_variables(*syntax.sentences(rule))})
    for numbers in itertools.permutations(range(len(variables))):
        names = dict(zip(variables, map(str, numbers), strict=True))

        def term(one: syntax.Term, names: dict[str, str] = names) -> object:
            if isinstance(one, syntax.Variable):
                return ["?", names[one.name]]
            arguments = one.args if isinstance(one, syntax.Function) else ()
            return [terms.get(one.name, one.name), *map(term, arguments)]

        def condition(one: syntax.Condition) -> object:
            match one:
                case syntax.Atom():
                    return [atoms.get(one.name, one.name), *map(term, one.args)]
                case syntax.Distinct(left, right):
                    return ["distinct", *sorted(map(term, (left, right)), key=repr)]
                case syntax.Not(inner):
                    return ["not", condition(inner)]
                case syntax.Or(parts) | syntax.And(parts):
                    return [type(one).__name__, *sorted(map(condition, parts), key=repr)]

        yield [condition(rule.head), sorted(map(condition, rule.body), key=repr)]


def bijections(ours: list[str], theirs: list[str]) -> Iterable[dict[str, str]]:
    if len(ours) == len(theirs):
        for images in itertools.permutations(theirs):
            yield dict(zip(ours, images, strict=True))


def is_the_same(ours: syntax.Rulesheet, theirs: syntax.Rulesheet) -> bool:
    (terms, atoms), (their_terms, their_atoms) = names_of(ours), names_of(theirs)
    wanted = form(theirs, {}, {})
    pairs = itertools.product(bijections(terms, their_terms), bijections(atoms, their_atoms))
    return any(form(ours, of_terms, of_atoms) == wanted for of_terms, of_atoms in pairs)


@given(two_sheets())
@settings(deadline=None, max_examples=80)
def test_as_by_trying_all(pair):
    ours, theirs = pair
    renaming = find_renaming(ours, theirs, seconds=30.0)
    assert (renaming is not None) == is_the_same(ours, theirs)
    if renaming is not None:
        assert shape_hash(ours) == shape_hash(theirs)
        atoms = bijections(names_of(ours)[1], names_of(theirs)[1])
        assert any(form(ours, dict(renaming.their_names), of_atoms) == form(theirs, {}, {}) for of_atoms in atoms)


# Hard ones.


def cycle(names: list[str]) -> list[str]:
    return [f"(edge {one} {other})" for one, other in zip(names, [*names[1:], names[0]], strict=True)]


def numbered(number: int) -> list[str]:
    return [f"o{i}" for i in range(number)]


HARD = {
    "nothing but twins": [f"(object {o})" for o in numbered(200)],
    "pairs of facts": [f"({relation} {o})" for o in numbered(200) for relation in ("object", "thing")],
    "a cycle": cycle(numbered(60)),
    "many cycles": [edge for c in range(30) for edge in cycle([f"{o}_{c}" for o in numbered(3)])],
    "a hypercube": [f"(edge o{i} o{i ^ 1 << bit})" for i in range(64) for bit in range(6)],
    "a Paley graph": [f"(edge o{i} o{(i + q * q) % 29})" for i in range(29) for q in range(1, 15)],
    "equal rules": ["(<= (f ?x ?y) (g ?x ?y) (g ?y ?x))"] * 50,
    "equal variables": [f"(<= p {' '.join(f'(q ?v{i}) (r ?w{i}) (s ?v{i} ?w{i})' for i in range(20))})"],
    "cycles of variables": [f"(<= (p {c}) {' '.join(cycle(['?a', '?b', '?c']) + cycle(['?d', '?e']))})" for c in "ab"],
}


@pytest.mark.parametrize("name", HARD)
def test_symmetric_sheets(name):
    sheet = facts(HARD[name])
    assert_found(sheet, shuffled(scramble(sheet, key())[0]))


@pytest.mark.parametrize(("form", "letters"), [("{}", "uvwxyz"), ("(<= p {})", ["?u", "?v", "?w", "?x", "?y", "?z"])])
def test_what_refinement_cannot_tell_apart_is_refused(form, letters):
    """Every name is in one edge and in another; only the search sees that a way round takes six steps."""
    hexagon = facts([form.format(" ".join(cycle(list(letters))))])
    triangles = facts([form.format(" ".join(cycle(list(letters[:3])) + cycle(list(letters[3:]))))])
    assert shape_hash(hexagon) == shape_hash(triangles)
    assert find_renaming(hexagon, triangles) is None


def test_time_is_up_but_the_obvious_is_found():
    sheet = facts(cycle(numbered(2000)))
    other, known = scramble(sheet, key())
    assert find_renaming(sheet, other, seconds=0.0) == known
    assert find_renaming(sheet, shuffled(other), seconds=0.05) is None


def test_what_is_nested_as_deep_as_the_parser_takes_it():
    depth = syntax.MAX_NESTING - 2
    bodies = ("(not " * depth + "p" + ")" * depth, "(true " + "(f " * (depth - 1) + "a" + ")" * depth)
    for body in bodies:
        sheet = facts([f"(<= q {body} {body})"])
        assert_found(sheet, shuffled(scramble(sheet, key())[0]))


def test_of_several_the_first_in_both():
    one, other = facts(["(p a1) (p a2) (p a3) (q a3)"]), facts(["(q c) (p b2) (p b1) (p c)"])
    renaming = find_renaming(one, other)
    assert renaming is not None
    assert [renaming.theirs(name) for name in ("a1", "a2", "a3")] == ["b2", "b1", "c"]


def test_a_hash_of_few_rounds_is_still_one(monkeypatch):
    sheet = facts(f"(edge o{i} o{i + 1})" for i in range(300))
    whole = shape_hash(sheet)
    monkeypatch.setattr(isomorphism, "SIGHTS", 0)
    assert shape_hash(sheet) != whole
    assert shape_hash(sheet) == shape_hash(shuffled(scramble(sheet, key())[0]))


def test_a_hash_is_the_same_everywhere():
    assert shape_hash(syntax.parse("")) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert shape_hash(syntax.parse("(role a) (<= (p ?x) (q ?x 1))"))[:16] == "f8dd437c25203c19"


def test_roles_that_a_rule_derives_are_recognised_in_their_order_only():
    """Their order, which is that of moves on the wire, is that of the text."""
    sheet = syntax.parse("(<= (role ?x) (player ?x)) (player a) (player b) (piece b)")
    other, known = scramble(sheet, key())
    assert find_renaming(sheet, other) == known
    turned = syntax.parse("(<= (role ?x) (player ?x)) (player b) (player a) (piece b)")
    assert find_renaming(sheet, turned) is None


@pytest.mark.parametrize("roles", ["(role (player red)) (role (player blue))", "(role (player red)) (role blue)"])
def test_compound_roles_are_recognised_in_the_order_of_their_facts(roles):
    rules = "(init s) (<= (legal ?r m) (role ?r)) (<= (legal (player red) n) (true s)) (<= (next t) (true s))"
    sheet = syntax.parse(f"{roles} {rules} (<= terminal (true t)) (<= (goal ?r 50) (role ?r))")
    other, _ = scramble(shuffled(sheet), key())
    renaming = find_renaming(sheet, other)
    assert renaming is not None
    assert shape_hash(sheet) == shape_hash(other)
    assert_plays_the_same(sheet, other, renaming)
    first, second = (rule for rule in other.rules if rule.head.name == "role")
    turned = str(other).replace(str(first), "(role)").replace(str(second), str(first)).replace("(role)", str(second))
    assert find_renaming(sheet, syntax.parse(turned)) is None


# Translation.


def test_terms_are_translated_in_their_spelling():
    ours = syntax.parse("(role White) (init (cell 1 Blank)) (init (cell 2 (f White)))")
    theirs = syntax.parse("(ROLE X) (INIT (ZELLE 1 leer)) (INIT (Zelle 2 (G X)))")
    renaming = find_renaming(ours, theirs)
    assert renaming is not None
    assert renaming.theirs("(cell 2 (f White))") == "(ZELLE 2 (G X))"
    assert renaming.theirs("(CELL 7 blank)") == "(ZELLE 7 leer)"
    assert renaming.ours(" ( zelle\n2 (g  x) ) ") == "(cell 2 (f White))"
    assert renaming.ours("(LEER)") == "Blank"
    assert renaming.ours("(unknown LEER ?v)") == "(unknown Blank ?v)"
    assert not renaming.is_identity


def test_what_is_no_term_is_not_translated():
    renaming = Renaming.identity(syntax.parse(TIC_TAC_TOE))
    for text in ("", "(mark 1", "()", "((mark) 1)", "noop noop"):
        with pytest.raises(GDLSyntaxError):
            renaming.ours(text)


def test_identity():
    sheet = syntax.parse("(role White) (init (cell 1 Blank))")
    assert Renaming.identity(sheet).is_identity
    assert find_renaming(sheet, sheet) == Renaming.identity(sheet)
    upper = find_renaming(sheet, syntax.parse(str(sheet).upper()))
    assert upper is not None
    assert not upper.is_identity
    assert (upper.theirs("White"), upper.ours("WHITE")) == ("WHITE", "White")


@pytest.mark.parametrize("name", rulesheets.names())
def test_every_name_is_another_but_keywords_and_numbers(name):
    sheet = shipped(name)
    other, _ = scramble(sheet, key())
    old, new = (re.findall(r"[^\s()]+", str(each).lower()) for each in (sheet, other))
    for before, after in set(zip(old, new, strict=True)):
        stays = before in syntax.FORM or before.isdecimal()
        assert (before == after) == stays
        assert before.startswith("?") == after.startswith("?")
    assert len(set(zip(old, new, strict=True))) == len(set(old)) == len(set(new))


def test_scrambling_depends_on_its_key_alone():
    sheet = syntax.parse(TIC_TAC_TOE)
    assert str(scramble(sheet, key(1))[0]) == str(scramble(sheet, key(1))[0])
    assert str(scramble(sheet, key(1))[0]) != str(scramble(sheet, key(2))[0])


def test_a_number_with_a_sign_stays():
    other, renaming = scramble(syntax.parse("(p -1 +2 3 1-2 Or)"), key())
    assert re.fullmatch(r"\([a-z]{6} -1 \+2 3 [a-z]{6} or\)", str(other))
    assert renaming.theirs("-1") == "-1"
