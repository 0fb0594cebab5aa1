/* hosts_open.c: ranks that have a store to meet in find out which of them share a machine, and connect accordingly: all ranks gather
 * their cards through the store, each finds the same machines from them, each machine's ranks meet in memory, and the first ranks
 * connect over TCP. Every decision follows from what all ranks have gathered, so that either all go on or none does. */
#include "transport/hosts.h"

#include <stdio.h>
#include <string.h>
#include "base/memory.h"
#include "transport/shared.h"

enum { GROUP = 96 };

/* What a rank tells: a text that only ranks of the same machine have ("": it shares nothing), and whether it wants such a group at all. */
typedef struct card { char machine[FLOW_MACHINE]; int32_t wanted; } card;

/* The rest of the text is zero in every card, so that all of it can be compared. */
static int are_together(const card *cards, int rank, int other)
{
  return cards[rank].machine[0] && memcmp(cards[rank].machine, cards[other].machine, sizeof cards->machine) == 0;
}

/* Who is where, the same at all ranks. 0: every machine has one rank, or there is one, or the ranks of one do not follow each other, or
 * a rank does not want it. Sets hosts, host, most and firsts. The loop over earlier ranks finds a machine that comes back after another
 * one: its ranks do not follow each other, so that sums in the order of the ranks could not be made within it. */
static int find_hosts(flow_hosts *self, const card *cards)
{
  int size = self->base.size;
  self->hosts = 0;
  for (int rank = 0; rank < size; rank++) {
    if (!cards[rank].wanted) return 0;
    if (rank > 0 && are_together(cards, rank, rank - 1)) continue;
    for (int other = 0; other < rank; other++) if (are_together(cards, rank, other)) return 0;
    self->firsts[self->hosts++] = rank;
  }
  self->firsts[self->hosts] = size;
  for (int h = 0; h < self->hosts; h++) {
    int ranks = self->firsts[h + 1] - self->firsts[h];
    if (ranks > self->most) self->most = ranks;
    if (self->firsts[h] <= self->base.rank) self->host = h;
  }
  return self->hosts > 1 && self->most > 1;
}

/* *all: whether each machine's ranks have memory together. have_it[size] is room for what they say. A rank that is alone on its machine
 * needs no memory. */
static flow_status meet_near(flow_hosts *self, flow_communicator *meeting, const flow_transport_options *options, int32_t *have_it,
                             int *all)
{
  char group[GROUP];
  flow_transport_options own = *options;
  int first = self->firsts[self->host], ranks = self->firsts[self->host + 1] - first;
  snprintf(group, sizeof group, "%.60s/%d", options->group, self->host);
  own.group = group;
  if (ranks > 1) FLOW_TRY(flow_communicator_meet(self->base.rank - first, ranks, &own, &self->near));
  int32_t has_it = ranks == 1 || self->near;
  FLOW_TRY(flow_communicator_all_gather(meeting, &has_it, sizeof has_it, have_it));
  *all = 1;
  for (int rank = 0; rank < self->base.size; rank++) *all &= have_it[rank] != 0;
  return FLOW_OK;
}

/* Two machines that follow each other have their own connection: pieces on it do not wait for calls of all. */
static flow_status connect_pair(const flow_hosts *self, int earlier, const flow_transport_options *options, flow_communicator **out)
{
  char group[GROUP];
  flow_transport_options own = *options;
  snprintf(group, sizeof group, "%.60s/pair%d", options->group, earlier);
  own.group = group;
  return flow_communicator_open("tcp", self->host - earlier, 2, &own, out);
}

/* Of a machine's first rank. The pairs come in their order along the machines, so that no two ranks wait for each other. */
static flow_status connect_far(flow_hosts *self, const flow_transport_options *options)
{
  char group[GROUP];
  flow_transport_options own = *options;
  snprintf(group, sizeof group, "%.60s/hosts", options->group);
  own.group = group;
  FLOW_TRY(flow_communicator_open("tcp", self->host, self->hosts, &own, &self->far));
  if (self->host > 0) FLOW_TRY(connect_pair(self, self->host - 1, options, &self->before));
  if (self->host < self->hosts - 1) FLOW_TRY(connect_pair(self, self->host, options, &self->after));
  return self->before ? flow_alloc(FLOW_HOSTS_PIECE, (void **)&self->piece) : FLOW_OK;
}

/* Cards first, then the connections that follow from them. wanted: what this rank asks for; *found: whether all ranks got it. A group that
 * has no use for machines (find_hosts) ends here without an error. */
static flow_status meet(flow_hosts *self, flow_communicator *meeting, card *cards, const flow_transport_options *options, int wanted,
                        int *found)
{
  card *mine = &cards[self->base.size];
  mine->wanted = wanted;
  if (options->machine) snprintf(mine->machine, sizeof mine->machine, "%s", options->machine);
  else flow_shared_describe_machine(mine->machine);
  FLOW_TRY(flow_communicator_all_gather(meeting, mine, sizeof *mine, cards));
  if (!find_hosts(self, cards)) return FLOW_OK;
  FLOW_TRY(meet_near(self, meeting, options, (int32_t *)cards, found));
  if (!*found) return FLOW_OK;
  FLOW_TRY(flow_alloc((size_t)self->base.size * FLOW_HOSTS_SMALL, (void **)&self->small));
  return self->base.rank == self->firsts[self->host] ? connect_far(self, options) : FLOW_OK;
}

/* Every rank of a group calls this. *out stays NULL, with FLOW_OK, where the group is not made of machines with several ranks: the caller
 * then opens another transport. The meeting in the store is closed before this returns. */
flow_status flow_communicator_meet_hosts(int rank, int size, const flow_transport_options *options, int wanted, flow_communicator **out)
{
  void *block, *cards = NULL;
  char group[GROUP];
  flow_communicator *meeting = NULL;
  flow_transport_options own = *options;
  size_t ranks = (size_t)size;                 /* at most FLOW_MOST_RANKS */
  int found = 0;
  *out = NULL;
  if (size < 3) return FLOW_OK;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_hosts) + ranks * sizeof(void *) + (ranks + 1) * sizeof(int), &block));
  flow_hosts *self = block;
  self->base = (flow_communicator){ &flow_transport_hosts, rank, size, options->timeout };
  self->parts = (const void **)(self + 1);
  self->firsts = (int *)(self->parts + size);
  flow_failure_clear(&self->failure);
  snprintf(group, sizeof group, "%.60s/where", options->group);
  own.group = group;
  flow_status status = flow_alloc_zero((ranks + 1) * sizeof(card), &cards);
  if (status == FLOW_OK) status = flow_meeting_open(rank, size, &own, &meeting);
  if (status == FLOW_OK) status = meet(self, meeting, cards, options, wanted, &found);
  flow_communicator_close(meeting);
  flow_free(cards);
  if (status == FLOW_OK && found) *out = &self->base;
  else flow_communicator_close(&self->base);
  return status;
}

int flow_communicator_neighbours(const flow_communicator *self)
{
  if (flow_communicator_is_shared(self)) return self->size;
  if (self->transport != &flow_transport_hosts) return 1;
  const flow_communicator *near = ((const flow_hosts *)self)->near;
  return near ? near->size : 1;
}
