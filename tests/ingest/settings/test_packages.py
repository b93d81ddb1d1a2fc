from __future__ import annotations

from typing import Any

import pytest

from rca.ingest.settings.packages import Package, pinned


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("torch==2.1.0+cu121", Package("torch", "2.1.0+cu121")),
        ("Flash_Attn==2.8.2", Package("flash-attn", "2.8.2")),
        ("uvicorn[standard]==0.30.1 ; python_version >= '3.8'  # x", Package("uvicorn", "0.30.1")),
        ("apex @ file:///opt/apex-0.1-cp310-cp310-linux_x86_64.whl#sha256=ab", Package("apex", "0.1")),
        ("torch>=2.0", None),
        ("-e git+https://example.org/x#egg=y", None),
        ("step==1 loss", None),
    ],
)
def test_pinned_lines(line: str, expected: Package | None) -> None:
    assert pinned(line) == expected


FREEZE = "numpy==1.26.4\ntorch==2.6.0+cu124\n# note\ntransformers==4.51.3\n-e ./mine\n"
PIP_LIST = "Package      Version\n------------ -----------\ntorch        2.6.0+cu124\ntransformers 4.51.3\n"
CONDA_LIST = (
    "# packages in environment at /opt/conda:\n#\n# Name  Version  Build  Channel\nnumpy  1.26.4  py3  conda-forge\n"
)
REQUIREMENTS = "torch>=2.4,<3\ntransformers==4.44.0\nwandb\n-r other.txt\n"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("pip_freeze.txt", FREEZE, {"numpy": "1.26.4", "torch": "2.6.0+cu124", "transformers": "4.51.3"}),
        ("env/packages.txt", FREEZE.replace("-e ./mine\n", ""), {"numpy": "1.26.4", "torch": "2.6.0+cu124",
                                                                 "transformers": "4.51.3"}),
        ("pip_list.txt", PIP_LIST, {"torch": "2.6.0+cu124", "transformers": "4.51.3"}),
        ("conda.txt", CONDA_LIST, {"numpy": "1.26.4"}),
        ("requirements.txt", REQUIREMENTS, {"transformers": "4.44.0"}),
        ("environment.yml", "dependencies:\n- python=3.11\n- pytorch::pytorch=2.1=py3.11\n- pip:\n  - trl==0.21.0\n",
         {"python": "3.11", "torch": "2.1", "trl": "0.21.0"}),
        ("uv.lock", 'version = 1\n[[package]]\nname = "torch"\nversion = "2.6.0"\n', {"torch": "2.6.0"}),
    ],
)  # fmt: skip
def test_package_lists_of_many_shapes(read: Any, name: str, text: str, expected: dict[str, str]) -> None:
    found = read(name, text)
    assert found.packages() == expected


def test_open_requirements_keep_their_specifier(read: Any) -> None:
    found = read("requirements.txt", REQUIREMENTS)
    wanted = {event.attr("package"): event.attr("specifier") for event in found.table.named("package.requirement")}
    assert wanted == {"torch": ">=2.4,<3", "wandb": ""}
    assert not found.table.named("transformers", kind="package")[0].attr("installed")


def test_an_ordinary_log_is_no_package_list(read: Any) -> None:
    assert read("notes.txt", "starting\nUsing torch==2.1.0 here\ndone\n").record.kind == "log"
