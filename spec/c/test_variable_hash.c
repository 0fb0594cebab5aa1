/* test_variable_hash.c: hashes of variables: XXH64's, of the bytes that a device works with. */
#include "cuda_runner.h"

#include "base/xxh64.h"
#include "graph/variable.h"
#include "tensor/mirrors.h"

/* Of bytes (7 i + 3) mod 256, by libxxhash 0.8.1. */
static const struct { size_t count; uint64_t hash; } known[] = {
  { 0, UINT64_C(0xef46db3751d8e999) }, { 1, UINT64_C(0x1f25c8d0bc1f4bb6) }, { 3, UINT64_C(0x31d2363f52e564c9) },
  { 4, UINT64_C(0x9bb64b7d66ee9fda) }, { 7, UINT64_C(0x9a7b149959ce60d8) }, { 8, UINT64_C(0xdab99d95c6f90092) },
  { 13, UINT64_C(0xf78b031308f5bfc8) }, { 31, UINT64_C(0xa2aa5f33cc4a6119) }, { 32, UINT64_C(0x23c3c17ef790fd97) },
  { 33, UINT64_C(0x50a7cfc7ba588784) }, { 63, UINT64_C(0x5e3e54b431c7493c) }, { 64, UINT64_C(0x0eb64b3ef6eeb01f) },
  { 100, UINT64_C(0xa61f8d4c170fe531) }, { 1000, UINT64_C(0x5f235fa033f1a3fb) },
};

static void hashes_are_those_of_xxhash(void **state)
{
  unsigned char bytes[1000];
  (void)state;
  for (int i = 0; i < 1000; i++) bytes[i] = (unsigned char)(7 * i + 3);
  for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
    for (size_t cut = 0; cut <= known[k].count; cut += FLOW_XXH64_STRIPE) {
      flow_xxh64 hash;
      flow_xxh64_begin(&hash);
      flow_xxh64_add(&hash, bytes, cut);
      assert_int_equal(flow_xxh64_end(&hash, bytes + cut, known[k].count - cut), known[k].hash);
    }
  }
}

enum { COUNT = 1 << 18 };

static flow_variable *new_variable(flow_place *place, int sync, float *values)
{
  flow_tensor *tensor;
  flow_variable *variable;
  for (int i = 0; i < COUNT; i++) values[i] = (float)i;
  cuda_ok(flow_tensor_new_at(place, FLOW_FLOAT32, 1, (int64_t[]){ COUNT }, &tensor));
  if (place) cuda_ok(flow_place_upload(place, tensor->data, values, COUNT * sizeof *values));
  else memcpy(tensor->data, values, COUNT * sizeof *values);
  cuda_ok(flow_variable_over(tensor, "v", 1, sync, &variable));
  flow_tensor_release(tensor);
  return variable;
}

static uint64_t hash_of(flow_variable *variable, int device)
{
  uint64_t hash = 1;
  cuda_ok(flow_variables_hash(&variable, 1, device, &hash));
  return hash;
}

static void one_changed_bit_shows(void **state)
{
  float *values = malloc(COUNT * sizeof *values);
  (void)state;
  flow_variable *variable = new_variable(NULL, FLOW_MIRRORED, values);
  uint64_t before = hash_of(variable, -1);
  unsigned char *bytes = (unsigned char *)variable->tensor->data;
  for (size_t bit = 0; bit < 8u * COUNT * sizeof *values; bit += 99991) {
    bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    assert_int_not_equal(hash_of(variable, -1), before);
    bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
  }
  ((float *)(void *)bytes)[7] = -7, ((float *)(void *)bytes)[15] = -15;      /* two signs, a stripe apart */
  assert_int_not_equal(hash_of(variable, -1), before);
  flow_variable_release(variable);
  variable = new_variable(NULL, FLOW_SUM_ON_READ, values);
  assert_int_equal(hash_of(variable, -1), 0);
  flow_variable_release(variable);
  assert_int_equal(flow_variables_hash(&variable, -1, -1, &before), FLOW_INVALID_ARGUMENT);
  free(values);
}

static void copies_on_devices_are_hashed_where_they_are(void **state)
{
  char *copy;
  float *values = malloc(COUNT * sizeof *values), wrong = -1;
  flow_place *places[2];
  (void)state;
  cuda_device();                                        /* finds the emulated devices */
  cuda_ok(flow_place_new(0, &places[0]));
  cuda_ok(flow_place_new(1, &places[1]));
  flow_variable *host = new_variable(NULL, FLOW_MIRRORED, values), *variable = new_variable(places[0], FLOW_MIRRORED, values);
  assert_int_equal(hash_of(variable, 0), hash_of(host, -1));
  assert_int_equal(hash_of(variable, 1), hash_of(host, -1));      /* there is no copy yet */
  cuda_ok(flow_mirror_at(variable->tensor->storage, places[1], &copy));
  assert_int_equal(hash_of(variable, 1), hash_of(host, -1));
  cuda_ok(flow_place_upload(places[1], copy + 400, &wrong, sizeof wrong));
  assert_int_not_equal(hash_of(variable, 1), hash_of(host, -1));
  assert_int_equal(hash_of(variable, 0), hash_of(host, -1));
  flow_storage_written(variable->tensor->storage);      /* it is made again before it is used */
  assert_int_equal(hash_of(variable, 1), hash_of(host, -1));
  flow_variable_release(variable);
  flow_variable_release(host);
  flow_place_release(places[1]);
  flow_place_release(places[0]);
  free(values);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(hashes_are_those_of_xxhash),
    cmocka_unit_test(one_changed_bit_shows),
    cmocka_unit_test(copies_on_devices_are_hashed_where_they_are),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
