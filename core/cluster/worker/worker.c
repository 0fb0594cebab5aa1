/* worker.c: opens and closes a worker: who it is, the control plane, the transport.
 *
 * A generation, as a worker goes through it: flow_control_join waits until the chief begins one; flow_worker_connect opens the transport
 * with the tasks that take part, under a name that has the generation's number, so that a late message of an earlier one finds nobody;
 * then the program works; flow_worker_disconnect ends it. With a single worker there is no control plane and no transport, and all calls
 * here succeed at once.
 *
 * When a verdict comes. The control plane's thread calls take_verdict: `ended` stops a transport that is being opened, abort_transport
 * wakes the thread that waits in one. The program's call then fails, goes through flow_worker_explain, and returns the chief's sentence. */
#define _GNU_SOURCE                /* explicit_bzero */
#include "cluster/worker/worker.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/futex.h"
#include "base/memory.h"
#include "base/plugin.h"
#include "cluster/control/link.h"
#include "cluster/worker/worker_state.h"
#include "run/device/device_exchange.h"

static const double OPENING_WITHIN = 20;       /* seconds: all are there already */
static const int64_t UNHEARD_FOR = 2000000000; /* nanoseconds in which another worker that has failed says so, on a busy machine, too */

/* The names are those of tf.distribute.experimental.CommunicationImplementation, and MPI. */
typedef enum engine { AUTO, RING, MPI, NCCL } engine;
static const char *const engine_names[] = { "AUTO", "RING", "MPI", "NCCL" };

/* An option that is 0 has its default. */
static double otherwise(double value, double initial) { return value > 0 ? value : initial; }

void flow_worker_log(const flow_worker *worker, int level, const char *text)
{
  char line[1200], name[FLOW_TASK_NAME_SIZE];
  snprintf(line, sizeof line, "%s: %s", flow_task_name(worker->cluster->job, worker->cluster->index, name), text);
  flow_log(level, line);
}

static void log_line(void *state, const char *text) { flow_worker_log(state, FLOW_LOG_INFO, text); }

/* ---- the environment ----------------------------------------------------------------------------------------------------------------- */

/* The process's, except for what MPI has brought. */
static const char *get_variable(const void *state, const char *name)
{
  const flow_worker *worker = state;
  if (worker->secret[0] && strcmp(name, "FLOW_SECRET") == 0) return worker->secret;
  if (worker->secret[0] && strcmp(name, "FLOW_SECRET_FILE") == 0) return NULL;
  if (worker->descriptor[0] && strcmp(name, "FLOW_LISTEN_DESCRIPTOR") == 0) return worker->descriptor;
  return getenv(name);
}

/* ---- the engine ---------------------------------------------------------------------------------------------------------------------- */

/* An implementation of communication by its name, of any case; none or an empty one is AUTO. */
static flow_status find_engine(const char *name, engine *out)
{
  for (int i = 0; i < 4; i++) {
    *out = (engine)i;
    if (!name || !*name || strcasecmp(name, engine_names[i]) == 0) return FLOW_OK;
  }
  return flow_fail(FLOW_INVALID_ARGUMENT, "there is no implementation \"%s\" of communication: they are AUTO, RING, NCCL and MPI", name);
}

/* Whether the cluster says where its tasks are; if not, only its launcher knows (worker_launched.c). */
static int has_addresses(const flow_cluster *cluster)
{
  return flow_cluster_address(cluster, flow_cluster_chief_job(cluster), 0) != NULL;
}

/* Whether MPI_Init would find the other processes (plugins/mpi/process.c asks the same). */
static int was_launched(void)
{
  return getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMIX_RANK") || getenv("PMI_RANK");
}

/* "mpi" if it is asked for, or if nothing is and mpirun has started this process and the plugin is there; else "tcp". All workers have
 * the same environment in this respect, so they choose alike; flow_control_join compares. Where the cluster has no addresses MPI is the
 * only way to find the others, whether its plugin is there or not: opening it says what to install. */
static const char *choose_transport(const flow_worker *worker, engine wanted)
{
  const flow_plugin *plugin;
  if (wanted == NCCL) wanted = AUTO;      /* GPUs are connected later, by flow_device_group_connect; everything else goes this way */
  int mpi_finds_all = was_launched() && (!has_addresses(worker->cluster) || flow_plugin_open("mpi", &plugin) == FLOW_OK);
  return wanted == MPI || (wanted == AUTO && mpi_finds_all) ? "mpi" : "tcp";
}

static int is_mpi(const flow_worker *worker) { return strcmp(worker->transport, "mpi") == 0; }

/* ---- the store of a generation, for transports that look for their peers ------------------------------------------------------------- */

/* The store as transports see it (flow_transport_options), over the control plane. A value goes in one message, so that its size has a
 * limit. */
static flow_status store_set(void *state, const char *key, const void *bytes, size_t count)
{
  if (count > FLOW_MOST_VALUE) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "\"%s\" has %.0f bytes, at most %d fit into the store", key, (double)count, FLOW_MOST_VALUE);
  }
  return flow_control_set(((flow_worker *)state)->control, key, bytes, (uint32_t)count);
}

/* *bytes: a block that the caller frees. A key that nobody sets in time is FLOW_TIMED_OUT, which is what transports expect.
 * FLOW_MOST_VALUE bytes are taken for each, since the control plane writes into the caller's memory. */
static flow_status store_get(void *state, const char *key, double seconds, void **bytes, size_t *count)
{
  uint32_t found;
  FLOW_TRY(flow_alloc(FLOW_MOST_VALUE, bytes));
  flow_status status = flow_control_get(((flow_worker *)state)->control, key, seconds, *bytes, FLOW_MOST_VALUE, &found);
  *count = found;
  if (status == FLOW_OK) return FLOW_OK;
  flow_free(*bytes);
  *bytes = NULL;
  return status == FLOW_NOT_FOUND ? flow_fail_prefix(FLOW_TIMED_OUT, "%s", "") : status;
}

flow_store flow_worker_transport_store(flow_worker *worker) { return (flow_store){ store_set, store_get, worker }; }

/* The host of this process's address, without brackets and port. */
static void own_host(const flow_cluster *cluster, char host[FLOW_ADDRESS_SIZE])
{
  const char *address = flow_cluster_address(cluster, cluster->job, cluster->index);
  int bracket = address[0] == '[';
  snprintf(host, FLOW_ADDRESS_SIZE, "%.*s", (int)(strrchr(address, ':') - address) - 2 * bracket, address + bracket);
}

/* Opens worker->communicator: shared memory if all workers are on one machine, shared memory within machines and TCP between them if
 * there are several of each, else TCP between all, or MPI. Which it is follows from what the workers tell each other in the store. */
static flow_status open_transport(flow_worker *worker)
{
  char group[32], host[FLOW_ADDRESS_SIZE];
  const flow_store store = flow_worker_transport_store(worker);
  own_host(worker->cluster, host);
  snprintf(group, sizeof group, "g%.0f", (double)worker->generation.number);
  const flow_transport_options options = { .timeout = fmin(worker->timeout, OPENING_WITHIN), .group = group, .address = host,
                                          .store = &store, .ended = &worker->ended,
                                          .seal = worker->encrypts ? &worker->seal : NULL };
  const int rank = worker->exchange.worker, workers = worker->exchange.workers;
  /* TCP would connect each with each; MPI has found the others already. */
  if (!is_mpi(worker)) FLOW_TRY(flow_communicator_meet(rank, workers, &options, &worker->communicator));
  int wanted = worker->gradient_dtype == FLOW_FLOAT32;      /* sums through memory do not round */
  if (!is_mpi(worker) && !worker->communicator)
    FLOW_TRY(flow_communicator_meet_hosts(rank, workers, &options, wanted, &worker->communicator));
  if (!worker->communicator) FLOW_TRY(flow_communicator_open(worker->transport, rank, workers, &options, &worker->communicator));
  worker->communicator->timeout = worker->timeout;
  return FLOW_OK;
}

/* ---- a verdict of the control plane -------------------------------------------------------------------------------------------------- */

/* Nobody waits in the transport any longer. Returns whether there was one. */
static int abort_transport(flow_worker *worker, const char *text)
{
  pthread_mutex_lock(&worker->lock);
  int open = worker->aborts != NULL;
  if (open) flow_communicator_abort(worker->aborts, text);
  for (int i = 0; i < worker->device_count; i++) flow_device_exchange_abort(worker->devices[i], text);
  pthread_mutex_unlock(&worker->lock);
  return open;
}

/* For flow_control_watch, on the control plane's thread. The user sees a verdict once: as the failure of a call, or with the failure
 * that led to it. The log gets it only if the program computes for so long that no call has failed yet (log_unheard_verdict); it gets it at
 * once under mpirun, which may end a program before it says anything. */
static void take_verdict(void *state, const char *text)
{
  flow_worker *worker = state;
  __atomic_store_n(&worker->ended, 1, __ATOMIC_RELEASE);
  if (!abort_transport(worker, text)) return;
  if (was_launched()) {
    flow_worker_log(worker, FLOW_LOG_WARNING, text);
  } else if (!atomic_load(&worker->hears)) {
    snprintf(worker->verdict, sizeof worker->verdict, "%s", text);
    atomic_store(&worker->unheard_since, flow_now_nanoseconds());
  }
}

/* By the control plane's thread, several times a heartbeat. */
static void log_unheard_verdict(flow_worker *worker)
{
  int64_t since = atomic_load(&worker->unheard_since);
  if (since == 0 || flow_now_nanoseconds() - since < UNHEARD_FOR) return;
  if (atomic_compare_exchange_strong(&worker->unheard_since, &since, 0)) flow_worker_log(worker, FLOW_LOG_WARNING, worker->verdict);
}

/* Why this process cannot go on, or NULL: the engine does not come back, so that no verdict reaches a thread that waits in it. Looks
 * count, too: who was stopped for long has not waited. Said once. By the control plane's thread; `late_looks` begins again when a call
 * has come back, so that LOOKS of them follow each other. */
static const char *look_into_transport(flow_worker *worker)
{
  enum { LOOKS = 3 };
  pthread_mutex_lock(&worker->lock);
  double seconds = worker->aborts ? flow_communicator_inside(worker->aborts) : 0;
  const char *name = worker->aborts ? worker->aborts->transport->name : "";
  int late = seconds > worker->patience;
  worker->late_looks = late ? worker->late_looks + 1 : 0;
  int stuck = worker->late_looks == LOOKS;
  if (stuck) {
    snprintf(worker->stuck, sizeof worker->stuck, "a call of %s has not come back for %.0f s: did somebody else connect to the ports "
             "that it opens? They are for trusted networks", name, seconds);
  }
  pthread_mutex_unlock(&worker->lock);
  return stuck ? worker->stuck : NULL;
}

/* For flow_control_watch: what is looked at several times a heartbeat. If this process waits for a task that has finished its program,
 * that is the end of the wait. */
static const char *look_at_waiting(void *state, const char *finished, int behind)
{
  char text[500];
  flow_worker *worker = state;
  log_unheard_verdict(worker);
  const char *failure = flow_worker_failed_alone(worker, behind);
  if (failure) return failure;
  if (!flow_worker_waits_in_vain(worker, finished)) return look_into_transport(worker);
  snprintf(text, sizeof text, "%s has finished and takes no part any more: do all workers run the same program?", finished);
  abort_transport(worker, text);
  return NULL;
}

/* What is aborted from now on; a verdict may have come before. So the check comes after the pointer is set: a verdict either finds the
 * communicator or is found here. */
static flow_status set_aborts(flow_worker *worker, flow_communicator *communicator)
{
  int culprit;
  pthread_mutex_lock(&worker->lock);
  worker->aborts = communicator;
  pthread_mutex_unlock(&worker->lock);
  return communicator ? flow_control_check(worker->control, &culprit) : FLOW_OK;
}

/* ---- opening ------------------------------------------------------------------------------------------------------------------------- */

/* Opens the control plane and lets it watch this worker. `begun` is read by the control plane's thread at each heartbeat. */
static flow_status start_control(flow_worker *worker, const flow_worker_options *options)
{
  const flow_environment environment = { get_variable, worker };
  const flow_protocol_options protocol = { .job = options->job ? options->job : "", .version = flow_version(),
                                          .heartbeat = options->heartbeat, .dead_after = options->dead_after,
                                          .start_within = options->start_within, .rejoin_within = options->rejoin_within,
                                          .min_workers = options->min_workers, .shards = options->shards,
                                          .shrink_after = options->shrink_after };
  FLOW_TRY(flow_control_open(worker->cluster, &environment, &protocol, log_line, worker, &worker->control));
  flow_control_count(worker->control, &worker->begun);
  flow_control_watch(worker->control, worker->context, take_verdict, look_at_waiting, worker);
  return FLOW_OK;
}

/* What is open: tcp is not, where the workers share memory. What flow_worker_engine returns. */
static void name_engine(flow_worker *worker)
{
  int shared = flow_communicator_is_shared(worker->communicator), some = strcmp(worker->communicator->transport->name, "hosts") == 0;
  const char *name = some ? "tcp, shared memory" : !shared ? worker->transport : is_mpi(worker) ? "mpi, shared memory" : "shared memory";
  snprintf(worker->engine, sizeof worker->engine, "%s%s", name, worker->encrypts && !shared ? ", encrypted" : "");
}

/* The signature keeps workers from meeting that would use different transports. MPI stays open between the two calls of set_aborts:
 * flow_communicator_share replaces the communicator by one through shared memory, which owns the first. */
flow_status flow_worker_connect(flow_worker *worker, double step)
{
  char signature[FLOW_MOST_SIGNATURE];
  snprintf(signature, sizeof signature, "communication by %s", worker->transport);
  FLOW_TRY(flow_control_join(worker->control, step, signature, &worker->generation));
  flow_worker_set_apart(worker, worker->apart);
  if (worker->generation.count == 1) {
    snprintf(worker->engine, sizeof worker->engine, "nobody else");
    return FLOW_OK;
  }
  flow_control_progress(worker->control, worker->progress, "opening the transport");
  if (worker->communicator && strcmp(worker->communicator->transport->name, worker->transport) != 0) {
    flow_communicator_close(worker->communicator);
    worker->communicator = NULL;
  }
  if (!worker->communicator) FLOW_TRY(flow_worker_explain(worker, open_transport(worker)));
  FLOW_TRY(flow_worker_explain(worker, set_aborts(worker, worker->communicator)));
  if (is_mpi(worker)) {
    FLOW_TRY(flow_worker_explain(worker, flow_communicator_share(&worker->communicator)));      /* it owns what is aborted until now */
    FLOW_TRY(flow_worker_explain(worker, set_aborts(worker, worker->communicator)));
  }
  FLOW_TRY(flow_worker_explain(worker, flow_worker_compare_arithmetic(worker)));
  name_engine(worker);
  int rounds = strcmp(worker->communicator->transport->name, "tcp") == 0 && !worker->pairwise;
  worker->exchange.gradient_dtype = rounds ? worker->gradient_dtype : FLOW_FLOAT32;
  FLOW_TRY(flow_worker_explain(worker, flow_communication_start(worker->communicator, worker->pairwise, &worker->communication)));
  flow_control_progress(worker->control, worker->progress, "");
  return FLOW_OK;
}

/* GPUs first, since their queues may wait for others; the communication thread before its communicator; `aborts` before it is closed. */
void flow_worker_disconnect(flow_worker *worker)
{
  flow_worker_leave_devices(worker);
  flow_communication_stop(worker->communication);
  set_aborts(worker, NULL);
  flow_communicator_close(worker->communicator);
  worker->communication = NULL;
  worker->communicator = NULL;
}

/* A task that its launcher has given a socket needs no name to listen. */
static flow_status await_own_name(flow_worker *worker, const flow_worker_options *options)
{
  const char *address = flow_cluster_address(worker->cluster, worker->cluster->job, worker->cluster->index);
  if (!address || get_variable(worker, "FLOW_LISTEN_DESCRIPTOR")) return FLOW_OK;
  return flow_link_await_name(worker->context, address, otherwise(options->start_within, 300), log_line, worker);
}

/* The first generation. If it ended while it was being opened, and rejoining is wanted, the next one is waited for. */
static flow_status meet(flow_worker *worker, const flow_worker_options *options)
{
  if (!has_addresses(worker->cluster)) FLOW_TRY(flow_worker_meet_by_launcher(worker, otherwise(options->start_within, 300)));
  FLOW_TRY(await_own_name(worker, options));
  FLOW_TRY(start_control(worker, options));
  FLOW_TRY(flow_worker_prepare_seal(worker));
  flow_status status = flow_worker_connect(worker, -1);
  int culprit, over = status != FLOW_OK && status != FLOW_INTERRUPTED && flow_control_check(worker->control, &culprit) != FLOW_OK;
  int waits = options->rejoin_within > 0 && strcmp(worker->transport, "mpi") != 0 && !flow_control_has_ended(worker->control);
  return over && waits ? flow_worker_rejoin(worker, -1) : status;
}

/* 0 stands for the default everywhere; what does not fit together is told with both numbers. */
static flow_status check_options(const flow_worker_options *options)
{
  const struct { const char *name; double value; } times[] = {
    { "timeout_seconds", options->timeout_seconds }, { "start_within", options->start_within }, { "heartbeat", options->heartbeat },
    { "dead_after", options->dead_after }, { "rejoin_within", options->rejoin_within }, { "shrink_after", options->shrink_after },
  };
  for (int i = 0; i < 6; i++) {
    if (times[i].value >= 0 && times[i].value <= 1e6) continue;
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s is %g seconds; it must be from 0 (the default) to a million", times[i].name,
                     times[i].value);
  }
  double heartbeat = otherwise(options->heartbeat, 1), dead_after = otherwise(options->dead_after, 10);
  if (dead_after >= 2 * heartbeat) return FLOW_OK;
  return flow_fail(FLOW_INVALID_ARGUMENT, "dead_after is %g s and heartbeat %g s: a task is lost after two missing heartbeats at the "
                   "earliest", dead_after, heartbeat);
}

/* NULL: float32. */
static flow_status find_gradient_dtype(const char *name, int *out)
{
  static const int dtypes[] = { FLOW_FLOAT32, FLOW_BFLOAT16, FLOW_FLOAT16 };
  for (int i = 0; i < 3; i++) {
    *out = dtypes[i];
    if (!name || strcmp(name, flow_dtype_name(*out)) == 0) return FLOW_OK;
  }
  return flow_fail(FLOW_INVALID_ARGUMENT, "gradients travel as float32, bfloat16 or float16, got \"%.40s\"", name);
}

/* `shards` fixes the order of sums, and with it the bits of a result, for any number of workers up to it; that holds for pairwise sums
 * only. */
static flow_status check_shards(const flow_worker *worker, const flow_worker_options *options)
{
  int shards = options->shards, workers = worker->exchange.workers;
  if (shards < 0 || (shards & (shards - 1)) != 0 || (shards > 0 && !options->pairwise)) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "shards is a power of two and goes with pairwise, got %d and %d", shards, options->pairwise);
  }
  if (shards == 0 || workers <= shards || options->min_workers > 0) return FLOW_OK;
  return flow_fail(FLOW_INVALID_ARGUMENT, "%d workers cannot share %d shards: each has at least one", workers, shards);
}

/* What flow_worker_open does; a failure leaves the rest to flow_worker_close. The order: what needs nobody else is checked first, so
 * that a mistake is told at once and not after all tasks have come. */
static flow_status prepare(flow_worker *worker, flow_context *context, const flow_cluster *cluster, const flow_worker_options *options)
{
  engine wanted;
  void *block;
  FLOW_TRY(check_options(options));
  FLOW_TRY(find_engine(options->implementation, &wanted));
  FLOW_TRY(find_gradient_dtype(options->gradient_dtype, &worker->gradient_dtype));
  FLOW_TRY(flow_cluster_copy(cluster, &worker->cluster));
  if (worker->cluster->job != FLOW_JOB_PS) flow_cluster_remove(worker->cluster, FLOW_JOB_PS);      /* nobody waits for them */
  worker->context = context;
  worker->timeout = otherwise(options->timeout_seconds, 600);
  worker->patience = otherwise(options->dead_after, 10);
  flow_worker_set_exchange(worker);
  FLOW_TRY(check_shards(worker, options));
  worker->shards = options->shards;
  if (worker->exchange.workers == 1) return FLOW_OK;
  if (worker->exchange.worker < 0) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "this process is a parameter server, which takes no part in the sums of workers");
  }
  FLOW_TRY(flow_alloc((size_t)worker->exchange.workers * sizeof *worker->announcements, &block));
  worker->announcements = block;
  worker->transport = choose_transport(worker, wanted);
  worker->pairwise = options->pairwise;
  worker->elastic = options->min_workers > 0;
  if (worker->elastic && is_mpi(worker)) {
    return flow_fail(FLOW_UNSUPPORTED, "min_workers: MPI ends all ranks with the first one that is lost; use RING to go on with fewer");
  }
  return meet(worker, options);
}

/* The cluster is copied; the context has to live as long as the worker. Waits for the other tasks, up to start_within. */
flow_status flow_worker_open(flow_context *context, const flow_cluster *cluster, const flow_worker_options *options, flow_worker **out)
{
  void *block;
  if (!out || !context || !cluster) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_worker_open: %s is NULL", !out ? "out" : !context ? "context" : "cluster");
  }
  *out = NULL;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_worker), &block));
  flow_worker *worker = block;
  pthread_mutex_init(&worker->lock, NULL);
  worker->listener = -1;
  worker->forks = flow_fork_generation();
  flow_status status = prepare(worker, context, cluster, options ? options : &(flow_worker_options){ .job = NULL });
  if (status == FLOW_OK) *out = worker;
  else flow_worker_close(worker);
  return status;
}

/* ---- closing ------------------------------------------------------------------------------------------------------------------------- */

flow_status flow_worker_check_own(const flow_worker *worker)
{
  char name[FLOW_TASK_NAME_SIZE];
  if (!flow_worker_is_parents(worker)) return FLOW_OK;
  return flow_fail(FLOW_INVALID_STATE,
                   "this process was forked from %s, which alone takes part in the cluster: what all workers do "
                   "together belongs into the parent",
                   flow_task_name(worker->cluster->job, worker->cluster->index, name));
}

/* Without a goodbye the others see a lost task. The order: first nobody waits any more, then the transport ends, then the control plane.
 * In a forked child all of it is the parent's and stays unchanged, its memory too: threads of the parent were at work on it. */
void flow_worker_close(flow_worker *worker)
{
  if (!worker || flow_worker_is_parents(worker)) return;
  if (worker->monitor) flow_monitor_set_source(worker->monitor, NULL);
  if (!worker->orderly) {                               /* MPI's end would wait for the others, who may wait for this worker */
    abort_transport(worker, "this worker was closed");
    if (worker->communicator) flow_communicator_abort(worker->communicator, "this worker was closed");
  }
  flow_worker_disconnect(worker);
  flow_control_close(worker->control);
  if (worker->listener >= 0) close(worker->listener);
  flow_cluster_release(worker->cluster);
  flow_free(worker->announcements);
  flow_free(worker->devices);
  explicit_bzero(worker->secret, sizeof worker->secret);
  pthread_mutex_destroy(&worker->lock);
  flow_free(worker);
}

/* After it the others go on without a failure; what GPUs still add up with them is waited for first. */
flow_status flow_worker_goodbye(flow_worker *worker)
{
  if (!worker) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_worker_goodbye: worker is NULL");
  if (!worker->control || flow_worker_is_parents(worker)) return FLOW_OK;
  FLOW_TRY(flow_worker_check(worker));
  FLOW_TRY(flow_worker_settle_failure(worker));
  flow_worker_finish_devices(worker);
  FLOW_TRY(flow_control_goodbye(worker->control, 0));
  worker->orderly = 1;
  return FLOW_OK;
}

flow_status flow_worker_preempt(flow_worker *worker)
{
  if (!worker) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_worker_preempt: worker is NULL");
  return worker->control && !flow_worker_is_parents(worker) ? flow_control_goodbye(worker->control, 1) : FLOW_OK;
}

int flow_worker_was_preempted(flow_worker *worker)
{
  return worker && worker->control && !flow_worker_is_parents(worker) && flow_control_end(worker->control) == FLOW_END_PREEMPTED;
}

/* ---- what is known without asking the others ----------------------------------------------------------------------------------------- */

int flow_worker_count(const flow_worker *worker) { return worker ? worker->exchange.workers : 1; }
int flow_worker_rank(const flow_worker *worker) { return worker ? worker->exchange.worker : 0; }
const char *flow_worker_engine(const flow_worker *worker) { return worker ? worker->engine : ""; }

void flow_worker_progress(flow_worker *worker, double step, const char *doing)
{
  if (!worker || !worker->control || flow_worker_is_parents(worker)) return;
  worker->step_told = doing && *doing;
  worker->progress = step;
  flow_control_progress(worker->control, step, doing ? doing : "");
}

/* The sentence is the control plane's, which flow_control_check has left as this thread's message. */
flow_status flow_worker_check(flow_worker *worker)
{
  int culprit;
  if (!worker || !worker->control) return FLOW_OK;
  FLOW_TRY(flow_worker_check_own(worker));
  if (flow_control_check(worker->control, &culprit) == FLOW_OK) return FLOW_OK;
  flow_worker_hear(worker);
  return flow_fail_prefix(FLOW_ABORTED, "%s", "");
}
