/* communicator.h: a rank's end of a group, for the files of this plugin. */
#ifndef FLOW_PLUGINS_MPI_COMMUNICATOR_H
#define FLOW_PLUGINS_MPI_COMMUNICATOR_H

#include <mpi.h>
#include <stdatomic.h>
#include "base/failure.h"
#include "transport/transport.h"

/* One group of ranks: the processes of MPI_COMM_WORLD. */
typedef struct mpi_communicator {
  flow_communicator base;               /* first: it is what callers hold */
  /* A duplicate of MPI_COMM_WORLD; MPI_COMM_NULL until it is made. */
  MPI_Comm          comm;
  /* Set once, by a call that fails or by abort; after that no call of MPI is made through this communicator. */
  flow_failure      failure;
  _Atomic int64_t   entered;            /* since when MPI's progress has not come back; 0: nobody is inside */
  MPI_Request      *requests;           /* of large sums; with the memory after them: sum.c */
} mpi_communicator;

/* Drives the operations that were begun, the last with `code`, until they are complete; after a failure MPI is not used again.
 * count is 1, or it is messages, of which two belong to each other rank, the next one first: then a timeout can name ranks. */
flow_status flow_mpi_complete(mpi_communicator *self, const char *operation, int code, int count, MPI_Request *requests);

/* data[i] = the sum over the ranks, in their order; at least two ranks. */
flow_status flow_mpi_sum(mpi_communicator *self, flow_dtype dtype, void *data, int64_t count);

#endif
