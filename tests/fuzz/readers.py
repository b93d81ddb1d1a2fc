"""Coverage-guided fuzzing of all readers with atheris, where it is installed.

    pip install atheris
    python tests/fuzz/readers.py CORPUS [--names GLOB] -max_total_time=300 -timeout=20 -rss_limit_mb=2000

The first byte chooses the name of the file, which decides the reader; the second, whether the rest is its content as it
is or gets right checksums and lengths first (`sealed.py`). `--names '*.json'` keeps to some of the names. CORPUS is a
folder that fills with inputs that reach new code; it is seeded with the sample runs when it is empty. What must hold is
in `outcome.py`, which the quick tests use as well.
"""

from __future__ import annotations

import sys
import tempfile
from fnmatch import fnmatch
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parent))
with atheris.instrument_imports(include=["rca.ingest", "rca.events"]):
    from outcome import NAMES, check
    from sealed import sealed

    from rca.ingest.interface import IngestContext, Limits
    from rca.rules.load import load

SAMPLES = Path(__file__).parents[2] / "sample_logs"
LARGEST = 64 * 1024
CONTEXT = IngestContext(signatures=load(()).patterns, limits=Limits(source_bytes=1 << 24))
FOLDER = Path(tempfile.mkdtemp(prefix="rca-fuzz-"))
GLOB = sys.argv.pop(sys.argv.index("--names") + 1) if "--names" in sys.argv else "*"
CHOSEN = [name for name in NAMES if fnmatch(name, GLOB)]


def one_input(data: bytes) -> None:
    """Read one file of any name and content."""
    if len(data) > 1:
        name, content = CHOSEN[data[0] % len(CHOSEN)], data[2:]
        check(FOLDER, name, sealed(name, content) if data[1] & 1 else content, CONTEXT)


def seed(corpus: Path) -> None:
    """Give the fuzzer what real jobs left behind, under every name that its suffix suits."""
    corpus.mkdir(parents=True, exist_ok=True)
    if any(corpus.iterdir()):
        return
    for file in sorted(path for path in SAMPLES.rglob("*") if path.is_file()):
        for index, name in enumerate(CHOSEN):
            if Path(name).suffix == file.suffix:
                content = bytes([index, 0]) + file.read_bytes()[:LARGEST]
                (corpus / f"{file.parent.name}-{file.name}-{index}").write_bytes(content)


if __name__ == "__main__":
    folders = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    for folder in folders[:1]:
        seed(Path(folder))
    atheris.Setup([*(item for item in sys.argv if item != "--names"), f"-max_len={LARGEST}"], one_input)
    atheris.Fuzz()
