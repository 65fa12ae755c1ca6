/* SPDX-License-Identifier: MIT
 *
 * src/push in the hands of a test that is not C:
 *
 *	push_as snappy <bytes >compressed
 *	push_as encode remote-write|otlp >body         of samples that check_encoders.py knows
 *	push_as send KIND URL [NAME=VALUE]...          queue=DIR size=BYTES token=FILE user=FILE ca=FILE header=TEXT
 *	                                               timeout=MS backoff=MS node=NAME
 *
 * `send` takes lines: "give N VALUE TIME_MS" (N series), "stats", "close MS"; the latter two are answered with a line
 * of JSON. At the end of input it ends at once, as one that is killed does.
 */
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/num.h"
#include "push/push.h"
#include "push/remote_write.h"
#include "push/snappy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct series_family temperature = { .name = "spotter_gpu_temperature_celsius",
						  .type = SERIES_GAUGE,
						  .unit = "celsius",
						  .help = "",
						  .opentelemetry = "" };
static const struct series_family steps = { .name = "spotter_steps_total",
					    .type = SERIES_COUNTER,
					    .unit = "",
					    .help = "",
					    .opentelemetry = "" };
static const struct series_family energy = { .name = "spotter_gpu_energy_joules_total",
					     .type = SERIES_COUNTER,
					     .unit = "joules",
					     .help = "",
					     .opentelemetry = "hw.energy" };
static const struct series_family info = {
	.name = "spotter_run_info", .type = SERIES_INFO, .unit = "", .help = "", .opentelemetry = ""
};
static const struct series_family duration = { .name = "spotter_step_duration_seconds",
					       .type = SERIES_HISTOGRAM,
					       .unit = "seconds",
					       .help = "",
					       .opentelemetry = "" };

#define T     1700000000123
#define START 1699999999000

static const struct series_sample samples[] = {
	{ &temperature,
	  "spotter_gpu_temperature_celsius",
	  SERIES_VALUE,
	  { { "node", "n1" },
	    { "gpu", "0" },
	    { "Zone", "z" },
	    { "gpu", "twice" },
	    { "empty", "" } },
	  5,
	  61.5,
	  T,
	  0 },
	{ &temperature,
	  "spotter_gpu_temperature_celsius",
	  SERIES_VALUE,
	  { { "gpu", "1" } },
	  1,
	  NAN,
	  T,
	  0 },
	{ &temperature,
	  "spotter_gpu_temperature_celsius",
	  SERIES_VALUE,
	  { { "gpu", "2" }, { "node", "evil\n\x1b[2J\xff\xc3\xa9" } },
	  2,
	  -0.25,
	  T,
	  0 },
	{ &steps, "spotter_steps_total", SERIES_VALUE, { { "rank", "3" } }, 1, 4096, T, START },
	{ &energy,
	  "spotter_gpu_energy_joules_total",
	  SERIES_VALUE,
	  { { "gpu", "0" } },
	  1,
	  1e9,
	  T,
	  0 },
	{ &info, "spotter_run_info", SERIES_VALUE, { { "name", "train" } }, 1, 1, T, 0 },
	{ &duration,
	  "spotter_step_duration_seconds_bucket",
	  SERIES_BUCKET,
	  { { "rank", "0" }, { "le", "0.1" } },
	  2,
	  2,
	  T,
	  START },
	{ &duration,
	  "spotter_step_duration_seconds_bucket",
	  SERIES_BUCKET,
	  { { "rank", "0" }, { "le", "1" } },
	  2,
	  7,
	  T,
	  START },
	{ &duration,
	  "spotter_step_duration_seconds_bucket",
	  SERIES_BUCKET,
	  { { "rank", "0" }, { "le", "+Inf" } },
	  2,
	  9,
	  T,
	  START },
	{ &duration,
	  "spotter_step_duration_seconds_sum",
	  SERIES_SUM,
	  { { "rank", "0" } },
	  1,
	  6.5,
	  T,
	  START },
	{ &duration,
	  "spotter_step_duration_seconds_count",
	  SERIES_COUNT,
	  { { "rank", "0" } },
	  1,
	  9,
	  T,
	  START },
	{ &duration,
	  "spotter_step_duration_seconds_bucket",
	  SERIES_BUCKET,
	  { { "rank", "1" }, { "le", "0.1" } },
	  2,
	  1,
	  T,
	  START },
	{ &duration,
	  "spotter_step_duration_seconds_bucket",
	  SERIES_BUCKET,
	  { { "rank", "1" }, { "le", "+Inf" } },
	  2,
	  1,
	  T,
	  START },
	{ &duration,
	  "spotter_step_duration_seconds_sum",
	  SERIES_SUM,
	  { { "rank", "1" } },
	  1,
	  0.05,
	  T,
	  START },
	{ &duration,
	  "spotter_step_duration_seconds_count",
	  SERIES_COUNT,
	  { { "rank", "1" } },
	  1,
	  1,
	  T,
	  START },
};

static int print(const struct buf *out)
{
	return buf_ok(out) && fwrite(out->data, 1, out->len, stdout) == out->len ? 0 : 1;
}

static int compress(void)
{
	auto_done(buf) struct buf in = { 0 }, out = { 0 };
	char piece[4096];
	size_t n;

	while ((n = fread(piece, 1, sizeof(piece), stdin)) > 0)
		buf_put(&in, piece, n);
	snappy_compress(buf_text(&in), in.len, &out);
	return print(&out);
}

static int encode(const char *kind)
{
	struct push_resource who = { .host = "n1", .run_id = "20261116-a" };
	auto_done(remote_write) struct remote_write w = { 0 };
	auto_done(otlp) struct otlp o = { 0 };
	auto_done(buf) struct buf out = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
		remote_write_add(&w, &samples[i]);
		otlp_add(&o, &samples[i]);
	}
	if (strcmp(kind, "otlp") == 0)
		otlp_end(&o, &who, &out);
	else
		remote_write_end(&w, &out);
	return print(&out);
}

static void give(struct push *p, const char *node, unsigned n, double value, int64_t time_ms)
{
	for (unsigned i = 0; i < n; i++) {
		char series[16];
		struct series_sample s = { .family = &steps,
					   .name = "spotter_steps_total",
					   .labels = { { "node", node }, { "series", series } },
					   .n_labels = 2,
					   .value = value,
					   .time_ms = time_ms };

		snprintf(series, sizeof(series), "%u", i);
		push_take(&s, p);
	}
	push_flush(p);
}

static void tell(const struct push_stats *s)
{
	auto_done(buf) struct buf out = { 0 };
	struct json j;

	json_init(&j, &out, false);
	json_begin(&j, '{');
	json_key_int(&j, "taken", (int64_t)s->taken_samples);
	json_key_int(&j, "sent", (int64_t)s->sent_samples);
	json_key_int(&j, "requests", (int64_t)s->sent_requests);
	json_key_int(&j, "bytes", (int64_t)s->sent_bytes);
	json_key_int(&j, "retries", (int64_t)s->retries);
	json_key_int(&j, "queue_bytes", (int64_t)s->queue_bytes);
	json_key_int(&j, "queue_samples", (int64_t)s->queue_samples);
	json_key_int(&j, "damaged", (int64_t)s->queue_damaged);
	for (unsigned i = 0; i < PUSH_DROPS; i++)
		json_key_int(&j, push_drop_name(i), (int64_t)s->dropped_samples[i]);
	json_key_str(&j, "problem", s->problem);
	json_end(&j, '}');
	printf("%s\n", buf_text(&out));
	fflush(stdout);
}

static bool set(struct push_options *o, const char **header, const char *name, const char *value)
{
	double number = 0;

	num_parse_double(value, &number);
	if (strcmp(name, "queue") == 0)
		o->queue = value;
	else if (strcmp(name, "size") == 0)
		o->queue_bytes = (uint64_t)number;
	else if (strcmp(name, "token") == 0)
		o->token_file = value;
	else if (strcmp(name, "user") == 0)
		o->user_file = value;
	else if (strcmp(name, "ca") == 0)
		o->ca_file = value;
	else if (strcmp(name, "node") == 0)
		o->who.host = value;
	else if (strcmp(name, "header") == 0)
		*header = value;
	else if (strcmp(name, "timeout") == 0)
		o->timeout_ns = (int64_t)number * NS_PER_MS;
	else if (strcmp(name, "backoff") == 0)
		o->backoff_ns = (int64_t)number * NS_PER_MS;
	else
		return false;
	return true;
}

static int obey(struct push *p, const char *node)
{
	char line[256];

	while (fgets(line, sizeof(line), stdin)) {
		struct push_stats stats[PUSH_ADDRESSES_MAX] = { 0 };
		char *at = line + strcspn(line, " \n");

		if (strncmp(line, "give ", 5) == 0) {
			unsigned n = (unsigned)strtoul(at, &at, 10);
			double value = strtod(at, &at);

			give(p, node, n, value, strtoll(at, &at, 10));
		} else if (strncmp(line, "stats", 5) == 0) {
			push_stats(p, 0, &stats[0]);
			tell(&stats[0]);
		} else if (strncmp(line, "close ", 6) == 0) {
			push_close(p, strtoll(at, &at, 10) * NS_PER_MS, stats);
			tell(&stats[0]);
			return 0;
		}
	}
	_exit(0);
}

static int send_out(int argc, char **argv)
{
	struct push_options o = { .addresses = { { PUSH_REMOTE_WRITE, argv[1] } },
				  .addresses_n = 1,
				  .who = { .host = "n1" } };
	const char *header = NULL;
	struct err e = { 0 };
	struct push *p;

	if (strcmp(argv[0], "otlp") == 0)
		o.addresses[0].kind = PUSH_OTLP;
	for (int i = 2; i < argc; i++) {
		char *equals = strchr(argv[i], '=');

		if (!equals)
			return 2;
		*equals = 0;
		if (!set(&o, &header, argv[i], equals + 1))
			return 2;
	}
	o.headers = &header;
	o.headers_n = header != NULL;
	if (push_open(&o, &p, &e) < 0) {
		fprintf(stderr, "%s (%s)\n", e.text, e.hint);
		return 1;
	}
	return obey(p, o.who.host);
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "snappy") == 0)
		return compress();
	if (argc == 3 && strcmp(argv[1], "encode") == 0)
		return encode(argv[2]);
	if (argc >= 4 && strcmp(argv[1], "send") == 0)
		return send_out(argc - 2, argv + 2);
	return 2;
}
