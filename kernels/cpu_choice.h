/* cpu_choice.h: which of the CPU's builds of kernels the process uses, where that changes after the first choice (flow_cpu_device of
 * kernels.h). */
#ifndef FLOW_CPU_CHOICE_H
#define FLOW_CPU_CHOICE_H

/* What is laid out or run from now on, in the whole process, uses the kernels of this build, "avx2"; instances keep theirs until they are
 * laid out again. Nothing happens if this machine cannot run it. Any thread. */
void flow_cpu_use(const char *isa);

#endif
