/* emulation.h: a CUDA runtime and NCCL that the CPU emulates, for tests on machines without a GPU: the plugin's own files run on them as
 * they run on NVIDIA's (kernels/cuda/runtime_*.c, nccl.c), with the same kernels. They are as unkind as the documentation allows:
 *   - Work is only noted down until somebody waits. Then streams take turns at random, and so do the nodes of a graph, blocks, and
 *     threads.
 *   - The device's memory is not readable by the host but while work is carried out: who takes a pointer of it for his own crashes.
 *     New memory holds NaNs. Pinned memory is read by a copy when it is carried out, and must be what it was when it was enqueued.
 *   - Every access of an op or a copy is compared with those of other streams: two that touch the same bytes, one of them writing, must be
 *     ordered by events, or by the host that waited, whether or not it went well this time. Who breaks that gets cudaErrorUnknown, whose
 *     text names both. Which bytes a kernel touches is told by the op's call (launches.c).
 *   - What CUDA refuses is refused: streams of another device than the current one, what is not allowed while streams are captured,
 *     memory that is out of a device's reach.
 *   - What a call needs a context for makes one for the thread's current device, which is the first one where nobody chose another. A
 *     kernel is loaded when it is first used on a device, which a capture does not survive. What ends a kernel ends its device's context:
 *     every later call gives that error.
 * There are no legacy stream, no allocations in graphs, and one dimension of blocks and threads.
 * FLOW_EMULATED_GPUS (2), FLOW_EMULATED_MEMORY (bytes of each, 2^30), FLOW_EMULATED_SEED (1) and FLOW_EMULATED_PROTECT=0 (memory stays
 * readable, for debuggers) are read once; FLOW_EMULATED_IDLE=1: kernels do nothing, and new memory is what it was, for who only counts
 * launches and bytes: then a device may have more memory than this machine; with FLOW_EMULATED_WIDTHS=1 beside it two blocks of each
 * launch are carried out, so that the widths of its loads and stores are counted (widths.c); FLOW_EMULATED_BOUNDS=1: a kernel touches
 * nothing but what its op was given, to the byte (bounds.c), and no two threads of a launch meet at a byte without a barrier (races.c),
 * which takes several times as long; FLOW_EMULATED_SHARED: another process that
 * is told the same has the same devices, as far as their places on the bus go. FLOW_EMULATED_NCCL=0: there is no NCCL.
 * FLOW_EMULATED_ONLY=N: a context on another device than N is refused. Everything happens under one lock; functions here are called with it
 * held unless they say otherwise. */
#ifndef FLOW_CUDA_EMULATION_H
#define FLOW_CUDA_EMULATION_H

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <pthread.h>
#include <stdint.h>
#include "base/status.h"
#include "kernels.h"

enum { EMULATED_DEVICES = 8, EMULATED_LANES = 64, EMULATED_TEXT = 512 };

#define EMULATED_TRY(call)                                       \
  do {                                                           \
    cudaError_t emulated_error_ = (call);                        \
    if (emulated_error_ != cudaSuccess) return emulated_error_;  \
  } while (0)

/* ---- devices and errors (devices.c) ---- */

void emulated_lock(void);
void emulated_unlock(void);
/* The lock, for a call that needs the context of the thread's current device: the function returns its error where there is one. */
#define EMULATED_BEGIN() EMULATED_TRY(emulated_begin())
cudaError_t emulated_begin(void);
/* The device's context, or why it has none, with the lock held. */
cudaError_t emulated_context(int device);
/* Every later call that needs the device's context gives this error. */
void emulated_end_context(int device, cudaError_t error);
/* Unlocks, and keeps an error as the thread's last one. Every function of the interface returns by it. */
cudaError_t emulated_leave(cudaError_t error);
/* cudaErrorUnknown with a text of the thread's: what CUDA would not find out. */
cudaError_t emulated_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *emulated_refusal(void);      /* that text */
int emulated_device(void);               /* the thread's current one */
int emulated_device_count(void);
uint64_t emulated_bus(int device);       /* its place, by which NCCL tells devices apart */
cudaError_t emulated_last_error(void);   /* as cudaPeekAtLastError */

/* ---- memory (memory.c) ---- */

typedef struct emulated_access {
  const char *from, *to;
  int         lane, write, op;           /* op: of ops.def, or EMULATED_COPY ... */
  int64_t     position;
} emulated_access;
enum { EMULATED_UPLOAD = -1, EMULATED_DOWNLOAD = -2, EMULATED_COPY = -3, EMULATED_CLEAR = -4, EMULATED_RELEASE = -5, EMULATED_SUM = -6 };

typedef struct emulated_accesses { emulated_access *list; int count, capacity; } emulated_accesses;

typedef struct emulated_block {
  char   *start;
  size_t  capacity, bytes;               /* bytes: that were asked for */
  int     lane;                          /* the stream that may use it again; -1: it is in use */
  cudaMemPool_t pool;                    /* NULL: of cudaMalloc */
  emulated_accesses accesses;
} emulated_block;

struct CUmemPoolHandle_st { int device, reached[EMULATED_DEVICES]; };      /* reached: by which devices */

cudaError_t emulated_memory_start(int device);
/* Makes the memory of all devices readable, and again not. */
void emulated_memory_open(void);
void emulated_memory_close(void);
int emulated_memory_is(const void *address);                               /* in a region of memory of any device */
void emulated_memory_reach(const char **from, const char **to);            /* all of those are in between */
emulated_block *emulated_memory_find(const void *address, int *device);    /* that the address is in; NULL: in none */
/* Adds `access` to the list, after it was compared with the others there: a conflict that `clock` does not order is refused. */
cudaError_t emulated_access_add(emulated_accesses *accesses, const int64_t *clock, const emulated_access *access);
/* An access of work that is enqueued on the stream next. The bytes must be in use, and within reach of the device. */
cudaError_t emulated_touch(cudaStream_t stream, const void *from, size_t bytes, int write, int op);
cudaError_t emulated_touch_from(cudaStream_t stream, const void *from, size_t bytes, int write, int op, int device);
/* An access that is part of a graph, which is launched on the stream next: within reach it was when it was captured. */
cudaError_t emulated_touch_again(cudaStream_t stream, const emulated_access *access);

/* ---- work (work.c) ---- */

typedef enum emulated_work_kind { WORK_KERNEL, WORK_COPY, WORK_SET, WORK_COLLECTIVE, WORK_WAIT, WORK_REPLAY } emulated_work_kind;

typedef struct emulated_nodes emulated_nodes;
typedef struct emulated_bounds emulated_bounds;

typedef struct emulated_work {
  emulated_work_kind kind;
  int             kernel;                /* KERNEL */
  unsigned        grid, block;
  int             byte;                  /* SET: every byte becomes that */
  int             lane;                  /* WAIT: until this lane */
  int64_t         count;                 /* KERNEL: elements or blocks; WAIT: has done this many; COLLECTIVE: elements */
  void           *to;
  const void     *from;                  /* COPY: the payload when it comes from pageable memory */
  size_t          bytes;
  void           *payload;               /* arguments of a kernel, bytes of an upload, state of a replay: the work's own */
  void           *expected;              /* COPY from pinned memory: what it held when it was enqueued; the work's own */
  emulated_bounds *bounds;               /* KERNEL: NULL, or what it may touch; the work's own */
  emulated_nodes *nodes;                 /* REPLAY: a reference */
  ncclComm_t      comm;                  /* COLLECTIVE: a reference */
  int             call, type, root;
} emulated_work;

/* A list of work that is done in order; positions count from the beginning of time. */
typedef struct emulated_lane {
  emulated_work *work;
  int     count, capacity, next;         /* next: first that is not done */
  int     stage;                         /* of that one, where it has several */
  int64_t base;                          /* position of work[0] */
  int64_t clock[EMULATED_LANES];         /* how much of every lane happens before what is added next */
  cudaError_t failure;                   /* of work or of calls whose results nobody looks at: told who waits */
  char    failure_text[EMULATED_TEXT];
} emulated_lane;

extern emulated_lane emulated_lanes[EMULATED_LANES];
extern int64_t emulated_host_clock[EMULATED_LANES];      /* what the host has waited for */

static inline int64_t emulated_done(const emulated_lane *lane) { return lane->base + lane->next; }
static inline int64_t emulated_total(const emulated_lane *lane) { return lane->base + lane->count; }

void emulated_merge(int64_t *clock, const int64_t *other);
void emulated_drop_work(emulated_work *work);      /* what is its own */
/* Takes over what is the work's own, also when it fails. */
cudaError_t emulated_add(emulated_lane *lane, const emulated_work *work);
void emulated_fail_lane(emulated_lane *lane, cudaError_t failure);      /* with the thread's text */
/* Carries out work, in random turns, until the lane has done this many (-1: until nobody has any left). 0: it cannot be, since ranks have
 * not come yet. */
int  emulated_carry_out(int lane, int64_t position);
/* The same however long it takes; the lock is given up meanwhile. */
void emulated_finish(int lane, int64_t position);

/* The nodes of a graph and of those who carry it out; they do not change once it was captured. */
typedef struct emulated_node { emulated_work work; int waits, first_next; } emulated_node;      /* waits: for how many others */
struct emulated_nodes {
  int            references, count, capacity, edge_count, edge_capacity;
  emulated_node *list;                   /* [count] has first_next alone */
  int           *edges;                  /* pairs: this one, then that one */
  int           *nexts;                  /* first_next of a node to that of the next one: who waits for it */
  emulated_accesses accesses;
};
cudaError_t emulated_nodes_add(emulated_nodes *nodes, const emulated_work *work, const int *behind, int count);
cudaError_t emulated_nodes_close(emulated_nodes *nodes);
void        emulated_nodes_release(emulated_nodes *nodes);
cudaError_t emulated_replay_start(emulated_nodes *nodes, emulated_work *replay);

/* ---- streams and events (streams.c) ---- */

typedef struct emulated_capture {
  int            references, ended, relaxed, branches;      /* references: of its streams, and of events recorded in them */
  cudaError_t    invalid;                /* why it cannot become a graph */
  pthread_t      thread;
  cudaStream_t   streams[EMULATED_LANES];      /* its branches; the first began it */
  emulated_nodes *nodes;
  int64_t        totals[EMULATED_LANES]; /* nodes that each branch has added */
  struct emulated_capture *next;         /* of those that go on */
} emulated_capture;

typedef struct emulated_tail { int *list, count, capacity; } emulated_tail;      /* nodes that the next one waits for */

struct CUstream_st {
  int               device, lane;
  emulated_capture *capture;             /* while it is captured: */
  int               branch;
  int64_t           clock[EMULATED_LANES];      /* of branches */
  emulated_tail     tail;
};

/* cudaErrorInvalidResourceHandle for what is not a stream. */
cudaError_t emulated_check_stream(cudaStream_t stream);
/* The same where the stream's device has to be the current one. */
cudaError_t emulated_check_current(cudaStream_t stream);
int64_t *emulated_clock(cudaStream_t stream);      /* what happens before what is enqueued next, by lanes or branches */
/* To the stream, or the graph that it is captured to. Takes over what is the work's own, also when it fails. */
cudaError_t emulated_enqueue(cudaStream_t stream, const emulated_work *work);

/* ---- graphs (graphs.c) ---- */

void emulated_capture_release(emulated_capture *capture);
/* Nothing comes of the capture any more. Returns the error. */
cudaError_t emulated_invalidate(emulated_capture *capture, cudaError_t error);
/* Refuses a call that is not safe while the thread captures. */
cudaError_t emulated_check_unsafe(void);
cudaError_t emulated_tail_join(emulated_tail *tail, const emulated_tail *other);
cudaError_t emulated_capture_work(cudaStream_t stream, const emulated_work *work);
/* The stream becomes part of a capture, or follows what is captured there. */
cudaError_t emulated_capture_follow(cudaStream_t stream, emulated_capture *capture, const int64_t *clock, const emulated_tail *tail);

/* ---- lists of what is captured (lists.c), to be called when it is, with the lock or without it ---- */

void emulated_list_recording(void);
void emulated_list_launch(const flow_call *call, int kernel, int64_t count, int bundled, const void *arguments, size_t size);
void emulated_list_node(int kernel, const void *arguments, int early);
void emulated_list_copy(size_t bytes);
void emulated_list_load(int kernel);
void emulated_list_widths(int kernel, int op, const size_t bytes[2][5]);
size_t emulated_shared_bytes(const flow_call *call);      /* what the variant that runs it has asked for */

/* ---- copies (copies.c) ---- */

/* The work's bytes where a copy reads from pinned memory are what they were. */
int emulated_is_as_expected(const emulated_work *work);

/* ---- sums between devices (nccl.c) ---- */

int  emulated_collective_can(const emulated_work *work, int stage);
int  emulated_collective_step(const emulated_work *work, int stage);      /* returns whether it is over */
void emulated_comm_retain(ncclComm_t comm);
void emulated_comm_release(ncclComm_t comm);
void emulated_comm_recorded(ncclComm_t comm, int more);      /* operations of it, that graphs hold */

/* ---- what launches may touch (bounds.c) ---- */

/* What a call may touch; NULL: everything, as unless FLOW_EMULATED_BOUNDS or FLOW_EMULATED_WIDTHS is 1. Without the lock, since it asks
 * libraries for plans. */
emulated_bounds *emulated_bounds_of(const flow_call *call);
/* Of the call that is about to be launched, which takes the bounds over. */
void emulated_bounds_note(const flow_call *call, int kernel, const void *arguments, size_t bytes, emulated_bounds *bounds);
void emulated_bounds_forget(cudaStream_t stream);            /* launches that were noted and failed */
/* What was noted of a launch; NULL: nothing, so it may touch everything. The caller's, by flow_free. */
emulated_bounds *emulated_bounds_take(cudaStream_t stream, int kernel, const void *arguments);
void emulated_bounds_enter(const emulated_bounds *bounds);   /* accesses from now on keep to them */
int  emulated_bounds_leave(void);                            /* whether they did not: the thread's text says what happened */

void emulated_bounds_break(void); /* something else is not as it must be, which the thread's text says */

int  emulated_bounds_op(const emulated_bounds *bounds);      /* the op whose launch it is */

/* ---- libraries (launches.c) ---- */

/* Without the lock: refuses a search for a plan while the thread captures. */
flow_status emulated_may_plan(void);

/* ---- threads that meet at the same bytes (races.c) ---- */

enum { EMULATED_ALL_THREADS = -1, EMULATED_SLACK = 4096 };
/* Whose accesses are carried out: of a launch, a block, between which of its barriers, and, where warps wait for their own threads, between
 * which of these waits. */
typedef struct emulated_place {
  uint32_t launch;
  int op, barrier, round, thread;
  int64_t block;
  const char *shared; /* the block's memory, with EMULATED_SLACK bytes of nobody's on both sides */
  size_t shared_bytes;
} emulated_place;
extern emulated_place emulated_here;

void emulated_races_begin(int op); /* another launch */
void emulated_races_block(int64_t block, const void *shared, size_t bytes);
void emulated_arrive(const void *counter, int is_last); /* arrival.h */
void emulated_together(void);                           /* all threads are here, not one of them: barriers, and what warps do (warps.h) */
/* An access of the present thread, to the device's memory or the block's. 0: it is a race, which the thread's text tells. */
int emulated_race_visit(const char *from, size_t bytes, int write);
int emulated_race_visit_shared(const char *from, size_t bytes, int write);

/* ---- how wide loads and stores are (widths.c): of accesses between begin and end ---- */

int  emulated_widths_wanted(void);
void emulated_widths_begin(void);
void emulated_widths_note(const char *from, size_t bytes, int write);      /* before it is written */
void emulated_widths_end(int kernel, int op);

/* ---- kernels (kernels.c, bodies.c) ---- */

typedef void element_function(const int64_t *indexes, int count, const void *arguments);
typedef void block_function(int phase, int thread, int64_t block, void *shared, const void *arguments);
typedef struct emulated_body { element_function *element; block_function *block; } emulated_body;      /* one of them */
extern const emulated_body emulated_bodies[], emulated_watched_bodies[], emulated_raced_bodies[];      /* [kernel] */

uint64_t emulated_random(uint64_t bound);          /* 0 to bound - 1 */
void     emulated_seed(uint64_t seed);
size_t   emulated_argument_bytes(int kernel);
void     emulated_kernel(const emulated_work *work);
int      emulated_is_idle(void);

#endif
