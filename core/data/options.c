/* options.c: with_options: the same elements, with other options from here on; the last stage's count for the whole pipeline. */
#include "data/dataset.h"
#include "base/need.h"

/* Nothing is computed here: the stage only carries options. */
static flow_status next(flow_cursor *cursor, flow_element *out) { return flow_cursor_pull(cursor->inputs[0], out); }

static flow_status skip(flow_cursor *cursor, int64_t count, int64_t *skipped)
{
  return flow_cursor_skip(cursor->inputs[0], count, skipped);
}

/* It changes nothing in the elements; the options travel with the description of the dataset. */
static const flow_dataset_class class = {
  .name = "with_options", .dataset_bytes = sizeof(flow_dataset), .cursor_bytes = sizeof(flow_cursor), .next = next, .skip = skip,
  .ends_pipeline = 1,
  .passes_on = 1,
};

/* auto_shard_policy FLOW_SHARD_KEEP and deterministic < 0 leave what the input has. */
flow_status flow_dataset_with_options(flow_dataset *input, int auto_shard_policy, int deterministic, flow_dataset **out)
{
  FLOW_NEED(out);
  *out = NULL;
  if (auto_shard_policy < FLOW_SHARD_KEEP || auto_shard_policy > FLOW_SHARD_HINT)
    return flow_fail(FLOW_INVALID_ARGUMENT, "with_options: there is no auto_shard_policy %d; the numbers are %d to %d", auto_shard_policy,
                     FLOW_SHARD_KEEP, FLOW_SHARD_HINT);
  FLOW_TRY(flow_dataset_new(&class, &input, 1, out));
  if (auto_shard_policy != FLOW_SHARD_KEEP) (*out)->options.auto_shard_policy = auto_shard_policy;
  if (deterministic >= 0) (*out)->options.deterministic = deterministic != 0;
  return FLOW_OK;
}

/* NULL has the defaults, so that callers need not ask first. */
int flow_dataset_auto_shard_policy(const flow_dataset *dataset) { return dataset ? dataset->options.auto_shard_policy : FLOW_SHARD_AUTO; }
double flow_dataset_batch_rows(const flow_dataset *dataset) { return dataset ? (double)dataset->batch_rows : 0; }
int flow_dataset_deterministic(const flow_dataset *dataset) { return dataset ? dataset->options.deterministic : 1; }
