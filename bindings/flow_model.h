/* flow_model.h: a part of flow.h: models from files for programs without Lua, and JSON values.
 *
 *   flow_model_load(context, "digits.keras", &model);              a new reference
 *   flow_model_predict(context, model, &x, 1, &y);                 x {n, ...}: any number of rows; y: a new reference
 *   flow_model_train(context, model, &x, 1, labels, &loss);        one step, with what the file was compiled with
 *   flow_model_save(model, "digits.keras"); */
#ifndef FLOW_MODEL_H
#define FLOW_MODEL_H

/* ---- models ---------------------------------------------------------------------------------------------------------- */

/* Models of .keras files without Lua: Sequential and Functional, nested or not, of the library's own layers. What a file holds
 * that is not known is named.
 *
 * Threads share a model: each with its own context, they may predict, train, save, retain and release it at the same time. Its
 * weights exist once. A prediction takes memory for its intermediate values from a pool of the model; predictions go on side by side, a
 * step of training is alone, and waits for predictions that began before it, as later ones wait for it. The bits of a prediction
 * do not depend on what other threads do. Tensors that are given or returned belong to the caller; the message of a failure is the
 * calling thread's. */

/* Reads a .keras file. FLOW_NOT_FOUND, FLOW_CORRUPT_DATA, or FLOW_UNSUPPORTED, which names the layer. New reference. */
FLOW_API flow_status flow_model_load(flow_context *context, const char *path, flow_model **out);
/* The model of this file that the process has already, or else a new one: callers that open the same file, the same by device, inode,
 * size and time of its last change, share one copy of the weights, and a file that was replaced is another one. It predicts: its optimizer
 * is not read, and flow_model_train gives FLOW_INVALID_STATE. New reference; with the last one the weights are freed. From any thread.
 * Errors as of flow_model_load; FLOW_INVALID_STATE if the file was replaced again and again while it was read. */
FLOW_API flow_status flow_model_share(flow_context *context, const char *path, flow_model **out);
/* One more reference. From any thread. */
FLOW_API flow_model *flow_model_retain(flow_model *model);
/* One reference less. NULL is fine. From any thread. */
FLOW_API void        flow_model_release(flow_model *model);
/* Writes a .keras file with weights and the state of the optimizer; if that fails an older file of this name is still there. */
FLOW_API flow_status flow_model_save(const flow_model *model, const char *path);
/* How many inputs it has. */
FLOW_API int         flow_model_input_count(const flow_model *model);
/* How many outputs it has. */
FLOW_API int         flow_model_output_count(const flow_model *model);
/* Name of an input, from 0. Borrowed; NULL: no more. */
FLOW_API const char *flow_model_input_name(const flow_model *model, int index);
/* Its flow_dtype; inputs of other dtypes are cast. */
FLOW_API int         flow_model_input_dtype(const flow_model *model, int index);
/* Its number of dimensions, the batch included. */
FLOW_API int         flow_model_input_rank(const flow_model *model, int index);
/* The size of an axis, from 0; -1: any size will do, as for axis 0, the rows. */
FLOW_API double      flow_model_input_dim(const flow_model *model, int index, int axis);
/* Runs the model on any number of rows, 32 at a time; inputs are cast to its dtypes. outputs: flow_model_output_count new references. */
FLOW_API flow_status flow_model_predict(flow_context *context, flow_model *model, flow_tensor *const *inputs, int count,
                                        flow_tensor **outputs);
/* One step of training on this batch with the loss and the optimizer of the file. loss (may be NULL): before the step. */
FLOW_API flow_status flow_model_train(flow_context *context, flow_model *model, flow_tensor *const *inputs, int count, flow_tensor *targets,
                                      double *loss);

/* A session keeps its own memory for predictions with a model, which it retains: a thread that answers requests takes none from the
 * pool and gives none back. For one thread at a time: FLOW_INVALID_STATE while another one predicts with it. */

/* New reference. */
FLOW_API flow_status flow_session_new(flow_model *model, flow_session **out);
/* As flow_model_predict. */
FLOW_API flow_status flow_session_predict(flow_context *context, flow_session *session, flow_tensor *const *inputs, int count,
                                          flow_tensor **outputs);
/* NULL is fine. */
FLOW_API void        flow_session_release(flow_session *session);

/* ---- operations of keras.ops ------------------------------------------------------------------------------------------ */

/* What .keras files call operations that are one op: writes row `index`, counted from 0, of a table, for example
 * "logsumexp Logsumexp math 1 reduction": the op, Keras' class, its module in keras.src.ops, the number of tensors that a call takes, and
 * "reduction" if the config holds axis and keepdims, else "plain". Returns the length of the row, and writes at most size bytes of it
 * with a 0 at the end; 0: there are no more. */
FLOW_API int         flow_operation_row(int index, char *text, int size);

/* ---- JSON ------------------------------------------------------------------------------------------------------------ */

enum { FLOW_JSON_NULL = 0, FLOW_JSON_BOOLEAN, FLOW_JSON_NUMBER, FLOW_JSON_TEXT, FLOW_JSON_LIST, FLOW_JSON_OBJECT,
       FLOW_JSON_REAL,             /* only to add: a number that is written with a decimal point */
       FLOW_JSON_PRINTED };        /* only to add: text that is JSON already */
FLOW_API flow_status flow_json_parse(const char *text, double bytes, flow_json **out);   /* one value and nothing after it; new reference */
/* Releases a root with everything in it. NULL is fine. */
FLOW_API void        flow_json_release(flow_json *root);
/* FLOW_JSON_NULL to FLOW_JSON_OBJECT. */
FLOW_API int         flow_json_kind(const flow_json *json);
/* The first entry of a list or an object. Borrowed from the root; NULL: empty. */
FLOW_API const flow_json *flow_json_child(const flow_json *json);
/* The entry after this one. Borrowed; NULL: it was the last. */
FLOW_API const flow_json *flow_json_next(const flow_json *json);
/* The key of an entry of an object. Borrowed. */
FLOW_API const char *flow_json_key(const flow_json *json);
/* The text of a value of that kind. Borrowed. */
FLOW_API const char *flow_json_text(const flow_json *json);
/* A number; 1 or 0 of a boolean. */
FLOW_API double      flow_json_number(const flow_json *json);
/* An empty object or list. New reference. */
FLOW_API flow_status flow_json_new(int kind, flow_json **out);
/* Appends a value; key: in objects. child (may be NULL): the value itself, borrowed, to add to. */
FLOW_API flow_status flow_json_add(flow_json *parent, const char *key, int kind, double number, const char *text, flow_json **child);
/* Returns the length of the whole text, and writes at most size bytes of it; -1: out of memory. */
FLOW_API int         flow_json_print(const flow_json *json, char *text, int size);

#endif
