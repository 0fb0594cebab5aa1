/* runner.c: one program for every file of tests and every helper that starts as a separate process, so that the engine is linked once.
 *   flow_tests                       lists the names
 *   flow_tests NAME [ARGUMENT ...]   runs one
 * build/bin has a link of each name to it, which runs what it is named after. */
#include <stdio.h>
#include <string.h>
#include "test_names.h"            /* made by spec/tests.cmake: FLOW_TESTS takes no arguments, FLOW_TEST_PROGRAMS does */

#define DECLARE_TEST(name) int main_of_##name(void);
#define DECLARE_PROGRAM(name) int main_of_##name(int count, char **arguments);
FLOW_TESTS(DECLARE_TEST)
FLOW_TEST_PROGRAMS(DECLARE_PROGRAM)

typedef struct runner_entry { const char *name; int (*test)(void); int (*program)(int count, char **arguments); } runner_entry;

#define TEST_ENTRY(name) { #name, main_of_##name, NULL },
#define PROGRAM_ENTRY(name) { #name, NULL, main_of_##name },
static const runner_entry entries[] = { FLOW_TESTS(TEST_ENTRY) FLOW_TEST_PROGRAMS(PROGRAM_ENTRY) };

static const runner_entry *find(const char *name)
{
  for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
    if (strcmp(entries[i].name, name) == 0) return &entries[i];
  return NULL;
}

int main(int count, char **arguments)
{
  const char *slash = strrchr(arguments[0], '/');
  const runner_entry *entry = find(slash ? slash + 1 : arguments[0]);
  if (!entry && count < 2) {
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) puts(entries[i].name);
    return 0;
  }
  if (!entry) {
    entry = find(arguments[1]);
    if (!entry) {
      fprintf(stderr, "flow_tests: there is no test %s; without an argument it lists them\n", arguments[1]);
      return 2;
    }
    count--;
    arguments++;
  }
  return entry->test ? entry->test() : entry->program(count, arguments);
}
