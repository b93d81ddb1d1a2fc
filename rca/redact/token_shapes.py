"""Tokens that a prefix gives away, as their issuers document it.

A line is searched once for all prefixes; what follows one is then judged by itself. Prefixes that ordinary names share
(`hf_`, `sk-`) ask for a longer rest, and all for a digit in it.
"""

from __future__ import annotations

import re as bounded
from collections.abc import Iterator
from functools import cache
from typing import Any

import re2 as re

_WORD = r"[A-Za-z0-9]"
_NAME = r"[A-Za-z0-9_\-]"
_BASE64 = r"[A-Za-z0-9+/=_\-]"
_HEX = r"[0-9a-f]"
_CAPITALS = r"[0-9A-Z]"

_RESTS: dict[str, tuple[str, int]] = {
    # model hubs and trackers
    "hf_": (_WORD, 20),
    "api_org_": (_WORD, 20),
    "wandb_v1_": (_NAME, 20),
    "r8_": (_WORD, 30),
    "nvapi-": (_NAME, 20),
    "dapi": (_HEX, 32),
    "KGAT_": (_HEX, 32),
    # model services
    "sk-proj-": (_NAME, 16),
    "sk-svcacct-": (_NAME, 16),
    "sk-admin-": (_NAME, 16),
    "sk-None-": (_NAME, 16),
    "sk-ant-": (_NAME, 16),
    "sk-or-": (_NAME, 16),
    "sk-": (_WORD, 32),
    "gsk_": (_WORD, 40),
    "xai-": (_WORD, 40),
    "pplx-": (_WORD, 40),
    "fw_": (_WORD, 22),
    "rpa_": (_WORD, 40),
    "secret_": (_WORD, 32),
    "AIza": (_NAME, 30),
    "ya29.": (_NAME, 20),
    "GOCSPX-": (_NAME, 20),
    # clouds
    "AKIA": (_CAPITALS, 16),
    "ASIA": (_CAPITALS, 16),
    "ABIA": (_CAPITALS, 16),
    "ACCA": (_CAPITALS, 16),
    "LTAI": (_WORD, 16),
    "dop_v1_": (_HEX, 40),
    "doo_v1_": (_HEX, 40),
    "dor_v1_": (_HEX, 40),
    "hvs.": (_NAME, 20),
    "hvb.": (_NAME, 20),
    "hvr.": (_NAME, 20),
    "tskey-": (_NAME, 24),
    "pul-": (_HEX, 40),
    "LS0tLS1CRUdJTi": (_BASE64, 20),
    # code hosts and registries
    "ghp_": (_WORD, 30),
    "gho_": (_WORD, 30),
    "ghu_": (_WORD, 30),
    "ghs_": (_WORD, 30),
    "ghr_": (_WORD, 30),
    "github_pat_": (_NAME, 30),
    "glpat-": (_NAME, 18),
    "gldt-": (_NAME, 18),
    "glft-": (_NAME, 18),
    "glsoat-": (_NAME, 18),
    "glrt-": (_NAME, 18),
    "glcbt-": (_NAME, 18),
    "glimt-": (_NAME, 18),
    "glptt-": (_NAME, 18),
    "glagent-": (_NAME, 18),
    "gloas-": (_NAME, 40),
    "GR1348941": (_NAME, 18),
    "npm_": (_WORD, 30),
    "pypi-Ag": (_NAME, 40),
    "dckr_pat_": (_NAME, 20),
    "dckr_oat_": (_NAME, 20),
    "AKCp": (_WORD, 40),
    "cmVmdGtu": (_WORD, 40),
    "ATBB": (_WORD, 24),
    "ATATT3": (_BASE64, 60),
    "ATCTT3": (_BASE64, 60),
    # chat and other services
    "xoxa-": (_NAME, 16),
    "xoxb-": (_NAME, 16),
    "xoxp-": (_NAME, 16),
    "xoxo-": (_NAME, 16),
    "xoxs-": (_NAME, 16),
    "xoxr-": (_NAME, 16),
    "xoxe-": (_NAME, 16),
    "xoxe.": (_NAME, 20),
    "xapp-": (_NAME, 24),
    "sk_live_": (_WORD, 16),
    "sk_test_": (_WORD, 16),
    "rk_live_": (_WORD, 16),
    "rk_test_": (_WORD, 16),
    "SG.": (r"[A-Za-z0-9_\-.]", 50),
    "glsa_": (_NAME, 30),
    "glc_eyJ": (_BASE64, 20),
    "sntrys_": (_BASE64, 30),
    "sntryu_": (_BASE64, 30),
    "NRAK-": (_WORD, 20),
    "NRII-": (_NAME, 20),
    "PMAK-": (r"[0-9a-f\-]", 50),
    "lin_api_": (_WORD, 30),
    "ntn_": (_WORD, 40),
    "sq0csp-": (_NAME, 20),
    "sq0atp-": (_NAME, 20),
    "shpat_": (_WORD, 32),
    "shpca_": (_WORD, 32),
    "shppa_": (_WORD, 32),
    "shpss_": (_WORD, 32),
    "AGE-SECRET-KEY-1": (_WORD, 30),
    # web tokens
    "eyJhcGlf": (_BASE64, 40),
    "eyJ": (r"[A-Za-z0-9_\-=]{10,4000}\.[A-Za-z0-9_\-=.]", 6),
}
"""Prefix -> letters of the rest, and how many there are at least."""
_NOT_CUT = frozenset({"fw_", "rpa_", "secret_", "pul-", "sk-", "SG.", "dapi", "ntn_", "xai-", "npm_", "r8_"})
"""Prefixes that are too common to tell a token of which only the beginning is left."""

_PREFIX = re.compile(
    r"(?:\b|_)(" + "|".join(re.escape(prefix) for prefix in sorted(_RESTS, key=lambda text: -len(text))) + ")"
)
_WITHIN = re.compile(r"\.atlasv1\.|\dQ~|:AA|(?:^|[^A-Za-z0-9])[MNO][A-Za-z0-9_\-]*\.[A-Za-z0-9_\-]*\.")
"""What stands within the tokens below."""
TRACES = f"{_PREFIX.pattern}|{_WITHIN.pattern}"
"""Expression without whose match there is no token in a text."""
_SHAPES = tuple(
    bounded.compile(r"(?<![A-Za-z0-9])" + shape)
    for shape in (
        r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_\-=]{40,}",
        r"[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.\-]{31,34}",
        r"(?:bot)?\d{8,10}:AA[0-9A-Za-z_\-]{33}",
        r"[MNO][A-Za-z0-9_\-]{23,25}\.[A-Za-z0-9_\-]{6}\.[A-Za-z0-9_\-]{27,}",
    )
)
_CUT = bounded.compile(r"[A-Za-z0-9_\-+/=.~]{4,}$")
_LONGEST_CUT = 4096
_WITH_REST = bounded.compile(r"[A-Za-z0-9_\-=]*")
_CUT_ADDRESS = re.compile(r"://[^/\s:@\"'<>]*:([^/\s@\"'<>]*[^/\s@\"'<>0-9][^/\s@\"'<>]*)$")


def token_spans(text: str, *, cut: bool = False) -> Iterator[tuple[int, int]]:
    """Spans of tokens known by their prefix, to the end of the token.

    `cut`: the text may have been cut at its end, where a few letters are enough then.
    """
    at = 0
    for match in _PREFIX.finditer(text):
        start = match.start(1)
        end = _end(text, match.group(1), start, cut=cut) if start >= at else None
        if end is not None:
            yield start, end
            at = end
    if _WITHIN.search(text):
        for shape in _SHAPES:
            for found in shape.finditer(text):
                yield found.span()
    address = _CUT_ADDRESS.search(text) if cut and "://" in text[-300:] else None
    if address is not None:
        yield address.span(1)


def _end(text: str, prefix: str, start: int, *, cut: bool) -> int | None:
    """Where the token that starts there ends; None where it is none."""
    after = start + len(prefix)
    found = _rest_of(prefix).match(text, after)
    if found is None and cut and prefix not in _NOT_CUT and len(text) - after < _LONGEST_CUT:
        found = _CUT.match(text, after)
    if found is None:
        return None
    rest = _WITH_REST.match(text, found.end())
    end = start + len(text[start : rest.end() if rest else found.end()].rstrip("."))
    return end if any(c.isdigit() for c in text[after:end]) else None


@cache
def _rest_of(prefix: str) -> Any:
    letters, least = _RESTS[prefix]
    return bounded.compile(f"{letters}{{{least},}}")
