/* SPDX-License-Identifier: MIT
 *
 * What the dashboard shows, as JSON: the list of runs with the headline of each, the story of one.
 * Known to the desk's thread alone.
 */
#ifndef SPOTTER_WEB_SERVE_MAKE_H
#define SPOTTER_WEB_SERVE_MAKE_H

#include "base/buf.h"
#include "base/vec.h"
#include "record/store.h"

struct err;

/* When a record was last written, by its file and its -wal. */
struct record_stamp {
	int64_t changed_ns[2], bytes[2];
	uint64_t file;
};
/* False: there is no such file. */
bool record_stamp_of(const char *path, struct record_stamp *ret);
bool record_stamp_same(const struct record_stamp *a, const struct record_stamp *b);

/* The headline of a run and its figures; made once, again when the record has changed. */
struct summary {
	char path[PATH_MAX];
	struct record_stamp stamp;
	struct buf json; /* "" none could be made */
	int64_t due_ns;  /* not before; of a run that goes on */
	unsigned round;  /* of the list it was last seen in */
};
struct shelf {
	struct store_list runs;
	VEC(struct summary) summaries;
	unsigned round;
};
void shelf_done(struct shelf *s);
/* Looks into the folder again. */
int shelf_read(struct shelf *s, struct err *e);
/* Makes one headline that is missing, newest run first; at most SHELF_SHOWN runs are looked at. True: one
 * was made. *ret_next_ns: when there will be one to make, INT64_MAX: none. */
enum { SHELF_SHOWN = 200 };
bool shelf_summarise(struct shelf *s, int64_t now_ns, int64_t *ret_next_ns);
void shelf_json(const struct shelf *s, struct buf *out);

/* The run's file by its id, looked up in the folder of runs and nowhere else. */
int serve_find(const char *id, char *ret_path, size_t size, struct err *e);
/* {"live": true, "state": "going", "bytes": 1, "story": {...}}. 0 or -errno. */
int serve_story(const char *path, bool *ret_live, struct buf *out, struct err *e);

#endif
