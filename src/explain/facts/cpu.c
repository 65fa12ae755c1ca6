/* SPDX-License-Identifier: MIT
 *
 * Cores: what the job used of what it may use, and what everything else used meanwhile.
 */
#include "explain/fact.h"
#include "explain/scene.h"

#include <math.h>

/* One value of a gauge, or the reason it is absent as the fact's. */
static bool gauge(const struct scene *s, struct facts *f, enum fact_id id, enum metric_id m,
		  uint32_t entity)
{
	struct series_stat st;

	if (window_stat(&s->steady, m, entity, &st) < 0 &&
	    window_stat(s->whole, m, entity, &st) < 0) {
		fact_absent(f, id, "%s: %s", metrics[m].name,
			    window_why_absent(s->whole, m, entity));
		return false;
	}
	fact_set_range(f, id, st.mean, st.min, st.max);
	return true;
}

/* Which limit is it that leaves this many cores? A quota of as many cores as the affinity leaves
 * never stops anything, so a tie is the affinity's. */
static const char *limit_name(const struct facts *f, double allowed)
{
	double machine = fact_or(f, FACT_CORES_MACHINE, INFINITY);
	double affinity = fact_or(f, FACT_CORES_AFFINITY, INFINITY);

	if (allowed >= machine - 0.005)
		return "machine";
	if (isfinite(affinity) && allowed >= affinity - 0.005)
		return "affinity";
	return isfinite(machine) || f->v[FACT_CORES_QUOTA].known ? "quota" : "";
}

static void allowed(const struct scene *s, struct facts *f)
{
	double v;

	if (!gauge(s, f, FACT_CORES_MACHINE, M_CPU_ONLINE, ID_HOST) && s->run->machine.cpus > 0)
		fact_set(f, FACT_CORES_MACHINE, s->run->machine.cpus);
	gauge(s, f, FACT_CORES_AFFINITY, M_JOB_CORES_AFFINITY, ID_JOB);
	gauge(s, f, FACT_CORES_QUOTA, M_CG_CPU_QUOTA, s->cg_cpu);
	if (!gauge(s, f, FACT_CORES_ALLOWED, M_JOB_CORES_ALLOWED, ID_JOB) &&
	    fact_value(f, FACT_CORES_MACHINE, &v)) {
		v = fmin(v, fact_or(f, FACT_CORES_AFFINITY, INFINITY));
		fact_set(f, FACT_CORES_ALLOWED, fmin(v, fact_or(f, FACT_CORES_QUOTA, INFINITY)));
	}
	if (fact_value(f, FACT_CORES_ALLOWED, &v))
		fact_set_subject(f, FACT_CORES_ALLOWED, 0, limit_name(f, v));
}

static void used(const struct scene *s, struct facts *f)
{
	double cpu, slack;
	double hz = s->run->hz > 0 ? s->run->hz : 1;

	if (!window_delta(&s->steady, M_JOB_CPU, ID_JOB, &cpu) || s->seconds <= 0) {
		fact_absent(f, FACT_CORES_USED, "%s: %s", metrics[M_JOB_CPU].name,
			    window_why_absent(s->whole, M_JOB_CPU, ID_JOB));
		return;
	}
	/* The kernel's figure is exact; the window's edges are off by a tick at most. */
	cpu /= s->seconds;
	slack = cpu / hz / s->seconds;
	fact_set_range(f, FACT_CORES_USED, cpu, fmax(0, cpu - slack), cpu + slack);
}

/* The kernel's own account of the finished tree is the truth where there is one: it has the moments
 * after the last sample. It lacks processes nobody waited for, so it may also be the smaller. */
static void charged(const struct scene *s, struct facts *f)
{
	double cpu, rusage = (double)s->run->rusage_cpu_ns / 1e9;
	bool seen = window_delta(s->whole, M_JOB_CPU, ID_JOB, &cpu);
	bool told = s->covers_run && !s->run->attached && s->run->has_exit && rusage > 0;

	if (!seen && !told) {
		fact_absent(f, FACT_USAGE_CPU_SECONDS, "%s: %s", metrics[M_JOB_CPU].name,
			    window_why_absent(s->whole, M_JOB_CPU, ID_JOB));
		fact_absent_like(f, FACT_USAGE_CORES, FACT_USAGE_CPU_SECONDS);
		return;
	}
	if (!seen)
		cpu = rusage;
	if (told && rusage > cpu)
		fact_set_range(f, FACT_USAGE_CPU_SECONDS, rusage, cpu, rusage);
	else
		fact_set_range(f, FACT_USAGE_CPU_SECONDS, cpu, told ? rusage : cpu, cpu);
	if (s->whole_seconds > 0)
		fact_set(f, FACT_USAGE_CORES,
			 f->v[FACT_USAGE_CPU_SECONDS].value / s->whole_seconds);
}

/* CPU seconds per second of the machine in these states; false when one is not known. */
static bool machine_rate(const struct window *w, const enum metric_id *states, size_t n,
			 double *ret, enum metric_id *ret_missing)
{
	double sum = 0, v;

	for (size_t i = 0; i < n; i++) {
		if (!scene_rate(w, states[i], ID_HOST, &v)) {
			*ret_missing = states[i];
			return false;
		}
		sum += v;
	}
	*ret = sum;
	return true;
}

static void others(const struct window *w, struct facts *f, enum fact_id id)
{
	static const enum metric_id busy[] = { M_CPU_USER, M_CPU_NICE, M_CPU_SYSTEM, M_CPU_IRQ,
					       M_CPU_SOFTIRQ };
	double sum, job, self, slack, seconds = window_seconds(w);
	enum metric_id missing;

	if (!machine_rate(w, busy, sizeof(busy) / sizeof(busy[0]), &sum, &missing)) {
		fact_absent(f, id, "%s: %s", metrics[missing].name,
			    window_why_absent(w, missing, ID_HOST));
		return;
	}
	if (!window_delta(w, M_JOB_CPU, ID_JOB, &job) || seconds < 0.5) {
		fact_absent(f, id, "%s",
			    seconds < 0.5 ? "too short to compare with the machine's 10 ms ticks"
					  : "job.cpu: not recorded");
		return;
	}
	if (!scene_rate(w, M_SELF_CPU, ID_SELF, &self))
		self = 0;
	/* Both ends are read in ticks of 10 ms per CPU and state. */
	slack = 0.02 * fact_or(f, FACT_CORES_MACHINE, 1) / seconds;
	sum = fmax(0, sum - job / seconds - self);
	fact_set_range(f, id, sum, fmax(0, sum - slack), sum + slack);
}

static void steal(const struct scene *s, struct facts *f)
{
	static const enum metric_id all[] = {
		M_CPU_USER, M_CPU_NICE,    M_CPU_SYSTEM, M_CPU_IDLE,
		M_CPU_IRQ,  M_CPU_SOFTIRQ, M_CPU_IOWAIT, M_CPU_STEAL
	};
	enum metric_id missing;
	double total, stolen;

	if (!machine_rate(s->whole, all, sizeof(all) / sizeof(all[0]), &total, &missing))
		fact_absent(f, FACT_USAGE_STEAL, "%s: %s", metrics[missing].name,
			    window_why_absent(s->whole, missing, ID_HOST));
	else if (total > 0 && scene_rate(s->whole, M_CPU_STEAL, ID_HOST, &stolen))
		fact_set(f, FACT_USAGE_STEAL, stolen / total);
}

/* Others' use takes from the machine first, and from what the job may use only where that is all of it. */
static void spare(struct facts *f)
{
	double may, machine;

	if (!f->v[FACT_CORES_USED].known || !f->v[FACT_CORES_ALLOWED].known) {
		fact_absent_like(f, FACT_CORES_FREE,
				 f->v[FACT_CORES_USED].known ? FACT_CORES_ALLOWED
							     : FACT_CORES_USED);
		return;
	}
	if (!f->v[FACT_CORES_OTHERS].known) {
		fact_absent_like(f, FACT_CORES_FREE, FACT_CORES_OTHERS);
		return;
	}
	may = f->v[FACT_CORES_ALLOWED].value;
	machine = fact_or(f, FACT_CORES_MACHINE, may);
	may = fmin(may, machine - f->v[FACT_CORES_OTHERS].value);
	fact_set(f, FACT_CORES_FREE, fmax(0, may - f->v[FACT_CORES_USED].value));
}

static void compute(const struct scene *s, struct facts *f)
{
	allowed(s, f);
	used(s, f);
	charged(s, f);
	others(s->whole, f, FACT_USAGE_OTHERS);
	others(&s->steady, f, FACT_CORES_OTHERS);
	steal(s, f);
	spare(f);
}

const struct fact_source cpu_facts = { "cpu", compute };
