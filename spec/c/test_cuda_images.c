/* test_cuda_images.c: resize, sample_image and their gradients on the device, against the CPU's plain kernels. */
#include "cuda_runner.h"

static const int floats[] = { FLOW_FLOAT32, FLOW_FLOAT64 };
static double tolerance_of(int dtype) { return dtype == FLOW_FLOAT32 ? 2e-6 : 1e-13; }

static void every_interpolation_and_size(void **state)
{
  (void)state;
  static const struct { int n, in[2], out[2], channels; } cases[] = {
    { 2, { 7, 9 }, { 14, 5 }, 3 }, { 1, { 30, 31 }, { 7, 8 }, 4 }, { 2, { 5, 5 }, { 5, 5 }, 8 }, { 1, { 1, 6 }, { 9, 1 }, 1 },
    { 1, { 3, 2 }, { 40, 33 }, 5 }, { 0, { 4, 4 }, { 8, 8 }, 3 }
  };
  static const int interpolations[] = { FLOW_NEAREST, FLOW_BILINEAR, FLOW_BICUBIC, FLOW_AREA, FLOW_LANCZOS3, FLOW_LANCZOS5 };
  for (int d = 0; d < 2; d++)
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
      for (size_t k = 0; k < 2 * sizeof interpolations / sizeof interpolations[0]; k++) {
        flow_attributes attributes = { .resize = { .size = { cases[c].out[0], cases[c].out[1] },
                                                   .input_size = { cases[c].in[0], cases[c].in[1] },
                                                   .interpolation = interpolations[k / 2], .antialias = k % 2 } };
        flow_operand x = operand(floats[d], 4, cases[c].n, cases[c].in[0], cases[c].in[1], cases[c].channels);
        flow_operand y = operand(floats[d], 4, cases[c].n, cases[c].out[0], cases[c].out[1], cases[c].channels);
        fill(&x, 1);
        flow_call forward = call_of(FLOW_OP_resize, &attributes, &x, 1, &y, 1);
        cuda_matches_cpu(&forward, 0, tolerance_of(floats[d]));
        fill(&y, 1);
        flow_call gradient = call_of(FLOW_OP_resize_gradient, &attributes, &y, 1, &x, 1);
        cuda_matches_cpu(&gradient, 0, 4 * tolerance_of(floats[d]));     /* the CPU rounds after each addition */
        operand_free(&x), operand_free(&y);
      }
}

static void equal_pixels_stay_what_they_are(void **state)
{
  (void)state;
  flow_attributes attributes = { .resize = { .size = { 23, 17 }, .interpolation = FLOW_BILINEAR } };
  flow_operand x = operand(FLOW_FLOAT32, 4, 1, 9, 9, 3), y = operand(FLOW_FLOAT32, 4, 1, 23, 17, 3);
  for (int64_t i = 0; i < operand_size(&x); i++) set(&x, i, 0.1);
  flow_call call = call_of(FLOW_OP_resize, &attributes, &x, 1, &y, 1);
  cuda_matches_cpu(&call, 0, 0);
  assert_true(get(&y, 100) == (double)0.1f);
  operand_free(&x), operand_free(&y);
}

/* Rotations, perspective, places far outside, NaN and infinity. */
static void fill_transforms(flow_operand *t)
{
  for (int64_t i = 0; i < operand_size(t); i++) {
    static const double identity[8] = { 1, 0, 0, 0, 1, 0, 0, 0 };
    set(t, i, identity[i % 8] + (i % 8 > 5 ? 0.02 : i % 8 % 3 == 2 ? 4 : 0.4) * next_number());
  }
  if (t->shape[0] > 3) set(t, 3 * 8 + 2, 1e9), set(t, 2 * 8 + 0, NAN);
}

static void transformed_images(void **state)
{
  (void)state;
  static const int modes[] = { FLOW_FILL_CONSTANT, FLOW_FILL_REFLECT, FLOW_FILL_WRAP, FLOW_FILL_NEAREST };
  static const struct { int n, h, w, c; } shapes[] = { { 5, 7, 9, 3 }, { 4, 12, 5, 8 }, { 2, 1, 6, 1 }, { 0, 4, 4, 3 } };
  for (int d = 0; d < 2; d++)
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
      for (int mode = 0; mode < 8; mode++) {
        flow_attributes attributes = { .sampling = { .interpolation = mode % 2 ? FLOW_NEAREST : FLOW_BILINEAR, .fill_mode = modes[mode / 2],
                                                     .fill_value = 0.75 } };
        flow_operand inputs[2] = { operand(floats[d], 4, shapes[s].n, shapes[s].h, shapes[s].w, shapes[s].c),
                                   operand(floats[d], 2, shapes[s].n, 8) };
        flow_operand y = operand(floats[d], 4, shapes[s].n, shapes[s].h, shapes[s].w, shapes[s].c);
        fill(&inputs[0], 1);
        fill_transforms(&inputs[1]);
        flow_call forward = call_of(FLOW_OP_sample_image, &attributes, inputs, 2, &y, 1);
        flow_call gradient = call_of(FLOW_OP_sample_image_gradient, &attributes, inputs, 2, &y, 1);
        cuda_matches_cpu(&forward, 0, tolerance_of(floats[d]));
        cuda_matches_cpu(&gradient, 0, tolerance_of(floats[d]));
        operand_free(&inputs[0]), operand_free(&inputs[1]), operand_free(&y);
      }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_interpolation_and_size), cmocka_unit_test(equal_pixels_stay_what_they_are), cmocka_unit_test(transformed_images)
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
