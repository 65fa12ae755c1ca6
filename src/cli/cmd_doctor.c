/* SPDX-License-Identifier: MIT */
#include "cli/command.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/doctor.h"

#include <errno.h>
#include <string.h>

enum { LABEL = 18, COLUMNS = 80 };

struct doctor_options {
	struct common_options common;
	const char *capture, *root;
};

static const char *const status_names[] = {
	[DOCTOR_OK] = "ok",
	[DOCTOR_LIMITED] = "limited",
	[DOCTOR_MISSING] = "missing",
	[DOCTOR_UNKNOWN] = "unknown",
};

static void put_reach_json(struct json *j, const struct doctor_reach *at)
{
	char level[4];

	snprintf(level, sizeof(level), "L%d", at->level & 3);
	json_key_str(j, "level", level);
	json_key_str(j, "level_why", at->why);
	json_key_str(j, "level_unlock", at->unlock[0] ? at->unlock : NULL);
}

static void put_json(const struct doctor *d, struct buf *out)
{
	struct json j;

	json_init(&j, out, true);
	json_begin(&j, '{');
	json_key_str(&j, "schema", "spotter.doctor/1");
	json_key_str(&j, "version", SPOTTER_VERSION);
	put_reach_json(&j, &d->run);
	json_key_begin(&j, "attach", '{');
	put_reach_json(&j, &d->attach);
	json_end(&j, '}');
	json_key_begin(&j, "checks", '[');
	for (size_t i = 0; i < d->rows.n; i++) {
		const struct doctor_row *r = &d->rows.v[i];

		json_begin(&j, '{');
		json_key_str(&j, "id", r->id);
		json_key_str(&j, "status", status_names[r->status]);
		json_key_str(&j, "value", r->value);
		json_key_str(&j, "effect", r->effect[0] ? r->effect : NULL);
		json_key_str(&j, "unlock", r->unlock[0] ? r->unlock : NULL);
		json_end(&j, '}');
	}
	json_end(&j, ']');
	json_end(&j, '}');
	buf_char(out, '\n');
}

static void put_row(const struct cli *cli, const struct doctor_row *r, struct buf *out)
{
	static const enum ink inks[] = { [DOCTOR_OK] = INK_GREEN,
					 [DOCTOR_LIMITED] = INK_YELLOW,
					 [DOCTOR_MISSING] = INK_RED,
					 [DOCTOR_UNKNOWN] = INK_DIM };

	buf_printf(out, "%s%-8s%s %-*s ", cli_ink(cli->color_out, inks[r->status]),
		   status_names[r->status], cli_ink(cli->color_out, INK_PLAIN), LABEL - 2,
		   r->label);
	text_safe(out, r->value, strlen(r->value));
	buf_char(out, '\n');
	if (r->effect[0])
		help_wrap(r->effect, 9 + LABEL - 1, COLUMNS, out);
	if (r->unlock[0])
		buf_printf(out, "%*sto change it: %s\n", 9 + LABEL - 1, "", r->unlock);
}

/* "Level L2: stacks and waits; ...", and what raises it. */
static void put_reach(const struct doctor_reach *at, const char *label, struct buf *out)
{
	char text[640];

	snprintf(text, sizeof(text), "%s L%d: %s.", label, at->level, at->why);
	help_wrap(text, 0, COLUMNS, out);
	if (at->unlock[0])
		buf_printf(out, "  to raise it: %s\n", at->unlock);
}

static void put_text(const struct cli *cli, const struct doctor *d, struct buf *out)
{
	unsigned less = 0;

	for (size_t i = 0; i < d->rows.n; i++) {
		put_row(cli, &d->rows.v[i], out);
		less +=
		    d->rows.v[i].status == DOCTOR_LIMITED || d->rows.v[i].status == DOCTOR_MISSING;
	}
	buf_char(out, '\n');
	if (d->run.level == d->attach.level && !strcmp(d->run.why, d->attach.why)) {
		put_reach(&d->run, "Level", out);
	} else {
		put_reach(&d->run, "Level of 'run'", out);
		put_reach(&d->attach, "Level of 'attach'", out);
	}
	if (less)
		buf_printf(out, "%u thing%s limited or missing; everything else works.\n", less,
			   less == 1 ? " is" : "s are");
	else
		buf_str(out, "Nothing stands in the way.\n");
}

static int run_capture(struct cli *cli, const char *dir)
{
	struct err e = { 0 };
	unsigned files = 0;

	if (capture(dir, &files, &e) < 0)
		return cli_fail(cli, &e);
	cli_say(cli,
		"spotter: %u files in '%s', without host and user names, command lines and "
		"addresses; look through them before you share them",
		files, dir);
	cli_say(cli, "  see it as Spotter does: spotter top --once --root %s", dir);
	return EXIT_OK;
}

static int run_doctor(struct cli *cli, void *options, const struct opt_rest *rest)
{
	const struct doctor_options *o = options;
	struct doctor d = { 0 };
	struct host host;
	struct err e = { 0 };
	int r;

	(void)rest;
	if (o->capture && (o->root || o->common.json))
		return cli_usage(cli,
				 "--capture writes files of this machine; it goes with no other "
				 "option");
	if (o->capture)
		return run_capture(cli, o->capture);
	if (host_open(&host, o->root, &e) < 0)
		return cli_fail(cli, &e);
	r = doctor_look(&d, &host);
	if (r == 0 && o->common.json)
		put_json(&d, &cli->out);
	else if (r == 0)
		put_text(cli, &d, &cli->out);
	doctor_done(&d);
	host_close(&host);
	return r == 0 ? EXIT_OK : cli_fail(cli, &(struct err){ .code = r });
}

static const struct example examples[] = {
	{ "doctor", "what can be seen here, and what unlocks the rest" },
	{ "doctor --capture my-machine", "files for a bug report, without names" },
	{ NULL, NULL },
};

static const struct opt opts[] = {
	OPT("capture", 0, OPT_STRING, "DIR", struct doctor_options, capture,
	    "write what Spotter reads of this machine to DIR, twice, a second apart"),
	OPT("root", 0, OPT_STRING, "DIR", struct doctor_options, root,
	    "look at the machine captured in DIR instead of this one"),
	JSON_OPT,
	COMMON_OPTS,
	OPT_END,
};

const struct command doctor_command = {
	.name = "doctor",
	.group = "about",
	.summary = "what can be seen here, what cannot, and what unlocks it",
	.words = "",
	.description =
	    "Looks at everything Spotter depends on: the kernel's counters, control groups, "
	    "rights, "
	    "limits, and where records go. Each line that is not 'ok' says what is lost, and the "
	    "command that changes it where there is one. Nothing is changed by looking.\n"
	    "\n"
	    "Rights are tried, not guessed: on a process of its own, as 'run' would read what it "
	    "starts, and as a stranger to it, as 'attach' would. The last lines tell which "
	    "observation level follows: L3 stacks, waits and sampled native code, L2 without the "
	    "last, L1 counters of processes and threads, L0 of the machine and control groups.\n"
	    "\n"
	    "--capture writes a fixture: a copy of the files Spotter reads, from which host and "
	    "user "
	    "names, command lines, process names, addresses and paths have been removed or "
	    "replaced. "
	    "'spotter top --once --root DIR' reads it, so a report of a bug can become a test.",
	.examples = examples,
	.opts = opts,
	.options_size = sizeof(struct doctor_options),
	.max_words = 0,
	.run = run_doctor,
};
