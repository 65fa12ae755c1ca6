/* SPDX-License-Identifier: MIT */
#include "rig.h"

#include "collect/net.h"

static void torment_one(const char *text, size_t n)
{
	struct scan scan = scan_of(text, n);
	struct net net;

	while (net_next(&scan, &net))
		assert_true(strlen(net.name) < NET_NAME_BYTES);
}

static void parses(void **s)
{
	static const char text[] =
	    "Inter-|   Receive  |  Transmit\n face |bytes    packets|bytes\n"
	    "eth0:1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
	    "  a%b$\xc3\xa4: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
	    ":1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
	    "name-of-sixteen-: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
	    "few: 1 2 3\nneg: -1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
	    "big: 1 2 9223372036854775807 9223372036854775807 0 0 0 0 1 1 1 1 0 0 0 0\n"
	    "cut: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16";
	struct scan scan = scan_of(text, sizeof(text) - 1);
	struct net net;

	(void)s;
	assert_true(net_next(&scan, &net));
	assert_string_equal(net.name, "eth0");
	assert_int_equal(net.rx_bytes, 1);
	assert_int_equal(net.rx_packets, 2);
	assert_int_equal(net.tx_bytes, 9);
	assert_int_equal(net.tx_packets, 10);
	assert_int_equal(net.errors, 3 + 4 + 11 + 12);
	assert_true(net_next(&scan, &net));
	assert_string_equal(net.name, "a%b$\xc3\xa4");
	assert_false(net_next(&scan, &net));
	rig_torment(text, torment_one);
}

static void reads(void **s)
{
	struct rig r;
	uint32_t eth0;

	(void)s;
	rig_open(&r, &net_collector, "host-plain", 0);
	eth0 = rig_life(&r, LIFE_BORN, "eth0");
	assert_int_equal(r.f.lives.n, 1); /* lo never, docker0 not before it carries something */
	assert_int_equal(rig_get(&r, M_NET_RX, eth0), 149340126);
	assert_int_equal(rig_get(&r, M_NET_TX, eth0), 142262);
	assert_int_equal(rig_get(&r, M_NET_RX_PACKETS, eth0), 3501);
	assert_int_equal(rig_get(&r, M_NET_TX_PACKETS, eth0), 1660);
	assert_int_equal(rig_get(&r, M_NET_ERRORS, eth0), 4321);
	rig_tick(&r);
	assert_true(rig_life(&r, LIFE_BORN, "docker0"));
	assert_int_equal(rig_get(&r, M_NET_RX, rig_life(&r, LIFE_BORN, "docker0")), 64);
	assert_int_equal(rig_get(&r, M_NET_RX, eth0), 1149340126);
	rig_close(&r);
}

static void unplug(void **s)
{
	struct rig r;
	uint32_t eth0, veth1;

	(void)s;
	rig_open(&r, &net_collector, "net-unplug", 0);
	eth0 = rig_life(&r, LIFE_BORN, "eth0");
	veth1 = rig_life(&r, LIFE_BORN, "veth1");
	rig_tick(&r);
	assert_int_equal(rig_life(&r, LIFE_GONE, "veth1"), veth1);
	assert_int_equal(rig_get(&r, M_NET_RX, eth0), 704);
	assert_int_equal(rig_has(&r, M_NET_RX, veth1), 0);
	rig_tick(&r);
	assert_true(rig_life(&r, LIFE_BORN, "veth1") > veth1);
	assert_int_equal(rig_get(&r, M_NET_RX, rig_life(&r, LIFE_BORN, "veth1")), 64);
	assert_int_equal(rig_get(&r, M_NET_RX, eth0), 768);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses),
		cmocka_unit_test(reads),
		cmocka_unit_test(unplug),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
