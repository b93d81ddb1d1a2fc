"""A program for a check that measures a mechanism; checks of the run's files have none."""

from __future__ import annotations

from collections.abc import Sequence

from rca.errors import ExperimentError
from rca.experiments.repro import architecture
from rca.experiments.repro.render import literal, rendered, rows
from rca.experiments.twin.config import DECODERS, TwinConfig

LONG = 256
"""Tokens of the longer prefix, as in the check."""


def token_cost_program(config: TwinConfig, *, title: str, parts: Sequence[tuple[str, str]] = ()) -> str:
    """Return the program that counts the arithmetic of a token with the key-value cache and without.

    Raises ExperimentError for a model that does not generate token by token.
    """
    if config.family not in DECODERS:
        raise ExperimentError(f"{config.family} does not generate token by token")
    names = {"hidden": "width", "layers": "layers", "heads": "heads", "kv_heads": "kv_heads", "ff": "ff"}
    names |= {name: name for name in ("vocab", "labels", "tied", "init_std")}
    sizes = {name: getattr(config, field) for name, field in names.items()} | {"positions": 2 * LONG}
    settings = architecture.settings(config.family, sizes)
    lines = rows(settings | dict.fromkeys(architecture.dropouts(config.family), 0.0), indent=16)
    context = {
        "auto_class": architecture.auto_class(config.family),
        "family": config.family,
        "attention": literal(config.attention),
        "long": LONG,
        "model_settings": (f"settings = {lines[0]}", *(f"settings |= {line}" for line in lines[1:])),
    }
    return rendered("token_cost.jinja", context, title=title, parts=parts)
