# SPDX-License-Identifier: MIT
"""A story (spotter.report/1) as the program would write it into a page, with everything in it that a page can show: two
findings, two GPUs, ranks, phases, events, gaps. Names are of the worst kind wherever a record takes them from outside.

    python3 tests/web/story.py      prints it"""
import json
import math
import random
import sys
from pathlib import Path

HTML = '<img src=x onerror="window.hurt=1">'
SCRIPT = "</script><script>window.hurt=2</script>"
ANSI = "\x1b[31mred\x1b[0m\x07"
RTL = "report\u202egpj.exe"
LONE = "bad \ud800 byte"
LONG = "a_name_without_end_" * 60
HOSTILE = (HTML, SCRIPT, ANSI, RTL, LONE, LONG)

DOCS = Path(__file__).resolve().parents[2] / "docs/causes"
TRAIN = "/home/ana/project/train.py"
PACKAGES = "/usr/lib/python3/dist-packages/"
LOADER = PACKAGES + "torch/utils/data/dataloader.py"
END = 63.2
POINTS = 240
EVALUATIONS = ((20, 23.2), (40.5, 43.8), (59, 61.2))


def short(x):
    """At most four digits, as in the program."""
    if x is None:
        return None
    x = float(f"{x:.4g}")
    return int(x) if x.is_integer() else x


def evaluating(t):
    return any(a <= t < b for a, b in EVALUATIONS)


def place(function, file=TRAIN, line=118, share=1.0):
    return {"function": function, "file": file, "line": line, "share": share}


def time_ledger():
    rows = (("data_wait", 0.421, [place("_MultiProcessingDataLoaderIter._next_data", LOADER, 1327, 0.98), place("main", share=0.02)]),
            ("gpu_wait", 0.312, [place("synchronize", PACKAGES + "torch/cuda/streams.py", 87)]),
            ("dispatch", 0.094, [place("Linear.forward", PACKAGES + "torch/nn/modules/linear.py", 114, 0.61),
                                 place(HTML, "/tmp/" + SCRIPT, 3, 0.3)]),
            ("python", 0.061, [place("log_" + RTL, line=131, share=0.7)]),
            ("transfer", 0.034, []), ("io", 0.021, []), ("comm_wait", 0.018, []), ("cpu_queue", 0.011, []),
            ("__proto__", 0.006, []), ("lock_wait", 0.004, []))
    return {"pid": 4711, "tid": 4711, "name": "python3", "unaccounted": 0.018, "error": 0.021, "ledger": [
        {"state": state, "share": share, "seconds": short(share * 54.8), "seconds_per_step": short(share * 0.0982)} | (
            {"top": top} if top else {}) for state, share, top in rows]}


def cpu_ledger():
    def row(role, cores, processes=None, threads=None, top=None):
        counts = {"processes": processes, "threads": threads} if processes else {}
        return {"role": role, **counts, "cores": cores, "share": short(cores / 3.31)} | ({"top": top} if top else {})

    return {"cores": 3.31, "unaccounted": 0.009, "ledger": [
        row("loader_worker", 1.92, 2, 2, [
            place("PhotoFolder.load -> [libjpeg.so.62.3.0]", line=33, share=0.61),
            place("Image.resize -> ImagingResampleHorizontal_8bpc", PACKAGES + "PIL/Image.py", 2192, 0.24),
            place(LONG, PACKAGES + "PIL/Image.py", 1206, 0.06)]),
        row("main", 0.71, 1, 1, [place("main", line=121, share=0.4)]), row("blas_threads", 0.33, 1, 7),
        row("spin_wait", 0.22), row("pin_thread", 0.07, 1, 1), row("constructor", 0.02, 1, 1), row("other", 0.012)]}


def findings():
    return [
        {"cause": "too_few_workers", "family": "input", "cost": 0.421, "confidence": 0.85,
         "title": "2 loader workers are too few: the training waits for data 42 % of its time",
         "where": {"file": TRAIN, "line": 118, "function": "main"},
         "evidence": [{"text": "42 % of its time it waits for the loader", "metric": "time.data_wait", "value": 0.421, "unit": "ratio"},
                      {"text": "both workers are busy 96 % of the time", "metric": "loader.busy", "value": 0.96, "unit": "ratio"},
                      {"text": "4.6 cores are free", "metric": "cores.free", "value": 4.6, "unit": "cores"},
                      {"text": f"most in {HTML}", "metric": "load.place"}],
         "fix": {"summary": "give the DataLoader 6 workers", "edit": "DataLoader(..., num_workers=6, persistent_workers=True)"},
         "gain": {"speedup": 1.62, "low": 1.44, "high": 1.71, "then": "the GPU"}},
        {"cause": "checkpoint_stall", "family": "phases", "cost": 0.071, "confidence": 0.8,
         "title": "the training stands still for checkpoints: 7.1 % of its time, at train.py:81",
         "where": {"file": TRAIN, "line": 81, "function": "save_" + SCRIPT},
         "evidence": [{"text": "4 checkpoints of 1.3 s", "metric": "phase.checkpoint", "value": 5.2, "unit": "s"}],
         "fix": {"summary": "write them in a thread of their own, from a copy",
                 "edit": "threading.Thread(target=torch.save, args=(copy, path)).start()"},
         "gain": {"speedup": 1.076, "low": 1.05, "high": 1.08, "then": "the loader"}}]


def gpu(index, busy, power):
    return {"index": index, "uuid": f"GPU-{index}", "name": "NVIDIA H100 " + ANSI, "vendor": "nvidia", "simulated": False,
            "used_by_job": True, "busy": busy, "memory_used_bytes": 21000000000, "memory_peak_bytes": 23500000000,
            "memory_total_bytes": 85899345920, "power_w": power, "temperature_c": 43, "processes": []}


def verdict():
    return {
        "schema": "spotter.verdict/1",
        "run": {"id": "20261116-085238-dc81", "name": "train " + HTML, "host": "node-7", "started": "2026-11-16T08:52:38.314Z",
                "duration_s": END, "exit": {"code": 0}, "ranks": 2, "complete": True,
                "argv": ["/usr/bin/python3", TRAIN, "--data", "/data/photos with space", "--note", SCRIPT, "--name", RTL]},
        "window": {"from_s": 6.2, "to_s": 61, "why": "steps 20 to 590, without start-up and what came behind"},
        "level": "L3",
        "steps": {"count": 602, "rate_hz": 9.96, "median_s": 0.0982, "p95_s": 0.131, "source": "hook", "marker": "torch",
                  "warm_up": 1, "data_wait_share": 0.42, "first_loss": 2.31, "last_loss": 0.412},
        "usage": {"cpu": {"cores_used": 3.42, "cores_allowed": 8, "cores_machine": 16, "threads_per_core": 2, "steal": 0.021,
                          "percent_of_one_core": 342, "percent_of_allowed": 42.8, "limit": "quota"},
                  "memory": {"used_bytes": 9100000000, "peak_bytes": 12400000000, "allowed_bytes": 32000000000, "limit": "cgroup"},
                  "storage": {"read_bytes": 41200000000, "written_bytes": 1300000000},
                  "gpus": [gpu(0, 0.43, 281), gpu(1, 0.41, 275)], "others": {"cpu_cores": 1.27}},
        "time": time_ledger(), "cpu": cpu_ledger(),
        "ranks": [{"rank": 0, "host": "node-7", "pid": 4711, "steps": 602, "rate_hz": 9.96, "median_s": 0.0982, "data_wait_share": 0.42,
                   "own_work_s": 0.051, "comm_wait_s": 0.002},
                  {"rank": 1, "host": RTL, "pid": 4712, "steps": 601, "rate_hz": 9.95, "median_s": 0.0983}],
        "findings": findings(),
        "notes": [{"cause": "spin_wait", "family": "host-device", "cost": 0, "confidence": 0.85,
                   "title": "22 % of a core is burnt waiting for the GPU, not working",
                   "evidence": [{"text": "4.6 cores are free", "metric": "cores.free", "value": 4.6, "unit": "cores"}],
                   "fix": {"summary": "nothing, while cores are free"}}],
        "healthy": False, "together": {"speedup": 1.74, "low": 1.5, "high": 1.85},
        "cannot_tell": [{"cause": "numa_remote", "why": "on which NUMA node its memory and its GPU are is not recorded"},
                        {"cause": "worker_memory_growth", "why": "proc.pss of the workers: not recorded"},
                        {"cause": "network_storage", "why": "on which file system the data lies is not recorded"}],
        "overhead": {"cpu_share_of_core": 0.0082, "rss_bytes": 12400000, "samples": 632, "samples_skipped": 1, "stack_samples": 3130,
                     "stack_unproven": 4, "stack_partial": 0}}


def tracks(times, rng):
    def near(f, noise, low=0.0, high=math.inf):
        return [None if f(t) is None else short(min(high, max(low, f(t) + rng.gauss(0, noise)))) for t in times]

    def track(ident, group, title, unit, *series, **more):
        return {"id": ident, "group": group, "title": title, "unit": unit, **more,
                "series": [{"name": name, "mean": mean} for name, mean in series]}

    busy = near(lambda t: 2 if t < 4 else 72 if evaluating(t) else 42 + 8 * math.sin(t / 2), 5, high=100)
    other = near(lambda t: None if 33 <= t < 36 else 41 + 9 * math.sin(t / 2), 5, high=100)
    rows = [
        track("gpu0_busy", "gpu", "GPU 0 busy", "%", ("busy", busy)),
        track("gpu1_busy", "gpu", "GPU 1 busy", "%", ("busy", other)),
        track("gpu0_memory", "gpu", "GPU 0 memory", "bytes", ("used", near(lambda t: min(t / 5, 1) * 21e9, 1e7)), limit=85.9e9,
              limit_name="total"),
        track("gpu0_power", "gpu", "GPU 0 power", "W", ("power", [short(110 + 3.4 * x) for x in busy])),
        track("gpu1_power", "gpu", "GPU 1 power", "W", ("power", [short(110 + 3.4 * (x or 0)) for x in other])),
        track("cpu", "cpu", "CPU", "cores", ("this job", near(lambda t: 1.1 if t < 4 else 2.1 if evaluating(t) else 3.6, 0.25)),
              ("other programs", near(lambda t: 1.2 + 0.8 * math.sin(t / 9), 0.2)), limit=8, limit_name="allowed"),
        track("memory", "memory", "Memory", "bytes", ("used", near(lambda t: 1.2e9 + min(t, 12) * 7.6e8 + t * 3e7, 2e7)), limit=32e9,
              limit_name="allowed"),
        track("io", "io", "Disk", "bytes/s", ("read", near(lambda t: 2.2e9 if t < 3 else 6.2e8, 1.1e8)),
              ("written", [320000000 if any(abs(t - x) < 0.7 for x in (15, 30, 45, 60)) else 0 for t in times])),
        track("rate", "steps", "Steps", "1/s", ("steps", near(lambda t: None if t < 4 or evaluating(t) else 9.9, 0.5))),
        track("evil", "__proto__", HTML, SCRIPT, (RTL, [1] * len(times)))]
    rows[0]["series"][0] |= {"min": [short(max(0, x - 20 - 10 * rng.random())) for x in busy],
                             "max": [short(min(100, x + 18 + 14 * rng.random())) for x in busy]}
    return rows


def timeline(rng):
    times = [short((i + 0.5) * END / POINTS) for i in range(POINTS)]
    phases = [("train", 4, 20), ("evaluate " + HTML, 20, 23.2), ("train", 23.2, 40.5), ("evaluate", 40.5, 43.8), ("train", 43.8, 59),
              (RTL, 59, 61.2)]
    events = [(0.4, "process", "python3 (pid 4711) began"), (3.1, "process", f"worker {ANSI} began"),
              (33.2, "xid", f"GPU 1: XID 63 {SCRIPT}"), (36, HTML, "GPU 1 can be read again")]
    return {"from": 0, "to": END, "t": times, "tracks": tracks(times, rng),
            "phases": [{"name": n, "from": a, "to": b} for n, a, b in phases],
            "events": [{"t": t, "kind": k, "text": x} for t, k, x in events]}


def steps(rng):
    rows, t = [], 4.0
    while t < 62.8:
        took = {149: 1.31, 333: 0.84}.get(len(rows), 0.0982 + abs(rng.gauss(0, 0.012)))
        rows.append((t, took))
        t += took
        t = next((b for a, b in EVALUATIONS if a <= t < b), t)
    times = [short(t) for t, _ in rows]
    loss = [short(0.38 + 1.9 * math.exp(-t / 14) + rng.gauss(0, 0.03)) for t in times[::3]]
    return {"t": times, "step": list(range(len(rows))), "seconds": [short(s) for _, s in rows],
            "wait": [short(s * 0.42) for _, s in rows],
            "scalars": [{"name": "loss", "t": times[::3], "v": loss},
                        {"name": "accuracy " + HTML, "t": [b for _, b in EVALUATIONS], "v": [0.61, 0.74, 0.79]}]}


def slow_steps(all_steps):
    def row(step, seconds, *differed):
        return {"step": step, "t": all_steps["t"][step], "seconds": seconds, "usual_s": 0.0982, "differed": list(differed)}

    return [row(149, 1.31, "a checkpoint of 1.2 s was in it", f"wrote 310 MB {HTML}"),
            row(333, 0.84, "it waited 0.74 s for data", "other programs used 2.1 cores more"), row(250, 0.19)]


def flame():
    strings, nodes = [""], []

    def text(s):
        if s not in strings:
            strings.append(s)
        return strings.index(s)

    def node(parent, function, file, line, own, *kids):
        i = len(nodes)
        nodes.append(None)
        total = own + sum(node(i, *kid) for kid in kids)
        nodes[i] = [parent, text(function), text(file), line, short(own), short(total)]
        return total

    def native(name, seconds):
        return name, "/usr/lib/libsome.so.1", 0, seconds

    data, nn = PACKAGES + "torch/utils/data/", PACKAGES + "torch/nn/modules/"
    total = sum((
        node(-1, "main", "", 0, 0, ("<module>", TRAIN, 160, 0.2, (
            "main", TRAIN, 118, 0.9,
            ("__next__", LOADER, 630, 0.3, ("_next_data", LOADER, 1327, 0.4, ("_get_data", LOADER, 1290, 0.1, (
                "get", "/usr/lib/python3.11/queue.py", 180, 0.1, native("[waiting: pipe]", 21.9))))),
            ("train_step", TRAIN, 97, 0.8,
             ("synchronize", PACKAGES + "torch/cuda/streams.py", 87, 0.2,
              ("[libcuda.so.1]", "/usr/lib/libcuda.so.1", 0, 0, native("[waiting: device]", 16.9))),
             ("forward", TRAIN, 61, 0.5, ("Linear.forward", nn + "linear.py", 114, 3.1, ("_ZN2at6native6linearE", "", 0, 0.9)),
              ("Conv2d.forward", nn + "conv.py", 460, 1.2), (HTML, "/tmp/" + SCRIPT, 3, 0.7)),
             ("backward", PACKAGES + "torch/_tensor.py", 522, 1.9)),
            ("save_checkpoint", TRAIN, 81, 0.1, ("save", PACKAGES + "torch/serialization.py", 850, 1.1)),
            ("log_" + RTL, TRAIN, 131, 2.3)))),
        node(-1, "loader_worker", "", 0, 0, ("_worker_loop", data + "_utils/worker.py", 302, 1, (
            "fetch", data + "_utils/fetch.py", 51, 0.4,
            ("PhotoFolder.__getitem__", TRAIN, 47, 2.1,
             ("PhotoFolder.load", TRAIN, 33, 1.7,
              ("ImageFile.load", PACKAGES + "PIL/ImageFile.py", 269, 1, native("[libjpeg.so.62.3.0]", 61)),
              ("Image.resize", PACKAGES + "PIL/Image.py", 2192, 0.8, native("ImagingResampleHorizontal_8bpc", 24))),
             ("(other)", "", 0, 3.1)),
            ("default_collate", data + "_utils/collate.py", 265, 4.4)))),
        node(-1, "blas_threads", "", 0, 0, native("[libopenblas.so.0]", 18)), node(-1, LONG, "", 0, 0.6)))
    return {"total_s": short(total), "strings": strings, "nodes": nodes}


def processes():
    def row(pid, name, command=None, role=None, **more):
        return {"pid": pid, "name": name} | ({"command": command} if command else {}) | ({"role": role} if role else {}) | more

    return [row(4711, "python3", f"python3 {TRAIN} --data /data", "main", cpu_s=66.1, lived_s=63.1, peak_bytes=5100000000,
                read_bytes=1200000000, written_bytes=1300000000),
            row(4790, "pt_data_worker", f"python3 {TRAIN} {LONG}", "loader_worker", cpu_s=60.3, lived_s=59.4, peak_bytes=2900000000,
                read_bytes=20000000000, written_bytes=0),
            row(4791, HTML, SCRIPT, "loader_worker", cpu_s=60.9, lived_s=59.4, peak_bytes=2800000000),
            row(4800, RTL, ANSI, "__proto__", cpu_s=0.2, lived_s=1.2), row(4801, LONE, cpu_s=0.01)]


def story():
    rng = random.Random(7)
    pages = {cause: (DOCS / f"{cause}.md").read_text() for cause in ("too_few_workers", "checkpoint_stall", "spin_wait")}
    pages["spin_wait"] += f"\n\n{HTML} [click](javascript:window.hurt=3) [{SCRIPT}](https://example.org/x)\n"
    all_steps = steps(rng)
    return {"schema": "spotter.report/1", "spotter": "0.1.0", "verdict": verdict(),
            "markdown": f"## train\n\n**2 loader workers are too few**: the training waits for data 42 % of its time\n\n- {HTML}\n",
            "timeline": timeline(rng), "steps": all_steps, "slow_steps": slow_steps(all_steps), "flame": flame(),
            "processes": processes(),
            "machine": [["CPU", "16 CPUs, 8 cores of 2 threads"], ["Allowed", "8 cores (quota)"], ["Memory", "64 GB, 32 GB allowed"],
                        ["GPU", "2 x NVIDIA H100 80GB HBM3"], ["Kernel", "6.1.0"], ["System", HTML]],
            "settings": [["DataLoader num_workers", "2"], ["DataLoader pin_memory", "True"], ["torch threads", "8"], [RTL, SCRIPT]],
            "docs": pages}


def bare():
    """Of a run of which next to nothing is known: absent is absent."""
    return {"schema": "spotter.report/1", "spotter": "0.1.0", "markdown": "nothing",
            "verdict": {"run": {"name": "bare", "argv": ["true"], "complete": False}, "window": {"from_s": 0, "to_s": 0.2}, "level": "L1",
                        "level_why": "stacks could not be read: permission denied", "usage": {"cpu": {}, "memory": {}, "storage": {}},
                        "cpu": {"ledger": []}, "findings": [], "notes": [],
                        "cannot_tell": [{"cause": "no_workers", "why": "only 0.2 s were seen; it takes 2"}], "overhead": {}},
            "timeline": {"from": 0, "to": 0.2, "t": [], "tracks": [], "phases": [], "events": []}, "processes": [], "machine": [],
            "settings": [], "docs": {}}


if __name__ == "__main__":
    json.dump(story(), sys.stdout)
