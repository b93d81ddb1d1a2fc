"""Scores on held-out data, over time, and of one model against another."""
