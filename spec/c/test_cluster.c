/* Clusters: every role of the table in TensorFlow's multi_worker_util.py, TF_CONFIG as platforms write it, launchers, and the sentence
 * for each mistake. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "cluster/cluster.h"

static flow_cluster *made(const char *text)
{
  flow_cluster *cluster;
  if (flow_cluster_parse(text, (double)strlen(text), "TF_CONFIG", NULL, -1, &cluster) != FLOW_OK) fail_msg("%s: %s", text,
                                                                                                           flow_last_error());
  return cluster;
}

/* ---- roles --------------------------------------------------------------------------------------------------------------------------- */

static void test_roles(void **state)
{
  (void)state;
#define WITH_CHIEF "{\"cluster\":{\"chief\":[\"a:1\"],\"worker\":[\"b:1\",\"c:1\"],\"ps\":[\"d:1\"]},\"task\":{\"type\":"
#define WORKERS "{\"cluster\":{\"worker\":[\"b:1\",\"c:1\"],\"evaluator\":[\"e:1\"]},\"task\":{\"type\":"
  static const struct { const char *text; int job, index, is_chief, workers, id, chief; } rows[] = {
    { WITH_CHIEF "\"chief\",\"index\":0}}", FLOW_JOB_CHIEF, 0, 1, 3, 0, FLOW_JOB_CHIEF },
    { WITH_CHIEF "\"master\",\"index\":0}}", FLOW_JOB_CHIEF, 0, 1, 3, 0, FLOW_JOB_CHIEF },
    { WITH_CHIEF "\"worker\",\"index\":0}}", FLOW_JOB_WORKER, 0, 0, 3, 1, FLOW_JOB_CHIEF },
    { WITH_CHIEF "\"worker\",\"index\":1}}", FLOW_JOB_WORKER, 1, 0, 3, 2, FLOW_JOB_CHIEF },
    { WITH_CHIEF "\"ps\",\"index\":0}}", FLOW_JOB_PS, 0, 0, 3, -1, FLOW_JOB_CHIEF },
    { WITH_CHIEF "\"evaluator\",\"index\":0}}", FLOW_JOB_EVALUATOR, 0, 1, 1, 0, FLOW_JOB_EVALUATOR },
    { WORKERS "\"worker\",\"index\":0}}", FLOW_JOB_WORKER, 0, 1, 2, 0, FLOW_JOB_WORKER },
    { WORKERS "\"worker\",\"index\":1}}", FLOW_JOB_WORKER, 1, 0, 2, 1, FLOW_JOB_WORKER },
    { WORKERS "\"evaluator\",\"index\":0}}", FLOW_JOB_EVALUATOR, 0, 1, 1, 0, FLOW_JOB_EVALUATOR },
    { "{\"cluster\":{\"master\":[\"a:1\"]},\"task\":{\"type\":\"chief\",\"index\":0}}", FLOW_JOB_CHIEF, 0, 1, 1, 0, FLOW_JOB_CHIEF },
    { "", -1, -1, 1, 1, 0, FLOW_JOB_WORKER },
    { " {} ", -1, -1, 1, 1, 0, FLOW_JOB_WORKER },
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    flow_cluster *cluster = made(rows[i].text);
    assert_int_equal(flow_cluster_job(cluster), rows[i].job);
    assert_int_equal(flow_cluster_index(cluster), rows[i].index);
    assert_int_equal(flow_cluster_is_chief(cluster), rows[i].is_chief);
    assert_int_equal(flow_cluster_workers(cluster), rows[i].workers);
    assert_int_equal(flow_cluster_id(cluster), rows[i].id);
    assert_int_equal(flow_cluster_chief_job(cluster), rows[i].chief);
    flow_cluster_release(cluster);
  }
}

/* What gcloud, AI Platform, Vertex, Kubeflow and PAI-DLC put there. */
static void test_platforms(void **state)
{
  (void)state;
  static const struct { const char *text; int workers, ps, id; } rows[] = {
    { "{\"job\":{\"job_name\":\"trainer.task\",\"args\":[]},\"task\":{},\"cluster\":{},\"environment\":\"cloud\"}", 1, 0, 0 },
    { "{\"cluster\":{\"chief\":[\"localhost:27182\"],\"ps\":[],\"worker\":[\"localhost:27183\"]},"
      "\"task\":{\"type\":\"worker\",\"index\":0},\"environment\":\"cloud\"}", 2, 0, 1 },
    { "{\"cluster\":{\"master\":[\"m-0:2222\"],\"ps\":[\"p-0:2222\"]},"
      "\"task\":{\"type\":\"master\",\"index\":0,\"trial\":\"\",\"cloud\":\"c\"},"
      "\"job\":\"{\\\"scale_tier\\\":1}\",\"open_ports\":[]}", 1, 1, 0 },
    { "{\"cluster\":{\"worker\":[\"dlc1-worker-0.t16.svc:2222\",\"dlc1-worker-1.t16.svc:2222\"]},"
      "\"task\":{\"type\":\"worker\",\"index\":\"1\"},\"rpc_layer\":\"grpc\"}", 2, 0, 1 },
    { "{\"cluster\":{\"worker\":{\"0\":\"a:1\",\"1\":\"b:1\"},\"chief\":null},\"task\":{\"type\":\"worker\",\"index\":1.0}}", 2, 0, 1 },
    { "{\"cluster\":{},\"task\":{\"type\":\"chief\",\"index\":0}}", 1, 0, 0 },
    { "{\"cluster\":null,\"task\":null}", 1, 0, 0 },
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    flow_cluster *cluster = made(rows[i].text);
    assert_int_equal(flow_cluster_workers(cluster), rows[i].workers);
    assert_int_equal(flow_cluster_count(cluster, FLOW_JOB_PS), rows[i].ps);
    assert_int_equal(flow_cluster_id(cluster), rows[i].id);
    flow_cluster_release(cluster);
  }
}

static void test_text_and_hash(void **state)
{
  (void)state;
#define TASK ",\"task\":{\"type\":\"chief\",\"index\":0}}"
  static const char canonical[] = "{\"chief\":[\"a:7\"],\"worker\":[\"b.example:2222\",\"[2001:db8::1]:5\"]}";
  char text[256], again[512], hash[4][32];
  snprintf(again, sizeof again, "{\"cluster\":%s%s", canonical, TASK);
  const char *texts[] = {
    "{\"cluster\":{\"worker\":[\"B.example:02222\",\"[2001:DB8:0::1]:5\"],\"master\":[\"A:7\"],\"ps\":[]},"
      "\"task\":{\"type\":\"worker\",\"index\":1}}",
    again,
    "{\"cluster\":{\"chief\":[\"a:7\"],\"worker\":[\"[2001:db8::1]:5\",\"b.example:2222\"]}" TASK,
    "",
  };
  for (int i = 0; i < 4; i++) {
    flow_cluster *cluster = made(texts[i]);
    int length = flow_cluster_text(cluster, text, sizeof text);
    assert_int_equal(length, (int)strlen(text));
    if (i < 2) assert_string_equal(text, canonical);
    assert_int_equal(flow_cluster_hash(cluster, hash[i], 32), 16);
    flow_cluster_release(cluster);
  }
  assert_string_equal(hash[0], hash[1]);
  assert_string_not_equal(hash[0], hash[2]);
  assert_string_equal(hash[3], "cbf29ce484222325");      /* FNV-1a of nothing */
}

/* ---- mistakes ------------------------------------------------------------------------------------------------------------------------ */

static void test_mistakes(void **state)
{
  (void)state;
#define CLUSTER(jobs) "{\"cluster\":{" jobs "},\"task\":{\"type\":\"worker\",\"index\":0}}"
#define TASKED(task) "{\"cluster\":{\"worker\":[\"a:1\",\"b:1\"]},\"task\":" task "}"
  /* clang-format off */
  static const struct { const char *text, *parts[3]; } rows[] = {
    { "{'cluster': {}}", { "not JSON", "the error is at byte 2", "double quotes" } },
    { "{\"cluster\":{\"worker\":[\"a:1\"", { "not JSON", "it ends after 27 bytes" } },
    { "{} x", { "not JSON", "byte 4", "x" } },
    { "[1]", { "is a list", "should be an object" } },
    { "{\"cluster\":[]}", { "\"cluster\" is a list", "should be an object" } },
    { "{\"cluster\":{},\"cluster\":{}}", { "\"cluster\" twice" } },
    { CLUSTER("\"workers\":[\"a:1\"]"), { "a job \"workers\"", "worker, ps and evaluator" } },
    { CLUSTER("\"worker\":[\"a:1\"],\"worker\":[\"b:1\"]"), { "\"worker\" and \"worker\"", "keep one" } },
    { CLUSTER("\"chief\":[\"a:1\"],\"master\":[\"b:1\"]"), { "\"chief\" and \"master\"", "keep one" } },
    { CLUSTER("\"worker\":\"a:1\""), { "cluster.worker is a text", "list of addresses" } },
    { CLUSTER("\"worker\":[7]"), { "worker:0 is a number", "host:port" } },
    { CLUSTER("\"worker\":{\"1\":\"a:1\"}"), { "has \"1\" where 0 is next" } },
    { CLUSTER("\"chief\":[\"a:1\",\"b:1\"]"), { "2 chiefs (chief:0 a:1, chief:1 b:1)", "at most one" } },
    { CLUSTER("\"worker\":[\"a:1\"],\"evaluator\":[\"b:1\",\"c:1\"]"), { "2 evaluators", "at most one" } },
    { CLUSTER("\"ps\":[\"a:1\"]"), { "1 parameter servers", "no task that trains" } },
    { CLUSTER("\"worker\":[\"a:1\",\"b:1\",\"A:01\"]"), { "worker:0 and worker:2", "same address a:1" } },
    { CLUSTER("\"worker\":[\"a:1\"],\"ps\":[\"a:1\"]"), { "worker:0 and ps:0", "same address a:1" } },
    { CLUSTER("\"worker\":[\"localhost:1\",\"10.0.0.7:1\"]"), { "worker:0 localhost:1", "worker:1 10.0.0.7:1 is on a network" } },
    { CLUSTER("\"worker\":[\"10.0.0.7:1\",\"127.0.1.1:1\"]"), { "worker:1 127.0.1.1:1", "worker:0 10.0.0.7:1" } },
    { CLUSTER("\"worker\":[\"0.0.0.0:1\"]"), { "worker:0 has the address 0.0.0.0:1", "cannot be reached" } },
    { CLUSTER("\"worker\":[\"[::]:1\"]"), { "cannot be reached" } },
    { CLUSTER("\"worker\":[\"a\"]"), { "worker:0: \"a\" has no port" } },
    { CLUSTER("\"worker\":[\"\"]"), { "has no port" } },
    { CLUSTER("\"worker\":[\":1\"]"), { "has no host" } },
    { CLUSTER("\"worker\":[\"a:0\"]"), { "from 1 to 65535" } },
    { CLUSTER("\"worker\":[\"a:65536\"]"), { "from 1 to 65535" } },
    { CLUSTER("\"worker\":[\"a:8x\"]"), { "from 1 to 65535" } },
    { CLUSTER("\"worker\":[\"grpc://a:1\"]"), { "\"grpc://a:1\" is a URL: write the host and the port alone, \"a:1\"" } },
    { CLUSTER("\"worker\":[\"http://localhost:1234/x\"]"), { "is a URL", "alone, \"localhost:1234\"" } },
    { CLUSTER("\"worker\":[\"a:b:1\"]"), { "several colons" } },
    { CLUSTER("\"worker\":[\"a/b:1\"]"), { "without a path" } },
    { CLUSTER("\"worker\":[\"a b:1\"]"), { "byte 2" } },
    { CLUSTER("\"worker\":[\"::1:22\"]"), { "IPv6 address is written [::1]:2222" } },
    { CLUSTER("\"worker\":[\"[fe80::1%eth0]:22\"]"), { "[fe80::1%eth0]:22", "link-local", "by which all workers reach" } },
    { CLUSTER("\"worker\":[\"[FE80::1]:22\"]"), { "[FE80::1]:22", "link-local" } },
    { CLUSTER("\"worker\":[\"[2001:db8::1%eth0]:22\"]"), { "the text in brackets is not an IPv6 address" } },
    { CLUSTER("\"worker\":[\"[::g]:22\"]"), { "not an IPv6 address" } },
    { CLUSTER("\"worker\":[\"10.0.0.300:22\"]"), { "neither a name nor an IPv4" } },
    { TASKED("{}"), { "has 2 tasks", "nothing says which", "\"task\": {" } },
    { TASKED("7"), { "\"task\" is a number" } },
    { TASKED("{\"type\":\"worker\"}"), { "no index", "add \"index\"" } },
    { TASKED("{\"index\":1}"), { "index 1 but no type" } },
    { TASKED("{\"type\":\"worker\",\"index\":2}"), { "worker:2", "2 workers (worker:0 a:1, worker:1 b:1)", "from 0 to 1" } },
    { TASKED("{\"type\":\"worker\",\"index\":-1}"), { "task.index is -1" } },
    { TASKED("{\"type\":\"worker\",\"index\":0.5}"), { "task.index is 0.5" } },
    { TASKED("{\"type\":\"worker\",\"index\":\"x\"}"), { "task.index is x" } },
    { TASKED("{\"type\":\"chief\",\"index\":0}"), { "chief:0", "no chief", "cluster.chief" } },
    { TASKED("{\"type\":\"ps\",\"index\":0}"), { "ps:0", "no ps" } },
    { TASKED("{\"type\":\"boss\",\"index\":0}"), { "type \"boss\"", "types are chief" } },
    { TASKED("{\"type\":3,\"index\":0}"), { "task.type is a number" } },
    { "{\"Cluster\":{},\"task\":{\"type\":\"worker\",\"index\":0}}", { "has \"Cluster\", which nothing reads", "write \"cluster\"" } },
    { "{\"cluster\":{\"worker\":[\"a:1\"]},\"tasks\":{}}", { "has \"tasks\", which nothing reads", "write \"task\"" } },
    { "{\"cluster\":{\"worker\":[]},\"task\":{\"type\":\"worker\",\"index\":3}}", { "worker:3", "lists no tasks" } },
    { "{\"task\":{\"type\":\"chief\",\"index\":1}}", { "chief:1", "lists no tasks" } },
  };
  /* clang-format on */
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    flow_cluster *cluster;
    double before = flow_live_bytes();
    flow_status status = flow_cluster_parse(rows[i].text, (double)strlen(rows[i].text), "TF_CONFIG", NULL, -1, &cluster);
    if (status == FLOW_OK) fail_msg("%s is taken", rows[i].text);
    assert_null(cluster);
    assert_true(flow_live_bytes() == before);
    assert_true(strncmp(flow_last_error(), "TF_CONFIG", 9) == 0);
    for (int part = 0; part < 3 && rows[i].parts[part]; part++) {
      if (!strstr(flow_last_error(), rows[i].parts[part])) fail_msg("%s: \"%s\" lacks \"%s\"", rows[i].text, flow_last_error(),
                                                                    rows[i].parts[part]);
    }
  }
}

static void test_limits(void **state)
{
  (void)state;
  static char text[FLOW_MOST_TASKS * 12 + 4096];
  for (int extra = 0; extra < 2; extra++) {
    flow_text list = flow_text_into(text, sizeof text);
    flow_text_add(&list, "{\"task\":{\"type\":\"worker\",\"index\":9},\"cluster\":{\"worker\":[\"n0:1\"");
    for (int i = 1; i < FLOW_MOST_TASKS + extra; i++) flow_text_add(&list, ",\"n%d:1\"", i);
    flow_text_add(&list, "]}}");
    assert_true(list.length < list.size);
    flow_cluster *cluster;
    flow_status status = flow_cluster_parse(text, list.length, "TF_CONFIG", NULL, -1, &cluster);
    assert_int_equal(status, extra ? FLOW_INVALID_ARGUMENT : FLOW_OK);
    flow_cluster_release(cluster);
  }
  char host[300];
  memset(host, 'a', sizeof host);
  memcpy(host + 254, ":1", 3);
  char canonical[FLOW_ADDRESS_SIZE];
  assert_int_equal(flow_address_normalize(host, canonical), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_address_normalize(host + 1, canonical), FLOW_OK);
}

/* Each allocation fails once; nothing is left behind. */
static void test_no_memory(void **state)
{
  (void)state;
  static const char text[] = CLUSTER("\"chief\":[\"a:1\"],\"worker\":[\"b:1\",\"c:1\"],\"ps\":[\"d:1\"]");
  double before = flow_live_bytes();
  flow_cluster *cluster = NULL;
  flow_status status = FLOW_OUT_OF_MEMORY;
  int failed = 0;
  for (; status != FLOW_OK && failed < 100; failed++) {
    flow_fail_allocation(failed);
    status = flow_cluster_parse(text, sizeof text - 1, "TF_CONFIG", NULL, -1, &cluster);
    flow_fail_allocation(-1);
    if (status == FLOW_OK) break;
    assert_int_equal(status, FLOW_OUT_OF_MEMORY);
    assert_true(flow_live_bytes() == before);
  }
  assert_true(failed > 5);
  flow_cluster_release(cluster);
}

/* ---- environments -------------------------------------------------------------------------------------------------------------------- */

/* The state is a list of names and values. */
static const char *get_listed(const void *state, const char *name)
{
  for (const char *const *at = state; *at; at += 2) {
    if (strcmp(at[0], name) == 0) return at[1];
  }
  return NULL;
}

static flow_status from(const char *const *variables, int launchers, flow_cluster **out)
{
  flow_environment environment = { get_listed, variables };
  return flow_cluster_from(&environment, launchers, NULL, -1, out);
}

#define OMPI(rank, size) "OMPI_COMM_WORLD_RANK", rank, "OMPI_COMM_WORLD_SIZE", size
#define SLURM(rank, size, nodes, tasks) "SLURM_PROCID", rank, "SLURM_STEP_NUM_TASKS", size, "SLURM_STEP_NODELIST", nodes, \
  "SLURM_STEP_TASKS_PER_NODE", tasks, "SLURM_JOB_ID", "40007", "SLURM_STEP_ID", "1"

/* As Vertex AI writes it, in the process of this job. */
#define POOLS(job) "{\"cluster\":{\"workerpool0\":[\"p0:2222\"],\"workerpool1\":[\"p1:2222\"]},\"environment\":\"cloud\"," \
  "\"task\":{\"type\":\"" job "\",\"index\":0,\"trial\":\"\"},\"job\":\"{}\"}"

static void test_launchers(void **state)
{
  (void)state;
  static const struct { const char *variables[24], *source; int workers, id; const char *text; } rows[] = {
    { { NULL }, "", 1, 0, "{}" },
    { { OMPI("1", "3"), NULL }, "OpenMPI", 3, 1, "{\"worker\":[\"\",\"\",\"\"]}" },
    { { OMPI("0", "1"), NULL }, "OpenMPI", 1, 0, "{}" },
    { { OMPI("1", "2"), "TF_CONFIG", "{}", NULL }, "OpenMPI", 2, 1, "{\"worker\":[\"\",\"\"]}" },
    { { OMPI("1", "2"), SLURM("0", "1", "n1", "1"), NULL }, "OpenMPI", 2, 1, "{\"worker\":[\"\",\"\"]}" },
    { { SLURM("2", "3", "n[1-2]", "2,1"), "SLURM_NODEID", "1", "SLURM_LOCALID", "0", NULL }, "Slurm", 3, 2,
      "{\"worker\":[\"n1:12138\",\"n1:12139\",\"n2:12138\"]}" },
    { { SLURM("0", "4", "a[08-10],gpu1", "1(x4)"), "FLOW_PORT", "5000", NULL }, "Slurm", 4, 0,
      "{\"worker\":[\"a08:5000\",\"a09:5000\",\"a10:5000\",\"gpu1:5000\"]}" },
    { { SLURM("3", "4", "r[1-2]n[1,3]", "1(x4)"), "FLOW_PORT", "9", NULL }, "Slurm", 4, 3,
      "{\"worker\":[\"r1n1:9\",\"r1n3:9\",\"r2n1:9\",\"r2n3:9\"]}" },
    { { "SLURM_PROCID", "0", "SLURM_NTASKS", "4", NULL }, "", 1, 0, "{}" },      /* a batch script */
    { { "PMI_RANK", "1", "PMI_SIZE", "2", NULL }, "PMI", 2, 1, "{\"worker\":[\"\",\"\"]}" },
    { { "TF_CONFIG", TASKED("{\"type\":\"worker\",\"index\":1}"), OMPI("1", "2"), NULL }, "TF_CONFIG", 2, 1,
     "{\"worker\":[\"a:1\",\"b:1\"]}" },
    /* Pods of an Indexed Job: the index counts where the task says none. */
    { { "TF_CONFIG", TASKED("{\"type\":\"worker\"}"), "JOB_COMPLETION_INDEX", "1", NULL }, "TF_CONFIG", 2, 1,
      "{\"worker\":[\"a:1\",\"b:1\"]}" },
    { { "TF_CONFIG", TASKED("{\"type\":\"worker\",\"index\":0}"), "JOB_COMPLETION_INDEX", "1", NULL }, "TF_CONFIG", 2, 0,
      "{\"worker\":[\"a:1\",\"b:1\"]}" },
    { { "JOB_COMPLETION_INDEX", "1", NULL }, "", 1, 0, "{}" },
    { { "CLUSTER_SPEC", POOLS("workerpool1"), NULL }, "CLUSTER_SPEC", 2, 1, "{\"chief\":[\"p0:2222\"],\"worker\":[\"p1:2222\"]}" },
    { { "CLUSTER_SPEC", POOLS("workerpool0"), NULL }, "CLUSTER_SPEC", 2, 0, "{\"chief\":[\"p0:2222\"],\"worker\":[\"p1:2222\"]}" },
    { { "CLUSTER_SPEC", POOLS("workerpool1"), "TF_CONFIG", TASKED("{\"type\":\"worker\",\"index\":1}"), NULL }, "TF_CONFIG", 2, 1,
      "{\"worker\":[\"a:1\",\"b:1\"]}" },
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    flow_cluster *cluster;
    char text[256];
    if (from(rows[i].variables, 1, &cluster) != FLOW_OK) fail_msg("row %d: %s", (int)i, flow_last_error());
    flow_cluster_text(cluster, text, sizeof text);
    assert_string_equal(text, rows[i].text);
    assert_string_equal(flow_cluster_source(cluster), rows[i].source);
    assert_int_equal(flow_cluster_workers(cluster), rows[i].workers);
    assert_int_equal(flow_cluster_id(cluster), rows[i].id);
    flow_cluster_release(cluster);
  }
  flow_cluster *cluster;
  assert_int_equal(from(rows[1].variables, 0, &cluster), FLOW_OK);      /* TF_CONFIG only */
  assert_int_equal(flow_cluster_workers(cluster), 1);
  flow_cluster_release(cluster);
}

static void test_launcher_mistakes(void **state)
{
  (void)state;
  static const struct { const char *variables[24], *parts[2]; } rows[] = {
    { { OMPI("3", "3"), NULL }, { "OMPI_COMM_WORLD_RANK is 3", "3 processes, from 0 to 2" } },
    { { OMPI("x", "3"), NULL }, { "OMPI_COMM_WORLD_RANK is \"x\"" } },
    { { "OMPI_COMM_WORLD_SIZE", "3", NULL }, { "OpenMPI started this process", "OMPI_COMM_WORLD_RANK is missing" } },
    { { "PMIX_NAMESPACE", "j", "PMIX_RANK", "0", NULL }, { "PMIX_SIZE is missing", "TF_CONFIG" } },
    { { "TF_CONFIG", TASKED("{\"type\":\"worker\",\"index\":0}"), OMPI("1", "2"), NULL }, { "worker:0 of 2", "process 1 of 2" } },
    { { "TF_CONFIG", TASKED("{\"type\":\"worker\",\"index\":0}"), OMPI("0", "4"), NULL }, { "worker:0 of 2", "process 0 of 4" } },
    { { "TF_CONFIG", TASKED("{\"type\":\"worker\"}"), NULL }, { "type \"worker\" but no index" } },
    { { "TF_CONFIG", TASKED("{\"type\":\"worker\"}"), "JOB_COMPLETION_INDEX", "2", NULL }, { "worker:2" } },
    { { "TF_CONFIG", TASKED("{\"type\":\"worker\"}"), "JOB_COMPLETION_INDEX", "x", NULL }, { "JOB_COMPLETION_INDEX is \"x\"" } },
    { { "CLUSTER_SPEC", POOLS("workerpool4"), NULL }, { "CLUSTER_SPEC", "\"workerpool4\"" } },
    { { SLURM("1", "4", "n[1-2]", "2(x2)"), "SLURM_NODEID", "1", "SLURM_LOCALID", "0", NULL }, { "process 1 is task 0 of host 1",
                                                                                                "task 1 of host 0" } },
    { { SLURM("1", "4", "n[1-2]", "1(x2)"), NULL }, { "4 tasks", "room for 2" } },
    { { SLURM("1", "4", "n[1-", "2(x2)"), NULL }, { "SLURM_STEP_NODELIST", "n[01-03,7]" } },
    { { SLURM("1", "4", "n[2-1]", "2(x2)"), NULL }, { "SLURM_STEP_NODELIST" } },
    { { SLURM("1", "4", "n1,n2", "2(y2)"), NULL }, { "SLURM_STEP_TASKS_PER_NODE" } },
    { { SLURM("1", "4", "n1,n2", "0,4"), NULL }, { "SLURM_STEP_TASKS_PER_NODE" } },
    { { SLURM("1", "2", "n1,n1", "1,1"), NULL }, { "same address" } },
    { { SLURM("1", "2", "n1,n2", "1,1"), "FLOW_PORT", "70000", NULL }, { "FLOW_PORT is 70000" } },
    { { "SLURM_STEP_NODELIST", "n1", "SLURM_PROCID", "0", "SLURM_STEP_NUM_TASKS", "2", NULL }, { "SLURM_JOB_ID", "missing" } },
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    flow_cluster *cluster;
    double before = flow_live_bytes();
    if (from(rows[i].variables, 1, &cluster) != FLOW_INVALID_ARGUMENT) fail_msg("row %d is taken", (int)i);
    assert_null(cluster);
    assert_true(flow_live_bytes() == before);
    for (int part = 0; part < 2 && rows[i].parts[part]; part++) {
      if (!strstr(flow_last_error(), rows[i].parts[part])) fail_msg("\"%s\" lacks \"%s\"", flow_last_error(), rows[i].parts[part]);
    }
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_roles), cmocka_unit_test(test_platforms), cmocka_unit_test(test_text_and_hash), cmocka_unit_test(test_mistakes),
    cmocka_unit_test(test_limits), cmocka_unit_test(test_no_memory), cmocka_unit_test(test_launchers),
    cmocka_unit_test(test_launcher_mistakes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
