# SPDX-License-Identifier: MIT
"""Keyword spotting on wav files: decode, resample to 16 kHz, log spectrum, a small convolutional network."""
import sys
import wave
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

import accel
import data
from pace import Pace


@dataclass
class Config:
    data: str = ""
    folder: str = ""
    device: str = "auto"
    seconds: float = 15
    batch: int = 8
    workers: int = 1
    gpu_ms: float = 30
    resample: str = "fast"      # fast, linear (sample by sample)
    fft: int = 512
    repeat: int = 1             # views of each utterance


def config(argv):
    """key=value, as in many research programs"""
    kinds = {f.name: f.type for f in fields(Config)}
    given = dict(a.split("=", 1) for a in argv)
    return Config(**{k: kinds[k](v) for k, v in given.items()})


def read_wav(path):
    with wave.open(str(path), "rb") as f:
        frames = f.readframes(f.getnframes())  # ail: slow_storage
        return np.frombuffer(frames, dtype="<i2").astype(np.float32) / 32768, f.getframerate()


def to_16k(signal, rate):
    n = int(len(signal) * 16000 / rate)
    return np.interp(np.arange(n) * (rate / 16000), np.arange(len(signal)), signal)


def to_16k_by_hand(signal, rate):
    step, out, at = rate / 16000, [], 0.0
    while at < len(signal) - 1:
        k = int(at)
        f = at - k
        out.append((1 - f) * signal[k] + f * signal[k + 1])  # ail: python_loop_preprocessing
        at += step
    return np.asarray(out, dtype=np.float32)


class Keywords(torch.utils.data.Dataset):
    def __init__(self, cfg):
        self.cfg = cfg
        self.files = sorted(Path(cfg.folder or data.ready("speech", cfg.data or None)).glob("*.wav"))

    def __len__(self):
        return 1000000

    def __getitem__(self, i):
        signal, rate = read_wav(self.files[i % len(self.files)])
        signal = (to_16k_by_hand if self.cfg.resample == "linear" else to_16k)(signal, rate)
        hop = self.cfg.fft // 4
        for _ in range(self.cfg.repeat):
            frames = np.lib.stride_tricks.sliding_window_view(signal, self.cfg.fft)[::hop]
            spectrum = np.abs(np.fft.rfft(frames * np.hanning(self.cfg.fft), axis=1))  # ail: too_few_workers no_workers
        return torch.from_numpy(np.log1p(spectrum[:128, :64]).astype(np.float32)), i % 10


def run(cfg):
    torch.set_num_threads(1)
    device = accel.pick(cfg.device)
    loader = torch.utils.data.DataLoader(Keywords(cfg), cfg.batch, num_workers=cfg.workers)  # ail: too_few_workers no_workers
    net = torch.nn.Sequential(torch.nn.Conv1d(64, 16, 5, stride=4), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool1d(1),
                              torch.nn.Flatten(), torch.nn.Linear(16, 10)).to(device)
    adam = torch.optim.Adam(net.parameters(), 1e-3)
    pace = Pace(cfg.seconds)
    for n, (x, y) in enumerate(loader):  # ail: too_few_workers no_workers
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        accel.work(cfg.gpu_ms)
        loss = F.cross_entropy(net(x.transpose(1, 2)), y)
        adam.zero_grad()
        loss.backward()
        adam.step()
        if n % 20 == 19:
            print(f"{n + 1} {loss.item():.4f}", flush=True)
        pace.count(cfg.batch)
        if not pace.more():
            break
    pace.report()


if __name__ == "__main__":
    run(config(sys.argv[1:]))
