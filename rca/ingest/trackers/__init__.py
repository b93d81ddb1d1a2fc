"""Folders of experiment trackers: W&B, MLflow, Comet."""
