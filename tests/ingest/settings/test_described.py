"""Parameters and data columns described one by one."""

from __future__ import annotations

from typing import Any

import pytest


def described(read: Any, name: str, text: str, what: str = "model.parameter") -> list[dict[str, Any]]:
    return [dict(event.attrs or {}) for event in read(name, text).table.named(what, kind="artifact")]


def test_one_row_a_parameter(read: Any) -> None:
    table = (
        "parameter,size,trainable,l2_norm\n"
        "blocks.0.attn.lora_up.weight,64x8,True,0.0\n"
        "blocks.1.attn.lora_up.weight,64x8,True,1.5\n"
        "head.weight,64x8,False,3.5\n"
    )
    rows = described(read, "final_weights.csv", table)
    assert rows[1] == {"name": "blocks.1.attn.lora_up.weight", "shape": "64x8", "trainable": True, "norm": 1.5}
    assert rows[2]["trainable"] is False


def test_gradients_of_single_parameters_are_not_the_norm_of_the_run(read: Any) -> None:
    table = "step,name,grad_norm\n" + "".join(f"{s},enc.{k}.weight,{k}.5\n" for s in (1, 2) for k in range(4))
    found = read("grads.csv", table)
    assert found.table.metric("grad_norm") is None
    assert {event.step for event in found.table.named("model.parameter")} == {1, 2}


def test_one_column_a_parameter_measured_as_the_file_says(read: Any) -> None:
    table = "iter,a.0.weight,a.1.weight,a.2.weight,lr\n10,1e-3,2e-3,3e-3,0.1\n20,1e-9,2e-9,0,0.1\n"
    rows = described(read, "layer_gradients.csv", table)
    assert len(rows) == 6
    assert rows[-1] == {"name": "a.2.weight", "grad_norm": 0.0}
    assert read("layer_gradients.csv", table).metrics("learning_rate") == [(10, 0.1), (20, 0.1)]
    assert described(read, "lrs.csv", table) == []


def test_columns_of_a_data_set(read: Any) -> None:
    table = "feature,dtype,nunique,mean,stddev\nage,int,90,44.1,12.0\nflag,int,1,1.0,0.0\nincome,float,9000,3.1,1.2\n"
    rows = described(read, "train_profile.csv", table, what="data.column")
    assert rows[1] == {"name": "flag", "unique": 1.0, "mean": 1.0, "std": 0.0}


@pytest.mark.parametrize("prefix", ["", "[rank3] ", "2024-05-01 10:00:00,123 INFO train: "])
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("decoder.0.fc.weight 4096x1024 mean +0.0003 std 0.0201 absmax 0.11",
         {"shape": "4096x1024", "mean": 0.0003, "std": 0.0201, "absmax": 0.11}),
        ("  encoder.layer.0.weight: shape=(768, 768), mean=-0.001, std=1.01", {"std": 1.01, "mean": -0.001}),
        ("layers.3.weight  |w|=7.02   |grad|=3.1e-11", {"norm": 7.02, "grad_norm": 3.1e-11}),
        ("blocks.0.fc1.weight ||w||: 7.1, ||g||: 2e-4", {"norm": 7.1, "grad_norm": 2e-4}),
        ("layers.1.0.weight has gradient mean of 3.2e-08", {"grad_norm": 3.2e-08}),
        ("   0.weight      |grad| mean 4.5e-13", {"grad_norm": 4.5e-13}),
        ("Layer: conv1.weight, Min Gradient: -0.2, Max Gradient: 0.3, Mean Gradient: 0.01", {"grad_norm": 0.01}),
        ("Gradient of fc1.weight: 3.2e-9", {"grad_norm": 3.2e-9}),
        ("param blocks.1.mlp.weight | norm: 12.5 | requires_grad: False", {"norm": 12.5, "trainable": False}),
    ],
)  # fmt: skip
def test_lines_about_a_parameter(read: Any, prefix: str, line: str, expected: dict[str, Any]) -> None:
    rows = described(read, "train.log", f"start\n{prefix}{line}\nend\n")
    assert len(rows) == 1
    assert expected.items() <= rows[0].items()


@pytest.mark.parametrize(
    "line",
    ["step 3 loss 2.0 grad_norm 1.5", "data.loader std 3 workers", "model.py:12 norm 1.0", "v1.2.weights std"],
)
def test_other_lines_describe_no_parameter(read: Any, line: str) -> None:
    assert described(read, "train.log", f"{line}\n") == []


@pytest.mark.parametrize("form", ["{},{}", "{}: {}", "{} = tensor({}, device='cuda:0')", "{}\t{}", "{}, {}, -0.5, 0.7"])
def test_a_listing_of_parameters_with_a_number_each(read: Any, form: str) -> None:
    names = [f"net_block_{k}_proj.lora_up.weight" for k in range(3)]
    text = "".join(
        form.format(name, value) + "\n" for name, value in zip(names, ("0.0", "0.25", "1.5e-3"), strict=True)
    )
    rows = described(read, "check.txt", f"loading adapter\n{text}done\n")
    assert [(row["name"], row["magnitude"]) for row in rows] == list(zip(names, (0.0, 0.25, 0.0015), strict=True))


def test_a_rounded_zero_and_a_single_line_are_no_measurement(read: Any) -> None:
    rounded = "".join(f"net.{k}.lora_B.weight,0.0000\n" for k in range(4))
    assert described(read, "check.txt", rounded) == []
    assert described(read, "check.txt", "net.0.lora_B.weight,0.0\n") == []
