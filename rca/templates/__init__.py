"""Log lines to templates: what a job says again and again, with the parts that vary taken out."""
