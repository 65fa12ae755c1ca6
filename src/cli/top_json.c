/* SPDX-License-Identifier: MIT */
#include "cli/top_show.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "model/gpu_tag.h"

#include <math.h>

static void put_machine(struct json *j, const struct snap_machine *m)
{
	json_key_begin(j, "machine", '{');
	json_key_begin(j, "cpu", '{');
	json_key_num(j, "cores_used", m->cores_used);
	json_key_num(j, "cores_machine", m->cpus);
	json_key_num(j, "user_cores", m->user);
	json_key_num(j, "kernel_cores", m->kernel);
	json_key_num(j, "iowait_cores", m->iowait);
	json_key_num(j, "steal_cores", m->steal);
	json_end(j, '}');
	json_key_begin(j, "memory", '{');
	json_key_num(j, "used_bytes", m->memory_used);
	json_key_num(j, "total_bytes", m->memory_total);
	json_key_num(j, "swap_used_bytes", m->swap_used);
	json_end(j, '}');
	json_key_begin(j, "load", '{');
	json_key_num(j, "1m", m->load1);
	json_key_num(j, "5m", m->load5);
	json_key_num(j, "15m", m->load15);
	json_key_num(j, "running", m->running);
	json_end(j, '}');
	json_key_begin(j, "pressure", '{');
	json_key_num(j, "cpu", m->psi_cpu);
	json_key_num(j, "memory", m->psi_memory);
	json_key_num(j, "io", m->psi_io);
	json_end(j, '}');
	json_key_begin(j, "disks", '{');
	json_key_num(j, "read_bytes_per_s", m->disk_read);
	json_key_num(j, "written_bytes_per_s", m->disk_written);
	json_end(j, '}');
	json_key_begin(j, "network", '{');
	json_key_num(j, "received_bytes_per_s", m->net_rx);
	json_key_num(j, "sent_bytes_per_s", m->net_tx);
	json_end(j, '}');
	json_end(j, '}');
}

static void put_state(struct json *j, char state)
{
	char text[2] = { state, '\0' };

	if (state)
		json_key_str(j, "state", text);
}

static void put_thread(struct json *j, const struct snap_task *t)
{
	json_begin(j, '{');
	json_key_int(j, "tid", t->entity->key);
	json_key_str(j, "name", t->entity->name);
	json_key_num(j, "cores", t->cores);
	json_key_num(j, "run_delay_cores", t->run_delay);
	put_state(j, t->state);
	json_end(j, '}');
}

static void put_process(struct json *j, const struct snapshot *v, const struct snap_task *p)
{
	const struct entity *e = p->entity;

	json_begin(j, '{');
	json_key_int(j, "pid", e->key);
	json_key_str(j, "name", e->name);
	if (e->detail && e->detail[0])
		json_key_str(j, "command", e->detail);
	json_key_num(j, "cores", p->cores);
	json_key_num(j, "rss_bytes", p->rss);
	json_key_num(j, "pss_bytes", p->pss);
	json_key_num(j, "read_bytes_per_s", p->read);
	json_key_num(j, "written_bytes_per_s", p->written);
	if (!isnan(p->threads))
		json_key_int(j, "n_threads", (int64_t)p->threads);
	put_state(j, p->state);
	if (p->n_threads) {
		json_key_begin(j, "threads", '[');
		for (size_t i = 0; i < p->n_threads; i++)
			put_thread(j, &v->threads.v[p->first_thread + i]);
		json_end(j, ']');
	}
	json_end(j, '}');
}

static void put_job(struct json *j, const struct snap_job *job)
{
	if (!job->present)
		return;
	json_key_begin(j, "job", '{');
	json_key_num(j, "cores_used", job->cores);
	json_key_num(j, "cores_allowed", job->cores_allowed);
	json_key_num(j, "rss_bytes", job->rss);
	json_key_num(j, "processes", job->processes);
	json_key_num(j, "threads", job->threads);
	json_end(j, '}');
}

static void put_gpus(struct json *j, const struct snapshot *v)
{
	if (!v->gpus.n)
		return;
	json_key_begin(j, "gpus", '[');
	for (size_t i = 0; i < v->gpus.n; i++) {
		const struct snap_gpu *g = &v->gpus.v[i];
		int64_t key = g->entity->key;

		json_begin(j, '{');
		json_key_int(j, "index", g->whole ? g->whole->key : key);
		if (g->whole)
			json_key_int(j, "partition", key % GPU_PARTITION_KEY);
		json_key_str(j, "name", g->entity->name);
		json_key_bool(j, "simulated", g->simulated);
		json_key_num(j, "busy", g->busy);
		json_key_num(j, "memory_used_bytes", g->memory_used);
		json_key_num(j, "memory_total_bytes", g->memory_total);
		json_key_num(j, "power_w", g->power);
		json_key_num(j, "temperature_c", g->temperature);
		json_key_num(j, "job_memory_bytes", g->job_memory);
		json_key_num(j, "job_busy", g->job_busy);
		json_end(j, '}');
	}
	json_end(j, ']');
}

void top_put_json(const struct snapshot *v, size_t limit, struct buf *out)
{
	char time[40];
	struct json j;

	clock_iso(v->wall_ns, time, sizeof(time));
	json_init(&j, out, false);
	json_begin(&j, '{');
	json_key_str(&j, "schema", "spotter.top/1");
	json_key_str(&j, "time", time);
	json_key_num(&j, "interval_s", v->seconds);
	put_machine(&j, &v->machine);
	put_job(&j, &v->job);
	put_gpus(&j, v);
	json_key_int(&j, "n_processes", (int64_t)v->processes.n);
	json_key_begin(&j, "processes", '[');
	for (size_t i = 0; i < v->processes.n && i < limit; i++)
		put_process(&j, v, &v->processes.v[i]);
	json_end(&j, ']');
	json_end(&j, '}');
	buf_char(out, '\n');
}
