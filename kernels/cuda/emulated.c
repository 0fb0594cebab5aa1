/* emulated.c: the emulated device as an accelerator: queues, memory, copies, recordings, and launch.h. */
#include "cuda/emulated.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/memory.h"
#include "cuda/view_make.h"

struct emulated_device {
  flow_accelerator base;
  flow_traffic     traffic;
  emulated_memory  memory;
};

/* The whole emulation, under one lock. Only tests load it: a process of its own per test. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static emulated_device devices[EMULATED_DEVICES];
static emulated_lane lanes[EMULATED_LANES];
static int lane_taken[EMULATED_LANES];
static int64_t host_clock[EMULATED_LANES];      /* what the host has waited for */

void emulated_lock(void) { pthread_mutex_lock(&lock); }
void emulated_unlock(void) { pthread_mutex_unlock(&lock); }

static flow_status leave(flow_status status)
{
  pthread_mutex_unlock(&lock);
  return status;
}

static void merge(int64_t *clock, const int64_t *other)
{
  for (int i = 0; i < EMULATED_LANES; i++) {
    if (other[i] > clock[i]) clock[i] = other[i];
  }
}

static emulated_lane *lane_of(flow_queue *queue)
{
  return queue->recording ? &queue->recording->lanes[queue->branch] : &lanes[queue->slot];
}

static int lane_number(const flow_queue *queue)
{
  return queue->recording ? queue->branch : queue->slot;
}

static flow_status refuse_while_recorded(flow_queue *queue, const char *what)
{
  if (!queue->recording) return FLOW_OK;
  queue->recording->broken = 1;
  return flow_fail(FLOW_INVALID_STATE, "%s: not while the queue is recorded", what);
}

/* ---- accesses ---------------------------------------------------------------------------------------------------------------- */

static emulated_block *find_block(const void *address)
{
  for (int i = 0; i < EMULATED_DEVICES; i++) {
    emulated_block *block = devices[i].memory.region ? emulated_memory_find(&devices[i].memory, address) : NULL;
    if (block) return block;
  }
  return NULL;
}

static flow_status touch_block(const emulated_lane *lane, emulated_accesses *recorded, const emulated_access *access)
{
  emulated_block *block = find_block(access->from);
  const char *name = emulated_access_name(access->op);
  if (!block || access->to > block->start + block->bytes) {
    return flow_fail(FLOW_INTERNAL, "%s %s %.0f bytes at %p, which are not in the memory of a device", name,
                     access->write ? "writes" : "reads", (double)(access->to - access->from), (const void *)access->from);
  }
  if (block->lane >= 0) return flow_fail(FLOW_INTERNAL, "%s uses memory at %p, which was released", name, (const void *)access->from);
  return emulated_access_add(recorded ? recorded : &block->accesses, lane->clock, access);
}

static flow_status touch(flow_queue *queue, const void *from, size_t bytes, int write, int op)
{
  if (bytes == 0) return FLOW_OK;
  emulated_lane *lane = lane_of(queue);
  if (!queue->recording) merge(lane->clock, host_clock);
  emulated_access access = { .from = from, .to = (const char *)from + bytes, .lane = lane_number(queue), .write = write, .op = op,
                             .position = emulated_total(lane) };
  return touch_block(lane, queue->recording ? &queue->recording->accesses : NULL, &access);
}

static flow_status touch_operand(flow_queue *queue, const flow_operand *x, int write, int op)
{
  size_t bytes;
  const char *from = flow_cuda_span(x, &bytes);
  return touch(queue, from, bytes, write, op);
}

static flow_status touch_call(const flow_call *call)
{
  unsigned written = flow_cuda_written_inputs(call);
  for (int i = 0; i < call->input_count; i++) FLOW_TRY(touch_operand(call->queue, &call->inputs[i], i < 32 && written >> i & 1, call->op));
  for (int i = 0; i < call->output_count; i++) FLOW_TRY(touch_operand(call->queue, &call->outputs[i], 1, call->op));
  if (call->shared) FLOW_TRY(touch(call->queue, call->shared, 1, 1, call->op));
  if (flow_cuda_op_is_random(call->op) && call->scalars) FLOW_TRY(touch(call->queue, call->scalars, sizeof *call->scalars, 0, call->op));
  return FLOW_OK;
}

/* ---- work -------------------------------------------------------------------------------------------------------------------- */

/* As much as can be: a sum may wait for a rank whose work is not enqueued yet. Returns whether all was done. */
static int carry_out(int slot)
{
  for (int i = 0; i < EMULATED_DEVICES; i++) emulated_memory_open(&devices[i].memory);
  int done = emulated_carry_out(lanes, EMULATED_LANES, slot);
  for (int i = 0; i < EMULATED_LANES; i++) emulated_forget_done(&lanes[i]);
  for (int i = 0; i < EMULATED_DEVICES; i++) emulated_memory_close(&devices[i].memory);
  return done;
}

void emulated_work_off(void) { carry_out(-1); }

/* All of it, however long other threads and processes take to come; they may use the device meanwhile. */
static void finish(int slot)
{
  while (!carry_out(slot)) {
    pthread_mutex_unlock(&lock);
    nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
    pthread_mutex_lock(&lock);
  }
}

/* Takes the work's payload over, also when it fails. */
static flow_status add(flow_queue *queue, const emulated_work *work)
{
  enum { MOST_DEFERRED = 4096 };
  emulated_lane *lane = lane_of(queue);
  FLOW_TRY(emulated_add(lane, work));
  if (!queue->recording) merge(lane->clock, host_clock);
  lane->clock[lane_number(queue)] = emulated_total(lane);
  if (queue->recording && work->kind <= WORK_SEND) queue->recording->nodes++;
  if (!queue->recording && lane->count - lane->next > MOST_DEFERRED) carry_out(queue->slot);
  return FLOW_OK;
}

static flow_status copy_payload(const void *bytes, size_t size, void **out)
{
  FLOW_TRY(flow_alloc(size, out));
  memcpy(*out, bytes, size);
  return FLOW_OK;
}

/* Enqueues the launches that wait to be bundled. */
static flow_status flush(flow_queue *queue)
{
  flow_cuda_closed closed;
  if (!flow_cuda_bundle_close(queue->bundle, &closed)) return FLOW_OK;
  emulated_work work = { .kind = WORK_LAUNCH, .kernel = (int)closed.kernel, .count = closed.count };
  FLOW_TRY(copy_payload(closed.arguments, closed.bytes, &work.payload));
  return add(queue, &work);
}

/* Leaves a small launch that is recorded to the bundle; else what was left to it before comes first. */
static flow_status try_to_bundle(const flow_call *call, flow_cuda_kernel kernel, int64_t count, const void *arguments, size_t bytes,
                                 int *taken)
{
  int small = call->queue->recording && flow_cuda_is_small(call, kernel, count);
  *taken = 0;
  if (small) FLOW_TRY(flow_cuda_bundle_add(&call->queue->bundle, call, kernel, count, arguments, bytes, taken));
  if (*taken) return FLOW_OK;
  FLOW_TRY(flush(call->queue));
  return small ? flow_cuda_bundle_add(&call->queue->bundle, call, kernel, count, arguments, bytes, taken) : FLOW_OK;
}

static flow_status launch(const flow_call *call, flow_cuda_kernel kernel, int64_t count, const void *arguments, size_t bytes)
{
  const char *op = flow_cuda_op_name(call->op);
  if (kernel >= CUDA_KERNEL_COUNT || bytes != emulated_argument_bytes(kernel)) {
    return flow_fail(FLOW_INTERNAL, "%s: %.0f bytes of arguments are not those of kernel %d", op, (double)bytes, (int)kernel);
  }
  if (count < 0 || count > (int64_t)1 << 46) return flow_fail(FLOW_INTERNAL, "%s: a launch of %lld", op, (long long)count);
  if (count == 0) return FLOW_OK;
  int taken;
  FLOW_TRY(try_to_bundle(call, kernel, count, arguments, bytes, &taken));
  FLOW_TRY(touch_call(call));
  emulated_list_launch(call, (int)kernel, count, taken, arguments, bytes);
  if (taken) return FLOW_OK;
  emulated_work work = { .kind = WORK_LAUNCH, .kernel = (int)kernel, .count = count };
  FLOW_TRY(copy_payload(arguments, bytes, &work.payload));
  return add(call->queue, &work);
}

flow_status flow_cuda_launch(const flow_call *call, flow_cuda_kernel kernel, int64_t count, const void *arguments, size_t bytes)
{
  pthread_mutex_lock(&lock);
  return leave(launch(call, kernel, count, arguments, bytes));
}

/* A recording's faults are those of the queue on which it began. */
flow_fault *flow_cuda_fault(const flow_call *call)
{
  const flow_queue *queue = call->queue;
  return queue->recording ? &queue->recording->queues[0]->fault : &call->queue->fault;
}

const flow_fault *flow_cuda_verdict(const flow_call *call) { return flow_cuda_fault(call); }

static flow_status copy(flow_queue *queue, void *to, const void *from, size_t bytes, int op)
{
  if (bytes == 0) return FLOW_OK;
  FLOW_TRY(flush(queue));
  FLOW_TRY(touch(queue, from, bytes, 0, op));
  FLOW_TRY(touch(queue, to, bytes, 1, op));
  emulated_list_copy(queue, bytes);
  return add(queue, &(emulated_work){ .kind = WORK_COPY, .to = to, .from = from, .bytes = bytes });
}

flow_status flow_cuda_copy(const flow_call *call, void *to, const void *from, size_t bytes)
{
  pthread_mutex_lock(&lock);
  return leave(copy(call->queue, to, from, bytes, call->op));
}

static flow_status copy_inside(flow_queue *queue, void *to, const void *from, size_t bytes)
{
  pthread_mutex_lock(&lock);
  return leave(copy(queue, to, from, bytes, EMULATED_COPY));
}

static flow_status set_bytes(flow_queue *queue, void *to, size_t bytes, int byte)
{
  if (bytes == 0) return FLOW_OK;
  FLOW_TRY(flush(queue));
  FLOW_TRY(touch(queue, to, bytes, 1, EMULATED_CLEAR));
  return add(queue, &(emulated_work){ .kind = WORK_SET, .to = to, .bytes = bytes, .byte = byte });
}

static flow_status clear(flow_queue *queue, void *to, size_t bytes)
{
  pthread_mutex_lock(&lock);
  return leave(set_bytes(queue, to, bytes, 0));
}

static flow_status upload(flow_queue *queue, void *to, const void *host, size_t bytes)
{
  pthread_mutex_lock(&lock);
  flow_status status = refuse_while_recorded(queue, "upload");
  if (status != FLOW_OK || bytes == 0) return leave(status);
  status = touch(queue, to, bytes, 1, EMULATED_UPLOAD);
  emulated_work work = { .kind = WORK_COPY, .to = to, .bytes = bytes };
  if (status == FLOW_OK) status = copy_payload(host, bytes, &work.payload);
  work.from = work.payload;
  flow_traffic_count(&queue->device->traffic, FLOW_TRAFFIC_UPLOADS, 1);
  flow_traffic_count(&queue->device->traffic, FLOW_TRAFFIC_UPLOADED_BYTES, (int64_t)bytes);
  return leave(status == FLOW_OK ? add(queue, &work) : status);
}

/* Its two pieces of work have a reference each. */
static flow_status enqueue_sum(flow_queue *queue, emulated_rank *rank, int dtype, void *data, int64_t count, size_t bytes)
{
  if (bytes == 0) return FLOW_OK;
  FLOW_TRY(flush(queue));
  FLOW_TRY(touch(queue, data, bytes, 1, EMULATED_SUM));
  emulated_rank_retain(rank);
  FLOW_TRY(add(queue, &(emulated_work){ .kind = WORK_SEND, .rank = rank, .to = data, .bytes = bytes }));
  emulated_rank_retain(rank);
  FLOW_TRY(add(queue, &(emulated_work){ .kind = WORK_RECEIVE, .rank = rank, .to = data, .dtype = dtype, .count = count }));
  if (queue->recording) emulated_rank_recorded(rank, 1);
  return FLOW_OK;
}

flow_status emulated_enqueue_sum(flow_queue *queue, emulated_rank *rank, int dtype, void *data, int64_t count, size_t bytes)
{
  pthread_mutex_lock(&lock);
  return leave(enqueue_sum(queue, rank, dtype, data, count, bytes));
}

const char *emulated_identity(const flow_queue *queue) { return queue->device->base.identity; }

/* ---- waiting ----------------------------------------------------------------------------------------------------------------- */

static flow_status wait_for(flow_queue *queue)
{
  finish(queue->slot);
  emulated_lane *lane = &lanes[queue->slot];
  merge(host_clock, lane->clock);
  flow_status failure = queue->failure;
  flow_fault fault = queue->fault;
  queue->failure = FLOW_OK;
  memset(&queue->fault, 0, sizeof queue->fault);
  return failure != FLOW_OK ? flow_fail(failure, "%s", queue->failure_text) : flow_cuda_raise(&fault);
}

static flow_status synchronize(flow_queue *queue)
{
  pthread_mutex_lock(&lock);
  flow_status status = refuse_while_recorded(queue, "synchronize");
  flow_traffic_count(&queue->device->traffic, FLOW_TRAFFIC_WAITS, 1);
  return leave(status == FLOW_OK ? wait_for(queue) : status);
}

static flow_status download(flow_queue *queue, void *host, const void *from, size_t bytes)
{
  pthread_mutex_lock(&lock);
  flow_status status = refuse_while_recorded(queue, "download");
  if (status == FLOW_OK) status = touch(queue, from, bytes, 0, EMULATED_DOWNLOAD);
  flow_traffic_count(&queue->device->traffic, FLOW_TRAFFIC_DOWNLOADS, 1);
  flow_traffic_count(&queue->device->traffic, FLOW_TRAFFIC_DOWNLOADED_BYTES, (int64_t)bytes);
  if (status == FLOW_OK && bytes > 0) status = add(queue, &(emulated_work){ .kind = WORK_COPY, .to = host, .from = from, .bytes = bytes });
  return leave(status == FLOW_OK ? wait_for(queue) : status);
}

/* ---- memory ------------------------------------------------------------------------------------------------------------------ */

static flow_status take(flow_queue *queue, size_t bytes, emulated_block **out)
{
  emulated_memory *memory = &queue->device->memory;
  flow_status status = emulated_memory_take(memory, queue->slot, bytes, out);
  if (status != FLOW_NOT_FOUND) return status;
  carry_out(-1);
  for (int i = 0; i < EMULATED_LANES; i++) {
    if (emulated_done(&lanes[i]) < emulated_total(&lanes[i])) continue;
    merge(host_clock, lanes[i].clock);
    emulated_memory_forget(memory, i);           /* nobody uses what was released any more */
  }
  status = emulated_memory_take(memory, queue->slot, bytes, out);
  if (status != FLOW_NOT_FOUND) return status;
  return flow_fail(FLOW_OUT_OF_MEMORY, "gpu:%d is out of memory: %.0f bytes asked for, %.0f of %.0f free; release tensors or use smaller "
                   "batches", queue->device->base.index, (double)bytes, (double)(memory->size - emulated_memory_held(memory, 0)),
                   (double)memory->size);
}

static flow_status allocate_block(flow_queue *queue, size_t bytes, void **out)
{
  emulated_block *block;
  FLOW_TRY(refuse_while_recorded(queue, "allocate"));
  FLOW_TRY(take(queue, bytes, &block));
  *out = block->start;
  return set_bytes(queue, block->start, bytes, 0xff);
}

static double free_memory(const flow_accelerator *self)
{
  pthread_mutex_lock(&lock);
  const emulated_memory *memory = &devices[self->index].memory;
  double bytes = (double)(memory->size - emulated_memory_held(memory, 0));
  pthread_mutex_unlock(&lock);
  return bytes;
}

static flow_status allocate(flow_queue *queue, size_t bytes, void **out)
{
  *out = NULL;
  pthread_mutex_lock(&lock);
  return leave(allocate_block(queue, bytes, out));
}

/* Everything that other queues still do with the memory must come before. */
static void release(flow_queue *queue, void *memory)
{
  if (!memory) return;
  pthread_mutex_lock(&lock);
  emulated_block *block = find_block(memory);
  flow_status status = FLOW_OK;
  if (!block || block->start != memory || block->lane >= 0) {
    status = flow_fail(FLOW_INTERNAL, "%p is released, which is no memory in use of a device", memory);
  } else {
    emulated_lane *lane = &lanes[queue->slot];
    merge(lane->clock, host_clock);
    emulated_access access = { .from = block->start, .to = block->start + (block->bytes ? block->bytes : 1), .lane = queue->slot,
                               .write = 1, .op = EMULATED_RELEASE, .position = emulated_total(lane) };
    status = emulated_access_add(&block->accesses, lane->clock, &access);
    block->lane = queue->slot;
  }
  if (status != FLOW_OK && queue->failure == FLOW_OK) {
    queue->failure = status;
    snprintf(queue->failure_text, sizeof queue->failure_text, "%s", flow_last_error());
  }
  pthread_mutex_unlock(&lock);
}

/* ---- queues ------------------------------------------------------------------------------------------------------------------ */

static flow_status make_queue(const flow_accelerator *self, flow_queue **out)
{
  int slot = 0;
  while (slot < EMULATED_LANES && lane_taken[slot]) slot++;
  if (slot == EMULATED_LANES) return flow_fail(FLOW_OUT_OF_MEMORY, "an emulated device has at most %d queues", EMULATED_LANES);
  void *made;
  FLOW_TRY(flow_alloc_zero(sizeof **out, &made));
  *out = made;
  (*out)->device = &devices[self->index];
  (*out)->slot = slot;
  lane_taken[slot] = 1;
  return FLOW_OK;
}

static flow_status queue_new(const flow_accelerator *self, flow_queue **out)
{
  *out = NULL;
  pthread_mutex_lock(&lock);
  return leave(make_queue(self, out));
}

static void queue_release(flow_queue *queue)
{
  if (!queue) return;
  pthread_mutex_lock(&lock);
  finish(queue->slot);
  merge(host_clock, lanes[queue->slot].clock);
  emulated_drop_work(&lanes[queue->slot]);
  emulated_memory_forget(&queue->device->memory, queue->slot);
  lane_taken[queue->slot] = 0;
  pthread_mutex_unlock(&lock);
  flow_free(queue->bundle);
  flow_free(queue);
}

/* The queue takes part in the recording from now on. */
static flow_status join(flow_queue *queue, flow_recording *recording)
{
  if (recording->count == EMULATED_LANES) return flow_fail(FLOW_INVALID_STATE, "at most %d queues are recorded together", EMULATED_LANES);
  queue->branch = recording->count++;
  queue->recording = recording;
  recording->queues[queue->branch] = queue;
  return FLOW_OK;
}

static flow_status follow_queue(flow_queue *queue, flow_queue *other)
{
  if (queue == other) return FLOW_OK;
  if (other->recording && !queue->recording) FLOW_TRY(join(queue, other->recording));
  if (queue->recording != other->recording) {
    queue->recording->broken = 1;
    return flow_fail(FLOW_INVALID_STATE, "a queue that is recorded cannot follow one that is not recorded with it");
  }
  FLOW_TRY(flush(queue));
  FLOW_TRY(flush(other));
  const emulated_lane *target = lane_of(other);
  emulated_work work = { .kind = WORK_WAIT, .lane = lane_number(other), .count = emulated_total(target) };
  FLOW_TRY(add(queue, &work));
  merge(lane_of(queue)->clock, target->clock);
  return FLOW_OK;
}

static flow_status follow(flow_queue *queue, flow_queue *other)
{
  pthread_mutex_lock(&lock);
  return leave(follow_queue(queue, other));
}

/* ---- recordings -------------------------------------------------------------------------------------------------------------- */

static flow_status begin(flow_queue *queue)
{
  if (queue->recording) return flow_fail(FLOW_INVALID_STATE, "the queue is being recorded already");
  void *made;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_recording), &made));
  flow_recording *recording = made;
  recording->references = 1;
  recording->device = queue->device;
  emulated_list_recording();
  return join(queue, recording);
}

static flow_status record_begin(flow_queue *queue)
{
  pthread_mutex_lock(&lock);
  return leave(begin(queue));
}

void emulated_recording_release(flow_recording *recording)
{
  if (--recording->references > 0) return;
  for (int i = 0; i < recording->count; i++) {
    const emulated_lane *lane = &recording->lanes[i];
    for (int k = 0; k < lane->count; k++)
      if (lane->work[k].kind == WORK_RECEIVE) emulated_rank_recorded(lane->work[k].rank, -1);
    emulated_drop_work(&recording->lanes[i]);
  }
  flow_free(recording->accesses.list);
  flow_free(recording);
}

static flow_status check_recording(const flow_recording *recording)
{
  if (recording->broken) return flow_fail(FLOW_INVALID_STATE, "the recording holds a call that cannot be recorded");
  for (int i = 1; i < recording->count; i++) {
    if (recording->lanes[0].clock[i] < emulated_total(&recording->lanes[i])) {
      return flow_fail(FLOW_INVALID_STATE, "a queue that was recorded along is not followed before the end of the recording");
    }
  }
  return FLOW_OK;
}

static flow_status end(flow_queue *queue, flow_recording **out)
{
  flow_recording *recording = queue->recording;
  if (!recording || queue->branch != 0) return flow_fail(FLOW_INVALID_STATE, "the recording of this queue was not begun");
  flow_status status = FLOW_OK;
  for (int i = 0; i < recording->count; i++) {
    flow_status flushed = flush(recording->queues[i]);
    if (status == FLOW_OK) status = flushed;
    recording->queues[i]->recording = NULL;
    recording->queues[i]->branch = 0;
  }
  if (status == FLOW_OK) status = check_recording(recording);
  if (status == FLOW_OK) *out = recording;
  else emulated_recording_release(recording);
  return status;
}

static flow_status record_end(flow_queue *queue, flow_recording **out)
{
  *out = NULL;
  pthread_mutex_lock(&lock);
  return leave(end(queue, out));
}

static flow_status replay_on(flow_queue *queue, flow_recording *recording)
{
  FLOW_TRY(refuse_while_recorded(queue, "replay"));
  for (int i = 0; i < recording->accesses.count; i++) {
    const emulated_access *access = &recording->accesses.list[i];
    FLOW_TRY(touch(queue, access->from, (size_t)(access->to - access->from), access->write, access->op));
  }
  emulated_work work = { .kind = WORK_REPLAY, .recording = recording };
  FLOW_TRY(emulated_start_replay(recording, &work.payload));
  recording->references++;
  flow_traffic_count(&queue->device->traffic, FLOW_TRAFFIC_REPLAYS, 1);
  return add(queue, &work);
}

static flow_status replay(flow_queue *queue, const flow_recording *recording)
{
  pthread_mutex_lock(&lock);
  return leave(replay_on(queue, (flow_recording *)(uintptr_t)recording));      /* only its references change */
}

static int recording_nodes(const flow_recording *recording)
{
  return recording->nodes;
}

static void recording_release(flow_recording *recording)
{
  if (!recording) return;
  pthread_mutex_lock(&lock);
  emulated_recording_release(recording);
  pthread_mutex_unlock(&lock);
}

/* ---- devices ----------------------------------------------------------------------------------------------------------------- */

static const flow_accelerator_functions functions = {
  .queue_new = queue_new, .queue_release = queue_release, .follow = follow, .synchronize = synchronize,
  .allocate = allocate, .release = release, .upload = upload, .download = download, .copy = copy_inside, .clear = clear,
  .free_memory = free_memory, .approve = flow_cuda_approve, .require_approval = flow_cuda_require_approval,
  .take_batch = flow_cuda_take_batch,
  .record_begin = record_begin, .record_end = record_end, .replay = replay, .recording_nodes = recording_nodes,
  .recording_release = recording_release,
};

static double setting(const char *name, double otherwise, double most)
{
  const char *text = getenv(name);
  double value = text && *text ? strtod(text, NULL) : otherwise;
  return value >= 0 && value <= most ? value : otherwise;
}

static int count_devices(char *why, size_t size)
{
  int count = (int)setting("FLOW_EMULATED_GPUS", 2, EMULATED_DEVICES);
  if (count == 0) snprintf(why, size, "FLOW_EMULATED_GPUS is 0");
  return count;
}

static flow_status start_device(int index)
{
  emulated_device *device = &devices[index];
  size_t bytes = (size_t)setting("FLOW_EMULATED_MEMORY", 0x1p30, 0x1p40) / 65536 * 65536;
  FLOW_TRY(emulated_memory_start(&device->memory, bytes));
  emulated_seed((uint64_t)setting("FLOW_EMULATED_SEED", 1, 0x1p53));
  device->base = (flow_accelerator){
    .device = { .name = "gpu", .isa = "emulated", .kernels = flow_cuda_kernels, .halves = 1, .mixes_halves = flow_cuda_mixes_halves },
    .index = index, .functions = &functions, .memory_bytes = (double)bytes, .traffic = &device->traffic,
  };
  /* FLOW_EMULATED_SHARED: another process that is told the same has the same devices, as far as identities go. */
  const char *shared = getenv("FLOW_EMULATED_SHARED");
  snprintf(device->base.identity, sizeof device->base.identity, "%s%lld, %d", shared ? "shared " : "process ",
           shared ? 0LL : (long long)getpid(), index);
  snprintf(device->base.description, sizeof device->base.description, "emulated by the CPU, for tests");
  return FLOW_OK;
}

static flow_status open_device(int index, const flow_accelerator **out)
{
  char why[FLOW_ACCELERATOR_TEXT];
  *out = NULL;
  int count = count_devices(why, sizeof why);
  if (index < 0 || index >= count) return flow_fail(FLOW_INVALID_ARGUMENT, "there is no gpu:%d: this process sees %d", index, count);
  pthread_mutex_lock(&lock);
  flow_status status = devices[index].base.functions ? FLOW_OK : start_device(index);
  if (status == FLOW_OK) *out = &devices[index].base;
  return leave(status);
}

const flow_accelerator_table flow_cuda_table = { .count = count_devices, .open = open_device, .transport = &emulated_nccl_transport };
