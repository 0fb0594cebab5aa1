/* plan_store.c: see plan_store.h. A file: "flowlua plan 1\n", the key, "\n", the text's bytes and checksum in decimals, "\n", the text. */
#include "cuda/library/plan_store.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/hash.h"
#include "base/memory.h"

/* HEAD_BYTES: a line of the file's head, of which the key is the longest. */
enum { PATH_BYTES = 4096, HEAD_BYTES = 1024 };
static const char ending[] = ".plan";

/* Returns whether there is a folder to use. */
static int find_folder(char folder[PATH_BYTES])
{
  const char *own = getenv("FLOW_CACHE"), *user = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  int length = -1;
  if (own) length = *own ? snprintf(folder, PATH_BYTES, "%s/cudnn", own) : -1;
  else if (user && *user == '/') length = snprintf(folder, PATH_BYTES, "%s/flowlua/cudnn", user);
  else if (home && *home) length = snprintf(folder, PATH_BYTES, "%s/.cache/flowlua/cudnn", home);
  return length > 0 && length < PATH_BYTES - 64;
}

/* Makes the folder and those around it. */
static int make_folder(char *folder)
{
  for (char *at = strchr(folder + 1, '/'); at; at = strchr(at + 1, '/')) {
    *at = '\0';
    int failed = mkdir(folder, 0700) != 0 && errno != EEXIST;
    *at = '/';
    if (failed) return 0;
  }
  return mkdir(folder, 0700) == 0 || errno == EEXIST;
}

/* The file's name is a hash of the key; two keys with the same hash replace each other, and each is found wrong for the other by the key
 * in the file. */
static int path_of(const char *key, char path[PATH_BYTES], char folder[PATH_BYTES])
{
  if (!find_folder(folder)) return 0;
  return snprintf(path, PATH_BYTES, "%s/%016" PRIx64 "%s", folder, flow_hash(FLOW_HASH_BEGIN, key, strlen(key)), ending) < PATH_BYTES;
}

/* ---- reading ------------------------------------------------------------------------------------------------------------------- */

/* The text after the head, if the file is what it says; NULL: it is not. */
static char *read_text(FILE *file, const char *key)
{
  char line[HEAD_BYTES];
  unsigned long long bytes = 0;
  uint64_t checksum = 0;
  void *block;
  if (!fgets(line, sizeof line, file) || strcmp(line, "flowlua plan 1\n") != 0) return NULL;
  if (!fgets(line, sizeof line, file) || strncmp(line, key, strlen(key)) != 0 || strcmp(line + strlen(key), "\n") != 0) return NULL;
  if (!fgets(line, sizeof line, file) || sscanf(line, "%llu %" SCNu64, &bytes, &checksum) != 2) return NULL;
  if (bytes == 0 || bytes > FLOW_PLAN_STORE_BYTES || flow_alloc((size_t)bytes + 1, &block) != FLOW_OK) return NULL;
  char *text = block;
  size_t found = fread(text, 1, (size_t)bytes, file);
  text[found] = '\0';
  if (found == bytes && fgetc(file) == EOF && strlen(text) == bytes && flow_hash(FLOW_HASH_BEGIN, text, found) == checksum) return text;
  flow_free(text);
  return NULL;
}

char *flow_plan_store_read(const char *key)
{
  char path[PATH_BYTES], folder[PATH_BYTES];
  if (!path_of(key, path, folder)) return NULL;
  FILE *file = fopen(path, "rbe");
  if (!file) return NULL;
  char *text = read_text(file, key);
  fclose(file);
  return text;
}

/* ---- writing ------------------------------------------------------------------------------------------------------------------- */

static int is_plan(const char *name)
{
  size_t length = strlen(name), last = sizeof ending - 1;
  return length > last && strcmp(name + length - last, ending) == 0;
}

/* Removes the oldest plan where there are as many as may be. */
static void make_room(const char *folder)
{
  char path[PATH_BYTES], oldest[PATH_BYTES] = "";
  struct timespec when = { 0 };
  struct stat known;
  int count = 0;
  DIR *files = opendir(folder);
  if (!files) return;
  for (struct dirent *file = readdir(files); file; file = readdir(files)) {
    if (!is_plan(file->d_name) || snprintf(path, sizeof path, "%s/%s", folder, file->d_name) >= (int)sizeof path) continue;
    if (stat(path, &known) != 0) continue;
    int older = known.st_mtim.tv_sec < when.tv_sec || (known.st_mtim.tv_sec == when.tv_sec && known.st_mtim.tv_nsec < when.tv_nsec);
    if (count++ > 0 && !older) continue;
    when = known.st_mtim;
    memcpy(oldest, path, sizeof path);
  }
  closedir(files);
  if (count >= FLOW_PLAN_STORE_FILES) unlink(oldest);
}

static int write_text(FILE *file, const char *key, const char *text)
{
  size_t bytes = strlen(text);
  fprintf(file, "flowlua plan 1\n%s\n%zu %" PRIu64 "\n", key, bytes, flow_hash(FLOW_HASH_BEGIN, text, bytes));
  fwrite(text, 1, bytes, file);
  int failed = ferror(file);
  return fclose(file) == 0 && !failed;
}

/* Under another name first, then renamed: a process that reads meanwhile sees the old text or the new one, and two that write the same
 * plan do not disturb each other. mkstemp gives the file to its owner alone. Silent on failure: the next process searches once more. */
void flow_plan_store_write(const char *key, const char *text)
{
  char path[PATH_BYTES], folder[PATH_BYTES], temporary[PATH_BYTES];
  if (strlen(key) > HEAD_BYTES - 3 || strchr(key, '\n') || strlen(text) > FLOW_PLAN_STORE_BYTES) return;
  if (!path_of(key, path, folder) || !make_folder(folder)) return;
  snprintf(temporary, sizeof temporary, "%.*s/new-XXXXXX", PATH_BYTES - 32, folder);
  make_room(folder);
  int number = mkstemp(temporary);
  FILE *file = number >= 0 ? fdopen(number, "wb") : NULL;
  if (number >= 0 && !file) close(number);
  if (file && write_text(file, key, text) && rename(temporary, path) == 0) return;
  if (number >= 0) unlink(temporary);
}
