/* auto_shard.c: the part of a pipeline that one of several workers runs, by the dataset's auto_shard_policy, as tf.data rewrites it
 * (tensorflow/core/grappler/optimizers/data/auto_shard.cc):
 *
 *   FILE  each worker reads every count-th file; whatever comes after the reader is kept. There must be a file for each worker. Where
 *         interleave opens the files, they are what its input gives, before that is shuffled.
 *   DATA  each worker computes everything and keeps every count-th element; before prefetches and options at the end
 *   AUTO  FILE, or DATA where the pipeline reads no files by itself, or fewer than there are workers (TensorFlow refuses the latter, though
 *         its guide to distributed input promises DATA)
 *   HINT  the shards that say SHARD_HINT get the worker's numbers
 *   OFF   every worker has all elements
 *
 * The pipeline itself does not change: stages above the place of the shard are made again over new inputs. Each worker calls this in its
 * own process with its own number, and all have to come to the same decision, which is why it depends on the pipeline and the count
 * alone. */
#include "data/dataset.h"
#include "base/need.h"

#include <stdio.h>
#include <string.h>

/* The stage over other inputs. It shares the parameters of the original, unless its class says how it is made again. The
 * copy of the struct after flow_dataset has pointers that belong to the original, which `original` keeps alive;
 * release() of the class is never called for the copy. */
static flow_status make_again(flow_dataset *stage, flow_dataset *const *inputs, flow_dataset **out)
{
  if (stage->class->again) return stage->class->again(stage, inputs[0], out);
  FLOW_TRY(flow_dataset_new(stage->class, inputs, stage->input_count, out));
  flow_dataset *copy = *out;
  size_t head = sizeof(flow_dataset);
  memcpy((char *)copy + head, (const char *)stage + head, stage->class->dataset_bytes - head);
  copy->original = flow_dataset_retain(stage->original ? stage->original : stage);
  copy->spec = stage->spec;
  copy->batch_rows = stage->batch_rows;
  copy->options = stage->options;
  copy->cardinality = stage->cardinality >= 0 ? FLOW_UNKNOWN : stage->cardinality;
  copy->calls_back |= stage->calls_back;
  copy->opens_files = stage->opens_files;
  copy->any_random |= stage->any_random;
  copy->random = stage->random;
  memcpy(copy->seed, stage->seed, sizeof copy->seed);
  atomic_init(&copy->draws, atomic_load(&stage->draws));
  copy->identity = flow_mix(copy->identity, stage->identity);
  return FLOW_OK;
}

typedef flow_status (*rewrite)(flow_dataset *dataset, int64_t count, int64_t index, flow_dataset **out);

/* The stage over inputs that were rewritten. */
static flow_status rewrite_inputs(flow_dataset *stage, rewrite one, int64_t count, int64_t index, flow_dataset **out)
{
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof stage * (size_t)stage->input_count, &block));
  flow_dataset **inputs = block;
  flow_status status = FLOW_OK;
  for (int i = 0; i < stage->input_count && status == FLOW_OK; i++) status = one(stage->inputs[i], count, index, &inputs[i]);
  if (status == FLOW_OK) status = make_again(stage, inputs, out);
  for (int i = 0; i < stage->input_count; i++) flow_dataset_release(inputs[i]);
  flow_free(inputs);
  return status;
}

int flow_dataset_reads_files(const flow_dataset *dataset)
{
  int reads = dataset->class->shard_files || dataset->opens_files;
  for (int i = 0; i < dataset->input_count; i++) reads |= flow_dataset_reads_files(dataset->inputs[i]);
  return reads;
}

/* Every count-th element, each of which stands for a file. All workers must have the same order, which a shuffle without its own seed
 * need not have; so the shard goes in front of it. */
static flow_status by_element(flow_dataset *dataset, int64_t count, int64_t index, flow_dataset **out)
{
  *out = NULL;
  if (dataset->class->reorders) return rewrite_inputs(dataset, by_element, count, index, out);
  if (dataset->cardinality >= 0 && dataset->cardinality < count)
    return flow_fail(FLOW_NOT_FOUND, "interleave opens %lld file%s, not enough for %lld workers", (long long)dataset->cardinality,
                     dataset->cardinality == 1 ? "" : "s", (long long)count);
  return flow_dataset_shard(dataset, (double)count, (double)index, out);
}

/* Goes down to the reader and takes its share of files there. FLOW_NOT_FOUND where the pipeline does not begin with files, or has fewer
 * than there are workers: AUTO then goes another way, FILE fails. */
static flow_status by_file(flow_dataset *dataset, int64_t count, int64_t index, flow_dataset **out)
{
  *out = NULL;
  if (dataset->class->shard_files) return dataset->class->shard_files(dataset, count, index, out);
  if (dataset->opens_files) return rewrite_inputs(dataset, by_element, count, index, out);
  if (dataset->input_count > 0) return rewrite_inputs(dataset, by_file, count, index, out);
  return flow_fail(FLOW_NOT_FOUND, "the pipeline begins with %s, which reads no list of files", dataset->class->name);
}

/* Puts the shard in front of prefetches and options at the end, so that each worker prefetches only its share.
 * ends_pipeline stages have one input, which is where the shard goes. */
static flow_status by_data(flow_dataset *dataset, int64_t count, int64_t index, flow_dataset **out)
{
  *out = NULL;
  if (dataset->class->ends_pipeline) return rewrite_inputs(dataset, by_data, count, index, out);
  return flow_dataset_shard(dataset, (double)count, (double)index, out);
}

/* Each shard that said SHARD_HINT, and no other stage, is made again with the worker's numbers. */
static flow_status by_hint(flow_dataset *dataset, int64_t count, int64_t index, flow_dataset **out)
{
  *out = NULL;
  if (!dataset->shard_hint) {
    *out = flow_dataset_retain(dataset);
    return FLOW_OK;
  }
  if (!dataset->is_hint) return rewrite_inputs(dataset, by_hint, count, index, out);
  flow_dataset *input;
  FLOW_TRY(by_hint(dataset->inputs[0], count, index, &input));
  flow_status status = flow_dataset_shard(input, (double)count, (double)index, out);
  flow_dataset_release(input);
  return status;
}

/* Worker 0 logs the reason, so that a cluster tells it once. */
static flow_status by_file_or_data(flow_dataset *dataset, int64_t count, int64_t index, flow_dataset **out)
{
  flow_status status = by_file(dataset, count, index, out);
  if (status != FLOW_NOT_FOUND) return status;
  char text[FLOW_MESSAGE_SIZE + 120];
  snprintf(text, sizeof text, "auto_shard_policy AUTO is DATA here, all workers compute everything and take their share of it: %s",
           flow_last_error());
  if (index == 0) flow_log(FLOW_LOG_INFO, text);
  return by_data(dataset, count, index, out);
}

/* Policy FILE: fewer files than workers are an error, while AUTO then goes on with DATA. */
static flow_status by_file_only(flow_dataset *dataset, int64_t count, int64_t index, flow_dataset **out)
{
  flow_status status = by_file(dataset, count, index, out);
  return status == FLOW_NOT_FOUND ? flow_fail_prefix(status, "%s", "auto_shard_policy FILE cannot be, use DATA or OFF: ") : status;
}

/* New reference: the dataset itself where nothing has to be divided. */
flow_status flow_dataset_auto_shard(flow_dataset *dataset, double workers, double index, flow_dataset **out)
{
  FLOW_NEED(out);
  int64_t count, number;
  *out = NULL;
  FLOW_TRY(flow_check_dataset("auto_shard", dataset));
  FLOW_TRY(flow_check_whole("auto_shard", "workers", workers, 1, &count));
  FLOW_TRY(flow_check_whole("auto_shard", "index", index, 0, &number));
  if (number >= count)
    return flow_fail(FLOW_INVALID_ARGUMENT, "auto_shard: worker %lld of %lld: workers count from 0", (long long)number, (long long)count);
  switch (dataset->options.auto_shard_policy) {
    case FLOW_SHARD_OFF: *out = flow_dataset_retain(dataset); return FLOW_OK;
    case FLOW_SHARD_FILE: return by_file_only(dataset, count, number, out);
    case FLOW_SHARD_DATA: return by_data(dataset, count, number, out);
    case FLOW_SHARD_HINT: return by_hint(dataset, count, number, out);
    default: return by_file_or_data(dataset, count, number, out);
  }
}
