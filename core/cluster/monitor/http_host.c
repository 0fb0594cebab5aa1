/* http_host.c: see http_host.h. */
#include "cluster/monitor/http_host.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { MOST_NAME = 254 };      /* of DNS, with the end of the text */

/* The name of "name:port", "name", "[::1]:port" without the port, the brackets and a last dot; 0: it is too long or malformed. */
static int read_name(const char *from, size_t length, char name[MOST_NAME])
{
  const char *end = from[0] == '[' ? memchr(from, ']', length) : memchr(from, ':', length);
  if (from[0] == '[' && !end) return 0;
  size_t bytes = end ? (size_t)(end - from) : length;
  if (from[0] == '[') {
    from++;
    bytes--;
  }
  if (bytes > 0 && from[bytes - 1] == '.') bytes--;
  if (bytes == 0 || bytes >= MOST_NAME) return 0;
  memcpy(name, from, bytes);
  name[bytes] = '\0';
  return 1;
}

static int is_address(const char *name)
{
  unsigned char bytes[sizeof(struct in6_addr)];
  return inet_pton(AF_INET, name, bytes) == 1 || inet_pton(AF_INET6, name, bytes) == 1;
}

static int is_localhost(const char *name)
{
  size_t length = strlen(name);
  return strcasecmp(name, "localhost") == 0 || (length > 10 && strcasecmp(name + length - 10, ".localhost") == 0);
}

static int is_loopback(const char *name) { return is_localhost(name) || strncmp(name, "127.", 4) == 0 || strcmp(name, "::1") == 0; }

/* Names are compared without regard to case (RFC 4343), and by their first part: a machine seldom knows its domain. A name that
 * gethostname cut has no end of its own; one is set. */
static int is_this_machine(const char *name)
{
  char own[MOST_NAME];
  if (gethostname(own, sizeof own) != 0) return 0;
  own[MOST_NAME - 1] = '\0';
  size_t first = strcspn(own, ".");
  return first > 0 && strncasecmp(name, own, first) == 0 && (name[first] == '\0' || name[first] == '.');
}

/* Whether a request was meant for this server. A page of another site could otherwise read it: its name may be made to lead to this
 * address (DNS rebinding), but the browser still sends that name. */
static int is_own_name(const char *name, const char *address)
{
  char own[MOST_NAME];
  if (is_address(name) || is_localhost(name)) return 1;
  if (!read_name(address, strlen(address), own)) return 0;
  return strcasecmp(name, own) == 0 || (!is_loopback(own) && is_this_machine(name));
}

/* Every line is looked at: a second Host would let two readers of the request see different ones. */
int flow_http_is_own_host(const char *request, const char *address)
{
  int found = 0, is_own = 1;
  for (const char *line = strchr(request, '\n'); line; line = strchr(line, '\n')) {
    line++;
    if (strncasecmp(line, "Host:", 5) != 0) continue;
    char name[MOST_NAME];
    const char *value = line + 5 + strspn(line + 5, " \t");
    is_own = read_name(value, strcspn(value, " \t\r\n"), name) && is_own_name(name, address);
    found++;
  }
  return found < 2 && is_own;
}
