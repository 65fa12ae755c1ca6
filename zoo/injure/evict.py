# SPDX-License-Identifier: MIT
"""Drops files from the page cache, again and again, as an ordinary user may: the disk has to be read each time.

    python3 evict.py DIR [EVERY_SECONDS]     0: once"""
import os
import resource
import sys
import time


def held(folder):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return [os.open(os.path.join(d, f), os.O_RDONLY) for d, _, files in os.walk(folder) for f in files]


def drop(files):
    for fd in files:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def main(folder, every=0.3):
    files = held(folder)
    drop(files)
    while every:
        time.sleep(every)
        drop(files)


if __name__ == "__main__":
    main(sys.argv[1], *map(float, sys.argv[2:]))
