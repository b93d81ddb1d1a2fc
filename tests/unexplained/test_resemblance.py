"""Known causes by the words that a line shares with what is written about them."""

from __future__ import annotations

import pytest

from rca.rules.load import Knowledge
from rca.rules.schema import Cause, EvidenceRule, Signature
from rca.unexplained import resemblance
from rca.unexplained.resemblance import Document, documents, index_of, resembling, terms

WRITTEN = [
    Document("distributed.network", "gloo.peer_reset", "connection reset by the peer of the ring"),
    Document("distributed.network", "", "the interconnect between nodes dropped a connection"),
    Document("memory.oom", "", "the device ran out of memory while the activations were stored"),
    Document("data.corrupt", "", "a shard of the data set was truncated and its checksum differs"),
    Document("", "acme.lease_lost", "the lease of the pool was lost and could not be renewed"),
    Document("code.shape", "", "two tensors have shapes that do not multiply"),
    Document("code.dtype", "", "an operation got numbers of another precision"),
    Document("weights.missing", "", "a file of weights is missing from the folder"),
]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_a_line_resembles_the_text_that_shares_its_rare_words() -> None:
    found = resembling(["StoreError: connections were reset by peers"], WRITTEN, index_of(WRITTEN))
    assert (found[0].cause, found[0].signature) == ("distributed.network", "gloo.peer_reset")
    assert set(found[0].shared) >= {"reset", "peers"}
    assert 0 < found[0].similarity <= 1


def test_a_signature_that_no_cause_asks_for_is_named_by_itself() -> None:
    found = resembling(["the pool has lost my lease"], WRITTEN, index_of(WRITTEN))
    assert (found[0].cause, found[0].signature) == ("", "acme.lease_lost")


def test_a_line_of_unheard_words_resembles_nothing() -> None:
    assert resembling(["flux inverter misaligned"], WRITTEN, index_of(WRITTEN)) == ()
    assert resembling([], WRITTEN, index_of(WRITTEN)) == ()


def test_the_line_that_resembles_most_is_named() -> None:
    found = resembling(["nothing to see", "shard truncated, checksum differs"], WRITTEN, index_of(WRITTEN))
    assert [(item.cause, item.line) for item in found] == [("data.corrupt", 1)]


def test_the_index_comes_from_the_cache_and_a_broken_one_is_made_again(tmp_path, monkeypatch) -> None:
    index = index_of(WRITTEN)
    stored = next((tmp_path / "rca").glob("resembles-*"))
    monkeypatch.setattr(resemblance, "_made", lambda _: pytest.fail("made again"))
    assert index_of(WRITTEN) == index
    monkeypatch.undo()
    stored.write_bytes(b"rubbish")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert index_of(WRITTEN) == index


def test_words_are_split_and_brought_to_one_form() -> None:
    assert [word for _, word in terms("CUDNN_STATUS_FAILED")] == ["cudnn_status_failed", "cudnn", "status", "failed"]
    assert [word for _, word in terms("torch.OutOfMemoryError")] == [
        "torch",
        "outofmemoryerror",
        "out",
        "memory",
        "error",
    ]
    assert {stem for stem, _ in terms("expired expires expiring")} == {"expir"}


def test_without_knowledge_nothing_is_resembled() -> None:
    assert resembling(["a line"], [], index_of([])) == ()


def test_every_cause_and_signature_has_a_text() -> None:
    rule = EvidenceRule(id="m", signature="acme.lease_lost", weight=3, says="The lease is gone.")
    cause = Cause(id="acme.lease", title="Lease", sentence="It ran out.", summary="-", prior=0.01, evidence=(rule,))
    one = Signature(id="acme.lease_lost", emitter="acme", pattern="lease lost", matches=("lease lost",))
    two = Signature(id="acme.other", emitter="acme", pattern="other", matches=("other",))
    outcome = cause.model_copy(update={"id": "none"})
    knowledge = Knowledge(signatures={one.id: one, two.id: two}, causes={cause.id: cause, "none": outcome})
    found = [(document.cause, document.signature) for document in documents(knowledge)]
    assert found == [("acme.lease", ""), ("acme.lease", "acme.lease_lost"), ("", "acme.other")]
