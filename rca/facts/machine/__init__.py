"""Devices, hosts, software and schedulers."""
