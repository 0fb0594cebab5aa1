/* roles.h: what a launch shows of its tasks' lives: rows of the table (table.h), or events (events.h). A task that is mpirun is shown as
 * its ranks. */
#ifndef FLOWLUA_ROLES_H
#define FLOWLUA_ROLES_H

#include "supervise.h"

/* Called before the first task starts: makes a row for each task and rank. Returns 0 if there is no memory. */
int  roles_prepare(output *out, supervised_task *tasks, int count);
void roles_release(output *out);
/* A task has been started, for the first time or again. */
void roles_begin(output *out, supervised_task *task);
/* It has ended; status: of waitpid. */
void roles_end(output *out, supervised_task *task, int status, enum output_state state);
/* One that was to be started again is not. */
void roles_give_up(output *out, supervised_task *task);
/* All have ended; code: what the command ends with. */
void roles_finish(output *out, int code);

#endif
