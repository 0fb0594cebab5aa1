/* protocol_actions.c: the queue of what the machine asks its driver for (flow_action of protocol.h). Each action is one block with copies
 * of its bytes and its text, so that the state that it was made from may change before it is carried out. They are fetched in the order in
 * which they were made; the one that was fetched last lives until the next is. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/decimal.h"
#include "base/memory.h"
#include "cluster/control/protocol_state.h"

struct flow_action_node {
  flow_action_node *next;
  flow_action action; /* bytes and text point after this struct */
  uint8_t bytes[];    /* action.count bytes, then the text with its zero */
};

/* A node with room for this many bytes and the text, at the end of the queue. *bytes: where the caller writes them. Nothing is queued if
 * memory is out. */
static flow_status queue(flow_protocol *protocol, const flow_action *action, size_t count, uint8_t **bytes)
{
  void *block;
  size_t length = action->text ? strlen(action->text) : 0;
  FLOW_TRY(flow_alloc(sizeof(flow_action_node) + count + length + 1, &block));
  flow_action_node *node = block;
  node->next = NULL;
  node->action = *action;
  node->action.bytes = node->bytes;
  node->action.count = count;
  memcpy(node->bytes + count, action->text ? action->text : "", length + 1);
  node->action.text = (const char *)node->bytes + count;
  if (protocol->last) protocol->last->next = node;
  else protocol->first = node;
  protocol->last = node;
  *bytes = node->bytes;
  return FLOW_OK;
}

flow_status flow_protocol_act(flow_protocol *protocol, const flow_action *action)
{
  uint8_t *bytes;
  FLOW_TRY(queue(protocol, action, action->count, &bytes));
  if (action->count > 0) memcpy(bytes, action->bytes, action->count);
  return FLOW_OK;
}

/* The message is written into the node at once; a connection of -1 takes nothing. */
flow_status flow_protocol_send(flow_protocol *protocol, int connection, const flow_control_message *message)
{
  uint8_t *bytes;
  if (connection < 0) return FLOW_OK;
  const flow_action action = { .kind = FLOW_ACTION_SEND, .connection = connection };
  FLOW_TRY(queue(protocol, &action, flow_control_size(message), &bytes));
  flow_control_write(message, bytes);
  return FLOW_OK;
}

/* What was sent before still arrives (FLOW_ACTION_CLOSE). */
flow_status flow_protocol_close(flow_protocol *protocol, int connection)
{
  if (connection < 0) return FLOW_OK;
  return flow_protocol_act(protocol, &(flow_action){ .kind = FLOW_ACTION_CLOSE, .connection = connection });
}

flow_status flow_protocol_notice(flow_protocol *protocol, const char *format, ...)
{
  char text[FLOW_LIMIT_TEXT];
  va_list arguments;
  va_start(arguments, format);
  flow_print_list(text, sizeof text, format, arguments);
  va_end(arguments);
  return flow_protocol_act(protocol, &(flow_action){ .kind = FLOW_ACTION_NOTICE, .text = text });
}

/* Frees the action that was fetched before. */
int flow_protocol_next(flow_protocol *protocol, flow_action *out)
{
  flow_free(protocol->current);
  protocol->current = protocol->first;
  if (!protocol->current) return 0;
  protocol->first = protocol->current->next;
  if (!protocol->first) protocol->last = NULL;
  *out = protocol->current->action;
  return 1;
}
