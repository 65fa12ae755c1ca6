/* SPDX-License-Identifier: MIT
 *
 * GPUs in the lines of `top`.
 */
#include "cli/top_show.h"

#include "base/buf.h"
#include "base/num.h"
#include "base/text.h"
#include "model/gpu_tag.h"

#include <math.h>
#include <string.h>

static void put_memory(const struct snap_gpu *g, struct buf *out)
{
	char a[32], b[32];

	if (!isnan(g->memory_used) && !isnan(g->memory_total))
		buf_printf(out, ", %s of %s", num_bytes(g->memory_used, a, sizeof(a)),
			   num_bytes(g->memory_total, b, sizeof(b)));
}

void top_put_gpus(const struct snapshot *v, struct buf *out)
{
	for (size_t i = 0; i < v->gpus.n; i++) {
		const struct snap_gpu *g = &v->gpus.v[i];
		char a[32];

		if (g->whole)
			buf_printf(out, "  part %-2d", (int)(g->entity->key % GPU_PARTITION_KEY));
		else
			buf_printf(out, "GPU %-4lld", (long long)g->entity->key);
		if (isnan(g->busy))
			buf_str(out, " busy not known");
		else
			buf_printf(out, " busy %s", num_percent(g->busy, a, sizeof(a)));
		put_memory(g, out);
		if (!isnan(g->power))
			buf_printf(out, ", %.0f W", g->power);
		if (!isnan(g->temperature))
			buf_printf(out, ", %.0f C", g->temperature);
		if (g->slowed)
			buf_str(out, ", slowed down");
		if (!isnan(g->job_memory))
			buf_printf(out, "; the job has %s", num_bytes(g->job_memory, a, sizeof(a)));
		buf_str(out, "  ");
		text_safe(out, g->entity->name, strlen(g->entity->name));
		buf_str(out, g->simulated ? " (simulated)\n" : "\n");
	}
}

void top_put_gpu_words(const struct snapshot *v, struct buf *out)
{
	for (size_t i = 0; i < v->gpus.n; i++) {
		const struct snap_gpu *g = &v->gpus.v[i];
		char a[32], b[32];

		if (g->whole)
			continue;
		buf_printf(out, " gpu%lld", (long long)g->entity->key);
		if (!isnan(g->busy))
			buf_printf(out, " %.0f%%", g->busy * 100);
		if (!isnan(g->memory_used) && !isnan(g->memory_total))
			buf_printf(out, " %s/%s", num_bytes(g->memory_used, a, sizeof(a)),
				   num_bytes(g->memory_total, b, sizeof(b)));
	}
}
