/* core/graph: graphs of ops, and the contexts that trace them. Uses base, tensor, ops. Reading order:
 *   graph.h          the list of nodes that a trace appends to (and an eager tape remembers)
 *   context.h        one caller: its stack of traces, its recording tapes, its seed
 *   variable.h       tensors that outlive a step, and their versions within a trace
 *   tape.h           what an eager tape remembers
 *   tensor_index.h   which value stands for a tensor
 *   loop.h           a loop as one node, with its own graph
 *   profile.h        where the time of a caller's ops goes
 * Next, core/autodiff appends gradients to a graph, core/plan makes a plan of it, core/run runs the plan.
 *
 * graph.h: values and nodes in static single assignment: every value is written once, by its node. */
#ifndef FLOW_GRAPH_GRAPH_H
#define FLOW_GRAPH_GRAPH_H

#include "base/counted.h"
#include "base/memory.h"
#include "graph/tensor_index.h"
#include "ops/op.h"

typedef enum flow_value_kind {
  FLOW_VALUE_INPUT,      /* given at every run */
  FLOW_VALUE_CONSTANT,   /* a concrete tensor that was captured */
  FLOW_VALUE_VARIABLE,   /* a variable's storage at the start of the run, or, if late, after the effects before it */
  FLOW_VALUE_RESULT      /* output of a node */
} flow_value_kind;

/* A tensor of a trace before there are numbers. Values are numbered in the order in which they were added. */
typedef struct flow_value {
  flow_value_kind kind;
  flow_signature  signature;
  int             node, output;     /* RESULT: who makes it */
  /* VARIABLE: read after an update in place; its users run in the commit tail. RESULT: it is updated in place (advance_updates.h) */
  int             late;
  /* RESULT: a cast to bfloat16 that a policy asked for, on the CPU: ops that compute in float32 read what was cast (flow_graph_wide) */
  int             loose;
  int             swallowed;        /* RESULT: is inside a fused op, so nothing flows back to it */
  int lasting;                      /* RESULT of a device: lasts from run to run, as long as only this plan writes what it is made of */
  flow_tensor    *tensor;           /* CONSTANT; any value of an eager tape. A reference */
  flow_variable  *variable;         /* VARIABLE, or a RESULT that reading it yields after it was written. A reference */
} flow_value;

/* One call of an op in a trace. Nodes are in an order in which they can run. */
typedef struct flow_node {
  int             op;
  int             input_count, output_count;
  int            *inputs, *outputs;   /* values; one block, inputs first */
  /* Inputs were bfloat16, or a policy wanted that: products may round the float32 numbers that they multiply to it. Optimizers with
   * products: bit i is for the i-th of them. */
  int             bfloat16;
  flow_attributes attributes;
} flow_node;

typedef struct flow_reading { flow_variable *variable; int value; } flow_reading;

/* flow_context_set_network */
typedef struct flow_network { int workers, gradient_bytes; double rows; } flow_network;

typedef struct flow_loop flow_loop;      /* loop.h */
typedef struct flow_graph flow_graph;

struct flow_graph {
  flow_counted  counted;             /* first: tensors hold references without knowing more */
  _Atomic int   owners;              /* those references that are traces, tapes, loops and plans; the others are of symbolic tensors */
  int           exact;               /* kernels may not trade rounding for speed */
  int           gathers;             /* flow_gathers: the replicas' rows can be put together */
  flow_network  network;             /* over which they are, with FLOW_GATHERS_MESSAGES */
  int           replicas;            /* what is traced is done by this many at the same time, each on its part of the batch; 1: alone */
  flow_place   *place;               /* where it runs, a reference; NULL: on the CPU */
  int           closed;              /* the trace has ended: no node may be added, symbolic tensors are used up */
  flow_value   *values;
  int           value_count, value_capacity;
  flow_node    *nodes;
  int           node_count, node_capacity;
  int          *inputs;              /* INPUT values in the order of their creation */
  int           input_count, input_capacity;
  flow_tensor_index constants;       /* the values of tensors that were captured */
  flow_reading *versions;            /* the value that reading a variable yields now */
  int           version_count, version_capacity;
  flow_loop   **loops;               /* those of its nodes; references */
  int           loop_count, loop_capacity;
  flow_graph   *outer;               /* of a loop's body, while it is traced: the trace around it, borrowed */
  int loop_states, loop_rows;        /* of a loop's body: how many inputs are states, and how many, after them, are rows */
  int loop_gate;                     /* of a loop's body: the input that is its gate, from 1; 0: none */
  int written_out;                   /* of a loop's body: its loop is written out, since what a round makes is wanted outside */
  int *outer_values;                 /* [input] of a loop's body: the value of the outer trace that it is, or is a row of */
  int           outer_capacity;
  const void **drawers; /* who drew random numbers, in this order; NULL: a call without an owner */
  int drawer_count, drawer_capacity;
};

/* An owner may compute with the graph. With the last of them the graph gives back its variables, constants and loops: a symbolic
 * tensor that the host's collector has not found yet keeps the description alone, not the memory of a model. */
flow_status flow_graph_new(flow_graph **out);
flow_graph *flow_graph_retain(flow_graph *graph);
void        flow_graph_release(flow_graph *graph);

/* Each appends one value and gives its index. */
flow_status flow_graph_input(flow_graph *graph, const flow_signature *signature, int *value);
flow_status flow_graph_constant(flow_graph *graph, flow_tensor *tensor, int *value); /* the same contiguous tensor gives the same value */
flow_status flow_graph_variable(flow_graph *graph, flow_variable *variable, int late, int *value);
/* The value of an operand: a symbolic tensor's own, a constant for a concrete one, or, in the body of a loop, an input for one of a trace
 * around it. */
flow_status flow_graph_operand(flow_graph *graph, flow_tensor *tensor, int *value);

/* A number for the draws of a call. The outermost trace counts them, loops' bodies included, so that a function that is traced again gets
 * the same numbers, whatever its layers are called. owner: has one number for all its calls in the trace; NULL: a new number. */
flow_status flow_graph_draw(flow_graph *graph, const void *owner, int *number);
/* The same, counted from 0 for each owner, which is not NULL. */
flow_status flow_graph_draw_again(flow_graph *graph, const void *owner, int *number);

/* How many such numbers were given; and a return to such a count, after which the same numbers are given again. */
int flow_graph_drawn(const flow_graph *graph);
void flow_graph_draw_back(flow_graph *graph, int drawn);

/* Appends a node with new RESULT values for its outputs; their indices land in outputs[]. */
flow_status flow_graph_append(flow_graph *graph, int op, const int *inputs, int input_count, const flow_attributes *attributes,
                              const flow_signature *output_signatures, int *outputs);
/* The same with as many outputs as are asked for, of ops whose record does not say how many they are. */
flow_status flow_graph_append_with(flow_graph *graph, int op, const int *inputs, int input_count, const flow_attributes *attributes,
                                   const flow_signature *output_signatures, int output_count, int *outputs);
/* The same in front of node `index`; that node and those after it move on by one. The inputs are values of earlier nodes. */
flow_status flow_graph_insert(flow_graph *graph, int index, int op, const int *inputs, int input_count, const flow_attributes *attributes,
                              const flow_signature *output_signatures, int *outputs);
/* Inserts op(a, b), without attributes and with the signature that its shape rule gives, in front of node *index. *index is raised by one,
 * so that it still names the same node. */
flow_status flow_graph_insert_pair(flow_graph *graph, int *index, int op, int a, int b, int *output);
/* Makes `node` run another op on other inputs; its outputs stay. output_count may grow: new values are appended. */
flow_status flow_graph_rewrite(flow_graph *graph, int node, int op, const int *inputs, int input_count,
                               const flow_attributes *attributes, const flow_signature *output_signatures, int output_count);
/* Readers of value v, of the first `count`, read same[v] in its place. */
void flow_graph_redirect(flow_graph *graph, const int *same, int count);

/* A tensor for a value: symbolic, or the concrete one of a constant or an eager tape. New reference. */
flow_status flow_graph_tensor(flow_graph *graph, int value, flow_tensor **out);

/* Says of a symbolic tensor that a policy had it rounded: its value is loose from now on if a cast from float32 to bfloat16 made it, its
 * trace is not exact, and the kernels that will run it compute in float32. Nothing happens to other tensors. */
void flow_graph_loosen(const flow_tensor *tensor);
/* The value that a loose tensor was cast from, in the trace of that tensor; -1: it is not loose. */
int  flow_graph_wide(const flow_tensor *tensor);

/* What reading the variable yields now; -1 if it was not touched yet. */
int         flow_graph_version(const flow_graph *graph, const flow_variable *variable);
flow_status flow_graph_set_version(flow_graph *graph, flow_variable *variable, int value);

flow_signature flow_tensor_signature(const flow_tensor *tensor);

/* Follows ALIAS ops up to the value whose memory this one is. */
int flow_graph_root(const flow_graph *graph, int value);

/* Counts readers of every value (nodes only) into uses[value_count]. */
void flow_graph_count_uses(const flow_graph *graph, int *uses);
/* Adds to uses[value_count] the readers of every value among live nodes, and two for each output, which nothing reads alone then. */
void flow_graph_count_live_uses(const flow_graph *graph, const char *live, const int *outputs, int output_count, int *uses);

/* The passes of plan/passes. fuse.c: rewrites patterns among nodes [begin, end of graph) in place; nodes that lost their readers stay until
 * dead nodes are dropped. Values that something else reads, or that are in kept[], are left alone. live: NULL while the graph grows, when
 * every node may still be needed; else as for fold_affine. */
flow_status flow_graph_fuse(flow_graph *graph, const char *live, int begin, const int *kept, int kept_count);
/* fold_affine.c: scales and shifts per channel go into the convolution before them. live[node]: reached from outputs or
 * effects. */
flow_status flow_graph_fold_affine(flow_graph *graph, const char *live, const int *outputs, int output_count);
/* fuse_quantized.c: what is around quantized convolutions goes into them. live[] as above. */
flow_status flow_graph_fuse_quantized(flow_graph *graph, const char *live, const int *outputs, int output_count);
/* fold_casts.c: casts to and from 16 bits that kernels do on their own are left out. live[] as above. */
flow_status flow_graph_fold_casts(flow_graph *graph, const char *live, const int *outputs, int output_count);
/* fuse_images.c: on a device, the images that a model begins with are rounded and scaled where they are copied for convolutions. live[] as
 * above. */
flow_status flow_graph_fuse_images(flow_graph *graph, const char *live, const int *outputs, int output_count);
/* fuse_elementwise.c: joins chains of elementwise nodes. live[node]: reached from outputs or effects. */
flow_status flow_graph_fuse_elementwise(flow_graph *graph, const char *live, const int *outputs, int output_count);
/* fuse_relu_gradient.c: on a device, the op that makes a convolution's gradient applies the gradient of the relu before it, too. live[] as
 * above. */
flow_status flow_graph_fuse_relu_gradients(flow_graph *graph, const char *live, const int *outputs, int output_count);
/* fuse_batch_norm.c: on a device, one op does a normalization and the sum and the relu after it. live[] as above. */
flow_status flow_graph_fuse_batch_norm(flow_graph *graph, const char *live, const int *outputs, int output_count);
/* fuse_convolutions.c: on the CPU, a convolution does the minimum, or the sum and the relu, after it; and one op a depthwise and a
 * pointwise one. live[] as above. */
flow_status flow_graph_fuse_ceilings(flow_graph *graph, const char *live, const int *outputs, int output_count);
flow_status flow_graph_fuse_separable(flow_graph *graph, const char *live, const int *outputs, int output_count);
flow_status flow_graph_fuse_sums(flow_graph *graph, const char *live, const int *outputs, int output_count);
/* transpose_filters.c: on a device, kernels of convolutions, and gradients of them, are transposed into the layout that it reads by one
 * node. live[] as above. */
flow_status flow_graph_transpose_filters(flow_graph *graph, const char *live, const int *outputs, int output_count);
/* join_casts.c: on a device, the casts of variables to 16 bits are one node, and updates renew what it made. live[] as above. */
flow_status flow_graph_join_casts(flow_graph *graph, const char *live, const int *outputs, int output_count);
/* fold_transposes.c: on the CPU, products read and write attention's heads where they lie. live[] as above. */
flow_status flow_graph_fold_transposes(flow_graph *graph, const char *live, const int *outputs, int output_count);
/* fuse_gather.c: on the CPU, sums of gathered rows read them in the table. live[] as above. */
flow_status flow_graph_fuse_gathers(flow_graph *graph, const char *live, const int *outputs, int output_count);
/* fuse_normalize.c: gamma and beta go into the op that normalizes. live[] as above. */
flow_status flow_graph_fuse_normalize(flow_graph *graph, const char *live, const int *outputs, int output_count);
/* fuse_attention.c: softmax(q k^T) v without the matrix of the scores. live[] as above. */
flow_status flow_graph_fuse_attention(flow_graph *graph, const char *live, const int *outputs, int output_count);
/* The same file: the gradients of those on a GPU read their results. After fold_transposes.c, which says how these lie. */
flow_status flow_graph_keep_attention(flow_graph *graph, const char *live, const int *outputs, int output_count);
/* fuse_optimizer.c: hands the gradients of large matrices to their optimizer as factors. live[] as above. */
flow_status flow_graph_fuse_optimizers(flow_graph *graph, const char *live, const int *outputs, int output_count);

#endif
