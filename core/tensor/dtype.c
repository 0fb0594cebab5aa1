/* dtype.c: names, sizes and promotion of element types. */
#include "tensor/tensor.h"

#include <string.h>

typedef enum kind { BOOLEAN, INTEGER, FLOAT } kind;      /* in the order of promotion */

static const struct { const char *name; int size; kind kind; } dtypes[FLOW_DTYPE_COUNT] = {
  [FLOW_FLOAT32]  = { "float32",  4, FLOAT },
  [FLOW_FLOAT16]  = { "float16",  2, FLOAT },
  [FLOW_BFLOAT16] = { "bfloat16", 2, FLOAT },
  [FLOW_FLOAT64]  = { "float64",  8, FLOAT },
  [FLOW_INT8]     = { "int8",     1, INTEGER },
  [FLOW_UINT8]    = { "uint8",    1, INTEGER },
  [FLOW_INT32]    = { "int32",    4, INTEGER },
  [FLOW_INT64]    = { "int64",    8, INTEGER },
  [FLOW_BOOL]     = { "bool",     1, BOOLEAN },
};

static int exists(int dtype)
{
  return dtype >= 0 && dtype < FLOW_DTYPE_COUNT;
}

const char *flow_dtype_name(int dtype)
{
  return exists(dtype) ? dtypes[dtype].name : NULL;
}

int flow_dtype_find(const char *name)
{
  for (int dtype = 0; name && dtype < FLOW_DTYPE_COUNT; dtype++) {
    if (strcmp(dtypes[dtype].name, name) == 0) return dtype;
  }
  return -1;
}

int flow_dtype_size(int dtype)
{
  return exists(dtype) ? dtypes[dtype].size : 0;
}

int flow_dtype_is_float(int dtype)
{
  return exists(dtype) && dtypes[dtype].kind == FLOAT;
}

int flow_dtype_is_integer(int dtype)
{
  return exists(dtype) && dtypes[dtype].kind == INTEGER;
}

/* The higher kind wins (bool < integers < floats); within a kind the wider; two different types of one width need the
 * next wider that holds both: float16 with bfloat16 gives float32, int8 with uint8 gives int32. -1 for no dtype. */
int flow_dtype_promote(int a, int b)
{
  if (!exists(a) || !exists(b)) return -1;
  if (a == b) return a;
  if (dtypes[a].kind != dtypes[b].kind) return dtypes[a].kind > dtypes[b].kind ? a : b;
  if (dtypes[a].size != dtypes[b].size) return dtypes[a].size > dtypes[b].size ? a : b;
  return dtypes[a].kind == FLOAT ? FLOW_FLOAT32 : FLOW_INT32;
}
