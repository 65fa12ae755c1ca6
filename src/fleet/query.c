/* SPDX-License-Identifier: MIT */
#include "fleet/query.h"

#include "base/buf.h"
#include "fleet/fleet.h"

#include <string.h>

#define BY_RUN   "by (run_id)"
#define BY_PLACE "by (node,run_id)"
#define BY_RANK  "by (node,run_id,rank)"
#define BY_GPU   "by (node,gpu,gpu_uuid,partition)"
#define BY_HOLD  "by (node,run_id,rank,gpu,gpu_uuid,partition)"

#define RUN(field)     OF_RUN, ASK_ALWAYS, JOIN_MAX, offsetof(struct fleet_run, field)
#define PLACE(field)   OF_PLACE, ASK_ALWAYS, JOIN_MAX, offsetof(struct fleet_place, field)
#define RANK(field)    OF_RANK, ASK_ALWAYS, JOIN_MAX, offsetof(struct fleet_rank, field)
#define HOLD(field)    OF_HOLD, ASK_ALWAYS, JOIN_MAX, offsetof(struct fleet_hold, field)
#define GPU(field)     OF_GPU, ASK_DETAIL, JOIN_MAX, offsetof(struct fleet_gpu, field)
#define NODE(field)    OF_NODE, ASK_DETAIL, JOIN_MAX, offsetof(struct fleet_node, field)
#define VERDICT(field) OF_VERDICT, ASK_ALWAYS, JOIN_MAX, offsetof(struct fleet_verdict, field)

/* increase() and not rate(): ratios of two of them are exact whatever part of the window a run was there for, and
 * VictoriaMetrics and Prometheus differ in how they extrapolate only. */
const struct query queries[] = {
	{ OF_NOW, ASK_ALWAYS, JOIN_MAX, offsetof(struct fleet, now_s), "time()" },
	{ OF_RUN_INFO, ASK_ALWAYS, JOIN_MAX, 0,
	  "max by (node,run_id,name,source,framework,world_size) "
	  "(last_over_time(spotter_run_info{$R}[$W]))" },
	{ PLACE(up), "max " BY_PLACE " (last_over_time(spotter_run_up{$R}[$W]))" },
	/* Without a window: what vanished is not there. */
	{ PLACE(here), "max " BY_PLACE " (spotter_run_up{$R})" },
	{ OF_RUN, ASK_ALWAYS, JOIN_MIN, offsetof(struct fleet_run, start_s),
	  "min " BY_RUN " (last_over_time(spotter_run_start_time_seconds{$R}[$W]))" },
	{ RUN(moves), "max " BY_RUN " (changes(spotter_steps_total{$R}[1m]))" },
	{ RUN(mean_step_s),
	  "sum " BY_RUN " (last_over_time(spotter_step_duration_seconds_sum{$R}[$W])) / sum " BY_RUN
	  " (last_over_time(spotter_step_duration_seconds_count{$R}[$W]))" },
	{ RANK(steps), "max " BY_RANK " (increase(spotter_steps_total{$R}[$W]))" },
	{ RANK(step_seconds),
	  "max " BY_RANK " (increase(spotter_step_duration_seconds_sum{$R}[$W]))" },
	{ RANK(steps_timed),
	  "max " BY_RANK " (increase(spotter_step_duration_seconds_count{$R}[$W]))" },
	{ RANK(own), "max " BY_RANK " (increase(spotter_rank_own_work_seconds_total{$R}[$W]))" },
	{ RANK(comm), "max " BY_RANK " (increase(spotter_comm_wait_seconds_total{$R}[$W]))" },
	{ RANK(data), "max " BY_RANK " (increase(spotter_data_wait_seconds_total{$R}[$W]))" },
	{ RANK(last_step_s),
	  "max " BY_RANK " (last_over_time(spotter_run_last_step_timestamp_seconds{$R}[$W]))" },
	{ RANK(info), "max " BY_RANK " (last_over_time(spotter_rank_info{$R}[$W]))" },
	{ HOLD(info), "max " BY_HOLD " (last_over_time(spotter_rank_gpu_info{$R}[$W]))" },
	{ HOLD(memory), "max " BY_HOLD " (min_over_time(spotter_rank_gpu_memory_bytes{$R}[$W]))" },
	{ OF_GPU, ASK_ALWAYS, JOIN_MAX, offsetof(struct fleet_gpu, busy_max),
	  "max " BY_GPU " (max_over_time(spotter_gpu_utilization_ratio[$W]))$G" },
	{ VERDICT(info), "max by (node,run_id,cause,family) (spotter_verdict_info{$R})" },
	{ VERDICT(cost), "max by (node,run_id,cause) (spotter_verdict_cost_ratio{$R})" },
	{ VERDICT(confidence),
	  "max by (node,run_id,cause) (spotter_verdict_confidence_ratio{$R})" },

	{ OF_LEDGER, ASK_DETAIL, JOIN_MAX, offsetof(struct fleet_ledger, seconds),
	  "max by (node,run_id,rank,state) "
	  "(increase(spotter_ledger_seconds_total{$Cledger=\"time\"}[$W]))" },
	{ GPU(clock_hz),
	  "max " BY_GPU " (avg_over_time(spotter_gpu_clock_hertz{clock=\"sm\"}[$W]))$G" },
	{ GPU(xids), "max " BY_GPU " (increase(spotter_gpu_xid_errors_total[$W]))$G" },
	{ OF_GPU_REASON, ASK_DETAIL, JOIN_MAX, offsetof(struct fleet_gpu, held),
	  "max by (node,gpu,gpu_uuid,partition,reason) "
	  "(increase(spotter_gpu_throttled_seconds_total[$W]))$G" },
	{ NODE(io_wait),
	  "max by (node) (rate(spotter_node_pressure_io_waiting_seconds_total[$W]))$N" },
	{ NODE(cpu_wait),
	  "max by (node) (rate(spotter_node_pressure_cpu_waiting_seconds_total[$W]))$N" },
	{ NODE(memory_wait),
	  "max by (node) (rate(spotter_node_pressure_memory_waiting_seconds_total[$W]))$N" },

	{ OF_RANK, ASK_HUNG, JOIN_MAX, offsetof(struct fleet_rank, steps_ever),
	  "max " BY_RANK " (last_over_time(spotter_steps_total{$R}[$W]))" },
	{ OF_LEDGER, ASK_HUNG, JOIN_MAX, offsetof(struct fleet_ledger, lately),
	  "max by (node,run_id,rank,state) "
	  "(increase(spotter_ledger_seconds_total{$Cledger=\"time\"}[2m]))" },
};
const size_t queries_n = sizeof(queries) / sizeof(queries[0]);

void query_text(const struct query *q, const struct query_scope *s, struct buf *out)
{
	for (const char *p = q->text; *p; p++) {
		if (*p != '$') {
			buf_char(out, *p);
			continue;
		}
		p++;
		if (*p == 'W')
			buf_printf(out, "%llds", (long long)s->window_s);
		else if (*p == 'R')
			buf_str(out, s->matcher);
		else if (*p == 'C')
			buf_printf(out, "%s%s", s->matcher, s->matcher[0] ? "," : "");
		else if (*p == 'G' && s->matcher[0])
			buf_printf(out,
				   " and on (node,gpu,partition) max by (node,gpu,partition) "
				   "(last_over_time(spotter_rank_gpu_info{%s}[%llds]))",
				   s->matcher, (long long)s->window_s);
		else if (*p == 'N' && s->matcher[0])
			buf_printf(out,
				   " and on (node) max by (node) "
				   "(last_over_time(spotter_run_up{%s}[%llds]))",
				   s->matcher, (long long)s->window_s);
	}
}

/* Within double quotes; in_pattern: and within a regular expression. */
static void put_quoted(const char *id, bool in_pattern, struct buf *out)
{
	for (const char *p = id; *p; p++) {
		if (in_pattern && strchr("\\.+*?()|[]{}^$", *p))
			buf_str(out, *p == '\\' ? "\\\\\\" : "\\\\");
		else if (*p == '\\' || *p == '"')
			buf_char(out, '\\');
		if (*p == '\n')
			buf_str(out, "\\n");
		else
			buf_char(out, *p);
	}
}

bool query_matcher(const char *const *ids, size_t n, struct buf *out)
{
	if (!n)
		return false;
	buf_str(out, n > 1 ? "run_id=~\"" : "run_id=\"");
	for (size_t i = 0; i < n; i++) {
		if (i)
			buf_char(out, '|');
		put_quoted(ids[i], n > 1, out);
	}
	buf_char(out, '"');
	return true;
}

void query_escape(const char *text, struct buf *out)
{
	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
			     (*p >= '0' && *p <= '9') || strchr("-._~", *p);

		if (plain)
			buf_char(out, (char)*p);
		else
			buf_printf(out, "%%%02X", *p);
	}
}
