"""Words of trouble, their harmless uses, and places in a stack."""

from __future__ import annotations

import pytest

from rca.ingest.logs.scanner import scanner_for
from rca.unexplained.marks import TROUBLE, is_frame, mark


@pytest.mark.parametrize(
    ("text", "loudness"),
    [
        ("RuntimeError: the lease is gone", "exception"),
        ("acme::pool::LeaseError: gone", "exception"),
        ("terminate called after throwing an instance of 'std::bad_alloc'", "exception"),
        ("2026-03-01 12:00:00 - FATAL - giving up", "exception"),
        ("process 12 got SIGSEGV", "exception"),
        ("acme.lease - ERROR - lease 88 was not renewed", "error_word"),
        ("unable to reach the store", "error_word"),
        ("ошибка: аренда не продлена", "error_word"),
        ("训练失败：无法连接", "error_word"),
        ("Fehler beim Lesen", "error_word"),
        ("WARNING: could not import flash_attn", "hint"),
        ("step 3 loss 2.1", ""),
        ("word error rate 0.31", ""),
        ("epoch 2: 0 errors", ""),
        ("errors=0 failed: 0, lost=0.0", ""),
        ("Mean squared error 0.3", ""),
        ("retry on failure", ""),
    ],
)
def test_how_loud_a_line_is(text, loudness) -> None:
    assert mark(text) == loudness


def test_the_pattern_for_bytes_finds_what_the_one_for_text_finds() -> None:
    lines = ["ошибка", "all is well", "エラー", "falló", "FAILED", "KeyError", "训练失败"]
    hits = scanner_for([TROUBLE]).hits("\n".join(lines).encode(), {})
    text = "\n".join(lines).encode()
    assert [text[hit.start : hit.end].decode() for hit in hits] == [line for line in lines if mark(line)]


@pytest.mark.parametrize(
    ("text", "before"),
    [
        ("Traceback (most recent call last):", ""),
        ('  File "/opt/train.py", line 3, in step', ""),
        ("    raise LeaseError(lease)", '  File "/opt/train.py", line 3, in step'),
        ("    ^^^^^^^^^^", ""),
        ("frame #3: c10::Error::Error() + 0x57 (0x7f in libc10.so)", ""),
        ("\tat acme.pool.Client.renew(Client.java:12)", ""),
    ],
)
def test_places_in_a_stack_are_no_messages(text, before) -> None:
    assert is_frame(text, before)
    assert not is_frame("LeaseError: gone", "    raise LeaseError(lease)")
