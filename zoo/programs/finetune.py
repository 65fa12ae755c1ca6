# SPDX-License-Identifier: MIT
"""A trainer with callbacks, as libraries have them: progress, logs, evaluation, checkpoints."""
import argparse
import http.client
import http.server
import json
import os
import tempfile
import threading
import time

import torch
from torch import nn

import accel
from pace import Pace


class Callback:
    def on_step_end(self, trainer):
        pass

    def on_train_end(self, trainer):
        pass


class ProgressBar(Callback):
    """Draws the whole line again after each step."""

    def __init__(self, detail):
        self.detail = detail

    def on_step_end(self, trainer):
        recent, bar, mean = trainer.times[-64:], "", 0.0
        for i in range(self.detail):
            mean = sum(t * 0.9 ** k for k, t in enumerate(reversed(recent)))  # ail: loop_overhead
            bar += "#" if i < trainer.step % self.detail else "."
        self.line = f"{bar[:40]} {mean * 100:.1f} ms"


class RunLog(Callback):
    """Scalars into a file, one JSON object a line, safe against a crash."""

    def __init__(self, every, sync):
        self.every, self.sync = every, sync
        self.file = tempfile.NamedTemporaryFile("w", suffix=".jsonl", dir=".", delete=False)

    def on_step_end(self, trainer):
        if trainer.step % self.every == 0:
            for name in ("loss", "lr", "norm", "seen"):
                self.file.write(json.dumps({"step": trainer.step, name: 0.5, "note": "x" * 2000}) + "\n")
                self.file.flush()
                if self.sync:
                    os.fsync(self.file.fileno())  # ail: logging_stall

    def on_train_end(self, trainer):
        self.file.close()
        os.unlink(self.file.name)


class Tracker(Callback):
    """Sends scalars to a tracking server."""

    def __init__(self, port, every):
        self.connection, self.every = http.client.HTTPConnection("127.0.0.1", port), every

    def on_step_end(self, trainer):
        if trainer.step % self.every == 0:
            self.connection.request("POST", "/log", json.dumps({"step": trainer.step, "series": [0.1] * 200}))
            self.connection.getresponse().read()  # ail: logging_stall


class Checkpoint(Callback):
    def __init__(self, every, megabytes):
        self.every, self.state = every, [torch.randn(1 << 18) for _ in range(megabytes)]

    def on_step_end(self, trainer):
        if trainer.step % self.every == 0:
            accel.wait()  # the weights have to come from the device
            path = f"checkpoint-{os.getpid()}.pt"
            torch.save({"model": trainer.model.state_dict(), "optimizer": self.state}, path)  # ail: checkpoint_stall
            os.unlink(path)


class Evaluation(Callback):
    def __init__(self, every, batches, gpu_ms):
        self.every, self.batches, self.gpu_ms = every, batches, gpu_ms

    def on_step_end(self, trainer):
        if trainer.step % self.every == 0:
            trainer.evaluate(self.batches, self.gpu_ms)  # ail: evaluation_share


class Trainer:
    def __init__(self, model, device, opt, callbacks):
        self.model, self.device, self.opt, self.callbacks = model, device, opt, callbacks
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        self.step, self.times = 0, []

    def training_step(self, batch):
        out = self.model(batch)
        accel.work(self.opt.gpu_ms)
        return (out - batch[:, :out.shape[1]]).pow(2).mean()

    def evaluate(self, batches, gpu_ms):
        self.model.eval()
        total = 0.0
        with torch.no_grad():
            for _ in range(batches):
                out = self.model(self.batch())  # ail: evaluation_share
                accel.work(gpu_ms)
                total += out.pow(2).mean().item()  # ail: evaluation_share
        self.model.train()
        return total / batches

    def batch(self):
        return torch.randn(self.opt.batch, 64).to(self.device, non_blocking=True)

    def fit(self):
        pace = Pace(self.opt.seconds * (1 - self.opt.linger))
        while pace.more():
            begin = time.perf_counter()
            loss = self.training_step(self.batch())
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.step += 1
            self.times.append(time.perf_counter() - begin)
            for callback in self.callbacks:
                callback.on_step_end(self)  # ail: logging_stall loop_overhead checkpoint_stall evaluation_share
            if self.step % 50 == 0:
                print(json.dumps({"step": self.step, "loss": round(loss.item(), 4)}), flush=True)
            pace.count(self.opt.batch)
        for callback in self.callbacks:
            callback.on_train_end(self)
        accel.wait()
        pace.report()


class Slow(http.server.BaseHTTPRequestHandler):
    """A tracking server far away: answers after --latency. Runs in a process of its own."""
    protocol_version, latency = "HTTP/1.1", 0.03

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(self.latency)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *words):
        pass


def serve(latency_ms):
    Slow.latency = latency_ms / 1000
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    read, write = os.pipe()
    if os.fork() == 0:
        os.close(write)
        threading.Thread(target=lambda: (os.read(read, 1), os._exit(0)), daemon=True).start()
        server.serve_forever()
    server.server_close()
    return server.server_address[1], write


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", help="not needed")
    p.add_argument("--device", default="auto")
    p.add_argument("--seconds", type=float, default=15)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--gpu-ms", type=float, default=20)
    p.add_argument("--bar", type=int, default=0)
    p.add_argument("--log-every", type=int, default=0)
    p.add_argument("--fsync", action="store_true")
    p.add_argument("--track-every", type=int, default=0)
    p.add_argument("--latency", type=float, default=30)
    p.add_argument("--save-every", type=int, default=0)
    p.add_argument("--save-mb", type=int, default=128)
    p.add_argument("--eval-every", type=int, default=0)
    p.add_argument("--eval-batches", type=int, default=20)
    p.add_argument("--eval-ms", type=float, default=20)
    p.add_argument("--linger", type=float, default=0, help="share of the time, at the end, with nothing to do")
    opt = p.parse_args()
    torch.set_num_threads(1)
    callbacks = []
    if opt.track_every:
        port, _ = serve(opt.latency)
        callbacks.append(Tracker(port, opt.track_every))
    device = accel.pick(opt.device)
    if opt.bar:
        callbacks.append(ProgressBar(opt.bar))
    if opt.log_every:
        callbacks.append(RunLog(opt.log_every, opt.fsync))
    if opt.save_every:
        callbacks.append(Checkpoint(opt.save_every, opt.save_mb))
    if opt.eval_every:
        callbacks.append(Evaluation(opt.eval_every, opt.eval_batches, opt.eval_ms))
    model = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 16)).to(device)
    Trainer(model, device, opt, callbacks).fit()
    if opt.linger:
        time.sleep(opt.seconds * opt.linger)  # ail: idle_job


if __name__ == "__main__":
    main()
