/* watched_bodies.c: bodies.c again, for launches whose accesses are watched. spec/tests.cmake compiles it as kernels of operating systems
 * are for AddressSanitizer: by calls, of functions that are ours (bounds.c). */
#define EMULATED_BODIES emulated_watched_bodies
#include "cuda/emulation/bodies.c"
