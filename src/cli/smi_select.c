/* SPDX-License-Identifier: MIT
 *
 * Which GPUs -i names: "0", "0,2", "GPU-5f1c...", the beginning of a UUID when only one GPU has it, a
 * PCI address as nvidia-smi shows it or shorter ("00000000:83:00.0", "0000:83:00.0", "83:00.0").
 */
#include "cli/smi.h"

#include "base/err.h"
#include "base/num.h"
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

int smi_whole(const struct gpu_snapshot *s, int row)
{
	int parent = s->device[row].parent;

	return s->device[row].partition >= 0 && parent >= 0 ? parent : row;
}

/* Hex digits up to `end`: how many, 0 when there are none or too many. */
static size_t hex_run(const char *p, size_t most, unsigned *ret)
{
	size_t n = 0;
	unsigned v = 0;

	while (n <= most && isxdigit((unsigned char)p[n])) {
		char c = (char)tolower((unsigned char)p[n++]);

		v = v << 4 | (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	*ret = v;
	return n > most ? 0 : n;
}

bool smi_pci_parse(const char *text, unsigned ret[4])
{
	unsigned v[4] = { 0 };
	size_t colons = 0, n;
	const char *p = text;

	for (const char *c = text; *c; c++)
		colons += *c == ':';
	if (colons < 1 || colons > 2)
		return false;
	if (colons == 2) {
		n = hex_run(p, 8, &v[0]);
		if (!n || p[n] != ':')
			return false;
		p += n + 1;
	}
	n = hex_run(p, 2, &v[1]);
	if (!n || p[n] != ':')
		return false;
	p += n + 1;
	n = hex_run(p, 2, &v[2]);
	if (!n || (p[n] != '.' && p[n] != '\0'))
		return false;
	p += n;
	if (*p == '.') {
		n = hex_run(p + 1, 1, &v[3]);
		if (!n || p[n + 1])
			return false;
	}
	memcpy(ret, v, sizeof(v));
	return true;
}

static bool is_gpu(const struct gpu_snapshot *s, int row, const char *id)
{
	const struct gpu_device *d = &s->device[row];
	unsigned a[4], b[4];
	int64_t number;

	if (num_parse_i64(id, &number))
		return number == gpu_number(s, row);
	if (smi_pci_parse(id, a) && smi_pci_parse(d->pci, b))
		return memcmp(a, b, sizeof(a)) == 0;
	return d->uuid[0] && strcasecmp(d->uuid, id) == 0;
}

/* Row of the only GPU whose UUID begins so; -1 none, -2 several. */
static int by_beginning(const struct gpu_snapshot *s, const char *id)
{
	int found = -1;
	size_t n = strlen(id);

	if (n < 5) /* "GPU-" is the beginning of all of them */
		return -1;
	for (int i = 0; i < s->n_devices; i++) {
		if (s->device[i].partition >= 0 || strncasecmp(s->device[i].uuid, id, n) != 0)
			continue;
		if (found >= 0)
			return -2;
		found = i;
	}
	return found;
}

static int find(const struct gpu_snapshot *s, const char *id, struct err *e)
{
	int row;

	for (int i = 0; i < s->n_devices; i++)
		if (s->device[i].partition < 0 && is_gpu(s, i, id))
			return i;
	row = by_beginning(s, id);
	if (row == -2)
		return err_set(e, -ENODEV, "several GPUs have an id that begins with '%s'", id);
	if (row < 0) {
		err_set(e, -ENODEV, "no GPU is called '%s'", id);
		err_hint(e, "'spotter smi -L' lists them: a number, a UUID or a PCI address");
		return -ENODEV;
	}
	return row;
}

int smi_order(const struct gpu_snapshot *s, const struct smi_selection *sel, int ret[GPU_DEVICES])
{
	int n = 0;

	for (int i = 0; i < s->n_devices; i++) {
		int at = n;

		if (!sel->row[i])
			continue;
		/* A GPU that went missing stands at the end of the snapshot. */
		while (at > 0 && gpu_number(s, ret[at - 1]) > gpu_number(s, i)) {
			ret[at] = ret[at - 1];
			at--;
		}
		ret[at] = i;
		n++;
	}
	return n;
}

static int select_all(const struct gpu_snapshot *s, struct smi_selection *ret)
{
	*ret = (struct smi_selection){ 0 };
	for (int i = 0; i < s->n_devices; i++) {
		ret->row[i] = s->device[i].partition < 0;
		ret->n += ret->row[i];
	}
	return 0;
}

int smi_select(const struct gpu_snapshot *s, const char *ids, struct smi_selection *ret,
	       struct err *e)
{
	struct smi_selection sel = { 0 };

	if (!ids)
		return select_all(s, ret);
	for (const char *p = ids; p;) {
		size_t n = strcspn(p, ",");
		char id[96], safe[96];
		int row;

		while (n && isspace((unsigned char)*p))
			p++, n--;
		snprintf(id, sizeof(id), "%.*s", (int)(n < sizeof(id) ? n : sizeof(id) - 1), p);
		for (size_t m = strlen(id); m && isspace((unsigned char)id[m - 1]); m--)
			id[m - 1] = '\0';
		text_safe_copy(safe, sizeof(safe), id);
		row = find(s, safe, e);
		if (row < 0)
			return row;
		sel.n += !sel.row[row];
		sel.row[row] = true;
		p = p[n] ? p + n + 1 : NULL;
	}
	*ret = sel;
	return 0;
}
