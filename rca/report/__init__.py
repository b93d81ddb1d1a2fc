"""Diagnosis to HTML, Markdown, JSON and text."""
