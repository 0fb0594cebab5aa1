/* core/cluster: several processes train one model. cluster.h describes the processes; control/ is the protocol by which they stay in
 * touch (protocol.h; frame.h has its bytes); monitor/ shows a training over HTTP; servers/ has the channels of parameter servers;
 * worker/ combines the control plane and a transport for one process. Uses base; control/ also the context, whose interrupts it watches;
 * worker/ also transport and run. Called by Lua through the C API (flow_distribute.h).
 *
 * cluster.h: the tasks of a cluster and which of them this process is, from TF_CONFIG or from what a launcher (mpirun, srun) left in the
 * environment. A cluster is immutable once made, so that any thread may read it; texts that it gives are borrowed and live as long as it
 * does. Roles follow TensorFlow's multi_worker_util.py:
 *   chief              task chief:0 ("master" is its old name), without one worker:0; the evaluator is its own
 *   worker count       chiefs and workers; parameter servers do not count
 *   id in the cluster  chief 0, worker i: i, or i + 1 beside a chief
 *   no cluster at all  one worker that is its own chief ("local mode")
 *
 * Everything here reads texts that people and other programs wrote. So each check says in its sentence where the text comes from
 * (source), what is there, and what should be. */
#ifndef FLOW_CLUSTER_CLUSTER_H
#define FLOW_CLUSTER_CLUSTER_H

#include "base/status.h"

enum {
  FLOW_MOST_TASKS = 16384,               /* of a cluster */
  FLOW_ADDRESS_SIZE = 272,               /* of an address as text: a host name has at most 253 bytes */
  FLOW_TASK_NAME_SIZE = 32,              /* "evaluator:2147483647" */
};

struct flow_cluster {
  /* Invariants after flow_cluster_check: at most FLOW_MOST_TASKS tasks in all; no two addresses are equal; job and index name a task
   * that is listed, or an evaluator beside the cluster, or there are no tasks at all. */
  char   source[32];                     /* "TF_CONFIG", "OpenMPI"; "": nothing said that there is a cluster */
  int    job, index;                     /* this process; job -1: not said (only without a cluster) */
  /* Tasks of each job, and for how many `address` has room. */
  int    count[FLOW_JOB_COUNT], capacity[FLOW_JOB_COUNT];
  /* [job][index]: the cluster's own copies, one block of flow_alloc each. */
  char **address[FLOW_JOB_COUNT];        /* "host:port" in lower case, IPv6 in brackets; NULL: only the launcher knows where it is */
};

/* Where texts come from: the environment, or what a test puts in its place. NULL: there is no such variable. */
typedef struct flow_environment {
  const char *(*get)(const void *state, const char *name);
  const void *state;
} flow_environment;

/* The same as flow_cluster_from_environment (flow.h), in an environment of the caller. */
flow_status flow_cluster_from(const flow_environment *environment, int launchers, const char *task_type, int task_index,
                              flow_cluster **out);

/* ---- for the files that make clusters ------------------------------------------------------------------------------------------------ */

/* A cluster without tasks; `source` names where it comes from, in messages too. */
flow_status flow_cluster_new(const char *source, flow_cluster **out);
/* Appends a task. address: as users write it, NULL where only the launcher knows it. Its index is the number of the job's tasks before.
 * A wrong address is told
 * with source and task. A failure adds no task. */
flow_status flow_cluster_add(flow_cluster *cluster, int job, const char *address);
/* Takes away all tasks of a job that is not this process's. */
void        flow_cluster_remove(flow_cluster *cluster, int job);
/* A cluster that shares nothing with the first; *out is NULL after a failure. */
flow_status flow_cluster_copy(const flow_cluster *cluster, flow_cluster **out);
/* What cannot be a cluster, or not this process's: FLOW_INVALID_ARGUMENT with both sides. To be called when all tasks are there. */
flow_status flow_cluster_check(const flow_cluster *cluster);
/* Slurm's tasks of this step, with addresses (cluster_slurm.c). */
flow_status flow_cluster_add_slurm(const flow_environment *environment, flow_cluster *cluster, int rank, int size);

/* flow_cluster_parse for a task that may leave its index to the program that started it: `numbered` is the index of a task that says its
 * type only, -1 for none. */
flow_status flow_cluster_parse_numbered(const char *text, double bytes, const char *source, const char *task_type, int task_index,
                                        int numbered, flow_cluster **out);
/* The job of that name, or of an old one (master), or of Vertex AI's (workerpool0 is the chief, 1 a worker, ...); -1: there is none. A
 * number after "workerpool" that no job has is -1, too. */
int  flow_job_find(const char *name);
/* The tasks in order, a line each: "worker:0 a:1\n". */
void flow_cluster_list(const flow_cluster *cluster, flow_text *text);
/* A whole number of decimal digits from 0 to most; -1 for anything else. */
int  flow_parse_number(const char *text, int most);
/* "worker:2"; returns `name`. */
const char *flow_task_name(int job, int index, char name[FLOW_TASK_NAME_SIZE]);

/* ---- addresses (address.c) ----------------------------------------------------------------------------------------------------------- */

typedef enum flow_reach { FLOW_REACH_ANY = 0, FLOW_REACH_LOOPBACK, FLOW_REACH_NOWHERE } flow_reach;

/* "Host:port" as `canonical`: lower case, no leading zeros, IPv6 in brackets and its shortest form. The failure's sentence continues
 * one that names the task. */
flow_status flow_address_normalize(const char *text, char canonical[FLOW_ADDRESS_SIZE]);
/* From where others can dial a canonical address: not at all 0.0.0.0 and [::], from the same machine localhost, 127.x, [::1]. */
flow_reach  flow_address_reach(const char *canonical);

#endif
