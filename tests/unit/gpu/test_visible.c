/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "gpu/visible.h"

static struct gpu_snapshot s; /* too large for the stack */

static struct gpu_device *add(enum gpu_vendor v, int index, const char *name, const char *uuid)
{
	struct gpu_device *d = gpu_add_device(&s, v);

	assert_non_null(d);
	d->index = (int16_t)index;
	snprintf(d->name, sizeof(d->name), "%s", name);
	snprintf(d->uuid, sizeof(d->uuid), "%s", uuid);
	return d;
}

static void three_nvidia(bool alike)
{
	memset(&s, 0, sizeof(s));
	add(GPU_NVIDIA, 0, "A", "GPU-aaaa1111-0000");
	add(GPU_NVIDIA, 1, alike ? "A" : "B", "GPU-aaaa2222-0000");
	add(GPU_NVIDIA, 2, "A", "GPU-bbbb3333-0000");
}

/* "YN?" for the rows. */
static const char *see_n(const char *environ, size_t n, struct gpu_visible *v)
{
	static char text[GPU_DEVICES + 1];

	gpu_visible_read(&s, environ, n, v);
	for (int i = 0; i < s.n_devices; i++)
		text[i] = "?NY"[v->allowed[i]];
	text[s.n_devices] = '\0';
	return text;
}

#define SEES(environ, want) assert_string_equal(see_n(environ, sizeof(environ) - 1, &v), want)

static void test_cuda_indices(void **state)
{
	struct gpu_visible v;

	(void)state;
	three_nvidia(true);
	SEES("PATH=/bin\0HOME=/", "YYY");
	assert_false(v.masked[GPU_NVIDIA]);
	SEES("A=1\0CUDA_VISIBLE_DEVICES=1\0B=2\0", "NYN");
	assert_true(v.masked[GPU_NVIDIA]);
	assert_false(v.none[GPU_NVIDIA]);
	assert_string_equal(v.variable[GPU_NVIDIA], "CUDA_VISIBLE_DEVICES");
	assert_string_equal(v.value[GPU_NVIDIA], "1");
	SEES("CUDA_VISIBLE_DEVICES=", "NNN");
	assert_true(v.none[GPU_NVIDIA]);
	SEES("CUDA_VISIBLE_DEVICES=-1", "NNN");
	SEES("CUDA_VISIBLE_DEVICES=0,2,-1,1", "YNY");
	SEES("CUDA_VISIBLE_DEVICES=2, 0", "YNY");
	SEES("CUDA_VISIBLE_DEVICES=0,7,1", "YNN");
	SEES("CUDA_VISIBLE_DEVICES=0,,1", "YNN");
	SEES("CUDA_VISIBLE_DEVICES=1gpu,2x", "NYY");
	SEES("CUDA_VISIBLE_DEVICES=NoDevFiles", "NNN");
	/* Twice: CUDA shows none. */
	SEES("CUDA_VISIBLE_DEVICES=0,1,0", "NNN");
	SEES("CUDA_VISIBLE_DEVICES=99999999999999999999999", "NNN");
	SEES("XCUDA_VISIBLE_DEVICES=1", "YYY");
	SEES("CUDA_VISIBLE_DEVICES", "YYY");
}

static void test_cuda_order(void **state)
{
	struct gpu_visible v;

	(void)state;
	three_nvidia(false);
	SEES("CUDA_VISIBLE_DEVICES=0", "???");
	assert_true(strlen(v.why) > 0);
	assert_false(v.none[GPU_NVIDIA]);
	SEES("CUDA_VISIBLE_DEVICES=0\0CUDA_DEVICE_ORDER=PCI_BUS_ID", "YNN");
	assert_string_equal(v.why, "");
	SEES("CUDA_VISIBLE_DEVICES=0\0CUDA_DEVICE_ORDER=FASTEST_FIRST", "???");
	/* All in any order are all, none is none, a UUID is what it is. */
	SEES("CUDA_VISIBLE_DEVICES=2,1,0", "YYY");
	SEES("CUDA_VISIBLE_DEVICES=5", "NNN");
	SEES("CUDA_VISIBLE_DEVICES=GPU-bbbb3333-0000", "NNY");
}

static void test_cuda_uuids(void **state)
{
	struct gpu_visible v;

	(void)state;
	three_nvidia(true);
	SEES("CUDA_VISIBLE_DEVICES=GPU-b", "NNY");
	SEES("CUDA_VISIBLE_DEVICES=GPU-aaaa", "NNN"); /* names two: invalid */
	SEES("CUDA_VISIBLE_DEVICES=GPU-b,GPU-aaaa2,GPU-zz,GPU-aaaa1", "NYY");
	SEES("CUDA_VISIBLE_DEVICES=GPU-b,GPU-bbbb", "NNN"); /* the same one twice */
	SEES("CUDA_VISIBLE_DEVICES=GPU-b,0", "NNY");
	SEES("CUDA_VISIBLE_DEVICES=0,GPU-b", "YNN");
	SEES("CUDA_VISIBLE_DEVICES=GPU-bbbb3333-0000-and-more", "NNN");
}

static void test_mig(void **state)
{
	struct gpu_visible v;
	struct gpu_device *d;

	(void)state;
	three_nvidia(true);
	s.device[0].partitioned = true;
	for (int i = 0; i < 2; i++) {
		d = add(GPU_NVIDIA, 0, "A", i ? "MIG-2222-x" : "MIG-1111-x");
		d->partition = (int16_t)i;
		d->parent = 0;
		d->instance = 7 + i;
		d->compute_instance = 0;
	}
	SEES("A=1", "YYYYY");
	SEES("CUDA_VISIBLE_DEVICES=MIG-2222-x", "YNNNY");
	SEES("CUDA_VISIBLE_DEVICES=MIG-1", "YNNYN");
	SEES("CUDA_VISIBLE_DEVICES=MIG-GPU-aaaa1111-0000/8/0", "YNNNY");
	SEES("CUDA_VISIBLE_DEVICES=MIG-GPU-aaaa1111-0000/9/0", "NNNNN");
	SEES("CUDA_VISIBLE_DEVICES=MIG-GPU-aaaa1111-0000/", "NNNNN");
	SEES("CUDA_VISIBLE_DEVICES=MIG-/1/2", "NNNNN");
	SEES("CUDA_VISIBLE_DEVICES=MIG-", "NNNNN");
	/* A GPU that is cut up, by its number: which part is CUDA's choice. */
	SEES("CUDA_VISIBLE_DEVICES=0", "YNN??");
	assert_true(strlen(v.why) > 0);
	SEES("CUDA_VISIBLE_DEVICES=1", "NYNNN");
}

static void test_container_variable(void **state)
{
	struct gpu_visible v;

	(void)state;
	three_nvidia(true);
	/* images for CUDA set it: no mask, and it gives the job nothing */
	SEES("NVIDIA_VISIBLE_DEVICES=all", "YYY");
	assert_false(v.masked[GPU_NVIDIA]);
	assert_string_equal(v.variable[GPU_NVIDIA], "");
	SEES("NVIDIA_VISIBLE_DEVICES=", "YYY");
	assert_false(v.masked[GPU_NVIDIA]);
	assert_string_equal(v.why, "");
	SEES("NVIDIA_VISIBLE_DEVICES=all\0CUDA_VISIBLE_DEVICES=1", "NYN");
	assert_true(v.masked[GPU_NVIDIA]);
	SEES("NVIDIA_VISIBLE_DEVICES=none", "NNN");
	assert_true(v.none[GPU_NVIDIA]);
	SEES("NVIDIA_VISIBLE_DEVICES=void", "???");
	assert_true(strlen(v.why) > 0);
	SEES("NVIDIA_VISIBLE_DEVICES=2", "NNY");
	SEES("NVIDIA_VISIBLE_DEVICES=GPU-b", "NNY");
	/* As many as we see: we are inside. More: they are counted on the host. */
	SEES("NVIDIA_VISIBLE_DEVICES=5,6,7", "YYY");
	SEES("NVIDIA_VISIBLE_DEVICES=0,1,2,3", "???");
	SEES("NVIDIA_VISIBLE_DEVICES=none\0CUDA_VISIBLE_DEVICES=1", "NYN");
	assert_string_equal(v.variable[GPU_NVIDIA], "CUDA_VISIBLE_DEVICES");
}

static void test_amd(void **state)
{
	struct gpu_visible v;

	(void)state;
	memset(&s, 0, sizeof(s));
	add(GPU_AMD, 0, "A", "GPU-00aa");
	add(GPU_AMD, 1, "B", "GPU-00bb");
	add(GPU_AMD, 2, "A", "GPU-11cc");
	SEES("X=1", "YYY");
	SEES("HIP_VISIBLE_DEVICES=1", "NYN");
	assert_string_equal(v.variable[GPU_AMD], "HIP_VISIBLE_DEVICES");
	SEES("ROCR_VISIBLE_DEVICES=1,GPU-11CC", "NYY");
	/* HIP counts in what ROCr left. */
	SEES("ROCR_VISIBLE_DEVICES=2,1\0HIP_VISIBLE_DEVICES=0", "NNY");
	SEES("ROCR_VISIBLE_DEVICES=2\0HIP_VISIBLE_DEVICES=1", "NNN");
	assert_true(v.none[GPU_AMD]);
	SEES("HIP_VISIBLE_DEVICES=-1", "NNN");
	SEES("HIP_VISIBLE_DEVICES=", "YYY");
	SEES("ROCR_VISIBLE_DEVICES=", "NNN");
	SEES("CUDA_VISIBLE_DEVICES=2", "NNY");
	SEES("CUDA_VISIBLE_DEVICES=2\0HIP_VISIBLE_DEVICES=0", "YNN");
	SEES("GPU_DEVICE_ORDINAL=0,2", "YNY");
	SEES("ROCR_VISIBLE_DEVICES=0,0,1", "YNN");
	SEES("HIP_VISIBLE_DEVICES=0,0,1", "YYN");
	SEES("HIP_VISIBLE_DEVICES=0,1x,2", "YNN");
}

static void test_intel(void **state)
{
	struct gpu_visible v;

	(void)state;
	memset(&s, 0, sizeof(s));
	add(GPU_INTEL, 0, "A", "");
	add(GPU_INTEL, 1, "A", "");
	add(GPU_INTEL, 2, "A", "");
	SEES("ZE_AFFINITY_MASK=0,1.0", "YYN");
	SEES("ZE_AFFINITY_MASK=", "YYY");
	SEES("ZE_AFFINITY_MASK=9,2", "NNY");
	SEES("ZE_AFFINITY_MASK=9", "NNN");
	assert_true(v.none[GPU_INTEL]);
	SEES("ONEAPI_DEVICE_SELECTOR=level_zero:1", "NYN");
	SEES("ONEAPI_DEVICE_SELECTOR=level_zero:gpu", "YYY");
	SEES("ONEAPI_DEVICE_SELECTOR=*:gpu", "YYY");
	SEES("ONEAPI_DEVICE_SELECTOR=opencl:cpu", "NNN");
	SEES("ONEAPI_DEVICE_SELECTOR=level_zero:0,2;opencl:cpu", "YNY");
	SEES("ONEAPI_DEVICE_SELECTOR=level_zero:*;!level_zero:0", "NYY");
	SEES("ONEAPI_DEVICE_SELECTOR=!level_zero:2", "YYN");
	SEES("ZE_AFFINITY_MASK=1,2\0ONEAPI_DEVICE_SELECTOR=level_zero:0", "NYN");
	SEES("ONEAPI_DEVICE_SELECTOR=level_zero", "NNN");
	s.device[0].unified = true;
	SEES("ZE_AFFINITY_MASK=0", "???");
	assert_true(strlen(v.why) > 0);
	SEES("ZE_AFFINITY_MASK=0\0ZE_ENABLE_PCI_ID_DEVICE_ORDER=1", "YNN");
	SEES("ZE_AFFINITY_MASK=0,1,2", "YYY");
}

/* One vendor's variable is no business of another's GPUs. */
static void test_mixed(void **state)
{
	struct gpu_visible v;

	(void)state;
	memset(&s, 0, sizeof(s));
	add(GPU_NVIDIA, 0, "A", "GPU-1");
	add(GPU_AMD, 0, "A", "GPU-2");
	add(GPU_INTEL, 0, "A", "");
	SEES("HIP_VISIBLE_DEVICES=-1", "YNY");
	SEES("ZE_AFFINITY_MASK=4", "YYN");
	SEES("NVIDIA_VISIBLE_DEVICES=none", "NYY");
	SEES("CUDA_VISIBLE_DEVICES=-1\0ROCR_VISIBLE_DEVICES=0", "NNY");
}

static uint32_t next(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

/* Random masks: what follows an invalid entry never adds a GPU, and a longer valid one never takes
 * any away but by naming one twice. */
static void test_random_masks(void **state)
{
	static const char *const parts[] = { "0",     "1",        "2",         "-1",   "7",   "",
					     "GPU-b", "GPU-aaaa", "GPU-aaaa1", "MIG-", " 1 ", "x" };
	uint32_t seed = 12345;
	struct gpu_visible before, after;
	char mask[256];

	(void)state;
	three_nvidia(true);
	for (int round = 0; round < 5000; round++) {
		size_t n = (size_t)snprintf(mask, sizeof(mask), "CUDA_VISIBLE_DEVICES=");
		unsigned entries = next(&seed) % 6;

		for (unsigned i = 0; i < entries; i++)
			n += (size_t)snprintf(mask + n, sizeof(mask) - n, "%s%s", i ? "," : "",
					      parts[next(&seed) % 12]);
		n += (size_t)snprintf(mask + n, sizeof(mask) - n, "%s-1", entries ? "," : "");
		gpu_visible_read(&s, mask, n, &before);
		n += (size_t)snprintf(mask + n, sizeof(mask) - n, ",%s", parts[next(&seed) % 12]);
		gpu_visible_read(&s, mask, n, &after);
		assert_memory_equal(before.allowed, after.allowed, sizeof(before.allowed));
		assert_true(before.masked[GPU_NVIDIA]);
		for (int i = s.n_devices; i < GPU_DEVICES; i++)
			assert_int_equal(after.allowed[i], GPU_ALLOWED_UNKNOWN);
	}
}

static void test_shown_safely(void **state)
{
	static const char evil[] =
	    "CUDA_VISIBLE_DEVICES=\x1b[2J0000000000000000000000000000000000000000"
	    "00000000000000000000000000000000000000000000000000000000000000000000";
	struct gpu_visible v;

	(void)state;
	three_nvidia(true);
	gpu_visible_read(&s, evil, sizeof(evil) - 1, &v);
	assert_null(strchr(v.value[GPU_NVIDIA], '\x1b'));
	assert_true(strlen(v.value[GPU_NVIDIA]) < sizeof(v.value[0]));
	gpu_visible_read(&s, NULL, 0, &v);
	assert_false(v.masked[GPU_NVIDIA]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cuda_indices),
		cmocka_unit_test(test_cuda_order),
		cmocka_unit_test(test_cuda_uuids),
		cmocka_unit_test(test_mig),
		cmocka_unit_test(test_container_variable),
		cmocka_unit_test(test_amd),
		cmocka_unit_test(test_intel),
		cmocka_unit_test(test_mixed),
		cmocka_unit_test(test_random_masks),
		cmocka_unit_test(test_shown_safely),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
