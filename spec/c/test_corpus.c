/* The fuzz targets over their corpora: inputs that once were trouble, or may become it, are read in every test run. */
#define _GNU_SOURCE             /* memfd_create, in fuzz.h */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LLVMFuzzerTestOneInput fuzz_image
#include "../fuzz/image.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_record
#include "../fuzz/record.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_example
#include "../fuzz/example.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_event
#include "../fuzz/event.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_csv
#include "../fuzz/csv.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_idx
#include "../fuzz/idx.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_npy
#include "../fuzz/npy.c"
#undef LLVMFuzzerTestOneInput

#define LLVMFuzzerTestOneInput fuzz_wave
#include "../fuzz/wave.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_elements
#include "../fuzz/elements.c"
#undef LLVMFuzzerTestOneInput

#define LLVMFuzzerTestOneInput fuzz_safetensors
#include "../fuzz/safetensors.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_zip
#include "../fuzz/zip.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_hdf5
#include "../fuzz/hdf5.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_model
#include "../fuzz/model.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_keras
#include "../fuzz/keras.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_control
#include "../fuzz/control.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_channel
#include "../fuzz/channel.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_cluster
#include "../fuzz/cluster.c"
#undef LLVMFuzzerTestOneInput

/* Feeds one file as it is, cut at four places, and with some bytes changed. */
static void feed(int (*target)(const uint8_t *data, size_t size), const char *path)
{
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  uint8_t *data = malloc(1 << 20);
  size_t size = fread(data, 1, 1 << 20, file);
  fclose(file);
  for (size_t part = 0; part <= 4; part++) {
    size_t count = size - part * size / 5;
    uint8_t *copy = malloc(count + 1);                 /* of its own, so that a sanitizer sees its end */
    memcpy(copy, data, count);
    assert_int_equal(target(copy, count), 0);
    free(copy);
  }
  uint32_t random = 1;
  for (int i = 0; i < 500 && size > 0; i++) {
    uint8_t *copy = malloc(size);
    memcpy(copy, data, size);
    for (int change = 0; change <= i % 4; change++) {
      random = random * 1664525u + 1013904223u;
      uint8_t *byte = &copy[(random >> 8) % size];
      *byte = (uint8_t)(i % 3 == 0 ? random >> 24 : *byte ^ 1u << (random >> 29));
    }
    assert_int_equal(target(copy, size), 0);
    free(copy);
  }
  free(data);
}

static void replay(int (*target)(const uint8_t *data, size_t size), const char *name)
{
  char folder[4096], path[4608];
  const char *here = strstr(__FILE__, "spec/c/");
  snprintf(folder, sizeof folder, "%.*sspec/fuzz/corpus/%s", here ? (int)(here - __FILE__) : 0, __FILE__, name);
  DIR *stream = opendir(folder);
  if (!stream) {                                       /* compilers' caches make the path relative to where they run */
    snprintf(folder, sizeof folder, "spec/fuzz/corpus/%s", name);
    stream = opendir(folder);
  }
  if (!stream) skip();                                 /* a build that was moved away from its sources */
  int files = 0;
  for (struct dirent *entry; (entry = readdir(stream));) {
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    feed(target, path);
    files++;
  }
  closedir(stream);
  assert_true(files > 0);
}

static void test_images_and_sounds(void **state)
{
  (void)state;
  replay(fuzz_image, "image");
  replay(fuzz_wave, "wave");
}

static void test_records(void **state)
{
  (void)state;
  replay(fuzz_record, "record");
  replay(fuzz_example, "example");
  replay(fuzz_event, "event");
  replay(fuzz_elements, "elements");
}

static void test_tables_and_arrays(void **state)
{
  (void)state;
  replay(fuzz_csv, "csv");
  replay(fuzz_idx, "idx");
  replay(fuzz_npy, "npy");
  replay(fuzz_safetensors, "safetensors");
}

static void test_archives(void **state)
{
  (void)state;
  replay(fuzz_zip, "zip");
  replay(fuzz_hdf5, "hdf5");
  replay(fuzz_keras, "keras");
  replay(fuzz_model, "model");
}

static void test_clusters(void **state)
{
  (void)state;
  replay(fuzz_cluster, "cluster");
  replay(fuzz_control, "control");
  replay(fuzz_channel, "channel");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_images_and_sounds), cmocka_unit_test(test_records), cmocka_unit_test(test_tables_and_arrays),
    cmocka_unit_test(test_archives), cmocka_unit_test(test_clusters),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
