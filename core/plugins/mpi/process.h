/* process.h: MPI belongs to the process: it starts once, ends once, and cannot be used after a collective was given up. */
#ifndef FLOW_PLUGINS_MPI_PROCESS_H
#define FLOW_PLUGINS_MPI_PROCESS_H

#include "base/plugin.h"

/* What the library gave the plugin when it was opened. */
const flow_plugin_services *flow_mpi_services(void);

/* Starts MPI if nobody has yet, and counts a user. FLOW_INVALID_STATE if no launcher started this process, if the host started MPI
 * without threads, or if MPI was given up or ended before. */
flow_status flow_mpi_enter(void);
/* The user is gone; `whole`: nothing of his is pending. */
void flow_mpi_leave(int whole);
/* No further MPI call in this process. Any thread. */
void flow_mpi_abandon(void);
int  flow_mpi_usable(void);

#endif
