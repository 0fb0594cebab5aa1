/* plugin.h: parts of flowlua that need a library which may be missing. libflow_NAME.so is opened on first use and
 * exports one const table, `flow_plugin_table`, whose interface number is compared. A plugin links nothing of libflow:
 * what it needs of the core is handed to it in flow_plugin_services.
 *
 * It is looked for in the folder flowlua beside libflow, where installations have it, in libflow's own, where a build has it (a program
 * that has the core linked in: also in ../lib beside it), or in the folder that the environment variable FLOW_PLUGINS names, and only
 * there. */
#ifndef FLOW_BASE_PLUGIN_H
#define FLOW_BASE_PLUGIN_H

#include "base/status.h"

enum { FLOW_PLUGIN_ABI = 9 };      /* of these structs and of every table of functions after them */

/* The core's functions, as base/memory.h and base/status.h describe them. */
typedef struct flow_plugin_services {
  flow_status (*alloc)(size_t bytes, void **out);
  void        (*free)(void *block);
  flow_status (*fail)(flow_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
  flow_status (*fail_field)(flow_status status, flow_error_field field, double value);
} flow_plugin_services;

typedef struct flow_plugin {
  int         abi;                 /* FLOW_PLUGIN_ABI of the header that it was compiled with; always the first member */
  const char *name;                /* "image" */
  const char *libraries;           /* what it brings along, for people: "libjpeg-turbo 2.1.5, giflib 5.2.1" */
  void      (*start)(const flow_plugin_services *services);   /* may be called again, with the same services */
  const char *(*found)(void);      /* (optional) the same and what of it this machine has, looked for when it is called; static */
  const void *functions;           /* a const struct that the plugin's own header declares */
} flow_plugin;

/* Finds the plugin, which stays open from then on. FLOW_NOT_FOUND with one sentence that says what is missing and what to
 * install; FLOW_UNSUPPORTED for one with another interface number. Any thread; a failed search is made again. */
flow_status flow_plugin_open(const char *name, const flow_plugin **out);

#endif
