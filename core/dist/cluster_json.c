/* cluster_json.c: TF_CONFIG: {"cluster": {"chief": ["h:p"], "worker": ["h:p", ...], "ps": [...], "evaluator": [...]},
 * "task": {"type": "worker", "index": 0}}. As platforms write it: jobs with empty lists, "cluster": {} and "task": {} for a single
 * process, an index as text ("0"), the list of a job as a map {"0": "h:p"}, and members of their own ("environment", "job",
 * "rpc_layer", "trial"), which are left aside. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "dist/cluster.h"

enum { MOST_BYTES = 4 << 20, MOST_INDEX = 1 << 30, EXCERPT = 24 };

static const char *kind_of(const cJSON *value)
{
  if (cJSON_IsObject(value)) return "an object";
  if (cJSON_IsArray(value)) return "a list";
  if (cJSON_IsString(value)) return "a text";
  if (cJSON_IsNumber(value)) return "a number";
  return cJSON_IsBool(value) ? "true or false" : "null";
}

/* Where the text stops being JSON, with what stands there. */
static flow_status fail_syntax(const char *source, const char *text, size_t bytes, size_t at)
{
  if (at >= bytes) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s is not JSON: it breaks off after %.0f bytes; a bracket or quote is not closed", source,
                     (double)bytes);
  }
  size_t count = bytes - at < EXCERPT ? bytes - at : EXCERPT;
  const char *quotes = memchr(text, '\'', bytes) && !memchr(text, '"', bytes) ? "; JSON has double quotes" : "";
  return flow_fail(FLOW_INVALID_ARGUMENT, "%s is not JSON: it goes wrong at byte %.0f, at: %.*s%s", source, (double)at, (int)count,
                   text + at, quotes);
}

/* The whole text as one object; NULL in *out for one of white space only. */
static flow_status parse_object(const char *source, const char *text, size_t bytes, cJSON **out)
{
  static const char space[] = " \t\r\n";
  *out = NULL;
  size_t first = 0;
  while (first < bytes && text[first] && strchr(space, text[first])) first++;
  if (first == bytes) return FLOW_OK;
  const char *end = NULL;
  cJSON *root = cJSON_ParseWithLengthOpts(text, bytes, &end, 0);
  size_t at = end ? (size_t)(end - text) : 0;
  if (!root) return fail_syntax(source, text, bytes, at + 1 == bytes ? bytes : at);      /* cJSON never points behind the text */
  while (at < bytes && text[at] && strchr(space, text[at])) at++;
  flow_status status = FLOW_OK;
  if (at < bytes) status = fail_syntax(source, text, bytes, at);
  else if (!cJSON_IsObject(root)) {
    status = flow_fail(FLOW_INVALID_ARGUMENT, "%s is %s, it should be an object: {\"cluster\": ..., \"task\": ...}", source, kind_of(root));
  }
  if (status != FLOW_OK) cJSON_Delete(root);
  else *out = root;
  return status;
}

/* The member of that name, NULL if there is none or it is null; a member that stands twice is a mistake of whoever wrote it. */
static flow_status find_member(const char *source, const cJSON *object, const char *name, const cJSON **out)
{
  *out = NULL;
  const cJSON *member, *found = NULL;
  cJSON_ArrayForEach(member, object) {
    if (strcmp(member->string, name) != 0) continue;
    if (found) return flow_fail(FLOW_INVALID_ARGUMENT, "%s has \"%s\" twice: leave one", source, name);
    found = member;
  }
  *out = cJSON_IsNull(found) ? NULL : found;
  return FLOW_OK;
}

/* The same, which has to be an object. */
static flow_status find_object(const char *source, const cJSON *object, const char *name, const cJSON **out)
{
  FLOW_TRY(find_member(source, object, name, out));
  if (!*out || cJSON_IsObject(*out)) return FLOW_OK;
  return flow_fail(FLOW_INVALID_ARGUMENT, "%s: \"%s\" is %s, it should be an object", source, name, kind_of(*out));
}

/* ---- the cluster --------------------------------------------------------------------------------------------------------------------- */

static flow_status add_tasks(flow_cluster *cluster, int job, const cJSON *list)
{
  const cJSON *entry;
  cJSON_ArrayForEach(entry, list) {
    int index = cluster->count[job];
    if (cJSON_IsObject(list) && flow_parse_number(entry->string, MOST_INDEX) != index) {
      return flow_fail(FLOW_UNSUPPORTED, "%s: cluster.%s is a map that has \"%s\" where %d is next: clusters with tasks left out "
                       "(Kubeflow's enableDynamicWorker) are not supported", cluster->source, flow_job_name(job), entry->string, index);
    }
    if (!cJSON_IsString(entry)) {
      return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %s:%d is %s, it should be a text \"host:port\"", cluster->source, flow_job_name(job),
                       index, kind_of(entry));
    }
    FLOW_TRY(flow_cluster_add(cluster, job, entry->valuestring));
  }
  return FLOW_OK;
}

/* The jobs of a cluster. Each stands once, under one name. */
static flow_status add_jobs(flow_cluster *cluster, const cJSON *jobs)
{
  const char *seen[FLOW_JOB_COUNT] = { NULL };
  const cJSON *entry;
  cJSON_ArrayForEach(entry, jobs) {
    int job = flow_job_find(entry->string);
    if (job < 0) {
      return flow_fail(FLOW_INVALID_ARGUMENT, "%s: the cluster has a job \"%s\"; jobs are chief (or master), worker, ps and evaluator",
                       cluster->source, entry->string);
    }
    if (seen[job]) {
      return flow_fail(FLOW_INVALID_ARGUMENT, "%s: the cluster has \"%s\" and \"%s\", which are the same job: leave one", cluster->source,
                       seen[job], entry->string);
    }
    seen[job] = entry->string;
    if (cJSON_IsNull(entry)) continue;
    if (!cJSON_IsArray(entry) && !cJSON_IsObject(entry)) {
      return flow_fail(FLOW_INVALID_ARGUMENT, "%s: cluster.%s is %s, it should be a list of addresses: [\"host:port\", ...]",
                       cluster->source, entry->string, kind_of(entry));
    }
    FLOW_TRY(add_tasks(cluster, job, entry));
  }
  return FLOW_OK;
}

/* ---- the task ------------------------------------------------------------------------------------------------------------------------ */

static flow_status read_index(const char *source, const cJSON *value, int *out)
{
  int index = -1;
  double number = cJSON_IsNumber(value) ? value->valuedouble : -1;
  if (number >= 0 && number <= MOST_INDEX && floor(number) == number) index = (int)number;
  if (cJSON_IsString(value)) index = flow_parse_number(value->valuestring, MOST_INDEX);
  *out = index;
  if (index >= 0) return FLOW_OK;
  char shown[64];
  if (cJSON_IsNumber(value)) snprintf(shown, sizeof shown, "%.15g", value->valuedouble);
  else snprintf(shown, sizeof shown, "%s", cJSON_IsString(value) ? value->valuestring : kind_of(value));
  return flow_fail(FLOW_INVALID_ARGUMENT, "%s: task.index is %s, it should be a whole number from 0", source, shown);
}

static flow_status choose_task(flow_cluster *cluster, const cJSON *task, const char *type, int index)
{
  const cJSON *said_type, *said_index;
  FLOW_TRY(find_member(cluster->source, task, "type", &said_type));
  FLOW_TRY(find_member(cluster->source, task, "index", &said_index));
  if (!type && said_type) {
    if (!cJSON_IsString(said_type)) {
      return flow_fail(FLOW_INVALID_ARGUMENT, "%s: task.type is %s, it should be a text, as \"worker\"", cluster->source,
                       kind_of(said_type));
    }
    type = said_type->valuestring;
  }
  if (index < 0 && said_index) FLOW_TRY(read_index(cluster->source, said_index, &index));
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

static flow_status fill(flow_cluster *cluster, const cJSON *root, const char *task_type, int task_index)
{
  const cJSON *jobs, *task;
  FLOW_TRY(find_object(cluster->source, root, "cluster", &jobs));
  FLOW_TRY(find_object(cluster->source, root, "task", &task));
  FLOW_TRY(add_jobs(cluster, jobs));
  FLOW_TRY(choose_task(cluster, task, task_type, task_index));
  return flow_cluster_check(cluster);
}

flow_status flow_cluster_parse(const char *text, double bytes, const char *source, const char *task_type, int task_index,
                               flow_cluster **out)
{
  if (!text || !source || !out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_cluster_parse: text, source or out is NULL");
  *out = NULL;
  if (!(bytes >= 0 && bytes <= MOST_BYTES)) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s has %.0f bytes, at most %d are read", source, bytes, MOST_BYTES);
  }
  cJSON *root;
  flow_cluster *cluster;
  FLOW_TRY(flow_cluster_new(source, &cluster));
  flow_status status = parse_object(source, text, (size_t)bytes, &root);
  if (status == FLOW_OK) {
    status = fill(cluster, root, task_type, task_index);
    cJSON_Delete(root);
  }
  if (status == FLOW_OK) *out = cluster;
  else flow_cluster_release(cluster);
  return status;
}
