# SPDX-License-Identifier: MIT
"""Photos with Lightning's Trainer. Needs lightning (PyPI)."""
import argparse

import lightning.pytorch as pl
import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

import accel
import data
from pace import Pace


class Pictures(Dataset):
    def __init__(self, folder):
        self.files = sorted(folder.glob("*/*.jpg"))

    def __len__(self):
        return 100000

    def __getitem__(self, i):
        path = self.files[i % len(self.files)]
        image = Image.open(path).convert("RGB").resize((64, 64))  # ail: no_workers
        return torch.from_numpy(np.array(image)).permute(2, 0, 1).float() / 255, int(path.parent.name[-1])


class Classifier(pl.LightningModule):
    def __init__(self, gpu_ms):
        super().__init__()
        self.net = nn.Sequential(nn.AvgPool2d(8), nn.Flatten(), nn.Linear(192, 8))
        self.gpu_ms = gpu_ms

    def training_step(self, batch, index):
        image, label = batch
        accel.work(self.gpu_ms)
        accel.wait()
        return nn.functional.cross_entropy(self.net(image), label)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


class UntilTime(pl.Callback):
    def __init__(self, seconds):
        self.pace = Pace(seconds)

    def on_train_batch_end(self, trainer, module, outputs, batch, index):
        self.pace.count(len(batch[1]))
        trainer.should_stop = not self.pace.more()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data")
    p.add_argument("--device", default="auto")
    p.add_argument("--seconds", type=float, default=15)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--gpu-ms", type=float, default=30)
    a = p.parse_args()
    torch.set_num_threads(1)
    accel.pick(a.device, torch=False)
    loader = DataLoader(Pictures(data.ready("photos", a.data)), a.batch, num_workers=a.workers)  # ail: no_workers
    clock = UntilTime(a.seconds)
    trainer = pl.Trainer(max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                         enable_model_summary=False, callbacks=[clock])
    trainer.fit(Classifier(a.gpu_ms), loader)  # ail: no_workers
    clock.pace.report()


if __name__ == "__main__":
    main()
