/* futex.h: sleeping until a number in memory changes, by Linux' futex(2); on other systems by yielding the core. For threads of one
 * process; flow_shared_futex_*, which cost a little more, for processes that share the memory. */
#ifndef FLOW_BASE_FUTEX_H
#define FLOW_BASE_FUTEX_H

#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>
#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#else
#include <sched.h>
#endif

/* For a loop that polls memory: leaves resources to the core's other thread. */
static inline void flow_pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* The monotonic clock: it does not jump when the time of day is set. */
static inline int64_t flow_now_nanoseconds(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The system call itself; see the four functions below. Without futexes sleeping is one yield, which their contract allows: it may
 * return early. */
static inline void flow_futex_sleep_by(int operation, _Atomic int *number, int value, int64_t nanoseconds)
{
#if defined(__linux__)
  struct timespec limit = { (time_t)(nanoseconds / 1000000000), (long)(nanoseconds % 1000000000) };
  syscall(SYS_futex, (int *)number, operation, value, nanoseconds < 0 ? NULL : &limit, NULL, 0);
#else
  (void)operation, (void)number, (void)value, (void)nanoseconds;
  sched_yield();
#endif
}

static inline void flow_futex_wake_by(int operation, _Atomic int *number)
{
#if defined(__linux__)
  syscall(SYS_futex, (int *)number, operation, INT_MAX, NULL, NULL, 0);
#else
  (void)operation, (void)number;
#endif
}

#if !defined(__linux__)
enum { FUTEX_WAIT_PRIVATE, FUTEX_WAKE_PRIVATE, FUTEX_WAIT, FUTEX_WAKE };
#endif

/* Sleeps while *number is `value`, at most `nanoseconds` (negative: without end). May return early: look again. */
static inline void flow_futex_sleep(_Atomic int *number, int value, int64_t nanoseconds)
{
  flow_futex_sleep_by(FUTEX_WAIT_PRIVATE, number, value, nanoseconds);
}

/* Wakes all threads that sleep on the number. Change it first. */
static inline void flow_futex_wake(_Atomic int *number)
{
  flow_futex_wake_by(FUTEX_WAKE_PRIVATE, number);
}

/* The same for a number in memory that several processes share: the kernel then looks the page up, which costs more. */
static inline void flow_shared_futex_sleep(_Atomic int *number, int value, int64_t nanoseconds)
{
  flow_futex_sleep_by(FUTEX_WAIT, number, value, nanoseconds);
}

static inline void flow_shared_futex_wake(_Atomic int *number)
{
  flow_futex_wake_by(FUTEX_WAKE, number);
}

#endif
