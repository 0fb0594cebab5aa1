/* event.c: a record of an event file: every summary, as each of the kinds that the board shows.
 * sources: core/tensorboard/event_reader.c */
#include "fuzz.h"
#include "tensorboard/event_reader.h"

enum { MOST_PICTURES = 64 };

static void event(const uint8_t *bytes, size_t count)
{
  flow_event found;
  flow_summary summary;
  double number, *rows = malloc(FLOW_SUMMARY_ROOM * sizeof(double));
  volatile uint64_t read = 0;
  if (!rows) abort();
  if (flow_event_read(bytes, count, &found)) {
    while (flow_event_next(&found, &summary)) {
      flow_summary_number(&summary, &number);
      int histogram = flow_summary_histogram(&summary, rows), pictures = flow_summary_pictures(&summary);
      if (histogram < -1 || histogram > FLOW_SUMMARY_BUCKETS || pictures < 0) abort();
      for (int i = 0; i <= pictures && i < MOST_PICTURES; i++) {
        flow_bytes file = flow_summary_picture(&summary, i);
        for (uint64_t k = 0; k < flow_bytes_left(&file); k++) read += file.next[k];
      }
      flow_bytes text = flow_summary_text(&summary);
      for (uint64_t k = 0; k < flow_bytes_left(&text); k++) read += text.next[k];
    }
  }
  (void)read;
  free(rows);
}

FUZZ_TARGET(event)
