/* test_cuda_headers.c: the headers of the emulated CUDA runtime and NCCL have NVIDIA's values and fields. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#if FLOW_CUDA
#include "../cuda/agreement_list.h"

static void numbers_are_nvidias(void **state)
{
  (void)state;
  const agreement_number *own = emulated_numbers(), *theirs = nvidia_numbers();
  int count = 0;
  for (; own[count].name; count++) {
    assert_string_equal(own[count].name, theirs[count].name);
    if (own[count].value != theirs[count].value)
      fail_msg("%s is %lld, NVIDIA's is %lld", own[count].name, own[count].value, theirs[count].value);
  }
  assert_null(theirs[count].name);
  assert_true(count > 80);
}
#else
static void numbers_are_nvidias(void **state)
{
  (void)state;
  skip();                    /* the toolkit is not there */
}
#endif

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(numbers_are_nvidias) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
