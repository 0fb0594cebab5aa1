/* graphs.c: streams that are captured, and the graphs that come of it. A capture is a graph that grows: each stream in it is a branch whose
 * next node waits for the stream's last one and for what the stream followed since. */
#include "cuda/emulation/emulation.h"

#include <string.h>
#include "base/memory.h"

struct CUgraph_st { emulated_nodes *nodes; };

struct CUgraphExec_st {
  emulated_nodes *nodes;
  int      launched, lane;                 /* its last launch: */
  int64_t  position, clock[EMULATED_LANES];
};

static emulated_capture *captures;

/* ---- captures ---------------------------------------------------------------------------------------------------------------- */

void emulated_capture_release(emulated_capture *self)
{
  if (--self->references > 0) return;
  if (self->nodes) emulated_nodes_release(self->nodes);
  flow_free(self);
}

cudaError_t emulated_invalidate(emulated_capture *self, cudaError_t error)
{
  if (self->invalid == cudaSuccess) self->invalid = error;
  return error;
}

/* A thread's own, from which it may differ for a while. */
static _Thread_local enum cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
  enum cudaStreamCaptureMode before = thread_mode;
  emulated_lock();
  thread_mode = *mode;
  *mode = before;
  return emulated_leave(cudaSuccess);
}

cudaError_t emulated_check_unsafe(void)
{
  if (thread_mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  for (emulated_capture *capture = captures; capture; capture = capture->next)
    if (!capture->relaxed && pthread_equal(capture->thread, pthread_self()))
      return emulated_invalidate(capture, cudaErrorStreamCaptureUnsupported);
  return cudaSuccess;
}

cudaError_t emulated_tail_join(emulated_tail *self, const emulated_tail *other)
{
  for (int i = 0; i < other->count; i++) {
    int known = 0;
    for (int k = 0; k < self->count; k++) known |= self->list[k] == other->list[i];
    if (known) continue;
    if (flow_grow(&self->list, sizeof *self->list, self->count + 1, &self->capacity) != FLOW_OK) return cudaErrorMemoryAllocation;
    self->list[self->count++] = other->list[i];
  }
  return cudaSuccess;
}

static void join(cudaStream_t stream, emulated_capture *capture)
{
  stream->capture = capture;
  stream->branch = capture->branches;
  capture->streams[capture->branches++] = stream;
  memset(stream->clock, 0, sizeof stream->clock);
  stream->tail.count = 0;
  capture->references++;
}

cudaError_t emulated_capture_follow(cudaStream_t stream, emulated_capture *capture, const int64_t *clock, const emulated_tail *tail)
{
  if (capture->invalid) return cudaErrorStreamCaptureInvalidated;
  if (stream->capture && stream->capture != capture) {
    emulated_invalidate(capture, cudaErrorStreamCaptureMerge);
    return emulated_invalidate(stream->capture, cudaErrorStreamCaptureMerge);
  }
  if (!stream->capture && capture->branches == EMULATED_LANES) return emulated_invalidate(capture, cudaErrorNotSupported);
  if (!stream->capture) join(stream, capture);
  emulated_merge(stream->clock, clock);
  return emulated_tail_join(&stream->tail, tail);
}

cudaError_t emulated_capture_work(cudaStream_t stream, const emulated_work *work)
{
  emulated_capture *capture = stream->capture;
  emulated_work kept = *work;
  if (capture->invalid) {
    emulated_drop_work(&kept);
    return cudaErrorStreamCaptureInvalidated;
  }
  int node = capture->nodes->count;
  EMULATED_TRY(emulated_nodes_add(capture->nodes, work, stream->tail.list, stream->tail.count));
  stream->tail.count = 0;
  EMULATED_TRY(emulated_tail_join(&stream->tail, &(emulated_tail){ .list = &node, .count = 1 }));
  stream->clock[stream->branch] = ++capture->totals[stream->branch];
  return cudaSuccess;
}

static cudaError_t begin(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
  void *made, *nodes;
  EMULATED_TRY(emulated_check_stream(stream));
  if (stream->capture) return emulated_invalidate(stream->capture, cudaErrorStreamCaptureUnsupported);
  if (mode == cudaStreamCaptureModeGlobal) return cudaErrorNotSupported;
  if (flow_alloc_zero(sizeof(emulated_capture), &made) != FLOW_OK) return cudaErrorMemoryAllocation;
  if (flow_alloc_zero(sizeof(emulated_nodes), &nodes) != FLOW_OK) {
    flow_free(made);
    return cudaErrorMemoryAllocation;
  }
  emulated_capture *capture = made;
  *capture = (emulated_capture){ .relaxed = mode == cudaStreamCaptureModeRelaxed, .thread = pthread_self(), .nodes = nodes,
                                 .next = captures };
  capture->nodes->references = 1;
  captures = capture;
  emulated_list_recording();
  join(stream, capture);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
  EMULATED_BEGIN();
  return emulated_leave(begin(stream, mode));
}

/* Whether the origin waits for all nodes of the other streams. */
static cudaError_t check(const emulated_capture *capture)
{
  if (capture->invalid) return cudaErrorStreamCaptureInvalidated;
  for (int i = 1; i < capture->branches; i++)
    if (capture->streams[0]->clock[i] < capture->totals[i]) return cudaErrorStreamCaptureUnjoined;
  return cudaSuccess;
}

/* The streams go on as they were before. */
static void leave(emulated_capture *capture)
{
  emulated_capture **at = &captures;
  while (*at != capture) at = &(*at)->next;
  *at = capture->next;
  capture->ended = 1;
  capture->references++;
  for (int i = 0; i < capture->branches; i++) {
    capture->streams[i]->capture = NULL;
    capture->streams[i]->tail.count = 0;
    emulated_capture_release(capture);
  }
}

static cudaError_t make_graph(emulated_nodes *nodes, cudaGraph_t *out)
{
  void *made;
  EMULATED_TRY(emulated_nodes_close(nodes));
  if (flow_alloc_zero(sizeof **out, &made) != FLOW_OK) return cudaErrorMemoryAllocation;
  *out = made;
  (*out)->nodes = nodes;
  nodes->references++;
  return cudaSuccess;
}

static cudaError_t end(cudaStream_t stream, cudaGraph_t *graph)
{
  *graph = NULL;
  EMULATED_TRY(emulated_check_stream(stream));
  emulated_capture *capture = stream->capture;
  if (!capture) return cudaErrorInvalidValue;
  if (capture->streams[0] != stream) return emulated_invalidate(capture, cudaErrorStreamCaptureUnmatched);
  if (!capture->relaxed && !pthread_equal(capture->thread, pthread_self()))
    return emulated_invalidate(capture, cudaErrorStreamCaptureWrongThread);
  cudaError_t error = check(capture);
  leave(capture);
  if (error == cudaSuccess) error = make_graph(capture->nodes, graph);
  emulated_nodes_release(capture->nodes);
  capture->nodes = NULL;
  emulated_capture_release(capture);
  return error;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
  EMULATED_BEGIN();
  return emulated_leave(end(stream, graph));
}

/* ---- graphs ------------------------------------------------------------------------------------------------------------------ */

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
  if (nodes) return cudaErrorNotSupported;
  *count = (size_t)graph->nodes->count;
  return cudaSuccess;
}

static cudaError_t instantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags)
{
  void *made;
  if (!graph) return cudaErrorInvalidValue;
  if (flags != 0) return cudaErrorNotSupported;
  if (flow_alloc_zero(sizeof **out, &made) != FLOW_OK) return cudaErrorMemoryAllocation;
  *out = made;
  (*out)->nodes = graph->nodes;
  graph->nodes->references++;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
  EMULATED_BEGIN();
  return emulated_leave(instantiate(exec, graph, flags));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
  if (!graph) return cudaErrorInvalidValue;
  EMULATED_BEGIN();
  emulated_nodes_release(graph->nodes);
  flow_free(graph);
  return emulated_leave(cudaSuccess);
}

/* What was launched of it is carried out. */
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
  if (!exec) return cudaErrorInvalidValue;
  EMULATED_BEGIN();
  emulated_nodes_release(exec->nodes);
  flow_free(exec);
  return emulated_leave(cudaSuccess);
}

/* The stream comes after the last launch. */
static cudaError_t follow_launch(cudaStream_t stream, const struct CUgraphExec_st *exec)
{
  if (!exec->launched || exec->lane == stream->lane) return cudaSuccess;
  EMULATED_TRY(emulated_enqueue(stream, &(emulated_work){ .kind = WORK_WAIT, .lane = exec->lane, .count = exec->position }));
  emulated_merge(emulated_lanes[stream->lane].clock, exec->clock);
  return cudaSuccess;
}

static cudaError_t check_launch(cudaGraphExec_t exec, cudaStream_t stream)
{
  if (!exec) return cudaErrorInvalidValue;
  EMULATED_TRY(emulated_check_current(stream));
  return stream->capture ? emulated_invalidate(stream->capture, cudaErrorNotSupported) : cudaSuccess;      /* graphs in graphs */
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream)
{
  EMULATED_BEGIN();
  return emulated_leave(check_launch(exec, stream));
}

static cudaError_t launch(cudaGraphExec_t exec, cudaStream_t stream)
{
  emulated_work work;
  EMULATED_TRY(check_launch(exec, stream));
  EMULATED_TRY(follow_launch(stream, exec));
  const emulated_accesses *accesses = &exec->nodes->accesses;
  for (int i = 0; i < accesses->count; i++) {
    const emulated_access *access = &accesses->list[i];
    EMULATED_TRY(emulated_touch_again(stream, access));
  }
  EMULATED_TRY(emulated_replay_start(exec->nodes, &work));
  EMULATED_TRY(emulated_enqueue(stream, &work));
  exec->launched = 1;
  exec->lane = stream->lane;
  exec->position = emulated_total(&emulated_lanes[stream->lane]);
  memcpy(exec->clock, emulated_clock(stream), sizeof exec->clock);
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
  EMULATED_BEGIN();
  return emulated_leave(launch(exec, stream));
}
