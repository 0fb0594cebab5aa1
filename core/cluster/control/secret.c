/* secret.c: reads the secret of a cluster and says where one is missing. */
#define _GNU_SOURCE                /* explicit_bzero */
#include "cluster/control/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void flow_secret_clear(flow_secret *secret)
{
  explicit_bzero(secret, sizeof *secret);
}

static const char *get(const flow_environment *environment, const char *name)
{
  const char *text = environment->get(environment->state, name);
  return text && *text ? text : NULL;
}

/* Too short a secret could be guessed, too long a one is not what the caller meant: a wrong file, for example. */
static flow_status check_length(const char *where, size_t count)
{
  if (count >= FLOW_LEAST_SECRET && count <= FLOW_MOST_SECRET) return FLOW_OK;
  return flow_fail(FLOW_INVALID_ARGUMENT, "the secret in %s has %.0f bytes, from %d to %d are expected: take random ones, as of openssl "
                   "rand -hex 32", where, (double)count, FLOW_LEAST_SECRET, FLOW_MOST_SECRET);
}

/* Room for one more byte than is allowed shows that a file is too long. The mode is that of the open file: a look at the path before
 * would tell of a file that may be another one by now. What was read is wiped from the stack. */
static flow_status read_open_file(int descriptor, const char *path, flow_secret *out)
{
  struct stat about;
  uint8_t bytes[FLOW_MOST_SECRET + 2];
  size_t count = 0;
  if (fstat(descriptor, &about) != 0 || !S_ISREG(about.st_mode)) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "FLOW_SECRET_FILE: %s is not a file", path);
  }
  if (about.st_mode & 077) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "FLOW_SECRET_FILE: others may read %s (mode %o): chmod 600 it (Kubernetes: defaultMode: 0600)",
                     path, (unsigned)(about.st_mode & 0777));
  }
  while (count < sizeof bytes) {
    ssize_t got = read(descriptor, bytes + count, sizeof bytes - count);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return flow_fail(FLOW_IO_ERROR, "FLOW_SECRET_FILE: %s: %s", path, strerror(errno));
    if (got == 0) break;
    count += (size_t)got;
  }
  if (count > 0 && count < sizeof bytes && bytes[count - 1] == '\n') count--;      /* as editors end a line */
  flow_status status = check_length(path, count);
  if (status == FLOW_OK) {
    memcpy(out->bytes, bytes, count);
    out->count = count;
  }
  explicit_bzero(bytes, sizeof bytes);
  return status;
}

/* O_NONBLOCK: a pipe under that path must not hold up the start; it is refused, since it is not a regular file. */
flow_status flow_secret_read(const flow_environment *environment, flow_secret *out)
{
  const char *text = get(environment, "FLOW_SECRET"), *path = get(environment, "FLOW_SECRET_FILE");
  out->count = 0;
  if (text && path) return flow_fail(FLOW_INVALID_ARGUMENT, "FLOW_SECRET and FLOW_SECRET_FILE are both set: unset one of them");
  if (text) {
    size_t count = strnlen(text, FLOW_MOST_SECRET + 1);
    FLOW_TRY(check_length("FLOW_SECRET", count));
    memcpy(out->bytes, text, count);
    out->count = count;
  }
  if (!path) return FLOW_OK;
  int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return flow_fail(FLOW_NOT_FOUND, "FLOW_SECRET_FILE: %s: %s", path, strerror(errno));
  flow_status status = read_open_file(descriptor, path, out);
  close(descriptor);
  return status;
}

/* Tasks on loopback alone need none: other machines do not reach them. */
flow_status flow_secret_check(const flow_environment *environment, const flow_cluster *cluster, const flow_secret *secret)
{
  const char *insecure = get(environment, "FLOW_INSECURE");
  int tasks = 0;
  const char *found = NULL;
  char name[FLOW_TASK_NAME_SIZE] = "";
  for (int job = 0; job < FLOW_JOB_COUNT; job++) {
    for (int i = 0; i < cluster->count[job]; i++, tasks++) {
      const char *address = cluster->address[job][i];
      if (found || !address || flow_address_reach(address) == FLOW_REACH_LOOPBACK) continue;
      found = address;
      flow_task_name(job, i, name);
    }
  }
  if (secret->count > 0 || tasks < 2 || !found || (insecure && strcmp(insecure, "1") == 0)) return FLOW_OK;
  return flow_fail(FLOW_INVALID_ARGUMENT,
                   "%s %s is on a network and there is no secret, so that any process that reaches it could "
                   "take part: set FLOW_SECRET, or FLOW_SECRET_FILE, to the same random text in all tasks, or FLOW_INSECURE=1 where "
                   "everybody is trusted",
                   name, found);
}
