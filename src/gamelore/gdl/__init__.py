"""From GDL text to a rulesheet: the syntax tree, clauses without `or`, and the checks of a rulesheet."""
