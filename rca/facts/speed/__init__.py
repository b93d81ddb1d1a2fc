"""Where the time of a step goes, by timers, traces and ranks."""
