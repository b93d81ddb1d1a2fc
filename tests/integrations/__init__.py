"""Tests of the callbacks with the real trainers."""
