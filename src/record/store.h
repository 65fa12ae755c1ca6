/* SPDX-License-Identifier: MIT
 *
 * The folder of runs: where it is, what is in it, and which file a RUN on the command line means.
 */
#ifndef SPOTTER_RECORD_STORE_H
#define SPOTTER_RECORD_STORE_H

#include "base/vec.h"
#include "model/run.h"

#include <limits.h>

struct err;

/* $SPOTTER_DIR, else $XDG_STATE_HOME/spotter/runs, else ~/.local/state/spotter/runs; made with mode
 * 0700 when create. */
int store_dir(bool create, char *ret, size_t size, struct err *e);

/* Where a new run is to be written. out: an explicit --out FILE or NULL. When the folder is on a
 * network file system, `path` is local and `final` says where to move it at the end; when the home
 * cannot be written, falls back to a private folder under $TMPDIR and says so in `remark`.
 * -errno with a sentence when there is nowhere to write, or when an explicit FILE cannot be. */
struct store_place {
	char path[PATH_MAX], final[PATH_MAX]; /* final "" when path is already it */
	char remark[256];
};
int store_place(const char *id, const char *out, struct store_place *ret, struct err *e);
/* Moves the finished file to `final` (copy + fsync + rename across file systems). */
int store_settle(const struct store_place *p, struct err *e);

/* A new id and a name made from the program ("train.py", or the command). */
void store_new_id(int64_t wall_ns, char *ret, size_t size);
void store_name_from(char *const *argv, char *ret, size_t size);

struct store_entry {
	char path[PATH_MAX];
	char id[40], name[96];
	int64_t started_wall_ns;
	double duration_s;
	enum run_state state;
	bool has_exit;
	int exit_code, exit_signal;
	int64_t bytes;
	char problem[120]; /* why it cannot be read, "" when it can */
};
struct store_list {
	VEC(struct store_entry) rows; /* oldest first */
};
int store_list(struct store_list *ret, struct err *e);
void store_list_done(struct store_list *l);

/* RUN is a path, a name, an id (or the start of one), or "last"/NULL. Suggests near misses. */
int store_find(const char *run, char *ret_path, size_t size, struct err *e);
/* Removes a run with its -wal and -shm; refuses one that is still going. */
int store_remove(const char *path, struct err *e);
/* Removes the oldest finished runs until all together are under max_bytes; counts what it freed. */
int store_gc(uint64_t max_bytes, unsigned *ret_n, int64_t *ret_freed, struct err *e);

#endif
