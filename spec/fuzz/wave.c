/* wave.c: sounds: as long as they are, and of a number of samples. */
#include "fuzz.h"

static void wave(const uint8_t *bytes, size_t count)
{
  char path[64];
  int rate, descriptor = fuzz_file(bytes, count, path);
  const double samples[] = { -1, 7, 3 };
  for (int i = 0; i < 3; i++) {
    flow_tensor *sound;
    flow_status status = flow_wave_load(path, samples[i], &rate, &sound);
    if (status == FLOW_OK && i > 0 && flow_tensor_dim(sound, 0) != (int64_t)samples[i]) abort();
    flow_tensor_release(sound);
  }
  close(descriptor);
}

FUZZ_TARGET(wave)
