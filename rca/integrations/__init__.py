"""Callbacks for trainers: what a run does is written down, and a failure is analysed where it happens."""
