"""Profiler traces."""
