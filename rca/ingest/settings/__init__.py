"""Configurations, scripts and packages."""
