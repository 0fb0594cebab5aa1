/* restart.h: how a task ended, when one that failed is started again, and what is different then. */
#ifndef FLOWLUA_RESTART_H
#define FLOWLUA_RESTART_H

#include "supervise.h"

/* Seconds until a task that lived so long and failed is started again: 0.1, twice as long after each further short life, at most 60, and
 * up to a quarter more or less, so that tasks that fail together do not come back together each time. *failures: short lives in a row. */
double restart_pause(double lived, int *failures);
/* Takes out of a task's environment what only its first life has: the descriptor of its bound address. */
void   restart_prepare(char **environment);

/* How a task ended; returns its name, or that of the rank which was first. */
const char *restart_describe_end(const supervised_task *task, int status, char *how, size_t size);

#endif
