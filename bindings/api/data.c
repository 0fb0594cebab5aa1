/* data.c: the C API's access to datasets. The constructors are, with their checks, in core/data, one file a stage. */
#include "data/dataset.h"

int flow_dataset_component_count(const flow_dataset *dataset) { return dataset ? dataset->spec.count : 0; }

const flow_component *flow_dataset_component(const flow_dataset *dataset, int index)
{
  return dataset && index >= 0 && index < dataset->spec.count ? &dataset->spec.components[index] : NULL;
}

double flow_dataset_cardinality(const flow_dataset *dataset) { return dataset ? (double)dataset->cardinality : 0; }
