/* test_pairwise.c: sums in the order of a balanced tree: the tree of their contract, and that it does not matter over how many
 * processes the arrays are spread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>
#include "tensor/pairwise.h"

enum { MOST = 37, LENGTH = 300 };

/* Numbers of very different sizes: their sum shows in which order they were added. */
static void fill(double parts[MOST][LENGTH])
{
  unsigned state = 1;
  for (int r = 0; r < MOST; r++)
    for (int i = 0; i < LENGTH; i++) {
      state = state * 1664525u + 1013904223u;
      parts[r][i] = ldexp((double)(int)state, (int)(state >> 8 & 31) - 40);
    }
}

/* The contract, written down level by level. */
static double tree(double parts[MOST][LENGTH], int count, int i)
{
  double level[MOST];
  for (int r = 0; r < count; r++) level[r] = parts[r][i];
  for (; count > 1; count = (count + 1) / 2)
    for (int r = 0; r < count; r += 2) level[r / 2] = r + 1 < count ? level[r] + level[r + 1] : level[r];
  return level[0];
}

static void sums_are_a_tree(void **state)
{
  (void)state;
  static double parts[MOST][LENGTH], sum[LENGTH];
  static float floats[4][LENGTH];
  fill(parts);
  const void *pointers[MOST];
  for (int r = 0; r < MOST; r++) pointers[r] = parts[r];
  for (int count = 1; count <= MOST; count++) {
    flow_add_pairwise(FLOW_FLOAT64, pointers, count, sum, LENGTH);
    for (int i = 0; i < LENGTH; i++) assert_true(sum[i] == tree(parts, count, i));
  }
  for (int r = 0; r < 4; r++)
    for (int i = 0; i < LENGTH; i++) floats[r][i] = (float)parts[r][i];
  for (int r = 0; r < 4; r++) pointers[r] = floats[r];
  float expected[LENGTH];
  for (int i = 0; i < LENGTH; i++) expected[i] = (floats[0][i] + floats[1][i]) + (floats[2][i] + floats[3][i]);
  flow_add_pairwise(FLOW_FLOAT32, pointers, 4, floats[0], LENGTH);      /* into one of the parts */
  assert_memory_equal(floats[0], expected, sizeof expected);
}

static void spreading_changes_nothing(void **state)
{
  (void)state;
  static double parts[MOST][LENGTH], whole[LENGTH], of_group[16][LENGTH], sum[LENGTH];
  fill(parts);
  const void *pointers[MOST], *groups[16];
  for (int r = 0; r < MOST; r++) pointers[r] = parts[r];
  flow_add_pairwise(FLOW_FLOAT64, pointers, 16, whole, LENGTH);
  for (int count = 1; count <= 16; count *= 2) {
    for (int g = 0; g < count; g++) {
      flow_add_pairwise(FLOW_FLOAT64, pointers + g * (16 / count), 16 / count, of_group[g], LENGTH);
      groups[g] = of_group[g];
    }
    flow_add_pairwise(FLOW_FLOAT64, groups, count, sum, LENGTH);
    assert_memory_equal(sum, whole, sizeof whole);
  }
}

/* However many processes there are, each of which adds up a term of the tree. */
static void uneven_spreading_changes_nothing(void **state)
{
  (void)state;
  enum { ARRAYS = 32 };
  static double parts[MOST][LENGTH], whole[LENGTH], terms[ARRAYS][LENGTH], sum[LENGTH];
  fill(parts);
  const void *pointers[MOST];
  void *groups[ARRAYS];
  for (int r = 0; r < MOST; r++) pointers[r] = parts[r];
  flow_add_pairwise(FLOW_FLOAT64, pointers, ARRAYS, whole, LENGTH);
  for (int count = 1; count <= ARRAYS; count++) {
    int most = 0, least = ARRAYS;
    assert_int_equal(flow_pairwise_begin(ARRAYS, count, 0), 0);
    assert_int_equal(flow_pairwise_begin(ARRAYS, count, count), ARRAYS);
    for (int g = 0; g < count; g++) {
      int begin = flow_pairwise_begin(ARRAYS, count, g), own = flow_pairwise_begin(ARRAYS, count, g + 1) - begin;
      most = own > most ? own : most;
      least = own < least ? own : least;
      flow_add_pairwise(FLOW_FLOAT64, pointers + begin, own, terms[g], LENGTH);
      groups[g] = terms[g];
    }
    assert_true(least >= 1 && most <= 2 * least);
    flow_add_terms(FLOW_FLOAT64, groups, count, sum, LENGTH);
    assert_memory_equal(sum, whole, sizeof whole);
  }
}

static void a_worker_in_three_has_twice_as_much(void **state)
{
  (void)state;
  const int expected[] = { 0, 2, 3, 4 };
  for (int i = 0; i < 4; i++) assert_int_equal(flow_pairwise_begin(4, 3, i), expected[i]);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(sums_are_a_tree), cmocka_unit_test(spreading_changes_nothing), cmocka_unit_test(uneven_spreading_changes_nothing),
    cmocka_unit_test(a_worker_in_three_has_twice_as_much),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
