from __future__ import annotations

import time
import urllib.parse
from collections.abc import Callable

import pytest

from rca.redact import Redactor

from .corpus import HEXADECIMAL, Shape, drawn, private_key, shapes
from .lookalikes import HARMLESS


def name_of(shape: Shape) -> str:
    return shape.name


def shows(shape: Shape, text: str) -> bool:
    """Whether the text holds the secret or an end of it that is long enough to be of use."""
    parts = [part for part in shape.secret.split("\n") if not part.startswith("-----")]
    return any(part in text or (len(part) >= 16 and part[-12:] in text) for part in parts)


@pytest.mark.parametrize("shape", shapes(), ids=name_of)
def test_secret_is_replaced_and_the_rest_of_the_line_stays(shape: Shape) -> None:
    redactor = Redactor()
    shown = redactor.text(shape.line)
    assert not shows(shape, shown)
    assert "<secret>" in shown
    if "\n" not in shape.secret:
        before, _, _ = shape.line.partition(shape.secret)
        assert shown.split()[0] == before.split()[0] if " " in before.strip() else True


@pytest.mark.parametrize("shape", [shape for shape in shapes() if shape.alone], ids=name_of)
def test_secret_with_a_shape_of_its_own_is_found_without_its_line(shape: Shape) -> None:
    assert shape.secret not in Redactor().text(shape.secret)
    assert shape.secret not in Redactor().text(f"runs/{shape.secret}/rank_0.log")


def split_by_colours(secret: str) -> str:
    return secret[: len(secret) // 2] + "\x1b[1;31m" + secret[len(secret) // 2 :]


def split_by_nothing_seen(secret: str) -> str:
    return "\u200b".join(secret)


def continued(secret: str) -> str:
    return secret[: len(secret) // 2] + "\\\n" + secret[len(secret) // 2 :]


def escaped(secret: str) -> str:
    return "".join(letter if letter.isalnum() else f"\\u{ord(letter):04x}" for letter in secret)


@pytest.mark.parametrize("disguise", [split_by_colours, split_by_nothing_seen, continued, escaped])
def test_secret_in_disguise(disguise: Callable[[str], str]) -> None:
    left = []
    for shape in shapes():
        if "\n" not in shape.secret:
            hidden = disguise(shape.secret)
            shown = Redactor().text(shape.line.replace(shape.secret, hidden))
            left += [shape.name] if hidden[-8:] in shown or shape.secret[-8:] in shown else []
    assert left == []


def test_secret_in_an_encoded_address() -> None:
    lines = {
        shape.name: (shape, urllib.parse.quote(shape.line, safe="")) for shape in shapes() if "\n" not in shape.line
    }
    assert [name for name, (shape, line) in lines.items() if shape.secret[-8:] in Redactor().text(line)] == []


def test_secret_that_was_found_once_is_replaced_where_nothing_betrays_it() -> None:
    redactor = Redactor()
    key = drawn("known", 40, HEXADECIMAL)
    redactor.learn(f"WANDB_API_KEY={key}")
    assert redactor.text(f"run-{key}/config.yaml") == "run-<secret>/config.yaml"
    redactor.learn_value("trainer.hub_token", "Zx81-qwerty-7")
    assert redactor.text("said Zx81-qwerty-7 to the hub") == "said <secret> to the hub"


@pytest.mark.parametrize("shape", [shape for shape in shapes() if shape.alone], ids=name_of)
def test_secret_at_the_end_of_a_text_that_was_cut(shape: Shape) -> None:
    redactor = Redactor()
    redactor.learn(shape.line)
    cut = ("x" * 180 + " " + shape.line)[: 181 + len(shape.line) - len(shape.line.partition(shape.secret)[2]) - 6]
    if len(shape.secret) >= 24:
        assert cut[-10:] not in redactor.text(cut)


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("trainer.hub_token", "abcd1234efgh", True),
        ("WANDB_API_KEY", drawn("w", 40, HEXADECIMAL), True),
        ("db_password", "correct horse battery", True),
        ("password", "hunter2", True),
        ("eos_token", "</s>", False),
        ("tokenizer", "meta-llama/Llama-2-7b", False),
        ("max_tokens", "4096", False),
        ("hub_token", "None", False),
        ("cache_key", drawn("c", 40, HEXADECIMAL), False),
        ("second_pass", "fused", False),
        ("bypass", "north", False),
        ("password_file", "secrets.txt", False),
    ],
)
def test_value_of_a_setting_is_judged_by_its_name(name: str, value: str, secret: bool) -> None:
    assert Redactor().value(name, value) == ("<secret>" if secret else value)


@pytest.mark.parametrize("prefix", ["", "[rank0]: ", "2026-03-01 12:00:00,123 INFO "])
@pytest.mark.parametrize("kind", ["RSA ", "OPENSSH ", ""])
def test_private_key_over_several_lines(prefix: str, kind: str) -> None:
    key = private_key(kind).splitlines()
    redactor = Redactor()
    before = ["loading the key", *[prefix + line for line in key], "step 1 loss 2.0 CheckpointFolderNumber17"]
    for first, last in ((0, len(before)), (4, len(before)), (0, 5), (4, 6)):
        shown = "\n".join(redactor.lines(before[first:last]))
        assert not [line for line in key[1:-1] if line[-16:] in shown]
    assert redactor.lines(before)[0] == before[0]
    assert redactor.lines(before)[-1] == before[-1]


def test_private_key_that_a_terminal_has_wrapped() -> None:
    key = private_key("RSA ").replace("\n", "\\n")
    lines = [key[at : at + 50] for at in range(0, len(key), 50)]
    shown = "\n".join(Redactor().lines(["key:", *lines, "done now"]))
    assert not [line for line in lines[1:-1] if line[2:-2] in shown]
    assert shown.endswith("done now")


def test_command_that_goes_on_in_the_next_line() -> None:
    key = drawn("continued", 32)
    lines = ["python train.py --api-key \\", f"    {key} \\", "    --lr 0.1"]
    assert Redactor().lines(lines) == [lines[0], "    <secret> \\", lines[2]]


@pytest.mark.parametrize("line", HARMLESS)
def test_ordinary_line_is_left_alone(line: str) -> None:
    assert Redactor().text(line) == line


def test_ordinary_lines_beside_each_other_are_left_alone() -> None:
    assert Redactor().lines(HARMLESS) == HARMLESS


def test_name_of_the_secret_stays_readable() -> None:
    key = drawn("readable", 40, HEXADECIMAL)
    assert Redactor().text(f"WANDB_API_KEY={key} WANDB_MODE=offline") == "WANDB_API_KEY=<secret> WANDB_MODE=offline"
    assert (
        Redactor().text(f"password=hunter2, lr=0.1, api_key={key[:20]}")
        == "password=<secret>, lr=0.1, api_key=<secret>"
    )


def test_text_beyond_ascii_keeps_its_place() -> None:
    key = drawn("place", 20)
    assert Redactor().text(f"größe 日本語 api_key={key} — ende") == "größe 日本語 api_key=<secret> — ende"


def test_mode_none_changes_nothing() -> None:
    redactor = Redactor("none")
    assert all(redactor.text(shape.line) == shape.line for shape in shapes())
    assert redactor.value("password", "hunter2") == "hunter2"
    assert redactor.counts == {}


@pytest.mark.parametrize(
    "filler",
    [
        "eyJ",
        "sk-",
        "://a:",
        "password",
        "a@",
        "1.1.",
        "::",
        "/a",
        "token=",
        "-----BEGIN PRIVATE KEY-----",
        "%25",
        "\x1b[",
        "aB3/" * 16 + "\n",
        "a-0.b.",
        "\u200b",
        "\\\n",
        "cookie: a=b;",
    ],
)
def test_hostile_lines_take_linear_time(filler: str) -> None:
    line = (filler * 4096)[:4096]
    start = time.perf_counter()
    Redactor("strict").text(line)
    once = time.perf_counter() - start
    start = time.perf_counter()
    Redactor("strict").text(line * 8)
    assert time.perf_counter() - start < max(1.0, 40 * once)
