/* event_reader.h: what the records of event files hold (tensorflow/core/util/event.proto, framework/summary.proto), as TensorFlow 2 writes
 * summaries, and as TensorFlow 1 and PyTorch do. Nothing is copied; lengths and counts are checked against the bytes that are there.
 *
 *   flow_event event;
 *   if (!flow_event_read(record, count, &event)) ...        not an event
 *   while (flow_event_next(&event, &value)) ...             its summaries, mostly one */
#ifndef FLOW_TENSORBOARD_EVENT_READER_H
#define FLOW_TENSORBOARD_EVENT_READER_H

#include "base/bytes.h"

typedef enum flow_summary_kind {
  FLOW_SUMMARY_UNKNOWN, FLOW_SUMMARY_SCALARS, FLOW_SUMMARY_HISTOGRAMS, FLOW_SUMMARY_PICTURES, FLOW_SUMMARY_TEXTS,
  FLOW_SUMMARY_GRAPHS        /* a model's configuration as Keras writes it: a text */
} flow_summary_kind;

enum { FLOW_SUMMARY_BUCKETS = 2048, FLOW_SUMMARY_ROOM = 5 * FLOW_SUMMARY_BUCKETS };      /* most rows of a histogram; numbers to read it */

typedef struct flow_event {
  double     wall;           /* seconds since 1970 */
  int64_t    step;
  flow_bytes summary;        /* what is left of it */
} flow_event;

/* Where the content of a summary is: a tensor, or one of the messages of TensorFlow 1. */
typedef enum flow_summary_form {
  FLOW_FORM_NONE,
  FLOW_FORM_TENSOR,
  FLOW_FORM_NUMBER,
  FLOW_FORM_IMAGE,
  FLOW_FORM_HISTOGRAM
} flow_summary_form;

typedef struct flow_summary {
  flow_bytes tag;
  /* flow_summary_kind; UNKNOWN: a tensor whose kind an earlier record of the tag has said, or another plugin's */
  int        kind;
  int        form;
  float      number;         /* of FLOW_FORM_NUMBER */
  flow_bytes content;        /* of the other forms */
} flow_summary;

/* 0: the bytes are not an event. An event without summaries has an empty one. */
int flow_event_read(const void *bytes, uint64_t count, flow_event *event);
/* 0: that was the last one, or the rest is malformed. */
int flow_event_next(flow_event *event, flow_summary *summary);

/* 0: it does not hold one number. */
int flow_summary_number(const flow_summary *summary, double *number);
/* Rows of left edge, right edge, count into rows, which has room for FLOW_SUMMARY_ROOM numbers. Returns how many, at most
 * FLOW_SUMMARY_BUCKETS; -1: it is not a histogram. */
int flow_summary_histogram(const flow_summary *summary, double *rows);
/* How many pictures there are, and the file of one of them; an empty one where there is none. */
int flow_summary_pictures(const flow_summary *summary);
flow_bytes flow_summary_picture(const flow_summary *summary, int index);
flow_bytes flow_summary_text(const flow_summary *summary);

#endif
