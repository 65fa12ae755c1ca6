/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "model/gpu_tag.h"

#include <string.h>

static const struct gpu_tag full = {
	.uuid = "GPU-5f2d1c6e-0000-1111-2222-333344445555",
	.pci = "00000000:83:00.0",
	.vendor = "nvidia",
	.driver = "590.48.01",
	.runtime = "CUDA 13.1",
	.mode = "Exclusive_Process",
	.profile = "3g.40gb",
	.unified = true,
};

static void check_same(const struct gpu_tag *a, const struct gpu_tag *b)
{
	assert_string_equal(a->uuid, b->uuid);
	assert_string_equal(a->pci, b->pci);
	assert_string_equal(a->vendor, b->vendor);
	assert_string_equal(a->driver, b->driver);
	assert_string_equal(a->runtime, b->runtime);
	assert_string_equal(a->mode, b->mode);
	assert_string_equal(a->profile, b->profile);
	assert_int_equal(a->simulated, b->simulated);
	assert_int_equal(a->unified, b->unified);
	assert_int_equal(a->partitioned, b->partitioned);
}

static void test_round_trip(void **state)
{
	struct gpu_tag t = full, back;
	char text[512];

	(void)state;
	gpu_tag_write(&t, text, sizeof(text));
	assert_string_equal(text, "vendor=nvidia\tuuid=GPU-5f2d1c6e-0000-1111-2222-333344445555\t"
				  "pci=00000000:83:00.0\tdriver=590.48.01\truntime=CUDA 13.1\t"
				  "mode=Exclusive_Process\tprofile=3g.40gb\tflags=u");
	gpu_tag_read(text, &back);
	check_same(&t, &back);
	for (int i = 0; i < 8; i++) {
		t.simulated = i & 1;
		t.unified = i & 2;
		t.partitioned = i & 4;
		gpu_tag_write(&t, text, sizeof(text));
		gpu_tag_read(text, &back);
		check_same(&t, &back);
	}
	t = (struct gpu_tag){ 0 };
	gpu_tag_write(&t, text, sizeof(text));
	gpu_tag_read(text, &back);
	check_same(&t, &back);
}

static void test_missing_and_unknown(void **state)
{
	struct gpu_tag back;

	(void)state;
	gpu_tag_read("", &back);
	check_same(&back, &(struct gpu_tag){ 0 });
	gpu_tag_read("\t\t=\t=x\tuuid\tpci", &back);
	check_same(&back, &(struct gpu_tag){ 0 });
	/* A newer recorder's keys, in any order; a key is not the end of another one. */
	gpu_tag_read("slot=7\tpci=a\tmyuuid=no\tuuidx=no\tflags=zps\tuuid=b=c", &back);
	check_same(&back, &(struct gpu_tag){
			      .pci = "a", .uuid = "b=c", .simulated = true, .partitioned = true });
	/* A value that looks like a key is none; the first of two counts. */
	gpu_tag_read("vendor=mode=x\tvendor=amd", &back);
	check_same(&back, &(struct gpu_tag){ .vendor = "mode=x" });
}

static void test_overlong(void **state)
{
	char text[2048], cut[64];
	struct gpu_tag back;
	size_t n;

	(void)state;
	n = (size_t)snprintf(text, sizeof(text), "pci=");
	memset(text + n, '7', 1000);
	snprintf(text + n + 1000, sizeof(text) - n - 1000, "\tvendor=intel");
	gpu_tag_read(text, &back);
	assert_int_equal(strlen(back.pci), sizeof(back.pci) - 1);
	assert_string_equal(back.vendor, "intel");
	/* What does not fit is cut, and what stands is still read. */
	gpu_tag_write(&full, cut, sizeof(cut));
	assert_int_equal(strlen(cut), sizeof(cut) - 1);
	gpu_tag_read(cut, &back);
	assert_string_equal(back.vendor, "nvidia");
	assert_string_equal(back.driver, "");
	gpu_tag_write(&full, cut, 1);
	assert_string_equal(cut, "");
}

static void test_control_characters(void **state)
{
	struct gpu_tag back;

	(void)state;
	gpu_tag_read("vendor=a\x1b[2Jb\tdriver=x\ny\tmode=\x7f\tprofile=\xc3(\truntime=\xe2\x80\xae"
		     "z\tuuid=\xc3\xa9",
		     &back);
	assert_string_equal(back.vendor, "a?[2Jb");
	assert_string_equal(back.driver, "x?y");
	assert_string_equal(back.mode, "?");
	assert_string_equal(back.profile, "?(");
	assert_string_equal(back.runtime, "?z"); /* text from right to left */
	assert_string_equal(back.uuid, "\xc3\xa9");
}

static void test_keys(void **state)
{
	(void)state;
	assert_int_equal(gpu_key(0, -1), 0);
	assert_int_equal(gpu_key(63, -1), 63);
	assert_int_equal(gpu_key(0, 0), 1000);
	assert_int_equal(gpu_key(7, 6), 8006);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip), cmocka_unit_test(test_missing_and_unknown),
		cmocka_unit_test(test_overlong),   cmocka_unit_test(test_control_characters),
		cmocka_unit_test(test_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
