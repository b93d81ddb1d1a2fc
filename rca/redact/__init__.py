"""Secrets, user names, mail addresses, IP addresses and hosts out of everything that is shown."""

from rca.redact.redactor import Redactor
from rca.redact.whole import redact_diagnosis, redactor_for

__all__ = ["Redactor", "redact_diagnosis", "redactor_for"]
