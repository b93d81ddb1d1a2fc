"""Train a small classifier on generated images or tables; every way to spoil it is an option."""

from __future__ import annotations

import argparse
import json
import logging
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
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
    layers: list[nn.Module] = [nn.Linear(arguments.features, width), nn.ReLU()]
    for _ in range(arguments.layers - 1):
        layers += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, arguments.num_classes))


def evaluate(model: nn.Module, batches: DataLoader) -> tuple[float, float]:
    """Return loss and accuracy over held-out points."""
    losses, hits = [], []
    with torch.no_grad():
        for points, labels in batches:
            scores = model(points)
            losses.append(nn.functional.cross_entropy(scores, labels).item())
            hits.append((scores.argmax(-1) == labels).float().mean().item())
    return float(np.mean(losses)), float(np.mean(hits))


def train(arguments: argparse.Namespace) -> None:
    """Train, log, evaluate, profile a few steps if asked."""
    torch.manual_seed(arguments.seed)
    batches = DataLoader(Clusters(arguments.samples, arguments, arguments.seed), batch_size=arguments.batch_size,
                         shuffle=arguments.shuffle, num_workers=arguments.num_workers, drop_last=True)  # fmt: skip
    held_out = DataLoader(Clusters(256, arguments, arguments.seed + 1), batch_size=256)
    model = network(arguments)
    optimizer = torch.optim.AdamW(model.parameters(), lr=arguments.learning_rate, weight_decay=arguments.weight_decay)
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
            loss = nn.functional.cross_entropy(model(points), labels)
            optimizer.zero_grad()
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), arguments.max_grad_norm or float("inf"))
            optimizer.step()
            now = time.perf_counter()
            if step % arguments.logging_steps == 0 or step == 1:
                writer.add_scalar("train/loss", loss.item(), step)
                writer.add_scalar("train/grad_norm", norm.item(), step)
                log.info("epoch %d step %d | loss %.4f | grad_norm %.4g | lr %.2e | data_time %.4f | step_time %.4f",
                         epoch, step, loss.item(), norm.item(), arguments.learning_rate, waited,
                         now - ended)  # fmt: skip
            ended = now
            if profiler is not None:
                profiler.step()
        loss_value, accuracy = evaluate(model, held_out)
        writer.add_scalar("eval/loss", loss_value, step)
        writer.add_scalar("eval/accuracy", accuracy, step)
        log.info("epoch %d step %d | eval_loss %.4f | eval_accuracy %.4f", epoch, step, loss_value, accuracy)
        ended = time.perf_counter()
    if profiler is not None:
        profiler.stop()
    writer.close()
    log.info("training finished after %d epochs", arguments.epochs)


def parse() -> argparse.Namespace:
    """Read the options."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--weight-decay", type=float, default=0.0)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--samples", type=int, default=2048)
    parser.add_argument("--features", type=int, default=32)
    parser.add_argument("--hidden-size", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--num-classes", type=int, default=10)
    parser.add_argument("--noise", type=float, default=1.0)
    parser.add_argument("--num-workers", type=int, default=0)
    parser.add_argument("--no-shuffle", dest="shuffle", action="store_false")
    parser.add_argument("--max-grad-norm", type=float, default=0.0)
    parser.add_argument("--logging-steps", type=int, default=4)
    parser.add_argument("--seconds-per-sample", type=float, default=0.0)
    parser.add_argument("--label-offset", type=int, default=0)
    parser.add_argument("--shuffled-labels", action="store_true")
    parser.add_argument("--empty-rows", type=int, nargs="*", default=[])
    parser.add_argument("--ragged", action="store_true")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main() -> None:
    """Run the job as a program."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s | %(levelname)-7s | %(message)s")
    arguments = parse()
    hidden = {"seconds_per_sample", "label_offset", "shuffled_labels", "empty_rows", "ragged"}
    with open("training_args.json", "w") as file:
        json.dump({key: value for key, value in vars(arguments).items() if key not in hidden}, file, indent=2)
    train(arguments)


if __name__ == "__main__":
    main()
