/* SPDX-License-Identifier: MIT
 *
 * One tick after another: runs the collectors that are due into a frame. Used by the recorder in a
 * thread of its own and by `top`, `why PID` and `doctor` in theirs.
 */
#ifndef SPOTTER_ENGINE_SAMPLER_H
#define SPOTTER_ENGINE_SAMPLER_H

#include "collect/collector.h"
#include "model/run.h"

struct err;
struct sampler;
struct stack_allowance;

struct sampler_options {
	struct job_spec job;
	const char *const *only; /* names of collectors to run, NULL-terminated; NULL: all */
	const char
	    *nvml; /* GPU library to load, NULL: the usual one. "gpu" in `only` asks for GPUs */
	double stacks_hz;     /* looks at the stacks of the job a second; 0: none */
	double stacks_budget; /* share of one core they may cost */
	const char
	    *marks; /* folder of rings the job marks steps in (removed at the end); NULL: none */
};

/* The host stays the caller's and must outlive the sampler. */
int sampler_open(struct host *host, const struct sampler_options *o, struct sampler **ret,
		 struct err *e);
/* Empties the frame and fills it with one tick: begins it with the host's clock, and on the first tick announces all
 * entities. 0, or -errno when nothing at all could be read. */
int sampler_tick(struct sampler *s, struct frame *f);
/* The next tick reads everything, also what is not due yet: the last look at a job. */
void sampler_all_due(struct sampler *s);
/* The governor's wish: 1 full depth, more: rare readings get rarer. */
void sampler_set_thrift(struct sampler *s, unsigned thrift);
/* CPU time and resident memory of the processes that read GPUs for it. */
int64_t sampler_helpers_cpu_ns(const struct sampler *s);
int64_t sampler_helpers_rss_bytes(const struct sampler *s);
/* CPU time of the thread that reads stacks (part of this process), and what it may use from now on. */
int64_t sampler_stacks_cpu_ns(const struct sampler *s);
void sampler_allow_stacks(struct sampler *s, const struct stack_allowance *a);
/* What could be observed so far: DESIGN "Observation levels". */
int sampler_level(const struct sampler *s);
void sampler_close(struct sampler *s);

/* What this machine is, read once through the host. */
void machine_read(const struct host *host, struct machine *ret);

#endif
