/* port_owner.c: looks through Linux's /proc: the table of sockets gives the inode of the one that listens, and some process has a
 * descriptor of that inode (man 5 proc, "/proc/net/tcp", "/proc/PID/fd"). */
#include "cluster/control/port_owner.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"

enum { LISTENING = 0x0a };        /* TCP_LISTEN of the kernel's tcp_states.h */

/* The inode of a socket that listens on the port; 0: none. */
static unsigned long find_inode(const char *table, int port)
{
  char line[512];
  unsigned long inode = 0;
  FILE *file = fopen(table, "re");
  while (file && !inode && fgets(line, sizeof line, file)) {
    unsigned local, state;
    unsigned long found;
    int fields = sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*x:%*x %*x:%*x %*x %*u %*d %lu", &local, &state, &found);
    if (fields == 3 && (int)local == port && state == LISTENING) inode = found;
  }
  if (file) fclose(file);
  return inode;
}

/* Whether the process (its number as text) has a descriptor of the socket with this inode. Those of other users cannot be read, and
 * count as no. */
static int has_descriptor(const char *process, unsigned long inode)
{
  char folder[300], path[600], wanted[64], target[64];
  int found = 0;
  snprintf(wanted, sizeof wanted, "socket:[%lu]", inode);
  snprintf(folder, sizeof folder, "/proc/%.200s/fd", process);
  DIR *list = opendir(folder);
  for (struct dirent *entry; list && !found && (entry = readdir(list));) {
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length < 0) continue;
    target[length] = '\0';
    found = strcmp(target, wanted) == 0;
  }
  if (list) closedir(list);
  return found;
}

/* Appends "process 4711, flowlua train.lua". */
static void describe(const char *process, flow_text *text)
{
  char path[300], line[160];
  size_t count = 0;
  snprintf(path, sizeof path, "/proc/%.200s/cmdline", process);
  FILE *file = fopen(path, "re");
  if (file) count = fread(line, 1, sizeof line - 1, file);
  if (file) fclose(file);
  while (count > 0 && line[count - 1] == '\0') count--;
  for (size_t i = 0; i < count; i++) {
    if ((unsigned char)line[i] < ' ') line[i] = ' ';        /* zeros are between arguments */
  }
  line[count] = '\0';
  flow_text_add(text, "process %s%s%s", process, count ? ", " : "", line);
}

int flow_port_owner(int port, char *text, int size)
{
  unsigned long inode = find_inode("/proc/net/tcp", port);
  if (!inode) inode = find_inode("/proc/net/tcp6", port);
  flow_text to = flow_text_into(text, size);
  if (!inode) return 0;
  DIR *list = opendir("/proc");
  for (struct dirent *entry; list && to.length == 0 && (entry = readdir(list));) {
    if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && has_descriptor(entry->d_name, inode)) describe(entry->d_name, &to);
  }
  if (list) closedir(list);
  return to.length > 0;
}
