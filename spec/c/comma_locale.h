/* comma_locale.h: a locale whose printf writes "0,5" and whose strtod stops at a point, as those of many countries do. Debian installs
 * none, so that the numeric part of one is made here, as glibc compiles it (locale/localeinfo.h, glibc 2.36): a magic number, the number of
 * fields, where each begins, the fields. */
#ifndef FLOW_SPEC_COMMA_LOCALE_H
#define FLOW_SPEC_COMMA_LOCALE_H

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "temporary.h"

/* Sets it for numbers; 0 where the C library reads other files. setlocale(LC_NUMERIC, "C") ends it. */
static inline int use_comma_locale(void)
{
  static const unsigned char bytes[] = {
    0x14, 0x11, 0x03, 0x20, 6, 0,   0, 0, 32, 0,    0, 0, 34, 0,   0, 0, 36, 0, 0, 0, 40, 0,   0,   0,   44,  0,   0,
    0,    48,   0,    0,    0, ',', 0, 0, 0,  0xff, 0, 0, 0,  ',', 0, 0, 0,  0, 0, 0, 0,  'U', 'T', 'F', '-', '8', 0
  };
  char folder[TEMPORARY_PATH], path[TEMPORARY_PATH + 32], shown[16] = "";
  if (!mkdtemp(temporary(folder, "locale_XXXXXX"))) return 0;
  snprintf(path, sizeof path, "%s/comma", folder);
  mkdir(path, 0700);
  snprintf(path, sizeof path, "%s/comma/LC_NUMERIC", folder);
  FILE *file = fopen(path, "wb");
  if (file) {
    fwrite(bytes, 1, sizeof bytes, file);
    fclose(file);
    setenv("LOCPATH", folder, 1);
    setlocale(LC_NUMERIC, "comma");
    unsetenv("LOCPATH");
    unlink(path);
  }
  snprintf(path, sizeof path, "%s/comma", folder);
  rmdir(path);
  rmdir(folder);
  snprintf(shown, sizeof shown, "%.1f", 0.5);
  return strcmp(shown, "0,5") == 0;
}

#endif
