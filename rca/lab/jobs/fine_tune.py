"""Train a text classifier on files and keep its best checkpoint; mistakes of daily life are one option."""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import resource
import tempfile
import time
from pathlib import Path

import torch
import yaml
from torch import nn
from torch.utils.data import DataLoader, Dataset

log = logging.getLogger("fine_tune")
WORDS = ["plain", "good", "bad", "fine", "slow", "quick", "warm", "cold", "bright", "dull", "kind", "harsh", "loud"]


def write_data(folder: Path, arguments: argparse.Namespace) -> None:
    """Write the files that an export of last night left."""
    draw = random.Random(arguments.seed)
    folder.mkdir()
    for split, count in (("train", 640), ("valid", 128)):
        rows = []
        for number in range(0 if arguments.mistake == "no_rows" and split == "train" else count):
            label = draw.randrange(2)
            words = draw.choices(WORDS[label * 4 :], k=12)
            rows.append({"id": number, "text": " ".join(words), "label": label})
        if arguments.mistake == "renamed_field" and split == "train":
            rows = [{"id": row["id"], "sentence": row["text"], "label": row["label"]} for row in rows]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        if arguments.mistake == "cut_file" and split == "train":
            text = text[: int(0.83 * len(text))]
        (folder / f"{split}.jsonl").write_text(text)


class Texts(Dataset):
    """Rows of a JSON-lines file as word counts."""

    def __init__(self, file: Path, arguments: argparse.Namespace) -> None:
        self.rows = [json.loads(line) for line in file.read_text().splitlines()]
        self.mistake = arguments.mistake
        log.info("%d rows in %s", len(self.rows), file)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        row = self.rows[index]
        tokens = torch.tensor([WORDS.index(word) for word in row["text"].split()])
        counts = torch.bincount(tokens, minlength=len(WORDS))
        if self.mistake == "double":
            return counts.double(), row["label"]
        return counts.float(), row["label"]


class Network(nn.Module):
    """Two layers over word counts."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        super().__init__()
        self.mistake = arguments.mistake
        if self.mistake == "renamed_option":
            nn.TransformerEncoderLayer(d_model=64, nhead=4, dim_ff=128)
        if self.mistake == "heads":
            nn.MultiheadAttention(embed_dim=64, num_heads=arguments.heads)
        self.inner = nn.Linear(len(WORDS), 64)
        self.outer = nn.Linear(32 if self.mistake == "wrong_width" else 64, 2)
        if self.mistake == "meta_layer":
            self.outer = nn.Linear(64, 2, device="meta")

    def forward(self, counts: torch.Tensor) -> torch.Tensor:
        """Return two scores a text."""
        hidden = torch.tanh(self.inner(counts))
        if self.mistake == "in_place":
            hidden.mul_(0.5)
        return self.outer(hidden)


def save(model: nn.Module, arguments: argparse.Namespace) -> None:
    """Write the checkpoint where the job keeps its files."""
    target = "/dev/full" if arguments.mistake == "full_disk" else "best.pt"
    with open(target, "wb", buffering=0) as file:
        torch.save(model.state_dict(), file)
    log.info("saved best.pt")


def metrics(scores: torch.Tensor, labels: torch.Tensor, arguments: argparse.Namespace) -> dict[str, float]:
    """Accuracy and precision over the validation rows."""
    chosen = scores.argmax(-1)
    positive = int((chosen == (7 if arguments.mistake == "no_positives" else 1)).sum())
    right = int(((chosen == 1) & (labels == 1)).sum())
    return {"accuracy": (chosen == labels).float().mean().item(), "precision": right / positive}


def train(arguments: argparse.Namespace) -> None:
    """Train for some epochs and validate after each."""
    torch.manual_seed(arguments.seed)
    folder = Path("data")
    if arguments.mistake == "package":
        import sacremoses_fast  # noqa: F401
    training, validation = Texts(folder / "train.jsonl", arguments), Texts(folder / "valid.jsonl", arguments)
    model = Network(arguments)
    optimizer = torch.optim.AdamW(model.parameters(), lr=arguments.learning_rate)
    batches = DataLoader(training, batch_size=32, shuffle=True)
    stream, opened, history, loss, step = iter(batches), [], [], torch.zeros(()), 0
    if arguments.mistake == "open_files":
        resource.setrlimit(resource.RLIMIT_NOFILE, (160, 160))
    if arguments.mistake == "memory":
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 96 * 2**20,) * 2)
    for epoch in range(arguments.epochs):
        for _ in range(len(batches)):
            step += 1
            if arguments.mistake == "one_pass":
                counts, labels = next(stream)
            else:
                counts, labels = next(stream, None) or next(stream := iter(batches))
            if arguments.mistake == "open_files":
                opened += [tempfile.TemporaryFile(), open(folder / "valid.jsonl")]  # noqa: SIM115
            if arguments.mistake == "memory":
                history.append(torch.ones(2**18 * arguments.kept) * loss.item())
            previous = loss
            loss = nn.functional.cross_entropy(model(counts), labels)
            if arguments.mistake == "kept_graph" and step > 1:
                loss = loss + 0.1 * previous
            if arguments.mistake == "far_index" and step == arguments.at_step:
                loss = loss + counts[:, [len(WORDS) + 1]].mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 5 == 0:
                log.info("epoch %d step %d/%d | loss %.4f | lr %.2e", epoch, step, arguments.epochs * len(batches),
                         loss.item(), arguments.learning_rate)  # fmt: skip
        with torch.no_grad():
            pairs = [(model(counts), labels) for counts, labels in DataLoader(validation, batch_size=64)]
        scores, labels = (torch.cat(part) for part in zip(*pairs, strict=True))
        found = metrics(scores, labels, arguments)
        log.info("epoch %d | eval_loss %.4f | accuracy %.4f | precision %.4f", epoch,
                 nn.functional.cross_entropy(scores, labels).item(), *found.values())  # fmt: skip
        save(model, arguments)
    log.info("training finished after %d epochs", arguments.epochs)


def main() -> None:
    """Run the job as a program."""
    logging.basicConfig(level=logging.INFO, format="[%(asctime)s] %(levelname)s %(name)s: %(message)s")
    parser = argparse.ArgumentParser()
    parser.add_argument("--mistake", default="")
    parser.add_argument("--learning-rate", type=float, default=5e-3)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--heads", type=int, default=6)
    parser.add_argument("--kept", type=int, default=8)
    parser.add_argument("--at-step", type=int, default=23)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    write_data(Path("data"), arguments)
    settings = {"learning_rate": arguments.learning_rate, "epochs": arguments.epochs, "seed": arguments.seed,
                "started": time.strftime("%Y-%m-%d"), "pid": os.getpid()}  # fmt: skip
    Path("config.yaml").write_text(yaml.safe_dump(settings))
    log.info("torch %s, settings %s", torch.__version__, settings)
    train(arguments)


if __name__ == "__main__":
    main()
