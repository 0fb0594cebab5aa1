// meeting.hpp: how the ranks of a group find each other and connect, each pair once, before Gloo gets to see a byte.
//
// Every rank listens on one port and leaves its address in the store, with a random token. A rank connects to those before it and shows
// the token of whoever it calls, and is shown its own: both have read the store, which only tasks with the cluster's secret can. Whoever
// else connects is dropped, silent ones when there are too many. When all are connected the port is closed.
#ifndef FLOW_PLUGINS_GLOO_MEETING_HPP
#define FLOW_PLUGINS_GLOO_MEETING_HPP

#include <string>
#include <vector>
#include <gloo/transport/tcp/attr.h>
#include "transport/transport.h"
#include "store.hpp"

struct MeetingFailure {
  flow_status status;
  std::string sentence;       // what follows "opening the transport gloo: "
};

// Sockets that are connected to every other rank, the caller's; [rank] is -1. Throws a MeetingFailure or the store's StoreFailure.
std::vector<int> meet(int rank, int size, const gloo::transport::tcp::attr &own, KeyValueStore *store,
                      const flow_transport_options &options);

#endif
