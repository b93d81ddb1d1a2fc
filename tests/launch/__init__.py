"""Tests of commands that are watched."""
