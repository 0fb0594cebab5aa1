/* The system's random bytes: in a process that may call getrandom, in one that may not, and in one that may not open files either. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/entropy.h"
#include "base/status.h"
#include "child.h"

enum { WORKS, FAILS, NO_FILTER };

static int draws(void)
{
  uint8_t first[64] = { 0 }, second[64] = { 0 };
  if (flow_entropy_take(first, sizeof first) != FLOW_OK || flow_entropy_take(second, sizeof second) != FLOW_OK) return FAILS;
  return memcmp(first, second, sizeof first) != 0 && memcmp(first + 32, first, 32) != 0 ? WORKS : FAILS;
}

/* From now on getrandom fails in this process. Returns 0 where the system has no filters. */
static int forbid_getrandom(void)
{
  struct sock_filter filter[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getrandom, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = { sizeof filter / sizeof *filter, filter };
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* What a child finds that may not call getrandom, and has room for `files` files. */
static int in_child(rlim_t files)
{
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    alarm(CHILD_SECONDS);
    if (!forbid_getrandom()) _exit(NO_FILTER);
    struct rlimit limit = { files, files };
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) _exit(NO_FILTER);
    int found = draws();
    if (found == FAILS && !strstr(flow_last_error(), "getrandom: Operation not permitted; /dev/urandom neither): allow one of them"))
      found = 9;
    _exit(found);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

static void test_sources(void **state)
{
  (void)state;
  assert_int_equal(draws(), WORKS);
  int forbidden = in_child(64);
  if (forbidden == NO_FILTER) skip();
  assert_int_equal(forbidden, WORKS);
  assert_int_equal(in_child(0), FAILS);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_sources) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
