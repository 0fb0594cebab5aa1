/* bootstrap.c: NVIDIA's NCCL as far as it goes without a GPU, by the calls and the table of the transport (kernels/cuda/runtime/nccl.c):
 * the ids of two groups, then a communicator, which needs a device. Prints a line for each; status 3: NCCL is not there, and why; 1: a
 * call did what it should not. Where there is a GPU the communicator is opened, and aborted. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cuda/runtime/libraries.h"
#include "cuda/runtime/nccl_functions.h"

static int fail(const char *what, const flow_nccl *nccl, ncclResult_t code)
{
  printf("%s: %s\n", what, nccl->ncclGetErrorString(code));
  return 1;
}

/* What a communicator is at in the end. */
static ncclResult_t settle(const flow_nccl *nccl, ncclComm_t comm, ncclResult_t state)
{
  for (int i = 0; i < 600 && state == ncclInProgress; i++) {
    nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
    ncclResult_t code = nccl->ncclCommGetAsyncError(comm, &state);
    if (code != ncclSuccess) return code;
  }
  return state;
}

int main(void)
{
  char why[512];
  int found = flow_cuda_library_text(FLOW_CUDA_NCCL, why, sizeof why);
  puts(why);
  if (!found) return 3;
  const flow_nccl *nccl = flow_cuda_nccl();
  ncclUniqueId ids[2];
  for (int i = 0; i < 2; i++) {
    ncclResult_t code = nccl->ncclGetUniqueId(&ids[i]);
    if (code != ncclSuccess) return fail("an id", nccl, code);
  }
  printf("ids of %zu bytes, %s\n", sizeof ids[0], memcmp(&ids[0], &ids[1], sizeof ids[0]) ? "each its own" : "the same");
  ncclComm_t comm = NULL;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclResult_t code = nccl->ncclCommInitRankConfig(&comm, 1, ids[0], 0, &config);
  code = settle(nccl, comm, code);
  const char *more = nccl->ncclGetLastError(NULL);
  printf("a communicator: %s; %s\n", nccl->ncclGetErrorString(code), more ? more : "");
  if (comm) nccl->ncclCommAbort(comm);
  return 0;
}
