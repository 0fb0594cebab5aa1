/* cost.h: what cost() functions of the CPU's kernels are made of. The unit is one multiply-add of one core at its peak,
 * which is 2 x VL of them a cycle (kernels.h).
 *
 * The shares and rates are measured on Zen 4 and Sapphire Rapids and rounded: they only have to rank variants and to
 * predict times within a factor that `flowlua bench --ops` shows. */
#ifndef FLOW_CPU_COST_H
#define FLOW_CPU_COST_H

#include "cpu/vector.h"

enum { PEAK = 2 * VL };                        /* multiply-adds a cycle */

/* Arithmetic that reaches `share` of the peak. */
static inline double flow_cost_arithmetic(double multiply_adds, double share) { return multiply_adds / share; }

/* Bytes read or written in caches: about a vector of 32 bytes a cycle. */
static inline double flow_cost_cached(double bytes) { return bytes * PEAK / 32; }

/* Bytes read from or written to memory: about 4 a cycle and core. */
static inline double flow_cost_memory(double bytes) { return bytes * PEAK / 4; }

/* The same for long linear passes, which the processor's own prefetchers see coming. */
static inline double flow_cost_stream(double bytes) { return bytes * PEAK / 16; }

#endif
