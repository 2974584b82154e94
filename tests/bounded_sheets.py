"""Rulesheets that ground only within their `base` and `input`; play leaves these in all but the first."""

# A counter built of functions that only the end of the match stops; `base` goes as far as play does.
COUNTER = """
(role white) (role black) (init (count z)) (init (control white)) (other white black) (other black white)
(small z) (small (s z)) (small (s (s z))) (small (s (s (s z))))
(<= (legal ?r (add ?n)) (true (control ?r)) (amount ?n)) (amount one) (amount two)
(<= (legal ?r noop) (true (control ?s)) (other ?s ?r))
(<= (next (count (s ?n))) (true (count ?n)) (does ?r (add one)))
(<= (next (count (s (s ?n)))) (true (count ?n)) (does ?r (add two)) (small ?n))
(<= (next (control ?r)) (true (control ?s)) (other ?s ?r))
(<= (next done) (true (count (s (s ?n)))))
(<= terminal (true done))
(<= (goal ?r 100) (true (count (s (s (s (s ?n))))) ) (true (control ?r)))
(<= (goal ?r 0) (true (count (s (s (s (s ?n)))))) (role ?r) (not (true (control ?r))))
(<= (goal ?r 50) (role ?r) (not (enough)))
(<= enough (true (count (s (s (s (s ?n)))))))
(<= (base (count ?n)) (small ?n)) (<= (base (count (s (s (s ?n))))) (small ?n)) (base done)
(<= (base (control ?r)) (role ?r))
(<= (input ?r noop) (role ?r)) (<= (input ?r (add ?n)) (role ?r) (amount ?n))
"""
# Both move at once, and play leaves `base` more often than not, and may come back; only the first can.
LEAVING_BASE = """
(role a) (role b) (init (n z)) (init (last none)) (init (clock 0))
(num z) (num (s z)) (num (s (s z))) (tick 0 1) (tick 1 2) (tick 2 3) (tick 3 4)
(<= (base (n ?x)) (num ?x)) (<= (base (last ?m)) (move ?m)) (base (last none)) (<= (base (clock ?y)) (tick ?x ?y))
(move up) (move stay) (move back)
(<= (legal ?r ?m) (role ?r) (move ?m))
(<= (next (n (s (s ?x)))) (true (n ?x)) (does a up) (does b up))
(<= (next (n (s ?x))) (true (n ?x)) (does a up) (does b stay))
(<= (next (n z)) (does b back))
(<= (next (n ?x)) (true (n ?x)) (does a ?m) (distinct ?m up) (not (does b back)))
(<= (next (last ?m)) (does a ?m))
(<= (next (clock ?y)) (true (clock ?x)) (tick ?x ?y))
(<= terminal (true (clock 4)))
(<= (goal a 100) (true (n (s ?x)))) (<= (goal b 30) (true (n z)))
(<= (goal b 70) (true (n (s (s (s ?x))))))
"""
# Every number can be said that is one more than some number was; `input` knows three. Black may be left without a move.
LEAVING_INPUT = """
(role white) (role black) (init (said z)) (init (at z))
(<= (legal white (say (s ?n))) (true (said ?n))) (legal white wait)
(<= (legal black wait) (true (at z))) (<= (legal black go) (not (true (at (s (s (s z)))))))
(<= (next (said ?n)) (does white (say ?n)))
(<= (next (said ?n)) (true (said ?n)))
(<= (next (at (s ?n))) (true (at ?n)))
(<= terminal (true (at (s (s (s (s z)))))))
(<= (goal ?r 10) (role ?r) terminal (not far)) (<= (goal ?r 90) (role ?r) far)
(<= far (true (said (s (s (s ?n))))))
(few z) (few (s z)) (few (s (s z))) (few (s (s (s z)))) (few (s (s (s (s z)))))
(<= (base (said ?n)) (few ?n)) (<= (base (at ?n)) (few ?n))
(input white (say (s z))) (input white (say (s (s z)))) (input white wait) (input black wait) (input black go)
"""
# Rules and bounds for any fact and any move; the first state is outside `base`, and no move inside `input`.
ANY = """
(role r) (init (start (f z))) (few z) (few (f z)) (few (f (f z))) (kind up) (kind down)
(<= (fact (p ?x ?k)) (few ?x) (kind ?k)) (<= (base ?f) (fact ?f)) (<= (input r ?m) (never ?m))
(<= (made (p (f ?x) ?k)) (true (p ?x ?j)) (does r ?k)) (<= (made (p z ?k)) (true (start ?x)) (does r ?k))
(<= (next ?f) (made ?f)) (<= (next ?f) (true ?f) (keeps ?f)) (keeps (p z up))
(<= (open ?k) (kind ?k)) (<= (legal r ?m) (open ?m))
(<= terminal (true (p (f (f (f ?x))) ?k)))
(<= (goal r 100) (true (p z ?k))) (<= (goal r 1) (not (true (p z up))) (not (true (p z down))))
"""
# One rule derives facts that `base` declares and one that it forgot, which another rule derives as well.
FORGOTTEN = """
(role r) (init (n z)) (init (tick 0)) (after 0 1) (after 1 2) (after 2 3)
(base (n z)) (base (n (s z))) (base (n (s (s z))))
(legal r go) (legal r wait)
(<= (made (n (s ?x))) (true (n ?x)) (does r go)) (<= (made (n ?x)) (true (n ?x)) (does r wait))
(<= (made (tick ?y)) (true (tick ?x)) (after ?x ?y))
(<= (next ?f) (made ?f)) (<= (next (tick ?y)) (true (tick ?x)) (after ?x ?y) (does r wait))
(<= terminal (true (tick 3))) (<= (goal r 100) (true (n (s ?x)))) (<= (goal r 20) (true (n z)))
"""
# Goals depend on moves that `input` does not know, also at the end, and a rule for `legal` on what another gives.
READING_LEGAL = """
(role r) (init (n z)) (input r (say z)) (input r (say (s z))) (input r pass)
(base (n z)) (base (n (s z))) (base (n (s (s z)))) (base (n (s (s (s z)))))
(<= (legal r (say ?x)) (true (n ?x))) (<= (legal r pass) (not (legal r (say (s (s z))))))
(<= (next (n (s ?x))) (true (n ?x)))
(<= terminal (true (n (s (s ?x)))))
(<= (goal r 90) (legal r (say (s (s z))))) (<= (goal r 10) (not (legal r (say (s (s z))))))
"""
SHEETS = {
    "counter": COUNTER,
    "leaving base": LEAVING_BASE,
    "leaving input": LEAVING_INPUT,
    "any": ANY,
    "forgotten": FORGOTTEN,
    "reading legal": READING_LEGAL,
}
