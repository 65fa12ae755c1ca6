# SPDX-License-Identifier: MIT
"""TraceML's diagnoses (diagnostics/*/policy.py): shares of the step, a warning from 10 % on; needs two steps at least."""
from .facts import mean

WARN, COMPUTE_BOUND = 0.10, 0.90


def rules(f):
    shares = f["ledger"]
    found = {"input bound": f["loader"], "copies": shares.get("transfer", 0),
             "residual": sum(shares.get(s, 0) for s in ("python", "io", "other", "lock_wait", "idle"))}
    compute = shares.get("gpu_wait", 0) + shares.get("dispatch", 0)
    said = []
    if compute < COMPUTE_BOUND:
        said = [name for name, share in sorted(found.items(), key=lambda x: -x[1]) if share >= WARN]
    own = [r["own"] for r in f["ranks"] if r["own"]]
    if len(own) > 1 and max(own) / (sum(own) / len(own)) - 1 >= WARN:
        said.insert(0, "straggler")
    busy = mean(f["gpu"][0]) if f["gpu"] else None
    if not said and busy is not None and busy < 0.30:
        said.append("gpu under-used")
    if any(max(m) >= 0.92 for m in f["gpu_memory"] if m):
        said.append("gpu memory nearly full")
    if any(m[-1] - m[0] > 1 << 30 for m in f["gpu_memory_bytes"] if m):
        said.append("gpu memory grows")
    return said
