"""Which part of a job a settings file belongs to: the model, generation, the tokenizer, training, a launcher."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_BY_NAME = (
    ("generation_config", "generation"),
    ("tokenizer_config", "tokenizer"),
    ("special_tokens_map", "tokenizer"),
    ("adapter_config", "adapter"),
    ("preprocessor_config", "preprocessor"),
    ("processor_config", "preprocessor"),
    ("feature_extractor", "preprocessor"),
    ("quantize_config", "quantization"),
    ("quantization_config", "quantization"),
    ("chat_template", "tokenizer"),
)
_BY_KEYS: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({"tokenizer_class"}), "tokenizer"),
    (frozenset({"model_type"}), "model"),
    (frozenset({"architectures"}), "model"),
    (frozenset({"num_hidden_layers", "hidden_size"}), "model"),
    (frozenset({"n_layer", "n_embd"}), "model"),
    (frozenset({"peft_type"}), "adapter"),
    (frozenset({"lora_alpha", "target_modules"}), "adapter"),
    (frozenset({"image_processor_type"}), "preprocessor"),
    (frozenset({"feature_extractor_type"}), "preprocessor"),
    (frozenset({"image_mean", "image_std"}), "preprocessor"),
    (frozenset({"compute_environment"}), "accelerate"),
    (frozenset({"distributed_type", "num_processes"}), "accelerate"),
    (frozenset({"zero_optimization"}), "deepspeed"),
    (frozenset({"train_micro_batch_size_per_gpu"}), "deepspeed"),
    (frozenset({"_from_model_config"}), "generation"),
)
_TRAINING_KEYS = frozenset(
    {"learning_rate", "per_device_train_batch_size", "output_dir", "num_train_epochs", "max_steps"}
)


def role_of(name: str, document: Mapping[str, Any]) -> str:
    """Return the role of a settings document, by its file name where that is a convention, else by its keys."""
    for part, role in _BY_NAME:
        if part in name:
            return role
    keys = document.keys()
    for needed, role in _BY_KEYS:
        if needed <= keys and not (role == "model" and len(_TRAINING_KEYS & keys) > 1):
            return role
    return "training"
