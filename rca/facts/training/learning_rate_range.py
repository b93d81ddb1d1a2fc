"""Learning rates that others use, by optimizer family and model size, with their sources."""

from __future__ import annotations

from typing import NamedTuple

from rca.events import EventTable
from rca.facts.model.model_size import in_words, parameter_count, trainable_count
from rca.facts.training.curves import config_number, config_text
from rca.facts.training.policy import rewarded


class Range(NamedTuple):
    """A usual range and the bounds outside of which a value deserves a word."""

    what: str
    low: float
    high: float
    alarm_low: float
    alarm_high: float
    source: str


MOSTLY_TRAINED = 0.5
"""Trainers print the line of adapters for full tuning as well; adapters train a few per cent."""
HARDLY_TRAINED = 0.05
"""Adapters by any name, or a head on a frozen model: both start anew and take larger rates."""
_METHOD_KEYS = (
    "finetuning_type",
    "train_type",
    "tuner_type",
    "peft_method",
    "sft_type",
    "tuning_type",
    "finetune_method",
)
_METHODS = frozenset({"lora", "qlora", "dora", "adalora", "longlora", "prefix", "prompt", "ptuning", "p_tuning", "ia3"})
_GPT3 = (
    (1.25e8, 6e-4),
    (3.5e8, 3e-4),
    (7.6e8, 2.5e-4),
    (1.3e9, 2e-4),
    (6.7e9, 1.2e-4),
    (1.3e10, 1e-4),
    (1.75e11, 6e-5),
)
"""Peak learning rates of GPT-3 by parameter count: Brown et al. 2020, table 2.1."""


def family(events: EventTable) -> str:
    """Return the optimizer family that the configuration names, e.g. `adam` or `sgd`, or an empty string."""
    name = config_text(events, "optimizer")
    for known in ("adafactor", "adagrad", "adadelta", "muon", "lamb", "lars", "lion", "rmsprop"):
        if known in name:
            return known
    if "adam" in name or "sophia" in name or "galore" in name:
        return "adam"
    if "sgd" in name or "momentum" in name:
        return "sgd"
    if any(events.config(key) is not None for key in ("adam_beta1", "adam_beta2", "adam_eps", "betas")):
        return "adam"
    if config_number(events, "momentum") and not name:
        return "sgd"
    return ""


def usual_range(events: EventTable) -> Range:
    """Return the usual learning rates for the optimizer, the model size and the kind of tuning of this run."""
    kind = family(events)
    if kind in {"sgd", "lars"}:
        return Range("SGD with momentum", 1e-3, 1.0, 1e-5, 2.0, "0.1 a batch of 256: Goyal et al. 2017")
    if kind == "lion":
        return Range("Lion", 1e-6, 1e-4, 1e-8, 3e-3, "three to ten times below AdamW: Chen et al. 2023")
    if kind == "muon":
        return Range("Muon", 1e-3, 5e-2, 1e-6, 0.5, "0.02 in its reference implementation: Jordan et al. 2024")
    if kind in {"adafactor", "adagrad", "adadelta"}:
        return Range(kind.capitalize(), 1e-4, 5e-2, 1e-7, 2.0, "its paper and the defaults of PyTorch and fairseq")
    if kind == "lamb":
        return Range("LAMB", 1e-4, 1e-2, 1e-6, 0.1, "You et al. 2020, table 1")
    if kind in {"adam", "rmsprop"} or _language_model(events) or _pretrained(events):
        return _adam(events, "an Adam-family optimizer" if kind else "a transformer (optimizer not named)")
    return Range("any optimizer", 1e-6, 0.1, 1e-9, 2.0, "the optimizer is not named, so only extremes count")


def _language_model(events: EventTable) -> bool:
    return all(config_number(events, key) is not None for key in ("hidden_size", "num_layers", "num_attention_heads"))


def _pretrained(events: EventTable) -> bool:
    """Say whether the settings name the model to start from, in the words of trainers with Adam as default."""
    keys = ("model_name_or_path", "_name_or_path", "base_model", "sft_model_path")
    return any(config_text(events, key) for key in keys)


def _adam(events: EventTable, what: str) -> Range:
    size = parameter_count(events)
    if adapters(events):
        source = "2e-4 and 1e-4: Hu et al. 2021, Dettmers et al. 2023"
        return Range("adapter tuning with Adam", 1e-5, 1e-3, 1e-7, 5e-3, source)
    pretrained = _pretrained(events)
    if pretrained and rewarded(events):
        source = "1e-6 to 1e-5: Ouyang et al. 2022, Shao et al. 2024"
        return Range(f"{what}, tuning a policy by rewards", 1e-7, 2e-5, 1e-9, 2e-4, source)
    if pretrained and (size is None or size[0] > 5e7):
        source = "5e-5 to 2e-5: Devlin et al. 2019, Touvron et al. 2023"
        return Range(f"{what}, fine-tuning a pretrained model", 1e-6, 1e-4, 1e-8, 5e-4, source)
    if size is None or size[0] < 1e8:
        source = "1e-3 is the default of Adam (Kingma and Ba 2015)"
        return Range(what, 1e-6, 1e-3, 1e-8, 1e-2, source)
    recipe = next((rate for limit, rate in _GPT3 if size[0] <= 1.5 * limit), _GPT3[-1][1])
    source = f"{recipe:g} at that size: Brown et al. 2020, table 2.1"
    return Range(f"{what} at {in_words(size[0])} parameters", 1e-6, recipe, 1e-8, 10 * recipe, source)


def adapters(events: EventTable) -> bool:
    """Say whether adapters are trained beside a model that stays as it is."""
    if (
        config_number(events, "lora_r")
        or config_text(events, "peft_type")
        or config_text(events, "adapter") not in {"", "none"}
    ):
        return True
    if any(config_text(events, key) in _METHODS for key in _METHOD_KEYS):
        return True
    if any(config_text(events, key) == "true" for key in ("use_peft", "use_lora", "use_qlora", "lora")):
        return True
    size, trained = parameter_count(events), trainable_count(events)
    if size is not None and trained is not None:
        share = trained / size[0]
        if share > MOSTLY_TRAINED or share < HARDLY_TRAINED:
            return share < HARDLY_TRAINED
    return any(event.name == "peft.trainable_parameters" for event in events.of_kind("log"))
