/* widths.c: how wide the loads and stores of a kernel are. With FLOW_EMULATED_IDLE=1 and FLOW_EMULATED_WIDTHS=1 two blocks of each launch,
 * the first and one in the middle, are carried out by the bodies that are watched (bounds.c), and a line is added to the list of lists.c:
 *
 *   widths  kernel op loaded1 loaded2 loaded4 loaded8 loaded16 stored1 stored2 stored4 stored8 stored16
 *
 * loadedN: how many different bytes of the device's memory they asked for by loads of N bytes; what all threads read, such as a scalar,
 * counts once. A body's own accesses are counted: the compiler for the device merges none, and splits some perhaps, which
 * scripts/cuda-kernels tells by the machine code. What was written is taken back, so that memory stays as idle devices have it. */
#include "cuda/emulation/emulation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"

typedef struct touched { char *at; size_t bytes; int write; char before[16]; } touched;

static struct { touched *list; int count, capacity; } accesses;
static int counts;

int emulated_widths_wanted(void)
{
  const char *text = getenv("FLOW_EMULATED_WIDTHS");
  return text && strcmp(text, "1") == 0;
}

void emulated_widths_begin(void)
{
  accesses.count = 0;
  counts = emulated_widths_wanted();
}

/* What is read is kept, too: the compiler leaves out the call before a store to what was just read. */
void emulated_widths_note(const char *from, size_t bytes, int write)
{
  if (!counts || flow_grow(&accesses.list, sizeof(touched), accesses.count + 1, &accesses.capacity) != FLOW_OK) return;
  touched *next = &accesses.list[accesses.count++];
  *next = (touched){ .at = (char *)(uintptr_t)from, .bytes = bytes < 16 ? bytes : 16, .write = write };
  memcpy(next->before, from, next->bytes);
  if (bytes > 16) emulated_widths_note(from + 16, bytes - 16, write);
}

static int by_place(const void *a, const void *b)
{
  const touched *x = a, *y = b;
  if (x->write != y->write) return x->write - y->write;
  if (x->at != y->at) return x->at < y->at ? -1 : 1;
  return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

void emulated_widths_end(int kernel, int op)
{
  size_t bytes[2][5] = { { 0 } };
  if (!counts) return;
  counts = 0;
  for (int i = accesses.count - 1; i >= 0; i--) memcpy(accesses.list[i].at, accesses.list[i].before, accesses.list[i].bytes);
  if (accesses.count > 0) qsort(accesses.list, (size_t)accesses.count, sizeof(touched), by_place);
  for (int i = 0; i < accesses.count; i++) {
    const touched *t = &accesses.list[i];
    if (i > 0 && by_place(t, t - 1) == 0) continue;
    bytes[t->write][t->bytes >= 16 ? 4 : t->bytes >= 8 ? 3 : t->bytes >= 4 ? 2 : t->bytes - 1] += t->bytes;
  }
  emulated_list_widths(kernel, op, bytes);
}
