"""What `rca run` writes about a command: how it ended, when, and how much memory it took."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rca.errors import UnreadableSource
from rca.events import EventBuilder
from rca.ingest.interface import IngestContext, Ingested, Source
from rca.ingest.machine.exit_codes import add_exit
from rca.ingest.settings.config_rows import add_settings
from rca.ingest.tables.structured import decode, parse_json, read_whole

_MAX = 1 << 20


class LaunchRecordIngestor:
    """Reads the record of a watched command."""

    name = "launch record"

    def accepts(self, source: Source, head: bytes) -> bool:
        """Take JSON that starts with our mark."""
        return source.path.endswith(".json") and b'"rca_run": 1' in head[:40]

    def read(self, source: Source, context: IngestContext) -> Ingested:
        """Give one process event. Raises UnreadableSource where the record is not whole."""
        data, _cut, notes = read_whole(source, context, _MAX)
        found = parse_json(decode(data), what=source.path)
        code = found.get("exit_code") if isinstance(found, dict) else None
        if not isinstance(code, int) or isinstance(code, bool) or abs(code) > _MAX:
            raise UnreadableSource(f"{source.path} does not say how the command ended.")
        rank = _whole(found.get("rank"))
        out = EventBuilder(source.path, rank=source.rank if rank is None else rank, host=source.host)
        words = [str(word)[:500] for word in found.get("command") or ()][:200]
        time = _time(found.get("ended"))
        command = " ".join(words)[:2000]
        attrs = {
            "command": command,
            "seconds": _number(found.get("seconds")),
            "peak_rss_bytes": _whole(found.get("peak_rss_bytes")),
        }
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        add_exit(out, code, line=1, time=time, text=f"{command[:200]} {how}", attrs=attrs)
        add_settings(out, {"world_size": _whole(found.get("world_size"))}, role="training", line=1)
        return Ingested(
            out.build(),
            lines=1,
            bytes=len(data),
            first_time=_time(found.get("started")),
            last_time=time,
            warnings=notes,
        )


def _time(text: Any) -> int | None:
    try:
        return round(datetime.fromisoformat(str(text)).timestamp() * 1e6)
    except (ValueError, OverflowError, OSError):
        return None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53 else None


def _number(value: Any) -> float | None:
    return (
        float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e12 else None
    )
