/* SPDX-License-Identifier: MIT
 *
 * One value as nvidia-smi writes it. Seen on drivers 590 to 610:
 *	143771 MiB   77.71 W   345 MHz   0 %   P0   9.0   0x233510DE   0x0000000000000001
 *	Enabled   Not Active   Yes   [N/A]   N/A   [Requested functionality has been deprecated]
 */
#include "cli/smi.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/text.h"
#include "gpu/owner.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

const char *smi_unit(enum smi_writing w)
{
	static const char *const units[SMI_WRITINGS] = {
		[SMI_PERCENT] = "%", [SMI_MIB_KB] = "MiB",     [SMI_MIB_BYTES] = "MiB",
		[SMI_WATT] = "W",    [SMI_WATT_PER_S] = "W/s", [SMI_MHZ] = "MHz",
		[SMI_US] = "us",     [SMI_MS] = "ms",          [SMI_SECONDS] = "seconds",
	};

	return units[w] ? units[w] : "";
}

const char *smi_missing(enum smi_writing w, enum gpu_have why)
{
	switch (why) {
	case GPU_NO_PERMISSION:
		return "[Insufficient Permissions]";
	case GPU_DEPRECATED:
		return "[Requested functionality has been deprecated]";
	case GPU_LOST:
		return "[GPU is lost]";
	case GPU_NEEDS_RESET:
		return "[GPU requires reset]";
	case GPU_HUNG:
	case GPU_FAILED:
		return "[Unknown Error]";
	default:
		break;
	}
	if (w == SMI_BARE_TEXT || w == SMI_BARE_COUNT)
		return "N/A";
	return w == SMI_EMPTY_TEXT ? "" : "[N/A]";
}

void smi_timestamp(int64_t wall_ns, char *buf, size_t size)
{
	time_t s = (time_t)(wall_ns / NS_PER_S);
	struct tm tm = { 0 };

	localtime_r(&s, &tm);
	snprintf(buf, size, "%04d/%02d/%02d %02d:%02d:%02d.%03d", tm.tm_year + 1900, tm.tm_mon + 1,
		 tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
		 (int)(wall_ns % NS_PER_S / NS_PER_MS));
}

/* Up to the next whole one, as nvidia-smi does: on an H100 (driver 590) 479 reserved, 0 used and 81081
 * free are one more than the total of 81559, and on other GPUs two more. */
static int64_t parts_up(int64_t n, int64_t part)
{
	return n <= 0 ? n / part : (n - 1) / part + 1;
}

int64_t smi_mib(int64_t kb)
{
	return parts_up(kb, 1024);
}

static const char *compute_mode(int64_t v)
{
	const char *name = gpu_compute_mode_name(v);

	return name ? name : smi_missing(SMI_COMPUTE_MODE, GPU_FAILED);
}

/* A word for what is either so or not so; NULL: it is no such value. */
static const char *word_of(enum smi_writing w, int64_t v)
{
	switch (w) {
	case SMI_ENABLED:
		return v ? "Enabled" : "Disabled";
	case SMI_ACTIVE:
		return v ? "Active" : "Not Active";
	case SMI_YESNO:
		return v ? "Yes" : "No";
	case SMI_VALID:
		return v ? "valid" : "invalid";
	case SMI_SUPPORTED:
		return v ? "Supported" : "[N/A]";
	case SMI_COMPUTE_MODE:
		return compute_mode(v);
	default:
		return NULL;
	}
}

static void put_number(enum smi_writing w, int64_t v, struct buf *out)
{
	uint64_t u = (uint64_t)v;

	switch (w) {
	case SMI_PERCENT: /* of 1e-4, to the nearest */
		buf_printf(out, "%" PRId64, v / 100 + (v % 100 >= 50));
		return;
	case SMI_MIB_KB:
		buf_printf(out, "%" PRId64, smi_mib(v));
		return;
	case SMI_MIB_BYTES:
		buf_printf(out, "%" PRId64, parts_up(v, 1 << 20));
		return;
	case SMI_WATT:
		buf_printf(out, "%.2f", (double)v / 1000);
		return;
	case SMI_HEX:
		buf_printf(out, "0x%" PRIX64, u);
		return;
	case SMI_HEX2:
		buf_printf(out, "0x%02" PRIX64, u & 0xff);
		return;
	case SMI_HEX4:
		buf_printf(out, "0x%04" PRIX64, u & 0xffffffff);
		return;
	case SMI_HEX8:
		buf_printf(out, "0x%08" PRIX64, u & 0xffffffff);
		return;
	case SMI_HEX16:
		buf_printf(out, "0x%016" PRIX64, u);
		return;
	case SMI_PSTATE:
		buf_printf(out, "P%" PRId64, v);
		return;
	case SMI_COMPUTE_CAP:
		buf_printf(out, "%d.%d", (int)(v >> 8 & 0xff), (int)(v & 0xff));
		return;
	default:
		buf_printf(out, "%" PRId64, v);
		return;
	}
}

static void put_known(const struct smi_context *x, enum smi_writing w, int64_t v, struct buf *out)
{
	const char *word = word_of(w, v), *unit = smi_unit(w);

	if (word) {
		buf_str(out, word);
		return;
	}
	put_number(w, v, out);
	if (*unit && !x->nounits)
		buf_printf(out, " %s", unit);
}

static void put_text(enum smi_writing w, const char *text, enum gpu_have why, struct buf *out)
{
	if (*text)
		text_safe(out, text, strlen(text));
	else
		buf_str(out, smi_missing(w, why));
}

/* Why a value of this GPU is missing: what is wrong with the whole of it goes first. */
static enum gpu_have why_missing(const struct gpu_device *d, uint8_t have)
{
	return d->state != GPU_KNOWN ? (enum gpu_have)d->state : (enum gpu_have)have;
}

static unsigned count_whole(const struct gpu_snapshot *s)
{
	unsigned n = 0;

	for (int i = 0; i < s->n_devices; i++)
		n += s->device[i].partition < 0;
	return n;
}

static void put_pci(const struct smi_field *f, const struct gpu_device *d, struct buf *out)
{
	unsigned at[4];

	if (!smi_pci_parse(d->pci, at))
		buf_str(out, smi_missing(f->writing, why_missing(d, GPU_NOT_SUPPORTED)));
	else if (f->id == SMI_D_PCI)
		buf_printf(out, "%08X:%02X:%02X.%X", at[0], at[1], at[2], at[3]);
	else
		put_number(f->writing, at[f->id - SMI_D_PCI_DOMAIN], out);
}

/* What stays known of a GPU that no longer answers. */
static void put_device(const struct smi_context *x, const struct smi_field *f, int row,
		       struct buf *out)
{
	const struct gpu_device *d = &x->snapshot->device[row];
	enum gpu_have why = why_missing(d, GPU_NOT_SUPPORTED);
	char text[32];

	switch (f->id) {
	case SMI_D_TIMESTAMP:
		smi_timestamp(x->wall_ns, text, sizeof(text));
		buf_str(out, text);
		return;
	case SMI_D_DRIVER:
		put_text(f->writing, d->driver, why, out);
		return;
	case SMI_D_COUNT:
		buf_printf(out, "%u", count_whole(x->snapshot));
		return;
	case SMI_D_NAME:
		put_text(f->writing, d->name, why, out);
		return;
	case SMI_D_UUID:
		put_text(f->writing, d->uuid, why, out);
		return;
	case SMI_D_INDEX:
		buf_printf(out, "%d", gpu_number(x->snapshot, row));
		return;
	default:
		put_pci(f, d, out);
		return;
	}
}

static void put_property(const struct smi_context *x, const struct smi_field *f,
			 const struct gpu_device *d, struct buf *out)
{
	const struct gpu_property *p = &d->property[f->id];

	if (d->state != GPU_KNOWN || p->have != GPU_KNOWN)
		buf_str(out, smi_missing(f->writing, why_missing(d, p->have)));
	else if (gpu_properties[f->id].type == GPU_TEXT)
		put_text(f->writing, p->text, GPU_NOT_SUPPORTED, out);
	else
		put_known(x, f->writing, p->number, out);
}

/* "./train\0--fast\0": the first of /proc/PID/cmdline. */
static bool command_of(int root, int32_t pid, char *ret, size_t size)
{
	char path[48];

	snprintf(path, sizeof(path), "proc/%d/cmdline", pid);
	return io_read(root, path, ret, size) > 0 && ret[0];
}

/* In a container NVIDIA's number may be that of another process here: one must be seen to have GPU code
 * loaded. Processes of other drivers that have a name were found in our own /proc. */
static bool is_ours(int root, bool nvidia, const struct gpu_process *p)
{
	if (root < 0 || p->pid <= 0)
		return false;
	if (!nvidia && p->name[0])
		return true;
	return gpu_first_namespace(root) || gpu_code_loaded(root, p->pid) == 1;
}

/* NVIDIA's library has the name nvidia-smi shows, cut to the room there is in a snapshot; of other
 * drivers' processes the snapshot has only the short name. */
void smi_process_name(const struct smi_context *x, const struct gpu_process *p, struct buf *out)
{
	bool nvidia = x->snapshot->device[p->device].vendor == GPU_NVIDIA;
	bool whole = nvidia && p->name[0] && strlen(p->name) < sizeof(p->name) - 1;
	char text[1024];

	if (!whole && is_ours(x->root, nvidia, p) &&
	    command_of(x->root, p->pid, text, sizeof(text)))
		text_safe(out, text, strlen(text));
	else if (p->name[0])
		text_safe(out, p->name, strlen(p->name));
	else
		buf_str(out, "[Not Found]");
}

static void put_app(const struct smi_context *x, const struct smi_field *f,
		    const struct gpu_process *app, struct buf *out)
{
	switch (f->id) {
	case SMI_A_PID:
		buf_printf(out, "%d", app->pid);
		return;
	case SMI_A_NAME:
		smi_process_name(x, app, out);
		return;
	default:
		if (app->memory_kb < 0)
			buf_str(out, smi_missing(f->writing, GPU_NOT_SUPPORTED));
		else
			put_known(x, f->writing, app->memory_kb, out);
		return;
	}
}

void smi_value(const struct smi_context *x, const struct smi_field *f, int row,
	       const struct gpu_process *app, struct buf *out)
{
	const struct gpu_device *d = &x->snapshot->device[row];
	const struct gpu_cell *cell;

	switch (f->source) {
	case SMI_FROM_METRIC:
		cell = gpu_metric(d, (enum metric_id)f->id);
		if (d->state != GPU_KNOWN || cell->have != GPU_KNOWN)
			buf_str(out, smi_missing(f->writing, why_missing(d, cell->have)));
		else
			put_known(x, f->writing, cell->raw, out);
		return;
	case SMI_FROM_PROPERTY:
		put_property(x, f, d, out);
		return;
	case SMI_FROM_DEVICE:
		put_device(x, f, row, out);
		return;
	case SMI_FROM_APP:
		put_app(x, f, app, out);
		return;
	default:
		buf_str(out, smi_missing(f->writing, why_missing(d, GPU_NOT_SUPPORTED)));
		return;
	}
}
