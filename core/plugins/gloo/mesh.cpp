// mesh.cpp: Gloo's classes for TCP where they have to be other than they are.
#include "mesh.hpp"

#include <exception>
#include <fcntl.h>
#include <unistd.h>
#include <gloo/transport/tcp/context.h>
#include <gloo/transport/tcp/pair.h>
#include <gloo/transport/tcp/unbound_buffer.h>

namespace {

namespace tcp = gloo::transport::tcp;

// Lets connections tell it about failures.
class Buffer : public tcp::UnboundBuffer {
 public:
  using tcp::UnboundBuffer::UnboundBuffer;
  using tcp::UnboundBuffer::signalException;
};

void tell(const gloo::WeakNonOwningPtr<tcp::UnboundBuffer> &waiting, const std::exception_ptr &failure)
{
  gloo::NonOwningPtr<tcp::UnboundBuffer> buffer(waiting);
  if (buffer) static_cast<Buffer *>(buffer.operator->())->signalException(failure);
}

class Connection : public tcp::Pair {
 public:
  using tcp::Pair::Pair;
  using tcp::Pair::signalExceptionExternal;

  // Here and not in the base class, whose handleEvents would let exceptions pass.
  ~Connection() override
  {
    std::lock_guard<std::mutex> lock(m_);
    if (state_ != CLOSED) changeState(CLOSED);
  }

  // Takes the place of the socket that the base class has made to listen, in its thread's set of descriptors, too.
  void adopt(int socket)
  {
    std::lock_guard<std::mutex> lock(m_);
    int failed = dup3(socket, fd_, O_CLOEXEC) < 0;
    ::close(socket);
    if (failed) throw gloo::IoException("a connection's descriptor could not be replaced");
    rx_ = tcp::Op();
    handleConnected();
  }

  // On Gloo's thread, which nothing may be thrown on.
  void handleEvents(int events) override
  {
    try {
      if (is_connected_ready()) tcp::Pair::handleEvents(events);
    } catch (const std::exception &exception) {
      fail(exception.what());
    } catch (...) {
      fail("an exception of an unknown kind");
    }
  }

 protected:
  // Every failure and every end comes through here, with the lock held, after the base class has told those that it knows of.
  void changeState(state next) noexcept override
  {
    tcp::Pair::changeState(next);
    if (next != CLOSED) return;
    try {
      std::exception_ptr failure = ex_ ? ex_ : std::make_exception_ptr(gloo::IoException("the connection was closed"));
      tell(rx_.ubuf, failure);
      for (auto &operation : tx_) tell(operation.ubuf, failure);
    } catch (...) {                        // memory is out: they wait until their time is over
    }
  }

 private:
  // Whoever connects to the base class's socket meanwhile is not listened to.
  bool is_connected_ready()
  {
    std::unique_lock<std::mutex> lock(m_, std::try_to_lock);
    return lock && state_ == CONNECTED;
  }

  // Whoever has the lock may wait for this thread, to which the event comes again.
  void fail(const char *what) noexcept
  {
    try {
      std::unique_lock<std::mutex> lock(m_, std::try_to_lock);
      if (lock && !ex_) signalException(what);
    } catch (...) {
    }
  }
};

class Connections : public tcp::Context {
 public:
  using tcp::Context::Context;

  std::unique_ptr<gloo::transport::Pair> &createPair(int peer) override
  {
    pairs_[peer] = std::make_unique<Connection>(this, device_.get(), peer, getTimeout());
    return pairs_[peer];
  }

  std::unique_ptr<gloo::transport::UnboundBuffer> createUnboundBuffer(void *memory, size_t bytes) override
  {
    return std::make_unique<Buffer>(shared_from_this(), memory, bytes);
  }
};

}  // namespace

Mesh::Mesh(int own, std::vector<int> sockets, const std::shared_ptr<tcp::Device> &device, std::chrono::milliseconds timeout)
  : gloo::Context(own, static_cast<int>(sockets.size()))
{
  int next = 0;
  try {
    setTimeout(timeout);
    auto connections = std::make_shared<Connections>(device, rank, size);
    connections->setTimeout(timeout);
    while (next < size) {
      int peer = next++;
      if (peer != rank) static_cast<Connection *>(connections->createPair(peer).get())->adopt(sockets[peer]);
    }
    device_ = device;
    transportContext_ = connections;
  } catch (...) {
    for (; next < size; next++) {
      if (next != rank) ::close(sockets[next]);
    }
    throw;
  }
}

void Mesh::end(const std::string &reason)
{
  for (int peer = 0; peer < size; peer++) {
    if (peer != rank) static_cast<Connection *>(getPair(peer).get())->signalExceptionExternal(reason);
  }
}
