"""Lines that tell versions and the platform: `collect_env`, `transformers env`, framework banners, hand-made notes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import re2

from rca.events import EventBuilder
from rca.ingest.blocks.lines import add_system, claim, table_line, table_lines
from rca.ingest.logs.document import Document
from rca.ingest.settings.packages import package_name
from rca.ingest.tables.cells import whole

_VERSION = r"v?([0-9]+\.[0-9]+[A-Za-z0-9.+_-]*)"
_PACKAGES = (
    r"torch|pytorch|torchvision|torchaudio|torchtitan|torchtune|torchao|transformers|accelerate|deepspeed|vllm|sglang|"
    r"tokenizers|datasets|peft|trl|bitsandbytes|flash[-_]attn|xformers|triton|numpy|lightning|pytorch[-_]lightning|"
    r"onnxruntime(?:-gpu)?|onnx|tensorflow|jax|jaxlib|safetensors|huggingface[-_]hub|diffusers|timm|optimum|ray|"
    r"transformer[-_]engine|apex|megatron[-_]core|auto[-_]gptq|autoawq|llama[-_.]cpp|sentencepiece|scipy|pandas|wandb|"
    r"tensorrt(?:[-_]llm)?|nccl|cudnn|evaluate|unsloth|axolotl|fairseq|colossalai|nemo[-_]toolkit"
)
_REMARK = r"(?:\s*\(.*\))?[,.;]?"
_STARTED = rf"(?:{_PACKAGES})[ =/:]{{1,2}}v?[0-9]+\.[0-9]\S*"
_NAMED = re2.compile(rf"(?i)\b({_PACKAGES})[ =/:]{{1,2}}{_VERSION}")
_NAMED_VERSION = re2.compile(r"(\S+)")
_NOTHING = frozenset({"", "n/a", "none", "could not collect", "not installed", "unknown"})
_PYTORCH = {"pytorch": "torch", "huggingface-hub": "huggingface-hub", "llama.cpp": "llama-cpp"}


class Rule(NamedTuple):
    """One kind of line: its pattern and what it adds."""

    pattern: str
    add: Callable[[EventBuilder, Document, int, Any], None]
    alone: bool = True
    """Whether the line tells nothing else, so that no other parser needs to see it."""


def _package(name: str | None = None) -> Callable[[EventBuilder, Document, int, Any], None]:
    """Return what adds the package that a line names, or the one given; the last group is the version."""

    def add(out: EventBuilder, document: Document, line: int, match: Any) -> None:
        raw = package_name(name or match[1])
        version = match[match.re.groups].rstrip(".,;:)")
        attrs = {"origin": "banner", "installed": True}
        add_system(out, document, line, name=_PYTORCH.get(raw, raw), kind="package", text=version, attrs=attrs)

    return add


def _system(key: str) -> Callable[[EventBuilder, Document, int, Any], None]:
    """Return what adds `system.environment` with one key; the last group is its value."""

    def add(out: EventBuilder, document: Document, line: int, match: Any) -> None:
        value = str(match[match.re.groups]).strip()
        if value.lower() not in _NOTHING:
            add_system(out, document, line, name="system.environment", text=value, attrs={key: value[:300]})

    return add


def _several(out: EventBuilder, document: Document, line: int, match: Any) -> None:
    for name, version in _NAMED.findall(match.string):
        _package(name)(out, document, line, _NAMED_VERSION.search(version))


def _device(out: EventBuilder, document: Document, line: int, match: Any) -> None:
    attrs = {"index": whole(match[1]), "name": match[2].strip()}
    add_system(out, document, line, name="system.gpu", text=match[2].strip(), attrs=attrs)


def _capability(out: EventBuilder, document: Document, line: int, match: Any) -> None:
    value = f"{match[1]}.{match[2]}"
    add_system(out, document, line, name="system.environment", text=value, attrs={"compute_capability": value})


RULES = (
    Rule(rf"^[-\s`]*PyTorch version(?: \(GPU\?\))?`?\s*:\s*{_VERSION}", _package("torch")),
    Rule(rf"^\[(?:pip3?|conda)\]\s+([A-Za-z][\w.-]*)(?:==|\s+){_VERSION}", _package()),
    Rule(
        rf"(?i)^[-*\s`]*({_PACKAGES})`?(?:[ _]version)?`?\s*[:=]{{0,2}}\s*{_VERSION}(?:\s*\(.*\))?[,.;]?\s*$",
        _package(),
    ),
    Rule(
        rf"(?i)\b(?:{_PACKAGES})[ =/:]{{1,2}}v?[0-9]+\.[0-9]\S* .*\b(?:{_PACKAGES})[ =/:]{{1,2}}v?[0-9]+\.[0-9]",
        _several,
        alone=False,
    ),
    Rule(rf"(?i)^[-*\s`]*({_PACKAGES})\.__version__[\s:=]+{_VERSION}\s*$", _package()),
    Rule(rf"(?i)\b({_PACKAGES})(?: API server| library)? version:? {_VERSION}(?: available)?\.?\s*$", _package()),
    Rule(rf"(?i)\b(vllm) API server version {_VERSION}", _package()),
    Rule(r"Initializing (?:a V1|an) LLM engine \(v([0-9][\w.+]*)\)", _package("vllm"), alone=False),
    Rule(rf"\bNCCL version {_VERSION}\s*$", _package("nccl")),
    Rule(rf"DeepSpeed info: version={_VERSION}", _package("deepspeed")),
    Rule(r"^\s*CUDA used to build PyTorch\s*:\s*(\S.*)", _system("cuda_build")),
    Rule(r"^[-\s]*torch\.version\.cuda[\s:=]+'?([0-9]+\.[0-9]+|None)'?", _system("cuda_build")),
    Rule(r"^\s*ROCM used to build PyTorch\s*:\s*(\S.*)", _system("rocm_build")),
    Rule(r"^\s*CUDA runtime version\s*:\s*(\S.*)", _system("cuda_runtime")),
    Rule(r"^\s*Is CUDA available\s*:\s*(\S+)", _system("cuda_available")),
    Rule(r"(?i)^[-\s]*torch\.cuda\.is_available\(\)[\s:=]+(True|False)", _system("cuda_available")),
    Rule(r"^\s*Nvidia driver version\s*:\s*([0-9][\w.]*)", _system("driver")),
    Rule(r"(?i)^\s*(?:nvidia )?driver(?: version)?[\s:=]+([0-9]{3}\.[0-9][\w.]*)", _system("driver")),
    Rule(r"(?i)^\s*driver[\s:=]+[0-9]{3}\.[\w.]+ \(CUDA ([0-9]+\.[0-9]+)\)", _system("driver_cuda")),
    Rule(r"^[-\s]*PyTorch version \(GPU\?\)\s*:\s*\S+ \((True|False)\)", _system("cuda_available"), alone=False),
    Rule(r"^[-\s]*GPU type\s*:\s*(\S.*)", _system("gpu_name")),
    Rule(r"^\s*cuDNN version\s*:\s*(\S.*)", _system("cudnn")),
    Rule(r"^[-\s]*Python version\s*:\s*([0-9]+\.[0-9]+\S*)", _system("python")),
    Rule(r"^\s*Python platform\s*:\s*(\S.*)", _system("platform")),
    Rule(r"^[-\s]*Platform\s*:\s*(Linux\S*|macOS\S*|Windows\S*)", _system("platform")),
    Rule(r"^\s*OS\s*:\s*(\S.*\(.*\))", _system("os")),
    Rule(r"^\s*GCC version\s*:\s*(\S.*)", _system("gcc")),
    Rule(r"^\s*Libc version\s*:\s*(\S.*)", _system("libc")),
    Rule(
        r"^\s*(?:GPU models and configuration: )?GPU (\d{1,3})\s?: "
        r"((?:NVIDIA|Tesla|GeForce|Quadro|AMD|A100|H100|H200|B200|RTX)[^(\n]*)",
        _device,
    ),
    Rule(r"torch\.cuda\.get_arch_list\(\)[\s:=]*(\[[^\]]*\])", _system("arch_list")),
    Rule(r"torch\.cuda\.get_device_capability\([^)]*\)[\s:=]*\((\d+), (\d+)\)", _capability),
    Rule(r"torch\.cuda\.get_device_name\([^)]*\)[\s:=]*'?([^'\n]+)", _system("gpu_name")),
    Rule(r"torch\.cuda\.device_count\(\)[\s:=]*(\d+)", _system("gpu_count")),
    Rule(r"^\s*ldd \(.*\) ([0-9]+\.[0-9]+)", _system("libc")),
)
_COMPILED = tuple((re2.compile(rule.pattern), rule) for rule in RULES)


_LIBRARY = re2.compile(r"\s*\[(?:pip3?|conda)\]")
_FAILURE = re2.compile(r"\s*(?:Traceback|[\w.]*(?:Error|Exception|Warning|Interrupt)\b)")
_REPORT_LINE = re2.compile(r"\s*(?:$|[A-Za-z][^:]{0,60}:|\[(?:pip3?|conda)\]|/|=+|-|\*|GPU |Collecting environment)")


class CollectEnvParser:
    """Reads the whole report of `collect_env` (PyTorch, vLLM), so that no other parser takes its lines."""

    name = "collect_env"
    triggers: tuple[str, ...] = (r"^Collecting environment information", r"^PyTorch version\s*: ")

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Apply the rules to every line of the report."""
        before, end = len(out), line
        libraries = False
        for place, text in table_lines(document, line, most=400):
            listed = _LIBRARY.match(text) is not None
            if not _REPORT_LINE.match(text) or _FAILURE.match(text) or (libraries and not listed):
                break
            libraries = libraries or listed
            _apply(out, document, place, text)
            end = place + 1 if text.strip() else end
        return claim(document, line, end) if len(out) > before else line


def _apply(out: EventBuilder, document: Document, line: int, text: str) -> bool:
    """Add what a line tells by every rule that fits; return whether it tells nothing else."""
    alone = False
    for pattern, rule in _COMPILED:
        if (match := pattern.search(text)) is not None:
            rule.add(out, document, line, match)
            alone = alone or rule.alone
    return alone


class EnvironmentParser:
    """Adds packages and `system.environment` events for lines that tell versions."""

    name = "environment"
    triggers: tuple[str, ...] = tuple(rule.pattern for rule in RULES)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the one line; every rule that fits adds its event."""
        return claim(document, line, line + 1) if _apply(out, document, line, table_line(document, line)) else line
