/* SPDX-License-Identifier: MIT
 *
 * The beginning of a run file: an empty one of ours, readable by others at once.
 */
#include "record/write.h"

#include "base/clock.h"
#include "base/err.h"
#include "record/db.h"
#include "record/schema.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_BYTES_DEFAULT (256ull << 20)
#define KEEP_RAW_DEFAULT  (15 * 60 * NS_PER_S)
#define SYNC_DEFAULT      (30 * NS_PER_S)

void writer_free(struct record_writer *w)
{
	series_done(&w->series);
	block_codec_done(&w->codec);
	backlog_done(&w->backlog);
	stacks_free(&w->stacks);
	training_done(&w->training);
	thin_done(&w->thin);
	run_info_done(&w->run);
	free(w->verdict);
	if (w->path_fd >= 0)
		close(w->path_fd);
	free(w);
}

static int create_tables(struct record_writer *w)
{
	char version[120];
	int r = db_exec(w->db, schema_pragmas);

	snprintf(version, sizeof(version),
		 "PRAGMA application_id = %d; PRAGMA user_version = %d; BEGIN",
		 SCHEMA_APPLICATION_ID, SCHEMA_VERSION);
	if (r >= 0)
		r = db_exec(w->db, version);
	if (r >= 0)
		r = db_exec(w->db, schema_tables);
	if (r >= 0)
		r = rows_prepare(w);
	if (r >= 0)
		r = rows_create(w);
	if (r >= 0)
		r = db_exec(w->db, "COMMIT");
	/* So that the file alone, without its -wal, already says what it is. */
	if (r >= 0)
		r = db_exec(w->db, "PRAGMA wal_checkpoint(PASSIVE)");
	return r;
}

static int open_new(struct record_writer *w, const char *path)
{
	char *name = db_path(path);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	int r;

	if (fd < 0 || !name) {
		r = fd < 0 ? -errno : -ENOMEM;
		free(name);
		if (fd >= 0)
			close(fd);
		return r;
	}
	close(fd);
	w->path_fd = open(path, O_PATH | O_CLOEXEC | O_NOFOLLOW);
	r = sqlite3_open_v2(name, &w->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
	free(name);
	if (r != SQLITE_OK)
		return w->db ? db_errno(w->db) : -ENOMEM;
	return create_tables(w);
}

/* Nothing half-made is left behind. */
static void undo_create(struct record_writer *w, const char *path, bool made)
{
	char side[PATH_MAX + 8];

	rows_done(w);
	sqlite3_close(w->db);
	if (made) {
		unlink(path);
		snprintf(side, sizeof(side), "%s-wal", path);
		unlink(side);
		snprintf(side, sizeof(side), "%s-shm", path);
		unlink(side);
	}
	writer_free(w);
}

static int explain_create(int error, const char *path, struct err *e)
{
	char why[80];

	err_set(e, error, "cannot write a record to '%s': %s", path,
		err_name(error, why, sizeof(why)));
	if (error == -EEXIST)
		err_hint(e, "choose another name, or remove it first");
	else if (error == -ENOSPC || error == -EDQUOT)
		err_hint(
		    e, "free some space, or choose another place with --out FILE or $SPOTTER_DIR");
	else
		err_hint(e, "choose another place with --out FILE or $SPOTTER_DIR");
	return error;
}

int record_create(const char *path, const struct run_info *run, const struct record_options *o,
		  struct record_writer **ret, struct err *e)
{
	struct record_writer *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return err_set(e, -ENOMEM, "out of memory");
	w->path_fd = -1;
	w->owner = getpid();
	if (o)
		w->options = *o;
	if (!w->options.max_bytes)
		w->options.max_bytes = MAX_BYTES_DEFAULT;
	if (!w->options.keep_raw_ns)
		w->options.keep_raw_ns = KEEP_RAW_DEFAULT;
	if (!w->options.sync_every_ns)
		w->options.sync_every_ns = SYNC_DEFAULT;
	r = run_info_copy(&w->run, run);
	w->run.started_mono_ns = series_time(run->started_mono_ns);
	if (r >= 0)
		r = open_new(w, path);
	if (r < 0) {
		undo_create(w, path, w->path_fd >= 0);
		return explain_create(r, path, e);
	}
	w->slot_ns = w->last_ns = w->run.started_mono_ns;
	w->slot_end_ns = w->slot_ns + SLOT_NS;
	w->fine_end_ns = w->slot_ns + ROLLUP_FINE_NS;
	w->coarse_end_ns = w->slot_ns + ROLLUP_COARSE_NS;
	*ret = w;
	return 0;
}
