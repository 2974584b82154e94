# %% [markdown]
# # Check, solve and balance a game of your own
#
# Two players pass a token along a row of eight cells, one or two cells at a time. Whoever moves it to the last cell
# wins. A game is a text in GDL (game description language); this one has a mistake.

# %%
import gamelore

RULES = """
(role left) (role right)
(init (token 1)) (init (control left))
(<= (base (token ?c)) (cell ?c))  (<= (base (control ?r)) (role ?r))
(cell 1) (cell 2) (cell 3) (cell 4) (cell 5) (cell 6) (cell 7) (cell 8)
(next-cell 1 2) (next-cell 2 3) (next-cell 3 4) (next-cell 4 5) (next-cell 5 6) (next-cell 6 7) (next-cell 7 8)
(<= (step 1 ?c ?d) (next-cell ?c ?d))
(<= (step 2 ?c ?e) (next-cell ?c ?d) (next-cell ?d ?e))

(<= (input ?r (move ?n)) (role ?r) (step ?n ?c ?d))
(<= (input ?r noop) (role ?r))
(<= (legal ?r (move ?n)) (true (control ?r)) (true (token ?c)) (step ?n ?c ?d))
(<= (legal ?r noop) (role ?r) (not (true (control ?r))))

(<= (next (token ?d)) (does ?r (move ?n)) (true (token ?c)) (step ?n ?c ?d))
(<= (next (control right)) (true (control left)))
(<= (next (control left)) (true (control right)))

(<= terminal (true (token 8)))
(<= (goal ?r 0) (true (control ?r)))
(<= (goal ?r 100) (not (true (control ?r))))
"""
checked = gamelore.check(RULES)
for finding in checked.errors:
    print(f"line {finding.line}: {finding.message}; {finding.remedy}")

# %% [markdown]
# The last rule is not safe: `?r` occurs only under `not`. With a condition that binds it, the rules are in order,
# also in matches that `play=True` plays at random: in these no role is without a move, and goals are defined at the
# end.

# %%
RULES = RULES.replace("(<= (goal ?r 100) (not", "(<= (goal ?r 100) (role ?r) (not")
print(gamelore.check(RULES, play=True))

# %% [markdown]
# A game this small is solved: `left`, who begins, wins with the best moves.

# %%
game = gamelore.load(RULES)
solved = gamelore.solve(game)
print(solved)
for row in solved.rows:
    print(row)

# %% [markdown]
# Is it a fair game between players who do not see that far? The report lets random players and searching players
# meet, and puts perfect play beside them, with 95 % intervals.

# %%
told = gamelore.report(RULES, matches=100, simulations=50)
print(told)

# %% [markdown]
# Whoever is to move three cells before the last one loses, and so does whoever is to move six cells before it. With
# seven cells the token starts there, so `right` wins: a cell decides the game, and no number of cells makes it a
# draw. That is worth knowing before the game is printed.

# %%
shorter = RULES.replace(" (cell 8)", "").replace(" (next-cell 7 8)", "").replace("(token 8)", "(token 7)")
print(gamelore.solve(gamelore.load(shorter)).values)
