/* protocol_handshake.c: what the chief reads out of a HELLO: whether who says it belongs to this cluster, and what does not fit. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "cluster/control/protocol_state.h"

/* The next line of a list, and what is after it; an empty one at the end. Returns its length, without the line's end, which is not
 * terminated by a zero. */
static int next_line(const char **list, const char *end, const char **line)
{
  const char *stop = *list < end ? memchr(*list, '\n', (size_t)(end - *list)) : NULL;
  int length = (int)((stop ? stop : end) - *list);
  *line = *list;
  *list = stop ? stop + 1 : end;
  return length;
}

static const char NO_MORE[] = "no more tasks";

/* Of a line that is shown. */
static int limit(int length)
{
  static const int MOST = FLOW_TASK_NAME_SIZE + FLOW_ADDRESS_SIZE;
  return length == 0 ? (int)sizeof NO_MORE : length < MOST ? length : MOST;
}

/* What the first task is that two clusters do not have in common. theirs: after the first line of a HELLO's value. */
static void name_difference(const flow_protocol *protocol, const char *theirs, const char *end, flow_text *text)
{
  void *block;
  if (flow_alloc(FLOW_MOST_VALUE, &block) != FLOW_OK) return;
  flow_text own = flow_text_into(block, FLOW_MOST_VALUE);
  flow_cluster_list(protocol->cluster, &own);
  const char *mine = block, *my_end = mine + strlen(mine), *a, *b;
  int my_length, their_length;
  do {
    my_length = next_line(&mine, my_end, &a);
    their_length = next_line(&theirs, end, &b);
  } while (my_length > 0 && my_length == their_length && memcmp(a, b, (size_t)my_length) == 0);
  flow_text_add(text, ": the first has %.*s, the second %.*s", limit(my_length), my_length > 0 ? a : NO_MORE, limit(their_length),
                their_length > 0 ? b : NO_MORE);
  flow_free(block);
}

/* Checks in the order in which a later one needs the earlier: the protocol's version, the job, the cluster, flowlua's version, the
 * number of the task. The first that fails makes the sentence. */
flow_mismatch flow_hello_check(const flow_protocol *protocol, const flow_control_message *hello, char *text, int size)
{
  const char *list = (const char *)hello->value, *end = list + hello->bytes, *place;
  int same = strcmp(hello->extra, protocol->options.job) == 0 && strcmp(hello->name, protocol->hash) == 0;
  next_line(&list, end, &place);
  const char *own = flow_protocol_task(protocol, 0);
  int known = hello->task > 0 && hello->task < protocol->tasks;
  const char *other = known ? flow_protocol_task(protocol, hello->task) : "a task";
  flow_text to = flow_text_into(text, size);
  if (hello->request != FLOW_PROTOCOL_VERSION) {
    flow_text_add(&to, "%s speaks version %d of the protocol, %s version %u: install the same flowlua everywhere", own,
                  FLOW_PROTOCOL_VERSION,
                  other, hello->request);
  } else if (strcmp(hello->extra, protocol->options.job) != 0) {
    flow_text_add(&to, "%s belongs to the job \"%.100s\", %s to \"%.100s\": two jobs use the same port", own, protocol->options.job, other,
                  hello->extra);
  } else if (strcmp(hello->name, protocol->hash) != 0) {
    flow_text_add(&to, "%s and %s know different clusters", own, other);
    name_difference(protocol, list, end, &to);
    flow_text_add(&to, "; give all the same list of addresses in the same order");
  } else if (strcmp(hello->text, protocol->options.version) != 0) {
    flow_text_add(&to, "%s is flowlua %.60s, %s is %.60s: install the same flowlua everywhere", own, protocol->options.version, other,
                  hello->text);
  } else if (!known) {
    flow_text_add(&to, "%s has no task number %d among its %d tasks", own, hello->task, protocol->tasks);
  }
  return to.length == 0 ? FLOW_FITS : same ? FLOW_OTHER_PROGRAM : FLOW_OTHER_CLUSTER;
}

void flow_hello_place(const flow_control_message *hello, char place[FLOW_PLACE_SIZE])
{
  const char *list = (const char *)hello->value, *line;
  int length = next_line(&list, list + hello->bytes, &line);
  snprintf(place, FLOW_PLACE_SIZE, "%.*s", length, line);
}
