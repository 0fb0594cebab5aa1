/* guest.c: a host that loads, predicts, trains, saves and decodes, and prints a hash of all that came out. With EXPORTS it exports
 * functions of the names that the library's own parts have, as programs do that carry such libraries along: each ends the process. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "flow.h"

#ifdef EXPORTS
#define TRAP(name)                                                                    \
  __attribute__((visibility("default"))) void name(void);                             \
  void name(void)                                                                     \
  {                                                                                   \
    static const char text[] = "the library called the host's " #name "\n";           \
    if (write(2, text, sizeof text - 1) < 0) _exit(8);                                \
    _exit(9);                                                                         \
  }
TRAP(cJSON_Parse) TRAP(cJSON_ParseWithLength) TRAP(cJSON_ParseWithLengthOpts) TRAP(cJSON_Delete) TRAP(cJSON_InitHooks)
TRAP(cJSON_CreateObject) TRAP(cJSON_AddStringToObject) TRAP(cJSON_PrintUnformatted) TRAP(cJSON_GetObjectItemCaseSensitive) TRAP(cJSON_free)
TRAP(crc32) TRAP(crc32_z) TRAP(adler32) TRAP(inflate) TRAP(inflateInit2_) TRAP(inflateReset) TRAP(inflateEnd) TRAP(deflate)
TRAP(deflateInit2_) TRAP(deflateEnd) TRAP(compress2) TRAP(compressBound) TRAP(zlibVersion)
TRAP(jpeg_CreateDecompress) TRAP(jpeg_CreateCompress) TRAP(jpeg_read_header) TRAP(jpeg_start_decompress) TRAP(jpeg_read_scanlines)
TRAP(jpeg_std_error) TRAP(jpeg_destroy_decompress) TRAP(DGifOpen) TRAP(DGifSlurp) TRAP(DGifGetLine) TRAP(sodium_init)
#endif

static uint64_t hash = 0xcbf29ce484222325u;

static void add(const void *bytes, size_t count)
{
  for (size_t i = 0; i < count; i++) hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
}

static void must(flow_status status, const char *what)
{
  if (status == FLOW_OK) return;
  fprintf(stderr, "%s: %s\n", what, flow_last_error());
  exit(1);
}

static void add_tensor(const flow_tensor *tensor)
{
  double values[4096];
  int count = (int)flow_tensor_size(tensor);
  if (count > 4096) exit(2);
  must(flow_tensor_read(tensor, values, count), "read");
  add(values, sizeof *values * (size_t)count);
}

static void add_file(const char *path)
{
  char bytes[4096];
  size_t count;
  FILE *file = fopen(path, "rb");
  if (!file) exit(3);
  while ((count = fread(bytes, 1, sizeof bytes, file)) > 0) add(bytes, count);
  fclose(file);
}

/* guest FOLDER MODEL NPZ PICTURE...: FOLDER is writable. */
int main(int count, char **arguments)
{
  const int64_t shape[2] = { 16, 6 }, rows = 16;
  char path[1000];
  flow_context *context;
  flow_model *model;
  flow_tensor *x, *y, *result;
  double loss;
  must(flow_context_new(&context), "context");
  must(flow_model_load(context, arguments[2], &model), "load");
  must(flow_tensor_new(FLOW_FLOAT32, 2, shape, &x), "tensor");
  must(flow_tensor_fill(x, 0.25), "fill");
  must(flow_tensor_new(FLOW_FLOAT32, 1, &rows, &y), "tensor");
  must(flow_model_predict(context, model, &x, 1, &result), "predict");
  add_tensor(result);
  flow_tensor_release(result);
  must(flow_model_train(context, model, &x, 1, y, &loss), "train");
  add(&loss, sizeof loss);
  snprintf(path, sizeof path, "%s/saved.keras", arguments[1]);
  must(flow_model_save(model, path), "save");
  add_file(path);
  flow_model_release(model);
  must(flow_model_load(context, path, &model), "load again");
  must(flow_tensor_load_npz(arguments[3], "trained_adam_loss", &result), "npz");
  add_tensor(result);
  flow_tensor_release(result);
  for (int i = 4; i < count; i++) {
    must(flow_image_load(arguments[i], 3, &result), arguments[i]);
    flow_tensor *small;
    must(flow_image_resize(result, 9, 9, "bilinear", 0, &small), "resize");
    add_tensor(small);
    flow_tensor_release(small);
    flow_tensor_release(result);
  }
  flow_tensor_release(x);
  flow_tensor_release(y);
  flow_model_release(model);
  flow_context_release(context);
  printf("%016llx\n", (unsigned long long)hash);
  return 0;
}
