"""What varies is named by its kind, what says something stays."""

import time

import pytest

from rca.templates.masking import LONGEST, masked


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("step 120 loss 2.31e-2 lr -1.5", "step <num> loss <num> lr <num>"),
        ("started 2024-05-01T12:00:01.250Z on node7", "started <time> on node<num>"),
        ("[00:12<01:03, 3.1it/s]", "[<time><<time>, <num>it/s]"),
        ("connect to 10.0.3.7:29500 refused", "connect to <ip> refused"),
        ("loading /data/run 3/x and /data/c4/en/part.bin", "loading <path> 3/x and <path>".replace(" 3/x", " <num>/x")),
        ("see https://pytorch.org/docs/x?y=1 (docs)", "see <url> (docs)"),
        ("pointer 0x7f3a deadbee1 beef", "pointer <hex> <hex> beef"),
        ("id 123e4567-e89b-12d3-a456-426614174000", "id <hex>"),
        ("Loading: 40%|████▌     | 4/10", "Loading: <num><bar> <num>/<num>"),
        ("loss nan, lr 0.1", "loss nan, lr <num>"),
        ("a-1 b - 1 x/y", "a-<num> b - <num> x/y"),
    ],
)
def test_what_varies_is_replaced_by_its_kind(line: str, expected: str) -> None:
    assert masked(line) == expected


@pytest.mark.parametrize("unit", ["1", "a1", "/a", "|=", "1.", "0-", "://x", "deadbee", "2024-01-01 ", "\x00\xff"])
def test_any_repetition_is_cut_and_cheap(unit: str) -> None:
    start = time.perf_counter()
    assert len(masked(unit * 100_000)) <= 4 * LONGEST
    assert time.perf_counter() - start < 0.5
