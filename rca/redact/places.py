"""Where people and machines are named in a line: mail and IP addresses, home directories, hosts, paths."""

from __future__ import annotations

import ipaddress
import re as bounded
from collections.abc import Iterator

import re2 as re

from rca.redact.vocabulary import (
    NO_HOSTS,
    NOT_A_DOMAIN,
    PRIVATE_SERVICES,
    PUBLIC_DOMAINS,
    PUBLIC_PATHS,
    SHARED_ACCOUNTS,
)

Span = tuple[int, int]

_MAIL = re.compile(r"[A-Za-z0-9._%+\-]{1,64}@[A-Za-z0-9\-]{1,63}(?:\.[A-Za-z0-9\-]{1,63}){0,5}\.([A-Za-z]{2,24})\b")

_IPV4 = re.compile(r"(?:^|[^\w.\-])((?:\d{1,3}\.){3}\d{1,3})(?:$|[^\w.]|\.(?:$|\s))")
_IPV6 = re.compile(r"(?:^|[^\w:.])((?:[0-9A-Fa-f]{0,4}:){3,7}[0-9A-Fa-f]{1,4})(?:$|[^\w:.]|\.(?:$|\s))")
_PRIVATE = tuple(
    ipaddress.ip_network(n)
    for n in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16")
)
_ADDRESS_BEFORE = bounded.compile(
    r"(?i)(?:://|@|\b(?:ip|addr|address|host|hostname|node|peer|from|to|at|on|inet|server|remote|client|endpoint)"
    r"[\"']?\s?[=:<(\[]?\s?[\"']?|[\[/])$"
)
_VERSION_BEFORE = bounded.compile(
    r"(?i)(?:version|driver|release|build|cu\d+|cuda|cudnn|nccl|lib\w*|v|==|>=|<=|~=)[\w\-]*[\"']?\s*[:=]?\s*[\"']?$"
)

_HOME = re.compile(r"(?i)(?:/(?:home|users|homes)/|[\\/]Users\\{1,2})([A-Za-z0-9._\-]{2,64})")

_INTERNAL = re.compile(
    r"\b([A-Za-z0-9](?:[A-Za-z0-9\-]{0,62})(?:\.[A-Za-z0-9\-]{1,63}){0,6}"
    r"\.(?:internal|local|lan|corp|intranet|localdomain|home\.arpa))(?:$|[^\w(.]|\.(?:$|\s))"
)
_CLOUD_NODE = re.compile(r"\bip(?:-\d{1,3}){4}(?:\.[a-z0-9\-]{1,63}){0,5}")
_NAMED = re.compile(
    r"(?i)\b(?:host|hostname|nodename|master_addr|main_process_ip|rdzv_endpoint|slurmd_nodename|slurm_(?:job_)?nodelist|"
    r"nodelist)"
    r"[\"']?\s{0,12}[=:]\s{0,3}[\"']?([A-Za-z][A-Za-z0-9.\-]{2,80})"
)
_NCCL = re.compile(r"(?:^|[\s:\]])([A-Za-z][\w.\-]{1,80}):\d+:\d+ \[\d+\] NCCL")
_URL = re.compile(
    r"(?i)\b(https?|tcp|grpc|ssh|redis|rediss|amqp|postgres(?:ql)?|mongodb|mysql|ws|wss)://"
    r"(?:[^/\s@]{1,200}@)?([A-Za-z0-9][A-Za-z0-9.\-]{1,120})"
)

_PATH = re.compile(r"(?:^|[\s\"'`=(:,\[{>])((?:/[A-Za-z0-9._@+~<>\-]+){2,24}/?)")


_HINT = re.compile(
    r"(?i)@|\d\.\d{1,3}\.\d|:[0-9a-f]{0,4}:[0-9a-f]{0,4}:|[/\\](?:home|users|homes)[/\\]|\.(?:internal|local|lan|corp|intranet|"
    r"localdomain|home\.arpa)|ip-\d|host|nodename|nodelist|master_addr|main_process_ip|rdzv_endpoint|NCCL|://"
)


def may_name_places(text: str) -> bool:
    """Whether any of the shapes below can be in the text; most lines hold none."""
    return _HINT.search(text) is not None


def mail_spans(text: str) -> Iterator[Span]:
    """Mail addresses; `git@github.com:...` and names with a revision are none."""
    if "@" not in text:
        return
    for match in _MAIL.finditer(text):
        if match.group(1).lower() not in NOT_A_DOMAIN and not match.group().lower().startswith("git@"):
            yield match.span()


def ip_spans(text: str) -> Iterator[Span]:
    """IP addresses that name a machine; versions of four parts, loopback and wildcards are none."""
    for match in _IPV4.finditer(text) if text.count(".") >= 3 else ():
        if _is_machine(match.group(1), text, match.start(1), match.end(1)):
            yield match.span(1)
    if text.count(":") >= 3:
        for match in _IPV6.finditer(text):
            if _is_ipv6(match.group(1)):
                yield match.span(1)


def _is_machine(address: str, text: str, start: int, end: int) -> bool:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    if parsed.is_loopback or parsed.is_unspecified or parsed.is_multicast or address.startswith("255."):
        return False
    before = text[max(0, start - 40) : start]
    if before.endswith("=="):
        return False
    with_port = bounded.match(r":\d{2,5}\b", text[end : end + 7]) is not None
    if with_port or _ADDRESS_BEFORE.search(before):
        return True
    return any(parsed in network for network in _PRIVATE) and not _VERSION_BEFORE.search(before)


def _is_ipv6(address: str) -> bool:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    return not (parsed.is_loopback or parsed.is_unspecified)


def user_spans(text: str) -> Iterator[Span]:
    """User names in paths of home directories."""
    for match in _HOME.finditer(text):
        if match.group(1).lower() not in SHARED_ACCOUNTS and not match.group(1).isdigit():
            yield match.span(1)


def host_spans(text: str) -> Iterator[Span]:
    """Hosts by shape: internal domains, cloud node names, `hostname=...`, addresses of services that are not public."""
    for match in _INTERNAL.finditer(text) if "." in text else ():
        if bounded.search(r"[\d\-]", match.group(1)):
            yield match.span(1)
    for match in _CLOUD_NODE.finditer(text):
        yield match.span()
    for match in _NCCL.finditer(text):
        yield match.span(1)
    for match in _NAMED.finditer(text):
        name = match.group(1).rstrip(".-")
        if name.lower() not in NO_HOSTS and bounded.search(r"[\d.\-]", name) and not _is_public(name):
            yield match.start(1), match.start(1) + len(name)
    if "://" in text:
        for match in _URL.finditer(text):
            name = match.group(2).rstrip(".-")
            if _is_private_service(match.group(1).lower(), name.lower()):
                yield match.start(2), match.start(2) + len(name)


def _is_private_service(scheme: str, host: str) -> bool:
    """Anything but the web is private; on the web, what carries a company's usual name for such a service."""
    if host in NO_HOSTS or _is_public(host) or bounded.fullmatch(r"[\d.]+", host):
        return False
    return scheme not in ("http", "https") or ("." in host and host.partition(".")[0] in PRIVATE_SERVICES)


def _is_public(host: str) -> bool:
    return ".".join(host.lower().rsplit(".", 2)[-2:]) in PUBLIC_DOMAINS


def path_spans(text: str) -> Iterator[Span]:
    """Folders of absolute paths, without the file name and without what lies in an installed package."""
    for match in _PATH.finditer(text):
        path = match.group(1)
        if path.startswith(PUBLIC_PATHS):
            continue
        folder = path.rstrip("/").rpartition("/")[0]
        for public in ("/site-packages", "/dist-packages"):
            if public in folder:
                folder = folder[: folder.index(public)]
        if folder.count("/") >= 1:
            yield match.start(1), match.start(1) + len(folder)
