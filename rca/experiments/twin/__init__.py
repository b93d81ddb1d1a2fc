"""The twin: a small training of the same kind, and experiments that change one thing of it."""
