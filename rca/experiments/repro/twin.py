"""A program for a twin experiment: only the code that its two arms need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rca.errors import ExperimentError
from rca.experiments.repro import architecture
from rca.experiments.repro.render import LIMIT, Expression, dictionary, literal, rendered, rows
from rca.experiments.twin.config import DENSE, SEQ2SEQ, TwinConfig, differences

_FIXED = ("family", "width", "heads", "vocab", "labels", "seq", "steps")
"""Sizes that shape the data or the whole program: the same in all arms."""
_SIZES = (
    *("layers", "kv_heads", "ff", "tied", "init_std", "dropout", "activation", "residual", "norm_eps", "attention"),
)
_TRAINING = (
    *("seed", "optimizer", "lr", "lr_factor", "beta1", "beta2", "eps", "momentum", "weight_decay", "warmup", "decay"),
    *("decay_steps", "clip", "batch", "accumulation", "accumulation_mean", "zero_grad", "precision", "scaler"),
    *("init_scale", "growth_interval", "loss_factor", "loss", "loss_dtype", "loss_reduction", "logit_offset"),
    *("activation_gain", "init_factor", "frozen", "label_offset", "bad_batch", "bad_step", "bad_every"),
    *("skip_bad_batches", "truncate", "padding", "masking", "samples"),
)
KNOWN = frozenset({*_FIXED, *_SIZES, *_TRAINING})
"""Fields of `TwinConfig` that a program can show; an arm that sets another one has no program."""

_QUIET = frozenset({"beta1", "beta2", "eps", "momentum", "weight_decay"})
"""Written where they are used, unless the arms differ in them."""
_ONLY_WITH = frozenset({
    *("optimizer", "decay_steps", "scaler", "init_scale", "growth_interval", "loss_dtype", "bad_batch", "bad_step"),
    *("bad_every", "truncate", "masking"),
})  # fmt: skip
"""Listed where the arms differ in them, or where another setting gives them a meaning."""


class Arms:
    """The settings of all arms of a program, the control first."""

    def __init__(self, configs: Mapping[str, TwinConfig]) -> None:
        self.configs = dict(configs)
        self.control = self.configs["control"]
        self._every = tuple(self.configs.values())

    def values(self, name: str) -> tuple[Any, ...]:
        """What the arms set, without repetition."""
        return tuple(dict.fromkeys(getattr(config, name) for config in self._every))

    def varies(self, name: str) -> bool:
        """Whether two arms differ in a field."""
        return len(self.values(name)) > 1

    def used(self, name: str) -> bool:
        """Whether any arm sets a field to something else than the default of a twin."""
        return self.values(name) != (TwinConfig.model_fields[name].default,)

    def code(self, name: str) -> str:
        """The value in the program: a literal where all arms agree and it is no setting that the program lists."""
        listed = self.varies(name) or (name in _TRAINING and name not in _QUIET)
        return f"s.{name}" if listed else literal(getattr(self.control, name))


def twin_program(
    configs: Mapping[str, TwinConfig],
    *,
    seeds: Sequence[int],
    title: str,
    parts: Sequence[tuple[str, str]] = (),
    device: str = "cpu",
    hopeless: bool = True,
) -> str:
    """Return the program for arms named `control`, `reference` and, if there is one, `treatment`.

    `parts` are what the docstring tells, the most important first. `hopeless` says whether an arm may have been stopped
    early, as the twin does where going on cannot change the outcome.

    Raises ExperimentError when an arm sets something that no program can show.
    """
    arms = Arms(configs)
    _check(arms)
    control = arms.control
    dense, seq2seq = control.family in DENSE, control.family in SEQ2SEQ
    classes = control.objective == "classes"
    used = {name for name in (*_SIZES, *_TRAINING) if arms.used(name)}
    kinds = {kind for kind in arms.values("bad_batch") if kind != "none"}
    varied = {name for name in (*_SIZES, *_TRAINING) if arms.varies(name)}
    model_settings = () if dense else (*_model(arms), *_optional(arms))
    varied_model = bool(varied & set(_SIZES)) if dense else "attention" in varied or "s." in "".join(model_settings)
    data = "data_dense" if dense else "data_classes" if classes else "data_tokens"
    half = "precision" in used
    listed = _listed(arms, kinds)
    context = {
        "seeds": literal(tuple(seeds)),
        "steps": control.steps,
        "control_lines": dictionary("CONTROL = ", {name: getattr(control, name) for name in listed}),
        "others": [name for name in configs if name != "control"],
        "other_lines": _others(arms),
        "labels": control.labels,
        "vocab": control.vocab,
        "seq": control.seq,
        "family": control.family,
        "width": control.width,
        "device": device,
        "move": "" if device == "cpu" else f'.to("{device}")',
        "data": f"{data}.jinja",
        "dense": dense,
        "seq2seq": seq2seq,
        "classes": classes,
        "auto_class": architecture.auto_class(control.family),
        "model_settings": model_settings,
        "between": _between(arms),
        "varied": varied,
        "varied_model": varied_model,
        "down_has_bias": architecture.down_has_bias(control.family),
        "down_projection": architecture.down_projection(control.family),
        "changed_model": bool(used & {"init_factor", "activation_gain"}),
        "build_needs_settings": varied_model or bool(used & {"init_factor", "activation_gain"}),
        "half": half,
        "special_loss": half or bool(used & {"loss", "loss_reduction", "logit_offset"}),
        "shifted": "label_offset" in used and not classes,
        "low_loss": half and "loss_dtype" in used,
        "used": used - (set() if half else {"loss_dtype"}),
        "kinds": kinds,
        "bad": _bad(arms, kinds),
        "batch_arguments": "s.batch, s.label_offset" if not classes and "label_offset" in used else "s.batch",
        "optimizers": {name: _optimizer(arms, name) for name in arms.values("optimizer")},
        "mapped": _mapped(arms),
        "hopeless": hopeless
        and any(not _has_scaler(config) for name, config in arms.configs.items() if name != "reference"),
        "scaled": _scaled(arms),
        "scheduled": bool(used & {"warmup", "decay"}),
        "masks": ("padding" in used and control.objective == "tokens") or "all" in arms.values("masking"),
        "masks_all": "all" in arms.values("masking"),
        "clip": _clip(arms),
        "s": arms.code,
        "when": (lambda kind: "bad" if kinds == {kind} else f's.bad_batch == "{kind}" and bad'),
    }
    return rendered("twin.jinja", context, title=title, parts=parts)


def _check(arms: Arms) -> None:
    for name in TwinConfig.model_fields:
        if name not in KNOWN and arms.used(name):
            raise ExperimentError(f"no script can show the setting `{name}` of the twin yet")
        if name in _FIXED and arms.varies(name):
            raise ExperimentError(f"no script can show arms that differ in `{name}`")
    for config in arms.configs.values():
        if config.skip_bad_batches and config.masking == "all":
            raise ExperimentError("no script can show an arm that leaves out every batch")


def _model(arms: Arms) -> tuple[str, ...]:
    """The settings of the configuration class, in lines."""
    control = arms.control
    wanted = ("layers", "kv_heads", "ff", "tied", "init_std", "dropout", "activation", "norm_eps")
    sizes = {name: Expression(arms.code(name)) for name in wanted if None not in arms.values(name)}
    fixed = {"hidden": control.width, "heads": control.heads, "vocab": control.vocab, "labels": control.labels}
    found = architecture.settings(control.family, {**sizes, **fixed, "positions": 2 * control.seq})
    found |= dict.fromkeys(architecture.dropouts(control.family), sizes["dropout"])
    lines = rows(found, indent=16)
    return (f"settings = {lines[0]}", *(f"settings |= {line}" for line in lines[1:]))


def _optional(arms: Arms) -> tuple[str, ...]:
    """Settings that one arm leaves to the model class: a line, or none."""
    found: dict[str, Any] = {}
    for name in ("tied", "init_std", "activation", "norm_eps"):
        if arms.varies(name) and None in arms.values(name):
            names = architecture.spelling(arms.control.family, name)
            found |= dict.fromkeys(names, Expression(f"s.{name}"))
    if not found:
        return ()
    line = f"settings |= {{name: value for name, value in {literal(found)}.items() if value is not None}}"
    if len(line) + 4 <= LIMIT:
        return (line,)
    return (
        f"given = {literal(found)}",
        "settings |= {name: value for name, value in given.items() if value is not None}",
    )


def _between(arms: Arms) -> str:
    """What is between two layers of a dense network: one module, or one for each value that an arm sets."""
    if not arms.varies("activation"):
        return architecture.between(arms.control.activation)
    kinds = {name: Expression(architecture.between(name)) for name in arms.values("activation")}
    return f"{literal(kinds)}[s.activation]"


def _listed(arms: Arms, kinds: set[str]) -> list[str]:
    """Fields of the dictionary at the top: what the arms differ in and what makes the training what it is."""
    wanted = {"lr", "batch", *(name for name in (*_SIZES, *_TRAINING) if arms.varies(name))}
    wanted |= {name for name in _TRAINING if name not in _ONLY_WITH | _QUIET and arms.used(name)}
    if "fp16" in arms.values("precision") and arms.used("scaler"):
        wanted.add("scaler")
    if "fp16" in arms.values("precision"):
        wanted |= {name for name in ("init_scale", "growth_interval") if arms.used(name)}
    wanted |= {"decay_steps"} if arms.used("decay") and arms.used("decay_steps") else set()
    wanted |= {"warmup"} if arms.used("decay") else set()
    wanted |= {"masking"} if arms.used("padding") or "all" in arms.values("masking") else set()
    wanted |= {"truncate"} if "long" in kinds and arms.used("truncate") else set()
    if arms.used("precision") and arms.used("loss_dtype"):
        wanted.add("loss_dtype")
    if kinds:
        wanted |= {"bad_batch", "bad_step", *(["bad_every"] if arms.used("bad_every") else [])}
    return [name for name in (*_SIZES, *_TRAINING) if name in wanted]


def _others(arms: Arms) -> list[str]:
    """The other arms, as lines of the program: what they change."""
    lines = []
    for name, config in arms.configs.items():
        if name == "control":
            continue
        every = (*_SIZES, *_TRAINING)
        update = {field: getattr(config, field) for field in every if field in differences(arms.control, config)}
        lines += dictionary(f"{name.upper()} = CONTROL | ", update)
    return lines


def _has_scaler(config: TwinConfig) -> bool:
    return config.precision == "fp16" and config.scaler and config.frozen != "all"


def _mapped(arms: Arms) -> bool:
    return arms.used("lr_factor")


def _optimizer(arms: Arms, name: str) -> str:
    """The lines that make an optimizer; parameters and rates as the program groups them."""
    if _mapped(arms):
        first = "groups"
    else:
        first = f"{'trained[s.frozen]' if arms.used('frozen') else 'model.parameters()'}, lr=s.lr"
    half = "fp16" in arms.values("precision")
    fused = "True" if not half else "False" if arms.values("precision") == ("fp16",) else 's.precision != "fp16"'
    beta1, beta2, eps, decay, momentum = map(arms.code, ("beta1", "beta2", "eps", "weight_decay", "momentum"))
    adam = f"betas=({beta1}, {beta2}), eps={eps}, weight_decay={decay}, fused={fused}"
    kind, rest = {
        "adamw": ("AdamW", adam),
        "adam": ("Adam", adam),
        "sgd": ("SGD", f"weight_decay={decay}, momentum={momentum}, fused={fused}"),
        "rmsprop": ("RMSprop", f"weight_decay={decay}, eps={eps}, momentum={momentum}"),
        "adagrad": ("Adagrad", f"weight_decay={decay}"),
    }[name]
    inside = f"{first}, {rest}"
    blanks = " " * (8 if arms.varies("optimizer") else 4)
    line = f"{blanks}optimizer = torch.optim.{kind}({inside})"
    return line if len(line) <= LIMIT else f"{blanks}optimizer = torch.optim.{kind}(\n{blanks}    {inside}\n{blanks})"


def _scaled(arms: Arms) -> str:
    """The arguments that switch the loss scaler on in the right arms; nothing where none has one."""
    precisions, wishes = arms.values("precision"), arms.values("scaler")
    if not any(map(_has_scaler, arms.configs.values())):
        return ""
    conditions = [] if precisions == ("fp16",) else ['s.precision == "fp16"']
    conditions += ["s.scaler"] if len(wishes) > 1 else []
    conditions += ['s.frozen != "all"'] if "all" in arms.values("frozen") else []
    more = "".join(f", {name}=s.{name}" for name in ("init_scale", "growth_interval") if arms.used(name))
    return f"{more}, enabled={' and '.join(conditions) or 'True'}"


def _bad(arms: Arms, kinds: set[str]) -> str:
    """When a batch is a bad one."""
    if not kinds:
        return ""
    every = " % (s.bad_every or STEPS)" if arms.used("bad_every") else ""
    hit = f"step >= s.bad_step and (step - s.bad_step){every} == 0" if every else "step == s.bad_step"
    return hit if not arms.varies("bad_batch") else f's.bad_batch != "none" and {hit}'


def _clip(arms: Arms) -> str:
    if not arms.used("clip"):
        return "math.inf"
    return "s.clip or math.inf" if 0.0 in arms.values("clip") else "s.clip"
