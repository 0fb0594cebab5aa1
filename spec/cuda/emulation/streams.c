/* streams.c: streams, events, and how the host waits for them. */
#include "cuda/emulation/emulation.h"

#include "base/memory.h"

struct CUevent_st {
  int               device, recorded, lane;
  int64_t           position;            /* of the lane: when this many are done it has happened */
  int64_t           clock[EMULATED_LANES];
  emulated_capture *capture;             /* a reference; where it was recorded in one: */
  emulated_tail     tail;
};

static cudaStream_t streams[EMULATED_LANES];

cudaError_t emulated_check_stream(cudaStream_t stream)
{
  for (int i = 0; i < EMULATED_LANES; i++)
    if (stream && streams[i] == stream) return cudaSuccess;
  return cudaErrorInvalidResourceHandle;
}

cudaError_t emulated_check_current(cudaStream_t stream)
{
  EMULATED_TRY(emulated_check_stream(stream));
  return stream->device == emulated_device() ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

int64_t *emulated_clock(cudaStream_t stream)
{
  if (stream->capture) return stream->clock;
  int64_t *clock = emulated_lanes[stream->lane].clock;
  emulated_merge(clock, emulated_host_clock);
  return clock;
}

cudaError_t emulated_enqueue(cudaStream_t stream, const emulated_work *work)
{
  enum { MOST_DEFERRED = 4096 };
  if (stream->capture) return emulated_capture_work(stream, work);
  emulated_lane *lane = &emulated_lanes[stream->lane];
  int64_t *clock = emulated_clock(stream);
  EMULATED_TRY(emulated_add(lane, work));
  clock[stream->lane] = emulated_total(lane);
  if (lane->count - lane->next > MOST_DEFERRED) emulated_carry_out(stream->lane, emulated_total(lane));
  return cudaSuccess;
}

/* ---- streams ------------------------------------------------------------------------------------------------------------------- */

/* A lane of which nothing is left that a new stream would wrongly count as ordered before its own work; -1: there is none. */
static int find_lane(void)
{
  for (int i = 0; i < EMULATED_LANES; i++)
    if (!streams[i] && emulated_host_clock[i] >= emulated_total(&emulated_lanes[i])) return i;
  return -1;
}

static cudaError_t make_stream(cudaStream_t *out, unsigned flags)
{
  void *made;
  int lane = find_lane();
  if (flags != cudaStreamNonBlocking) return cudaErrorNotSupported;
  if (lane < 0 || flow_alloc_zero(sizeof **out, &made) != FLOW_OK) return cudaErrorMemoryAllocation;
  *out = streams[lane] = made;
  **out = (struct CUstream_st){ .device = emulated_device(), .lane = lane };
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
  EMULATED_BEGIN();
  return emulated_leave(make_stream(stream, flags));
}

/* What is still to be done is done. */
static cudaError_t destroy(cudaStream_t stream)
{
  EMULATED_TRY(emulated_check_stream(stream));
  if (stream->capture) return emulated_invalidate(stream->capture, cudaErrorStreamCaptureUnsupported);
  streams[stream->lane] = NULL;
  emulated_lanes[stream->lane].failure = cudaSuccess;
  flow_free(stream->tail.list);
  flow_free(stream);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
  EMULATED_BEGIN();
  return emulated_leave(destroy(stream));
}

static cudaError_t take_failure(emulated_lane *lane)
{
  cudaError_t failure = lane->failure;
  lane->failure = cudaSuccess;
  return failure == cudaErrorUnknown ? emulated_refuse("%s", lane->failure_text) : failure;
}

static cudaError_t wait_for(cudaStream_t stream)
{
  EMULATED_TRY(emulated_check_stream(stream));
  if (stream->capture) return emulated_invalidate(stream->capture, cudaErrorStreamCaptureUnsupported);
  EMULATED_TRY(emulated_check_unsafe());
  emulated_lane *lane = &emulated_lanes[stream->lane];
  emulated_finish(stream->lane, emulated_total(lane));
  emulated_merge(emulated_host_clock, emulated_clock(stream));
  return take_failure(lane);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
  EMULATED_BEGIN();
  return emulated_leave(wait_for(stream));
}

/* Not ready, perhaps, though it is. */
static cudaError_t query(cudaStream_t stream)
{
  EMULATED_TRY(emulated_check_stream(stream));
  if (stream->capture) return emulated_invalidate(stream->capture, cudaErrorStreamCaptureUnsupported);
  EMULATED_TRY(emulated_check_unsafe());
  if (emulated_random(2) || !emulated_carry_out(stream->lane, emulated_total(&emulated_lanes[stream->lane]))) return cudaErrorNotReady;
  emulated_merge(emulated_host_clock, emulated_clock(stream));
  return take_failure(&emulated_lanes[stream->lane]);
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
  EMULATED_BEGIN();
  return emulated_leave(query(stream));
}

/* ---- events -------------------------------------------------------------------------------------------------------------------- */

static cudaError_t make_event(cudaEvent_t *out)
{
  void *made;
  if (flow_alloc_zero(sizeof **out, &made) != FLOW_OK) return cudaErrorMemoryAllocation;
  *out = made;
  (*out)->device = emulated_device();
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
  (void)flags;
  EMULATED_BEGIN();
  return emulated_leave(make_event(event));
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
  if (!event) return cudaErrorInvalidResourceHandle;
  EMULATED_BEGIN();
  if (event->capture) emulated_capture_release(event->capture);
  flow_free(event->tail.list);
  flow_free(event);
  return emulated_leave(cudaSuccess);
}

static cudaError_t record(cudaEvent_t event, cudaStream_t stream)
{
  EMULATED_TRY(emulated_check_stream(stream));
  if (event->device != stream->device) return cudaErrorInvalidResourceHandle;
  if (stream->capture && stream->capture->invalid) return cudaErrorStreamCaptureInvalidated;
  if (event->capture) emulated_capture_release(event->capture);
  event->capture = stream->capture;
  if (event->capture) event->capture->references++;
  event->tail.count = 0;
  EMULATED_TRY(emulated_tail_join(&event->tail, &stream->tail));
  event->recorded = 1;
  event->lane = stream->lane;
  event->position = emulated_total(&emulated_lanes[stream->lane]);
  const int64_t *clock = emulated_clock(stream);
  for (int i = 0; i < EMULATED_LANES; i++) event->clock[i] = clock[i];
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
  EMULATED_BEGIN();
  return emulated_leave(record(event, stream));
}

static cudaError_t follow(cudaStream_t stream, const struct CUevent_st *event)
{
  EMULATED_TRY(emulated_check_stream(stream));
  if (stream->capture && stream->capture->invalid) return cudaErrorStreamCaptureInvalidated;
  if (!event->recorded) return cudaSuccess;
  if (event->capture && event->capture->ended) {
    return stream->capture ? emulated_invalidate(stream->capture, cudaErrorCapturedEvent) : cudaErrorCapturedEvent;
  }
  if (event->capture) return emulated_capture_follow(stream, event->capture, event->clock, &event->tail);
  if (stream->capture) return emulated_invalidate(stream->capture, cudaErrorStreamCaptureIsolation);
  EMULATED_TRY(emulated_enqueue(stream, &(emulated_work){ .kind = WORK_WAIT, .lane = event->lane, .count = event->position }));
  emulated_merge(emulated_lanes[stream->lane].clock, event->clock);
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
  (void)flags;
  EMULATED_BEGIN();
  return emulated_leave(follow(stream, event));
}

/* One that was never recorded is over. */
static cudaError_t wait_for_event(const struct CUevent_st *event)
{
  if (event->capture) {
    if (!event->capture->ended) emulated_invalidate(event->capture, cudaErrorCapturedEvent);
    return cudaErrorCapturedEvent;
  }
  EMULATED_TRY(emulated_check_unsafe());
  if (!event->recorded) return cudaSuccess;
  emulated_finish(event->lane, event->position);
  emulated_merge(emulated_host_clock, event->clock);
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
  EMULATED_BEGIN();
  return emulated_leave(wait_for_event(event));
}
