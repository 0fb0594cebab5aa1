/* address.c: "host:port" as TF_CONFIG has it. A host is a name, an IPv4 address or an IPv6 address in brackets. Addresses are compared
 * as texts in many places, so each has one canonical form; no name is looked up, since a name may be known on another machine only. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "cluster/cluster.h"

/* The longest name of RFC 1035, section 2.3.4, without the dot at its end. */
enum { MOST_HOST = 253, MOST_PORT = 65535, MOST_ZONE = 64 };

static int is_name_symbol(char symbol)
{
  return (symbol >= 'a' && symbol <= 'z') || (symbol >= '0' && symbol <= '9') || symbol == '-' || symbol == '_' || symbol == '.';
}

/* host: at most MOST_HOST + 1 bytes; gets the name or the IPv4 address, in lower case. A host of digits and dots only is an IPv4 address
 * or a mistake, never a name. */
static flow_status normalize_name(const char *text, size_t length, char *host)
{
  int only_digits = 1;
  for (size_t i = 0; i < length; i++) {
    char symbol = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] - 'A' + 'a') : text[i];
    if (symbol == ':') return flow_fail(FLOW_INVALID_ARGUMENT, "\"%s\" has several colons: an IPv6 address is written [::1]:2222", text);
    if (symbol == '/') return flow_fail(FLOW_INVALID_ARGUMENT, "\"%s\" is not an address: write host:port, without a path", text);
    if (!is_name_symbol(symbol))
      return flow_fail(FLOW_INVALID_ARGUMENT, "\"%s\" is not host:port: byte %d is not part of a name", text, (int)i + 1);
    if (symbol != '.' && !(symbol >= '0' && symbol <= '9')) only_digits = 0;
    host[i] = symbol;
  }
  host[length] = '\0';
  struct in_addr address;
  if (only_digits && inet_pton(AF_INET, host, &address) != 1) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "\"%s\": %s is neither a name nor an IPv4 address", text, host);
  }
  return FLOW_OK;
}

/* text: begins with "[address]", `length` bytes long; host: gets it in the shortest form, which inet_ntop writes. The zone of an address,
 * "%eth0", names an interface of the machine that uses it; no address in a cluster can have one, since all machines use all. */
static flow_status normalize_ipv6(const char *text, size_t length, char *host)
{
  char inner[INET6_ADDRSTRLEN + MOST_ZONE];
  struct in6_addr address;
  if (length - 2 < sizeof inner) {
    memcpy(inner, text + 1, length - 2);
    inner[length - 2] = '\0';
    inner[strcspn(inner, "%")] = '\0';
    int is_address = inet_pton(AF_INET6, inner, &address) == 1;
    if (is_address && IN6_IS_ADDR_LINKLOCAL(&address))
      return flow_fail(FLOW_INVALID_ARGUMENT,
                       "\"%s\" is a link-local address, which holds together with an interface of one machine only: "
                       "write an address or a name by which all workers reach this one",
                       text);
    if (is_address && !memchr(text, '%', length) && inet_ntop(AF_INET6, &address, inner, sizeof inner)) {
      snprintf(host, MOST_HOST + 1, "[%s]", inner);
      return FLOW_OK;
    }
  }
  return flow_fail(FLOW_INVALID_ARGUMENT, "\"%s\": the text in brackets is not an IPv6 address", text);
}

/* The checks go from the coarse to the fine, so that the sentence names the mistake and not what follows from it: a URL, no port, no
 * host, a bad port, then the host. `canonical` is not written to after a failure. */
flow_status flow_address_normalize(const char *text, char canonical[FLOW_ADDRESS_SIZE])
{
  char host[MOST_HOST + 1];
  const char *scheme = strstr(text, "://"), *colon = strrchr(text, ':');
  if (scheme) {
    const char *rest = scheme + 3;
    return flow_fail(FLOW_INVALID_ARGUMENT, "\"%s\" is a URL: write the host and the port alone, \"%.*s\"", text,
                     (int)strcspn(rest, "/"), rest);
  }
  const char *bracket = text[0] == '[' ? strrchr(text, ']') : NULL;
  if (!colon || (bracket && colon < bracket)) return flow_fail(FLOW_INVALID_ARGUMENT, "\"%s\" has no port: write host:port", text);
  size_t length = (size_t)(colon - text);
  if (length == 0) return flow_fail(FLOW_INVALID_ARGUMENT, "\"%s\" has no host: write host:port", text);
  if (length > MOST_HOST) return flow_fail(FLOW_INVALID_ARGUMENT, "a host name of %.0f bytes: at most %d are possible", (double)length,
                                           MOST_HOST);
  int port = flow_parse_number(colon + 1, MOST_PORT);
  if (port < 1) return flow_fail(FLOW_INVALID_ARGUMENT, "\"%s\": the port is a number from 1 to %d", text, MOST_PORT);
  if (bracket && bracket + 1 == colon && length > 2) FLOW_TRY(normalize_ipv6(text, length, host));
  else FLOW_TRY(normalize_name(text, length, host));
  snprintf(canonical, FLOW_ADDRESS_SIZE, "%s:%d", host, port);
  return FLOW_OK;
}

/* Only the text is looked at: a name that means loopback on some machine (by its hosts file) counts as any other. */
flow_reach flow_address_reach(const char *canonical)
{
  size_t length = (size_t)(strrchr(canonical, ':') - canonical);
  char host[MOST_HOST + 1];
  memcpy(host, canonical, length);
  host[length] = '\0';
  struct in_addr address;
  if (inet_pton(AF_INET, host, &address) == 1) {
    uint32_t first = ntohl(address.s_addr) >> 24;
    return address.s_addr == 0 ? FLOW_REACH_NOWHERE : first == 127 ? FLOW_REACH_LOOPBACK : FLOW_REACH_ANY;
  }
  if (strcmp(host, "[::]") == 0) return FLOW_REACH_NOWHERE;
  /* RFC 6761, section 6.3: names under localhost are loopback. */
  static const char suffix[] = ".localhost";
  int below = length >= sizeof suffix && strcmp(host + length - (sizeof suffix - 1), suffix) == 0;
  return strcmp(host, "[::1]") == 0 || strcmp(host, "localhost") == 0 || below ? FLOW_REACH_LOOPBACK : FLOW_REACH_ANY;
}
