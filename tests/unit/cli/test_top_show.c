/* SPDX-License-Identifier: MIT
 *
 * Two ticks of a made-up machine through the real history: what `top` says about them is known.
 */
#include "../unit.h"

#include "base/auto.h"
#include "base/buf.h"
#include "cli/command.h"
#include "cli/top_show.h"
#include "model/history.h"

#include <math.h>

#define T0 1000000000000ll
#define T1 (T0 + 2000000000ll)

static void born(struct frame *f, uint32_t id, enum entity_kind kind, uint32_t parent, int64_t key,
		 const char *name)
{
	frame_life(f,
		   &(struct life){
		       .change = LIFE_BORN, .id = id, .kind = kind, .parent = parent, .key = key },
		   name, kind == ENTITY_PROC ? "run \033[31mred" : "");
}

/* Busy process 16, idle process 17 (larger), threads of 16; a disk under a stacked one. */
static struct history *make(struct frame *f)
{
	struct run_info run = { .started_mono_ns = T0 };
	struct history *h = history_new(&run, 8);

	frame_begin(f, T0, 1700000000000000000ll);
	born(f, ID_HOST, ENTITY_HOST, 0, 0, "machine");
	born(f, ID_JOB, ENTITY_JOB, 0, 0, "job");
	born(f, 16, ENTITY_PROC, 0, 100, "busy");
	born(f, 17, ENTITY_PROC, 0, 101, "idle");
	born(f, 18, ENTITY_THREAD, 16, 100, "busy");
	born(f, 19, ENTITY_THREAD, 16, 105, "helper");
	born(f, 20, ENTITY_DISK, 0, 0, "sda");
	born(f, 21, ENTITY_DISK, 0, 0, "dm-0");
	frame_put(f, M_CPU_USER, ID_HOST, 100000);
	frame_put(f, M_CPU_SYSTEM, ID_HOST, 5000);
	frame_put(f, M_CPU_ONLINE, ID_HOST, 8);
	frame_put(f, M_MEM_TOTAL, ID_HOST, 1000);
	frame_put(f, M_MEM_AVAILABLE, ID_HOST, 750);
	frame_put(f, M_PROC_CPU, 16, 3600000000000ll);
	frame_put(f, M_PROC_CPU, 17, 5000000000ll);
	frame_put(f, M_PROC_RSS, 16, 10);
	frame_put(f, M_PROC_RSS, 17, 2000);
	frame_put(f, M_THREAD_CPU, 18, 1000000000ll);
	frame_put(f, M_THREAD_CPU, 19, 1000000000ll);
	frame_put(f, M_DISK_READ, 20, 1000);
	frame_put(f, M_DISK_READ, 21, 1000);
	assert_int_equal(history_frame(h, f), 0);
	frame_begin(f, T1, 1700000002000000000ll);
	frame_put(f, M_CPU_USER, ID_HOST, 100000 + 600);
	frame_put(f, M_CPU_SYSTEM, ID_HOST, 5000 + 40);
	frame_put(f, M_PROC_CPU, 16, 3600000000000ll + 6000000000ll);
	frame_put(f, M_THREAD_CPU, 19, 1000000000ll + 4000000000ll);
	frame_put(f, M_DISK_READ, 20, 1000 + 2000);
	frame_put(f, M_DISK_READ, 21, 1000 + 2000);
	assert_int_equal(history_frame(h, f), 0);
	return h;
}

static void rates_of_the_interval(void **state)
{
	struct frame f = { 0 };
	struct history *h = make(&f);
	struct window w = history_window(h, T0);
	struct snapshot v;

	(void)state;
	assert_int_equal(snapshot_take(&w, f.wall_ns, SNAPSHOT_JOB, &v), 0);
	assert_true(near(v.seconds, 2, 1e-6));
	assert_true(near(v.machine.cores_used, 3.2, 1e-6));
	assert_true(near(v.machine.memory_used, 250 * 1024, 1e-9));
	assert_true(isnan(v.machine.psi_cpu)); /* nobody measured it */
	/* What a process used before the first look is not part of it. */
	assert_int_equal(v.processes.n, 2);
	assert_int_equal(v.processes.v[0].entity->key, 100);
	assert_true(near(v.processes.v[0].cores, 3, 1e-6));
	assert_true(v.processes.v[1].cores == 0);
	/* A disk made of another is not counted twice. */
	assert_true(near(v.machine.disk_read, 2000 * 512 / 2.0, 1e-6));
	assert_int_equal(v.processes.v[0].n_threads, 2);
	assert_int_equal(v.threads.v[v.processes.v[0].first_thread].entity->key, 105);
	assert_true(near(v.threads.v[v.processes.v[0].first_thread].cores, 2, 1e-6));
	assert_int_equal(v.processes.v[1].n_threads, 0);
	snapshot_done(&v);
	history_free(h);
	frame_done(&f);
}

static void shown(void **state)
{
	struct frame f = { 0 };
	struct history *h = make(&f);
	struct window w = history_window(h, T0);
	auto_done(buf) struct buf out = { 0 };
	struct cli cli = { 0 };
	struct snapshot v;

	(void)state;
	assert_int_equal(snapshot_take(&w, f.wall_ns, 0, &v), 0);
	top_put_line(&v, &out);
	assert_string_equal(
	    buf_text(&out),
	    "2023-11-14T22:13:22.000Z cpu 3.20/8 cores mem 256 kB/1.0 MB read 512 kB/s"
	    " | busy[100] 3.00\n");
	buf_reset(&out);
	top_put_screen(&cli, &v, 1, &out);
	assert_non_null(strstr(buf_text(&out), "3.20 of 8 cores used"));
	assert_non_null(strstr(buf_text(&out), "300%"));
	assert_non_null(strstr(buf_text(&out), "run ?[31mred"));
	assert_non_null(strstr(buf_text(&out), "and 1 more"));
	assert_null(strchr(buf_text(&out), '\033'));
	assert_null(strstr(buf_text(&out), "Waiting")); /* absent is left out */
	buf_reset(&out);
	top_put_json(&v, 15, &out);
	assert_non_null(strstr(buf_text(&out), "\"schema\":\"spotter.top/1\""));
	assert_non_null(strstr(buf_text(&out), "\"pressure\":{}"));
	assert_non_null(strstr(buf_text(&out), "\\u001b[31mred"));
	assert_null(strchr(buf_text(&out), '\033'));
	snapshot_done(&v);
	history_free(h);
	frame_done(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rates_of_the_interval),
		cmocka_unit_test(shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
