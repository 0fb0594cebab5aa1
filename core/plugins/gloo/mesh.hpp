// mesh.hpp: Gloo's connections over sockets that were connected and checked elsewhere (meeting.hpp), with failures that reach everybody.
//
// Gloo 0.5 itself tells those who wait for an operation that it has queued, but not those whose bytes are half sent or half received: after
// a failure, or a wait of another thread that was over, they would wait until their own time is out. And what its thread throws, when a
// peer sends what no peer sends, ends the process.
#ifndef FLOW_PLUGINS_GLOO_MESH_HPP
#define FLOW_PLUGINS_GLOO_MESH_HPP

#include <chrono>
#include <memory>
#include <string>
#include <vector>
#include <gloo/context.h>
#include <gloo/transport/tcp/device.h>

class Mesh : public gloo::Context {
 public:
  // sockets[i] is connected to rank i; every one is owned from then on, also if the constructor throws.
  Mesh(int own, std::vector<int> sockets, const std::shared_ptr<gloo::transport::tcp::Device> &device, std::chrono::milliseconds timeout);

  // Any thread: ends all that is under way and all that comes later, for those who wait in it, too.
  void end(const std::string &reason);
};

#endif
