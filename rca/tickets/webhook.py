"""A message for a program: the diagnosis and its summary as JSON, sent to a URL."""

from __future__ import annotations

import json
from urllib.parse import urlsplit

from rca.tickets.connection import TIMEOUT_S, refused, told
from rca.tickets.credentials import first_set
from rca.tickets.interface import Letter, Plan, Receipt

_NAME = "The webhook"
_SUCCESS = range(200, 300)


class Webhook:
    """POST of `{"mark", "subject", "markdown", "diagnosis"}`; `mark` is the same for every report on one run."""

    def __init__(self, url: str) -> None:
        self._url = url

    def plan(self, letter: Letter) -> Plan:
        """The document."""
        return Plan(_shown(self._url), _document(letter))

    def send(self, letter: Letter) -> Receipt:
        """Send the document; the receiver tells reports on the same run apart by their mark."""
        headers = {"Content-Type": "application/json; charset=utf-8"}
        token = first_set(("RCA_WEBHOOK_TOKEN",))
        if token:
            headers["Authorization"] = f"Bearer {token}"
        import requests

        with told(_NAME, self._url):
            answer = requests.post(
                self._url, data=_document(letter).encode(), headers=headers, timeout=TIMEOUT_S, allow_redirects=False
            )
        if answer.status_code not in _SUCCESS:
            what = _shown(self._url)
            raise refused(_NAME, answer.status_code, what=what, said=answer.text[:500], headers=answer.headers)
        return Receipt(_shown(self._url))


def _document(letter: Letter) -> str:
    document = {"mark": letter.mark, "subject": letter.subject, "markdown": letter.markdown}
    return json.dumps({**document, "diagnosis": json.loads(letter.data)}, ensure_ascii=False)


def _shown(url: str) -> str:
    """The address without what may be a secret: user, password, the end of the path and the query."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/…"
