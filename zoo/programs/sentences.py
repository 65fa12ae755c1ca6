# SPDX-License-Identifier: MIT
"""Sentiment of short reviews: text is split into word pieces, padded, and read by a small encoder."""
import argparse
import re
from collections import Counter

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

import accel
import data
from pace import Pace


class WordPieces:
    """Greedy longest match over a vocabulary of frequent pieces."""

    def __init__(self, lines, size=3000):
        counts = Counter()
        for line in lines[:2000]:
            for word in re.findall(r"\w+", line.lower()):
                counts.update(word[:n] for n in range(1, len(word) + 1))
        self.ids = {piece: i + 1 for i, (piece, _) in enumerate(counts.most_common(size))}

    def split(self, word):
        out, at = [], 0
        while at < len(word):
            for end in range(len(word), at, -1):
                if word[at:end] in self.ids:  # ail: tokenization
                    break
            out.append(self.ids.get(word[at:end], 0))
            at = end
        return out

    def __call__(self, text):
        ids = []
        for word in re.findall(r"\w+", text.lower()):
            ids.extend(self.split(word))  # ail: tokenization
        return ids


class Reviews(torch.utils.data.Dataset):
    def __init__(self, path, tokenizer=None, ahead=False, lines=4):
        rows = [line.rstrip("\n").split("\t", 1) for line in open(path)]
        self.labels = [int(label) for label, _ in rows[::lines]]
        # a document is some lines
        self.texts = [" ".join(text for _, text in rows[i:i + lines]) for i in range(0, len(rows), lines)]
        self.tokenizer = tokenizer or WordPieces(self.texts)
        self.ready = [self.tokenizer(t) for t in self.texts[:1200]] if ahead else None

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        if self.ready:
            return self.ready[i % len(self.ready)], self.labels[i]
        return self.tokenizer(self.texts[i]), self.labels[i]  # ail: tokenization


def pad_slowly(rows):
    width = max(len(ids) for ids, _ in rows)
    matrix = torch.zeros(len(rows), 256, dtype=torch.long)
    for r, (ids, _) in enumerate(rows):
        for c in range(256):
            matrix[r, c] = ids[c % len(ids)] if c < width else 0  # ail: python_loop_preprocessing
    return matrix, torch.tensor([label for _, label in rows])


def pad(rows):
    matrix = np.zeros((len(rows), 256), dtype=np.int64)
    for r, (ids, _) in enumerate(rows):
        ids = ids[:256]
        matrix[r, :len(ids)] = ids
    return torch.from_numpy(matrix), torch.tensor([label for _, label in rows])


class Encoder(nn.Module):
    def __init__(self, gpu_ms):
        super().__init__()
        self.table = nn.Embedding(4000, 32)
        self.out = nn.Linear(32, 2)
        self.gpu_ms = gpu_ms

    def forward(self, ids):
        hidden = self.table(ids[:, :64])
        accel.work(self.gpu_ms)
        return self.out(hidden.mean(1))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data")
    p.add_argument("--device", default="auto")
    p.add_argument("--seconds", type=float, default=15)
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--workers", type=int, default=0)
    p.add_argument("--lines", type=int, default=4)
    p.add_argument("--gpu-ms", type=float, default=20)
    p.add_argument("--pretokenized", action="store_true")
    p.add_argument("--collate", choices=["array", "loop"], default="array")
    a = p.parse_args()
    torch.set_num_threads(1)
    device = accel.pick(a.device)
    corpus = Reviews(data.ready("sentences", a.data) / "reviews.txt", ahead=a.pretokenized, lines=a.lines)
    loader = DataLoader(corpus, a.batch, shuffle=True, num_workers=a.workers,  # ail: no_workers too_few_workers
                        collate_fn=pad_slowly if a.collate == "loop" else pad, drop_last=True)
    model = Encoder(a.gpu_ms).to(device)
    optim = torch.optim.AdamW(model.parameters(), lr=1e-3)
    lossf = nn.CrossEntropyLoss()
    pace, step = Pace(a.seconds), 0
    while pace.more():
        for ids, labels in loader:  # ail: no_workers too_few_workers
            logits = model(ids.to(device, non_blocking=True))
            loss = lossf(logits, labels.to(device, non_blocking=True))
            optim.zero_grad(set_to_none=True)
            loss.backward()
            optim.step()
            step += 1
            if step % 25 == 0:
                print("step", step, "loss", round(loss.item(), 4), flush=True)
            pace.count(len(labels))
            if not pace.more():
                break
    pace.report()


if __name__ == "__main__":
    main()
