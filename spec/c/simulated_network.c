/* simulated_network.c: time, chance and the connections of a simulated cluster. */
#include "simulated_cluster.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

unsigned sim_random(simulation *sim, unsigned below)
{
  sim->random = sim->random * 6364136223846793005ull + 1442695040888963407ull;
  return (unsigned)(sim->random >> 33) % below;
}

double sim_real(simulation *sim, double from, double to) { return from + (to - from) * sim_random(sim, 1u << 20) / (double)(1u << 20); }

sim_event *sim_schedule(simulation *sim, double at, int kind, int node, const void *bytes, size_t count)
{
  sim_event *event = calloc(1, sizeof *event + count), **place = &sim->events;
  *event = (sim_event){ .at = at, .order = sim->order++, .kind = kind, .node = node, .count = count, .connection = -1,
                        .process = sim->node[node].process };
  if (count > 0) memcpy(event->bytes, bytes, count);
  while (*place && (*place)->at <= at) place = &(*place)->next;
  event->next = *place;
  *place = event;
  return event;
}

/* ---- sealing, of a kind that notices every exchange ---------------------------------------------------------------------------------- */

static uint32_t sim_sum(uint64_t number, const uint8_t *bytes, size_t count)
{
  uint64_t sum = number * 0x9e3779b97f4a7c15u + 1;
  for (size_t i = 0; i < count; i++) sum = (sum ^ bytes[i]) * 0x100000001b3u;
  return (uint32_t)(sum >> 16);
}

static flow_status sim_seal(void *state, uint64_t number, const uint8_t *contents, size_t count, uint8_t *to)
{
  uint32_t sum = sim_sum(number, contents, count);
  (void)state;
  memmove(to, contents, count);
  memcpy(to + count, &sum, 4);
  return FLOW_OK;
}

static flow_status sim_open(void *state, uint64_t number, const uint8_t *sealed, size_t count, uint8_t *to)
{
  uint32_t sum = sim_sum(number, sealed, count - 4);
  (void)state;
  if (memcmp(&sum, sealed + count - 4, 4) != 0) return flow_fail(FLOW_CORRUPT_DATA, "sealed otherwise");
  memmove(to, sealed, count - 4);
  return FLOW_OK;
}

static const flow_seal sim_sealing = { 4, sim_seal, sim_open, NULL };

/* ---- connections --------------------------------------------------------------------------------------------------------------------- */

int sim_end_of(const simulation *sim, const sim_connection *connection, int node)
{
  for (int end = 0; end < 2; end++) {
    if (connection->node[end] == node && connection->process[end] == sim->node[node].process) return end;
  }
  return -1;
}

/* In order after all that was sent before. */
static double sim_arrival(simulation *sim, sim_direction *to)
{
  double at = sim->now + sim_real(sim, 0.0002, sim->slowest);
  if (at < to->last) at = to->last;
  to->last = at;
  return at;
}

void sim_deliver(simulation *sim, int number, int end, int kind, const void *bytes, size_t count)
{
  sim_connection *connection = &sim->connections[number];
  sim_event *event = sim_schedule(sim, sim_arrival(sim, &connection->to[end]), kind, connection->node[end], bytes, count);
  event->connection = number;
  event->process = connection->process[end];
}

void sim_send(simulation *sim, int node, int number, const uint8_t *bytes, size_t count)
{
  sim_connection *connection = &sim->connections[number];
  int end = sim_end_of(sim, connection, node);
  if (end < 0 || !connection->open[end]) return;
  if (count > FLOW_MOST_MESSAGE) SIM_BREAK(sim, "a message of %zu bytes", count);
  uint8_t *frame = malloc(flow_frame_size(&sim_sealing, count));
  flow_frame_write(&sim_sealing, connection->to[!end].number++, bytes, count, frame);
  if (!connection->muted) sim_deliver(sim, number, !end, SIM_ARRIVE, frame, flow_frame_size(&sim_sealing, count));
  free(frame);
}

/* This end is gone; the other learns of it in time, unless nothing gets through any more. */
void sim_close(simulation *sim, int number, int end)
{
  sim_connection *connection = &sim->connections[number];
  if (!connection->open[end]) return;
  connection->open[end] = 0;
  if (connection->open[!end] && !connection->muted) sim_deliver(sim, number, !end, SIM_CLOSED, NULL, 0);
}

void sim_close_all(simulation *sim, int node)
{
  for (int i = 0; i < sim->connection_count; i++) {
    int end = sim_end_of(sim, &sim->connections[i], node);
    if (end >= 0) sim_close(sim, i, end);
  }
}

void sim_dial(simulation *sim, int node)
{
  double answer = sim->now + sim_real(sim, 0.0002, sim->slowest);
  if (!sim->node[0].protocol || sim->connection_count == SIM_MOST_CONNECTIONS) {
    sim_schedule(sim, answer, SIM_REFUSED, node, NULL, 0);
    return;
  }
  int number = sim->connection_count++;
  sim_connection *connection = &sim->connections[number];
  *connection = (sim_connection){ .node = { node, 0 }, .process = { sim->node[node].process, sim->node[0].process }, .open = { 1, 1 } };
  for (int end = 0; end < 2; end++) {
    flow_frame_reader_init(&connection->to[end].reader, &sim_sealing, FLOW_FRAME_MOST);
    sim_deliver(sim, number, end, SIM_CONNECTED, NULL, 0);
  }
}
