"""Events, facts and hypotheses to the parts of a diagnosis."""
