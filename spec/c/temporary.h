/* temporary.h: where tests write files: in the folder of the run, $TMPDIR, which scripts/test removes. */
#ifndef FLOW_SPEC_TEMPORARY_H
#define FLOW_SPEC_TEMPORARY_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TEMPORARY_PATH = 512 }; /* bytes that a path takes at most */

static inline const char *temporary_folder(void)
{
  const char *folder = getenv("TMPDIR");
  return folder && *folder ? folder : "/tmp";
}

/* Writes a path that no other process gets into `path`, of at least TEMPORARY_PATH bytes, and returns it. name: its last part, which may
 * end in the XXXXXX of mkstemp and mkdtemp. */
static inline char *temporary(char *path, const char *name)
{
  snprintf(path, TEMPORARY_PATH, "%s/flow_%d_%s", temporary_folder(), (int)getpid(), name);
  return path;
}

#endif
