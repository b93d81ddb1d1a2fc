"""What arrives at each service, what a second report does there, and what is said when it goes wrong."""

from __future__ import annotations

import io
import json
import socket
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
import trustme
from click.testing import CliRunner, Result
from report.samples import every

from rca.cli import cli
from rca.diagnosis import Diagnosis
from rca.errors import TicketError, UsageError
from rca.report.json_report import load_saved
from rca.tickets import connection
from rca.tickets.interface import Letter
from rca.tickets.letter import letter
from rca.tickets.target import parsed, service_for

from .servers import Answer, Github, Gitlab, Hook, Jira, Service, serving

SAMPLES = every()
DIAGNOSIS: Diagnosis = SAMPLES["confirmed"].model_copy(update={"series": (), "experiments": (), "breakdowns": ()})
"""Without charts: for those a process of its own is started."""
SMALL: Diagnosis = SAMPLES["unknown"]
LETTER = letter(DIAGNOSIS)
OTHER_RUN = letter(SMALL)
CHANGED = letter(
    SMALL.model_copy(update={"run": DIAGNOSIS.run, "rca_version": "99.0", "generated": "2030-01-01T00:00:00Z"})
)
"""Of the run of LETTER, by a later version."""
TICKETS = {"github": "github:acme/train#12", "gitlab": "gitlab:acme/ml/train#3", "jira": "jira:OPS-7"}
KINDS: dict[str, type[Service]] = {"github": Github, "gitlab": Gitlab, "jira": Jira}

_Kind = TypeVar("_Kind", bound=Service)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JIRA_USER", "JIRA_EMAIL", "JIRA_URL", "GITHUB_API_URL", "GITLAB_URL", "CI_SERVER_URL", "GH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name in ("GITHUB_TOKEN", "GITLAB_TOKEN", "JIRA_TOKEN"):
        monkeypatch.setenv(name, "secret-token")
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")


@pytest.fixture(params=sorted(KINDS))
def service(request: pytest.FixtureRequest) -> Iterator[Service]:
    made = KINDS[request.param]()
    with serving(made):
        yield made


def ticket(service: Service) -> str:
    return TICKETS[type(service).__name__.lower()]


def send(service: Service, written: Letter = LETTER) -> Any:
    return connection.patiently(lambda: service_for(parsed(ticket(service)), url=service.url).send(written))


def comments(service: Service) -> list[str]:
    return [item["body"] for item in getattr(service, "notes" if isinstance(service, Gitlab) else "comments")]


def test_the_answer_arrives_as_a_comment(service: Service) -> None:
    receipt = send(service)
    assert not receipt.updated
    body = comments(service)[-1]
    assert LETTER.mark in body
    assert DIAGNOSIS.verdict.cause.split(".")[-1].split("_")[0] in body
    assert len(body) < 32_767


def test_a_second_report_replaces_its_own_comment_only(service: Service) -> None:
    send(service)
    assert not send(service, OTHER_RUN).updated
    before = comments(service)
    assert send(service, CHANGED).updated
    after = comments(service)
    assert len(after) == len(before)
    assert [one == two for one, two in zip(before, after, strict=True)].count(False) == 1
    assert "99.0" in next(two for one, two in zip(before, after, strict=True) if one != two)


def test_the_page_is_attached_where_the_service_takes_files() -> None:
    for made in (Gitlab(), Jira()):
        with serving(made):
            send(made)
        ((name, data),) = made.uploads if isinstance(made, Gitlab) else made.attachments
        assert (name, data) == (LETTER.page.name, LETTER.page.data)
        if isinstance(made, Gitlab):
            assert f"[{LETTER.page.name}](/uploads/1/{LETTER.page.name})" in comments(made)[-1]


def test_a_new_page_replaces_the_old_one_in_jira() -> None:
    made = Jira()
    with serving(made):
        send(made)
        send(made)
    order = [(item.method, item.path.rsplit("/", 1)[-1]) for item in made.writes]
    assert made.deleted == ["0"]
    assert order.index(("DELETE", "0")) > [item[0] for item in order].index("POST", 1)


@pytest.mark.parametrize("made", [Gitlab(), Jira()])
def test_a_page_that_is_too_large_is_zipped_and_then_left_out(made: Gitlab | Jira) -> None:
    made.largest = len(LETTER.page.data) - 1
    with serving(made):
        assert send(made).notes == ()
        ((name, data),) = made.uploads if isinstance(made, Gitlab) else made.attachments
        assert name == LETTER.page.name + ".zip"
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            assert archive.read(LETTER.page.name) == LETTER.page.data
        made.largest = 100
        receipt = send(made)
    assert "not attached" in receipt.notes[0]
    assert comments(made)[-1].count(LETTER.mark) == 1


def test_jira_cloud_is_asked_with_user_and_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JIRA_USER", "me@x.io")
    made = Jira()
    with serving(made):
        send(made)
    assert made.requests[-1].headers["authorization"].startswith("Basic ")


def test_a_wrong_token_is_told(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_TOKEN", "GITLAB_TOKEN", "JIRA_TOKEN"):
        monkeypatch.setenv(name, "old")
    with pytest.raises(TicketError, match="does not accept the token"):
        send(service)
    assert service.writes == []


def test_a_missing_token_is_told_before_anything_is_asked(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_TOKEN", "GITLAB_TOKEN", "JIRA_TOKEN", "JIRA_API_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(TicketError, match=r"set .*_TOKEN.* or store it with `keyring set rca"):
        send(service)
    assert service.requests == []


def test_a_ticket_that_is_not_there_is_told(service: Service) -> None:
    wanted = {"github": "github:acme/train#13", "gitlab": "gitlab:acme/ml/train#4", "jira": "jira:OPS-8"}
    kind = type(service).__name__.lower()
    with pytest.raises(TicketError, match=r"does not know|may not see"):
        service_for(parsed(wanted[kind]), url=service.url).send(LETTER)
    assert service.writes == []


def test_a_server_that_asks_to_wait_is_asked_again(service: Service) -> None:
    service.planned = [("POST", Answer(429, {"message": "slow down"}, {"Retry-After": "1"}))]
    send(service)
    assert sum(LETTER.mark in body for body in comments(service)) == 1


def test_a_server_that_goes_on_asking_to_wait_ends_it(service: Service) -> None:
    service.planned = [("*", Answer(429, {"message": "slow down"}, {"Retry-After": "0"}))] * 20
    with pytest.raises(TicketError, match="asks to wait"):
        send(service)
    assert sum(LETTER.mark in body for body in comments(service)) == 0


def test_a_text_that_is_too_large_is_told(service: Service) -> None:
    method = "PATCH" if isinstance(service, Github) else "PUT"
    send(service)
    before = comments(service)
    service.planned = [(method, Answer(413, {"message": "too large"}))]
    with pytest.raises(TicketError, match="takes no text or file of this size"):
        send(service)
    assert comments(service) == before


def test_a_server_that_does_not_answer_is_told(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, seconds in (("github_issues", 1.0), ("gitlab_issues", 0.2), ("jira_issues", 0.2)):  # PyGithub: whole
        monkeypatch.setattr(f"rca.tickets.{module}.TIMEOUT_S", seconds)
    service.planned = [("GET", Answer(delay_s=1.2))] * 4
    with pytest.raises(TicketError, match=r"did not answer|cannot be reached"):
        send(service)
    assert service.writes == []


def test_a_certificate_for_another_host_ends_it(
    service: Service, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    authority = trustme.CA()
    bundle = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(bundle))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(bundle))
    with serving(service, certificate=authority.issue_cert("elsewhere.example.com")) as url:
        with pytest.raises(TicketError, match="certificate"):
            service_for(parsed(ticket(service)), url=url).send(LETTER)
        assert service.requests == []
    with serving(service, certificate=authority.issue_cert("127.0.0.1")) as url:
        assert service_for(parsed(ticket(service)), url=url).send(LETTER).where


def test_nobody_at_the_address_is_told(service: Service) -> None:
    with pytest.raises(TicketError, match="cannot be reached"):
        service_for(parsed(ticket(service)), url="http://127.0.0.1:9").send(LETTER)


def test_a_webhook_gets_the_diagnosis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RCA_WEBHOOK_TOKEN", "hook-secret")
    made = Hook()
    with serving(made) as url:
        target = f"webhook:{url}/services/T0/secret-path?token=secret"
        receipt = service_for(parsed(target)).send(LETTER)
        assert "secret" not in receipt.where
        (request,) = made.requests
        assert request.path == "/services/T0/secret-path?token=secret"
        assert request.headers["authorization"] == "Bearer hook-secret"
        assert request.document["mark"] == LETTER.mark
        assert Diagnosis.model_validate(request.document["diagnosis"]).verdict == DIAGNOSIS.verdict
        made.planned = [("POST", Answer(500, {"error": "no"}))]
        with pytest.raises(TicketError, match="answered 500") as failed:
            service_for(parsed(target)).send(LETTER)
    assert "secret-path" not in str(failed.value)


def test_a_mail_carries_the_summary_and_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    from aiosmtpd.controller import Controller
    from aiosmtpd.handlers import Message

    arrived: list[Any] = []

    class Kept(Message):
        def handle_message(self, message: Any) -> None:
            arrived.append(message)

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    post = Controller(Kept(), hostname="127.0.0.1", port=port)
    post.start()
    try:
        monkeypatch.setenv("RCA_SMTP_URL", f"smtp://127.0.0.1:{port}")
        monkeypatch.setenv("RCA_MAIL_FROM", "rca@cluster.example")
        assert service_for(parsed("email:oncall@example.com")).send(LETTER).where == "oncall@example.com"
    finally:
        post.stop()
    (message,) = arrived
    assert "oncall@example.com" in message["To"]
    files = {part.get_filename(): part.get_payload(decode=True) for part in message.walk() if part.get_filename()}
    assert files == {LETTER.page.name: LETTER.page.data}
    monkeypatch.setenv("RCA_SMTP_URL", "smtp://127.0.0.1:9")
    with pytest.raises(TicketError, match="did not take the message"):
        service_for(parsed("email:oncall@example.com")).send(LETTER)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "OPS-7",
        "jira:",
        "jira:a b",
        "github:acme#1",
        "github:acme/train#x",
        "gitlab:train#1",
        "email:me",
        "webhook:x",
    ],
)
def test_what_names_no_ticket_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="names no"):
        parsed(text)


def test_secrets_are_in_no_letter() -> None:
    text = LETTER.markdown + LETTER.wiki + LETTER.data + LETTER.page.data.decode()
    assert "secret-token" not in text


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    file = tmp_path / "report.html"
    file.write_bytes(OTHER_RUN.page.data)
    return file


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["attach", *arguments])


def test_a_dry_run_shows_what_would_be_sent_and_sends_nothing(saved: Path) -> None:
    made = Jira()
    with serving(made) as url:
        result = run(str(saved), "--to", "jira:OPS-7", "--url", url, "--dry-run")
        assert result.exit_code == 0
        assert made.requests == []
        run(str(saved), "--to", "jira:OPS-7", "--url", url, "--yes")
    assert made.comments[0]["body"] in result.stdout
    assert f"{len(made.attachments[0][1]):,} bytes" in result.stdout


def test_a_dry_run_needs_no_client_and_says_that_sending_does(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jira", None)
    address = (str(saved), "--to", "jira:OPS-7", "--url", "https://jira.example.com")
    dry = run(*address, "--dry-run")
    assert (dry.exit_code, dry.stdout.splitlines()[0]) == (0, "to: OPS-7 on https://jira.example.com")
    assert "pip install 'rca-dl[attach]'" in dry.stderr
    assert "pip install 'rca-dl[attach]'" in str(run(*address, "--yes").exception)


def test_without_a_terminal_nothing_is_sent_unasked(saved: Path) -> None:
    made = Github()
    with serving(made) as url:
        result = run(str(saved), "--to", "github:acme/train#12", "--url", url)
        assert isinstance(result.exception, UsageError)
        assert made.requests == []
        (saved.parent / "report.json").write_text(OTHER_RUN.data)
        done = run(str(saved.parent / "report.json"), "--to", "github:acme/train#12", "--url", url, "-y")
    assert done.stdout.startswith("sent: ")


def test_one_ticket_that_fails_does_not_stop_the_others(saved: Path) -> None:
    made = Hook()
    with serving(made) as url:
        result = run(str(saved), "--to", "webhook:http://127.0.0.1:9/x", "--to", f"webhook:{url}/x", "--yes")
    assert isinstance(result.exception, TicketError)
    assert len(made.requests) == 1
    assert load_saved(saved).verdict == SMALL.verdict


def test_the_mark_is_that_of_the_run() -> None:
    assert CHANGED.mark == LETTER.mark != OTHER_RUN.mark
    assert json.loads(CHANGED.data)["generated"].startswith("2030")
