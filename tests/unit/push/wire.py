# SPDX-License-Identifier: MIT
"""What was pushed, as somebody else reads it: a snappy decoder written from the format's description (and Debian's
python3-snappy beside it, where it is), and Google's protobuf with the published messages and field numbers
(prometheus/prompb/remote.proto, opentelemetry-proto). Fields that nobody has published are a mistake."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from published import available, messages  # noqa: E402,F401
try:
    import snappy
except ImportError:
    snappy = None

# {message: {field: (number, type, repeated)}}
REMOTE_WRITE = {
    "WriteRequest": {"timeseries": (1, "TimeSeries", True)},
    "TimeSeries": {"labels": (1, "Label", True), "samples": (2, "Sample", True)},
    "Label": {"name": (1, "string"), "value": (2, "string")},
    "Sample": {"value": (1, "double"), "timestamp": (2, "int64")},
}
OTLP = {
    "ExportMetricsServiceRequest": {"resource_metrics": (1, "ResourceMetrics", True)},
    "ResourceMetrics": {"resource": (1, "Resource"), "scope_metrics": (2, "ScopeMetrics", True), "schema_url": (3, "string")},
    "Resource": {"attributes": (1, "KeyValue", True), "dropped_attributes_count": (2, "uint32")},
    "ScopeMetrics": {"scope": (1, "InstrumentationScope"), "metrics": (2, "Metric", True), "schema_url": (3, "string")},
    "InstrumentationScope": {"name": (1, "string"), "version": (2, "string")},
    "KeyValue": {"key": (1, "string"), "value": (2, "AnyValue")},
    "AnyValue": {"string_value": (1, "string"), "bool_value": (2, "bool"), "int_value": (3, "int64"),
                 "double_value": (4, "double")},
    "Metric": {"name": (1, "string"), "description": (2, "string"), "unit": (3, "string"), "gauge": (5, "Gauge"),
               "sum": (7, "Sum"), "histogram": (9, "Histogram")},
    "Gauge": {"data_points": (1, "NumberDataPoint", True)},
    "Sum": {"data_points": (1, "NumberDataPoint", True), "aggregation_temporality": (2, "int32"),
            "is_monotonic": (3, "bool")},
    "Histogram": {"data_points": (1, "HistogramDataPoint", True), "aggregation_temporality": (2, "int32")},
    "NumberDataPoint": {"start_time_unix_nano": (2, "fixed64"), "time_unix_nano": (3, "fixed64"),
                        "as_double": (4, "double"), "as_int": (6, "sfixed64"), "attributes": (7, "KeyValue", True)},
    "HistogramDataPoint": {"start_time_unix_nano": (2, "fixed64"), "time_unix_nano": (3, "fixed64"),
                           "count": (4, "fixed64"), "sum": (5, "double"), "bucket_counts": (6, "fixed64", True),
                           "explicit_bounds": (7, "double", True), "attributes": (9, "KeyValue", True)},
}
PACKED = ("bucket_counts", "explicit_bounds")


def uncompress(data):
    """Snappy's block format."""
    out, at, shift, length = bytearray(), 0, 0, 0
    while True:
        byte = data[at]
        at += 1
        length |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    while at < len(data):
        tag = data[at]
        at += 1
        if tag & 3 == 0:
            n = tag >> 2
            if n >= 60:
                extra = n - 59
                n = int.from_bytes(data[at:at + extra], "little")
                at += extra
            n += 1
            assert at + n <= len(data), "a literal beyond the end"
            out += data[at:at + n]
            at += n
            continue
        if tag & 3 == 1:
            n, back = 4 + (tag >> 2 & 7), (tag >> 5) << 8 | data[at]
            at += 1
        else:
            size = 2 if tag & 3 == 2 else 4
            n, back = 1 + (tag >> 2), int.from_bytes(data[at:at + size], "little")
            at += size
        assert 0 < back <= len(out), "a copy from before the beginning"
        while n:  # what is copied may reach into what it makes
            piece = out[-back:][:n]
            out += piece
            n -= len(piece)
    assert len(out) == length, (len(out), length)
    if snappy:
        assert snappy.uncompress(data) == bytes(out)
    return bytes(out)


def parsed(package, schema, name, data):
    message = messages(package, schema, PACKED)[name].FromString(data)
    message.DiscardUnknownFields()
    assert message.ByteSize() == len(data), "it has fields that nobody has published"
    return message


def read_remote_write(body):
    """[({label: value}, value, milliseconds)]; the rules of the protocol are checked on the way."""
    rows = []
    for series in parsed("prometheus", REMOTE_WRITE, "WriteRequest", uncompress(body)).timeseries:
        names = [label.name for label in series.labels]
        assert names == sorted(names, key=str.encode) and len(set(names)) == len(names), names
        assert "__name__" in names and all(label.value for label in series.labels)
        (sample,) = series.samples
        rows.append(({label.name: label.value for label in series.labels}, sample.value, sample.timestamp))
    return rows


def read_otlp(body):
    """(attributes of the resource, {name: metric})"""
    (all_of_it,) = parsed("opentelemetry", OTLP, "ExportMetricsServiceRequest", body).resource_metrics
    (scope,) = all_of_it.scope_metrics
    assert scope.scope.name == "spotter"
    metrics = {metric.name: metric for metric in scope.metrics}
    assert len(metrics) == len(scope.metrics), "one metric, many points"
    return attributes(all_of_it.resource), metrics


def attributes(of):
    return {pair.key: pair.value.string_value for pair in of.attributes}
