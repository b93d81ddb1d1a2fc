"""Load a model folder and generate; the folder or the settings may be spoiled before."""

from __future__ import annotations

import argparse
import json
import logging
import os
import time
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

log = logging.getLogger("generate")
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize {}\n"


def build(folder: Path, arguments: argparse.Namespace) -> None:
    """Write a tiny model in several shards, as a download would leave it."""
    torch.manual_seed(arguments.seed)
    if arguments.architecture == "gpt2":
        small = GPT2Config(
            vocab_size=512, n_embd=64, n_layer=4, n_head=4, n_positions=512, bos_token_id=1, eos_token_id=2
        )
        GPT2LMHeadModel(small).save_pretrained(folder, max_shard_size="250KB")
        return
    config = LlamaConfig(
        vocab_size=512, hidden_size=64, intermediate_size=128, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=4, max_position_embeddings=512, bos_token_id=1, eos_token_id=2, pad_token_id=0,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder, max_shard_size="250KB")


def damage(folder: Path, arguments: argparse.Namespace) -> None:
    """What happens to model folders between two machines."""
    shards = sorted(folder.glob("model-*.safetensors"))
    chosen = shards[min(arguments.shard, len(shards) - 1)]
    if arguments.truncate_shard:
        os.truncate(chosen, int(chosen.stat().st_size * arguments.truncate_shard))
    if arguments.lose_shard:
        chosen.unlink()
    if arguments.pointer:
        chosen.write_text(POINTER.format("4e" * 32, chosen.stat().st_size))
    if arguments.prefix:
        index = folder / "model.safetensors.index.json"
        described = json.loads(index.read_text())
        described["weight_map"] = {arguments.prefix + key: file for key, file in described["weight_map"].items()}
        index.write_text(json.dumps(described, indent=2))
        for shard in shards:
            weights = {arguments.prefix + key: value for key, value in load_file(shard).items()}
            save_file(weights, shard, metadata={"format": "pt"})
    if arguments.resize:
        config = json.loads((folder / "config.json").read_text())
        config["vocab_size"] += arguments.resize
        (folder / "config.json").write_text(json.dumps(config, indent=2))


def tokenizer(folder: Path, size: int) -> None:
    """Write the word list of another model beside the weights."""
    words = {f"w{number}": number for number in range(size)}
    document = {"version": "1.0", "added_tokens": [], "model": {"type": "WordLevel", "vocab": words, "unk_token": "w3"}}
    (folder / "tokenizer.json").write_text(json.dumps(document))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))


def settings(arguments: argparse.Namespace) -> dict[str, object]:
    """Return what generate() is called with."""
    chosen: dict[str, object] = {"max_new_tokens": arguments.max_new_tokens, "do_sample": bool(arguments.temperature),
                                 "use_cache": not arguments.no_cache}  # fmt: skip
    if arguments.temperature:
        chosen |= {"temperature": arguments.temperature, "top_p": arguments.top_p}
    if arguments.repetition_penalty:
        chosen["repetition_penalty"] = arguments.repetition_penalty
    if arguments.num_beams > 1:
        chosen["num_beams"] = arguments.num_beams
    return chosen


def answer(model: torch.nn.Module, arguments: argparse.Namespace) -> None:
    """Answer requests one after the other."""
    chosen = settings(arguments)
    log.info("generation settings: %s", json.dumps(chosen))
    with open("generation_args.json", "w") as file:
        json.dump(chosen, file, indent=2)
    limit = model.config.max_position_embeddings
    lengths = [int(part) for part in arguments.prompt_tokens.split(",")]
    for request in range(arguments.requests):
        length = lengths[request % len(lengths)]
        if length + arguments.max_new_tokens > limit:
            raise ValueError(f"This model's maximum context length is {limit} tokens. However, you requested "
                             f"{length + arguments.max_new_tokens} tokens ({length} in the prompt, "
                             f"{arguments.max_new_tokens} for the completion).")  # fmt: skip
        prompt = torch.randint(3, 512 + arguments.added_tokens, (1, length))
        begun = time.perf_counter()
        output = model.generate(prompt, **chosen)
        seconds, new = time.perf_counter() - begun, output.shape[1] - length
        log.info("request %d prompt_tokens %d new_tokens %d latency %.3f s", request, length, new, seconds)
    log.info("run finished, all %d requests answered", arguments.requests)


def score(model: torch.nn.Module, arguments: argparse.Namespace) -> None:
    """Give every text its score several times."""
    generator = torch.Generator().manual_seed(arguments.seed)
    texts = torch.randint(3, 512, (4, 24), generator=generator)
    with open("scores.jsonl", "w") as file, torch.no_grad():
        for attempt in range(arguments.score_repeats):
            for number, text in enumerate(texts):
                chances = torch.softmax(model(input_ids=text[None]).logits[0, -1], dim=-1)
                value = chances[int(text[0])].item()
                file.write(json.dumps({"sample_id": f"text-{number}", "score": value}) + "\n")
                log.info("sample text-%d attempt %d score %.5f", number, attempt, value)
    log.info("run finished, %d texts scored", len(texts))


def run(arguments: argparse.Namespace) -> None:
    """Load, then answer a few requests."""
    folder = Path("model")
    log.info("loading model from %s", folder)
    more = {"attn_pdrop": 0.1} if arguments.train_mode and arguments.architecture == "gpt2" else {}
    model = AutoModelForCausalLM.from_pretrained(folder, **more)
    if arguments.train_mode:
        model.train()
        log.info("model ready (training=%s)", model.training)
    else:
        model.eval()
    log.info("model loaded, %s parameters", f"{model.num_parameters():,}")
    if arguments.score_repeats:
        score(model, arguments)
    else:
        answer(model, arguments)


def main() -> None:
    """Run the job as a program."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    parser = argparse.ArgumentParser()
    parser.add_argument("--architecture", choices=["llama", "gpt2"], default="llama")
    for name, usual in (("requests", 8), ("max-new-tokens", 32), ("shard", 1), ("added-tokens", 0), ("resize", 0),
                        ("tokenizer-words", 0), ("num-beams", 1), ("score-repeats", 0), ("seed", 0)):  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=usual)
    for name, share in (("truncate-shard", 0.0), ("temperature", 0.0), ("top-p", 1.0), ("repetition-penalty", 0.0)):
        parser.add_argument(f"--{name}", type=float, default=share)
    for name in ("train-mode", "no-cache", "lose-shard", "pointer"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--prefix", default="")
    parser.add_argument("--prompt-tokens", default="16")
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    build(Path("model"), arguments)
    damage(Path("model"), arguments)
    if arguments.tokenizer_words:
        tokenizer(Path("model"), arguments.tokenizer_words)
    run(arguments)


if __name__ == "__main__":
    main()
