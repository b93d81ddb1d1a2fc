"""Loading, validating and testing signatures, causes and experiments."""
