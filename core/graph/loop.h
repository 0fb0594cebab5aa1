/* loop.h: a loop in a graph is one node, however many rounds it makes. It has its own graph, its body, which was traced once: inputs of
 * the body are the states, one row of each tensor that the loop goes along, and what the body closes over; its results are the next states
 * and what a round gives besides. The node's inputs are the first states, the tensors whose rows they are, and what the body closes over;
 * its outputs are the last states, the results of all rounds, stacked, and the states before each round, stacked, which the gradient needs:
 * it is a loop, too, that goes the other way and computes each round once more (autodiff/gradient_loop.c). What nothing reads is not kept.
 *
 * A loop may have a gate: one of the body's states or rows, a bool without axes. In rounds in which it is false the body gives the states
 * back as they are, and zeros as its other results, so that the host leaves these rounds out; where the gate is a state they are the rest.
 * The gradient of such a loop has the same rounds: the gate is one of its rows.
 *
 * Bodies read variables and write none, and hold no sums over replicas: a function that does more is written out, round after round. */
#ifndef FLOW_GRAPH_LOOP_H
#define FLOW_GRAPH_LOOP_H

#include "graph/context.h"

/* A loop of a trace: its body is a separate graph, which a plan runs `rounds` times. */
struct flow_loop {
  flow_counted counted;
  flow_graph  *body;                     /* closed, of live nodes only; a reference */
  int          states, rows, results;    /* how many; inputs after states and rows are what the body closes over */
  int         *values;                   /* [result]: of the body; the next states first */
  int64_t      rounds;
  int          reverse;                  /* from the last row to the first */
  int          gate;                     /* input of the body that says whether a round does something; -1: none */
  flow_plan   *plan;                     /* of the body, for the host; made with the first plan that holds the loop. A reference */
  void       (*release_plan)(flow_plan *plan);
};

/* *out holds a reference to body; values: of it. */
flow_status flow_loop_new(flow_graph *body, int states, int rows, const int *values, int results, int64_t rounds, int reverse,
                          int gate, flow_loop **out);
flow_loop  *flow_loop_retain(flow_loop *loop);
void        flow_loop_release(flow_loop *loop);      /* NULL is fine */

/* The row that a round takes. */
static inline int64_t flow_loop_row(const flow_loop *loop, int64_t round) { return loop->reverse ? loop->rounds - 1 - round : round; }

/* The loop of a node of that op. */
static inline flow_loop *flow_loop_of(const flow_graph *graph, const flow_node *node) { return graph->loops[node->attributes.loop.number]; }
/* Appends the node of a loop. outputs: states + (results - states) + states values. */
flow_status flow_loop_append(flow_graph *graph, flow_loop *loop, const int *inputs, int input_count, int *outputs);

/* Whether `inner` is the body of a loop that is traced within `outer`, or within such a body. */
int         flow_graph_encloses(const flow_graph *outer, const flow_graph *inner);
/* The input of a body that stands for a tensor of a trace around it. */
flow_status flow_graph_close_over(flow_graph *body, flow_tensor *tensor, int *value);

/* Keys of the random ops in the rounds of a loop: makes the attributes of an op those of the round that takes this row. stream: of the
 * loop's node. Every round draws its own numbers, and draws them again where the gradient computes it again. What all rounds are to have in
 * common is made outside: flow_loop_leave. */
void        flow_loop_key(int op, flow_attributes *attributes, uint64_t stream, int64_t row);
/* Between the two, ops belong to the trace around the body that is innermost, if one is. */
flow_graph *flow_loop_leave(flow_context *context);
void        flow_loop_return(flow_context *context, flow_graph *body);
/* Appends copies of all nodes of `from`. map[value of from]: that of `to`, which the caller sets for inputs, and -1 for the others. stream:
 * of the node of the loop of which `from` is the body: the copies are those of the round that takes `row`; NULL: as they are. */
flow_status flow_graph_copy_nodes(flow_graph *to, const flow_graph *from, int *map, const uint64_t *stream, int64_t row);
/* map[value], where constants get one when they are first wanted. */
flow_status flow_graph_copy_value(flow_graph *to, const flow_graph *from, int *map, int value, int *out);

/* Writes all loops of a graph out, round after round, for devices and files, which have no loops. outputs[] are replaced, too. unroll.c */
flow_status flow_graph_unroll(flow_graph *graph, int *outputs, int count);

#endif
