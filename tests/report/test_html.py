from __future__ import annotations

import base64
import hashlib
import json
import re
from datetime import datetime
from itertools import pairwise

import pytest

from rca.diagnosis import Diagnosis, Evidence
from rca.report.html import HtmlReport, prose
from rca.report.json_report import DATA_ID
from rca.report.measures import is_command

from .page import Page
from .samples import every, lr_too_high

HEADINGS = ("h1", "h2", "h3", "h4")


def test_page_loads_nothing_from_elsewhere(page: Page) -> None:
    for element in page.elements:
        for name in ("src", "href", "srcset", "action", "data", "poster", "background"):
            value = element.attributes.get(name, "")
            assert element.tag == "a" or not re.match(r"(?i)\s*(https?:)?//", value), (element.tag, value)
        assert not [name for name in element.attributes if name.startswith("on")]
        assert "javascript:" not in element.attributes.get("href", "").lower()
    assert not page.all("link")
    assert not page.all("img")
    assert not page.all("iframe")


def test_ids_are_unique_and_every_inner_link_lands(page: Page) -> None:
    ids = page.ids()
    assert len(ids) == len(set(ids))
    targets = [e.attributes["href"] for e in page.elements if e.attributes.get("href", "").startswith("#")]
    assert targets
    assert {target[1:] for target in targets} <= set(ids)
    copies = [e.attributes["data-copy"] for e in page.elements if e.attributes.get("data-copy")]
    assert set(copies) <= set(ids)


def test_structure_reads_without_styles_and_scripts(page: Page) -> None:
    assert page.all("html")[0].attributes["lang"] == "en"
    assert len(page.all("h1")) == 1
    assert len(page.all("main")) == 1
    levels = [int(e.tag[1]) for e in page.elements if e.tag in HEADINGS]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert all("".join(e.text).strip() for e in page.elements if e.tag in HEADINGS)
    assert all(e.attributes.get("scope") in ("col", "row") for e in page.all("th"))
    assert page.all("a")[0].attributes == {"class": "skip", "href": "#main"}
    for button in page.all("button"):
        assert "hidden" in button.attributes or page.all("div", id="tools")[0].attributes.get("hidden") == ""


def test_policy_allows_only_the_script_that_is_there(page: Page) -> None:
    (policy,) = [e.attributes["content"] for e in page.all("meta") if e.attributes.get("http-equiv")]
    (script,) = [e for e in page.all("script") if "type" not in e.attributes]
    digest = base64.b64encode(hashlib.sha256("".join(script.text).encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")


def test_answer_comes_first(sample: Diagnosis) -> None:
    page = Page(HtmlReport().render(sample))
    assert page.text_of("h1") == sample.verdict.sentence
    first_section = next(e.attributes["id"] for e in page.all("section") if "id" in e.attributes)
    expected = {"confirmed": "change", "suspected": "change", "unknown": "odd"}.get(sample.verdict.status)
    assert expected is None or first_section == expected


def test_order_of_the_sections(pages: dict[str, str]) -> None:
    page = Page(pages["confirmed"])
    order = [e.attributes["id"] for e in page.all("section") if "id" in e.attributes]
    assert order == ["change", "why", "experiments", "candidates", "timeline", "curves", "steps", "settings", "inputs"]


def test_evidence_shows_its_line_its_place_and_how_to_open_it(pages: dict[str, str]) -> None:
    page = Page(pages["confirmed"])
    (lines,) = page.all("pre", id="ev-a1f0c2")
    assert [line for line in "".join(lines.text).splitlines() if line.startswith("1182 {'loss'")]
    evidence = next(e for e in page.all("details") if "less +1183" in "".join(e.text))
    text = "".join(evidence.text)
    assert "train.log:1183" in text
    assert "less +1183 train.log" in text
    assert "strong" in text
    assert [mark for mark in page.all("mark") if "'loss': nan" in "".join(mark.text)]


def test_experiment_card_tells_prediction_result_and_how_to_repeat(pages: dict[str, str]) -> None:
    card = next(e for e in Page(pages["confirmed"]).all("article"))
    text = " ".join("".join(card.text).split())
    for part in (
        "Prediction, made before",
        "confirmed",
        "-0.66 (95% interval -0.72 to -0.59)",
        "seeds 0–2",
        "6.4 s on cpu",
        "Not carried over: real data",
        "rca analyze runs/llama-1b-pretrain --experiments lr_tenth --seed 0",
    ):
        assert part in text


def test_unknown_says_what_would_decide(pages: dict[str, str]) -> None:
    page = Page(pages["unknown"])
    (decide,) = page.all("section", id="decide")
    assert "dmesg -T" in "".join(decide.text)
    (nearest,) = page.all("section", id="candidates")
    assert "Host memory exhausted" in "".join(nearest.text)
    assert not page.all("section", id="why")


def test_healthy_run_gets_no_fix_and_no_cause(pages: dict[str, str]) -> None:
    page = Page(pages["healthy"])
    assert "No failure found" in "".join(page.all("header", **{"class": "answer"})[0].text)
    assert not page.all("section", id="change")


def test_a_healthy_run_shows_how_that_is_known() -> None:
    healthy = every()["healthy"]
    reason = Evidence(id="ev-1", says="The run finished.", weight=3, source="a.log", line=7, text="done")
    verdict = healthy.verdict.model_copy(update={"reasons": (reason,)})
    page = Page(HtmlReport().render(healthy.model_copy(update={"verdict": verdict})))
    (shown,) = page.all("section", id="well")
    assert "The run finished." in "".join(shown.text)
    assert page.all("a", href="#ev-1")


def test_what_the_agent_expected_of_each_cause_is_shown() -> None:
    sample = lr_too_high()
    first = sample.log[0].model_copy(update={"expected": (("numerics.bad_batch", 0.1, 0.62, 0.28), ("other", 0, 0, 1))})
    page = Page(HtmlReport().render(sample.model_copy(update={"log": (first, *sample.log[1:])})))
    (table,) = page.all("table", **{"class": "expected"})
    assert "62%" in "".join(table.text)
    assert "another cause" in "".join(table.text)


def test_a_failure_that_was_seen_in_a_curve_is_in_the_timeline(pages: dict[str, str]) -> None:
    rows = [e for e in Page(pages["confirmed"]).all("tr") if e.attributes.get("class") == "initiating"]
    assert len(rows) == 1


def test_the_diagnosis_is_inside(sample: Diagnosis) -> None:
    page = Page(HtmlReport().render(sample))
    (data,) = page.all("script", id=DATA_ID)
    assert Diagnosis.model_validate(json.loads("".join(data.text))).model_dump_json() == sample.model_dump_json()


def test_same_diagnosis_same_page() -> None:
    assert HtmlReport().render(lr_too_high()) == HtmlReport().render(lr_too_high())


def test_typical_page_is_small(html: str) -> None:
    assert len(html.encode()) <= 500_000


def test_generator_mark_stands_near_the_start(html: str) -> None:
    assert 'name="generator" content="rca"' in html[:2_000]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("run `nvidia-smi` first", "run <code>nvidia-smi</code> first"),
        ("`<b>` & `", "<code>&lt;b&gt;</code> &amp; `"),
        ("plain", "plain"),
    ],
)
def test_prose_turns_backticks_into_code(text: str, shown: str) -> None:
    assert prose(text) == shown


def test_commands_and_sentences_are_told_apart() -> None:
    assert is_command("python train.py --max_steps 600")
    assert not is_command("Peak memory falls; loss stays within noise of float32.")
    assert not is_command("loss 不再为 NaN。")
    assert not is_command("")


def test_every_time_in_the_page_comes_from_the_diagnosis() -> None:
    for diagnosis in every().values():
        html = HtmlReport().render(diagnosis)
        assert f"{datetime.now().year + 1}-" not in html
        later = diagnosis.model_copy(update={"generated": "2031-01-01T00:00:00Z"})
        assert (
            HtmlReport()
            .render(later)
            .replace("2031-01-01T00:00:00Z", diagnosis.generated)
            .replace("2031-01-01 00:00:00", diagnosis.generated[:19].replace("T", " "))
            == html
        )
