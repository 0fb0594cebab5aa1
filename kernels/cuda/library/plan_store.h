/* plan_store.h: plans of cuDNN and cuBLASLt as texts in files, so that the next process need not search for them: in
 * $FLOW_CACHE/cudnn, else $XDG_CACHE_HOME/flowlua/cudnn, else ~/.cache/flowlua/cudnn. An empty FLOW_CACHE: nothing is kept.
 *
 * A store only saves time: where it cannot be read or written, plans are searched for as if there were none. A file is written beside its
 * name and renamed; it holds its key, its length and a checksum, and is as good as missing where one of them is wrong. The folder keeps
 * FLOW_PLAN_STORE_FILES files; the oldest go first. */
#ifndef FLOW_CUDA_LIBRARY_PLAN_STORE_H
#define FLOW_CUDA_LIBRARY_PLAN_STORE_H

enum { FLOW_PLAN_STORE_FILES = 1000, FLOW_PLAN_STORE_BYTES = 4 << 20 };      /* of one text, at most */

/* The text that was kept for a key, to be freed by flow_free; NULL: there is none. */
char *flow_plan_store_read(const char *key);
void  flow_plan_store_write(const char *key, const char *text);

#endif
