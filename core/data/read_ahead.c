/* read_ahead.c: see read_ahead.h. One thread and one consumer with a ring of two blocks between them: the thread fills a block without
 * the lock and takes the lock only to hand it over. The consumer owns the block at the head from the time that it sees it until it moves
 * head on. The end of the file, or a failure, is the last thing of the last block, so that it is met in its place. */
#include "data/read_ahead.h"

#include "base/team.h"
#include "data/iterator.h"

/* A block is full at 64 records or 1 MB: long enough that a lock per block does not weigh, short enough that the first record does not
 * wait. Two blocks: one is read while the other is used. */
enum { BLOCK_RECORDS = 64, BLOCK_BYTES = 1 << 20, BLOCKS = 2 };

/* The last one of a file holds how it ended. */
typedef struct block { flow_tensor *records[BLOCK_RECORDS]; int count, last; flow_failure failure; } block;

/* `gate` guards ring, head, tail and stopped. holds and given are the consumer's own: the block at the head is the thread's no more
 * until the consumer leaves it. */
struct flow_read_ahead {
  flow_gate          gate;
  flow_thread        thread;
  flow_record_reader *reader;
  const char        *path;
  flow_coding        coding;
  block              ring[BLOCKS];
  int64_t            head, tail;       /* blocks: the consumer's, and the next one to be filled */
  int                stopped;
  int                holds, given;     /* the consumer has the block at the head; records of it that are gone */
};

/* Releases the records from number `from` on; those before were taken. */
static void clear_block(block *old, int from)
{
  for (int i = from; i < old->count; i++) flow_tensor_release(old->records[i]);
  old->count = 0;
}

/* A block of records, as many as BLOCK_RECORDS or BLOCK_BYTES allow; `last` where the file has ended. The reader's
 * thread alone comes here. On failure the block keeps the records before it. */
static flow_status read_block(flow_read_ahead *self, block *into)
{
  uint64_t bytes = 0, count;
  const unsigned char *record;
  if (!self->reader) {
    void *memory;
    FLOW_TRY(flow_alloc_zero(sizeof *self->reader, &memory));
    self->reader = memory;
    FLOW_TRY(flow_record_open(self->path, self->coding, self->reader));
  }
  while (into->count < BLOCK_RECORDS && bytes < BLOCK_BYTES) {
    FLOW_TRY(flow_record_next(self->reader, &record, &count));
    into->last = !record;
    if (into->last) return FLOW_OK;
    FLOW_TRY(flow_text_tensor((const char *)record, (size_t)count, &into->records[into->count]));
    into->count++;
    bytes += count;
  }
  return FLOW_OK;
}

/* A block is read without the lock, then waits for room. A failure is the last thing of a block: it is raised where the records before
 * it have been taken. */
static void *thread_main(void *argument)
{
  flow_read_ahead *self = argument;
  flow_team_leave();
  for (int last = 0; !last;) {
    block made = { .count = 0 };
    flow_status status = read_block(self, &made);
    flow_failure_take(&made.failure, status);
    last = made.last |= status != FLOW_OK;
    flow_gate_lock(&self->gate);
    status = FLOW_OK;
    while (status == FLOW_OK && !self->stopped && self->tail - self->head == BLOCKS) status = flow_gate_wait(&self->gate, &self->gate.room);
    int taken = status == FLOW_OK && !self->stopped;
    if (taken) {
      self->ring[self->tail++ % BLOCKS] = made;
      pthread_cond_signal(&self->gate.ready);
    }
    flow_gate_unlock(&self->gate);
    if (taken) continue;
    clear_block(&made, 0);
    return NULL;
  }
  return NULL;
}

flow_status flow_read_ahead_start(flow_iterator *iterator, const char *path, flow_coding coding, flow_record_reader *reader,
                                  flow_read_ahead **out)
{
  void *memory;
  *out = NULL;
  FLOW_TRY(flow_alloc_zero(sizeof **out, &memory));
  flow_read_ahead *self = memory;
  self->path = path;
  self->coding = coding;
  self->reader = reader;
  flow_gate_open(&self->gate, iterator);
  flow_status status = flow_pass_thread_start(iterator, &self->thread, thread_main, self);
  if (status != FLOW_OK) {
    flow_gate_close(&self->gate);
    flow_free(self);
    return status;
  }
  *out = self;
  return FLOW_OK;
}

/* Waits until the block at the head is there. */
static flow_status hold_block(flow_read_ahead *self)
{
  flow_status status = FLOW_OK;
  flow_gate_lock(&self->gate);
  while (status == FLOW_OK && self->head == self->tail) status = flow_gate_wait(&self->gate, &self->gate.ready);
  flow_gate_unlock(&self->gate);
  self->holds = status == FLOW_OK;
  return status;
}

/* The block is the thread's again: its records have all been given away. */
static void leave_block(flow_read_ahead *self)
{
  flow_gate_lock(&self->gate);
  self->head++;
  pthread_cond_signal(&self->gate.room);
  flow_gate_unlock(&self->gate);
  self->holds = self->given = 0;
}

/* *out is the caller's reference; NULL with FLOW_OK: the end. A failure of the thread comes after the records before it. */
flow_status flow_read_ahead_next(flow_read_ahead *self, flow_tensor **out)
{
  *out = NULL;
  for (;;) {
    if (!self->holds) FLOW_TRY(hold_block(self));
    block *at = &self->ring[self->head % BLOCKS];
    if (self->given < at->count) {
      *out = at->records[self->given++];
      return FLOW_OK;
    }
    if (at->last) {
      flow_status status = flow_failure_raise(&at->failure);
      flow_failure_clear(&at->failure);
      return status;
    }
    leave_block(self);
  }
}

/* Wakes the thread where it waits for room, joins it, and releases what was read and not given. */
void flow_read_ahead_stop(flow_read_ahead *self)
{
  if (!self) return;
  flow_gate_lock(&self->gate);
  self->stopped = 1;
  pthread_cond_broadcast(&self->gate.room);
  flow_gate_unlock(&self->gate);
  flow_thread_join(&self->thread);
  flow_gate_close(&self->gate);
  for (; self->head < self->tail; self->head++, self->given = 0) clear_block(&self->ring[self->head % BLOCKS], self->given);
  if (self->reader) flow_record_close(self->reader);
  flow_free(self->reader);
  flow_free(self);
}
