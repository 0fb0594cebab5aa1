/* ports.c: listening sockets on the loopback. Who holds a port follows from /proc: the inode of the socket is in /proc/net/tcp, and
 * /proc/PID/fd has a link with that number. */
#define _GNU_SOURCE
#include "ports.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 128, LISTENS = 0x0A };        /* the state TCP_LISTEN of /proc/net/tcp */

/* The inode of a socket with that local port, 0 if the table has none; one that listens goes first. */
static unsigned long find_inode(const char *table, int port)
{
  FILE *file = fopen(table, "re");
  unsigned long found = 0;
  char line[512];
  while (file && fgets(line, sizeof line, file)) {
    unsigned local, state;
    unsigned long inode;
    if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*s %*s %*s %*s %*s %lu", &local, &state, &inode) != 3) continue;
    if ((int)local != port || inode == 0 || (found && state != LISTENS)) continue;
    found = inode;
  }
  if (file) fclose(file);
  return found;
}

/* Whether a process has this socket among its descriptors; 0 also where it may not be looked at. */
static int holds(const char *pid, const char *link)
{
  char path[300], target[64];
  snprintf(path, sizeof path, "/proc/%s/fd", pid);
  DIR *folder = opendir(path);
  int found = 0;
  for (struct dirent *entry; folder && !found && (entry = readdir(folder));) {
    ssize_t length = readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1);
    if (length <= 0) continue;
    target[length] = '\0';
    found = strcmp(target, link) == 0;
  }
  if (folder) closedir(folder);
  return found;
}

/* "process 77 (python train.py)": the command line with spaces for what cannot be printed, cut at 200 bytes. */
static void describe_process(const char *pid, char *text, size_t size)
{
  char path[300], command[200];
  snprintf(path, sizeof path, "/proc/%s/cmdline", pid);
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t length = descriptor < 0 ? 0 : read(descriptor, command, sizeof command - 1);
  if (descriptor >= 0) close(descriptor);
  while (length > 0 && command[length - 1] == '\0') length--;
  for (ssize_t i = 0; i < length; i++) if (!isprint((unsigned char)command[i])) command[i] = ' ';
  if (length > 0) snprintf(text, size, "process %s (%.*s)", pid, (int)length, command);
  else snprintf(text, size, "process %s", pid);
}

/* For the message: who has the port. Never fails; the text says so where it is not known. */
static void describe_owner(int port, char *text, size_t size)
{
  char link[64];
  unsigned long inode = find_inode("/proc/net/tcp", port);
  if (!inode) inode = find_inode("/proc/net/tcp6", port);
  snprintf(link, sizeof link, "socket:[%lu]", inode);
  snprintf(text, size, "another process, which /proc does not show to this user");
  DIR *folder = inode ? opendir("/proc") : NULL;
  for (struct dirent *entry; folder && (entry = readdir(folder));) {
    if (!isdigit((unsigned char)entry->d_name[0]) || !holds(entry->d_name, link)) continue;
    describe_process(entry->d_name, text, size);
    break;
  }
  if (folder) closedir(folder);
}

int ports_listen(int *port, char *message, size_t size)
{
  int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
  struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)*port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  socklen_t length = sizeof address;
  /* So that a port is free again at once when the run before has ended. */
  if (descriptor >= 0 && *port) setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (descriptor >= 0 && bind(descriptor, (struct sockaddr *)&address, length) == 0 && listen(descriptor, BACKLOG) == 0 &&
      getsockname(descriptor, (struct sockaddr *)&address, &length) == 0) {
    /* And free at once when a task has been killed and is started again; before bind it would let the kernel choose a port in use. */
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    *port = ntohs(address.sin_port);
    return descriptor;
  }
  int reason = errno;
  if (descriptor >= 0) close(descriptor);
  char owner[300] = "";
  if (reason == EADDRINUSE) describe_owner(*port, owner, sizeof owner);
  if (reason == EADDRINUSE) snprintf(message, size, "port %d is held by %s: end it, or take another --start-port", *port, owner);
  else snprintf(message, size, "port %d of 127.0.0.1 cannot be listened on: %s", *port, strerror(reason));
  return -1;
}
