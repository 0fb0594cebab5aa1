/* processes.h: starting programs in separate process groups, and ending them with everything that they started. */
#ifndef FLOWLUA_PROCESSES_H
#define FLOWLUA_PROCESSES_H

#include <signal.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct process_start {
  char **arguments, **environment;       /* NULL-terminated; the program is looked for in PATH */
  int    listens;                        /* a descriptor that is handed over under its number; -1: none */
  int    inherits;                       /* another one, which stays open here; 0: none */
  const sigset_t *mask;                  /* the signal mask of the program */
  const char *input;                     /* the beginning of its stdin, whose writing end stays open; NULL: stdin is /dev/null */
  size_t input_bytes;                    /* as many as a pipe can hold: a MiB */
} process_start;

/* The descriptors 0 to 2 are there, if only as nothing: pipes must not take their numbers. */
void  processes_fill_descriptors(void);

/* As many descriptors as the system allows are this process's from now on; programs that it starts have the limit from before. Returns how
 * many that is. */
unsigned long processes_raise_descriptors(void);

/* Starts a program whose stdout and stderr are pipes, whose reading ends do not block; output and errors NULL: it has the caller's. *input:
 * the writing end of its stdin, which does not block, either; -1: there is none. It is killed when the calling thread ends. -1 with errno.
 * A program that cannot be run says so on its stderr and exits with 127. */
pid_t processes_start(const process_start *start, int *output, int *errors, int *input);

/* Sends a signal to the children of a process, each with its group. */
void processes_signal_children(pid_t parent, int number);

/* Kills and reaps the calling process's children until there are none. With PR_SET_CHILD_SUBREAPER these are, one after the other, all
 * descendants. Gives up after five seconds on those that the kernel holds. */
void processes_end_all(void);

/* "exited with 3", "was killed by SIGKILL". */
void processes_describe(int status, char *text, size_t size);
/* As a shell counts: 128 and the signal. */
int  processes_exit_code(int status);

/* Passes on the signals that are watched, and blocked, to a child until it ends; returns its exit code. If a signal ended it, its children
 * end, too. */
int  processes_wait_for(pid_t child, const sigset_t *watched);

#endif
