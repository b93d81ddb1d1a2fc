"""Self-contained programs that repeat an experiment: torch and transformers only."""
