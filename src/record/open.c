/* SPDX-License-Identifier: MIT */
#include "record/open.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "record/db.h"
#include "record/ours.h"
#include "record/schema.h"
#include "record/sqlite_api.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
	ARGV_MAX = 4096,
	/* Instructions of SQLite's machine for one look at another user's file, 1e8 of them: about 20 a row, and two
	 * seconds in all. */
	BUDGET_STEP = 10000,
	BUDGET_STEPS = 10000,
};

void run_file_close(struct run_file *f)
{
	sqlite3_close(f->db);
	free(f->budget);
	f->db = NULL;
	f->budget = NULL;
}

double run_file_age(const char *path)
{
	char side[PATH_MAX + 8];
	struct stat st;
	int64_t newest = 0, now = clock_wall_ns();

	for (int i = 0; i < 2; i++) {
		snprintf(side, sizeof(side), "%s%s", path, i ? "-wal" : "");
		/* its owner may have set it to any number of seconds */
		if (stat(side, &st) == 0 && st.st_mtim.tv_sec < INT64_MAX / NS_PER_S &&
		    st.st_mtim.tv_sec > newest / NS_PER_S)
			newest = st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec;
	}
	return newest ? (double)(now - newest) / 1e9 : 1e9;
}

/* The path itself, without links. */
static int resolve(const char *path, char *ret, struct err *e)
{
	char why[80];
	int r = run_file_resolve(path, ret);

	if (r == 0)
		return 0;
	if (r == -EPERM) {
		err_set(e, r, "'%s' leads through a link of another user", path);
		err_hint(e, "as root, give the path it leads to");
		return r;
	}
	err_set(e, r, "cannot open '%s': %s", path, err_name(r, why, sizeof(why)));
	if (r == -ENOENT)
		err_hint(e, "'spotter runs' lists what has been recorded");
	return r;
}

/* full: the path to look at, path: as it is called. A pipe would be waited for, so nothing but a file is opened. */
static int check_file(const char *path, const char *full, struct err *e)
{
	struct stat st;
	char why[80];

	if (lstat(full, &st) < 0) {
		int error = -errno;

		return err_set(e, error, "cannot open '%s': %s", path,
			       err_name(error, why, sizeof(why)));
	}
	if (S_ISDIR(st.st_mode))
		return err_set(e, -EISDIR, "'%s' is a folder, not a recording", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EINVAL, "'%s' is not a file", path);
	if (!st.st_size) {
		err_set(e, -ENODATA, "'%s' is empty: nothing was recorded", path);
		err_hint(e, "the recorder may have died at once, or the disk was full");
		return -ENODATA;
	}
	return 0;
}

static int refuse(const char *path, int error, struct err *e)
{
	char why[80];

	if (error == -EBADMSG) {
		err_set(e, error, "'%s' is not a Spotter recording, or is damaged", path);
		err_hint(e,
			 "a damaged one can often be saved: sqlite3 FILE .recover | sqlite3 NEW");
		return error;
	}
	return err_set(e, error, "cannot read '%s': %s", path, err_name(error, why, sizeof(why)));
}

/* Tables that are views, virtual or computed could run code of the file's choosing. */
static int check_tables(struct sqlite3 *db)
{
	auto_stmt *s = NULL;
	int r = db_prepare(db,
			   "SELECT (SELECT count(*) FROM sqlite_schema WHERE name = ?1 AND"
			   " type = 'table' AND sql LIKE 'create table%'),"
			   " (SELECT count(*) FROM pragma_table_xinfo(?1) WHERE hidden <> 0)",
			   &s);

	for (size_t i = 0; r >= 0 && schema_required[i]; i++) {
		db_text(s, 1, schema_required[i]);
		r = db_row(s);
		if (r > 0 && (sqlite3_column_int(s, 0) != 1 || sqlite3_column_int(s, 1) != 0))
			r = -EBADMSG;
		sqlite3_reset(s);
	}
	return r < 0 ? r : 0;
}

static int identify(struct sqlite3 *db, const char *path, struct err *e)
{
	int64_t application = 0, version = 0;
	int r = db_number(db, "PRAGMA application_id", &application);

	if (r >= 0)
		r = db_number(db, "PRAGMA user_version", &version);
	if (r < 0)
		return refuse(path, r, e);
	if (application != SCHEMA_APPLICATION_ID)
		return err_set(e, -EBADMSG, "'%s' is a database, but not a Spotter recording",
			       path);
	if (version / 1000 > SCHEMA_MAJOR) {
		err_set(e, -EPROTO, "'%s' was made by a newer Spotter (format %d.%d, known is %d)",
			path, (int)(version / 1000), (int)(version % 1000), SCHEMA_MAJOR);
		err_hint(e, "update Spotter to read it");
		return -EPROTO;
	}
	r = check_tables(db);
	return r < 0 ? refuse(path, r, e) : 0;
}

/* Not zero: SQLite ends the query. */
static int spend(void *arg)
{
	int64_t *left = arg;

	return --*left < 0;
}

static bool has_log(const char *full)
{
	char name[PATH_MAX + 8];
	struct stat st;

	snprintf(name, sizeof(name), "%s-wal", full);
	return lstat(name, &st) == 0 && st.st_size > 0;
}

/* budget: in BUDGET_STEPs, 0: none. */
static int open_as_is(const char *path, const char *full, int64_t budget, struct run_file *f,
		      struct err *e)
{
	int r = db_open_hostile(full, DB_READ_AS_IS, &f->db);

	if (r < 0)
		return refuse(path, r, e);
	f->as_is = true;
	if (budget) {
		f->budget = malloc(sizeof(*f->budget));
		if (!f->budget) {
			run_file_close(f);
			return err_set(e, -ENOMEM, "out of memory");
		}
		*f->budget = budget;
		sqlite3_progress_handler(f->db, BUDGET_STEP, spend, f->budget);
	}
	r = identify(f->db, path, e);
	if (r < 0) {
		run_file_close(f);
		return r;
	}
	if (has_log(full))
		snprintf(
		    f->remark, sizeof(f->remark),
		    "others than you may change it, so what is still in its -wal file (of a run "
		    "that goes on up to the last half minute) was left out");
	return 0;
}

/* Where the -wal needs a folder that cannot be written, goes without it. */
static int open_with_log(const char *path, const char *full, struct run_file *f, struct err *e)
{
	struct err first = { 0 };
	int r = db_open_hostile(full, DB_READ, &f->db);

	r = r < 0 ? refuse(path, r, &first) : identify(f->db, path, &first);
	if (r >= 0)
		return 0;
	run_file_close(f);
	if (r != -EBADMSG && r != -EPROTO && r != -ENOMEM && r != -EACCES &&
	    open_as_is(path, full, 0, f, NULL) >= 0) {
		f->remark[0] = '\0';
		if (has_log(full))
			snprintf(f->remark, sizeof(f->remark),
				 "its folder cannot be written, so what is still in its -wal file "
				 "was left out: copy both to a folder of your own to see all of "
				 "it");
		return 0;
	}
	if (e && !e->code)
		*e = first;
	return r;
}

/* Needs closing by us: no recorder holds it, and it does not say how it ended or still has its log
 * beside it. */
static bool is_orphan(const struct run_file *f, const char *path)
{
	struct run_info run = { 0 };
	struct recorder_id recorder;
	auto_stmt *s = NULL;
	bool open = false;

	if (f->as_is || run_file_info(f->db, &run, &recorder, NULL, NULL) < 0)
		return false;
	open = run.state == RUN_GOING;
	if (!open && db_prepare(f->db, "PRAGMA journal_mode", &s) >= 0 && db_row(s) > 0)
		open = strcmp(db_column(s, 0), "wal") == 0;
	run_info_done(&run);
	return open && !recorder_alive(&recorder, run_file_age(path));
}

/* The path to open, with no link in it but for what is anybody's, where SQLite refuses them. */
static int find_file(const char *path, enum run_file_how how, char *ret, struct err *e)
{
	int r = 0;

	if (how == RUN_FILE_ANYBODYS && !text_copy(ret, PATH_MAX, path))
		r = err_set(e, -ENAMETOOLONG, "the name of the file is too long");
	else if (how == RUN_FILE_LOOK || how == RUN_FILE_CLOSE ||
		 (how == RUN_FILE_WRITING && !realpath(path, ret)))
		r = resolve(path, ret, e);
	return r < 0 ? r : check_file(path, ret, e);
}

int run_file_open(const char *path, enum run_file_how how, struct run_file *ret, struct err *e)
{
	struct run_file f = { 0 };
	char full[PATH_MAX];
	int r = find_file(path, how, full, e);

	if (r < 0)
		return r;
	if (how == RUN_FILE_ANYBODYS)
		r = open_as_is(path, full, BUDGET_STEPS, &f, e);
	else if (how != RUN_FILE_WRITING && !run_file_is_safe(full))
		r = open_as_is(path, full, 0, &f, e);
	else
		r = open_with_log(path, full, &f, e);
	if (r < 0)
		return r;
	if (how == RUN_FILE_CLOSE && is_orphan(&f, full)) {
		run_file_close(&f);
		/* Where it cannot be written it is read as it is. */
		(void)run_file_finalise(full);
		f = (struct run_file){ 0 };
		r = open_with_log(path, full, &f, e);
		if (r < 0)
			return r;
	}
	*ret = f;
	return 0;
}

/* "["python", "train.py"]" through SQLite's own JSON reader. */
static int read_argv(struct sqlite3 *db, struct run_info *ret)
{
	auto_stmt *s = NULL;
	char *argv[ARGV_MAX + 1] = { 0 };
	size_t n = 0;
	int r = db_prepare(db,
			   "SELECT e.value FROM run, json_each(iif(json_valid(run.argv), run.argv,"
			   " '[]')) AS e",
			   &s);

	while (r >= 0 && n < ARGV_MAX && (r = db_row(s)) > 0) {
		argv[n] = strdup(db_column(s, 0));
		if (!argv[n++])
			r = -ENOMEM;
	}
	if (r >= 0)
		r = run_info_set_argv(ret, argv);
	for (size_t i = 0; i < n; i++)
		free(argv[i]);
	return r < 0 ? r : 0;
}

static void read_machine(struct sqlite3_stmt *s, struct machine *m)
{
	text_copy(m->hostname, sizeof(m->hostname), db_column(s, 3));
	text_copy(m->kernel, sizeof(m->kernel), db_column(s, 4));
	text_copy(m->cpu_model, sizeof(m->cpu_model), db_column(s, 5));
	m->cpus = sqlite3_column_int(s, 6);
	m->threads_per_core = sqlite3_column_int(s, 7);
	m->memory_bytes = sqlite3_column_int64(s, 8);
	text_copy(m->virtualisation, sizeof(m->virtualisation), db_column(s, 9));
}

static int64_t or_unknown(struct sqlite3_stmt *s, int at)
{
	return sqlite3_column_type(s, at) == SQLITE_NULL ? -1 : sqlite3_column_int64(s, at);
}

static void read_run(struct sqlite3_stmt *s, struct run_info *run)
{
	text_copy(run->id, sizeof(run->id), db_column(s, 0));
	text_copy(run->name, sizeof(run->name), db_column(s, 1));
	read_machine(s, &run->machine);
	text_copy(run->version, sizeof(run->version), db_column(s, 10));
	run->started_wall_ns = sqlite3_column_int64(s, 11);
	run->started_mono_ns = sqlite3_column_int64(s, 12);
	run->ended_mono_ns = sqlite3_column_int64(s, 13);
	run->hz = sqlite3_column_double(s, 14);
	run->level = sqlite3_column_int(s, 15);
	run->attached = sqlite3_column_int(s, 16);
	run->pid = sqlite3_column_int64(s, 17);
	run->state = run_state_by_name(db_column(s, 18));
	run->has_exit = sqlite3_column_type(s, 19) != SQLITE_NULL;
	run->exit_code = sqlite3_column_int(s, 19);
	run->exit_signal = sqlite3_column_int(s, 20);
	run->rusage_cpu_ns = or_unknown(s, 21);
	run->rusage_maxrss_bytes = or_unknown(s, 22);
}

static void read_recorder(struct sqlite3_stmt *s, struct recorder_id *id)
{
	*id = (struct recorder_id){ .pid = sqlite3_column_int64(s, 23),
				    .start = sqlite3_column_int64(s, 24),
				    .pid_space = sqlite3_column_int64(s, 25) };
	text_copy(id->boot_id, sizeof(id->boot_id), db_column(s, 26));
}

/* Times a hostile file could use to overflow every later subtraction. */
static bool is_sane(const struct run_info *run)
{
	const int64_t most = INT64_MAX / 4;

	return run->started_wall_ns >= 0 && run->started_wall_ns <= most * 2 &&
	       run->started_mono_ns >= -most && run->started_mono_ns <= most &&
	       run->ended_mono_ns >= run->started_mono_ns && run->ended_mono_ns <= most;
}

int run_file_info(struct sqlite3 *db, struct run_info *ret, struct recorder_id *recorder,
		  int64_t *fine_to_ns, int64_t *coarse_to_ns)
{
	auto_stmt *s = NULL;
	int r =
	    db_prepare(db,
		       "SELECT id, name, cwd, hostname, kernel, cpu_model, cpus, threads_per_core,"
		       " memory_bytes, virtualisation, version, started_wall_ns, started_mono_ns,"
		       " ended_mono_ns, hz, level, attached, pid, state, exit_code, exit_signal,"
		       " rusage_cpu_ns, rusage_maxrss_bytes, recorder_pid, recorder_start,"
		       " recorder_namespace, boot_id, fine_to_ns, coarse_to_ns FROM run LIMIT 1",
		       &s);

	if (r >= 0)
		r = db_row(s);
	if (r <= 0)
		return r < 0 ? r : -EBADMSG;
	read_run(s, ret);
	if (sqlite3_column_type(s, 2) != SQLITE_NULL && !(ret->cwd = strdup(db_column(s, 2))))
		return -ENOMEM;
	if (recorder)
		read_recorder(s, recorder);
	if (fine_to_ns)
		*fine_to_ns = sqlite3_column_int64(s, 27);
	if (coarse_to_ns)
		*coarse_to_ns = sqlite3_column_int64(s, 28);
	r = is_sane(ret) ? read_argv(db, ret) : -EBADMSG;
	if (r < 0)
		run_info_done(ret);
	return r;
}
