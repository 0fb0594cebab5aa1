/* test_cgroup.c: quotas of control groups, in folders made up like those of Linux. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <sys/stat.h>

#include "base/cgroup.h"
#include "temporary.h"

typedef struct group_case {
  const char *membership;
  struct { const char *folder, *file, *text; } files[4];
  int         cores;
} group_case;

static const group_case cases[] = {
  { "0::/\n", { { "", "cpu.max", "max 100000\n" } }, INT_MAX },
  { "0::/\n", { { "", "cpu.max", "200000 100000\n" } }, 2 },
  { "0::/\n", { { "", "cpu.max", "150000 100000\n" } }, 2 },
  { "0::/\n", { { "", "cpu.max", "5000 100000\n" } }, 1 },
  { "0::/a/b\n",
    { { "/a/b", "cpu.max", "max 100000\n" }, { "/a", "cpu.max", "300000 100000\n" }, { "", "cpu.max", "800000 100000\n" } }, 3 },
  { "0::/a/b\n", { { "/a/b", "cpu.max", "100000 100000\n" }, { "/a", "cpu.max", "300000 100000\n" } }, 1 },
  { "0::/not/there\n", { { "", "cpu.max", "400000 100000\n" } }, 4 },      /* the host's path, the container's root */
  { "0::/\n", { { "", "cpu.max", "nonsense\n" } }, INT_MAX },
  { "0::/\n", { { NULL, NULL, NULL } }, INT_MAX },
  { "", { { "", "cpu.max", "100000 100000\n" } }, INT_MAX },
  { "12:cpuset:/\n4:cpu,cpuacct:/x\n1:name=systemd:/y\n",
    { { "/cpu,cpuacct/x", "cpu.cfs_quota_us", "250000\n" }, { "/cpu,cpuacct/x", "cpu.cfs_period_us", "100000\n" } }, 3 },
  { "4:cpu:/x\n", { { "/cpu/x", "cpu.cfs_quota_us", "-1\n" }, { "/cpu/x", "cpu.cfs_period_us", "100000\n" },
                    { "/cpu", "cpu.cfs_quota_us", "50000\n" }, { "/cpu", "cpu.cfs_period_us", "50000\n" } }, 1 },
  { "4:cpuset:/x\n", { { "/cpu/x", "cpu.cfs_quota_us", "100000\n" }, { "/cpu/x", "cpu.cfs_period_us", "100000\n" } }, INT_MAX },
};

static void write_file(const char *path, const char *text)
{
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

static void make_folders(char *path)
{
  for (char *at = path + 1; *at; at++) {
    if (*at != '/') continue;
    *at = '\0';
    mkdir(path, 0700);
    *at = '/';
  }
  mkdir(path, 0700);
}

static void quotas_are_found(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char mount[TEMPORARY_PATH], membership[TEMPORARY_PATH + 32], path[TEMPORARY_PATH + 64], command[TEMPORARY_PATH + 32];
    assert_non_null(mkdtemp(temporary(mount, "cgroup_XXXXXX")));
    snprintf(membership, sizeof membership, "%s/membership", mount);
    write_file(membership, cases[i].membership);
    for (int k = 0; k < 4 && cases[i].files[k].file; k++) {
      snprintf(path, sizeof path, "%s%s", mount, cases[i].files[k].folder);
      make_folders(path);
      snprintf(path, sizeof path, "%s%s/%s", mount, cases[i].files[k].folder, cases[i].files[k].file);
      write_file(path, cases[i].files[k].text);
    }
    int cores = flow_cgroup_cores(membership, mount);
    if (cores != cases[i].cores) fail_msg("case %zu: %d cores, expected %d", i, cores, cases[i].cores);
    snprintf(command, sizeof command, "rm -r %s", mount);
    assert_int_equal(0, system(command));
  }
  assert_int_equal(INT_MAX, flow_cgroup_cores("/nowhere", "/nowhere"));
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(quotas_are_found) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
