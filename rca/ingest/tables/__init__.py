"""Tables and documents of metrics: CSV, JSON, JSON lines."""
