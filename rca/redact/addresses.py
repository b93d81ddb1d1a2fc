"""Mail and IP addresses in a line."""

from __future__ import annotations

import ipaddress
import re as bounded
from collections.abc import Iterator

import re2 as re

from rca.redact.vocabulary import NOT_A_DOMAIN

Span = tuple[int, int]

_MAIL = re.compile(r"[A-Za-z0-9._%+\-]{1,64}@[A-Za-z0-9\-]{1,63}(?:\.[A-Za-z0-9\-]{1,63}){0,5}\.([A-Za-z]{2,24})\b")

_IPV4 = re.compile(r"(?:^|[^\w.\-])((?:\d{1,3}\.){3}\d{1,3})(?:$|[^\w.]|\.(?:$|\s))")
_IPV6 = re.compile(
    r"(?:^|[^\w:.])((?:[0-9A-Fa-f]{0,4}:){3,7}[0-9A-Fa-f]{1,4}|(?:f[cde]|2[0-9a-f]|3[0-9a-f])[0-9a-f]{2}::[0-9a-f]{1,4})"
    r"(?:$|[^\w:.]|\.(?:$|\s))"
)
_PRIVATE = tuple(
    ipaddress.ip_network(n)
    for n in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16")
)
_ADDRESS_BEFORE = bounded.compile(
    r"(?i)(?:://|@|\b(?:ip|addr|address|host|hostname|node|peer|from|to|at|on|inet|server|remote|client|endpoint)"
    r"[\"']?\s?[=:<(\[]?\s?[\"']?|[\[/])$"
)
_VERSION_BEFORE = bounded.compile(
    r"(?i)(?:version|firmware|driver|release|build|cu\d+|cuda|cudnn|nccl|lib\w*|v|==|>=|<=|~=)[\w\-]*[\"']?\s*[:=]?\s*"
    r"[\"']?$"
)


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
    if text.count(":") >= 2:
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
