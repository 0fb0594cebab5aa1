/* accelerators.c: which accelerators this process can use. The plugin is opened at the first question, and its answer is kept. */
#include <pthread.h>
#include <stdatomic.h>

#include "base/plugin.h"
#include "tensor/place.h"

enum { WHY_BYTES = 512 };

/* The one answer per process; written under the lock, before `asked`. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int asked;
static const flow_accelerator_table *table;
static int count;
static char why[WHY_BYTES];

/* Opens the plugin and asks it how many devices there are. By the holder of the lock. */
static void ask(void)
{
  const flow_plugin *plugin;
  if (flow_plugin_open("cuda", &plugin) != FLOW_OK) {
    flow_text text = flow_text_into(why, sizeof why);
    flow_text_add(&text, "%s", flow_last_error());
    return;
  }
  table = plugin->functions;
  count = table->count(why, sizeof why);
  if (count > 0) why[0] = 0;
}

/* The first caller opens the plugin and asks it, others wait for the answer. A failure is kept as "none", with its reason. */
int flow_gpu_count(void)
{
  if (atomic_load_explicit(&asked, memory_order_acquire)) return count;
  pthread_mutex_lock(&lock);
  if (!atomic_load_explicit(&asked, memory_order_relaxed)) ask();
  atomic_store_explicit(&asked, 1, memory_order_release);
  pthread_mutex_unlock(&lock);
  return count;
}

const char *flow_gpu_missing(void)
{
  flow_gpu_count();
  return why;
}

/* Borrowed: an accelerator lives as long as the process. */
flow_status flow_accelerator_open(int device, const flow_accelerator **out)
{
  int there = flow_gpu_count();
  *out = NULL;
  if (there == 0) return flow_fail(FLOW_NOT_FOUND, "there is no GPU: %s", why);
  if (device < 0 || device >= there)
    return flow_fail(FLOW_NOT_FOUND, "there is no device gpu:%d: this process has %d, counted from gpu:0", device, there);
  return table->open(device, out);
}

/* ---- C API ------------------------------------------------------------------------------------------------------------------- */

flow_status flow_gpu_describe(int device, const char **description, double *memory_bytes)
{
  const flow_accelerator *accelerator;
  FLOW_TRY(flow_accelerator_open(device, &accelerator));
  *description = accelerator->description;
  *memory_bytes = accelerator->memory_bytes;
  return FLOW_OK;
}

double flow_gpu_free_memory(int device)
{
  const flow_accelerator *accelerator;
  return flow_accelerator_open(device, &accelerator) == FLOW_OK ? accelerator->functions->free_memory(accelerator) : 0;
}

static double counted(const flow_accelerator *accelerator, flow_traffic_kind kind)
{
  return (double)atomic_load_explicit(&accelerator->traffic->counts[kind], memory_order_relaxed);
}

flow_status flow_gpu_read_traffic(int device, flow_gpu_traffic *out)
{
  const flow_accelerator *a;
  FLOW_TRY(flow_accelerator_open(device, &a));
  *out = (flow_gpu_traffic){
    .uploads = counted(a, FLOW_TRAFFIC_UPLOADS), .uploaded_bytes = counted(a, FLOW_TRAFFIC_UPLOADED_BYTES),
    .downloads = counted(a, FLOW_TRAFFIC_DOWNLOADS), .downloaded_bytes = counted(a, FLOW_TRAFFIC_DOWNLOADED_BYTES),
    .waits = counted(a, FLOW_TRAFFIC_WAITS), .replays = counted(a, FLOW_TRAFFIC_REPLAYS) };
  return FLOW_OK;
}
