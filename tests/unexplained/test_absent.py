"""What is asked for where no cause is named."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

import pytest

from rca.diagnosis import SourceRecord
from rca.events import EventBuilder, EventTable
from rca.facts.interface import Fact
from rca.facts.registry import CATALOGUE
from rca.hypotheses.match import View
from rca.rules.advice_schema import Record
from rca.rules.load import load, walk
from rca.rules.schema import Signature
from rca.unexplained.absent import absent

KILLED = Fact("failure.kind", "signal", says="A signal.")
DMESG = Record(
    id="kernel_log",
    wanted={"fact": "failure.kind", "value": "signal"},
    files=("*dmesg*",),
    emitters=("kernel",),
    says="Killed, and no kernel log of {run.world_size} ranks.",
    tells="run.ranks_missing",
    record="dmesg -T > dmesg.txt",
)


def ask(*records: Record, facts=(), names=(), said=()):
    out = EventBuilder("a.log")
    for name in said:
        out.add(kind="log", name=name, line=1, text="-")
    view = View(events=EventTable.from_parts([out.build()]), facts={fact.name: fact for fact in facts})
    oom = Signature(id="kernel.oom", emitter="kernel", pattern="oom", matches=("oom",))
    return absent(records, view, [SourceRecord(path=name) for name in names], {"kernel.oom": oom})


def test_it_is_asked_for_when_wanted_and_not_there() -> None:
    facts = [KILLED, Fact("run.world_size", 4), Fact("run.ranks_missing", 1, says="Rank 3 left nothing.")]
    found = ask(DMESG, facts=facts)
    assert [item.says for item in found] == ["Killed, and no kernel log of 4 ranks. Rank 3 left nothing."]
    assert found[0].record == "dmesg -T > dmesg.txt"


def test_it_is_not_asked_for_when_nothing_wants_it_or_it_is_there() -> None:
    assert ask(DMESG) == ()
    assert ask(DMESG, facts=[KILLED], names=["node/dmesg_gpu1.txt"]) == ()
    assert ask(DMESG, facts=[KILLED], said=["kernel.oom"]) == ()
    present = DMESG.model_copy(update={"wanted": None, "present": DMESG.wanted})
    assert ask(present, facts=[KILLED]) == ()
    assert len(ask(present)) == 1


def test_one_command_is_asked_for_once() -> None:
    twin = DMESG.model_copy(update={"id": "other", "says": "Other."})
    assert [item.id for item in ask(DMESG, twin, facts=[KILLED])] == ["kernel_log"]


def test_the_records_that_come_along_name_facts_that_exist() -> None:
    records = load().records.values()
    asked = [rule for record in records for rule in (record.wanted, record.present) if rule is not None]
    named = {condition.fact for rule in asked for condition in walk(rule) if condition.fact is not None}
    named |= {record.tells for record in records if record.tells}
    assert len(records) > 10
    assert named <= set(CATALOGUE)


@pytest.mark.parametrize(("record", "name"), [("kernel_log_after_kill", "dmesg.txt"), ("versions", "requirements.txt")])
def test_what_a_command_writes_is_recognised(record, name) -> None:
    rule = load().records[record]
    assert name in rule.record
    assert any(fnmatch(name, pattern) for pattern in rule.files)


def test_a_team_adds_its_own_records(tmp_path: Path) -> None:
    text = 'records:\n  - {id: pool_log, says: "No log of the pool.", record: "acme pool log > pool.txt"}\n'
    (tmp_path / "records.yaml").write_text(text)
    assert load([tmp_path]).records["pool_log"].record == "acme pool log > pool.txt"
