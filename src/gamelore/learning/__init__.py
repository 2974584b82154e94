"""Learning from matches: learners of values (`td`), learners of sequences (`sequences`), their store and sessions."""
