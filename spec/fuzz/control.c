/* control.c: what a network may bring to the control plane: bytes become frames, frames messages, messages events of a chief (two
 * members' connections) or of a member. The first byte says whose; the next two how many of the following ones come over the first
 * connection.
 * sources: core/cluster/control/frame.c core/cluster/control/message.c core/cluster/control/protocol*.c
 * sources: core/cluster/cluster*.c core/cluster/address.c
 */
#include "fuzz.h"
#include <string.h>
#include "cluster/control/frame.h"
#include "cluster/control/protocol.h"

typedef struct control_end { flow_protocol *protocol; flow_cluster *cluster; double now; int dialed, closed[3]; } control_end;

static void start_end(control_end *end, int member)
{
  static const char form[] = "{\"cluster\":{\"chief\":[\"a:1\"],\"worker\":[\"b:1\",\"c:1\"]},\"task\":{\"type\":\"%s\",\"index\":0}}";
  char text[256];
  snprintf(text, sizeof text, form, member ? "worker" : "chief");
  *end = (control_end){ .dialed = 0 };
  if (flow_cluster_parse(text, (double)strlen(text), "fuzz", NULL, -1, &end->cluster) != FLOW_OK) abort();
  const flow_protocol_options options = { .cluster = end->cluster, .job = "j", .version = "1", .incarnation = 5 };
  if (flow_protocol_new(&options, 0, &end->protocol) != FLOW_OK) abort();
  flow_protocol_join(end->protocol, 0, 3, "m");
}

/* What comes out has to be messages that can be read, over connections that are open. */
static void take_actions(control_end *end)
{
  flow_action action;
  flow_control_message message;
  while (flow_protocol_next(end->protocol, &action)) {
    if (action.kind == FLOW_ACTION_SEND && flow_control_read(action.bytes, action.count, &message) != FLOW_OK) abort();
    if (action.kind == FLOW_ACTION_SEND && end->closed[action.connection]) abort();
    if (action.kind == FLOW_ACTION_CLOSE) end->closed[action.connection] = 1;
    if (action.kind == FLOW_ACTION_DIAL) end->dialed = 1;
    if (action.kind == FLOW_ACTION_STARTED) flow_protocol_barrier(end->protocol, end->now, 1, "b", 5);
    if (action.kind == FLOW_ACTION_ABORTED) flow_protocol_join(end->protocol, end->now, 4, "m");
  }
}

/* A message is copied into its own memory, so that a sanitizer sees its end; read and written again it is the same. */
static void give_message(control_end *end, int connection, const uint8_t *contents, size_t count)
{
  uint8_t *copy = malloc(count + 1), *again = malloc(FLOW_MOST_MESSAGE);
  flow_control_message message;
  memcpy(copy, contents, count);
  if (flow_control_read(copy, count, &message) == FLOW_OK) {
    if (flow_control_size(&message) != count || flow_control_write(&message, again) != count || memcmp(copy, again, count) != 0) abort();
  }
  if (!end->closed[connection]) flow_protocol_received(end->protocol, end->now, connection, copy, count);
  take_actions(end);
  free(copy);
  free(again);
}

/* The shape of a frame is the fuzzer's, its number is put right: guessing it would take all the time. */
static void feed_stream(control_end *end, int connection, flow_frame_reader *reader, const uint8_t *bytes, size_t count)
{
  uint8_t *copy = malloc(count + 1);
  memcpy(copy, bytes, count);
  for (size_t at = 0; at < count;) {
    size_t used, size;
    const uint8_t *contents;
    if (reader->filled == 0 && count - at >= FLOW_FRAME_HEADER) memcpy(copy + at + 4, &reader->number, 8);
    if (flow_frame_reader_feed(reader, copy + at, count - at, &used, &contents, &size) != FLOW_OK) break;
    if (used == 0 || used > count - at) abort();
    at += used;
    if (contents) give_message(end, connection, contents, size);
    end->now += 0.25;
    flow_protocol_timer(end->protocol, end->now);
    take_actions(end);
  }
  free(copy);
}

static void control(const uint8_t *bytes, size_t count)
{
  if (count < 3) return;
  control_end end;
  flow_frame_reader readers[2];
  int member = bytes[0] & 1;
  start_end(&end, member);
  flow_protocol_timer(end.protocol, 0);
  take_actions(&end);
  for (int i = 0; i < 2; i++) flow_frame_reader_init(&readers[i], NULL, FLOW_FRAME_MOST);
  for (int i = 0; i < 2 - member; i++) flow_protocol_connected(end.protocol, end.now, i);
  take_actions(&end);
  size_t streams = count - 3, first = bytes[1] + 256u * bytes[2];
  if (member || first > streams) first = streams;
  feed_stream(&end, 0, &readers[0], bytes + 3, first);
  if (!member) feed_stream(&end, 1, &readers[1], bytes + 3 + first, streams - first);
  flow_protocol_timer(end.protocol, end.now + 400);
  take_actions(&end);
  for (int i = 0; i < 2; i++) flow_frame_reader_clear(&readers[i]);
  flow_protocol_release(end.protocol);
  flow_cluster_release(end.cluster);
}

FUZZ_TARGET(control)
