"""Tests of what leaves the machine, against servers on this one."""
