"""Root-cause analysis for failed deep-learning jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rca.pipeline import analyze as analyze

__version__ = "0.1.0"
__all__ = ["__version__", "analyze"]


def __getattr__(name: str) -> Any:
    """Load `analyze` on first use, so that `import rca` stays instant."""
    if name == "analyze":
        from rca.pipeline import analyze

        return analyze
    raise AttributeError(f"module 'rca' has no attribute {name!r}")
