/* SPDX-License-Identifier: MIT */
#include "cli/command.h"

#include "agent/agent.h"
#include "agent/http.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/live.h"
#include "cli/nvml.h"
#include "cli/pushing.h"
#include "record/follow.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
	FIRST_GPU_MS = 1500,
	LOOK_MS = 100,
	RECORD_MEMORY = 64 << 20, /* records are anybody's: one may be made to take all there is */
};

struct agent_cli {
	struct common_options common;
	const char *listen, *node, *records, *root, *nvml;
	int64_t judge_ns;
	bool once, open_metrics, no_verdicts;
	struct pushing_options pushing;
};

static const char page[] =
    "<!doctype html><meta charset=\"utf-8\"><title>Spotter agent</title>\n"
    "<h1>Spotter agent</h1>\n"
    "<p><a href=\"/metrics\">/metrics</a>: this machine and the trainings on it, for "
    "Prometheus.</p>\n"
    "<p><a href=\"/healthz\">/healthz</a>: 200 while samples are taken.</p>\n";

struct site {
	struct agent *agent;
	int64_t now_ms; /* by agent_with_view */
};

static void take_time(const struct agent_view *v, void *arg)
{
	struct site *s = arg;

	s->now_ms = v->time_ms;
}

/* Sampling that stands still is not healthy, whatever the reason. */
static void put_health(struct site *s, struct http_answer *a)
{
	int64_t age;

	agent_with_view(s->agent, take_time, s);
	age = clock_wall_ns() / NS_PER_MS - s->now_ms;
	a->status = age > -60000 && age < 60000 ? 200 : 503;
	buf_printf(&a->body, "the last sample is %.1f s old\n", (double)age / 1e3);
}

static void answer(const struct http_request *q, struct http_answer *a, void *arg)
{
	struct site *s = arg;

	a->status = 200;
	if (strcmp(q->path, "/metrics") == 0) {
		enum exposition_format format = exposition_wanted(q->accept);

		a->type = exposition_content_type(format);
		agent_expose(s->agent, format, &a->body);
	} else if (strcmp(q->path, "/healthz") == 0) {
		put_health(s, a);
	} else if (strcmp(q->path, "/") == 0) {
		a->type = "text/html; charset=utf-8";
		buf_str(&a->body, page);
	} else {
		a->status = 404;
		buf_str(&a->body, "there is /metrics and /healthz\n");
	}
}

/* A look of at most two seconds: counters need one tick, drivers of GPUs some time to start. */
static int look_once(struct agent *a)
{
	int64_t begin = clock_mono_ns();
	int r = agent_tick(a);

	if (r < 0)
		return r;
	agent_look_at_records(a);
	while (r == 0 && !agent_has_gpus(a) && clock_mono_ns() - begin < FIRST_GPU_MS * NS_PER_MS) {
		if (!live_wait(clock_mono_ns() + LOOK_MS * NS_PER_MS))
			return -EINTR;
		r = agent_tick(a);
	}
	return r == 0 ? agent_tick(a) : r;
}

static int print_once(struct cli *cli, struct agent *a, const struct agent_cli *o)
{
	struct err e = { 0 };
	char why[80];
	int r = o->root ? agent_tick(a) : look_once(a);

	while (r == 0 && o->root && agent_advance(a))
		r = agent_tick(a);
	if (r < 0) {
		err_set(&e, r, "cannot read this machine: %s", err_name(r, why, sizeof(why)));
		return cli_fail(cli, &e);
	}
	agent_expose(a, o->open_metrics ? EXPOSITION_OPENMETRICS : EXPOSITION_TEXT, &cli->out);
	return EXIT_OK;
}

static int tick_on(struct cli *cli, struct agent *a, struct agent_push *push)
{
	int64_t next = clock_mono_ns();
	struct err e = { 0 };
	char why[80];

	for (;;) {
		int64_t late;
		int r = agent_tick(a);

		if (r < 0 && r != -ENODATA) {
			err_set(&e, r, "cannot go on: %s", err_name(r, why, sizeof(why)));
			return cli_fail(cli, &e);
		}
		agent_push_tick(push, a);
		next += NS_PER_S;
		late = clock_mono_ns() - next;
		if (late > 0) { /* the machine slept, or is too busy for us */
			agent_skip(a, (uint64_t)(late / NS_PER_S) + 1);
			next = clock_mono_ns() + NS_PER_S;
		}
		if (!live_wait(next))
			return EXIT_OK;
	}
}

static int serve(struct cli *cli, struct agent *a, struct agent_push *push,
		 const struct agent_cli *o)
{
	struct site site = { .agent = a };
	struct err e = { 0 };
	struct http *http;
	int status;

	/* Whoever reads the address may end it right away. */
	live_hold_signals();
	/* The first scrape finds something. */
	(void)agent_tick(a);
	/* Before there is a thread that tells of it. */
	if (agent_push_start(push, cli, &o->pushing, a, &e) < 0)
		return cli_fail(cli, &e);
	if (http_start(o->listen, answer, &site, &http, &e) < 0) {
		agent_push_stop(push, a);
		return cli_fail(cli, &e);
	}
	cli_say(cli, "spotter: metrics at http://%s/metrics", http_address(http));
	if (!http_is_local(http))
		cli_say(cli, "spotter: whoever reaches this address can read them: names of runs, "
			     "programs and devices are among them");
	status = tick_on(cli, a, push);
	http_stop(http);
	agent_push_stop(push, a);
	return status;
}

static int run_agent(struct cli *cli, void *options, const struct opt_rest *rest)
{
	const struct agent_cli *o = options;
	struct agent_push push = { 0 };
	struct agent_options ao = { .root = o->root,
				    .nvml = nvml_path(o->nvml),
				    .node = o->node,
				    .records = o->records,
				    .judge_ns = o->no_verdicts ? 0 : o->judge_ns,
				    .once = o->once,
				    .more = agent_push_series,
				    .more_arg = &push };
	char folder[PATH_MAX], host[128], port[16];
	struct agent *a;
	struct err e = { 0 };
	int status;

	(void)rest;
	/* As the kernel calls it. One that is not there yet may come. */
	if (o->records && realpath(o->records, folder))
		ao.records = folder;
	if (o->root && !o->once)
		return cli_usage(cli, "--root is for --once: a captured machine stands still");
	if (o->open_metrics && !o->once)
		return cli_usage(cli, "--openmetrics is for --once: over HTTP the reader asks for "
				      "the format it wants");
	if (o->once && pushing_wanted(&o->pushing))
		return cli_usage(cli, "--once prints and ends: it pushes nothing");
	if (!http_split(o->listen, host, sizeof(host), port, sizeof(port)))
		return cli_usage(cli,
				 "'%s' is no address to listen on: it is ADDRESS:PORT, as "
				 "127.0.0.1:9815, [::1]:9815, or :9815 for all",
				 o->listen);
	if (pushing_check(&o->pushing, &e) < 0)
		return cli_misuse(cli, &e);
	record_limit_memory(RECORD_MEMORY);
	if (agent_open(&ao, &a, &e) < 0)
		return cli_fail(cli, &e);
	status = o->once ? print_once(cli, a, o) : serve(cli, a, &push, o);
	agent_close(a);
	return status;
}

static const struct example examples[] = {
	{ "agent", "metrics for Prometheus at http://127.0.0.1:9815/metrics" },
	{ "agent --listen :9815", "the same for other machines" },
	{ "agent --remote-write http://prom:9090/api/v1/write --push-queue "
	  "/var/lib/spotter-agent/push",
	  "push as well, and lose nothing while nobody takes it" },
	{ "agent --once > spotter.prom", "one look, for node_exporter's textfile collector" },
	{ NULL, NULL },
};

static const struct opt opts[] = {
	OPT("listen", 'l', OPT_STRING, "ADDR:PORT", struct agent_cli, listen,
	    "where to answer (default 127.0.0.1:9815; port 0: a free one; :9815: on all "
	    "addresses)"),
	OPT("once", '1', OPT_FLAG, NULL, struct agent_cli, once,
	    "print the metrics on standard output and end"),
	OPT("openmetrics", 0, OPT_FLAG, NULL, struct agent_cli, open_metrics,
	    "with --once: OpenMetrics 1.0.0 instead of Prometheus' text format"),
	OPT("node", 0, OPT_STRING, "NAME", struct agent_cli, node,
	    "value of the label node (default: the hostname)"),
	OPT("records", 0, OPT_STRING, "DIR", struct agent_cli, records,
	    "follow only records in DIR (default: whatever a recorder on this machine writes)"),
	OPT("verdict-every", 0, OPT_DURATION, "TIME", struct agent_cli, judge_ns,
	    "time between verdicts about a run that is recorded (default 30s)", .min = 1,
	    .max = 86400),
	OPT("no-verdicts", 0, OPT_FLAG, NULL, struct agent_cli, no_verdicts,
	    "no verdicts and ledgers"),
	OPT("remote-write", 0, OPT_STRING, "URL", struct agent_cli, pushing.remote_write,
	    "push to what takes Prometheus' remote_write: http://HOST:9090/api/v1/write"),
	OPT("otlp", 0, OPT_STRING, "URL", struct agent_cli, pushing.otlp,
	    "push to an OpenTelemetry collector: http://HOST:4318"),
	OPT("push-queue", 0, OPT_STRING, "DIR", struct agent_cli, pushing.queue,
	    "keep what cannot be sent yet in DIR (default: in memory)"),
	OPT("push-queue-size", 0, OPT_SIZE, "SIZE", struct agent_cli, pushing.queue_bytes,
	    "at most so much of it for each address, the oldest is dropped (default 64M, in "
	    "memory 8M)",
	    .min = 1 << 20, .max = 1e12),
	PUSHING_OPTS(struct agent_cli, pushing, "15s"),
	NVML_OPT(struct agent_cli, nvml),
	OPT("root", 0, OPT_STRING, "DIR", struct agent_cli, root,
	    "with --once: read the machine captured in DIR, or mounted there"),
	COMMON_OPTS,
	OPT_END,
};

static const struct agent_cli defaults = { .listen = "127.0.0.1:9815", .judge_ns = 30 * NS_PER_S };

const struct command agent_command = {
	.name = "agent",
	.group = "fleet",
	.summary = "this machine and all trainings on it, as metrics for Prometheus",
	.words = "",
	.description =
	    "Runs until it is stopped, samples the machine once a second, finds every training on "
	    "it by itself, and answers at /metrics in Prometheus' text format or, when asked, "
	    "OpenMetrics.\n"
	    "\n"
	    "A training is a tree of processes with a GPU context, with PyTorch, TensorFlow, JAX "
	    "or "
	    "MXNet loaded, with a rank in its environment (torchrun, Slurm, MPI, Kubernetes), or "
	    "with a record that 'spotter run' or 'attach' is writing. Steps, loss, the verdict and "
	    "the ledgers come from that record; without one there is what can be seen from "
	    "outside. What may not be read is absent, never zero, and counted.\n"
	    "\n"
	    "The label run_id is $SPOTTER_RUN_ID, else that of torchrun, Slurm (JOB.STEP), "
	    "Kubernetes or MPI, else that of the record, else made from the first process.",
	.examples = examples,
	.opts = opts,
	.options_size = sizeof(struct agent_cli),
	.defaults = &defaults,
	.run = run_agent,
};
