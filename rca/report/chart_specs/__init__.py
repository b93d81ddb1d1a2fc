"""Charts as Vega-Lite specifications: plain data in, a dict out."""
