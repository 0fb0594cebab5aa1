/* device_run.h: an instance whose plan runs on a device: the same entries as on the CPU, each enqueued as a whole, in the plan's order.
 *
 * A run copies its inputs to a place that is always the same, so that what is enqueued for a number of rows can be recorded once and
 * then repeated: it differs in the contents of memory only, scalars included. Where the rows of all batches are on the device a step
 * copies its own there, as its scalars say, and several steps are one recording. Nobody waits: what the body of a plan finds wrong in
 * its data keeps the commit tail from writing, on the device, and is raised by the next call that waits. Only a plan that checks data
 * between its effects is waited for, and what it wrote is put back; and sums over replicas, where they go through the host
 * (all_reduce_by_host.h). Those that the devices make among themselves (device_exchange.h) are part of the recording.
 *
 * Of several replicas each has a device, its own copies of the variables, and a thread. All do the whole plan, so that the copies stay the
 * same; a failure of one before the commit tail is one of all. */
#ifndef FLOW_RUN_DEVICE_DEVICE_RUN_H
#define FLOW_RUN_DEVICE_DEVICE_RUN_H

#include "run/instance.h"
#include "tensor/place.h"

/* Makes what an instance on a device needs beyond the arena. To be called before the calls of its entries are made. */
flow_status flow_device_run_new(flow_instance *instance);
void        flow_device_run_release(flow_instance *instance);      /* NULL in instance->device is fine */

/* Cuts the entries again (cuts.h) after the instance became one of several replicas, or the only one again; recordings are made again. */
void        flow_device_run_cut(flow_instance *instance);

/* How this replica's device sums with those of the others; NULL: through the host, or there are no others. */
struct flow_device_exchange *flow_device_run_exchange(const flow_instance *replica);

/* Where variables are for the replicas, and whether the recordings know them there. Before the rows are divided. */
flow_status flow_device_run_bind_variables(flow_replica_set *set);
/* For a run that other replicas have begun, too, and that does not go on here: their devices stop waiting for this one's. Does nothing
 * on the CPU. */
void        flow_device_run_give_up(const flow_replica_set *set);
/* Copies the inputs of the next run, from their row `first` on: contiguous tensors of the host or of a device. order: gathers the rows that
 * its elements name, from `first` on, of inputs that are on the instance's device as it does. */
flow_status flow_device_run_bring(flow_instance *instance, flow_tensor *const *inputs, const flow_tensor *order, int64_t first);
/* Steps that take their batches themselves, from tables on the instance's device, in an order (NULL: as they are). Only scalars are
 * uploaded for such a step, and several of them can be one recording. open_tables takes the place of bring; the run is between it and
 * close_tables. takes_batches: whether these inputs allow that, in the caller's context; the instance must be the only replica of a
 * single process. steps: how many steps of `rows` rows, at most `most`, can run together now. */
int         flow_device_run_takes_batches(const flow_context *context, const flow_instance *instance, flow_tensor *const *inputs, int count,
                                          const flow_tensor *order);
int         flow_device_run_steps(const flow_instance *instance, int64_t rows, int64_t most);
flow_status flow_device_run_open_tables(flow_instance *instance, flow_tensor *const *inputs, const flow_tensor *order, int64_t first,
                                        int steps);
flow_status flow_device_run_close_tables(flow_instance *instance, flow_tensor *const *inputs, const flow_tensor *order);
/* How many launches and copies a step of the largest recording has; 0: nothing is recorded yet. */
int         flow_device_run_nodes(const flow_instance *instance);
/* flow_execute on the device. */
flow_status flow_device_run_execute(flow_replica_set *set);
/* An output's value of the last run, `offset` bytes after the beginning of the tensor, which is at the instance's place. */
flow_status flow_device_run_output(const flow_instance *instance, int value, size_t bytes, flow_tensor *output, size_t offset);

#endif
