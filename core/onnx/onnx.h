/* core/onnx: a traced graph as a file that other runtimes read: ONNX (onnx.ai), IR version 8, operators of version 18. Uses
 * autodiff, graph, io.
 *
 *   onnx.h           an export under construction, and the functions by which rules of ops build nodes
 *   export.c         from a trace to a file: inputs, live nodes, outputs
 *   values.c         a value's form in each layout
 *   nodes.c          nodes, constants and names, of which rules build; fields.h: the field numbers
 *   elementwise.c movement.c network.c recurrent.c      the rules, and at the end of each file which rule writes which op. table.c
 *                    finds an op's
 *
 * Layouts. flowlua's images are {rows, height, width, channels}; ONNX' convolutions and poolings take {rows, channels, height,
 * width}. A value of rank 4 has a form in each layout, made on demand: a rule takes its inputs in the form that
 * it needs and says in which one its result is. Ops that work in any layout stay in that of their inputs, so that
 * transpositions are only where an image enters, and where one is flattened.
 *
 * One export is one call of flow_trace_save_onnx, on the thread of the context whose trace is open. It walks over the nodes once, in the
 * trace's order, and calls each live node's rule. Errors stay in the export (x->status), so that rules need not look after each call:
 * functions that give names give NULL from then on, and none writes. A rule looks at x->status only before it reads what such a call was
 * to give. */
#ifndef FLOW_ONNX_ONNX_H
#define FLOW_ONNX_ONNX_H

#include "graph/graph.h"
#include "io/protobuf.h"

typedef enum flow_onnx_layout { FLOW_CHANNELS_LAST, FLOW_CHANNELS_FIRST } flow_onnx_layout;

/* The message lends its memory from tensors (flow_message_lend): those of `tensors`, and those of the graph's constants and variables. All
 * of them outlive the message, which is released with the export. Names that calls give are borrowed from the export. After the first
 * failure all calls do nothing. */
typedef struct flow_onnx {
  flow_context *context;               /* runs what is computed now, by flow_apply on concrete tensors */
  flow_graph *graph;                   /* of the open trace, without loops; no value is added while the export runs */
  flow_message  message;               /* of the model, in its field `graph` */
  flow_status status;                  /* the first failure; its message is that of flow_fail */
  const char  **names[2];              /* [layout][value]: the form in that layout, NULL: not made yet */
  flow_tensor **known;                 /* [value]: what a RESULT is in every run, where it could be computed; borrowed from tensors */
  const char   *input;                 /* some input that carries rows, NULL: none; and its first dimension as a tensor {1} */
  int64_t       input_rows;
  const char   *rows;
  int made;                            /* names that were made up so far: the number in the next one is one more */
  const char *const *input_names, *const *output_names; /* the caller's, which no tensor of the file may have */
  int input_count, output_count;
  void        **kept;                  /* memory that lives as long as the export */
  int           kept_count, kept_capacity;
  flow_tensor **tensors;               /* the same for tensors */
  int           tensor_count, tensor_capacity;
} flow_onnx;

/* Writes the nodes of one node of the graph, and says by flow_onnx_result or flow_onnx_set what each output that is read later is
 * called. */
typedef void (*flow_onnx_rule)(flow_onnx *x, const flow_node *node, const char *type);
typedef struct flow_onnx_record {
  int op;
  flow_onnx_rule rule;
  const char *type;                    /* the node's name in ONNX, which the rule gets; NULL: it makes none */
  unsigned       reads;                /* inputs whose values the rule uses, as a mask; 0: all */
  /* The values of the graph that the rule reads, where these are not the node's inputs: returns how many, at most FLOW_MAX_OPERANDS. */
  int (*values)(const flow_graph *graph, const flow_node *node, int *values);
} flow_onnx_record;

/* The record of an op; NULL: it has no ONNX form, and cannot be exported. These are ops of training steps, of data pipelines and of what
 * plans make, random numbers, affine sampling and decompositions of matrices. */
const flow_onnx_record *flow_onnx_of(int op);

/* The first failure stays. Returns NULL, for rules that return a name. */
const char *flow_onnx_fail(flow_onnx *x, flow_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* ---- values ---- */

/* Shape and dtype of an input of a node, as they are in the trace: borrowed. */
const flow_signature *flow_onnx_signature(const flow_onnx *x, const flow_node *node, int input);
/* The name of an input's form in a layout; of rank below 4 in channels first: a form that broadcasts against images there. */
const char *flow_onnx_input(flow_onnx *x, const flow_node *node, int input, flow_onnx_layout layout);
/* The same for any value of the graph, by its number. */
const char *flow_onnx_form(flow_onnx *x, int value, flow_onnx_layout layout);
/* Channels first if an input is an image that exists only so, and all others can join it. */
flow_onnx_layout flow_onnx_layout_of(const flow_onnx *x, const flow_node *node);
/* A fresh name for output `output`, in a layout; and a given name as that output. */
const char *flow_onnx_result(flow_onnx *x, const flow_node *node, int output, flow_onnx_layout layout);
void        flow_onnx_set(flow_onnx *x, const flow_node *node, int output, flow_onnx_layout layout, const char *name);
/* The tensor that an input is in every run (a variable, a constant, what was computed of them): on the host, contiguous, borrowed; else
 * NULL, which after a failure says nothing. */
flow_tensor *flow_onnx_static(flow_onnx *x, const flow_node *node, int input);
/* The same for any value of the graph, by its number. */
flow_tensor *flow_onnx_static_value(flow_onnx *x, int value);
/* An axis of {rows, height, width, channels} in a layout. */
int flow_onnx_axis(int axis, flow_onnx_layout layout);

/* ---- nodes: call with a result of NULL for a made-up name; give all inputs before the attributes ---- */

/* A node of one result with up to three inputs; the first that is NULL ends them. Returns the name of the result. A node with attributes
 * is made by flow_onnx_begin, one call for each attribute, and flow_onnx_end. */
const char *flow_onnx_emit(flow_onnx *x, const char *type, const char *result, const char *a, const char *b, const char *c);
void        flow_onnx_begin(flow_onnx *x, const char *type, const char *const *inputs, int count, const char *result);
void        flow_onnx_integer(flow_onnx *x, const char *name, int64_t value);
void        flow_onnx_integers(flow_onnx *x, const char *name, const int64_t *values, int count);
void        flow_onnx_text(flow_onnx *x, const char *name, const char *value);
void        flow_onnx_end(flow_onnx *x);
/* Nodes that many rules need: the axes of `name` permuted (axes[i]: the input's axis that becomes axis i), and its elements as another
 * flow_dtype. They return the name of the result. */
const char *flow_onnx_transpose(flow_onnx *x, const char *name, const int64_t *axes, int count, const char *result);
const char *flow_onnx_cast(flow_onnx *x, const char *name, int dtype, const char *result);
/* A made-up name, "/what_7", which no layer, input or output has; a copy of a given one. Both last until the export ends. */
const char *flow_onnx_name(flow_onnx *x, const char *what);
/* Whether an input or output has that name. */
int flow_onnx_is_given(const flow_onnx *x, const char *name);
const char *flow_onnx_keep_text(flow_onnx *x, const char *text);
/* An element type's number in the file: TensorProto.DataType. */
int         flow_onnx_dtype(int dtype);

/* ---- constants ---- */

const char *flow_onnx_list(flow_onnx *x, const int64_t *values, int count);            /* int64 {count} */
const char *flow_onnx_number(flow_onnx *x, int dtype, double value);                   /* a scalar */
const char *flow_onnx_tensor(flow_onnx *x, flow_tensor *tensor, const char *name);     /* contiguous; lives until the export ends */
/* A shape as an int64 tensor, where dimensions of the batch are worked out when the model runs. */
const char *flow_onnx_shape(flow_onnx *x, const flow_signature *signature);
/* Keeps a tensor (takes the reference, also when it fails) until the export ends. Returns it, NULL after a failure. */
flow_tensor *flow_onnx_keep(flow_onnx *x, flow_tensor *tensor);

/* ---- rules ---- */

/* Writes `node` as ONNX nodes, most often one of type `type`. A rule fails by flow_onnx_fail. */
#define FLOW_ONNX_RULE(name) static void rule_##name(flow_onnx *x, const flow_node *node, const char *type)

/* An op's record in the table at the end of its rule's file; FLOW_ONNX_READS also says which inputs the rule uses. */
#define FLOW_ONNX(op_, name, type_)                         \
  {                                                         \
    .op = FLOW_OP_##op_, .rule = rule_##name, .type = type_ \
  }
#define FLOW_ONNX_READS(op_, name, type_, reads_)                            \
  {                                                                          \
    .op = FLOW_OP_##op_, .rule = rule_##name, .type = type_, .reads = reads_ \
  }

/* Each file's ops; the last record has no rule. */
extern const flow_onnx_record flow_onnx_elementwise[], flow_onnx_movement[], flow_onnx_network[], flow_onnx_recurrent[];

#endif
