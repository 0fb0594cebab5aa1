/* lent.c: values that variables have for a while, for one trace or for eager calls alone. See graph/variable.h. */
#include "graph/variable.h"

#include <string.h>

/* Of the innermost trace, or of eager calls: what is traced meanwhile reads the variable itself, which has the same value. */
static flow_lent *entry_of(const flow_context *context, const flow_variable *variable)
{
  flow_scopes *scopes = context->scopes;
  for (int i = scopes->lent_count - 1; i >= 0; i--)
    if (scopes->lent[i].variable == variable) return scopes->lent[i].graph == flow_context_trace(context) ? &scopes->lent[i] : NULL;
  return NULL;
}

flow_tensor *flow_lent_value(const flow_context *context, const flow_variable *variable)
{
  if (!context->scopes->lent_count) return NULL;
  const flow_lent *entry = entry_of(context, variable);
  return entry ? entry->value : NULL;
}

void flow_lent_replace(const flow_context *context, const flow_variable *variable, flow_tensor *value)
{
  flow_lent *entry = entry_of(context, variable);
  if (!entry) return;
  flow_tensor *before = entry->value;
  entry->value = flow_tensor_retain(value);
  flow_tensor_release(before);
}

flow_status flow_lent_add(const flow_context *context, flow_variable *variable, flow_tensor *value)
{
  flow_scopes *scopes = context->scopes;
  FLOW_TRY(flow_grow(&scopes->lent, sizeof(flow_lent), scopes->lent_count + 1, &scopes->lent_room));
  scopes->lent[scopes->lent_count++] = (flow_lent){
    .variable = flow_variable_retain(variable), .value = flow_tensor_retain(value), .graph = flow_context_trace(context)
  };
  return FLOW_OK;
}

static void release(flow_lent entry)
{
  flow_variable_release(entry.variable);
  flow_tensor_release(entry.value);
}

void flow_lent_remove(const flow_context *context, const flow_variable *variable)
{
  flow_scopes *scopes = context->scopes;
  for (int i = scopes->lent_count - 1; i >= 0; i--)
    if (scopes->lent[i].variable == variable) {
      flow_lent entry = scopes->lent[i];
      memmove(&scopes->lent[i], &scopes->lent[i + 1], sizeof(flow_lent) * (size_t)(scopes->lent_count - i - 1));
      scopes->lent_count--;
      release(entry);
      return;
    }
}

void flow_lent_clear(flow_scopes *scopes)
{
  while (scopes->lent_count) release(scopes->lent[--scopes->lent_count]);
  flow_free(scopes->lent);
  scopes->lent = NULL;
  scopes->lent_room = 0;
}
