"""Loss in FP32 outside autocast: the experiment `loss_fp32` of rca on the run `run`, in one program.

Question: Does the failure go away when only the loss is computed in FP32?
Change: the loss in FP32 (loss_dtype low -> fp32)
Planted in the control: a handwritten exp/log loss in the run's half type, on logits with a common offset of 12
Found (confirmed): The control shows NaN at start, skipping and loses 1.00/1.00/1.01 of the learnable gap; with the
    loss in FP32 it loses 0.01/0.01/0.01. Difference +0.99 (95 % interval +0.87 to +1.10, 3 paired seeds): 100 % of
    what was lost.
Expect: share of the learnable gap lost, seeds 0, 1, 2: control 0.9964 0.9993 1.0073; treatment 0.0132 0.0126 0.0133
Shown on: a tiny twin: llama, 0.14 M parameters, 60 steps on synthetic data, 3 seeds, on the CPU; fp16 emulated as a
    GPU computes it; the fault was planted (a handwritten exp/log loss in the run's half type, on logits with a
    common offset of 12):...
Written by rca 0.1.0 for torch 2.13.0+cpu, transformers 5.24.0, numpy 2.4.6.
"""

import math
from types import SimpleNamespace

import numpy as np
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from transformers import AutoConfig, AutoModelForCausalLM

SEEDS, STEPS = (0, 1, 2), 60
CONTROL = {
    "activation": "silu", "norm_eps": 1e-06, "lr": 0.003000000026077032, "warmup": 15, "clip": 1.0, "batch": 8,
    "precision": "fp16", "loss": "exp_log", "loss_dtype": "low", "logit_offset": 12.0,
}  # fmt: skip
TREATMENT = CONTROL | {"loss_dtype": "fp32"}
REFERENCE = CONTROL | {
    "activation": None, "norm_eps": None, "lr": 0.004, "warmup": 0, "clip": 0.0, "precision": "fp32",
    "loss": "cross_entropy", "loss_dtype": "fp32", "logit_offset": 0.0,
}  # fmt: skip
ARMS = {"control": CONTROL, "treatment": TREATMENT, "reference": REFERENCE}
torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)
VOCAB, LENGTH = 256, 32
WORLD = np.random.default_rng(1234)  # a sparse Markov chain: every token has six successors, popular ones more often
POPULARITY = 1.0 / np.arange(1, VOCAB - 2)
SUCCESSORS = WORLD.choice(np.arange(3, VOCAB), size=(VOCAB, 6), p=POPULARITY / POPULARITY.sum())
ODDS = 1.0 / np.arange(1, 7) ** 1.2


def batch(order, size):
    """Return sequences of the chain, some of which repeat a span, and as labels the tokens that follow."""
    tokens = np.empty((size, LENGTH + 1), dtype=np.int64)
    tokens[:, 0] = order.integers(3, VOCAB, size)
    draws = order.random(tokens.shape)
    for position in range(1, tokens.shape[1]):
        branch = np.minimum(np.searchsorted(np.cumsum(ODDS / ODDS.sum()), draws[:, position]), 5)
        tokens[:, position] = SUCCESSORS[tokens[:, position - 1], branch]
    span = max(2, tokens.shape[1] // 4)
    for row in np.flatnonzero(order.random(size) < 0.15):
        start = int(order.integers(0, tokens.shape[1] - 2 * span + 1))
        tokens[row, start + span : start + 2 * span] = tokens[row, start : start + span]
    return torch.from_numpy(tokens[:, :-1]), torch.from_numpy(tokens[:, 1:])


def build(s):
    """Return the tiny model with fresh random weights."""
    settings = {"vocab_size": 256, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    settings |= {"intermediate_size": 192, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1}
    settings |= {"eos_token_id": 2, "num_key_value_heads": 4, "tie_word_embeddings": False}
    settings |= {"initializer_range": 0.02, "use_cache": False, "attention_dropout": 0.0}
    given = {"hidden_act": s.activation, "rms_norm_eps": s.norm_eps}
    settings |= {name: value for name, value in given.items() if value is not None}
    config = AutoConfig.for_model("llama", **settings)
    return AutoModelForCausalLM.from_config(config, attn_implementation="eager").train()


PRODUCTS = {"matmul", "__matmul__", "mm", "bmm", "addmm", "baddbmm", "linear", "conv2d", "scaled_dot_product_attention"}
IN_FP32 = {"cross_entropy", "cumsum", "layer_norm", "log_softmax", "norm", "pow", "__pow__", "rsqrt", "softmax", "sum"}
LOW = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


class AutocastAsOnGpu(TorchFunctionMode):
    """Autocast as CUDA does it, on a CPU: products of rounded inputs, sums and functions like softmax in fp32."""

    def __init__(self, precision):
        super().__init__()
        self.low = LOW[precision]

    def __torch_function__(self, func, types, args=(), kwargs=None):
        product, kwargs = func.__name__ in PRODUCTS, kwargs or {}
        if not product and func.__name__ not in IN_FP32:
            return func(*args, **kwargs)

        def cast(value):
            floating = isinstance(value, torch.Tensor) and value.dtype in LOW.values()
            return (value.to(self.low) if product else value).float() if floating else value

        result = func(*map(cast, args), **{name: cast(value) for name, value in kwargs.items()})
        return result.to(self.low) if product and isinstance(result, torch.Tensor) else result


def loss_of(model, inputs, labels, s):
    """Return the cross-entropy."""
    with AutocastAsOnGpu(s.precision):
        logits = model(input_ids=inputs).logits
    logits = logits + s.logit_offset
    logits = logits.to(LOW[s.precision]) if s.loss_dtype == "low" else logits.float()
    logits, labels = logits.reshape(-1, logits.shape[-1]), labels.reshape(-1)
    if s.loss == "exp_log":  # written by hand, without subtraction of the maximum
        odds = torch.exp(logits)
        losses = -torch.log(odds.gather(1, labels[:, None]).squeeze(1) / odds.sum(dim=1))
        return losses.mean()
    return nn.functional.cross_entropy(logits, labels)


def train(settings, seed):
    """Return the loss of every step and the loss on clean data at the end."""
    s = SimpleNamespace(**settings)
    torch.manual_seed(seed)
    order = np.random.default_rng(seed)
    model = build(s)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=s.lr, betas=(0.9, 0.999), eps=1e-08, weight_decay=0.0, fused=s.precision != "fp16"
    )
    scaler = torch.amp.GradScaler("cpu", enabled=s.precision == "fp16")
    losses = []
    for step in range(STEPS):
        inputs, labels = batch(order, s.batch)
        optimizer.param_groups[0]["lr"] = s.lr * min(1.0, (step + 1) / max(1, s.warmup))
        optimizer.zero_grad()
        loss = loss_of(model, inputs, labels, s)
        scaler.scale(loss).backward()
        losses.append(loss.item())
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), s.clip or math.inf)
        scaler.step(optimizer)
        scaler.update()
    with torch.no_grad():
        return losses, loss_of(model.eval(), *batch(np.random.default_rng(99), 64), SimpleNamespace(**REFERENCE)).item()


if __name__ == "__main__":
    for seed in SEEDS:
        found = {name: train(settings, seed) for name, settings in ARMS.items()}
        best, chance = found["reference"][1], math.log(VOCAB)
        for name, (losses, clean) in found.items():
            lost = min(1.3, max(-0.2, (clean - best) / (chance - best))) if math.isfinite(clean) else 1.3
            told = f"training loss {losses[0]:.4f} -> {losses[-1]:.4f} in {len(losses)} steps, clean data {clean:.4f}"
            print(f"seed {seed} {name:9} {told}, share of the learnable gap lost {lost:.4f}")
