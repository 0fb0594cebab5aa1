/* piece_grid.h: pieces of convolutions of few images: bands of rows of the results times groups of blocks of channels. */
#ifndef FLOW_CPU_PIECE_GRID_H
#define FLOW_CPU_PIECE_GRID_H

#include <stdint.h>

/* How a call is cut. Every piece but those at the end has `band` rows and `group` blocks; none is empty. */
typedef struct flow_piece_grid {
  int64_t bands, band;   /* how many, and rows of each, the last one fewer */
  int64_t groups, group; /* the same for blocks of channels */
} flow_piece_grid;

/* For `rows` rows and `blocks` blocks, both at least 1, that take this many multiply-adds. least_bands: at least as many bands, if there
 * are rows enough. bands_first: as many bands as are wanted before blocks are cut, else the other way around. */
static inline flow_piece_grid flow_cut_pieces(double multiply_adds, int64_t rows, int64_t least_bands, int64_t blocks, int bands_first)
{
  enum { WANTED = 16, LEAST_WORK = 1 << 17 }; /* pieces; multiply-adds of one: a few microseconds */
  int64_t wanted = multiply_adds < (double)WANTED * LEAST_WORK ? (int64_t)(multiply_adds / LEAST_WORK) : WANTED;
  int64_t bands = bands_first ? wanted : (wanted + blocks - 1) / blocks;
  if (bands < least_bands) bands = least_bands;
  if (bands > rows) bands = rows;
  if (bands < 1) bands = 1;
  flow_piece_grid pieces = { .band = (rows + bands - 1) / bands };
  pieces.bands = (rows + pieces.band - 1) / pieces.band;
  int64_t groups = (wanted + pieces.bands - 1) / pieces.bands;
  if (groups > blocks) groups = blocks;
  if (groups < 1) groups = 1;
  pieces.group = (blocks + groups - 1) / groups;
  pieces.groups = (blocks + pieces.group - 1) / pieces.group;
  return pieces;
}

/* What a piece does of an image: rows [first, last) of blocks [begin, end). */
typedef struct flow_piece {
  int64_t image, first, last, begin, end;
} flow_piece;

/* Piece number `piece`. Those of several images are numbered one image after the other; of one image blocks count fastest. */
static inline flow_piece flow_piece_of(const flow_piece_grid *pieces, int64_t piece, int64_t rows, int64_t blocks)
{
  int64_t first = piece / pieces->groups % pieces->bands * pieces->band, begin = piece % pieces->groups * pieces->group;
  return (flow_piece){ .image = piece / (pieces->bands * pieces->groups),
                       .first = first,
                       .last = first + pieces->band < rows ? first + pieces->band : rows,
                       .begin = begin,
                       .end = begin + pieces->group < blocks ? begin + pieces->group : blocks };
}

#endif
