/* SPDX-License-Identifier: MIT
 *
 * What becomes of the data as it ages, once a minute, each step in a transaction of its own:
 *
 *	roll-ups of 10 s	30 rows of one bucket become one row of 30 when their 5 minutes are over
 *	blocks of a minute	thinned to one sample a second after keep_raw (15 min), except around
 *				events
 *	stacks of a minute	added up to one slice, at the same age
 *	beyond max_bytes	the oldest blocks and stacks go, then the oldest 10 s roll-ups (threads first), then
 *				the rows of threads and processes that are long gone. The 5 min roll-ups
 *				stay, so that the whole run can always be summed up.
 */
#include "record/write.h"

#include "base/clock.h"
#include "record/db.h"

#include <errno.h>
#include <sqlite3.h>

enum {
	EVENT_MARGIN_S = 60,
	/* Pages freed by the minute's compaction are used again by the next minute's seconds: only
	 * what is beyond that is given back. */
	SPARE_PAGES = 1024,
	ROWS_AT_ONCE = 2000,
	VACUUM_PAGES = 2048, /* a minute: 8 MB moved at most */
};

static int begin(struct record_writer *w)
{
	return db_run(w->rows[ROW_BEGIN]);
}

static int end(struct record_writer *w, int r)
{
	if (r >= 0)
		r = db_run(w->rows[ROW_COMMIT]);
	if (r < 0)
		rows_rollback(w);
	return r;
}

/* Joins the fine roll-ups of one group in [t0, t1). The number of rows there were. */
static int join_rows(struct record_writer *w, struct sqlite3_stmt *find, struct merge *m,
		     struct series_block *b)
{
	int rows = 0, r;

	while ((r = db_row(find)) > 0) {
		b->samples += (uint64_t)sqlite3_column_int64(find, 1);
		r = merge_add(m, sqlite3_column_blob(find, 0),
			      (size_t)sqlite3_column_bytes(find, 0));
		if (r < 0)
			break;
		rows++;
	}
	sqlite3_reset(find);
	if (r < 0 || rows < 2)
		return r < 0 ? r : rows;
	b->ticks = m->ticks.n;
	r = merge_end(m, &w->codec, &b->blob, &b->n);
	return r < 0 ? r : rows;
}

static int pack_group(struct record_writer *w, struct sqlite3_stmt *find, struct sqlite3_stmt *drop,
		      const char *group, int64_t t0_ns, int64_t t1_ns)
{
	struct series_block b = { .t0_ns = t0_ns, .t1_ns = t1_ns };
	struct merge m = { 0 };
	int r;

	db_text(find, 1, group);
	db_int(find, 2, t0_ns);
	db_int(find, 3, t1_ns);
	r = join_rows(w, find, &m, &b);
	merge_done(&m);
	/* Damaged on the disk, or too many: they stay as they are. */
	if (r < 2)
		return r == -EBADMSG || r == -E2BIG || r >= 0 ? 0 : r;
	db_text(drop, 1, group);
	db_int(drop, 2, t0_ns);
	db_int(drop, 3, t1_ns);
	r = db_run(drop);
	return r < 0 ? r : rows_block(w, ROW_ROLLUP, ROLLUP_FINE, group, &b);
}

#define FINE_IN_RANGE \
	" FROM rollup WHERE level = '" ROLLUP_FINE "' AND grp = ?1 AND t0_ns >= ?2 AND t0_ns < ?3"

static int pack_fine(struct record_writer *w, int64_t t0_ns, int64_t t1_ns)
{
	auto_stmt *find = NULL, *drop = NULL;
	int r = db_prepare(w->db, "SELECT data, samples" FINE_IN_RANGE " ORDER BY t0_ns", &find);

	if (r >= 0)
		r = db_prepare(w->db, "DELETE" FINE_IN_RANGE, &drop);
	if (r >= 0)
		r = begin(w);
	if (r < 0)
		return r;
	for (int g = 1; g < ENTITY_KINDS && r >= 0; g++)
		r = pack_group(w, find, drop, entity_kind_name((enum entity_kind)g), t0_ns, t1_ns);
	return end(w, r);
}

static bool is_counter(uint64_t id)
{
	uint64_t metric = id >> 32;

	return metric < METRICS && metrics[metric].kind == KIND_COUNTER;
}

/* Anything worth a close look later? The end of a process is not, nor that its stacks can be read: there
 * may be thousands. */
static int has_event(struct record_writer *w, int64_t from_ns, int64_t to_ns)
{
	auto_stmt *s = NULL;
	int r = db_prepare(w->db,
			   "SELECT 1 FROM event WHERE t_ns BETWEEN ?1 AND ?2 AND kind NOT IN"
			   " ('exit', 'exec', 'governor', 'note', 'stacks') LIMIT 1",
			   &s);

	if (r < 0)
		return r;
	db_int(s, 1, from_ns);
	db_int(s, 2, to_ns);
	return db_row(s);
}

static int thin_row(struct record_writer *w, struct sqlite3_stmt *find, struct sqlite3_stmt *put)
{
	const void *blob;
	size_t n;
	int r = thin_block(&w->thin, sqlite3_column_blob(find, 1),
			   (size_t)sqlite3_column_bytes(find, 1), w->run.started_mono_ns,
			   is_counter, &w->codec, &blob, &n);

	if (r < 0)
		return r == -EBADMSG ? 0 : r;
	db_int(put, 1, sqlite3_column_int64(find, 0));
	db_int(put, 2, (int64_t)w->thin.ticks.n);
	db_int(put, 3, (int64_t)w->thin.samples);
	sqlite3_bind_blob64(put, 4, blob, n, SQLITE_STATIC);
	r = db_run(put);
	sqlite3_clear_bindings(put);
	return r;
}

static int thin_slot(struct record_writer *w, int64_t t0_ns, int64_t t1_ns)
{
	auto_stmt *find = NULL, *put = NULL;
	int r = db_prepare(w->db,
			   "SELECT id, data FROM block WHERE grp = ?1 AND t0_ns >= ?2 AND"
			   " t0_ns < ?3 AND level = 'minute'",
			   &find);

	if (r >= 0)
		r = db_prepare(w->db,
			       "UPDATE block SET level = 'thin', ticks = ?2, samples = ?3,"
			       " data = ?4 WHERE id = ?1",
			       &put);
	if (r >= 0)
		r = begin(w);
	if (r < 0)
		return r;
	for (int g = 1; g < ENTITY_KINDS && r >= 0; g++) {
		db_text(find, 1, entity_kind_name((enum entity_kind)g));
		db_int(find, 2, t0_ns);
		db_int(find, 3, t1_ns);
		while ((r = db_row(find)) > 0) {
			r = thin_row(w, find, put);
			if (r < 0)
				break;
		}
		sqlite3_reset(find);
	}
	if (r >= 0)
		r = stacks_thin(w, t0_ns, t1_ns);
	return end(w, r);
}

static int thin_old(struct record_writer *w)
{
	int64_t margin = EVENT_MARGIN_S * NS_PER_S;

	while (w->thin_to_ns + SLOT_NS <= w->last_ns - w->options.keep_raw_ns &&
	       w->thin_to_ns + SLOT_NS <= w->slot_ns) {
		int64_t t0 = w->thin_to_ns, t1 = t0 + SLOT_NS;
		int r = has_event(w, t0 - margin, t1 + margin);

		if (r == 0)
			r = thin_slot(w, t0, t1);
		if (r < 0)
			return r;
		w->thin_to_ns = t1;
	}
	return 0;
}

static int free_pages(struct record_writer *w, int64_t *ret_used, int64_t *ret_free)
{
	int64_t pages = 0;
	int r = db_number(w->db, "PRAGMA page_count", &pages);

	if (r >= 0)
		r = db_number(w->db, "PRAGMA freelist_count", ret_free);
	*ret_used = pages - *ret_free;
	return r;
}

static int note_kept(struct record_writer *w, const char *level, const char *group, int64_t from_ns)
{
	auto_stmt *s = NULL;
	int r = db_prepare(w->db,
			   "INSERT INTO kept VALUES (?1, ?2, ?3) ON CONFLICT (level, grp) DO UPDATE"
			   " SET from_ns = max(from_ns, excluded.from_ns)",
			   &s);

	if (r < 0)
		return r;
	db_text(s, 1, level);
	db_text(s, 2, group);
	db_int(s, 3, from_ns);
	return db_run(s);
}

/* Deletes the oldest rows a query gives (id, group, end, bytes) until `over` bytes are gone. A fifth
 * column that is not 0 says it is a row of stack_slice. The number of rows, 0 when there was none, or
 * -errno. */
static int drop_oldest(struct record_writer *w, const char *query, const char *drop_sql,
		       const char *level, int64_t over)
{
	auto_stmt *find = NULL, *drop = NULL, *drop_stacks = NULL;
	int r = db_prepare(w->db, query, &find), n = 0;

	if (r >= 0)
		r = db_prepare(w->db, drop_sql, &drop);
	if (r >= 0)
		r = db_prepare(w->db, "DELETE FROM stack_slice WHERE id = ?1", &drop_stacks);
	if (r >= 0)
		r = begin(w);
	if (r < 0)
		return r;
	db_int(find, 1, ROWS_AT_ONCE);
	if (sqlite3_bind_parameter_count(find) > 1)
		db_int(find, 2, w->coarse_end_ns - ROLLUP_COARSE_NS);
	while (over > 0 && (r = db_row(find)) > 0) {
		bool stacks = sqlite3_column_count(find) > 4 && sqlite3_column_int(find, 4);

		over -= sqlite3_column_int64(find, 3);
		db_int(stacks ? drop_stacks : drop, 1, sqlite3_column_int64(find, 0));
		r = db_run(stacks ? drop_stacks : drop);
		if (r >= 0)
			r = note_kept(w, stacks ? "stacks" : level, db_column(find, 1),
				      sqlite3_column_int64(find, 2));
		if (r < 0)
			break;
		n++;
	}
	sqlite3_reset(find);
	r = end(w, r);
	return r < 0 ? r : n;
}

static int drop_blocks(struct record_writer *w, int64_t over)
{
	return drop_oldest(w,
			   "SELECT id, grp, t1_ns + 1, length(data), 0, t0_ns FROM block WHERE"
			   " level <> 'second' UNION ALL SELECT id, 'thread', t1_ns, length(data),"
			   " 1, t0_ns FROM stack_slice WHERE level <> 'second' ORDER BY 6, 1"
			   " LIMIT ?1",
			   "DELETE FROM block WHERE id = ?1", "raw", over);
}

#define OLD_FINE(group_test)                                                          \
	"SELECT id, grp, t1_ns, length(data) FROM rollup WHERE level = '" ROLLUP_FINE \
	"' AND grp " group_test " 'thread' AND t1_ns <= ?2 ORDER BY id LIMIT ?1"

static int drop_thread_rollups(struct record_writer *w, int64_t over)
{
	return drop_oldest(w, OLD_FINE("="), "DELETE FROM rollup WHERE id = ?1", ROLLUP_FINE, over);
}

static int drop_rollups(struct record_writer *w, int64_t over)
{
	return drop_oldest(w, OLD_FINE("<>"), "DELETE FROM rollup WHERE id = ?1", ROLLUP_FINE,
			   over);
}

static int drop_gone(struct record_writer *w, const char *sql)
{
	int r = begin(w), n;

	if (r < 0)
		return r;
	r = db_exec(w->db, sql);
	n = sqlite3_changes(w->db);
	r = end(w, r);
	return r < 0 ? r : n;
}

static int drop_threads(struct record_writer *w, int64_t over)
{
	(void)over;
	return drop_gone(w, "DELETE FROM thread WHERE id IN (SELECT id FROM thread WHERE gone_ns"
			    " IS NOT NULL ORDER BY id LIMIT 2000)");
}

static int drop_processes(struct record_writer *w, int64_t over)
{
	(void)over;
	return drop_gone(w, "DELETE FROM process WHERE id IN (SELECT id FROM process WHERE gone_ns"
			    " IS NOT NULL ORDER BY id LIMIT 2000)");
}

static int make_room(struct record_writer *w)
{
	static int (*const steps[])(struct record_writer *, int64_t) = {
		drop_blocks, drop_thread_rollups, drop_rollups, drop_threads, drop_processes,
	};
	int64_t max_pages = (int64_t)(w->options.max_bytes / 4096), used, spare;
	size_t step = 0;
	int r = free_pages(w, &used, &spare);

	if (r < 0 || used <= max_pages)
		return r;
	/* A tenth more than needed, so that not every minute has to. */
	while (step < sizeof(steps) / sizeof(steps[0]) && used > max_pages - max_pages / 10) {
		r = steps[step](w, (used - (max_pages - max_pages / 10)) * 4096);
		if (r < 0)
			return r;
		step += r == 0;
		r = free_pages(w, &used, &spare);
		if (r < 0)
			return r;
	}
	return 0;
}

static int give_back(struct record_writer *w, int64_t keep, int64_t most)
{
	int64_t used, spare, n;
	char sql[64];
	int r = free_pages(w, &used, &spare);

	if (r < 0 || spare <= keep)
		return r;
	n = spare - keep < most ? spare - keep : most;
	snprintf(sql, sizeof(sql), "PRAGMA incremental_vacuum(%lld)", (long long)n);
	return db_exec(w->db, sql);
}

int compact_minute(struct record_writer *w)
{
	int r = 0;

	w->codec.thorough = true;
	for (; r >= 0 && w->packed_to_ns + ROLLUP_COARSE_NS < w->coarse_end_ns;
	     w->packed_to_ns += r >= 0 ? ROLLUP_COARSE_NS : 0)
		r = pack_fine(w, w->packed_to_ns, w->packed_to_ns + ROLLUP_COARSE_NS);
	if (r >= 0)
		r = thin_old(w);
	w->codec.thorough = false;
	if (r >= 0)
		r = make_room(w);
	return r < 0 ? r : give_back(w, SPARE_PAGES, VACUUM_PAGES);
}

int compact_end(struct record_writer *w)
{
	/* The last buckets were not complete enough to be packed; as one row they are smaller. */
	int r;

	w->codec.thorough = true;
	r = pack_fine(w, w->packed_to_ns, w->coarse_end_ns);
	return r < 0 ? r : give_back(w, 0, INT64_MAX);
}
