/* folder.h: a separate folder for each test that writes files, in memory where there is /dev/shm, so that nothing waits for a disk. */
#ifndef FLOW_SPEC_FOLDER_H
#define FLOW_SPEC_FOLDER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tensors.h"

static char folder[64], path[128];       /* path: of a file in it, which may be written or not */

static inline int make_folder(void **state)
{
  static const char *const slots[] = { "/dev/shm", "/tmp" };
  for (int i = 0; i < 2; i++) {
    snprintf(folder, sizeof folder, "%s/flow-test-XXXXXX", slots[i]);
    if (!mkdtemp(folder)) continue;
    snprintf(path, sizeof path, "%s/file", folder);
    return remember_live_bytes(state);
  }
  return 1;
}

/* Fails if memory was lost, or if there is another file than `path`: a temporary one was left behind. */
static inline int remove_folder(void **state)
{
  unlink(path);
  return expect_nothing_leaked(state) | rmdir(folder);
}

#define IN_FOLDER(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

#endif
