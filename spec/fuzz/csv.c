/* csv.c: tables of comma-separated values: every column as what it is, and as int8 and float32. */
#include "fuzz.h"

static void csv(const uint8_t *bytes, size_t count)
{
  char path[64];
  flow_csv *table;
  int descriptor = fuzz_file(bytes, count, path);
  if (flow_csv_open(path, ",", 1, &table) == FLOW_OK) {
    for (int column = 0; column < flow_csv_columns(table) && column < 100; column++) {
      const int dtypes[] = { flow_csv_dtype(table, column), FLOW_INT8, FLOW_FLOAT32 };
      for (int i = dtypes[0] < 0; i < 3; i++) {
        flow_tensor *tensor;
        flow_status status = flow_csv_tensor(table, column, dtypes[i], &tensor);
        if (i == 0 && status != FLOW_OK) abort();       /* it said that the column is that */
        flow_tensor_release(tensor);
      }
    }
    flow_csv_release(table);
  }
  close(descriptor);
}

FUZZ_TARGET(csv)
