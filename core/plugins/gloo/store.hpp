// store.hpp: the caller's two functions (flow_store, transport/transport.h), with keys of one group and one limit of time for all of
// opening.
#ifndef FLOW_PLUGINS_GLOO_STORE_HPP
#define FLOW_PLUGINS_GLOO_STORE_HPP

#include <chrono>
#include <memory>
#include <string>
#include <vector>
#include "base/plugin.h"
#include "transport/transport.h"

// A key that did not come, or a store that failed; the sentence of the failure is flow_last_error() of this thread.
struct StoreFailure {
  flow_status status;
  std::string key;            // the number of a rank
};

// Keys are put behind the name of the group, so that a group never reads what an earlier one left.
class KeyValueStore {
 public:
  KeyValueStore(const flow_plugin_services *core, const flow_store &store, std::string group, double timeout)
    : core_(core), store_(store), group_(std::move(group)),
      end_(std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
        std::chrono::duration<double>(timeout))) {}

  void set(const std::string &key, const std::vector<char> &data)
  {
    flow_status status = store_.set(store_.state, name(key).c_str(), data.data(), data.size());
    if (status != FLOW_OK) throw StoreFailure{ status, key };
  }

  std::vector<char> get(const std::string &key)
  {
    std::chrono::duration<double> left = end_ - std::chrono::steady_clock::now();
    void *bytes = nullptr;
    size_t count = 0;
    flow_status status = store_.get(store_.state, name(key).c_str(), left.count() > 0 ? left.count() : 0, &bytes, &count);
    if (status != FLOW_OK) throw StoreFailure{ status, key };
    std::unique_ptr<void, void (*)(void *)> owned(bytes, core_->free);
    return std::vector<char>(static_cast<char *>(bytes), static_cast<char *>(bytes) + count);
  }

 private:
  std::string name(const std::string &key) const { return "gloo/" + group_ + "/" + key; }

  const flow_plugin_services *core_;
  const flow_store &store_;
  std::string group_;
  std::chrono::steady_clock::time_point end_;
};

#endif
