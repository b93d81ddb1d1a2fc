"""A command at the place of failure: run, watched, and what it leaves kept for the analysis."""
