/* margins.c: see margins.h. */
#include "layers/margins.h"

#include <math.h>

#include "layers/config.h"

flow_status flow_margins(const flow_layer *layer, const char *name, int64_t margins[4])
{
  const double *given;
  int count = flow_argument_list(layer->arguments, name, &given);
  if (count != 1 && count != 2 && count != 4)
    return flow_layer_fail(layer, "%s has %d numbers, expected one, {height, width} or {{top, bottom}, {left, right}}", name, count);
  for (int i = 0; i < 4; i++) {
    double value = given[count == 1 ? 0 : count == 2 ? i / 2 : i];
    if (!(value >= 0 && value <= INT32_MAX) || floor(value) != value)
      return flow_layer_fail(layer, "%s holds %.15g, expected integers of at least 0", name, value);
    margins[i] = (int64_t)value;
  }
  return FLOW_OK;
}

flow_status flow_margins_check(flow_layer *layer, const char *name)
{
  int64_t margins[4];
  double numbers[4];
  FLOW_TRY(flow_margins(layer, name, margins));
  for (int i = 0; i < 4; i++) numbers[i] = (double)margins[i];
  return flow_arguments_set_numbers(layer->arguments, name, numbers, 4);
}

void flow_margins_config(const flow_layer *layer, const char *name, flow_json *config)
{
  int64_t margins[4];
  flow_config_add_common(config, layer);
  flow_json *sides = flow_json_put_kind(config, name, FLOW_JSON_LIST);
  if (flow_margins(layer, name, margins) == FLOW_OK)
    for (int i = 0; i < 4; i += 2)
      flow_json_put(sides, NULL, flow_json_make_numbers((const double[]){ (double)margins[i], (double)margins[i + 1] }, 2));
  flow_json_put_text(config, "data_format", flow_argument_text(layer->arguments, "data_format"));
}
