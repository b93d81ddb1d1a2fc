"""Collectives that did not end: who waited where, who is missing, who is the odd one."""
