/* SPDX-License-Identifier: MIT */
#include "model/xid.h"

#include <stddef.h>

struct xid {
	int64_t code;
	enum xid_kind kind;
	const char *words;
};

/* In our own words, after NVIDIA's description of XID errors. They stand behind the name of a GPU:
 * "GPU 1: fell off the bus". */
static const struct xid xids[] = {
	{ 13, XID_PROGRAM, "a kernel of the program did something illegal" },
	{ 31, XID_PROGRAM, "a kernel of the program touched memory that is not its own" },
	{ 32, XID_NOTICE, "corrupted command buffer" },
	{ 38, XID_NOTICE, "error of the driver's firmware" },
	{ 43, XID_PROGRAM, "the driver stopped work of the program after a fault in it" },
	{ 45, XID_PROGRAM, "work was removed because the program ended or was killed" },
	{ 48, XID_HARDWARE, "memory error that could not be corrected" },
	{ 61, XID_NOTICE, "breakpoint of its microcontroller" },
	{ 62, XID_NOTICE, "halt of its microcontroller" },
	{ 63, XID_NOTICE, "a bad piece of memory was put aside" },
	{ 64, XID_HARDWARE, "a bad piece of memory could not be put aside" },
	{ 74, XID_HARDWARE, "NVLink error" },
	{ XID_OFF_THE_BUS, XID_HARDWARE, "fell off the bus" },
	{ 92, XID_NOTICE, "many memory errors, corrected" },
	{ 94, XID_HARDWARE, "memory error, kept to the program that met it" },
	{ 95, XID_HARDWARE, "memory error that may have spread: it needs a reset" },
	{ 119, XID_HARDWARE, "its own processor (GSP) does not answer" },
	{ 120, XID_HARDWARE, "its own processor (GSP) failed" },
};

static const struct xid *find(int64_t code)
{
	for (size_t i = 0; i < sizeof(xids) / sizeof(xids[0]); i++)
		if (xids[i].code == code)
			return &xids[i];
	return NULL;
}

enum xid_kind xid_kind(int64_t code)
{
	const struct xid *x = find(code);

	return x ? x->kind : XID_UNKNOWN;
}

const char *xid_words(int64_t code)
{
	const struct xid *x = find(code);

	return x ? x->words : NULL;
}
