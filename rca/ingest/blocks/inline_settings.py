"""Settings mentioned in passing before training starts: `optimizer AdamW lr=3e-4 wd=0.1`, `args: batch=4`."""

from __future__ import annotations

import re
from typing import Any

from rca.events import EventBuilder
from rca.ingest.blocks.settings_out import tell
from rca.ingest.logs.document import Document
from rca.ingest.names import canonical_config
from rca.ingest.settings.reprs import Unknown, scalar

_KEYS = (
    r"lr|learning_rate|base_lr|max_lr|min_lr|batch_size|batch|bs|micro_batch_size|global_batch_size|accum\w*|"
    r"grad_accum\w*|"
    r"gradient_accumulation_steps|seq_len\w*|max_seq_len\w*|max_length|block_size|context_length|epochs|"
    r"num_epochs|max_steps|"
    r"total_steps|warmup\w*|weight_decay|wd|optimizer|optim|momentum|beta1|beta2|betas|eps|clip\w*|grad_clip|"
    r"max_grad_norm|max_norm|"
    r"precision|mixed_precision|dtype|amp|fp16|bf16|tf32|compile|gradient_checkpointing|"
    r"activation_checkpointing|use_cache|"
    r"world_size|nproc_per_node|num_workers|workers|seed|num_labels|num_classes|vocab_size|hidden_size|"
    r"num_layers|n_layers?|"
    r"dropout|max_new_tokens|max_tokens|max_model_len|gpu_memory_utilization|tensor_parallel_size|lora_r|"
    r"load_in_[48]bit|"
    r"(?:generation_)?num_beams|num_beam_groups|num_return_sequences|best_of|beam_size|beams|do_sample|repetition_penalty|"
    r"no_repeat_ngram_size|length_penalty|generation_max_length|do_lower_case|strip_accents|enforce_eager|nbits|"
    r"padding|packing|group_by_length|temperature|top_p|attn_implementation|scheduler|lr_scheduler\w*|accumulate_grad_batches"
)
_PAIR = re.compile(
    r"(?<![\w.\-/])(?P<key>" + _KEYS + r")(?P<sep>\s?=\s?|: ?)"
    r"(?P<value>'[^']{0,80}'|\"[^\"]{0,80}\"|\([\d., e+-]{3,60}\)|\[[\d., e+-]{3,60}\]|[\w.+-]{1,60})(?![\w(/=])"
)
_VOCABULARY = re.compile(r"\bvocab(?:ulary)?(?:[ _]size)?[ =:]{1,3}(?P<value>\d{2,7})\b", re.I)
_WORD = re.compile(r"[-+]?[\d.]+(?:e[-+]?\d+)?|true|false|none|on|off", re.I)
_ADVICE = re.compile(
    r"\b(?:consider|recommend\w*|suggest\w*|should|try|passing|pass in|instead|deprecat\w*|incompatible|warn\w*|"
    r"default\w*|unless|if you|to avoid|please|expected|must|cannot|got|error)\b",
    re.I,
)
"""Words of advice and complaint: what they name is not what the run uses."""
_MOST = 2000


class InlineSettingsParser:
    """`key=value` pairs of known settings, while no step has been seen; after that a line tells measurements."""

    name = "inline settings"
    triggers: tuple[str, ...] = (
        r"(?:^|[^\w.\-/])(?:" + _KEYS + r")(?:\s?=\s?|: ?)[\w'\"(.+-]",
        r"(?i)\bvocab(?:ulary)?(?:[ _]size)?[ =:]{1,3}\d{2,7}\b",
    )

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Add the settings; return the line after, or `line` where there are none or training runs already."""
        message = document.prefix(line).message[:_MOST]
        if document.step(line) is not None or _ADVICE.search(message):
            return line
        found: dict[str, Any] = {}
        for item in _PAIR.finditer(message):
            value = scalar(item["value"])
            # After a colon any word may follow; only a number or a switch is sure to be the value.
            sure = "=" in item["sep"] or _WORD.fullmatch(item["value"]) is not None
            name = canonical_config(item["key"])
            # `use FP16 precision: True` names the precision in front of the key.
            vague = name == "precision" and isinstance(value, bool)
            if sure and not vague and value is not None and not isinstance(value, Unknown):
                found.setdefault(name, value)
        named = _VOCABULARY.search(message)
        if named is not None:
            found.setdefault("vocab_size", int(named["value"]))
        return line + 1 if found and tell(out, document, line, found, role="log line") else line
