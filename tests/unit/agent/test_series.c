/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "agent/series.h"
#include "base/auto.h"
#include "base/buf.h"
#include "sink/exposition.h"

#include <math.h>

static void fill(struct agent_view *v)
{
	struct view_run *run = vec_push(&v->runs);
	struct view_rank *rank = vec_push(&v->ranks);
	struct view_thing *host = vec_push(&v->things);
	struct view_thing *gpu;

	*run = (struct view_run){ .id = "77.0",
				  .name = "train.py",
				  .source = SOURCE_SLURM,
				  .framework = "torch",
				  .world = 8,
				  .up = true,
				  .start_s = 1700000000.5 };
	*rank = (struct view_rank){ .rank = 3, .local_rank = 1, .has_steps = true };
	rank->steps = (struct view_steps){ .data_wait = 1.5,
					   .loss = 0.25,
					   .last_s = 1700000009,
					   .comm_wait = NAN,
					   .own_work = NAN };
	view_steps_add(&rank->steps, 0.02);
	view_steps_add(&rank->steps, 0.025); /* a bound is in its own bucket */
	view_steps_add(&rank->steps, 7000);
	view_steps_add(&rank->steps, -1); /* counted, not timed */
	for (int i = 0; i < VIEW_ROLES; i++)
		rank->use[i] = (struct view_role_use){
			.cpu_user = NAN, .cpu_system = NAN, .rss = NAN, .read = NAN, .written = NAN
		};
	rank->use[VIEW_TRAINER] = (struct view_role_use){ 1, 12.5, 2, 1e9, NAN, NAN };
	host->kind = ENTITY_HOST;
	gpu = vec_push(&v->things);
	gpu->kind = ENTITY_GPU;
	snprintf(gpu->gpu, sizeof(gpu->gpu), "2");
	snprintf(gpu->uuid, sizeof(gpu->uuid), "GPU-1");
	*vec_push(&v->values) = (struct view_value){ M_CPU_USER, 0, 10 };
	*vec_push(&v->values) = (struct view_value){ M_CPU_IDLE, 0, 90 };
	*vec_push(&v->values) = (struct view_value){ M_GPU_CLOCK_SM, 1, 1.4e9 };
	*vec_push(&v->values) = (struct view_value){ M_GPU_CLOCK_MEM, 1, 2.6e9 };
	*vec_push(&v->values) = (struct view_value){ M_GPU_BUSY, 1, 0.5 };
	*vec_push(&v->holds) = (struct view_hold){ 0, 1, 5e8, NAN };
	*vec_push(&v->ledger) =
	    (struct view_ledger){ .rank = 3, .ledger = "time", .state = "data_wait", .seconds = 4 };
	*vec_push(&v->findings) = (struct view_finding){
		.cause = "too_few_workers", .family = "input", .cost = 0.4, .confidence = 0.9
	};
	snprintf(v->node, sizeof(v->node), "n12");
	v->dropped_records = 3;
}

static void has(const struct buf *out, const char *line)
{
	if (!strstr(buf_text(out), line))
		fail_msg("no '%s' in\n%s", line, buf_text(out));
}

static void lacks(const struct buf *out, const char *text)
{
	if (strstr(buf_text(out), text))
		fail_msg("'%s' in\n%s", text, buf_text(out));
}

static void what_is_known(void **state)
{
	auto_done(buf) struct buf out = { 0 };
	struct agent_view v = { 0 };
	struct exposition x;

	(void)state;
	fill(&v);
	exposition_begin(&x, &out, EXPOSITION_TEXT);
	assert_true(agent_series_each(&v, exposition_sample, &x));
	has(&out,
	    "spotter_run_info{node=\"n12\",run_id=\"77.0\",name=\"train.py\",source=\"slurm\","
	    "framework=\"torch\",world_size=\"8\"} 1\n");
	has(&out, "spotter_run_up{node=\"n12\",run_id=\"77.0\"} 1\n");
	has(&out, "spotter_agent_dropped_total{node=\"n12\",kind=\"record\"} 3\n");
	has(&out,
	    "spotter_rank_info{node=\"n12\",run_id=\"77.0\",rank=\"3\",local_rank=\"1\"} 1\n");
	has(&out, "\nspotter_steps_total{node=\"n12\",run_id=\"77.0\",rank=\"3\"} 4\n");
	has(&out, "_bucket{node=\"n12\",run_id=\"77.0\",rank=\"3\",le=\"0.01\"} 0\n");
	has(&out, "_bucket{node=\"n12\",run_id=\"77.0\",rank=\"3\",le=\"0.025\"} 2\n");
	has(&out, "_bucket{node=\"n12\",run_id=\"77.0\",rank=\"3\",le=\"600.0\"} 2\n");
	has(&out, "_bucket{node=\"n12\",run_id=\"77.0\",rank=\"3\",le=\"+Inf\"} 3\n");
	has(&out, "duration_seconds_sum{node=\"n12\",run_id=\"77.0\",rank=\"3\"} 7000.045\n");
	has(&out, "duration_seconds_count{node=\"n12\",run_id=\"77.0\",rank=\"3\"} 3\n");
	has(&out, "spotter_process_cpu_seconds_total{node=\"n12\",run_id=\"77.0\",rank=\"3\","
		  "role=\"trainer\",mode=\"system\"} 2\n");
	has(&out, "spotter_rank_gpu_memory_bytes{node=\"n12\",run_id=\"77.0\",rank=\"3\",gpu=\"2\","
		  "gpu_uuid=\"GPU-1\"} 500000000\n");
	has(&out, "spotter_ledger_seconds_total{node=\"n12\",run_id=\"77.0\",rank=\"3\","
		  "ledger=\"time\",state=\"data_wait\"} 4\n");
	has(&out, "spotter_verdict_info{node=\"n12\",run_id=\"77.0\",cause=\"too_few_workers\","
		  "family=\"input\"} 1\n");
	has(&out, "spotter_node_cpu_seconds_total{node=\"n12\",mode=\"idle\"} 90\n");
	has(&out, "spotter_gpu_clock_hertz{node=\"n12\",gpu=\"2\",gpu_uuid=\"GPU-1\","
		  "clock=\"memory\"} 2600000000\n");
	/* what is not known is not there, not even as a heading */
	lacks(&out, "spotter_comm_wait");
	lacks(&out, "spotter_rank_own_work");
	lacks(&out, "spotter_rank_gpu_utilization");
	lacks(&out, "dataloader");
	lacks(&out, "spotter_process_read_bytes");
	lacks(&out, "nan");
	agent_view_done(&v);
}

struct seen {
	const char *names[512];
	size_t n;
	const struct series_family *last;
	size_t samples;
};

/* All samples of a family come together, and each has what its type asks for. */
static bool look(const struct series_sample *s, void *arg)
{
	struct seen *seen = arg;

	seen->samples++;
	assert_true(s->n_labels >= 1 && s->n_labels <= SERIES_LABELS_MAX);
	assert_string_equal(s->labels[0].name, "node");
	for (size_t i = 0; i < s->n_labels; i++)
		assert_true(s->labels[i].value[0]);
	assert_int_equal(strncmp(s->name, s->family->name, strlen(s->family->name)), 0);
	if (seen->last == s->family)
		return true;
	for (size_t i = 0; i < seen->n; i++)
		assert_string_not_equal(seen->names[i], s->family->name);
	seen->names[seen->n++] = s->family->name;
	seen->last = s->family;
	return true;
}

static void families_together(void **state)
{
	struct agent_view v = { 0 };
	struct seen seen = { .n = 0 };

	(void)state;
	fill(&v);
	assert_true(agent_series_each(&v, look, &seen));
	assert_true(seen.n > 20);
	agent_view_done(&v);
}

static bool stop_at_ten(const struct series_sample *s, void *arg)
{
	(void)s;
	return ++*(int *)arg < 10;
}

static void may_stop(void **state)
{
	struct agent_view v = { 0 };
	int n = 0;

	(void)state;
	fill(&v);
	assert_false(agent_series_each(&v, stop_at_ten, &n));
	assert_int_equal(n, 10);
	agent_view_done(&v);
}

/* As Prometheus' linter wants them. */
static void names(void **state)
{
	(void)state;
	for (int i = 0; i < FAMILIES; i++) {
		const struct series_family *f = &families[i];
		size_t n = strlen(f->name);
		const char *want = f->type == SERIES_COUNTER ? "_total"
				   : f->type == SERIES_INFO  ? "_info"
							     : "";

		assert_int_equal(strncmp(f->name, "spotter_", 8), 0);
		assert_string_equal(f->name + n - strlen(want), want);
		assert_true(f->help[0] && f->help[strlen(f->help) - 1] != '.');
		assert_non_null(strstr(f->name, f->unit));
		for (int k = 0; k < i; k++)
			assert_string_not_equal(families[k].name, f->name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_known),
		cmocka_unit_test(families_together),
		cmocka_unit_test(may_stop),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
