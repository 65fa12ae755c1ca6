/* SPDX-License-Identifier: MIT */
#include "cli/command.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/json.h"
#include "web/http_server.h"
#include "web/serve_listen.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

struct serve_options {
	struct common_options common;
	const char *listen;
	int64_t port;
};

/* Readable when somebody wants it to end: Ctrl-C, kill, the terminal is closed. Threads that are started
 * later inherit that none of these is theirs. */
static int stop_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL);
	/* A viewer who goes away is nothing to die of. */
	(void)signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

static void put_place(struct cli *cli, const struct serve_listen *l, bool as_json)
{
	struct json j;

	if (!as_json) {
		buf_printf(&cli->out, "%s\n", l->url);
		return;
	}
	json_init(&j, &cli->out, true);
	json_begin(&j, '{');
	json_key_str(&j, "schema", "spotter.serve/1");
	json_key_str(&j, "url", l->url);
	json_key_str(&j, "address", l->address);
	json_key_int(&j, "port", l->self.port);
	json_key_bool(&j, "loopback", !l->beyond);
	json_end(&j, '}');
	buf_char(&cli->out, '\n');
}

static void say_place(struct cli *cli, const struct serve_listen *l)
{
	if (l->beyond)
		cli_say(
		    cli,
		    "spotter: WARNING: other machines can reach %s, port %d. Whoever has the "
		    "address "
		    "above can read all your runs, and so can whoever sees it go by: it is not "
		    "encrypted. "
		    "Safer: leave out --listen, and on the other machine 'ssh -L %d:127.0.0.1:%d "
		    "THIS-MACHINE'",
		    l->address, l->self.port, l->self.port, l->self.port);
	if (l->self.any_address)
		cli_say(cli,
			"spotter: from elsewhere put this machine's name or number in place of "
			"127.0.0.1");
	cli_say(cli, "spotter: open this address in a browser; Ctrl-C ends it");
}

static int run_serve(struct cli *cli, void *options, const struct opt_rest *rest)
{
	const struct serve_options *o = options;
	struct serve_listen l = { .fd = -1 };
	auto_close int stop_fd = -1;
	struct err e = { 0 };
	int r;

	(void)rest;
	if (o->listen && !serve_address_ok(o->listen))
		return cli_usage(cli,
				 "'%s' is no address to listen on: a number like 127.0.0.1, ::1 or "
				 "0.0.0.0",
				 o->listen);
	r = http_possible(&e);
	if (r == 0)
		r = serve_listen(o->listen, (int)o->port, &l, &e);
	if (r < 0)
		return cli_fail(cli, &e);
	stop_fd = stop_signals();
	if (stop_fd < 0)
		r = err_set(&e, -errno, "cannot wait for signals");
	put_place(cli, &l, o->common.json);
	if (r == 0 && cli_flush(cli)) {
		say_place(cli, &l);
		r = http_serve(&l, stop_fd, &e);
	}
	serve_listen_done(&l);
	return r == 0 ? EXIT_OK : cli_fail(cli, &e);
}

static const struct example examples[] = {
	{ "serve", "the dashboard, for a browser on this machine" },
	{ "serve --port 0", "on any port that is free" },
	{ "serve --listen 0.0.0.0", "for browsers on other machines, too; not encrypted" },
	{ NULL, NULL },
};

static const struct opt opts[] = {
	OPT("port", 'p', OPT_INT, "N", struct serve_options, port,
	    "the port to listen on (default 7768); 0: one that is free", .min = 0, .max = 65535),
	OPT("listen", 0, OPT_STRING, "ADDR", struct serve_options, listen,
	    "the address to listen on (default 127.0.0.1, which only this machine can reach)"),
	JSON_OPT,
	COMMON_OPTS,
	OPT_END,
};

static const struct serve_options defaults = { .port = SERVE_PORT };

const struct command serve_command = {
	.name = "serve",
	.group = "explain",
	.summary = "a live dashboard of running and past runs, in a browser",
	.words = "",
	.description =
	    "Shows the runs of the folder of runs: those that go on first, each with its verdict; "
	    "behind each the page that 'spotter report --html' writes, which follows a run while "
	    "it "
	    "goes on. It only reads, and at most once a second, however many look at it.\n\n"
	    "The address it prints carries a token, new each time, without which nobody gets "
	    "anything; the browser keeps it as a cookie. It listens on this machine only: from "
	    "another one, 'ssh -L 7768:127.0.0.1:7768 MACHINE' and the same address. Ctrl-C ends "
	    "it.",
	.examples = examples,
	.opts = opts,
	.options_size = sizeof(struct serve_options),
	.defaults = &defaults,
	.max_words = 0,
	.run = run_serve,
};
