"""What an evaluation amounts to: how often right, how often wrongly confirmed, how fast."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence

from pydantic import BaseModel, ConfigDict

from rca.agent import Investigation, replay
from rca.agent.choice import Order
from rca.diagnosis import ExperimentVerdict, Hypothesis
from rca.experiments.interface import RunProfile
from rca.lab.measure import Row
from rca.lab.speaking import speaks
from rca.rules.schema import ExperimentRule


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class Share(_Model):
    """So many of so many."""

    of: int
    count: int

    def __str__(self) -> str:
        return f"{self.count} of {self.of} ({100 * self.count / self.of:.1f} %)" if self.of else "none"


class Orders(_Model):
    """Time of the agent's order against that of others to the same confirmed cause, replayed from recordings.

    Times are the stated costs of the experiments: recorded times depend on what else ran and on arms that runs share.
    """

    runs: int
    """Recorded runs on which all orders confirm the same true cause."""
    seconds: dict[str, float]
    """Order -> stated seconds altogether: `information` (the agent's), `prior` (the most probable cause first), `ids`
    (a fixed order of the experiments that concern a possible cause), `checklist` (a fixed order of all that speak about
    the symptom; those that were not carried out count as inconclusive)."""
    experiments: dict[str, int]


class FaultRow(_Model):
    """How the runs of one fault ended."""

    fault: str
    cause: str
    runs: int
    first_before: int
    first_after: int
    confirmed: int
    wrongly_confirmed: int
    refuted_wrongly: int
    median_s: float
    answers: dict[str, int]
    """Wrong first causes and how often."""


class LabScore(_Model):
    """Figures over all runs."""

    runs: int
    faults: int
    first_before: Share
    """True cause first by rules alone."""
    first_after: Share
    named_after: Share
    """True cause named as the verdict."""
    verdicts_right: Share
    """Of the causes that experiments confirmed or refuted: the true one, or one that counts as true, confirmed, others
    refuted. A refuted cause that would only have counted as true is left out."""
    confirmed: Share
    """Faulty runs with experiments whose true cause was confirmed."""
    false_confirmations: Share
    healthy_confirmed: Share
    experiments_right: Share
    """Of the single outcomes `confirmed` and `refuted`."""
    median_s: float
    ninety_s: float
    median_with_experiments_s: float
    ninety_with_experiments_s: float
    orders: Orders | None
    rows: tuple[FaultRow, ...]


def score(rows: Sequence[Row], *, orders: Orders | None = None) -> LabScore:
    """Return the figures of an evaluation."""
    good = [row for row in rows if "error" not in row]
    faulty = [row for row in good if row["cause"] != "none"]
    healthy = [row for row in good if row["cause"] == "none"]
    tested = [row for row in good if row["experiments"]]
    settled = [
        (row, cause, status)
        for row in good
        for status in ("confirmed", "refuted")
        for cause in row[status]
        if status == "confirmed" or cause == row["cause"] or cause not in row["accepted"]
    ]
    outcomes = [(row, item) for row in good for item in row["experiments"] if item["verdict"] in _TELLING]
    return LabScore(
        runs=len(rows),
        faults=len({row["fault"] for row in rows}),
        first_before=_share(is_right(row, "first_before") for row in rows),
        first_after=_share(is_right(row, "first_after") for row in rows),
        named_after=_share(is_right(row, "after") for row in rows),
        verdicts_right=_share((status == "confirmed") == (cause in row["accepted"]) for row, cause, status in settled),
        confirmed=_share(bool(set(row["confirmed"]) & set(row["accepted"])) for row in faulty if row["experiments"]),
        false_confirmations=_share(_wrongly_confirmed(row) for row in faulty),
        healthy_confirmed=_share(bool(row["confirmed"]) for row in healthy),
        experiments_right=_share(
            (item["verdict"] == "confirmed") == bool(set(item["tests"]) & set(row["accepted"]))
            for row, item in outcomes
        ),
        median_s=_quantile([row["seconds"] for row in good], 0.5),
        ninety_s=_quantile([row["seconds"] for row in good], 0.9),
        median_with_experiments_s=_quantile([row["seconds"] for row in tested], 0.5),
        ninety_with_experiments_s=_quantile([row["seconds"] for row in tested], 0.9),
        orders=orders,
        rows=tuple(_fault_rows(rows)),
    )


_TELLING = frozenset({"confirmed", "refuted"})


def compare_orders(rows: Iterable[Row], rules: Mapping[str, ExperimentRule]) -> Orders:
    """Replay recorded runs in the agent's order and in others.

    Only runs count on which every order ends by confirming the same cause, the true one.
    """
    recordings: dict[str, Row] = {}
    verdicts: dict[str, dict[str, ExperimentVerdict]] = {}
    for row in rows:
        if "hypotheses" in row:
            recordings[row["run"]] = row
        elif row.get("experiment") in rules:
            verdicts.setdefault(row["run"], {})[row["experiment"]] = row["verdict"]
    seconds = dict.fromkeys(_ORDERS, 0.0)
    counts = dict.fromkeys(_ORDERS, 0)
    runs = 0
    for name, recorded in verdicts.items():
        row = recordings.get(name, {})
        if not row.get("hypotheses"):
            continue
        found = _replayed(row, recorded, rules)
        confirmed = {tuple(item.cause for item in end.hypotheses if item.status == "confirmed")
                     for end in found.values()}  # fmt: skip
        if len(confirmed) != 1 or not set(*confirmed) & {row["cause"], *row["also_ok"]}:
            continue
        runs += 1
        for order, end in found.items():
            seconds[order] += sum(item.seconds for item in end.experiments)
            counts[order] += len(end.experiments)
    return Orders(runs=runs, seconds={order: round(value, 1) for order, value in seconds.items()}, experiments=counts)


_ORDERS: Mapping[str, Order] = {"information": "information", "prior": "prior", "ids": "ids", "checklist": "ids"}


def _replayed(
    row: Row, verdicts: Mapping[str, ExperimentVerdict], rules: Mapping[str, ExperimentRule]
) -> dict[str, Investigation]:
    profile = RunProfile.model_validate(row["profile"])
    hypotheses = [Hypothesis.model_validate(item) for item in row["hypotheses"]]
    known: dict[str, tuple[ExperimentVerdict, float]] = {
        name: (verdict, 0.0 if verdict == "not_testable" else rules[name].cost) for name, verdict in verdicts.items()
    }
    rest: dict[str, tuple[ExperimentVerdict, float]] = {
        name: ("inconclusive", rule.cost)
        for name, rule in rules.items()
        if rule.kind == "twin" and rule.predicts and speaks(rule, profile)
    }
    return {
        name: replay(hypotheses, rules, {**rest, **known} if name == "checklist" else known, order=order,
                     profile=profile)
        for name, order in _ORDERS.items()
    }  # fmt: skip


def is_right(row: Mapping[str, object], key: str) -> bool:
    """Whether the cause under `key` is the true one, or one that counts as true."""
    accepted = row["accepted"]
    return isinstance(accepted, list) and row.get(key) in accepted


def _fault_rows(rows: Sequence[Row]) -> Iterable[FaultRow]:
    for fault in dict.fromkeys(row["fault"] for row in rows):
        mine = [row for row in rows if row["fault"] == fault]
        good = [row for row in mine if "error" not in row]
        wrong: dict[str, int] = {}
        for row in mine:
            if not is_right(row, "first_after"):
                name = str(row.get("first_after", "nothing readable"))
                wrong[name] = wrong.get(name, 0) + 1
        yield FaultRow(
            fault=fault,
            cause=mine[0]["cause"],
            runs=len(mine),
            first_before=sum(is_right(row, "first_before") for row in mine),
            first_after=sum(is_right(row, "first_after") for row in mine),
            confirmed=sum(bool(set(row["confirmed"]) & set(row["accepted"])) for row in good),
            wrongly_confirmed=sum(_wrongly_confirmed(row) for row in good),
            refuted_wrongly=sum(row["cause"] in row["refuted"] for row in good),
            median_s=_quantile([row["seconds"] for row in good], 0.5),
            answers=wrong,
        )


def _wrongly_confirmed(row: Row) -> bool:
    return bool(set(row["confirmed"]) - set(row["accepted"]))


def _share(flags: Iterable[bool]) -> Share:
    listed = list(flags)
    return Share(of=len(listed), count=sum(listed))


def _quantile(values: Sequence[float], share: float) -> float:
    if len(values) < 2:
        return round(values[0], 1) if values else 0.0
    return round(statistics.quantiles(values, n=20, method="inclusive")[round(20 * share) - 1], 1)


def markdown(found: LabScore, *, command: str, remarks: Sequence[str]) -> str:
    """Return the figures as a page."""
    lines = ["# The experimenter on runs that nothing was fitted on", "", f"Made by `{command}`.", ""]
    lines += [*(f"- {remark}" for remark in remarks), "", "| figure | value | wanted |", "|---|---|---|"]
    share = _order_share(found.orders)
    lines += [f"| {name} | {value} | {wanted} |" for name, value, wanted in (
        ("runs (faults)", f"{found.runs} ({found.faults})", "200 or more"),
        ("true cause first, by rules alone", found.first_before, ""),
        ("true cause first, after experiments", found.first_after, "90 % or more"),
        ("true cause named as the verdict", found.named_after, ""),
        ("causes confirmed or refuted rightly", found.verdicts_right, "95 % or more"),
        ("single outcomes right", found.experiments_right, ""),
        ("faulty runs with a wrong confirmed cause", found.false_confirmations, "1 % or less"),
        ("healthy runs with a confirmed cause", found.healthy_confirmed, "0"),
        ("true cause confirmed, of faulty runs with experiments", found.confirmed, ""),
        ("time to verdict, all runs: median, 90 %", f"{found.median_s} s, {found.ninety_s} s", "median below 30 s"),
        ("time to verdict, runs with experiments: median, 90 %",
         f"{found.median_with_experiments_s} s, {found.ninety_with_experiments_s} s", "median below 30 s"),
        ("time of the agent's order against a fixed one", share, "60 % or less"),
    )]  # fmt: skip
    lines += ["", "| fault | cause | runs | first by rules | first after | confirmed | wrongly confirmed | "
              "truth refuted | median s | wrong answers |", "|---|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for row in found.rows:
        wrong = ", ".join(f"{name} ({count})" for name, count in sorted(row.answers.items()))
        cells = (row.fault, row.cause, row.runs, row.first_before, row.first_after, row.confirmed,
                 row.wrongly_confirmed, row.refuted_wrongly, row.median_s, wrong)  # fmt: skip
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def _order_share(orders: Orders | None) -> str:
    if orders is None or not orders.runs or not orders.seconds["ids"]:
        return "not recorded"
    mine = orders.seconds["information"]
    parts = [
        f"{100 * mine / orders.seconds[name]:.0f} % of {words} ({orders.seconds[name]:.0f} s)"
        for name, words in (
            ("checklist", "a checklist of all experiments on the symptom"),
            ("ids", "a fixed order of those on possible causes"),
            ("prior", "the most probable cause first"),
        )
    ]
    return f"{mine:.0f} s on {orders.runs} runs: {', '.join(parts)}"
