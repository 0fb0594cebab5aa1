/* input_rows.c: see input_rows.h. */
#include "run/input_rows.h"

#include <string.h>
#include "ops/op.h"

/* Looks at no index: an order may be on a device, and gathering checks each one that it reads. */
flow_status flow_check_order(const flow_tensor *order, int64_t first, int64_t rows)
{
  FLOW_TRY(flow_check_concrete("the order of rows", order));
  if (order->dtype != FLOW_INT64 || order->rank != 1 || !flow_tensor_is_contiguous(order))
    return flow_fail(FLOW_INVALID_ARGUMENT, "the order of rows is a %s tensor of shape %s; a contiguous int64 tensor of rank 1 is needed",
                     flow_dtype_name(order->dtype), flow_shape_text(order->rank, order->shape));
  if (first > order->shape[0] || rows > order->shape[0] - first)
    return flow_fail(FLOW_INVALID_ARGUMENT, "rows %lld to %lld of an order are asked for, it has %lld", (long long)first,
                     (long long)(first + rows - 1), (long long)order->shape[0]);
  return FLOW_OK;
}

/* ---- on the host ------------------------------------------------------------------------------------------------------------ */

/* *room: NULL or what an earlier run has used, which is replaced when it is too small and kept when it is larger. Owned by the run. */
static flow_status make_room(flow_tensor **room, const flow_tensor *input, int64_t rows)
{
  int64_t shape[FLOW_MAX_RANK];
  if (*room && (*room)->shape[0] >= rows) return FLOW_OK;
  flow_tensor_release(*room);
  *room = NULL;
  memcpy(shape, input->shape, sizeof shape);
  shape[0] = rows;
  return flow_tensor_new_uninitialized(input->dtype, input->rank, shape, room);
}

/* One block for the whole life of the run state, `room` and `given` side by side; inputs without rows go as they are. After a failure
 * the rooms stay for the next run. */
flow_status flow_gather_on_host(flow_run_state *run, const flow_graph *graph, flow_tensor *const *inputs, const flow_tensor *order,
                                int64_t first, int64_t rows, flow_tensor *const **out)
{
  int count = graph->input_count;
  if (!run->input_rows) {
    void *block;
    FLOW_TRY(flow_alloc_zero(2 * sizeof(flow_tensor *) * (size_t)(count + 1), &block));
    run->input_rows = block;
  }
  flow_tensor **room = run->input_rows, **given = room + count;      /* what is given: the room, or the input itself */
  for (int i = 0; i < count; i++) {
    const flow_signature *signature = &graph->values[graph->inputs[i]].signature;
    given[i] = inputs[i];
    if (signature->rank == 0 || signature->dims[0] >= 0) continue;
    FLOW_TRY(make_room(&room[i], inputs[i], rows));
    FLOW_TRY(flow_tensor_gather_rows(inputs[i], order, (double)first, (double)rows, room[i]));
    given[i] = room[i];
  }
  *out = given;
  return FLOW_OK;
}

void flow_release_input_rows(flow_run_state *run, const flow_graph *graph)
{
  for (int i = 0; run->input_rows && i < graph->input_count; i++) flow_tensor_release(run->input_rows[i]);
  flow_free(run->input_rows);
  run->input_rows = NULL;
}

/* ---- on a device ------------------------------------------------------------------------------------------------------------ */

/* The op gather is called as an entry of a plan would call it, with operands on the stack: nothing here is kept after the launch. */
flow_status flow_place_gather(flow_place *place, const flow_tensor *table, const int64_t *order, int64_t rows, void *into)
{
  static const flow_attributes none;
  flow_operand inputs[2] = { { .data = table->data, .dtype = table->dtype, .rank = table->rank },
                             { .data = (void *)(uintptr_t)order, .dtype = FLOW_INT64, .rank = 1, .shape = { rows }, .strides = { 1 } } };
  memcpy(inputs[0].shape, table->shape, sizeof table->shape);
  memcpy(inputs[0].strides, table->strides, sizeof table->strides);
  flow_operand output = inputs[0];
  output.data = into;
  output.shape[0] = rows;
  flow_call call = { .op = FLOW_OP_gather, .attributes = &none, .input_count = 2, .output_count = 1, .inputs = inputs, .outputs = &output,
                     .scalars = flow_place_scalars(place) };
  call.queue = flow_place_lock(place);
  const flow_kernel *kernel = flow_select_kernel(&flow_place_accelerator(place)->device, &call);
  flow_status status = kernel ? kernel->run(&call, 0, 0, 1) : flow_fail(FLOW_UNSUPPORTED, "%s cannot gather rows", flow_place_name(place));
  flow_place_unlock(place);
  return status;
}
