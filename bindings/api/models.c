/* models.c: what flow.h tells about a model's inputs and outputs; the calls that work are in core/models. */
#include "models/model.h"

static int alive(const flow_model *model) { return model && model->magic == FLOW_MODEL_MAGIC; }

static const flow_model_input *input_at(const flow_model *model, int index)
{
  return alive(model) && index >= 0 && index < model->input_count ? &model->inputs[index] : NULL;
}

int flow_model_input_count(const flow_model *model)  { return alive(model) ? model->input_count : 0; }
int flow_model_output_count(const flow_model *model) { return alive(model) ? model->output_count : 0; }

const char *flow_model_input_name(const flow_model *model, int index)
{
  const flow_model_input *input = input_at(model, index);
  return input ? input->name : NULL;
}

int flow_model_input_dtype(const flow_model *model, int index)
{
  const flow_model_input *input = input_at(model, index);
  return input ? input->dtype : -1;
}

int flow_model_input_rank(const flow_model *model, int index)
{
  const flow_model_input *input = input_at(model, index);
  return input ? input->rank : 0;
}

double flow_model_input_dim(const flow_model *model, int index, int axis)
{
  const flow_model_input *input = input_at(model, index);
  return input && axis >= 0 && axis < input->rank ? (double)input->shape[axis] : 0;
}
