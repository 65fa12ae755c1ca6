/* SPDX-License-Identifier: MIT
 *
 * The address that series are sent to, as a user gave it.
 */
#ifndef SPOTTER_PUSH_URL_H
#define SPOTTER_PUSH_URL_H

#include "push/push.h"

/* http or https, with a host, without a user and password. *ret_url (to free) is the address to post to: OTLP's gets
 * /v1/metrics where it has no path. `shown` is what of it may be in messages: no query, which may be a key. */
int url_check(const char *url, enum push_kind kind, char **ret_url, char *shown, size_t size,
	      struct err *e);
/* The same scheme, host and port, as they are written. */
bool url_same_host(const char *a, const char *b);

#endif
