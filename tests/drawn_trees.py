"""Rules for games that are a drawn tree: white and black walk along `edge FROM MOVE TO` by turns, to a `leaf`.

The sheet around them gives the roles, the first node and whose turn it is there, the edges, and the leaves as
`(leaf NODE goal-of-white goal-of-black)`.
"""

WALKING = """
(other white black) (other black white)
(<= (legal ?p (go ?e)) (true (control ?p)) (true (at ?n)) (edge ?n ?e ?m))
(<= (legal ?p noop) (role ?p) (true (control ?q)) (distinct ?p ?q))
(<= (next (at ?m)) (true (at ?n)) (does ?p (go ?e)) (edge ?n ?e ?m))
(<= (next (control ?q)) (true (control ?p)) (other ?p ?q))
(<= terminal (true (at ?n)) (leaf ?n ?v ?w))
(<= (goal white ?v) (true (at ?n)) (leaf ?n ?v ?w))
(<= (goal black ?w) (true (at ?n)) (leaf ?n ?v ?w))
"""
