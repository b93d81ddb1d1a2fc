"""Model folders: weights, sizes, tokens."""
