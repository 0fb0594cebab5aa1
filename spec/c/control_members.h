/* control_members.h: a control plane of three tasks over real sockets, in one process, each called from its own thread. */
#ifndef FLOW_SPEC_CONTROL_MEMBERS_H
#define FLOW_SPEC_CONTROL_MEMBERS_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "cluster/control/control_state.h"

enum { TASKS = 3 };

/* What one task is, does and has met. */
typedef struct member {
  pthread_t     thread;
  flow_cluster *cluster;
  flow_control *control;
  const char   *secret;
  int           number, crashes, culprit;
  double        start_within;                  /* 0: 20 s */
  char          descriptor[12];                /* FLOW_LISTEN_DESCRIPTOR */
  flow_status   status;
  flow_generation generation;
  char          text[1100], log[4096];
  pthread_mutex_t lock;
} member;

static member members[TASKS];

/* Ports that are free now, each another one. */
static inline void find_ports(int ports[TASKS])
{
  int descriptors[TASKS];
  for (int i = 0; i < TASKS; i++) {
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;
    descriptors[i] = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(descriptors[i], (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(descriptors[i], (struct sockaddr *)&address, &size), 0);
    ports[i] = ntohs(address.sin_port);
  }
  for (int i = 0; i < TASKS; i++) close(descriptors[i]);
}

static inline const char *get_secret(const void *state, const char *name)
{
  const member *self = state;
  if (strcmp(name, "FLOW_LISTEN_DESCRIPTOR") == 0) return self->descriptor;
  return strcmp(name, "FLOW_SECRET") == 0 ? self->secret : NULL;
}

static inline void keep_log(void *state, const char *text)
{
  member *self = state;
  pthread_mutex_lock(&self->lock);
  size_t length = strlen(self->log);
  snprintf(self->log + length, sizeof self->log - length, "%s\n", text);
  pthread_mutex_unlock(&self->lock);
}

static inline flow_status open_member(member *self)
{
  flow_environment environment = { get_secret, self };
  flow_protocol_options options = { .job = "j", .version = "1", .heartbeat = 0.2, .dead_after = 5, .rejoin_within = 20,
                                   .start_within = self->start_within > 0 ? self->start_within : 20 };
  return flow_control_open(self->cluster, &environment, &options, keep_log, self, &self->control);
}

static inline void begin(const char *secret)
{
  int ports[TASKS];
  memset(members, 0, sizeof members);
  find_ports(ports);
  for (int i = 0; i < TASKS; i++) {
    char text[300];
    snprintf(text, sizeof text, "{\"cluster\":{\"worker\":[\"127.0.0.1:%d\",\"127.0.0.1:%d\",\"127.0.0.1:%d\"]},"
             "\"task\":{\"type\":\"worker\",\"index\":%d}}", ports[0], ports[1], ports[2], i);
    assert_int_equal(flow_cluster_parse(text, (double)strlen(text), "test", NULL, -1, &members[i].cluster), FLOW_OK);
    members[i].number = i;
    members[i].secret = secret;
    members[i].culprit = -2;
    pthread_mutex_init(&members[i].lock, NULL);
  }
}

static inline void end(void)
{
  for (int i = 0; i < TASKS; i++) {
    flow_control_close(members[i].control);
    flow_cluster_release(members[i].cluster);
    pthread_mutex_destroy(&members[i].lock);
  }
}
static inline int port_of(int task)
{
  return atoi(strrchr(flow_cluster_address(members[task].cluster, FLOW_JOB_WORKER, task), ':') + 1);
}

static inline int log_has(member *self, const char *part)
{
  pthread_mutex_lock(&self->lock);
  int found = strstr(self->log, part) != NULL;
  pthread_mutex_unlock(&self->lock);
  return found;
}

static inline void run_all(void *(*program)(void *))
{
  for (int i = 0; i < TASKS; i++) assert_int_equal(pthread_create(&members[i].thread, NULL, program, &members[i]), 0);
  for (int i = 0; i < TASKS; i++) pthread_join(members[i].thread, NULL);
}

/* Ends a program with what went wrong. */
#define ASK(call)                                                         \
  do {                                                                    \
    self->status = (call);                                                \
    snprintf(self->text, sizeof self->text, "%s", flow_last_error());     \
    if (self->status != FLOW_OK) return NULL;                             \
  } while (0)

static inline void *work(void *argument)
{
  member *self = argument;
  static uint8_t large[FLOW_MOST_VALUE];
  uint8_t small[8];
  uint32_t bytes;
  char key[32];
  if (!self->control) ASK(open_member(self));
  ASK(flow_control_join(self->control, self->number, "m", &self->generation));
  for (int step = 0; step < 20; step++) {
    snprintf(key, sizeof key, "%d", step);
    flow_control_progress(self->control, step, "");
    if (self->number == step % TASKS) ASK(flow_control_set(self->control, key, large, sizeof large));
    ASK(flow_control_get(self->control, key, 10, small, sizeof small, &bytes));
    if (bytes != sizeof large) self->status = FLOW_INTERNAL;
    ASK(flow_control_barrier(self->control, key, 10));
  }
  ASK(flow_control_goodbye(self->control, 0));
  return NULL;
}

#endif
