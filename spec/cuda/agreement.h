/* agreement.h: what the headers of the emulated CUDA runtime say, as numbers: compiled once with them and once with NVIDIA's, for
 * spec/c/test_cuda_headers.c. NUMBERS is the name of the list. */
#include <cuda_runtime_api.h>
#include <nccl.h>
#include "agreement_list.h"

#define FIELD(type, name)  { #type " " #name ": bytes", (long long)sizeof(((type *)0)->name) },
#define TYPE(type)         { "sizeof " #type, (long long)sizeof(type) },
#define VALUE(name)        { #name, (long long)(name) },

/* What functions take is checked by the compiler where the back end calls them, once with each. */
static const agreement_number list[] = {
  /* errors */
  VALUE(cudaSuccess) VALUE(cudaErrorInvalidValue) VALUE(cudaErrorMemoryAllocation) VALUE(cudaErrorInvalidConfiguration)
  VALUE(cudaErrorInsufficientDriver) VALUE(cudaErrorNoDevice) VALUE(cudaErrorInvalidDevice) VALUE(cudaErrorInvalidKernelImage)
  VALUE(cudaErrorInvalidResourceHandle) VALUE(cudaErrorSymbolNotFound) VALUE(cudaErrorNotReady)
  VALUE(cudaErrorContained) VALUE(cudaErrorIllegalAddress) VALUE(cudaErrorLaunchTimeout) VALUE(cudaErrorAssert)
  VALUE(cudaErrorHardwareStackError) VALUE(cudaErrorIllegalInstruction) VALUE(cudaErrorMisalignedAddress)
  VALUE(cudaErrorInvalidAddressSpace) VALUE(cudaErrorInvalidPc) VALUE(cudaErrorLaunchFailure) VALUE(cudaErrorExternalDevice)
  VALUE(cudaErrorNotSupported)
  VALUE(cudaErrorStreamCaptureUnsupported) VALUE(cudaErrorStreamCaptureInvalidated) VALUE(cudaErrorStreamCaptureMerge)
  VALUE(cudaErrorStreamCaptureUnmatched) VALUE(cudaErrorStreamCaptureUnjoined) VALUE(cudaErrorStreamCaptureIsolation)
  VALUE(cudaErrorCapturedEvent) VALUE(cudaErrorStreamCaptureWrongThread) VALUE(cudaErrorUnknown)
  /* flags and attributes */
  VALUE(cudaStreamNonBlocking) VALUE(cudaEventDisableTiming) VALUE(cudaHostAllocPortable)
  VALUE(cudaMemcpyHostToHost) VALUE(cudaMemcpyHostToDevice) VALUE(cudaMemcpyDeviceToHost) VALUE(cudaMemcpyDeviceToDevice)
  VALUE(cudaMemcpyDefault) VALUE(cudaMemAllocationTypePinned) VALUE(cudaMemLocationTypeDevice)
  VALUE(cudaMemAccessFlagsProtNone) VALUE(cudaMemAccessFlagsProtRead) VALUE(cudaMemAccessFlagsProtReadWrite)
  VALUE(cudaMemPoolAttrReleaseThreshold) VALUE(cudaMemPoolAttrReservedMemCurrent) VALUE(cudaMemPoolAttrUsedMemCurrent)
  VALUE(cudaStreamCaptureModeGlobal) VALUE(cudaStreamCaptureModeThreadLocal) VALUE(cudaStreamCaptureModeRelaxed)
  VALUE(cudaEnableDefault) VALUE(cudaDriverEntryPointSuccess) VALUE(cudaDriverEntryPointSymbolNotFound)
  VALUE(cudaJitMaxRegisters) VALUE(cudaLibraryHostUniversalFunctionAndDataTable)
  /* types and the fields that are used */
  TYPE(cudaError_t) TYPE(cudaStream_t) TYPE(cudaEvent_t) TYPE(cudaGraph_t) TYPE(cudaGraphExec_t) TYPE(cudaMemPool_t) TYPE(cudaLibrary_t)
  TYPE(cudaKernel_t) TYPE(dim3) TYPE(struct cudaMemLocation) TYPE(struct cudaMemAccessDesc)
  FIELD(struct cudaDeviceProp, name) FIELD(struct cudaDeviceProp, totalGlobalMem) FIELD(struct cudaDeviceProp, major)
  FIELD(struct cudaDeviceProp, minor) FIELD(struct cudaDeviceProp, multiProcessorCount)
  VALUE(cudaLaunchAttributeProgrammaticStreamSerialization) TYPE(cudaLaunchAttribute) TYPE(cudaLaunchConfig_t)
  FIELD(cudaLaunchAttributeValue, programmaticStreamSerializationAllowed) FIELD(struct cudaFuncAttributes, ptxVersion)
  FIELD(struct cudaFuncAttributes, binaryVersion)
  FIELD(struct cudaMemPoolProps, allocType) FIELD(struct cudaMemPoolProps, location)
  FIELD(struct cudaMemLocation, type) FIELD(struct cudaMemLocation, id)
  FIELD(struct cudaMemAccessDesc, location) FIELD(struct cudaMemAccessDesc, flags)
  /* NCCL */
  VALUE(ncclSuccess) VALUE(ncclUnhandledCudaError) VALUE(ncclSystemError) VALUE(ncclInternalError) VALUE(ncclInvalidArgument)
  VALUE(ncclInvalidUsage) VALUE(ncclRemoteError) VALUE(ncclInProgress) VALUE(ncclUint8) VALUE(ncclFloat32) VALUE(ncclFloat64) VALUE(ncclSum)
  VALUE(NCCL_UNIQUE_ID_BYTES) VALUE(NCCL_CONFIG_UNDEF_INT) TYPE(ncclUniqueId) TYPE(ncclResult_t) TYPE(ncclDataType_t) TYPE(ncclRedOp_t)
  TYPE(ncclComm_t) FIELD(ncclConfig_t, size) FIELD(ncclConfig_t, magic) FIELD(ncclConfig_t, version) FIELD(ncclConfig_t, blocking)
  { NULL, 0 },
};

const agreement_number *NUMBERS(void) { return list; }
