/* SPDX-License-Identifier: MIT */
#include "record/store.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "record/open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NEAR_MISS = 3, FEW = 4 };

static const char ending[] = ".spot";

static bool has_ending(const char *name)
{
	size_t n = strlen(name), m = sizeof(ending) - 1;

	return n > m && strcmp(name + n - m, ending) == 0;
}

static int64_t size_of(const char *path)
{
	static const char *const sides[] = { "", "-wal" };
	char name[PATH_MAX + 8];
	int64_t bytes = 0;
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(sides); i++) {
		snprintf(name, sizeof(name), "%s%s", path, sides[i]);
		if (stat(name, &st) == 0)
			bytes += st.st_size;
	}
	return bytes;
}

static void set_problem(struct store_entry *entry, int error)
{
	char why[80];

	text_copy(entry->problem, sizeof(entry->problem),
		  error == -ENODATA   ? "empty: nothing was recorded"
		  : error == -EBADMSG ? "damaged, or not a Spotter recording"
		  : error == -EPROTO  ? "made by a newer Spotter"
		  : error == -EPERM   ? "a link of another user: not followed"
				      : err_name(error, why, sizeof(why)));
}

/* What the file says of itself, without finalising it. */
static int peek(const char *path, struct store_entry *entry)
{
	struct run_info run = { .state = RUN_INTERRUPTED };
	struct recorder_id recorder;
	struct run_file f = { 0 };
	int r = run_file_open(path, RUN_FILE_LOOK, &f, NULL);

	if (r >= 0)
		r = run_file_info(f.db, &run, &recorder, NULL, NULL);
	run_file_close(&f);
	if (r < 0) {
		entry->state = RUN_INTERRUPTED;
		set_problem(entry, r);
		return r;
	}
	if (run.state == RUN_GOING && !recorder_alive(&recorder, run_file_age(path)))
		run.state = RUN_INTERRUPTED;
	text_copy(entry->id, sizeof(entry->id), run.id);
	text_copy(entry->name, sizeof(entry->name), run.name);
	entry->started_wall_ns = run.started_wall_ns;
	entry->duration_s = (double)(run.ended_mono_ns - run.started_mono_ns) / 1e9;
	entry->state = run.state;
	entry->has_exit = run.has_exit;
	entry->exit_code = run.exit_code;
	entry->exit_signal = run.exit_signal;
	run_info_done(&run);
	return 0;
}

static int add_entry(struct store_list *l, const char *folder, const char *file)
{
	struct store_entry *entry = vec_push(&l->rows);

	if (!entry)
		return -ENOMEM;
	if (snprintf(entry->path, sizeof(entry->path), "%s/%s", folder, file) >=
	    (int)sizeof(entry->path)) {
		l->rows.n--;
		return 0;
	}
	entry->bytes = size_of(entry->path);
	if (peek(entry->path, entry) < 0 || !entry->id[0])
		snprintf(entry->id, sizeof(entry->id), "%.*s",
			 (int)(strlen(file) - sizeof(ending) + 1), file);
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct store_entry *x = a, *y = b;

	/* Ids begin with the time, so those that cannot be read find their place too. */
	if (x->started_wall_ns && y->started_wall_ns && x->started_wall_ns != y->started_wall_ns)
		return x->started_wall_ns < y->started_wall_ns ? -1 : 1;
	return strcmp(x->id, y->id);
}

void store_list_done(struct store_list *l)
{
	vec_done(&l->rows);
}

/* Opens the folder; 0 with *ret_none when there is none yet. */
static int open_store(struct io_dir *d, char *folder, size_t size, bool *ret_none, struct err *e)
{
	char why[80];
	int r = store_dir(false, folder, size, e);

	*ret_none = false;
	if (r < 0)
		return r;
	r = io_dir_open(d, AT_FDCWD, folder);
	if (r == -ENOENT) {
		*ret_none = true;
		return 0;
	}
	if (r < 0)
		return err_set(e, r, "cannot read the folder of runs '%s': %s", folder,
			       err_name(r, why, sizeof(why)));
	return 0;
}

int store_list(struct store_list *ret, struct err *e)
{
	struct store_list l = { 0 };
	char folder[PATH_MAX - 300];
	struct io_dir d;
	const char *name;
	bool none;
	int r = open_store(&d, folder, sizeof(folder), &none, e);

	if (r < 0)
		return r;
	if (!none) {
		while (r >= 0 && (name = io_dir_next(&d)))
			if (has_ending(name))
				r = add_entry(&l, folder, name);
		io_dir_close(&d);
	}
	if (r < 0) {
		store_list_done(&l);
		return err_set(e, r, "out of memory");
	}
	if (l.rows.n)
		qsort(l.rows.v, l.rows.n, sizeof(*l.rows.v), by_start);
	*ret = l;
	return 0;
}

/* "20261115-211209-4f3a.spot" */
static bool looks_like_id(const char *file)
{
	for (int i = 0; i < 15; i++)
		if (i == 8 ? file[i] != '-' : file[i] < '0' || file[i] > '9')
			return false;
	return file[15] == '-';
}

/* The newest by its name alone: none needs to be opened. */
static int find_last(char *ret, size_t size, struct err *e)
{
	char folder[PATH_MAX - 300], best[NAME_MAX + 1] = "";
	struct store_list l = { 0 };
	struct io_dir d;
	const char *name;
	bool none;
	int r = open_store(&d, folder, sizeof(folder), &none, e);

	if (r < 0)
		return r;
	while (!none && (name = io_dir_next(&d)))
		if (has_ending(name) && looks_like_id(name) && strcmp(name, best) > 0)
			text_copy(best, sizeof(best), name);
	if (!none)
		io_dir_close(&d);
	if (best[0]) {
		snprintf(ret, size, "%s/%s", folder, best);
		return 0;
	}
	r = none ? 0 : store_list(&l, e);
	if (r >= 0 && !l.rows.n) {
		r = err_set(e, -ENOENT, "nothing has been recorded yet");
		err_hint(e, "spotter run -- COMMAND");
	} else if (r >= 0) {
		text_copy(ret, size, l.rows.v[l.rows.n - 1].path);
	}
	store_list_done(&l);
	return r;
}

static const struct store_entry *newest_named(const struct store_list *l, const char *run)
{
	for (size_t i = l->rows.n; i-- > 0;)
		if ((l->rows.v[i].name[0] && strcmp(l->rows.v[i].name, run) == 0) ||
		    (l->rows.v[i].id[0] && strcmp(l->rows.v[i].id, run) == 0))
			return &l->rows.v[i];
	return NULL;
}

static int ambiguous(const struct store_list *l, const char *run, struct err *e)
{
	char ids[200] = "";
	size_t n = 0;

	for (size_t i = l->rows.n; i-- > 0 && n < FEW;) {
		size_t at = strlen(ids);

		if (strncmp(l->rows.v[i].id, run, strlen(run)) != 0)
			continue;
		snprintf(ids + at, sizeof(ids) - at, "%s%s", n++ ? ", " : "", l->rows.v[i].id);
	}
	err_set(e, -ENOTUNIQ, "'%s' may be more than one run", run);
	err_hint(e, "%s", ids);
	return -ENOTUNIQ;
}

static int not_found(const struct store_list *l, const char *run, struct err *e)
{
	const char *near = NULL;
	unsigned best = NEAR_MISS + 1;

	for (size_t i = 0; i < l->rows.n; i++) {
		const char *const words[] = { l->rows.v[i].name, l->rows.v[i].id };

		for (size_t k = 0; k < ARRAY_LEN(words); k++) {
			unsigned d = words[k][0] ? text_distance(run, words[k]) : 99;

			if (d < best && d * 2 < strlen(words[k])) {
				best = d;
				near = words[k];
			}
		}
	}
	err_set(e, -ENOENT, "there is no run '%s'", run);
	if (near)
		err_hint(e, "did you mean '%s'?", near);
	else
		err_hint(e, "'spotter runs' lists what has been recorded");
	return -ENOENT;
}

static int find_listed(const char *run, char *ret, size_t size, struct err *e)
{
	struct store_list l = { 0 };
	const struct store_entry *found;
	size_t n = 0;
	int r = store_list(&l, e);

	if (r < 0)
		return r;
	found = newest_named(&l, run);
	for (size_t i = 0; !found && i < l.rows.n; i++)
		n += run[0] && strncmp(l.rows.v[i].id, run, strlen(run)) == 0;
	for (size_t i = 0; !found && n == 1 && i < l.rows.n; i++)
		if (strncmp(l.rows.v[i].id, run, strlen(run)) == 0)
			found = &l.rows.v[i];
	if (found)
		text_copy(ret, size, found->path);
	else
		r = n > 1 ? ambiguous(&l, run, e) : not_found(&l, run, e);
	store_list_done(&l);
	return r;
}

int store_find(const char *run, char *ret_path, size_t size, struct err *e)
{
	struct stat st;
	char path[PATH_MAX + 8];

	if (!run || strcmp(run, "last") == 0)
		return find_last(ret_path, size, e);
	if (!*run)
		return err_set(e, -EINVAL, "the name of the run is empty");
	if (strchr(run, '/') || (has_ending(run) && stat(run, &st) == 0) ||
	    (stat(run, &st) == 0 && S_ISREG(st.st_mode))) {
		if (!text_copy(ret_path, size, run))
			return err_set(e, -ENAMETOOLONG, "the name of the file is too long");
		return 0;
	}
	/* The id: by far the most common, and the name of the file. */
	if (strlen(run) < NAME_MAX - 8 && store_dir(false, path, PATH_MAX / 2, NULL) >= 0) {
		size_t n = strlen(path);

		snprintf(path + n, sizeof(path) - n, "/%s%s", run, has_ending(run) ? "" : ending);
		if (stat(path, &st) == 0) {
			text_copy(ret_path, size, path);
			return 0;
		}
	}
	return find_listed(run, ret_path, size, e);
}

/* Does it lie in the folder of runs? */
static bool is_kept_here(const char *path)
{
	char folder[PATH_MAX], parent[PATH_MAX], real_folder[PATH_MAX], real_parent[PATH_MAX];
	char *slash;

	if (store_dir(false, folder, sizeof(folder), NULL) < 0 ||
	    !text_copy(parent, sizeof(parent), path))
		return false;
	slash = strrchr(parent, '/');
	if (slash)
		slash[slash == parent] = '\0';
	return realpath(slash ? parent : ".", real_parent) && realpath(folder, real_folder) &&
	       strcmp(real_parent, real_folder) == 0;
}

int store_remove(const char *path, struct err *e)
{
	static const char *const sides[] = { "-wal", "-shm", "-journal" };
	struct store_entry entry = { 0 };
	char name[PATH_MAX + 16], why[80];
	struct stat st;
	int r;

	if (lstat(path, &st) < 0 && errno == ENOENT)
		return err_set(e, -ENOENT, "there is no file '%s'", path);
	r = peek(path, &entry);
	/* A damaged run may go, where runs are kept; what is no run stays. */
	if (!S_ISREG(st.st_mode) || (r < 0 && !(has_ending(path) && is_kept_here(path))))
		return err_set(e, r < 0 ? r : -EINVAL, "'%s' is not a Spotter recording and stays",
			       path);
	if (entry.state == RUN_GOING) {
		err_set(e, -EBUSY, "'%s' is still being recorded", path);
		err_hint(e, "wait for its end, or stop the program");
		return -EBUSY;
	}
	if (unlink(path) < 0) {
		r = -errno;
		return err_set(e, r, "cannot remove '%s': %s", path, err_name(r, why, sizeof(why)));
	}
	for (size_t i = 0; i < ARRAY_LEN(sides); i++) {
		snprintf(name, sizeof(name), "%s%s", path, sides[i]);
		unlink(name);
	}
	return 0;
}

int store_gc(uint64_t max_bytes, unsigned *ret_n, int64_t *ret_freed, struct err *e)
{
	struct store_list l = { 0 };
	uint64_t total = 0;
	int r = store_list(&l, e);

	*ret_n = 0;
	*ret_freed = 0;
	for (size_t i = 0; r >= 0 && i < l.rows.n; i++)
		total += (uint64_t)l.rows.v[i].bytes;
	for (size_t i = 0; r >= 0 && i < l.rows.n && total > max_bytes; i++) {
		const struct store_entry *entry = &l.rows.v[i];

		/* What cannot be read may still be saved by somebody. */
		if (entry->state == RUN_GOING || entry->problem[0])
			continue;
		r = store_remove(entry->path, e);
		if (r < 0)
			break;
		total -= (uint64_t)entry->bytes;
		*ret_freed += entry->bytes;
		++*ret_n;
	}
	store_list_done(&l);
	return r;
}
