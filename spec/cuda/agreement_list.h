/* agreement_list.h: see agreement.h. The list ends with a name that is NULL. */
#ifndef FLOW_SPEC_CUDA_AGREEMENT_LIST_H
#define FLOW_SPEC_CUDA_AGREEMENT_LIST_H

#include <stddef.h>

typedef struct agreement_number { const char *name; long long value; } agreement_number;

const agreement_number *nvidia_numbers(void);
const agreement_number *emulated_numbers(void);

#endif
