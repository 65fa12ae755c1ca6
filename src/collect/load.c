/* SPDX-License-Identifier: MIT
 *
 * /proc/loadavg: running, queued and uninterruptibly waiting tasks, damped over 1, 5, 15 minutes.
 *
 *	0.12 0.05 0.03 1/98 8308
 *
 * Hundredths of a task. The kernel computes it anew every 5 s, so reading it more often tells
 * nothing. In a container it is the whole machine's. Cost: 1 us.
 */
#include "collect/load.h"

#include "base/clock.h"
#include "base/scan.h"

#include <errno.h>

struct load_state {
	struct host_file file;
};

int load_parse(const char *text, size_t n, struct load *ret)
{
	struct scan s = scan_of(text, n);
	struct load l;

	for (unsigned i = 0; i < 3; i++)
		if (!scan_fixed(&s, 2, &l.avg[i]) || l.avg[i] < 0)
			return -EINVAL;
	/* A fourth column proves that the third was not cut. */
	scan_blank(&s);
	if (scan_end(&s))
		return -EINVAL;
	*ret = l;
	return 0;
}

static int load_look(struct collect *c, struct load_state *st, struct load *ret)
{
	char text[128];
	ssize_t n = host_read(c->host, &st->file, "proc/loadavg", text, sizeof(text));

	return n < 0 ? (int)n : load_parse(text, (size_t)n, ret);
}

static int load_open(struct collect *c, void *state, struct frame *f)
{
	struct load_state *st = state;
	struct load l;
	int r;

	(void)f;
	st->file.fd = -1;
	r = load_look(c, st, &l);
	if (r < 0)
		host_file_close(&st->file);
	return r;
}

static int load_read(struct collect *c, void *state, struct frame *f)
{
	struct load l;
	int r = load_look(c, state, &l);

	if (r < 0)
		return r;
	frame_put(f, M_LOAD_1, ID_HOST, l.avg[0]);
	frame_put(f, M_LOAD_5, ID_HOST, l.avg[1]);
	frame_put(f, M_LOAD_15, ID_HOST, l.avg[2]);
	return 0;
}

static void load_close(void *state)
{
	struct load_state *st = state;

	host_file_close(&st->file);
}

const struct collector load_collector = {
	.name = "load",
	.help = "load averages (/proc/loadavg)",
	.state_size = sizeof(struct load_state),
	.every_ns = 5 * NS_PER_S,
	.open = load_open,
	.read = load_read,
	.close = load_close,
	.sample_metric = M_LOAD_1,
};
