/* npz.c: one array out of NumPy's archive: a zip whose members are npy files, stored or deflated. */
#include "io/npy.h"
#include "io/zip.h"

#include <string.h>
#include "base/memory.h"

/* "x.npy" is the member "x". */
static const flow_zip_member *find_array(const flow_zip *zip, const char *name)
{
  for (int i = 0; i < zip->count; i++) {
    size_t length = strlen(name);
    const char *member = zip->members[i].name;
    if (strncmp(member, name, length) == 0 && (strcmp(member + length, ".npy") == 0 || member[length] == '\0')) return &zip->members[i];
  }
  return NULL;
}

/* The names of the arrays that there are, as far as the message has room. */
static flow_status fail_missing(const flow_zip *zip, const char *name)
{
  char names[512];
  flow_text found = flow_text_into(names, sizeof names);
  for (int i = 0; i < zip->count && found.length < (int)sizeof names; i++) {
    const char *member = zip->members[i].name;
    size_t length = strlen(member);
    if (length > 4 && strcmp(member + length - 4, ".npy") == 0) length -= 4;
    flow_text_add(&found, "%s%.*s", i > 0 ? ", " : "", (int)length, member);
  }
  return flow_fail(FLOW_NOT_FOUND, "%s has no array '%s'; it has: %s", zip->source.path, name, names);
}

/* The member's checksum is compared after the array was read; if it is wrong, the array is released. */
flow_status flow_npz_read(flow_zip *zip, const flow_zip_member *array, flow_tensor **out)
{
  flow_status status = flow_zip_begin(zip, array);
  if (status == FLOW_OK) status = flow_npy_read(&zip->source, out);
  if (status == FLOW_OK) status = flow_zip_end(zip, array);
  if (status == FLOW_OK) return FLOW_OK;
  flow_tensor_release(*out);
  *out = NULL;
  return status;
}

flow_status flow_tensor_load_npz(const char *path, const char *member, flow_tensor **out)
{
  if (!out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_tensor_load_npz: out is NULL");
  *out = NULL;
  if (!member) return flow_fail(FLOW_INVALID_ARGUMENT, "the name of the array in the archive is missing");
  flow_zip zip;
  FLOW_TRY(flow_zip_open(path, &zip));
  const flow_zip_member *array = find_array(&zip, member);
  flow_status status = array ? flow_npz_read(&zip, array, out) : fail_missing(&zip, member);
  flow_zip_close(&zip);
  return status;
}
