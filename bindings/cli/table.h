/* table.h: the tasks of a launch as a table below their lines, drawn again in place while they run: role, state, restarts, last line. It is
 * as wide as the terminal at most, and as high: of the roles that have no room there it tells how many there are. */
#ifndef FLOWLUA_TABLE_H
#define FLOWLUA_TABLE_H

#include "output.h"

/* Takes the table off the terminal, before a line is written; nothing if there is none. */
void table_erase(output *self);
/* Draws it if it has changed, or was taken off: at once, or, if only last lines have changed, ten times a second. force: whatever it
 * shows. */
void table_draw(output *self, double now, int force);
/* Milliseconds until it has to be drawn again; -1: not at all. */
int  table_wait(const output *self, double now);

/* "running". */
const char *table_state(enum output_state state);
/* Of all writers. */
int         table_restarts(const output *self);

#endif
