/* runtime_recording.c: the order between queues, and recordings: CUDA graphs captured from streams. Other threads may use CUDA meanwhile:
 * the capture minds its own thread alone. */
#include "cuda/runtime/runtime.h"

#include "base/memory.h"

/* What was recorded, ready to be launched on any queue of its device. It holds the addresses of the operands, not the operands: the
 * owner keeps the memory for as long as it is replayed. nodes: kernels, copies and clears. */
struct flow_recording {
  flow_cuda_device *device;
  cudaGraphExec_t   graph;
  int               nodes;
};

/* The queue's calls are part of the recording from now on. */
static flow_status join(flow_queue *queue, flow_cuda_capture *capture)
{
  if (capture->count == FLOW_CUDA_RECORDED_QUEUES) {
    return flow_fail(FLOW_INVALID_STATE, "at most %d queues are recorded together", FLOW_CUDA_RECORDED_QUEUES);
  }
  capture->queues[capture->count++] = queue;
  queue->capture = capture;
  queue->after_kernel = 0;
  return FLOW_OK;
}

/* What is enqueued on `queue` from now on waits for what was enqueued on `other` until now. The bundles of both are closed before: they
 * belong to the time before the event. One event per queue is enough, since a wait refers to its last record. */
static flow_status order(flow_queue *queue, flow_queue *other)
{
  int before;
  FLOW_TRY(flow_runtime_flush(queue));
  FLOW_TRY(flow_runtime_flush(other));
  FLOW_TRY(flow_runtime_enter(other->device, &before));
  cudaError_t error = cudaEventRecord(other->event, other->stream);
  if (error == cudaSuccess) error = cudaStreamWaitEvent(queue->stream, other->event, 0);
  flow_runtime_leave(other->device, before);
  return error == cudaSuccess ? FLOW_OK : flow_runtime_fail(queue->device, "following another queue", error);
}

/* A queue that follows a recorded one is recorded along with it, as CUDA's streams are: so a recording spreads over several queues. The
 * other direction is refused, since the graph cannot wait for work that is outside it: the caller that records lets its other queues finish
 * before he begins. Before the end the queue that began must follow each that came along. */
flow_status flow_runtime_follow(flow_queue *queue, flow_queue *other)
{
  if (queue == other) return FLOW_OK;
  if (other->capture && !queue->capture) {
    FLOW_TRY(order(queue, other));
    return join(queue, other->capture);
  }
  if (queue->capture != other->capture) {
    queue->capture->broken = 1;
    return flow_fail(FLOW_INVALID_STATE, "a queue that is recorded cannot follow one that is not recorded with it");
  }
  return order(queue, other);
}

/* The bundle is loaded before, since recordings alone have it: other kernels were launched before, as a rule. Thread-local capture: a call
 * that is not allowed while a stream is captured (a cudaMalloc, for example) fails in the recording thread only; threads that load data or
 * train on another device go on. */
static flow_status begin(flow_queue *queue, flow_cuda_capture *capture)
{
  int before;
  flow_cuda_function bundle;
  FLOW_TRY(flow_runtime_enter(queue->device, &before));
  flow_status status = flow_runtime_kernel(queue->device, CUDA_bundle, &bundle);
  if (status != FLOW_OK) {
    flow_runtime_leave(queue->device, before);
    return status;
  }
  cudaError_t error = cudaStreamBeginCapture(queue->stream, cudaStreamCaptureModeThreadLocal);
  flow_runtime_leave(queue->device, before);
  return error == cudaSuccess ? join(queue, capture) : flow_runtime_fail(queue->device, "a recording", error);
}

flow_status flow_runtime_record_begin(flow_queue *queue)
{
  void *made;
  if (queue->capture) return flow_fail(FLOW_INVALID_STATE, "the queue is being recorded already");
  FLOW_TRY(flow_alloc_zero(sizeof(flow_cuda_capture), &made));
  flow_status status = begin(queue, made);
  if (status != FLOW_OK) flow_free(made);
  return status;
}

/* Ends the capture for all its queues, whatever went wrong: they can be used again. *graph is the caller's to destroy and may be NULL.
 * What they released meanwhile is given back here, since CUDA does not let a capture release what it did not allocate. Of several
 * failures the first reason is told: a launch that failed, then a call that cannot be recorded, then what CUDA says. */
static flow_status end_capture(flow_queue *queue, cudaGraph_t *graph)
{
  flow_cuda_capture *capture = queue->capture;
  flow_status status = FLOW_OK;
  *graph = NULL;
  for (int i = 0; i < capture->count; i++) {
    flow_status flushed = flow_runtime_flush(capture->queues[i]);
    if (status == FLOW_OK) status = flushed;
  }
  cudaError_t error = cudaStreamEndCapture(queue->stream, graph);
  int broken = capture->broken;
  for (int i = 0; i < capture->count; i++) {
    capture->queues[i]->capture = NULL;
    flow_runtime_release_deferred(capture->queues[i]);
  }
  flow_free(capture);
  if (status != FLOW_OK) return status;
  if (broken) return flow_fail(FLOW_INVALID_STATE, "the recording holds a call that cannot be recorded");
  if (error == cudaErrorStreamCaptureUnjoined) {
    return flow_fail(FLOW_INVALID_STATE, "a queue that was recorded along is not followed before the end of the recording");
  }
  return error == cudaSuccess ? FLOW_OK : flow_runtime_fail(queue->device, "a recording", error);
}

/* Makes the graph executable and sends it to the device, so that the first replay is as fast as the others. */
static flow_status instantiate(flow_queue *queue, cudaGraph_t graph, flow_recording *recording)
{
  size_t nodes = 0;
  recording->device = queue->device;
  FLOW_CUDA_TRY(queue->device, "a recording", cudaGraphGetNodes(graph, NULL, &nodes));
  recording->nodes = (int)nodes;
  FLOW_CUDA_TRY(queue->device, "a recording", cudaGraphInstantiate(&recording->graph, graph, 0));
  FLOW_CUDA_TRY(queue->device, "a recording", cudaGraphUpload(recording->graph, queue->stream));
  return FLOW_OK;
}

static flow_status keep(flow_queue *queue, cudaGraph_t graph, flow_recording **out)
{
  void *made;
  FLOW_TRY(flow_alloc_zero(sizeof **out, &made));
  flow_status status = instantiate(queue, graph, made);
  if (status == FLOW_OK) *out = made;
  else flow_runtime_recording_release(made);
  return status;
}

/* Only the queue that began may end it, in the same thread: CUDA demands the latter of thread-local captures. */
flow_status flow_runtime_record_end(flow_queue *queue, flow_recording **out)
{
  *out = NULL;
  if (!queue->capture || queue->capture->queues[0] != queue) {
    return flow_fail(FLOW_INVALID_STATE, "the recording of this queue was not begun");
  }
  int before;
  cudaGraph_t graph;
  FLOW_TRY(flow_runtime_enter(queue->device, &before));
  flow_status status = end_capture(queue, &graph);
  if (status == FLOW_OK) status = keep(queue, graph, out);
  if (graph) cudaGraphDestroy(graph);
  flow_runtime_leave(queue->device, before);
  return status;
}

/* Enqueues the whole graph, by one call. Two replays of the same recording never run side by side, on any queues: CUDA orders them. */
flow_status flow_runtime_replay(flow_queue *queue, const flow_recording *recording)
{
  int before;
  FLOW_TRY(flow_runtime_refuse_while_recorded(queue, "replay"));
  flow_traffic_count(&queue->device->traffic, FLOW_TRAFFIC_REPLAYS, 1);
  FLOW_TRY(flow_runtime_enter(queue->device, &before));
  cudaError_t error = cudaGraphLaunch(recording->graph, queue->stream);
  flow_runtime_leave(queue->device, before);
  return error == cudaSuccess ? FLOW_OK : flow_runtime_fail(queue->device, "a replay", error);
}

int flow_runtime_recording_nodes(const flow_recording *recording)
{
  return recording->nodes;
}

/* CUDA keeps what is still running. */
void flow_runtime_recording_release(flow_recording *recording)
{
  int before;
  if (!recording) return;
  if (flow_runtime_enter(recording->device, &before) == FLOW_OK) {
    if (recording->graph) cudaGraphExecDestroy(recording->graph);
    flow_runtime_leave(recording->device, before);
  }
  flow_free(recording);
}
