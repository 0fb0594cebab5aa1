/* flow_types.h: a part of flow.h: the numbers and values that its functions speak of, and that kernels see, too. */
#ifndef FLOW_TYPES_H
#define FLOW_TYPES_H

#include <stddef.h>
#include <stdint.h>

enum { FLOW_ABI_VERSION = 1, FLOW_MAX_RANK = 8, FLOW_MAX_OPERANDS = 16, FLOW_MAX_COMPONENTS = 64 };

/* Classes of failure. The class is for programs, flow_last_error() is for people. */
typedef enum flow_status {
  FLOW_OK = 0,
  FLOW_INVALID_ARGUMENT,   /* a value the caller passed is wrong: shape, dtype, axis, option, label */
  FLOW_INVALID_STATE,      /* the call is right, the moment is not: a used-up trace, a closed handle */
  FLOW_OUT_OF_MEMORY,      /* nothing was changed; release something and try again */
  FLOW_NOT_FOUND,          /* a file, name or plugin is not there */
  FLOW_UNSUPPORTED,        /* Keras has it, flowlua does not (yet) */
  FLOW_CORRUPT_DATA,       /* a file's content contradicts its format */
  FLOW_IO_ERROR,           /* the operating system refused a read or write */
  FLOW_INTERRUPTED,        /* flow_interrupt() was called while the work ran */
  FLOW_ABORTED,            /* somebody else gave the common work up: another thread, another worker; the message has the reason */
  FLOW_TIMED_OUT,          /* somebody did not come in time */
  FLOW_INTERNAL            /* a fault of flowlua itself; please report it */
} flow_status;

typedef enum flow_dtype {
  FLOW_FLOAT32 = 0, FLOW_FLOAT16, FLOW_BFLOAT16, FLOW_FLOAT64,
  FLOW_INT8, FLOW_UINT8, FLOW_INT32, FLOW_INT64, FLOW_BOOL,
  FLOW_DTYPE_COUNT
} flow_dtype;

/* What flow_log's sink receives; FLOW_LOG_PRINT is text a Keras user expects on standard output (progress, summary). */
typedef enum flow_log_level { FLOW_LOG_PRINT = 0, FLOW_LOG_INFO, FLOW_LOG_WARNING } flow_log_level;

/* How copies of a variable on several replicas relate. */
typedef enum flow_sync { FLOW_MIRRORED = 0, FLOW_MEAN_ON_READ, FLOW_SUM_ON_READ } flow_sync;

typedef enum flow_activation { FLOW_LINEAR = 0, FLOW_RELU } flow_activation;

/* Of a convolution, a sum of these: its kernel; the gradient of its kernel. */
typedef enum flow_transposed { FLOW_TRANSPOSED_KERNEL = 1, FLOW_TRANSPOSED_GRADIENT = 2 } flow_transposed;

/* How images are resized and sampled; sampling knows the first two. */
typedef enum flow_interpolation {
  FLOW_NEAREST = 0, FLOW_BILINEAR, FLOW_BICUBIC, FLOW_AREA, FLOW_LANCZOS3, FLOW_LANCZOS5
} flow_interpolation;
/* What is outside of an image abcd: dcba|abcd|dcba, abcd|abcd|abcd, kkkk|abcd|kkkk, aaaa|abcd|dddd. */
typedef enum flow_fill_mode { FLOW_FILL_REFLECT = 0, FLOW_FILL_WRAP, FLOW_FILL_CONSTANT, FLOW_FILL_NEAREST } flow_fill_mode;

/* Attributes of one op call: the member named after the op's family counts, the rest stays zero. A NULL pointer
 * means all zero. `flow_op_doc(op)` says which member an op reads. */
typedef union flow_attributes {
  struct { int32_t dtype; } cast;
  struct { int32_t rank; int32_t unused; int64_t dims[8]; } shape;                 /* reshape, broadcast_to, fill, random_* (see random) */
  struct { int32_t count; int32_t keepdims; int32_t axes[8]; int32_t base; } reduce; /* axes from 0; count 0 = all axes; argmax adds base */
  struct { int32_t rank; int32_t axes[8]; } transpose;                             /* output axis i is input axis axes[i] */
  struct { int32_t axis; } axis;                                                   /* softmax, concat; -1 is the last */
  /* argsort, cumsum, take_along; size: of the gradient's axis, of argsort's */
  struct { int32_t axis, reverse, exclusive, base; int64_t size; } along;
  struct {
    int64_t size, count;
    int32_t inverse, unused;
  } fourier; /* the line's length; entries of a result; + instead of - */
  /* lower: of solve_triangle; transposed: of a; full: all of Q, or of U and V */
  struct {
    int32_t lower, transposed, full, unused;
  } matrix;
  /* from 0, end exclusive (beyond the end = the end), step >= 1; dims: of the gradient's output */
  struct { int32_t rank; int32_t unused; int64_t begin[8], end[8], step[8], dims[8]; } slice;
  /* activation: of the fused op `dense`; swapped: made by plans of the CPU, flow_swapped, what lies in memory as {..., rows, k, columns} */
  struct { int32_t transpose_a, transpose_b, activation, swapped; } matmul;
  struct {
    int32_t stride[2], dilation[2], padding[4];   /* height, width; top, bottom, left, right */
    int32_t groups, activation;                   /* activation: flow_activation, applied after the bias */
    int32_t pool[2], pool_stride[2];              /* fused max pooling without padding; pool[0] = 0: none */
    int32_t has_bias;
    int32_t input_size[2];                        /* gradients: height and width of the forward input */
    double  input_scale;                          /* forward: what the input is multiplied with; 0: nothing */
    int32_t transposed;                           /* made by plans: flow_transposed, what is stored as {out, height, width, in} */
    double  input_low, input_high;                /* of quantized_convolution: the range of x; of y, which is float32 where both are 0 */
    double  low, high;
    /* made by plans of the CPU: what a result without a pool is at most (0: no limit); pointwise_...: of separable_convolution */
    int32_t pointwise_activation, pointwise_has_bias;
    double ceiling, pointwise_ceiling;
  } convolution;
  /* the range of which byte 0 is the low end, 255 the high one */
  struct { double low, high; } quantization;
  /* back: {out, height, width, in} to {height, width, in, out} */
  struct { int32_t dtype, back; } transpose_filters;
  struct { int32_t size[2], stride[2], padding[4]; int32_t input_size[2]; } pool;
  /* height, width; input_size: of gradients, the forward input's */
  struct { int32_t size[2], input_size[2], interpolation, antialias; } resize;
  struct { int32_t interpolation, fill_mode; double fill_value; } sampling;         /* FLOW_NEAREST or FLOW_BILINEAR; flow_fill_mode */
  /* keyed by (seed, stream, the run's seed unless own_seed, step, sample, element) */
  struct {
    double rate;
    uint64_t seed, stream;
    int32_t own_seed;
  } dropout;
  /* normal: mean low, stddev high; own_seed: of ops that are keyed by the step, the run's seed does not count */
  struct {
    int32_t rank, dtype;
    int64_t dims[8];
    double low, high;
    uint64_t seed, stream;
    int32_t keyed_by_step, own_seed;
  } random;
  struct {
    double epsilon;
    int32_t axis, uncentered;
  } normalization;
  /* reverse: from the last step to the first; history: outputs what the gradient needs; reset_after: of gru */
  struct { int32_t reverse, history, reset_after; } recurrent;
  /* made by flow_loop_end: which of its graph's loops; a key of the random ops inside, besides theirs */
  struct { int32_t number, unused; uint64_t stream; } loop;
  struct {
    double momentum, beta_1, beta_2, epsilon, rho;
    double weight_decay;                          /* parameters lose weight_decay x learning rate of themselves first */
    int32_t nesterov, amsgrad, centered;
    int32_t products;                             /* made by fusion: this many pairs x {k,m}, g {k,n} come after the other inputs; */
    int64_t first[4];                             /* x^T g is the gradient of the elements from first[i] on, input 0 that of the rest */
    int32_t copies, unused;                       /* made by plans of devices: this many pairs of a part of w and its 16-bit copy, which
                                                   * the update writes, too, come before the factors */
  } optimizer;
  struct { int32_t kind; } schedule;                                               /* index of the schedule's class */
  struct { double value; int32_t rank, dtype; int64_t dims[8]; } fill;
  /* operand i is register i, step s writes register (inputs + s), rounded to dtype */
  struct {
    int32_t count;
    struct {
      int16_t op;
      uint8_t inputs[3], dtype;
    } steps[32];
  } fused;
} flow_attributes;

#endif
