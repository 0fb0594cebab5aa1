/* copy.c: strided copies. Axes are put in the order of the destination's memory and merged; what is left is walked as
 * planes of rows x columns, and a plane is copied as runs, as a blocked transposition, or element by element. */
#include "cpu/movement/movement.h"

#include "cpu/matrix_product/transpose.h"
#include "tensor/tensor.h"

/* What the inner loops copy: `rows` x `columns` elements, with the steps of both sides in elements. A column is the axis that is packed
 * in the destination, if one is. */
typedef struct plane { int64_t rows, columns, from_row, from_column, to_row, to_column; } plane;

/* Elements are moved as unsigned integers of their size. */
typedef uint8_t  element_1 __attribute__((may_alias));
typedef uint16_t element_2 __attribute__((may_alias));
typedef uint32_t element_4 __attribute__((may_alias));
typedef uint64_t element_8 __attribute__((may_alias));

/* One tile of a transposition: columns are packed in the destination, rows in the source. */
#define TRANSPOSE_TILE(size)                                                                                        \
  static void transpose_tile_##size(const plane *p, const element_##size *from, element_##size *to, int64_t rows, int64_t columns) \
  {                                                                                                                 \
    for (int64_t r = 0; r < rows; r++)                                                                              \
      for (int64_t c = 0; c < columns; c++) to[r * p->to_row + c] = from[c * p->from_column + r];                   \
  }
TRANSPOSE_TILE(1)
TRANSPOSE_TILE(2)
TRANSPOSE_TILE(8)

/* Elements of 4 bytes in blocks of VL x VL, as floats: vectors move bits unchanged. */
static void transpose_tile_4(const plane *p, const element_4 *from, element_4 *to, int64_t rows, int64_t columns)
{
  int64_t whole_rows = rows / VL * VL, whole_columns = columns / VL * VL;
  for (int64_t r = 0; r < whole_rows; r += VL)
    for (int64_t c = 0; c < whole_columns; c += VL) {
      vf block[VL];
      for (int i = 0; i < VL; i++) block[i] = vf_load((const float *)(from + (c + i) * p->from_column + r));
      vf_transpose(block);
      for (int i = 0; i < VL; i++) vf_store((float *)(to + (r + i) * p->to_row + c), block[i]);
    }
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = r < whole_rows ? whole_columns : 0; c < columns; c++) to[r * p->to_row + c] = from[c * p->from_column + r];
}

/* A tile is 32 x 32: its source and destination lines stay in the first-level cache until they are used up.
 * Runs below 64 bytes are copied in line: a call of memcpy would take longer. Of up to FEW_COLUMNS columns their number is a constant of
 * the loop over the rows: pixels of three channels would spend their time in starting loops. */
enum { TILE = 32, SHORT_RUN = 64, FEW_PLACES = 16, FEW_COLUMNS = 4 };

#define COPY_PLANE(size)                                                                                                           \
  ALWAYS_INLINE void copy_columns_##size(const plane *p, const element_##size *from, element_##size *to, const int64_t columns)    \
  {                                                                                                                                \
    const int64_t from_row = p->from_row, to_row = p->to_row, from_column = p->from_column, to_column = p->to_column;              \
    for (int64_t r = 0; r < p->rows; r++, from += from_row, to += to_row)                                                          \
      for (int64_t c = 0; c < columns; c++) to[c * to_column] = from[c * from_column];                                             \
  }                                                                                                                                \
  static void copy_plane_##size(const plane *p, const void *from_, void *to_)                                                      \
  {                                                                                                                                \
    const element_##size *from = from_;                                                                                            \
    element_##size *to = to_;                                                                                                      \
    if (p->columns <= FEW_COLUMNS && p->rows > FEW_COLUMNS) {                                                                      \
      switch (p->columns) {                                                                                                        \
      case 1: copy_columns_##size(p, from, to, 1); break;                                                                          \
      case 2: copy_columns_##size(p, from, to, 2); break;                                                                          \
      case 3: copy_columns_##size(p, from, to, 3); break;                                                                          \
      default: copy_columns_##size(p, from, to, 4); break;                                                                         \
      }                                                                                                                            \
    } else if (p->to_column == 1 && p->from_column == 1) {                                                                         \
      for (int64_t r = 0; r < p->rows; r++, from += p->from_row, to += p->to_row) {                                                \
        if (p->columns * size >= SHORT_RUN) {                                                                                      \
          copy_bytes(to, from, (size_t)p->columns *size);                                                                          \
        } else {                                                                                                                   \
          for (int64_t c = 0; c < p->columns; c++) to[c] = from[c];                                                                \
        }                                                                                                                          \
      }                                                                                                                            \
    } else if (p->to_column == 1 && p->from_column == 0) {                                                                         \
      for (int64_t r = 0; r < p->rows; r++, from += p->from_row, to += p->to_row) {                                                \
        element_##size value = *from;                                                                                              \
        for (int64_t c = 0; c < p->columns; c++) to[c] = value;                                                                    \
      }                                                                                                                            \
    } else if (p->to_column == 1 && p->from_column == -1) {                                                                        \
      for (int64_t r = 0; r < p->rows; r++, from += p->from_row, to += p->to_row) {                                                \
        FLOW_NO_OVERLAP                                                                                                            \
        for (int64_t c = 0; c < p->columns; c++) to[c] = from[-c];                                                                 \
      }                                                                                                                            \
    } else if (p->to_column == 1 && p->from_row == 1) {                                                                            \
      for (int64_t r = 0; r < p->rows; r += TILE)                                                                                  \
        for (int64_t c = 0; c < p->columns; c += TILE)                                                                             \
          transpose_tile_##size(p, from + c * p->from_column + r, to + r * p->to_row + c, p->rows - r < TILE ? p->rows - r : TILE, \
                                p->columns - c < TILE ? p->columns - c : TILE);                                                    \
    } else {                                                                                                                       \
      for (int64_t r = 0; r < p->rows; r++, from += p->from_row, to += p->to_row)                                                  \
        for (int64_t c = 0; c < p->columns; c++) to[c * p->to_column] = from[c * p->from_column];                                  \
    }                                                                                                                              \
  }
COPY_PLANE(1)
COPY_PLANE(2)
COPY_PLANE(4)
COPY_PLANE(8)

/* The size of an element as a constant; dtypes are 1, 2, 4 or 8 bytes. */
static void copy_plane(size_t size, const plane *p, const void *from, void *to)
{
  switch (size) {
    case 1: copy_plane_1(p, from, to); break;
    case 2: copy_plane_2(p, from, to); break;
    case 4: copy_plane_4(p, from, to); break;
    default: copy_plane_8(p, from, to); break;
  }
}

/* Steps in elements; `from` is 0 where the source is repeated. */
typedef struct axis { int64_t size, from, to; } axis;

/* Order of the axes: writes should be packed, since a line that is written in pieces is read, changed and written back each time. So
 * axes are sorted by the destination's strides and its last axis becomes the columns. The rows are chosen for the reads: if columns are
 * not packed in the source, the axis that is packed there becomes the rows, and the plane is a transposition. */
void FLOW_ISA_NAME(copy_strided)(size_t size, int rank, const int64_t *shape, const void *from, const int64_t *from_strides,
                                 void *to, const int64_t *to_strides)
{
  if (from == to) return;
  axis axes[FLOW_MAX_RANK + 2];
  int count = 0;
  for (int i = 0; i < rank; i++) {
    if (shape[i] == 0) return;
    if (shape[i] == 1) continue;
    axis added = { shape[i], from_strides[i], to_strides[i] };
    int at = count++;
    for (; at > 0 && axes[at - 1].to < added.to; at--) axes[at] = axes[at - 1];   /* by falling stride of the destination */
    axes[at] = added;
  }
  int merged = 0;
  for (int i = 0; i < count; i++) {
    axis *last = merged > 0 ? &axes[merged - 1] : NULL;
    if (last && last->from == axes[i].from * axes[i].size && last->to == axes[i].to * axes[i].size)
      *last = (axis){ last->size * axes[i].size, axes[i].from, axes[i].to };
    else
      axes[merged++] = axes[i];
  }
  axis column = merged > 0 ? axes[--merged] : (axis){ 1, 1, 1 };
  int row_axis = merged - 1;   /* next to the columns, unless a transposition has the source's packed axis elsewhere */
  if (column.from != 1 && column.from != 0)
    for (int i = 0; i < merged; i++)
      if (axes[i].from == 1) row_axis = i;
  for (int i = 0; column.from == 1 && i < merged; i++)      /* runs are read in order where that writes to few places */
    if (axes[i].from > 0 && axes[i].from < axes[row_axis].from && axes[i].size <= FEW_PLACES) row_axis = i;
  axis row = { 1, 0, 0 };
  if (merged > 0) {
    row = axes[row_axis];
    merged--;
    for (int i = row_axis; i < merged; i++) axes[i] = axes[i + 1];
  }

  plane p = { row.size, column.size, row.from, column.from, row.to, column.to };
  int64_t position[FLOW_MAX_RANK] = { 0 };
  const char *source = from;
  char *destination = to;
  /* A plane at each position of the axes that are left, which count as a wheel does. */
  for (;;) {
    copy_plane(size, &p, source, destination);
    int i = merged - 1;
    for (; i >= 0; i--) {
      source += axes[i].from * (int64_t)size;
      destination += axes[i].to * (int64_t)size;
      if (++position[i] < axes[i].size) break;
      source -= axes[i].size * axes[i].from * (int64_t)size;
      destination -= axes[i].size * axes[i].to * (int64_t)size;
      position[i] = 0;
    }
    if (i < 0) return;
  }
}

/* With broadcasting: axes that the source lacks, or has with size 1, are repeated. */
void FLOW_ISA_NAME(copy_operand)(const flow_operand *from, const flow_operand *to)
{
  int64_t strides[FLOW_MAX_RANK];
  for (int i = 0; i < to->rank; i++) {
    int own = i - (to->rank - from->rank);   /* shapes are aligned at their last axes */
    strides[i] = own < 0 || from->shape[own] == 1 ? 0 : from->strides[own];
  }
  FLOW_ISA_NAME(copy_strided)((size_t)flow_dtype_size(to->dtype), to->rank, to->shape, from->data, strides, to->data, to->strides);
}
