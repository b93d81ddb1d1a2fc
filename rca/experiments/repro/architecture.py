"""The names under which the model classes of transformers keep what a twin sets; no torch, so the parent can use it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rca.experiments.twin.families import ENCODERS, SEQ2SEQ, own_settings

_NAMES: dict[str, dict[str, str]] = {
    "bart": {"hidden_size": "d_model", "num_hidden_layers": "encoder_layers",
             "num_attention_heads": "encoder_attention_heads"},
    "bloom": {"num_hidden_layers": "n_layer", "num_attention_heads": "n_head"},
    "distilbert": {"hidden_size": "dim", "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads"},
    "gpt2": {"hidden_size": "n_embd", "num_hidden_layers": "n_layer", "num_attention_heads": "n_head",
             "max_position_embeddings": "n_positions"},
    "gpt_neo": {"num_hidden_layers": "num_layers", "num_attention_heads": "num_heads"},
    "gptj": {"hidden_size": "n_embd", "num_hidden_layers": "n_layer", "num_attention_heads": "n_head",
             "max_position_embeddings": "n_positions"},
    "t5": {"hidden_size": "d_model", "num_hidden_layers": "num_layers", "num_attention_heads": "num_heads"},
}  # fmt: skip
"""Where a family differs from the usual names (`attribute_map` of its configuration class)."""

_DROPOUT: dict[str, tuple[str, ...]] = {
    "bart": ("attention_dropout", "dropout", "activation_dropout", "classifier_dropout"),
    "bert": ("attention_probs_dropout_prob", "hidden_dropout_prob"),
    "bloom": ("attention_dropout", "hidden_dropout"),
    "distilbert": ("attention_dropout", "dropout", "seq_classif_dropout"),
    "electra": ("attention_probs_dropout_prob", "hidden_dropout_prob"),
    "falcon": ("attention_dropout", "hidden_dropout"),
    "gpt2": ("attn_pdrop", "embd_pdrop", "resid_pdrop"),
    "gpt_neo": ("attention_dropout", "embed_dropout", "resid_dropout", "classifier_dropout"),
    "gpt_neox": ("attention_dropout", "hidden_dropout", "classifier_dropout"),
    "gptj": ("attn_pdrop", "embd_pdrop", "resid_pdrop"),
    "opt": ("attention_dropout", "dropout"),
    "phi": ("attention_dropout", "embd_pdrop", "resid_pdrop"),
    "roberta": ("attention_probs_dropout_prob", "hidden_dropout_prob"),
    "stablelm": ("attention_dropout", "hidden_dropout"),
    "t5": ("dropout_rate", "classifier_dropout"),
}
_DROPOUT_ELSE = ("attention_dropout",)
_INIT: dict[str, tuple[str, ...]] = {"bart": ("init_std",), "opt": ("init_std",), "t5": ()}
_INIT_ELSE = ("initializer_range",)
_DOWN = {
    **dict.fromkeys(("gpt2", "gpt_neo", "starcoder2"), "c_proj"),
    **dict.fromkeys(("opt", "phi", "bart"), "fc2"),
    **dict.fromkeys(("gpt_neox", "falcon", "bloom"), "dense_4h_to_h"),
    **dict.fromkeys(("bert", "roberta", "electra"), "output.dense"),
    "gptj": "fc_out",
    "distilbert": "lin2",
    "t5": "wo",
}
_NO_BIAS = frozenset({"llama", "mistral", "qwen2", "qwen3", "gemma", "olmo", "stablelm", "falcon", "t5"})
_ACTIVATION: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("bart", "gpt2", "gpt_neo", "gptj", "opt"), ("activation_function",)),
    **dict.fromkeys(("distilbert", "falcon"), ("activation",)),
    "bloom": (),
    "t5": (),
}
_ACTIVATION_ELSE = ("hidden_act",)
_NORM: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("llama", "mistral", "qwen2", "qwen3", "gemma"), ("rms_norm_eps",)),
    **dict.fromkeys(("bloom", "falcon", "gpt2", "gpt_neo", "gptj", "t5"), ("layer_norm_epsilon",)),
    "bart": (),
    "distilbert": (),
    "olmo": (),
    "opt": (),
    "starcoder2": ("norm_epsilon",),
}
_NORM_ELSE = ("layer_norm_eps",)
_BETWEEN = {
    "sigmoid": "Sigmoid",
    "tanh": "Tanh",
    "elu": "ELU",
    "silu": "SiLU",
    "swish": "SiLU",
    "leaky_relu": "LeakyReLU",
    "mish": "Mish",
}


def auto_class(family: str) -> str:
    """Return the class of transformers that builds a model of that family from its configuration."""
    if family in SEQ2SEQ:
        return "AutoModelForSeq2SeqLM"
    return "AutoModelForSequenceClassification" if family in ENCODERS else "AutoModelForCausalLM"


def settings(family: str, sizes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the configuration class, as the twin sets them, dropout rates apart.

    `sizes` has `hidden`, `layers`, `heads`, `kv_heads`, `ff`, `vocab`, `positions` and `labels`; `tied`,
    `init_std`, `activation` and `norm_eps` may be missing.
    """
    hidden, layers, heads, ff = (sizes[name] for name in ("hidden", "layers", "heads", "ff"))
    common = {
        "vocab_size": sizes["vocab"],
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": ff,
        "max_position_embeddings": sizes["positions"],
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
    own = own_settings(family, hidden=hidden, layers=layers, heads=heads, kv_heads=sizes["kv_heads"], ff=ff)
    unused = {"intermediate_size"} if set(own) & _FEED_FORWARD else set()
    names = _NAMES.get(family, {})
    found = {names.get(name, name): value for name, value in common.items() if name not in unused} | own
    for name in ("tied", "init_std", "activation", "norm_eps"):
        if sizes.get(name) is not None:
            found |= dict.fromkeys(spelling(family, name), sizes[name])
    if family in ENCODERS:
        found["num_labels"] = sizes["labels"]
    elif family not in SEQ2SEQ:
        found["use_cache"] = False
    return found


def spelling(family: str, name: str) -> tuple[str, ...]:
    """Return the names under which a family keeps `tied`, `init_std`, `activation` or `norm_eps`."""
    return {
        "tied": ("tie_word_embeddings",),
        "init_std": _INIT.get(family, _INIT_ELSE),
        "activation": _ACTIVATION.get(family, _ACTIVATION_ELSE),
        "norm_eps": _NORM.get(family, _NORM_ELSE),
    }[name]


def between(activation: str | None) -> str:
    """Return the module between two layers of a dense network."""
    if activation is not None and "gelu" in activation:
        return "nn.GELU()"
    return f"nn.{_BETWEEN.get(activation or '', 'ReLU')}()"


def dropouts(family: str) -> tuple[str, ...]:
    """Return the names under which a family keeps its dropout rates."""
    return _DROPOUT.get(family, _DROPOUT_ELSE)


def down_projection(family: str) -> str:
    """Return the last part of the name of the projection out of a feed-forward block."""
    return _DOWN.get(family, "down_proj")


def down_has_bias(family: str) -> bool:
    """Whether that projection adds a bias."""
    return family not in _NO_BIAS


_FEED_FORWARD = frozenset({"n_inner", "ffn_dim", "ffn_hidden_size", "d_ff", "encoder_ffn_dim", "hidden_dim"})
