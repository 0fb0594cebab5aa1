/* test_cuda_host_copies.c: kernels/cuda/runtime/host_copies.h copies every byte, of any number, whoever else copies, in forked children,
 * too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cuda/runtime/host_copies.h"

enum { MOST = 5 << 20, GUARD = 64, CALLERS = 4, ROUNDS = 20 };

/* NULL, or what is wrong with a copy of `bytes` bytes from one odd address to another. */
static const char *copy(size_t bytes, unsigned seed)
{
  unsigned char *from = malloc(MOST + 2 * GUARD), *to = malloc(MOST + 2 * GUARD);
  const char *wrong = from && to ? NULL : "no memory";
  for (size_t i = 0; !wrong && i < bytes + 2 * GUARD; i++) from[i] = (unsigned char)((i * 2654435761u + seed) >> 13);
  if (!wrong) {
    memset(to, 0xa5, bytes + 2 * GUARD);
    flow_cuda_copy_host(to + GUARD, from + GUARD + seed % 7, bytes);
    if (memcmp(to + GUARD, from + GUARD + seed % 7, bytes) != 0) wrong = "bytes differ";
    for (int i = 0; i < GUARD; i++)
      if (to[i] != 0xa5 || to[GUARD + bytes + (size_t)i] != 0xa5) wrong = "bytes beside are written";
  }
  free(from);
  free(to);
  return wrong;
}

static void good(const char *wrong) { if (wrong) fail_msg("%s", wrong); }

static void any_number_of_bytes(void **state)
{
  static const size_t sizes[] = { 0, 1, 4095, (1 << 19) - 1, 1 << 19, (1 << 19) + 1, (1 << 20) - 63, 3 << 19, (1 << 21) + 7, MOST };
  (void)state;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) good(copy(sizes[i], (unsigned)i));
}

static void *call(void *argument)
{
  const char *wrong = NULL;
  for (unsigned i = 0; i < ROUNDS && !wrong; i++) wrong = copy((size_t)1 << 20, i + (unsigned)(uintptr_t)argument);
  return (void *)(uintptr_t)wrong;
}

static void several_callers(void **state)
{
  pthread_t threads[CALLERS];
  void *wrong;
  (void)state;
  for (int i = 0; i < CALLERS; i++) assert_int_equal(pthread_create(&threads[i], NULL, call, (void *)(uintptr_t)i), 0);
  for (int i = 0; i < CALLERS; i++) {
    assert_int_equal(pthread_join(threads[i], &wrong), 0);
    good(wrong);
  }
}

static void forked_children(void **state)
{
  int status;
  (void)state;
  good(copy(MOST, 1));
  pid_t child = fork();
  if (child == 0) _exit(copy(MOST, 2) != NULL);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(any_number_of_bytes), cmocka_unit_test(several_callers), cmocka_unit_test(forked_children),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
