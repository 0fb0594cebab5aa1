// memory.h: the header that Debian's libgloo-dev leaves out, though its others include it: the same classes with the same contents, for
// what plugins/gloo uses of them. Last in the search, so that a Gloo which has its own is compiled with that.
//
// An object that others may refer to owns a ShareableNonOwningPtr to itself. A WeakNonOwningPtr is a reference that may outlive it; while
// somebody holds a NonOwningPtr made of one, which is empty if the object is gone, the object's destructor waits.
#pragma once

#include <memory>
#include <thread>

namespace gloo {

template <typename T>
class ShareableNonOwningPtr final {
 public:
  explicit ShareableNonOwningPtr(T *object) : pointer_(object, [](void *) {}) {}
  ShareableNonOwningPtr(const ShareableNonOwningPtr &) = delete;
  ShareableNonOwningPtr &operator=(const ShareableNonOwningPtr &) = delete;
  ~ShareableNonOwningPtr()
  {
    std::weak_ptr<T> watched = pointer_;
    pointer_.reset();
    while (!watched.expired()) std::this_thread::yield();
  }

 private:
  std::shared_ptr<T> pointer_;

  template <typename>
  friend class WeakNonOwningPtr;
};

template <typename T>
class WeakNonOwningPtr final {
 public:
  WeakNonOwningPtr() {}
  explicit WeakNonOwningPtr(const ShareableNonOwningPtr<T> &object) : pointer_(object.pointer_) {}

 private:
  std::weak_ptr<T> pointer_;

  template <typename>
  friend class NonOwningPtr;
};

template <typename T>
class NonOwningPtr final {
 public:
  NonOwningPtr() {}
  explicit NonOwningPtr(const WeakNonOwningPtr<T> &reference) : pointer_(reference.pointer_.lock()) {}
  T *operator->() const noexcept { return pointer_.get(); }
  T *get() const noexcept { return pointer_.get(); }
  explicit operator bool() const noexcept { return static_cast<bool>(pointer_); }

 private:
  std::shared_ptr<T> pointer_;
};

}  // namespace gloo
