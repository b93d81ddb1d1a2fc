"""Whether a step fits: arithmetic and tracing without data."""
