/* SPDX-License-Identifier: MIT
 *
 * libmicrohttpd, loaded when a server is asked for and not before: it brings a TLS library along that no
 * other command needs, and `spotter run` shall start where there is none. Private to web: it passes the
 * library's header on.
 */
#ifndef SPOTTER_WEB_HTTP_LIB_H
#define SPOTTER_WEB_HTTP_LIB_H

#include <microhttpd.h>

struct err;

#define HTTP_CALLS(X)                        \
	X(MHD_start_daemon)                  \
	X(MHD_stop_daemon)                   \
	X(MHD_run)                           \
	X(MHD_get_timeout)                   \
	X(MHD_get_daemon_info)               \
	X(MHD_get_connection_info)           \
	X(MHD_get_connection_values)         \
	X(MHD_create_response_from_buffer)   \
	X(MHD_create_response_from_callback) \
	X(MHD_add_response_header)           \
	X(MHD_queue_response)                \
	X(MHD_destroy_response)              \
	X(MHD_suspend_connection)            \
	X(MHD_resume_connection)

struct http_lib {
	void *opened; /* by dlopen */
#define X(name) __typeof__(&name) name;
	HTTP_CALLS(X)
#undef X
};

/* 0, or -errno with a sentence. */
int http_lib_open(struct http_lib *ret, struct err *e);

#endif
