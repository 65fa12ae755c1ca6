/* SPDX-License-Identifier: MIT
 *
 * GPUs in the verdict: rows, whose processes they are, the line for people, and what rules promise.
 */
#include "../unit.h"

#include "scenario.h"

#include "base/buf.h"
#include "model/xid.h"

#include <math.h>

static void judge_text(const char *text, struct scenario *s, struct verdict *v)
{
	struct history *h;
	struct window w;

	*s = (struct scenario){ 0 };
	scenario_parse(s, text);
	h = scenario_play(s, M_NONE, 0);
	w = history_window(h, 0);
	assert_int_equal(explain(&w, v), 0);
	v->run = &s->run;
	history_free(h);
}

static bool close_to(double a, double b)
{
	return near(a, b, 0.01);
}

static const struct finding *found(const struct verdict *v, const char *cause)
{
	for (size_t i = 0; i < v->findings.n; i++)
		if (strcmp(v->findings.v[i].cause, cause) == 0)
			return &v->findings.v[i];
	fail_msg("no finding %s", cause);
	return NULL;
}

static void line_of(const struct verdict *v, const char *expected)
{
	struct buf b;

	buf_init(&b, 0);
	usage_gpus_text(&v->usage, &b);
	assert_string_equal(buf_text(&b), expected);
	buf_done(&b);
}

/* Four GPUs, two with the job: their figures, and nobody else's. */
static const char *const four =
    "run 100\nexit 0\njob.cpu 0 50\nprocess 20 100 python3\nprocess 21 101 worker to 50\n"
    "gpu 50 0 H100 simulated\ngpu 51 1 H100 simulated\ngpu 52 2 H100 simulated\n"
    "gpu 53 3 H100 simulated\n"
    "gpu.busy@50 0:0 50:1 100:1\ngpu.busy@51 0.5\ngpu.busy@52 1\ngpu.busy@53 0\n"
    "gpu.memory_total@50 80e9\ngpu.memory_used@50 10e9\ngpu.memory_total@51 80e9\n"
    "gpu.memory_used@51 0:20e9 100:40e9\ngpu.power@50 300\ngpu.power@51 100\n"
    "gpu.energy@50 5000 35000\ngpu.temperature@50 0:40 100:70\ngpu.temperature@51 50\n"
    "gpu.processes@50 1\ngpu.processes@51 2\ngpu.processes@52 1\ngpu.processes@53 0\n"
    "gpuproc 60 50 100 python3\ngpu_process.memory@60 9e9\ngpu_process.busy@60 0.75\n"
    "gpuproc 61 51 101 worker to 50\ngpu_process.memory@61 5e9\n"
    "gpuproc 62 51 900 other from 10\ngpu_process.memory@62 15e9\ngpu_process.busy@62 0.5\n"
    "gpuproc 63 52 0 process\n"
    /* a pid the job had before the GPU's process came is somebody else now */
    "gpuproc 64 52 101 later from 80\n";

static void rows(void **state)
{
	struct scenario s;
	struct verdict v = { 0 };
	const struct usage_gpu *g;

	(void)state;
	judge_text(four, &s, &v);
	assert_int_equal(v.usage.gpus.n, 4);
	g = v.usage.gpus.v;
	assert_int_equal(g[0].index, 0);
	assert_int_equal(g[0].job, 1);
	assert_int_equal(g[0].allowed, -1);
	assert_true(g[0].simulated);
	assert_string_equal(g[0].uuid, "GPU-0--1");
	assert_string_equal(g[0].vendor, "nvidia");
	assert_true(close_to(g[0].busy, 0.75));
	assert_true(close_to(g[0].energy, 30000));
	assert_true(g[0].temperature == 70);
	assert_true(close_to(g[1].memory_used, 30e9));
	assert_true(close_to(g[1].memory_peak, 40e9));
	/* whose it is: the largest first */
	assert_int_equal(g[1].n_processes, 2);
	assert_int_equal(v.usage.gpu_processes.v[g[1].first_process].pid, 900);
	assert_int_equal(v.usage.gpu_processes.v[g[1].first_process].job, 0);
	assert_int_equal(v.usage.gpu_processes.v[g[1].first_process + 1].job, 1);
	/* not measured for the worker: never a copy of the device's figure */
	assert_true(isnan(v.usage.gpu_processes.v[g[1].first_process + 1].busy));
	assert_int_equal(g[2].index, 2);
	assert_int_equal(g[2].job, -1);
	for (size_t i = 0; i < g[2].n_processes; i++)
		assert_int_equal(v.usage.gpu_processes.v[g[2].first_process + i].job,
				 v.usage.gpu_processes.v[g[2].first_process + i].pid ? 0 : -1);
	assert_int_equal(g[3].job, 0);
	line_of(&v,
		"1.25 of 2 GPUs busy (62 %; summed up 125 %), 4 GPUs in the machine, 40.0 of 160 "
		"GB, 400 W, up to 70 C  2 x H100 (simulated)");
	verdict_done(&v);
	scenario_done(&s);
}

/* Hidden ones come last; no figure of the device, but engine time of processes: at least. */
static void masked_and_at_least(void **state)
{
	struct scenario s;
	struct verdict v = { 0 };

	(void)state;
	judge_text("run 100\nexit 0\nprocess 20 100 python3\ngpu 50 0 MI250\ngpu 51 1 MI250\n"
		   "gpu.allowed@50 0\ngpu.allowed@51 1\ngpu.processes@51 1\n"
		   "gpuproc 60 51 100 python3\ngpu_process.time@60 10 47\n",
		   &s, &v);
	assert_int_equal(v.usage.gpus.v[0].index, 1);
	assert_int_equal(v.usage.gpus.v[1].allowed, 0);
	assert_true(v.usage.gpus.v[0].busy_at_least);
	assert_true(close_to(v.usage.gpus.v[0].busy, 0.37));
	assert_true(isnan(v.usage.gpus.v[1].busy));
	line_of(&v, "at least 0.37 of 1 GPU busy (37 % of the time a kernel ran), 2 GPUs in the "
		    "machine  MI250");
	verdict_done(&v);
	scenario_done(&s);
	judge_text("run 10\nexit 0\njob.cpu 0 5\n", &s, &v);
	assert_int_equal(v.usage.gpus.n, 0);
	line_of(&v, "");
	for (size_t i = 0; i < v.blind.n; i++)
		assert_null(strstr(v.blind.v[i].cause, "gpu"));
	verdict_done(&v);
	scenario_done(&s);
}

/* A GPU that was lost and came back is one row, and counts once. */
static void came_back(void **state)
{
	struct scenario s;
	struct verdict v = { 0 };

	(void)state;
	judge_text("run 60\nexit 0\nprocess 20 100 python3\ngpu 50 0 H100 to 20\ngpu 51 0 H100\n"
		   "gpu.busy@50 1\ngpu.busy@51 0.5\n"
		   "event gpu_hang 50 20 value 3 driver call blocked for 3.0 s in nvmlX on GPU 0\n",
		   &s, &v);
	assert_int_equal(v.usage.gpus.n, 1);
	assert_true(close_to(v.usage.gpus.v[0].busy, 0.5));
	assert_string_equal(scenario_answer(&v, "gpu_lost"), "note");
	verdict_done(&v);
	scenario_done(&s);
}

static const struct finding *noted(const struct verdict *v, const char *cause)
{
	for (size_t i = 0; i < v->notes.n; i++)
		if (strcmp(v->notes.v[i].cause, cause) == 0)
			return &v->notes.v[i];
	fail_msg("no note %s", cause);
	return NULL;
}

/* One hang, told of several times, in both wordings. */
static void hang_words(void **state)
{
	struct scenario s;
	struct verdict v = { 0 };

	(void)state;
	scenario_judge(&s, SCENARIOS, "gpu-lost-note-returned", &v);
	assert_string_equal(noted(&v, "gpu_lost")->title,
			    "driver call blocked for 4.0 s in nvmlDeviceGetTemperature on GPU 0, "
			    "then it answered again");
	verdict_done(&v);
	scenario_done(&s);
	scenario_judge(&s, SCENARIOS, "gpu-lost-yes-second", &v);
	assert_string_equal(found(&v, "gpu_lost")->title,
			    "driver call blocked for 6.0 s in nvmlDeviceGetTemperature on GPU 1");
	verdict_done(&v);
	scenario_done(&s);
	/* it came back and was left alone all the same */
	judge_text("run 60\nexit 0\nprocess 20 100 python3\ngpu 50 0 H100 to 10\n"
		   "gpuproc 60 50 100 python3 to 10\n"
		   "event gpu_hang 50 12 value 2.1 driver call blocked for 2.1 s in a on GPU 0\n"
		   "event gpu_hang 50 14 value 4 driver call came back after 4.0 s: a on GPU 0\n",
		   &s, &v);
	assert_string_equal(noted(&v, "gpu_lost")->title,
			    "driver call blocked for 4.0 s in a on GPU 0, then it answered again");
	assert_string_equal(v.usage.gpus.v[0].state, "not read");
	verdict_done(&v);
	scenario_done(&s);
	/* of GPU 1: two hangs and an XID; GPU 2 has a fault of its own */
	judge_text("run 60\nexit 0\nprocess 20 100 python3\ngpu 50 0 H100\ngpu.processes@50 1\n"
		   "gpuproc 60 50 100 python3\ngpu 51 1 H100\ngpu.processes@51 0\n"
		   "gpu 52 2 H100\ngpu.processes@52 0\n"
		   "event gpu_hang 51 5 value 2.1 driver call blocked for 2.1 s in a on GPU 1\n"
		   "event gpu_hang 51 10 value 7.1 driver call blocked for 7.1 s in a on GPU 1\n"
		   "event gpu_hang 51 11 value 8 driver call came back after 8.0 s: a on GPU 1\n"
		   "event xid 52 12 value 79 XID 79 on GPU 2\n"
		   "event gpu_hang 51 40 value 9 driver call blocked for 9.0 s in b on GPU 1\n"
		   "event xid 51 41 value 79 XID 79 on GPU 1\n",
		   &s, &v);
	assert_string_equal(noted(&v, "gpu_lost")->evidence[0].text, "faults reported of GPU 1: 3");
	assert_string_equal(noted(&v, "gpu_lost")->title,
			    "driver call blocked for 9.0 s in b on GPU 1, which the job does not "
			    "use");
	verdict_done(&v);
	scenario_done(&s);
}

/* Read for a part of the run: figures are over that, and it is said. */
static void read_in_part(void **state)
{
	struct scenario s;
	struct verdict v = { 0 };
	struct buf out;

	(void)state;
	judge_text("run 40\nexit 0\nprocess 20 100 python3\ngpu 50 0 H100 to 10\n"
		   "gpu.busy@50 0.4\ngpuproc 60 50 100 python3 to 10\n"
		   "event gpu_hang 50 12 value 2.1 driver call blocked for 2.1 s in a on GPU 0\n",
		   &s, &v);
	assert_string_equal(v.usage.gpus.v[0].state, "hung");
	assert_true(close_to(v.usage.gpus.v[0].seen, 10));
	line_of(&v, "0.40 of 1 GPU busy (40 % of the time a kernel ran; read until 10.0 s: hangs)"
		    "  H100");
	buf_init(&out, 0);
	render_json(&v, &out);
	assert_non_null(strstr(buf_text(&out), "\"state\": \"hung\""));
	assert_non_null(strstr(buf_text(&out), "\"seen_s\": 10,"));
	buf_done(&out);
	verdict_done(&v);
	scenario_done(&s);
	/* the value before the recorder gave up does not hold to the end */
	judge_text("run 40\nexit 0\nprocess 20 100 python3\ngpu 50 0 H100\n"
		   "gpu.busy@50 0:0 10:0 10.5:1 40:1\n"
		   "event gpu_helper 1 10 value 0 GPUs are read no more: 5 helpers have hung\n",
		   &s, &v);
	assert_string_equal(v.usage.gpus.v[0].state, "not read");
	assert_true(v.usage.gpus.v[0].busy < 0.01);
	assert_true(close_to(v.usage.gpus.v[0].until, 10));
	verdict_done(&v);
	scenario_done(&s);
	judge_text("run 40\nexit 0\ngpu 50 0 H100 to 20\ngpu.busy@50 0\ngpu 51 1 H100\n"
		   "gpu.busy@51 1\nevent gpu_lost 50 20 value 0 GPU 0 is lost\n",
		   &s, &v);
	assert_string_equal(v.usage.gpus.v[0].state, "lost");
	assert_null(v.usage.gpus.v[1].state);
	assert_true(isnan(v.usage.gpus.v[1].seen));
	line_of(&v, "1 of 2 GPUs busy (50 %; summed up 100 %; GPU 0 read until 20.0 s: lost)"
		    "  2 x H100");
	verdict_done(&v);
	scenario_done(&s);
}

/* No GPU was ever read, and the recorder says why: that is not "nothing wrong". */
static void never_read(void **state)
{
	struct scenario s;
	struct verdict v = { 0 };

	(void)state;
	judge_text("run 40\nexit 0\nprocess 20 100 python3\nproc.gpu_code@20 1\n"
		   "event gpu_helper 1 9 value 0 GPUs are read no more: 5 helpers have hung\n",
		   &s, &v);
	assert_string_equal(scenario_answer(&v, "gpu_lost"), "blind");
	for (size_t i = 0; i < v.blind.n; i++)
		if (strcmp(v.blind.v[i].cause, "gpu_lost") == 0)
			assert_string_equal(v.blind.v[i].why, "GPUs were not read from 9.0 s on: "
							      "5 helpers have hung");
	verdict_done(&v);
	scenario_done(&s);
}

/* An empty list is the driver's word; no list is none. */
static void lists_and_names(void **state)
{
	struct scenario s;
	struct verdict v = { 0 };
	struct buf out;
	const char *first;
	char name[128];

	(void)state;
	judge_text("run 40\nexit 0\ngpu 50 0 GB10 unified\ngpu.processes@50 0\n"
		   "gpu.memory_used@50 8e9\ngpu.memory_total@50 128e9\ngpu 51 1 GB10\n",
		   &s, &v);
	buf_init(&out, 0);
	render_json(&v, &out);
	first = strstr(buf_text(&out), "\"processes\": []");
	assert_non_null(first);
	assert_null(strstr(first + 1, "\"processes\": []"));
	first = strstr(buf_text(&out), "\"unified_memory\": true");
	assert_non_null(first);
	assert_null(strstr(first + 2, "unified_memory"));
	buf_done(&out);
	verdict_done(&v);
	scenario_done(&s);
	judge_text("run 40\nexit 0\ngpu 50 0 A100\ngpu 51 0 A100-MIG-3g.40gb part 0 of 50 profile "
		   "3g.40gb\ngpu 52 0 A100 part 1 of 50 profile 2g.20gb\n",
		   &s, &v);
	assert_string_equal(usage_gpu_name(&v.usage.gpus.v[1], name, sizeof(name)),
			    "A100-MIG-3g.40gb");
	assert_string_equal(usage_gpu_name(&v.usage.gpus.v[2], name, sizeof(name)), "A100 2g.20gb");
	verdict_done(&v);
	scenario_done(&s);
}

/* 30 of 40 s at 510 instead of 1755 MHz, busy 95 %. */
static void throttle_gain(void **state)
{
	double now = (10 * 1755 + 30 * 510) / 40.0, u = 0.95;
	struct scenario s;
	struct verdict v = { 0 };
	const struct finding *x;

	(void)state;
	scenario_judge(&s, SCENARIOS, "gpu-throttled-yes-heat", &v);
	x = found(&v, "gpu_throttled");
	assert_true(close_to(x->speedup, 1 / (1 - u + u * now / 1755)));
	assert_true(close_to(x->high, 1980 / now));
	assert_true(x->low > 1.2 && x->low < x->speedup);
	assert_non_null(strstr(x->title, "temperature"));
	verdict_done(&v);
	scenario_done(&s);
}

/* Of eight hot ones the slowest is named, wherever it stands. */
static void slowest_of_many(void **state)
{
	(void)state;
	for (int slow = 0; slow < 8; slow++) {
		struct scenario s;
		struct verdict v = { 0 };
		char text[4096], label[32];
		int n = snprintf(text, sizeof(text), "run 40\nprocess 20 100 python3\n");

		for (int i = 0; i < 8; i++)
			n += snprintf(text + n, sizeof(text) - (size_t)n,
				      "gpu %d %d H100\ngpuproc %d %d 100 python3\n"
				      "gpu.busy@%d 0.9\ngpu.clock_sm@%d %de6\n"
				      "gpu.clock_sm_max@%d 1980e6\ngpu.slow.heat@%d 1\n",
				      50 + i, i, 60 + i, 50 + i, 50 + i, 50 + i,
				      i == slow ? 700 : 1000 + 10 * i, 50 + i, 50 + i);
		judge_text(text, &s, &v);
		snprintf(label, sizeof(label), "GPU %d is held back: 700 ", slow);
		assert_memory_equal(found(&v, "gpu_throttled")->title, label, strlen(label));
		verdict_done(&v);
		scenario_done(&s);
	}
}

static void share_gain(void **state)
{
	struct scenario s;
	struct verdict v = { 0 };
	const struct finding *x;

	(void)state;
	scenario_judge(&s, SCENARIOS, "gpu-shared-yes", &v);
	x = found(&v, "gpu_shared");
	/* others 40 %, the job 50 % of the time */
	assert_true(close_to(x->high, 1 / 0.6));
	assert_true(close_to(x->speedup, 1 / (1 - 0.4 * 0.5 / 0.6)));
	assert_true(x->low == 1);
	assert_non_null(strstr(x->title, "other.py (pid 900)"));
	verdict_done(&v);
	scenario_done(&s);
	/* two of the job's own, that have 98 % between them by the GPU's own figure, each half of it */
	scenario_judge(&s, SCENARIOS, "gpu-shared-yes-siblings", &v);
	x = found(&v, "gpu_shared");
	assert_true(close_to(x->high, 1 / 0.51));
	assert_true(close_to(x->speedup, 1 / (1 - 0.49 * 0.49 / 0.51)));
	assert_non_null(strstr(x->title, "GPU 0 is shared by 2 trainings of this job"));
	verdict_done(&v);
	scenario_done(&s);
	scenario_judge(&s, SCENARIOS, "gpu-idle-yes-mask", &v);
	x = found(&v, "idle_gpus");
	assert_true(close_to(x->high, 2) && x->low == 1 && close_to(x->speedup, 1.9));
	assert_string_equal(x->edit, "torchrun --nproc_per_node=2");
	verdict_done(&v);
	scenario_done(&s);
}

static void lost_words(void **state)
{
	struct scenario s;
	struct verdict v = { 0 };

	(void)state;
	scenario_judge(&s, SCENARIOS, "gpu-lost-yes-hang", &v);
	assert_string_equal(found(&v, "gpu_lost")->title,
			    "driver call blocked for 42.0 s in nvmlDeviceGetTemperature on GPU 2");
	assert_false(v.healthy);
	verdict_done(&v);
	scenario_done(&s);
	scenario_judge(&s, SCENARIOS, "gpu-lost-yes", &v);
	assert_string_equal(found(&v, "gpu_lost")->title, "GPU 0: fell off the bus (XID 79)");
	verdict_done(&v);
	scenario_done(&s);
	assert_int_equal(xid_kind(31), XID_PROGRAM);
	assert_int_equal(xid_kind(48), XID_HARDWARE);
	assert_int_equal(xid_kind(0), XID_UNKNOWN);
	assert_int_equal(xid_kind(-5), XID_UNKNOWN);
	/* a right that is missing is no loss */
	judge_text("run 30\nexit 0\ngpu 50 0 H100 to 10\ngpu.busy@50 1\n"
		   "event note 50 10 value 0 GPU 0 may not be read by this user\n",
		   &s, &v);
	assert_string_not_equal(scenario_answer(&v, "gpu_lost"), "yes");
	verdict_done(&v);
	scenario_done(&s);
}

/* Keys, parents and tags of a record may be anything. */
static void hostile(void **state)
{
	static const char *const texts[] = {
		"run 30\ngpu 50 -7 x\ngpu 51 99999999 y\ngpu 52 3 z part 5 of 52\n"
		"gpu 53 0 p part 0 of 9999\ngpuproc 60 9999 100 a\ngpuproc 61 50 -3 b\n"
		"gpu.busy@50 -5\ngpu.memory_total@50 0\ngpu.memory_used@50 1e15\n"
		"event xid 50 5 value -1e18 x\nevent xid 51 5 value 1e18 x\n"
		"event gpu_hang 52 6 value 1e12 in\nevent gpu_lost 1 6 x\n",
		"run 30\nprocess 20 100 a\ngpu 50 0 x\ngpuproc 60 50 100 a\ngpu.busy@50 1e9\n"
		"gpu.clock_sm@50 0\ngpu.clock_sm_max@50 0\ngpu.slow.heat@50 1\n"
		"gpu_process.busy@60 1e9\ngpuproc 61 50 7 b\ngpu_process.busy@61 1e9\n"
		"gpu_process.memory@60 -1e18\ngpu.memory_total@50 1e18\ngpu.memory_used@50 1e18\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct scenario s;
		struct verdict v = { 0 };
		struct buf out;

		judge_text(texts[i], &s, &v);
		buf_init(&out, 0);
		render_text(&v, &(struct render_style){ 0 }, &out);
		assert_null(strstr(buf_text(&out), "nan"));
		render_json(&v, &out);
		assert_true(buf_ok(&out));
		buf_done(&out);
		verdict_done(&v);
		scenario_done(&s);
	}
}

/* The first of findings, then of notes. */
static void assert_fix(const char *name, const char *cause, const char *has, const char *has_not)
{
	struct scenario s;
	struct verdict v = { 0 };
	const struct finding *x = NULL;

	scenario_judge(&s, SCENARIOS, name, &v);
	for (size_t i = v.notes.n; i-- > 0;)
		x = strcmp(v.notes.v[i].cause, cause) == 0 ? &v.notes.v[i] : x;
	for (size_t i = v.findings.n; i-- > 0;)
		x = strcmp(v.findings.v[i].cause, cause) == 0 ? &v.findings.v[i] : x;
	assert_non_null(x);
	assert_true(strlen(x->fix) < sizeof(x->fix) - 1); /* nothing is cut off */
	if (!strstr(x->fix, has) || strstr(x->fix, has_not))
		fail_msg("%s: '%s' should have '%s' and not '%s'", name, x->fix, has, has_not);
	verdict_done(&v);
	scenario_done(&s);
}

/* What to do is said in the words of the program's framework, and only where it would help. */
static void fixes(void **state)
{
	(void)state;
	assert_fix("not-on-gpu-note-build", "not_on_gpu", "torch.version.cuda", "VISIBLE");
	assert_fix("not-on-gpu-yes-tensorflow", "not_on_gpu", "tf.config", "install");
	assert_fix("not-on-gpu-yes", "not_on_gpu", "move model", "torch");
	assert_fix("not-on-gpu-yes-masked", "not_on_gpu", "VISIBLE_DEVICES", "install");
	assert_fix("not-on-gpu-note-masked-build", "not_on_gpu", "VISIBLE_DEVICES", "model.to");
	assert_fix("not-on-gpu-note-masked-build", "not_on_gpu", "PyTorch", "model.to");
	assert_fix("gpu-shared-yes-siblings", "gpu_shared", "one after the other", "nothing");
	assert_fix("gpu-shared-yes-waits", "gpu_shared", "of its own", "one after the other");
	assert_fix("gpu-shared-note-room", "gpu_shared", "nothing", "one after the other");
}

static void too_few_steps(void **state)
{
	struct scenario s;
	struct verdict v = { 0 };
	bool said = false;

	(void)state;
	scenario_judge(&s, SCENARIOS, "gpu-idle-blind-short", &v);
	for (size_t i = 0; i < v.blind.n; i++)
		said |= strcmp(v.blind.v[i].cause, "idle_gpus") == 0 &&
			strstr(v.blind.v[i].why, "fewer than ten steps");
	assert_true(said);
	verdict_done(&v);
	scenario_done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows),
		cmocka_unit_test(masked_and_at_least),
		cmocka_unit_test(came_back),
		cmocka_unit_test(hang_words),
		cmocka_unit_test(read_in_part),
		cmocka_unit_test(never_read),
		cmocka_unit_test(lists_and_names),
		cmocka_unit_test(throttle_gain),
		cmocka_unit_test(slowest_of_many),
		cmocka_unit_test(share_gain),
		cmocka_unit_test(lost_words),
		cmocka_unit_test(hostile),
		cmocka_unit_test(fixes),
		cmocka_unit_test(too_few_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
