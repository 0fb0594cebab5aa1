/* generator.h: questions that a pass asks its caller: the next element of a generator written in Lua, the dataset that interleave's
 * function makes of an element.
 *
 * No thread of the engine enters Lua. A pass over a pipeline that asks runs on its own thread (the pump). A thread of the pass
 * that has a question adds it to a list and waits. flow_iterator_next, called by Lua, returns the question instead of an element;
 * Lua answers with flow_iterator_answer and calls flow_iterator_next again. The pump works only while the caller waits for an
 * element, so a generator is never asked further than a stage below (prefetch) wants. */
#ifndef FLOW_DATA_SOURCES_GENERATOR_H
#define FLOW_DATA_SOURCES_GENERATOR_H

#include "data/iterator.h"

/* Asks callback number `callback` with the argument (NULL: none) and waits for the answer: an element (count 0: the end), or a
 * dataset, a new reference, if `dataset` is not NULL. `pass` tells passes over one generator apart. */
flow_status flow_ask(flow_iterator *iterator, int callback, int64_t pass, const flow_element *argument, flow_element *element,
                     flow_dataset **dataset);
int64_t     flow_next_pass(flow_iterator *iterator);

/* flow_iterator_next of a pipeline that asks. produce: what the pump runs. */
flow_status flow_pump_next(flow_iterator *iterator, flow_status (*produce)(flow_iterator *, flow_element *), flow_element *out);
void        flow_pump_stop(flow_iterator *iterator);       /* after flow_iterator_cancel: joins the pump */
void        flow_pump_release(flow_iterator *iterator);    /* when all cursors are closed */

#endif
