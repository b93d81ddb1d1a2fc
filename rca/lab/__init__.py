"""Injects faults into tiny real jobs and records what they leave behind."""
