/* team.h: the persistent thread team that plans and eager ops run on. One team per process, started at the first
 * computation (never at load), asleep when idle, re-made after fork, signals blocked but the synchronous four.
 *
 * Rules from hosts that this file keeps: no thread at load; a forked child starts afresh; idle threads burn nothing;
 * several callers at once are normal: a caller that finds the team busy runs its region alone, with the same result. */
#ifndef FLOW_BASE_TEAM_H
#define FLOW_BASE_TEAM_H

#include "base/status.h"

typedef struct flow_region flow_region;   /* one parallel region in flight */

/* Work of one member: member 0 is the caller. All members run the same function over the same argument. */
typedef void (*flow_region_function)(flow_region *region, int member, int members, void *argument);

/* Runs fn on up to `wanted` members (0 = all) and returns when each has returned. Falls back to the caller alone when
 * the team is busy, cannot be started or wanted == 1. Regions do not nest: a call from inside a region runs alone.
 * The caller does the part of a member whose thread has not woken up when the caller's own part is done. */
void flow_team_run(int wanted, flow_region_function fn, void *argument);

/* From now on regions of the calling thread have one member. For threads that compute beside the team. */
void flow_team_leave(void);

/* Waits until every member of the region has arrived. Spins briefly, then sleeps. No-op for one member. */
void flow_region_barrier(flow_region *region);

/* Without a barrier: waits until *number is not `old`; wakes members that wait, after a sequentially consistent change of it. */
void flow_region_wait(flow_region *region, _Atomic int *number, int old);
void flow_region_tell(flow_region *region, _Atomic int *number);

int  flow_core_count(void);      /* of the affinity mask, or of the control group's quota if that is less */
/* The members that flow_team_run(0, ...) would use now; of a thread that left, 1. */
int  flow_team_size(void);
flow_status flow_team_set_size(int count);    /* 0 = one per core */

/* A counter that members draw parts from; reset by the owner of the region between two barriers. */
#include <stdatomic.h>
typedef struct { _Atomic int64_t next; char pad[56]; } flow_ticket;
static inline int64_t flow_ticket_take(flow_ticket *ticket) { return atomic_fetch_add_explicit(&ticket->next, 1, memory_order_relaxed); }
static inline void flow_ticket_reset(flow_ticket *ticket) { atomic_store_explicit(&ticket->next, 0, memory_order_relaxed); }

#endif
