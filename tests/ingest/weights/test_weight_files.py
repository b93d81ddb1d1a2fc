"""Weight files of every usual format, whole and broken; none of them is ever loaded."""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest

from rca.ingest.weights.gguf_files import MAX_METADATA
from rca.ingest.weights.weight_summary import Tensor, summarise, wrapper_prefix


def shard(tensors: dict[str, list[int]], *, size: int | None = None, dtype: str = "F32") -> bytes:
    """A safetensors file; `size` cuts or pads it."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, shape in tensors.items():
        begin = end
        count = 1
        for part in shape:
            count *= part
        end += 4 * count
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
    raw = json.dumps(header).encode()
    data = struct.pack("<Q", len(raw)) + raw + b"\0" * end
    return data if size is None else (data + b"\0" * 999)[:size] if size > 0 else data[:size]


WHOLE = shard({"model.embed_tokens.weight": [8, 4], "model.layers.1.mlp.weight": [4, 4], "lm_head.weight": [8, 4]})


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (WHOLE, "ok"),
        (WHOLE[:-10], "truncated"),
        (WHOLE + b"xx", "trailing_bytes"),
        (b"", "empty"),
        (b"\1\2\3", "too_short"),
        (struct.pack("<Q", 2**62) + b"{}", "header_too_large"),
        (struct.pack("<Q", 500) + b"{}", "header_incomplete"),
        (struct.pack("<Q", 4) + b"nope", "header_invalid"),
        (struct.pack("<Q", 12) + b'{"a": [1,2]}', "header_invalid"),
        (struct.pack("<Q", 6000) + b"[" * 6000, "header_invalid"),
        (b"<html>not found</html>" * 9, "header_too_large"),
    ],
)
def test_a_safetensors_file_is_described_whatever_its_state(read: Any, data: bytes, status: str) -> None:
    event = read("model/model.safetensors", data).one("weights.shard")
    assert event.attr("status") == status
    assert event.severity == ("info" if status == "ok" else "error")
    assert bool(event.attr("loader_says")) == (status != "ok"), "the library and our reading of the header agree"


def test_a_header_tells_counts_shapes_and_prefix(read: Any) -> None:
    data = shard({"_orig_mod.model.embed_tokens.weight": [8, 4], "_orig_mod.model.layers.3.x": [0, 4]})
    event = read("model.safetensors", data).one("weights.shard")
    assert event.attr("embedding_shape") == [8, 4]
    assert (event.attr("layers"), event.attr("parameters"), event.attr("zero_size_tensors")) == (4, 32, 1)
    assert event.attr("key_prefix") == "_orig_mod."


@pytest.mark.parametrize(
    ("names", "prefix"),
    [
        (["module.a", "module.b"], "module."),
        (["base_model.model.x.lora_A", "base_model.model.y"], "base_model.model."),
        (["model._orig_mod.a", "model._orig_mod.b"], "_orig_mod."),
        (["model.layers.0.a", "model.norm"], None),
        (["module.a", "b", "c"], None),
        ([], None),
    ],
)
def test_wrapper_prefixes(names: list[str], prefix: str | None) -> None:
    assert wrapper_prefix(names) == prefix


def test_a_summary_of_nothing_is_empty() -> None:
    assert summarise([])["tensors"] == 0
    assert summarise([Tensor("x" * 10_000, "F32", (2, 2))])["sample"] == ["x" * 200]


INDEX = {
    "metadata": {"total_size": 100},
    "weight_map": {
        "model.embed_tokens.weight": "model-00001-of-00002.safetensors",
        "model.gone.weight": "model-00001-of-00002.safetensors",
        "model.far.weight": "model-00002-of-00002.safetensors",
    },
}


def test_an_index_is_held_against_its_folder(read: Any) -> None:
    found = read(
        "m/model.safetensors.index.json",
        INDEX,
        **{"m/model-00001-of-00002__safetensors": WHOLE, "m/old__safetensors": WHOLE},
    )
    event = found.one("weights.index")
    assert event.attr("missing_files") == ["model-00002-of-00002.safetensors"]
    assert (event.attr("missing_tensors"), event.attr("files"), event.attr("total_size")) == (1, 2, 100)
    assert event.attr("missing_keys") == ["model.gone.weight"]
    assert event.attr("unlisted_files") == ["old.safetensors"]


def test_an_index_with_paths_in_it_leads_nowhere(read: Any, tmp_path: Path) -> None:
    (tmp_path / "secret.safetensors").write_bytes(WHOLE)
    document = {
        "weight_map": {"a": "../secret.safetensors", "b": str(tmp_path / "secret.safetensors"), "c": "link.safetensors"}
    }
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "link.safetensors").symlink_to(tmp_path / "secret.safetensors")
    event = read("model.safetensors.index.json", document).one("weights.index")
    assert event.attr("missing_count") == 2
    assert event.attr("checked_files") == 0


@pytest.mark.parametrize("document", [{"weight_map": []}, {"weight_map": {"a": 1}}, [1], {}])
def test_what_is_no_index_is_skipped(read: Any, document: Any) -> None:
    assert read("model.safetensors.index.json", document).record.status == "skipped"


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize 4976698672\n"


@pytest.mark.parametrize("name", ["model/model.safetensors", "tokenizer.model", "pytorch_model.bin", "config.json"])
def test_a_pointer_is_told_whatever_it_stands_for(read: Any, name: str) -> None:
    event = read(name, POINTER).one("weights.lfs_pointer")
    assert (event.attr("expected_size"), event.attr("size")) == (4976698672, len(POINTER))


class _Owned:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.marker,))


def archive(pickled: bytes, *, name: str = "archive/data.pkl") -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        file.writestr(name, pickled)
        file.writestr("archive/version", "3\n")
    return stream.getvalue()


def test_a_torch_archive_tells_names_shapes_and_prefix_without_loading(read: Any, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.ModuleDict({"embed_tokens": torch.nn.Embedding(16, 4), "head": torch.nn.Linear(4, 16)})
    torch.save({"state_dict": {f"module.{key}": item for key, item in model.state_dict().items()}}, tmp_path / "a.pt")
    event = read("ckpt/last.pt", (tmp_path / "a.pt").read_bytes()).one("weights.checkpoint")
    assert (event.attr("format"), event.attr("status"), event.attr("key_prefix")) == ("torch_zip", "ok", "module.")
    assert event.attr("embedding_shape") == [16, 4]
    assert event.attr("parameters") == 16 * 4 + 16 * 4 + 16
    assert event.attr("unusual_calls") is None
    half = read("ckpt/half.pt", (tmp_path / "a.pt").read_bytes()[:-300]).one("weights.checkpoint")
    assert (half.attr("status"), half.severity) == ("truncated", "error")


@pytest.mark.parametrize("suffix", ["pt", "bin", "pkl"])
def test_a_pickle_that_would_run_code_is_never_loaded(read: Any, tmp_path: Path, suffix: str) -> None:
    marker = tmp_path / "owned"
    evil = pickle.dumps(_Owned(marker))
    event = read(f"x.{suffix}", evil).one("weights.checkpoint")
    assert (event.attr("format"), event.attr("status")) == ("pickle", "not_read")
    inside = read(f"y.{suffix}", archive(evil)).one("weights.checkpoint")
    assert any("Path" in call or "touch" in call or "getattr" in call for call in inside.attr("unusual_calls"))
    assert not marker.exists()


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"", "empty"),
        (b"PK\x03\x04" + b"\0" * 50, "truncated"),
        (archive(b"\x80\x02garbage\xff\xff"), "ok"),
        (archive(b"x", name="other"), "ok"),
        (b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.", "not_read"),
        (b"PK\x03\x04" + b"\0" * 50 + b"PK\x05\x06" + b"\0" * 8 + b"\xff\xff\xff\x7f" + b"\0" * 6, "not_read"),
    ],
)
def test_torch_files_of_every_state(read: Any, data: bytes, status: str) -> None:
    assert read("model.pt", data).one("weights.checkpoint").attr("status") == status


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def gguf(pairs: list[bytes], tensors: list[bytes] = []) -> bytes:  # noqa: B006 - never changed
    return b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs)) + b"".join(pairs) + b"".join(tensors) + b"\0" * 64


PAIRS = [
    text("general.architecture") + struct.pack("<I", 8) + text("llama"),
    text("tokenizer.ggml.model") + struct.pack("<I", 8) + text("gpt2"),
    text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("b"),
    text("llama.context_length") + struct.pack("<II", 4, 8192),
    text("x.scores") + struct.pack("<IIQ", 9, 6, 3) + b"\0" * 12,
]
TENSORS = [text("token_embd.weight") + struct.pack("<IQQIQ", 2, 64, 512, 8, 0)]


def test_a_gguf_head_tells_metadata_and_shapes(read: Any) -> None:
    found = read("model.gguf", gguf(PAIRS, TENSORS))
    event = found.one("weights.gguf")
    assert (event.attr("status"), event.attr("tokenizer_model"), event.attr("vocabulary")) == ("ok", "gpt2", 2)
    assert event.attr("pre_tokenizer") is None
    assert event.attr("embedding_shape") == [512, 64]
    assert found.config()["llama.context_length"] == 8192


@pytest.mark.parametrize(
    "data",
    [
        gguf(PAIRS, TENSORS)[:100],
        gguf([text("a") + struct.pack("<IQ", 8, 2**60)]),
        gguf([text("a") + struct.pack("<IIQ", 9, 8, 2**60)]),
        gguf([text("a") + struct.pack("<IIQ", 9, 4, 2**60)]),
        gguf([text("a") + struct.pack("<I", 99)]),
        gguf([text("a") + struct.pack("<IIQ", 9, 9, 5)]),
        b"GGUF" + struct.pack("<IQQ", 3, 2**63, 2**63),
    ],
)
def test_a_broken_gguf_is_described(read: Any, data: bytes) -> None:
    assert read("model.gguf", data).one("weights.gguf").attr("status") == "header_incomplete"
    assert len(data) < MAX_METADATA


def test_what_only_has_the_name_of_a_gguf_is_skipped(read: Any) -> None:
    assert "magic" in read("model.gguf", b"hello").record.why


def test_a_manifest_is_held_against_the_files_beside_it(read: Any, tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(b"x")
    good, bad = hashlib.sha256(b"good").hexdigest(), hashlib.sha256(b"other").hexdigest()
    text = f"{good}  good__bin\n{bad} *sub/bad__bin\n{good}  gone.bin\n{good}  ../outside\n{good}  link.bin\n".replace(
        "__", "."
    )
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "link.bin").symlink_to(tmp_path / "outside")
    event = read("SHA256SUMS", text, good__bin=b"good", **{"sub/bad__bin": b"bad"}).one("weights.manifest")
    assert event.attr("mismatched") == ["sub/bad.bin"]
    assert event.attr("missing") == ["gone.bin", "../outside", "link.bin"]
    assert (event.attr("compared"), event.value, event.severity) == (2, 1.0, "error")


def test_tagged_checksums_and_paths_from_elsewhere_are_found_by_name(read: Any) -> None:
    digest = hashlib.md5(b"good", usedforsecurity=False).hexdigest()
    event = read("checksums.txt", f"MD5 (/data/models/good.bin) = {digest}\n", good__bin=b"good").one(
        "weights.manifest"
    )
    assert (event.attr("compared"), event.attr("mismatched_count")) == (1, 0)


def test_an_ordinary_text_is_no_manifest(read: Any) -> None:
    assert read("notes.txt", "a1b2c3 commit message\n" * 3).record.kind == "log"


@pytest.mark.parametrize("shape", [[9] * 5000, [2**40, 2**40], [-1, 4], [2**64]])
def test_a_shape_that_no_tensor_has_is_a_broken_header(read: Any, shape: list[int]) -> None:
    header = json.dumps({"w": {"dtype": "F32", "shape": shape, "data_offsets": [0, 4]}}).encode()
    event = read("model.safetensors", struct.pack("<Q", len(header)) + header + b"\0" * 4).one("weights.shard")
    assert event.attr("status") == "header_invalid"


@pytest.mark.parametrize("name", ["tokenizer.json", "config.json", "out/special_tokens_map.json"])
def test_a_broken_file_of_a_model_is_told(read: Any, name: str) -> None:
    found = read(name, '{"version": "1.0", "model": {"vocab": {"a": 0,')
    event = found.one("model.file")
    assert (event.attr("status"), event.severity, found.record.status) == ("broken", "error", "read")
    assert "not complete JSON" in found.record.warnings[0]
