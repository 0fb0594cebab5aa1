/* failing_memory.c: an allocator for LD_PRELOAD that fails from a chosen allocation on, on all threads, as one does in a process that has
 * reached its limit. libgcc's own calls succeed: LuaJIT registers its code there, which ends the process where memory is missing. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void failing_memory_begin(long after);
int failing_memory_end(void);
int failing_memory_thread(int (*call)(int), const char *(*message)(void), char *text, int size);

static _Atomic long left = -1; /* allocations that succeed before all fail; negative: none fails */
static _Atomic int failed;
static const char *libgcc, *libgcc_end;

__attribute__((constructor)) static void find_libgcc(void)
{
  char line[512];
  unsigned long from, to;
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof line, maps)) {
    if (!strstr(line, "libgcc_s") || sscanf(line, "%lx-%lx", &from, &to) != 2) continue;
    if (!libgcc) libgcc = (const char *)from;
    libgcc_end = (const char *)to;
  }
  if (maps) fclose(maps);
}

void failing_memory_begin(long after)
{
  failed = 0;
  left = after;
}

/* How many failed. */
int failing_memory_end(void)
{
  left = -1;
  return failed;
}

static int fails(const void *caller)
{
  long now = left;
  if (now < 0 || ((const char *)caller >= libgcc && (const char *)caller < libgcc_end)) return 0;
  while (now > 0)
    if (atomic_compare_exchange_weak(&left, &now, now - 1)) return 0;
  if (now < 0) return 0;
  failed++;
  errno = ENOMEM;
  return 1;
}

#define FAILS fails(__builtin_return_address(0))

void *malloc(size_t bytes)
{
  return FAILS ? NULL : __libc_malloc(bytes);
}
void *calloc(size_t count, size_t bytes)
{
  return FAILS ? NULL : __libc_calloc(count, bytes);
}
void *realloc(void *block, size_t bytes)
{
  return FAILS ? NULL : __libc_realloc(block, bytes);
}
void *memalign(size_t alignment, size_t bytes)
{
  return FAILS ? NULL : __libc_memalign(alignment, bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes)
{
  return FAILS ? NULL : __libc_memalign(alignment, bytes);
}

int posix_memalign(void **block, size_t alignment, size_t bytes)
{
  void *made = FAILS ? NULL : __libc_memalign(alignment, bytes);
  if (made) *block = made;
  return made ? 0 : ENOMEM;
}

int fsync(int file)
{
  return file < 0;
} /* hundreds of files are written */

typedef struct errand {
  int (*call)(int), status;
  const char *(*message)(void);
  char *text;
  int size;
} errand;

static void *run(void *argument)
{
  errand *self = argument;
  failing_memory_begin(0);
  self->status = self->call(-1);
  const char *message = self->message();
  failing_memory_end();
  snprintf(self->text, (size_t)self->size, "%s", message);
  return NULL;
}

/* Calls call(-1) as the first that a thread does, which has no memory; returns what it gives, and the message. */
int failing_memory_thread(int (*call)(int), const char *(*message)(void), char *text, int size)
{
  errand self = { .call = call, .status = -1, .message = message, .text = text, .size = size };
  pthread_t thread;
  if (pthread_create(&thread, NULL, run, &self) != 0 || pthread_join(thread, NULL) != 0) return -1;
  return self.status;
}
