/* SPDX-License-Identifier: MIT */
#include "rig.h"

#include "collect/disk.h"

static void names(void **s)
{
	(void)s;
	assert_false(disk_name_counts("loop0"));
	assert_false(disk_name_counts("ram15"));
	assert_false(disk_name_counts("zram0"));
	assert_false(disk_name_counts("sr0"));
	assert_false(disk_name_counts("fd0"));
	assert_true(disk_name_counts("sda"));
	assert_true(disk_name_counts("nvme0n1"));
	assert_true(disk_name_counts("dm-0"));
	assert_true(disk_name_counts("md127"));
	assert_true(disk_name_counts("mmcblk0"));
	assert_true(disk_name_counts("rambo"));
	assert_true(disk_name_counts("srv"));
}

static void torment_one(const char *text, size_t n)
{
	struct scan scan = scan_of(text, n);
	struct disk d;

	while (disk_next(&scan, &d))
		assert_true(strlen(d.name) > 0 && strlen(d.name) < DISK_NAME_BYTES);
}

static void parses(void **s)
{
	static const char text[] =
	    "   8       0 sda 1 2 3 4 5 6 7 8 9 10 11\n" /* before 4.18 */
	    "   8       1 sda1 1 2 3 4\n"                /* 2.6 partitions */
	    "   8 sdx 1 2 3 4 5 6 7 8 9 10 11\n"
	    " 259       0 nvme0n1 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n"
	    " 259       1 a-name-that-is-longer-than-the-kernel-has 1 2 3 4 5 6 7 8 9 10 11\n"
	    " 259       2 cut 1 2 3 4 5 6 7 8 9 10 11";
	struct scan scan = scan_of(text, sizeof(text) - 1);
	struct disk d;

	(void)s;
	assert_true(disk_next(&scan, &d));
	assert_string_equal(d.name, "sda");
	assert_int_equal(d.major, 8);
	for (int i = 0; i < DISK_COLUMNS; i++)
		assert_int_equal(d.value[i], i + 1);
	assert_true(disk_next(&scan, &d));
	assert_string_equal(d.name, "nvme0n1");
	assert_int_equal(d.value[DISK_QUEUE_MS], 11);
	assert_false(disk_next(&scan, &d));
	rig_torment(text, torment_one);
}

static void reads(void **s)
{
	struct rig r;
	uint32_t vda, dm;

	(void)s;
	rig_open(&r, &disk_collector, "host-plain", 0);
	vda = rig_life(&r, LIFE_BORN, "vda");
	dm = rig_life(&r, LIFE_BORN, "dm-0");
	assert_true(vda && dm);
	assert_int_equal(r.f.lives.n, 2); /* no partition, no loop, no zram, no idle nbd */
	assert_int_equal(rig_get(&r, M_DISK_READ, vda), 2591482);
	assert_int_equal(rig_get(&r, M_DISK_WRITTEN, vda), 2748192);
	assert_int_equal(rig_get(&r, M_DISK_READS, vda), 47941);
	assert_int_equal(rig_get(&r, M_DISK_WRITES, vda), 44964);
	assert_int_equal(rig_get(&r, M_DISK_READ_TIME, vda), 27177);
	assert_int_equal(rig_get(&r, M_DISK_WRITE_TIME, vda), 6488);
	assert_int_equal(rig_get(&r, M_DISK_BUSY, vda), 16988);
	assert_int_equal(rig_get(&r, M_DISK_QUEUE_TIME, vda), 34252);
	assert_int_equal(rig_get(&r, M_DISK_IN_FLIGHT, vda), 3);
	rig_tick(&r);
	assert_int_equal(r.f.lives.n, 0);
	rig_close(&r);
}

static void replug(void **s)
{
	struct rig r;
	uint32_t sda, nvme;

	(void)s;
	rig_open(&r, &disk_collector, "disk-replug", 0);
	sda = rig_life(&r, LIFE_BORN, "sda");
	nvme = rig_life(&r, LIFE_BORN, "nvme0n1");
	assert_int_equal(r.f.lives.n, 2);
	rig_tick(&r);
	assert_int_equal(rig_life(&r, LIFE_GONE, "sda"), sda);
	assert_int_equal(r.f.lives.n, 1);
	assert_int_equal(rig_get(&r, M_DISK_READS, nvme), 1010);
	assert_int_equal(rig_has(&r, M_DISK_READS, sda), 0);
	rig_tick(&r);
	assert_true(rig_life(&r, LIFE_BORN, "sda") > sda);
	assert_true(rig_life(&r, LIFE_BORN, "cciss/c0d0"));
	assert_int_equal(r.f.lives.n, 2); /* no cciss/c0d0p1, no torn sdb */
	assert_int_equal(rig_get(&r, M_DISK_READS, rig_life(&r, LIFE_BORN, "sda")), 7);
	assert_int_equal(rig_get(&r, M_DISK_READS, nvme), 1020);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(parses),
		cmocka_unit_test(reads),
		cmocka_unit_test(replug),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
