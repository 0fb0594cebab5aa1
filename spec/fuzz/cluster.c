/* cluster.c: TF_CONFIG, and a launcher's environment: the bytes are TF_CONFIG's text, or Slurm's two lists with a line end between them.
 * sources: core/cluster/cluster.c core/cluster/cluster_json.c core/cluster/cluster_environment.c
 * sources: core/cluster/cluster_slurm.c core/cluster/address.c
 */
#include "fuzz.h"
#include <string.h>
#include "cluster/cluster.h"

typedef struct cluster_variables { char *hosts, *tasks; } cluster_variables;

static const char *get_variable(const void *state, const char *name)
{
  const cluster_variables *variables = state;
  static const char *const fixed[][2] = {
    { "SLURM_PROCID", "1" }, { "SLURM_STEP_NUM_TASKS", "64" }, { "SLURM_JOB_ID", "1" }, { "SLURM_STEP_ID", "0" },
  };
  for (int i = 0; i < 4; i++) {
    if (strcmp(fixed[i][0], name) == 0) return fixed[i][1];
  }
  if (strcmp(name, "SLURM_STEP_NODELIST") == 0) return variables->hosts;
  return strcmp(name, "SLURM_STEP_TASKS_PER_NODE") == 0 ? variables->tasks : NULL;
}

/* A cluster that was taken is one; its text makes the same one again. */
static void check_cluster(const flow_cluster *cluster)
{
  char hash[32], hash_again[32], type[64];
  int length = flow_cluster_text(cluster, NULL, 0);
  char *text = malloc((size_t)length + 128);
  if (flow_cluster_workers(cluster) < 1 || !text) abort();
  memcpy(text, "{\"cluster\":", 11);
  flow_cluster_text(cluster, text + 11, length + 1);
  if (flow_cluster_job(cluster) >= 0) {
    snprintf(type, sizeof type, ",\"task\":{\"type\":\"%s\",\"index\":%d}}", flow_job_name(flow_cluster_job(cluster)),
             flow_cluster_index(cluster));
  } else {
    snprintf(type, sizeof type, "}");
  }
  strcpy(text + 11 + length, type);
  flow_cluster *again;
  if (flow_cluster_parse(text, (double)strlen(text), "again", NULL, -1, &again) != FLOW_OK) abort();
  flow_cluster_hash(cluster, hash, sizeof hash);
  flow_cluster_hash(again, hash_again, sizeof hash_again);
  if (strcmp(hash, hash_again) != 0) abort();
  flow_cluster_release(again);
  free(text);
}

static void read_cluster(const uint8_t *bytes, size_t count)
{
  flow_cluster *cluster;
  if (flow_cluster_parse((const char *)bytes, (double)count, "fuzz", NULL, -1, &cluster) == FLOW_OK) check_cluster(cluster);
  flow_cluster_release(cluster);

  char *text = malloc(count + 2);
  memcpy(text, bytes, count);
  text[count] = text[count + 1] = '\0';
  cluster_variables variables = { text, text + count };
  char *line = strchr(text, '\n');
  if (line) {
    *line = '\0';
    variables.tasks = line + 1;
  }
  const flow_environment environment = { get_variable, &variables };
  if (flow_cluster_from(&environment, 1, NULL, -1, &cluster) == FLOW_OK) check_cluster(cluster);
  flow_cluster_release(cluster);
  free(text);
}

FUZZ_TARGET(read_cluster)
