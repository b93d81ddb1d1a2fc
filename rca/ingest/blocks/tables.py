"""The parsers of system tables and of lines about the environment, in the order in which they are asked."""

from __future__ import annotations

from rca.ingest.blocks.boxed_metrics import BoxedMetricsParser
from rca.ingest.blocks.class_indices import ClassIndicesParser
from rca.ingest.blocks.classification_reports import ClassificationReportParser
from rca.ingest.blocks.data_frames import DataFrameParser
from rca.ingest.blocks.deepspeed_report import DeepSpeedReportParser
from rca.ingest.blocks.device_links import NvlinkParser, TopologyParser
from rca.ingest.blocks.device_monitor import DmonParser, GpuQueryParser, PmonParser
from rca.ingest.blocks.device_status import DcgmiDmonParser, GpuStatParser, RocmSmiParser
from rca.ingest.blocks.environment import CollectEnvParser, EnvironmentParser
from rca.ingest.blocks.evaluation_setup import CocoSummaryParser, TransformsParser
from rca.ingest.blocks.generation_lines import GenerationLineParser
from rca.ingest.blocks.grid_engine import QacctParser
from rca.ingest.blocks.host_activity import IostatParser, ProcessListParser, SarParser, VmstatParser
from rca.ingest.blocks.host_counters import CgroupParser, CpuParser, MeminfoParser, PortCountersParser
from rca.ingest.blocks.host_tables import DiskFreeParser, FreeParser, LimitsParser, ListingParser, TopParser
from rca.ingest.blocks.interconnect import IbstatParser
from rca.ingest.blocks.json_requests import JsonRequestParser
from rca.ingest.blocks.kernel_oom import KernelOomParser
from rca.ingest.blocks.kubernetes import (
    NodeConditionsParser,
    PodDescriptionParser,
    PodEventsParser,
    PodTableParser,
)
from rca.ingest.blocks.listed_settings import PackageLinesParser, VariablesParser
from rca.ingest.blocks.memory_summary import MemoryStatsParser, MemorySummaryParser
from rca.ingest.blocks.metric_records import MetricRecordParser
from rca.ingest.blocks.metric_rows import MarianParser, MetricRowParser
from rca.ingest.blocks.metric_tables import MetricTableParser
from rca.ingest.blocks.nvidia_smi import NvidiaSmiParser
from rca.ingest.blocks.nvidia_smi_query import NvidiaSmiQueryParser
from rca.ingest.blocks.parameter_lines import ParameterLinesParser
from rca.ingest.blocks.parameter_listing import ParameterListingParser
from rca.ingest.blocks.rank_tables import RankTableParser
from rca.ingest.blocks.request_lines import LlamaTimingsParser, RequestLineParser, VllmStatsParser
from rca.ingest.blocks.score_listings import ScoreListingParser
from rca.ingest.blocks.score_tables import HarnessTableParser, ScoreTableParser
from rca.ingest.blocks.serving_benchmarks import ServingBenchmarkParser
from rca.ingest.blocks.slurm import (
    NodeListParser,
    NodeRecordParser,
    QstatParser,
    SacctParser,
    ScontrolParser,
    SeffParser,
)
from rca.ingest.blocks.state_keys import StateKeysParser
from rca.ingest.blocks.token_dump import TokenDumpParser
from rca.ingest.blocks.transcripts import TranscriptParser
from rca.ingest.logs.document import BlockParser

VERSIONS: tuple[BlockParser, ...] = (
    CollectEnvParser(),
    DeepSpeedReportParser(),
    PackageLinesParser(),
    EnvironmentParser(),
)
"""Parsers of versions. They stand before those of settings: one line may tell a version and a configuration."""

TABLES: tuple[BlockParser, ...] = (
    NvidiaSmiParser(),
    NvidiaSmiQueryParser(),
    PmonParser(),
    DmonParser(),
    GpuQueryParser(),
    GpuStatParser(),
    DcgmiDmonParser(),
    RocmSmiParser(),
    NvlinkParser(),
    TopologyParser(),
    MemorySummaryParser(),
    MemoryStatsParser(),
    DiskFreeParser(),
    FreeParser(),
    TopParser(),
    VmstatParser(),
    IostatParser(),
    SarParser(),
    ProcessListParser(),
    MeminfoParser(),
    CgroupParser(),
    CpuParser(),
    PortCountersParser(),
    KernelOomParser(),
    LimitsParser(),
    ListingParser(),
    SacctParser(),
    ScontrolParser(),
    SeffParser(),
    NodeRecordParser(),
    NodeListParser(),
    QstatParser(),
    QacctParser(),
    PodDescriptionParser(),
    PodEventsParser(),
    PodTableParser(),
    NodeConditionsParser(),
    IbstatParser(),
    VariablesParser(),
    VllmStatsParser(),
    LlamaTimingsParser(),
    JsonRequestParser(),
    RequestLineParser(),
    GenerationLineParser(),
    ServingBenchmarkParser(),
    ClassificationReportParser(),
    MetricTableParser(),
    RankTableParser(),
    MetricRecordParser(),
    BoxedMetricsParser(),
    MetricRowParser(),
    MarianParser(),
    ScoreTableParser(),
    HarnessTableParser(),
    ScoreListingParser(),
    TranscriptParser(),
    ParameterLinesParser(),
    ParameterListingParser(),
    TokenDumpParser(),
    DataFrameParser(),
    StateKeysParser(),
    ClassIndicesParser(),
    TransformsParser(),
    CocoSummaryParser(),
)
