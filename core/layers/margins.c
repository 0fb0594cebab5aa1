/* margins.c: see margins.h. */
#include "layers/margins.h"

void flow_margins(const flow_layer *layer, const char *name, int64_t margins[4])
{
  const double *sides;
  int count = flow_argument_list(layer->arguments, name, &sides);
  for (int i = 0; i < 4; i++) margins[i] = i < count ? (int64_t)sides[i] : 0;
}
