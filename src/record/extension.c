/* SPDX-License-Identifier: MIT
 *
 * The virtual tables as a loadable extension, for anything that speaks SQLite:
 *
 *	sqlite3 -cmd '.load build/spotter_sqlite' RUN.spot 'SELECT ... FROM samples'
 *
 *	db = sqlite3.connect("RUN.spot"); db.enable_load_extension(True)
 *	db.load_extension("build/spotter_sqlite"); pandas.read_sql("SELECT ... FROM samples", db)
 */
#include "record/vtab.h"

#include <sqlite3ext.h>
SQLITE_EXTENSION_INIT1

__attribute__((visibility("default"))) int sqlite3_extension_init(sqlite3 *db, char **error,
								  const sqlite3_api_routines *api);

int sqlite3_extension_init(sqlite3 *db, char **error, const sqlite3_api_routines *api)
{
	(void)error;
	SQLITE_EXTENSION_INIT2(api);
	return vtab_register(db) < 0 ? SQLITE_ERROR : SQLITE_OK;
}
