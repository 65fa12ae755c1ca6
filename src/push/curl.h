/* SPDX-License-Identifier: MIT
 *
 * libcurl, loaded when something is to be sent and not before: it brings forty libraries along, and `spotter run` must
 * start where it is not installed. Declared here as far as it is used; its numbers have been the same since 7.10 (2002)
 * or as noted, and are promised to stay.
 */
#ifndef SPOTTER_PUSH_CURL_H
#define SPOTTER_PUSH_CURL_H

#include <stdbool.h>
#include <stddef.h>

struct err;

enum curl_option {
	CURL_OPT_TIMEOUT_MS = 155, /* 7.16.2 */
	CURL_OPT_CONNECT_TIMEOUT_MS = 156,
	CURL_OPT_NO_PROGRESS = 43,
	CURL_OPT_NO_SIGNAL = 99,
	CURL_OPT_POST = 47,
	CURL_OPT_POST_SIZE = 60,
	CURL_OPT_PROTOCOLS = 181, /* 7.19.4: bits, 1 http and 2 https */
	CURL_OPT_WRITE_DATA = 10001,
	CURL_OPT_URL = 10002,
	CURL_OPT_POST_FIELDS = 10015,
	CURL_OPT_ERROR_BUFFER = 10010,
	CURL_OPT_USER_AGENT = 10018,
	CURL_OPT_HEADERS = 10023,
	CURL_OPT_PROGRESS_DATA = 10057,
	CURL_OPT_CA_FILE = 10065,
	CURL_OPT_WRITE_FUNCTION = 20011,
	CURL_OPT_PROGRESS_FUNCTION = 20219, /* 7.32 */
};

enum curl_info {
	CURL_INFO_STATUS = 0x200002,
	CURL_INFO_RETRY_AFTER = 0x600039, /* 7.66: seconds, of a number or a date */
	CURL_INFO_REDIRECT_URL = 0x10001f,
};

enum { CURL_GLOBAL_ALL = 3, CURL_ERROR_BYTES = 256, CURL_ABORTED = 42 };

struct curl_api {
	int (*global_init)(long flags);
	void *(*easy_init)(void);
	int (*easy_setopt)(void *easy, int option, ...);
	int (*easy_perform)(void *easy);
	int (*easy_getinfo)(void *easy, int info, ...);
	void (*easy_cleanup)(void *easy);
	const char *(*easy_strerror)(int code);
	void *(*slist_append)(void *list, const char *text);
	void (*slist_free_all)(void *list);
	const char *(*version)(void);
};

/* Loads it for good: it is never unloaded, as it keeps threads and handlers of its own. Takes some 20 ms of CPU. */
int curl_load(struct curl_api *ret, struct err *e);

#endif
