/* lists.c: what is captured on emulated devices, as a list for scripts/cuda-launches and for budgets: a line for each launch and
 * copy, to the file that the environment variable FLOW_EMULATED_LAUNCHES names.
 *
 *   recording
 *   launch  call op kernel count bundled shared r:bytes w:bytes s:offset ...
 *   node    kernel launches turns
 *   copy    bytes
 *   load    kernel: when a device gets it
 *   widths  kernel op and ten numbers: when it is carried out, where that is asked for (widths.c)
 *
 * What a launch reads and writes is found in its arguments, which are pointers into the call's operands and into its shared memory: r and
 * w are operands, each counted once and whole; s is where in the `shared` bytes of the call it reads or writes. Launches of the same call
 * have its number in common. A node is what the graph gets: one launch, or the next few of those that are bundled, which take that many
 * turns. */
#include "cuda/emulation/emulation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cuda/runtime/device_table.h"
#include "cuda/runtime/launch.h"
#include "cuda/device/view_make.h"
#include "ops/optimizer_layout.h"

static FILE *open_list(void)
{
  const char *path = getenv("FLOW_EMULATED_LAUNCHES");
  return path && *path ? fopen(path, "a") : NULL;
}

static const char *const names[CUDA_KERNEL_COUNT] = {
#define ELEMENT(name) [CUDA_##name] = #name,
#define BLOCK(name, phases) [CUDA_##name] = #name,
  FLOW_CUDA_KERNELS(ELEMENT, BLOCK)
#undef ELEMENT
#undef BLOCK
};

/* Of the variant that runs the call: the first that supports it. */
size_t emulated_shared_bytes(const flow_call *call)
{
  const flow_kernel *kernel = flow_cuda_kernels[call->op];
  if (!call->shared) return 0;
  while (kernel->supports && !kernel->supports(call)) kernel++;
  return kernel->shared_bytes ? kernel->shared_bytes(call) : 0;
}

/* Whether one of the pointers in the arguments is to [from, from + bytes). */
static int points_to(const void *arguments, size_t size, const char *from, size_t bytes)
{
  for (size_t at = 0; at + sizeof(char *) <= size; at += sizeof(char *)) {
    const char *pointer;
    memcpy(&pointer, (const char *)arguments + at, sizeof pointer);
    if (pointer >= from && pointer < from + bytes) return 1;
  }
  return 0;
}

static void list_operand(FILE *file, const flow_operand *x, int written, const void *arguments, size_t size)
{
  size_t bytes;
  const char *from = flow_cuda_span(x, &bytes);
  if (x->data && bytes > 0 && points_to(arguments, size, from, bytes)) fprintf(file, " %c:%zu", written ? 'w' : 'r', bytes);
}

/* Parameters and slots are read, too, and so is what an assignment changes in part; the 16-bit copies of parameters are not. */
static int is_only_written(const flow_call *call, int i)
{
  return flow_optimizer_layout_of(call->op) && flow_optimizer_is_copy(call->attributes, call->input_count, i);
}

static void list_shared(FILE *file, const char *shared, size_t bytes, const void *arguments, size_t size)
{
  for (size_t at = 0; at + sizeof(char *) <= size; at += sizeof(char *)) {
    const char *pointer;
    memcpy(&pointer, (const char *)arguments + at, sizeof pointer);
    if (pointer >= shared && pointer < shared + bytes) fprintf(file, " s:%zu", (size_t)(pointer - shared));
  }
}

void emulated_list_recording(void)
{
  FILE *file = open_list();
  if (!file) return;
  fprintf(file, "recording\n");
  fclose(file);
}

void emulated_list_launch(const flow_call *call, int kernel, int64_t count, int bundled, const void *arguments, size_t size)
{
  FILE *file = open_list();
  if (!file) return;
  size_t shared = emulated_shared_bytes(call);
  fprintf(file, "launch %zu %s %s %lld %d %zu", (size_t)call->outputs, flow_cuda_op_name(call->op), names[kernel], (long long)count,
          bundled, shared);
  for (int i = 0; i < call->input_count; i++) {
    if (!is_only_written(call, i)) list_operand(file, &call->inputs[i], 0, arguments, size);
    if (flow_cuda_writes_input(call, i)) list_operand(file, &call->inputs[i], 1, arguments, size);
  }
  for (int i = 0; i < call->output_count; i++) list_operand(file, &call->outputs[i], 1, arguments, size);
  if (shared > 0) list_shared(file, call->shared, shared, arguments, size);
  fputc('\n', file);
  fclose(file);
}

void emulated_list_node(int kernel, const void *arguments, int early)
{
  const bundle_arguments *bundle = arguments;
  int launches = 1, turns = 1;
  FILE *file = open_list();
  if (!file) return;
  if (kernel == CUDA_bundle) {
    launches = bundle->launches;
    for (int block = 0; bundle->first[block + 1] > bundle->first[block]; block++)
      if (bundle->first[block + 1] - bundle->first[block] > turns) turns = bundle->first[block + 1] - bundle->first[block];
  }
  fprintf(file, "node %s %d %d%s\n", names[kernel], launches, turns, early ? " early" : "");
  fclose(file);
}

void emulated_list_widths(int kernel, int op, const size_t bytes[2][5])
{
  FILE *file = open_list();
  if (!file) return;
  fprintf(file, "widths %s %s", names[kernel], flow_cuda_op_name(op));
  for (int i = 0; i < 10; i++) fprintf(file, " %zu", bytes[i / 5][i % 5]);
  fputc('\n', file);
  fclose(file);
}

void emulated_list_load(int kernel)
{
  FILE *file = open_list();
  if (!file) return;
  fprintf(file, "load %s\n", names[kernel]);
  fclose(file);
}

void emulated_list_copy(size_t bytes)
{
  FILE *file = open_list();
  if (!file) return;
  fprintf(file, "copy %zu\n", bytes);
  fclose(file);
}
