"""Small loops of loading, stepping and generating, with one setting changed."""
