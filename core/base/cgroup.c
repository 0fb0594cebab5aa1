/* cgroup.c: see cgroup.h. Formats: cgroups(7), Documentation/admin-guide/cgroup-v2.rst of Linux. */
#include "base/cgroup.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 1024 };

/* The first line of a file of a group; 0: there is no such file. */
static int read_line(const char *folder, const char *name, char line[64])
{
  char path[PATH_BYTES + 64];
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return 0;
  FILE *file = fopen(path, "re");
  if (!file) return 0;
  int found = fgets(line, 64, file) != NULL;
  fclose(file);
  return found;
}

/* Whole cores, rounded up: a quota of 1.5 cores is used by two threads, which get what they are given. */
static int cores_of(long quota, long period)
{
  if (quota <= 0 || period <= 0) return INT_MAX;      /* "max", -1: none */
  long cores = quota / period + (quota % period != 0);
  return cores > INT_MAX ? INT_MAX : (int)cores;
}

/* The quota of one group, in cores; INT_MAX: it has none, or the folder is not there. */
static int quota_of(const char *folder)
{
  char line[64], *end;
  if (read_line(folder, "cpu.max", line)) {
    long quota = strtol(line, &end, 10);
    return end == line ? INT_MAX : cores_of(quota, strtol(end, NULL, 10));
  }
  if (!read_line(folder, "cpu.cfs_quota_us", line)) return INT_MAX;
  long quota = strtol(line, NULL, 10);
  return read_line(folder, "cpu.cfs_period_us", line) ? cores_of(quota, strtol(line, NULL, 10)) : INT_MAX;
}

/* Of a group and all around it, up to the folder where its hierarchy is mounted. The path is shortened by its last part in each round;
 * the mount itself, which has no slash after `base`, is the last. */
static int least_quota(const char *mount, const char *hierarchy, const char *group)
{
  char folder[PATH_BYTES];
  int least = INT_MAX, base = snprintf(folder, sizeof folder, "%s%s", mount, hierarchy);
  if (base >= (int)sizeof folder || snprintf(folder + base, sizeof folder - (size_t)base, "%s", group) >= (int)sizeof folder - base)
    return INT_MAX;
  for (;;) {
    int cores = quota_of(folder);
    if (cores < least) least = cores;
    char *slash = strrchr(folder + base, '/');
    if (!slash) return least;
    *slash = '\0';
  }
}

/* Whether "cpu" is in a list like "cpu,cpuacct". */
static int has_cpu(const char *controllers)
{
  const char *found = strstr(controllers, "cpu");
  for (; found; found = strstr(found + 1, "cpu"))
    if ((found == controllers || found[-1] == ',') && (found[3] == '\0' || found[3] == ',')) return 1;
  return 0;
}

/* Lines are "number:controllers:/group"; those of version 2 name no controllers. A process is in one group of version 2 and in one of
 * each hierarchy of version 1; all that have a quota count. */
int flow_cgroup_cores(const char *membership, const char *mount)
{
  char line[PATH_BYTES];
  int least = INT_MAX;
  FILE *file = fopen(membership, "re");
  while (file && fgets(line, sizeof line, file)) {
    line[strcspn(line, "\n")] = '\0';
    char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group) continue;
    *group++ = '\0';
    controllers++;
    static const char *const hierarchies[] = { "", "/cpu", "/cpu,cpuacct" };
    int first = *controllers ? 1 : 0, last = *controllers ? 2 : 0;
    if (*controllers && !has_cpu(controllers)) continue;
    for (int i = first; i <= last; i++) {
      int cores = least_quota(mount, hierarchies[i], group);
      if (cores < least) least = cores;
    }
  }
  if (file) fclose(file);
  return least;
}
