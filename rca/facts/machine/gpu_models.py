"""Compute capability by device name, and which binaries run on which capability."""

from __future__ import annotations

import re

_CAPABILITIES: tuple[tuple[str, str], ...] = (
    (r"\bB300\b|\bGB300\b", "10.3"),
    (r"\bB200\b|\bGB200\b|\bB100\b", "10.0"),
    (r"\bRTX (?:PRO )?(?:50[5-9]0|6000 Blackwell|5000 Blackwell|4500 Blackwell|4000 Blackwell)|Blackwell", "12.0"),
    (r"\bGB10\b", "12.1"),
    (r"\bH100\b|\bH200\b|\bH800\b|\bH20\b|\bGH200\b", "9.0"),
    (r"\bL4\b|\bL40S?\b|\bL20\b|\bRTX 40[5-9]0|\bRTX [4-6]000 (?:SFF )?Ada", "8.9"),
    (r"\bA100\b|\bA800\b|\bA30\b", "8.0"),
    (r"\bA10G?\b|\bA16\b|\bA2\b|\bA40\b|\bRTX A\d{3,4}\b|\bRTX 30[5-9]0", "8.6"),
    (r"\bOrin\b", "8.7"),
    (r"\bT4\b|\bRTX 20[6-8]0|\bTITAN RTX\b|\bQuadro RTX\b|\bGTX 16[5-6]0", "7.5"),
    (r"\bV100\b|\bTITAN V\b", "7.0"),
    (r"\bP100\b", "6.0"),
    (r"\bP40\b|\bP4\b|\bGTX 10[5-8]0|\bTITAN X", "6.1"),
    (r"\bM60\b|\bM40\b|\bGTX 9[5-8]0", "5.2"),
    (r"\bK80\b", "3.7"),
)
"""Device names and compute capabilities: NVIDIA, CUDA GPU compute capability list."""
_COMPILED = tuple((re.compile(pattern), capability) for pattern, capability in _CAPABILITIES)
_ARCH = re.compile(r"(sm|compute)_([0-9]{2,3})[af]?")
_LONGEST_NAME = 120


def capability_of(name: str) -> str | None:
    """Return the compute capability of a device name (`NVIDIA A100-SXM4-80GB` -> `8.0`), or None."""
    text = name[:_LONGEST_NAME]
    return next((capability for pattern, capability in _COMPILED if pattern.search(text)), None)


def runs_on(arch_list: str, capability: str) -> bool | None:
    """Say whether a build for `sm_80 sm_86 compute_90 ...` runs on a device; None where the list names nothing.

    Machine code runs on the same major version from its minor version on; `compute_` code is compiled for any later
    device (CUDA C++ programming guide, binary and PTX compatibility).
    """
    major, minor = (int(part) for part in capability.split("."))
    found = _ARCH.findall(arch_list[:2000])
    if not found:
        return None
    for kind, digits in found:
        built_major, built_minor = int(digits[:-1]), int(digits[-1])
        if kind == "sm" and built_major == major and built_minor <= minor:
            return True
        if kind == "compute" and (built_major, built_minor) <= (major, minor):
            return True
    return False
