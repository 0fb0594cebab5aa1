/* raced_bodies.c: bodies.c again, for launches whose threads are compared with each other. spec/tests.cmake compiles it as for
 * ThreadSanitizer, of which each load and each store is a call, of functions that are ours (bounds.c). Here bodies say which thread they
 * are, and where their barriers are, which else is known where they are called (kernels.c). */
#define EMULATED_BODIES emulated_raced_bodies
#define WATCH_ELEMENT(index) (emulated_here.block = (index) / BLOCK_THREADS, emulated_here.thread = (int)((index) % BLOCK_THREADS))
#define WATCH_THREAD(number) (emulated_here.thread = (number))
#define WATCH_TOGETHER() emulated_together()
#define WATCH_BARRIER() (emulated_together(), emulated_here.barrier++)
#define WATCH_ARRIVAL(counter, last) emulated_arrive(counter, last)
#include "cuda/emulation/bodies.c"
