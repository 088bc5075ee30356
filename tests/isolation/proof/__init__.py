"""The machinery of the isolation proof: who takes part, what may be seen, and what was seen."""
