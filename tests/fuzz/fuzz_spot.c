/* SPDX-License-Identifier: MIT
 *
 * A run file from anywhere: opened, asked for everything a reader can be asked for, closed. It either
 * answers or says in words why not.
 */
#include "base/err.h"
#include "fuzz.h"
#include "record/reader.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Long enough for any honest query of such a small file; a hostile one may loop for ever. */
static int enough(void *arg)
{
	unsigned *left = arg;

	return !*left || !--*left;
}

static bool ignore_sample(const struct record_sample *s, void *arg)
{
	(void)s;
	(void)arg;
	return true;
}

static bool ignore_point(const struct point *p, void *arg)
{
	(void)p;
	(void)arg;
	return true;
}

static bool walk_rows(const struct stack_slice *s, void *arg)
{
	const struct window *w = arg;
	uint32_t places[STACK_DEPTH_MAX];

	must(s->to_ns > s->from_ns, "a slice does not end before it begins");
	for (size_t i = 0; i < s->n && i < 100; i++) {
		size_t n =
		    stack_book_walk(window_book(w), s->rows[i].node, places, STACK_DEPTH_MAX);

		must(s->rows[i].kind < WAIT_KINDS && s->rows[i].on < WAIT_KINDS, "known states");
		for (size_t k = 0; k < n; k++)
			stack_book_find_place(window_book(w), places[k]);
	}
	return true;
}

static void use(struct record *r)
{
	struct window w = record_window(r, 0, 0);
	struct series_stat s;
	unsigned left = 2000;
	size_t n;

	for (int m = 1; m < METRICS; m++)
		for (uint32_t id = 1; id < 20; id++)
			if (window_stat(&w, (enum metric_id)m, id, &s) == 0)
				must(s.to_ns >= s.from_ns,
				     "a stretch does not end before it begins");
	for (int64_t step = 0; step < 400000000000ll; step += 100000000000ll)
		w.ops->each(w.src, M_MEM_FREE, ID_HOST, w.from_ns, w.to_ns, step, ignore_point,
			    NULL);
	w.ops->events(w.src, &n);
	w.ops->gaps(w.src, &n);
	w.ops->steps(w.src, &n);
	w.ops->phases(w.src, &n);
	w.ops->scalars(w.src, &n);
	w.ops->settings(w.src, &n);
	w.ops->step_source(w.src);
	record_each_sample(r, ignore_sample, NULL);
	window_stacks(&w, walk_rows, &w);
	sqlite3_progress_handler(record_db(r), 1000, enough, &left);
	sqlite3_exec(record_db(r), "SELECT * FROM samples WHERE t > 1", NULL, NULL, NULL);
	sqlite3_exec(record_db(r), "SELECT * FROM rollups", NULL, NULL, NULL);
	sqlite3_exec(record_db(r), "SELECT * FROM events", NULL, NULL, NULL);
	sqlite3_exec(record_db(r), "SELECT * FROM stack_samples WHERE t_end > 0", NULL, NULL, NULL);
	sqlite3_exec(record_db(r), "SELECT * FROM stacks", NULL, NULL, NULL);
	record_remark(r);
	record_verdict(r);
	record_refresh(r);
}

/* One file for all inputs, in memory where there is such a place. */
static const char *file(void)
{
	static char path[64];

	if (!path[0])
		snprintf(path, sizeof(path), "%s/spotter-fuzz-%d.spot",
			 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", (int)getpid());
	return path;
}

static void forget(void)
{
	static const char *const sides[] = { "", "-wal", "-shm", "-journal" };
	char path[80];

	for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", file(), sides[i]);
		unlink(path);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	int fd = open(file(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct record *r = NULL;
	struct err e = { 0 };

	must(fd >= 0 && write(fd, data, n) == (ssize_t)n, "the input can be written");
	/* Written long ago, as far as it can tell: the recorder it names is dead. */
	futimens(fd, (struct timespec[2]){ { .tv_sec = 1 }, { .tv_sec = 1 } });
	close(fd);
	if (record_open(file(), &r, &e) == 0)
		use(r);
	else
		must(e.code < 0 && e.text[0], "a refusal says why");
	record_close(r);
	forget();
	return 0;
}
