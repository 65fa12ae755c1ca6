/* SPDX-License-Identifier: MIT
 *
 * /proc/net/dev: what went through the network interfaces since they came.
 *
 *	Inter-|   Receive                                                |  Transmit
 *	 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
 *	    lo:    3193      29    0    0    0     0          0         0     3193      29    0    0    0     0       0          0
 *	  eth0: 149340126    3501    0    0    0     0          0         0   142262    1660    0    0    0     0       0          0
 *
 * Bytes and packets. "errs" holds fifo and frame errors already. A wide number touches the colon
 * ("eth0:149340126"). Interfaces of Spotter's own network namespace. RDMA goes past them: InfiniBand
 * traffic of collectives is not in here. Not announced: lo (nothing leaves the machine), and
 * interfaces that never carried anything. Cost: 2 us an interface.
 */
#include "collect/net.h"

#include "base/clock.h"
#include "base/text.h"
#include "base/vec.h"
#include "collect/whole.h"

#include <errno.h>
#include <string.h>

enum { INTERFACES_MAX = 16384 };

struct nic {
	char name[NET_NAME_BYTES];
	uint32_t id; /* 0: not announced */
	bool seen;   /* in this reading */
};

struct net_state {
	struct whole file;
	VEC(struct nic) nics; /* in the order of the file */
};

enum {
	RX_BYTES,
	RX_PACKETS,
	RX_ERRORS,
	RX_DROPS,
	TX_BYTES = 8,
	TX_PACKETS,
	TX_ERRORS,
	TX_DROPS,
	COLUMNS
};

static bool parse_line(struct scan line, struct net *ret)
{
	struct net net = { 0 };
	const char *name;
	int64_t v[COLUMNS];
	size_t n;

	scan_blank(&line);
	name = line.p;
	if (!scan_after(&line, ':'))
		return false;
	n = (size_t)(line.p - 1 - name);
	if (!n || n >= sizeof(net.name))
		return false;
	memcpy(net.name, name, n);
	for (int i = 0; i < COLUMNS; i++)
		if (!scan_i64(&line, &v[i]) || v[i] < 0)
			return false;
	net.rx_bytes = v[RX_BYTES];
	net.rx_packets = v[RX_PACKETS];
	net.tx_bytes = v[TX_BYTES];
	net.tx_packets = v[TX_PACKETS];
	if (__builtin_add_overflow(v[RX_ERRORS], v[RX_DROPS], &net.errors) ||
	    __builtin_add_overflow(net.errors, v[TX_ERRORS], &net.errors) ||
	    __builtin_add_overflow(net.errors, v[TX_DROPS], &net.errors))
		return false;
	*ret = net;
	return true;
}

bool net_next(struct scan *s, struct net *ret)
{
	struct scan line;

	while (whole_line(s, &line))
		if (parse_line(line, ret))
			return true;
	return false;
}

static void nic_life(struct frame *f, enum life_change change, const struct nic *nic)
{
	frame_life(f,
		   &(struct life){
		       .change = change, .id = nic->id, .parent = ID_HOST, .kind = ENTITY_NIC },
		   nic->name, NULL);
}

/* The row of this interface, a new one if need be. The file keeps its order, so the guess is right
 * but when interfaces came or went. NULL without memory or with absurdly many. */
static struct nic *find_nic(struct net_state *st, const char *name, size_t guess)
{
	struct nic *nic;

	if (guess < st->nics.n && !strcmp(st->nics.v[guess].name, name))
		return &st->nics.v[guess];
	for (size_t i = 0; i < st->nics.n; i++)
		if (!strcmp(st->nics.v[i].name, name))
			return &st->nics.v[i];
	nic = st->nics.n < INTERFACES_MAX ? vec_push(&st->nics) : NULL;
	if (nic)
		text_copy(nic->name, sizeof(nic->name), name);
	return nic;
}

static void put_nic(struct collect *c, struct nic *nic, const struct net *net, struct frame *f)
{
	if (!nic->id && (!strcmp(nic->name, "lo") || (!net->rx_packets && !net->tx_packets)))
		return;
	if (!nic->id) {
		nic->id = collect_id(c);
		nic_life(f, LIFE_BORN, nic);
	}
	frame_put(f, M_NET_RX, nic->id, net->rx_bytes);
	frame_put(f, M_NET_TX, nic->id, net->tx_bytes);
	frame_put(f, M_NET_RX_PACKETS, nic->id, net->rx_packets);
	frame_put(f, M_NET_TX_PACKETS, nic->id, net->tx_packets);
	frame_put(f, M_NET_ERRORS, nic->id, net->errors);
}

/* Rows of interfaces that are gone close up, the order stays. */
static void drop_unseen(struct net_state *st, struct frame *f)
{
	size_t kept = 0;

	for (size_t i = 0; i < st->nics.n; i++) {
		struct nic *nic = &st->nics.v[i];

		if (!nic->seen) {
			if (nic->id)
				nic_life(f, LIFE_GONE, nic);
			continue;
		}
		nic->seen = false;
		st->nics.v[kept++] = *nic;
	}
	st->nics.n = kept;
}

static int net_open(struct collect *c, void *state, struct frame *f)
{
	struct net_state *st = state;

	int r;

	(void)f;
	whole_init(&st->file);
	r = whole_read(c->host, &st->file, "proc/net/dev");
	if (r < 0)
		whole_done(&st->file);
	return r;
}

static int net_read(struct collect *c, void *state, struct frame *f)
{
	struct net_state *st = state;
	struct net net;
	struct scan s;
	int r = whole_read(c->host, &st->file, "proc/net/dev");

	if (r < 0)
		return r;
	s = scan_of(st->file.text, st->file.n);
	for (size_t i = 0; net_next(&s, &net); i++) {
		struct nic *nic = find_nic(st, net.name, i);

		if (!nic)
			return -ENOMEM;
		nic->seen = true;
		put_nic(c, nic, &net, f);
	}
	drop_unseen(st, f);
	return 0;
}

static void net_close(void *state)
{
	struct net_state *st = state;

	whole_done(&st->file);
	vec_done(&st->nics);
}

const struct collector net_collector = {
	.name = "net",
	.help = "traffic of network interfaces (/proc/net/dev)",
	.state_size = sizeof(struct net_state),
	.every_ns = NS_PER_S,
	.open = net_open,
	.read = net_read,
	.close = net_close,
	.sample_metric = M_NET_RX,
};
