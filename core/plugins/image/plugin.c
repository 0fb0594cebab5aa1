/* plugin.c: the table of libflow_image.so: JPEG by libjpeg-turbo, GIF by giflib. The plugin links nothing of the core: memory and
 * messages come from the services that start() is given (base/plugin.h). The decoders keep nothing between calls, so that any number of
 * threads may decode at once. */
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <jpeglib.h>
#include <gif_lib.h>
#include "image/image_plugin.h"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

static const flow_plugin_services *_Atomic core;

/* Any thread, after start(): acquire pairs with its release, so that the table that it points to is seen whole. */
const flow_plugin_services *flow_image_services(void)
{
  return atomic_load_explicit(&core, memory_order_acquire);
}

/* Before any other function; again, with the same services, if two threads open the plugin at once. */
static void start(const flow_plugin_services *services)
{
  atomic_store_explicit(&core, services, memory_order_release);
}

static const flow_image_functions functions = {
  .decode_jpeg = flow_jpeg_decode, .decode_gif = flow_gif_decode, .encode_jpeg = flow_jpeg_encode,
};

__attribute__((visibility("default"))) extern const flow_plugin flow_plugin_table;
const flow_plugin flow_plugin_table = {
  .abi = FLOW_PLUGIN_ABI,
  .name = "image",
  .libraries = "libjpeg-turbo " TEXT(LIBJPEG_TURBO_VERSION) ", giflib " TEXT(GIFLIB_MAJOR) "." TEXT(GIFLIB_MINOR) "."
               TEXT(GIFLIB_RELEASE),
  .start = start,
  .functions = &functions,
};
