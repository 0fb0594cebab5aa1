/* message.h: what the tasks of a cluster say to each other, as bytes. One table says which fields a kind of message has; fields that it
 * has not stay zero. Numbers are little-endian; a text is its length (2 bytes), its bytes and a zero; a value its length (4 bytes) and
 * its bytes. Texts have no zero inside. */
#ifndef FLOW_CLUSTER_CONTROL_MESSAGE_H
#define FLOW_CLUSTER_CONTROL_MESSAGE_H

#include "base/status.h"

enum {
  FLOW_PROTOCOL_VERSION = 4,        /* of messages and of how they are answered */
  FLOW_MOST_NAME = 255, FLOW_MOST_TEXT = 1000, FLOW_MOST_VALUE = 65536,      /* bytes of texts without their zero, and of a value */
  FLOW_MOST_MESSAGE = 1 + 48 + 2 * (FLOW_MOST_NAME + 3) + FLOW_MOST_TEXT + 3 + FLOW_MOST_VALUE + 4,
};

typedef enum flow_control_kind {
  FLOW_MESSAGE_HELLO = 1,  /* member: who I am; request: protocol version, name: cluster hash, extra: job, text: flowlua's version, value: a
                            * line with what it is on its machine, and the cluster's tasks, a line each */
  FLOW_MESSAGE_WELCOME,    /* chief: you belong here */
  FLOW_MESSAGE_RETRY,      /* chief: not now; text: why. The connection is closed */
  FLOW_MESSAGE_REFUSE,     /* chief: never; text: why, naming both sides */
  FLOW_MESSAGE_JOIN,       /* member: ready for the next generation; step: of its state, name: of its model */
  FLOW_MESSAGE_START,      /* chief: the generation begins; task: who has the state of the highest step, value: which tasks take part,
                            * their numbers in ascending order, 4 bytes each; empty: all */
  FLOW_MESSAGE_PING,       /* both, once a heartbeat; name: what the sender is doing, request: how many common calls it has begun */
  FLOW_MESSAGE_REPORT,     /* member: I cannot go on; text: why; task: a flow_fault */
  FLOW_MESSAGE_ABORT,      /* chief: the generation is over; task: the culprit, text: what it did, request: a flow_end */
  FLOW_MESSAGE_SET,        /* member: store value under name */
  FLOW_MESSAGE_GET,        /* member: the value under name, as soon as there is one */
  FLOW_MESSAGE_ENTER,      /* member: at the barrier of that name */
  FLOW_MESSAGE_RESULT,     /* chief: of one of those; task: a flow_status */
  FLOW_MESSAGE_GOODBYE,    /* member: done (task 0), or preempted (task 1) */
  FLOW_MESSAGE_FAREWELL,   /* chief: everybody is done */
  FLOW_MESSAGE_FINISHED,   /* chief: that task has said GOODBYE */
  FLOW_MESSAGE_STANDBY,    /* chief, after JOIN: a generation is under way without the receiver, which waits for a later one; text: why */
  FLOW_MESSAGE_KINDS
} flow_control_kind;

/* Why a generation is over. */
typedef enum flow_end {
  FLOW_END_LOST = 0,       /* a task is lost, or has failed */
  FLOW_END_PREEMPTED,      /* a task has to make way, and means to come back */
  FLOW_END_GROWN,          /* a task has come, and takes part in the next one */
} flow_end;

/* Who is to blame for what a task reports. */
typedef enum flow_fault {
  FLOW_FAULT_UNKNOWN = 0, /* another task, which may turn out to be lost */
  FLOW_FAULT_OWN,         /* the one that reports */
  FLOW_FAULT_LATE,        /* a task that did not come to a common call in time */
} flow_fault;

typedef struct flow_control_message {
  int            kind;
  uint32_t       request;                  /* tells the requests of one member apart */
  int32_t        task;                     /* number of a task in the protocol's order */
  uint64_t       generation, incarnation;
  double         step, seconds;
  const char    *name, *extra, *text;      /* NULL is the empty text; after reading never NULL where the kind has them */
  const uint8_t *value;
  uint32_t       bytes;                    /* of value */
} flow_control_message;

/* The message as bytes (at most FLOW_MOST_MESSAGE) in `to`; returns their number. Texts that are too long are cut. */
size_t flow_control_write(const flow_control_message *message, uint8_t *to);
/* The bytes it takes. */
size_t flow_control_size(const flow_control_message *message);
/* Reads exactly one message; texts and value point into `bytes`. FLOW_CORRUPT_DATA for anything that flow_control_write does not make. */
flow_status flow_control_read(const uint8_t *bytes, size_t count, flow_control_message *out);
const char *flow_control_name(int kind);   /* "HELLO"; static */

#endif
