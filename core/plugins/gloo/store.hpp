// store.hpp: the caller's two functions (flow_store, transport/transport.h) as what Gloo's rendezvous wants.
#ifndef FLOW_PLUGINS_GLOO_STORE_HPP
#define FLOW_PLUGINS_GLOO_STORE_HPP

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>
#include <gloo/rendezvous/store.h>
#include "base/plugin.h"
#include "transport/transport.h"

// A key that did not come, or a store that failed; the sentence of the failure is flow_last_error() of this thread.
struct StoreFailure {
  flow_status status;
  std::string key;            // Gloo's keys end with the number of a rank
};

// Keys are put behind the name of the group, so that a group never reads what an earlier one left.
class KeyValueStore : public gloo::rendezvous::Store {
 public:
  KeyValueStore(const flow_plugin_services *core, const flow_store &store, std::string group, double timeout)
    : core_(core), store_(store), group_(std::move(group)),
      end_(std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
        std::chrono::duration<double>(timeout))) {}

  void set(const std::string &key, const std::vector<char> &data) override
  {
    flow_status status = store_.set(store_.state, name(key).c_str(), data.data(), data.size());
    if (status != FLOW_OK) throw StoreFailure{ status, key };
  }

  std::vector<char> get(const std::string &key) override
  {
    auto known = known_.find(key);
    if (known != known_.end()) return known->second;
    std::chrono::duration<double> left = end_ - std::chrono::steady_clock::now();
    void *bytes = nullptr;
    size_t count = 0;
    flow_status status = store_.get(store_.state, name(key).c_str(), left.count() > 0 ? left.count() : 0, &bytes, &count);
    if (status != FLOW_OK) throw StoreFailure{ status, key };
    std::unique_ptr<void, void (*)(void *)> owned(bytes, core_->free);
    return known_[key] = std::vector<char>(static_cast<char *>(bytes), static_cast<char *>(bytes) + count);
  }

  // The time that is left belongs to the whole of opening, so Gloo's own limits do not count.
  void wait(const std::vector<std::string> &keys) override
  {
    for (const std::string &key : keys) get(key);
  }
  void wait(const std::vector<std::string> &keys, const std::chrono::milliseconds &) override { wait(keys); }

 private:
  std::string name(const std::string &key) const { return "gloo/" + group_ + "/" + key; }

  const flow_plugin_services *core_;
  const flow_store &store_;
  std::string group_;
  std::chrono::steady_clock::time_point end_;
  std::map<std::string, std::vector<char>> known_;
};

#endif
