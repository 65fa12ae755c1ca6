/* SPDX-License-Identifier: MIT
 *
 * The dashboard's server: one thread, which answers; what takes long is made by the desk's.
 *
 * Bounded: connections, the memory and the time of each, viewers of events. Only what serve_decide()
 * lets through gets anything.
 */
#ifndef SPOTTER_WEB_HTTP_SERVER_H
#define SPOTTER_WEB_HTTP_SERVER_H

struct err;
struct serve_listen;

/* Answers until stop_fd is readable. Whatever it returns, nothing of it is left. 0 or -errno with a
 * sentence. Without libmicrohttpd (here, or when Spotter was built) that is all it does. */
int http_serve(const struct serve_listen *l, int stop_fd, struct err *e);
/* Could it serve at all? 0, or -errno with a sentence. */
int http_possible(struct err *e);

#endif
