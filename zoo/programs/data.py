# SPDX-License-Identifier: MIT
"""The data of the programs: made once, the same bytes every time, tens of megabytes in all.

    folder = data.ready("photos", args.data)     # makes it when it is not there
    python3 data.py DIR [NAME...]                # makes it beforehand"""
import io
import os
import shutil
import sys
import tarfile
import tempfile
import wave
from pathlib import Path

import numpy as np


def picture(rng, width, height):
    """Smooth shapes and some grain: a JPEG of it has a photo's size."""
    coarse = rng.integers(0, 256, (height // 40 + 2, width // 40 + 2, 3))
    smooth = np.kron(coarse, np.ones((40, 40, 1)))[:height, :width]
    return np.clip(smooth + rng.normal(0, 12, (height, width, 3)), 0, 255).astype(np.uint8)


def photos(folder, rng, count=144, width=480, height=360):
    from PIL import Image
    for i in range(count):
        place = folder / f"class{i % 8}"
        place.mkdir(exist_ok=True)
        Image.fromarray(picture(rng, width, height)).save(place / f"{i:05d}.jpg", quality=88)


def posters(folder, rng):
    photos(folder, rng, count=48, width=1280, height=960)


def tiles(folder, rng, count=4000):
    """Many files of some kilobytes."""
    for i in range(count):
        place = folder / f"{i // 200:03d}"
        place.mkdir(exist_ok=True)
        (place / f"{i:05d}.bin").write_bytes(rng.integers(0, 256, 6144, dtype=np.uint8).tobytes())


def volumes(folder, rng, count=40, side=64):
    for i in range(count):
        base = rng.normal(0, 1, (side // 8, side // 8, side // 8))
        volume = np.kron(base, np.ones((8, 8, 8))).round(1).astype(np.float32)
        volume += rng.integers(0, 4, volume.shape).astype(np.float32)
        np.savez_compressed(folder / f"scan{i:03d}.npz", image=volume, mask=(volume > 1).astype(np.uint8))
        np.savez(folder / f"scan{i:03d}.raw.npz", image=volume, mask=(volume > 1).astype(np.uint8))


def sentences(folder, rng, lines=24000):
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    words = ["".join(rng.choice(letters, rng.integers(2, 11))) for _ in range(4000)]
    rank = rng.zipf(1.3, lines * 40) % len(words)
    at = 0
    with open(folder / "reviews.txt", "w") as out:
        for i in range(lines):
            n = int(rng.integers(8, 40))
            out.write(f"{i % 2}\t{' '.join(words[r] for r in rank[at:at + n]).capitalize()}.\n")
            at += n
    text = (folder / "reviews.txt").read_bytes()
    np.frombuffer(text, dtype=np.uint8).astype(np.uint16).tofile(folder / "chars.u16")


def speech(folder, rng, count=96, rate=44100, seconds=1.5):
    t = np.arange(int(rate * seconds)) / rate
    for i in range(count):
        tone = sum(np.sin(2 * np.pi * f * t) for f in rng.uniform(80, 3000, 4)) / 5
        pcm = (np.clip(tone + rng.normal(0, 0.05, t.shape), -1, 1) * 32000).astype("<i2")
        with wave.open(str(folder / f"utt{i:04d}.wav"), "wb") as out:
            out.setnchannels(1)
            out.setsampwidth(2)
            out.setframerate(rate)
            out.writeframes(pcm.tobytes())


def table(folder, rng, rows=60000, columns=24):
    values = rng.normal(0, 1, (rows, columns)).round(4)
    label = (values[:, :4].sum(axis=1) > 0).astype(int)
    with open(folder / "train.csv", "w") as out:
        out.write(",".join([f"f{i}" for i in range(columns)] + ["label"]) + "\n")
        for row, y in zip(values, label):
            out.write(",".join(map(str, row)) + f",{y}\n")
    np.save(folder / "train.npy", np.column_stack([values, label]).astype(np.float32))


def digits(folder, rng, count=12000):
    centre = rng.uniform(0, 255, (10, 784))
    label = rng.integers(0, 10, count)
    image = np.clip(centre[label] + rng.normal(0, 60, (count, 784)), 0, 255).astype(np.uint8)
    np.savez(folder / "digits.npz", image=image, label=label)


def shards(folder, rng, count=4, each=40):
    from PIL import Image
    for s in range(count):
        with tarfile.open(folder / f"train-{s:04d}.tar", "w") as tar:
            for i in range(each):
                body = io.BytesIO()
                Image.fromarray(picture(rng, 320, 240)).save(body, "JPEG", quality=88)
                entry = tarfile.TarInfo(f"{i:05d}.jpg")
                entry.size = body.tell()
                body.seek(0)
                tar.addfile(entry, body)


def graph(folder, rng, nodes=20000, degree=12):
    neighbours = rng.integers(0, nodes, (nodes, degree))
    np.savez(folder / "graph.npz", neighbours=neighbours, features=rng.normal(0, 1, (nodes, 64)).astype(np.float32),
             label=rng.integers(0, 8, nodes))


MAKERS = [photos, posters, tiles, volumes, sentences, speech, table, digits, shards, graph]


def home():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(cache) / "spotter-zoo"


def ready(name, folder=None):
    """The folder of this data, made when it is not there. Two makers at once: one wins."""
    top = Path(folder) if folder else home()
    place = top / name
    if place.exists():
        return place
    top.mkdir(parents=True, exist_ok=True)
    maker = next(m for m in MAKERS if m.__name__ == name)
    part = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=top))
    part.chmod(0o755)
    try:
        maker(part, np.random.default_rng(len(name) * 1000 + 7))
        part.rename(place)
    except OSError:
        if not place.exists():
            raise
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return place


if __name__ == "__main__":
    for wanted in sys.argv[2:] or [m.__name__ for m in MAKERS]:
        print(ready(wanted, sys.argv[1]))
