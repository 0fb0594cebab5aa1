/* libraries.c: opens cuDNN, cuBLASLt and NCCL. They stay open: their threads and their pools of memory may outlive every use of ours. */
#define _GNU_SOURCE
#include "cuda/runtime/libraries.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cuda/library/library_functions.h"
#include "cuda/runtime/nccl_functions.h"

enum { TEXT = 400 };

typedef struct function_place { const char *name; size_t offset; } function_place;

static flow_cudnn cudnn;
static flow_cublaslt cublaslt;
static flow_nccl nccl;

#define PLACE(name) { #name, offsetof(LIBRARY, name) },
#define LIBRARY flow_cudnn
static const function_place cudnn_places[] = { FLOW_CUDNN_FUNCTIONS(PLACE) { NULL, 0 } };
#undef LIBRARY
#define LIBRARY flow_cublaslt
static const function_place cublaslt_places[] = { FLOW_CUBLASLT_FUNCTIONS(PLACE) { NULL, 0 } };
#undef LIBRARY
#define LIBRARY flow_nccl
static const function_place nccl_places[] = { FLOW_NCCL_FUNCTIONS(PLACE) { NULL, 0 } };
#undef LIBRARY

/* Versions as all three count them: major * 10000 + minor * 100 + patch. */
static long cudnn_version(void) { return (long)cudnn.cudnnGetVersion(); }
static long cublaslt_version(void) { return (long)cublaslt.cublasLtGetVersion(); }
static long nccl_version(void)
{
  int version = 0;
  return nccl.ncclGetVersion(&version) == ncclSuccess ? version : 0;
}

static const struct library {
  const char           *name, *file, *package;       /* package: its folder among Python's */
  const function_place *places;
  void                 *functions;
  long                (*version)(void);
  long                  least;                       /* what is used of it exists since then */
} libraries[FLOW_CUDA_LIBRARY_COUNT] = {
  { "cuDNN", "libcudnn.so.9", "cudnn", cudnn_places, &cudnn, cudnn_version, 90800 },
  { "cuBLASLt", "libcublasLt.so.13", "cu13", cublaslt_places, &cublaslt, cublaslt_version, 130000 },
  { "NCCL", "libnccl.so.2", "nccl", nccl_places, &nccl, nccl_version, 21800 },
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct { int searched, found; char text[TEXT]; } states[FLOW_CUDA_LIBRARY_COUNT];

static void *open_in(const char *folder, const char *file, char *why)
{
  char path[PATH_MAX];
  int length = folder ? snprintf(path, sizeof path, "%s/%s", folder, file) : snprintf(path, sizeof path, "%s", file);
  if (length < 0 || (size_t)length >= sizeof path) return NULL;
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  const char *error = handle ? NULL : dlerror();
  if (error && !*why) snprintf(why, TEXT / 2, "%s", error);
  return handle;
}

/* In the Python environment that a variable names. */
static void *open_in_environment(const char *variable, const char *package, const char *file, char *why)
{
  char pattern[PATH_MAX];
  glob_t found;
  void *handle = NULL;
  const char *root = getenv(variable);
  if (!root || !*root) return NULL;
  int length = snprintf(pattern, sizeof pattern, "%s/lib/python3*/site-packages/nvidia/%s/lib", root, package);
  if (length < 0 || (size_t)length >= sizeof pattern || glob(pattern, 0, NULL, &found) != 0) return NULL;
  for (size_t i = 0; i < found.gl_pathc && !handle; i++) handle = open_in(found.gl_pathv[i], file, why);
  globfree(&found);
  return handle;
}

/* `why` gets the first refusal: that of the place where it was expected. */
static void *open_library(const struct library *l, char *why)
{
  *why = '\0';
  const char *named = getenv("FLOW_CUDA_LIBS");
  if (named && *named) return open_in(named, l->file, why);
  void *handle = open_in(NULL, l->file, why);
  if (!handle) handle = open_in("/usr/local/cuda/lib64", l->file, why);
  if (!handle) handle = open_in_environment("VIRTUAL_ENV", l->package, l->file, why);
  if (!handle) handle = open_in_environment("CONDA_PREFIX", l->package, l->file, why);
  return handle;
}

/* Fills the table; returns the name of a function that is missing, or NULL. */
static const char *take_functions(const struct library *l, void *handle)
{
  for (const function_place *place = l->places; place->name; place++) {
    void *address = dlsym(handle, place->name);
    if (!address) return place->name;
    memcpy((char *)l->functions + place->offset, &address, sizeof address);
  }
  return NULL;
}

static void version_text(char text[32], long version)
{
  snprintf(text, 32, "%ld.%ld.%ld", version / 10000, version / 100 % 100, version % 100);
}

/* Whether the library is there in a version that will do; `text` names it or says what is missing. */
static int search(flow_cuda_library which, char *text)
{
  const struct library *l = &libraries[which];
  char why[TEXT / 2], found[32], least[32];
  void *handle = open_library(l, why);
  if (!handle) {
    snprintf(text, TEXT, "no %s (%s)", l->name, why);
    return 0;
  }
  const char *missing = take_functions(l, handle);
  if (missing) {
    snprintf(text, TEXT, "no %s: %s lacks the function %s", l->name, l->file, missing);
    return 0;
  }
  long version = l->version();
  version_text(found, version);
  version_text(least, l->least);
  if (version < l->least) {
    snprintf(text, TEXT, "no %s: version %s was found, %s or newer is needed", l->name, found, least);
    return 0;
  }
  snprintf(text, TEXT, "%s %s", l->name, found);
  return 1;
}

int flow_cuda_library_text(flow_cuda_library library, char *text, size_t size)
{
  pthread_mutex_lock(&lock);
  if (!states[library].searched) {
    states[library].found = search(library, states[library].text);
    states[library].searched = 1;
  }
  int found = states[library].found;
  if (text) snprintf(text, size, "%s", states[library].text);
  pthread_mutex_unlock(&lock);
  return found;
}

const flow_cudnn *flow_cuda_cudnn(void) { return flow_cuda_library_text(FLOW_CUDA_CUDNN, NULL, 0) ? &cudnn : NULL; }
const flow_cublaslt *flow_cuda_cublaslt(void) { return flow_cuda_library_text(FLOW_CUDA_CUBLASLT, NULL, 0) ? &cublaslt : NULL; }
const flow_nccl *flow_cuda_nccl(void) { return flow_cuda_library_text(FLOW_CUDA_NCCL, NULL, 0) ? &nccl : NULL; }
