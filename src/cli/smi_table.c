/* SPDX-License-Identifier: MIT
 *
 * The GPUs and who is on them, for people.
 */
#include "cli/smi.h"

#include "base/auto.h"
#include "base/buf.h"
#include "cli/table.h"

#include <inttypes.h>
#include <string.h>

const char *smi_cuda(const struct gpu_snapshot *s, char *buf, size_t size)
{
	buf[0] = '\0';
	for (int i = 0; i < s->n_devices; i++) {
		const struct gpu_property *p = &s->device[i].property[GPU_P_CUDA];

		if (p->have != GPU_KNOWN || p->number <= 0)
			continue;
		snprintf(buf, size, "%d.%d", (int)(p->number / 1000), (int)(p->number % 1000 / 10));
		break;
	}
	return buf;
}

const char *smi_driver(const struct gpu_snapshot *s)
{
	for (int i = 0; i < s->n_devices; i++)
		if (s->device[i].driver[0])
			return s->device[i].driver;
	return "";
}

enum { MIB = 0 }; /* as a divisor: of kB, counted as in the CSV */

/* Whole numbers and no unit, "-" for what is not known. */
static void put(struct buf *b, const struct gpu_device *d, enum metric_id m, int divisor)
{
	const struct gpu_cell *c = gpu_metric(d, m);

	if (d->state != GPU_KNOWN || c->have != GPU_KNOWN)
		buf_char(b, '-');
	else if (divisor == MIB)
		buf_printf(b, "%" PRId64, smi_mib(c->raw));
	else
		buf_printf(b, "%.0f", (double)c->raw / divisor);
}

static void cell(struct table *t, const struct gpu_device *d, enum metric_id m, int divisor)
{
	auto_done(buf) struct buf b = { 0 };

	put(&b, d, m, divisor);
	table_cell(t, buf_text(&b));
}

static void cell_of(struct table *t, const struct gpu_device *d, enum metric_id used,
		    enum metric_id total, int divisor)
{
	auto_done(buf) struct buf b = { 0 };

	put(&b, d, used, divisor);
	buf_str(&b, " / ");
	put(&b, d, total, divisor);
	table_cell(t, buf_text(&b));
}

static const char *state_of(const struct gpu_device *d)
{
	static const char *const names[GPU_HAVES] = {
		[GPU_NOT_ASKED] = "not read",      [GPU_KNOWN] = "",
		[GPU_NOT_SUPPORTED] = "not read",  [GPU_NO_PERMISSION] = "no permission",
		[GPU_DEPRECATED] = "not read",     [GPU_LOST] = "lost",
		[GPU_NEEDS_RESET] = "needs reset", [GPU_HUNG] = "driver call hangs",
		[GPU_FAILED] = "driver error",
	};

	if (d->state != GPU_KNOWN)
		return names[d->state];
	if (d->partition >= 0 || strcmp(d->mode, "Default") == 0 || !d->mode[0])
		return !d->partitioned ? "" : d->vendor == GPU_NVIDIA ? "MIG" : "partitioned";
	return d->mode; /* compute or partition mode */
}

static void put_gpu(struct table *t, const struct gpu_snapshot *s, int row)
{
	const struct gpu_device *d = &s->device[row];
	const char *note[] = { state_of(d), d->unified && d->partition < 0 ? "unified memory" : "",
			       d->simulated && d->partition < 0 ? "simulated" : "" };
	auto_done(buf) struct buf notes = { 0 };

	if (d->partition >= 0)
		table_cellf(t, "%d:%d", gpu_number(s, row), d->partition);
	else
		table_cellf(t, "%d", gpu_number(s, row));
	if (d->partition >= 0)
		table_cellf(t, "  MIG %s", d->profile);
	else
		table_cell(t, d->name);
	cell(t, d, M_GPU_BUSY, 100);
	cell_of(t, d, M_GPU_MEM_USED, M_GPU_MEM_TOTAL, MIB);
	cell_of(t, d, M_GPU_POWER, M_GPU_POWER_LIMIT, 1000);
	cell(t, d, M_GPU_TEMPERATURE, 1);
	cell(t, d, M_GPU_CLOCK_SM, 1);
	for (size_t i = 0; i < ARRAY_LEN(note); i++)
		if (*note[i])
			buf_printf(&notes, "%s%s", notes.len ? ", " : "", note[i]);
	table_cell(t, buf_text(&notes));
}

static void put_gpus(const struct smi_context *x, const struct smi_selection *sel, struct buf *out)
{
	const struct gpu_snapshot *s = x->snapshot;
	auto_done(table) struct table t = { .widest = 30 };
	int rows[GPU_DEVICES], n;

	table_column(&t, "GPU", false);
	table_column(&t, "NAME", false);
	table_column(&t, "BUSY %", true);
	table_column(&t, "MEMORY MiB", true);
	table_column(&t, "POWER W", true);
	table_column(&t, "TEMP C", true);
	table_column(&t, "MHz", true);
	table_column(&t, "NOTE", false);
	n = smi_order(s, sel, rows);
	for (int i = 0; i < n; i++) {
		put_gpu(&t, s, rows[i]);
		for (int j = 0; j < s->n_devices; j++)
			if (s->device[j].partition >= 0 && smi_whole(s, j) == rows[i])
				put_gpu(&t, s, j);
	}
	table_print(&t, out);
}

static void put_process(struct table *t, const struct smi_context *x, const struct gpu_process *p)
{
	const struct gpu_device *d = &x->snapshot->device[p->device];
	auto_done(buf) struct buf name = { 0 };

	if (d->partition >= 0)
		table_cellf(t, "%d:%d", gpu_number(x->snapshot, p->device), d->partition);
	else
		table_cellf(t, "%d", gpu_number(x->snapshot, p->device));
	table_cellf(t, "%d", p->pid);
	table_cell(t, p->graphics ? "graphics" : "compute");
	if (p->busy >= 0)
		table_cellf(t, "%" PRId64, (p->busy + 50) / 100);
	else
		table_cell(t, "-");
	if (p->memory_kb >= 0)
		table_cellf(t, "%" PRId64, smi_mib(p->memory_kb));
	else
		table_cell(t, "-");
	smi_process_name(x, p, &name);
	table_cell(t, buf_text(&name));
}

static void put_processes(const struct smi_context *x, const struct smi_selection *sel,
			  struct buf *out)
{
	const struct gpu_snapshot *s = x->snapshot;
	auto_done(table) struct table t = { .widest = 60 };
	int rows[GPU_DEVICES], n;

	table_column(&t, "GPU", false);
	table_column(&t, "PID", true);
	table_column(&t, "KIND", false);
	table_column(&t, "BUSY %", true);
	table_column(&t, "MEMORY MiB", true);
	table_column(&t, "COMMAND", false);
	n = smi_order(s, sel, rows);
	for (int i = 0; i < n; i++)
		for (int j = 0; j < s->n_processes; j++)
			if (smi_whole(s, s->process[j].device) == rows[i])
				put_process(&t, x, &s->process[j]);
	if (table_rows(&t))
		table_print(&t, out);
	else
		buf_str(out, "No process is on a GPU.\n");
	if (s->processes_left_out)
		buf_printf(out, "%d more processes are left out\n", s->processes_left_out);
}

/* The first line names the versions the way scripts cut them out of nvidia-smi's. */
void smi_table(const struct smi_context *x, const struct smi_selection *sel, struct buf *out)
{
	const char *driver = smi_driver(x->snapshot);
	char cuda[24], when[32];

	smi_timestamp(x->wall_ns, when, sizeof(when));
	buf_printf(out, "spotter smi %s   %.19s", SPOTTER_VERSION, when);
	if (*driver)
		buf_printf(out, "   Driver Version: %s", driver);
	if (*smi_cuda(x->snapshot, cuda, sizeof(cuda)))
		buf_printf(out, "   CUDA Version: %s", cuda);
	buf_str(out, "\n\n");
	put_gpus(x, sel, out);
	buf_char(out, '\n');
	put_processes(x, sel, out);
}
