"""The records of a W&B run file: the part of their protobuf layout that says something of a failure.

W&B writes what `wandb_internal.proto` describes; the fields that are read are listed here, so that neither wandb nor
generated code is needed. What is not listed is passed over by the protobuf reader.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

_MESSAGES: Mapping[str, str] = {
    "Record": "2 history History, 3 summary Summary, 5 config Config, 7 stats Stats, 10 alert Alert, 13 output Output, "
    "17 run Run, 18 exit Exit, 26 environment Environment",
    "Item": "1 key bytes, 2 nested_key bytes*, 16 value_json bytes",
    "Step": "1 num int64",
    "History": "1 item Item*, 2 step Step",
    "Summary": "1 update Item*",
    "Config": "1 update Item*",
    "Time": "1 seconds int64, 2 nanos int32",
    "Stats": "2 timestamp Time, 3 item Item*",
    "Alert": "1 title bytes, 2 text bytes, 3 level bytes",
    "Output": "1 stream int32, 2 timestamp Time, 3 line bytes",
    "Run": "1 run_id bytes, 3 project bytes, 4 config Config, 8 display_name bytes, 13 host bytes, "
    "14 starting_step int64, 17 start_time Time, 18 resumed bool",
    "Exit": "1 exit_code int32, 2 runtime int32",
    "Memory": "1 total uint64",
    "Gpu": "1 name bytes, 2 memory_total uint64, 4 architecture bytes",
    "Environment": "1 os bytes, 2 python bytes, 5 args bytes*, 6 program bytes, 12 host bytes, 14 executable bytes, "
    "17 cpu_count uint32, 18 gpu_type bytes, 19 gpu_count uint32, 21 memory Memory, 24 gpu_nvidia Gpu*, "
    "25 cuda_version bytes",
}
"""Message -> its fields as `number name type`, a star for repeated ones. Texts are read as bytes, because a program may
print what is no UTF-8 and one such character must not cost the record."""

_QUOTED = {b'"NaN"': float("nan"), b'"Infinity"': float("inf"), b'"-Infinity"': float("-inf")}


@lru_cache(maxsize=1)
def record_class() -> Any:
    """Return the class that reads one record."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # type: ignore[import-untyped]

    file = descriptor_pb2.FileDescriptorProto(name="rca/wandb_run.proto", package="rca.wandb_run", syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field in fields.split(", "):
            number, label, kind = field.split(" ")
            plain = kind.rstrip("*")
            added = message.field.add(name=label, number=int(number))
            added.label = added.LABEL_REPEATED if kind.endswith("*") else added.LABEL_OPTIONAL
            if plain in _MESSAGES:
                added.type, added.type_name = added.TYPE_MESSAGE, f".{file.package}.{plain}"
            else:
                added.type = getattr(added, f"TYPE_{plain.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{file.package}.Record"))


def text_of(data: bytes) -> str:
    """Return a text as it was most likely meant."""
    return data.decode("utf-8", "replace")


def key_of(item: Any) -> str:
    """Return the key of an item, nested ones with dots between their parts."""
    return text_of(item.key or b".".join(item.nested_key))


def number_of(text: bytes) -> float | None:
    """Return the number that a JSON text is; W&B quotes what JSON has no number for."""
    try:
        return float(text)
    except ValueError:
        return _QUOTED.get(text)


def micros_of(time: Any) -> int | None:
    """Return microseconds since the epoch, None where no time is given."""
    return time.seconds * 1_000_000 + time.nanos // 1000 if 0 < time.seconds < 4_100_000_000 else None
