"""All readers and block parsers, in the order in which they are asked."""

from __future__ import annotations

from rca.ingest.blocks.assigned_settings import AssignedSettingsParser
from rca.ingest.blocks.bare_exceptions import BareExceptionParser
from rca.ingest.blocks.command_lines import CommandLineParser
from rca.ingest.blocks.exits import ExitParser
from rca.ingest.blocks.headed_settings import HeadedSettingsParser
from rca.ingest.blocks.inline_settings import InlineSettingsParser
from rca.ingest.blocks.native_crash import NativeCrashParser
from rca.ingest.blocks.printed_objects import PrintedObjectParser
from rca.ingest.blocks.settings_blocks import SettingsBlockParser
from rca.ingest.blocks.settings_lines import SettingsLineParser
from rca.ingest.blocks.stack_dump import StackDumpParser
from rca.ingest.blocks.tables import TABLES, VERSIONS
from rca.ingest.blocks.torchelastic import ElasticSummaryParser
from rca.ingest.blocks.traceback import TracebackParser
from rca.ingest.dumps.flight_recorder import FlightRecorderIngestor
from rca.ingest.dumps.memory_snapshot import MemorySnapshotIngestor
from rca.ingest.dumps.stack_files import StackFileIngestor
from rca.ingest.event_files.events import TensorBoardIngestor
from rca.ingest.interface import Ingestor
from rca.ingest.logs.document import BlockParser
from rca.ingest.logs.text import TextIngestor
from rca.ingest.logs.wrapped_logs import WrappedLogIngestor
from rca.ingest.machine.elastic_errors import ElasticErrorIngestor
from rca.ingest.machine.gpu_query import GpuQueryIngestor
from rca.ingest.machine.journals import JournalIngestor
from rca.ingest.machine.launch_records import LaunchRecordIngestor
from rca.ingest.machine.nvidia_smi_xml import NvidiaSmiXmlIngestor
from rca.ingest.machine.prometheus import PrometheusIngestor
from rca.ingest.machine.prometheus_query import QueryAnswerIngestor
from rca.ingest.settings.config_files import ConfigFileIngestor
from rca.ingest.settings.packages import PackageListIngestor
from rca.ingest.settings.script_files import ScriptIngestor
from rca.ingest.tables.csv_files import CsvIngestor
from rca.ingest.tables.json_files import JsonIngestor
from rca.ingest.tables.json_lines import JsonLinesIngestor
from rca.ingest.traces.profiler_trace import ProfilerTraceIngestor
from rca.ingest.trackers.comet_messages import CometIngestor
from rca.ingest.trackers.mlflow_files import MlflowIngestor
from rca.ingest.trackers.wandb_debug import WandbDebugIngestor
from rca.ingest.trackers.wandb_machine import WandbMetadataIngestor
from rca.ingest.trackers.wandb_run import WandbRunIngestor
from rca.ingest.weights.gguf_files import GgufIngestor
from rca.ingest.weights.lfs_pointers import LfsPointerIngestor
from rca.ingest.weights.manifests import ManifestIngestor
from rca.ingest.weights.safetensors_files import SafetensorsIngestor
from rca.ingest.weights.tokenizer_files import VocabularyIngestor
from rca.ingest.weights.torch_files import TorchFileIngestor
from rca.ingest.weights.weight_index import WeightIndexIngestor

BLOCKS: tuple[BlockParser, ...] = (
    TracebackParser(),
    NativeCrashParser(),
    StackDumpParser(),
    ElasticSummaryParser(),
    *VERSIONS,
    PrintedObjectParser(),
    *TABLES,
    ExitParser(),
    BareExceptionParser(),
    HeadedSettingsParser(),
    SettingsLineParser(),
    SettingsBlockParser(),
    AssignedSettingsParser(),
    CommandLineParser(),
)
"""Parsers of what spans several lines of a log; the first that knows a line takes it."""

AFTER_METRICS: tuple[BlockParser, ...] = (InlineSettingsParser(),)
"""Parsers of lines that neither a block nor the metrics of training took."""

_LOGS = TextIngestor(BLOCKS, after_metrics=AFTER_METRICS)

INGESTORS: tuple[Ingestor, ...] = (
    TensorBoardIngestor(),
    WandbRunIngestor(),
    WandbMetadataIngestor(),
    WandbDebugIngestor(_LOGS),
    ProfilerTraceIngestor(),
    FlightRecorderIngestor(),
    MemorySnapshotIngestor(),
    LfsPointerIngestor(),
    LaunchRecordIngestor(),
    MlflowIngestor(),
    SafetensorsIngestor(),
    GgufIngestor(),
    TorchFileIngestor(),
    WeightIndexIngestor(),
    ManifestIngestor(),
    VocabularyIngestor(),
    StackFileIngestor(),
    ElasticErrorIngestor(_LOGS),
    CometIngestor(_LOGS),
    JournalIngestor(_LOGS),
    NvidiaSmiXmlIngestor(),
    QueryAnswerIngestor(),
    WrappedLogIngestor(_LOGS),
    JsonIngestor(),
    JsonLinesIngestor(),
    ConfigFileIngestor(),
    GpuQueryIngestor(),
    CsvIngestor(),
    PrometheusIngestor(),
    PackageListIngestor(),
    ScriptIngestor(),
    _LOGS,
)
"""Readers of whole files; the first that accepts a file reads it, so the text reader stands last."""
