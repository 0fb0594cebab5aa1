/* choose.c: what is chosen for the rows of a run, and decides its bits: kernels, by classes of rows, and how rows are grouped. See
 * instance.h. */
#include "run/binding.h"

#include "base/team.h"
#include "graph/graph.h"
#include "tensor/place.h"

/* ---- groups of rows --------------------------------------------------------------------------------------------------------- */

/* Slots by the number of rows alone: sums over slots have the same bits on any number of threads. Without sums slots may be as short as
 * chunks. */
void flow_divide_rows(flow_stage *stage, int64_t rows)
{
  stage->rows_per_slot = (rows + stage->most_slots - 1) / stage->most_slots;
  if (stage->rows_per_slot < 1) stage->rows_per_slot = 1;
  if (!stage->sums && stage->most_chunk < stage->rows_per_slot) stage->rows_per_slot = stage->most_chunk;
  stage->chunk = stage->most_chunk < stage->rows_per_slot ? stage->most_chunk : stage->rows_per_slot;
}

/* ---- kernels ------------------------------------------------------------------------------------------------------------------ */

int flow_count_row_classes(const flow_instance *instance)
{
  int count = 1;
  if (instance->place || instance->plan->graph->exact) return 1;
  while ((int64_t)1 << (count - 1) < flow_nominal_rows(instance->capacity, 0)) count++;
  return count;
}

/* The class of rows that a run belongs to: the first class whose upper limit, 1 << class rows, is not exceeded; the last class has no
 * limit but the capacity. */
static int class_of(const flow_instance *instance, int64_t rows)
{
  int class = 0;
  while (class + 1 < instance->class_count && (int64_t)1 << class < rows) class++;
  return class;
}

/* Entry e as a call on `rows` rows, without data. operands: room for all of its inputs and outputs. */
static flow_call describe_call(const flow_instance *instance, int e, int64_t rows, flow_operand *operands)
{
  const flow_entry *entry = &instance->entries[e];
  const flow_node *node = &instance->plan->graph->nodes[entry->node];
  for (int i = 0; i < entry->input_count + entry->output_count; i++)
    flow_describe_operand(instance, &entry->bindings[i], rows, &operands[i]);
  return (flow_call){ .op = node->op, .attributes = &node->attributes, .input_count = entry->input_count,
                      .output_count = entry->output_count, .inputs = operands, .outputs = operands + entry->input_count,
                      .exact = instance->plan->graph->exact, .bfloat16 = node->bfloat16, .kept = entry->fixed,
                      .partial = instance->plan->segments[entry->segment].by_rows, .scalars = &instance->part.scalars };
}

/* A call of the CPU that sees all rows may be cut into slots, whose partial sums come after what the kernel shares. */
static size_t shared_bytes_of(const flow_instance *instance, int e, const flow_kernel *kernel, const flow_call *call)
{
  const int whole = !instance->place && !instance->plan->segments[instance->entries[e].segment].by_rows;
  if (whole) return flow_shared_bytes(flow_op(call->op), kernel, call);
  return kernel->shared_bytes ? kernel->shared_bytes(call) : 0;
}

/* The kernel is chosen by its cost for the largest batch of the class, and asked for memory for the largest call that it will see: that
 * of the whole batch, or of one chunk in a segment of rows. An entry keeps the largest sizes of all classes, so that a change of the
 * class between two runs takes no memory. */
flow_status flow_choose_kernel(flow_instance *instance, int s, int e, int class, flow_operand *operands, flow_queue *queue)
{
  const flow_place *place = instance->place;
  const flow_plan *plan = instance->plan;
  flow_entry *entry = &instance->entries[e];
  int64_t batch = class + 1 < instance->class_count ? (int64_t)1 << class : instance->capacity;
  flow_call call = describe_call(instance, e, batch, operands);
  call.queue = queue;
  const flow_kernel *kernel = flow_select_kernel(place ? &flow_place_accelerator(place)->device : flow_cpu_device(), &call);
  if (!kernel) return flow_fail(FLOW_UNSUPPORTED, "%s has no kernel for %s", flow_place_name(place), flow_op(call.op)->name);
  instance->kernels[class * plan->order_count + e] = kernel;
  if (plan->segments[s].by_rows) describe_call(instance, e, instance->stages[s].chunk, operands);
  size_t shared = shared_bytes_of(instance, e, kernel, &call);
  size_t scratch = kernel->scratch_bytes ? (kernel->scratch_bytes(&call) + 63) & ~(size_t)63 : 0;
  if (shared > entry->shared_bytes) entry->shared_bytes = shared;
  if (scratch > entry->scratch_bytes) entry->scratch_bytes = scratch;
  if (entry->scratch_bytes > instance->scratch_bytes) instance->scratch_bytes = entry->scratch_bytes;
  return FLOW_OK;
}

/* ---- ahead -------------------------------------------------------------------------------------------------------------------- */

typedef struct ahead { const flow_instance *instance; int64_t rows; flow_queue *queue; flow_ticket entries; } ahead;

/* One member of a team: takes entries by ticket and asks the device for a kernel and its workspace. Devices cache what they find
 * (autotuning), so that the answers are there when the plan is prepared in order afterwards. Failures are not looked at here: they come
 * again, and are told, then. */
static void ask(flow_region *region, int member, int members, void *argument)
{
  ahead *a = argument;
  const flow_instance *instance = a->instance;
  flow_operand operands[2 * FLOW_MAX_OPERANDS];
  (void)region, (void)member, (void)members;
  for (int64_t e = flow_ticket_take(&a->entries); e < instance->plan->order_count; e = flow_ticket_take(&a->entries)) {
    const flow_entry *entry = &instance->entries[e];
    if (entry->alias || entry->input_count + entry->output_count > 2 * FLOW_MAX_OPERANDS) continue;
    flow_call call = describe_call(instance, (int)e, a->rows, operands);
    call.queue = a->queue;
    const flow_kernel *kernel = flow_select_kernel(&flow_place_accelerator(instance->place)->device, &call);
    if (kernel && kernel->shared_bytes) kernel->shared_bytes(&call);
  }
}

void flow_choose_ahead(const flow_instance *instance, int64_t rows, flow_queue *queue)
{
  ahead all = { .instance = instance, .rows = rows, .queue = queue };
  if (rows > 0) flow_team_run(0, ask, &all);
}

/* Changes which kernels run. What a kernel's prepare() made for the class before is of no use to another kernel, so that what derived.h
 * keeps is forgotten. */
void flow_set_row_class(flow_instance *instance, int class)
{
  const flow_plan *plan = instance->plan;
  instance->row_class = class;
  instance->set_rows = -1;
  flow_derived_forget(instance);
  for (int s = 0; s < plan->segment_count; s++) {
    instance->stages[s].prepares = instance->stages[s].lasting = 0;
    for (int e = plan->segments[s].first; e < plan->segments[s].first + plan->segments[s].count; e++) {
      flow_entry *entry = &instance->entries[e];
      entry->kernel = instance->kernels[class * plan->order_count + e];
      if (!plan->segments[s].by_rows || entry->alias || !entry->kernel->prepare) continue;
      instance->stages[s].prepares++;
      instance->stages[s].lasting += entry->fixed;
    }
  }
}

/* WHOLE kernels see all rows of the run: what they share must not be more for fewer rows than for the capacity. */
static flow_status check_shared(const flow_instance *instance, int64_t rows)
{
  flow_operand operands[2 * FLOW_MAX_OPERANDS];
  for (int e = 0; e < instance->plan->order_count; e++) {
    const flow_entry *entry = &instance->entries[e];
    if (entry->alias || instance->plan->segments[entry->segment].by_rows) continue;
    if (entry->input_count + entry->output_count > 2 * FLOW_MAX_OPERANDS) continue;      /* one that joins very many, of fixed sizes */
    flow_call call = describe_call(instance, e, rows, operands);
    if (shared_bytes_of(instance, e, entry->kernel, &call) > entry->shared_bytes)
      return flow_fail(FLOW_INTERNAL, "%s: %lld rows need more memory than %lld", flow_op(call.op)->name, (long long)rows,
                       (long long)instance->capacity);
  }
  return FLOW_OK;
}

/* Devices have neither classes nor slots: their kernels are chosen once. On failure set_rows is -1, so that the next call does all of it
 * again. */
flow_status flow_instance_set_rows(flow_instance *instance, int64_t rows)
{
  if (instance->place || rows == instance->set_rows) return FLOW_OK;
  int class = class_of(instance, rows);
  if (class != instance->row_class) flow_set_row_class(instance, class);
  instance->set_rows = -1;
  FLOW_TRY(check_shared(instance, rows));
  for (int s = 0; s < instance->plan->segment_count; s++)
    if (instance->plan->segments[s].by_rows) flow_divide_rows(&instance->stages[s], rows);
  for (int e = 0; e < instance->plan->order_count; e++)
    if (instance->entries[e].body) FLOW_TRY(flow_instance_set_rows(instance->entries[e].body, rows));
  instance->set_rows = rows;
  return FLOW_OK;
}
