// SPDX-License-Identifier: Apache-2.0
// Live handles of one kind. A handle is the object's address, and is looked up
// before it is believed: a destroyed one is an error, not a crash.
#ifndef BELAY_CANNSIM_RUNTIME_REGISTRY_H_
#define BELAY_CANNSIM_RUNTIME_REGISTRY_H_

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace cannsim {

template <typename T>
class Registry {
 public:
  void* Add(std::shared_ptr<T> object) {
    void* handle = object.get();
    const std::unique_lock lock(mutex_);
    objects_[handle] = std::move(object);
    return handle;
  }

  // Null when there is no such live object.
  std::shared_ptr<T> Find(const void* handle) const {
    const std::shared_lock lock(mutex_);
    const auto it = objects_.find(handle);
    return it == objects_.end() ? nullptr : it->second;
  }

  std::shared_ptr<T> Remove(const void* handle) {
    const std::unique_lock lock(mutex_);
    const auto it = objects_.find(handle);
    if (it == objects_.end()) return nullptr;
    std::shared_ptr<T> object = std::move(it->second);
    objects_.erase(it);
    return object;
  }

  std::vector<std::shared_ptr<T>> All() const {
    const std::shared_lock lock(mutex_);
    std::vector<std::shared_ptr<T>> all;
    all.reserve(objects_.size());
    for (const auto& [handle, object] : objects_) all.push_back(object);
    return all;
  }

  size_t size() const {
    const std::shared_lock lock(mutex_);
    return objects_.size();
  }

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<const void*, std::shared_ptr<T>> objects_;
};

}  // namespace cannsim

#endif  // BELAY_CANNSIM_RUNTIME_REGISTRY_H_
