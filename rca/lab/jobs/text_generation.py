"""Load a model folder and generate; the folder may be damaged before it is loaded."""

from __future__ import annotations

import argparse
import logging
import os
import time
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

log = logging.getLogger("generate")


def build(folder: Path, seed: int) -> None:
    """Write a tiny model in several shards, as a download would leave it."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=512, hidden_size=64, intermediate_size=128, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=4, max_position_embeddings=512, bos_token_id=1, eos_token_id=2, pad_token_id=0,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder, max_shard_size="250KB")


def truncate(folder: Path, share: float) -> None:
    """Cut the second shard, as an interrupted copy does."""
    shard = sorted(folder.glob("model-*.safetensors"))[1]
    os.truncate(shard, int(shard.stat().st_size * share))


def generate(arguments: argparse.Namespace) -> None:
    """Load, then answer a few requests."""
    folder = Path("model")
    log.info("loading model from %s", folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    if not arguments.train_mode:
        model.eval()
    log.info("model loaded, %s parameters", f"{model.num_parameters():,}")
    for request in range(arguments.requests):
        prompt = torch.randint(3, 512 + arguments.added_tokens, (1, 16))
        begun = time.perf_counter()
        output = model.generate(prompt, max_new_tokens=32, do_sample=False, use_cache=not arguments.no_cache)
        seconds = time.perf_counter() - begun
        log.info("request %d prompt_tokens 16 new_tokens %d latency %.3f s", request, output.shape[1] - 16, seconds)
    log.info("all %d requests answered", arguments.requests)


def main() -> None:
    """Run the job as a program."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=8)
    parser.add_argument("--truncate-shard", type=float, default=0.0)
    parser.add_argument("--added-tokens", type=int, default=0)
    parser.add_argument("--train-mode", action="store_true")
    parser.add_argument("--no-cache", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    build(Path("model"), arguments.seed)
    if arguments.truncate_shard:
        truncate(Path("model"), arguments.truncate_shard)
    generate(arguments)


if __name__ == "__main__":
    main()
