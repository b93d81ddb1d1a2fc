"""Metrics of one step, printed over several lines below its counter."""

from __future__ import annotations

from typing import Any

import pytest

OLMO = """2024-09-02 06:12:10.311\tnode12:0\tolmo.train:908\tINFO\t[step=10/20000,epoch=0]
    optim/total_grad_norm=0.6201
    train/CrossEntropyLoss=10.42
    train/Perplexity=33,522
    throughput/total_tokens=10,485,760
2024-09-02 06:12:36.480\tnode12:0\tolmo.train:908\tINFO\t[step=20/20000,epoch=0]
    optim/total_grad_norm=0.5911
    train/CrossEntropyLoss=10.01
    train/Perplexity=22,247
"""
COMPOSER = """[epoch=1][batch=1/400]:
\t Train time/batch: 0
\t Train loss/train/total: 11.0211
\t Train l2_norm/grad/global: 1.2103
[epoch=2][batch=3/400]:
\t Train time/batch: 402
\t Train loss/train/total: 7.5310
\t Train l2_norm/grad/global: 0.8120
[Eval batch=1/4] Eval on eval data
[Eval batch=4/4] Eval on eval data:
\t Eval metrics/eval/LanguageCrossEntropy: 7.6111
"""
ROBOT = """################################################################################
                      \x1b[1m Learning iteration 12/1500 \x1b[0m

                       Computation: 60213 steps/s (collection: 1.2s, learning 0.3s)
          Mean value_function loss: 0.0213
                       Mean reward: 12.31
               Mean episode length: 310.20
--------------------------------------------------------------------------------
                   Total timesteps: 1277952
                               ETA: 2432.0s
"""
COQUI = """\x1b[1m   --> STEP: 24/405 -- GLOBAL_STEP: 246025\x1b[0m
     | > loss_disc: 2.61245  (2.60012)
     | > amp_scaler: 512.00000  (480.00000)
     | > loss_mel: 18.50000  (18.60122)

\x1b[1m   --> STEP: 49/405 -- GLOBAL_STEP: 246050\x1b[0m
     | > loss_disc: nan  (nan)
     | > amp_scaler: 0.00000  (20.00000)
     | > loss_mel: 18.90000  (18.60122)
"""


def test_names_and_values_below_the_step(read: Any) -> None:
    found = read("train.log", OLMO)
    assert found.metrics("loss") == [(10, 10.42), (20, 10.01)]
    assert found.metrics("grad_norm") == [(10, 0.6201), (20, 0.5911)]
    assert found.metrics("train/perplexity") == [(10, 33522), (20, 22247)]


def test_batches_of_later_epochs_go_on_counting(read: Any) -> None:
    found = read("train.log", COMPOSER)
    assert found.metrics("loss") == [(1, 11.0211), (403, 7.531)]
    assert [value for _step, value in found.metrics("eval_loss")] == [7.6111]


def test_values_with_their_mean_behind_them(read: Any) -> None:
    found = read("trainer_0_log.txt", COQUI)
    assert found.metrics("loss_scale") == [(246025, 512), (246050, 0)]
    assert found.metrics("loss_disc")[0] == (246025, 2.61245)


def test_captions_in_a_box(read: Any) -> None:
    found = read("train.log", ROBOT)
    assert found.metrics("mean_reward") == [(12, 12.31)]
    assert found.metrics("eta") == []


@pytest.mark.parametrize(
    "text",
    [
        "[step=10/20000,epoch=0]\nloss is fine\n    and so on\n",
        "saw [batch=4/9] of the list\n    loss=1.0\n    acc=0.3\n",
        "[step=10/20000]\n    loss=1.0\n",
    ],
)
def test_other_brackets(read: Any, text: str) -> None:
    assert read("train.log", text).metrics("acc") == []
