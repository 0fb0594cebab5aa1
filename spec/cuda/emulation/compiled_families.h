/* compiled_families.h of the emulated CUDA runtime: in place of images of machine code, two names by which kernels.c knows what it holds:
 * the kernels of all families, and those that stand in for NVIDIA's libraries. */
#define FLOW_CUDA_IMAGES(X) X(families) X(libraries)
