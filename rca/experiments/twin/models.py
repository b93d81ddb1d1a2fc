"""Random-init models of the run's own class, tiny or at full size. Imported in the child process only: loads torch.

Everything comes from the configuration classes of transformers; no hub, no remote code.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import nn

from rca.experiments.twin.config import TwinConfig
from rca.experiments.twin.families import ENCODERS, SEQ2SEQ, own_settings

_NO_DROPOUT = (
    "attention_dropout",
    "attention_probs_dropout_prob",
    "attn_pdrop",
    "dropout",
    "dropout_rate",
    "embd_pdrop",
    "embed_dropout",
    "hidden_dropout",
    "hidden_dropout_prob",
    "resid_dropout",
    "resid_pdrop",
    "activation_dropout",
    "seq_classif_dropout",
    "classifier_dropout",
)
"""Names under which the families keep their dropout rates."""

_ACTIVATION_NAMES = ("hidden_act", "activation_function", "hidden_activation", "activation")
_NORM_NAMES = ("rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "layernorm_epsilon", "norm_epsilon")

_BETWEEN = {
    "sigmoid": nn.Sigmoid,
    "tanh": nn.Tanh,
    "elu": nn.ELU,
    "silu": nn.SiLU,
    "swish": nn.SiLU,
    "leaky_relu": nn.LeakyReLU,
    "mish": nn.Mish,
}
"""Activations of the dense networks; every kind of GELU is the exact one, everything else ReLU."""


def transformer(
    family: str,
    *,
    hidden: int,
    layers: int,
    heads: int,
    kv_heads: int,
    ff: int,
    vocab: int,
    positions: int,
    labels: int = 2,
    tied: bool | None = None,
    init_std: float | None = None,
    dropout: float = 0.0,
    attention: str = "eager",
    activation: str | None = None,
    norm_eps: float | None = None,
) -> nn.Module:
    """Return a model of that `model_type` with random weights."""
    from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoModelForSequenceClassification
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    kind = CONFIG_MAPPING[family]
    common = {
        "vocab_size": vocab,
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": ff,
        "max_position_embeddings": positions,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
    aliases = getattr(kind, "attribute_map", {})
    settings: dict[str, Any] = {aliases.get(name, name): value for name, value in common.items()}
    settings |= own_settings(family, hidden=hidden, layers=layers, heads=heads, kv_heads=kv_heads, ff=ff)
    config = kind(**settings)
    for name in _NO_DROPOUT:
        if hasattr(config, name) and getattr(config, name) is not None:
            setattr(config, name, dropout)
    for names, value in ((_ACTIVATION_NAMES, activation), (_NORM_NAMES, norm_eps)):
        for name in names:
            if value is not None and isinstance(getattr(config, name, None), type(value)):
                setattr(config, name, value)
    if tied is not None:
        config.tie_word_embeddings = tied
    if init_std is not None:
        for name in ("initializer_range", "init_std"):
            if hasattr(config, name):
                setattr(config, name, init_std)
    config._attn_implementation = attention
    if family in SEQ2SEQ:
        return _module(AutoModelForSeq2SeqLM.from_config(config))
    if family in ENCODERS:
        config.num_labels = labels
        return _module(AutoModelForSequenceClassification.from_config(config))
    config.use_cache = False
    return _module(AutoModelForCausalLM.from_config(config))


def _module(model: Any) -> nn.Module:
    if not isinstance(model, nn.Module):
        raise TypeError(f"transformers made a {type(model).__name__}, not a torch module")
    return model


def _between(name: str | None) -> nn.Module:
    if name is not None and "gelu" in name:
        return nn.GELU()
    return _BETWEEN.get(name or "", nn.ReLU)()


class SmallConv(nn.Module):
    """Three convolutions with batch normalisation for 3x16x16 images."""

    def __init__(self, config: TwinConfig) -> None:
        super().__init__()
        width = config.width
        layers: list[nn.Module] = []
        channels = 3
        for out in (width // 2, width, width):
            norm = nn.BatchNorm2d(out, eps=config.norm_eps or 1e-5)
            layers += [nn.Conv2d(channels, out, 3, stride=2, padding=1), norm, _between(config.activation)]
            channels = out
        self.body = nn.Sequential(*layers)
        self.dropout = nn.Dropout(config.dropout)
        self.head = nn.Linear(width, config.labels)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return one logit a class."""
        logits: torch.Tensor = self.head(self.dropout(self.body(images).mean(dim=(2, 3))))
        return logits


class SmallPerceptron(nn.Module):
    """Hidden layers of one width for vectors of 32 features."""

    def __init__(self, config: TwinConfig) -> None:
        super().__init__()
        self.residual = config.residual
        sizes = [32, *[config.width] * config.layers]
        self.body = nn.ModuleList(nn.Linear(before, after) for before, after in pairwise(sizes))
        self.between = _between(config.activation)
        self.dropout = nn.Dropout(config.dropout)
        self.head = nn.Linear(config.width, config.labels)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Return one logit a class."""
        for index, layer in enumerate(self.body):
            moved = self.dropout(self.between(layer(features)))
            features = features + moved if self.residual and index else moved
        logits: torch.Tensor = self.head(features)
        return logits


def build(config: TwinConfig) -> nn.Module:
    """Return the twin's model with fresh weights (seed the generator first)."""
    if config.family == "cnn":
        model: nn.Module = SmallConv(config)
    elif config.family == "mlp":
        model = SmallPerceptron(config)
    else:
        model = transformer(
            config.family,
            hidden=config.width,
            layers=config.layers,
            heads=config.heads,
            kv_heads=config.kv_heads,
            ff=config.ff,
            vocab=config.vocab,
            positions=2 * config.seq,
            labels=config.labels,
            tied=config.tied,
            init_std=config.init_std,
            dropout=config.dropout,
            attention=config.attention,
            activation=config.activation,
            norm_eps=config.norm_eps,
        )
    if config.init_factor != 1.0:
        with torch.no_grad():
            for weight in model.parameters():
                if weight.dim() >= 2:
                    weight.mul_(config.init_factor)
    if config.activation_gain != 1.0:
        _widen_activations(model, config)
    return model.train()


def embeddings(model: nn.Module) -> set[int]:
    """Return the ids of parameters that belong to embeddings (tied heads included)."""
    return {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}


def input_embedding(model: nn.Module) -> nn.Module | None:
    """Return the token embedding, or None for models of dense inputs."""
    found = [module for module in model.modules() if isinstance(module, nn.Embedding)]
    return max(found, key=lambda module: module.num_embeddings) if found else None


_DOWN = ("down_proj", "c_proj", "fc2", "fc_out", "dense_4h_to_h", "wo", "output.dense", "lin2")
"""Last names of the projection out of a feed-forward block."""


def _widen_activations(model: nn.Module, config: TwinConfig) -> None:
    """Scale the input of the last down projection and scale its output back.

    Nothing changes in exact arithmetic; in half precision the large values do not fit. This stands for the outlier
    activations of trained models, which random weights do not have.
    """
    gain = config.activation_gain
    found = [
        module
        for name, module in model.named_modules()
        if name.endswith(_DOWN) and hasattr(module, "weight") and config.ff in module.weight.shape
    ]
    if not found:
        found = [module for module in model.modules() if isinstance(module, (nn.Linear, nn.Conv2d))][:-1]
    target = found[-1]
    bias = getattr(target, "bias", None)

    def before(_module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        return (args[0] * gain, *args[1:])

    def after(_module: nn.Module, _args: tuple[Any, ...], output: torch.Tensor) -> torch.Tensor:
        if not isinstance(bias, torch.Tensor):
            return output / gain
        kept = bias.view(-1, *([1] * (output.dim() - 2))) if isinstance(target, nn.Conv2d) else bias
        return (output - kept) / gain + kept

    target.register_forward_pre_hook(before)
    target.register_forward_hook(after)
