"""The agent: which experiment tells most about the leading causes, run it, believe the result, go on, stop in time."""

from rca.agent.loop import INTERRUPTED, Investigation, investigate
from rca.agent.replay import replay

__all__ = ["INTERRUPTED", "Investigation", "investigate", "replay"]
