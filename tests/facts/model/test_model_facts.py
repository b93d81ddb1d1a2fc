"""Facts about model folders, from files that really lie there."""

from __future__ import annotations

import hashlib
import json
import struct
from typing import Any

import pytest

CONFIG = {"model_type": "llama", "architectures": ["X"], "vocab_size": 8, "hidden_size": 4, "num_hidden_layers": 2,
          "eos_token_id": 2, "pad_token_id": 0, "use_cache": True}  # fmt: skip
TENSORS = {"model.embed_tokens.weight": [8, 4], "model.layers.0.a.weight": [4, 4], "model.layers.1.a.weight": [4, 4]}
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "a" * 64 + "\nsize 99999\n"


def shard(tensors: dict[str, list[int]]) -> bytes:
    header: dict[str, Any] = {}
    end = 0
    for name, (rows, *rest) in tensors.items():
        size = 4 * rows * (rest[0] if rest else 1)
        header[name] = {"dtype": "F32", "shape": [rows, *rest], "data_offsets": [end, end + size]}
        end += size
    raw = json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + b"\0" * end


def tokenizer(highest: int, *, added: int | None = None) -> dict[str, Any]:
    vocabulary = {f"t{index}": index for index in range(highest + 1)}
    extra = [] if added is None else [{"id": added, "content": "<|x|>", "special": True}]
    return {"version": "1.0", "added_tokens": extra, "model": {"type": "BPE", "vocab": vocabulary, "merges": ["a b"]}}


def names(count: int) -> list[str]:
    return [f"m/model-{index:05d}-of-{count:05d}.safetensors" for index in range(1, count + 1)]


def test_a_whole_model_has_nothing_wrong(facts_of: Any) -> None:
    found = facts_of({"m/config.json": CONFIG, "m/model.safetensors": shard(TENSORS), "m/tokenizer.json": tokenizer(7)})
    zero = ("lfs_pointers", "truncated_files", "zero_size_tensors", "shape_conflicts", "vocab_excess")
    assert {name: found[f"model.{name}"] for name in zero} == dict.fromkeys(zero, 0)
    assert "model.key_prefix" not in found
    assert "model.index_missing_files" not in found
    assert (found["model.vocab_rows"], found["model.vocab_tokenizer"]) == (8, 8)
    assert found["model.stored_parameters"] == 8 * 4 + 2 * 16
    assert found["model.use_cache_off"] is False


def index(files: list[str], lacking: str = "model.gone.weight") -> dict[str, Any]:
    short = [name.rsplit("/", 1)[-1] for name in files]
    return {"weight_map": {**dict.fromkeys(TENSORS, short[0]), lacking: short[-1]}}


def test_a_missing_shard_is_counted(facts_of: Any) -> None:
    first, second = names(2)
    found = facts_of({"m/model.safetensors.index.json": index([first, second]), first: shard(TENSORS)})
    assert found["model.index_missing_files"] == 1
    assert found["model.index_missing_keys"] == 0


def test_weights_that_were_not_copied_are_not_missing(facts_of: Any) -> None:
    found = facts_of({"m/model.safetensors.index.json": index(names(2))})
    assert "model.index_missing_files" not in found


def test_a_gap_in_the_numbering_shows_without_an_index(facts_of: Any) -> None:
    found = facts_of({names(3)[0]: shard(TENSORS), names(3)[2]: shard({"b": [2, 2]})})
    assert found["model.index_missing_files"] == 1
    assert "model.stored_parameters" not in found


def test_a_gap_shows_in_a_printed_listing(facts_of: Any) -> None:
    rows = "".join(
        f"-rw-r--r-- 1 a a {size} May  8 03:11 {name.rsplit('/', 1)[-1]}\n"
        for name, size in zip(names(3)[:2], ("4.9G", "0"), strict=True)
    )
    found = facts_of({"listing.txt": f"total 5G\n{rows}"})
    assert found["model.index_missing_files"] == 1
    assert found["model.truncated_files"] == 1


def test_a_key_that_its_shard_lacks(facts_of: Any) -> None:
    first, second = names(2)
    files = {
        "m/model.safetensors.index.json": index([first, second]),
        first: shard(TENSORS),
        second: shard({"b": [2, 2]}),
    }
    found = facts_of(files)
    assert (found["model.index_missing_files"], found["model.index_missing_keys"]) == (0, 1)


def test_pointers_and_cut_files(facts_of: Any) -> None:
    first, second = names(2)
    found = facts_of({first: POINTER, second: shard(TENSORS)[:-9]})
    assert (found["model.lfs_pointers"], found["model.truncated_files"]) == (1, 1)
    only = facts_of({"x/model.safetensors": POINTER})
    assert only["model.lfs_pointers"] == 2


@pytest.mark.parametrize(
    ("tensors", "config", "words"),
    [
        ({"model.embed_tokens.weight": [9, 4]}, {}, "9 rows and vocab_size is 8"),
        ({"model.embed_tokens.weight": [8, 6]}, {}, "6 wide and hidden_size is 4"),
        (
            {"bert.word_embeddings.weight": [8, 4], "classifier.weight": [3, 4]},
            {"id2label": {"0": "a", "1": "b"}},
            "3 outputs",
        ),
        ({"model.embed_tokens.weight": [8, 4], "model.layers.0.a": [1]}, {}, "1 layers and the config has 2"),
    ],
)
def test_sizes_that_contradict_the_config(facts_of: Any, tensors: Any, config: Any, words: str) -> None:
    found = facts_of({"m/config.json": {**CONFIG, **config}, "m/model.safetensors": shard(tensors)})
    assert found["model.shape_conflicts"] >= 1
    assert words in found["model.shape_conflict"]


def test_empty_tensors_and_wrappers(facts_of: Any) -> None:
    found = facts_of({"m/model.safetensors": shard({"module.a": [0, 4], "module.b": [2, 2]})})
    assert (found["model.zero_size_tensors"], found["model.key_prefix"]) == (1, "module.")


def test_checksums(facts_of: Any) -> None:
    digest = hashlib.sha256(b"what it should be").hexdigest()
    found = facts_of({"m/SHA256SUMS": f"{digest}  model.bin\n", "m/model.bin": b"something \0 else"})
    assert found["model.hash_mismatches"] == 1


@pytest.mark.parametrize(
    ("files", "excess"),
    [
        ({"m/tokenizer.json": tokenizer(7, added=11)}, 4),
        ({"m/tokenizer.json": tokenizer(7), "m/added_tokens.json": {"<a>": 8, "<b>": 9}}, 2),
        ({"m/tokenizer.json": tokenizer(3)}, 0),
        ({"tok/tokenizer.json": tokenizer(9)}, 2),
    ],
)
def test_ids_beyond_the_embedding(facts_of: Any, files: dict[str, Any], excess: int) -> None:
    assert facts_of({"m/config.json": CONFIG, **files})["model.vocab_excess"] == excess


@pytest.mark.parametrize(
    ("generation", "conflict"),
    [
        ({"eos_token_id": 2}, None),
        ({"eos_token_id": [7, 2]}, None),
        ({"eos_token_id": 7}, "says 7"),
        ({"eos_token_id": None}, None),
    ],
)
def test_end_of_sequence_ids_that_disagree(facts_of: Any, generation: dict[str, Any], conflict: str | None) -> None:
    found = facts_of({"m/config.json": CONFIG, "m/generation_config.json": {"_from_model_config": True, **generation}})
    told = found.get("model.special_token_conflict")
    assert (told is None) if conflict is None else conflict in told


def test_the_tokenizer_is_asked_for_ids_too(facts_of: Any) -> None:
    settings = {"tokenizer_class": "X", "eos_token": "<|x|>", "pad_token": "<|x|>"}
    found = facts_of(
        {"m/config.json": CONFIG, "m/tokenizer.json": tokenizer(7, added=6), "m/tokenizer_config.json": settings}
    )
    assert "tokenizer_config.json says 6" in found["model.special_token_conflict"]
    assert (found["model.no_pad_token"], found["model.pad_is_eos"]) == (False, True)


def test_no_padding_token(facts_of: Any) -> None:
    config = {key: value for key, value in CONFIG.items() if key != "pad_token_id"}
    found = facts_of(
        {"m/config.json": config, "m/tokenizer_config.json": {"tokenizer_class": "X", "eos_token": "</s>"}}
    )
    assert found["model.no_pad_token"] is True


@pytest.mark.parametrize("file", ["config.json", "generation_config.json"])
def test_the_cache_is_off_where_one_file_says_so(facts_of: Any, file: str) -> None:
    files: dict[str, Any] = {"m/config.json": CONFIG, "m/generation_config.json": {"_from_model_config": True}}
    files[f"m/{file}"] = {**files[f"m/{file}"], "use_cache": False}
    assert facts_of(files)["model.use_cache_off"] is True


def test_merges_and_gguf(facts_of: Any) -> None:
    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    pairs = [text("tokenizer.ggml.model") + struct.pack("<I", 8) + text("gpt2")]
    model = b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs)) + b"".join(pairs)
    found = facts_of({"m/tokenizer.json": tokenizer(7), "m/model.gguf": model})
    assert found["model.tokenizer_merges"] == "strings"
    assert found["model.gguf_no_pre_tokenizer"] is True


TEMPLATES = {
    "<|im_end|>": "{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] | trim + '<|im_end|>' }}",
    "<end_of_turn>": "{{ '<start_of_turn>' + role + '\\n' + m['content'] }}<end_of_turn>",
    "<|eot_id|>": "{{ header + message['content'] }}<|eot_id|>",
}


@pytest.mark.parametrize("token", TEMPLATES)
@pytest.mark.parametrize("agrees", [True, False])
def test_the_token_that_closes_a_turn(facts_of: Any, token: str, agrees: bool) -> None:
    tokenizer = {
        "eos_token": "</s>",
        "added_tokens_decoder": {"2": {"content": "</s>"}, "5": {"content": token}},
        "chat_template": TEMPLATES[token],
    }
    generation = {"eos_token_id": [2, 5] if agrees else 2, "max_length": 64}
    found = facts_of({"tokenizer_config.json": tokenizer, "generation_config.json": generation})
    assert ("model.turn_end_not_eos" in found) is not agrees


@pytest.mark.parametrize(("eos", "ids", "found"), [("<end>", 2, True), ("<turn>", 2, False), ("<end>", [2, 7], False)])
def test_a_turn_that_ends_with_another_token_than_the_text(facts_of: Any, eos: str, ids: Any, found: bool) -> None:
    """Without a table of ids, one id is taken for that of the token which the tokenizer names as its end."""
    template = "{% for m in messages %}<role>{{ m.role }}</role>{{ m.content }}<turn>{% endfor %}".replace(
        "turn", "|im_end|"
    )
    tokenizer = {"eos_token": eos.replace("turn", "|im_end|"), "chat_template": template}
    files = {"tokenizer_config.json": tokenizer, "generation_config.json": {"eos_token_id": ids}}
    assert ("model.turn_end_not_eos" in facts_of(files)) is found
