"""Who failed first, when, where in the job, and how the run ended."""
