/* core/tensor: n-dimensional arrays: dtypes, storage, views, element access, text. No arithmetic: that is core/ops. Uses base, and of
 * kernels the headers. Called by every room above it, and by Lua through the C API (flow.h, "dtypes and tensors").
 *
 * A tensor is a view (shape, strides, first element) onto a reference-counted storage, or symbolic: a stand-in for a value of a graph
 * under construction, without storage. Tensors are immutable except for flow_tensor_set/fill/copy/write.
 *
 * Ownership. `out` is always a new reference, which flow_tensor_release gives back; on failure it is NULL. A view keeps its storage
 * alive, a storage its place. References are counted atomically, so that any thread may retain and release; contents are not locked: a
 * writer makes sure that no thread reads the tensor meanwhile. */
#ifndef FLOW_TENSOR_TENSOR_H
#define FLOW_TENSOR_TENSOR_H

#include <stdatomic.h>
#include "base/counted.h"
#include "base/status.h"

struct flow_graph;      /* begins with a flow_counted */

typedef struct flow_place flow_place;     /* memory of a device: place.h */
typedef struct flow_mirror flow_mirror;   /* a copy at another place: mirrors.h */

typedef struct flow_storage {
  _Atomic int references;
  void       *data;
  size_t      bytes;
  int borrowed;                /* data belongs to the caller of flow_tensor_borrow, or to `owner` */
  flow_counted *owner;         /* of memory that other processes see, too; a reference. NULL: nobody else sees it */
  flow_place *place;           /* whose memory it is, a reference; NULL: the host's. Nothing else may be read through data */
  flow_mirror *mirrors;
  uint64_t    writes;          /* how often it was written to, for mirrors */
  /* version of the content, for caches of what follows from it: another number after each write, which no other storage has; 0: others than
   * this library have its address, and may write at any time */
  _Atomic uint64_t content;
} flow_storage;

enum { FLOW_TENSOR_MAGIC = 0x464c5754, FLOW_TENSOR_DEAD = 0x44454144 };

struct flow_tensor {
  uint32_t           magic;       /* FLOW_TENSOR_MAGIC while alive: the API's check against stale handles */
  _Atomic int        references;
  int                dtype, rank;
  int64_t            shape[FLOW_MAX_RANK];
  int64_t            strides[FLOW_MAX_RANK];   /* elements; 0 on broadcast axes */
  flow_storage      *storage;     /* NULL when symbolic */
  char              *data;        /* first element, inside storage */
  struct flow_graph *graph;       /* symbolic: the graph (a reference) ... */
  int                value;       /* ... and the value in it */
  flow_tensor       *mask;        /* which of its steps count, as a layer said of its output (layers/masks.h); NULL: all. A reference */
};

/* Releases `count` tensors, of which some may be NULL, and puts NULL in their places. */
void flow_tensors_release(flow_tensor **tensors, int count);

/* Number of elements; -1 on overflow or a negative dimension. */
int64_t flow_shape_size(int rank, const int64_t *shape);
/* Row-major strides of a shape, in elements. */
void    flow_contiguous_strides(int rank, const int64_t *shape, int64_t *strides);
int     flow_shape_equal(int rank_a, const int64_t *a, int rank_b, const int64_t *b);

/* FLOW_INVALID_ARGUMENT unless rank and dims are in range and dtype exists; dims may be 0. */
flow_status flow_check_shape(const char *what, int dtype, int rank, const int64_t *shape);

/* A tensor whose memory is not zeroed: for ops, which write every element. */
flow_status flow_tensor_new_uninitialized(int dtype, int rank, const int64_t *shape, flow_tensor **out);
/* The same in the memory of a place; NULL: the host. */
flow_status flow_tensor_new_at(flow_place *place, int dtype, int rank, const int64_t *shape, flow_tensor **out);
/* A flat tensor over memory of the host that others see, too, and that lives as long as a reference to `owner`, which this takes. Nothing
 * is to be written to it but by them all together (graph/variable_group.h). */
flow_status flow_tensor_new_shared(flow_counted *owner, void *data, int dtype, int64_t size, flow_tensor **out);
/* Where a concrete tensor is, borrowed; NULL: on the host, or symbolic. */
static inline flow_place *flow_tensor_place(const flow_tensor *tensor) { return tensor->storage ? tensor->storage->place : NULL; }

/* The same as flow_tensor_data for the library itself, which may keep on using what follows from the contents: to be read, or to be written
 * before anything was derived from them. */
void *flow_tensor_elements(const flow_tensor *tensor);
/* The elements where they can be read, with the tensor's strides: itself on the host, else a copy. New reference. transfer.c */
flow_status flow_tensor_on_host(const flow_tensor *tensor, flow_tensor **out);
/* The same without gaps between the elements. */
flow_status flow_tensor_on_host_contiguous(const flow_tensor *tensor, flow_tensor **out);
/* The elements at a place (NULL: the host), contiguous: itself where it is so, else a copy. New reference. */
flow_status flow_tensor_at(const flow_tensor *tensor, flow_place *place, flow_tensor **out);
/* flow_tensor_copy where one of the two is not on the host; shapes are checked. */
flow_status flow_tensor_copy_between(flow_tensor *to, const flow_tensor *from);
/* flow_tensor_fill for a tensor that is not on the host. */
flow_status flow_tensor_fill_at_place(flow_tensor *tensor, double value);
/* A symbolic tensor for a value of a graph; retains the graph, which begins with a flow_counted. Shape may hold negative dims. */
flow_status flow_tensor_new_symbolic(struct flow_graph *graph, int value, int dtype, int rank, const int64_t *shape, flow_tensor **out);


/* FLOW_INVALID_ARGUMENT for NULL or a released tensor, FLOW_INVALID_STATE for a symbolic one ("has no value while the
 * function is traced"); `what` names the argument. */
flow_status flow_check_tensor(const char *what, const flow_tensor *tensor);
flow_status flow_check_concrete(const char *what, const flow_tensor *tensor);
/* FLOW_INVALID_STATE also for one whose elements are on a device: for functions that read or write through tensor->data. */
flow_status flow_check_on_host(const char *what, const flow_tensor *tensor);

/* dtype facts: see dtype.c */
int flow_dtype_is_float(int dtype);
int flow_dtype_is_integer(int dtype);     /* not bool */

/* Conversion of n elements, `step` elements apart in from, packed in to; saturating from float to integer. */
void flow_convert_to_double(int dtype, const void *from, int64_t step, double *to, int64_t n);
void flow_convert_from_double(int dtype, const double *from, void *to, int64_t step, int64_t n);

/* Scalar conversions of the two 16-bit floats, round to nearest even. */
float    flow_half_to_float(uint16_t half);
uint16_t flow_float_to_half(float value);
static inline float flow_bfloat16_to_float(uint16_t b) { union { uint32_t u; float f; } v = { .u = (uint32_t)b << 16 }; return v.f; }
static inline uint16_t flow_float_to_bfloat16(float value)
{
  union { float f; uint32_t u; } v = { .f = value };
  if ((v.u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((v.u >> 16) | 0x40u);   /* NaN stays a NaN */
  return (uint16_t)((v.u + 0x7fffu + ((v.u >> 16) & 1u)) >> 16);
}

#endif
