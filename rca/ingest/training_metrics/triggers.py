"""Patterns of the lines that may hold metrics."""

from rca.ingest.training_metrics.memory_lines import TRIGGERS as MEMORY
from rca.ingest.training_metrics.serving import TRIGGERS as SERVING
from rca.ingest.training_metrics.timers import TRIGGERS as TIMERS

TRIGGERS = (
    r"(?i)(?:(?:loss|\bsteps?|epoch|\bep|\btrl|\btel|ppl)[\w()]{0,12}|"
    r"(?:\b|_)(?:iter(?:ation)?s?|updates?|batch(?:es)?)(?:[_(\d][\w()]{0,12})?)['\"]?[ \t:=#|\[(]{0,16}['\"(\[]{0,2}"
    r"(?:(?:np\.)?float\d\d\()?[-+]?(?:\d|nan\b|inf(?:inity)?\b)",
    r"\d%(?: Completed)? ?\|",
    r"(?i)\d[ =:>]{0,3}\[?[ \d/]{0,12}\]? ?\|?loss",
    r"(?i)(?:reducing|reduce)\b.{0,40}loss scale|loss scale: [0-9.]+, (?:reducing|but)",
    r"\bit[=:] ?\d",
    r"^\d+ \d{1,3}% \((?:\d+h )?(?:\d+m )?\d+s\) ",
    r"\d+s\) \(\d+ \d{1,3}%\) ",
    r"^\s*\[ *\d+ */ *\d+\] ?\[ *\d+ */ *\d+\]",
    *SERVING,
    *TIMERS,
    *MEMORY,
)
"""RE2 patterns; a line without any of them is never read for metrics."""
