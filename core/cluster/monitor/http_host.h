/* http_host.h: whether a request means this server. A page that a browser has from elsewhere may be given a name that, asked for again,
 * leads to this machine (DNS rebinding), and would then read what only people at this machine shall read. Browsers send the name in the
 * header Host, so a name that others could have made up is refused. */
#ifndef FLOW_CLUSTER_MONITOR_HTTP_HOST_H
#define FLOW_CLUSTER_MONITOR_HTTP_HOST_H

/* 1 if the request (its header lines, whole) has no Host, as programs other than browsers write, or one that is an IP address,
 * "localhost" or a name under it, the host of `address` (where the server listens: "machine:8080"), or, unless it listens on loopback
 * only, a name whose first part is the name of this machine. Two headers Host: 0. Any thread: it keeps nothing. */
int flow_http_is_own_host(const char *request, const char *address);

#endif
