/* background_save.c: a file of named tensors that a thread of ours writes while the caller goes on. The thread calls
 * nothing back; how it went is kept until it is asked for.
 *
 * Order of calls: flow_save_begin, then any number of flow_save_done and flow_save_wait, then flow_save_release, all by
 * one thread (or under a lock of the caller's). The thread itself touches only the writer, the texts, `failure` and
 * `done`; `failure` is complete before `done` becomes 1, which the store of `done` publishes. */
#include "io/tensor_file.h"

#include <string.h>
#include <unistd.h>
#include "base/failure.h"
#include "base/memory.h"
#include "base/thread.h"

enum { SAVE_MAGIC = 0x464c5341 };

struct flow_save {
  uint32_t            magic;
  flow_tensor_writer *writer;            /* a reference */
  char               *path, *format, *then, *text;
  flow_thread         thread;
  pid_t               process;           /* whose thread it is: a forked child has none */
  int                 joined;
  _Atomic int         done;
  flow_failure        failure;           /* once it is done */
};

/* The tensors first, then the text at `then` (a checkpoint's state file): a reader that finds the text finds the file that it names. */
static flow_status write_both(const flow_save *save)
{
  FLOW_TRY(flow_tensor_writer_save(save->writer, save->path, save->format));
  return save->then ? flow_write_file(save->then, save->text, (double)strlen(save->text)) : FLOW_OK;
}

/* The thread of a save. `done` is stored last: whoever sees it may read the failure. */
static void *save_main(void *argument)
{
  flow_save *save = argument;
  flow_failure_take(&save->failure, write_both(save));
  atomic_store(&save->done, 1);
  return NULL;
}

/* After the thread has ended, or was never started. */
static void free_save(flow_save *save)
{
  save->magic = FLOW_TENSOR_DEAD;
  flow_tensor_writer_release(save->writer);
  flow_free(save->path);
  flow_free(save->format);
  flow_free(save->then);
  flow_free(save->text);
  flow_free(save);
}

/* Copies, since the caller's texts may be gone while the thread runs. */
static flow_status copy_texts(flow_save *save, const char *path, const char *format, const char *then, const char *text)
{
  save->path = flow_duplicate_text(path);
  save->format = flow_duplicate_text(format);
  if (!save->path || !save->format) return FLOW_OUT_OF_MEMORY;
  if (!then) return FLOW_OK;
  save->then = flow_duplicate_text(then);
  save->text = flow_duplicate_text(text);
  return save->then && save->text ? FLOW_OK : FLOW_OUT_OF_MEMORY;
}

/* The caller may change its tensors only if the writer holds copies (flow_tensor_writer_snapshot): the thread reads them while it
 * writes. */
flow_status flow_save_begin(flow_tensor_writer *writer, const char *path, const char *format, const char *then, const char *text,
                            flow_save **out)
{
  if (!out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_save_begin: out is NULL");
  *out = NULL;
  if (!writer || writer->magic != FLOW_TENSOR_WRITER_MAGIC) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "the writer of tensors is NULL or was released");
  }
  if (!path || !format || (then && !text)) return flow_fail(FLOW_INVALID_ARGUMENT, "saving: a path, a format and a text are needed");
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_save), &block));
  flow_save *save = block;
  save->magic = SAVE_MAGIC;
  save->process = getpid();
  save->writer = writer;
  atomic_fetch_add(&writer->references, 1);
  flow_status status = copy_texts(save, path, format, then, text);
  if (status == FLOW_OK && flow_thread_start(&save->thread, "flow-save", save_main, save) != 0) {
    status = flow_fail(FLOW_OUT_OF_MEMORY, "a thread to save %s could not be started: a limit of this system is reached", path);
  }
  if (status != FLOW_OK) {
    free_save(save);
    return status;
  }
  *out = save;
  return FLOW_OK;
}

/* A forked child has no such thread and does not wait for it: for the child it counts as done. */
int flow_save_done(const flow_save *save)
{
  return !save || save->magic != SAVE_MAGIC || save->process != getpid() || atomic_load(&((flow_save *)(uintptr_t)save)->done);
}

/* May be called more than once; the failure stays. One thread at a time. */
flow_status flow_save_wait(flow_save *save)
{
  if (!save || save->magic != SAVE_MAGIC) return flow_fail(FLOW_INVALID_ARGUMENT, "the running save is NULL or was released");
  if (save->process != getpid()) {
    return flow_fail(FLOW_INVALID_STATE, "saving %s was begun before this process was forked; only its parent can know the result",
                     save->path);
  }
  if (!save->joined) flow_thread_join(&save->thread);
  save->joined = 1;
  return flow_failure_raise(&save->failure);
}

/* Waits for the thread: its file is complete, or was given up, when this returns. */
void flow_save_release(flow_save *save)
{
  if (!save || save->magic != SAVE_MAGIC) return;
  if (!save->joined && save->process == getpid()) flow_thread_join(&save->thread);
  free_save(save);
}
