from __future__ import annotations

import contextlib
import math

import pytest

from rca.errors import UnreadableSource
from rca.ingest.tables.structured import decode, flatten, parse_ini, parse_json, parse_toml, parse_yaml, plain_name


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "utf-16-le"])
def test_text_of_every_usual_encoding_is_decoded(encoding: str) -> None:
    assert decode('{"lr": 0.1}'.encode(encoding)) == '{"lr": 0.1}'


def test_invalid_bytes_are_replaced() -> None:
    assert decode(b'{"a": "\xff\xfe"}').startswith('{"a": "')


def test_json_accepts_bare_nan_and_infinity() -> None:
    found = parse_json('{"a": NaN, "b": [Infinity, -Infinity]}', what="x.json")
    assert math.isnan(found["a"])
    assert found["b"] == [math.inf, -math.inf]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a": 1, "b": ', "line 1, column"),
        ("{", "line 1"),
        ("[" * 200_000, "nested"),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "nested"),
        ('{"a": ' + "9" * 20_000 + "}", "numbered"),
        ("", "line 1"),
    ],
)
def test_broken_json_is_a_reason(text: str, says: str) -> None:
    with pytest.raises(UnreadableSource, match=says):
        parse_json(text, what="x.json")


def test_the_last_of_repeated_keys_counts() -> None:
    assert parse_json('{"lr": 1, "lr": 2}', what="x.json") == {"lr": 2}


def test_yaml_tags_become_plain_values() -> None:
    text = (
        "a: !!python/object/apply:os.system ['touch /tmp/owned']\nb: !include other.yaml\nc: !!python/name:os.system\n"
    )
    assert parse_yaml(text, what="x.yaml") == [{"a": ["touch /tmp/owned"], "b": "other.yaml", "c": ""}]


def test_yaml_aliases_within_reason_are_expanded() -> None:
    assert parse_yaml("a: &x {lr: 1}\nb: {<<: *x, wd: 2}\n", what="x.yaml") == [
        {"a": {"lr": 1}, "b": {"lr": 1, "wd": 2}}
    ]


@pytest.mark.parametrize("merge", [False, True])
def test_a_yaml_alias_bomb_is_refused(merge: bool) -> None:
    lines = ["a0: &a0 {k: v}"]
    for level in range(1, 40):
        previous = ", ".join([f"*a{level - 1}"] * 9)
        lines.append(f"a{level}: &a{level} {{<<: [{previous}]}}" if merge else f"a{level}: &a{level} [{previous}]")
    with pytest.raises(UnreadableSource, match="aliases"):
        parse_yaml("\n".join(lines), what="x.yaml")


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "- " * 50_000, "a: [1", "a: b: c", "? [a]\n: b", "*nowhere", "%YAML 9.9 x"]
)
def test_broken_yaml_is_a_reason_or_values(text: str) -> None:
    with contextlib.suppress(UnreadableSource):
        assert isinstance(parse_yaml(text, what="x.yaml"), list)


@pytest.mark.parametrize("text", ["a = ", "[a", "a = " + "[" * 20_000, "a = " + "9" * 6000, "a = 1\na = 2"])
def test_broken_toml_is_a_reason(text: str) -> None:
    with pytest.raises(UnreadableSource, match=r"x\.toml"):
        parse_toml(text, what="x.toml")


def test_ini_is_read_without_interpolation() -> None:
    assert parse_ini("[optim]\nlr = %(secret)s\n", what="x.ini") == {"optim": {"lr": "%(secret)s"}}
    with pytest.raises(UnreadableSource, match=r"x\.ini"):
        parse_ini("no section\n", what="x.ini")


def test_flatten_is_bounded_and_ordered() -> None:
    deep: dict[str, object] = {}
    place = deep
    for _ in range(500):
        place["a"] = {}
        place = place["a"]  # type: ignore[assignment]
    assert list(flatten({"b": {"c": 1, "d": [1, 2]}, "e": [{"f": 2}]}, limit=9)) == [
        ("b.c", 1),
        ("b.d", [1, 2]),
        ("e[0].f", 2),
    ]
    assert len(list(flatten({str(key): key for key in range(50)}, limit=7))) == 7
    assert len(list(flatten(deep, limit=9))) == 1
    loop: list[object] = []
    loop.append({"x": 1})
    assert list(flatten({"l": loop * 3}, limit=2)) == [("l[0].x", 1), ("l[1].x", 1)]


def test_plain_name_drops_folder_and_compression() -> None:
    assert plain_name("a/B/Metrics.CSV.gz") == "metrics.csv"
