"""Pickles whose every instruction was looked at and builds a plain value, loaded at the speed of C.

PyTorch's own writer uses some twenty instructions. A pickle made of these alone can name, import and call nothing, and
cannot make the loader work or allocate more than in proportion to its size; any other is left to `plain_pickle`.
"""

from __future__ import annotations

import io
import pickle
import re
from typing import Any, NoReturn

MAX_VETTED = 8 << 20
"""Bytes of a pickle that is loaded so: each of them may be an empty list of 64 bytes."""
_MAX_INDEX = 1 << 20
"""Memo places; the loader sets aside 16 bytes for each up to the largest."""
_LONGEST = 1 << 20

_MAX_TUPLES = 4_000
"""Tuples of anything: as keys, those of integers can be made to collide, and each is then compared with all."""

_TEXT = 0x58
_INTEGERS = b"|".join(b"\\x%02x.{%d}" % (length, length) for length in range(9))
_GET = rb"(?:h.|j..[\0-\x0f]\0)"
_RUN = re.compile(
    rb"(?:" + _GET + rb"{2}\x86(?![qr])"  # TUPLE2 of what is shared, the usual one: the hashes of texts are secret
    rb"|" + _GET + rb"|q.|r..[\0-\x0f]\0"  # BINGET, LONG_BINGET, BINPUT, LONG_BINPUT below _MAX_INDEX
    rb"|[}\]](?:\([ue])?"  # empty containers, and those to which nothing is added
    rb"|\((?![ue])"  # MARK
    rb"|[ueas]"  # SETITEMS, APPENDS, APPEND, SETITEM: what is on top then is a container
    # Only texts and containers are shared: an integer could be part of a tuple that should hold texts.
    rb"|(?:[N\x88\x89)]|K.|M..|J.{4}|G.{8}"  # NONE, booleans, EMPTY_TUPLE, BININT1, BININT2, BININT, BINFLOAT
    rb"|\x8a(?:" + _INTEGERS + rb"))(?![qr])){1,4096}",  # LONG1 of at most eight bytes: wider keys collide at will
    re.DOTALL,
)
_TUPLE = re.compile(rb"[t\x85-\x87](?![qr])")
"""TUPLE to TUPLE3, not shared: the hash of a shared one may take for ever."""


class Refused(Exception):
    """The pickle is not one of those that are loaded so, or is broken."""


class _PlainUnpickler(pickle.Unpickler):
    """The loader, which refuses what the vetting has refused already."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise Refused(f"{module}.{name}")

    def persistent_load(self, _pid: Any) -> NoReturn:
        raise Refused("a reference to something outside the file")


def is_plain(data: bytes) -> bool:
    """Say whether a pickle consists of instructions of PyTorch's writer alone, which build plain values."""
    if len(data) > MAX_VETTED or data[:1] != b"\x80" or data[1:2] not in {b"\x02", b"\x03"}:
        return False
    at, tuples = 2, 0
    while at < len(data):
        if (run := _RUN.match(data, at)) is not None:
            at = run.end()
        elif tuples < _MAX_TUPLES and (found := _TUPLE.match(data, at)) is not None:
            at, tuples = found.end(), tuples + 1
        elif data[at] == _TEXT and at + 5 < len(data):
            length = int.from_bytes(data[at + 1 : at + 5], "little")
            if length > _LONGEST:
                return False
            at += 5 + length
        else:
            return data[at] == 0x2E and at + 1 == len(data)
    return False


def load_vetted(data: bytes) -> Any:
    """Return the value of a pickle for which `is_plain` holds. Raises Refused where it is broken."""
    if not is_plain(data):
        raise Refused("an instruction that is not among those of PyTorch's writer")
    try:
        # The loader asks a buffered reader for large pieces, and plain bytes for each instruction.
        return _PlainUnpickler(io.BufferedReader(io.BytesIO(data), 1 << 17)).load()
    except (
        pickle.UnpicklingError,
        EOFError,
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        OverflowError,
    ) as error:
        raise Refused("an instruction without what it works on") from error
