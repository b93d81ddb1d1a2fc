"""Pre-train a tiny decoder on synthetic text; every way to spoil it is an option."""

from __future__ import annotations

import argparse
import json
import logging
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
from torch.utils.tensorboard import SummaryWriter
from transformers import LlamaConfig, LlamaForCausalLM

log = logging.getLogger("train")


class MarkovText(Dataset):
    """Sentences of an order-1 Markov chain, so that there is something to learn."""

    def __init__(self, count: int, length: int, vocabulary: int, seed: int) -> None:
        chain = np.random.default_rng(7)
        successors = chain.integers(0, vocabulary, size=(vocabulary, 4))
        generator = np.random.default_rng(seed)
        self.rows = np.zeros((count, length), dtype=np.int64)
        self.rows[:, 0] = generator.integers(0, vocabulary, size=count)
        for place in range(1, length):
            choice = generator.choice(4, p=[0.6, 0.2, 0.15, 0.05], size=count)
            self.rows[:, place] = successors[self.rows[:, place - 1], choice]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.from_numpy(self.rows[index])


def cross_entropy(logits: torch.Tensor, labels: torch.Tensor, *, handwritten: bool) -> torch.Tensor:
    """Mean loss of the next token; the handwritten form exponentiates without subtracting the maximum."""
    logits, labels = logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()
    if not handwritten:
        return torch.nn.functional.cross_entropy(logits.float(), labels)
    scores = (12.0 * logits).exp()
    return -(scores[torch.arange(len(labels)), labels] / scores.sum(-1)).log().mean()


def optimizer_for(model: torch.nn.Module, arguments: argparse.Namespace) -> torch.optim.Optimizer:
    """Return the optimizer over everything that requires a gradient."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if arguments.optimizer == "sgd":
        return torch.optim.SGD(parameters, lr=arguments.learning_rate, momentum=0.9)
    return torch.optim.AdamW(parameters, lr=arguments.learning_rate, weight_decay=arguments.weight_decay)


def evaluate(model: torch.nn.Module, batches: DataLoader) -> float:
    """Return the mean loss over held-out text."""
    model.eval()
    with torch.no_grad():
        losses = [cross_entropy(model(input_ids=batch).logits, batch, handwritten=False).item() for batch in batches]
    model.train()
    return float(np.mean(losses))


def train(arguments: argparse.Namespace) -> None:
    """Train, log, evaluate."""
    torch.manual_seed(arguments.seed)
    config = LlamaConfig(
        vocab_size=arguments.vocab_size,
        hidden_size=arguments.hidden_size,
        intermediate_size=arguments.hidden_size * 3,
        num_hidden_layers=arguments.layers,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=256,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
    )
    model = LlamaForCausalLM(config)
    config.save_pretrained(".")
    if arguments.freeze:
        for name, parameter in model.named_parameters():
            parameter.requires_grad = name == "model.norm.weight"
    trainable = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    log.info(
        "torch %s, %s parameters, %s trainable", torch.__version__, f"{model.num_parameters():,}", f"{trainable:,}"
    )
    source_vocabulary = arguments.vocab_size + arguments.added_tokens
    text = MarkovText(arguments.samples, arguments.seq_length, source_vocabulary, arguments.seed)
    held_out = DataLoader(MarkovText(64, arguments.seq_length, source_vocabulary, arguments.seed + 1), batch_size=32)
    batches = DataLoader(text, batch_size=arguments.batch_size, shuffle=True, drop_last=True)
    optimizer = optimizer_for(model, arguments)
    half = arguments.precision == "fp16"
    scaler = torch.amp.GradScaler("cpu", enabled=half)
    writer = SummaryWriter("tensorboard")
    stream = iter(batches)
    log.info("training for %d steps, batch size %d, %s, learning rate %g", arguments.max_steps, arguments.batch_size,
             arguments.precision, arguments.learning_rate)  # fmt: skip
    for step in range(1, arguments.max_steps + 1):
        begun = time.perf_counter()
        batch = next(stream, None)
        if batch is None:
            stream = iter(batches)
            batch = next(stream)
        rate = arguments.learning_rate * min(1.0, step / max(1, arguments.warmup_steps))
        for group in optimizer.param_groups:
            group["lr"] = rate
        with torch.autocast("cpu", dtype=torch.float16, enabled=half):
            loss = cross_entropy(model(input_ids=batch).logits, batch, handwritten=arguments.handwritten_loss)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), arguments.max_grad_norm or float("inf"))
        scaler.step(optimizer)
        scaler.update()
        milliseconds = 1000 * (time.perf_counter() - begun)
        writer.add_scalar("train/loss", loss.item(), step)
        writer.add_scalar("train/grad_norm", norm.item(), step)
        writer.add_scalar("train/learning_rate", rate, step)
        if step % arguments.logging_steps == 0 or step == 1:
            scale = f" | loss_scale {scaler.get_scale():g}" if half else ""
            log.info("step %d/%d | loss %.4f | grad_norm %.4g | lr %.3e%s | %.1f ms/step", step, arguments.max_steps,
                     loss.item(), norm.item(), rate, scale, milliseconds)  # fmt: skip
        if arguments.eval_steps and step % arguments.eval_steps == 0:
            value = evaluate(model, held_out)
            writer.add_scalar("eval/loss", value, step)
            log.info("step %d/%d | eval_loss %.4f", step, arguments.max_steps, value)
    writer.close()
    model.save_pretrained("checkpoint")
    log.info("saved checkpoint to checkpoint")
    log.info("training finished after %d steps", arguments.max_steps)


def parse() -> argparse.Namespace:
    """Read the options."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--learning-rate", type=float, default=3e-3)
    parser.add_argument("--optimizer", choices=["adamw", "sgd"], default="adamw")
    parser.add_argument("--weight-decay", type=float, default=0.0)
    parser.add_argument("--warmup-steps", type=int, default=0)
    parser.add_argument("--max-steps", type=int, default=200)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--seq-length", type=int, default=32)
    parser.add_argument("--hidden-size", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--vocab-size", type=int, default=256)
    parser.add_argument("--samples", type=int, default=2048)
    parser.add_argument("--precision", choices=["fp32", "fp16"], default="fp32")
    parser.add_argument("--max-grad-norm", type=float, default=0.0)
    parser.add_argument("--logging-steps", type=int, default=5)
    parser.add_argument("--eval-steps", type=int, default=0)
    parser.add_argument("--handwritten-loss", action="store_true")
    parser.add_argument("--freeze", action="store_true")
    parser.add_argument("--added-tokens", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main() -> None:
    """Run the job as a program."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    arguments = parse()
    with open("training_args.json", "w") as file:
        json.dump(vars(arguments), file, indent=2)
    train(arguments)


if __name__ == "__main__":
    main()
