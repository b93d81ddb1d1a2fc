"""Weights, tokenizers and samples: headers and names, never the tensors."""
