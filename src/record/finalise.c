/* SPDX-License-Identifier: MIT */
#include "record/open.h"

#include "base/auto.h"
#include "base/clock.h"
#include "record/db.h"
#include "record/ours.h"
#include "record/sqlite_api.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>

enum { TRIES = 20, PAUSE_MS = 100 };

/* Only one process may write and checkpoint at a time (sqlite.org/wal.html#walresetbug), so those
 * that find the same dead record take turns, on a lock of the folder: one on the file itself would
 * take SQLite's own locks with it when it is closed. */
static int lock_folder(const char *path)
{
	char folder[PATH_MAX];
	const char *slash = strrchr(path, '/');
	int n = slash ? (int)(slash - path) + 1 : 1;
	int fd;

	snprintf(folder, sizeof(folder), "%.*s", n, slash ? path : ".");
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	for (int i = 0; i < TRIES; i++) {
		struct timespec pause = { .tv_nsec = PAUSE_MS * NS_PER_MS };

		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return fd;
		if (errno != EWOULDBLOCK)
			break;
		nanosleep(&pause, NULL);
	}
	close(fd);
	return -EBUSY;
}

static int close_run(struct sqlite3 *db, const char *path)
{
	struct run_info run = { 0 };
	struct recorder_id recorder;
	bool open;
	int r = db_exec(db, "BEGIN IMMEDIATE");

	if (r < 0)
		return r;
	/* Again, now that nobody else can change it. */
	r = run_file_info(db, &run, &recorder, NULL, NULL);
	open = r >= 0 && run.state == RUN_GOING;
	if (r >= 0 && recorder_alive(&recorder, run_file_age(path)))
		r = -EBUSY;
	run_info_done(&run);
	if (r >= 0 && open)
		r = db_exec(db, "UPDATE run SET state = 'interrupted';"
				"UPDATE process SET gone_ns = (SELECT ended_mono_ns FROM run)"
				" WHERE gone_ns IS NULL;"
				"UPDATE thread SET gone_ns = (SELECT ended_mono_ns FROM run)"
				" WHERE gone_ns IS NULL;"
				"UPDATE gap SET to_ns = (SELECT ended_mono_ns FROM run)"
				" WHERE to_ns IS NULL;");
	if (r >= 0)
		r = db_exec(db, "COMMIT");
	else
		(void)db_exec(db, "ROLLBACK");
	return r;
}

int run_file_finalise(const char *path)
{
	char full[PATH_MAX];
	struct sqlite3 *db = NULL;
	int r;

	if (!realpath(path, full))
		return -errno;
	/* Writing lets SQLite play back a journal it finds beside the file, and that one may name any file to be removed.
	 * What is not ours stays as it is and is read as it is. */
	if (!run_file_is_ours(full))
		return -EPERM;
	auto_close int lock = lock_folder(full);

	if (lock < 0)
		return lock;
	r = db_open_hostile(full, DB_FINALISE, &db);
	if (r < 0)
		return r;
	r = close_run(db, full);
	if (r >= 0)
		r = db_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)");
	if (r >= 0)
		r = db_exec(db, "PRAGMA journal_mode = DELETE");
	sqlite3_close(db);
	return r == -EBUSY ? 0 : r;
}
