# SPDX-License-Identifier: MIT
"""check_parquet.py PROGRAM: what parquet_as.c wrote, read by the specification; and by pyarrow where that is there."""
import io
import subprocess
import sys

import parquet_files

GROUP = 65536


def expected(n):
    rows = range(n)
    return {"time": [i * 1000 - 5 for i in rows],
            "double": [i / 8 if i % 3 else None for i in rows],
            "int": [i - 2**63 if i % 7 == 0 else None for i in rows],
            "word": [f"w{i % 1000}" for i in rows],
            "same": ["same" if i % 5 else None for i in rows],
            "same_2": ["a??[2J?\u00e9"] * n,
            "_": [None] * n,
            "must?": [0.0] * n}


def check(program, n):
    data = subprocess.run([program, str(n)], check=True, capture_output=True).stdout
    columns, words, kinds, groups = parquet_files.table(data)
    want = expected(n)
    assert list(columns) == list(want)
    for name in want:
        assert columns[name] == want[name], name
    assert words == {"key": "value?"}
    assert kinds["time"] == (2, False, (10, {8: {1: True, 2: {2: {}}}})) and kinds["word"] == (6, False, (0, {1: {}}))
    assert groups == [GROUP] * (n // GROUP) + ([n % GROUP] if n % GROUP else [])
    try:
        import pyarrow.parquet
    except ImportError:
        return "read by the specification alone: pyarrow is not there"
    read = pyarrow.parquet.read_table(io.BytesIO(data)).drop(["time"]).to_pydict()
    assert all(read[name] == want[name] for name in read)
    return "and by pyarrow"


for count in (0, 1, 9, GROUP, GROUP + 1):
    print(count, "rows:", check(sys.argv[1], count))
