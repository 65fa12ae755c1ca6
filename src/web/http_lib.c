/* SPDX-License-Identifier: MIT */
#include "web/http_lib.h"

#include "base/err.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

int http_lib_open(struct http_lib *ret, struct err *e)
{
	/* By its number: what stands in the header has not changed within it. */
	static const char file[] = "libmicrohttpd.so.12";
	struct http_lib lib = { .opened = dlopen(file, RTLD_NOW | RTLD_LOCAL) };
	void *call;

	if (!lib.opened) {
		err_set(e, -ENOENT, "the dashboard needs %s, which is not here", file);
		err_hint(e, "install it: 'apt-get install libmicrohttpd12' on Debian and Ubuntu; "
			    "'spotter report --html FILE' needs nothing");
		return -ENOENT;
	}
#define X(name)                                                                         \
	call = dlsym(lib.opened, #name);                                                \
	if (!call)                                                                      \
		return err_set(e, -ENOSYS, "%s has no %s: it is too old", file, #name); \
	memcpy(&lib.name, &call, sizeof(call));
	HTTP_CALLS(X)
#undef X
	*ret = lib;
	return 0;
}
