/* SPDX-License-Identifier: MIT */
#include "base/proto.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"

#include <string.h>

enum { TYPE_VARINT = 0, TYPE_64 = 1, TYPE_BYTES = 2, TYPE_32 = 5 };

static void key(struct buf *out, unsigned field, unsigned type)
{
	buf_varint(out, (uint64_t)field << 3 | type);
}

void proto_int(struct buf *out, unsigned field, uint64_t v)
{
	key(out, field, TYPE_VARINT);
	buf_varint(out, v);
}

/* Little-endian, as is every machine we run on. */
void proto_double(struct buf *out, unsigned field, double v)
{
	key(out, field, TYPE_64);
	buf_put(out, &v, sizeof(v));
}

void proto_fixed64(struct buf *out, unsigned field, uint64_t v)
{
	key(out, field, TYPE_64);
	buf_put(out, &v, sizeof(v));
}

void proto_float(struct buf *out, unsigned field, float v)
{
	key(out, field, TYPE_32);
	buf_put(out, &v, sizeof(v));
}

void proto_bytes(struct buf *out, unsigned field, const void *p, size_t n)
{
	key(out, field, TYPE_BYTES);
	buf_varint(out, n);
	buf_put(out, p, n);
}

void proto_text(struct buf *out, unsigned field, const char *s)
{
	auto_done(buf) struct buf safe = { 0 };

	if (!s)
		return;
	text_safe(&safe, s, strlen(s));
	out->failed |= safe.failed;
	proto_bytes(out, field, buf_text(&safe), safe.len);
}

void proto_message(struct buf *out, unsigned field, const struct buf *message)
{
	out->failed |= message->failed;
	proto_bytes(out, field, buf_text(message), message->len);
}
