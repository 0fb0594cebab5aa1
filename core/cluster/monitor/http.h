/* http.h: a web server for a few small pages that are read, by people and monitors: GET and HEAD of HTTP/1.0, one thread, a connection for
 * each answer. Whatever strangers do costs little: MOST_CONNECTIONS at a time, of which the oldest makes room; a request of at most
 * MOST_REQUEST bytes; a few seconds in all for each; MOST_ACCEPTED a second, others wait in the system's short queue. It reads nothing
 * but what it is asked for, writes nothing but pages, and answers no request for another host (http_host.h). */
#ifndef FLOW_CLUSTER_MONITOR_HTTP_H
#define FLOW_CLUSTER_MONITOR_HTTP_H

#include <stddef.h>

#include "base/status.h"

enum { FLOW_HTTP_MOST_CONNECTIONS = 16, FLOW_HTTP_MOST_REQUEST = 2048, FLOW_HTTP_MOST_ACCEPTED = 40 };

/* On the server's thread: the page of a path ("/metrics", without what follows a question mark) from flow_alloc in *body, and its type,
 * static. FLOW_NOT_FOUND: there is none. */
typedef flow_status flow_http_page(void *state, const char *path, const char **type, char **body, size_t *bytes);

typedef struct flow_http flow_http;

/* address: "127.0.0.1:8080"; port 0: a free one. state outlives the server. FLOW_IO_ERROR: it cannot listen there. */
flow_status flow_http_open(const char *address, flow_http_page *page, void *state, flow_http **out);
int         flow_http_port(const flow_http *http);
/* Ends the thread and all connections. NULL is fine. */
void        flow_http_close(flow_http *http);

#endif
