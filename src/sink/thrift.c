/* SPDX-License-Identifier: MIT */
#include "sink/thrift.h"

#include "base/buf.h"

#include <string.h>

enum { SHORT_DELTA = 15, SHORT_LIST = 15 };

static void header(struct thrift *t, int field, enum thrift_type type)
{
	int delta = field - t->last;

	t->last = field;
	if (delta > 0 && delta <= SHORT_DELTA) {
		buf_char(t->out, (char)(delta << 4 | type));
		return;
	}
	buf_char(t->out, (char)type);
	buf_zigzag(t->out, field);
}

void thrift_i32(struct thrift *t, int field, int32_t v)
{
	header(t, field, THRIFT_I32);
	buf_zigzag(t->out, v);
}

void thrift_i64(struct thrift *t, int field, int64_t v)
{
	header(t, field, THRIFT_I64);
	buf_zigzag(t->out, v);
}

void thrift_bool(struct thrift *t, int field, bool v)
{
	header(t, field, v ? THRIFT_TRUE : THRIFT_FALSE);
}

void thrift_text(struct thrift *t, int field, const char *s)
{
	header(t, field, THRIFT_BINARY);
	thrift_put_text(t->out, s);
}

void thrift_list(struct thrift *t, int field, enum thrift_type of, size_t n)
{
	header(t, field, THRIFT_LIST);
	if (n < SHORT_LIST) {
		buf_char(t->out, (char)(n << 4 | of));
		return;
	}
	buf_char(t->out, (char)(0xf0 | of));
	buf_varint(t->out, n);
}

struct thrift thrift_struct(struct thrift *t, int field)
{
	header(t, field, THRIFT_STRUCT);
	return (struct thrift){ .out = t->out };
}

void thrift_end(struct thrift *t)
{
	buf_char(t->out, 0);
}

void thrift_put_i32(struct buf *out, int32_t v)
{
	buf_zigzag(out, v);
}

void thrift_put_text(struct buf *out, const char *s)
{
	size_t n = strlen(s);

	buf_varint(out, n);
	buf_put(out, s, n);
}
