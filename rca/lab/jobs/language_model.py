"""Pre-train a tiny decoder on synthetic text; every way to spoil it is an option."""

from __future__ import annotations

import argparse
import json
import logging
import math
import resource
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
from torch.utils.tensorboard import SummaryWriter
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

log = logging.getLogger("train")


class MarkovText(Dataset):
    """Sentences of an order-1 Markov chain, so that there is something to learn."""

    def __init__(self, count: int, length: int, vocabulary: int, seed: int, noise: float = 0.0) -> None:
        chain = np.random.default_rng(7)
        successors = chain.integers(0, vocabulary, size=(vocabulary, 4))
        generator = np.random.default_rng(seed)
        self.rows = np.zeros((count, length), dtype=np.int64)
        self.rows[:, 0] = generator.integers(0, vocabulary, size=count)
        for place in range(1, length):
            choice = generator.choice(4, p=[0.6, 0.2, 0.15, 0.05], size=count)
            self.rows[:, place] = successors[self.rows[:, place - 1], choice]
        if noise:
            typos = generator.random(self.rows.shape) < noise
            self.rows[typos] = generator.integers(0, vocabulary, size=int(typos.sum()))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.from_numpy(self.rows[index])


def cross_entropy(logits: torch.Tensor, labels: torch.Tensor, *, handwritten: bool, shift: int = 1) -> torch.Tensor:
    """Mean loss of the next token; the handwritten form exponentiates without subtracting the maximum."""
    logits, labels = logits[:, :-shift].flatten(0, 1), labels[:, shift:].flatten()
    if not handwritten:
        return torch.nn.functional.cross_entropy(logits.float(), labels)
    scores = (12.0 * logits).exp()
    return -(scores[torch.arange(len(labels)), labels] / scores.sum(-1)).log().mean()


def network(arguments: argparse.Namespace) -> torch.nn.Module:
    """Build the decoder and write its configuration."""
    sizes = {"vocab_size": arguments.vocab_size, "bos_token_id": 1, "eos_token_id": 2}
    if arguments.init_std:
        sizes["initializer_range"] = arguments.init_std
    if arguments.architecture == "gpt2":
        config = GPT2Config(n_embd=arguments.hidden_size, n_inner=arguments.hidden_size * 3, n_layer=arguments.layers,
                            n_head=4, n_positions=256, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
                            **sizes)  # fmt: skip
        model = GPT2LMHeadModel(config)
    else:
        config = LlamaConfig(
            hidden_size=arguments.hidden_size,
            intermediate_size=arguments.hidden_size * 3,
            num_hidden_layers=arguments.layers,
            num_attention_heads=4,
            num_key_value_heads=4,
            max_position_embeddings=256,
            pad_token_id=0,
            **sizes,
        )
        model = LlamaForCausalLM(config)
    config.save_pretrained(".")
    for parameter in model.parameters() if arguments.own_init else ():
        if parameter.dim() == 2:
            torch.nn.init.normal_(parameter, std=arguments.own_init)
    if arguments.activation_gain:
        inner, outer = ("c_fc", "c_proj") if arguments.architecture == "gpt2" else ("up_proj", "down_proj")
        gain, last = arguments.activation_gain, [m for n, m in model.named_modules() if n.endswith("mlp")][-1]
        getattr(last, inner).register_forward_hook(lambda _module, _inputs, output: output * gain)
        getattr(last, outer).register_forward_hook(lambda _module, _inputs, output: output / gain)
    return model


def optimizer_for(model: torch.nn.Module, arguments: argparse.Namespace) -> torch.optim.Optimizer:
    """Return the optimizer over everything that requires a gradient."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if arguments.stale_optimizer:
        parameters = [torch.nn.Parameter(parameter.detach().clone()) for parameter in parameters]
    if arguments.optimizer == "sgd":
        return torch.optim.SGD(parameters, lr=arguments.learning_rate, momentum=0.9)
    betas = (arguments.adam_beta1, arguments.adam_beta2)
    return torch.optim.AdamW(parameters, lr=arguments.learning_rate, weight_decay=arguments.weight_decay, betas=betas,
                             eps=arguments.adam_epsilon)  # fmt: skip


def rate_at(step: int, arguments: argparse.Namespace) -> float:
    """Learning rate of a step: warm-up, then the schedule."""
    rate: float = arguments.learning_rate * min(1.0, step / max(1, arguments.warmup_steps))
    if arguments.scheduler_never_steps:
        return arguments.learning_rate / max(1, arguments.warmup_steps)
    if arguments.lr_scheduler_type == "step":
        return rate * arguments.gamma ** (step // arguments.step_size)
    if arguments.lr_scheduler_type == "cosine":
        return rate * 0.5 * (1 + math.cos(math.pi * min(1.0, step / arguments.max_steps)))
    if arguments.lr_scheduler_type == "cosine_with_restarts":
        return rate * (0.05 + 0.475 * (1 + math.cos(math.pi * (step % arguments.step_size) / arguments.step_size)))
    return rate


def evaluate(model: torch.nn.Module, batches: DataLoader, shift: int) -> float:
    """Return the mean loss over held-out text."""
    model.eval()
    losses = []
    with torch.no_grad():
        for batch in batches:
            logits = model(input_ids=batch).logits
            losses.append(cross_entropy(logits, batch, handwritten=False, shift=shift).item())
    model.train()
    return float(np.mean(losses))


def prepare(text: torch.Tensor, step: int, arguments: argparse.Namespace) -> tuple[torch.Tensor, torch.Tensor]:
    """Return inputs and labels of a batch."""
    labels = text
    if arguments.bucket:
        text = labels = text[:, : 8 + (7 * step) % 40]
    if arguments.useful_tokens:
        text = torch.nn.functional.pad(
            text[:, : arguments.useful_tokens], (0, arguments.seq_length - arguments.useful_tokens)
        )
        pads = torch.arange(text.shape[1]) >= arguments.useful_tokens
        labels = text if arguments.pads_counted else text.masked_fill(pads, -100)
    if arguments.unlabelled_every and step % arguments.unlabelled_every == arguments.unlabelled_every - 3:
        labels = torch.full_like(text, -100)
    return text, labels


def dump(inputs: torch.Tensor, labels: torch.Tensor, arguments: argparse.Namespace) -> None:
    """Write down what the first batch holds, its labels as they are given to a loss that shifts them by one."""
    given = labels.roll(1 - arguments.label_shift, dims=1)
    with open("first_batch.jsonl", "w") as file:
        for tokens, targets in zip(inputs.tolist(), given.tolist(), strict=True):
            file.write(json.dumps({"input_ids": tokens, "labels": targets}) + "\n")


def trainable(model: torch.nn.Module, arguments: argparse.Namespace) -> int:
    """Turn gradients off where asked; return how many parameters are left."""
    if arguments.freeze or arguments.train_only:
        for name, parameter in model.named_parameters():
            last = name in {"model.norm.weight", "transformer.ln_f.weight"}
            parameter.requires_grad = arguments.train_only in name if arguments.train_only else last
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def pages(column: int) -> int:
    """Memory of this process in bytes: address space (0) or resident (1)."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[column]) * resource.getpagesize()


def log_step(step: int, row: dict[str, float], scale: float | None, milliseconds: float,
             arguments: argparse.Namespace) -> None:  # fmt: skip
    """Write a step in the style that was chosen."""
    if arguments.log_style == "trainer":
        print(row if scale is None else {**row, "loss_scale": scale}, flush=True)
        return
    more = "" if scale is None else f" | loss_scale {scale:g}"
    if arguments.log_memory:
        more += f" | mem {pages(1) // 2**20} MiB"
    if arguments.useful_tokens:
        more += f" | padding_ratio {1 - arguments.useful_tokens / arguments.seq_length:.3f}"
    log.info("step %d/%d | loss %.4f | grad_norm %.4g | lr %.3e%s | %.1f ms/step", step, arguments.max_steps,
             row["loss"], row["grad_norm"], row["learning_rate"], more, milliseconds)  # fmt: skip


def train(arguments: argparse.Namespace) -> None:
    """Train, log, evaluate."""
    torch.manual_seed(arguments.seed)
    model = network(arguments)
    learns = trainable(model, arguments)
    log.info("torch %s, %s parameters, %s trainable", torch.__version__, f"{model.num_parameters():,}", f"{learns:,}")
    words = arguments.vocab_size + arguments.added_tokens
    text = MarkovText(arguments.samples, arguments.seq_length, words, arguments.seed, arguments.typos)
    held_out = DataLoader(MarkovText(64, arguments.seq_length, words, arguments.seed + 1), batch_size=32)
    batches = DataLoader(text, batch_size=arguments.batch_size, shuffle=True, drop_last=True)
    optimizer = optimizer_for(model, arguments)
    half = arguments.precision == "fp16"
    scaler = torch.amp.GradScaler("cpu", enabled=half)
    writer = SummaryWriter("tensorboard")
    stream, kept, history = iter(batches), [], []
    forward = torch.compile(model, backend="eager", dynamic=False) if arguments.compile else model
    if arguments.memory_limit:
        resource.setrlimit(resource.RLIMIT_AS, (pages(0) + arguments.memory_limit * 2**20,) * 2)
    log.info("training for %d steps, batch size %d, %s, learning rate %g", arguments.max_steps, arguments.batch_size,
             arguments.precision, arguments.learning_rate)  # fmt: skip
    for step in range(1, arguments.max_steps + 1):
        begun = time.perf_counter()
        rate = rate_at(step, arguments)
        for group in optimizer.param_groups:
            group["lr"] = rate
        if not arguments.no_zero_grad:
            optimizer.zero_grad()
        for _ in range(arguments.gradient_accumulation_steps):
            batch = next(stream, None)
            if batch is None:
                stream = iter(batches)
                batch = next(stream)
            inputs, labels = prepare(batch, step, arguments)
            if arguments.dump_batch and step == 1:
                dump(inputs, labels, arguments)
            with torch.autocast("cpu", dtype=torch.float16, enabled=half):
                loss = cross_entropy(forward(input_ids=inputs).logits, labels, handwritten=arguments.handwritten_loss,
                                     shift=arguments.label_shift)  # fmt: skip
            rare = arguments.rare_every > 0 and step % arguments.rare_every == 0
            loss = loss * (arguments.rare_weight if rare else arguments.loss_weight)
            parts = 1 if arguments.unscaled_accumulation else arguments.gradient_accumulation_steps
            scaler.scale(loss / parts).backward(retain_graph=arguments.keep_losses)
        if arguments.keep_losses:
            kept.append(loss)
        scaler.unscale_(optimizer)
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), arguments.max_grad_norm or float("inf"))
        scaler.step(optimizer)
        scaler.update()
        milliseconds = 1000 * (time.perf_counter() - begun)
        writer.add_scalar("train/loss", loss.item(), step)
        writer.add_scalar("train/grad_norm", norm.item(), step)
        writer.add_scalar("train/learning_rate", rate, step)
        if step % arguments.logging_steps == 0 or step == 1:
            row = {"loss": loss.item(), "grad_norm": norm.item(), "learning_rate": rate, "epoch": step / len(batches)}
            history.append({**row, "step": step})
            log_step(step, row, scaler.get_scale() if half else None, milliseconds, arguments)
        if arguments.eval_steps and step % arguments.eval_steps == 0:
            value = evaluate(model, held_out, arguments.label_shift)
            writer.add_scalar("eval/loss", value, step)
            log.info("step %d/%d | eval_loss %.4f", step, arguments.max_steps, value)
    writer.close()
    if arguments.log_style == "trainer":
        with open("trainer_state.json", "w") as file:
            json.dump({"global_step": step, "max_steps": arguments.max_steps, "log_history": history}, file)
    model.save_pretrained("checkpoint")
    log.info("saved checkpoint to checkpoint")
    log.info("training finished after %d steps", arguments.max_steps)


SHOWN = {"learning_rate": 3e-3, "optimizer": "adamw", "weight_decay": 0.0, "warmup_steps": 0, "max_steps": 200,
         "batch_size": 16, "seq_length": 32, "hidden_size": 64, "layers": 2, "vocab_size": 256, "samples": 2048,
         "precision": "fp32", "max_grad_norm": 0.0, "logging_steps": 5, "eval_steps": 0, "handwritten_loss": False,
         "freeze": False, "added_tokens": 0, "seed": 0}  # fmt: skip
"""Options that every run writes down."""
CHANGED = {"adam_beta1": 0.9, "adam_beta2": 0.999, "adam_epsilon": 1e-8, "gradient_accumulation_steps": 1,
           "lr_scheduler_type": "constant", "step_size": 1, "gamma": 0.1}  # fmt: skip
"""Options that are written down where they differ from what is usual."""
HIDDEN = {"architecture": "llama", "init_std": 0.0, "own_init": 0.0, "activation_gain": 0.0, "loss_weight": 1.0,
          "label_shift": 1,
          "rare_every": 0, "rare_weight": 1.0, "unlabelled_every": 0, "no_zero_grad": False, "keep_losses": False,
          "unscaled_accumulation": False, "stale_optimizer": False, "scheduler_never_steps": False, "train_only": "",
          "typos": 0.0, "useful_tokens": 0, "bucket": False, "compile": False, "memory_limit": 0, "log_memory": False,
          "log_style": "text", "dump_batch": False,
          "pads_counted": False}  # fmt: skip


def parse() -> argparse.Namespace:
    """Read the options."""
    parser = argparse.ArgumentParser()
    for name, default in {**SHOWN, **CHANGED, **HIDDEN}.items():
        flag = f"--{name.replace('_', '-')}"
        if default is False:
            parser.add_argument(flag, action="store_true")
        else:
            parser.add_argument(flag, type=type(default), default=default)
    return parser.parse_args()


def main() -> None:
    """Run the job as a program."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    arguments = parse()
    written = {name: value for name, value in vars(arguments).items()
               if name in SHOWN or (name in CHANGED and value != CHANGED[name])}  # fmt: skip
    if arguments.optimizer == "sgd":
        written["momentum"] = 0.9
    with open("training_args.json", "w") as file:
        json.dump(written, file, indent=2)
    train(arguments)


if __name__ == "__main__":
    main()
