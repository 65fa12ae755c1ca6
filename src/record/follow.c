/* SPDX-License-Identifier: MIT */
#include "record/follow.h"

#include "record/db.h"
#include "record/read.h"
#include "record/sqlite_api.h"

#include <errno.h>

int record_new_steps(struct record *r, int64_t *after, int most,
		     bool (*fn)(const struct window_step *s, void *arg), void *arg)
{
	auto_stmt *s = NULL;
	/* The columns of step_row(), and the row's number. */
	int got = db_prepare(r->file.db,
			     "SELECT rank, n, begin_ns, end_ns, entity, loss, data_wait_ns, micro,"
			     " rowid FROM step WHERE rowid > ?1 ORDER BY rowid LIMIT ?2",
			     &s);
	int n = 0;

	if (got < 0)
		return got;
	db_int(s, 1, *after);
	db_int(s, 2, most);
	while ((got = db_row(s)) > 0) {
		struct window_step step;
		int64_t row = sqlite3_column_int64(s, 8);

		if (row <= *after)
			return -EBADMSG;
		*after = row;
		n++;
		if (step_row(s, &step) && !fn(&step, arg))
			break;
	}
	return got < 0 ? got : n;
}

void record_limit_memory(int64_t bytes)
{
	sqlite3_hard_heap_limit64(bytes);
}

bool record_is_going(struct record *r)
{
	return r->run.state == RUN_GOING && recorder_alive(&r->recorder, run_file_age(r->path));
}
