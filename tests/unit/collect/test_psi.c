/* SPDX-License-Identifier: MIT */
#include "rig.h"

#include "collect/psi.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static void torment_one(const char *text, size_t n)
{
	struct psi p;

	if (psi_parse(text, n, &p) == 0)
		assert_true(p.some_us >= 0 || p.full_us >= 0);
}

static void parses(void **s)
{
	static const char text[] = "some avg10=1.82 avg60=1.09 avg300=0.31 total=7634293\n"
				   "full avg10=0.00 avg60=0.00 avg300=0.00 total=12\n";
	static const char *const bad[] = { "",
					   "some avg10=0.00 total=\n",
					   "some total=5",
					   "total=5\n",
					   "none total=5\n",
					   "some total=-5\n",
					   "some total=99999999999999999999\n" };
	struct psi p = { 7, 7 };

	(void)s;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(psi_parse(bad[i], strlen(bad[i]), &p), -EINVAL);
	assert_int_equal(p.some_us, 7);
	assert_int_equal(psi_parse(text, sizeof(text) - 1, &p), 0);
	assert_int_equal(p.some_us, 7634293);
	assert_int_equal(p.full_us, 12);
	assert_int_equal(psi_parse("some avg10=0 future=1 total=5\n", 30, &p), 0);
	assert_int_equal(p.some_us, 5);
	assert_int_equal(p.full_us, -1);
	rig_torment(text, torment_one);
}

static void reads(void **s)
{
	struct rig r;

	(void)s;
	rig_open(&r, &psi_collector, "host-plain", 0);
	assert_int_equal(rig_get(&r, M_PSI_CPU_SOME, ID_HOST), 7634293);
	assert_int_equal(rig_get(&r, M_PSI_CPU_FULL, ID_HOST), 0);
	assert_int_equal(rig_get(&r, M_PSI_MEM_SOME, ID_HOST), 1);
	assert_int_equal(rig_get(&r, M_PSI_MEM_FULL, ID_HOST), 2);
	assert_int_equal(rig_get(&r, M_PSI_IO_SOME, ID_HOST), 11263951);
	assert_int_equal(rig_get(&r, M_PSI_IO_FULL, ID_HOST), 10853869);
	assert_int_equal(r.f.gaps.n, 0);
	rig_close(&r);
}

static void cpu_without_full(void **s)
{
	struct rig r;

	(void)s;
	rig_open(&r, &psi_collector, "psi-5.4", 0);
	assert_int_equal(rig_get(&r, M_PSI_CPU_SOME, ID_HOST), 500);
	assert_int_equal(rig_has(&r, M_PSI_CPU_FULL, ID_HOST), 0);
	assert_int_equal(rig_gap(&r, M_PSI_CPU_FULL, ID_HOST), GAP_NOT_SUPPORTED);
	assert_int_equal(r.f.gaps.n, 1);
	rig_close(&r);
}

/* The engine notes the gap of the sample metric, the collector those of the others. */
static void none(void **s)
{
	struct rig r;

	(void)s;
	rig_open(&r, &psi_collector, "no-psi", 0);
	assert_int_equal(r.opened, -ENOENT);
	assert_int_equal(r.f.samples.n, 0);
	assert_int_equal(r.f.gaps.n, 5);
	assert_int_equal(rig_gap(&r, M_PSI_IO_SOME, ID_HOST), GAP_NOT_SUPPORTED);
	assert_int_equal(rig_gap(&r, M_PSI_CPU_SOME, ID_HOST), -1);
	rig_close(&r);
}

static void put_file(const char *dir, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/proc/pressure/%s", dir, name);
	if (!text) {
		assert_int_equal(unlink(path), 0);
		return;
	}
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* One file fails for a while: lost once, the others go on, over once. */
static void lost_and_found(void **s)
{
	char dir[] = "/tmp/spotter-psi-XXXXXX", path[64];
	static const char text[] = "some avg10=0 total=5\nfull avg10=0 total=6\n";
	struct rig r;

	(void)s;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/proc", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/proc/pressure", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	put_file(dir, "cpu", text);
	put_file(dir, "memory", text);
	put_file(dir, "io", text);
	rig_open_at(&r, &psi_collector, dir, 0);
	assert_int_equal(r.f.samples.n, 6);
	put_file(dir, "memory", NULL);
	for (int i = 0; i < 2; i++) {
		rig_begin(&r);
		assert_int_equal(psi_collector.read(&r.c, r.state, &r.f), 0);
		assert_int_equal(r.f.samples.n, 4);
		assert_int_equal(rig_gap(&r, M_PSI_MEM_SOME, ID_HOST), i == 0 ? GAP_LOST : -1);
	}
	put_file(dir, "memory", text);
	rig_begin(&r);
	assert_int_equal(psi_collector.read(&r.c, r.state, &r.f), 0);
	assert_int_equal(r.f.samples.n, 6);
	assert_int_equal(rig_gap(&r, M_PSI_MEM_FULL, ID_HOST), GAP_OVER);
	rig_close(&r);
	put_file(dir, "cpu", NULL);
	put_file(dir, "memory", NULL);
	put_file(dir, "io", NULL);
	assert_int_equal(rmdir(path), 0);
	snprintf(path, sizeof(path), "%s/proc", dir);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses),           cmocka_unit_test(reads),
		cmocka_unit_test(cpu_without_full), cmocka_unit_test(none),
		cmocka_unit_test(lost_and_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
