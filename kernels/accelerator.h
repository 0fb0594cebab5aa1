/* accelerator.h: a device with its own memory, as the engine sees it. The engine runs kernels on the CPU; on an accelerator it enqueues
 * them. An accelerator comes as a plugin (libflow_cuda.so) whose table of functions is a flow_accelerator_table.
 *
 * Kernels of an accelerator are the same records as the CPU's (kernels.h), with these differences:
 *   - Every op is run as a whole, whatever its batch kind: the engine calls run(call, 0, 0, 1) once, with whole operands. phases, parts,
 *     prepare and scratch are not used; call->shared, if shared_bytes() asks for it, is a block in the device's memory, at a multiple of
 *     256 bytes.
 *   - call->queue is set when supports() and shared_bytes() are asked, too: what they choose may depend on the device. Both may take
 *     seconds the first time (a library compiles a plan) and are quick when asked about the same shapes again.
 *   - run enqueues on call->queue and returns; it does not wait. Operands and call->scalars point into the device's memory: scalars are
 *     read by the kernels on the device, so that a recorded step can be repeated with others. Attributes and shapes are host values.
 *   - What a CHECKS op finds wrong in the data is kept as the queue's fault and raised by the next synchronize. Until then effects that
 *     run on the queue write nothing, so that they can be enqueued without waiting.
 * All memory is the device's unless the word host is said. */
#ifndef FLOW_ACCELERATOR_H
#define FLOW_ACCELERATOR_H

#include <stdatomic.h>
#include "kernels.h"

typedef struct flow_accelerator flow_accelerator;
typedef struct flow_recording flow_recording; /* work that was recorded once, so that it can be enqueued in one call (a CUDA graph) */

enum { FLOW_ACCELERATOR_TEXT = 160 };

/* What a device was asked for since it was opened. A wait is a synchronize; each download is one more. Counted by any thread. */
typedef enum flow_traffic_kind {
  FLOW_TRAFFIC_UPLOADS, FLOW_TRAFFIC_UPLOADED_BYTES, FLOW_TRAFFIC_DOWNLOADS, FLOW_TRAFFIC_DOWNLOADED_BYTES, FLOW_TRAFFIC_WAITS,
  FLOW_TRAFFIC_REPLAYS, FLOW_TRAFFIC_KINDS
} flow_traffic_kind;
typedef struct flow_traffic { _Atomic int64_t counts[FLOW_TRAFFIC_KINDS]; } flow_traffic;
static inline void flow_traffic_count(flow_traffic *traffic, flow_traffic_kind kind, int64_t by)
{
  atomic_fetch_add_explicit(&traffic->counts[kind], by, memory_order_relaxed);
}

/* What a step that takes its batch itself finds in the device's memory: its scalars, and where in the order, or the tables, its rows
 * begin. */
typedef struct flow_batch_step { flow_scalars scalars; int64_t first; } flow_batch_step;
/* Rows of row_bytes each, one after the other. */
typedef struct flow_batch_table { const void *from; void *to; int64_t rows, row_bytes; } flow_batch_table;

typedef struct flow_accelerator_functions {
  /* A queue carries its work out in order; different queues know nothing of each other until one follows the other. One thread at a
   * time uses a queue and what was allocated on it. */
  flow_status (*queue_new)(const flow_accelerator *self, flow_queue **out);
  void        (*queue_release)(flow_queue *queue);                          /* waits for its work; NULL is fine */
  /* Everything enqueued on `queue` from now on happens after all that is enqueued on `other` so far. */
  flow_status (*follow)(flow_queue *queue, flow_queue *other);
  /* Waits. Fails with the queue's fault, which is forgotten then, or with what the device reports. */
  flow_status (*synchronize)(flow_queue *queue);

  /* FLOW_OUT_OF_MEMORY names what was asked for and what is free. Aligned to 256 bytes, contents undefined. Not while recording. Another
   * queue may use the memory once it follows this one. */
  flow_status (*allocate)(flow_queue *queue, size_t bytes, void **out);
  /* Kept for later allocations on this queue, which come after the work that still uses it: other queues' work with it has to be followed
   * first. NULL is fine. */
  void        (*release)(flow_queue *queue, void *memory);

  flow_status (*upload)(flow_queue *queue, void *to, const void *host, size_t bytes);      /* host memory may change once it returns */
  flow_status (*download)(flow_queue *queue, void *host, const void *from, size_t bytes);  /* waits; faults as synchronize */
  flow_status (*copy)(flow_queue *queue, void *to, const void *from, size_t bytes);        /* may not overlap */
  flow_status (*clear)(flow_queue *queue, void *to, size_t bytes);
  /* Writes `value`, converted to its dtype, to every element of `to`, which may have any strides. */
  flow_status (*fill)(flow_queue *queue, const flow_operand *to, double value);
  double      (*free_memory)(const flow_accelerator *self);                                /* bytes that allocate could give now, about */

  /* Steps that several devices make together or not at all. Each has votes[2] in its memory, cleared before the first step; the caller
   * enqueues approve, a sum of votes[0] over `all` of them, and require_approval. Where one has refused data before, or the sum was ended,
   * what is enqueued after that is refused on each, as by data of its own; the next synchronize fails with FLOW_ABORTED then. */
  flow_status (*approve)(flow_queue *queue, double *votes);
  flow_status (*require_approval)(flow_queue *queue, double *votes, int all);

  /* Copies rows of each table to where the table's `to` says: rows order[first] to order[first + rows - 1], of `order_count` in the order,
   * or, where order is NULL, rows first and so on; first is step->first, read on the device. A row that a table does not have is a
   * fault. */
  flow_status (*take_batch)(flow_queue *queue, const flow_batch_table *tables, int count, const int64_t *order, int64_t order_count,
                            int64_t rows, const flow_batch_step *step);

  /* Between the two nothing is carried out, only recorded; upload, download, allocate and synchronize are refused. Other queues that
   * follow this one are recorded with it, and must be followed by it before the end. Faults of a recording are kept by the queue on
   * which it began, wherever it is replayed. */
  flow_status (*record_begin)(flow_queue *queue);
  flow_status (*record_end)(flow_queue *queue, flow_recording **out);       /* after a failed call in between, too: *out NULL */
  flow_status (*replay)(flow_queue *queue, const flow_recording *recording);
  int         (*recording_nodes)(const flow_recording *recording);          /* how many launches and copies it is */
  void        (*recording_release)(flow_recording *recording);              /* NULL is fine */
} flow_accelerator_functions;

/* One device of the plugin. Made by open, alive to the end of the process, and read by any thread: nothing but the counts in `traffic`
 * changes. */
struct flow_accelerator {
  flow_device                       device;        /* name "gpu", isa "sm_90" */
  int index;                                       /* among those that this process may use, from 0 */
  const flow_accelerator_functions *functions;     /* the same for all devices of a plugin */
  double memory_bytes;                             /* of the whole device */
  char                              identity[FLOW_ACCELERATOR_TEXT];        /* tells devices apart, whichever processes use them */
  flow_traffic *traffic;                                                    /* of all its queues together */
  char                              description[FLOW_ACCELERATOR_TEXT];     /* "NVIDIA H200, sm_90, driver 13.0, cuDNN 9.19.0" */
};

/* What the plugin exports. */
typedef struct flow_accelerator_table {
  /* How many devices this process may use; 0 with a sentence in `why` that says what is missing. Asked once. */
  int         (*count)(char *why, size_t size);
  /* The same object for the same index, to the end of the process. FLOW_UNSUPPORTED for a device that is too old. */
  flow_status (*open)(int index, const flow_accelerator **out);
  const struct flow_transport *transport;      /* sums between devices (core/transport/transport.h); NULL: there is none */
} flow_accelerator_table;

#endif
