/* float_state.h: the floating-point environment that the library computes in: round to nearest, subnormal numbers kept, no trap. A host
 * may have set another one in its threads: whatever computes on a caller's thread begins with FLOW_DEFAULT_FLOATS, which gives the
 * caller's environment back, with its sticky flags, when the block ends. Threads of the library (thread.h) have the default one. To
 * compilers arithmetic does not depend on the environment: what such a block returns by value is volatile, or it may be rounded after the
 * block, as the caller has it. */
#ifndef FLOW_BASE_FLOAT_STATE_H
#define FLOW_BASE_FLOAT_STATE_H

#include <stdint.h>

#if defined __x86_64__

typedef struct flow_float_state { uint32_t vector; uint16_t x87, x87_flags; } flow_float_state;

enum { FLOW_DEFAULT_VECTOR = 0x1f80, FLOW_DEFAULT_X87 = 0x37f, FLOW_FLOAT_FLAGS = 0x3f };

/* "memory" keeps the compiler from moving loads and stores across; arithmetic on registers may still move (see above). */
static inline void flow_set_vector_state(uint32_t state) { __asm__ volatile("ldmxcsr %0" : : "m"(state) : "memory"); }
static inline void flow_set_x87_state(uint16_t state)    { __asm__ volatile("fldcw %0" : : "m"(state) : "memory"); }

static inline uint16_t flow_x87_flags(void)
{
  uint16_t status;
  __asm__ volatile("fnstsw %0" : "=m"(status) : : "memory");
  return status & FLOW_FLOAT_FLAGS;
}

/* The status word is loaded only as a part of the whole environment, of which it is the second of seven words. */
static inline void flow_set_x87_flags(uint16_t flags)
{
  uint32_t environment[7];
  __asm__ volatile("fnstenv %0" : "=m"(environment) : : "memory");
  environment[1] = (environment[1] & ~(uint32_t)FLOW_FLOAT_FLAGS) | flags;
  __asm__ volatile("fldenv %0" : : "m"(environment) : "memory");
}

/* Registers are written only if they differ: loading them costs more than reading. */
static inline flow_float_state flow_float_enter(void)
{
  flow_float_state before;
  __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(before.vector), "=m"(before.x87) : : "memory");
  before.x87_flags = flow_x87_flags();
  if ((before.vector & ~(uint32_t)FLOW_FLOAT_FLAGS) != FLOW_DEFAULT_VECTOR) flow_set_vector_state(FLOW_DEFAULT_VECTOR);
  if (before.x87 != FLOW_DEFAULT_X87) flow_set_x87_state(FLOW_DEFAULT_X87);
  return before;
}

/* The vector register is loaded whole, with the caller's sticky flags. */
static inline void flow_float_leave(const flow_float_state *before)
{
  flow_set_vector_state(before->vector);
  if (flow_x87_flags() != before->x87_flags) flow_set_x87_flags(before->x87_flags);      /* musl reads and prints numbers with the x87 */
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
