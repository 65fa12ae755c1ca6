/* SPDX-License-Identifier: MIT
 *
 * A fleet of 64 nodes with 8 ranks each as its agents would tell of it: scenes become views of the agent, and its own code makes
 * series of them. Written as bodies of remote_write, each behind its length (4 bytes, little-endian):
 *
 *	fleet_feed FROM_S TO_S EVERY_S [lean|full [NODES]]    lean: without what any machine has, to be quick; NODES:
 *	                                                      so many of the 64, or which: 17,39,63
 *	fleet_feed text NODE TIME_S                  one node as /metrics would show it
 *
 * What is planted, to be found:
 *	7001.0  nodes 0-31   rank 137 (node-17, GPU 1) is throttled by heat: 1.55 times the others' own work
 *	7002.0  nodes 32-47  node-39 has slow storage: all its ranks (56-63) wait for data, and its verdict says why
 *	7003.0  nodes 48-55  hangs since 200 s before the end: rank 21 (node-50) is in a checkpoint, all others wait for it
 *	7004.0  nodes 56-63  healthy but for sync_points, 12 %
 *	7005.0  node-63      a notebook with two GPUs of its own that it never used
 * and, in full: critical errors of GPU 2 of node-63, whose agent left three ranks out
 */
#include "agent/series.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/num.h"
#include "base/text.h"
#include "push/remote_write.h"
#include "sink/exposition.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { NODES = 64, GPUS = 8, RUNS = 4, LIVED_S = 7200, HUNG_S = 200 };

static const struct scene {
	const char *id, *name;
	int first, nodes;
	double own_s, step_s;
} scenes[RUNS] = {
	{ "7001.0", "pretrain.py", 0, 32, 0.400, 0.630 },
	{ "7002.0", "vision.py", 32, 16, 0.250, 0.420 },
	{ "7003.0", "speech.py", 48, 8, 0.500, 0.510 },
	{ "7004.0", "ranking.py", 56, 8, 0.100, 0.110 },
};

/* The same for the same: no two ranks are quite alike. -1..1 */
static double noise(unsigned a, unsigned b)
{
	unsigned x = a * 2654435761u ^ b * 40503u;

	x ^= x >> 15;
	x *= 0x2c1b3c6du;
	x ^= x >> 12;
	return (double)(x % 2001) / 1000 - 1;
}

struct moment {
	double now, end; /* seconds since 1970 */
	int node;
	const struct scene *scene;
	int run; /* number of the scene */
};

static int rank_of(const struct moment *m, int local)
{
	return (m->node - m->scene->first) * GPUS + local;
}

static bool throttled(const struct moment *m, int local)
{
	return m->run == 0 && rank_of(m, local) == 137;
}

static bool slow_storage(const struct moment *m)
{
	return m->run == 1 && m->node == 39;
}

static bool stuck(const struct moment *m, int local)
{
	return m->run == 2 && rank_of(m, local) == 21;
}

/* rank -1: CPU time, of the run on this node. */
static void put_ledger(struct agent_view *v, const struct moment *m, int rank, const char *state,
		       double seconds)
{
	struct view_ledger *l = vec_push(&v->ledger);

	*l = (struct view_ledger){ .rank = rank,
				   .ledger = rank < 0 ? "cpu" : "time",
				   .seconds = seconds,
				   .start_ms = (int64_t)((m->end - LIVED_S) * 1000) };
	text_copy(l->state, sizeof(l->state), state);
}

/* How a rank's seconds are spent: data, own work on the GPU, the wait for the others. */
static void put_steps(struct agent_view *v, const struct moment *m, struct view_rank *r, int local)
{
	double begin = m->end - LIVED_S, hang = m->end - HUNG_S, last = m->now, after = 0;
	double own = m->scene->own_s * (1 + 0.01 * noise((unsigned)r->rank, (unsigned)m->run));
	double data = 0.02 * own, comm;
	uint64_t steps;
	size_t at = 0;

	if (throttled(m, local))
		own *= 1.55;
	if (slow_storage(m)) {
		data += 0.150 * (1 + 0.02 * noise((unsigned)local, 7));
		own += data;
	}
	if (m->run == 2 && m->now > hang) {
		last = hang;
		after = m->now - hang;
	}
	comm = fmax(0.001, m->scene->step_s - own);
	steps = (uint64_t)((last - begin) / m->scene->step_s);
	last = begin + (double)steps * m->scene->step_s;
	if (stuck(m, local) && after > 0)
		steps--;
	r->has_steps = true;
	r->steps = (struct view_steps){ .count = steps,
					.timed = steps,
					.seconds = (double)steps * m->scene->step_s,
					.data_wait = (double)steps * data,
					.loss = 2.5 / (1 + log((double)steps + 1)),
					.last_s = last,
					.comm_wait = (double)steps * comm,
					.own_work = (double)steps * (m->scene->step_s - comm) };
	while (at < STEP_BOUNDS && m->scene->step_s > step_bounds[at])
		at++;
	r->steps.bucket[at] = steps;
	put_ledger(v, m, r->rank, "data_wait", (double)steps * data);
	put_ledger(v, m, r->rank, "gpu_wait", (double)steps * (own - data) * 0.9);
	put_ledger(v, m, r->rank, "dispatch", (double)steps * (own - data) * 0.1);
	put_ledger(v, m, r->rank, "comm_wait",
		   (double)steps * comm + (stuck(m, local) ? 0 : after));
	put_ledger(v, m, r->rank, "io", 3 + (stuck(m, local) ? after : 0));
	put_ledger(v, m, r->rank, "cpu_queue", 0.002 * (m->now - begin));
}

static size_t put_gpu(struct agent_view *v, const struct moment *m, int index)
{
	struct view_thing *t = vec_push(&v->things);

	t->kind = ENTITY_GPU;
	snprintf(t->gpu, sizeof(t->gpu), "%d", index);
	/* One node has a driver that gives no uuid. */
	if (m->node != NODES - 2)
		snprintf(t->uuid, sizeof(t->uuid), "GPU-%08x-%04x", 0x1000u + (unsigned)m->node,
			 (unsigned)index);
	text_copy(t->name, sizeof(t->name), "NVIDIA H100 80GB HBM3");
	text_copy(t->vendor, sizeof(t->vendor), "nvidia");
	snprintf(t->pci, sizeof(t->pci), "0000:%02x:00.0", 0x10 + index);
	return v->things.n - 1;
}

static void put_value(struct agent_view *v, enum metric_id metric, size_t thing, double value)
{
	struct view_value *x = vec_push(&v->values);

	*x = (struct view_value){ .metric = metric, .thing = thing, .value = value };
}

static void put_rank(struct agent_view *v, const struct moment *m, int local)
{
	struct view_rank *r = vec_push(&v->ranks);
	size_t gpu = put_gpu(v, m, local);
	double lived = m->now - (m->end - LIVED_S), heat = throttled(m, local) ? 0.97 : 0.001;
	bool idle = m->run == 2 && m->now > m->end - HUNG_S;

	*r = (struct view_rank){ .run = 0,
				 .rank = rank_of(m, local),
				 .local_rank = local,
				 .start_ms = (int64_t)((m->end - LIVED_S) * 1000) };
	for (int i = 0; i < VIEW_ROLES; i++)
		r->use[i] = (struct view_role_use){ 0, NAN, NAN, NAN, NAN, NAN };
	r->use[VIEW_TRAINER] =
	    (struct view_role_use){ 1, 0.9 * lived, 0.1 * lived, 9e9, 1e6 * lived, 1e5 * lived };
	r->use[VIEW_DATALOADER] =
	    (struct view_role_use){ 8, 4.2 * lived, 0.4 * lived, 3e10, 4e7 * lived, 0 };
	put_steps(v, m, r, local);
	*vec_push(&v->holds) = (struct view_hold){ v->ranks.n - 1, gpu, 6.1e10, idle ? 0 : 0.93 };
	put_value(v, M_GPU_BUSY, gpu,
		  idle ? 0.02 : 0.93 + 0.05 * noise((unsigned)m->node, (unsigned)m->now));
	put_value(v, M_GPU_MEM_USED, gpu, 6.2e10);
	put_value(v, M_GPU_CLOCK_SM, gpu,
		  (throttled(m, local) ? 1.2e9 : 1.98e9) +
		      5e6 * noise((unsigned)local, (unsigned)m->now));
	put_value(v, M_GPU_HELD_HEAT, gpu, 3 + heat * lived);
	put_value(v, M_GPU_HELD_POWER, gpu, 40 + 0.02 * lived);
}

/* A notebook that somebody went to lunch from: two GPUs nobody else has. */
static void put_notebook(struct agent_view *v, const struct moment *m)
{
	struct view_run *run = vec_push(&v->runs);
	struct view_rank *r = vec_push(&v->ranks);

	*run = (struct view_run){ .source = SOURCE_PROCESS,
				  .framework = "torch",
				  .world = -1,
				  .up = true,
				  .start_s = m->end - LIVED_S };
	text_copy(run->id, sizeof(run->id), "7005.0");
	text_copy(run->name, sizeof(run->name), "ipykernel_launcher");
	*r = (struct view_rank){ .run = v->runs.n - 1, .rank = -1, .local_rank = -1 };
	for (int i = 0; i < VIEW_ROLES; i++)
		r->use[i] = (struct view_role_use){ 0, NAN, NAN, NAN, NAN, NAN };
	for (int i = 0; i < 2; i++) {
		size_t gpu = put_gpu(v, m, GPUS + i);

		*vec_push(&v->holds) = (struct view_hold){ v->ranks.n - 1, gpu, 2.4e10, 0 };
		put_value(v, M_GPU_BUSY, gpu, 0);
	}
}

static void put_verdict(struct agent_view *v, const struct moment *m)
{
	struct view_finding *f = vec_push(&v->findings);

	*f = (struct view_finding){
		.cause = "gpu_bound", .family = "", .cost = NAN, .confidence = NAN
	};
	if (slow_storage(m))
		*f = (struct view_finding){
			.cause = "slow_storage", .family = "input", .cost = 0.36, .confidence = 0.9
		};
	else if (m->run == 3)
		*f = (struct view_finding){ .cause = "sync_points",
					    .family = "host-device",
					    .cost = 0.12,
					    .confidence = 0.8 };
}

/* GPU 2 of the last node had a second critical error, 100 s before the end. GPUs are the things behind the host. */
static double xids(const struct moment *m, size_t thing)
{
	return m->node != NODES - 1 || thing != 3 ? 0 : m->now > m->end - 100 ? 2 : 1;
}

/* What any machine has: a number for everything the vocabulary names, so that the count of series is that of a node. */
static void put_machine(struct agent_view *v, const struct moment *m, size_t gpus)
{
	static const struct {
		enum entity_kind kind;
		const char *device;
	} things[] = { { ENTITY_SELF, "" },         { ENTITY_DISK, "nvme0n1" },
		       { ENTITY_DISK, "nvme1n1" },  { ENTITY_NIC, "eth0" },
		       { ENTITY_NIC, "ib0" },       { ENTITY_MOUNT, "/" },
		       { ENTITY_MOUNT, "/dev/shm" } };
	double lived = m->now - (m->end - LIVED_S);

	for (size_t i = 0; i < ARRAY_LEN(things); i++) {
		struct view_thing *t = vec_push(&v->things);

		t->kind = things[i].kind;
		text_copy(t->device, sizeof(t->device), things[i].device);
	}
	for (size_t t = 0; t < v->things.n; t++)
		for (int id = 1; id < METRICS; id++) {
			/* Time that something waited is less than the time there was. */
			double size = metrics[id].unit == UNIT_SECONDS
					  ? 0.05
					  : 1 + 1000 * fabs(noise((unsigned)id, (unsigned)m->node));
			bool told =
			    t >= 1 && t <= gpus &&
			    (id == M_GPU_BUSY || id == M_GPU_MEM_USED || id == M_GPU_CLOCK_SM ||
			     id == M_GPU_HELD_HEAT || id == M_GPU_HELD_POWER);

			if (metrics[id].entity != v->things.v[t].kind ||
			    !metrics[id].prometheus[0] || told || id == M_PSI_IO_SOME)
				continue;
			if (id == M_GPU_XIDS)
				size = xids(m, t) / lived;
			put_value(
			    v, (enum metric_id)id, t,
			    metrics[id].kind == KIND_COUNTER
				? floor(size * lived + 1e-6)
				: floor(size * (1 + 0.1 * noise((unsigned)id, (unsigned)m->now))));
		}
}

static void fill(struct agent_view *v, struct moment *m, bool lean)
{
	double lived = m->now - (m->end - LIVED_S);
	struct view_run *run;
	struct view_thing *host;
	size_t gpus;

	agent_view_reset(v);
	m->run = 0;
	while (m->run + 1 < RUNS && m->node >= scenes[m->run + 1].first)
		m->run++;
	m->scene = &scenes[m->run];
	snprintf(v->node, sizeof(v->node), "node-%02d", m->node);
	text_copy(v->version, sizeof(v->version), "0.1.0");
	text_copy(v->machine.kernel, sizeof(v->machine.kernel), "6.1.0-18-amd64");
	v->time_ms = (int64_t)(m->now * 1000);
	v->start_ms = (int64_t)((m->end - LIVED_S) * 1000);
	v->unreadable = v->records = 0;
	v->dropped_ranks = m->node == NODES - 1 ? 3 : 0;
	run = vec_push(&v->runs);
	*run = (struct view_run){ .source = SOURCE_SLURM,
				  .framework = "torch",
				  .world = m->scene->nodes * GPUS,
				  .up = true,
				  .start_s = m->end - LIVED_S };
	text_copy(run->id, sizeof(run->id), m->scene->id);
	text_copy(run->name, sizeof(run->name), m->scene->name);
	host = vec_push(&v->things);
	host->kind = ENTITY_HOST;
	put_value(v, M_PSI_IO_SOME, 0, (slow_storage(m) ? 0.7 : 0.01) * lived);
	for (int i = 0; i < GPUS; i++)
		put_rank(v, m, i);
	put_ledger(v, m, -1, "python", GPUS * 0.6 * lived);
	put_ledger(v, m, -1, "loading", GPUS * 4.6 * lived);
	put_verdict(v, m);
	if (m->node == NODES - 1)
		put_notebook(v, m);
	gpus = v->things.n - 1;
	if (!lean)
		put_machine(v, m, gpus);
}

static bool add(const struct series_sample *s, void *arg)
{
	remote_write_add(arg, s);
	return true;
}

static int feed(double from, double to, double every, bool lean, const bool wanted[NODES])
{
	struct agent_view v = { 0 };
	struct remote_write w = { 0 };
	struct buf out = { 0 };
	int r = 0;

	for (double now = from; r == 0 && now <= to + 1e-6; now += every)
		for (int node = 0; r == 0 && node < NODES; node++) {
			struct moment m = { .now = now, .end = to, .node = node };
			uint32_t n;

			if (!wanted[node])
				continue;
			fill(&v, &m, lean);
			agent_series_each(&v, add, &w);
			buf_reset(&out);
			remote_write_end(&w, &out);
			n = (uint32_t)out.len;
			r = buf_ok(&out) ? io_write_all(STDOUT_FILENO, &n, sizeof(n)) : -1;
			if (r == 0)
				r = io_write_all(STDOUT_FILENO, out.data, out.len);
		}
	remote_write_done(&w);
	buf_done(&out);
	agent_view_done(&v);
	return r < 0;
}

static int show(int node, double now)
{
	struct moment m = { .now = now, .end = now, .node = node };
	auto_done(buf) struct buf out = { 0 };
	struct agent_view v = { 0 };
	struct exposition x;

	fill(&v, &m, false);
	exposition_begin(&x, &out, EXPOSITION_TEXT);
	agent_series_each(&v, exposition_sample, &x);
	exposition_end(&x);
	agent_view_done(&v);
	return io_write_all(STDOUT_FILENO, buf_text(&out), out.len) < 0;
}

/* "4": the first four; "17,39": those two. */
static bool parse_nodes(const char *text, bool wanted[NODES])
{
	bool list = strchr(text, ',') != NULL;
	int64_t node;

	for (const char *p = text;; p++) {
		size_t n = strcspn(p, ",");
		char word[16];

		if (n >= sizeof(word))
			return false;
		memcpy(word, p, n);
		word[n] = '\0';
		if (!num_parse_i64(word, &node) || node < 0 || node >= NODES + !list)
			return false;
		for (int i = 0; !list && i < node; i++)
			wanted[i] = true;
		if (list)
			wanted[node] = true;
		p += n;
		if (!*p)
			return true;
	}
}

int main(int argc, char **argv)
{
	bool wanted[NODES] = { false };
	double a, b, c;
	int64_t node;

	if (argc == 4 && strcmp(argv[1], "text") == 0 && num_parse_i64(argv[2], &node) &&
	    num_parse_double(argv[3], &a) && node >= 0 && node < NODES)
		return show((int)node, a);
	if (argc >= 4 && argc <= 6 && num_parse_double(argv[1], &a) &&
	    num_parse_double(argv[2], &b) && num_parse_double(argv[3], &c) && c > 0 &&
	    parse_nodes(argc > 5 ? argv[5] : "64", wanted))
		return feed(a, b, c, argc > 4 && strcmp(argv[4], "lean") == 0, wanted);
	fprintf(stderr,
		"usage: fleet_feed FROM_S TO_S EVERY_S [lean|full [NODES]] | text NODE TIME_S\n");
	return 2;
}
