"""Files to events: one file per format, one small interface."""
