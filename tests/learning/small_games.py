"""Games so small that what a learner makes of them can be worked out by hand."""

from drawn_trees import WALKING

# White moves first. Leaves carry white's goal; black's is 100 minus that.
#     root -a-> A (black): -> loss, -> C (white): -> win, -> draw        feature of A: L,{D,W}
#     root -b-> B (black): -> D (white): -> win                          feature of B: {W}
#     root -c-> E (black): -> F (white): -> win                          feature of E: {W}
#     root -d-> draw2                                                    terminal
TREE = (
    """
(role white) (role black)
(init (at root)) (init (control white))
(edge root a nodeA) (edge root b nodeB) (edge root c nodeE) (edge root d draw2)
(edge nodeA l loss) (edge nodeA r nodeC)
(edge nodeC l win) (edge nodeC r draw)
(edge nodeB l nodeD) (edge nodeD l win2)
(edge nodeE l nodeF) (edge nodeF l win3)
(leaf loss 0 100) (leaf draw 50 50) (leaf draw2 50 50)
(leaf win 100 0) (leaf win2 100 0) (leaf win3 100 0)
"""
    + WALKING
)

# Both choose at once, heads or tails; red wins where they are equal.
PENNIES = """
(role red) (role blue)
(init open)
(legal red heads) (legal red tails) (legal blue heads) (legal blue tails)
(<= (next same) (does red ?x) (does blue ?x))
(<= (next unlike) (does red ?x) (does blue ?y) (distinct ?x ?y))
(<= terminal (true same)) (<= terminal (true unlike))
(<= (goal red 100) (true same)) (<= (goal red 0) (true unlike))
(<= (goal blue 0) (true same)) (<= (goal blue 100) (true unlike))
"""

# The same twice, red wins where they are equal both times; after the first time both see what was shown.
PENNIES_TWICE = """
(role red) (role blue)
(init (at first))
(side heads) (side tails)
(<= (legal ?p ?s) (role ?p) (side ?s))
(<= (next (at second)) (true (at first)))
(<= (next (at end)) (true (at second)))
(<= (next (shown ?p ?s)) (true (at first)) (does ?p ?s))
(<= (next both) (true (shown red ?s)) (true (shown blue ?s)) (does red ?t) (does blue ?t))
(<= terminal (true (at end)))
(<= (goal red 100) (true both)) (<= (goal red 0) (not (true both)))
(<= (goal blue 0) (true both)) (<= (goal blue 100) (not (true both)))
"""

# From the middle to the left or to the right, then from one side to the other, for ever.
SIDES = """
(role walker)
(init (at middle))
(side left) (side right)
(<= (legal walker (go ?s)) (side ?s) (not (true (at ?s))))
(<= (next (at ?s)) (does walker (go ?s)))
(<= terminal (true (at nowhere)))
(goal walker 100)
"""

# Red can only pass; blue waits as long as it likes, then ends the match: the same afterstate of red again and again.
WAITING = """
(role red) (role blue)
(init (control red))
(<= (legal ?p pass) (role ?p) (true (control ?p)))
(<= (legal blue end) (true (control blue)))
(<= (legal ?p noop) (role ?p) (true (control ?q)) (distinct ?p ?q))
(<= (next (control red)) (true (control blue)) (does blue pass))
(<= (next (control blue)) (true (control red)))
(<= (next over) (does blue end))
(<= (next (control red)) (does blue end))
(<= terminal (true over))
(goal red 100) (goal blue 0)
"""

# A walk that pays in other coins than 0, 50 and 100, and in one place not at all.
COINS = """
(role walker)
(init (at start))
(edge start a low) (edge start b mid) (edge start c high) (edge start d none)
(edge low a end10) (edge mid a end20) (edge high a end60) (edge high b end20) (edge none a end0)
(leaf end10 10) (leaf end20 20) (leaf end60 60)
(end end10) (end end20) (end end60) (end end0)
(<= (legal walker (go ?e)) (true (at ?n)) (edge ?n ?e ?m))
(<= (next (at ?m)) (true (at ?n)) (does walker (go ?e)) (edge ?n ?e ?m))
(<= terminal (true (at ?n)) (end ?n))
(<= (goal walker ?v) (true (at ?n)) (leaf ?n ?v))
"""

# The walker ends in a place without moves (trap), walks for ever (ring) or leaves without a goal.
ASTRAY = """
(role walker)
(init (at start))
(edge start a trap) (edge start b ring) (edge start c out)
(edge ring a ring)
(<= (legal walker (go ?e)) (true (at ?n)) (edge ?n ?e ?m))
(<= (next (at ?m)) (true (at ?n)) (does walker (go ?e)) (edge ?n ?e ?m))
(<= terminal (true (at out)))
(<= (goal walker 100) (true (at nowhere)))
"""
