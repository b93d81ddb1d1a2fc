"""Events to facts: pure functions, one file per domain."""
