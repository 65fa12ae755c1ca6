/* SPDX-License-Identifier: MIT
 *
 * In place of the server where Spotter was built without libmicrohttpd.
 */
#include "web/http_server.h"

#include "base/err.h"

#include <errno.h>

int http_possible(struct err *e)
{
	err_set(e, -ENOSYS, "this Spotter was built without libmicrohttpd, and so without 'serve'");
	err_hint(e, "install libmicrohttpd-dev and build again; 'spotter report --html FILE' needs "
		    "nothing");
	return -ENOSYS;
}

int http_serve(const struct serve_listen *l, int stop_fd, struct err *e)
{
	(void)l;
	(void)stop_fd;
	return http_possible(e);
}
