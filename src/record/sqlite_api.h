/* SPDX-License-Identifier: MIT
 *
 * SQLite for the files that are compiled twice: into the program, where the library is linked, and
 * into the loadable extension, where every call goes through the table its host hands over (a host
 * may well carry an SQLite of its own).
 */
#ifndef SPOTTER_RECORD_SQLITE_API_H
#define SPOTTER_RECORD_SQLITE_API_H

#ifdef SPOTTER_EXTENSION
#include <sqlite3ext.h>
SQLITE_EXTENSION_INIT3
#else
#include <sqlite3.h>
#endif

#endif
