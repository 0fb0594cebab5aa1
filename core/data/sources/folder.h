/* folder.h: listings of folders; the functions over them are in flow.h. */
#ifndef FLOW_DATA_SOURCES_FOLDER_H
#define FLOW_DATA_SOURCES_FOLDER_H

#include "base/status.h"

struct flow_listing {
  char **names;
  int    count, capacity;
};

/* Whether a folder below the one that is listed is left out where it cannot be opened for this reason (errno), as os.walk does: it is not
 * there any more, or not for this user. All other reasons, such as too many open files, are failures: a data set would lack a part. */
int flow_folder_is_left_out(int error);

#endif
