/* Pictures: what is written is read again; broken, cut and absurd files are refused without taking memory or leaving any. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include "base/memory.h"
#include "base/plugin.h"
#include "image/image.h"
#include "image/resize.h"
#include "temporary.h"

enum { HEIGHT = 21, WIDTH = 34 };

static char folder[TEMPORARY_PATH];

static const char *path_of(const char *name)
{
  static char path[TEMPORARY_PATH + 64];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

/* A picture with slopes, which JPEG keeps well. */
static void draw(flow_picture *picture, int channels)
{
  *picture = (flow_picture){ 0 };
  assert_int_equal(flow_picture_reserve(picture, HEIGHT, WIDTH, channels, 0), FLOW_OK);
  for (int i = 0; i < HEIGHT * WIDTH * channels; i++) {
    int pixel = i / channels, c = i % channels;
    picture->pixels[i] = (unsigned char)(40 * c + 3 * (pixel / WIDTH) + 2 * (pixel % WIDTH));
  }
}

static int has_plugin(void)
{
  const flow_plugin *plugin;
  return flow_plugin_open("image", &plugin) == FLOW_OK;
}

typedef struct bytes { unsigned char *data; size_t count; } bytes;

static bytes read_all(const char *path)
{
  bytes b = { 0 };
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  b.data = malloc(1 << 20);
  b.count = fread(b.data, 1, 1 << 20, file);
  fclose(file);
  return b;
}

/* A file of this picture by the library itself. */
static bytes encoded(const char *name, int channels)
{
  flow_picture picture;
  draw(&picture, channels);
  assert_int_equal(flow_picture_write(path_of(name), &picture, 95), FLOW_OK);
  flow_picture_free(&picture);
  return read_all(path_of(name));
}

/* Decodes a copy without a byte after it, so that a sanitizer sees every read beyond the end. */
static flow_status decode(const unsigned char *data, size_t count, int channels)
{
  unsigned char *copy = malloc(count > 0 ? count : 1);
  memcpy(copy, data, count);
  flow_picture picture = { 0 };
  flow_status status = flow_picture_decode(copy, count, channels, &picture);
  flow_picture_free(&picture);
  free(copy);
  return status;
}

/* ---- round trips ------------------------------------------------------------------------------------------------------------ */

static void check_round_trip(const char *name, int channels, int tolerance)
{
  flow_picture drawn, read = { 0 };
  draw(&drawn, channels);
  assert_int_equal(flow_picture_write(path_of(name), &drawn, 95), FLOW_OK);
  assert_int_equal(flow_picture_read(path_of(name), channels, &read), FLOW_OK);
  assert_int_equal(read.height, HEIGHT);
  assert_int_equal(read.width, WIDTH);
  assert_int_equal(read.channels, channels);
  for (int i = 0; i < HEIGHT * WIDTH * channels; i++) assert_true(abs(read.pixels[i] - drawn.pixels[i]) <= tolerance);
  flow_picture_free(&drawn);
  flow_picture_free(&read);
}

static void test_round_trips(void **state)
{
  (void)state;
  static const int channels[] = { 1, 3, 4 };
  for (int i = 0; i < 3; i++) check_round_trip("a.png", channels[i], 0);
  check_round_trip("a.bmp", 3, 0);
  check_round_trip("a.bmp", 4, 0);
  if (!has_plugin()) skip();
  check_round_trip("a.jpg", 1, 3);
  check_round_trip("a.JPEG", 3, 6);
}

static void test_channels(void **state)
{
  (void)state;
  bytes png = encoded("c.png", 4);
  flow_picture drawn, read = { 0 };
  draw(&drawn, 4);
  static const int channels[] = { 0, 1, 3, 4 };
  for (int k = 0; k < 4; k++) {
    int n = channels[k] == 0 ? 4 : channels[k];
    assert_int_equal(flow_picture_decode(png.data, png.count, channels[k], &read), FLOW_OK);
    assert_int_equal(read.channels, n);
    for (int i = 0; i < HEIGHT * WIDTH; i++) {
      const unsigned char *from = drawn.pixels + i * 4, *to = read.pixels + i * n;
      if (n == 1) assert_true(fabs(to[0] - (0.299 * from[0] + 0.587 * from[1] + 0.114 * from[2])) <= 1);
      else assert_memory_equal(to, from, n);
    }
  }
  assert_int_equal(flow_picture_decode(png.data, png.count, 2, &read), FLOW_INVALID_ARGUMENT);
  flow_picture_free(&read);
  flow_picture_free(&drawn);
  free(png.data);

  bytes grey = encoded("g.png", 1);
  draw(&drawn, 1);
  assert_int_equal(flow_picture_decode(grey.data, grey.count, 4, &read), FLOW_OK);
  for (int i = 0; i < HEIGHT * WIDTH; i++) {
    unsigned char v = drawn.pixels[i], expected[4] = { v, v, v, 255 };
    assert_memory_equal(read.pixels + i * 4, expected, 4);
  }
  flow_picture_free(&read);
  flow_picture_free(&drawn);
  free(grey.data);
}

static void test_jpeg_has_no_alpha(void **state)
{
  (void)state;
  if (!has_plugin()) skip();
  flow_picture picture;
  draw(&picture, 4);
  assert_int_equal(flow_picture_write(path_of("alpha.jpg"), &picture, 95), FLOW_UNSUPPORTED);
  assert_int_equal(access(path_of("alpha.jpg"), F_OK), -1);
  flow_picture_free(&picture);
  bytes jpeg = encoded("b.jpg", 3);
  assert_int_equal(decode(jpeg.data, jpeg.count, 4), FLOW_UNSUPPORTED);
  free(jpeg.data);
}

/* ---- broken files ---------------------------------------------------------------------------------------------------------------- */

static void check_cuts(const char *name, int channels, size_t bytes_that_may_miss)
{
  bytes good = encoded(name, channels);
  assert_int_equal(decode(good.data, good.count, channels), FLOW_OK);
  for (size_t count = 0; count + bytes_that_may_miss < good.count; count++) {
    double before = flow_live_bytes();
    assert_int_not_equal(decode(good.data, count, channels), FLOW_OK);
    assert_true(flow_live_bytes() == before);
  }
  free(good.data);
}

/* Any byte changed: an error or a picture, never a fault. The sanitizers make this test strong. */
static void check_flips(const char *name, int channels, int always_noticed)
{
  static const unsigned char masks[] = { 0x01, 0x80, 0xff };
  bytes good = encoded(name, channels);
  for (size_t place = 0; place < good.count * 3; place++) {
    double before = flow_live_bytes();
    good.data[place / 3] ^= masks[place % 3];
    flow_status status = decode(good.data, good.count, channels);
    good.data[place / 3] ^= masks[place % 3];
    assert_true(flow_live_bytes() == before);
    if (always_noticed) assert_int_not_equal(status, FLOW_OK);
  }
  free(good.data);
}

static void test_cut_files(void **state)
{
  (void)state;
  check_cuts("cut.png", 3, 0);
  check_cuts("cut.bmp", 3, 0);
  if (has_plugin()) check_cuts("cut.jpg", 3, 2);       /* the end marker is not missed, as in TensorFlow */
}

static void test_changed_bytes(void **state)
{
  (void)state;
  check_flips("flip.png", 3, 1);                       /* checksums */
  check_flips("flip.bmp", 3, 0);
  if (has_plugin()) check_flips("flip.jpg", 3, 0);
}

static void put_big(unsigned char *to, uint32_t value)
{
  for (int i = 0; i < 4; i++) to[i] = (unsigned char)(value >> (24 - 8 * i));
}

/* Whatever a small file claims, nothing large is asked of the allocator. */
static void expect_refused(const unsigned char *data, size_t count, flow_status expected)
{
  double before = flow_live_bytes(), allocations = flow_allocation_count();
  assert_int_equal(decode(data, count, 3), expected);
  assert_true(flow_live_bytes() == before);
  assert_true(flow_allocation_count() - allocations <= 1);
}

static void test_absurd_sizes(void **state)
{
  (void)state;
  static const uint32_t sizes[][2] = { { 1u << 20, 1u << 20 }, { 0, 5 }, { 0x7fffffff, 0x7fffffff }, { 0xffffffff, 1 }, { 16384, 16384 } };
  bytes png = encoded("large.png", 3), bmp = encoded("large.bmp", 3);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    put_big(png.data + 16, sizes[i][0]);
    put_big(png.data + 20, sizes[i][1]);
    put_big(png.data + 29, (uint32_t)crc32(0, png.data + 12, 17));
    expect_refused(png.data, png.count, FLOW_CORRUPT_DATA);
    for (int k = 0; k < 8; k++) bmp.data[18 + k] = (unsigned char)(sizes[i][k / 4] >> (8 * (k % 4)));
    expect_refused(bmp.data, bmp.count, FLOW_CORRUPT_DATA);
  }
  free(png.data);
  free(bmp.data);
  if (!has_plugin()) skip();
  bytes jpeg = encoded("large.jpg", 3);
  size_t frame = 0;                                    /* FF C0, length, precision, height, width */
  while (jpeg.data[frame] != 0xff || jpeg.data[frame + 1] != 0xc0) frame++;
  memset(jpeg.data + frame + 5, 0xff, 4);
  expect_refused(jpeg.data, jpeg.count, FLOW_CORRUPT_DATA);
  memset(jpeg.data + frame + 5, 0x3f, 4);              /* 16,191 x 16,191: possible, but not in so few bytes */
  expect_refused(jpeg.data, jpeg.count, FLOW_CORRUPT_DATA);
  free(jpeg.data);
  unsigned char gif[] = "GIF89a\xff\xff\xff\xff\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\xff\xff\xff\xff\x00\x02\x02";
  expect_refused(gif, sizeof gif - 1, FLOW_CORRUPT_DATA);
}

static void test_no_pictures(void **state)
{
  (void)state;
  assert_int_equal(decode((const unsigned char *)"", 0, 3), FLOW_CORRUPT_DATA);
  assert_int_equal(decode((const unsigned char *)"hello world", 11, 3), FLOW_CORRUPT_DATA);
  assert_non_null(strstr(flow_last_error(), "68 65 6c 6c"));
  flow_picture picture = { 0 };
  assert_int_equal(flow_picture_read(path_of("none.png"), 3, &picture), FLOW_NOT_FOUND);
  assert_int_equal(flow_picture_read(folder, 3, &picture), FLOW_IO_ERROR);
  draw(&picture, 3);
  assert_int_equal(flow_picture_write(path_of("a.tiff"), &picture, 95), FLOW_INVALID_ARGUMENT);
  flow_picture_free(&picture);
}

static void check_allocation_failures(const char *name)
{
  bytes good = encoded(name, 3);
  for (int after = 0, status = FLOW_OUT_OF_MEMORY; status != FLOW_OK; after++) {
    double before = flow_live_bytes();
    flow_fail_allocation(after);
    status = decode(good.data, good.count, 1);
    flow_fail_allocation(-1);
    assert_true(status == FLOW_OK || status == FLOW_OUT_OF_MEMORY);
    assert_true(flow_live_bytes() == before);
    assert_true(after < 100);
  }
  free(good.data);
}

/* What zlib takes for PNG is counted, and can be made to fail, as all memory of the library: at least a state to inflate, and a state and
 * its tables to deflate. BMP, which takes none of that, is what remains; stb takes two and four blocks more for PNG. */
static void test_memory_of_zlib(void **state)
{
  (void)state;
  flow_picture picture = { 0 };
  bytes png = encoded("counted.png", 3), bmp = encoded("counted.bmp", 3);
  double counts[4], before = flow_allocation_count();
  assert_int_equal(decode(png.data, png.count, 3), FLOW_OK);
  counts[0] = flow_allocation_count() - before;
  assert_int_equal(decode(bmp.data, bmp.count, 3), FLOW_OK);
  counts[1] = flow_allocation_count() - before - counts[0];
  draw(&picture, 3);
  before = flow_allocation_count();
  assert_int_equal(flow_picture_write(path_of("counted.png"), &picture, 95), FLOW_OK);
  counts[2] = flow_allocation_count() - before;
  assert_int_equal(flow_picture_write(path_of("counted.bmp"), &picture, 95), FLOW_OK);
  counts[3] = flow_allocation_count() - before - counts[2];
  assert_true(counts[0] - counts[1] > 2);
  assert_true(counts[2] - counts[3] > 4 + 3);
  flow_picture_free(&picture);
  free(png.data);
  free(bmp.data);
}

static void test_out_of_memory(void **state)
{
  (void)state;
  check_allocation_failures("memory.png");
  check_allocation_failures("memory.bmp");
  if (has_plugin()) check_allocation_failures("memory.jpg");
}

/* Colours that a palette lacks are black, and all that it has are there: in files of Windows, and of OS/2 with their short headers. */
static void test_bmp_palettes(void **state)
{
  (void)state;
  static const unsigned char windows[] = {
    'B', 'M', 0, 0, 0, 0, 0, 0, 0, 0, 62, 0, 0, 0, 40, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 2, 1, 0, 6, 5, 4, 0, 0, 1, 200, 2,
  };
  static const unsigned char os2[] = {
    'B', 'M', 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0, 12, 0, 0, 0, 4, 0, 1, 0, 1, 0, 1, 0, 3, 2, 1, 6, 5, 4, 0x50, 0, 0, 0,
  };
  static const unsigned char of_windows[12] = { 1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 0 }, of_os2[12] = { 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6 };
  flow_picture picture = { 0 };
  assert_int_equal(flow_picture_decode(windows, sizeof windows, 3, &picture), FLOW_OK);
  assert_memory_equal(picture.pixels, of_windows, 12);
  assert_int_equal(flow_picture_decode(os2, sizeof os2, 3, &picture), FLOW_OK);
  assert_memory_equal(picture.pixels, of_os2, 12);
  unsigned char none[sizeof windows];
  memcpy(none, windows, sizeof none);
  none[10] = 54;
  assert_int_equal(flow_picture_decode(none, sizeof none, 3, &picture), FLOW_CORRUPT_DATA);
  assert_non_null(strstr(flow_last_error(), "no palette"));
  flow_picture_free(&picture);
}

/* ---- plugins --------------------------------------------------------------------------------------------------------------------- */

static void test_plugins(void **state)
{
  (void)state;
  const flow_plugin *plugin;
  assert_int_equal(flow_plugin_open("none", &plugin), FLOW_INVALID_ARGUMENT);
  assert_null(plugin);
  for (int i = 0; i < flow_plugin_count(); i++) {
    const char *libraries;
    assert_non_null(flow_plugin_name(i));
    assert_non_null(flow_plugin_purpose(i));
    flow_status status = flow_plugin_libraries(i, &libraries);
    assert_true((status == FLOW_OK) == (libraries != NULL));
    if (status != FLOW_OK) assert_true(strlen(flow_last_error()) > 10);
  }
  assert_null(flow_plugin_name(-1));
  assert_null(flow_plugin_purpose(flow_plugin_count()));
}

/* Before the plugin is opened for the first time. */
static void test_missing_plugin(void **state)
{
  (void)state;
  static const unsigned char jpeg[] = { 0xff, 0xd8, 0xff, 0xe0 };
  setenv("FLOW_PLUGINS", folder, 1);
  assert_int_equal(decode(jpeg, sizeof jpeg, 3), FLOW_NOT_FOUND);
  assert_non_null(strstr(flow_last_error(), "libflow_image.so"));
  assert_non_null(strstr(flow_last_error(), folder));
  FILE *file = fopen(path_of("libflow_image.so"), "w");
  fputs("not a library", file);
  fclose(file);
  assert_int_equal(decode(jpeg, sizeof jpeg, 3), FLOW_NOT_FOUND);
  assert_non_null(strstr(flow_last_error(), "cannot be opened"));
  unsetenv("FLOW_PLUGINS");
}

/* ---- sizes ------------------------------------------------------------------------------------------------------------------------- */

/* Every method keeps a picture of one colour, for any two sizes, and writes nothing outside of the output. */
static void test_resize_stays_inside(void **state)
{
  (void)state;
  static const int sizes[][2] = { { 1, 1 }, { 1, 9 }, { 7, 2 }, { 16, 16 }, { 33, 5 } };
  static const char *const methods[] = { "bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic" };
  flow_resizer resizer = { 0 };
  for (int k = 0; k < 8 * 5 * 5 * 3 * 2; k++) {
    int channels = k % 3 == 0 ? 1 : k % 3 == 1 ? 3 : 4, method = k / 3 % 8;
    const int *from = sizes[k / 24 % 5], *to = sizes[k / 120 % 5];
    int fit = k / 600 == 0 ? FLOW_STRETCH : FLOW_CROP;
    size_t in = (size_t)(from[0] * from[1] * channels), out = (size_t)(to[0] * to[1] * channels);
    unsigned char *pixels = malloc(in);
    float *result = malloc((out + 8) * sizeof *result);
    memset(pixels, 200, in);
    for (size_t i = 0; i < out + 8; i++) result[i] = -1;
    assert_int_equal(flow_resize_method(methods[method]), method);
    assert_int_equal(flow_resize(&resizer, pixels, FLOW_UINT8, from[0], from[1], channels, method, fit, to[0], to[1], result + 4), FLOW_OK);
    for (size_t i = 0; i < out; i++) assert_true(fabsf(result[i + 4] - 200) < 0.01f);
    for (size_t i = 0; i < 4; i++) assert_true(result[i] == -1 && result[out + 4 + i] == -1);
    free(pixels);
    free(result);
  }
  flow_resizer_free(&resizer);
  assert_int_equal(flow_resize_method("cubic"), -1);
  assert_int_equal(flow_resize_method(NULL), -1);
}

#define OK(call) assert_int_equal(call, FLOW_OK)

static uint32_t next_random(uint32_t *state)
{
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

/* Line by line through a short window, and shuffled: the bits are those of the whole picture, mixed pixel by pixel. */
static void test_resize_by_lines(void **state)
{
  (void)state;
  static const int sizes[][2] = { { 1, 1 }, { 3, 50 }, { 47, 31 }, { 100, 64 }, { 240, 320 }, { 300, 7 } };
  flow_resizer whole = { 0 }, by_lines = { 0 };
  uint32_t random = 1;
  for (int k = 0; k < 6 * 6 * 8 * 3; k++) {
    const int *from = sizes[k % 6], *to = sizes[k / 6 % 6];
    int method = k / 36 % 8, fit = k / 288, channels = k % 5 == 0 ? 1 : k % 5 == 1 ? 4 : 3;
    size_t line = (size_t)(from[1] * channels), out = (size_t)(to[0] * to[1] * channels);
    unsigned char *pixels = malloc(line * (size_t)from[0]), *room;
    float *expected = malloc(out * sizeof *expected), *result = malloc((out + 1) * sizeof *result);
    for (size_t i = 0; i < line * (size_t)from[0]; i++) pixels[i] = (unsigned char)next_random(&random);
    result[out] = -1;
    OK(flow_resize_begin(&whole, FLOW_UINT8, from[0], from[1], channels, method, fit, to[0], to[1], FLOW_FLOAT32, expected));
    whole.shuffles.vectors = 0;
    flow_resize_lines(&whole, pixels, 0, from[0]);
    whole.shuffles.channels = 0;
    OK(flow_resize_begin(&by_lines, FLOW_UINT8, from[0], from[1], channels, method, fit, to[0], to[1], FLOW_FLOAT32, result));
    for (int y = 0; y < from[0]; y++) {
      assert_int_equal(flow_resize_room(&by_lines, &room), FLOW_OK);
      memcpy(room, pixels + (size_t)y * line, line);
    }
    flow_resize_end(&by_lines);
    for (size_t i = 0; i < out; i++) assert_true(result[i] == expected[i]);
    assert_true(result[out] == -1);
    if (flow_resize_dtype(method) == FLOW_UINT8) {
      unsigned char *picked = (unsigned char *)result;
      picked[out] = 77;
      OK(flow_resize_begin(&by_lines, FLOW_UINT8, from[0], from[1], channels, method, fit, to[0], to[1], FLOW_UINT8, picked));
      flow_resize_lines(&by_lines, pixels, 0, from[0]);
      for (size_t i = 0; i < out; i++) assert_true(picked[i] == expected[i]);
      assert_int_equal(picked[out], 77);
    }
    free(result);
    free(expected);
    free(pixels);
  }
  flow_resizer_free(&whole);
  flow_resizer_free(&by_lines);
}

/* tf.image.resize([[0, 10], [20, 50]], (3, 3)) */
static void test_bilinear_values(void **state)
{
  (void)state;
  static const unsigned char pixels[4] = { 0, 10, 20, 50 };
  static const float expected[9] = { 0, 5, 10, 10, 20, 30, 20, 35, 50 };
  float result[9];
  flow_resizer resizer = { 0 };
  assert_int_equal(flow_resize(&resizer, pixels, FLOW_UINT8, 2, 2, 1, flow_resize_method("bilinear"), FLOW_STRETCH, 3, 3, result), FLOW_OK);
  for (int i = 0; i < 9; i++) assert_true(fabsf(result[i] - expected[i]) < 1e-4f);
  flow_resizer_free(&resizer);
}

/* numpy.random.RandomState(seed).shuffle(numpy.arange(10)) */
static void test_shuffle_order(void **state)
{
  (void)state;
  static const int32_t by_123[10] = { 4, 0, 7, 5, 8, 3, 1, 6, 9, 2 }, by_1337[10] = { 6, 3, 0, 4, 5, 2, 1, 9, 8, 7 };
  int32_t order[10];
  assert_int_equal(flow_shuffle_order(123, 10, order), FLOW_OK);
  assert_memory_equal(order, by_123, sizeof order);
  assert_int_equal(flow_shuffle_order(1337, 10, order), FLOW_OK);
  assert_memory_equal(order, by_1337, sizeof order);
  assert_int_equal(flow_shuffle_order(4294967295.0, 1, order), FLOW_OK);
  assert_int_equal(order[0], 0);
  assert_int_equal(flow_shuffle_order(0.5, 10, order), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_shuffle_order(-1, 10, order), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_shuffle_order(4294967296.0, 10, order), FLOW_INVALID_ARGUMENT);
}

int main(void)
{
  if (!mkdtemp(temporary(folder, "image_XXXXXX"))) return 1;
  unsetenv("FLOW_PLUGINS");
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_missing_plugin),    cmocka_unit_test(test_round_trips),  cmocka_unit_test(test_channels),
    cmocka_unit_test(test_jpeg_has_no_alpha), cmocka_unit_test(test_cut_files),    cmocka_unit_test(test_changed_bytes),
    cmocka_unit_test(test_absurd_sizes),      cmocka_unit_test(test_no_pictures),  cmocka_unit_test(test_memory_of_zlib),
    cmocka_unit_test(test_out_of_memory),     cmocka_unit_test(test_plugins),      cmocka_unit_test(test_resize_stays_inside),
    cmocka_unit_test(test_resize_by_lines),   cmocka_unit_test(test_bmp_palettes), cmocka_unit_test(test_bilinear_values),
    cmocka_unit_test(test_shuffle_order),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  char command[TEMPORARY_PATH + 32];
  snprintf(command, sizeof command, "rm -r %s", folder);
  return system(command) == 0 ? failed : 1;
}
