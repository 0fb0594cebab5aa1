/* cluster_json.c: TF_CONFIG: {"cluster": {"chief": ["h:p"], "worker": ["h:p", ...], "ps": [...], "evaluator": [...]},
 * "task": {"type": "worker", "index": 0}}. As platforms write it: jobs with empty lists, "cluster": {} and "task": {} for a single
 * process, an index as text ("0"), the list of a job as a map {"0": "h:p"}, and more members ("environment", "job",
 * "rpc_layer", "trial"), which are left aside. */
#include "base/json.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "cluster/cluster.h"

enum { MOST_BYTES = 4 << 20, MOST_INDEX = 1 << 30, EXCERPT = 24 };

/* What a message says was found; NULL reads as null. */
static const char *kind_of(const flow_json *value)
{
  if (flow_json_is(value, FLOW_JSON_OBJECT)) return "an object";
  if (flow_json_is(value, FLOW_JSON_LIST)) return "a list";
  if (flow_json_is(value, FLOW_JSON_TEXT)) return "a text";
  if (flow_json_is_number(value)) return "a number";
  return flow_json_is(value, FLOW_JSON_BOOLEAN) ? "true or false" : "null";
}

/* Fails at offset `at` of the text, where it stops being JSON, with what is found there. Text in single quotes is the commonest mistake
 * (Python's repr), so it is named. */
static flow_status fail_syntax(const char *source, const char *text, size_t bytes, size_t at)
{
  if (at >= bytes) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s is not JSON: it ends after %.0f bytes, where a bracket or quote is not closed", source,
                     (double)bytes);
  }
  size_t count = bytes - at < EXCERPT ? bytes - at : EXCERPT;
  const char *quotes = memchr(text, '\'', bytes) && !memchr(text, '"', bytes) ? "; JSON has double quotes" : "";
  return flow_fail(FLOW_INVALID_ARGUMENT, "%s is not JSON: the error is at byte %.0f, at: %.*s%s", source, (double)at + 1, (int)count,
                   text + at, quotes);
}

/* *out: the whole text as one object, which the caller releases; NULL for a text of white space only. */
static flow_status parse_object(const char *source, const char *text, size_t bytes, flow_json **out)
{
  static const char space[] = " \t\r\n";
  *out = NULL;
  size_t first = 0;
  while (first < bytes && text[first] && strchr(space, text[first])) first++;
  if (first == bytes) return FLOW_OK;
  size_t at;
  flow_json *root;
  flow_status status = flow_json_read(text, bytes, &at, &root);
  if (status == FLOW_CORRUPT_DATA) return fail_syntax(source, text, bytes, at);
  if (status != FLOW_OK) return flow_fail_prefix(status, "%s: ", source);
  while (at < bytes && text[at] && strchr(space, text[at])) at++;
  if (at < bytes) status = fail_syntax(source, text, bytes, at);
  else if (!flow_json_is(root, FLOW_JSON_OBJECT)) {
    status = flow_fail(FLOW_INVALID_ARGUMENT, "%s is %s, it should be an object: {\"cluster\": ..., \"task\": ...}", source, kind_of(root));
  }
  if (status != FLOW_OK) flow_json_release(root);
  else *out = root;
  return status;
}

/* The member of that name, NULL if there is none or it is null; a member that occurs twice is a mistake of the author. */
static flow_status find_member(const char *source, const flow_json *object, const char *name, const flow_json **out)
{
  *out = NULL;
  const flow_json *member, *found = NULL;
  FLOW_JSON_EACH(member, object) {
    if (strcmp(member->key, name) != 0) continue;
    if (found) return flow_fail(FLOW_INVALID_ARGUMENT, "%s has \"%s\" twice: keep one", source, name);
    found = member;
  }
  *out = flow_json_is(found, FLOW_JSON_NULL) ? NULL : found;
  return FLOW_OK;
}

/* The same, which has to be an object. */
static flow_status find_object(const char *source, const flow_json *object, const char *name, const flow_json **out)
{
  FLOW_TRY(find_member(source, object, name, out));
  if (!*out || flow_json_is(*out, FLOW_JSON_OBJECT)) return FLOW_OK;
  return flow_fail(FLOW_INVALID_ARGUMENT, "%s: \"%s\" is %s, it should be an object", source, name, kind_of(*out));
}

/* ---- the cluster --------------------------------------------------------------------------------------------------------------------- */

/* Adds the addresses of a list, or of a map from "0", "1", ... to addresses, as tasks of the job. A map with gaps would renumber the
 * tasks after the gap. */
static flow_status add_tasks(flow_cluster *cluster, int job, const flow_json *list)
{
  const flow_json *entry;
  FLOW_JSON_EACH(entry, list) {
    int index = cluster->count[job];
    if (flow_json_is(list, FLOW_JSON_OBJECT) && flow_parse_number(entry->key, MOST_INDEX) != index) {
      return flow_fail(FLOW_UNSUPPORTED, "%s: cluster.%s is a map that has \"%s\" where %d is next: clusters with tasks left out "
                       "(Kubeflow's enableDynamicWorker) are not supported", cluster->source, flow_job_name(job), entry->key, index);
    }
    if (!flow_json_is(entry, FLOW_JSON_TEXT)) {
      return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %s:%d is %s, it should be a text \"host:port\"", cluster->source, flow_job_name(job),
                       index, kind_of(entry));
    }
    FLOW_TRY(flow_cluster_add(cluster, job, entry->text));
  }
  return FLOW_OK;
}

/* The jobs of a cluster. Each occurs once, under one name. jobs NULL: none. Sentences name the job as the author wrote it. Other names of
 * jobs: flow_job_find. */
static flow_status add_jobs(flow_cluster *cluster, const flow_json *jobs)
{
  const char *seen[FLOW_JOB_COUNT] = { NULL };
  const flow_json *entry;
  FLOW_JSON_EACH(entry, jobs) {
    int job = flow_job_find(entry->key);
    if (job < 0) {
      return flow_fail(FLOW_INVALID_ARGUMENT, "%s: the cluster has a job \"%s\"; jobs are chief (or master), worker, ps and evaluator",
                       cluster->source, entry->key);
    }
    if (seen[job]) {
      return flow_fail(FLOW_INVALID_ARGUMENT, "%s: the cluster has \"%s\" and \"%s\", which are the same job: keep one", cluster->source,
                       seen[job], entry->key);
    }
    seen[job] = entry->key;
    if (flow_json_is(entry, FLOW_JSON_NULL)) continue;
    if (!flow_json_is(entry, FLOW_JSON_LIST) && !flow_json_is(entry, FLOW_JSON_OBJECT)) {
      return flow_fail(FLOW_INVALID_ARGUMENT, "%s: cluster.%s is %s, it should be a list of addresses: [\"host:port\", ...]",
                       cluster->source, entry->key, kind_of(entry));
    }
    FLOW_TRY(add_tasks(cluster, job, entry));
  }
  return FLOW_OK;
}

/* ---- the task ------------------------------------------------------------------------------------------------------------------------ */

/* A number or a text of digits; *out -1 and a failure for anything else. */
static flow_status read_index(const char *source, const flow_json *value, int *out)
{
  int index = -1;
  double number = flow_json_is_number(value) ? value->number : -1;
  if (number >= 0 && number <= MOST_INDEX && floor(number) == number) index = (int)number;
  if (flow_json_is(value, FLOW_JSON_TEXT)) index = flow_parse_number(value->text, MOST_INDEX);
  *out = index;
  if (index >= 0) return FLOW_OK;
  char shown[64];
  if (flow_json_is_number(value)) snprintf(shown, sizeof shown, "%.15g", value->number);
  else snprintf(shown, sizeof shown, "%s", flow_json_is(value, FLOW_JSON_TEXT) ? value->text : kind_of(value));
  return flow_fail(FLOW_INVALID_ARGUMENT, "%s: task.index is %s, it should be a whole number from 0", source, shown);
}

/* Which task this process is: the caller's type and index, else those of the text; an index that nobody gives is `numbered` (-1: not
 * known), but only with a type. Without both it is not said, which is fine for a cluster without tasks. */
static flow_status choose_task(flow_cluster *cluster, const flow_json *task, const char *type, int index, int numbered)
{
  const flow_json *said_type, *said_index;
  FLOW_TRY(find_member(cluster->source, task, "type", &said_type));
  FLOW_TRY(find_member(cluster->source, task, "index", &said_index));
  if (!type && said_type) {
    if (!flow_json_is(said_type, FLOW_JSON_TEXT)) {
      return flow_fail(FLOW_INVALID_ARGUMENT, "%s: task.type is %s, it should be a text, as \"worker\"", cluster->source,
                       kind_of(said_type));
    }
    type = said_type->text;
  }
  if (index < 0 && said_index) FLOW_TRY(read_index(cluster->source, said_index, &index));
  if (index < 0 && type) index = numbered;
  if (!type && index < 0) return FLOW_OK;
  if (!type) return flow_fail(FLOW_INVALID_ARGUMENT, "%s: the task has the index %d but no type: add \"type\": \"worker\"", cluster->source,
                              index);
  int job = flow_job_find(type);
  if (job < 0) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: the task has the type \"%s\"; types are chief (or master), worker, ps and evaluator",
                     cluster->source, type);
  }
  if (index < 0) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: the task has the type \"%s\" but no index: add \"index\": 0, with another number in each "
                     "process", cluster->source, type);
  }
  cluster->job = job;
  cluster->index = index;
  return FLOW_OK;
}

/* Other members than "cluster" and "task" are the platform's. But one that is almost one of these is a mistake, with which each process
 * would train alone. */
static flow_status check_members(const char *source, const flow_json *root)
{
  static const char *const members[][4] = { { "cluster", "clusters", "cluster_spec", "clusterspec" }, { "task", "tasks" } };
  const flow_json *entry;
  FLOW_JSON_EACH(entry, root)
  {
    for (int i = 0; i < 2; i++) {
      if (strcmp(entry->key, members[i][0]) == 0) continue;
      for (int k = 0; k < 4 && members[i][k]; k++) {
        if (strcasecmp(entry->key, members[i][k]) != 0) continue;
        return flow_fail(FLOW_INVALID_ARGUMENT, "%s has \"%s\", which nothing reads: write \"%s\"", source, entry->key, members[i][0]);
      }
    }
  }
  return FLOW_OK;
}

/* Of several processes that were given no addresses each would train alone. The first one may be alone: AI Platform says so. */
static flow_status check_alone(const flow_cluster *cluster)
{
  char name[FLOW_TASK_NAME_SIZE];
  if (cluster->job < 0 || cluster->job == FLOW_JOB_EVALUATOR || cluster->index == 0) return FLOW_OK;
  for (int job = 0; job < FLOW_JOB_COUNT; job++) {
    if (cluster->count[job] > 0) return FLOW_OK;
  }
  return flow_fail(FLOW_INVALID_ARGUMENT,
                   "%s: this process is %s, but the cluster lists no tasks: add the addresses of all, or leave the "
                   "task out where this process works alone",
                   cluster->source, flow_task_name(cluster->job, cluster->index, name));
}

/* root NULL, an empty text, has no members: the result is a cluster without tasks. cluster: new and empty; after a failure the caller
 * releases it. */
static flow_status fill(flow_cluster *cluster, const flow_json *root, const char *task_type, int task_index, int numbered)
{
  const flow_json *jobs, *task;
  FLOW_TRY(find_object(cluster->source, root, "cluster", &jobs));
  FLOW_TRY(find_object(cluster->source, root, "task", &task));
  FLOW_TRY(check_members(cluster->source, root));
  FLOW_TRY(add_jobs(cluster, jobs));
  FLOW_TRY(choose_task(cluster, task, task_type, task_index, numbered));
  FLOW_TRY(check_alone(cluster));
  return flow_cluster_check(cluster);
}

/* The text need not end with a zero. MOST_BYTES bounds what a wrong variable can make the parser do: 16384 tasks with long names need less.
 * numbered: the index of this process as a platform's environment has it, -1: not known. *out: for flow_cluster_release; NULL after a
 * failure. source: where the text comes from, for messages. */
flow_status flow_cluster_parse_numbered(const char *text, double bytes, const char *source, const char *task_type, int task_index,
                                        int numbered, flow_cluster **out)
{
  if (!text || !source || !out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_cluster_parse: text, source or out is NULL");
  *out = NULL;
  if (!(bytes >= 0 && bytes <= MOST_BYTES)) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s has %.0f bytes, at most %d are read", source, bytes, MOST_BYTES);
  }
  flow_json *root;
  flow_cluster *cluster;
  FLOW_TRY(flow_cluster_new(source, &cluster));
  flow_status status = parse_object(source, text, (size_t)bytes, &root);
  if (status == FLOW_OK) {
    status = fill(cluster, root, task_type, task_index, numbered);
    flow_json_release(root);
  }
  if (status == FLOW_OK) *out = cluster;
  else flow_cluster_release(cluster);
  return status;
}

flow_status flow_cluster_parse(const char *text, double bytes, const char *source, const char *task_type, int task_index,
                               flow_cluster **out)
{
  return flow_cluster_parse_numbered(text, bytes, source, task_type, task_index, -1, out);
}
