/* folder.c: what is in a folder, in the order in which Keras lists it: folders sorted by their paths, names inside sorted by code point
 * (of UTF-8: by byte). keras/src/utils/dataset_utils.py: index_directory.
 *
 * A listing is a list of names that the caller owns. Those of one folder (flow_listing_folders, flow_listing_entries) are names without
 * a path, those of a tree (flow_listing_files) paths that begin with the directory as it was given. A tree is walked first, for all
 * folders; then each folder's files are read, so that folders of a tree come in the order of their paths. */
#define _GNU_SOURCE                /* d_type */
#include "data/sources/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include "base/memory.h"
#include "base/need.h"
#include "io/file.h"

/* ---- lists of names -------------------------------------------------------------------------------------------------------------- */

void flow_listing_release(flow_listing *listing)
{
  if (!listing) return;
  for (int i = 0; i < listing->count; i++) flow_free(listing->names[i]);
  flow_free(listing->names);
  flow_free(listing);
}

/* "folder/name", or the name alone for an empty folder. After a failure the listing is unchanged. */
static flow_status add(flow_listing *listing, const char *folder, const char *name)
{
  if (listing->count == INT32_MAX) return flow_fail(FLOW_UNSUPPORTED, "too many files in one folder");
  FLOW_TRY(flow_grow(&listing->names, sizeof *listing->names, listing->count + 1, &listing->capacity));
  size_t first = strlen(folder), second = strlen(name);
  void *joined;
  FLOW_TRY(flow_alloc(first + second + 2, &joined));
  char *path = joined;
  memcpy(path, folder, first);
  if (first > 0 && folder[first - 1] != '/') path[first++] = '/';
  memcpy(path + first, name, second + 1);
  listing->names[listing->count++] = path;
  return FLOW_OK;
}

static int compare(const void *a, const void *b)
{
  return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorts the names from `first` on. */
static void sort(flow_listing *listing, int first)
{
  if (listing->count - first > 1) qsort(listing->names + first, (size_t)(listing->count - first), sizeof *listing->names, compare);
}

/* Empty; flow_listing_release frees it. */
static flow_status new_listing(flow_listing **out)
{
  void *listing;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_listing), &listing));
  *out = listing;
  return FLOW_OK;
}

/* ---- one folder --------------------------------------------------------------------------------------------------------------------- */

/* d_type saves a call of stat for each name; file systems that do not tell it, and links, are looked up. */
static int is_folder(DIR *stream, const struct dirent *entry)
{
  if (entry->d_type == DT_DIR) return 1;
  if (entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN) return 0;
  struct stat facts;                       /* of what a link points to */
  return fstatat(dirfd(stream), entry->d_name, &facts, 0) == 0 && S_ISDIR(facts.st_mode);
}

/* Whether the entry itself is a symbolic link. */
static int is_link(DIR *stream, const struct dirent *entry)
{
  if (entry->d_type != DT_UNKNOWN) return entry->d_type == DT_LNK;
  struct stat facts;
  return fstatat(dirfd(stream), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(facts.st_mode);
}

/* The folder itself, and the one above it. */
static int is_dots(const char *name)
{
  return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Whether the name ends as one of `endings` does, ".bmp .gif" or so. */
static int has_ending(const char *name, const char *endings)
{
  size_t length = strlen(name);
  for (const char *at = endings; *at;) {
    size_t tail = strcspn(at, " ");
    if (tail > 0 && length >= tail && strncasecmp(name + length - tail, at, tail) == 0) return 1;
    at += tail;
    at += *at == ' ';
  }
  return 0;
}

/* Right after opendir: errno is read. */
static flow_status fail_to_list(const char *directory)
{
  return flow_fail_by_errno("list the directory", directory);
}

/* The next entry; *entry is NULL after the last one. A listing that breaks off must not pass for a short one. */
static flow_status next_entry(DIR *stream, const char *directory, struct dirent **entry)
{
  errno = 0;
  *entry = readdir(stream);
  return *entry || errno == 0 ? FLOW_OK : fail_to_list(directory);
}

/* Folders whose names do not begin with a dot: classes of image_dataset_from_directory. */
static int is_class(DIR *stream, const struct dirent *entry)
{
  return entry->d_name[0] != '.' && is_folder(stream, entry);
}

/* Everything but the folder itself and the one above, hidden names too. */
static int is_content(DIR *stream, const struct dirent *entry)
{
  (void)stream;
  return !is_dots(entry->d_name);
}

typedef int (*choice)(DIR *stream, const struct dirent *entry);

static flow_status read_names(DIR *stream, const char *directory, choice is_wanted, flow_listing *listing)
{
  for (struct dirent *entry;;) {
    FLOW_TRY(next_entry(stream, directory, &entry));
    if (!entry) return FLOW_OK;
    if (is_wanted(stream, entry)) FLOW_TRY(add(listing, "", entry->d_name));
  }
}

/* Names in the directory that are wanted, sorted by byte. *out is NULL after a failure. */
static flow_status list(const char *directory, choice is_wanted, flow_listing **out)
{
  *out = NULL;
  if (!directory || !*directory) return flow_fail(FLOW_INVALID_ARGUMENT, "the path of a directory is missing");
  DIR *stream = opendir(directory);
  if (!stream) return fail_to_list(directory);
  flow_status status = new_listing(out);
  if (status == FLOW_OK) status = read_names(stream, directory, is_wanted, *out);
  closedir(stream);
  if (status == FLOW_OK) {
    sort(*out, 0);
    return FLOW_OK;
  }
  flow_listing_release(*out);
  *out = NULL;
  return status;
}

flow_status flow_listing_folders(const char *directory, flow_listing **out)
{
  FLOW_NEED(directory, out);
  return list(directory, is_class, out);
}

flow_status flow_listing_entries(const char *directory, flow_listing **out)
{
  FLOW_NEED(directory, out);
  return list(directory, is_content, out);
}

/* ---- a tree ------------------------------------------------------------------------------------------------------- */

/* The folders on the way down, to see when links lead in a circle. */
typedef struct ancestor { dev_t device; ino_t node; const struct ancestor *above; } ancestor;

/* Whether a folder is also one of its ancestors, which links make possible. Folders are told apart by device and node, not by path. */
static int is_circle(const ancestor *here)
{
  for (const ancestor *above = here->above; above; above = above->above) {
    if (above->device == here->device && above->node == here->node) return 1;
  }
  return 0;
}

static flow_status walk(const char *folder, int follow_links, const ancestor *above, flow_listing *roots);

/* A folder that a link leads back to is not entered (is_circle), so that the walk ends. `path` is a listing of one name,
 * which `add` joins. */
static flow_status walk_inside(DIR *stream, const char *folder, int follow_links, const ancestor *here, flow_listing *roots)
{
  for (struct dirent *entry;;) {
    FLOW_TRY(next_entry(stream, folder, &entry));
    if (!entry) return FLOW_OK;
    if (is_dots(entry->d_name) || !is_folder(stream, entry)) continue;
    if (!follow_links && is_link(stream, entry)) continue;
    flow_listing path = { 0 };
    flow_status status = add(&path, folder, entry->d_name);
    if (status == FLOW_OK) status = walk(path.names[0], follow_links, here, roots);
    if (path.count > 0) flow_free(path.names[0]);
    flow_free(path.names);
    FLOW_TRY(status);
  }
}

int flow_folder_is_left_out(int error)
{
  return error == ENOENT || error == ENOTDIR || error == EACCES || error == EPERM || error == ELOOP;
}

/* Right after opendir: errno is read. */
static flow_status fail_unless_left_out(const char *folder)
{
  return flow_folder_is_left_out(errno) ? FLOW_OK : fail_to_list(folder);
}

/* Collects the folder and all below it. */
static flow_status walk(const char *folder, int follow_links, const ancestor *above, flow_listing *roots)
{
  struct stat facts;
  DIR *stream = opendir(folder);
  if (!stream) return fail_unless_left_out(folder);
  if (fstat(dirfd(stream), &facts) != 0) facts = (struct stat){ 0 };
  ancestor here = { facts.st_dev, facts.st_ino, above };
  flow_status status = FLOW_OK;
  if (!is_circle(&here)) {
    status = add(roots, folder, "");
    if (status == FLOW_OK) status = walk_inside(stream, folder, follow_links, &here, roots);
  }
  closedir(stream);
  return status;
}

/* Sorted within their folder; hidden files count if their ending does. */
static flow_status add_files(const char *folder, const char *endings, flow_listing *files)
{
  DIR *stream = opendir(folder);
  if (!stream) return fail_unless_left_out(folder);
  int first = files->count;
  flow_status status = FLOW_OK;
  for (struct dirent *entry; status == FLOW_OK;) {
    status = next_entry(stream, folder, &entry);
    if (status != FLOW_OK || !entry) break;
    if (has_ending(entry->d_name, endings) && !is_folder(stream, entry)) status = add(files, folder, entry->d_name);
  }
  closedir(stream);
  sort(files, first);
  return status;
}

/* Without the slash at the end that `add` leaves, so that paths compare as Python compares them. */
static void trim_slashes(flow_listing *roots, size_t least)
{
  for (int i = 0; i < roots->count; i++) {
    size_t length = strlen(roots->names[i]);
    while (length > least && roots->names[i][length - 1] == '/') roots->names[i][--length] = '\0';
  }
}

/* roots: where the folders are collected; files: what is found in them. */
static flow_status list_tree(const char *directory, int follow_links, const char *endings, flow_listing *roots,
                             flow_listing *files)
{
  FLOW_TRY(walk(directory, follow_links, NULL, roots));
  trim_slashes(roots, strlen(directory));
  sort(roots, 0);
  for (int i = 0; i < roots->count; i++) FLOW_TRY(add_files(roots->names[i], endings, files));
  return FLOW_OK;
}

/* *out is a new listing, NULL after a failure. Endings are compared without regard to case. A directory that is not there gives an
 * empty one (flow_folder_is_left_out). */
flow_status flow_listing_files(const char *directory, int follow_links, const char *endings, flow_listing **out)
{
  FLOW_NEED(out);
  *out = NULL;
  FLOW_NEED(directory, endings);
  if (!directory || !*directory || !endings) return flow_fail(FLOW_INVALID_ARGUMENT, "the path of a directory is missing");
  flow_listing *roots;
  FLOW_TRY(new_listing(&roots));
  flow_status status = new_listing(out);
  if (status == FLOW_OK) status = list_tree(directory, follow_links, endings, roots, *out);
  flow_listing_release(roots);
  if (status == FLOW_OK) return FLOW_OK;
  flow_listing_release(*out);
  *out = NULL;
  return status;
}

/* ---- C API -------------------------------------------------------------------------------------------------------- */

int flow_listing_count(const flow_listing *listing)
{
  return listing ? listing->count : 0;
}

/* Borrowed from the listing; NULL outside of it. */
const char *flow_listing_name(const flow_listing *listing, int index)
{
  return listing && index >= 0 && index < listing->count ? listing->names[index] : NULL;
}
