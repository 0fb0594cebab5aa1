/* cluster.c: a cluster's tasks, what is wrong with them, and their roles. A mistake in a cluster's description that is not found here
 * shows as a process that waits for others for minutes, so checks are strict: every address once, nobody at an address that the others
 * cannot reach, and this process among the tasks. */
#include "cluster/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"

static const char *const job_names[FLOW_JOB_COUNT] = {
  [FLOW_JOB_CHIEF] = "chief", [FLOW_JOB_WORKER] = "worker", [FLOW_JOB_PS] = "ps", [FLOW_JOB_EVALUATOR] = "evaluator",
};

/* NULL for a number that does not stand for a job; the text is static. */
const char *flow_job_name(int job)
{
  return job >= 0 && job < FLOW_JOB_COUNT ? job_names[job] : NULL;
}

/* Also by the names of other systems: "master" is TensorFlow 1's chief. -1: no job has this name. */
int flow_job_find(const char *name)
{
  static const char pool[] = "workerpool";               /* Vertex AI numbers the jobs in this order */
  if (strcmp(name, "master") == 0) return FLOW_JOB_CHIEF;
  if (strncmp(name, pool, sizeof pool - 1) == 0) return flow_parse_number(name + sizeof pool - 1, FLOW_JOB_COUNT - 1);
  for (int job = 0; job < FLOW_JOB_COUNT; job++) {
    if (strcmp(name, job_names[job]) == 0) return job;
  }
  return -1;
}

/* A decimal number of digits alone, from 0 to `most`; -1: the text is something else. No sign, no space: what is read here are addresses'
 * ports and tasks' indices. */
int flow_parse_number(const char *text, int most)
{
  int64_t number = 0;
  if (!*text) return -1;
  for (; *text; text++) {
    if (*text < '0' || *text > '9') return -1;
    number = number * 10 + (*text - '0');
    if (number > most) return -1;
  }
  return (int)number;
}

/* "worker:3", written into `name`, which is returned. */
const char *flow_task_name(int job, int index, char name[FLOW_TASK_NAME_SIZE])
{
  snprintf(name, FLOW_TASK_NAME_SIZE, "%s:%d", flow_job_name(job) ? flow_job_name(job) : "?", index);
  return name;
}

/* ---- making -------------------------------------------------------------------------------------------------------------------------- */

/* Longer sources than the array are cut. *out is not touched if memory is missing. */
flow_status flow_cluster_new(const char *source, flow_cluster **out)
{
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_cluster), &block));
  flow_cluster *cluster = block;
  snprintf(cluster->source, sizeof cluster->source, "%s", source);
  cluster->job = -1;
  *out = cluster;
  return FLOW_OK;
}

/* NULL is allowed. Addresses of tasks that the environment does not tell are NULL in the table. */
void flow_cluster_release(flow_cluster *cluster)
{
  if (!cluster) return;
  for (int job = 0; job < FLOW_JOB_COUNT; job++) {
    for (int i = 0; i < cluster->count[job]; i++) flow_free(cluster->address[job][i]);
    flow_free(cluster->address[job]);
  }
  flow_free(cluster);
}

/* Tasks of all jobs; 0: this process trains by itself. */
static int total(const flow_cluster *cluster)
{
  int count = 0;
  for (int job = 0; job < FLOW_JOB_COUNT; job++) count += cluster->count[job];
  return count;
}

/* Appends a task to a job. address: "host:port", brought into one form, so that two ways to write one address are equal; NULL: not known
 * yet, as where a launcher finds the others. A failure leaves the cluster unchanged, but for room in its table. */
flow_status flow_cluster_add(flow_cluster *cluster, int job, const char *address)
{
  char canonical[FLOW_ADDRESS_SIZE], name[FLOW_TASK_NAME_SIZE], *copy = NULL;
  int index = cluster->count[job];
  if (total(cluster) >= FLOW_MOST_TASKS) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: a cluster has at most %d tasks", cluster->source, FLOW_MOST_TASKS);
  }
  FLOW_TRY(flow_grow(&cluster->address[job], sizeof *cluster->address[job], index + 1, &cluster->capacity[job]));
  if (address) {
    flow_status status = flow_address_normalize(address, canonical);
    if (status != FLOW_OK) return flow_fail_prefix(status, "%s: %s: ", cluster->source, flow_task_name(job, index, name));
    copy = flow_duplicate_text(canonical);
    if (!copy) return FLOW_OUT_OF_MEMORY;
  }
  cluster->address[job][index] = copy;
  cluster->count[job]++;
  return FLOW_OK;
}

/* Takes all tasks of a job out. */
void flow_cluster_remove(flow_cluster *cluster, int job)
{
  for (int i = 0; i < cluster->count[job]; i++) flow_free(cluster->address[job][i]);
  cluster->count[job] = 0;
}

/* *out: a separate cluster with the same tasks and place, for flow_cluster_release. */
flow_status flow_cluster_copy(const flow_cluster *cluster, flow_cluster **out)
{
  flow_cluster *copy;
  *out = NULL;
  FLOW_TRY(flow_cluster_new(cluster->source, &copy));
  flow_status status = FLOW_OK;
  for (int job = 0; job < FLOW_JOB_COUNT; job++) {
    for (int i = 0; i < cluster->count[job] && status == FLOW_OK; i++) status = flow_cluster_add(copy, job, cluster->address[job][i]);
  }
  copy->job = cluster->job;
  copy->index = cluster->index;
  if (status == FLOW_OK) *out = copy;
  else flow_cluster_release(copy);
  return status;
}

/* ---- checks -------------------------------------------------------------------------------------------------------------------------- */

/* A task while addresses are compared; `address` is borrowed from the cluster. */
typedef struct task { const char *address; int job, index; } task;

/* For qsort: by address, then in the order of jobs and indices, so that a message names the first two tasks that clash. */
static int by_address(const void *a, const void *b)
{
  const task *first = a, *second = b;
  int order = strcmp(first->address, second->address);
  return order ? order : first->job != second->job ? first->job - second->job : first->index - second->index;
}

/* *out: the tasks whose address is known, in the order of jobs, `count` of them; the caller frees the list, also when it is empty. */
static flow_status list_tasks(const flow_cluster *cluster, task **out, int *count)
{
  void *block;
  *count = 0;
  FLOW_TRY(flow_alloc((size_t)total(cluster) * sizeof **out, &block));
  *out = block;
  for (int job = 0; job < FLOW_JOB_COUNT; job++) {
    for (int i = 0; i < cluster->count[job]; i++) {
      if (cluster->address[job][i]) (*out)[(*count)++] = (task){ cluster->address[job][i], job, i };
    }
  }
  return FLOW_OK;
}

/* Loopback addresses are fine as long as all tasks have them: then all are on one machine. Beside an address on a network they are not,
 * as each machine has its own. Fails with the first task of either kind. The walk goes backwards, so that the first one of each kind
 * stays in `found`. */
static flow_status check_reach(const char *source, const task *tasks, int count)
{
  const task *found[3] = { NULL };
  char first[FLOW_TASK_NAME_SIZE], second[FLOW_TASK_NAME_SIZE];
  for (int i = count - 1; i >= 0; i--) found[flow_address_reach(tasks[i].address)] = &tasks[i];
  const task *nowhere = found[FLOW_REACH_NOWHERE], *loopback = found[FLOW_REACH_LOOPBACK], *any = found[FLOW_REACH_ANY];
  if (nowhere) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %s has the address %s, which cannot be reached: write the one at which the other tasks "
                     "reach it", source, flow_task_name(nowhere->job, nowhere->index, first), nowhere->address);
  }
  if (loopback && any) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %s %s is reached from its own machine only, but %s %s is on a network: write the address "
                     "that the others reach it at", source, flow_task_name(loopback->job, loopback->index, first), loopback->address,
                     flow_task_name(any->job, any->index, second), any->address);
  }
  return FLOW_OK;
}

/* Sorted by address, two tasks with the same one are neighbours. Names are compared as they are written: two names of one machine with
 * the same port are not found here, but when the second process cannot listen. */
static flow_status check_addresses(const flow_cluster *cluster)
{
  task *tasks;
  int count;
  char first[FLOW_TASK_NAME_SIZE], second[FLOW_TASK_NAME_SIZE];
  FLOW_TRY(list_tasks(cluster, &tasks, &count));
  flow_status status = check_reach(cluster->source, tasks, count);
  qsort(tasks, (size_t)count, sizeof *tasks, by_address);
  for (int i = 1; i < count && status == FLOW_OK; i++) {
    if (strcmp(tasks[i].address, tasks[i - 1].address) != 0) continue;
    status = flow_fail(FLOW_INVALID_ARGUMENT, "%s: %s and %s have the same address %s: each task needs its own port", cluster->source,
                       flow_task_name(tasks[i - 1].job, tasks[i - 1].index, first), flow_task_name(tasks[i].job, tasks[i].index, second),
                       tasks[i].address);
  }
  flow_free(tasks);
  return status;
}

/* "2 workers (worker:0 a:1, worker:1 b:2)": what a job consists of, for messages. At most four tasks are written out. */
static void describe_job(flow_text *text, const flow_cluster *cluster, int job)
{
  int count = cluster->count[job];
  if (count == 0) {
    flow_text_add(text, "no %s", job_names[job]);
    return;
  }
  flow_text_add(text, "%d %s%s (", count, job_names[job], count > 1 && job != FLOW_JOB_PS ? "s" : "");
  for (int i = 0; i < count && i < 4; i++) {
    const char *address = cluster->address[job][i];
    flow_text_add(text, "%s%s:%d%s%s", i ? ", " : "", job_names[job], i, address ? " " : "", address ? address : "");
  }
  flow_text_add(text, "%s)", count > 4 ? ", ..." : "");
}

/* Whether this process is one of the cluster's tasks. */
static flow_status check_task(const flow_cluster *cluster)
{
  int job = cluster->job, index = cluster->index;
  char name[FLOW_TASK_NAME_SIZE], listed[512];
  if (job < 0) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: the cluster has %d tasks, and nothing says which of them this process is: add \"task\": "
                     "{\"type\": \"worker\", \"index\": 0}, with another index in each process", cluster->source, total(cluster));
  }
  if (job == FLOW_JOB_EVALUATOR && cluster->count[job] == 0) return FLOW_OK;      /* it is beside the cluster */
  if (index < cluster->count[job]) return FLOW_OK;
  flow_text text = flow_text_into(listed, sizeof listed);
  describe_job(&text, cluster, job);
  if (cluster->count[job] == 0) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: this process is %s, but the cluster lists %s: add its address to cluster.%s, or give the "
                     "task a type that is there", cluster->source, flow_task_name(job, index, name), listed, job_names[job]);
  }
  return flow_fail(FLOW_INVALID_ARGUMENT, "%s: this process is %s, but the cluster lists %s: task.index counts from 0 to %d, or its "
                   "address is missing in cluster.%s", cluster->source, flow_task_name(job, index, name), listed, cluster->count[job] - 1,
                   job_names[job]);
}

/* The order is that of the mistakes' sizes: what no cluster can be, then addresses, then which task this process is. */
flow_status flow_cluster_check(const flow_cluster *cluster)
{
  if (total(cluster) == 0) return FLOW_OK;
  static const int single[] = { FLOW_JOB_CHIEF, FLOW_JOB_EVALUATOR };
  for (int i = 0; i < 2; i++) {
    if (cluster->count[single[i]] <= 1) continue;
    char listed[512];
    flow_text text = flow_text_into(listed, sizeof listed);
    describe_job(&text, cluster, single[i]);
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: the cluster lists %s, at most one is possible: list the others under \"worker\"",
                     cluster->source, listed);
  }
  if (cluster->count[FLOW_JOB_PS] > 0 && cluster->count[FLOW_JOB_CHIEF] + cluster->count[FLOW_JOB_WORKER] == 0) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: the cluster has %d parameter servers and no task that trains: add \"chief\" or \"worker\"",
                     cluster->source, cluster->count[FLOW_JOB_PS]);
  }
  FLOW_TRY(check_addresses(cluster));
  return check_task(cluster);
}

/* ---- roles --------------------------------------------------------------------------------------------------------------------------- */

/* Where the description came from, such as "TF_CONFIG": the first words of every message about it. */
const char *flow_cluster_source(const flow_cluster *cluster)
{
  return cluster ? cluster->source : NULL;
}

/* A flow_job; -1: the process is not a task of a cluster, or nothing says which. */
int flow_cluster_job(const flow_cluster *cluster)
{
  return cluster ? cluster->job : -1;
}
/* From 0 in its job; -1: as above. */
int flow_cluster_index(const flow_cluster *cluster)
{
  return cluster && cluster->job >= 0 ? cluster->index : -1;
}

int flow_cluster_count(const flow_cluster *cluster, int job)
{
  if (!cluster) return 0;
  return job >= 0 && job < FLOW_JOB_COUNT ? cluster->count[job] : 0;
}

/* Borrowed; NULL: there is no such task, or its address is not known. */
const char *flow_cluster_address(const flow_cluster *cluster, int job, int index)
{
  if (!cluster) return NULL;
  return index >= 0 && index < flow_cluster_count(cluster, job) ? cluster->address[job][index] : NULL;
}

/* An evaluator is alone, whatever the cluster has, and so its own chief. */
int flow_cluster_chief_job(const flow_cluster *cluster)
{
  if (!cluster) return 0;
  if (cluster->job == FLOW_JOB_EVALUATOR) return FLOW_JOB_EVALUATOR;
  return cluster->count[FLOW_JOB_CHIEF] > 0 ? FLOW_JOB_CHIEF : FLOW_JOB_WORKER;
}

/* A process without a cluster leads itself. */
int flow_cluster_is_chief(const flow_cluster *cluster)
{
  if (!cluster) return 0;
  if (total(cluster) == 0 || cluster->job == FLOW_JOB_EVALUATOR) return 1;
  return cluster->index == 0 && cluster->job == flow_cluster_chief_job(cluster);
}

/* Those that make a training's steps together; an evaluator is alone. At least 1, since a process without a cluster trains as well. */
int flow_cluster_workers(const flow_cluster *cluster)
{
  if (!cluster) return 0;
  int count = cluster->job == FLOW_JOB_EVALUATOR ? cluster->count[FLOW_JOB_EVALUATOR]
                                                 : cluster->count[FLOW_JOB_CHIEF] + cluster->count[FLOW_JOB_WORKER];
  return count > 0 ? count : 1;
}

/* The rank among flow_cluster_workers: the chief first. -1 for a parameter server, which has none. */
int flow_cluster_id(const flow_cluster *cluster)
{
  if (!cluster) return 0;
  if (total(cluster) == 0) return 0;
  if (cluster->job == FLOW_JOB_PS) return -1;
  return cluster->index + (cluster->job == FLOW_JOB_WORKER && cluster->count[FLOW_JOB_CHIEF] > 0);
}

/* ---- the cluster as text ------------------------------------------------------------------------------------------------------------- */

/* As the member "cluster" of TF_CONFIG, so that it can be parsed again. Returns the bytes that the whole text has, without its end, as
 * snprintf does; what does not fit is left out. */
int flow_cluster_text(const flow_cluster *cluster, char *buffer, int size)
{
  flow_text text = flow_text_into(buffer, size);
  if (!cluster) return 0;
  const char *comma = "";
  flow_text_add(&text, "{");
  for (int job = 0; job < FLOW_JOB_COUNT; job++) {
    if (cluster->count[job] == 0) continue;
    flow_text_add(&text, "%s\"%s\":[", comma, job_names[job]);
    for (int i = 0; i < cluster->count[job]; i++) {
      flow_text_add(&text, "%s\"%s\"", i ? "," : "", cluster->address[job][i] ? cluster->address[job][i] : "");
    }
    flow_text_add(&text, "]");
    comma = ",";
  }
  flow_text_add(&text, "}");
  return text.length;
}

/* A line for each task, with its address where it is known: what flowlua launch prints and monitors show. */
void flow_cluster_list(const flow_cluster *cluster, flow_text *text)
{
  char name[FLOW_TASK_NAME_SIZE];
  for (int job = 0; job < FLOW_JOB_COUNT; job++) {
    for (int i = 0; i < cluster->count[job]; i++) {
      const char *address = cluster->address[job][i];
      flow_text_add(text, "%s%s%s\n", flow_task_name(job, i, name), address ? " " : "", address ? address : "");
    }
  }
}

/* One text more in a digest; NULL counts as an empty text. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
  return flow_hash(flow_hash_text(hash, text ? text : ""), "\xff", 1);      /* which ends a text: no text holds it */
}

/* A digest over the names and addresses of the tasks, in order, as 16 hexadecimal digits: tells clusters apart that differ by mistake.
 * No protection against intent; that is the secret's. */
int flow_cluster_hash(const flow_cluster *cluster, char *buffer, int size)
{
  flow_text text = flow_text_into(buffer, size);
  if (!cluster) return 0;
  uint64_t hash = FLOW_HASH_BEGIN;
  for (int job = 0; job < FLOW_JOB_COUNT; job++) {
    for (int i = 0; i < cluster->count[job]; i++) hash = hash_text(hash_text(hash, job_names[job]), cluster->address[job][i]);
  }
  flow_text_add(&text, "%016llx", (unsigned long long)hash);
  return text.length;
}
