/* core/data: the input pipeline: where training data comes from, without Lua in the loop. sources/ begin a pipeline, transformations/
 * are its stages. Uses image, io, and run for the functions of map().
 *
 * Reading order: dataset.h (this contract), dataset.c, iterator.c; then one file per stage, simple ones first: slices, range,
 * take, batch, shuffle, repeat; then threads.h (waiting, forking), map, prefetch, interleave; generator (Lua as a source).
 *
 * dataset    an immutable, reference-counted description: a class over its inputs, with the signature of its elements and
 *            their number. Making one computes nothing and opens no file.
 * element    up to FLOW_MAX_COMPONENTS tensors. The receiver of an element owns its references (flow_element_clear); the values
 *            are shared and never written to. Text (a path, a record) is a uint8 tensor of rank 1 whose component says `text`.
 * iterator   one pass over a dataset, for one caller. It holds what belongs to the pass as a whole: seeds, position,
 *            cancelling, requests to Lua.
 * cursor     one stage of one pass: the class's own state over cursors of its inputs. A cursor is used by one thread at a time.
 *
 * How to write a stage: a C file core/data/transformations/<stage>.c with a struct that begins with flow_dataset (its parameters), a struct
 * that begins with flow_cursor (its state), one const flow_dataset_class, and a constructor that calls flow_dataset_new and
 * sets spec and cardinality (both begin as those of the first input). next() pulls from its inputs with flow_cursor_pull.
 *
 * The position of a pass is what random stages drew when they opened (flow_cursor_draw) plus the number of elements that were
 * delivered. Restoring opens with the same draws and skips that number, which every stage passes on without computing what it
 * need not. So next() must be a function of parameters, draws, and what comes in; and skip(n) must leave the cursor as n calls
 * of next() would have. That makes positions exact by construction. */
#ifndef FLOW_DATA_DATASET_H
#define FLOW_DATA_DATASET_H

#include <stdatomic.h>
#include <string.h>
#include "base/memory.h"
#include "base/philox.h"
#include "tensor/tensor.h"

typedef struct flow_dataset_class flow_dataset_class;
typedef struct flow_cursor flow_cursor;
struct flow_draw;

enum { FLOW_INFINITE = -1, FLOW_UNKNOWN = -2 };      /* cardinalities that are not numbers */
enum { FLOW_MAX_STAGES = 256 };                      /* stages of a pipeline whose counters are kept; more are possible */

typedef struct flow_element_spec {
  int            count;
  flow_component components[FLOW_MAX_COMPONENTS];
} flow_element_spec;

/* Of with_options: FLOW_SHARD_*, and whether map and interleave keep the order of elements. */
typedef struct flow_data_options { int auto_shard_policy, deterministic; } flow_data_options;

/* Does not change once its constructor has given it away, but for `references` and `draws`; any number of threads and
 * iterators use it. The struct of a class begins with it; its parameters follow. */
struct flow_dataset {
  const flow_dataset_class *class;
  _Atomic int        references;
  int                input_count;
  flow_dataset     **inputs;             /* references */
  flow_element_spec  spec;
  int64_t            cardinality;
  int64_t            batch_rows;         /* rows of the elements but the last ones, as a stage that makes batches said; 0: not known */
  flow_dataset      *original;           /* a copy over other inputs (auto_shard.c): whose parameters it shares; a reference */
  int                is_hint;            /* a shard whose numbers a distributed run puts in */
  int                shard_hint;         /* it or an input is such a shard */
  int opens_files;                       /* it makes a data set that reads files of each element: interleave (auto_shard.c) */
  int                calls_back;         /* it or an input needs answers from Lua (generator.c) */
  int                stage_count;        /* itself and the stages of its inputs, at most FLOW_MAX_STAGES */
  uint64_t           identity;           /* of classes and parameters: equal pipelines have equal ones */
  flow_data_options  options;
  int                any_random;         /* it or an input may be random: where passes look for draws; flow_dataset_set_random sets both */
  int                random;             /* its cursors call flow_cursor_draw when they open */
  uint64_t           seed[2];            /* if it is random: constant for the dataset */
  _Atomic int64_t    draws;              /* if it is random: passes that drew so far, over all iterators */
};

struct flow_dataset_class {
  const char *name;
  size_t      dataset_bytes, cursor_bytes;      /* of the structs that begin with flow_dataset and flow_cursor; zeroed */
  /* NULL: nothing to do. Opens the inputs (flow_cursor_open); NULL opens them all. After a failure close() is called. */
  flow_status (*open)(flow_cursor *cursor);
  /* Gives the next element; out->count is 0 on entry and stays 0 at the end of the data, then and in every later call. After
   * an error, which may leave components in `out` for the caller to release, the next call goes on after the element that failed, where
   * the stage can. */
  flow_status (*next)(flow_cursor *cursor, flow_element *out);
  /* Leaves out up to `count` elements; *skipped is less only at the end. NULL: pulls them and throws them away. */
  flow_status (*skip)(flow_cursor *cursor, int64_t count, int64_t *skipped);
  /* Stops threads and frees what the cursor holds, before its inputs are closed. Must work after a failed open. */
  void        (*close)(flow_cursor *cursor);
  void        (*release)(flow_dataset *dataset);      /* frees parameters; NULL: none */
  /* Caches: whether elements of an earlier pass are kept, and what `below` drew for them (pair and number). NULL: no cache. */
  int         (*kept)(flow_dataset *dataset, const flow_dataset *below, struct flow_draw *out);
  /* For auto_shard.c. The same stage over another input; NULL: a copy of the struct does, whose parameters belong to the original. */
  flow_status (*again)(const flow_dataset *dataset, flow_dataset *input, flow_dataset **out);
  /* Readers: the same over every count-th file from number `index` on. NULL: it has no files. */
  /* FLOW_NOT_FOUND: there is no file for each worker. */
  flow_status (*shard_files)(const flow_dataset *dataset, int64_t count, int64_t index, flow_dataset **out);
  int         passes_on;                             /* its elements are those of its one input, the same tensors */
  int reorders;                                      /* these in another order, and nothing else */
  int         keeps_elements;                        /* gives the same values at the same address in every pass, as long as it lives */
  int         ends_pipeline;                         /* comes after the shard of a worker: prefetch, options */
};

struct flow_cursor {
  flow_dataset  *dataset;          /* borrowed from the iterator's dataset, or a reference if `owns` */
  flow_iterator *iterator;
  flow_cursor  **inputs;           /* [dataset->input_count]; NULL while not open */
  int            owns;
  int            position;         /* in the list of stages of flow_iterator_stage; -1: made on the way */
  struct flow_batch_slots *batch_slots; /* where its elements would best be written: the consumer's (batch_slots.h); NULL: anywhere */
  struct flow_stage_counters *counters;      /* iterator.h; NULL: made on the way */
};

/* ---- datasets ------------------------------------------------------------------------------------------------------- */

/* A new dataset of the class over references to these inputs; spec, cardinality and options start as the first input's. */
flow_status   flow_dataset_new(const flow_dataset_class *class, flow_dataset *const *inputs, int count, flow_dataset **out);
/* FLOW_INVALID_ARGUMENT unless it is a dataset; `what` names the call. */
flow_status   flow_check_dataset(const char *what, const flow_dataset *dataset);

/* A number as bits that differ from those of every other number. */
static inline uint64_t flow_number_bits(double number)
{
  uint64_t bits;
  memcpy(&bits, &number, sizeof bits);
  return bits;
}
/* Whether it or an input reads files by a class that has shard_files. auto_shard.c */
int flow_dataset_reads_files(const flow_dataset *dataset);
/* Mixes a parameter that elements depend on into the dataset's identity. */
void          flow_dataset_identify(flow_dataset *dataset, uint64_t parameter);
/* Its cursors draw when they open: from this pair of seeds. */
void          flow_dataset_set_random(flow_dataset *dataset, double seed, double seed2);

/* ---- elements and their signatures ------------------------------------------------------------------------------------ */

/* flow_element_clear (flow.h) releases the tensors; count becomes 0. */
void          flow_element_move(flow_element *to, flow_element *from);   /* to was empty; from becomes empty */
void          flow_element_share(flow_element *to, const flow_element *from);   /* new references */
/* FLOW_INVALID_ARGUMENT if the element is not what the spec says; `what` names who made it. */
flow_status   flow_element_check(const char *what, const flow_element_spec *spec, const flow_element *element);
/* Whether there can be such a component: dtype and rank exist, and texts are bytes along the last axis. */
int           flow_component_is_valid(const flow_component *component);
/* The spec of components that a caller describes, which it may do wrongly. */
flow_status   flow_spec_of(const char *what, const flow_component *components, int count, flow_element_spec *out);
int           flow_spec_equal(const flow_element_spec *a, const flow_element_spec *b);
/* The least special spec that covers both: dimensions that differ become -1. 0 if dtypes, ranks or counts differ. */
int           flow_spec_join(flow_element_spec *into, const flow_element_spec *other);
const char   *flow_component_text(const flow_component *component);   /* float32 {None, 28} */
/* A text as an element's tensor; new reference. */
flow_status   flow_text_tensor(const char *text, size_t length, flow_tensor **out);

/* ---- cursors ------------------------------------------------------------------------------------------------------------ */

/* Opens a dataset as part of a pass; owns: the cursor takes a reference to it. */
flow_status   flow_cursor_new(flow_iterator *iterator, flow_dataset *dataset, int owns, flow_cursor **out);
void          flow_cursor_close(flow_cursor *cursor);      /* NULL is fine */
/* Opens input number `index` of this cursor, afresh if it is open (the next epoch). */
flow_status   flow_cursor_open(flow_cursor *cursor, int index);
flow_status   flow_cursor_open_all(flow_cursor *cursor);
/* The next element; out is cleared first, and is empty after a failure, whatever the stage's next() left in it. */
flow_status   flow_cursor_pull(flow_cursor *cursor, flow_element *out);
flow_status   flow_cursor_skip(flow_cursor *cursor, int64_t count, int64_t *skipped);
/* What skip() may fall back to: pulls and throws away. */
flow_status   flow_cursor_skip_by_pulling(flow_cursor *cursor, int64_t count, int64_t *skipped);

/* What a random stage draws when it opens: the dataset's seed pair and the number of this pass over it (0, 1, ... over all
 * iterators of the dataset; a repeated dataset opens once an epoch). Kept in the iterator's position. */
typedef struct flow_draw { uint64_t seed[2]; int64_t number; } flow_draw;
flow_status   flow_cursor_draw(flow_cursor *cursor, flow_draw *out);

#endif
