"""Servers and generation: load, lengths, speed, and what was said."""
