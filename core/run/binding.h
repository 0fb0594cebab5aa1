/* binding.h: where the operands of an instance's calls are. It is decided in three steps, each of which keeps what the one before has set:
 *
 *   flow_bind_entries    once: how each operand is found (flow_binding)
 *   flow_bind_variables, flow_bind_inputs, flow_bind_run    for a run: the memory of variables and inputs, then the addresses and shapes of
 *                        operands that are the same for the whole of it
 *   flow_bind_chunk      for a chunk of rows, on the CPU only: the operands that go by rows
 *
 * A device binds as the CPU does, except that inputs are copied to the device first (device/device_inputs.c). */
#ifndef FLOW_RUN_BINDING_H
#define FLOW_RUN_BINDING_H

#include "run/instance.h"

/* Binds every operand of every entry. read[value]: something reads it. */
void        flow_bind_entries(flow_instance *instance, const char *read);
/* An operand's shape for `rows` rows of the batch, without data. */
void        flow_describe_operand(const flow_instance *instance, const flow_binding *binding, int64_t rows, flow_operand *operand);

/* Where the variables are in this run. *moved, if not NULL, becomes 1 if one is elsewhere than in the run before. */
flow_status flow_bind_variables(flow_instance *instance, int *moved);
/* The bytes of input `index` that a run over `rows` rows reads: *offset where they begin in a contiguous tensor of which the run's rows
 * begin at `first`; 0 for an input without rows. Returns how many they are. */
size_t      flow_input_extent(const flow_graph *graph, int index, int64_t first, int64_t rows, size_t *offset);
/* On the CPU: inputs (contiguous, on the host, borrowed for the run) are read where they are, from row `first` on. */
void        flow_bind_inputs(flow_instance *instance, flow_tensor *const *inputs, int64_t first);
/* Gives a member's operands the shapes and addresses that hold for the whole of a run over part.rows rows. By that member, or before it
 * starts. */
void        flow_bind_run(const flow_instance *instance, flow_member *member);
/* Points the operands of entry e to rows [first, first + count) of the run and to the partial sums of slot `slot`; what is as long as a
 * chunk is in `local`, the member's own block or the one that members share. By that member. */
void        flow_bind_chunk(const flow_instance *instance, flow_member *member, char *local, int e, int64_t slot, int64_t first,
                            int64_t count);

#endif
