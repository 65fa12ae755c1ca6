/* SPDX-License-Identifier: MIT
 *
 * Rows for programs: ", " between values, no quotes (nvidia-smi has none), one line a GPU or a process
 * whatever they are called.
 */
#include "cli/smi.h"

#include "base/buf.h"
#include "base/text.h"

#include <string.h>

/* The name that nvidia-smi prefers, whichever was asked for; the unit stays even with nounits. */
void smi_csv_header(const struct smi_fields *f, struct buf *out)
{
	for (size_t i = 0; i < f->n; i++) {
		const char *unit = smi_unit(f->v[i]->writing);

		buf_printf(out, "%s%s", i ? ", " : "", f->v[i]->name);
		if (*unit)
			buf_printf(out, " [%s]", unit);
	}
	buf_char(out, '\n');
}

static void put_row(const struct smi_context *x, const struct smi_fields *f, int row,
		    const struct gpu_process *app, struct buf *out)
{
	for (size_t i = 0; i < f->n; i++) {
		if (i)
			buf_str(out, ", ");
		smi_value(x, f->v[i], row, app, out);
	}
	buf_char(out, '\n');
}

/* A process in a partition is one of its GPU; the driver may list it for both. */
static bool told_before(const struct gpu_snapshot *s, int i, int gpu)
{
	for (int j = 0; j < i; j++)
		if (s->process[j].pid == s->process[i].pid && !s->process[j].graphics &&
		    s->process[j].device != s->process[i].device &&
		    smi_whole(s, s->process[j].device) == gpu)
			return true;
	return false;
}

static void put_apps(const struct smi_context *x, const struct smi_fields *f, int gpu,
		     struct buf *out)
{
	const struct gpu_snapshot *s = x->snapshot;

	for (int i = 0; i < s->n_processes; i++) {
		const struct gpu_process *p = &s->process[i];

		if (p->graphics || smi_whole(s, p->device) != gpu)
			continue;
		if (s->device[gpu].partitioned && told_before(s, i, gpu))
			continue;
		put_row(x, f, gpu, p, out);
	}
}

void smi_csv_rows(const struct smi_context *x, enum smi_query q, const struct smi_fields *f,
		  const struct smi_selection *sel, struct buf *out)
{
	int rows[GPU_DEVICES], n = smi_order(x->snapshot, sel, rows);

	for (int i = 0; i < n; i++) {
		if (q == SMI_GPU)
			put_row(x, f, rows[i], NULL, out);
		else if (q == SMI_APPS)
			put_apps(x, f, rows[i], out);
	}
}

static void list_partitions(const struct gpu_snapshot *s, int gpu, struct buf *out)
{
	char profile[32], uuid[96];

	for (int i = 0; i < s->n_devices; i++) {
		const struct gpu_device *d = &s->device[i];

		if (d->partition < 0 || smi_whole(s, i) != gpu)
			continue;
		text_safe_copy(profile, sizeof(profile), d->profile);
		text_safe_copy(uuid, sizeof(uuid), d->uuid);
		buf_printf(out, "  MIG %-11s Device %2d: (UUID: %s)\n", profile, d->partition,
			   uuid);
	}
}

/* "GPU 0: NVIDIA H200 (UUID: GPU-...)", and of its partitions
 * "  MIG 3g.40gb     Device  0: (UUID: MIG-...)". */
void smi_list(const struct gpu_snapshot *s, const struct smi_selection *sel, struct buf *out)
{
	int rows[GPU_DEVICES], n = smi_order(s, sel, rows);
	char name[96], uuid[96];

	for (int i = 0; i < n; i++) {
		const struct gpu_device *d = &s->device[rows[i]];
		const char *missing = smi_missing(
		    SMI_TEXT, d->state == GPU_KNOWN ? GPU_NOT_SUPPORTED : (enum gpu_have)d->state);

		text_safe_copy(name, sizeof(name), d->name);
		text_safe_copy(uuid, sizeof(uuid), d->uuid);
		buf_printf(out, "GPU %d: %s (UUID: %s)\n", gpu_number(s, rows[i]),
			   *name ? name : missing, *uuid ? uuid : missing);
		list_partitions(s, rows[i], out);
	}
}
