/* cluster_environment.c: the cluster that the environment describes: TF_CONFIG, else CLUSTER_SPEC, which Vertex AI and AI Platform give
 * containers, else the variables that a launcher sets in each of its processes. Under mpirun only the numbers are known; where the
 * others are is the launcher's business.
 *
 * Nothing here reads the process's environment itself, but for get_process: the rest asks a flow_environment, so that tests describe any
 * environment without changing their own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/cluster.h"

enum { MOST_RANKS = FLOW_MOST_TASKS };

/* Which variables a launcher sets, in the order in which they are asked: mpirun inside a Slurm job has Slurm's variables, too, but those
 * of the daemon that started it. `sign` is set for started processes only: a Slurm batch script has SLURM_PROCID, but is not a step. */
static const struct launcher {
  const char *source, *sign, *rank, *size;
  flow_status (*add)(const flow_environment *environment, flow_cluster *cluster, int rank, int size);   /* NULL: tasks without address */
} launchers[] = {
  { "OpenMPI", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL },
  { "Slurm", "SLURM_STEP_NODELIST", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", flow_cluster_add_slurm },
  { "PMI", "PMI_SIZE", "PMI_RANK", "PMI_SIZE", NULL },
  { "PMIx", "PMIX_NAMESPACE", "PMIX_RANK", "PMIX_SIZE", NULL },
};
enum { LAUNCHERS = sizeof launchers / sizeof *launchers };

static const char *get_process(const void *state, const char *name)
{
  (void)state;
  return getenv(name);
}

/* The variable's text, or NULL if it is not set or empty. */
static const char *get(const flow_environment *environment, const char *name)
{
  const char *text = environment->get(environment->state, name);
  return text && *text ? text : NULL;
}

/* *out: the variable as a number from 0 to `most`. launcher: another of its variables is set, so this one is expected, too. */
static flow_status read_number(const flow_environment *environment, const struct launcher *launcher, const char *name, int most, int *out)
{
  const char *text = get(environment, name);
  if (!text) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s says that %s started this process, but %s is missing: set TF_CONFIG, or start it by %s",
                     launcher->sign, launcher->source, name, "mpirun or srun");
  }
  *out = flow_parse_number(text, most);
  if (*out >= 0) return FLOW_OK;
  return flow_fail(FLOW_INVALID_ARGUMENT, "%s is \"%.40s\", it should be a whole number from 0 to %d", name, text, most);
}

/* This process's rank and how many processes the launcher has started; rank < size. */
static flow_status read_ranks(const flow_environment *environment, const struct launcher *launcher, int *rank, int *size)
{
  FLOW_TRY(read_number(environment, launcher, launcher->rank, MOST_RANKS, rank));
  FLOW_TRY(read_number(environment, launcher, launcher->size, MOST_RANKS, size));
  if (*rank < *size) return FLOW_OK;
  return flow_fail(FLOW_INVALID_ARGUMENT, "%s is %d, but %s says that there are %d processes, from 0 to %d", launcher->rank, *rank,
                   launcher->size, *size, *size - 1);
}

/* The launcher that has started this process, told by a variable that only it sets; NULL: none that is known. */
static const struct launcher *find_launcher(const flow_environment *environment)
{
  for (int i = 0; i < LAUNCHERS; i++) {
    if (get(environment, launchers[i].sign)) return &launchers[i];
  }
  return NULL;
}

/* Adds the launcher's processes as workers, of which this one is worker `rank`. Without addresses if the launcher does not give them. */
static flow_status add_ranks(const flow_environment *environment, const struct launcher *launcher, flow_cluster *cluster)
{
  int rank, size;
  FLOW_TRY(read_ranks(environment, launcher, &rank, &size));
  if (size == 1) return FLOW_OK;                     /* one process is not a cluster */
  if (launcher->add) FLOW_TRY(launcher->add(environment, cluster, rank, size));
  for (int i = cluster->count[FLOW_JOB_WORKER]; i < size; i++) FLOW_TRY(flow_cluster_add(cluster, FLOW_JOB_WORKER, NULL));
  cluster->job = FLOW_JOB_WORKER;
  cluster->index = rank;
  return flow_cluster_check(cluster);
}

/* A warning where a Slurm job has several tasks but srun did not start this process: in the script of a batch job, or where srun passes
 * nothing on. That is legal, but rarely meant. The other tasks of the job do not exist, or know as little; the first one says it for
 * all. */
static void warn_alone(const flow_environment *environment)
{
  char text[200];
  const char *rank = get(environment, "SLURM_PROCID"), *tasks = get(environment, "SLURM_NTASKS");
  int count = rank && tasks ? flow_parse_number(tasks, MOST_RANKS) : -1;
  if (count < 2 || strcmp(rank, "0") != 0) return;
  snprintf(text, sizeof text, "Slurm: the job has %d tasks, but srun did not start this process, which works alone: start it by srun, or "
           "set TF_CONFIG", count);
  flow_log(FLOW_LOG_WARNING, text);
}

/* The cluster that a launcher describes, without tasks if there is none. */
static flow_status cluster_launched(const flow_environment *environment, flow_cluster **out)
{
  const struct launcher *launcher = find_launcher(environment);
  FLOW_TRY(flow_cluster_new(launcher ? launcher->source : "", out));
  if (!launcher) warn_alone(environment);
  flow_status status = launcher ? add_ranks(environment, launcher, *out) : FLOW_OK;
  if (status == FLOW_OK) return FLOW_OK;
  flow_cluster_release(*out);
  *out = NULL;
  return status;
}

/* Kubernetes numbers the pods of an Indexed Job, all of which have the same TF_CONFIG, with the task's type and no index. */
static flow_status read_completion_index(const flow_environment *environment, int *out)
{
  static const char name[] = "JOB_COMPLETION_INDEX";
  const char *text = get(environment, name);
  *out = text ? flow_parse_number(text, MOST_RANKS) : -1;
  if (!text || *out >= 0) return FLOW_OK;
  return flow_fail(FLOW_INVALID_ARGUMENT, "%s is \"%.40s\", it should be a whole number from 0 to %d", name, text, MOST_RANKS);
}

/* Parses the variable `name`; an unset one is an empty text, which describes no cluster. task_type, task_index: override the text's
 * (NULL, -1: they do not). */
static flow_status parse_variable(const flow_environment *environment, const char *name, const char *task_type, int task_index,
                                  flow_cluster **out)
{
  const char *text = get(environment, name);
  int numbered;
  FLOW_TRY(read_completion_index(environment, &numbered));
  return flow_cluster_parse_numbered(text ? text : "", text ? (double)strlen(text) : 0, name, task_type, task_index, numbered, out);
}

/* Refuses a TF_CONFIG that is the same in all processes of mpirun, which would make each of them the same task: the launcher's rank and
 * size must agree with it. Parameter servers and evaluators are started apart. Only mpirun's variables are compared. */
static flow_status check_launcher(const flow_environment *environment, const flow_cluster *cluster)
{
  const struct launcher *launcher = &launchers[0];
  int rank, size, id = flow_cluster_id(cluster), workers = flow_cluster_workers(cluster);
  char name[FLOW_TASK_NAME_SIZE];
  int trains = flow_cluster_count(cluster, FLOW_JOB_CHIEF) + flow_cluster_count(cluster, FLOW_JOB_WORKER) > 0;
  int beside = cluster->job == FLOW_JOB_PS || cluster->job == FLOW_JOB_EVALUATOR;
  if (!get(environment, launcher->sign) || !trains || beside) return FLOW_OK;
  FLOW_TRY(read_ranks(environment, launcher, &rank, &size));
  if (size == 1 || (size == workers && rank == id)) return FLOW_OK;
  return flow_fail(FLOW_INVALID_ARGUMENT, "%s makes this %s of %d workers, %s process %d of %d: unset %s under mpirun, or "
                   "start each task by itself", cluster->source, flow_task_name(cluster->job, cluster->index, name), workers,
                   launcher->source, rank, size, cluster->source);
}

/* TF_CONFIG goes before CLUSTER_SPEC, and a text that describes a cluster before a launcher. Without launchers only TF_CONFIG is read. */
flow_status flow_cluster_from(const flow_environment *environment, int with_launchers, const char *task_type, int task_index,
                              flow_cluster **out)
{
  *out = NULL;
  flow_cluster *cluster;
  const char *name = with_launchers && !get(environment, "TF_CONFIG") && get(environment, "CLUSTER_SPEC") ? "CLUSTER_SPEC" : "TF_CONFIG";
  FLOW_TRY(parse_variable(environment, name, task_type, task_index, &cluster));
  flow_status status = FLOW_OK;
  if (with_launchers && cluster->job >= 0) {
    status = check_launcher(environment, cluster);
  } else if (with_launchers) {
    flow_cluster_release(cluster);
    return cluster_launched(environment, out);
  }
  if (status == FLOW_OK) *out = cluster;
  else flow_cluster_release(cluster);
  return status;
}

flow_status flow_cluster_from_environment(int with_launchers, const char *task_type, int task_index, flow_cluster **out)
{
  if (!out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_cluster_from_environment: out is NULL");
  const flow_environment process = { get_process, NULL };
  return flow_cluster_from(&process, with_launchers, task_type, task_index, out);
}
