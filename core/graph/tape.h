/* tape.h: what a tape remembers. Inside a trace a tape is a range of the trace's nodes. Eagerly it keeps a graph of its
 * own, in which every value holds its concrete tensor. Differentiation (autodiff.c) sees the same nodes in both cases. */
#ifndef FLOW_GRAPH_TAPE_H
#define FLOW_GRAPH_TAPE_H

#include "graph/context.h"

/* What was done while the tape was open: a part of the open trace, or a separate graph whose values are the tensors that eager ops
 * made. */
struct flow_tape {
  _Atomic int       references;
  flow_graph       *graph;         /* the trace's, or the tape's own; a reference */
  int               traced;
  int               begin, end;    /* nodes of the graph; end is -1 while recording */
  flow_tensor_index values;        /* eager: of the tensors that are recorded */
};

/* The value of a tensor on this tape, or -1. */
int flow_tape_find(const flow_tape *tape, const flow_tensor *tensor);

#endif
