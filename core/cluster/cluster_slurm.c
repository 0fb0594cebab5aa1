/* cluster_slurm.c: the tasks of a Slurm step with addresses. Slurm says which hosts there are (SLURM_STEP_NODELIST, "n[01-03,7],gpu1")
 * and how many tasks each has (SLURM_STEP_TASKS_PER_NODE, "2(x3),1"); ranks are counted host by host, as srun's default distribution
 * "block" does. The port follows from the job's and the step's number, so that two steps on one host do not meet:
 *   12000 + (job + 131 step) mod 20000 + number of the task on its host;   FLOW_PORT replaces all but the last summand. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "cluster/cluster.h"

enum { MOST_HOST = 253, MOST_DIGITS = 9, MOST_DEPTH = 4, MOST_NUMBER = 2147483647, FIRST_PORT = 12000, PORTS = 20000, MOST_PORT = 65535 };

/* The walk over the step's hosts; addresses are handed out in its order. tasks_per_node is read as hosts come, so that both lists need
 * one pass. */
typedef struct layout {
  flow_cluster *cluster;
  const char   *tasks_per_node;       /* what of it is still to be read */
  int           repeats, tasks;       /* of the group that is being read: this many more hosts have this many tasks */
  int           port, nodes, size;    /* port of a host's first task; hosts so far; tasks of the step */
  int           rank, rank_node, rank_task;      /* this process: its number, and the host and place that follow from the lists */
} layout;

/* ---- tasks per node: "2(x3),1" ------------------------------------------------------------------------------------------------------- */

static flow_status fail_tasks(const char *text)
{
  return flow_fail(FLOW_INVALID_ARGUMENT, "SLURM_STEP_TASKS_PER_NODE: numbers like 2(x3),1 are expected at \"%.40s\"", text);
}

/* Digits at *text as a number; -1: there are none, or too many. */
static int take_number(const char **text)
{
  char digits[MOST_DIGITS + 1];
  size_t count = strspn(*text, "0123456789");
  if (count == 0 || count > MOST_DIGITS) return -1;
  memcpy(digits, *text, count);
  digits[count] = '\0';
  *text += count;
  return flow_parse_number(digits, MOST_NUMBER);
}

/* Reads the next "2" or "2(x3)": tasks of a host, and for how many hosts that holds. */
static flow_status next_group(layout *to)
{
  const char *at = to->tasks_per_node;
  to->tasks = take_number(&at);
  to->repeats = 1;
  if (to->tasks < 1) return fail_tasks(to->tasks_per_node);
  if (strncmp(at, "(x", 2) == 0) {
    at += 2;
    to->repeats = take_number(&at);
    if (to->repeats < 1 || *at++ != ')') return fail_tasks(to->tasks_per_node);
  }
  if (*at == ',') at++;
  else if (*at) return fail_tasks(to->tasks_per_node);
  to->tasks_per_node = at;
  return FLOW_OK;
}

/* ---- hosts: "n[01-03,7],gpu1" -------------------------------------------------------------------------------------------------------- */

/* Adds the tasks of the next host. Tasks beyond the step's size are not added: SLURM_STEP_TASKS_PER_NODE may describe more than was
 * started. */
static flow_status add_host(layout *to, const char *host)
{
  char address[FLOW_ADDRESS_SIZE];
  if (to->repeats == 0) FLOW_TRY(next_group(to));
  to->repeats--;
  for (int i = 0; i < to->tasks; i++) {
    int index = to->cluster->count[FLOW_JOB_WORKER];
    if (index >= to->size) return FLOW_OK;
    if (index == to->rank) {
      to->rank_node = to->nodes;
      to->rank_task = i;
    }
    snprintf(address, sizeof address, "%s:%d", host, to->port + i);
    FLOW_TRY(flow_cluster_add(to->cluster, FLOW_JOB_WORKER, address));
  }
  to->nodes++;
  return FLOW_OK;
}

static flow_status fail_list(const char *text)
{
  return flow_fail(FLOW_INVALID_ARGUMENT, "SLURM_STEP_NODELIST: hosts like n[01-03,7],gpu1 are expected at \"%.40s\"", text);
}

static flow_status expand(layout *to, const char *prefix, const char *rest, int depth);

/* One "01-03" or "7" of a bracket, which is followed by `rest` (up to the next comma outside of brackets). *at is moved after it. The
 * width of the first number is that of all ("01" to "03"). Hosts that no task needs any more are not made, so that "n[1-999999999]"
 * costs nothing. */
static flow_status expand_range(layout *to, const char *prefix, const char **at, const char *rest, int depth)
{
  char host[MOST_HOST + 1];
  const char *start = *at;
  int first = take_number(at), width = (int)(*at - start), last = first;
  if (first < 0) return fail_list(start);
  if (**at == '-') {
    (*at)++;
    last = take_number(at);
    if (last < first) return fail_list(start);
  }
  for (int number = first; number <= last && to->cluster->count[FLOW_JOB_WORKER] < to->size; number++) {
    int length = snprintf(host, sizeof host, "%s%0*d", prefix, width, number);
    if (length >= (int)sizeof host) return fail_list(start);
    FLOW_TRY(expand(to, host, rest, depth + 1));
  }
  return FLOW_OK;
}

/* Expands one entry of the list. prefix: what has been expanded so far; rest: what follows it, with or without brackets, up to a comma
 * or the end of the text. Recurses once for each bracket ("rack[1-2]n[01-16]"), MOST_DEPTH deep: Slurm has no more dimensions than that. */
static flow_status expand(layout *to, const char *prefix, const char *rest, int depth)
{
  char host[MOST_HOST + 1];
  size_t plain = strcspn(rest, "[,");
  if (depth > MOST_DEPTH || strlen(prefix) + plain >= sizeof host) return fail_list(rest);
  snprintf(host, sizeof host, "%s%.*s", prefix, (int)plain, rest);
  if (rest[plain] != '[') return add_host(to, host);
  const char *at = rest + plain + 1, *close = strchr(at, ']');
  if (!close) return fail_list(rest);
  while (1) {
    FLOW_TRY(expand_range(to, host, &at, close + 1, depth));
    if (*at == ']') return FLOW_OK;
    if (*at++ != ',') return fail_list(rest);
  }
}

/* The comma after the entry at `text`, or the end of the text. */
static const char *entry_end(const char *text)
{
  int inside = 0;
  for (; *text && (inside || *text != ','); text++) {
    if (*text == '[') inside = 1;
    if (*text == ']') inside = 0;
  }
  return text;
}

/* All entries of SLURM's host list, "a[1-3],b": entries are separated by commas outside of brackets. A list that ends in a comma is
 * accepted. */
static flow_status expand_list(layout *to, const char *list)
{
  for (const char *at = list; *at;) {
    const char *end = entry_end(at);
    if (end == at) return fail_list(at);
    FLOW_TRY(expand(to, "", at, 0));
    at = *end ? end + 1 : end;
  }
  return FLOW_OK;
}

/* ---- the step ------------------------------------------------------------------------------------------------------------------------ */

/* -1 for a variable that is missing or not a whole number, such as the names that Slurm gives to special steps. */
static int number_of(const flow_environment *environment, const char *name)
{
  const char *text = environment->get(environment->state, name);
  return text ? flow_parse_number(text, MOST_NUMBER) : -1;
}

/* Slurm's own word on where this process is has to agree with the order that is assumed here. With another distribution (cyclic, plane)
 * ranks would get each other's addresses. A variable that is missing is not compared. */
static flow_status check_place(const flow_environment *environment, const layout *found)
{
  int node = number_of(environment, "SLURM_NODEID"), task = number_of(environment, "SLURM_LOCALID");
  if ((node < 0 || node == found->rank_node) && (task < 0 || task == found->rank_task)) return FLOW_OK;
  return flow_fail(FLOW_INVALID_ARGUMENT, "Slurm: process %d is task %d of host %d, but counted host by host it is task %d of host %d: "
                   "start the step with srun --distribution=block, or set TF_CONFIG", found->rank, task, node, found->rank_task,
                   found->rank_node);
}

/* The lists may be longer than the step: only the first `size` tasks are added. A failure leaves tasks in the cluster, which the caller
 * releases. */
flow_status flow_cluster_add_slurm(const flow_environment *environment, flow_cluster *cluster, int rank, int size)
{
  int job = number_of(environment, "SLURM_JOB_ID"), step = number_of(environment, "SLURM_STEP_ID");
  int port = number_of(environment, "FLOW_PORT");
  const char *hosts = environment->get(environment->state, "SLURM_STEP_NODELIST");
  const char *tasks = environment->get(environment->state, "SLURM_STEP_TASKS_PER_NODE");
  if (job < 0 || step < 0 || !hosts || !tasks) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "Slurm: SLURM_JOB_ID, SLURM_STEP_ID, SLURM_STEP_NODELIST or SLURM_STEP_TASKS_PER_NODE is "
                     "missing: start this by srun, or set TF_CONFIG");
  }
  if (port < 0) port = FIRST_PORT + (int)((job + (int64_t)131 * step) % PORTS);
  if (port > MOST_PORT) return flow_fail(FLOW_INVALID_ARGUMENT, "FLOW_PORT is %d, a port is a number from 1 to %d", port, MOST_PORT);
  layout to = { .cluster = cluster, .tasks_per_node = tasks, .port = port, .size = size, .rank = rank };
  FLOW_TRY(expand_list(&to, hosts));
  if (cluster->count[FLOW_JOB_WORKER] < size) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "Slurm: the step has %d tasks, but SLURM_STEP_NODELIST \"%.80s\" and SLURM_STEP_TASKS_PER_NODE "
                     "\"%.40s\" have room for %d", size, hosts, tasks, cluster->count[FLOW_JOB_WORKER]);
  }
  return check_place(environment, &to);
}
