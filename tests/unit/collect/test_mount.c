/* SPDX-License-Identifier: MIT */
#include "rig.h"

#include "collect/mount.h"
#include "collect/mountinfo.h"

static const char table[] =
    "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n"
    "24 27 0:6 / /dev rw,relatime shared:1 master:2 propagate_from:3 - devtmpfs devtmpfs rw\n"
    "25 24 0:23 / /dev/shm rw - tmpfs first rw\n"
    "30 25 0:27 / /dev/shm rw - tmpfs second rw\n" /* on top of the first */
    "31 27 0:40 / /data rw - nfs4 server:/export rw,vers=4.2\n"
    "32 31 0:41 / /data/local rw - tmpfs inner rw\n"
    "33 27 0:42 / /a/b rw - tmpfs hidden rw\n" /* hidden by the next, which came later */
    "34 27 0:43 / /a rw - xfs /dev/vdb rw\n"
    "35 27 0:44 /sub /my\\040place\\134x rw - fuse.sshfs me@host: rw\n"
    "36 27 0:45 / /nosource rw - tmpfs  rw,size=4k\n";

static void field_is(struct scan field, const char *text)
{
	char got[256];

	assert_true(mountinfo_unescape(field, got, sizeof(got)));
	assert_string_equal(got, text);
}

static void parses(void **s)
{
	struct scan scan = scan_of(table, sizeof(table) - 1);
	struct mountinfo m;

	(void)s;
	assert_true(mountinfo_next(&scan, &m));
	assert_int_equal(m.id, 27);
	assert_int_equal(m.parent, 1);
	field_is(m.point, "/");
	assert_true(mountinfo_is(m.type, "ext4"));
	assert_false(mountinfo_is(m.type, "ext"));
	field_is(m.source, "/dev/vda");
	assert_true(mountinfo_has(m.options, "discard"));
	assert_true(mountinfo_has(m.options, "rw"));
	assert_false(mountinfo_has(m.options, "disc"));
	assert_false(mountinfo_has(m.options, ""));
	assert_true(mountinfo_next(&scan, &m));
	assert_true(mountinfo_is(m.type, "devtmpfs"));
	for (int i = 0; i < 7; i++)
		assert_true(mountinfo_next(&scan, &m));
	field_is(m.root, "/sub");
	field_is(m.point, "/my place\\x");
	assert_true(mountinfo_next(&scan, &m));
	field_is(m.source, "");
	assert_true(mountinfo_has(m.options, "size=4k"));
	assert_false(mountinfo_next(&scan, &m));
}

static void unescapes(void **s)
{
	char got[8];

	(void)s;
	assert_true(mountinfo_unescape(scan_of("a\\040b", 6), got, sizeof(got)));
	assert_string_equal(got, "a b");
	assert_true(mountinfo_unescape(scan_of("\\04", 3), got, sizeof(got)));
	assert_string_equal(got, "\\04"); /* too short to be one */
	assert_true(mountinfo_unescape(scan_of("\\089", 4), got, sizeof(got)));
	assert_string_equal(got, "\\089");
	assert_true(mountinfo_unescape(scan_of("\\000", 4), got, sizeof(got)));
	assert_string_equal(got, "\\000"); /* no path holds a NUL */
	assert_true(mountinfo_unescape(scan_of("\\777", 4), got, sizeof(got)));
	assert_string_equal(got, "\\777");
	assert_false(mountinfo_unescape(scan_of("12345678", 8), got, sizeof(got)));
	assert_string_equal(got, "");
}

static void found(const char *path, int64_t id, bool local)
{
	struct mountinfo m;
	bool is_local;

	assert_true(mountinfo_find(table, sizeof(table) - 1, path, &m, &is_local));
	assert_int_equal(m.id, id);
	assert_int_equal(is_local, local);
}

/* As the kernel walks, not as the longest prefix. */
static void finds(void **s)
{
	struct mountinfo m;
	bool local;

	(void)s;
	found("/", 27, true);
	found("/home/me", 27, true);
	found("/dev", 24, true);
	found("/dev/shm", 30, true);
	found("/dev/shm/x", 30, true);
	found("/dev/shmx", 24, true);
	found("/a/b/c", 34, true);
	found("/data/set", 31, false);
	found("/data/local/x", 32, false); /* local, but the way there is not */
	found("/my place\\x/y", 35, false);
	assert_false(mountinfo_find("", 0, "/", &m, &local));
	assert_false(mountinfo_find("junk\n", 5, "/", &m, &local));
}

/* A ring of parents cannot hang the walk. */
static void ring(void **s)
{
	static const char text[] = "1 9 0:1 / / rw - ext4 a rw\n2 1 0:1 / /a rw - ext4 a rw\n"
				   "1 2 0:1 / /a rw - ext4 a rw\n";
	struct mountinfo m;
	bool local;

	(void)s;
	assert_true(mountinfo_find(text, sizeof(text) - 1, "/a", &m, &local));
}

static void torment_one(const char *text, size_t n)
{
	struct mountinfo m;
	bool local;

	(void)mountinfo_find(text, n, "/dev/shm", &m, &local);
}

static void torn(void **s)
{
	(void)s;
	rig_torment("27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n"
		    "24 27 0:6 / /dev rw shared:1 - devtmpfs devtmpfs rw\n"
		    "30 24 0:27 / /dev/s\\150m rw - tmpfs second rw\n",
		    torment_one);
}

/* In a fixture nothing can be asked: the mounts are announced, with gaps. */
static void fixture(void **s)
{
	struct rig r;
	uint32_t shm, fast, top;

	(void)s;
	rig_open(&r, &mount_collector, "host-plain", 4242);
	assert_int_equal(r.last, 0);
	shm = rig_life(&r, LIFE_BORN, "/dev/shm");
	fast = rig_life(&r, LIFE_BORN, "/mnt/my data/fast");
	top = rig_life(&r, LIFE_BORN, "/");
	assert_true(shm && fast && top);
	assert_string_equal(frame_text(&r.f, r.f.lives.v[1].detail),
			    "tmpfs on /mnt/my data/fast from fast");
	assert_int_equal(r.f.samples.n, 0);
	assert_int_equal(rig_gap(&r, M_MOUNT_SIZE, fast), GAP_NOT_SUPPORTED);
	assert_int_equal(rig_gap(&r, M_MOUNT_AVAILABLE, shm), GAP_NOT_SUPPORTED);
	assert_int_equal(r.f.gaps.n, 6);
	rig_tick(&r);
	assert_int_equal(r.f.gaps.n + r.f.lives.n, 0); /* said once */
	rig_close(&r);
}

/* A path on the command line leads to a network file system: it is announced, and never asked. */
static void on_the_command_line(void **s)
{
	struct rig r;
	uint32_t data;

	(void)s;
	rig_open(&r, &mount_collector, "host-network", 4242);
	assert_int_equal(r.last, 0);
	data = rig_life(&r, LIFE_BORN, "/data");
	assert_true(data);
	assert_int_equal(rig_gap(&r, M_MOUNT_SIZE, data), GAP_NOT_SUPPORTED);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses),
		cmocka_unit_test(unescapes),
		cmocka_unit_test(finds),
		cmocka_unit_test(ring),
		cmocka_unit_test(torn),
		cmocka_unit_test(fixture),
		cmocka_unit_test(on_the_command_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
