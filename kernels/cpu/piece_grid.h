/* piece_grid.h: pieces of convolutions of few images: bands of rows of the results times groups of blocks of channels. */
#ifndef FLOW_CPU_PIECE_GRID_H
#define FLOW_CPU_PIECE_GRID_H

#include <stdint.h>

/* How a call is cut: into ranges of rows that are as equal as may be, and likewise of blocks of channels. None is empty. */
typedef struct flow_piece_grid {
  int64_t bands, groups;
} flow_piece_grid;

/* The least power of two that is at least n. So many pieces give the same work to two, four or eight members. */
static inline int64_t flow_power_of_two(int64_t n)
{
  int64_t power = 1;
  while (power < n) power *= 2;
  return power;
}

/* For `rows` rows and `blocks` blocks, both at least 1, that take this many multiply-adds. least_bands: at least as many bands, if there
 * are rows enough. bands_first: as many bands as are wanted before blocks are cut, else the other way around. */
static inline flow_piece_grid flow_cut_pieces(double multiply_adds, int64_t rows, int64_t least_bands, int64_t blocks, int bands_first)
{
  enum { WANTED = 16, LEAST_WORK = 1 << 17 }; /* pieces; multiply-adds of one: a few microseconds */
  int64_t wanted = multiply_adds < (double)WANTED * LEAST_WORK ? flow_power_of_two((int64_t)(multiply_adds / LEAST_WORK)) : WANTED;
  int64_t bands = bands_first ? wanted : (wanted + blocks - 1) / blocks;
  if (bands < least_bands) bands = least_bands;
  bands = flow_power_of_two(bands);
  if (bands > rows) bands = rows;
  int64_t groups = (wanted + bands - 1) / bands;
  return (flow_piece_grid){ .bands = bands, .groups = groups < blocks ? groups : blocks };
}

/* What a piece does of an image: rows [first, last) of blocks [begin, end). */
typedef struct flow_piece {
  int64_t image, first, last, begin, end;
} flow_piece;

/* Piece number `piece`. Those of several images are numbered one image after the other; of one image blocks count fastest. */
static inline flow_piece flow_piece_of(const flow_piece_grid *pieces, int64_t piece, int64_t rows, int64_t blocks)
{
  int64_t band = piece / pieces->groups % pieces->bands, group = piece % pieces->groups;
  return (flow_piece){ .image = piece / (pieces->bands * pieces->groups),
                       .first = rows * band / pieces->bands,
                       .last = rows * (band + 1) / pieces->bands,
                       .begin = blocks * group / pieces->groups,
                       .end = blocks * (group + 1) / pieces->groups };
}

#endif
