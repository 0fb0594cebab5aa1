/* library_formulas.h: which products and convolutions a library is asked for. */
#ifndef FLOW_CUDA_LIBRARY_LIBRARY_FORMULAS_H
#define FLOW_CUDA_LIBRARY_LIBRARY_FORMULAS_H

#include <stddef.h>
#include <stdint.h>

typedef enum flow_library_direction {
  FLOW_LIBRARY_FORWARD,        /* y = x * w (+ bias) (then relu) */
  /* dx of dy and w (+ addend) (then 0 where x, the result of a relu, is not positive) (and its sums over pixels) */
  FLOW_LIBRARY_DATA,
  FLOW_LIBRARY_FILTER          /* dw of x and dy */
} flow_library_direction;

/* Activations are NHWC, filters {channels out, kernel height, kernel width, channels in / groups}, all contiguous and of one dtype; bias
 * {channels out}. In arrays of two, [0] is height and [1] is width. */
typedef struct flow_library_convolution {
  int32_t direction, dtype;
  int32_t bias, relu;                       /* DATA: the sums, the gradient of that relu's bias, only with the relu */
  int32_t exact;                            /* float32: no tensor cores, whose products have 10 bits */
  int32_t groups;
  int32_t add, unused;                      /* DATA: what is added to dx, only with the relu */
  int64_t images, channels_in, channels_out;
  int64_t in[2], out[2], kernel[2], stride[2], dilation[2];
  int64_t before[2], after[2];              /* zero padding: top and left, bottom and right */
} flow_library_convolution;

/* c = a b (+ bias) (then relu): row-major matrices, `batch` of them, b's and a's at their strides (0: the same one each time). a is m x k,
 * or k x m if it is transposed; b is k x n or n x k; c is m x n, contiguous. bias {n}. dtype: of a, b and bias. */
typedef struct flow_library_product {
  int32_t dtype, bias, relu, exact;
  int32_t transpose_a, transpose_b;
  int32_t result_dtype, unused;             /* of c: dtype, or float32 */
  int64_t m, n, k, batch, stride_a, stride_b;   /* strides in elements */
  int64_t alignment;                            /* every operand begins at a multiple of this many bytes */
} flow_library_product;

/* What a library's fast algorithms need. Parameters have no gaps between them: a product of some has an alignment of one element. */
enum { FLOW_LIBRARY_ALIGNMENT = 16 };

/* One line, such as "convolution forward float32 bias=1 ... ", and back. Text of a formula of another kind is not a formula: 0. Products
 * are read as aligned ones. */
enum { FLOW_LIBRARY_TEXT = 320 };
void flow_library_convolution_text(const flow_library_convolution *convolution, char *text, size_t size);
void flow_library_product_text(const flow_library_product *product, char *text, size_t size);
int  flow_library_convolution_parse(const char *text, flow_library_convolution *out);
int  flow_library_product_parse(const char *text, flow_library_product *out);

#endif
