"""GDL text to a simulator: parse, check, ground, build the circuit, compile."""
