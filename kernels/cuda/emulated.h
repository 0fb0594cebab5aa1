/* emulated.h: a device that the CPU emulates, for tests on machines without a GPU: the same kernels, tables and order of events as on the
 * real one, made as unkind as the contract of accelerator.h allows:
 *   - Work is only noted down until somebody waits. Then queues take turns at random, and so do elements, threads and blocks.
 *   - The device's memory is not readable by the host but while work is carried out: who takes a pointer of it for his own crashes.
 *     New memory holds NaNs.
 *   - Every access of an op or a copy is compared with those of other queues: two that touch the same bytes, one of them writing, must be
 *     ordered by follow or synchronize, whether or not it went well this time. Who breaks that gets FLOW_INTERNAL with both named.
 * FLOW_EMULATED_GPUS (2), FLOW_EMULATED_MEMORY (bytes of each, 2^30), FLOW_EMULATED_SEED (1) and FLOW_EMULATED_PROTECT=0 (memory stays
 * readable, for debuggers) are read once; FLOW_EMULATED_NCCL=0 and FLOW_EMULATED_SHARED say what emulated_nccl.c finds. Everything happens
 * under one lock. */
#ifndef FLOW_CUDA_EMULATED_H
#define FLOW_CUDA_EMULATED_H

#include "cuda/bundling.h"
#include "cuda/device_table.h"
#include "cuda/launch.h"

enum { EMULATED_DEVICES = 8, EMULATED_LANES = 64 };

typedef struct emulated_device emulated_device;

/* ---- work (emulated_work.c) ---- */

typedef struct emulated_rank emulated_rank;

typedef enum emulated_work_kind {
  WORK_LAUNCH, WORK_COPY, WORK_SET, WORK_SEND, WORK_RECEIVE, WORK_WAIT, WORK_REPLAY
} emulated_work_kind;

typedef struct emulated_work {
  emulated_work_kind kind;
  int             kernel, byte;          /* LAUNCH; SET: every byte becomes `byte` */
  int             lane;                  /* WAIT: until this lane */
  int             dtype;                 /* RECEIVE: of the elements */
  int64_t         count;                 /* LAUNCH: elements or blocks; WAIT: has done so many; RECEIVE: elements */
  void           *to;
  const void     *from;                  /* COPY: payload when it comes from the host */
  size_t          bytes;
  void           *payload;               /* arguments of a launch, bytes of an upload, lanes of a replay: the work's own */
  flow_recording *recording;             /* REPLAY: a reference */
  emulated_rank  *rank;                  /* SEND, RECEIVE: a reference */
} emulated_work;

/* A list of work that is done in order; positions count from the beginning of time. */
typedef struct emulated_lane {
  emulated_work *work;
  int     count, capacity, next;         /* next: first that is not done */
  int64_t base;                          /* position of work[0] */
  int64_t clock[EMULATED_LANES];         /* how much of every lane happens before what is added next */
} emulated_lane;

static inline int64_t emulated_done(const emulated_lane *lane) { return lane->base + lane->next; }
static inline int64_t emulated_total(const emulated_lane *lane) { return lane->base + lane->count; }

/* Takes over the payload and the reference, also when it fails. */
flow_status emulated_add(emulated_lane *lane, const emulated_work *work);
/* Carries out work of `count` lanes, in random turns, until lane `index` has none left (-1: until none has). 0: all that is left waits for
 * ranks that have not come yet. */
int  emulated_carry_out(emulated_lane *lanes, int count, int index);
void emulated_forget_done(emulated_lane *lane);    /* frees what is done; positions stay */
void emulated_drop_work(emulated_lane *lane);      /* forgets all of it, done or not, and its memory */
/* The lanes of a replay that begins. */
flow_status emulated_start_replay(const flow_recording *recording, void **out);

/* ---- sums between devices (emulated_nccl.c) ---- */

extern const struct flow_transport emulated_nccl_transport;

int  emulated_may_send(const emulated_rank *rank);
void emulated_send(emulated_rank *rank, const void *data, size_t bytes);
int  emulated_may_receive(const emulated_rank *rank);
void emulated_receive(emulated_rank *rank, int dtype, void *data, int64_t count);
void emulated_rank_recorded(emulated_rank *rank, int more);      /* sums of it, that a recording holds */
void emulated_rank_retain(emulated_rank *rank);
void emulated_rank_release(emulated_rank *rank);

/* ---- kernels (emulated_kernels.c) ---- */

uint64_t emulated_random(uint64_t bound);          /* 0 to bound - 1 */
void     emulated_seed(uint64_t seed);
size_t   emulated_argument_bytes(int kernel);
/* All elements or blocks, in random order. */
void     emulated_kernel(int kernel, int64_t count, const void *arguments);

/* ---- memory (emulated_memory.c) ---- */

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
  int     lane;                          /* the queue that may use it again; -1: it is in use */
  emulated_accesses accesses;
} emulated_block;

typedef struct emulated_memory {
  char   *region;
  size_t  size, used;                    /* used: up to here there were blocks */
  emulated_block **blocks;               /* in order of addresses */
  int     count, capacity;
} emulated_memory;

flow_status emulated_memory_start(emulated_memory *memory, size_t size);
/* Makes the memory of all devices readable; they are nested. */
void emulated_memory_open(emulated_memory *memory);
void emulated_memory_close(emulated_memory *memory);
/* A block of this lane's or a new one; FLOW_NOT_FOUND (no message): there is no room. */
flow_status emulated_memory_take(emulated_memory *memory, int lane, size_t bytes, emulated_block **out);
void emulated_memory_forget(emulated_memory *memory, int lane);      /* gives the lane's free blocks up; -1: everybody's */
emulated_block *emulated_memory_find(const emulated_memory *memory, const void *address);
size_t emulated_memory_held(const emulated_memory *memory, int free_ones);   /* bytes in use, or kept for later */

/* Adds `access` to the list, after it was compared with the others there: a conflict that `clock` does not order is an error. */
flow_status emulated_access_add(emulated_accesses *accesses, const int64_t *clock, const emulated_access *access);
const char *emulated_access_name(int op);

/* ---- lists of what is recorded (emulated_launches.c) ---- */

void emulated_list_recording(void);
void emulated_list_launch(const flow_call *call, int kernel, int64_t count, int bundled, const void *arguments, size_t size);
void emulated_list_copy(const flow_queue *queue, size_t bytes);

/* ---- the accelerator (emulated.c) ---- */

struct flow_queue {
  emulated_device *device;
  int              slot;                 /* its lane */
  flow_recording  *recording;            /* work is added to its lane `branch` meanwhile */
  int              branch;
  flow_status      failure;              /* of a call that can return none */
  char             failure_text[512];
  flow_fault       fault;
  flow_cuda_bundle *bundle;              /* small launches that are recorded together */
};

struct flow_recording {
  int               references, broken, count, nodes;
  emulated_lane     lanes[EMULATED_LANES];
  flow_queue       *queues[EMULATED_LANES];    /* that are recorded, until the end */
  emulated_accesses accesses;
  emulated_device  *device;
};

void emulated_recording_release(flow_recording *recording);
void emulated_lock(void);
void emulated_unlock(void);
void emulated_work_off(void);                     /* whatever can be done, locked */
flow_status emulated_enqueue_sum(flow_queue *queue, emulated_rank *rank, int dtype, void *data, int64_t count, size_t bytes);
const char *emulated_identity(const flow_queue *queue);      /* of its device */

#endif
