// meeting.cpp: one loop over the port, the ranks that are called and whoever calls.
#include "meeting.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <list>
#include <utility>
#include <netinet/in.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

using Clock = std::chrono::steady_clock;

enum { MOST_GUESTS = 64, LOOK_MILLISECONDS = 100 };     // that have not said who they are; how often the flag `ended` is looked at
constexpr char kGreeting[8] = { 'f', 'l', 'o', 'w', 'g', 'l', 'o', 'o' };

struct Token {
  unsigned char bytes[16];
  bool operator==(const Token &other) const
  {
    unsigned char differ = 0;
    for (size_t i = 0; i < sizeof bytes; i++) differ |= bytes[i] ^ other.bytes[i];
    return differ == 0;
  }
};

// What a rank leaves in the store.
struct Card {
  sockaddr_storage address;
  socklen_t length;
  Token token;
};

// Both ways. The token is that of the receiver.
struct Greeting {
  char first[8];
  int32_t from;
  Token token;
};

class Socket {
 public:
  explicit Socket(int descriptor = -1) : descriptor_(descriptor) {}
  Socket(Socket &&other) noexcept : descriptor_(other.release()) {}
  Socket &operator=(Socket &&other) noexcept
  {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~Socket() { reset(-1); }
  int get() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }
  int release() { return std::exchange(descriptor_, -1); }
  void reset(int descriptor)
  {
    if (descriptor_ >= 0) close(descriptor_);
    descriptor_ = descriptor;
  }

 private:
  int descriptor_;
};

// A connection on which a greeting comes in, piece by piece.
struct Guest {
  Socket socket;
  Greeting heard;
  size_t bytes = 0;
};

std::string text_of(const sockaddr_storage &address)
{
  char host[INET6_ADDRSTRLEN] = "?", text[INET6_ADDRSTRLEN + 16];
  const auto *four = reinterpret_cast<const sockaddr_in *>(&address);
  const auto *six = reinterpret_cast<const sockaddr_in6 *>(&address);
  if (address.ss_family == AF_INET6) {
    inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof host);
    snprintf(text, sizeof text, "[%s]:%d", host, ntohs(six->sin6_port));
  } else {
    inet_ntop(AF_INET, &four->sin_addr, host, sizeof host);
    snprintf(text, sizeof text, "%s:%d", host, ntohs(four->sin_port));
  }
  return text;
}

void set_port(sockaddr_storage *address, int port)
{
  if (address->ss_family == AF_INET6) reinterpret_cast<sockaddr_in6 *>(address)->sin6_port = htons(static_cast<uint16_t>(port));
  else reinterpret_cast<sockaddr_in *>(address)->sin_port = htons(static_cast<uint16_t>(port));
}

// Listens on one port of those that are allowed. Failure is errno.
Socket listen_on(sockaddr_storage address, socklen_t length, int port)
{
  int on = 1;
  set_port(&address, port);
  Socket socket(::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return socket;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(socket.get(), reinterpret_cast<sockaddr *>(&address), length) != 0 || listen(socket.get(), SOMAXCONN) != 0) socket.reset(-1);
  return socket;
}

Socket open_port(const gloo::transport::tcp::attr &own, const flow_transport_options &options)
{
  auto length = static_cast<socklen_t>(own.ai_addrlen);
  for (int port = options.first_port; port <= options.last_port; port++) {
    Socket socket = listen_on(own.ai_addr, length, port);
    if (socket.is_open()) return socket;
    if (errno != EADDRINUSE) break;
  }
  std::string reason = std::strerror(errno), host = text_of(own.ai_addr);
  host.resize(host.rfind(':'));
  if (options.first_port == 0) throw MeetingFailure{ FLOW_IO_ERROR, "no port can be opened at " + host + ": " + reason };
  std::string range = std::to_string(options.first_port) + " to " + std::to_string(options.last_port);
  throw MeetingFailure{ FLOW_IO_ERROR, "none of the ports " + range + " (FLOW_DATA_PORTS) can be opened at " + host + ": " + reason };
}

class Meeting {
 public:
  Meeting(int rank, int size, const flow_transport_options &options)
    : rank_(rank), options_(options), cards_(static_cast<size_t>(size)), connected_(static_cast<size_t>(size)),
      calls_(static_cast<size_t>(rank)), end_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(options.timeout))) {}

  std::vector<int> run(const gloo::transport::tcp::attr &own, KeyValueStore *store)
  {
    port_ = open_port(own, options_);
    exchange_cards(store);
    for (int peer = 0; peer < rank_; peer++) call(peer);
    while (find_missing() >= 0) {
      check_time();
      wait();
    }
    std::vector<int> sockets;
    for (Socket &socket : connected_) sockets.push_back(socket.release());
    return sockets;
  }

 private:
  int size() const { return static_cast<int>(cards_.size()); }

  int find_missing() const
  {
    for (int peer = 0; peer < size(); peer++) {
      if (peer != rank_ && !connected_[peer].is_open()) return peer;
    }
    return -1;
  }

  void exchange_cards(KeyValueStore *store)
  {
    Card card = {};
    card.length = sizeof card.address;
    if (getsockname(port_.get(), reinterpret_cast<sockaddr *>(&card.address), &card.length) != 0 ||
        getrandom(&card.token, sizeof card.token, 0) != sizeof card.token) {
      throw MeetingFailure{ FLOW_IO_ERROR, std::strerror(errno) };
    }
    cards_[rank_] = card;
    store->set(std::to_string(rank_), std::vector<char>(reinterpret_cast<char *>(&card), reinterpret_cast<char *>(&card + 1)));
    for (int peer = 0; peer < size(); peer++) {
      if (peer == rank_) continue;
      std::vector<char> bytes = store->get(std::to_string(peer));
      if (bytes.size() != sizeof(Card)) throw MeetingFailure{ FLOW_IO_ERROR, name_of(peer) + " is of another version" };
      std::memcpy(&cards_[peer], bytes.data(), sizeof(Card));
    }
  }

  void check_time() const
  {
    int peer = find_missing();
    if (options_.ended && __atomic_load_n(options_.ended, __ATOMIC_ACQUIRE)) {
      throw MeetingFailure{ FLOW_ABORTED, "the group has ended before all ranks were connected" };
    }
    if (Clock::now() < end_) return;
    char limit[64];
    snprintf(limit, sizeof limit, " within %g s", options_.timeout);
    if (peer > rank_) {
      throw MeetingFailure{ FLOW_TIMED_OUT, name_of(peer) + " did not connect to " + text_of(cards_[rank_].address) + limit };
    }
    throw MeetingFailure{ FLOW_TIMED_OUT, name_of(peer) + " was not reached at " + text_of(cards_[peer].address) + limit +
                          ": is that port open between the machines? FLOW_DATA_PORTS=FROM-TO chooses the ports" };
  }

  std::string name_of(int peer) const { return "rank " + std::to_string(peer) + " of " + std::to_string(size()); }

  // ---- those before this rank -------------------------------------------------------------------------------------------------------

  void call(int peer)
  {
    const Card &card = cards_[peer];
    Guest &guest = calls_[peer];
    guest.bytes = 0;
    guest.socket.reset(::socket(card.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!guest.socket.is_open()) throw MeetingFailure{ FLOW_IO_ERROR, std::strerror(errno) };
    int done = connect(guest.socket.get(), reinterpret_cast<const sockaddr *>(&card.address), card.length);
    if (done != 0 && errno != EINPROGRESS) fail_call(peer, errno);
  }

  // A port that is not there any more belongs to a rank that has ended.
  [[noreturn]] void fail_call(int peer, int reason) const
  {
    throw MeetingFailure{ FLOW_IO_ERROR, name_of(peer) + " at " + text_of(cards_[peer].address) + ": " + std::strerror(reason) };
  }

  void go_on_calling(int peer, short events)
  {
    Guest &guest = calls_[peer];
    int reason = 0;
    socklen_t length = sizeof reason;
    getsockopt(guest.socket.get(), SOL_SOCKET, SO_ERROR, &reason, &length);
    if (reason == ECONNREFUSED || reason == EHOSTUNREACH || reason == ENETUNREACH) fail_call(peer, reason);
    if (reason != 0) return call_again(peer);
    if ((events & POLLOUT) && !greeted_[peer]) greeted_[peer] = greet(guest.socket.get(), peer);
    if (!(events & (POLLIN | POLLHUP | POLLERR))) return;
    if (!hear(&guest)) return call_again(peer);
    if (guest.bytes < sizeof guest.heard) return;
    if (!is_right(guest.heard, peer)) return call_again(peer);
    connected_[peer] = std::move(guest.socket);
  }

  void call_again(int peer)
  {
    greeted_[peer] = false;
    call(peer);
  }

  // ---- those after this rank, and strangers -----------------------------------------------------------------------------------------

  void accept_guests()
  {
    for (int count = 0; count < MOST_GUESTS; count++) {
      int socket = accept4(port_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (socket < 0) return;
      guests_.emplace_back();
      guests_.back().socket.reset(socket);
      listen_to(std::prev(guests_.end()));         // what it says is here already, most often
      if (guests_.size() > MOST_GUESTS) guests_.pop_front();
    }
  }

  void listen_to(std::list<Guest>::iterator guest)
  {
    bool alive = hear(&*guest);
    if (alive && guest->bytes < sizeof guest->heard) return;
    int peer = alive ? guest->heard.from : -1;
    if (peer > rank_ && peer < size() && is_right(guest->heard, peer) && greet(guest->socket.get(), peer)) {
      connected_[peer] = std::move(guest->socket);         // a later call is one that was repeated
    }
    guests_.erase(guest);
  }

  // ---- greetings ----------------------------------------------------------------------------------------------------------------------

  bool greet(int socket, int peer) const
  {
    Greeting greeting = {};
    std::memcpy(greeting.first, kGreeting, sizeof greeting.first);
    greeting.from = rank_;
    greeting.token = cards_[peer].token;
    return send(socket, &greeting, sizeof greeting, MSG_NOSIGNAL) == sizeof greeting;      // there is room for the first bytes
  }

  bool is_right(const Greeting &greeting, int from) const
  {
    return std::memcmp(greeting.first, kGreeting, sizeof greeting.first) == 0 && greeting.from == from &&
           greeting.token == cards_[rank_].token;
  }

  // Takes no byte of what follows the greeting, which is Gloo's. False: the connection is over.
  static bool hear(Guest *guest)
  {
    while (guest->bytes < sizeof guest->heard) {
      char *next = reinterpret_cast<char *>(&guest->heard) + guest->bytes;
      ssize_t count = recv(guest->socket.get(), next, sizeof guest->heard - guest->bytes, 0);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
      if (count == 0) return false;
      guest->bytes += static_cast<size_t>(count);
    }
    return true;
  }

  void wait()
  {
    std::vector<pollfd> polled;
    polled.push_back({ port_.get(), POLLIN, 0 });
    std::vector<int> called;
    for (int peer = 0; peer < rank_; peer++) {
      if (connected_[peer].is_open()) continue;
      called.push_back(peer);
      polled.push_back({ calls_[peer].socket.get(), static_cast<short>(POLLIN | (greeted_[peer] ? 0 : POLLOUT)), 0 });
    }
    std::vector<std::list<Guest>::iterator> guests;
    for (auto guest = guests_.begin(); guest != guests_.end(); ++guest) {
      guests.push_back(guest);
      polled.push_back({ guest->socket.get(), POLLIN, 0 });
    }
    if (poll(polled.data(), polled.size(), LOOK_MILLISECONDS) <= 0) return;
    for (size_t i = 0; i < called.size(); i++) {
      if (polled[1 + i].revents) go_on_calling(called[i], polled[1 + i].revents);
    }
    for (size_t i = 0; i < guests.size(); i++) {
      if (polled[1 + called.size() + i].revents) listen_to(guests[i]);
    }
    if (polled[0].revents) accept_guests();
  }

  int rank_;
  const flow_transport_options &options_;
  std::vector<Card> cards_;
  std::vector<Socket> connected_;
  std::vector<Guest> calls_;               // to the ranks before this one
  std::vector<bool> greeted_ = std::vector<bool>(calls_.size());
  std::list<Guest> guests_;                // the oldest first
  Socket port_;
  Clock::time_point end_;
};

}  // namespace

std::vector<int> meet(int rank, int size, const gloo::transport::tcp::attr &own, KeyValueStore *store,
                      const flow_transport_options &options)
{
  return Meeting(rank, size, options).run(own, store);
}
