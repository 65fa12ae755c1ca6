/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/err.h"
#include "cuda_local.h"

static struct scenario s;

static int begin(void **state)
{
	const char *text = "gpu \"Tesla T4\"\n  uuid GPU-aaaa1111\n  pci 0000:10:00.0\n"
			   "gpu \"NVIDIA H100\"\n  uuid GPU-aabb2222\n  pci 0000:20:00.0\n"
			   "gpu \"A100\"\n  uuid GPU-cccc3333\n  pci 0000:30:00.0\n"
			   "  mig 3g.40gb 2g.20gb\n";
	struct err e = { 0 };

	(void)state;
	return scenario_parse(text, strlen(text), &s, &e);
}

/* The devices in order as text: "1 0 2/0" (device/partition). */
static void expect(const char *visible, const char *order, const char *want)
{
	struct cuda_visible v[CUDA_VISIBLE];
	int n = cuda_visible(&s, visible, order, v);
	char got[128] = "";
	size_t at = 0;

	for (int i = 0; i < n; i++) {
		at += (size_t)snprintf(got + at, sizeof(got) - at, i ? " %d" : "%d", v[i].device);
		if (v[i].partition >= 0)
			at += (size_t)snprintf(got + at, sizeof(got) - at, "/%d", v[i].partition);
	}
	if (strcmp(got, want) != 0)
		fail_msg("'%s' gave '%s', not '%s'", visible ? visible : "unset", got, want);
}

static void test_indices(void **state)
{
	(void)state;
	expect(NULL, NULL, "1 2/0 0"); /* the fastest first */
	expect(NULL, "PCI_BUS_ID", "0 1 2/0");
	expect("0", NULL, "1");
	expect("2,0", "PCI_BUS_ID", "2/0 0");
	expect(" 1 , 0 ", "PCI_BUS_ID", "1 0");
	expect("", NULL, "");
	expect("-1", NULL, "");
	expect("0,-1,1", "PCI_BUS_ID", "0");
	expect("0,7,1", "PCI_BUS_ID", "0");
	expect("0,0,1", "PCI_BUS_ID", "0");
	expect("0,x,1", "PCI_BUS_ID", "0");
	expect("99999999999999999999999", NULL, "");
	expect("1,,0", "PCI_BUS_ID", "1");
}

static void test_uuids(void **state)
{
	char text[256];

	(void)state;
	expect("GPU-aaaa", NULL, "0");
	expect("gpu-AABB2222,GPU-aaaa1111", NULL, "1 0");
	expect("GPU-aa", NULL, ""); /* of two */
	expect("GPU-", NULL, "");
	expect("GPU-aaaa11112", NULL, "");
	expect("GPU-cccc", NULL, "2/0");
	snprintf(text, sizeof(text), "%s,0", s.device[2].about.partition[1].uuid);
	expect(text, "PCI_BUS_ID", "2/1 0");
	expect("MIG-GPU-cccc3333/2/0", NULL, "2/1");
	expect("MIG-nothing", NULL, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_indices),
		cmocka_unit_test(test_uuids),
	};

	return cmocka_run_group_tests(tests, begin, NULL);
}
