/* need.h: pointers that public functions need. A function that returns a status begins with FLOW_NEED(tensor, out): where one of them is
 * NULL, it returns FLOW_INVALID_ARGUMENT with the message "flow_tensor_item: tensor is NULL". Arrays that may be empty:
 * if (count > 0) FLOW_NEED(values). Functions without a status do nothing then, and return 0, NULL or -1. spec/unit/null_pointers_spec.lua
 * calls all of them with NULL. */
#ifndef FLOW_BASE_NEED_H
#define FLOW_BASE_NEED_H

#include "base/status.h"

#define FLOW_NEED(...)                                                                                              \
  do {                                                                                                              \
    const void *const flow_needed_[] = { __VA_ARGS__ };                                                             \
    for (unsigned flow_i_ = 0; flow_i_ < sizeof flow_needed_ / sizeof *flow_needed_; flow_i_++)                     \
      if (__builtin_expect(!flow_needed_[flow_i_], 0)) return flow_fail_null(__func__, #__VA_ARGS__, (int)flow_i_); \
  } while (0)

/* Fails so. names: of the pointers, as in "tensor, out"; index: from 0, of the one that is NULL. */
flow_status flow_fail_null(const char *function, const char *names, int index);

#endif
