/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "gpu/drm.h"
#include "gpu/fdinfo.h"

#define PARSE(text, f) fdinfo_parse((text), sizeof(text) - 1, (f))

static void test_amdgpu(void **state)
{
	struct fdinfo f;

	(void)state;
	assert_true(
	    PARSE("pos:\t0\ndrm-driver:\tamdgpu\ndrm-client-id:\t42\ndrm-pdev:\t0000:03:00.0\n"
		  "drm-memory-vram:\t16384 KiB\ndrm-memory-gtt: \t2 MiB\n"
		  "drm-engine-gfx:\t731922110 ns\ndrm-engine-compute:\t5 ns\n",
		  &f));
	assert_string_equal(f.driver, "amdgpu");
	assert_string_equal(f.pdev, "0000:03:00.0");
	assert_true(f.has_client);
	assert_int_equal(f.client, 42);
	assert_int_equal(fdinfo_device_kb(&f), 16384);
	assert_int_equal(fdinfo_shared_kb(&f), 2048);
	assert_int_equal(f.n_engines, 2);
	assert_int_equal(f.engine[0].time_ns, 731922110);
	assert_int_equal(f.engine[0].capacity, 1);
	assert_int_equal(f.share, -1);
}

/* What is resident counts, not all that was asked for; tiles are added. */
static void test_regions(void **state)
{
	struct fdinfo f;

	(void)state;
	assert_true(PARSE("drm-driver:\txe\ndrm-pdev:\tx\ndrm-total-vram0:\t4096 KiB\n"
			  "drm-resident-vram0:\t1024 KiB\ndrm-total-vram1:\t2048 KiB\n"
			  "drm-shared-vram0:\t9 KiB\ndrm-total-system:\t4096\n",
			  &f));
	assert_int_equal(fdinfo_device_kb(&f), 1024 + 2048);
	assert_int_equal(fdinfo_shared_kb(&f), 4);
	assert_true(PARSE("drm-driver:\ti915\ndrm-pdev:\tx\n", &f));
	assert_int_equal(fdinfo_device_kb(&f), -1);
	assert_int_equal(fdinfo_shared_kb(&f), -1);
}

static void test_old(void **state)
{
	struct fdinfo f;

	(void)state;
	assert_true(
	    PARSE("pdev:\t0000:08:00.0\npasid:\t32769\nvram mem:\t2048 kB\ngtt mem:\t512 kB\n"
		  "gfx0:\t12.34%\ndma1:\t99.99%\ndec0:\t200.00%\n",
		  &f));
	assert_string_equal(f.driver, "");
	assert_int_equal(f.client, 32769);
	assert_int_equal(f.share, 9999);
	assert_int_equal(fdinfo_device_kb(&f), 2048);
	assert_int_equal(fdinfo_shared_kb(&f), 512);
}

static void test_refused(void **state)
{
	struct fdinfo f;

	(void)state;
	assert_false(PARSE("", &f));
	assert_false(PARSE("pos:\t0\nflags:\t02\nmnt_id:\t25\n", &f));
	assert_false(PARSE("drm-driver:\tamdgpu\n", &f));
	assert_false(
	    PARSE("drm-driver:\tamdgpu\ndrm-pdev:\t0123456789012345678901234567890\n", &f));
	assert_false(PARSE("\0\0\0\0", &f));
	/* Single lines that make no sense leave the rest alone. */
	assert_true(PARSE("drm-driver:\tamdgpu\ndrm-pdev:\tx\ndrm-client-id:\t-1\n"
			  "drm-memory-vram:\t9999999999999999999 MiB\ndrm-engine-:\t5 ns\n"
			  "drm-engine-gfx:\t99999999999999999999 ns\ndrm-engine-capacity-gfx:\t0\n"
			  "drm-memory-gtt:\t1 KiB",
			  &f));
	assert_false(f.has_client);
	assert_int_equal(fdinfo_device_kb(&f), -1);
	assert_int_equal(fdinfo_shared_kb(&f), 1);
	assert_int_equal(f.n_engines, 1);
	assert_int_equal(f.engine[0].time_ns, -1);
	assert_int_equal(f.engine[0].capacity, 1);
}

static void test_many_engines(void **state)
{
	char text[4096] = "drm-driver:\tx\ndrm-pdev:\ty\n";
	size_t n = strlen(text);
	struct fdinfo f;

	(void)state;
	for (int i = 0; i < 60; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "drm-engine-e%d:\t1 ns\ndrm-total-r%d:\t1\n", i, i);
	assert_true(fdinfo_parse(text, n, &f));
	assert_int_equal(f.n_engines, FDINFO_ENGINES);
	assert_int_equal(f.n_regions, FDINFO_REGIONS);
}

static void test_load(void **state)
{
	struct drm_use a = { .n_engines = 2,
			     .engine = { { .name = "gfx", .time_ns = 1000, .capacity = 1 },
					 { .name = "enc", .time_ns = 0, .capacity = 1 } } };
	struct drm_use b = a;
	struct drm_load l;

	(void)state;
	b.engine[0].time_ns += 250;
	b.engine[1].time_ns += 500;
	l = drm_load_between(&a, &b, 1000);
	assert_int_equal(l.busy, 5000);
	assert_int_equal(l.encoder, 5000);
	assert_int_equal(l.decoder, -1);
	/* More than all of it (two clocks): all of it. A client that was closed: not known. */
	b.engine[1].time_ns = 5000;
	assert_int_equal(drm_load_between(&a, &b, 1000).busy, 10000);
	b.engine[0].time_ns = 10;
	b.engine[1].time_ns = -1;
	assert_int_equal(drm_load_between(&a, &b, 1000).busy, -1);
	assert_int_equal(drm_load_between(NULL, &b, 1000).busy, -1);
	assert_int_equal(drm_load_between(&a, &a, 0).busy, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_amdgpu),       cmocka_unit_test(test_regions),
		cmocka_unit_test(test_old),          cmocka_unit_test(test_refused),
		cmocka_unit_test(test_many_engines), cmocka_unit_test(test_load),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
