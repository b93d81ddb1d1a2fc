"""What cluster tools say about containers: Kubernetes pods, Docker inspections and compose files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rca.events import EventBuilder
from rca.ingest.logs.timestamps import first_full_date
from rca.ingest.machine.exit_codes import add_exit, signal_of
from rca.ingest.settings.config_rows import add_settings
from rca.ingest.tables.cells import size_in_bytes

MAX_OBJECTS = 500
_MOST_REPORTS = 5000
"""Events and conditions that are read of one document."""
_INSPECTED = frozenset({"State", "HostConfig"})
_MANIFEST = frozenset({"apiVersion", "kind"})


def is_cluster_document(document: Any) -> bool:
    """Say whether a document is a Kubernetes object or list, a compose file, or the output of `docker inspect`."""
    if isinstance(document, list):
        return bool(document) and all(isinstance(item, dict) and item.keys() >= _INSPECTED for item in document)
    return isinstance(document, dict) and (
        document.keys() >= _MANIFEST or document.keys() >= _INSPECTED or bool(_services(document))
    )


def add_cluster_document(out: EventBuilder, document: Any) -> None:
    """Add the containers of a document: one system event each, their environment, exits and limits."""
    for item in document if isinstance(document, list) else [document]:
        if "HostConfig" in item:
            _add_docker(out, item)
        elif _services(item):
            _add_services(out, item)
        else:
            _add_reports(out, item)
            for pod in list(_pods(item))[:MAX_OBJECTS]:
                _add_pod(out, pod)


def _add_reports(out: EventBuilder, document: Mapping[str, Any]) -> None:
    """Add the events of an object or list, and the conditions of its nodes and jobs."""
    items = _list(document, "items") if "items" in document else [document]
    for item in items[:_MOST_REPORTS]:
        if item.get("involvedObject") or item.get("regarding"):
            _add_event(out, item)
            continue
        kind, owner = str(item.get("kind", "")), _dict(item, "metadata").get("name")
        if kind not in {"Pod", ""}:
            for condition in _list(item, "status", "conditions")[:40]:
                add_condition(out, condition, kind=kind, owner=owner)


def _add_event(out: EventBuilder, item: Mapping[str, Any]) -> None:
    about = _dict(item, "involvedObject") or _dict(item, "regarding")
    message = str(item.get("message") or item.get("note") or "")
    stamps = ("lastTimestamp", "eventTime", "firstTimestamp")
    time = next((found for key in stamps if (found := first_full_date(str(item.get(key) or "")[:40].encode()))), None)
    count = item.get("count") or _dict(item, "series").get("count")
    attrs = {
        "type": item.get("type"),
        "reason": item.get("reason"),
        "object": f"{str(about.get('kind', '')).lower()}/{about.get('name')}",
        "namespace": about.get("namespace"),
        "count": count if isinstance(count, int) else None,
        "message": message[:500],
    }
    out.add(
        kind="system",
        name="system.pod_event",
        time=time,
        host=str(_dict(item, "source").get("host") or "") or None,
        severity="warning" if item.get("type") == "Warning" else "info",
        text=message,
        attrs={key: value for key, value in attrs.items() if value is not None},
    )


def add_condition(
    out: EventBuilder,
    condition: Mapping[str, Any],
    *,
    kind: str,
    owner: Any,
    line: int | None = None,
    offset: int | None = None,
) -> None:
    """Add one condition of a node or job as a system event."""
    message = str(condition.get("message") or "")
    when = condition.get("lastTransitionTime") or condition.get("lasttransitiontime")
    attrs = {
        "object_kind": kind,
        "object": owner,
        "type": str(condition.get("type")),
        "status": str(condition.get("status")),
        "reason": condition.get("reason"),
        "message": message[:500],
    }
    out.add(
        kind="system",
        name="system.condition",
        line=line,
        offset=offset,
        time=first_full_date(str(when or "")[:40].encode()),
        text=message or str(condition.get("type")),
        attrs={key: value for key, value in attrs.items() if value is not None},
    )


def _pods(item: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    waiting: list[Any] = [item]
    for _ in range(MAX_OBJECTS):
        if not waiting:
            return
        found = waiting.pop(0)
        if not isinstance(found, dict):
            continue
        if isinstance(found.get("items"), list):
            waiting.extend(found["items"])
        elif _list(found, "spec", "containers"):
            yield found
        else:
            spec = _dict(found, "spec")
            inner = [spec.get("template"), *(_dict(spec, "pytorchReplicaSpecs", "Worker"), _dict(spec, "jobTemplate"))]
            waiting.extend(
                part for part in [*inner, _dict(spec, "pytorchReplicaSpecs", "Master").get("template")] if part
            )


def _add_pod(out: EventBuilder, pod: Mapping[str, Any]) -> None:
    name = str(_dict(pod, "metadata").get("name", ""))
    states = {str(item.get("name")): item for item in _list(pod, "status", "containerStatuses")}
    volumes = {str(item.get("name")): item for item in _list(pod, "spec", "volumes")}
    for container in _list(pod, "spec", "containers"):
        status = states.get(str(container.get("name")), {})
        state_name, state = next(iter(_dict(status, "state").items()), (None, {}))
        last_name, last = next(iter(_dict(status, "lastState").items()), (None, {}))
        limits, requests = _dict(container, "resources", "limits"), _dict(container, "resources", "requests")
        found = {
            "pod": name,
            "container": container.get("name"),
            "image": container.get("image"),
            "node": _dict(pod, "spec").get("nodeName"),
            "state": state_name,
            "reason": state.get("reason") if isinstance(state, dict) else None,
            "exit_code": state.get("exitCode") if isinstance(state, dict) else None,
            "last_state": last_name,
            "last_reason": last.get("reason") if isinstance(last, dict) else None,
            "last_exit_code": last.get("exitCode") if isinstance(last, dict) else None,
            "restarts": status.get("restartCount"),
            "memory_limit_bytes": _size(limits.get("memory")),
            "memory_request_bytes": _size(requests.get("memory")),
            "gpus": limits.get("nvidia.com/gpu"),
            "cpus": limits.get("cpu"),
            "shm_bytes": _shared_memory(container, volumes),
            "pod_reason": _dict(pod, "status").get("reason"),
            "pod_message": str(_dict(pod, "status").get("message") or "")[:500] or None,
        }
        add_container(out, found)
        variables = {str(item.get("name")): item.get("value") for item in _list(container, "env")}
        add_settings(out, {key: value for key, value in variables.items() if value is not None}, role="environment")


def _add_docker(out: EventBuilder, item: Mapping[str, Any]) -> None:
    state, host, config = _dict(item, "State"), _dict(item, "HostConfig"), _dict(item, "Config")
    found = {
        "container": str(item.get("Name", "")).lstrip("/") or None,
        "image": config.get("Image"),
        "state": state.get("Status"),
        "reason": "OOMKilled" if state.get("OOMKilled") is True else state.get("Error") or None,
        "exit_code": state.get("ExitCode"),
        "restarts": item.get("RestartCount"),
        "memory_limit_bytes": host.get("Memory") or None,
        "shm_bytes": host.get("ShmSize") or None,
        "ipc": host.get("IpcMode") or None,
    }
    add_container(out, found)
    variables = [text.partition("=") for text in config.get("Env") or [] if isinstance(text, str)]
    add_settings(out, {key: value for key, _, value in variables if value}, role="environment")


def _services(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the services of a compose file."""
    services = _dict(document, "services")
    described = [item for item in services.values() if isinstance(item, dict) and {"image", "build"} & item.keys()]
    return services if described and len(described) == len(services) else {}


def _add_services(out: EventBuilder, document: Mapping[str, Any]) -> None:
    for name, service in _services(document).items():
        limit = service.get("mem_limit") or _dict(service, "deploy", "resources", "limits").get("memory")
        found = {
            "container": str(name),
            "image": service.get("image"),
            "shm_bytes": _size(service.get("shm_size")),
            "memory_limit_bytes": _size(limit),
            "ipc": service.get("ipc"),
        }
        add_container(out, found)
        listed = service.get("environment")
        words = [str(word).partition("=") for word in listed] if isinstance(listed, list) else []
        pairs = listed if isinstance(listed, dict) else {name: value for name, _, value in words}
        add_settings(out, {str(key): value for key, value in pairs.items() if value}, role="environment")


def add_container(
    out: EventBuilder, found: Mapping[str, Any], *, line: int | None = None, offset: int | None = None
) -> None:
    """Add one container as a system event, and its exit as a process event where it ended badly."""
    known = {key: value for key, value in found.items() if value is not None}
    reason = known.get("last_reason") or known.get("reason")
    out.add(
        kind="system",
        name="system.container",
        line=line,
        offset=offset,
        text=None if reason is None else str(reason),
        attrs=known,
    )
    code = known.get("last_exit_code", known.get("exit_code"))
    running = str(known.get("state", "")).lower() == "running" and "last_exit_code" not in known
    if known.get("exit_code") == 0 and "last_exit_code" in known and str(known.get("reason")) == "Completed":
        add_exit(out, 0, line=line, offset=offset, text="The container completed after a restart.")
        return
    if isinstance(code, int) and not running and code != 0:
        extra = {"container": known.get("container"), "reason": reason, "signal": signal_of(code)}
        add_exit(out, code, line=line, offset=offset, attrs=extra)


def _shared_memory(container: Mapping[str, Any], volumes: Mapping[str, Mapping[str, Any]]) -> int | None:
    """Return the size limit of what is mounted on /dev/shm."""
    for mount in _list(container, "volumeMounts"):
        if str(mount.get("mountPath")).rstrip("/") == "/dev/shm":
            return _size(_dict(volumes.get(str(mount.get("name")), {}), "emptyDir").get("sizeLimit"))
    return None


def _size(value: Any) -> int | None:
    return None if value is None else size_in_bytes(str(value))


def _dict(item: Any, *path: str) -> dict[str, Any]:
    for key in path:
        item = item.get(key) if isinstance(item, dict) else None
    return item if isinstance(item, dict) else {}


def _list(item: Any, *path: str) -> list[dict[str, Any]]:
    for key in path:
        item = item.get(key) if isinstance(item, dict) else None
    return [part for part in item if isinstance(part, dict)] if isinstance(item, list) else []
