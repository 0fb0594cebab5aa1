/* load_file.c: element functions that put what a file holds in the place of its path, the first component: its bytes as a text, or the
 * sound of a WAVE file. The other components, labels, stay. Both are one class with a loader, which makes the tensor; a file that cannot
 * be read fails at its element. */
#include "data/function.h"
#include "base/need.h"
#include "io/file.h"

/* What differs between the functions of this file: the name for messages, the component that is made, and what makes it of a path. most:
 * the limit that the caller gave. */
typedef struct loader {
  const char     *what;
  flow_component  made;
  flow_status   (*load)(const char *path, int64_t most, flow_tensor **out);
} loader;

typedef struct load_file { flow_function base; const loader *loader; int64_t most; } load_file;
typedef struct worker { char *path; int capacity; } worker;

/* The whole file, or its first `most` bytes; -1: all. */
static flow_status load_bytes(const char *path, int64_t most, flow_tensor **out)
{
  flow_source source;
  flow_status status = flow_source_open(path, &source);
  if (status == FLOW_OK) {
    int64_t bytes = most >= 0 && (uint64_t)most < source.file_bytes ? most : (int64_t)source.file_bytes;
    status = flow_tensor_new_uninitialized(FLOW_UINT8, 1, &bytes, out);
    if (status == FLOW_OK && bytes > 0) status = flow_source_read(&source, "text", (*out)->data, (uint64_t)bytes);
    if (status != FLOW_OK) {
      flow_tensor_release(*out);
      *out = NULL;
    }
  }
  flow_source_close(&source);
  return status;
}

/* {samples, channels}; most -1: all samples. Longer sounds are cut, shorter ones padded. */
static flow_status load_wave(const char *path, int64_t most, flow_tensor **out)
{
  return flow_wave_load(path, (double)most, NULL, out);
}

static const loader text_loader = { "texts", { .dtype = FLOW_UINT8, .rank = 1, .shape = { -1 }, .text = 1 }, load_bytes };
static const loader wave_loader = { "sounds", { .dtype = FLOW_FLOAT32, .rank = 2, .shape = { -1, -1 } }, load_wave };

/* The sound's number of samples is known where it was asked for; its channels are the file's. */
static flow_status spec(const flow_function *function, const flow_element_spec *in, flow_element_spec *out)
{
  const load_file *self = (const load_file *)function;
  if (in->count < 1 || !in->components[0].text || in->components[0].rank != 1) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "loading %s needs elements that begin with a path, got %s", self->loader->what,
                     in->count > 0 ? flow_component_text(&in->components[0]) : "nothing");
  }
  *out = *in;
  out->components[0] = self->loader->made;
  if (!self->loader->made.text) out->components[0].shape[0] = self->most;
  return FLOW_OK;
}

/* The worker's block holds the path, whose memory grows and is used again. */
static flow_status apply(const flow_function *function, void *worker_block, const flow_element_key *key, const flow_element *place,
                         flow_element *in, flow_element *out)
{
  const load_file *self = (const load_file *)function;
  worker *own = worker_block;
  flow_tensor *made = NULL;
  (void)key, (void)place;
  FLOW_TRY(flow_function_path(in->tensors[0], &own->path, &own->capacity));
  FLOW_TRY(self->loader->load(own->path, self->most, &made));
  flow_element_move(out, in);
  flow_tensor_release(out->tensors[0]);
  out->tensors[0] = made;
  return FLOW_OK;
}

/* The path's copy with a zero at its end is the worker's only memory. */
static void close_worker(const flow_function *function, void *worker_block)
{
  (void)function;
  flow_free(((worker *)worker_block)->path);
}

static const flow_function_class class = {
  .name = "load_file", .function_bytes = sizeof(load_file), .worker_bytes = sizeof(worker), .spec = spec, .apply = apply,
  .close = close_worker,
};

/* most: bytes or samples, a whole number; -1: all. */
static flow_status make(const loader *kind, const char *name, double most, flow_function **out)
{
  int64_t whole;
  *out = NULL;
  FLOW_TRY(flow_check_whole("map", name, most, -1, &whole));
  FLOW_TRY(flow_function_new(&class, out));
  load_file *self = (load_file *)*out;
  self->loader = kind;
  self->most = whole;
  self->base.identity = flow_mix(flow_mix(self->base.identity, (uint64_t)whole), (uint64_t)kind->made.rank);
  return FLOW_OK;
}

flow_status flow_function_load_text(double most, flow_function **out)
{
  FLOW_NEED(out);
  return make(&text_loader, "max_length", most, out);
}

/* samples: the length that every sound is cut or filled up to; -1: as long as it is. */
flow_status flow_function_load_wave(double samples, flow_function **out)
{
  FLOW_NEED(out);
  return make(&wave_loader, "output_sequence_length", samples, out);
}
