/* protocol_store.c: what the chief keeps for a generation: values under names, the tasks that wait for one, and those at each barrier.
 * It lives as long as the generation: flow_store_clear forgets all when it ends, and the requests that wait are answered by the abort.
 * Everything is a list, and searched from its head: a generation has tens of keys, and a task at most FLOW_MOST_REQUESTS waiting
 * requests. Memory is bounded by FLOW_MOST_STORE. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "cluster/control/protocol_state.h"

static const double SILENT_WAIT = 5.0;       /* seconds after which somebody is told that a barrier waits */

static void free_entry(flow_store_entry *entry)
{
  if (!entry) return;
  flow_free(entry->key);
  flow_free(entry->value);
  flow_free(entry);
}

/* At the end of a generation, of the protocol, and when memory is out. Waiting requests get no answer here: ABORTED answers them all. */
void flow_store_clear(flow_protocol *protocol)
{
  flow_protocol_store *store = &protocol->store;
  while (store->entries) {
    flow_store_entry *entry = store->entries;
    store->entries = entry->next;
    free_entry(entry);
  }
  while (store->waiters) {
    flow_waiter *waiter = store->waiters;
    store->waiters = waiter->next;
    flow_free(waiter);
  }
  store->bytes = 0;
}

/* ---- waiters ------------------------------------------------------------------------------------------------------------------------- */

static int *waiting_of(flow_protocol *protocol, int task) { return &protocol->peers[task].waiting; }

/* Appends a request that waits. since, until: in the protocol's time; all who come to a barrier have the deadline of the first. */
static flow_status add_waiter(flow_protocol *protocol, int task, const flow_control_message *message, double since, double until)
{
  void *block;
  if (*waiting_of(protocol, task) >= FLOW_MOST_REQUESTS) {
    return flow_chief_answer(protocol, task, message->request, FLOW_INVALID_STATE, "too many requests wait for their answer", NULL);
  }
  FLOW_TRY(flow_alloc(sizeof(flow_waiter), &block));
  flow_waiter *waiter = block, **end = &protocol->store.waiters;
  *waiter = (flow_waiter){ .task = task, .barrier = message->kind == FLOW_MESSAGE_ENTER, .request = message->request, .since = since,
                          .until = until };
  snprintf(waiter->name, sizeof waiter->name, "%s", message->name);
  while (*end) end = &(*end)->next;
  *end = waiter;
  ++*waiting_of(protocol, task);
  return FLOW_OK;
}

/* Answers all who wait for that name, and forgets them. */
static flow_status answer_waiters(flow_protocol *protocol, const char *name, int barrier, flow_status result, const char *text,
                                  const flow_store_entry *entry)
{
  flow_status status = FLOW_OK;
  for (flow_waiter **at = &protocol->store.waiters; *at && status == FLOW_OK;) {
    flow_waiter *waiter = *at;
    if (waiter->barrier != barrier || strcmp(waiter->name, name) != 0) {
      at = &waiter->next;
      continue;
    }
    *at = waiter->next;
    --*waiting_of(protocol, waiter->task);
    status = flow_chief_answer(protocol, waiter->task, waiter->request, result, text, entry);
    flow_free(waiter);
  }
  return status;
}

/* The first that waits for that value, or at that barrier; NULL: nobody does. */
static flow_waiter *find_waiter(const flow_protocol *protocol, const char *name, int barrier)
{
  flow_waiter *waiter = protocol->store.waiters;
  while (waiter && (waiter->barrier != barrier || strcmp(waiter->name, name) != 0)) waiter = waiter->next;
  return waiter;
}

/* ---- values -------------------------------------------------------------------------------------------------------------------------- */

/* Where the entry hangs in the list; where a new one would, if there is none: *at is NULL then. */
static flow_store_entry **find_entry(flow_protocol *protocol, const char *key)
{
  flow_store_entry **at = &protocol->store.entries;
  while (*at && strcmp((*at)->key, key) != 0) at = &(*at)->next;
  return at;
}

/* *out: an entry with copies of the message's name and value. */
static flow_status new_entry(const flow_control_message *message, flow_store_entry **out)
{
  void *block, *value;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_store_entry), &block));
  flow_store_entry *entry = block;
  flow_status status = flow_alloc(message->bytes, &value);
  if (status == FLOW_OK) {
    entry->value = value;
    entry->bytes = message->bytes;
    if (message->bytes > 0) memcpy(value, message->value, message->bytes);
    entry->key = flow_duplicate_text(message->name);
    if (!entry->key) status = FLOW_OUT_OF_MEMORY;
  }
  if (status == FLOW_OK) *out = entry;
  else free_entry(entry);
  return status;
}

/* What an entry counts for of FLOW_MOST_STORE. */
static size_t cost(const flow_store_entry *entry) { return sizeof *entry + strlen(entry->key) + entry->bytes; }

/* Forgets the value; who waits for one goes on waiting. */
static flow_status take_away(flow_protocol *protocol, int task, const flow_control_message *message)
{
  flow_store_entry **at = find_entry(protocol, message->name), *gone = *at;
  if (gone) {
    *at = gone->next;
    protocol->store.bytes -= cost(gone);
    free_entry(gone);
  }
  return flow_chief_answer(protocol, task, message->request, FLOW_OK, "", NULL);
}

/* Sets a value, in place of one that is there, and answers who waits for it. The new entry is complete before the old one is freed, so
 * that a failure leaves the value that was there. */
static flow_status set(flow_protocol *protocol, int task, const flow_control_message *message)
{
  if (message->bytes == 0) return take_away(protocol, task, message);
  flow_store_entry **at = find_entry(protocol, message->name), *entry;
  size_t before = *at ? cost(*at) : 0;
  FLOW_TRY(new_entry(message, &entry));
  if (protocol->store.bytes - before + cost(entry) > FLOW_MOST_STORE) {
    char text[FLOW_LIMIT_TEXT];
    snprintf(text, sizeof text, "the store of this generation is full (%d bytes): \"%s\" was not set", FLOW_MOST_STORE, message->name);
    free_entry(entry);
    return flow_chief_answer(protocol, task, message->request, FLOW_INVALID_STATE, text, NULL);
  }
  protocol->store.bytes += cost(entry) - before;
  if (*at) entry->next = (*at)->next;
  free_entry(*at);
  *at = entry;
  FLOW_TRY(flow_chief_answer(protocol, task, message->request, FLOW_OK, "", NULL));
  return answer_waiters(protocol, message->name, 0, FLOW_OK, "", entry);
}

/* ---- barriers ------------------------------------------------------------------------------------------------------------------------ */

/* In this generation, also if it has said goodbye since. */
static int takes_part(const flow_protocol *protocol, int task)
{
  int standing = task == 0 ? protocol->standing : protocol->peers[task].standing;
  return standing == FLOW_RUNNING || standing == FLOW_FINISHED;
}

/* How many tasks are at the barrier, and whether `task` is one of them. */
static int count_entered(const flow_protocol *protocol, const char *name, int task, int *entered)
{
  int count = 0;
  *entered = 0;
  for (const flow_waiter *waiter = protocol->store.waiters; waiter; waiter = waiter->next) {
    if (!waiter->barrier || strcmp(waiter->name, name) != 0) continue;
    count++;
    if (waiter->task == task) *entered = 1;
  }
  return count;
}

/* A task that has said goodbye; -1: none. */
static int find_finished(const flow_protocol *protocol)
{
  for (int i = 0; i < protocol->tasks; i++) {
    if ((i == 0 ? protocol->standing : protocol->peers[i].standing) == FLOW_FINISHED) return i;
  }
  return -1;
}

/* A task comes to a barrier, and opens it if it is the last. A barrier of a generation in which some task has finished cannot open any
 * more, which is said at once. */
static flow_status enter(flow_protocol *protocol, int task, const flow_control_message *message)
{
  int entered;
  int count = count_entered(protocol, message->name, task, &entered);
  if (entered) return flow_chief_answer(protocol, task, message->request, FLOW_INVALID_STATE, "this task is at that barrier already", NULL);
  if (find_finished(protocol) >= 0) {
    char text[FLOW_LIMIT_TEXT];
    snprintf(text, sizeof text, "barrier \"%s\": %s has finished and does not come any more", message->name,
             flow_protocol_task(protocol, find_finished(protocol)));
    return flow_chief_answer(protocol, task, message->request, FLOW_INVALID_STATE, text, NULL);
  }
  const flow_waiter *first = find_waiter(protocol, message->name, 1);
  double since = first ? first->since : protocol->now, until = first ? first->until : protocol->now + message->seconds;
  FLOW_TRY(add_waiter(protocol, task, message, since, until));
  return count + 1 == protocol->member_count ? answer_waiters(protocol, message->name, 1, FLOW_OK, "", NULL) : FLOW_OK;
}

/* "worker:2 b:1 (at step 812)": the first four that have not entered. */
static void list_missing(flow_protocol *protocol, const char *name, flow_text *text)
{
  int missing = 0, entered;
  for (int i = 0; i < protocol->tasks; i++) {
    count_entered(protocol, name, i, &entered);
    if (entered || !takes_part(protocol, i) || ++missing > 4) continue;
    flow_text_add(text, "%s%s (at step %.0f)", missing > 1 ? ", " : "", flow_protocol_task(protocol, i),
                  i == 0 ? protocol->step : protocol->peers[i].step);
  }
  if (missing > 4) flow_text_add(text, " and %d more", missing - 4);
}

/* SET, ENTER or GET of a task that runs in this generation (flow_chief_received has looked). */
flow_status flow_store_request(flow_protocol *protocol, int task, const flow_control_message *message)
{
  if (message->kind == FLOW_MESSAGE_SET) return set(protocol, task, message);
  if (message->kind == FLOW_MESSAGE_ENTER) return enter(protocol, task, message);
  const flow_store_entry *entry = *find_entry(protocol, message->name);
  if (entry) return flow_chief_answer(protocol, task, message->request, FLOW_OK, "", entry);
  return add_waiter(protocol, task, message, protocol->now, protocol->now + message->seconds);
}

/* ---- time ---------------------------------------------------------------------------------------------------------------------------- */

/* The time of a waiter is up. Of a barrier that ends it for all who wait there. */
static flow_status expire(flow_protocol *protocol, const flow_waiter *waiter)
{
  char text[FLOW_LIMIT_TEXT], name[FLOW_LIMIT_NAME];
  flow_text to = flow_text_into(text, sizeof text);
  snprintf(name, sizeof name, "%s", waiter->name);
  double waited = protocol->now - waiter->since;
  if (waiter->barrier) {
    flow_text_add(&to, "barrier \"%s\": after %.1f s these have not come: ", name, waited);
    list_missing(protocol, name, &to);
  } else {
    flow_text_add(&to, "no task has set \"%s\" within %.1f s", name, waited);
  }
  if (waiter->barrier) return answer_waiters(protocol, name, 1, FLOW_INVALID_STATE, text, NULL);
  flow_waiter **at = &protocol->store.waiters;
  while (*at != waiter) at = &(*at)->next;
  flow_waiter *gone = *at;
  *at = gone->next;
  --*waiting_of(protocol, gone->task);
  flow_status status = flow_chief_answer(protocol, gone->task, gone->request, FLOW_NOT_FOUND, text, NULL);
  flow_free(gone);
  return status;
}

/* The search begins again after each expired waiter, as answering may have removed several. Of barriers that wait for long only the
 * oldest is told, so that the log stays short. */
flow_status flow_store_timer(flow_protocol *protocol)
{
  flow_waiter *waiter = protocol->store.waiters;
  while (waiter) {
    if (waiter->until > protocol->now) {
      waiter = waiter->next;
      continue;
    }
    FLOW_TRY(expire(protocol, waiter));
    waiter = protocol->store.waiters;
  }
  const flow_waiter *oldest = protocol->store.waiters;
  while (oldest && !oldest->barrier) oldest = oldest->next;
  if (!oldest || protocol->now < protocol->next_notice || protocol->now - oldest->since < SILENT_WAIT) return FLOW_OK;
  char text[FLOW_LIMIT_TEXT];
  flow_text to = flow_text_into(text, sizeof text);
  list_missing(protocol, oldest->name, &to);
  return flow_protocol_notice(protocol, "barrier \"%s\" waits %.0f s for %s", oldest->name, protocol->now - oldest->since, text);
}

double flow_store_wakeup(const flow_protocol *protocol)
{
  double next = INFINITY;
  for (const flow_waiter *waiter = protocol->store.waiters; waiter; waiter = waiter->next) next = fmin(next, waiter->until);
  return next;
}
