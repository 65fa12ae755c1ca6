/* SPDX-License-Identifier: MIT */
#include "cli/smi.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "base/vec.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

const char *const smi_query_names[SMI_QUERIES] = { "gpu", "compute-apps", "accounted-apps",
						   "retired-pages" };

#define M(x)                                    SMI_FROM_METRIC, M_GPU_##x
#define P(x)                                    SMI_FROM_PROPERTY, GPU_P_##x
#define D(x)                                    SMI_FROM_DEVICE, SMI_D_##x
#define A(x)                                    SMI_FROM_APP, SMI_A_##x
#define NONE                                    SMI_FROM_NONE, 0
#define FIELD(name_, alias_, writing_, source_) { name_, alias_, SMI_##writing_, source_ },

static const struct smi_field gpu_fields[] = {
#define GPU_FIELD FIELD
#include "cli/smi_fields.def"
};

static const struct smi_field app_fields[] = {
#define APP_FIELD FIELD
#include "cli/smi_fields.def"
};

static const struct smi_field account_fields[] = {
#define ACCOUNT_FIELD FIELD
#include "cli/smi_fields.def"
};

static const struct smi_field page_fields[] = {
#define PAGE_FIELD FIELD
#include "cli/smi_fields.def"
};

#undef M
#undef P
#undef D
#undef A
#undef NONE

const struct smi_field *smi_fields_of(enum smi_query q, size_t *ret_n)
{
	static const struct {
		const struct smi_field *v;
		size_t n;
	} all[SMI_QUERIES] = {
		[SMI_GPU] = { gpu_fields, ARRAY_LEN(gpu_fields) },
		[SMI_APPS] = { app_fields, ARRAY_LEN(app_fields) },
		[SMI_ACCOUNTED] = { account_fields, ARRAY_LEN(account_fields) },
		[SMI_PAGES] = { page_fields, ARRAY_LEN(page_fields) },
	};

	*ret_n = all[q].n;
	return all[q].v;
}

static bool is_name(const char *name, const char *text, size_t n)
{
	return n && strlen(name) == n && memcmp(name, text, n) == 0;
}

const struct smi_field *smi_field_find(enum smi_query q, const char *name, size_t n)
{
	size_t n_all;
	const struct smi_field *all = smi_fields_of(q, &n_all);

	for (size_t i = 0; i < n_all; i++)
		if (is_name(all[i].name, name, n) || is_name(all[i].alias, name, n))
			return &all[i];
	return NULL;
}

/* Next part of a list between commas, without the blanks around it; false at the end. */
static bool next_part(const char **p, const char **ret, size_t *ret_n)
{
	const char *from = *p;
	size_t n;

	if (!from)
		return false;
	n = strcspn(from, ",");
	*p = from[n] ? from + n + 1 : NULL;
	while (n && isspace((unsigned char)*from))
		from++, n--;
	while (n && isspace((unsigned char)from[n - 1]))
		n--;
	*ret = from;
	*ret_n = n;
	return true;
}

int smi_fields_parse(enum smi_query q, const char *list, struct smi_fields *ret, char *bad,
		     size_t bad_size)
{
	VEC(const struct smi_field *) found = { 0 };
	const char *part;
	size_t n;

	while (next_part(&list, &part, &n)) {
		const struct smi_field *f = smi_field_find(q, part, n);
		const struct smi_field **slot;

		if (!f || found.n >= SMI_FIELDS_MAX) {
			int r = f ? -E2BIG : -EINVAL;

			snprintf(bad, bad_size, "%.*s", (int)(n < bad_size ? n : bad_size - 1),
				 part);
			vec_done(&found);
			return r;
		}
		slot = vec_push(&found);
		if (!slot) {
			vec_done(&found);
			return -ENOMEM;
		}
		*slot = f;
	}
	*ret = (struct smi_fields){ .v = found.v, .n = found.n };
	return 0;
}

void smi_fields_done(struct smi_fields *f)
{
	free(f->v);
	*f = (struct smi_fields){ 0 };
}

bool smi_fields_deep(const struct smi_fields *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->v[i]->source == SMI_FROM_PROPERTY)
			return true;
	return false;
}

int smi_format_parse(const char *text, struct smi_format *ret, struct err *e)
{
	struct smi_format f = { 0 };
	const char *part;
	size_t n;

	while (next_part(&text, &part, &n)) {
		if (is_name("csv", part, n))
			f.csv = true;
		else if (is_name("noheader", part, n))
			f.noheader = true;
		else if (is_name("nounits", part, n))
			f.nounits = true;
		else if (n)
			return err_set(e, -EINVAL,
				       "'%.*s' is no format: csv, and with it noheader and nounits",
				       (int)(n < 40 ? n : 40), part);
	}
	if (!f.csv)
		return err_set(e, -EINVAL, "the format has to name csv: --format=csv");
	*ret = f;
	return 0;
}

/* --- what was probably meant */

/* How many of the words of `a` (between dots and underscores) are words of `b`. */
static unsigned shared_words(const char *a, const char *b)
{
	static const char ends[] = "._";
	unsigned shared = 0;

	for (const char *p = a; *p; p += strspn(p, ends)) {
		size_t n = strcspn(p, ends);
		bool found = false;

		for (const char *r = b; n && *r && !found; r += strspn(r, ends)) {
			size_t m = strcspn(r, ends);

			found = m == n && memcmp(p, r, n) == 0;
			r += m;
		}
		shared += found;
		p += n;
	}
	return shared;
}

static unsigned count_words(const char *s)
{
	return shared_words(s, s);
}

/* Smaller is nearer; 1000 and above: no relation. A slip of the fingers first, then the same words in
 * another order ("gpu.utilization"), then the shortest name with most of the words. */
static unsigned far_from(const char *name, const char *bad)
{
	unsigned d = text_distance(name, bad), shared = shared_words(bad, name);

	if (d <= 2 && d < strlen(bad))
		return d;
	if (!shared)
		return 1000;
	if (shared == count_words(bad) && shared == count_words(name))
		return 3;
	return 900 - shared * 100 + (unsigned)strlen(name);
}

static const struct smi_field *nearest(enum smi_query q, const char *bad)
{
	const struct smi_field *best = NULL;
	unsigned least = 900;
	size_t n;
	const struct smi_field *all = smi_fields_of(q, &n);

	for (size_t i = 0; i < n; i++) {
		unsigned d = far_from(all[i].name, bad);

		if (*all[i].alias && far_from(all[i].alias, bad) < d)
			d = far_from(all[i].alias, bad);
		if (d >= least)
			continue;
		least = d;
		best = &all[i];
	}
	return best;
}

void smi_field_hint(enum smi_query q, const char *bad, struct buf *out)
{
	const char *query = smi_query_names[q];
	size_t digits = strspn(bad, "0123456789");
	const struct smi_field *f;

	if (digits && bad[digits] == ':') {
		const char *rest = bad + digits + 1;

		f = smi_field_find(q, rest, strlen(rest));
		f = f ? f : nearest(q, rest);
		buf_printf(out, "a GPU is chosen with -i: -i %.*s --query-%s=%s", (int)digits, bad,
			   query, f ? f->name : "FIELD");
		return;
	}
	if (strcmp(bad, "cuda_version") == 0) {
		buf_str(out, "the version of CUDA is in 'spotter smi --version'");
		return;
	}
	for (int other = 0; other < SMI_QUERIES; other++) {
		if (other == (int)q || !smi_field_find((enum smi_query)other, bad, strlen(bad)))
			continue;
		buf_printf(out, "did you mean --query-%s=%s?", smi_query_names[other], bad);
		return;
	}
	f = *bad ? nearest(q, bad) : NULL;
	if (f)
		buf_printf(out, "did you mean '%s'? ", f->name);
	buf_printf(out, "'spotter smi --help-query-%s' lists the fields", query);
}

/* --- --help-query-gpu */

static const char *device_help(int part)
{
	static const char *const help[] = {
		[SMI_D_TIMESTAMP] = "when the GPU was read, local time",
		[SMI_D_DRIVER] = "version of the driver",
		[SMI_D_COUNT] = "GPUs in this machine, of all vendors",
		[SMI_D_NAME] = "what the GPU is called",
		[SMI_D_UUID] = "its unique id",
		[SMI_D_PCI] = "its PCI address, domain:bus:device.function",
		[SMI_D_PCI_DOMAIN] = "PCI domain",
		[SMI_D_PCI_BUS] = "PCI bus",
		[SMI_D_PCI_DEVICE] = "PCI device",
		[SMI_D_INDEX] = "its number, as -i takes it",
	};

	return help[part];
}

static const char *app_help(int part)
{
	static const char *const help[] = {
		[SMI_A_PID] = "process id, as the driver counts",
		[SMI_A_NAME] = "what was started; [Not Found] when the process cannot be seen",
		[SMI_A_MEMORY] = "device memory it has on this GPU",
	};

	return help[part];
}

static const char *field_help(const struct smi_field *f)
{
	switch (f->source) {
	case SMI_FROM_METRIC:
		return metrics[f->id].help;
	case SMI_FROM_PROPERTY:
		return gpu_properties[f->id].help;
	case SMI_FROM_DEVICE:
		return device_help(f->id);
	case SMI_FROM_APP:
		return app_help(f->id);
	default:
		return "taken for the sake of scripts; never known here";
	}
}

/* `"name" or "alias"` at the start of a line: programs read the list of fields from there. */
void smi_fields_help(enum smi_query q, struct buf *out)
{
	size_t n;
	const struct smi_field *all = smi_fields_of(q, &n);

	buf_printf(out, "List of valid properties to query for the switch \"--query-%s\":\n",
		   smi_query_names[q]);
	for (size_t i = 0; i < n; i++) {
		const char *help = field_help(&all[i]);

		buf_printf(out, "\n\"%s\"", all[i].name);
		if (*all[i].alias)
			buf_printf(out, " or \"%s\"", all[i].alias);
		buf_char(out, '\n');
		if (*help)
			buf_printf(out, "%s\n", help);
	}
}
