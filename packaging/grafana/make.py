#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The three dashboards, from the rows below: packaging/grafana/make.py writes node.json, run.json and fleet.json beside itself, and a test
compares. Every query uses families of src/agent/families.def and src/model/metrics.def, which another test checks, and a third one
(tests/e2e/test_dashboards.py) asks real engines every one of them: each must find what was planted, in the unit its panel shows.

A panel is (title, unit, [(legend, query)...], width of 24). The data source is chosen in the dashboard."""
import json
import sys
from pathlib import Path

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
RUN = 'run_id=~"$run_id"'
NODE = 'node=~"$node"'
RANGE = "[$__rate_interval]"
# What a GPU is known by: drivers that give no uuid, and partitions of one, have the others.
GPU = "node, gpu, partition, gpu_uuid"


def share(family, **labels):
    """Of a ledger's time, the part each state has: several ranks together are 100 %, not 100 % each."""
    chosen = ",".join([RUN, *(f'{name}="{value}"' for name, value in labels.items())])
    rate = f"rate({family}{{{chosen}}}{RANGE})"
    return f"sum by (state) ({rate}) / scalar(sum({rate}))"


NODE_PANELS = [
    ("Trainings now", "short", [("{{node}}", f"spotter_agent_runs{{{NODE}}}")], 6),
    ("CPU busy", "percentunit", [("{{node}}", f'1 - sum by (node) (rate(spotter_node_cpu_seconds_total{{{NODE},mode=~"idle|iowait"}}{RANGE}))'
                                 f' / sum by (node) (rate(spotter_node_cpu_seconds_total{{{NODE}}}{RANGE}))')], 9),
    ("Memory available", "bytes", [("{{node}}", f"spotter_node_memory_available_bytes{{{NODE}}}")], 9),
    ("GPU busy", "percentunit", [("{{node}} GPU {{gpu}}", f"spotter_gpu_utilization_ratio{{{NODE}}}")], 12),
    ("GPU memory", "bytes", [("{{node}} GPU {{gpu}}", f"spotter_gpu_memory_used_bytes{{{NODE}}}")], 12),
    ("GPU power", "watt", [("{{node}} GPU {{gpu}}", f"spotter_gpu_power_watts{{{NODE}}}")], 8),
    ("GPU temperature", "celsius", [("{{node}} GPU {{gpu}}", f"spotter_gpu_temperature_celsius{{{NODE}}}")], 8),
    ("GPU clocks held back", "percentunit", [("{{node}} GPU {{gpu}} {{reason}}",
                                              f"rate(spotter_gpu_throttled_seconds_total{{{NODE}}}{RANGE})")], 8),
    ("Waiting for IO, memory, CPU (pressure)", "percentunit", [
        ("{{node}} IO", f"rate(spotter_node_pressure_io_waiting_seconds_total{{{NODE}}}{RANGE})"),
        ("{{node}} memory", f"rate(spotter_node_pressure_memory_waiting_seconds_total{{{NODE}}}{RANGE})"),
        ("{{node}} CPU", f"rate(spotter_node_pressure_cpu_waiting_seconds_total{{{NODE}}}{RANGE})")], 12),
    ("Disks read", "Bps", [("{{node}} {{device}}", f"rate(spotter_node_disk_read_bytes_total{{{NODE}}}{RANGE})")], 6),
    ("Network received", "Bps", [("{{node}} {{device}}", f"rate(spotter_node_network_receive_bytes_total{{{NODE}}}{RANGE})")], 6),
    ("What Spotter costs", "percentunit", [("{{node}}", f"rate(spotter_self_cpu_seconds_total{{{NODE}}}{RANGE})")], 12),
    ("Processes it may not look into", "short", [("{{node}}", f"spotter_agent_unreadable_processes{{{NODE}}}")], 12),
    ("GPU errors (XID)", "short", [("{{node}} GPU {{gpu}}", f"increase(spotter_gpu_xid_errors_total{{{NODE}}}{RANGE})")], 12),
    ("Left out: too many of them", "short", [("{{node}} {{kind}}", f"spotter_agent_dropped_total{{{NODE}}}")], 12),
]

RUN_PANELS = [
    ("Steps a second", "ops", [("rank {{rank}}", f"rate(spotter_steps_total{{{RUN}}}{RANGE})")], 12),
    ("Loss", "none", [("rank {{rank}}", f"spotter_loss{{{RUN}}}")], 12),
    ("Time a step", "s", [
        ("median", f"histogram_quantile(0.5, sum by (le) (rate(spotter_step_duration_seconds_bucket{{{RUN}}}{RANGE})))"),
        ("95 %", f"histogram_quantile(0.95, sum by (le) (rate(spotter_step_duration_seconds_bucket{{{RUN}}}{RANGE})))")], 12),
    ("What holds it up, share of wall time", "percentunit", [("{{node}} {{cause}}", f"spotter_verdict_cost_ratio{{{RUN}}}")], 12),
    ("Where the time of the training loop goes", "percentunit", [
        ("{{state}}", share("spotter_ledger_seconds_total", ledger="time"))], 12),
    ("Where CPU time goes, cores", "none", [
        ("{{state}}", f'sum by (state) (rate(spotter_ledger_seconds_total{{{RUN},ledger="cpu"}}{RANGE}))')], 12),
    ("Own work: highest at the straggler", "percentunit", [
        ("rank {{rank}} on {{node}}", f"rate(spotter_rank_own_work_seconds_total{{{RUN}}}{RANGE})")], 12),
    ("Waiting for other ranks: least at the straggler", "percentunit", [
        ("rank {{rank}} on {{node}}", f"rate(spotter_comm_wait_seconds_total{{{RUN}}}{RANGE})")], 12),
    ("Waiting for data", "percentunit", [("rank {{rank}}", f"rate(spotter_data_wait_seconds_total{{{RUN}}}{RANGE})")], 8),
    ("Cores by role", "none", [
        ("{{role}}", f"sum by (role) (rate(spotter_process_cpu_seconds_total{{{RUN}}}{RANGE}))")], 8),
    ("Memory by role", "bytes", [("{{role}}", f"sum by (role) (spotter_process_resident_memory_bytes{{{RUN}}})")], 8),
    ("GPU memory", "bytes", [("rank {{rank}} GPU {{gpu}}", f"spotter_rank_gpu_memory_bytes{{{RUN}}}")], 12),
    ("GPU busy", "percentunit", [
        ("rank {{rank}} GPU {{gpu}}", f"spotter_gpu_utilization_ratio * on ({GPU}) group_right "
         f"spotter_rank_gpu_info{{{RUN}}}")], 12),
]

FLEET_PANELS = [
    ("Runs", "short", [("runs", "count(count by (run_id) (spotter_run_up == 1)) or vector(0)")], 4),
    ("GPUs", "short", [("GPUs", "count(spotter_gpu_info)")], 4),
    ("GPUs held by a run", "short", [("held", f"count(count by ({GPU}) (spotter_rank_gpu_info)) or vector(0)")], 4),
    ("GPUs held and idle", "short", [
        ("idle", f"count((max_over_time(spotter_gpu_utilization_ratio[10m]) <= 0.01) and on ({GPU}) spotter_rank_gpu_info) "
         "or vector(0)")], 6),
    ("Nodes", "short", [("nodes", "count(spotter_build_info)")], 6),
    ("GPUs' worth of time lost by cause", "none", [
        ("{{cause}}", "sum by (cause) (spotter_verdict_cost_ratio * on (node, run_id) group_left "
         "count by (node, run_id) (spotter_rank_gpu_info))")], 12),
    ("Time ranks wait for each other", "percentunit", [
        ("{{run_id}}", "sum by (run_id) (rate(spotter_comm_wait_seconds_total[5m])) / count by (run_id) (spotter_steps_total)")], 12),
    ("Own work of a rank, of the median of its run", "none", [
        ("{{run_id}} rank {{rank}} on {{node}}", "rate(spotter_rank_own_work_seconds_total[5m]) / on (run_id) group_left "
         "quantile by (run_id) (0.5, rate(spotter_rank_own_work_seconds_total[5m])) > 1.1")], 12),
    ("Seconds since the last step", "s", [
        ("{{run_id}}", "time() - max by (run_id) (spotter_run_last_step_timestamp_seconds) and on (run_id) spotter_run_up == 1")], 12),
    ("Steps a second", "ops", [("{{run_id}}", "max by (run_id) (rate(spotter_steps_total[5m]))")], 12),
    ("Clocks held back", "percentunit", [
        ("{{node}} GPU {{gpu}} {{reason}}", "rate(spotter_gpu_throttled_seconds_total[5m]) > 0.05")], 12),
]


def panel(number, row, x, y):
    title, unit, queries, width = row
    return {"id": number, "type": "stat" if width <= 6 and len(queries) == 1 else "timeseries", "title": title, "datasource": SOURCE,
            "gridPos": {"h": 4 if width <= 6 else 8, "w": width, "x": x, "y": y},
            "fieldConfig": {"defaults": {"unit": unit}, "overrides": []}, "options": {},
            "targets": [{"refId": chr(65 + i), "datasource": SOURCE, "expr": query, "legendFormat": legend}
                        for i, (legend, query) in enumerate(queries)]}


def panels(rows):
    made, x, y, high = [], 0, 0, 0
    for number, row in enumerate(rows, 1):
        if x + row[3] > 24:
            x, y, high = 0, y + high, 0
        made.append(panel(number, row, x, y))
        x, high = x + row[3], max(high, made[-1]["gridPos"]["h"])
    return made


def variable(name, query):
    return {"name": name, "type": "query", "datasource": SOURCE, "query": {"query": query, "refId": name}, "refresh": 2,
            "includeAll": True, "multi": True, "sort": 1, "current": {"text": "All", "value": "$__all"}}


def dashboard(uid, title, rows, variables):
    source = {"name": "datasource", "type": "datasource", "query": "prometheus"}
    return {"uid": uid, "title": title, "tags": ["spotter"], "schemaVersion": 39, "version": 1, "editable": True, "refresh": "30s",
            "time": {"from": "now-1h", "to": "now"}, "templating": {"list": [source, *variables]}, "panels": panels(rows)}


def dashboards():
    node = variable("node", "label_values(spotter_build_info, node)")
    run = variable("run_id", "label_values(spotter_run_info, run_id)")
    return {"node.json": dashboard("spotter-node", "Spotter: nodes", NODE_PANELS, [node]),
            "run.json": dashboard("spotter-run", "Spotter: a run", RUN_PANELS, [run]),
            "fleet.json": dashboard("spotter-fleet", "Spotter: fleet", FLEET_PANELS, [])}


def main():
    folder = Path(__file__).resolve().parent
    for name, value in dashboards().items():
        (folder / name).write_text(json.dumps(value, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
