/* warps.h: bodies of blocks whose threads keep variables from one barrier to the next, and whose warps multiply matrices by tensor cores.
 *
 * Such a body is BLOCK(name, WHOLE): one call is all that a thread does, with its barriers in it. What follows a thread through them stands
 * in arrays, HELD * n of them for n variables, those of a thread from HERE(thread) * n on: on a GPU a thread holds its own in registers
 * (HELD is 1), while the emulated device holds those of all threads of a block, and takes the threads in random order wherever it says
 *   EACH_THREAD(thread, self) { ... }
 * self is the body's argument `thread`, of which nothing else is made. Outside of EACH_THREAD stands what is the same for all of them:
 * loops, barriers, and products. Arrays are indexed by constants once loops are unrolled, or they would not be registers.
 *
 * Products: a warp has 16 rows of A and of the sums, {16, 8 n}. Of the sums a thread of lane l has, for each n, rows l / 4 (the first two)
 * and l / 4 + 8 of columns 8 n + l % 4 * 2 and the next: the fragments of mma.m16n8k16 and .m16n8k8 in the PTX ISA. A step is 16 columns of
 * A of 16 bits, or 8 of float32, of which a thread has four words (fragment_place). Columns of a step of float32 are not in the order of
 * the PTX ISA, but as they lie in sums, so that sums become an A without an exchange. B is in the block's memory: a tile of rows that are
 * `pitch` words apart, transposed or not.
 *
 * float32 is multiplied as TF32; exact: as the sum of three such products of what it is rounded to and of the rest. */
#ifndef FLOW_CUDA_DEVICE_WARPS_H
#define FLOW_CUDA_DEVICE_WARPS_H

#include "cuda/device/wide.h"

enum { WARP_THREADS = 32, WARP_ROWS = 16, BLOCK_ROWS = BLOCK_THREADS / WARP_THREADS * WARP_ROWS, COLUMNS_OF_SUMS = 8 };

/* COMPILED_ONCE: a body with parameters that are constants where a kernel is made of it. On the CPU all kernels call the same. */
#if defined(__CUDACC__)
enum { HELD = 1 };
#define COMPILED_ONCE BODY
#define WHOLE 1
#define HERE(thread) 0
#define EACH_THREAD(thread, self) for (int thread = thread_again(self); thread >= 0; thread = -1)
#define BLOCK_BARRIER() __syncthreads()
#else
enum { HELD = BLOCK_THREADS };
#if defined(__clang__)
#define COMPILED_ONCE static __attribute__((unused, noinline))
#else
#define COMPILED_ONCE static __attribute__((unused, noipa))
#endif
#ifndef WATCH_THREAD /* for who watches emulated threads: which one goes on, -1: all of them; that they do something together; and that they
                      * have waited for each other */
#define WATCH_THREAD(number) ((void)0)
#define WATCH_TOGETHER() ((void)0)
#define WATCH_BARRIER() ((void)0)
#endif
#define WHOLE 0
#define HERE(thread) (thread)
#define EACH_THREAD(thread, self)                                                                       \
  for (int i_ = 0, thread = (self); WATCH_THREAD(i_ < BLOCK_THREADS ? thread : -1), i_ < BLOCK_THREADS; \
       i_++, thread = (thread + 2 * (self) + 1) & (BLOCK_THREADS - 1))
#define BLOCK_BARRIER() WATCH_BARRIER()
#endif

/* The number is the same, but the compiler does not know: what is computed from it in a loop is not kept from round to round, where
 * registers are needed for sums. thread_again: the same of a thread. */
#if defined(__CUDACC__)
#define COMPUTE_AGAIN(number) asm volatile("" : "+l"(number))
BODY int thread_again(int thread)
{
  asm volatile("" : "+r"(thread));
  return thread & (BLOCK_THREADS - 1);
}
#else
#define COMPUTE_AGAIN(number) ((void)(number))
#endif

/* A barrier that tells all threads whether one of them has a flag. */
BODY int any_thread(const uint32_t flags[HELD])
{
#if defined(__CUDACC__)
  return __syncthreads_or((int)flags[0]);
#else
  uint32_t any = 0;
  WATCH_BARRIER();
  for (int thread = 0; thread < HELD; thread++) any |= flags[thread];
  return any != 0;
#endif
}

/* The largest, or the sum, of what the threads of a row have: rows of sums are with four neighbours. */
typedef enum row_result { ROW_LARGEST, ROW_SUM } row_result;

BODY float of_two(row_result what, float a, float b)
{
  return what == ROW_SUM ? a + b : b > a ? b : a;
}

BODY void combine_rows(row_result what, float (*values)[2])
{
#if defined(__CUDACC__)
  UNROLL for (int i = 0; i < 2; i++)
  {
    values[0][i] = of_two(what, values[0][i], __shfl_xor_sync(0xffffffffu, values[0][i], 1));
    values[0][i] = of_two(what, values[0][i], __shfl_xor_sync(0xffffffffu, values[0][i], 2));
  }
#else
  WATCH_TOGETHER();
  for (int first = 0; first < HELD; first += 4) {
    for (int i = 0; i < 2; i++) {
      float all = of_two(what, of_two(what, values[first][i], values[first + 1][i]),
                         of_two(what, values[first + 2][i], values[first + 3][i]));
      for (int j = 0; j < 4; j++) values[first + j][i] = all;
    }
  }
#endif
}

/* ---- fragments -------------------------------------------------------------------------------------------------------------------- */

BODY int columns_of_step(int dtype)
{
  return dtype == FLOW_FLOAT32 ? 8 : 16;
}

/* Where a thread's word of A is: the row in its warp's 16, and the first of its columns, of which there are two of 16 bits. */
BODY void fragment_place(int dtype, int lane, int word, int *row, int *column)
{
  *row = lane / 4 + word % 2 * 8;
  *column = lane % 4 * 2 + word / 2 * (dtype == FLOW_FLOAT32 ? 1 : 8);
}

BODY uint32_t pack_two(int dtype, float low, float high)
{
  if (dtype == FLOW_FLOAT16) return float_to_half(low) | (uint32_t)float_to_half(high) << 16;
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 800
  uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
#else
  return float_to_bfloat16(low) | (uint32_t)float_to_bfloat16(high) << 16;
#endif
}

/* Sums of a thread as its part of an A: word by word; 16 columns of them are two steps of float32, or one of 16 bits. */
BODY void fragments_of_sums(int dtype, const float (*sums)[4], int columns, uint32_t (*a)[4])
{
  UNROLL for (int n = 0; n < columns; n++)
  {
    if (dtype == FLOW_FLOAT32) {
      a[n][0] = float_to_bits(sums[n][0]);
      a[n][1] = float_to_bits(sums[n][2]);
      a[n][2] = float_to_bits(sums[n][1]);
      a[n][3] = float_to_bits(sums[n][3]);
    } else {
      a[n / 2][n % 2 * 2] = pack_two(dtype, sums[n][0], sums[n][1]);
      a[n / 2][n % 2 * 2 + 1] = pack_two(dtype, sums[n][2], sums[n][3]);
    }
  }
}

/* ---- products --------------------------------------------------------------------------------------------------------------------- */

/* How a tile is read: its rows are columns of B, or rows. */
typedef enum tile_way { ROWS_ARE_COLUMNS, ROWS_ARE_ROWS } tile_way;

#if defined(__CUDACC__)

BODY uint32_t to_tf32(float x)
{
  uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return bits;
}

/* What rounding to TF32 leaves, rounded; nothing of infinities. */
BODY uint32_t rest_of_tf32(float x, uint32_t rounded)
{
  return bits_to_float(rounded) == x ? 0 : to_tf32(x - bits_to_float(rounded));
}

#define MULTIPLY_STEP(shape, type, sums, a, b)                                                                                       \
  asm("mma.sync.aligned." shape ".row.col.f32." type "." type ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
      : "+f"((sums)[0]), "+f"((sums)[1]), "+f"((sums)[2]), "+f"((sums)[3])                                                           \
      : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "r"((b)[0]), "r"((b)[1]))

BODY void multiply_step(int dtype, int exact, float sums[4], const uint32_t a[4], const uint32_t b[2])
{
  if (dtype == FLOW_BFLOAT16) {
    MULTIPLY_STEP("m16n8k16", "bf16", sums, a, b);
  } else if (dtype == FLOW_FLOAT16) {
    MULTIPLY_STEP("m16n8k16", "f16", sums, a, b);
  } else {
    uint32_t a_large[4], a_small[4], b_large[2], b_small[2];
    UNROLL for (int i = 0; i < 4; i++) a_large[i] = to_tf32(bits_to_float(a[i]));
    UNROLL for (int i = 0; i < 2; i++) b_large[i] = to_tf32(bits_to_float(b[i]));
    if (exact) {
      UNROLL for (int i = 0; i < 4; i++) a_small[i] = rest_of_tf32(bits_to_float(a[i]), a_large[i]);
      UNROLL for (int i = 0; i < 2; i++) b_small[i] = rest_of_tf32(bits_to_float(b[i]), b_large[i]);
      MULTIPLY_STEP("m16n8k8", "tf32", sums, a_small, b_large);
      MULTIPLY_STEP("m16n8k8", "tf32", sums, a_large, b_small);
    }
    MULTIPLY_STEP("m16n8k8", "tf32", sums, a_large, b_large);
  }
}

/* Of 16 bits, columns 8 n to 8 n + 15 of a step of B are four squares of eight lines of eight elements, and each lane says where one of
 * these lines begins: first_line for n and step 0. It is said by an instruction of its own, or the compiler would keep the places of all
 * squares in registers from tile to tile. */
BODY uint32_t first_line(const uint32_t *tile, int pitch, tile_way way, int lane)
{
  const int square = lane / 8, line = lane % 8;
  const uint32_t *from = way == ROWS_ARE_COLUMNS ? tile + (8 * (square / 2) + line) * pitch + 4 * (square % 2)
                                                 : tile + (8 * (square % 2) + line) * pitch + 4 * (square / 2);
  uint32_t address;
  asm volatile("mov.b32 %0, %1;" : "=r"(address) : "r"((uint32_t)__cvta_generic_to_shared(from)));
  return address;
}

/* The words of n, then those of n + 1. */
BODY void load_squares(uint32_t first, int pitch, tile_way way, int step, int n, uint32_t b[4])
{
  const uint32_t address = first + 4u * (uint32_t)(way == ROWS_ARE_COLUMNS ? 8 * n * pitch + 8 * step : 16 * step * pitch + 4 * n);
  if (way == ROWS_ARE_COLUMNS)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                 : "r"(address)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                 : "r"(address)
                 : "memory");
}

/* The same of float32. */
BODY void load_numbers(const uint32_t *tile, int pitch, tile_way way, int step, int n, int lane, uint32_t b[4])
{
  UNROLL for (int i = 0; i < 4; i++)
  {
    const int column = 8 * (n + i / 2) + lane / 4, row = 8 * step + lane % 4 * 2 + i % 2;
    b[i] = way == ROWS_ARE_COLUMNS ? tile[column * pitch + row] : tile[row * pitch + column];
  }
}

/* A step: sums {16, 8 columns} += A B for each warp; columns is even. The words of the step are a_each arrays apart from thread to thread,
 * the sums sums_each. */
BODY void multiply_tile(int dtype, int exact, tile_way way, int step, int columns, const uint32_t (*a)[4], int a_each, const uint32_t *tile,
                        int pitch, float (*sums)[4], int sums_each)
{
  const int lane = (int)threadIdx.x % WARP_THREADS;
  const uint32_t first = dtype == FLOW_FLOAT32 ? 0 : first_line(tile, pitch, way, lane);
  (void)a_each, (void)sums_each;
  UNROLL for (int n = 0; n < columns; n += 2)
  {
    uint32_t b[4];
    if (dtype == FLOW_FLOAT32) load_numbers(tile, pitch, way, step, n, lane, b);
    else load_squares(first, pitch, way, step, n, b);
    multiply_step(dtype, exact, sums[n], a[0], b);
    multiply_step(dtype, exact, sums[n + 1], a[0], b + 2);
  }
}

#else

/* Element `which` of a word. */
BODY float number_in_word(int dtype, int exact, uint32_t word, int which)
{
  if (dtype == FLOW_FLOAT32) return bits_to_float(exact ? word : (word + 0x1000u) & ~0x1fffu);
  const uint16_t half = (uint16_t)(word >> 16 * which);
  return dtype == FLOW_BFLOAT16 ? bfloat16_to_float(half) : half_to_float(half);
}

/* The same with the numbers put where they are in A and in B, row by row of A. */
BODY void multiply_tile(int dtype, int exact, tile_way way, int step, int columns, const uint32_t (*a)[4], int a_each, const uint32_t *tile,
                        int pitch, float (*sums)[4], int sums_each)
{
  enum { MOST_STEP = 16, MOST_COLUMNS = 256 };
  float b[MOST_STEP][MOST_COLUMNS];
  WATCH_TOGETHER();
  const int depth = columns_of_step(dtype), in_word = depth / 8;
  for (int k = 0; k < depth; k++) {
    for (int n = 0; n < columns * COLUMNS_OF_SUMS; n++) {
      const int row = way == ROWS_ARE_COLUMNS ? n : step * depth + k, column = way == ROWS_ARE_COLUMNS ? step * depth + k : n;
      b[k][n] = number_in_word(dtype, exact, tile[row * pitch + column / in_word], column % in_word);
    }
  }
  for (int warp = 0; warp < BLOCK_THREADS; warp += WARP_THREADS) {
    float rows[WARP_ROWS][MOST_STEP], line[MOST_COLUMNS];
    for (int lane = 0; lane < WARP_THREADS; lane++) {
      for (int i = 0; i < 4 * in_word; i++) {
        int row, column;
        fragment_place(dtype, lane, i / in_word, &row, &column);
        rows[row][column + i % in_word] = number_in_word(dtype, exact, a[(warp + lane) * a_each][i / in_word], i % in_word);
      }
    }
    for (int row = 0; row < WARP_ROWS; row++) {
      for (int n = 0; n < columns * COLUMNS_OF_SUMS; n++)
        line[n] = sums[(warp + row % 8 * 4 + n % 8 / 2) * sums_each + n / 8][row / 8 * 2 + n % 2];
      for (int k = 0; k < depth; k++)
        for (int n = 0; n < columns * COLUMNS_OF_SUMS; n++) line[n] += rows[row][k] * b[k][n];
      for (int n = 0; n < columns * COLUMNS_OF_SUMS; n++)
        sums[(warp + row % 8 * 4 + n % 8 / 2) * sums_each + n / 8][row / 8 * 2 + n % 2] = line[n];
    }
  }
}

#endif
#endif
