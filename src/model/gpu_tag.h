/* SPDX-License-Identifier: MIT
 *
 * What a GPU is, as the `detail` text of its entity: "uuid=GPU-...\tpci=00000000:83:00.0\t...". Text,
 * because that is what a record keeps of an entity; tabs, because no name has one. Keys a reader does
 * not know are skipped, those it misses are "".
 */
#ifndef SPOTTER_MODEL_GPU_TAG_H
#define SPOTTER_MODEL_GPU_TAG_H

#include <stdbool.h>
#include <stddef.h>

struct gpu_tag {
	char uuid[96];    /* "GPU-..." or "MIG-..."; AMD: unique id; "" unknown */
	char pci[24];     /* "00000000:83:00.0" */
	char vendor[16];  /* "nvidia", "amd", "intel" */
	char driver[48];  /* "590.48.01", "amdgpu" */
	char runtime[24]; /* "CUDA 13.1", "" */
	char mode[24];    /* compute mode when it is not the default, "" */
	char profile[32]; /* partition: "3g.40gb"; else "" */
	bool simulated;
	bool unified;     /* has no memory of its own */
	bool partitioned; /* MIG is on: work runs in partitions only */
};

/* Cut to size when it does not fit. */
void gpu_tag_write(const struct gpu_tag *t, char *ret, size_t size);
/* Text from a record: anything may be in it. */
void gpu_tag_read(const char *text, struct gpu_tag *ret);

/* The key of a GPU's entity: its number over all vendors, or of a partition both numbers. */
enum { GPU_PARTITION_KEY = 1000 };
static inline long gpu_key(int index, int partition)
{
	return partition < 0 ? index : (index + 1L) * GPU_PARTITION_KEY + partition;
}

#endif
