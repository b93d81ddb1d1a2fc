"""Secrets for services: from the environment, else from the keyring of the user; never from a file or an option."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rca.errors import TicketError

KEYRING = "rca"
"""Service under which `keyring set rca NAME` stores a secret."""


def first_set(names: Sequence[str]) -> str | None:
    """Return the first of these environment variables that is set to something."""
    return next((value for name in names if (value := os.environ.get(name, "").strip())), None)


def secret(names: Sequence[str], *, stored_as: str, what: str) -> str:
    """Return a secret from one of the variables or from the keyring. Raises TicketError with where it is looked for."""
    found = first_set(names) or _stored(stored_as)
    if found is None:
        raise TicketError(
            f"{what} is missing; set {' or '.join(names)}, or store it with `keyring set {KEYRING} {stored_as}`"
        )
    return found


def _stored(name: str) -> str | None:
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        return None
    try:
        return keyring.get_password(KEYRING, name)
    except KeyringError:
        return None
