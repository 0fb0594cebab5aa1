/* shared_model.c: a server with threads and one model. Each thread predicts with its own number of rows, all with the same weights.
 *   shared_model MODEL THREADS CALLS
 * Prints "loading 100000 KB, served 70000 KB": the most memory that it held while it loaded the model and while the threads predicted,
 * without what it held before. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "flow.h"

enum { MOST_THREADS = 64 };

static flow_model *model;
static int calls;

static void must(flow_status status, const char *what)
{
  if (status == FLOW_OK) return;
  fprintf(stderr, "%s: %s\n", what, flow_last_error());
  exit(1);
}

static double read_status(const char *name)
{
  char line[256];
  double value = 0;
  FILE *file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file)) {
    if (strncmp(line, name, strlen(name)) == 0) value = atof(line + strlen(name) + 1);
  }
  if (file) fclose(file);
  return value;
}

/* The most memory that was held since the last call. */
static double highest(void)
{
  double found = read_status("VmHWM:");
  FILE *file = fopen("/proc/self/clear_refs", "w");
  if (!file || fputs("5", file) < 0 || fclose(file) != 0) exit(4);
  return found;
}

static void *serve(void *number)
{
  int rows = 1 + *(int *)number;
  int64_t shape[2] = { rows, (int64_t)flow_model_input_dim(model, 0, 1) };
  flow_context *context;
  flow_tensor *input, *output;
  must(flow_context_new(&context), "context");
  must(flow_tensor_new(FLOW_FLOAT32, 2, shape, &input), "input");
  must(flow_tensor_fill(input, 0.25), "fill");
  for (int call = 0; call < calls; call++) {
    must(flow_model_predict(context, model, &input, 1, &output), "predict");
    flow_tensor_release(output);
  }
  flow_tensor_release(input);
  flow_context_release(context);
  return NULL;
}

int main(int count, char **arguments)
{
  pthread_t threads[MOST_THREADS];
  int numbers[MOST_THREADS], thread_count = count == 4 ? atoi(arguments[2]) : 0;
  if (thread_count < 1 || thread_count > MOST_THREADS) return 2;
  calls = atoi(arguments[3]);
  double before = read_status("VmRSS:");
  flow_context *context;
  must(flow_context_new(&context), "context");
  must(flow_model_load(context, arguments[1], &model), "load");
  double loading = highest() - before;
  for (int i = 0; i < thread_count; i++) {
    numbers[i] = i;
    if (pthread_create(&threads[i], NULL, serve, &numbers[i]) != 0) return 3;
  }
  for (int i = 0; i < thread_count; i++) pthread_join(threads[i], NULL);
  printf("loading %.0f KB, served %.0f KB\n", loading, highest() - before);
  flow_model_release(model);
  flow_context_release(context);
  return 0;
}
