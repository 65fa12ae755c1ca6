/* SPDX-License-Identifier: MIT
 *
 * Stacks on their way into the file. A slice lands with the commit of its second; at the end of the
 * minute one row takes the place of its seconds. Places and stacks are rows, written once, and again
 * when a source line became known.
 */
#include "base/buf.h"
#include "record/db.h"
#include "record/stack_block.h"
#include "record/write.h"

#include <errno.h>
#include <sqlite3.h>
#include <string.h>

/* A minute that is larger ends early. With the largest slice behind it, it is still a blob of ours. */
enum { SLOT_BYTES = 4 << 20 };

void stacks_free(struct stack_slot *s)
{
	buf_done(&s->payload);
	buf_done(&s->one);
	vec_done(&s->rows);
}

static int put_word(struct sqlite3_stmt *s, const char *what, int64_t id, const char *name)
{
	db_text(s, 1, what);
	db_int(s, 2, id);
	db_text(s, 3, name);
	return db_run(s);
}

int stacks_create(struct record_writer *w)
{
	auto_stmt *s = NULL;
	int r =
	    db_prepare(w->db, "INSERT INTO stack_word (what, id, name) VALUES (?1, ?2, ?3)", &s);

	for (int i = 0; i < WAIT_KINDS && r >= 0; i++)
		r = put_word(s, "state", i, wait_kind_name((enum wait_kind)i));
	for (unsigned bit = 1; bit < 256 && r >= 0; bit <<= 1)
		if (stack_flag_name(bit))
			r = put_word(s, "flag", bit, stack_flag_name(bit));
	return r;
}

static void slot_clear(struct stack_slot *s)
{
	buf_reset(&s->payload);
	s->slices = 0;
	s->samples = 0;
}

int stacks_rotate(struct record_writer *w)
{
	struct stack_slot *s = &w->stacks;
	struct series_block b = { .t0_ns = s->t0_ns, .t1_ns = s->t1_ns, .samples = s->samples };
	bool thorough = w->codec.thorough;
	unsigned waiting;
	int r;

	if (!s->slices)
		return 0;
	w->codec.thorough = true;
	r = block_pack(&w->codec, s->payload.data, s->payload.len, &b.blob, &b.n);
	w->codec.thorough = thorough;
	slot_clear(s);
	if (r < 0) /* its seconds stay as they are */
		return r;
	waiting = backlog_drop_stacks(&w->backlog, b.t0_ns);
	r = backlog_stacks(&w->backlog, PENDING_STACK_MINUTE, &b, waiting);
	if (r < 0)
		w->backlog.lost_slices += waiting;
	return r;
}

/* The slice as a blob of its own for now, and behind the others of its minute. */
static int queue_slice(struct record_writer *w, const struct stack_slice *slice, uint64_t samples)
{
	struct stack_slot *s = &w->stacks;
	struct series_block b = { .t0_ns = slice->from_ns,
				  .t1_ns = slice->to_ns,
				  .samples = samples };
	int r;

	/* Times within a blob rise: after a step back a new one begins. */
	if (s->slices && (s->payload.len > SLOT_BYTES || slice->from_ns < s->last_ns)) {
		r = stacks_rotate(w);
		if (r < 0)
			return r;
	}
	buf_reset(&s->one);
	stack_block_put(&s->one, slice);
	if (!buf_ok(&s->one) || !buf_reserve(&s->payload, s->one.len)) {
		s->payload.failed = false;
		return -ENOMEM;
	}
	r = block_pack(&w->codec, s->one.data, s->one.len, &b.blob, &b.n);
	if (r >= 0)
		r = backlog_stacks(&w->backlog, PENDING_STACK_SECOND, &b, 1);
	if (r < 0)
		return r;
	buf_put(&s->payload, s->one.data + (s->slices ? 1 : 0), s->one.len - (s->slices ? 1 : 0));
	if (!s->slices)
		s->t0_ns = s->t1_ns = slice->from_ns;
	if (slice->to_ns > s->t1_ns)
		s->t1_ns = slice->to_ns;
	s->last_ns = slice->from_ns;
	s->slices++;
	s->samples += samples;
	return 0;
}

static int take_slice(struct record_writer *w, const struct frame *f)
{
	struct stack_slice slice = { .from_ns = f->stacks_from_ns, .to_ns = f->stacks_to_ns };
	struct stack_slot *s = &w->stacks;
	uint64_t samples = 0;
	int r = -E2BIG;

	if (slice.to_ns <= slice.from_ns)
		return 0;
	s->rows.n = 0;
	if (!vec_reserve(&s->rows, f->stacks.n + 1)) {
		r = -ENOMEM;
	} else {
		if (f->stacks.n)
			memcpy(s->rows.v, f->stacks.v, f->stacks.n * sizeof(*s->rows.v));
		slice.rows = s->rows.v;
		slice.n = stack_rows_merge(s->rows.v, f->stacks.n);
		for (size_t i = 0; i < slice.n; i++)
			samples += slice.rows[i].count;
		if (slice.n <= STACK_SLICE_ROWS)
			r = queue_slice(w, &slice, samples);
	}
	w->backlog.lost_slices += r < 0;
	/* More than a slice holds is no fault of the disk's. */
	return r == -E2BIG ? 0 : r;
}

int stacks_frame(struct record_writer *w, const struct frame *f)
{
	int r = 0, q;

	for (size_t i = 0; i < f->places.n; i++) {
		const struct frame_place *p = &f->places.v[i];

		if (!p->id || p->id > STACK_PLACES_MAX)
			continue;
		q = backlog_place(&w->backlog, f, p);
		r = r < 0 ? r : q;
	}
	for (size_t i = 0; i < f->nodes.n; i++) {
		const struct frame_node *n = &f->nodes.v[i];

		if (!n->id || n->id > STACK_NODES_MAX || n->parent >= n->id)
			continue;
		q = backlog_node(&w->backlog, n);
		r = r < 0 ? r : q;
	}
	q = take_slice(w, f);
	return r < 0 ? r : q;
}

static int write_place(struct record_writer *w, const struct pending *p)
{
	const char *bytes = w->backlog.bytes.data, *file = bytes + p->at2;
	struct sqlite3_stmt *s = w->rows[ROW_PLACE];
	int r;

	db_int(s, 1, p->place.id);
	db_text(s, 2, place_kind_name(p->place.kind));
	db_text(s, 3, bytes + p->at);
	db_text(s, 4, file);
	db_int_or_null(s, 5, p->place.line != 0, p->place.line);
	db_text(s, 6, file + strlen(file) + 1);
	r = db_run(s);
	sqlite3_clear_bindings(s);
	return r;
}

static int write_node(struct record_writer *w, const struct pending *p)
{
	struct sqlite3_stmt *s = w->rows[ROW_NODE];

	db_int(s, 1, p->node.id);
	db_int(s, 2, p->node.parent);
	db_int(s, 3, p->node.place);
	return db_run(s);
}

static int write_slices(struct record_writer *w, const struct pending *p)
{
	bool minute = p->kind == PENDING_STACK_MINUTE;
	struct sqlite3_stmt *s = w->rows[ROW_DROP_STACKS];
	int r;

	if (minute) {
		db_int(s, 1, p->stacks.t0_ns);
		db_int(s, 2, p->stacks.t1_ns);
		r = db_run(s);
		if (r < 0)
			return r;
	}
	s = w->rows[ROW_STACKS];
	db_text(s, 1, minute ? "minute" : "second");
	db_int(s, 2, p->stacks.t0_ns);
	db_int(s, 3, p->stacks.t1_ns);
	db_int(s, 4, (int64_t)p->stacks.samples);
	sqlite3_bind_blob64(s, 5, w->backlog.bytes.data + p->at, p->n, SQLITE_STATIC);
	r = db_run(s);
	sqlite3_clear_bindings(s);
	return r;
}

int stacks_write(struct record_writer *w, const struct pending *p)
{
	switch (p->kind) {
	case PENDING_PLACE:
		return write_place(w, p);
	case PENDING_NODE:
		return write_node(w, p);
	default:
		return write_slices(w, p);
	}
}
