# SPDX-License-Identifier: MIT
"""Google's protobuf for messages that others have published: a schema in, classes out, without their .proto files."""
try:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
except ImportError:
    descriptor_pb2 = None


def available():
    """Whether python3-protobuf is there."""
    return descriptor_pb2 is not None


def messages(package, schema, packed=()):
    """{name: class} of {message: {field: (number, type, repeated)}}; packed: names of fields."""
    file = descriptor_pb2.FileDescriptorProto(name=package + ".proto", package=package, syntax="proto2")
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, members in schema.items():
        message = file.message_type.add(name=name)
        for field, (number, kind, *repeated) in members.items():
            row = message.field.add(name=field, number=number)
            row.label = kinds.LABEL_REPEATED if repeated else kinds.LABEL_OPTIONAL
            if field in packed:
                row.options.packed = True
            if kind in schema:
                row.type, row.type_name = kinds.TYPE_MESSAGE, f".{package}.{kind}"
            else:
                row.type = getattr(kinds, "TYPE_" + kind.upper())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    made = getattr(message_factory, "GetMessageClass", None) or message_factory.MessageFactory(pool).GetPrototype
    return {name: made(pool.FindMessageTypeByName(f"{package}.{name}")) for name in schema}
