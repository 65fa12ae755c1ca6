/* SPDX-License-Identifier: MIT
 *
 * /proc/pressure/{cpu,memory,io}: time in which tasks stood still for want of it.
 *
 *	some avg10=1.82 avg60=1.09 avg300=0.31 total=7634293
 *	full avg10=0.00 avg60=0.00 avg300=0.00 total=0
 *
 * Only the totals are taken: microseconds since boot. Kernel 4.20; "full" of cpu since 5.13 (and
 * always 0 for the whole machine). The files are missing without CONFIG_PSI, and reading them gives
 * EOPNOTSUPP where the kernel was booted with psi=0 (or without psi=1 on Red Hat 8 and 9).
 * Whole machine, also in a container. Cost: 3 us a file.
 */
#include "collect/psi.h"

#include "base/clock.h"
#include "base/scan.h"
#include "collect/whole.h"

#include <errno.h>

enum { PSI_CPU, PSI_MEMORY, PSI_IO, PSI_FILES };

struct psi_state {
	struct host_file file[PSI_FILES];
	bool lost[PSI_FILES];
};

static const struct {
	const char *path;
	enum metric_id some, full;
} files[PSI_FILES] = {
	[PSI_CPU] = { "proc/pressure/cpu", M_PSI_CPU_SOME, M_PSI_CPU_FULL },
	[PSI_MEMORY] = { "proc/pressure/memory", M_PSI_MEM_SOME, M_PSI_MEM_FULL },
	[PSI_IO] = { "proc/pressure/io", M_PSI_IO_SOME, M_PSI_IO_FULL },
};

static void parse_total(struct scan line, const char *word, int64_t *ret)
{
	int64_t v;

	if (!scan_lit(&line, word))
		return;
	while (scan_after(&line, ' '))
		if (scan_lit(&line, "total=") && scan_i64(&line, &v) && v >= 0)
			*ret = v;
}

int psi_parse(const char *text, size_t n, struct psi *ret)
{
	struct scan s = scan_of(text, n), line;
	struct psi p = { .some_us = -1, .full_us = -1 };

	while (whole_line(&s, &line)) {
		parse_total(line, "some", &p.some_us);
		parse_total(line, "full", &p.full_us);
	}
	if (p.some_us < 0 && p.full_us < 0)
		return -EINVAL;
	*ret = p;
	return 0;
}

static int psi_look(struct collect *c, struct psi_state *st, int i, struct psi *ret)
{
	char text[256];
	ssize_t n = host_read(c->host, &st->file[i], files[i].path, text, sizeof(text));

	return n < 0 ? (int)n : psi_parse(text, (size_t)n, ret);
}

static enum gap_why why_absent(int r)
{
	return r == -EACCES || r == -EPERM ? GAP_NO_PERMISSION : GAP_NOT_SUPPORTED;
}

/* The gap of psi_collector.sample_metric is the engine's when all of it is absent. */
static int psi_open(struct collect *c, void *state, struct frame *f)
{
	struct psi_state *st = state;
	struct psi p;
	int got = 0, first = 0;

	for (int i = 0; i < PSI_FILES; i++)
		st->file[i].fd = -1;
	for (int i = 0; i < PSI_FILES; i++) {
		int r = psi_look(c, st, i, &p);

		got += r == 0;
		if (r < 0 && !first)
			first = r;
		st->lost[i] = r < 0;
		if (r < 0 && files[i].some != psi_collector.sample_metric)
			frame_gap(f, files[i].some, ID_HOST, why_absent(r));
		if (r < 0 || p.full_us < 0)
			frame_gap(f, files[i].full, ID_HOST, why_absent(r));
	}
	if (got && st->lost[PSI_CPU])
		frame_gap(f, psi_collector.sample_metric, ID_HOST, why_absent(first));
	for (int i = 0; !got && i < PSI_FILES; i++)
		host_file_close(&st->file[i]);
	return got ? 0 : first;
}

static void put(struct frame *f, enum metric_id metric, int64_t raw, bool again)
{
	if (raw < 0)
		return;
	if (again)
		frame_gap(f, metric, ID_HOST, GAP_OVER);
	frame_put(f, metric, ID_HOST, raw);
}

/* Pressure can be switched off and on at run time nowhere but in control groups; should a file
 * fail, the others go on. */
static int psi_read(struct collect *c, void *state, struct frame *f)
{
	struct psi_state *st = state;
	int got = 0, r = 0;

	for (int i = 0; i < PSI_FILES; i++) {
		struct psi p;
		int bad = psi_look(c, st, i, &p);

		if (bad < 0) {
			r = bad;
			if (!st->lost[i]) {
				frame_gap(f, files[i].some, ID_HOST, GAP_LOST);
				frame_gap(f, files[i].full, ID_HOST, GAP_LOST);
			}
			st->lost[i] = true;
			continue;
		}
		put(f, files[i].some, p.some_us, st->lost[i]);
		put(f, files[i].full, p.full_us, st->lost[i]);
		st->lost[i] = false;
		got++;
	}
	return got ? 0 : r;
}

static void psi_close(void *state)
{
	struct psi_state *st = state;

	for (int i = 0; i < PSI_FILES; i++)
		host_file_close(&st->file[i]);
}

const struct collector psi_collector = {
	.name = "psi",
	.help = "pressure: time tasks stood still for CPU, memory, IO (/proc/pressure)",
	.state_size = sizeof(struct psi_state),
	.every_ns = NS_PER_S,
	.open = psi_open,
	.read = psi_read,
	.close = psi_close,
	.sample_metric = M_PSI_CPU_SOME,
};
