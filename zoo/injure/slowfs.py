# SPDX-License-Identifier: MIT
"""A file system far away: shows a folder read-only through FUSE, and every read and open takes its time. Needs root.
Nothing of it is cached, as on a mount that must see others' changes. Speaks the kernel's protocol itself
(include/uapi/linux/fuse.h, 7.31), so no library is needed.

    python3 slowfs.py SOURCE MOUNTPOINT DELAY_MS [THREADS]      ends, and unmounts, with SIGTERM"""
import ctypes
import errno
import os
import signal
import stat
import struct
import sys
import threading
import time

LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH = 1, 2, 3, 14, 15, 17, 18, 25
INIT, OPENDIR, READDIR, RELEASEDIR, ACCESS, INTERRUPT, DESTROY, BATCH_FORGET = 26, 27, 28, 29, 34, 36, 38, 42
HEADER = struct.Struct("=IIQQIIIHH")      # len opcode unique node uid gid pid extra pad
ANSWER = struct.Struct("=IiQ")            # len error unique
LIBC = ctypes.CDLL(None, use_errno=True)


def attributes(path, node):
    s = os.lstat(path)
    mode = s.st_mode & ~0o222
    return struct.pack("=6Q10I", node, s.st_size, s.st_blocks, int(s.st_atime), int(s.st_mtime), int(s.st_ctime), 0, 0, 0,
                       mode, s.st_nlink, s.st_uid, s.st_gid, 0, 4096, 0)


class Tree:
    """Node numbers of paths; the top is 1."""

    def __init__(self, source):
        self.paths, self.nodes, self.lock = {1: source}, {source: 1}, threading.Lock()

    def child(self, node, name):
        path = os.path.join(self.paths[node], name)
        os.lstat(path)
        with self.lock:
            if path not in self.nodes:
                self.nodes[path] = len(self.nodes) + 1
                self.paths[self.nodes[path]] = path
            return path, self.nodes[path]


class Server:
    def __init__(self, source, mountpoint, delay):
        self.tree, self.mountpoint, self.delay = Tree(os.path.abspath(source)), os.path.abspath(mountpoint), delay
        self.fd = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={self.fd},rootmode=40755,user_id=0,group_id=0,allow_other"
        if LIBC.mount(b"store:/data", self.mountpoint.encode(), b"fuse.remote", 1, options.encode()):
            code = ctypes.get_errno()
            raise OSError(code, f"mounting FUSE at {mountpoint}: {os.strerror(code)}")

    def unmount(self):
        LIBC.umount2(self.mountpoint.encode(), 2)

    def answer(self, unique, body=b"", error=0):
        try:
            os.write(self.fd, ANSWER.pack(ANSWER.size + len(body), -error, unique) + body)
        except OSError:
            pass  # the caller gave up

    def serve(self):
        while True:
            try:
                request = os.read(self.fd, (1 << 20) + 4096)
            except OSError as e:
                if e.errno in (errno.EINTR, errno.EAGAIN, errno.ENOENT):
                    continue
                return  # unmounted
            _, opcode, unique, node, *_ = HEADER.unpack_from(request)
            if opcode in (FORGET, BATCH_FORGET, INTERRUPT):
                continue
            try:
                body = self.handle(opcode, node, request[HEADER.size:])
                self.answer(unique, *((b"", errno.ENOSYS) if body is None else (body,)))
            except OSError as e:
                self.answer(unique, error=e.errno or errno.EIO)

    def handle(self, opcode, node, body):
        if opcode == INIT:
            return struct.pack("=IIIIHHIIHHI7I", 7, 31, 131072, 0, 32, 24, 131072, 1, 0, 0, 0, *[0] * 7)
        if opcode == LOOKUP:
            path, number = self.tree.child(node, os.fsdecode(body.split(b"\0")[0]))
            return struct.pack("=QQQQII", number, 0, 60, 60, 0, 0) + attributes(path, number)
        if opcode == GETATTR:
            return struct.pack("=QII", 60, 0, 0) + attributes(self.tree.paths[node], node)
        if opcode in (OPEN, OPENDIR):
            if opcode == OPEN:
                time.sleep(self.delay)
            return struct.pack("=QII", 0, 0, 0)
        if opcode in (READ, READDIR):
            _, offset, size = struct.unpack_from("=QQI", body)
            return self.read(node, offset, size) if opcode == READ else self.list(node, offset, size)
        if opcode == STATFS:
            return struct.pack("=QQQQQIIII6I", 1 << 30, 1 << 29, 1 << 29, 1 << 20, 1 << 19, 4096, 255, 4096, 0, *[0] * 6)
        return b"" if opcode in (RELEASE, RELEASEDIR, FLUSH, ACCESS, DESTROY) else None

    def read(self, node, offset, size):
        time.sleep(self.delay)
        with open(self.tree.paths[node], "rb") as f:
            return os.pread(f.fileno(), size, offset)

    def list(self, node, offset, size):
        out = b""
        for at, entry in enumerate(sorted(os.scandir(self.tree.paths[node]), key=lambda e: e.name), 1):
            name = os.fsencode(entry.name)
            row = struct.pack("=QQII", entry.inode(), at, len(name), stat.S_IFMT(entry.stat().st_mode) >> 12) + name
            row += b"\0" * (-len(row) % 8)
            if at > offset:
                if len(out) + len(row) > size:
                    break
                out += row
        return out


def main(source, mountpoint, delay_ms, threads=4):
    server = Server(source, mountpoint, float(delay_ms) / 1000)
    signal.signal(signal.SIGTERM, lambda *_: (server.unmount(), os._exit(0)))
    for _ in range(int(threads)):
        threading.Thread(target=server.serve, daemon=True).start()
    print("mounted", flush=True)
    while True:
        signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
