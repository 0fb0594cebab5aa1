/* worker_announce.c: what every worker shows the others before a call: programs that are not the same meet in different calls, and would
 * wait for each other for ever, or take each other's bytes. Few bytes ride along, so that a step's first exchange is one. */
#include <stdio.h>
#include <string.h>

#include "base/thread_texts.h"
#include "cluster/worker/worker_state.h"

enum { MAGIC = 0x776f6c66 };

/* In a slot of the thread, as names come in pairs into one sentence. */
const char *flow_worker_name(const flow_worker *worker, int rank)
{
  if (!worker || rank < 0 || rank >= flow_cluster_workers(worker->cluster)) return "";
  if (worker->control) rank = flow_worker_task(worker, rank);
  if (rank < 0) return "";
  char *text = flow_text_slot(), name[FLOW_TASK_NAME_SIZE];
  int chiefs = flow_cluster_count(worker->cluster, FLOW_JOB_CHIEF);
  int job = rank < chiefs ? FLOW_JOB_CHIEF : FLOW_JOB_WORKER, index = rank < chiefs ? rank : rank - chiefs;
  const char *address = flow_cluster_address(worker->cluster, job, index);
  snprintf(text, FLOW_SLOT_SIZE, "%s%s%s", flow_task_name(job, index, name), address ? " " : "", address ? address : "");
  return text;
}

/* Appends what a worker was about to do, by its announcement. */
static void describe(flow_text *text, const flow_worker *worker, int rank)
{
  const flow_announcement *call = &worker->announcements[rank];
  flow_text_add(text, "%s ", flow_worker_name(worker, rank));
  switch (call->magic == MAGIC ? call->kind : 0) {
  case FLOW_CALL_STEP: flow_text_add(text, "begins a step"); break;
  case FLOW_CALL_BROADCAST: flow_text_add(text, "broadcasts %.0f bytes", (double)call->bytes); break;
  case FLOW_CALL_GATHER: flow_text_add(text, "gathers %.0f bytes", (double)call->bytes); break;
  case FLOW_CALL_AGREE: flow_text_add(text, "compares the %.15s", call->what); break;
  default: flow_text_add(text, "does something else");
  }
}

/* Fails if the announcements differ. All workers see the same ones, and come to the same conclusion, so that either all go on or none. */
static flow_status check_announcements(const flow_worker *worker)
{
  const flow_announcement *all = worker->announcements;
  for (int rank = 1; rank < worker->exchange.workers; rank++) {
    if (memcmp(&all[rank], &all[0], offsetof(flow_announcement, inside)) == 0) continue;
    char text[700];
    flow_text to = flow_text_into(text, sizeof text);
    describe(&to, worker, 0);
    flow_text_add(&to, ", ");
    describe(&to, worker, rank);
    return flow_fail(FLOW_INVALID_STATE, "%s: do all workers run the same program?", text);
  }
  return FLOW_OK;
}

/* inside: up to sizeof(inside) bytes that ride along, or NULL. */
static flow_status announce(flow_worker *worker, flow_worker_call kind, const char *what, int64_t bytes, const void *inside)
{
  flow_announcement mine = { .magic = MAGIC, .kind = kind, .bytes = bytes };
  snprintf(mine.what, sizeof mine.what, "%s", what);
  worker->calls++;
  if (inside) memcpy(mine.inside, inside, (size_t)bytes);
  FLOW_TRY(flow_worker_move_all_gather(worker, &mine, sizeof mine, worker->announcements));
  return check_announcements(worker);
}

flow_status flow_worker_announce(flow_worker *worker, flow_worker_call kind, const char *what, int64_t bytes)
{
  return worker->exchange.workers == 1 ? FLOW_OK : announce(worker, kind, what, bytes, NULL);
}

/* What fits rides along with the announcement: one exchange. Else two. */
flow_status flow_worker_gather(flow_worker *worker, flow_worker_call kind, const char *what, const void *mine, int64_t bytes, void *all)
{
  int fits = bytes > 0 && bytes <= (int64_t)sizeof worker->announcements->inside;
  if (worker->exchange.workers == 1) {
    if (bytes > 0) memcpy(all, mine, (size_t)bytes);
    return FLOW_OK;
  }
  FLOW_TRY(announce(worker, kind, what, bytes, fits ? mine : NULL));
  if (!fits) return flow_worker_move_all_gather(worker, mine, bytes, all);
  for (int rank = 0; rank < worker->exchange.workers; rank++) {
    memcpy((char *)all + rank * bytes, worker->announcements[rank].inside, (size_t)bytes);
  }
  return FLOW_OK;
}
