/* cgroup.h: how many cores a container may use by the quota of its control groups, which the affinity mask does not include. */
#ifndef FLOW_BASE_CGROUP_H
#define FLOW_BASE_CGROUP_H

/* The least quota of the groups that `membership` (/proc/self/cgroup) names and of those around them, in whole cores, rounded up; INT_MAX:
 * none. mount: /sys/fs/cgroup; version 2 (cpu.max) and version 1 (cpu.cfs_quota_us in the folder cpu or cpu,cpuacct). If a container
 * sees its own group as the root, the root's quota is used. */
int flow_cgroup_cores(const char *membership, const char *mount);

#endif
