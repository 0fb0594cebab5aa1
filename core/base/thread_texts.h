/* thread_texts.h: texts that belong to a thread: the message of its last failure, and places for the parts of a sentence.
 *
 * They are taken from the allocator when the thread first writes one, not thread-local variables: those of a library that a running program
 * opens are made by the C library at their first use, which ends the process if there is no memory. Thread-local variables of the core are
 * few and small, and lie in memory that each thread has from its beginning (CMakeLists.txt, FLOW_GLIBC). */
#ifndef FLOW_BASE_THREAD_TEXTS_H
#define FLOW_BASE_THREAD_TEXTS_H

#include "base/status.h"

enum { FLOW_SLOTS = 16, FLOW_SLOT_SIZE = 320 };

typedef struct flow_thread_texts {
  char message[FLOW_MESSAGE_SIZE];
  flow_error_fields fields;
  char slots[FLOW_SLOTS][FLOW_SLOT_SIZE];
  unsigned next_slot;
} flow_thread_texts;

/* This thread's. Never NULL: a thread for which there is no memory shares those of all such threads, where one may read what another has
 * written, but always a text with its end. */
flow_thread_texts *flow_thread_texts_to_write(void);
/* Those that it has written last; before that, empty ones. Takes no memory. */
const flow_thread_texts *flow_thread_texts_to_read(void);

/* FLOW_SLOT_SIZE bytes for a part of a message: the caller's until this thread has asked for FLOW_SLOTS - 1 more. */
char *flow_text_slot(void);

#endif
