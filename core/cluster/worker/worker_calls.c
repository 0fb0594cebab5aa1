/* worker_calls.c: what a program asks of all workers at once, outside of the steps of a training. A collective: each returns after all
 * workers have made the same call, or fails on all of them. A worker that is apart (flow_worker_set_apart) does nothing. */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "cluster/worker/worker_state.h"
#include "tensor/mirrors.h"

/* Sizes come from Lua as doubles. */
static flow_status check_bytes(const char *function, const flow_worker *worker, const void *data, double bytes)
{
  if (!worker) return flow_fail(FLOW_INVALID_ARGUMENT, "%s: worker is NULL", function);
  if (bytes >= 0 && bytes < 9e15 && bytes == (double)(int64_t)bytes && (data || bytes == 0)) return FLOW_OK;
  return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %g bytes at %p, expected a whole number from 0, at an address that is not NULL", function,
                   bytes, data);
}

flow_status flow_worker_broadcast_from(flow_worker *worker, int from, void *data, double bytes)
{
  FLOW_TRY(check_bytes("flow_worker_broadcast", worker, data, bytes));
  if (worker->apart) return FLOW_OK;
  if (from < 0 || from >= worker->exchange.workers) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_worker_broadcast: from worker %d of %d", from, worker->exchange.workers);
  }
  FLOW_TRY(flow_worker_announce(worker, FLOW_CALL_BROADCAST, "", (int64_t)bytes));
  return flow_worker_move_broadcast(worker, from, data, (int64_t)bytes);
}

/* Nobody learns the elements' address, so that what follows from them can go on being cached. */
flow_status flow_worker_broadcast_tensor(flow_worker *worker, int from, flow_tensor *tensor)
{
  FLOW_TRY(flow_check_on_host("flow_worker_broadcast_tensor: tensor", tensor));
  if (!flow_tensor_is_contiguous(tensor)) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_worker_broadcast_tensor: the tensor has gaps");
  double bytes = flow_tensor_size(tensor) * flow_dtype_size(tensor->dtype);
  flow_status status = flow_worker_broadcast_from(worker, from, flow_tensor_elements(tensor), bytes);
  flow_storage_written(tensor->storage);
  return status;
}

flow_status flow_worker_broadcast(flow_worker *worker, void *data, double bytes)
{
  return flow_worker_broadcast_from(worker, 0, data, bytes);
}

/* A worker that is apart gets its own bytes. */
flow_status flow_worker_all_gather(flow_worker *worker, const void *mine, double bytes, void *all)
{
  FLOW_TRY(check_bytes("flow_worker_all_gather", worker, mine, bytes));
  FLOW_TRY(check_bytes("flow_worker_all_gather", worker, all, bytes));
  return flow_worker_gather(worker, FLOW_CALL_GATHER, "", mine, (int64_t)bytes, all);
}

/* Goes through the control plane and not the transport, so that it works while the transport is busy. A barrier that was not reached in
 * time ends nothing but the call. */
flow_status flow_worker_barrier(flow_worker *worker, const char *name)
{
  if (!worker || !name) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_worker_barrier: %s is NULL", worker ? "name" : "worker");
  if (!worker->control || worker->apart) return FLOW_OK;
  FLOW_TRY(flow_worker_check_own(worker));
  flow_status status = flow_control_barrier(worker->control, name, worker->timeout);
  if (status != FLOW_INVALID_STATE || flow_control_await_end(worker->control, 0)) return flow_worker_explain(worker, status);
  return flow_fail_prefix(FLOW_TIMED_OUT, "%s", "");
}

/* ---- texts that have to be the same -------------------------------------------------------------------------------------------------- */

enum { EXCERPT = 60 };            /* bytes that are shown of each side */

typedef struct text_head { int64_t length; uint64_t hash; } text_head;

/* UTF-8: bytes of a symbol after its first one (RFC 3629, section 3). */
static int is_inside_symbol(char byte) { return (byte & 0xc0) == 0x80; }

static int ends_word(char byte) { return byte == ' ' || byte == ',' || byte == '\n'; }

/* From a word's beginning, a little before `at`, to a word's end, on one line; words that are too long are cut, but not within a symbol. */
static void excerpt(const char *text, int64_t length, int64_t at, char to[EXCERPT + 8])
{
  int64_t first = at, last, word;
  while (first > 0 && at - first < EXCERPT / 3 && text[first - 1] != '\n') first--;
  for (word = first; word > 0 && word < at && !ends_word(text[word - 1]); word++) continue;
  if (word < at) first = word;
  while (first < at && is_inside_symbol(text[first])) first++;
  for (last = at; last < length && last - first < EXCERPT && text[last] != '\n'; last++) continue;
  for (word = last; word > at && word < length && !ends_word(text[word]); word--) continue;
  if (word > at) last = word;
  while (last > first && last < length && is_inside_symbol(text[last])) last--;
  snprintf(to, EXCERPT + 8, "%.*s", (int)(last - first), text + first);
  for (char *byte = to; *byte; byte++) *byte = (unsigned char)*byte < ' ' ? ' ' : *byte;
  if (at >= length) snprintf(to + strlen(to), EXCERPT + 8 - strlen(to), "<end>");
}

/* Fails with an excerpt of both texts around the first byte that differs; lines count from 1. */
static flow_status fail_difference(const flow_worker *worker, const char *what, int rank, const char *first, int64_t first_length,
                                   const char *second, int64_t second_length)
{
  char chief[EXCERPT + 8], other[EXCERPT + 8];
  int64_t at = 0, line = 1;
  while (at < first_length && at < second_length && first[at] == second[at]) line += first[at++] == '\n';
  excerpt(first, first_length, at, chief);
  excerpt(second, second_length, at, other);
  return flow_fail(FLOW_INVALID_ARGUMENT, "the workers do not have the same %s: in line %.0f %s has \"%s\", %s has \"%s\"; run the same "
                   "program with the same options on all workers", what, (double)line, flow_worker_name(worker, 0), chief,
                   flow_worker_name(worker, rank), other);
}

/* Brings all texts to all workers, and names the first two that differ. */
static flow_status show_difference(flow_worker *worker, const char *what, const char *text, const text_head *heads)
{
  int workers = worker->exchange.workers;
  int64_t most = 0, all;
  void *block;
  for (int rank = 0; rank < workers; rank++) most = heads[rank].length > most ? heads[rank].length : most;
  if (__builtin_mul_overflow(most, (int64_t)workers + 1, &all)) return flow_fail(FLOW_INVALID_ARGUMENT, "%s is too long", what);
  FLOW_TRY(flow_alloc_zero((size_t)all, &block));
  char *mine = block, *texts = mine + most;
  memcpy(mine, text, strlen(text));
  flow_status status = flow_worker_move_all_gather(worker, mine, most, texts);
  for (int rank = 1; rank < workers && status == FLOW_OK; rank++) {
    if (memcmp(&heads[rank], &heads[0], sizeof *heads) == 0) continue;
    status = fail_difference(worker, what, rank, texts, heads[0].length, texts + rank * most, heads[rank].length);
  }
  flow_free(block);
  return status;
}

/* Usually all have the same text, so first only lengths and hashes travel. A failure is the same on all workers: FLOW_INVALID_ARGUMENT
 * with both texts where they differ. */
flow_status flow_worker_agree(flow_worker *worker, const char *what, const char *text)
{
  if (!worker || !what || !text) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_worker_agree: %s is NULL", !worker ? "worker" : !what ? "what" : "text");
  }
  const text_head mine = { (int64_t)strlen(text), flow_hash(FLOW_HASH_BEGIN, text, strlen(text)) };
  int workers = worker->exchange.workers, same = 1;
  void *block;
  FLOW_TRY(flow_alloc((size_t)workers * sizeof mine, &block));
  text_head *heads = block;
  flow_status status = flow_worker_gather(worker, FLOW_CALL_AGREE, what, &mine, sizeof mine, heads);
  for (int rank = 1; rank < workers && status == FLOW_OK; rank++) same &= memcmp(&heads[rank], &heads[0], sizeof mine) == 0;
  if (status == FLOW_OK && !same) status = show_difference(worker, what, text, heads);
  flow_free(block);
  return status;
}
