/* plugin.c: what libflow_cuda.so exports, and the core's functions as the plugin's files know them: it links nothing of libflow. */
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include "base/memory.h"
#include "base/plugin.h"
#include "cuda/runtime/device_table.h"
#include "cuda/runtime/libraries.h"

static const flow_plugin_services *_Atomic core;

static const flow_plugin_services *services(void)
{
  return atomic_load_explicit(&core, memory_order_acquire);
}

flow_status flow_alloc(size_t bytes, void **out)
{
  return services()->alloc(bytes, out);
}

void flow_free(void *block)
{
  services()->free(block);
}

static _Thread_local char text[1024];

flow_status flow_fail(flow_status status, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return services()->fail(status, "%s", text);
}

flow_status flow_fail_field(flow_status status, flow_error_field field, double value)
{
  return services()->fail_field(status, field, value);
}

/* Of failures in here. */
const char *flow_last_error(void)
{
  return text;
}

static void start(const flow_plugin_services *given)
{
  atomic_store_explicit(&core, given, memory_order_release);
}

static char found_text[1024];

static void look(void)
{
  char why[FLOW_ACCELERATOR_TEXT] = "", libraries[FLOW_CUDA_LIBRARY_COUNT][256];
  int count = flow_cuda_table.count(why, sizeof why);
  if (count > 0) snprintf(why, sizeof why, "%d GPU%s", count, count > 1 ? "s" : "");
  for (int i = 0; i < FLOW_CUDA_LIBRARY_COUNT; i++) flow_cuda_library_text((flow_cuda_library)i, libraries[i], sizeof libraries[i]);
  snprintf(found_text, sizeof found_text, "%s; %s; %s, %s, %s", FLOW_CUDA_BUILD, why, libraries[0], libraries[1], libraries[2]);
}

static const char *found(void)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, look);
  return found_text;
}

extern const flow_plugin flow_plugin_table;
__attribute__((visibility("default"))) const flow_plugin flow_plugin_table = {
  .abi = FLOW_PLUGIN_ABI, .name = "cuda", .libraries = FLOW_CUDA_BUILD, .start = start, .found = found, .functions = &flow_cuda_table,
};
