/* opening.c: the secret of a cluster, sockets whose other end may vanish, and waiting that an interrupt ends. */
#include "cluster/servers/opening.h"

#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/futex.h"
#include "base/plugin.h"

static const double LOOK_EVERY = 0.1;         /* seconds: a signal handler raises the interrupt flag, but wakes nobody */

const char *flow_opening_variable(const char *name) { return getenv(name); }

static const char *get_variable(const void *state, const char *name)
{
  (void)state;
  return getenv(name);
}

flow_status flow_opening_read(const flow_cluster *cluster, flow_opening *out)
{
  const flow_environment environment = { get_variable, NULL };
  const flow_plugin *plugin;
  out->sealing = NULL;
  out->forks = flow_fork_generation();
  FLOW_TRY(flow_secret_read(&environment, &out->secret));
  FLOW_TRY(flow_secret_check(&environment, cluster, &out->secret));
  if (out->secret.count == 0) return FLOW_OK;
  FLOW_TRY(flow_plugin_open("control", &plugin));
  out->sealing = plugin->functions;
  return FLOW_OK;
}

flow_status flow_opening_check_own(const flow_opening *opening)
{
  if (opening->forks == flow_fork_generation()) return FLOW_OK;
  return flow_fail(FLOW_INVALID_STATE, "this process was forked from one that talks with the parameter servers, or is one: only the parent "
                                       "takes part in the cluster");
}

/* Two probes without an answer, a quarter of the time apart, begin after half of it. TCP_USER_TIMEOUT does the same for bytes that were
 * sent and are not acknowledged, during which there are no probes. */
void flow_opening_watch(int descriptor, double seconds)
{
  int on = 1, idle = (int)fmax(1, seconds / 2), every = (int)fmax(1, seconds / 4), times = 2;
  unsigned unheard = (unsigned)(1000 * seconds);
  setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof every);
  setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof times);
  setsockopt(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, &unheard, sizeof unheard);
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

double flow_opening_now(void) { return (double)flow_now_nanoseconds() * 1e-9; }

/* After FLOW_OK the list's revents say what came, or nothing did and the time is over. A signal that interrupts poll() begins it again. */
flow_status flow_opening_wait(const flow_context *context, struct pollfd *list, int count, double until, int patient)
{
  while (1) {
    double left = until - flow_opening_now(), most = context ? LOOK_EVERY : 60;
    int found = poll(list, (nfds_t)count, left <= 0 ? 0 : (int)ceil(1000 * fmin(left, most)));
    if (context && flow_interrupted(context)) return flow_fail(FLOW_INTERRUPTED, "interrupted while it waited for the cluster");
    if (context && !patient && flow_preempted(context)) {
      return flow_fail(FLOW_INTERRUPTED, "this process is to end and waits for the cluster no more");
    }
    if (found > 0 || left <= 0) return FLOW_OK;
  }
}
