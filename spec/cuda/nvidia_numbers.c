/* nvidia_numbers.c: agreement.h with NVIDIA's headers. */
#define NUMBERS nvidia_numbers
#include "agreement.h"
