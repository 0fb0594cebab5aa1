/* names.h: "did you mean": finds the valid name that is nearest to a given one. flow_nearest_name and flow_snake_case are in flow.h. */
#ifndef FLOW_BASE_NAMES_H
#define FLOW_BASE_NAMES_H

/* Offer every right name, then read `best`: NULL when none is near enough to be a typing error. Among equally near names it is
 * the one that was offered first. */
typedef struct flow_suggestion { const char *asked, *best; int distance; } flow_suggestion;

/* asked: kept, not copied. */
flow_suggestion flow_suggestion_for(const char *asked);
void flow_suggestion_offer(flow_suggestion *suggestion, const char *name);   /* keeps the pointer */

/* `; did you mean "filters"?` in the caller's buffer, or "" without a suggestion. Returns the buffer. */
enum { FLOW_SUGGESTION_SIZE = 128 };
const char *flow_suggestion_text(const flow_suggestion *suggestion, char text[FLOW_SUGGESTION_SIZE]);

#endif
