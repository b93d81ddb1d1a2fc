"""Diagnosis to a ticket."""
