/* model.c: config.json as models without Lua read it: layers, nested models, calls, the optimizer and the loss. Nothing is computed.
 *
 * sources: core/models/[a-z]*.c core/layers/[a-z]*.c core/train/[a-z]*.c core/graph/[a-z]*.c core/ops/[a-z]*.c
 * sources: core/autodiff/[a-z]*.c core/plan/[a-z]*.c
 * sources: core/io/archive.c core/io/tensor_file_access.c
 */
#include "fuzz.h"
#include "models/model.h"

static void model(const uint8_t *bytes, size_t count)
{
  void *block;
  size_t end;
  flow_json *description;
  flow_json_read((const char *)bytes, count, &end, &description);
  if (flow_alloc_zero(sizeof(flow_model), &block) != FLOW_OK) abort();
  flow_model *read = block;
  read->magic = FLOW_MODEL_MAGIC;
  read->description = description;
  if (description && flow_model_read_parts(read) == FLOW_OK) flow_model_read_compiled(read);
  flow_model_release(read);
}

FUZZ_TARGET(model)
