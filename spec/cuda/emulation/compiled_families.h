/* compiled_families.h of the emulated CUDA runtime: in place of images of machine code, two names by which kernels.c knows what it holds:
 * those that stand in for NVIDIA's libraries, and the kernels of all families; of two images with a kernel the first has it. */
#define FLOW_CUDA_IMAGES(X) X(libraries, EMULATED_LIBRARY_KERNELS) X(families, FLOW_CUDA_KERNELS)
