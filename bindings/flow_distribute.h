/* flow_distribute.h: a part of flow.h, which includes it: several processes that train together. Types and conventions are explained there. */
#ifndef FLOW_DISTRIBUTE_H
#define FLOW_DISTRIBUTE_H

/* ---- clusters ---------------------------------------------------------------------------------------------------------
 * Who takes part in a training and which task this process is, from TF_CONFIG or from a launcher's environment. Tasks are a job and
 * an index from 0. An empty cluster is a single worker that is its own chief. */

typedef enum flow_job { FLOW_JOB_CHIEF = 0, FLOW_JOB_WORKER, FLOW_JOB_PS, FLOW_JOB_EVALUATOR, FLOW_JOB_COUNT } flow_job;

/* From TF_CONFIG; with_launchers: where it says nothing, from what mpirun or srun left in the environment. task_type (NULL: none) and
 * task_index (-1: none) replace what TF_CONFIG says of this process. FLOW_INVALID_ARGUMENT names both sides of a contradiction. */
FLOW_API flow_status flow_cluster_from_environment(int with_launchers, const char *task_type, int task_index, flow_cluster **out);   /* new reference */
/* From a text like TF_CONFIG's. source names it in messages. */
FLOW_API flow_status flow_cluster_parse(const char *text, double bytes, const char *source, const char *task_type, int task_index, flow_cluster **out);
FLOW_API void        flow_cluster_release(flow_cluster *cluster);                           /* NULL is fine */
FLOW_API const char *flow_cluster_source(const flow_cluster *cluster);                      /* borrowed: "TF_CONFIG", "Slurm", "" */
FLOW_API const char *flow_job_name(int job);                                                /* static; NULL: there is no such job */
FLOW_API int         flow_cluster_job(const flow_cluster *cluster);                         /* of this process; -1: not said */
FLOW_API int         flow_cluster_index(const flow_cluster *cluster);                       /* of this process; -1: not said */
FLOW_API int         flow_cluster_count(const flow_cluster *cluster, int job);              /* of the job's tasks */
FLOW_API const char *flow_cluster_address(const flow_cluster *cluster, int job, int index); /* borrowed "host:port"; NULL: only the launcher knows it */
FLOW_API int         flow_cluster_chief_job(const flow_cluster *cluster);                   /* the job whose task 0 is this process's chief */
FLOW_API int         flow_cluster_is_chief(const flow_cluster *cluster);
FLOW_API int         flow_cluster_workers(const flow_cluster *cluster);                     /* chiefs and workers; of an evaluator: evaluators */
FLOW_API int         flow_cluster_id(const flow_cluster *cluster);                          /* this process among the workers; -1: a parameter server */
/* The cluster as JSON in one way only: equal clusters give equal texts. Returns the whole length. */
FLOW_API int         flow_cluster_text(const flow_cluster *cluster, char *text, int size);
/* 16 hexadecimal digits that tell clusters apart; returns 16. */
FLOW_API int         flow_cluster_hash(const flow_cluster *cluster, char *text, int size);

#endif
