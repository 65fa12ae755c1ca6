/* SPDX-License-Identifier: MIT
 *
 * What the agent knows of each process beside its figures: its environment, read once and again after an exec; the framework
 * it has loaded, looked for ever more rarely; and of recorders of Spotter the file they write. All of it is read only,
 * none of it stops or slows the process.
 */
#ifndef SPOTTER_AGENT_NOTES_H
#define SPOTTER_AGENT_NOTES_H

#include "agent/environ.h"
#include "agent/world.h"
#include "collect/host.h"

struct records;

enum note_counter { NOTE_USER, NOTE_SYSTEM, NOTE_READ, NOTE_WRITTEN, NOTE_COUNTERS };

#define NO_UID ((uid_t)-1)

struct note {
	uint32_t id; /* entity */
	int64_t pid;
	uid_t uid; /* NO_UID: not known */
	uint64_t identity;
	bool asked;  /* its environment was */
	bool hidden; /* ...and may not be read */
	struct job_env env;
	const char *framework; /* NULL: none seen */
	bool changed;          /* what is loaded may not be what it was */
	int64_t maps_due_ns, maps_wait_ns;
	int64_t files_due_ns, files_wait_ns; /* of a recorder; 0: done */
	bool gpu;                            /* this tick */
	uint64_t record;                     /* serial of the record it is the program of, 0 */
	char record_id[40];
	int32_t rank_hint;              /* as it marks steps with, -1 */
	int64_t counted[NOTE_COUNTERS]; /* raw figures that were added to its rank */
};

struct notes {
	const struct host *host;
	uint64_t boot; /* of this machine, as a number */
	VEC(struct note) v;
	struct map by_id;
	struct map by_pid;
};

void notes_open(struct notes *n, const struct host *host);
/* After world_frame(f). records NULL: nobody follows any. 0 or -ENOMEM. */
int notes_tick(struct notes *n, const struct world *w, const struct frame *f,
	       struct records *records);
struct note *note_of_pid(const struct notes *n, int64_t pid); /* NULL */
struct note *note_of(const struct notes *n, uint32_t entity); /* NULL */
size_t notes_hidden(const struct notes *n);
void notes_done(struct notes *n);

#endif
