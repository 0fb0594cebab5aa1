/* folder.h: listings of folders; the functions over them are in flow.h. */
#ifndef FLOW_DATA_SOURCES_FOLDER_H
#define FLOW_DATA_SOURCES_FOLDER_H

#include "base/status.h"

struct flow_listing {
  char **names;
  int    count, capacity;
};

#endif
