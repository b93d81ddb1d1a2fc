"""Named checks: what a mechanism would do, or what the run left says, without training."""
