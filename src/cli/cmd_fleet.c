/* SPDX-License-Identifier: MIT */
#include "cli/command.h"

#include "base/clock.h"
#include "base/err.h"
#include "fleet/http.h"
#include "fleet/render.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

struct fleet_options {
	struct common_options common;
	const char *prometheus, *run, *at, *token_file, *user_file, *ca_file;
	struct opt_list headers;
	int64_t since, timeout;
};

static void say_empty(const struct cli *cli, const struct ask *a)
{
	if (a->fleet.runs.n)
		return;
	cli_say(
	    cli,
	    "the engine answers, but knows of no run: is 'spotter agent' on the nodes, and does "
	    "the engine scrape it? (a run that ended is listed within --since only)");
}

static void say_odd(const struct cli *cli, const struct ask *a)
{
	size_t odd = a->odd + a->fleet.odd;

	if (a->warning[0])
		cli_say(cli, "the engine warns: %s", a->warning);
	if (odd)
		cli_say(cli, "%zu series were passed over: no number, or not the labels of Spotter",
			odd);
}

static int run_fleet(struct cli *cli, void *options, const struct opt_rest *rest)
{
	const struct fleet_options *o = options;
	const char *url = o->prometheus ? o->prometheus : getenv("SPOTTER_PROMETHEUS");
	struct http_options h = { .url = url,
				  .token_file = o->token_file,
				  .user_file = o->user_file,
				  .ca_file = o->ca_file,
				  .headers = o->headers.v,
				  .headers_n = o->headers.n,
				  .timeout_ns = o->timeout };
	struct ask_options what = { .run = o->run, .since_ns = o->since, .at = o->at };
	struct err e = { 0 };
	struct http *http = NULL;
	struct ask a;
	int r;

	(void)rest;
	if (!url || !url[0])
		return cli_usage(cli, "--prometheus is missing: the address of the engine to ask");
	r = http_open(&h, &http, &e);
	if (r == -EINVAL)
		return cli_misuse(cli, &e);
	if (r == 0)
		r = ask_fleet(http, &what, &a, &e);
	if (r < 0) {
		http_close(http);
		return cli_fail(cli, &e);
	}
	if (o->common.json) {
		fleet_json(&a, http_shown(http), &cli->out);
	} else {
		struct fleet_page look = { .engine = http_shown(http),
					   .one_run = o->run != NULL,
					   .width = cli_columns(STDOUT_FILENO),
					   .color = cli->color_out };

		fleet_text(&a, &look, &cli->out);
		say_empty(cli, &a);
	}
	say_odd(cli, &a);
	ask_done(&a);
	http_close(http);
	return EXIT_OK;
}

static const struct example examples[] = {
	{ "fleet --prometheus http://prom:9090", "runs, stragglers, hangs, idle GPUs" },
	{ "fleet --prometheus http://prom:9090 --run 4711.0", "one run, rank by rank" },
	{ "fleet --prometheus http://prom:9090 --since 1h --json", "the last hour, for a program" },
	{ NULL, NULL },
};

static const struct opt opts[] = {
	OPT("prometheus", 0, OPT_STRING, "URL", struct fleet_options, prometheus,
	    "the engine: what has /api/v1/query below it (default $SPOTTER_PROMETHEUS)"),
	OPT("run", 0, OPT_STRING, "ID", struct fleet_options, run,
	    "only this run, with a table of its ranks"),
	OPT("since", 0, OPT_DURATION, "TIME", struct fleet_options, since,
	    "how far to look back (default 10m)", .min = 30, .max = 2678400),
	OPT("at", 0, OPT_STRING, "WHEN", struct fleet_options, at,
	    "as of then: 2026-11-16T14:00:00Z, or seconds since 1970 (default now)"),
	OPT("token-file", 0, OPT_STRING, "FILE", struct fleet_options, token_file,
	    "a bearer token to ask with (default $SPOTTER_PROMETHEUS_TOKEN)"),
	OPT("user-file", 0, OPT_STRING, "FILE", struct fleet_options, user_file,
	    "user:password to ask with (default $SPOTTER_PROMETHEUS_USER)"),
	OPT("ca-file", 0, OPT_STRING, "FILE", struct fleet_options, ca_file,
	    "certificates to trust instead of the system's"),
	OPT("header", 0, OPT_LIST, "LINE", struct fleet_options, headers,
	    "send this along: 'X-Scope-OrgID: team' (may be given several times)"),
	OPT("timeout", 0, OPT_DURATION, "TIME", struct fleet_options, timeout,
	    "for each of some thirty queries (default 30s)", .min = 1, .max = 600),
	JSON_OPT,
	COMMON_OPTS,
	OPT_END,
};

static const struct fleet_options defaults = { .since = 600 * NS_PER_S, .timeout = 30 * NS_PER_S };

const struct command fleet_command = {
	.name = "fleet",
	.group = "fleet",
	.summary = "many machines: stragglers and why, hung runs, idle GPUs held",
	.words = "",
	.description =
	    "Asks an engine that speaks Prometheus' HTTP API (Prometheus, VictoriaMetrics, Mimir, "
	    "Thanos) for what the agents of all machines told it, and says which runs there are, "
	    "which rank holds each of them up and why, which runs hang and whom they wait for, "
	    "which GPUs are held and do nothing, and what all that costs in GPU-hours.\n"
	    "\n"
	    "In synchronous training every rank takes the same time for a step, as all wait for "
	    "the "
	    "slowest. So the straggler is the rank that waits least: the one with the most work of "
	    "its own in a step, by more than ranks differ by chance. Where it is not known how "
	    "long "
	    "ranks wait for each other, that is said, and nobody is named.\n"
	    "\n"
	    "Credentials are read from a file or from the environment, never from the command "
	    "line, "
	    "which everybody on a machine can see. Redirects are not followed.\n"
	    "\n"
	    "The JSON has stable keys (\"schema\": \"spotter.fleet/1\"); a value that is not known "
	    "is an absent key.",
	.examples = examples,
	.opts = opts,
	.options_size = sizeof(struct fleet_options),
	.defaults = &defaults,
	.max_words = 0,
	.run = run_fleet,
};
