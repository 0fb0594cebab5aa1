// core/plugins/gloo: sums over plain processes that find each other in a key-value store, by Gloo over TCP; built into libflow_gloo.so.
//
// plugin.cpp: the transport's table (transport/transport.h). Gloo is C++ and reports failures by exceptions: none leaves this file. What it
// says names an address at best; which rank it is shows in which connection does not work any more. Gloo's limit of time holds for each
// piece of at most 1 MiB that it sends or waits for.
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <vector>
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/common/error.h>
#include <gloo/config.h>
#include <gloo/transport/tcp/device.h>
#include "base/plugin.h"
#include "base/failure.h"
#include "transport/transport.h"
#include "meeting.hpp"
#include "mesh.hpp"
#include "store.hpp"

namespace {

constexpr uint64_t kNothing = uint64_t(0xff) << 56;            // a message that nobody sends: Gloo's own prefixes are small numbers

std::atomic<const flow_plugin_services *> core;

struct Communicator : flow_communicator {
  flow_failure failure;
  std::shared_ptr<Mesh> context;

  Communicator() { flow_failure_clear(&failure); }
};

Communicator *of(flow_communicator *self) { return static_cast<Communicator *>(self); }

flow_status fail_broken(const Communicator *self, const char *operation)
{
  return core.load()->fail(self->failure.status, "%s: %s", operation, self->failure.message);
}

std::chrono::milliseconds milliseconds(double seconds)
{
  return std::chrono::milliseconds(static_cast<int64_t>(std::ceil(seconds * 1000)));    // 0 would be without end
}

// Writing to a peer that is gone raises SIGPIPE, which is not for the host. Threads that Gloo starts meanwhile take no signals at all.
class QuietSignals {
 public:
  QuietSignals()
  {
    sigset_t all, pending;
    sigfillset(&all);
    for (int signal : { SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV }) sigdelset(&all, signal);
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~QuietSignals()
  {
    sigset_t pipe;
    timespec now = {};
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    if (!was_pending_) sigtimedwait(&pipe, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t before_;
  bool was_pending_;
};

// ---- failures ------------------------------------------------------------------------------------------------------------------

// Gloo's sentence without the place in its source, "[./gloo/transport/tcp/pair.cc:598] ".
std::string sentence(const std::string &what)
{
  size_t end = what.rfind("[", 0) == 0 ? what.find("] ") : std::string::npos;
  return end == std::string::npos ? what : what.substr(end + 2);
}

// Begins to receive a message from the rank that will not come. False if the connection is dead, which refuses to receive.
bool expect_nothing(gloo::transport::UnboundBuffer *buffer, int rank)
{
  try {
    buffer->recv(rank, kNothing);
    return true;
  } catch (const gloo::Exception &) {
    return false;
  }
}

// "rank 2", "ranks 1, 2": those to whom there is no connection any more, empty if all are there.
std::string find_lost_ranks(Communicator *self)
{
  std::string ranks;
  int count = 0;
  char nothing;
  auto buffer = self->context->createUnboundBuffer(&nothing, 1);
  for (int rank = 0; rank < self->size; rank++) {
    if (rank == self->rank || expect_nothing(buffer.get(), rank)) continue;
    ranks += (count++ ? ", " : "") + std::to_string(rank);
  }
  return count == 0 ? "" : (count > 1 ? "ranks " : "rank ") + ranks;
}

void close_connections(Communicator *self)
{
  try {
    self->context->closeConnections();
  } catch (...) {
  }
}

void break_by(Communicator *self, const std::string &what, double waited)
{
  char reason[FLOW_REASON_SIZE];
  flow_status status = FLOW_IO_ERROR;
  std::string lost = find_lost_ranks(self);
  if (what.find("Timed out waiting") != std::string::npos || waited >= self->timeout) {
    status = FLOW_TIMED_OUT;
    snprintf(reason, sizeof reason, "a rank did not answer within %g s (rank %d of %d waited)", self->timeout,
             self->rank, self->size);
  } else if (!lost.empty()) {
    snprintf(reason, sizeof reason, "the connection to %s is lost (%s)", lost.c_str(), sentence(what).c_str());
  } else {
    snprintf(reason, sizeof reason, "%s", sentence(what).c_str());
  }
  flow_failure_set(&self->failure, status, reason, NULL);
}

// Runs one of Gloo's operations. After a failure the connections go, so that ranks which wait for this one see it at once.
flow_status call(Communicator *self, const char *operation, const std::function<void()> &body)
{
  if (flow_failure_is_set(&self->failure)) return fail_broken(self, operation);
  QuietSignals quiet;
  auto start = std::chrono::steady_clock::now();
  std::string what = "an exception of an unknown kind";
  try {
    body();
    return FLOW_OK;
  } catch (const std::bad_alloc &) {
    what = "memory is out";
  } catch (const std::exception &exception) {
    what = exception.what();
  } catch (...) {
  }
  break_by(self, what, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  close_connections(self);
  return fail_broken(self, operation);
}

// No exception of a constructor or a message's memory may pass, either.
template <typename Function>
flow_status guarded(const char *operation, Function function) noexcept
{
  try {
    return function();
  } catch (const std::bad_alloc &) {
    return core.load()->fail(FLOW_OUT_OF_MEMORY, "%s: memory is out", operation);
  } catch (const std::exception &exception) {
    return core.load()->fail(FLOW_IO_ERROR, "%s: %s", operation, exception.what());
  } catch (...) {
    return core.load()->fail(FLOW_INTERNAL, "%s: an exception of an unknown kind", operation);
  }
}

// ---- calls -----------------------------------------------------------------------------------------------------------------------

template <typename T>
void add(void *sum, const void *a, const void *b, size_t count)
{
  const T *x = static_cast<const T *>(a), *y = static_cast<const T *>(b);
  T *z = static_cast<T *>(sum);
  for (size_t i = 0; i < count; i++) z[i] = x[i] + y[i];
}

template <typename T>
void sum_over_ranks(Communicator *self, void *data, int64_t count)
{
  gloo::AllreduceOptions options(self->context);
  options.setOutput(static_cast<T *>(data), static_cast<size_t>(count));
  options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
  options.setReduceFunction(add<T>);
  options.setTimeout(milliseconds(self->timeout));
  gloo::allreduce(options);
}

flow_status all_reduce(flow_communicator *communicator, flow_dtype dtype, void *data, int64_t count)
{
  return guarded("all_reduce", [=] {
    Communicator *self = of(communicator);
    return call(self, "all_reduce", [=] {
      if (self->size == 1 || count == 0) return;
      if (dtype == FLOW_FLOAT32) sum_over_ranks<float>(self, data, count);
      else sum_over_ranks<double>(self, data, count);
    });
  });
}

flow_status broadcast(flow_communicator *communicator, int from, void *data, int64_t bytes)
{
  return guarded("broadcast", [=] {
    Communicator *self = of(communicator);
    return call(self, "broadcast", [=] {
      if (self->size == 1 || bytes == 0) return;
      gloo::BroadcastOptions options(self->context);
      options.setOutput(static_cast<char *>(data), static_cast<size_t>(bytes));
      options.setRoot(from);
      options.setTimeout(milliseconds(self->timeout));
      gloo::broadcast(options);
    });
  });
}

void gather(Communicator *self, const void *mine, size_t bytes, void *all)
{
  gloo::AllgatherOptions options(self->context);
  options.setInput(static_cast<char *>(const_cast<void *>(mine)), bytes);
  options.setOutput(static_cast<char *>(all), bytes * static_cast<size_t>(self->size));
  options.setTimeout(milliseconds(self->timeout));
  gloo::allgather(options);
}

flow_status all_gather(flow_communicator *communicator, const void *mine, int64_t bytes, void *all)
{
  return guarded("all_gather", [=] {
    Communicator *self = of(communicator);
    return call(self, "all_gather", [=] {
      if (bytes == 0) return;
      if (self->size == 1) std::memcpy(all, mine, static_cast<size_t>(bytes));
      else gather(self, mine, static_cast<size_t>(bytes), all);
    });
  });
}

flow_status barrier(flow_communicator *communicator)
{
  return guarded("barrier", [=] {
    Communicator *self = of(communicator);
    return call(self, "barrier", [=] {
      if (self->size == 1) return;
      gloo::BarrierOptions options(self->context);
      options.setTimeout(milliseconds(self->timeout));
      gloo::barrier(options);
    });
  });
}

void abort_calls(flow_communicator *communicator, const char *reason)
{
  Communicator *self = of(communicator);
  flow_failure_set(&self->failure, FLOW_ABORTED, reason, NULL);
  QuietSignals quiet;
  try {
    if (self->context) self->context->end("aborted");
  } catch (...) {
  }
}

// ---- opening and closing -----------------------------------------------------------------------------------------------------------

void close_rank(flow_communicator *communicator)
{
  QuietSignals quiet;
  try {
    delete of(communicator);
  } catch (...) {
  }
}

void connect(Communicator *self, const flow_transport_options *options)
{
  namespace tcp = gloo::transport::tcp;
  KeyValueStore store(core.load(), *options->store, options->group, self->timeout);
  tcp::attr own = tcp::CreateDeviceAttr(tcp::attr(options->address));
  auto device = std::make_shared<tcp::Device>(own);
  std::vector<int> sockets = meet(self->rank, self->size, own, &store, *options);
  self->context = std::make_shared<Mesh>(self->rank, std::move(sockets), device, milliseconds(self->timeout));
}

flow_status fail_open(const Communicator *self, const StoreFailure &failure)
{
  if (failure.status != FLOW_TIMED_OUT) return failure.status;         // the store has said why
  return core.load()->fail(FLOW_TIMED_OUT, "opening the transport gloo: rank %s of %d did not come within %g s", failure.key.c_str(),
                           self->size, self->timeout);
}

extern const flow_transport transport;

flow_status open_rank(int rank, int size, const flow_transport_options *options, flow_communicator **out)
{
  return guarded("opening the transport gloo", [=]() -> flow_status {
    if (rank < 0 || !options->group || !options->address || !options->store) {
      return core.load()->fail(FLOW_INVALID_ARGUMENT, "the transport gloo needs a rank, a size, the name of the group, the own address "
                               "and a store");
    }
    QuietSignals quiet;
    auto self = std::make_unique<Communicator>();
    static_cast<flow_communicator &>(*self) = { &transport, rank, size, options->timeout };
    try {
      if (size > 1) connect(self.get(), options);
    } catch (const StoreFailure &failure) {
      return fail_open(self.get(), failure);
    } catch (const MeetingFailure &failure) {
      return core.load()->fail(failure.status, "opening the transport gloo: %s", failure.sentence.c_str());
    } catch (const gloo::Exception &exception) {
      return core.load()->fail(FLOW_IO_ERROR, "opening the transport gloo at %s: %s", options->address,
                               sentence(exception.what()).c_str());
    }
    *out = self.release();
    return FLOW_OK;
  });
}

const flow_transport transport = {
  .name = "gloo", .open = open_rank, .all_reduce = all_reduce, .broadcast = broadcast, .all_gather = all_gather,
  .collect = nullptr, .share_region = nullptr, .barrier = barrier,
  .abort = abort_calls, .close = close_rank, .inside = nullptr,
};

void start(const flow_plugin_services *services)
{
  core.store(services);
}

}  // namespace

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

extern "C" __attribute__((visibility("default"))) const flow_plugin flow_plugin_table = {
  .abi = FLOW_PLUGIN_ABI,
  .name = "gloo",
  .libraries = "Gloo " TEXT(GLOO_VERSION_MAJOR) "." TEXT(GLOO_VERSION_MINOR) "." TEXT(GLOO_VERSION_PATCH),
  .start = start,
  .found = nullptr,
  .functions = &transport,
};
