"""What machines, schedulers and clusters say."""
