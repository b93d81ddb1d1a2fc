"""Conditions to matches to probabilities."""
