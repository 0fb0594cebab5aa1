/* three_protocols.h: three protocols of the control plane, whose messages arrive at once and in order, in made-up time. */
#ifndef FLOW_SPEC_THREE_PROTOCOLS_H
#define FLOW_SPEC_THREE_PROTOCOLS_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "cluster/control/protocol.h"

enum { TASKS = 3 };

/* What a task was told last, of each kind of action. */
typedef struct told {
  int count;
  uint32_t request;
  flow_status status;
  char text[1100];
  uint8_t bytes[64];
  size_t size;
  int task;
} told;

static struct {
  flow_cluster *cluster[TASKS];
  flow_protocol *task[TASKS];
  told told[TASKS][FLOW_ACTION_FAILED + 1];
  double now;
} all;

/* Connection i of the chief and connection 0 of member i are one. */
static inline void pass_on(int from, const flow_action *action)
{
  int to = from == 0 ? action->connection : 0, connection = from == 0 ? 0 : from;
  if (action->kind == FLOW_ACTION_SEND) flow_protocol_received(all.task[to], all.now, connection, action->bytes, action->count);
  if (action->kind == FLOW_ACTION_CLOSE) flow_protocol_closed(all.task[to], all.now, connection, "closed");
  if (action->kind == FLOW_ACTION_DIAL && !all.told[from][FLOW_ACTION_DIAL].count) {
    flow_protocol_connected(all.task[0], all.now, from);
    flow_protocol_connected(all.task[from], all.now, 0);
  }
}

static inline void pump(void)
{
  flow_action action;
  for (int moved = 1; moved;) {
    moved = 0;
    for (int i = 0; i < TASKS; i++) {
      while (all.task[i] && flow_protocol_next(all.task[i], &action)) {
        told *last = &all.told[i][action.kind];
        moved = 1;
        pass_on(i, &action);
        last->count++;
        last->request = action.request;
        last->status = action.status;
        last->task = action.task;
        last->size = action.count < sizeof last->bytes ? action.count : sizeof last->bytes;
        memcpy(last->bytes, action.bytes, last->size);
        snprintf(last->text, sizeof last->text, "%s", action.text);
      }
    }
  }
}

static inline void wait_until(double now)
{
  while (all.now < now) {
    all.now += 0.5;
    for (int i = 0; i < TASKS; i++) flow_protocol_timer(all.task[i], all.now);
    pump();
  }
}

static inline int begin(void **state)
{
  (void)state;
  memset(&all, 0, sizeof all);
  for (int i = 0; i < TASKS; i++) {
    char text[256];
    snprintf(text, sizeof text, "{\"cluster\":{\"chief\":[\"a:1\"],\"worker\":[\"b:1\",\"c:1\"]},\"task\":{\"type\":\"%s\",\"index\":%d}}",
             i == 0 ? "chief" : "worker", i == 2);
    if (flow_cluster_parse(text, (double)strlen(text), "test", NULL, -1, &all.cluster[i]) != FLOW_OK) return -1;
    const flow_protocol_options options = {
      .cluster = all.cluster[i], .job = "j", .version = "1", .incarnation = (uint64_t)i + 1, .place = i == 2 ? "process 3 on c" : NULL
    };
    if (flow_protocol_new(&options, 0, &all.task[i]) != FLOW_OK || flow_protocol_join(all.task[i], 0, i, "m") != FLOW_OK) return -1;
  }
  wait_until(1);
  for (int i = 0; i < TASKS; i++) {
    if (all.told[i][FLOW_ACTION_STARTED].count != 1) return -1;
  }
  return 0;
}

static inline int end(void **state)
{
  (void)state;
  for (int i = 0; i < TASKS; i++) {
    flow_protocol_release(all.task[i]);
    flow_cluster_release(all.cluster[i]);
  }
  return 0;
}

static inline const told *result_of(int task)
{
  return &all.told[task][FLOW_ACTION_RESULT];
}

static inline void expect_words(const char *text, const char *part)
{
  if (!strstr(text, part)) fail_msg("\"%s\" lacks \"%s\"", text, part);
}

#endif
