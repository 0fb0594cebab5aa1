/* emulated_numbers.c: agreement.h with the emulation's headers. */
#define NUMBERS emulated_numbers
#include "agreement.h"
