/* plugin.c: libflow_hdf5.so: files in any layout that libhdf5 reads. Errors are its own sentences: its error stack is not printed.
 * Every call of libhdf5, but for its version, is between begin() and end(): under one lock, with the printing of errors off. What a file
 * says is not trusted: paths, depths and texts are bounded, and links that lead elsewhere are refused. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <hdf5.h>
#include "io/hdf5/hdf5_plugin.h"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

/* Bytes of a path, groups in groups, bytes of a text: a file may say anything. */
enum { MOST_PATH = 4096, MOST_DEPTH = 64, MOST_TEXT = 1 << 20 };

static const flow_plugin_services *_Atomic core;
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;      /* Debian's serial libhdf5 is not thread-safe */

typedef struct hdf5_file { hid_t file; char *path; } hdf5_file;

static void start(const flow_plugin_services *services)
{
  atomic_store_explicit(&core, services, memory_order_release);
}

/* The innermost reason that libhdf5 gave, which says what was wrong with the file. */
static herr_t keep_first(unsigned n, const H5E_error2_t *error, void *target)
{
  if (n == 0) snprintf(target, 200, "%s", error->desc ? error->desc : "");
  return 0;
}

/* Right after the call that failed: the next one may write over libhdf5's error stack. */
static flow_status fail_hdf5(const hdf5_file *file, const char *what)
{
  char reason[200] = "no reason given";
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, reason);
  return atomic_load(&core)->fail(FLOW_CORRUPT_DATA, "%s: libhdf5 cannot read %s: %s", file->path, what, reason);
}

/* Calls of the library print nothing and come one at a time. What printed errors before, which may be a host's, is put back. */
typedef struct quiet { H5E_auto2_t function; void *data; } quiet;

/* Takes the lock and turns off what libhdf5 prints about errors; end() turns it on again, as the host may use the library, too. */
static quiet begin(void)
{
  quiet before;
  pthread_mutex_lock(&one_at_a_time);
  H5dont_atexit();                       /* the process is the host's */
  H5Eget_auto2(H5E_DEFAULT, &before.function, &before.data);
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  return before;
}

static void end(quiet before)
{
  H5Eset_auto2(H5E_DEFAULT, before.function, before.data);
  pthread_mutex_unlock(&one_at_a_time);
}

/* ---- datatypes ---------------------------------------------------------------------------------------------------------------------- */

/* The memory type in which elements of a dtype are read; conversions (big-endian, int16 to int32) are libhdf5's. */
static hid_t memory_type(int dtype)
{
  switch (dtype) {
  case FLOW_FLOAT32: return H5T_NATIVE_FLOAT;
  case FLOW_FLOAT64: return H5T_NATIVE_DOUBLE;
  case FLOW_INT8: return H5T_NATIVE_INT8;
  case FLOW_UINT8: return H5T_NATIVE_UINT8;
  case FLOW_INT32: return H5T_NATIVE_INT32;
  case FLOW_INT64: return H5T_NATIVE_INT64;
  default: return H5I_INVALID_HID;       /* read as they are: float16, bfloat16, bool */
  }
}

/* The smallest dtype that holds every value of the type; -1: there is none. */
static int dtype_of(hid_t type)
{
  size_t bytes = H5Tget_size(type);
  switch (H5Tget_class(type)) {
  case H5T_FLOAT: return bytes == 4 ? FLOW_FLOAT32 : bytes == 8 ? FLOW_FLOAT64 : bytes == 2 && H5Tget_order(type) == H5T_ORDER_LE ?
                         (H5Tget_ebias(type) == 15 ? FLOW_FLOAT16 : FLOW_BFLOAT16) : -1;
  case H5T_INTEGER:
    if (H5Tget_sign(type) == H5T_SGN_NONE) return bytes == 1 ? FLOW_UINT8 : bytes == 2 ? FLOW_INT32 : bytes == 4 ? FLOW_INT64 : -1;
    return bytes == 1 ? FLOW_INT8 : bytes <= 4 ? FLOW_INT32 : bytes == 8 ? FLOW_INT64 : -1;
  case H5T_ENUM: return bytes == 1 && H5Tget_nmembers(type) == 2 ? FLOW_BOOL : -1;
  case H5T_OPAQUE: return bytes == 2 ? FLOW_BFLOAT16 : -1;
  default: return -1;
  }
}

/* ---- a visit ------------------------------------------------------------------------------------------------------------------------ */

/* A walk over a file, depth first. path[0 .. length) is where it is, "" at the root; depth counts the groups above. `status` is the
 * failure that ends the walk: libhdf5's iterators only pass on that there is one. */
typedef struct visit {
  const hdf5_file         *file;
  const flow_hdf5_visitor *visitor;
  char                     path[MOST_PATH + 1];
  int                      length, depth;
  flow_status              status;
} visit;

/* A scalar text of an attribute, of fixed or variable length, to the visitor's note. Longer ones of fixed length than MOST_TEXT are passed
 * over. */
static flow_status tell_text(visit *v, const char *key, hid_t attribute, hid_t type)
{
  flow_status status = FLOW_OK;
  if (H5Tis_variable_str(type) > 0) {
    char *text = NULL;
    if (H5Aread(attribute, type, &text) < 0) return fail_hdf5(v->file, key);
    if (text) status = v->visitor->note(v->visitor->target, v->path, key, text);
    H5free_memory(text);
    return status;
  }
  size_t bytes = H5Tget_size(type);
  void *block;
  if (bytes > MOST_TEXT) return FLOW_OK;
  status = atomic_load(&core)->alloc(bytes + 1, &block);
  if (status != FLOW_OK) return status;
  if (H5Aread(attribute, type, block) < 0) status = fail_hdf5(v->file, key);
  ((char *)block)[bytes] = '\0';
  if (status == FLOW_OK) status = v->visitor->note(v->visitor->target, v->path, key, block);
  atomic_load(&core)->free(block);
  return status;
}

/* Attributes that are not scalar texts are passed over. libhdf5 stops iterating at a negative result; what was wrong is in v->status. */
static herr_t visit_attribute(hid_t object, const char *key, const H5A_info_t *info, void *target)
{
  (void)info;
  visit *v = target;
  hid_t attribute = H5Aopen(object, key, H5P_DEFAULT);
  hid_t type = attribute >= 0 ? H5Aget_type(attribute) : -1, space = attribute >= 0 ? H5Aget_space(attribute) : -1;
  if (type < 0 || space < 0) {
    v->status = fail_hdf5(v->file, key);
  } else if (H5Tget_class(type) == H5T_STRING && H5Sget_simple_extent_type(space) == H5S_SCALAR) {
    v->status = tell_text(v, key, attribute, type);
  }
  if (space >= 0) H5Sclose(space);
  if (type >= 0) H5Tclose(type);
  if (attribute >= 0) H5Aclose(attribute);
  return v->status == FLOW_OK ? 0 : -1;
}

/* Says what is there; contents are read by read_dataset. */
static flow_status visit_dataset(visit *v, hid_t dataset)
{
  hsize_t sizes[H5S_MAX_RANK];
  int64_t shape[FLOW_MAX_RANK];
  hid_t type = H5Dget_type(dataset), space = H5Dget_space(dataset);
  int rank = space >= 0 ? H5Sget_simple_extent_ndims(space) : -1, dtype = type >= 0 ? dtype_of(type) : -1;
  flow_status status = FLOW_OK;
  if (type < 0 || rank < 0 || H5Sget_simple_extent_dims(space, sizes, NULL) < 0) {
    status = fail_hdf5(v->file, v->path);
  } else if (dtype < 0 || rank > FLOW_MAX_RANK || H5Sget_simple_extent_type(space) == H5S_NULL) {
    status = atomic_load(&core)->fail(FLOW_UNSUPPORTED, "%s: %s has elements or %d axes that no tensor has", v->file->path, v->path, rank);
  } else {
    for (int axis = 0; axis < rank; axis++) shape[axis] = (int64_t)sizes[axis];
    status = v->visitor->tensor(v->visitor->target, v->path, dtype, rank, shape);
  }
  if (space >= 0) H5Sclose(space);
  if (type >= 0) H5Tclose(type);
  return status;
}

static herr_t visit_link(hid_t group, const char *name, const H5L_info_t *info, void *target);

/* A group's attributes, then the group itself, then what is in it, in the order of names. */
static flow_status visit_object(visit *v, hid_t object)
{
  hsize_t index = 0;
  H5I_type_t type = H5Iget_type(object);
  if (H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_NATIVE, &index, visit_attribute, v) < 0) {
    return v->status != FLOW_OK ? v->status : fail_hdf5(v->file, v->path);
  }
  if (type == H5I_DATASET) return visit_dataset(v, object);
  if (type != H5I_GROUP) return FLOW_OK;
  if (v->length > 0) {
    flow_status status = v->visitor->group(v->visitor->target, v->path);
    if (status != FLOW_OK) return status;
  }
  index = 0;
  if (H5Literate(object, H5_INDEX_NAME, H5_ITER_INC, &index, visit_link, v) >= 0) return FLOW_OK;
  return v->status != FLOW_OK ? v->status : fail_hdf5(v->file, v->path);
}

/* Grows the path by the name for the time of the visit. Soft and external links are refused: they may lead out of the file, or in
 * circles. */
static herr_t visit_link(hid_t group, const char *name, const H5L_info_t *info, void *target)
{
  visit *v = target;
  int length = v->length;
  size_t bytes = strlen(name);
  const char *kind = info->type == H5L_TYPE_HARD ? NULL : "a soft or external link";
  if (bytes + 1 > (size_t)(MOST_PATH - length) || v->depth == MOST_DEPTH) kind = "too many groups in each other";
  if (kind) {
    v->status = atomic_load(&core)->fail(FLOW_UNSUPPORTED, "%s: %s in %s is %s", v->file->path, name, v->path, kind);
    return -1;
  }
  if (length > 0) v->path[v->length++] = '/';
  memcpy(v->path + v->length, name, bytes + 1);
  v->length += (int)bytes;
  v->depth++;
  hid_t object = H5Oopen(group, name, H5P_DEFAULT);
  v->status = object >= 0 ? visit_object(v, object) : fail_hdf5(v->file, v->path);
  if (object >= 0) H5Oclose(object);
  v->depth--;
  v->length = length;
  v->path[length] = '\0';
  return v->status == FLOW_OK ? 0 : -1;
}

/* The visitor's functions are called under the lock, and must not call this plugin. */
static flow_status visit_file(void *handle, const flow_hdf5_visitor *visitor)
{
  void *block;
  flow_status status = atomic_load(&core)->alloc(sizeof(visit), &block);
  if (status != FLOW_OK) return status;
  visit *v = block;
  *v = (visit){ .file = handle, .visitor = visitor };
  quiet before = begin();
  hid_t root = H5Oopen(v->file->file, "/", H5P_DEFAULT);
  status = root >= 0 ? visit_object(v, root) : fail_hdf5(v->file, "the root group");
  if (root >= 0) H5Oclose(root);
  end(before);
  atomic_load(&core)->free(block);
  return status;
}

/* ---- files -------------------------------------------------------------------------------------------------------------------------- */

/* Also of a file that was opened from an image: the image is the caller's. */
static void close_file(void *handle)
{
  hdf5_file *file = handle;
  quiet before = begin();
  if (file->file >= 0) H5Fclose(file->file);
  end(before);
  atomic_load(&core)->free(file);
}

/* libhdf5 aborts when it meets headers of another version than its own, as it might in a host that brought one along. */
static flow_status check_version(void)
{
  unsigned major, minor, release;
  H5get_libversion(&major, &minor, &release);
  if (major == H5_VERS_MAJOR && minor == H5_VERS_MINOR && release == H5_VERS_RELEASE) return FLOW_OK;
  return atomic_load(&core)->fail(FLOW_UNSUPPORTED, "libhdf5 %u.%u.%u is loaded in this process, the plugin hdf5 was built with %s", major,
                                  minor, release, TEXT(H5_VERS_MAJOR) "." TEXT(H5_VERS_MINOR) "." TEXT(H5_VERS_RELEASE));
}

/* The image is not copied where libhdf5 lets us avoid it: reading copies it once. */
static hid_t open_image(const void *image, size_t bytes)
{
  hid_t access = H5Pcreate(H5P_FILE_ACCESS), file = H5I_INVALID_HID;
  if (access < 0) return file;
  if (H5Pset_fapl_core(access, 1 << 20, 0) >= 0 && H5Pset_file_image(access, (void *)(uintptr_t)image, bytes) >= 0) {
    file = H5Fopen("image", H5F_ACC_RDONLY, access);
  }
  H5Pclose(access);
  return file;
}

/* image: the file's bytes, which stay until close; NULL: the file of that path. */
static flow_status open_file(const char *path, const void *image, size_t bytes, void **out)
{
  void *block;
  size_t length = strlen(path) + 1;
  flow_status status = check_version();
  if (status == FLOW_OK) status = atomic_load(&core)->alloc(sizeof(hdf5_file) + length, &block);
  if (status != FLOW_OK) return status;
  hdf5_file *file = block;
  file->path = (char *)(file + 1);
  memcpy(file->path, path, length);
  quiet before = begin();
  file->file = image ? open_image(image, bytes) : H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
  if (file->file < 0) status = fail_hdf5(file, "the file");
  end(before);
  if (status == FLOW_OK) *out = file;
  else atomic_load(&core)->free(file);
  return status;
}

/* All elements, row-major, into `to`, whose bytes must be as many as the elements take in memory. A dtype that libhdf5 has no type for
 * is read as it is stored. The size is compared before anything is read, so that a file that has changed since the visit cannot write
 * beyond the end. */
static flow_status read_dataset(void *handle, const char *path, int dtype, void *to, size_t bytes)
{
  hdf5_file *file = handle;
  flow_status status = FLOW_OK;
  quiet before = begin();
  hid_t dataset = H5Dopen2(file->file, path, H5P_DEFAULT);
  hid_t own = dataset >= 0 ? H5Dget_type(dataset) : -1, space = dataset >= 0 ? H5Dget_space(dataset) : -1;
  hid_t type = memory_type(dtype) >= 0 ? memory_type(dtype) : own;
  if (own < 0 || space < 0 || (size_t)H5Sget_simple_extent_npoints(space) * H5Tget_size(type) != bytes ||
      H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, to) < 0) {
    status = fail_hdf5(file, path);
  }
  if (space >= 0) H5Sclose(space);
  if (own >= 0) H5Tclose(own);
  if (dataset >= 0) H5Dclose(dataset);
  end(before);
  return status;
}

static const flow_hdf5_functions functions = { .open = open_file, .visit = visit_file, .read = read_dataset, .close = close_file };

__attribute__((visibility("default"))) extern const flow_plugin flow_plugin_table;
const flow_plugin flow_plugin_table = {
  .abi = FLOW_PLUGIN_ABI,
  .name = "hdf5",
  .libraries = "libhdf5 " TEXT(H5_VERS_MAJOR) "." TEXT(H5_VERS_MINOR) "." TEXT(H5_VERS_RELEASE),
  .start = start,
  .functions = &functions,
};
