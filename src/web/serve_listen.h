/* SPDX-License-Identifier: MIT
 *
 * Where the server is to be found: its socket, its names, its token, the address to open.
 */
#ifndef SPOTTER_WEB_SERVE_LISTEN_H
#define SPOTTER_WEB_SERVE_LISTEN_H

#include "web/serve_request.h"

struct err;

/* "spot" on the keys of a telephone. */
enum { SERVE_PORT = 7768, SERVE_URL_MOST = 160 };

struct serve_listen {
	int fd;
	struct serve_self self;
	bool beyond;              /* others than this machine can reach it */
	char address[64];         /* as it was asked for: "127.0.0.1" */
	char url[SERVE_URL_MOST]; /* with the token */
};

/* Is this an address that can be listened on: a number, or "localhost"? */
bool serve_address_ok(const char *address);
/* address NULL: 127.0.0.1; port 0: the kernel's choice. 0, or -errno with a sentence. */
int serve_listen(const char *address, int port, struct serve_listen *ret, struct err *e);
void serve_listen_done(struct serve_listen *l);

#endif
