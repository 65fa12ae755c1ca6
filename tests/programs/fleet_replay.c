/* SPDX-License-Identifier: MIT
 *
 * A fleet of 64 nodes with 8 ranks each, replayed through the agent. Scenarios (tests/programs/fleet, language:
 * tests/unit/explain/scenario.h) are written to records second by second, as recorders would; agents follow these
 * records, judge them, read the environments of the processes and are given the frames of their machines. What they
 * then know goes out as bodies of remote_write, each behind its length (4 bytes, little-endian):
 *
 *	fleet_replay FOLDER END_S [all]     FOLDER: empty, for records and environments; 300 s, up to END_S
 *
 * Nodes on which the same happens are told of by one agent: the others have its series with node and ranks of their own.
 * `all`: every node has an agent. Ranks of the same number on nodes on which the same happens share a record in any case.
 *
 * What is planted, to be found:
 *	7001.0  nodes 0-31   rank 137 (node-17, GPU 1) is on a hot GPU
 *	7002.0  nodes 32-47  node-39 (ranks 56-63) has slow storage
 *	7003.0  nodes 48-55  hangs for 150 s: rank 21 (node-50) is in a checkpoint, all others wait for it
 *	7004.0  nodes 56-63  asks for the loss in each step
 *	7005.0  node-63      a notebook with two GPUs of its own that it never used
 */
#include "../unit/explain/scenario.h"
#include "agent/agent.h"
#include "agent/series.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/num.h"
#include "base/text.h"
#include "push/remote_write.h"
#include "record/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NODES = 64, GPUS = 8, LENGTH_S = 300, EVERY_S = 30, JUDGE_S = 25, NOTEBOOK_PID = 9000 };

/* Of agents and recorders, in the time of the scenarios: linked with --wrap=clock_mono_ns. */
static int64_t now_ns;
int64_t __wrap_clock_mono_ns(void);
int64_t __wrap_clock_mono_ns(void)
{
	return now_ns;
}

static const struct training {
	const char *job, *program;
	int first, nodes;
	const char *scene, *odd_scene;
	int odd_node,
	    odd_local; /* whose scene the odd one is; local -1: of all ranks of the node, node -1: none */
	double io_wait; /* of the odd node: share of time something waits for a disk */
} trainings[] = {
	{ "7001", "pretrain.py", 0, 32, "pretrain", "pretrain-hot", 17, 1, 0.01 },
	{ "7002", "vision.py", 32, 16, "vision", "vision-slow-storage", 39, -1, 0.70 },
	{ "7003", "speech.py", 48, 8, "speech", "speech-stuck", 50, 5, 0.05 },
	{ "7004", "ranking.py", 56, 8, "ranking", "", -1, -1, 0.01 },
};

/* A recorder of a rank. */
struct rec {
	const char *scene_name;
	int local;
	char path[512];
	struct scenario scene;
	struct record_writer *writer;
};

struct node {
	int number;
	const struct training *run;
	struct agent *agent; /* NULL: as node `like` */
	int like;
	struct scenario scene; /* of the machine */
};

struct fleet {
	const char *folder;
	double begin_s; /* since 1970 */
	VEC(struct rec *) recs;
	struct node nodes[NODES];
};

static void die(const char *what, const char *why)
{
	fprintf(stderr, "fleet_replay: %s: %s\n", what, why);
	exit(1);
}

static int pid_of(int local)
{
	return 100 + 1000 * local;
}

static bool is_odd(const struct node *n, int local)
{
	return n->number == n->run->odd_node &&
	       (local < 0 || n->run->odd_local < 0 || n->run->odd_local == local);
}

static void set_times(const struct fleet *f, struct scenario *s)
{
	s->run.started_wall_ns = (int64_t)(f->begin_s * 1e9);
	s->run.state = RUN_GOING;
}

/* The record of this rank; the same for all nodes on which it does the same. */
static const struct rec *rec_of(struct fleet *f, const struct node *n, int local)
{
	const char *name = is_odd(n, local) ? n->run->odd_scene : n->run->scene;
	struct rec *r;
	struct err e = { 0 };
	char path[256];

	for (size_t i = 0; i < f->recs.n; i++)
		if (strcmp(f->recs.v[i]->scene_name, name) == 0 && f->recs.v[i]->local == local)
			return f->recs.v[i];
	r = calloc(1, sizeof(*r));
	if (!r || !vec_reserve(&f->recs, f->recs.n + 1))
		die(name, "out of memory");
	*vec_push(&f->recs) = r;
	r->scene_name = name;
	r->local = local;
	snprintf(path, sizeof(path), "%s/%s.scn", FLEET_SCENES, name);
	scenario_load(&r->scene, path);
	set_times(f, &r->scene);
	/* Eight of them on a machine: numbers of processes, and which GPU. */
	for (size_t i = 0; i < r->scene.entities.n; i++) {
		struct scenario_entity *x = &r->scene.entities.v[i];

		if (x->kind == ENTITY_GPU)
			x->key += local;
		else if (x->key > 0)
			x->key += 1000 * local;
	}
	r->scene.run.pid = pid_of(local);
	snprintf(r->scene.run.id, sizeof(r->scene.run.id), "20260101-120000-%04zx", f->recs.n);
	snprintf(r->path, sizeof(r->path), "%s/%s-%d.spot", f->folder, name, local);
	if (record_create(r->path, &r->scene.run,
			  &(struct record_options){ .sync_every_ns = 120 * NS_PER_S }, &r->writer,
			  &e) < 0)
		die(r->path, e.text);
	return r;
}

static void make_folder(const char *path)
{
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		die(path, strerror(errno));
}

static void write_file(const char *folder, const char *name, const char *text, size_t n)
{
	char path[600];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || io_write_all(fd, text, n) < 0)
		die(path, strerror(errno));
	close(fd);
}

/* What /proc/PID of a process has: as srun starts a rank (-1: no rank) of this many. */
static void make_process(const char *root, int pid, const char *job, int rank, int local, int world)
{
	static const char maps[] =
	    "7f00 r-xp /usr/lib/python3/dist-packages/torch/lib/libtorch_cpu.so\n";
	struct buf text = { 0 };
	char folder[560];

	buf_printf(&text, "HOME=/home/u%cSLURM_JOB_ID=%s%cSLURM_STEP_ID=0%c", 0, job, 0, 0);
	if (rank >= 0)
		buf_printf(&text, "SLURM_PROCID=%d%cSLURM_LOCALID=%d%cSLURM_NTASKS=%d%c", rank, 0,
			   local, 0, world, 0);
	snprintf(folder, sizeof(folder), "%s/proc/%d", root, pid);
	make_folder(folder);
	write_file(folder, "environ", buf_text(&text), text.len);
	write_file(folder, "maps", maps, sizeof(maps) - 1);
	buf_done(&text);
}

/* entity 200 + index: a process with a GPU 50 + index of its own. */
static void put_process(struct buf *text, int index, int pid, const char *name, double busy)
{
	buf_printf(text,
		   "process %d %d python3 command %s\nproc.cpu_user@%d 0 250\n"
		   "proc.cpu_system@%d 0 12\nproc.rss@%d 9e9\nproc.read_bytes@%d 0 12e6\n"
		   "proc.written_bytes@%d 0 1e6\n",
		   200 + index, pid, name, 200 + index, 200 + index, 200 + index, 200 + index,
		   200 + index);
	buf_printf(text,
		   "gpu %d %d H100\ngpu.busy@%d %g\ngpu.memory_used@%d 62e9\n"
		   "gpuproc %d %d %d python3\ngpu_process.memory@%d 61e9\ngpu_process.busy@%d %g\n",
		   50 + index, index, 50 + index, busy, 50 + index, 70 + index, 50 + index, pid,
		   70 + index, 70 + index, busy);
}

/* The machine as its agent measures it. */
static void machine_text(const struct node *n, struct buf *text)
{
	double io = is_odd(n, -1) ? n->run->io_wait : 0.01;

	buf_printf(text,
		   "run %d\nmachine 96 2\nmem.total 2e12\nmem.available 1.6e12\ncpu.online 96\n"
		   "cpu.user 1000 3000\ncpu.system 100 140\ncpu.idle 90000 116000\ncpu.iowait 5\n"
		   "psi.io.some 10 %g\npsi.cpu.some 1 2\npsi.memory.some 1 1.5\n",
		   LENGTH_S, 10 + io * LENGTH_S);
	for (int i = 0; i < GPUS; i++) {
		bool hot = is_odd(n, i) && strstr(n->run->odd_scene, "-hot");
		int gpu = 50 + i;

		put_process(text, i, pid_of(i), n->run->program, 0.9);
		buf_printf(text,
			   "gpu.clock_sm@%d %g\ngpu.held.heat@%d 3 %g\ngpu.held.power@%d 40 46\n"
			   "gpu.temperature@%d %d\ngpu.power@%d 600\n",
			   gpu, hot ? 1.2e9 : 1.905e9, gpu, hot ? 3 + 0.97 * LENGTH_S : 3.3, gpu,
			   gpu, hot ? 91 : 62, gpu);
	}
	if (n->number == NODES - 1)
		for (int i = 0; i < 2; i++)
			put_process(text, GPUS + i, NOTEBOOK_PID + i, "ipykernel_launcher", 0);
}

static void open_agent(struct fleet *f, struct node *n)
{
	struct agent_options o = { .replay = true, .once = true, .judge_ns = JUDGE_S * NS_PER_S };
	char root[512], proc[560], name[32];
	struct buf text = { 0 };
	struct err e = { 0 };

	snprintf(name, sizeof(name), "node-%02d", n->number);
	snprintf(root, sizeof(root), "%s/%s", f->folder, name);
	snprintf(proc, sizeof(proc), "%s/proc", root);
	make_folder(root);
	make_folder(proc);
	for (int i = 0; i < GPUS; i++)
		make_process(root, pid_of(i), n->run->job, (n->number - n->run->first) * GPUS + i,
			     i, n->run->nodes * GPUS);
	for (int i = 0; n->number == NODES - 1 && i < 2; i++)
		make_process(root, NOTEBOOK_PID + i, "7005", -1, -1, -1);
	machine_text(n, &text);
	scenario_parse(&n->scene, buf_text(&text));
	buf_done(&text);
	n->scene.run.hz = 1.0 / EVERY_S;
	set_times(f, &n->scene);
	o.root = root;
	o.node = name;
	if (agent_open(&o, &n->agent, &e) < 0)
		die(root, e.text);
	for (int i = 0; i < GPUS; i++)
		if (!agent_follow(n->agent, rec_of(f, n, i)->path))
			die(root, "too many records");
}

static void open_fleet(struct fleet *f, bool all)
{
	for (int i = 0; i < NODES; i++) {
		struct node *n = &f->nodes[i];
		bool alone = all || i == NODES - 1;
		size_t run = 0;

		while (i >= trainings[run].first + trainings[run].nodes)
			run++;
		n->number = n->like = i;
		n->run = &trainings[run];
		alone |= is_odd(n, -1);
		for (int k = n->run->first; !alone && k < i && n->like == i; k++)
			if (f->nodes[k].agent && !is_odd(&f->nodes[k], -1))
				n->like = k;
		if (n->like == i)
			open_agent(f, n);
	}
}

/* What an agent tells, said by a node on which the same happens. */
struct telling {
	struct remote_write *to;
	char node[32];
	int shift; /* of ranks */
};

static bool tell(const struct series_sample *s, void *arg)
{
	struct telling *t = arg;
	struct series_sample own = *s;
	char rank[16];
	int64_t number;

	for (size_t i = 0; i < own.n_labels; i++) {
		if (strcmp(own.labels[i].name, "node") == 0)
			own.labels[i].value = t->node;
		if (strcmp(own.labels[i].name, "rank") != 0 ||
		    !num_parse_i64(own.labels[i].value, &number))
			continue;
		snprintf(rank, sizeof(rank), "%d", (int)number + t->shift);
		own.labels[i].value = rank;
	}
	remote_write_add(t->to, &own);
	return true;
}

static void tell_all(const struct agent_view *v, void *arg)
{
	agent_series_each(v, tell, arg);
}

static void send_all(struct fleet *f, struct remote_write *w, struct buf *out)
{
	for (int i = 0; i < NODES; i++) {
		const struct node *n = &f->nodes[i];
		struct telling t = { .to = w, .shift = (i - n->like) * GPUS };
		uint32_t size;

		snprintf(t.node, sizeof(t.node), "node-%02d", i);
		agent_with_view(f->nodes[n->like].agent, tell_all, &t);
		buf_reset(out);
		remote_write_end(w, out);
		size = (uint32_t)out->len;
		if (!buf_ok(out) || io_write_all(STDOUT_FILENO, &size, sizeof(size)) < 0 ||
		    io_write_all(STDOUT_FILENO, out->data, out->len) < 0)
			die("stdout", strerror(errno));
	}
}

/* Recorders write this second; agents look when it is time. */
static void play(struct fleet *f, unsigned second, struct frame *frame)
{
	for (size_t i = 0; i < f->recs.n; i++) {
		struct rec *r = f->recs.v[i];

		scenario_frame(&r->scene, second, frame);
		if (record_frame(r->writer, frame) < 0 ||
		    (second % EVERY_S == 0 && record_flush(r->writer) < 0))
			die(r->path, "cannot be written");
	}
	for (int i = 0; second % EVERY_S == 0 && i < NODES; i++) {
		struct node *n = &f->nodes[i];

		if (!n->agent)
			continue;
		agent_look_at_records(n->agent);
		scenario_frame(&n->scene, second / EVERY_S, frame);
		if (agent_replay(n->agent, frame) < 0)
			die("an agent", "cannot take a frame");
	}
}

static void close_fleet(struct fleet *f)
{
	for (int i = 0; i < NODES; i++) {
		agent_close(f->nodes[i].agent);
		scenario_done(&f->nodes[i].scene);
	}
	for (size_t i = 0; i < f->recs.n; i++) {
		record_abandon(f->recs.v[i]->writer);
		scenario_done(&f->recs.v[i]->scene);
		free(f->recs.v[i]);
	}
	vec_done(&f->recs);
}

int main(int argc, char **argv)
{
	struct fleet *f = calloc(1, sizeof(*f));
	struct remote_write w = { 0 };
	struct frame frame = { 0 };
	struct buf out = { 0 };
	double end;

	if (!f || argc < 3 || argc > 4 || !num_parse_double(argv[2], &end) ||
	    (argc == 4 && strcmp(argv[3], "all") != 0)) {
		fprintf(stderr, "usage: fleet_replay FOLDER END_S [all]\n");
		return 2;
	}
	f->folder = argv[1];
	f->begin_s = end - LENGTH_S;
	open_fleet(f, argc == 4);
	for (unsigned second = 0; second <= LENGTH_S; second++) {
		now_ns = f->recs.v[0]->scene.run.started_mono_ns + second * NS_PER_S;
		play(f, second, &frame);
		if (second % EVERY_S == 0)
			send_all(f, &w, &out);
	}
	close_fleet(f);
	remote_write_done(&w);
	frame_done(&frame);
	buf_done(&out);
	free(f);
	return 0;
}
