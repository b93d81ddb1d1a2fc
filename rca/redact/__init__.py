"""Secrets, user names, mail addresses, IP addresses and hosts out of everything that is shown."""

from rca.redact.redactor import Redactor, redact_diagnosis

__all__ = ["Redactor", "redact_diagnosis"]
