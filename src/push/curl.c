/* SPDX-License-Identifier: MIT */
#include "push/curl.h"

#include "base/auto.h"
#include "base/err.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

/* Debian has three, which differ in who does TLS. */
static const char *const names[] = { "libcurl.so.4", "libcurl-gnutls.so.4", "libcurl-nss.so.4" };

/* A function's address as an object's: POSIX has it that they can be copied into each other. */
static bool find(void *library, const char *name, void *into)
{
	void *p = dlsym(library, name);

	memcpy(into, &p, sizeof(p));
	return p != NULL;
}

/* Its global_init() counts its calls, but before 7.84 not for two threads at a time. */
static int init_one_at_a_time(const struct curl_api *curl)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	int code;

	pthread_mutex_lock(&lock);
	code = curl->global_init(CURL_GLOBAL_ALL);
	pthread_mutex_unlock(&lock);
	return code;
}

int curl_load(struct curl_api *ret, struct err *e)
{
	void *library = NULL;
	bool whole;

	for (size_t i = 0; i < ARRAY_LEN(names) && !library; i++)
		library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		err_set(e, -ENOENT, "cannot send anything: libcurl is not installed");
		err_hint(e, "on Debian and Ubuntu: apt install libcurl4");
		return -ENOENT;
	}
	whole = find(library, "curl_global_init", &ret->global_init) &&
		find(library, "curl_easy_init", &ret->easy_init) &&
		find(library, "curl_easy_setopt", &ret->easy_setopt) &&
		find(library, "curl_easy_perform", &ret->easy_perform) &&
		find(library, "curl_easy_getinfo", &ret->easy_getinfo) &&
		find(library, "curl_easy_cleanup", &ret->easy_cleanup) &&
		find(library, "curl_easy_strerror", &ret->easy_strerror) &&
		find(library, "curl_slist_append", &ret->slist_append) &&
		find(library, "curl_slist_free_all", &ret->slist_free_all) &&
		find(library, "curl_version", &ret->version);
	if (!whole || init_one_at_a_time(ret) != 0)
		return err_set(e, -ENOSYS, "cannot send anything: this libcurl does not work");
	return 0;
}
