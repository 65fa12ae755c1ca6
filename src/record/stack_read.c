/* SPDX-License-Identifier: MIT
 *
 * Stacks out of a run file. All of it may be made up: ids are checked by the book, codes are translated
 * through the names the file gives them, and a blob that is damaged ends where it breaks off. Files of
 * before there were stacks have none.
 */
#include "record/db.h"
#include "record/read.h"
#include "record/sqlite_api.h"
#include "record/stack_block.h"

#include <errno.h>
#include <string.h>

void stacks_done(struct record *r)
{
	stack_book_done(&r->stacks.book);
}

void stacks_stale(struct record *r)
{
	r->stacks.loaded = false;
}

/* Schema 1.0 had no stacks, and another table `stack`. */
static bool has_stacks(struct record *r)
{
	int64_t n = 0;

	return db_number(r->file.db,
			 "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN"
			 " ('place', 'stack', 'stack_word', 'stack_slice')",
			 &n) == 0 &&
	       n == 4;
}

static int add_word(struct record *r, struct sqlite3_stmt *s)
{
	int64_t id = sqlite3_column_int64(s, 1);
	const char *what = db_column(s, 0), *name = db_column(s, 2);

	if (strcmp(what, "state") == 0 && id >= 0 && id < 256)
		r->stacks.state_of[id] = (uint8_t)wait_kind_by_name(name);
	for (int bit = 0; strcmp(what, "flag") == 0 && bit < 8; bit++)
		if (id == 1 << bit)
			r->stacks.flag_of[bit] = (uint8_t)stack_flag_by_name(name);
	return 0;
}

static bool is_id(int64_t v)
{
	return v >= 0 && v <= UINT32_MAX;
}

static int add_place(struct record *r, struct sqlite3_stmt *s)
{
	int64_t id = sqlite3_column_int64(s, 0), line = sqlite3_column_int64(s, 4);
	struct place p = { .kind = place_kind_by_name(db_column(s, 1)),
			   .line = line > 0 && line <= INT32_MAX ? (int32_t)line : 0,
			   .function = db_column(s, 2),
			   .file = db_column(s, 3),
			   .source = db_column(s, 5) };
	int got = is_id(id) ? stack_book_set_place(&r->stacks.book, (uint32_t)id, &p) : 0;

	return got == -EINVAL ? 0 : got;
}

static int add_node(struct record *r, struct sqlite3_stmt *s)
{
	int64_t id = sqlite3_column_int64(s, 0), parent = sqlite3_column_int64(s, 1);
	int64_t place = sqlite3_column_int64(s, 2);
	int got = 0;

	if (is_id(id) && is_id(parent) && is_id(place))
		got = stack_book_set_node(&r->stacks.book, (uint32_t)id, (uint32_t)parent,
					  (uint32_t)place);
	return got == -EINVAL ? 0 : got;
}

static int load_rows(struct record *r, const char *sql, int64_t after,
		     int (*add)(struct record *r, struct sqlite3_stmt *s))
{
	auto_stmt *s = NULL;
	int got = db_prepare(r->file.db, sql, &s);

	if (got >= 0 && sqlite3_bind_parameter_count(s))
		db_int(s, 1, after);
	while (got >= 0 && (got = db_row(s)) > 0)
		got = add(r, s);
	return got < 0 ? got : 0;
}

/* Places are read again as a whole: their source lines come late. Stacks never change. */
static int load(struct record *r)
{
	int64_t known = (int64_t)r->stacks.book.nodes.n;
	int got;

	if (r->stacks.loaded)
		return 0;
	if (!has_stacks(r))
		return -ENODATA;
	(void)db_exec(r->file.db, "BEGIN");
	got = load_rows(r, "SELECT what, id, name FROM stack_word", 0, add_word);
	if (got >= 0)
		got = load_rows(r,
				"SELECT id, kind, function, file, line, source FROM place"
				" ORDER BY id",
				0, add_place);
	if (got >= 0)
		got = load_rows(r, "SELECT id, parent, place FROM stack WHERE id > ?1 ORDER BY id",
				known, add_node);
	(void)db_exec(r->file.db, "COMMIT");
	r->stacks.loaded = got >= 0;
	return got;
}

const struct stack_book *stacks_book(struct record *r)
{
	/* What could not be read is not known; the walk over slices says so. */
	(void)load(r);
	return &r->stacks.book;
}

/* Codes of the file become ours. Rows were decoded into memory of our own. */
static void translate(const struct stack_shelf *shelf, struct stack_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint8_t flags = 0;

		for (int bit = 0; bit < 8; bit++)
			if (rows[i].flags & 1 << bit)
				flags |= shelf->flag_of[bit];
		rows[i].flags = flags;
		rows[i].kind = shelf->state_of[rows[i].kind];
		rows[i].on = shelf->state_of[rows[i].on];
	}
}

struct walk {
	struct record *r;
	struct stack_block block;
	int64_t from_ns, to_ns;
	window_slice_fn fn;
	void *arg;
	bool any, stop;
};

static int walk_blob(struct walk *w, const void *blob, size_t n)
{
	struct stack_slice s;
	int got = stack_block_open(&w->block, blob, n);

	if (got == -EBADMSG) {
		w->r->stacks.damaged++;
		return 0;
	}
	while (got >= 0 && !w->stop && (got = stack_block_next(&w->block, &s)) > 0) {
		if (s.to_ns <= w->from_ns || s.from_ns >= w->to_ns)
			continue;
		translate(&w->r->stacks, w->block.rows.v, s.n);
		w->any = true;
		w->stop = !w->fn(&s, w->arg);
	}
	w->r->stacks.damaged += w->block.damaged;
	return got;
}

int stacks_each(struct record *r, int64_t from, int64_t to, window_slice_fn fn, void *arg)
{
	struct walk w = { .r = r, .from_ns = from, .to_ns = to, .fn = fn, .arg = arg };
	auto_stmt *s = NULL;
	int got = load(r);

	if (got >= 0)
		got = db_prepare(r->file.db,
				 "SELECT data FROM stack_slice WHERE t0_ns < ?2 AND t1_ns > ?1"
				 " ORDER BY t0_ns, id",
				 &s);
	if (got < 0)
		return got;
	r->stacks.damaged = 0;
	db_int(s, 1, from);
	db_int(s, 2, to);
	while (!w.stop && (got = db_row(s)) > 0) {
		got = walk_blob(&w, sqlite3_column_blob(s, 0), (size_t)sqlite3_column_bytes(s, 0));
		if (got < 0)
			break;
	}
	stack_block_done(&w.block);
	return got < 0 ? got : w.any ? 0 : -ENODATA;
}
