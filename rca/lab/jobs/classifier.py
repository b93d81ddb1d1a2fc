"""Train a small classifier on generated images or tables; every way to spoil it is an option."""

from __future__ import annotations

import argparse
import json
import logging
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset
from torch.utils.tensorboard import SummaryWriter

log = logging.getLogger("train")


class Clusters(Dataset):
    """Noisy points around one centre a class."""

    def __init__(self, count: int, arguments: argparse.Namespace, seed: int) -> None:
        centres = np.random.default_rng(3).normal(size=(arguments.num_classes, arguments.features))
        generator = np.random.default_rng(seed)
        self.labels = generator.integers(0, arguments.num_classes, size=count)
        noise = arguments.noise * generator.normal(size=(count, arguments.features))
        self.points = (centres[self.labels] + noise).astype(np.float32)
        if arguments.shuffled_labels:
            self.labels = generator.permutation(self.labels)
        if arguments.raw_validation and seed != arguments.seed:
            self.points = 40.0 * self.points + 100.0
        self.labels = self.labels + arguments.label_offset
        for row in arguments.empty_rows if seed == arguments.seed else ():
            self.points[row] = np.nan
        self.seconds = arguments.seconds_per_sample
        self.ragged = arguments.ragged

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        if self.seconds:
            time.sleep(self.seconds)
        point = self.points[index]
        if self.ragged and index % 97 == 41:
            point = point[: len(point) // 2]
        return torch.from_numpy(point), int(self.labels[index])


def network(arguments: argparse.Namespace) -> nn.Sequential:
    """Return a multi-layer perceptron."""
    width = arguments.hidden_size
    activation = nn.Sigmoid if arguments.activation == "sigmoid" else nn.ReLU
    layers: list[nn.Module] = [nn.Linear(arguments.features, width), activation()]
    for _ in range(arguments.layers - 1):
        layers += [nn.Linear(width, width), activation()]
    return nn.Sequential(*layers, nn.Linear(width, arguments.num_classes))


def loss_of(scores: torch.Tensor, labels: torch.Tensor, arguments: argparse.Namespace) -> torch.Tensor:
    """Cross-entropy, or the same by hand, whose logarithm meets a zero once the network is sure."""
    if not arguments.handwritten_loss:
        return nn.functional.cross_entropy(scores, labels)
    chances = torch.softmax(arguments.sharpness * scores, dim=-1)
    truth = nn.functional.one_hot(labels, scores.shape[-1]).float()
    return -(truth * torch.log(chances) + (1 - truth) * torch.log(1 - chances)).sum(-1).mean()


def evaluate(model: nn.Module, batches: DataLoader) -> tuple[float, float]:
    """Return loss and accuracy over held-out points."""
    losses, hits = [], []
    with torch.no_grad():
        for points, labels in batches:
            scores = model(points)
            losses.append(nn.functional.cross_entropy(scores, labels).item())
            hits.append((scores.argmax(-1) == labels).float().mean().item())
    return float(np.mean(losses)), float(np.mean(hits))


def save(model: nn.Module, step: int, arguments: argparse.Namespace) -> None:
    """Write a checkpoint to a file system that takes its time."""
    begun = time.perf_counter()
    torch.save(model.state_dict(), "checkpoint.pt")
    time.sleep(arguments.seconds_per_save)
    log.info("step %d | saved checkpoint to checkpoint.pt in %.2f s", step, time.perf_counter() - begun)


def train(arguments: argparse.Namespace) -> None:
    """Train, log, evaluate, profile a few steps if asked."""
    torch.manual_seed(arguments.seed)
    rows = Clusters(arguments.samples, arguments, arguments.seed)
    batches = DataLoader(rows, batch_size=arguments.batch_size, shuffle=arguments.shuffle,
                         num_workers=arguments.num_workers, drop_last=True)  # fmt: skip
    unseen = Subset(rows, range(256)) if arguments.leak else Clusters(256, arguments, arguments.seed + 1)
    held_out = DataLoader(unseen, batch_size=256)
    model = network(arguments)
    if arguments.optimizer == "sgd":
        optimizer = torch.optim.SGD(model.parameters(), lr=arguments.learning_rate, momentum=arguments.momentum)
    else:
        optimizer = torch.optim.AdamW(model.parameters(), lr=arguments.learning_rate,
                                      weight_decay=arguments.weight_decay)  # fmt: skip
    writer = SummaryWriter("tensorboard")
    log.info("torch %s, %d samples, %d steps per epoch, num_workers %d", torch.__version__, arguments.samples,
             len(batches), arguments.num_workers)  # fmt: skip
    profiler = None
    if arguments.profile:
        profiler = torch.profiler.profile(
            schedule=torch.profiler.schedule(wait=2, warmup=1, active=4),
            on_trace_ready=lambda result: result.export_chrome_trace("trace.pt.trace.json"),
        )
        profiler.start()
    step = 0
    ended = time.perf_counter()
    for epoch in range(arguments.epochs):
        for points, labels in batches:
            step += 1
            waited = time.perf_counter() - ended
            loss = loss_of(model(points), labels, arguments)
            optimizer.zero_grad()
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), arguments.max_grad_norm or float("inf"))
            optimizer.step()
            now = time.perf_counter()
            if step % arguments.logging_steps == 0 or step == 1:
                writer.add_scalar("train/loss", loss.item(), step)
                writer.add_scalar("train/grad_norm", norm.item(), step)
                times = f" | data_time {waited:.4f} | step_time {now - ended:.4f}" if arguments.log_times else ""
                log.info("epoch %d step %d | loss %.4f | grad_norm %.4g | lr %.2e%s", epoch, step, loss.item(),
                         norm.item(), arguments.learning_rate, times)  # fmt: skip
            ended = now
            if profiler is not None:
                profiler.step()
            if arguments.save_steps and step % arguments.save_steps == 0:
                save(model, step, arguments)
        loss_value, accuracy = evaluate(model, held_out)
        writer.add_scalar("eval/loss", loss_value, step)
        writer.add_scalar("eval/accuracy", accuracy, step)
        log.info("epoch %d step %d | eval_loss %.4f | eval_accuracy %.4f", epoch, step, loss_value, accuracy)
        ended = time.perf_counter()
    if profiler is not None:
        profiler.stop()
    writer.close()
    log.info("training finished after %d epochs", arguments.epochs)


SHOWN = {"learning_rate": 1e-3, "weight_decay": 0.0, "batch_size": 32, "epochs": 3, "samples": 2048, "features": 32,
         "hidden_size": 64, "layers": 2, "num_classes": 10, "noise": 1.0, "num_workers": 0, "shuffle": True,
         "max_grad_norm": 0.0, "logging_steps": 4, "profile": False, "seed": 0}  # fmt: skip
"""Options that every run writes down."""
CHANGED = {"optimizer": "adamw", "momentum": 0.9, "activation": "relu", "save_steps": 0}
"""Options that are written down where they differ from what is usual."""
HIDDEN = {"seconds_per_sample": 0.0, "label_offset": 0, "shuffled_labels": False, "ragged": False, "leak": False,
          "raw_validation": False, "handwritten_loss": False, "sharpness": 1.0, "seconds_per_save": 0.0,
          "log_times": False}  # fmt: skip


def parse() -> argparse.Namespace:
    """Read the options."""
    parser = argparse.ArgumentParser()
    for name, default in {**SHOWN, **CHANGED, **HIDDEN}.items():
        flag = f"--{name.replace('_', '-')}"
        if default is True:
            parser.add_argument(f"--no-{name}", dest=name, action="store_false")
        elif default is False:
            parser.add_argument(flag, action="store_true")
        else:
            parser.add_argument(flag, type=type(default), default=default)
    parser.add_argument("--empty-rows", type=int, nargs="*", default=[])
    return parser.parse_args()


def main() -> None:
    """Run the job as a program."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s | %(levelname)-7s | %(message)s")
    arguments = parse()
    written = {name: value for name, value in vars(arguments).items()
               if name in SHOWN or (name in CHANGED and value != CHANGED[name])}  # fmt: skip
    if arguments.optimizer == "sgd":
        written["momentum"] = arguments.momentum
    with open("training_args.json", "w") as file:
        json.dump(written, file, indent=2)
    train(arguments)


if __name__ == "__main__":
    main()
