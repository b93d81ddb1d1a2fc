"""Lines in which inference servers account for a request or for themselves: lengths, latency, speed, cache use."""

from __future__ import annotations

import re

import re2

from rca.events import EventBuilder
from rca.ingest.blocks.lines import claim, place_of, table_line
from rca.ingest.logs.document import Document
from rca.ingest.tables.cells import number

_NUMBER = r"([0-9]+(?:\.[0-9]+)?)"
_PAIR = re2.compile(rf"\b([A-Za-z][\w./]*)[=:]\s?{_NUMBER}\s?(ms|s|tokens|GiB|GB|%)?\b")
_SPACED = re2.compile(rf"\b([a-z][a-z_]*)[ \t]{_NUMBER}[ \t]?(ms|s|tokens)?\b")
"""`prompt 512 new_tokens 150 time 5.0 s`, read only where the length of the answer is named as tokens."""
_BARE = {"in": "prompt_tokens", "out": "new_tokens", "prompt": "prompt_tokens"}
"""Keys that mean lengths only beside a time, or where no plainer key does."""
_PROMPT_KEYS = {"prompt_tokens", "prompt_len", "input", "input_tokens", "input_len", "in_tokens"}
_OUTPUT_KEYS = {
    "new",
    "new_tokens",
    "completion",
    "completion_tokens",
    "output",
    "output_tokens",
    "output_len",
    "generated",
    "generated_tokens",
    "gen_tokens",
    "out_tokens",
}
_LATENCY_KEYS = {"time", "total", "latency", "e2e", "elapsed", "duration", "total_time", "took", "latency_s", "e2e_s"}
_FIRST_KEYS = {"ttft", "first_token", "prefill"}
_OUTPUT_WORDS = rf"(?:{'|'.join(sorted((*_OUTPUT_KEYS, 'out')))})"
_PROMPT_WORDS = rf"(?:{'|'.join(sorted((*_PROMPT_KEYS, 'in', 'prompt')))})"
_SPACED_OUTPUT = rf"(?:{'|'.join(sorted(key for key in _OUTPUT_KEYS if 'token' in key))})"
_NAMED = re2.compile(r"\bmodel[=:]\s?[\"']?([\w./-]{1,60})")
_FIRST_PAIR = re2.compile(r"[A-Za-z][\w./]*[=:]\s?[\"'\d]")
_BLOCKS = re2.compile(r"(?i)\b(?:ms|s|time|latency)(?:/| per |_per_)tok(?:en)?\b[^\[\]]{0,40}\[([0-9., ]{5,400})\]")
"""Times per token of one block of a generation after the other."""
_OTHER_LENGTH = re2.compile(r"(?:prompt|input|context|history|sent).*tok|tok.*(?:prompt|input|context|history|sent)")
"""Further counts of the input, such as what a client sent; they keep their own names."""
_FINISH = re2.compile(r"\bfinish(?:ed)?(?:_reason)?[=:]\s?[\"']?([a-z_]{2,16})")
_DURATION = re2.compile(rf"(?:^|\s){_NUMBER}\s?(ms|s)\b")
_FEWEST_BLOCKS = 3
_LABEL = 60
_LENGTH_REASONS = {"length", "max_tokens", "max_length", "limit"}
_TIMINGS = re2.compile(
    rf"(prompt eval|generation eval|\beval) time\s*=\s*{_NUMBER} ms /\s*(\d+) (?:runs|tokens)"
    rf"\s*\(\s*{_NUMBER} ms per token"
)
_VLLM = re.compile(
    rf"Avg prompt throughput: {_NUMBER} tokens/s, Avg generation throughput: {_NUMBER} tokens/s, "
    rf"Running: (\d{{1,9}}) reqs(?:, Swapped: \d{{1,9}} reqs)?, (?:Waiting|Pending): (\d{{1,9}}) reqs, "
    rf"GPU KV cache usage: {_NUMBER}%"
)
"""A server prints it every ten seconds for weeks; `re` takes it apart in a third of the time of RE2."""


class RequestLineParser:
    """Adds prompt_tokens, new_tokens, latency_s and ms_per_token for a line that tells them of one request."""

    name = "request"
    triggers: tuple[str, ...] = (
        rf"\b{_PROMPT_WORDS}[=:]\s?\d+\b.*\b{_OUTPUT_WORDS}[=:]\s?\d+\b",
        rf"\b(?:prompt|{'|'.join(sorted(_PROMPT_KEYS))})[ \t]\d+\b.*\b{_SPACED_OUTPUT}[ \t]\d+\b",
    )

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read one line of key=value pairs."""
        text = table_line(document, line)[:2000]
        found = _figures(text)
        if not {"prompt_tokens", "new_tokens"} <= found.keys():
            return line
        if found.get("latency_s", 0) > 0 and found["new_tokens"] > 0:
            found["ms_per_token"] = 1000 * (found["latency_s"] - found.get("ttft_s", 0.0)) / found["new_tokens"]
        if (finish := _FINISH.search(text)) is not None:
            found["finished_by_length"] = float(finish[1] in _LENGTH_REASONS)
        if (blocks := _BLOCKS.search(text)) is not None:
            times = [float(part) for part in blocks[1].replace(",", " ").split() if number(part)]
            if len(times) >= _FEWEST_BLOCKS and times[0] > 0:
                found["token_time_growth"] = times[-1] / times[0]
        label = _label(text)
        add_request(out, document, line, found, attrs={"model": label} if label else None)
        return claim(document, line, line + 1)


def _label(text: str) -> str:
    """Return what stands in front of the first figure: the model that answered, without numbers of requests."""
    if (named := _NAMED.search(text)) is not None:
        return str(named[1])
    first = _FIRST_PAIR.search(text)
    head = "" if first is None else text[: first.start()].rstrip(" ,;:|")
    words = re2.split(r"[\[\]|:]", head)[-1].split()
    return " ".join(word for word in words[-4:] if sum(map(str.isdigit, word)) * 2 < len(word))[:_LABEL]


def _figures(text: str) -> dict[str, float]:
    found: dict[str, float] = {}
    bare: dict[str, float] = {}
    for key, figure, unit in _PAIR.findall(text) or _SPACED.findall(text):
        value, name = number(figure) or 0.0, key.lower()
        if name in _PROMPT_KEYS:
            found.setdefault("prompt_tokens", value)
        elif name in _OUTPUT_KEYS:
            found.setdefault("new_tokens", value)
        elif _OTHER_LENGTH.search(name) and not unit:
            found.setdefault(name, value)
        elif name in _BARE and not unit and value > 0:
            bare.setdefault(name, value)
        elif (name in _LATENCY_KEYS or name in _FIRST_KEYS) and unit in {"s", "ms", ""}:
            seconds = value / 1000 if unit == "ms" else value
            found.setdefault("latency_s" if name in _LATENCY_KEYS else "ttft_s", seconds)
    if "latency_s" not in found and (timed := _DURATION.findall(text)):
        found["latency_s"] = float(timed[-1][0]) / (1000 if timed[-1][1] == "ms" else 1)
    for name in ("in", "out", "prompt"):
        if name in bare and (name == "prompt" or "latency_s" in found):
            found.setdefault(_BARE[name], bare[name])
    return found


class LlamaTimingsParser:
    """Adds the time per token of llama.cpp's timing lines."""

    name = "llama.cpp timings"
    triggers: tuple[str, ...] = (r"\beval time\s*=\s*[\d.]+ ms /\s*\d+ (?:runs|tokens)",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read one timing line; the prompt's line tells the length of the prompt."""
        match = _TIMINGS.search(table_line(document, line))
        if match is None:
            return line
        if match[1] == "prompt eval":
            found = {"prompt_tokens": float(match[3]), "prefill_ms_per_token": float(match[4])}
        else:
            found = {"new_tokens": float(match[3]), "ms_per_token": float(match[4])}
        add_request(out, document, line, found)
        return claim(document, line, line + 1)


class VllmStatsParser:
    """Adds the throughput, queue and cache use that vLLM prints every ten seconds."""

    name = "vLLM statistics"
    triggers: tuple[str, ...] = (r"Avg prompt throughput: [\d.]+ tokens/s, Avg generation throughput",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read one line of statistics."""
        match = _VLLM.search(table_line(document, line))
        if match is None:
            return line
        names = ("prompt_throughput", "generation_throughput", "requests_running", "requests_waiting", "kv_cache_usage")
        found = dict(zip(names, map(float, match.groups()), strict=True))
        found["kv_cache_usage"] /= 100
        add_request(out, document, line, found)
        return claim(document, line, line + 1)


def add_request(
    out: EventBuilder,
    document: Document,
    line: int,
    found: dict[str, float],
    *,
    attrs: dict[str, str] | None = None,
) -> None:
    """Add the numbers of one request as metrics of inference; latencies in seconds."""
    place = place_of(document, line)
    for name, value in found.items():
        out.add(
            kind="metric",
            name=name,
            **place,
            phase="inference",
            value=value,
            unit={"latency_s": "s", "ttft_s": "s", "ms_per_token": "ms"}.get(name, ""),
            attrs=attrs,
        )
