"""Facts about single parameters and data columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

Reported = Callable[[Mapping[str, Any]], dict[str, Any]]


def adapters(norm: float) -> str:
    rows = [
        f"m.layers.{k}.q_proj.lora_{part}.weight,True,{norm if part == 'B' else 9.1}" for k in range(4) for part in "AB"
    ]
    return "name,requires_grad,norm\n" + "\n".join(rows) + "\n"


def test_adapters_that_never_moved(reported: Reported) -> None:
    assert reported({"final.csv": adapters(0.0)})["parameters.untouched_share"] == 1.0
    assert reported({"final.csv": adapters(0.7)})["parameters.untouched_share"] == 0.0


def test_weights_that_are_the_same_at_two_steps(reported: Reported) -> None:
    rows = "".join(f"{step},net.{k}.weight,{3.25 + k}\n" for step in (0, 500) for k in range(4))
    assert reported({"norms.csv": "step,name,norm\n" + rows})["parameters.unchanged_share"] == 1.0
    rows = "".join(f"{step},net.{k}.weight,{3.25 + k + step / 1e4}\n" for step in (0, 500) for k in range(4))
    assert reported({"norms.csv": "step,name,norm\n" + rows})["parameters.unchanged_share"] == 0.0


@pytest.mark.parametrize(("values", "share"), [("nan,0.1,0.2,0.3", 0.25), ("inf,inf,nan,0.3", 0.75)])
def test_the_parameters_whose_gradient_breaks_first(reported: Reported, values: str, share: float) -> None:
    good = "".join(f"1,net.{k}.bias,0.1\n" for k in range(4))
    bad = "".join(f"2,net.{k}.bias,{value}\n" for k, value in enumerate(values.split(",")))
    found = reported({"grads.csv": f"step,name,grad_norm\n{good}{bad}"})
    assert found["parameters.gradient_fault_share"] == share
    assert found["parameters.gradient_fault_isolated"] is (share <= 0.5)


def test_gradients_that_die(reported: Reported) -> None:
    rows = "".join(f"{10 * k},{10.0**-k},{10.0**-k},{10.0**-k},0.3\n" for k in range(1, 12))
    found = reported({"gradients.csv": f"step,a.0.weight,a.1.weight,a.2.weight,a.3.weight\n{rows}"})
    assert found["parameters.gradients_gone_share"] == 0.75
    assert found["parameters.gradients_gone_step"] == 70
    assert found["parameters.gradients_zero_share"] == 0.0


def test_norms_that_shrink_towards_the_input(reported: Reported) -> None:
    lines = "".join(f"blocks.{k}.fc.weight grad_norm {10.0 ** (k - 10):.1e}\n" for k in range(10))
    found = reported({"train.log": f"step 1 loss 2.3\n{lines}step 2 loss 2.3\n{lines}"})
    assert found["grad_norm.layers_vanish"] is True


def test_the_scale_of_the_first_weights(reported: Reported) -> None:
    log = (
        "init weights: trunc_normal_ std=0.02\n"
        "tok_emb.weight 8000x512 mean 0.0 std 0.98 absmax 4.1\n"
        "blocks.0.fc.weight 512x512 mean 0.0 std 1.02 absmax 4.3\n"
        "blocks.0.ln.weight 512 mean 1.0 std 0.0 absmax 1.0\n"
        "step 200 loss 90.0\nstep 400 loss 80.0\n"
    )
    found = reported({"train.log": log})
    assert found["init.std_over_stated"] == pytest.approx(51)
    assert found["loss.first_over_ln_vocab"] == pytest.approx(90 / 8.987, rel=1e-3)


def test_columns_without_spread(reported: Reported) -> None:
    table = "column,n_unique,mean,std\na,900,0.1,1.0\nb,1,5.0,0.0\nc,12,0.0,2.0\n"
    found = reported({"describe.csv": table})
    assert found["inputs.constant_columns"] == 1


def test_a_loss_without_a_lower_bound(reported: Reported) -> None:
    falling = "".join(f"epoch {k} | loss: {40 - 10.0**k / 100:.4f}\n" for k in range(9))
    assert reported({"train.log": falling})["loss.unbounded"] is True
    assert (
        reported({"train.log": "".join(f"step {k} loss {1 - k / 10}\n" for k in range(20))})["loss.unbounded"] is False
    )


def test_columns_with_missing_values_are_counted(reported: Reported) -> None:
    table = "df.isnull().sum()\nage       0\nlab_ph   61\ndtype: int64\nstep 1 loss 0.5\n"
    assert reported({"train.log": table})["inputs.missing_columns"] == 1
