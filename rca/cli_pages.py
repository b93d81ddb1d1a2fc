"""What the help of every command says beyond its options: arguments, examples, exit codes, variables, files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Rows = Sequence[tuple[str, str]]

_DONE = (0, "Done.")
_WRONG = (2, "An option, a path, a configuration file or a rule is wrong.")
_NOTHING = (3, "Nothing in the directory could be read.")
_INTERNAL = (4, "Internal error; the traceback is in rca-crash.log.")
_INTERRUPTED = (130, "Interrupted.")
_USUAL = (_DONE, _WRONG, _INTERNAL, _INTERRUPTED)

_RUN_DIR = ("RUN_DIR", "Folder, archive (tar, zip) or URL of what the job left; read, never written.")
_SAVED = "A .json or .html report that rca wrote, by this version or an older one."
_CONFIGURATION = ("./rca.toml", "Defaults of options, or [tool.rca] in ./pyproject.toml.")
_CRASH = ("./rca-crash.log", "Traceback of an internal error.")
_CACHE = ("~/.cache/rca", "Parsed rules, to start sooner; under XDG_CACHE_HOME where that is set.")
_COLOURS = ("NO_COLOR, FORCE_COLOR, TERM", "Colour off, on, and off where TERM is dumb; --color wins over them.")
_FILES = (_CONFIGURATION, _CACHE, _CRASH)


@dataclass(frozen=True)
class Page:
    """What stands in the help of one command beside its options."""

    short: str = ""
    """One line for lists of commands; without it, the first sentence of the help."""
    arguments: Rows = ()
    examples: Rows = ()
    """Command line and what it does."""
    exit_codes: Sequence[tuple[int, str]] = _USUAL
    variables: Rows = ()
    files: Rows = (_CONFIGURATION,)
    commands: Sequence[tuple[str, Sequence[str]]] = ()
    """Headings of a group, with the commands under them."""
    notes: Sequence[str] = ()


_PAGES: dict[str, Page] = {
    "": Page(
        examples=(
            ("rca analyze RUN_DIR", "Find the cause; write reports/NAME.html, .json and .md."),
            ("rca explain CAUSE", "What a cause is, what speaks for it, how to fix it."),
            ("rca attach reports/NAME.json --to jira:KEY-1 --dry-run", "Show what a ticket would get."),
        ),
        exit_codes=(
            (0, "Done, whatever was found."),
            (1, "Only with --fail-on: the cause was found."),
            _WRONG,
            _NOTHING,
            _INTERNAL,
            (5, "Only attach: a ticket could not be written."),
            _INTERRUPTED,
        ),
        variables=(
            (
                "RCA_COMMAND_OPTION",
                "Default of an option: RCA_ANALYZE_FORMAT=json. RCA_BUDGET, RCA_RULES and others "
                "that commands share hold for all. A flag wins over a variable, that over a file.",
            ),
            _COLOURS,
            ("_RCA_COMPLETE", 'Completion: eval "$(_RCA_COMPLETE=bash_source rca)"; zsh_source, fish_source.'),
        ),
        files=_FILES,
        commands=(
            ("Find the cause", ("analyze", "run", "experiment", "memory")),
            ("Show and share it", ("report", "attach", "explain")),
            ("Knowledge and its quality", ("rules", "eval", "lab")),
        ),
    ),
    "analyze": Page(
        short="Find the cause of what a job left in RUN_DIR.",
        arguments=(_RUN_DIR,),
        examples=(
            ("rca analyze runs/42", "Rules, then up to 60 s of experiments; reports in reports/."),
            ("rca analyze runs/42 --experiments none --json | jq .verdict", "Rules only, one JSON document."),
            ("rca analyze runs/42.tar.gz --baseline runs/41", "Compared with a run that went well."),
            ("rca analyze s3://bucket/run --rules team -f md -o -", "A run in a store, rules of your own, Markdown."),
        ),
        exit_codes=(
            (0, "The analysis was done, whatever it found."),
            (1, "Only with --fail-on: the cause was found."),
            _WRONG,
            _NOTHING,
            _INTERNAL,
            (130, "Interrupted; during experiments, what was found so far is written."),
        ),
        variables=(_COLOURS,),
        files=(
            ("reports/NAME.html", "The report; NAME.json and NAME.md beside it."),
            ("reports/NAME-repro/", "Programs that repeat the experiments that ran."),
            *_FILES,
        ),
    ),
    "run": Page(
        short="Run COMMAND and, where it fails, find out why.",
        arguments=(("COMMAND...", "The command with its arguments."),),
        examples=(
            ("rca run -- python train.py --lr 3e-4", "Watch one process; analyse it where it fails."),
            ("rca run -- torchrun --nproc-per-node 8 train.py", "The output of every rank is kept apart."),
            ("srun rca run --run-dir logs/$SLURM_JOB_ID -- python train.py", "Every task of a job in one folder."),
        ),
        exit_codes=(
            (0, "The command ended well."),
            (2, "The folder of the run cannot be written."),
            (127, "There is no such command; any other code or signal is that of the command."),
        ),
        variables=(_COLOURS,),
        files=(("run-DATE-PID/rca-run/", "What was kept, where --run-dir names no folder."), _CONFIGURATION),
    ),
    "experiment": Page(
        short="Carry out one experiment on a run, or list them.",
        arguments=(("ID", "An experiment, bisect_config, or list: ids, questions, cost and causes of all."), _RUN_DIR),
        examples=(
            ("rca experiment list", "What can be tested."),
            ("rca experiment lr_tenth runs/42", "One experiment: prediction, arms, effect, verdict."),
            ("rca experiment bisect_config runs/42 --baseline runs/41", "Which changed settings make it fail."),
        ),
        exit_codes=(_DONE, _WRONG, _NOTHING, _INTERNAL, _INTERRUPTED),
        variables=(_COLOURS,),
    ),
    "memory": Page(
        short="Predict the peak memory of a step, and what fits.",
        arguments=(("MODEL", "A config.json, or the folder that holds it."),),
        examples=(
            ("rca memory model/config.json --device 80GiB --batch 8", "Does this step fit one card?"),
            ("rca memory model --device 24GB --task generate --precision bf16", "And these answers?"),
            ("rca memory model --device 80GiB --devices 8 --zero 3", "And sharded over eight cards?"),
        ),
        variables=(_COLOURS,),
    ),
    "explain": Page(
        short="What a CAUSE is, what speaks for it, how to fix it.",
        arguments=(("CAUSE", "Id of a cause; `rca rules list --kind cause` lists them."),),
        examples=(
            ("rca explain numerics.lr_too_high", "One cause, as text."),
            ("rca explain numerics.lr_too_high -v", "Its conditions and weights as well."),
        ),
        variables=(_COLOURS,),
    ),
    "report": Page(
        short="Render a SAVED report in another format.",
        arguments=(("SAVED", _SAVED),),
        examples=(
            ("rca report reports/run-42.html -f json", "The JSON that the page holds."),
            ("rca report reports/run-42.json -f junit -o junit.xml", "For the test tab of a CI system."),
        ),
        variables=(_COLOURS,),
        notes=("Further formats come from installed packages, by the entry point group `rca.formats`.",),
    ),
    "attach": Page(
        short="Attach a saved REPORT to a ticket.",
        arguments=(("REPORT", _SAVED),),
        examples=(
            ("rca attach reports/run-42.json --to jira:OPS-7 --dry-run", "Show what would be sent."),
            ("rca attach reports/run-42.html --to github:acme/train#12 --yes", "Comment, without being asked."),
        ),
        exit_codes=(*_USUAL[:-1], (5, "A ticket could not be written; the message says why."), _INTERRUPTED),
        variables=(
            ("JIRA_TOKEN, JIRA_USER", "Jira; the user only for Jira Cloud."),
            ("GITHUB_TOKEN, GITLAB_TOKEN", "GitHub, GitLab."),
            ("RCA_WEBHOOK_TOKEN", "Bearer token for webhook:URL."),
            ("RCA_SMTP_URL, RCA_SMTP_PASSWORD", "Mail server, smtp+starttls://me@host:587, and its password."),
        ),
    ),
    "rules": Page(
        examples=(
            ("rca rules new acme.lease_expired --rules team", "Begin a rule of your own."),
            ("rca rules check --rules team && rca rules test --rules team", "Check it, run its cases."),
        ),
    ),
    "rules list": Page(
        short="List rules whose id starts with PREFIX.",
        arguments=(("PREFIX", "Beginning of ids; without it, all."),),
        examples=(
            ("rca rules list numerics --kind cause", "Causes of one domain."),
            ("rca rules list --emitter nccl", "What NCCL says that is known."),
        ),
    ),
    "rules show": Page(
        short="Print the text that defines a rule.",
        arguments=(("ID", "Id of a cause, a signature or an experiment."),),
        examples=(("rca rules show numerics.lr_too_high", "The YAML as it stands in its file."),),
    ),
    "rules new": Page(
        short="Write a new cause and its cases, to be filled in.",
        arguments=(("CAUSE", "Id of the new cause: domain.name."),),
        examples=(
            (
                "rca rules new acme.lease_lost --rules team --from-line 'ERROR lease lost'",
                "A rule that finds this line; write what it means and how to fix it.",
            ),
        ),
    ),
    "rules check": Page(
        short="Check rule files.",
        examples=(("rca rules check --rules team", "The rules of one folder."),),
        exit_codes=(_DONE, (2, "A rule is wrong, or an option."), _INTERNAL, _INTERRUPTED),
    ),
    "rules test": Page(
        short="Run the cases of causes.",
        arguments=(("PREFIX", "Beginning of ids of causes."),),
        examples=(("rca rules test acme --rules team", "The cases of these causes."),),
        exit_codes=(_DONE, (2, "A case failed, a rule is wrong, or an option."), _INTERNAL, _INTERRUPTED),
    ),
    "rules mutate": Page(
        short="List conditions that no case misses.",
        arguments=(("PREFIX", "Beginning of ids of causes."),),
        examples=(("rca rules mutate numerics.lr", "Which conditions no case misses."),),
    ),
    "rules schema": Page(
        short="Print the JSON Schema of a kind of rule file.",
        arguments=(("KIND", "signatures, cause, cases, experiment or taxonomy; cause where none is given."),),
        examples=(("rca rules schema --write team", "Schemas for editors, in team/schemas."),),
    ),
    "rules reference": Page(
        short="Print a page of the reference as Markdown.",
        arguments=(("PAGE", "causes, signatures or field-guide; causes where none is given."),),
        examples=(("rca rules reference field-guide > guide.md", "A page of all causes, by symptom."),),
    ),
    "eval": Page(
        short="Score labelled incidents.",
        arguments=(("CASES_DIR", "Folders of run/, truth.json and, where there is a healthy run, baseline/."),),
        examples=(
            ("rca eval cases", "Accuracy, confusion and calibration, rules only."),
            ("rca eval cases --experiments auto --budget 2m", "With experiments."),
            ("rca eval cases --fit team/calibration.json", "Calibrate the probabilities on your incidents."),
        ),
    ),
    "lab": Page(
        short="Make tiny jobs fail for real; measure experiments.",
        examples=(
            ("rca lab list", "Faults that can be made."),
            ("rca lab make fp16_overflow out", "Make one, then: rca analyze out/run"),
        ),
    ),
    "lab list": Page(
        short="List the faults that can be made.",
        examples=(("rca lab list --json", "Faults, causes and severities as JSON."),),
    ),
    "lab make": Page(
        short="Run a tiny job with a fault.",
        arguments=(("FAULT", "Name of a fault; `rca lab list` lists them."), ("OUT", "Folder that is made.")),
        examples=(("rca lab make fp16_overflow out --seed 3", "Write out/run and out/truth.json."),),
    ),
    "lab matrix": Page(
        short="Record verdicts of experiments on runs of faults.",
        examples=(("rca lab matrix --faults lr_high --seeds 0..4", "Verdicts of experiments on five runs."),),
        files=(("lab_runs/", "The runs."), ("matrix.jsonl", "The verdicts."), _CONFIGURATION),
    ),
    "lab evaluate": Page(
        short="Analyse runs that nothing was counted on.",
        examples=(("rca lab evaluate --seeds 100..104 --jobs 2", "Analyse runs that nothing was fitted on."),),
        files=(("lab_runs/", "The runs."), ("evaluation.jsonl", "The results."), _CONFIGURATION),
    ),
}


def page(path: Sequence[str]) -> Page:
    """The page of a command, by its words behind `rca`."""
    return _PAGES.get(" ".join(path), Page())


def documented() -> tuple[str, ...]:
    """Commands that have a page of their own."""
    return tuple(_PAGES)
