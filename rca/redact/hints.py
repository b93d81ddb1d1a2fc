"""Whether a line can name a person or a machine at all; most lines hold none of these shapes."""

from __future__ import annotations

import re2 as re

_HINT = re.compile(
    r"(?i)@|\d\.\d{1,3}\.\d|:[0-9a-f]{0,4}:[0-9a-f]{0,4}:|[0-9a-f]{4}::[0-9a-f]|"
    r"[/\\](?:home|users|homes|u|scratch|fsx|lustre|gpfs|work)[/\\]|"
    r"\.(?:internal|local|lan|corp|intranet|localdomain|home\.arpa)|ip-\d|ec2-\d|host|nodename|node|master_addr|"
    r"main_process_ip|rdzv_endpoint|NCCL|://|srun|\bON\b|user|logname|owner|login|entity|\bpod|-vmss|gke-|"
    r"-[0-9a-f]{8,10}-[a-z0-9]{5}|[a-z\-][0-9][a-z0-9\-]*\.[a-z0-9\-.]+\.[a-z]{2}"
)


def may_name_places(text: str) -> bool:
    """Whether any of the shapes can be in the text."""
    return _HINT.search(text) is not None
