"""The programs that repeat the experiments, as files beside the report."""

from __future__ import annotations

import re

from rca.diagnosis import Diagnosis, Experiment


def script_name(experiment: Experiment) -> str:
    """Name of the file that holds the script of an experiment."""
    return f"repro_{re.sub(r'[^A-Za-z0-9_]+', '_', experiment.id)[:80]}.py"


def file_stem(diagnosis: Diagnosis) -> str:
    """Name of the files of a report: that of the run, without what shells and file systems do not take."""
    return re.sub(r"[<>]", "", diagnosis.run.name.replace("/", "-")) or "run"


def script_folder(diagnosis: Diagnosis) -> str:
    """Folder beside the report: one a run, because several reports share a folder."""
    return f"{file_stem(diagnosis)}-repro"


def script_place(diagnosis: Diagnosis, experiment: Experiment) -> str:
    """Where the script lies, as seen from the report."""
    return f"{script_folder(diagnosis)}/{script_name(experiment)}"


def scripts(diagnosis: Diagnosis) -> dict[str, str]:
    """Place -> program, for every experiment that has one."""
    return {script_place(diagnosis, item): item.script for item in diagnosis.experiments if item.script}
