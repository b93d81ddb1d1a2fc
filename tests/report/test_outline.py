from __future__ import annotations

from rca.diagnosis import Diagnosis, Evidence, Hypothesis
from rca.report.outline import circumstances, outline, pager_command, place, reading_summary

from .samples import every, lr_too_high


def with_hypotheses(*hypotheses: Hypothesis) -> Diagnosis:
    return lr_too_high().model_copy(update={"hypotheses": hypotheses})


def test_symptoms_stand_under_the_cause_that_explains_them() -> None:
    plan = outline(lr_too_high())
    assert plan.lead is not None
    assert plan.lead.hypothesis.cause == "numerics.lr_too_high"
    assert [symptom.cause for symptom in plan.lead.symptoms] == ["numerics.gradient_explosion"]
    assert [c.hypothesis.cause for c in plan.others] == ["numerics.fp16_overflow", "numerics.bad_batch"]


def test_chains_and_circles_of_explanations() -> None:
    a = Hypothesis(cause="numerics.lr_too_high", title="a", probability=0.9)
    b = Hypothesis(cause="b", title="b", probability=0.1, explained_by="numerics.lr_too_high")
    c = Hypothesis(cause="c", title="c", probability=0.1, explained_by="b")
    gone = Hypothesis(cause="d", title="d", probability=0.1, explained_by="not here")
    plan = outline(with_hypotheses(a, b, c, gone))
    assert plan.lead is not None
    assert [s.cause for s in plan.lead.symptoms] == ["b", "c"]
    assert [o.hypothesis.cause for o in plan.others] == ["d"]
    first = Hypothesis(cause="x", title="x", probability=0.1, explained_by="y")
    second = Hypothesis(cause="y", title="y", probability=0.1, explained_by="x")
    outline(with_hypotheses(a, first, second))


def test_no_lead_without_a_verdict() -> None:
    assert outline(every()["unknown"]).lead is None
    assert outline(every()["healthy"]).lead is None


def test_experiments_that_did_not_run_are_apart() -> None:
    plan = outline(lr_too_high())
    assert [e.id for e in plan.tried] == ["lr_tenth", "fp32_loss"]
    assert [e.id for e in plan.untried] == ["batch_half"]


def test_places() -> None:
    item = Evidence(id="x", says="", weight=0, source="a b.log", line=3, ranks=(0, 1, 2), host="n1", step=7)
    assert place(item) == "a b.log:3"
    assert circumstances(item) == "ranks 0\u20132, n1, step 7"
    assert pager_command(item) == "less +3 'a b.log'"
    assert (
        pager_command(Evidence(id="x", says="", weight=0, source="it's;rm -rf.log", line=1))
        == "less +1 'it'\"'\"'s;rm -rf.log'"
    )
    assert pager_command(Evidence(id="x", says="", weight=0)) == ""
    assert pager_command(Evidence(id="x", says="", weight=0, source="events.out.tfevents.1.node.0", line=4)) == ""
    assert (
        pager_command(Evidence(id="x", says="", weight=0, source="old/rank.log.gz", line=4))
        == "zless +4 old/rank.log.gz"
    )


def test_reading_summary() -> None:
    assert reading_summary(lr_too_high()) == "5 files read, 1 skipped"
    healthy = every()["healthy"]
    assert reading_summary(healthy) == "3 files read"
    assert len(healthy.sources) == 1
    alone = healthy.model_copy(update={"run": healthy.run.model_copy(update={"files": 1})})
    assert reading_summary(alone) == "1 file read"
