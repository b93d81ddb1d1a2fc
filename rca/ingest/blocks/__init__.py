"""Parsers of what spans several lines of a log."""
