"""A run beside a healthy run of the same job: what differs, what both say, where the curves part."""
