"""Pickles that hold plain values only: numbers, texts, lists, tuples, dicts and sets.

PyTorch writes some of its dumps as pickles. A pickle is a program, and loading one runs it; here its opcodes are
interpreted by a machine that knows no way to name, import or call anything. An opcode that would is refused with what
it names. What consists of nothing but the opcodes of PyTorch's own writer is read faster (`vetted_pickle`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NoReturn

from rca.errors import UnreadableSource
from rca.ingest.dumps.vetted_pickle import MAX_VETTED, Refused, load_vetted
from rca.ingest.places.content import Buffer

MAX_PICKLE = 256 * 1024**2
"""Bytes of a pickle; a memory snapshot of 100,000 entries with stacks needs about 50 MB."""
MAX_OPCODES = 60_000_000
MAX_CONTAINERS = 8_000_000
"""Lists, tuples, dicts and sets of one pickle; each takes 60 to 400 bytes."""
MAX_STRING = 1 << 20
MAX_INTEGER_BYTES = 16
MAX_OPEN = 1_000
"""Containers begun within one another."""
_DIGITS = 40
_KEY_BITS = 64
"""Python hashes an integer modulo 2**61 - 1: wider ones can collide at will, and each is then compared with all."""
MAX_OTHER_KEYS = 10_000
"""Keys and members of sets that are no text: those of numbers and tuples can be chosen to collide, unlike texts, whose
hashes are secret. No dump of PyTorch has any."""
_NAMED = 120

_Mark = list[Any]

_CALLS = {
    0x52: "calls a function (REDUCE)",
    0x62: "sets the state of an object (BUILD)",
    0x81: "makes an object (NEWOBJ)",
    0x92: "makes an object (NEWOBJ_EX)",
    0x6F: "makes an object (OBJ)",
    0x50: "refers to something outside the file (PERSID)",
    0x51: "refers to something outside the file (BINPERSID)",
    0x82: "names a registered type (EXT1)",
    0x83: "names a registered type (EXT2)",
    0x84: "names a registered type (EXT4)",
    0x97: "refers to a buffer outside the file (NEXT_BUFFER)",
    0x98: "refers to a buffer outside the file (READONLY_BUFFER)",
    0x96: "holds a bytearray, which no dump does",
}
_ATOMS = (str, bytes, int, float, bool, type(None))


def read_plain(data: Buffer, *, what: str) -> Any:
    """Return the value that a pickle of plain types holds, protocols 0 to 5.

    A value may be contained in several others, and in itself: whoever walks through the result looks at the levels that
    the format has, never at all there are.

    Raises UnreadableSource with what was refused: a type that is not plain, a size beyond the caps, a broken file.
    """
    if len(data) > MAX_PICKLE:
        raise UnreadableSource(
            f"{what} is a pickle of {len(data):,} bytes; more than {MAX_PICKLE:,} are not read. Record fewer entries."
        )
    plain = bytes(data[: MAX_VETTED + 1])
    if len(plain) <= MAX_VETTED:
        try:
            return load_vetted(plain)
        except Refused:
            pass  # the machine reads what other writers make, and says what is wrong with the rest
    return _Machine(data, what).run()


class _Machine:
    """The stack machine of the pickle protocol, without the opcodes that reach outside."""

    def __init__(self, data: Buffer, what: str) -> None:
        self.data = data
        self.what = what
        self.at = 0
        self.stack: list[Any] = []
        self.marks: list[_Mark] = []
        self.memo: dict[int, Any] = {}
        self.containers = 0
        self.other_keys = 0

    def run(self) -> Any:
        try:
            return self._run()
        except (IndexError, KeyError, ValueError, TypeError, OverflowError, struct.error):
            self.refuse("is cut off or damaged")

    def refuse(self, why: str) -> NoReturn:
        raise UnreadableSource(f"{self.what} is a pickle that {why}; it was not loaded.")

    def _run(self) -> Any:
        """Interpret the opcodes; those that make up nine tenths of a dump stand here and keep the place in a local."""
        data, memo, stack = self.data, self.memo, self.stack
        push = stack.append
        at = 0
        for _ in range(MAX_OPCODES):
            code = data[at]
            at += 1
            if code == 0x68:  # BINGET, mostly several in a row
                push(memo[data[at]])
                at += 1
                while data[at] == 0x68:
                    push(memo[data[at + 1]])
                    at += 2
            elif code == 0x4B:  # BININT1
                push(data[at])
                at += 1
            elif code == 0x6A:  # LONG_BINGET
                push(memo[data[at] | data[at + 1] << 8 | data[at + 2] << 16 | data[at + 3] << 24])
                at += 4
            elif code == 0x94:  # MEMOIZE
                memo[len(memo)] = stack[-1]
            elif code == 0x71:  # BINPUT
                memo[data[at]] = stack[-1]
                at += 1
            elif code == 0x72:  # LONG_BINPUT
                memo[data[at] | data[at + 1] << 8 | data[at + 2] << 16 | data[at + 3] << 24] = stack[-1]
                at += 4
            elif code == 0x4E:  # NONE
                push(None)
            elif code in (0x88, 0x89):  # NEWTRUE, NEWFALSE
                push(code == 0x88)
            elif code == 0x4D:  # BININT2
                push(data[at] | data[at + 1] << 8)
                at += 2
            elif code == 0x4A or (code == 0x8A and data[at] <= MAX_INTEGER_BYTES):  # BININT, LONG1
                first = at + (code == 0x8A)
                at = at + 4 if code == 0x4A else first + data[at]
                push(int.from_bytes(data[first:at], "little", signed=True))
            elif code == 0x28:  # MARK
                if len(self.marks) >= MAX_OPEN:
                    self.refuse(f"nests more than {MAX_OPEN:,} levels")
                self.marks.append(stack)
                stack = self.stack = []
                push = stack.append
            else:
                self.at = at
                if code == 0x2E:  # STOP
                    return stack.pop()
                _STEPS[code](self)
                at, stack = self.at, self.stack
                push = stack.append
        return self.refuse(f"has more than {MAX_OPCODES:,} steps")

    def take(self, length: int) -> bytes:
        start, self.at = self.at, self.at + length
        piece = self.data[start : self.at]
        if len(piece) < length:
            raise IndexError
        return piece

    def line(self) -> bytes:
        end = self.data.find(b"\n", self.at, self.at + MAX_STRING)
        if end < 0:
            self.refuse("holds a line that does not end")
        start, self.at = self.at, end + 1
        return self.data[start:end]

    def text(self, size: int) -> None:
        length = int.from_bytes(self.take(size), "little")
        if length > MAX_STRING:
            self.refuse(f"holds a text of {length:,} bytes")
        self.stack.append(self.take(length).decode("utf-8", "replace"))

    def octets(self, size: int, *, latin: bool) -> None:
        length = int.from_bytes(self.take(size), "little")
        if length > MAX_STRING:
            self.refuse(f"holds a text of {length:,} bytes")
        piece = self.take(length)
        self.stack.append(piece.decode("latin-1") if latin else piece)

    def integer(self, size: int) -> None:
        length = int.from_bytes(self.take(size), "little")
        if length > MAX_INTEGER_BYTES:
            self.refuse(f"holds an integer of {length:,} bytes")
        self.stack.append(int.from_bytes(self.take(length), "little", signed=True))

    def digits(self) -> None:
        written = self.line().rstrip(b"L")
        if len(written) > _DIGITS:
            self.refuse(f"holds an integer of {len(written):,} digits")
        self.stack.append({b"00": False, b"01": True}[written] if written in (b"00", b"01") else int(written))

    def number(self) -> None:
        written = self.line()
        if len(written) > 2 * _DIGITS:
            self.refuse(f"holds a number of {len(written):,} digits")
        self.stack.append(float(written))

    def quoted(self) -> None:
        written = self.line()
        if len(written) < 2 or written[:1] not in (b"'", b'"') or written[:1] != written[-1:]:
            self.refuse("is cut off or damaged")
        self.stack.append(written[1:-1].decode("latin-1"))

    def container(self, value: Any) -> None:
        self.containers += 1
        if self.containers > MAX_CONTAINERS:
            self.refuse(f"holds more than {MAX_CONTAINERS:,} lists and dicts")
        self.stack.append(value)

    def marked(self) -> list[Any]:
        items = self.stack
        self.stack = self.marks.pop()
        return items

    def short_tuple(self, count: int) -> None:
        if len(self.stack) < count:
            raise IndexError
        items = tuple(self.stack[-count:])
        del self.stack[-count:]
        self.container(items)

    def extend(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if not items:
            return  # nothing may be added to anything, as with Python's own loader
        if type(target) is not list:
            self.refuse("appends to what is no list")
        target.extend(items)

    def update(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if not items:
            return
        if type(target) is not dict or len(items) % 2:
            self.refuse("sets keys of what is no dict")
        keys = items[::2]
        for key in keys:
            if type(key) is not str:
                self.hashable(key)
        target.update(zip(keys, items[1::2], strict=True))

    def join(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not set:
            self.refuse("adds to what is no set")
        for item in items:
            self.hashable(item)
            target.add(item)

    def hashable(self, key: Any) -> None:
        """Refuse a key whose hash would be taken through nested tuples: that takes as long as there are paths."""
        if type(key) is not str:
            self.other_keys += 1
        if self.other_keys > MAX_OTHER_KEYS:
            self.refuse(f"uses more than {MAX_OTHER_KEYS:,} numbers or tuples as keys")
        flat = key if type(key) is tuple else (key,)
        if not all(isinstance(item, _ATOMS) for item in flat):
            self.refuse("uses a nested value as a key")
        if any(isinstance(item, int) and item.bit_length() > _KEY_BITS for item in flat):
            self.refuse("uses an integer of more than 64 bits as a key")

    def frozen(self) -> None:
        items = self.marked()
        for item in items:
            self.hashable(item)
        self.container(frozenset(items))

    def mapping(self) -> None:
        items = self.marked()
        self.container({})
        self.update(items)

    def pop(self) -> None:
        if self.stack:
            self.stack.pop()
        else:
            self.marked()

    def named(self) -> None:
        module, name = self.line(), self.line()
        self.refuse_type(f"{module.decode('utf-8', 'replace')}.{name.decode('utf-8', 'replace')}")

    def named_on_stack(self) -> None:
        name, module = self.stack.pop(), self.stack.pop()
        self.refuse_type(f"{module}.{name}" if isinstance(module, str) and isinstance(name, str) else "something")

    def refuse_type(self, name: str) -> NoReturn:
        shown = "".join(letter if letter.isprintable() else "?" for letter in name[:_NAMED])
        self.refuse(f"names {shown}, which is not a plain type")


def _refusal(code: int) -> Callable[[_Machine], object]:
    why = _CALLS.get(code, f"holds the byte {code:#04x} where an instruction should stand")
    return lambda machine: machine.refuse(why)


_ACTIONS: dict[int, Callable[[_Machine], object]] = {
    0x80: lambda m: m.take(1),  # PROTO
    0x95: lambda m: m.take(8),  # FRAME
    0x8A: lambda m: m.integer(1),
    0x8B: lambda m: m.integer(4),
    0x49: lambda m: m.digits(),
    0x4C: lambda m: m.digits(),
    0x46: lambda m: m.number(),
    0x47: lambda m: m.stack.append(struct.unpack(">d", m.take(8))[0]),
    0x8C: lambda m: m.text(1),
    0x58: lambda m: m.text(4),
    0x8D: lambda m: m.text(8),
    0x56: lambda m: m.stack.append(m.line().decode("raw-unicode-escape", "replace")),
    0x53: lambda m: m.quoted(),
    0x54: lambda m: m.octets(4, latin=True),
    0x55: lambda m: m.octets(1, latin=True),
    0x43: lambda m: m.octets(1, latin=False),
    0x42: lambda m: m.octets(4, latin=False),
    0x8E: lambda m: m.octets(8, latin=False),
    0x5D: lambda m: m.container([]),
    0x7D: lambda m: m.container({}),
    0x29: lambda m: m.container(()),
    0x8F: lambda m: m.container(set()),
    0x85: lambda m: m.short_tuple(1),
    0x86: lambda m: m.short_tuple(2),
    0x87: lambda m: m.short_tuple(3),
    0x74: lambda m: m.container(tuple(m.marked())),
    0x6C: lambda m: m.container(m.marked()),
    0x64: lambda m: m.mapping(),
    0x91: lambda m: m.frozen(),
    0x61: lambda m: m.extend([m.stack.pop()]),
    0x65: lambda m: m.extend(m.marked()),
    0x73: lambda m: m.update([m.stack.pop(), m.stack.pop()][::-1]),
    0x75: lambda m: m.update(m.marked()),
    0x90: lambda m: m.join(m.marked()),
    0x30: lambda m: m.pop(),
    0x31: lambda m: m.marked(),
    0x32: lambda m: m.stack.append(m.stack[-1]),
    0x67: lambda m: m.stack.append(m.memo[int(m.line()[:_DIGITS])]),
    0x70: lambda m: m.memo.__setitem__(int(m.line()[:_DIGITS]), m.stack[-1]),
    0x63: lambda m: m.named(),
    0x69: lambda m: m.named(),
    0x93: lambda m: m.named_on_stack(),
}
_STEPS = [_ACTIONS.get(code) or _refusal(code) for code in range(256)]
