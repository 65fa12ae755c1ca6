# SPDX-License-Identifier: MIT
"""What the rules ask for, out of a record (`spotter sql`) and its verdict: series on a grid of half a second, as the others
sample, from the end of the imports on. A gauge keeps its value until the next sample. What is not in the record is None."""
GRID = 0.5
WANTED = ("cpu.idle", "cpu.iowait", "cpu.online", "gpu.busy", "gpu.memory_used", "gpu.memory_total", "gpu.temperature",
          "gpu.clock_sm", "gpu.clock_sm_max", "gpu.pcie_rx", "disk.read", "disk.reads", "mem.cached", "mem.total", "vm.swap_in")


def grid(points, begin, end):
    """A gauge held, on the grid."""
    out, at, value, t = [], 0, None, begin
    while t < end:
        while at < len(points) and points[at][0] <= t:
            value = points[at][1]
            at += 1
        if value is not None:
            out.append(value)
        t += GRID
    return out


def rates(points, begin, end):
    """Growth of a counter a second, on the grid."""
    held = grid(points, begin, end)
    return [max(0.0, (b - a) / GRID) for a, b in zip(held, held[1:])]


class Series:
    def __init__(self, spotter, record, begin, end):
        rows = spotter("sql", "--json", record, "SELECT metric, entity, t, value FROM samples "
                       f"WHERE metric IN ({','.join(repr(n) for n in WANTED)}) ORDER BY t")
        self.points, self.begin, self.end = {}, begin, end
        for r in rows:
            self.points.setdefault(r["metric"], {}).setdefault(r["entity"], []).append((r["t"], r["value"]))

    def gauges(self, metric):
        """One list for each entity."""
        return [grid(p, self.begin, self.end) for p in self.points.get(metric, {}).values()]

    def counters(self, metric):
        return [rates(p, self.begin, self.end) for p in self.points.get(metric, {}).values()]

    def last(self, metric):
        return next((p[-1][1] for p in self.points.get(metric, {}).values()), None)


def added(lists):
    return [sum(v) for v in zip(*lists)] if lists else []


def ledger(verdict):
    return {row["state"]: row["share"] for row in verdict.get("time", {}).get("ledger", [])}


def loader_processes(verdict):
    rows = [r for r in verdict.get("cpu", {}).get("ledger", []) if r["role"] == "loader_worker"]
    return rows[0].get("processes", 0) if rows else 0


def step_times(spotter, record, begin):
    rows = spotter("sql", "--json", record, f"SELECT t, seconds, data_wait FROM steps WHERE t >= {begin} ORDER BY t")
    return [(r["seconds"], r.get("data_wait") or 0.0) for r in rows if r.get("seconds")]


def facts(spotter, record, verdict):
    begin, end = verdict["window"]["from_s"], verdict["window"]["to_s"]
    s = Series(spotter, record, begin, end)
    cores = s.last("cpu.online") or 1
    steps = step_times(spotter, record, begin)
    shares = ledger(verdict)
    hooked = sum(w for _, w in steps) / sum(t for t, _ in steps) if steps else None
    totals = s.points.get("gpu.memory_total", {})
    used = s.points.get("gpu.memory_used", {})
    return {
        "gpu": s.gauges("gpu.busy"),                                               # 0..1, one list a GPU
        "cpu": [1 - idle / cores for idle in added(s.counters("cpu.idle"))],       # of the machine
        "iowait": [wait / cores for wait in added(s.counters("cpu.iowait"))],
        "gpu_memory": [[v / totals[e][-1][1] for v in grid(p, begin, end)] for e, p in used.items() if totals.get(e)],
        "gpu_memory_bytes": s.gauges("gpu.memory_used"),
        "cores": cores, "loader_processes": loader_processes(verdict), "steps": steps,
        "startup_s": begin,
        # in-process tools time the call that gets a batch: what the hook saw, or the thread's time in it
        "loader": hooked if hooked is not None else shares.get("data_wait", 0) + shares.get("data_load", 0),
        "ledger": shares,
        "disk_bytes": added(s.counters("disk.read")), "disk_reads": added(s.counters("disk.reads")),
        "cached": s.gauges("mem.cached"), "memory": s.last("mem.total"), "swap_in": added(s.counters("vm.swap_in")),
        "temperature": s.gauges("gpu.temperature"), "clock": s.gauges("gpu.clock_sm"), "clock_max": s.last("gpu.clock_sm_max"),
        "pcie": added(s.gauges("gpu.pcie_rx")),
        "ranks": [{"own": r.get("own_work_s"), "wait": r.get("comm_wait_s")} for r in verdict.get("ranks", [])],
    }


def quantile(values, q):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))] if ordered else None


def mean(values):
    return sum(values) / len(values) if values else None
