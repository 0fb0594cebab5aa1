/* slow_link.c: two commands, each in its own network namespace, between which every packet takes its time. As root, on Linux:
 *   slow_link MILLISECONDS[,MEGABITS[,PERCENT]] COMMAND COMMAND
 * MEGABITS: a second, each way; none or 0: as fast as this program copies packets. PERCENT of the packets are lost, each way, drawn from a
 * fixed seed; at the end a line on stderr tells how many. What is lost is found out by the systems' own TCP: by three acknowledgements
 * that repeat, after a way there and back, or after its timeout, at least 200 ms, if nothing follows. The commands are the shell's; the
 * first finds itself at 10.99.0.1, the second at 10.99.0.2. Ends when both have, with status 0 if both did; 3 if such a link cannot be
 * made here, with a sentence that says why. Nothing is left. */
#define _GNU_SOURCE                /* unshare, ppoll */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_PACKETS = 2048, PACKET = 16384, CANNOT = 3 };      /* more packets that are on their way are lost */

typedef struct packet { long long due; int bytes; char data[PACKET]; } packet;

/* One direction, in turns. */
typedef struct way { packet *packets; unsigned first, end; long long busy_until; unsigned long long random; long count, lost; } way;

typedef struct link { long long delay; double nanoseconds_per_byte, lost; } link_speed;       /* lost: of all packets, from 0 to 1 */

static long long now_nanoseconds(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* ---- an end, in the child ------------------------------------------------------------------------------------------------------ */

static int set_up(int control, const char *name, const char *own, const char *other)
{
  struct ifreq request = { 0 };
  struct sockaddr_in *address = (struct sockaddr_in *)&request.ifr_addr;
  snprintf(request.ifr_name, IFNAMSIZ, "%s", name);
  address->sin_family = AF_INET;
  if (own && (inet_pton(AF_INET, own, &address->sin_addr) != 1 || ioctl(control, SIOCSIFADDR, &request) != 0)) return -1;
  if (own && (inet_pton(AF_INET, other, &address->sin_addr) != 1 || ioctl(control, SIOCSIFDSTADDR, &request) != 0)) return -1;
  if (own) {
    request.ifr_mtu = 16000;
    if (ioctl(control, SIOCSIFMTU, &request) != 0) return -1;
    request.ifr_qlen = MOST_PACKETS;
    if (ioctl(control, SIOCSIFTXQLEN, &request) != 0) return -1;
  }
  if (ioctl(control, SIOCGIFFLAGS, &request) != 0) return -1;
  request.ifr_flags |= IFF_UP | IFF_RUNNING;
  return ioctl(control, SIOCSIFFLAGS, &request);
}

/* The end's device, or -1. */
static int open_end(int end)
{
  static const char *const addresses[] = { "10.99.0.1", "10.99.0.2" };
  struct ifreq request = { .ifr_flags = IFF_TUN | IFF_NO_PI };
  snprintf(request.ifr_name, IFNAMSIZ, "slow");
  if (unshare(CLONE_NEWNET) != 0) return -1;
  int device = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK), control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (device < 0 || control < 0 || ioctl(device, TUNSETIFF, &request) != 0) return -1;
  if (set_up(control, "lo", NULL, NULL) != 0 || set_up(control, "slow", addresses[end], addresses[1 - end]) != 0) return -1;
  close(control);
  return device;
}

typedef union { struct cmsghdr header; char space[CMSG_SPACE(sizeof(int))]; } descriptor_message;

static int send_descriptor(int socket, int descriptor)
{
  char byte = 0;
  descriptor_message control = { 0 };
  struct msghdr message = { .msg_iov = &(struct iovec){ &byte, 1 }, .msg_iovlen = 1, .msg_control = control.space,
                            .msg_controllen = sizeof control.space };
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  *header = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof descriptor) };
  memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  return sendmsg(socket, &message, 0) == 1;
}

static int receive_descriptor(int socket)
{
  char byte;
  int descriptor;
  descriptor_message control;
  struct msghdr message = { .msg_iov = &(struct iovec){ &byte, 1 }, .msg_iovlen = 1, .msg_control = control.space,
                            .msg_controllen = sizeof control.space };
  if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1 || !CMSG_FIRSTHDR(&message)) return -1;
  memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof descriptor);
  return descriptor;
}

static void run_end(int end, int socket, const char *command)
{
  char go;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int device = open_end(end);
  if (device < 0 || !send_descriptor(socket, device)) {
    fprintf(stderr, "slow_link: no network of its own with a TUN device for a command: %s\n", strerror(errno));
    _exit(CANNOT);
  }
  if (read(socket, &go, 1) != 1) _exit(CANNOT);                /* both ends are there */
  execl("/bin/sh", "sh", "-c", command, (char *)NULL);
  _exit(127);
}

/* ---- the link, in the parent ----------------------------------------------------------------------------------------------------- */

/* Whether the next packet is lost: xorshift64 (Marsaglia 2003, "Xorshift RNGs"). */
static int is_lost(way *self, double part)
{
  self->random ^= self->random << 13;
  self->random ^= self->random >> 7;
  self->random ^= self->random << 17;
  int lost = (double)(self->random >> 11) * 0x1p-53 < part;
  self->count++;
  self->lost += lost;
  return lost;
}

/* A packet is on its way when those before it have gone through the line. */
static void take_packets(way *self, int from, const link_speed *speed)
{
  while (self->end - self->first < MOST_PACKETS) {
    packet *next = &self->packets[self->end % MOST_PACKETS];
    next->bytes = (int)read(from, next->data, PACKET);
    if (next->bytes <= 0) return;
    long long now = now_nanoseconds();
    if (self->busy_until < now) self->busy_until = now;
    self->busy_until += (long long)(next->bytes * speed->nanoseconds_per_byte);
    if (is_lost(self, speed->lost)) continue;
    next->due = self->busy_until + speed->delay;
    self->end++;
  }
}

static void give_packets(way *self, int to, long long now)
{
  for (; self->first != self->end && self->packets[self->first % MOST_PACKETS].due <= now; self->first++) {
    const packet *next = &self->packets[self->first % MOST_PACKETS];
    if (write(to, next->data, (size_t)next->bytes) < 0 && errno == EAGAIN) return;
  }
}

/* Until both children have ended; 0 if both well. */
static int carry(const int devices[2], const link_speed *speed)
{
  way ways[2] = { { .packets = malloc(sizeof(packet) * MOST_PACKETS), .random = 88172645463325252ULL },
                  { .packets = malloc(sizeof(packet) * MOST_PACKETS), .random = 1181783497276652981ULL } };
  int running = ways[0].packets && ways[1].packets ? 2 : 0, failed = running == 0;
  while (running > 0) {
    int status;
    long long now = now_nanoseconds(), wake = now + 100000000;
    for (int i = 0; i < 2; i++) {
      if (ways[i].first != ways[i].end && ways[i].packets[ways[i].first % MOST_PACKETS].due < wake)
        wake = ways[i].packets[ways[i].first % MOST_PACKETS].due;
    }
    struct timespec pause = { 0, wake > now ? (long)(wake - now) : 0 };
    ppoll((struct pollfd[]){ { devices[0], POLLIN, 0 }, { devices[1], POLLIN, 0 } }, 2, &pause, NULL);
    for (int i = 0; i < 2; i++) take_packets(&ways[i], devices[i], speed);
    for (int i = 0; i < 2; i++) give_packets(&ways[i], devices[1 - i], now_nanoseconds());
    while (waitpid(-1, &status, WNOHANG) > 0) {
      running--;
      failed |= !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    }
  }
  for (int i = 0; i < 2; i++) {
    if (speed->lost > 0) fprintf(stderr, "slow_link: %ld of %ld packets of command %d were lost\n", ways[i].lost, ways[i].count, i + 1);
    free(ways[i].packets);
  }
  return failed;
}

int main(int count, char **arguments)
{
  int devices[2], sockets[2][2];
  if (count != 4) return 2;
  for (int end = 0; end < 2; end++) {
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets[end]) != 0) return CANNOT;
    pid_t child = fork();
    if (child < 0) return CANNOT;
    if (child == 0) run_end(end, sockets[end][1], arguments[2 + end]);
    close(sockets[end][1]);
    devices[end] = receive_descriptor(sockets[end][0]);
    if (devices[end] < 0) return CANNOT;
  }
  for (int end = 0; end < 2; end++) {
    if (write(sockets[end][0], "", 1) != 1) return CANNOT;
  }
  char *rest;
  link_speed speed = { .delay = (long long)(strtod(arguments[1], &rest) * 1e6) };
  double megabits = *rest == ',' ? strtod(rest + 1, &rest) : 0;
  if (megabits > 0) speed.nanoseconds_per_byte = 8e3 / megabits;
  if (*rest == ',') speed.lost = strtod(rest + 1, &rest) / 100;
  return carry(devices, &speed);
}
