/* SPDX-License-Identifier: MIT
 *
 * Where the data comes from: a file system of the network, or a page cache that is too small for it. And what
 * is known of GPUs besides: how full the fullest was at the end, and whether its matrix units work.
 */
#include "explain/fact.h"
#include "explain/scene.h"

#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double page_bytes = 4096;
static const int64_t end_ns = 10000000000; /* "at the end" for the memory of a GPU */

/* File systems whose data is on another machine, or handed out by a program: by the first word of what is
 * recorded of a mount ("nfs4 on /data from server:/export"). */
static bool is_network(const char *detail)
{
	static const char *const types[] = { "nfs",    "nfs4",   "cifs",   "smb3",  "smbfs",
					     "lustre", "gpfs",   "beegfs", "ceph",  "glusterfs",
					     "9p",     "afs",    "ocfs2",  "gfs2",  "orangefs",
					     "pvfs2",  "wekafs", "daos",   "panfs", "virtiofs",
					     "fuse.*", "fuse",   "ncpfs",  "coda",  "davfs" };
	size_t n = strcspn(detail, " ");

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		size_t len = strlen(types[i]);
		bool begins = types[i][len - 1] == '*';

		if (begins ? n >= len && strncmp(detail, types[i], len - 1) == 0
			   : n == len && strncmp(detail, types[i], n) == 0)
			return true;
	}
	return false;
}

/* Mounts that are watched for their data: not those of scratch files. */
static void network(const struct scene *s, struct facts *f)
{
	const struct entity_table *t = window_entities(s->whole);

	fact_absent(f, FACT_DATA_NETWORK, "on which file system the data lies is not recorded");
	for (size_t i = 0; i < t->rows.n; i++) {
		const struct entity *e = &t->rows.v[i];

		if (e->kind != ENTITY_MOUNT || !e->name || !e->detail ||
		    strcmp(e->name, "/dev/shm") == 0 || strcmp(e->name, "/tmp") == 0 ||
		    !is_network(e->detail))
			continue;
		fact_set(f, FACT_DATA_NETWORK, 1);
		fact_set_subject(f, FACT_DATA_NETWORK, e->id, e->detail);
		return;
	}
}

static void reread(struct facts *f)
{
	double refaults, fetched;

	if (!fact_value(f, FACT_LOAD_FETCHED, &fetched))
		fact_absent_like(f, FACT_DATA_REREAD, FACT_LOAD_FETCHED);
	else if (!fact_value(f, FACT_PRESSURE_REFAULTS, &refaults))
		fact_absent_like(f, FACT_DATA_REREAD, FACT_PRESSURE_REFAULTS);
	else
		fact_set(f, FACT_DATA_REREAD,
			 fetched > 0 ? fmin(1, refaults * page_bytes / fetched) : 0);
}

static void last_of_gpu(const struct scene *s, struct facts *f)
{
	const struct member *m = scene_member(s, s->main_proc);
	struct window w = *s->whole;
	double room, most;

	if (!f->v[FACT_GPU_FILL].known) {
		fact_absent_like(f, FACT_GPU_END_FILL, FACT_GPU_FILL);
		return;
	}
	if (m && m->gone_ns && m->gone_ns < w.to_ns)
		w.to_ns = m->gone_ns;
	if (w.to_ns - w.from_ns > end_ns)
		w.from_ns = w.to_ns - end_ns;
	if (!f->v[FACT_GPU_FILL].subject)
		fact_set(f, FACT_GPU_END_FILL, 0);
	else if (fact_value(f, FACT_GPU_FILL_ROOM, &room) && room > 0 &&
		 window_max(&w, M_GPU_MEM_USED, f->v[FACT_GPU_FILL].subject, &most))
		fact_set(f, FACT_GPU_END_FILL, most / room);
	else
		fact_absent(f, FACT_GPU_END_FILL, "%s at the end: %s", metrics[M_GPU_MEM_USED].name,
			    window_why_absent(&w, M_GPU_MEM_USED, f->v[FACT_GPU_FILL].subject));
	if (f->v[FACT_GPU_END_FILL].known)
		fact_set_subject(f, FACT_GPU_END_FILL, f->v[FACT_GPU_FILL].subject,
				 f->v[FACT_GPU_FILL].text);
}

static void matrix_units(const struct scene *s, struct facts *f)
{
	uint32_t id = f->v[FACT_GPU_BUSY].subject;
	double v;

	if (!f->v[FACT_GPU_BUSY].known)
		fact_absent_like(f, FACT_GPU_TENSOR, FACT_GPU_BUSY);
	else if (id && window_mean(&s->steady, M_GPU_TENSOR_ACTIVE, id, &v))
		fact_set(f, FACT_GPU_TENSOR, v);
	else
		fact_absent(f, FACT_GPU_TENSOR, "%s: %s", metrics[M_GPU_TENSOR_ACTIVE].name,
			    id ? window_why_absent(&s->steady, M_GPU_TENSOR_ACTIVE, id)
			       : "the job uses no GPU");
}

static void compute(const struct scene *s, struct facts *f)
{
	network(s, f);
	reread(f);
	last_of_gpu(s, f);
	matrix_units(s, f);
}

const struct fact_source origin_facts = { "origin", compute };
