/* entropy.c: see entropy.h. */
#include "base/entropy.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/status.h"

static int from_device(unsigned char *to, size_t count)
{
  int file = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  while (count > 0) {
    ssize_t had = read(file, to, count);
    if (had < 0 && errno == EINTR) continue;
    if (had <= 0) break;
    to += had;
    count -= (size_t)had;
  }
  int why = errno;
  close(file);
  errno = why;
  return count == 0;
}

int flow_entropy(void *bytes, size_t count)
{
  unsigned char *to = bytes;
  while (count > 0) {
    ssize_t had = getrandom(to, count, 0);
    if (had < 0 && errno == EINTR) continue;
    if (had <= 0) {
      int why = errno;
      if (from_device(to, count)) return 1;
      errno = why;
      return 0;
    }
    to += had;
    count -= (size_t)had;
  }
  return 1;
}

flow_status flow_entropy_take(void *bytes, size_t count)
{
  if (flow_entropy(bytes, count)) return FLOW_OK;
  return flow_fail(FLOW_IO_ERROR,
                   "the system gives this process no random bytes (getrandom: %s; /dev/urandom neither): "
                   "allow one of them in the filter of system calls, or in the folders, of its sandbox",
                   strerror(errno));
}
