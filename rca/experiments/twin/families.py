"""Sizes of a twin, the model families that it can have, and the learning rates that suit them."""

from __future__ import annotations

from typing import Any

WIDTH, LAYERS, HEADS = 64, 2, 4
MAX_VOCAB, MAX_SEQ, MAX_BATCH, STEPS = 256, 32, 8, 60
USUAL_INIT = 0.02
"""Standard deviation from which nearly all transformer families draw their weights."""
SHORT_WARMUP = 15
"""Warm-up of a twin whose run failed after its own warm-up: a compressed one, so that the peak is reached warm."""
SGD_WIDTH_EXPONENT = 0.4
"""Measured for SGD at width 32-256: the boundary falls like d^-0.4, the same for all groups."""

_DECODERS = "llama mistral qwen2 qwen3 gpt2 gpt_neox gpt_neo gptj opt phi gemma falcon bloom stablelm olmo starcoder2"
DECODERS = frozenset(_DECODERS.split())
ENCODERS = frozenset({"bert", "roberta", "distilbert", "electra"})
SEQ2SEQ = frozenset({"t5", "bart"})
DENSE = frozenset({"cnn", "mlp"})
EAGER_ONLY = frozenset({"bloom", "gpt_neo"})
"""Families for which transformers 5.24 has no other attention."""
FAMILIES = DECODERS | ENCODERS | SEQ2SEQ | DENSE

RECIPES: dict[str, dict[str, float]] = {
    "adam": {
        "gpt2": 0.002,
        "opt": 0.002,
        "gpt_neo": 0.002,
        "starcoder2": 0.002,
        "bart": 0.002,
        "cnn": 0.01,
        "t5": 0.008,
    },
    "sgd": {"mlp": 0.2, "cnn": 0.4, "t5": 0.8},
    "momentum": {"gpt2": 0.08, "opt": 0.08, "gpt_neox": 0.08, "t5": 0.16},
}
RECIPE_ELSE = {"adam": 0.004, "sgd": 0.1, "momentum": 0.04}
"""Best learning rate of a doubling grid after 60 steps at width 64, one seed each; the reference arms train with it."""

_ACTIVATIONS = "relu relu2 leaky_relu elu gelu gelu_new gelu_fast quick_gelu silu swish mish tanh sigmoid"
ACTIVATIONS = frozenset({*_ACTIVATIONS.split(), "gelu_pytorch_tanh"})
"""Names that transformers' configurations know for what is between two layers."""
MAX_DEPTH = 8
"""Layers of a multi-layer perceptron: they are cheap, and depth is what lets gradients vanish."""


def own_settings(family: str, *, hidden: int, layers: int, heads: int, kv_heads: int, ff: int) -> dict[str, Any]:
    """Return the settings that a family of transformers names in its own way, or needs beside the usual ones."""
    head = hidden // heads
    grouped = {"num_key_value_heads": kv_heads}
    own: dict[str, dict[str, Any]] = {
        "gpt2": {"n_inner": ff},
        "gptj": {"n_inner": ff, "rotary_dim": max(2, head // 2 - head // 2 % 2)},
        "gpt_neo": {"attention_types": [[["global"], layers]]},
        "opt": {"ffn_dim": ff, "word_embed_proj_dim": hidden},
        "falcon": {"num_kv_heads": kv_heads, "ffn_hidden_size": ff},
        "t5": {"d_ff": ff, "d_kv": head, "num_decoder_layers": layers, "decoder_start_token_id": 0},
        "bart": {
            "encoder_ffn_dim": ff,
            "decoder_ffn_dim": ff,
            "decoder_layers": layers,
            "decoder_attention_heads": heads,
            "decoder_start_token_id": 2,
        },
        "distilbert": {"hidden_dim": ff},
        "electra": {"embedding_size": hidden},
        "gemma": {**grouped, "head_dim": head},
        "qwen3": {**grouped, "head_dim": head},
    }
    rotary = {"llama", "mistral", "qwen2", "stablelm", "starcoder2", "olmo", "phi"}
    return grouped if family in rotary else own.get(family, {})
