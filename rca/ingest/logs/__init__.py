"""Logs: one pass over the bytes, a closer look at the lines that say something."""
