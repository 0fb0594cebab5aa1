/* strangers.c: everybody's ports are open to strangers. Runs a command and, until it ends, connects to every TCP port that a process of
 * that name among its descendants listens on: silent connections, random bytes, a single zero byte, the beginning of a greeting, resets.
 *   strangers SEED NAME COMMAND ARGUMENTS...
 * Ends with the command's status and a last line "strangers: 812 connections to 3 ports"; 125 if it could not start. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_PROCESSES = 4096, MOST_PORTS = 64, MOST_OPEN = 200, PATH_BYTES = 512, BYTES = 4096 };

typedef struct port { unsigned long inode; struct sockaddr_in address; } port;

static uint64_t state;
static int open_sockets[MOST_OPEN], next_socket;
static int hit[MOST_PORTS], hit_count;                  /* port numbers that were reached once */
static double connections;

static uint32_t draw(void)
{
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 33);
}

/* ---- who listens where ------------------------------------------------------------------------------------------------------- */

static int read_parent(int process, char name[64])
{
  char path[64], line[512], *close;
  int parent = -1;
  snprintf(path, sizeof path, "/proc/%d/stat", process);
  FILE *file = fopen(path, "r");
  if (!file) return -1;
  name[0] = '\0';
  if (fgets(line, sizeof line, file) && (close = strrchr(line, ')')) && sscanf(close + 1, " %*c %d", &parent) == 1) {
    char *open = strchr(line, '(');
    snprintf(name, 64, "%.*s", (int)(close - open - 1), open + 1);
  }
  fclose(file);
  return parent;
}

/* The descendants of `first` that have the name. */
static int list_processes(int first, const char *wanted, int found[MOST_PROCESSES])
{
  static int process[MOST_PROCESSES], parent[MOST_PROCESSES], below[MOST_PROCESSES];
  static char name[MOST_PROCESSES][64];
  int count = 0, matches = 0, changed = 1;
  DIR *folder = opendir("/proc");
  for (struct dirent *entry; folder && (entry = readdir(folder)) && count < MOST_PROCESSES;) {
    if (!isdigit((unsigned char)entry->d_name[0])) continue;
    process[count] = atoi(entry->d_name);
    parent[count] = read_parent(process[count], name[count]);
    below[count] = process[count] == first;
    count++;
  }
  if (folder) closedir(folder);
  while (changed) {
    changed = 0;
    for (int i = 0; i < count; i++) {
      for (int j = 0; j < count && !below[i]; j++) {
        if (below[j] && process[j] == parent[i]) below[i] = changed = 1;
      }
    }
  }
  for (int i = 0; i < count; i++) {
    if (below[i] && strncmp(name[i], wanted, 15) == 0) found[matches++] = process[i];
  }
  return matches;
}

/* All sockets of this machine that listen by IPv4. 0.0.0.0 is reached as 127.0.0.1. */
static int list_listeners(port ports[MOST_PORTS])
{
  char line[512];
  int count = 0;
  FILE *file = fopen("/proc/net/tcp", "r");
  while (file && count < MOST_PORTS && fgets(line, sizeof line, file)) {
    unsigned address, number, kind;
    unsigned long inode;
    int fields = sscanf(line, "%*d: %x:%x %*x:%*x %x %*x:%*x %*x:%*x %*x %*d %*d %lu", &address, &number, &kind, &inode);
    if (fields != 4 || kind != 10) continue;
    ports[count] = (port){ .inode = inode, .address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)number) } };
    ports[count++].address.sin_addr.s_addr = address ? address : htonl(INADDR_LOOPBACK);
  }
  if (file) fclose(file);
  return count;
}

static int owns(int process, unsigned long inode)
{
  char path[PATH_BYTES], target[PATH_BYTES], wanted[64];
  int found = 0;
  snprintf(wanted, sizeof wanted, "socket:[%lu]", inode);
  snprintf(path, sizeof path, "/proc/%d/fd", process);
  DIR *folder = opendir(path);
  for (struct dirent *entry; folder && !found && (entry = readdir(folder));) {
    ssize_t length;
    snprintf(path, sizeof path, "/proc/%d/fd/%s", process, entry->d_name);
    if ((length = readlink(path, target, sizeof target - 1)) <= 0) continue;
    target[length] = '\0';
    found = strcmp(target, wanted) == 0;
  }
  if (folder) closedir(folder);
  return found;
}

/* ---- what strangers do --------------------------------------------------------------------------------------------------------- */

static void count_port(int number)
{
  for (int i = 0; i < hit_count; i++) {
    if (hit[i] == number) return;
  }
  if (hit_count < MOST_PORTS) hit[hit_count++] = number;
}

static void send_something(int socket)
{
  static const char greeting[] = "flowdata";
  unsigned char bytes[BYTES];
  size_t length = 1 + draw() % BYTES;
  for (size_t i = 0; i < length; i++) bytes[i] = (unsigned char)draw();
  switch (draw() % 4) {
    case 0: length = 0; break;                           /* silent */
    case 1: length = 1; bytes[0] = 0; break;
    case 2: memcpy(bytes, greeting, sizeof greeting - 1); break;
    default: break;
  }
  if (length > 0 && send(socket, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) return;
}

static void visit(const struct sockaddr_in *address)
{
  int visitor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), keep = draw() % 2 == 0;
  if (visitor < 0) return;
  if (connect(visitor, (const struct sockaddr *)address, sizeof *address) != 0 && errno != EINPROGRESS) {
    close(visitor);
    return;
  }
  connections++;
  count_port(ntohs(address->sin_port));
  send_something(visitor);
  if (keep) {                                            /* the oldest makes room */
    if (open_sockets[next_socket] > 0) close(open_sockets[next_socket]);
    open_sockets[next_socket] = visitor;
    next_socket = (next_socket + 1) % MOST_OPEN;
    return;
  }
  if (draw() % 2) setsockopt(visitor, SOL_SOCKET, SO_LINGER, &(struct linger){ 1, 0 }, sizeof(struct linger));      /* a reset */
  close(visitor);
}

static void visit_all(int first, const char *name)
{
  static int processes[MOST_PROCESSES];
  port ports[MOST_PORTS];
  int count = list_processes(first, name, processes), listeners = list_listeners(ports);
  for (int i = 0; i < listeners; i++) {
    int of_one = 0;
    for (int p = 0; p < count && !of_one; p++) of_one = owns(processes[p], ports[i].inode);
    for (int times = of_one ? 1 + (int)(draw() % 8) : 0; times > 0; times--) visit(&ports[i].address);
  }
}

int main(int count, char **arguments)
{
  int status = 0;
  if (count < 4) return 125;
  state = (uint64_t)atoi(arguments[1]) * 0x9E3779B97F4A7C15u + 1;
  pid_t child = fork();
  if (child < 0) return 125;
  if (child == 0) {
    execvp(arguments[3], arguments + 3);
    _exit(125);
  }
  while (waitpid(child, &status, WNOHANG) == 0) {
    visit_all(child, arguments[2]);
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
  }
  printf("strangers: %.0f connections to %d ports\n", connections, hit_count);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
