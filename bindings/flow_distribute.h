/* flow_distribute.h: a part of flow.h, which includes it: several processes that train together. Types and conventions are explained
 * there. */
#ifndef FLOW_DISTRIBUTE_H
#define FLOW_DISTRIBUTE_H

/* ---- clusters ---------------------------------------------------------------------------------------------------------
 * Who takes part in a training and which task this process is, from TF_CONFIG or from a launcher's environment. Tasks are a job and
 * an index from 0. An empty cluster is a single worker that is its own chief. */

typedef enum flow_job { FLOW_JOB_CHIEF = 0, FLOW_JOB_WORKER, FLOW_JOB_PS, FLOW_JOB_EVALUATOR, FLOW_JOB_COUNT } flow_job;

/* From TF_CONFIG; with_launchers: where it says nothing, from what mpirun or srun left in the environment. task_type (NULL: none) and
 * task_index (-1: none) replace what TF_CONFIG says of this process. FLOW_INVALID_ARGUMENT names both sides of a contradiction. */
FLOW_API flow_status flow_cluster_from_environment(int with_launchers, const char *task_type, int task_index, flow_cluster **out);
/* From a text like TF_CONFIG's. source: what messages call it. */
FLOW_API flow_status flow_cluster_parse(const char *text, double bytes, const char *source, const char *task_type, int task_index,
                                        flow_cluster **out);
FLOW_API void        flow_cluster_release(flow_cluster *cluster);                           /* NULL is fine */
FLOW_API const char *flow_cluster_source(const flow_cluster *cluster);                      /* borrowed: "TF_CONFIG", "Slurm", "" */
FLOW_API const char *flow_job_name(int job);                                                /* static; NULL: not a flow_job */
FLOW_API int         flow_cluster_job(const flow_cluster *cluster);                         /* of this process; -1: not said */
FLOW_API int         flow_cluster_index(const flow_cluster *cluster);                       /* of this process; -1: not said */
FLOW_API int         flow_cluster_count(const flow_cluster *cluster, int job);              /* of the job's tasks */
/* borrowed "host:port"; NULL: only the launcher knows it */
FLOW_API const char *flow_cluster_address(const flow_cluster *cluster, int job, int index);
/* the job whose task 0 is this process's chief */
FLOW_API int         flow_cluster_chief_job(const flow_cluster *cluster);
FLOW_API int         flow_cluster_is_chief(const flow_cluster *cluster);
/* chiefs and workers; of an evaluator: evaluators */
FLOW_API int         flow_cluster_workers(const flow_cluster *cluster);
/* this process among the workers; -1: a parameter server */
FLOW_API int         flow_cluster_id(const flow_cluster *cluster);
/* The cluster as JSON in one way only: equal clusters give equal texts. Returns the whole length. */
FLOW_API int         flow_cluster_text(const flow_cluster *cluster, char *text, int size);
/* 16 hexadecimal digits that tell clusters apart; returns 16. */
FLOW_API int         flow_cluster_hash(const flow_cluster *cluster, char *text, int size);

/* ---- workers ----------------------------------------------------------------------------------------------------------
 * This process as one of several that train together: it knows that the others live, and adds up with them. A call that fails because
 * somebody is gone says who, with address and step, and everything that follows fails with the same sentence. One thread at a time
 * makes calls that wait; the others may come from any thread. All workers make the same calls in the same order. */

typedef struct flow_worker_options {
  const char *implementation;   /* "AUTO" "RING" "MPI" "NCCL"; NULL: AUTO */
  double timeout_seconds;       /* how long a call may wait for workers that are alive; 0: 600 */
  double start_within;          /* seconds in which all tasks have to come; 0: 300 */
  double heartbeat, dead_after; /* seconds between signs of life, and after how many without one a task is lost; 0: 1 and 10 */
  const char *job;              /* the same in all tasks: keeps two jobs apart that have the same addresses; NULL: "" */
  /* seconds in which all tasks have to come back for a further generation (flow_worker_rejoin); 0: 600. Above 0 flow_worker_open, too,
   * waits for one that is lost meanwhile */
  double rejoin_within;
  /* what gradients travel as between machines, the same in all tasks: "float32", "bfloat16", "float16"; NULL: float32 */
  const char *gradient_dtype;
  /* min_workers above 0: a generation may begin with this many workers, the chief among them, where the others have not been there for
   * shrink_after seconds (0: 5); who comes later takes part in the next one, for which flow_worker_let_in and steps make room. RING only.
   * shards, with pairwise: how many replicas all workers have together, a power of two, which also limits the number of workers. 0: each
   * has the same number. */
  int min_workers, shards;
  double shrink_after;
  /* nonzero, the same in all tasks: numbers are added up in the order of a balanced tree over the workers, whatever carries them */
  int pairwise;
} flow_worker_options;

/* Waits until all tasks of the cluster are there; flow_log has a line with the own address, and every 5 s one with who is missing. context:
 * its interrupt flag ends waiting, here and later; it outlives the worker. The cluster is copied. A cluster of one worker waits for nobody.
 * Tasks listen on their own address until close. FLOW_IO_ERROR: that cannot be; FLOW_INVALID_STATE: somebody did not come, or does not fit;
 * the message says who. FLOW_NOT_FOUND: the others went on without this worker, and have finished. */
FLOW_API flow_status flow_worker_open(flow_context *context, const flow_cluster *cluster, const flow_worker_options *options,
                                      flow_worker **out);
/* Ends at once; without goodbye the others see a lost task. NULL is fine. */
FLOW_API void        flow_worker_close(flow_worker *worker);
/* This worker cannot go on: soon all calls of all workers fail with its name and this reason. Waits a moment until they know; close comes
 * next. */
FLOW_API flow_status flow_worker_fail(flow_worker *worker, const char *why);
/* No more calls; waits until all tasks have said so. */
FLOW_API flow_status flow_worker_goodbye(flow_worker *worker);
/* This process is to end (flow_preempt), though the work is not done: the others' calls fail with its name and that reason,
 * flow_worker_was_preempted tells them so, and they may wait for it to come back. Waits for nobody; close comes next. */
FLOW_API flow_status flow_worker_preempt(flow_worker *worker);
/* Whether the generation ended because a worker was preempted, not because one was lost. */
FLOW_API int         flow_worker_was_preempted(flow_worker *worker);

/* What holds for this generation: neither number changes before flow_worker_rejoin. */
FLOW_API int         flow_worker_count(const flow_worker *worker);       /* of workers that take part */
FLOW_API int         flow_worker_rank(const flow_worker *worker);        /* among them; from 0, which is the chief */
/* How many of the options' shards this worker has, and the first of them, from 0; 0: the options have none. The first workers have twice as
 * many as the others where their number is not a power of two. */
FLOW_API int         flow_worker_shards(const flow_worker *worker, int *first);
/* The number of the worker with this rank among all workers of the cluster; -1: no worker has this rank. */
FLOW_API int         flow_worker_task(const flow_worker *worker, int rank);
/* "worker:1 10.0.0.2:2222": borrowed, until the thread has asked for three more; "" where there is no such worker. */
FLOW_API const char *flow_worker_name(const flow_worker *worker, int rank);
/* borrowed: what carries the sums: "tcp", "mpi"; "": a single worker */
FLOW_API const char *flow_worker_engine(const flow_worker *worker);
/* whether all workers are on one machine and hand bytes through memory */
FLOW_API int         flow_worker_shares_memory(const flow_worker *worker);
/* whether all workers compute with the same instructions; else FLOW_GATHERS_MESSAGES would let their variables drift apart */
FLOW_API int         flow_worker_computes_alike(const flow_worker *worker);
/* What the others see of this worker: heartbeats and failures tell it. */
FLOW_API void        flow_worker_progress(flow_worker *worker, double step, const char *doing);
/* FLOW_OK while all are alive; else FLOW_ABORTED, whose message names the lost ones. Waits for nothing. */
FLOW_API flow_status flow_worker_check(flow_worker *worker);

/* Bytes to all: the chief's, or those of the worker `from`. */
FLOW_API flow_status flow_worker_broadcast(flow_worker *worker, void *data, double bytes);
FLOW_API flow_status flow_worker_broadcast_from(flow_worker *worker, int from, void *data, double bytes);
/* The same of the elements of a tensor on the host, which lie one after the other. */
FLOW_API flow_status flow_worker_broadcast_tensor(flow_worker *worker, int from, flow_tensor *tensor);
/* Each worker gives the same number of bytes; all gets count x bytes, in order of the ranks. */
FLOW_API flow_status flow_worker_all_gather(flow_worker *worker, const void *mine, double bytes, void *all);
/* Returns when all tasks are there; FLOW_TIMED_OUT names those that did not come. */
FLOW_API flow_status flow_worker_barrier(flow_worker *worker, const char *name);
/* Fails on all workers with FLOW_INVALID_ARGUMENT, both names and the first difference unless all have the same text. what: "the model",
 * for the message. */
FLOW_API flow_status flow_worker_agree(flow_worker *worker, const char *what, const char *text);
/* How many calls the workers have begun together, steps of training included: it tells places of a program that all run. */
FLOW_API double      flow_worker_calls(const flow_worker *worker);
/* Whether the chief has begun a common call to which this worker has not come yet, or has said goodbye: it publishes nothing more in this
 * place of the program. It is known a heartbeat later. Of the chief, and a single worker, 0. */
FLOW_API int flow_worker_chief_is_ahead(flow_worker *worker);
/* Leaves a text of at most 65536 bytes for all workers, in place of what was there under this key; waits for the chief's control plane, not
 * for the others. "": takes it away. All keys and texts together have a limit of 4 MiB: FLOW_INVALID_STATE. */
FLOW_API flow_status flow_worker_publish(flow_worker *worker, const char *key, const char *text);
/* Copies the text, cut at size - 1 bytes, and waits at most this many seconds until there is one: FLOW_NOT_FOUND if there is none, which
 * is not a failure of the cluster; FLOW_ABORTED as from everything else. */
FLOW_API flow_status flow_worker_lookup(flow_worker *worker, const char *key, double within, char *text, int size);

/* ---- workers that come back -------------------------------------------------------------------------------------------
 * When a worker is lost the generation ends: every call of the others fails with FLOW_ABORTED. They may keep process, model and optimizer,
 * and wait for the next generation, in which all tasks of the cluster are again. A worker that was started again finds by
 * flow_worker_newest that others have trained already; it goes its way apart from them until it is where they wait, and takes over the
 * newest state. */

/* After a failure that flow_worker_check reports, too: waits until all tasks are there again, at most rejoin_within seconds, and connects
 * to them. No call and no step is under way. step: how far the state of this worker is, by a count that all workers increase alike; -1: it
 * has no state. Keys and texts of publish are gone, calls are counted from 0, and groups of devices have to be connected again.
 * FLOW_ABORTED: they did not come, or the chief has finished; FLOW_NOT_FOUND: they went on without this one, and have finished;
 * FLOW_UNSUPPORTED: under MPI, which ends all ranks with the first one. */
FLOW_API flow_status flow_worker_rejoin(flow_worker *worker, double step);
/* Whether the generation ended because a worker came, so that the next one is larger, and not because one was lost. */
FLOW_API int         flow_worker_has_grown(flow_worker *worker);
/* Up to flow_worker_hold(worker, 0) the generation does not end for a worker that has come; calls nest. */
FLOW_API void        flow_worker_hold(flow_worker *worker, int holds);
/* A place where all workers can pause, as the beginning of each step is. FLOW_ABORTED at the chief, and soon everywhere: a worker has come,
 * and flow_worker_rejoin comes next. */
FLOW_API flow_status flow_worker_let_in(flow_worker *worker);
/* The worker that had the newest state when the generation began, and its step: -1, and worker 0, where nobody had trained yet. */
FLOW_API int         flow_worker_newest(const flow_worker *worker, double *step);
/* apart: from here on calls and steps are those of a single worker, whose rank is 0, and reach nobody; 0: no longer. Instances are
 * replicated for one or the other: none is used for both. */
FLOW_API void        flow_worker_set_apart(flow_worker *worker, int apart);

/* ---- parameter servers ------------------------------------------------------------------------------------------------
 * Channels between parameter servers, which listen, and workers, which ask. A message is a text of at most 60000 bytes, sealed where there
 * is a secret (FLOW_SECRET), and bytes after it, which are not; each is answered by one. What they mean is the callers'. One thread at a
 * time calls. */

/* A message, or, with `left`, the loss of a peer that had sent one (text: why). text and bytes: borrowed until the next call of
 * flow_server_next. */
typedef struct flow_server_event { int peer, left; const char *text; char *bytes; double count; } flow_server_event;

/* Listens on this process's address; it is a task of the job ps. context: its interrupt flag ends waiting; it outlives the server.
 * FLOW_INVALID_ARGUMENT: another job, or no secret on a network; FLOW_IO_ERROR: it cannot listen. */
FLOW_API flow_status flow_server_open(const flow_context *context, const flow_cluster *cluster, flow_server **out);
/* Sends what was answered, for at most two seconds, and ends all connections. NULL is fine. */
FLOW_API void        flow_server_close(flow_server *server);
/* The next message, in turns. FLOW_TIMED_OUT: none came within these seconds; FLOW_INTERRUPTED. */
FLOW_API flow_status flow_server_next(flow_server *server, double within, flow_server_event *out);
/* Answers a peer's message with `count` pieces of the given sizes, which are copied. If the peer is lost, nothing is sent: FLOW_OK. */
FLOW_API flow_status flow_server_reply(flow_server *server, int peer, const char *text, int length, const void *const *pieces,
                                       const int64_t *bytes, int count);
/* Opens memory that a peer on this machine has made; where: its name, which the peer sent. From then on bytes of messages travel through
 * it, in both directions, if they fit. */
FLOW_API flow_status flow_server_share(flow_server *server, int peer, double bytes, const char *where);
/* A message has at most this many bytes after its text (1 MiB at first); a peer that announces more is dropped. */
FLOW_API void        flow_server_limit(flow_server *server, double bytes);

/* A worker's connection to ps:index, before it is reached. */
FLOW_API flow_status flow_server_link_open(const flow_context *context, const flow_cluster *cluster, int index, flow_server_link **out);
/* Connects; waits at most `within` seconds until the server is there. FLOW_TIMED_OUT: it is not yet; another call goes on where this one
 * was. */
FLOW_API flow_status flow_server_link_reach(flow_server_link *link, double within);
FLOW_API void        flow_server_link_close(flow_server_link *link);         /* NULL is fine */
/* Sends a message; the bytes are copied. FLOW_ABORTED, as from await, with its name and address: the server is lost. */
FLOW_API flow_status flow_server_link_send(flow_server_link *link, const char *text, int length, const void *const *pieces,
                                           const int64_t *bytes, int count);
/* If the next answer has as many bytes as these places have, they go there as they come, and flow_server_link_answer gives NULL for them;
 * else as without. Said before the message is sent; the places are borrowed until all is there, and hold part of the bytes after a
 * failure. */
FLOW_API flow_status flow_server_link_expect(flow_server_link *link, char *const *at, const int64_t *bytes, int count);
/* Waits until each of these links, to which a message was sent, has its answer. FLOW_TIMED_OUT, FLOW_ABORTED, FLOW_INTERRUPTED; the
 * last one also a second after flow_preempt, if no answer has come. */
FLOW_API flow_status flow_server_links_await(flow_server_link *const *links, int count, double within);
/* The text of the answer, and its `count` bytes: borrowed until the next message. */
FLOW_API const char *flow_server_link_answer(const flow_server_link *link, char **bytes, double *count);
/* Makes memory for messages, which the server opens by what is written to `where`, before it answers the next message. bytes 0: takes it
 * away again, since the server could not. FLOW_UNSUPPORTED: this process cannot. */
FLOW_API flow_status flow_server_link_share(flow_server_link *link, double bytes, char *where, int size);

/* ---- watching a training ----------------------------------------------------------------------------------------------
 * Pages over HTTP, for GET only, from their own thread: / for people, /status as JSON, /metrics as Prometheus reads it. Strangers that talk
 * to it cost little; it has no secret: loopback addresses are for this machine alone. */

typedef struct flow_monitor flow_monitor;

/* address: "127.0.0.1:8080"; port 0: a free one. FLOW_IO_ERROR: it cannot listen there. */
FLOW_API flow_status flow_monitor_open(const char *address, flow_monitor **out);
/* The port on which it listens, also if the operating system chose it. */
FLOW_API int         flow_monitor_port(const flow_monitor *monitor);
/* What it shows from now on of the program: an object of JSON, under "training", and lines of metrics. Both are copied. */
FLOW_API flow_status flow_monitor_say(flow_monitor *monitor, const char *json, const char *metrics);
/* And of the cluster of this worker (NULL: none), until one of the two is closed: its tasks, and whom it waits for. */
FLOW_API flow_status flow_monitor_watch(flow_monitor *monitor, flow_worker *worker);
FLOW_API void        flow_monitor_close(flow_monitor *monitor);              /* NULL is fine */

#endif
