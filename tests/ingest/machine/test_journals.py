"""Journals in their machine-readable forms: what is found in them points to the place in the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rca.events import Event, EventTable
from rca.ingest.interface import IngestContext, Source
from rca.ingest.read import read_source
from rca.ingest.registry import INGESTORS
from rca.rules.load import load

XID = "NVRM: Xid (PCI:0000:07:00): 79, pid=4123, name=python, GPU has fallen off the bus."
OOM = "Out of memory: Killed process 81233 (python3) total-vm:412345672kB, anon-rss:251658240kB, file-rss:68224kB"


@pytest.fixture
def named(tmp_path: Path) -> Callable[..., tuple[Event, ...]]:
    def go(name: str, data: str | bytes, signature: str) -> tuple[Event, ...]:
        file = tmp_path / name
        file.write_bytes(data.encode() if isinstance(data, str) else data)
        context = IngestContext(signatures=load().patterns)
        record, ingested = read_source(Source(name, file, file.stat().st_size), INGESTORS, context)
        assert ingested is not None, record
        return EventTable.from_parts([ingested.events]).named(signature)

    return go


def entry(message: object, **more: str) -> str:
    return json.dumps(
        {
            "__REALTIME_TIMESTAMP": "1740888000123456",
            "SYSLOG_IDENTIFIER": "kernel",
            "_HOSTNAME": "node17",
            "MESSAGE": message,
            **more,
        }
    )


def test_json_lines(named: Callable[..., tuple[Event, ...]]) -> None:
    lines = [entry("started", SYSLOG_IDENTIFIER="systemd", _PID="1"), "broken {", entry(list(XID.encode())), entry(OOM)]
    data = "\n".join(lines)
    (xid,) = named("journal.json", data, "nvidia.xid")
    assert (xid.line, xid.offset, xid.host, xid.attr("xid")) == (3, data.index(lines[2]), "node17", 79)
    assert xid.time == 1740888000123456
    (kill,) = named("journal.json", data, "kernel.oom_kill")
    assert (kill.line, kill.attr("pid")) == (4, 81233)


def test_export(named: Callable[..., tuple[Event, ...]]) -> None:
    long = b"two\nlines"
    data = (
        b"__CURSOR=s=1\n__REALTIME_TIMESTAMP=1740888000000001\n_HOSTNAME=node17\nMESSAGE\n"
        + len(long).to_bytes(8, "little")
        + long
        + f"\n\n__REALTIME_TIMESTAMP=1740888000000002\n_HOSTNAME=node17\nMESSAGE={XID}\nPRIORITY=3\n".encode()
    )
    (xid,) = named("journal.export", data, "nvidia.xid")
    assert (xid.host, xid.time) == ("node17", 1740888000000002)
    assert data[xid.offset or 0 :].startswith(b"MESSAGE=NVRM")
    assert xid.line == data[: xid.offset].count(b"\n") + 1


def test_dmesg(named: Callable[..., tuple[Event, ...]]) -> None:
    data = f"""{{
   "dmesg": [
      {{
         "pri": 3,
         "time":     91823.400123,
         "msg": "{XID}"
      }},{{
         "pri": 6,
"""
    (xid,) = named("dmesg.json", data, "nvidia.xid")
    assert (xid.line, xid.text) == (6, f"[91823.400123] {XID}")


@pytest.mark.parametrize(
    ("line", "host", "timed"),
    [
        (f"2025-03-02T04:00:00+0000 node17 kernel: {XID}", "node17", True),
        (f"2025-03-02T04:00:00.123456+00:00 node17 kernel: {XID}", "node17", True),
        (f"2025-03-02T04:00:00Z node17 nvidia-persistenced[1811]: {XID}", "node17", True),
        (f"<3>1 2025-03-02T04:00:00.123456Z node17 kernel - - - {XID}", None, True),
        (f"kern  :err   : [Sun Mar  2 04:00:00 2025] {XID}", None, True),
        (f"kern  :err   : [91823.400123] {XID}", None, False),
        (f"2025-03-02T04:00:00Z INFO trainer: {XID}", None, True),
    ],
)
def test_prefixes_of_the_journal_for_people(
    named: Callable[..., tuple[Event, ...]], line: str, host: str | None, timed: bool
) -> None:
    (xid,) = named("journal.txt", f"{line}\n", "nvidia.xid")
    assert (xid.host, xid.time is not None) == (host, timed)


def test_a_journal_of_any_size_is_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rca.ingest.places.content.IN_MEMORY", 1 << 16)
    monkeypatch.setattr("rca.ingest.machine.journals._GIVE_BACK", 1 << 14)
    monkeypatch.setattr("rca.ingest.logs.container_lines._GIVE_BACK", 1 << 14)
    for name in ("journal.json", "journal.export"):
        rows = [*(f"usb 1-1: message {number}" for number in range(2_000)), XID]
        times = [str(1_700_000_000_000_000 + at) for at in range(len(rows))]
        said = zip(times, rows, strict=True)
        if name.endswith("json"):
            lines = [json.dumps({"__REALTIME_TIMESTAMP": time, "MESSAGE": row}) for time, row in said]
        else:
            lines = [f"__CURSOR=a\n__REALTIME_TIMESTAMP={time}\nMESSAGE={row}\n" for time, row in said]
        file = tmp_path / name
        file.write_text("\n".join(lines) + "\n")
        given = Source(path=name, file=file, size=file.stat().st_size)
        _, ingested = read_source(given, INGESTORS, IngestContext(signatures=tuple(load().signatures.values())))
        assert ingested is not None
        found = [row for row in ingested.events.to_pylist() if "Xid" in (row["text"] or "")]
        assert {row["offset"] for row in found} == {
            file.read_bytes().rfind(b"MESSAGE=" if name.endswith("export") else b"{")
        }
