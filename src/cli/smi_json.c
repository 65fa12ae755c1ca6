/* SPDX-License-Identifier: MIT
 *
 * Everything known of the GPUs: metrics by their names in 'spotter metrics' and in their units,
 * properties by theirs (property.def). What is not known is left out.
 */
#include "cli/smi.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"

#include <math.h>
#include <string.h>

static void put_text(struct json *j, const char *key, const char *text)
{
	if (*text)
		json_key_str(j, key, text);
}

static const char *state_name(uint8_t state)
{
	static const char *const names[GPU_HAVES] = {
		"not_asked", "ok",          "not_supported", "no_permission", "deprecated",
		"lost",      "needs_reset", "hung",          "failed",
	};

	return names[state];
}

static void put_values(struct json *j, const struct gpu_device *d)
{
	json_key_begin(j, "metrics", '{');
	for (int m = GPU_METRIC_FIRST; m < GPU_METRIC_FIRST + GPU_METRICS; m++) {
		const struct gpu_cell *c = gpu_metric(d, (enum metric_id)m);

		if (c->have == GPU_KNOWN)
			json_key_num(j, metrics[m].name, metric_value((enum metric_id)m, c->raw));
	}
	json_end(j, '}');
	json_key_begin(j, "properties", '{');
	for (int p = 0; p < GPU_PROPERTIES; p++) {
		if (d->property[p].have != GPU_KNOWN)
			continue;
		if (gpu_properties[p].type == GPU_TEXT)
			json_key_str(j, gpu_properties[p].name, d->property[p].text);
		else
			json_key_int(j, gpu_properties[p].name, d->property[p].number);
	}
	json_end(j, '}');
}

static void put_device(struct json *j, const struct gpu_snapshot *s, int row)
{
	const struct gpu_device *d = &s->device[row];

	json_begin(j, '{');
	json_key_int(j, "index", gpu_number(s, row));
	if (d->partition >= 0) {
		json_key_int(j, "partition", d->partition);
		put_text(j, "profile", d->profile);
	}
	json_key_str(j, "vendor", gpu_vendor_name((enum gpu_vendor)d->vendor));
	json_key_str(j, "state", state_name(d->state));
	put_text(j, "name", d->name);
	put_text(j, "uuid", d->uuid);
	put_text(j, "pci", d->pci);
	put_text(j, "driver", d->driver);
	put_text(j, "runtime", d->runtime);
	json_key_bool(j, "simulated", d->simulated);
	json_key_bool(j, "unified_memory", d->unified);
	json_key_bool(j, "partitioned", d->partitioned);
	if (d->state == GPU_KNOWN)
		put_values(j, d);
	json_end(j, '}');
}

static void put_process(struct json *j, const struct smi_context *x, const struct gpu_process *p)
{
	const struct gpu_device *d = &x->snapshot->device[p->device];
	auto_done(buf) struct buf name = { 0 };

	smi_process_name(x, p, &name);
	json_begin(j, '{');
	json_key_int(j, "gpu", gpu_number(x->snapshot, p->device));
	if (d->partition >= 0)
		json_key_int(j, "partition", d->partition);
	json_key_int(j, "pid", p->pid);
	json_key_str(j, "kind", p->graphics ? "graphics" : "compute");
	json_key_str(j, "command", buf_text(&name));
	json_key_num(j, "memory_bytes", p->memory_kb < 0 ? NAN : (double)p->memory_kb * 1024);
	json_key_num(j, "busy", p->busy < 0 ? NAN : (double)p->busy * 1e-4);
	json_end(j, '}');
}

void smi_json_error(int status, const char *words, struct buf *out)
{
	auto_done(buf) struct buf line = { 0 };
	size_t n = strcspn(words, "\n");
	struct json j;

	buf_put(&line, words, n);
	json_init(&j, out, false);
	json_begin(&j, '{');
	json_key_str(&j, "schema", "spotter.smi/1");
	json_key_begin(&j, "error", '{');
	json_key_int(&j, "status", status);
	json_key_str(&j, "message", buf_text(&line));
	json_end(&j, '}');
	json_key_begin(&j, "gpus", '[');
	json_end(&j, ']');
	json_end(&j, '}');
	buf_char(out, '\n');
}

void smi_json(const struct smi_context *x, const struct smi_selection *sel, struct buf *out)
{
	const struct gpu_snapshot *s = x->snapshot;
	char when[32], cuda[24];
	struct json j;

	json_init(&j, out, false);
	json_begin(&j, '{');
	json_key_str(&j, "schema", "spotter.smi/1");
	clock_iso(x->wall_ns, when, sizeof(when));
	json_key_str(&j, "time", when);
	put_text(&j, "driver", smi_driver(s));
	put_text(&j, "cuda", smi_cuda(s, cuda, sizeof(cuda)));
	json_key_begin(&j, "gpus", '[');
	for (int i = 0; i < s->n_devices; i++)
		if (sel->row[smi_whole(s, i)])
			put_device(&j, s, i);
	json_end(&j, ']');
	json_key_begin(&j, "processes", '[');
	for (int i = 0; i < s->n_processes; i++)
		if (sel->row[smi_whole(s, s->process[i].device)])
			put_process(&j, x, &s->process[i]);
	json_end(&j, ']');
	json_end(&j, '}');
	buf_char(out, '\n');
}
