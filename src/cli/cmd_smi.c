/* SPDX-License-Identifier: MIT */
#include "cli/command.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/num.h"
#include "base/text.h"
#include "cli/live.h"
#include "cli/smi.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define LOOP_NS (5 * NS_PER_S) /* "-l" alone */

struct smi_options {
	struct common_options common;
	const char *query[SMI_QUERIES];
	const char *format, *ids, *loop, *file, *root, *nvml;
	int64_t loop_ms;
	bool list, version, help_query[SMI_QUERIES];
	bool full, xml; /* -q, -x: not offered */
};

enum smi_answer { SMI_SHOW_TABLE, SMI_SHOW_LIST, SMI_SHOW_VERSION, SMI_SHOW_CSV };

struct smi {
	struct cli *cli;
	const struct smi_options *o;
	enum smi_answer answer;
	enum smi_query query;
	struct smi_fields fields;
	struct smi_format format;
	int64_t every_ns; /* 0: once */
	int fd;           /* of -f, -1: standard output */
	struct smi_gpus *gpus;
	bool header_done, told_problems;
};

/* "-i=0" leaves "=0" behind the letter. */
static const char *without_equals(const char *value)
{
	return value && *value == '=' ? value + 1 : value;
}

/* --- what is asked for */

static int bad_field(struct smi *m, int error, const char *bad)
{
	struct cli *cli = m->cli;
	struct buf hint = { 0 };

	if (error != -EINVAL)
		return cli_fail(cli, &(struct err){ .code = error });
	/* As nvidia-smi says it, where it says it; programs look for this line. */
	buf_str(&cli->out, "Field \"");
	text_safe(&cli->out, bad, strlen(bad));
	buf_str(&cli->out, "\" is not a valid field to query.\n\n");
	smi_field_hint(m->query, bad, &hint);
	cli_flush(cli);
	cli_say(cli, "spotter: %s", buf_text(&hint));
	buf_done(&hint);
	return SMI_INVALID;
}

/* Nothing but the failure is to be shown: nvidia-smi's words for it, where it has them, or an answer that
 * a reader of JSON understands, with the words beside it. */
static int refuse(struct smi *m, int status, const char *words)
{
	if (m->o->common.json) {
		cli_say(m->cli, "%.*s", (int)strcspn(words, "\n"), words);
		smi_json_error(status, words, &m->cli->out);
	} else {
		buf_str(&m->cli->out, words);
	}
	cli_flush(m->cli);
	return status;
}

static int bad_usage(struct smi *m, const struct err *e)
{
	refuse(m, SMI_INVALID,
	       "Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n");
	cli_fail(m->cli, e);
	return SMI_INVALID;
}

static int plan_query(struct smi *m)
{
	const struct smi_options *o = m->o;
	struct err e = { 0 };
	char bad[80];
	int r;

	m->answer = SMI_SHOW_CSV;
	if (!o->format) {
		err_set(&e, -EINVAL, "--query-%s needs a format", smi_query_names[m->query]);
		err_hint(&e, "add --format=csv, or --format=csv,noheader,nounits for a program");
		return bad_usage(m, &e);
	}
	if (smi_format_parse(o->format, &m->format, &e) < 0)
		return bad_usage(m, &e);
	r = smi_fields_parse(m->query, o->query[m->query], &m->fields, bad, sizeof(bad));
	return r < 0 ? bad_field(m, r, bad) : SMI_OK;
}

static int plan_loop(struct smi *m)
{
	const char *every = without_equals(m->o->loop);

	if (m->o->loop_ms)
		m->every_ns = m->o->loop_ms * NS_PER_MS;
	if (!every)
		return SMI_OK;
	m->every_ns = LOOP_NS;
	if (*every && (!num_parse_duration(every, &m->every_ns) || m->every_ns < NS_PER_MS ||
		       m->every_ns > 86400 * NS_PER_S))
		return cli_usage(m->cli, "'-l %s': expected seconds, up to a day", every);
	return SMI_OK;
}

static int not_offered(struct smi *m, const char *word)
{
	char safe[48], words[140];

	text_safe_copy(safe, sizeof(safe), word);
	snprintf(words, sizeof(words),
		 "ERROR: Option %s is not recognized. Please run 'nvidia-smi -h' for help.\n",
		 safe);
	refuse(m, SMI_INVALID, words);
	cli_say(m->cli,
		"spotter: 'smi' has no '%s'; it has --query-gpu, --query-compute-apps, -L, and "
		"--json with everything it knows",
		safe);
	return SMI_INVALID;
}

static int plan(struct smi *m, const struct opt_rest *rest)
{
	const struct smi_options *o = m->o;
	int n = 0;

	if (rest->n || o->full || o->xml)
		return not_offered(m, rest->n ? rest->v[0] : o->full ? "-q" : "-x");
	for (int q = 0; q < SMI_QUERIES; q++) {
		if (!o->query[q])
			continue;
		m->query = (enum smi_query)q;
		n++;
	}
	if (n + o->list + o->version > 1 || (o->common.json && (n || o->list || o->version)) ||
	    (o->format && !n)) {
		struct err e = { 0 };

		err_set(&e, -EINVAL,
			"one of -L, --version, --json and one --query option; "
			"--format goes with a query");
		return bad_usage(m, &e);
	}
	m->answer = o->list ? SMI_SHOW_LIST : o->version ? SMI_SHOW_VERSION : SMI_SHOW_TABLE;
	if (n) {
		n = plan_query(m);
		if (n)
			return n;
	}
	return plan_loop(m);
}

/* --- the answer */

static void put_version(const struct gpu_snapshot *s, struct buf *out)
{
	const char *driver = s ? smi_driver(s) : "";
	char cuda[24] = "";

	if (s)
		smi_cuda(s, cuda, sizeof(cuda));
	buf_printf(out, "SPOTTER version     : %s\n", SPOTTER_VERSION);
	buf_printf(out, "DRIVER version      : %s\n", *driver ? driver : "[N/A]");
	buf_printf(out, "CUDA Version        : %s\n", *cuda ? cuda : "[N/A]");
}

static void put_answer(struct smi *m, const struct smi_context *x, const struct smi_selection *sel)
{
	struct buf *out = &m->cli->out;

	switch (m->answer) {
	case SMI_SHOW_LIST:
		smi_list(x->snapshot, sel, out);
		return;
	case SMI_SHOW_CSV:
		if (!m->header_done && !m->format.noheader)
			smi_csv_header(&m->fields, out);
		m->header_done = true;
		smi_csv_rows(x, m->query, &m->fields, sel, out);
		return;
	default:
		if (m->o->common.json)
			smi_json(x, sel, out);
		else
			smi_table(x, sel, out);
		return;
	}
}

/* Each round goes out at once: somebody may be reading the file. */
static int send(struct smi *m)
{
	struct cli *cli = m->cli;
	struct err e = { 0 };
	char why[80];
	int r;

	if (m->fd < 0)
		return cli_flush(cli) ? SMI_OK : EXIT_FAILED; /* said at the end */
	r = buf_ok(&cli->out) ? io_write_all(m->fd, buf_text(&cli->out), cli->out.len) : -ENOMEM;
	buf_reset(&cli->out);
	if (r == 0)
		return SMI_OK;
	err_set(&e, r, "cannot write '%s': %s", m->o->file, err_name(r, why, sizeof(why)));
	return cli_fail(cli, &e);
}

static void tell_trouble(struct smi *m)
{
	char text[240];

	while (smi_trouble(m->gpus, text, sizeof(text)))
		cli_say(m->cli, "spotter: %s", text);
}

/* GPUs of one vendor may be fine where another's driver is broken. */
static void tell_problems(struct smi *m, const struct gpu_snapshot *s)
{
	for (int v = 0; s && !m->told_problems && v < GPU_VENDORS; v++)
		if (s->problem[v][0])
			cli_say(m->cli, "spotter: %s: %s", gpu_vendor_name((enum gpu_vendor)v),
				s->problem[v]);
	m->told_problems = true;
}

/* No GPU at all: why, with nvidia-smi's words and status where there are some. */
static int no_gpus(struct smi *m, const struct gpu_snapshot *s)
{
	struct cli *cli = m->cli;
	auto_done(buf) struct buf words = { 0 };
	int status = smi_no_gpus(s, smi_driver_there(m->gpus), &words);

	refuse(m, status, buf_text(&words));
	tell_problems(m, s);
	if (status == SMI_NO_DEVICE)
		cli_say(cli, "spotter: no GPU of NVIDIA, AMD or Intel is to be seen here; "
			     "'spotter doctor' says more");
	return status;
}

static int all_failed(const struct gpu_snapshot *s, const struct smi_selection *sel)
{
	for (int i = 0; i < s->n_devices; i++)
		if (sel->row[i] && s->device[i].state == GPU_KNOWN)
			return SMI_OK;
	return SMI_LOST;
}

static int one_round(struct smi *m)
{
	struct smi_context x = { .root = smi_root(m->gpus), .nounits = m->format.nounits };
	struct smi_selection sel;
	struct err e = { 0 };
	int r;

	x.snapshot = smi_read(m->gpus, !m->every_ns, &x.wall_ns);
	tell_trouble(m);
	if (smi_stopped(m->gpus))
		return SMI_OK;
	if ((!x.snapshot || !x.snapshot->n_devices) && m->answer != SMI_SHOW_VERSION)
		return no_gpus(m, x.snapshot);
	tell_problems(m, x.snapshot);
	if (m->answer == SMI_SHOW_VERSION) {
		put_version(x.snapshot, &m->cli->out);
		return send(m);
	}
	if (smi_select(x.snapshot, without_equals(m->o->ids), &sel, &e) < 0) {
		refuse(m, SMI_NO_DEVICE, "No devices were found\n");
		cli_fail(m->cli, &e);
		return SMI_NO_DEVICE;
	}
	put_answer(m, &x, &sel);
	r = send(m);
	return r ? r : all_failed(x.snapshot, &sel);
}

static int loop(struct smi *m)
{
	int64_t next = clock_mono_ns();
	int r;

	if (!live_wait(next)) /* from here on a signal ends the loop between rounds, not a line */
		return SMI_OK;
	r = one_round(m);
	while ((r == SMI_OK || r == SMI_LOST) && !smi_stopped(m->gpus) && smi_advance(m->gpus)) {
		next += m->every_ns;
		if (next < clock_mono_ns()) /* slower than asked, or the machine slept */
			next = clock_mono_ns();
		if (!m->o->root && !live_wait(next))
			return SMI_OK;
		r = one_round(m);
	}
	return r;
}

static int open_file(struct smi *m)
{
	struct err e = { 0 };
	char why[80];

	if (!m->o->file)
		return SMI_OK;
	m->fd = open(m->o->file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
	if (m->fd >= 0)
		return SMI_OK;
	err_set(&e, -errno, "cannot write '%s': %s", m->o->file,
		err_name(-errno, why, sizeof(why)));
	return cli_fail(m->cli, &e);
}

static bool signalled(void)
{
	return !live_wait(0);
}

static int answer(struct smi *m)
{
	bool loops = m->every_ns && (m->answer == SMI_SHOW_CSV || m->answer == SMI_SHOW_TABLE);
	struct smi_source_options so = { .root = m->o->root,
					 .nvml = m->o->nvml,
					 .deep = m->answer != SMI_SHOW_CSV ||
						 smi_fields_deep(&m->fields),
					 .period_ns = m->every_ns,
					 .asked_to_stop = loops ? signalled : NULL };
	struct err e = { 0 };
	int r = open_file(m);

	if (r)
		return r;
	if (smi_open(&so, &m->gpus, &e) < 0)
		return cli_fail(m->cli, &e);
	if (loops)
		return loop(m);
	m->every_ns = 0;
	return one_round(m);
}

static int run_smi(struct cli *cli, void *options, const struct opt_rest *rest)
{
	const struct smi_options *o = options;
	struct smi m = { .cli = cli, .o = o, .fd = -1 };
	int r;

	for (int q = 0; q < SMI_QUERIES; q++) {
		if (!o->help_query[q])
			continue;
		smi_fields_help((enum smi_query)q, &cli->out);
		return SMI_OK;
	}
	r = plan(&m, rest);
	if (r == SMI_OK)
		r = answer(&m);
	smi_close(m.gpus);
	smi_fields_done(&m.fields);
	if (m.fd >= 0)
		close(m.fd);
	return r;
}

static const struct example examples[] = {
	{ "smi", "the GPUs and the processes on them" },
	{ "smi --query-gpu=index,utilization.gpu,memory.used --format=csv", "for a program" },
	{ "smi -i 0 --query-gpu=power.draw --format=csv,noheader,nounits -lms 500",
	  "one number twice a second" },
	{ "smi --query-compute-apps=pid,used_memory --format=csv", "who has device memory" },
	{ NULL, NULL },
};

static const struct opt opts[] = {
	OPT("query-gpu", 0, OPT_STRING, "FIELDS", struct smi_options, query[SMI_GPU],
	    "a row a GPU with these fields; needs --format"),
	OPT("query-compute-apps", 0, OPT_STRING, "FIELDS", struct smi_options, query[SMI_APPS],
	    "a row a process that computes on a GPU; needs --format"),
	OPT("query-accounted-apps", 0, OPT_STRING, "FIELDS", struct smi_options,
	    query[SMI_ACCOUNTED], "taken for the sake of scripts: a header without rows"),
	OPT("query-retired-pages", 0, OPT_STRING, "FIELDS", struct smi_options, query[SMI_PAGES],
	    "taken for the sake of scripts: a header without rows"),
	OPT("format", 0, OPT_STRING, "FORMAT", struct smi_options, format,
	    "csv, and after a comma noheader, nounits"),
	OPT("id", 'i', OPT_STRING, "GPU", struct smi_options, ids,
	    "only these GPUs: number, UUID or PCI address, several with commas"),
	OPT("loop", 'l', OPT_STRING, "SECONDS", struct smi_options, loop,
	    "again and again, every 5 seconds or as given", .optional_arg = true,
	    .next_word = true),
	OPT("loop-ms", 0, OPT_INT, "MS", struct smi_options, loop_ms,
	    "the same in milliseconds; also written -lms", .min = 1, .max = 86400e3,
	    .dashed = "lms"),
	OPT("filename", 'f', OPT_STRING, "FILE", struct smi_options, file,
	    "write to FILE instead of standard output"),
	OPT("list-gpus", 'L', OPT_FLAG, NULL, struct smi_options, list,
	    "a line a GPU and MIG instance, with its UUID"),
	OPT("help-query-gpu", 0, OPT_FLAG, NULL, struct smi_options, help_query[SMI_GPU],
	    "list the fields of --query-gpu"),
	OPT("help-query-compute-apps", 0, OPT_FLAG, NULL, struct smi_options, help_query[SMI_APPS],
	    "list the fields of --query-compute-apps"),
	OPT("help-query-accounted-apps", 0, OPT_FLAG, NULL, struct smi_options,
	    help_query[SMI_ACCOUNTED], "list its fields", .hidden = true),
	OPT("help-query-retired-pages", 0, OPT_FLAG, NULL, struct smi_options,
	    help_query[SMI_PAGES], "list its fields", .hidden = true),
	OPT("version", 0, OPT_FLAG, NULL, struct smi_options, version,
	    "versions of Spotter, the driver and CUDA"),
	OPT("query", 'q', OPT_FLAG, NULL, struct smi_options, full, "not offered", .hidden = true),
	OPT("xml-format", 'x', OPT_FLAG, NULL, struct smi_options, xml, "not offered",
	    .hidden = true),
	OPT("root", 0, OPT_STRING, "DIR", struct smi_options, root,
	    "read the machine captured in DIR ('spotter doctor --capture')"),
	OPT("nvml", 0, OPT_STRING, "FILE", struct smi_options, nvml,
	    "NVIDIA's library, or one that stands in for it (also SPOTTER_NVML)"),
	JSON_OPT,
	COMMON_OPTS,
	OPT_END,
};

const struct command smi_command = {
	.name = "smi",
	.group = "explain",
	.summary = "the GPUs now, for scripts that call nvidia-smi",
	.words = "",
	.description =
	    "Answers what scripts ask nvidia-smi for, in its words and formats, for GPUs of "
	    "NVIDIA, "
	    "AMD and Intel. Without options it shows the GPUs and the processes on them.\n"
	    "\n"
	    "To let scripts use it, put a file 'nvidia-smi' with these lines early in PATH:\n"
	    "\n"
	    "    #!/bin/sh\n"
	    "    exec spotter smi \"$@\"\n"
	    "\n"
	    "A GPU that is lost, or whose driver does not answer, has a row that says so, and "
	    "spoils "
	    "no other; what blocked is named on standard error. What a GPU cannot tell is [N/A], "
	    "never 0.\n"
	    "\n"
	    "Exit status: 0; 2 a field, format or option that is none; 6 no such GPU, or none at "
	    "all; 9 the driver is not loaded; 12 its library is missing; 15 every GPU asked for "
	    "has "
	    "failed.",
	.examples = examples,
	.opts = opts,
	.options_size = sizeof(struct smi_options),
	.max_words = -1,
	.run = run_smi,
};
