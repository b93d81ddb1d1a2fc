from __future__ import annotations

from typing import Any

import pytest

UNIT = "data:\n  val_tf:\n    - Resize: {size: 224}\n    - ToTensor: {}\n"
IMAGENET = "transforms:\n  - type: Normalize\n    mean: [0.485, 0.456, 0.406]\n    std: [0.229, 0.224, 0.225]\n"


@pytest.mark.parametrize(
    ("serving", "clash"),
    [
        ("$ python3 image_client.py -m net -s INCEPTION -c 1 imgs/\n", True),
        ("Normalize(mean=[0.485, 0.456, 0.406])\n", True),
        ("img = img / 255.0\n", False),
        ("loading 12 images\n", False),
    ],
)
def test_pixels_of_training_and_serving(reported: Any, serving: str, clash: bool) -> None:
    found = reported({"train.yaml": UNIT, "client.log": serving})
    assert ("preparation.conflict" in found) is clash


def test_a_mean_after_a_division_is_one_preparation(reported: Any) -> None:
    files = {
        "train.yaml": IMAGENET + UNIT,
        "preprocessor_config.json": {"image_mean": [0.485, 0.456, 0.406], "rescale_factor": 1 / 255},
    }
    assert "preparation.conflict" not in reported(files)


def test_the_order_of_channels(facts_of: Any) -> None:
    found = facts_of({"train.yaml": "input:\n  color: rgb\n", "serve.yaml": "input:\n  color_order: bgr\n"})
    assert "RGB" in found["preparation.conflict"]


@pytest.mark.parametrize(
    ("name", "lower", "clash"),
    [
        ("org/base-cased", True, True),
        ("org/base-uncased", False, True),
        ("org/base-cased", False, False),
        ("org/base", True, False),
    ],
)
def test_the_case_of_a_vocabulary(facts_of: Any, name: str, lower: bool, clash: bool) -> None:
    files = {
        "config.json": {"_name_or_path": name, "model_type": "bert"},
        "tokenizer_config.json": {"do_lower_case": lower},
    }
    assert ("tokenizer.case_conflict" in facts_of(files)) is clash


def test_training_and_serving_differ_in_case(facts_of: Any) -> None:
    files = {"train.log": "loading tokenizer (do_lower_case=False)\n", "tokenizer_config.json": {"do_lower_case": True}}
    assert "as written by train.log" in facts_of(files)["tokenizer.case_conflict"]


@pytest.mark.parametrize(
    ("one", "other", "clash"),
    [("chatml.jinja", "vicuna_v1.1", True), ("qwen", "chatml", False), ("custom", "chatml", False)],
)
def test_families_of_chat_templates(facts_of: Any, one: str, other: str, clash: bool) -> None:
    found = facts_of({"serve.yaml": f"chat_template: t/{one}\n", "train.yaml": f"template: {other}\n"})
    assert ("tokenizer.template_conflict" in found) is clash


REPORT = """
                  precision    recall  f1-score   support

            NAME     {0}    {0}    {0}      6120
           PLACE     0.9342    0.9428    0.9385      1644
            YEAR     0.9911    0.9927    0.9919      1990

   all micro avg     {0}    {0}    {0}      9754
"""


def test_two_reports_about_the_same_examples(facts_of: Any) -> None:
    found = facts_of({"train.log": REPORT.format("0.9600"), "serve.log": REPORT.format("0.7200")})
    assert found["quality.lost_share"] == pytest.approx(0.25)
    assert found["quality.of"] == "service"
    assert "quality.lost_share" not in facts_of({"serve.log": "nothing\n", "train.log": REPORT.format("0.9600")})


@pytest.mark.parametrize(
    ("line", "clash"),
    [
        ("input tensor float32 (1, 3, 96, 96) min=0.000 max=251.000\n", True),
        ("feed: float16, range [-1.0, 0.992]\n", True),
        ("input tensor float32 (1, 3, 96, 96) min=0.000 max=0.996\n", False),
        ("input tensor float32 (1, 3, 96, 96) min=-2.1179 max=2.6400\n", False),
        ("input array uint8 min=0 max=251\n", False),
        ("input tensor float32 min=0.000 max=251.000\nstep 10 loss 2.1\nstep 20 loss 2.0\n", False),
    ],
)
def test_the_bounds_of_a_batch_against_the_scaling_of_training(reported: Any, line: str, clash: bool) -> None:
    found = reported({"train.json": {"augment": {"rescale": "1./255"}}, "predict.log": line})
    assert ("preparation.conflict" in found) is clash


@pytest.mark.parametrize(
    ("printed", "clash"),
    [("'<s>[INST] Name the river. [/INST]'", True), ("'<|im_start|>user Name the river.'", False), ("'River?'", False)],
)
def test_a_printed_prompt_shows_its_template(reported: Any, printed: str, clash: bool) -> None:
    found = reported({"eval.log": f"First rendered prompt: {printed}\n", "train.yaml": "template: chatml\n"})
    assert ("tokenizer.template_conflict" in found) is clash
