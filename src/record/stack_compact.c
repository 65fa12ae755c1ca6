/* SPDX-License-Identifier: MIT
 *
 * Old stacks: the slices of a minute added up to one, which says the same of the minute and nothing of
 * its seconds.
 */
#include "record/db.h"
#include "record/stack_block.h"
#include "record/write.h"

#include <errno.h>
#include <sqlite3.h>
#include <string.h>

struct sum {
	struct stack_block block;
	VEC(struct stack_row) rows;
	struct buf payload;
	int64_t from_ns, to_ns;
};

static int add_slice(struct sum *m, const struct stack_slice *s)
{
	if (!vec_reserve(&m->rows, m->rows.n + s->n + 1))
		return -ENOMEM;
	if (s->n)
		memcpy(m->rows.v + m->rows.n, s->rows, s->n * sizeof(*s->rows));
	m->rows.n += s->n;
	if (s->to_ns > m->to_ns)
		m->to_ns = s->to_ns;
	return 0;
}

/* All of a blob as one slice in m->payload. -EBADMSG: damaged; -E2BIG: too many rows for one. */
static int add_up(struct sum *m, const void *blob, size_t n)
{
	struct stack_slice s;
	int r = stack_block_open(&m->block, blob, n), got = 0;

	m->block.weight_ns = 0;
	m->rows.n = 0;
	m->to_ns = INT64_MIN;
	for (bool first = true; r >= 0 && (got = stack_block_next(&m->block, &s)) > 0;
	     first = false) {
		if (first)
			m->from_ns = s.from_ns;
		r = add_slice(m, &s);
	}
	r = r < 0 ? r : got;
	if (r >= 0 && (m->block.damaged || m->to_ns == INT64_MIN))
		r = -EBADMSG;
	if (r < 0)
		return r;
	s = (struct stack_slice){ .from_ns = m->from_ns, .to_ns = m->to_ns, .rows = m->rows.v };
	s.n = stack_rows_merge(m->rows.v, m->rows.n);
	if (s.n > STACK_SLICE_ROWS)
		return -E2BIG;
	buf_reset(&m->payload);
	stack_block_put(&m->payload, &s);
	return buf_ok(&m->payload) ? 0 : -ENOMEM;
}

static int thin_row(struct record_writer *w, struct sum *m, struct sqlite3_stmt *find,
		    struct sqlite3_stmt *put)
{
	const void *blob;
	size_t n;
	int r = add_up(m, sqlite3_column_blob(find, 1), (size_t)sqlite3_column_bytes(find, 1));

	/* It stays as it is. */
	if (r == -EBADMSG || r == -E2BIG)
		return 0;
	if (r >= 0)
		r = block_pack(&w->codec, m->payload.data, m->payload.len, &blob, &n);
	if (r < 0)
		return r;
	db_int(put, 1, sqlite3_column_int64(find, 0));
	sqlite3_bind_blob64(put, 2, blob, n, SQLITE_STATIC);
	r = db_run(put);
	sqlite3_clear_bindings(put);
	return r;
}

int stacks_thin(struct record_writer *w, int64_t t0_ns, int64_t t1_ns)
{
	auto_stmt *find = NULL, *put = NULL;
	struct sum m = { 0 };
	int r = db_prepare(w->db,
			   "SELECT id, data FROM stack_slice WHERE t0_ns >= ?1 AND t0_ns < ?2"
			   " AND level = 'minute'",
			   &find);

	if (r >= 0)
		r = db_prepare(
		    w->db, "UPDATE stack_slice SET level = 'thin', data = ?2 WHERE id = ?1", &put);
	if (r < 0)
		return r;
	db_int(find, 1, t0_ns);
	db_int(find, 2, t1_ns);
	while ((r = db_row(find)) > 0) {
		r = thin_row(w, &m, find, put);
		if (r < 0)
			break;
	}
	stack_block_done(&m.block);
	vec_done(&m.rows);
	buf_done(&m.payload);
	return r;
}
