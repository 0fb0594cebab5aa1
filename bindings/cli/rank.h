/* rank.h: flowlua --rank PROGRAM ARGUMENTS...: what mpirun starts, so that a rank's end has a witness. */
#ifndef FLOWLUA_RANK_H
#define FLOWLUA_RANK_H

#define RANK_ENDED "flowlua: this rank "

/* Runs a program in this process's group and returns its exit code, 128 and the number if a signal ended it. If it fails without having
 * been told to end, says so on stderr, in a line that begins with RANK_ENDED: mpirun often does not name the rank that failed. */
int rank_run(char **arguments);

#endif
