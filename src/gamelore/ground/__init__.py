"""From a rulesheet to a ground program: the rules are rewritten for a small grounding, ground, and simplified."""
