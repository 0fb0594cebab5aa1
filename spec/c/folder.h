/* folder.h: a separate folder for each test that writes files, in memory where there is /dev/shm, so that nothing waits for a disk. */
#ifndef FLOW_SPEC_FOLDER_H
#define FLOW_SPEC_FOLDER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tensors.h"
#include "temporary.h"

static char folder[TEMPORARY_PATH], path[TEMPORARY_PATH + 32]; /* path: of a file in it, which may be written or not */

static inline int make_folder(void **state)
{
  strcpy(folder, "/dev/shm/flow-test-XXXXXX");
  if (!mkdtemp(folder) && !mkdtemp(temporary(folder, "XXXXXX"))) return 1;
  snprintf(path, sizeof path, "%s/file", folder);
  return remember_live_bytes(state);
}

/* Fails if memory was lost, or if there is another file than `path`: a temporary one was left behind. */
static inline int remove_folder(void **state)
{
  unlink(path);
  return expect_nothing_leaked(state) | rmdir(folder);
}

#define IN_FOLDER(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

#endif
