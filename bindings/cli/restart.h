/* restart.h: when a task that failed is started again, and what is different then. */
#ifndef FLOWLUA_RESTART_H
#define FLOWLUA_RESTART_H

/* Seconds until a task that lived so long and failed is started again: 0.1, twice as long after each further short life, at most 60, and
 * up to a quarter more or less, so that tasks that fail together do not come back together each time. *failures: short lives in a row. */
double restart_pause(double lived, int *failures);
/* Takes out of a task's environment what only its first life has: the descriptor of its bound address. */
void   restart_prepare(char **environment);

#endif
