/* process.c: starts MPI at the first open and ends it when the process ends, if it ends well: mpirun takes a process that goes without
 * MPI_Finalize for a failed one and ends the job, which is right for one that still had something pending. MPI_Finalize would wait for
 * the others there, who may wait for this one. */
#include "process.h"

#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/thread.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int         users;            /* open communicators; with the lock */
static pid_t       starter;          /* the process that we started MPI in; 0: not we */
static _Atomic int abandoned;

void flow_mpi_abandon(void)
{
  atomic_store(&abandoned, 1);
}

int flow_mpi_usable(void)
{
  return !atomic_load(&abandoned);
}

/* Without a launcher MPI_Init starts a daemon and a world of one, to which nobody can come. core/cluster/worker/worker.c asks the same,
 * to choose MPI. */
static int was_launched(void)
{
  return getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMIX_RANK") || getenv("PMI_RANK");
}

/* Open MPI's TCP listens on all addresses and reads from any connection until it has all that it expects, so that one byte from a
 * stranger stops the rank. Ranks of one machine do not need it, unless the user has chosen how they talk. */
static const char *choose_wires(void)
{
#if defined(OPEN_MPI)
  const char *all = getenv("OMPI_COMM_WORLD_SIZE"), *here = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  if (!all || !here || strcmp(all, here) != 0 || getenv("OMPI_MCA_btl") || getenv("OMPI_MCA_pml")) return NULL;
  return OMPI_MAJOR_VERSION >= 5 ? "self,sm" : "self,vader";
#else
  return NULL;
#endif
}

/* MPI's threads take no signals, and its handlers, which print a stack and end the process, do not stay: signals are the host's. */
static int start_mpi(int *provided)
{
  static const int signals[] = { SIGABRT, SIGBUS, SIGFPE, SIGSEGV };   /* opal_signal's default */
  enum { COUNT = sizeof signals / sizeof *signals };
  struct sigaction handlers[COUNT];
  sigset_t before;
  for (int i = 0; i < COUNT; i++) sigaction(signals[i], NULL, &handlers[i]);
  flow_signals_block(&before);
  const char *wires = choose_wires();
  if (wires) setenv("OMPI_MCA_btl", wires, 0);              /* MPI_Init itself writes to the environment, too */
  int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, provided);
  if (wires) unsetenv("OMPI_MCA_btl");
  flow_signals_restore(&before);
  for (int i = 0; i < COUNT; i++) sigaction(signals[i], &handlers[i], NULL);
  return code;
}

/* With the lock. The levels of threads grow: MULTIPLE is needed since sums and aborts come from different threads. */
static flow_status make_ready(void)
{
  const flow_plugin_services *core = flow_mpi_services();
  if (!flow_mpi_usable()) {
    return core->fail(FLOW_INVALID_STATE, "a collective of MPI was given up in this process, which cannot use MPI again: start the "
                      "job again");
  }
  int started, ended, provided = MPI_THREAD_SINGLE;
  MPI_Finalized(&ended);
  if (ended) return core->fail(FLOW_INVALID_STATE, "the process has ended MPI (MPI_Finalize), which cannot be started twice");
  MPI_Initialized(&started);
  if (!started && !was_launched()) {
    return core->fail(FLOW_INVALID_STATE, "the transport mpi needs a launcher: start the program by mpirun -n N, or by srun --mpi=pmix");
  }
  if (started) {
    MPI_Query_thread(&provided);
  } else {
    if (start_mpi(&provided) != MPI_SUCCESS) return core->fail(FLOW_IO_ERROR, "MPI_Init_thread failed");
    starter = getpid();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  }
  if (provided < MPI_THREAD_MULTIPLE) {
    return core->fail(FLOW_INVALID_STATE, "MPI was started with thread level %d, MPI_THREAD_MULTIPLE is needed: call MPI_Init_thread",
                      provided);
  }
  return FLOW_OK;
}

flow_status flow_mpi_enter(void)
{
  pthread_mutex_lock(&lock);
  flow_status status = make_ready();
  if (status == FLOW_OK) users++;
  pthread_mutex_unlock(&lock);
  return status;
}

/* Something that is pending cannot be taken back in MPI: its buffers must not be freed, and MPI is not used again. */
void flow_mpi_leave(int whole)
{
  pthread_mutex_lock(&lock);
  users--;
  pthread_mutex_unlock(&lock);
  if (!whole) flow_mpi_abandon();
}

/* At the end of the process. A forked child has its parent's copy of all this, but not its MPI. */
__attribute__((destructor)) static void end_mpi(void)
{
  int ended;
  if (starter != getpid() || users > 0 || !flow_mpi_usable()) return;
  MPI_Finalized(&ended);
  if (!ended) MPI_Finalize();
}
