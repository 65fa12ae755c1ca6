# SPDX-License-Identifier: MIT
"""Reviews with transformers' Trainer: a tiny BERT, words split as they come. Needs transformers (PyPI)."""
import argparse
import inspect
import re
import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments

import accel
import data
from pace import Pace


class Reviews(torch.utils.data.Dataset):
    def __init__(self, path):
        self.rows = [line.rstrip("\n").split("\t", 1) for line in open(path)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        label, text = self.rows[i]
        ids = []
        for word in re.findall(r"\w+", text.lower()):
            for at in range(len(word)):
                ids.append(hash(word[at:at + 3]) % 500)  # ail: no_workers tokenization
        ids = (ids + [0] * 32)[:32]
        return {"input_ids": torch.tensor(ids), "labels": int(label)}


class UntilTime(TrainerCallback):
    def __init__(self, seconds, batch):
        self.pace, self.batch = Pace(seconds), batch

    def on_step_end(self, args, state, control, **more):
        self.pace.count(self.batch)
        control.should_training_stop = not self.pace.more()


class OnGpu(Trainer):
    gpu_ms = 20

    def training_step(self, *args, **more):
        accel.work(self.gpu_ms)
        accel.wait()
        return super().training_step(*args, **more)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data")
    p.add_argument("--device", default="auto")
    p.add_argument("--seconds", type=float, default=15)
    p.add_argument("--workers", type=int, default=1)
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--gpu-ms", type=float, default=20)
    a = p.parse_args()
    torch.set_num_threads(1)
    accel.pick(a.device, torch=False)
    shape = BertConfig(vocab_size=512, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
                       max_position_embeddings=64)
    model = BertForSequenceClassification(shape)
    clock = UntilTime(a.seconds, a.batch)
    on_cpu = {"use_cpu" if "use_cpu" in inspect.signature(TrainingArguments).parameters else "no_cuda": True}
    with tempfile.TemporaryDirectory() as folder:
        options = TrainingArguments(folder, per_device_train_batch_size=a.batch, max_steps=10**6, **on_cpu,
                                    dataloader_num_workers=a.workers,  # ail: no_workers
                                    report_to=[], save_strategy="no", disable_tqdm=True, logging_steps=100)
        reviews = Reviews(data.ready("sentences", a.data) / "reviews.txt")
        trainer = OnGpu(model, options, train_dataset=reviews, callbacks=[clock])
        OnGpu.gpu_ms = a.gpu_ms
        trainer.train()  # ail: no_workers
    clock.pace.report()


if __name__ == "__main__":
    main()
