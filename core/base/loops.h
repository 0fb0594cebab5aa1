/* loops.h: hints about a loop for compilers, on the line before it, with the same names for gcc and clang. They change speed, but not
 * results. */
#ifndef FLOW_BASE_LOOPS_H
#define FLOW_BASE_LOOPS_H

#define FLOW_PRAGMA(text) _Pragma(#text)

/* FLOW_UNROLL(n): n rounds become straight code; all of them, if there are no more, so that arrays are held in registers.
 * FLOW_NO_OVERLAP: no round reads what an earlier one writes. Clang is not told: its pragma for that also lets it add up floats in another
 * order (LoopVectorizeHints::allowReordering). */
#if defined(__clang__)
#define FLOW_UNROLL(n) FLOW_PRAGMA(clang loop unroll_count(n))
#define FLOW_NO_OVERLAP
#else
#define FLOW_UNROLL(n) FLOW_PRAGMA(GCC unroll n)
#define FLOW_NO_OVERLAP FLOW_PRAGMA(GCC ivdep)
#endif

#endif
