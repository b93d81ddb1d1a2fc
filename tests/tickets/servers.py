"""Servers on this machine that speak as much of the real APIs as an attached report needs."""

from __future__ import annotations

import json
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

import trustme


@dataclass
class Request:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)

    @property
    def file(self) -> tuple[str, bytes]:
        """Name and content of the file in a multipart body."""
        head = f"Content-Type: {self.headers['content-type']}\r\n\r\n".encode()
        part = next(item for item in message_from_bytes(head + self.body).walk() if item.get_filename())
        content = part.get_payload(decode=True)
        assert isinstance(content, bytes)
        return part.get_filename() or "", content


@dataclass
class Answer:
    """What is sent back."""

    status: int = 200
    document: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0


class Service:
    """Base of the services: requests are kept, planned answers come first."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.planned: list[tuple[str, Answer]] = []
        """Method and answer; the next request of that method gets it, whatever it asks for."""
        self.url = ""

    def answer(self, request: Request) -> Answer:
        self.requests.append(request)
        for place, (method, answer) in enumerate(self.planned):
            if method in (request.method, "*"):
                del self.planned[place]
                return answer
        if not self.allowed(request):
            return Answer(401, {"message": "Bad credentials", "errorMessages": ["Bad credentials"]})
        return self.reply(request)

    def allowed(self, request: Request) -> bool:
        return "secret-token" in "".join(request.headers.values())

    def reply(self, request: Request) -> Answer:
        raise NotImplementedError

    @property
    def writes(self) -> list[Request]:
        return [item for item in self.requests if item.method != "GET"]


class Github(Service):
    """Comments of one issue."""

    def __init__(self) -> None:
        super().__init__()
        self.comments: list[dict[str, Any]] = [{"id": 1, "body": "The job failed again.", "html_url": "https://x/1"}]

    def reply(self, request: Request) -> Answer:
        path = urlsplit(request.path).path
        if path == "/repos/acme/train/issues/12":
            return Answer(document={"number": 12, "url": f"{self.url}{path}", "title": "it failed"})
        if path == "/repos/acme/train/issues/12/comments":
            if request.method == "GET":
                return Answer(document=self.comments)
            made = {"id": len(self.comments) + 1, "body": request.document["body"]}
            made |= {
                "url": f"{self.url}/repos/acme/train/issues/comments/{made['id']}",
                "html_url": f"https://x/{made['id']}",
            }
            self.comments.append(made)
            return Answer(201, made)
        found = re.fullmatch(r"/repos/acme/train/issues/comments/(\d+)", path)
        if found and request.method == "PATCH":
            comment = self.comments[int(found[1]) - 1]
            comment["body"] = request.document["body"]
            return Answer(document=comment)
        return Answer(404, {"message": "Not Found"})


class Gitlab(Service):
    """Notes of one issue and uploads of its project."""

    largest = 10_000_000

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[dict[str, Any]] = []
        self.uploads: list[tuple[str, bytes]] = []

    def reply(self, request: Request) -> Answer:
        path = unquote(urlsplit(request.path).path)
        base = "/api/v4/projects/acme/ml/train"
        path = path.replace("/projects/7/", "/projects/acme/ml/train/")
        if path == f"{base}/issues/3":
            return Answer(document={"iid": 3, "project_id": 7, "web_url": "https://gitlab.x/acme/ml/train/-/issues/3"})
        if path == f"{base}/uploads" and request.method == "POST":
            name, data = request.file
            if len(data) > self.largest:
                return Answer(413, {"message": "Request Entity Too Large"})
            self.uploads.append((name, data))
            return Answer(201, {"url": f"/uploads/1/{name}", "markdown": f"[{name}](/uploads/1/{name})"})
        if path == f"{base}/issues/3/notes":
            if request.method == "GET":
                return Answer(document=self.notes)
            self.notes.append({"id": len(self.notes) + 1, "body": request.document["body"]})
            return Answer(201, self.notes[-1])
        found = re.fullmatch(rf"{base}/issues/3/notes/(\d+)", path)
        if found and request.method == "PUT":
            self.notes[int(found[1]) - 1]["body"] = request.document["body"]
            return Answer(document=self.notes[int(found[1]) - 1])
        return Answer(404, {"message": "404 Not found"})


class Jira(Service):
    """Comments and attachments of one issue."""

    largest = 10_485_760

    def __init__(self) -> None:
        super().__init__()
        self.comments: list[dict[str, Any]] = []
        self.attachments: list[tuple[str, bytes]] = []
        self.deleted: list[str] = []

    def allowed(self, request: Request) -> bool:
        return request.headers.get("authorization") in ("Bearer secret-token", "Basic bWVAeC5pbzpzZWNyZXQtdG9rZW4=")

    def reply(self, request: Request) -> Answer:
        parts = urlsplit(request.path)
        base = "/rest/api/2"
        if parts.path == f"{base}/attachment/meta":
            return Answer(document={"enabled": True, "uploadLimit": self.largest})
        if parts.path == f"{base}/issue/OPS-7":
            files = [self._file(place, name, len(data)) for place, (name, data) in enumerate(self.attachments)]
            fields = {"attachment": files, "comment": {"comments": self.comments}}
            return Answer(document={"id": "1", "key": "OPS-7", "self": f"{self.url}{base}/issue/1", "fields": fields})
        if re.fullmatch(rf"{base}/issue/(?:OPS-7|1)/attachments", parts.path):
            name, data = request.file
            if len(data) > self.largest:
                return Answer(413, {"errorMessages": ["too large"]})
            self.attachments.append((name, data))
            return Answer(document=[self._file(len(self.attachments) - 1, name, len(data))])
        found = re.fullmatch(rf"{base}/attachment/(\d+)", parts.path)
        if found and request.method == "DELETE":
            self.deleted.append(found[1])
            return Answer(204)
        if re.fullmatch(rf"{base}/issue/(?:OPS-7|1)/comment", parts.path):
            if request.method == "GET":
                start = int(dict(item.split("=") for item in parts.query.split("&")).get("startAt", 0))
                return Answer(document={"comments": self.comments[start : start + 2], "total": len(self.comments)})
            number = len(self.comments)
            place = f"{self.url}{base}/issue/1/comment/{number}"
            self.comments.append({"id": str(number), "self": place, "body": request.document["body"]})
            return Answer(201, self.comments[-1])
        found = re.fullmatch(rf"{base}/issue/1/comment/(\d+)", parts.path)
        if found:
            if request.method == "PUT":
                self.comments[int(found[1])]["body"] = request.document["body"]
            return Answer(document=self.comments[int(found[1])])
        return Answer(404, {"errorMessages": ["Issue does not exist or you do not have permission to see it."]})

    def _file(self, place: int, name: str, size: int) -> dict[str, Any]:
        return {"id": str(place), "filename": name, "size": size, "self": f"{self.url}/rest/api/2/attachment/{place}"}


class Hook(Service):
    """Takes any document."""

    def allowed(self, request: Request) -> bool:
        return True

    def reply(self, request: Request) -> Answer:
        return Answer(204)


@contextmanager
def serving(service: Service, *, certificate: trustme.LeafCert | None = None) -> Iterator[str]:
    """Serve on a free port of this machine; give the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(service.answer))
    server.daemon_threads = True
    scheme = "http"
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(context)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        scheme = "https"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    service.url = f"{scheme}://127.0.0.1:{server.server_port}"
    try:
        yield service.url
    finally:
        server.shutdown()
        server.server_close()


def _handler(answer: Callable[[Request], Answer]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            headers = {name.lower(): value for name, value in self.headers.items()}
            found = answer(Request(self.command, self.path, headers, self.rfile.read(length)))
            time.sleep(found.delay_s)
            body = b"" if found.document is None else json.dumps(found.document).encode()
            self.send_response(found.status)
            for name, value in found.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 - names of http.server

        def log_message(self, *_arguments: Any) -> None:
            return

    return Handler
