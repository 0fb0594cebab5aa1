/* device.c: the CPU as a device. Every kernel is compiled once per instruction set; this file makes one table of ops.def
 * for each build and picks the one that this machine runs. The only kernel file that is compiled once. */
#if FLOW_HAVE_X86
#include <cpuid.h>
#endif
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cpu_choice.h"
#include "kernels.h"
#include "ops/op.h"

/* A table for each build. An op without a list of kernels in one of them is an error of the linker, which names the op. */
#define FLOW_OP(name, ...) extern const flow_kernel flow_cpu_plain_##name##_kernels[];
#include "ops/ops.def"
#undef FLOW_OP
static const flow_kernel *const plain_kernels[FLOW_OP_COUNT] = {
#define FLOW_OP(name, ...) [FLOW_OP_##name] = flow_cpu_plain_##name##_kernels,
#include "ops/ops.def"
#undef FLOW_OP
};

double flow_cpu_plain_peak(double count);

#if FLOW_HAVE_X86
double flow_cpu_avx2_peak(double count), flow_cpu_avx512_peak(double count);
int    flow_cpu_avx512_bfloat16_available(void);      /* matrix_product/gemm_bfloat16.h */
#define FLOW_OP(name, ...) extern const flow_kernel flow_cpu_avx2_##name##_kernels[], flow_cpu_avx512_##name##_kernels[];
#include "ops/ops.def"
#undef FLOW_OP
static const flow_kernel *const avx2_kernels[FLOW_OP_COUNT] = {
#define FLOW_OP(name, ...) [FLOW_OP_##name] = flow_cpu_avx2_##name##_kernels,
#include "ops/ops.def"
#undef FLOW_OP
};
static const flow_kernel *const avx512_kernels[FLOW_OP_COUNT] = {
#define FLOW_OP(name, ...) [FLOW_OP_##name] = flow_cpu_avx512_##name##_kernels,
#include "ops/ops.def"
#undef FLOW_OP
};

/* What the build flags of CMakeLists.txt let the compiler use. */
static int has_avx2(void)
{
  unsigned a, b, c, d;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")
      && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);      /* which clang's __builtin_cpu_supports does not know */
}

/* What the flags of that build in CMakeLists.txt allow the compiler to use, and nothing more: VNNI and BF16 are asked for where they are
 * used. */
static int has_avx512(void)
{
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")
      && __builtin_cpu_supports("avx512dq");
}
#endif

/* The build without extensions runs on every machine of its architecture. */
static int always(void) { return 1; }

/* Widest first. */
static const struct build { flow_device device; int (*runs_here)(void); } builds[] = {
#if FLOW_HAVE_X86
  { { "cpu", "avx512", avx512_kernels, 1 << 20, flow_cpu_avx512_peak, 0, 0, NULL }, has_avx512 },
  { { "cpu", "avx2", avx2_kernels, 512 << 10, flow_cpu_avx2_peak, 0, 0, NULL }, has_avx2 },
#endif
  { { "cpu", "plain", plain_kernels, 512 << 10, flow_cpu_plain_peak, 0, 0, NULL }, always },
};
enum { BUILD_COUNT = sizeof builds / sizeof builds[0] };

/* NULL: there is no such build, or this machine does not run it. */
const flow_device *flow_cpu_device_for(const char *isa)
{
  for (int i = 0; i < BUILD_COUNT; i++)
    if (strcmp(builds[i].device.isa, isa) == 0 && builds[i].runs_here()) return &builds[i].device;
  return NULL;
}

/* FLOW_ISA first, so that tests and users can ask for another build; one that this machine cannot run is a warning, not an error. */
static const flow_device *choose(void)
{
  const char *wanted = getenv("FLOW_ISA");
  if (wanted && *wanted) {
    const flow_device *device = flow_cpu_device_for(wanted);
    if (device) return device;
    char text[160];
    snprintf(text, sizeof text, "FLOW_ISA=%.32s: this machine does not have these kernels (avx512, avx2, plain); using the widest that it "
             "has", wanted);
    flow_log(FLOW_LOG_WARNING, text);
  }
  for (int i = 0; i < BUILD_COUNT; i++)
    if (builds[i].runs_here()) return &builds[i].device;
  return NULL;   /* unreachable: plain runs everywhere */
}

static _Atomic(const flow_device *) chosen;

void flow_cpu_use(const char *isa)
{
  const flow_device *device = flow_cpu_device_for(isa);
  if (device) atomic_store(&chosen, device);
}

/* The first choice stays, unless flow_cpu_use replaces it: threads that race here agree on one, and a later change of the environment is
 * not seen. */
const flow_device *flow_cpu_device(void)
{
  const flow_device *device = atomic_load(&chosen);
  if (device) return device;
  const flow_device *mine = choose();
  return atomic_compare_exchange_strong(&chosen, &device, mine) ? mine : device;
}

/* What decides the bits of results: workers compare it before they train together. */
const char *flow_cpu_arithmetic(void)
{
  const flow_device *device = flow_cpu_device();
#if FLOW_HAVE_X86
  if (device->kernels == avx512_kernels && flow_cpu_avx512_bfloat16_available()) return "avx512 and bfloat16";
#endif
  return device->isa;
}
