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
from rca.ingest.comet_messages import CometIngestor
from rca.ingest.config_files import ConfigFileIngestor
from rca.ingest.csv_files import CsvIngestor
from rca.ingest.document import BlockParser
from rca.ingest.elastic_errors import ElasticErrorIngestor
from rca.ingest.flight_recorder import FlightRecorderIngestor
from rca.ingest.gguf_files import GgufIngestor
from rca.ingest.gpu_query import GpuQueryIngestor
from rca.ingest.interface import Ingestor
from rca.ingest.journals import JournalIngestor
from rca.ingest.json_files import JsonIngestor
from rca.ingest.json_lines import JsonLinesIngestor
from rca.ingest.launch_records import LaunchRecordIngestor
from rca.ingest.lfs_pointers import LfsPointerIngestor
from rca.ingest.manifests import ManifestIngestor
from rca.ingest.memory_snapshot import MemorySnapshotIngestor
from rca.ingest.mlflow_files import MlflowIngestor
from rca.ingest.nvidia_smi_xml import NvidiaSmiXmlIngestor
from rca.ingest.packages import PackageListIngestor
from rca.ingest.profiler_trace import ProfilerTraceIngestor
from rca.ingest.prometheus import PrometheusIngestor
from rca.ingest.prometheus_query import QueryAnswerIngestor
from rca.ingest.safetensors_files import SafetensorsIngestor
from rca.ingest.script_files import ScriptIngestor
from rca.ingest.stack_files import StackFileIngestor
from rca.ingest.tensorboard_events import TensorBoardIngestor
from rca.ingest.text import TextIngestor
from rca.ingest.tokenizer_files import VocabularyIngestor
from rca.ingest.torch_files import TorchFileIngestor
from rca.ingest.wandb_debug import WandbDebugIngestor
from rca.ingest.wandb_machine import WandbMetadataIngestor
from rca.ingest.wandb_run import WandbRunIngestor
from rca.ingest.weight_index import WeightIndexIngestor
from rca.ingest.wrapped_logs import WrappedLogIngestor

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
