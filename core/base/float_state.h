/* float_state.h: the floating-point environment that the library computes in: round to nearest, subnormal numbers kept, no trap. A host
 * may have set another one in its threads: whatever computes on a caller's thread begins with FLOW_DEFAULT_FLOATS, which gives the
 * caller's environment back, with its sticky flags, when the block ends. Threads of the library (thread.h) have the default one. */
#ifndef FLOW_BASE_FLOAT_STATE_H
#define FLOW_BASE_FLOAT_STATE_H

#include <stdint.h>

#if defined __x86_64__

typedef struct flow_float_state { uint32_t vector; uint16_t x87; } flow_float_state;

enum { FLOW_DEFAULT_VECTOR = 0x1f80, FLOW_VECTOR_FLAGS = 0x3f, FLOW_DEFAULT_X87 = 0x37f };

static inline void flow_set_vector_state(uint32_t state) { __asm__ volatile("ldmxcsr %0" : : "m"(state) : "memory"); }
static inline void flow_set_x87_state(uint16_t state)    { __asm__ volatile("fldcw %0" : : "m"(state) : "memory"); }

static inline flow_float_state flow_float_enter(void)
{
  flow_float_state before;
  __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(before.vector), "=m"(before.x87) : : "memory");
  if ((before.vector & ~(uint32_t)FLOW_VECTOR_FLAGS) != FLOW_DEFAULT_VECTOR) flow_set_vector_state(FLOW_DEFAULT_VECTOR);
  if (before.x87 != FLOW_DEFAULT_X87) flow_set_x87_state(FLOW_DEFAULT_X87);
  return before;
}

static inline void flow_float_leave(const flow_float_state *before)
{
  flow_set_vector_state(before->vector);
  if (before->x87 != FLOW_DEFAULT_X87) flow_set_x87_state(before->x87);
}

#else

#include <fenv.h>

typedef struct flow_float_state { fenv_t environment; } flow_float_state;

static inline flow_float_state flow_float_enter(void)
{
  flow_float_state before;
  fegetenv(&before.environment);
  fesetenv(FE_DFL_ENV);
  return before;
}

static inline void flow_float_leave(const flow_float_state *before) { fesetenv(&before->environment); }

#endif

/* To clang arithmetic does not depend on the environment, and moves out of the block, unless it is told. */
#if defined(__clang__)
#define FLOW_FLOATS_STAY _Pragma("STDC FENV_ACCESS ON")
#else
#define FLOW_FLOATS_STAY
#endif

/* Stands first in its block. */
#define FLOW_DEFAULT_FLOATS FLOW_FLOATS_STAY \
  __attribute__((cleanup(flow_float_leave), unused)) const flow_float_state flow_floats_before_ = flow_float_enter()

#endif
