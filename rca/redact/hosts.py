"""Machines that are named in a line: nodes of clusters and clouds, pods, services that are not public."""

from __future__ import annotations

import re as bounded
from collections.abc import Iterator

import re2 as re

from rca.redact.vocabulary import NO_HOSTS, PRIVATE_SERVICES, PUBLIC_DOMAINS

Span = tuple[int, int]

_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9\-]{0,62})"
_END = r"(?:$|[^\w(.\[]|\.(?:$|\s))"
_INTERNAL = re.compile(
    rf"\b({_LABEL}(?:\.[A-Za-z0-9\-]{{1,63}}){{0,6}}"
    rf"\.(?:internal|local|lan|corp|intranet|localdomain|home\.arpa)){_END}"
)
_NODE = re.compile(
    rf"(?:^|[^\w.\-/@])([a-z][a-z\-]{{0,30}}[0-9][a-z0-9\-]{{0,30}}(?:\.[a-z0-9\-]{{2,63}}){{1,5}}"
    rf"\.(?:edu|gov|org|com|io|cloud|hpc|cluster|uk|de|fr|ch|eu|nl|se|fi|it|es|cn|jp|kr|in|au|ca)){_END}"
)
"""A node with a number in a domain of three labels or more; two labels are as often an attribute of a program."""
_CLOUD_NODE = re.compile(
    r"\b((?:ip|ec2)(?:-\d{1,3}){4}(?:\.[a-z0-9\-]{1,63}){0,5}|gke-[a-z0-9\-]{2,60}-[0-9a-f]{6,10}-[a-z0-9]{4}|"
    r"aks-[a-z0-9]{1,20}-\d{6,10}-vmss[0-9a-z]{6})\b"
)
_POD = re.compile(
    r"(?i)(?:\bpods?[/ ]\"?|\bpod_name[\"']?\s?[=:]\s?[\"']?|\bpod[\"']?[=:]\s?[\"']?)"
    r"([a-z0-9][a-z0-9\-.]{2,80}[a-z0-9])"
)
_REPLICA = re.compile(r"\b([a-z][a-z0-9\-]{1,50}-[0-9a-f]{8,10}-[bcdfghjklmnpqrstvwxz2-9]{5})\b")
_NAMED = re.compile(
    r"(?i)\b(?:host|hostname|nodename|master_addr|main_process_ip|rdzv_endpoint|slurmd_nodename|slurm_(?:job_)?nodelist|"
    r"nodelist|batchhost|alloc_?node|slurm_submit_host|slurm_launch_node)"
    r"[\"']?\s{0,12}[=:]\s{0,3}[\"']?([A-Za-z][A-Za-z0-9.\-]{2,80})"
)
_VARIABLE = re.compile(
    r"\b(?:HOSTNAME|SLURMD_NODENAME|SLURM_(?:JOB_)?NODELIST|POD_NAME)=[\"']?([A-Za-z][A-Za-z0-9.\-]{2,80})"
)
_SLURM = re.compile(
    r"\bsrun: error: ([A-Za-z][\w.\-]{1,80}): tasks? |\bON ([A-Za-z][\w.\-]{1,80}) (?:CANCELLED|FAILED)|"
    r"\b[a-z][\w.\-]{1,31}@([A-Za-z][\w\-]{1,62}(?:\.[\w\-]{1,63}){0,4}):[~/]|"
    r"\[[a-z][\w.\-]{1,31}@([A-Za-z][\w\-]{1,62}(?:\.[\w\-]{1,63}){0,4}) [^\]\s]{1,64}\][$#]"
)
"""What Slurm says of a node, and prompts of shells: `ada@gpu-21:~/run$`, `[ada@gpu-21 run]$`."""
_NCCL = re.compile(r"(?:^|[\s:\]])([A-Za-z][\w.\-]{1,80}):\d+:\d+ \[\d+\] NCCL")
_URL = re.compile(
    r"(?i)\b(https?|tcp|grpc|ssh|redis|rediss|amqps?|postgres(?:ql)?(?:\+\w+)?|mongodb(?:\+srv)?|mysql|ws|wss|smtps?|"
    r"clickhouse)://(?:[^/\s@]{1,200}@)?([A-Za-z0-9][A-Za-z0-9.\-]{1,120})"
)
_ORDINARY = bounded.compile(
    r"(?i)(?:gpu|cuda|cpu|node|rank|worker|host|layer|device|nvme|eth|ib|mlx|step|epoch|block|stage|expert|master|main|"
    r"trainer|server|client|chunk|shard|pod|job|task|run|test|h|a|v|b)[-_]?\d?"
)
"""Names that stand in logs for other things as well: they are replaced only where they are said to be a host."""


def host_spans(text: str, *, everywhere: bool = False) -> Iterator[Span]:
    """Hosts by shape: domains, nodes of clouds, pods, `hostname=...`, addresses of services that are not public.

    `everywhere`: every address of the web that is not a well-known service is private.
    """
    if "." in text:
        for match in _INTERNAL.finditer(text):
            if bounded.search(r"[\d\-]", match.group(1)):
                yield match.span(1)
        for match in _NODE.finditer(text):
            if not _is_public(match.group(1)):
                yield match.span(1)
    if "-" in text:
        for shape in (_CLOUD_NODE, _REPLICA):
            for match in shape.finditer(text):
                yield match.span(1)
    for shape in (_NCCL, _VARIABLE):
        for match in shape.finditer(text):
            if match.group(1).lower() not in NO_HOSTS:
                yield match.span(1)
    for match in _SLURM.finditer(text):
        yield next(match.span(n) for n in range(1, 5) if match.group(n) is not None)
    for shape in (_NAMED, _POD):
        for match in shape.finditer(text):
            name = match.group(1).rstrip(".-")
            if name.lower() not in NO_HOSTS and bounded.search(r"[\d.\-]", name) and not _is_public(name):
                yield match.start(1), match.start(1) + len(name)
    if "://" in text:
        for match in _URL.finditer(text):
            name = match.group(2).rstrip(".-")
            if _is_account(text[match.end(2) : match.end(2) + 200]):
                continue
            if _is_private_service(match.group(1).lower(), name.lower(), everywhere=everywhere):
                yield match.start(2), match.start(2) + len(name)


def is_telling(name: str) -> bool:
    """Whether a name is so particular that it means the same host wherever it stands."""
    return len(name) >= 4 and any(c.isdigit() for c in name) and not _ORDINARY.fullmatch(name)


def _is_account(following: str) -> bool:
    """Whether what stands before this is not the host yet: `train:<secret>@db`."""
    return "@" in bounded.split(r"[/\s]", following, maxsplit=1)[0]


def _is_private_service(scheme: str, host: str, *, everywhere: bool) -> bool:
    """Anything but the web is private; on the web, what carries a company's usual name for such a service."""
    if host in NO_HOSTS or _is_public(host) or bounded.fullmatch(r"[\d.]+", host):
        return False
    return everywhere or scheme not in ("http", "https") or ("." in host and host.partition(".")[0] in PRIVATE_SERVICES)


def _is_public(host: str) -> bool:
    return ".".join(host.lower().rsplit(".", 2)[-2:]) in PUBLIC_DOMAINS
