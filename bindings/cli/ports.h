/* ports.h: listening sockets on this machine's loopback, and which process holds a port that is taken. */
#ifndef FLOWLUA_PORTS_H
#define FLOWLUA_PORTS_H

#include <stddef.h>

/* A TCP socket that is bound to 127.0.0.1 and listens, closed on exec. *port: 0 lets the kernel choose; the port it has. -1 with a
 * sentence in message. */
int ports_listen(int *port, char *message, size_t size);

#endif
