"""Curves of a training run: loss, gradient norm, learning rate, loss scale."""
