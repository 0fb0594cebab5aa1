/* glob.c: the paths that match a pattern (list_files), sorted by bytes whatever the locale. The system's glob does the matching; its
 * result is packed into two tensors, as lists of texts are everywhere in flow.h. */
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "data/dataset.h"
#include "data/sources/folder.h"
#include "base/need.h"
#include "io/file.h"

static int compare_paths(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* The paths in the form of strings that flow.h describes: bytes, and where each begins. The tensors of zeros make the first offset 0. */
static flow_status pack(char *const *texts, size_t count, flow_tensor **bytes, flow_tensor **offsets)
{
  int64_t total = 0, entries = (int64_t)count + 1;
  for (size_t i = 0; i < count; i++) total += (int64_t)strlen(texts[i]);
  FLOW_TRY(flow_tensor_new(FLOW_INT64, 1, &entries, offsets));
  flow_status status = flow_tensor_new(FLOW_UINT8, 1, &total, bytes);
  if (status != FLOW_OK) {
    flow_tensor_release(*offsets);
    *offsets = NULL;
    return status;
  }
  int64_t *at = (int64_t *)(*offsets)->data;
  for (size_t i = 0; i < count; i++) {
    size_t length = strlen(texts[i]);
    memcpy((*bytes)->data + at[i], texts[i], length);
    at[i + 1] = at[i] + (int64_t)length;
  }
  return FLOW_OK;
}

/* glob(3) asks whether it stops at a folder that it cannot read. If so, this thread's last error says why. */
static int stop_at(const char *folder, int error)
{
  if (flow_folder_is_left_out(error)) return 0;
  errno = error;
  flow_fail_by_errno("list the directory", folder);
  return 1;
}

/* No match is an empty list, not a failure. Both tensors are new references. */
flow_status flow_glob(const char *pattern, flow_tensor **bytes, flow_tensor **offsets)
{
  FLOW_NEED(pattern, bytes, offsets);
  glob_t found = { 0 };
  *bytes = *offsets = NULL;
  if (!pattern) return flow_fail(FLOW_INVALID_ARGUMENT, "list_files: a pattern is needed");
  int failed = glob(pattern, GLOB_NOSORT, stop_at, &found);
  flow_status status = FLOW_OK;
  if (failed && failed != GLOB_NOMATCH) {
    status = FLOW_IO_ERROR; /* stop_at told why */
    if (failed == GLOB_NOSPACE) status = flow_fail(FLOW_OUT_OF_MEMORY, "list_files: out of memory while %s was searched", pattern);
  } else {
    if (found.gl_pathc > 1) qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, compare_paths);
    status = pack(found.gl_pathv, found.gl_pathc, bytes, offsets);
  }
  globfree(&found);
  return status;
}
