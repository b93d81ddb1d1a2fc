"""Samples, splits, lengths, and how files are prepared."""
