"""The XML report of nvidia-smi: devices, reasons, processes; what it may not do."""

# ruff: noqa: E501 - reports stand as they are printed

from __future__ import annotations

from typing import Any

REPORT = """<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
	<timestamp>Sun Mar  2 04:00:00 2025</timestamp>
	<driver_version>550.54.15</driver_version>
	<gpu id="00000000:07:00.0">
		<product_name>NVIDIA A100-SXM4-80GB</product_name>
		<pci><pci_gpu_link_info><link_widths><max_link_width>16x</max_link_width></link_widths></pci_gpu_link_info></pci>
		<clocks_event_reasons>
			<clocks_event_reason_hw_thermal_slowdown>Active</clocks_event_reason_hw_thermal_slowdown>
			<clocks_event_reason_sw_power_cap>Not Active</clocks_event_reason_sw_power_cap>
		</clocks_event_reasons>
		<fb_memory_usage><total>81920 MiB</total><used>1024 MiB</used></fb_memory_usage>
		<ecc_errors><volatile><dram_correctable>7</dram_correctable><dram_uncorrectable>2</dram_uncorrectable></volatile></ecc_errors>
		<temperature><gpu_temp>91 C</gpu_temp></temperature>
		<processes><process_info><pid>41233</pid><process_name>python</process_name><used_memory>71000 MiB</used_memory></process_info></processes>
	</gpu>
	<gpu id="00000000:0B:00.0"><product_name>NVIDIA A100-SXM4-80GB</product_name></gpu>
</nvidia_smi_log>
"""


def test_the_report(read: Any) -> None:
    found = read("q.xml", REPORT)
    first, second = found.table.named("system.gpu")
    wanted = {
        "index": 0,
        "bus_id": "00000000:07:00.0",
        "memory_used_bytes": 2**30,
        "temperature": 91.0,
        "ecc_uncorrected": 2.0,
        "ecc_corrected": 7.0,
        "pcie_width_max": 16.0,
        "driver": "550.54.15",
    }
    assert {key: first.attr(key) for key in wanted} == wanted
    assert (first.line, first.time, second.attr("index")) == (6, 1740888000 * 10**6, 1)
    assert found.one("system.throttle").attr("reason") == "hw_thermal_slowdown"
    assert found.one("system.gpu_process").attr("memory_bytes") == 71000 * 2**20


def test_a_report_that_was_cut_off_keeps_its_start(read: Any) -> None:
    found = read("q.xml", REPORT[: REPORT.index("<processes>")])
    assert found.one("system.gpu").attr("temperature") == 91.0
    assert "fault in the XML" in found.record.warnings[0]


def test_entities_are_refused(read: Any) -> None:
    bomb = '<!DOCTYPE nvidia_smi_log [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>\n<nvidia_smi_log><gpu id="1"><uuid>&b;</uuid></gpu></nvidia_smi_log>'
    found = read("q.xml", bomb)
    assert (found.record.status, found.ingested) == ("skipped", None)
    assert "declares entities" in found.record.why


def test_deep_nesting_is_refused(read: Any) -> None:
    text = f"<nvidia_smi_log>{'<gpu>' * 5000}"
    assert "nested too deeply" in " ".join([read("q.xml", text).record.why or "", *read("q.xml", text).record.warnings])
