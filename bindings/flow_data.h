/* flow_data.h: a part of flow.h, which includes it: datasets and passes over them. Types and conventions are explained there. */
#ifndef FLOW_DATA_H
#define FLOW_DATA_H

/* ---- data -------------------------------------------------------------------------------------------------------- */

/* An element of a dataset: the references belong to the caller that got it. Text is a uint8 tensor of rank 1.
 * count 0: the data has ended. count < 0, only from an iterator: it waits for flow_iterator_answer to a question about
 * callback number `callback`, with -1 - count tensors as arguments; `pass` tells passes over the same generator apart.
 * numbers 1, of an iterator that was told to keep rows (flow_iterator_keep_rows): its one tensor, int64 on the host, names rows of the
 * store. */
typedef struct flow_element {
  int32_t      count, callback;
  int64_t      pass, numbers;
  flow_tensor *tensors[FLOW_MAX_COMPONENTS];
} flow_element;
FLOW_API void flow_element_clear(flow_element *element); /* releases its tensors; count is 0 then */

typedef struct flow_component {
  int32_t dtype, rank, text, unused;
  int64_t shape[8];                /* -1: differs from element to element */
} flow_component;

/* Datasets. Each constructor copies what it is given; counts are whole numbers. */

/* One more reference, and one less (NULL is fine). From any thread: a description never changes. A dataset keeps those that it is made
 * of. */
FLOW_API flow_dataset *flow_dataset_retain(flow_dataset *dataset);
FLOW_API void        flow_dataset_release(flow_dataset *dataset);
/* How many tensors each element has, and of each the dtype and the shape as far as it is known. */
FLOW_API int         flow_dataset_component_count(const flow_dataset *dataset);
FLOW_API const flow_component *flow_dataset_component(const flow_dataset *dataset, int index);   /* borrowed; NULL beyond the end */
/* How many elements a pass has, as far as it follows from the description: nothing is read. */
FLOW_API double      flow_dataset_cardinality(const flow_dataset *dataset);   /* -1: infinite, -2: unknown */

/* The paths that match a glob pattern, sorted by bytes: path k is bytes offsets[k] to offsets[k + 1]. New references. */
FLOW_API flow_status flow_glob(const char *pattern, flow_tensor **bytes, flow_tensor **offsets);
/* Rows of the components, which all have as many. Component i is a list of texts where offsets[i] is not NULL (nor offsets):
 * bytes offsets[i][k] to offsets[i][k + 1] (int64 {n + 1}) of components[i] (uint8 {bytes}) are text k. */
FLOW_API flow_status flow_dataset_from_slices(flow_tensor *const *components, flow_tensor *const *offsets, int count, flow_dataset **out);
/* start, start + step, ... before stop, as scalars of the dtype. FLOW_INVALID_ARGUMENT for step 0. */
FLOW_API flow_status flow_dataset_range(double start, double stop, double step, int dtype, flow_dataset **out);
/* The same, exact for int64. */
FLOW_API flow_status flow_dataset_range_integers(int64_t start, int64_t stop, int64_t step, int dtype, flow_dataset **out);
/* Records of TFRecord files as texts. num_parallel_reads 0, 1: file by file; n: in turn from n open files, which threads read and
 * check ahead; -1: some. */
FLOW_API flow_status flow_dataset_records(const char *const *paths, int count, const char *compression_type, double num_parallel_reads,
                                          flow_dataset **out);
/* The first `count` elements of each pass. */
FLOW_API flow_status flow_dataset_take(flow_dataset *input, double count, flow_dataset **out);       /* -1: all */
/* All but the first `count`, which are made and thrown away unless a stage can leave them out unmade. */
FLOW_API flow_status flow_dataset_skip(flow_dataset *input, double count, flow_dataset **out);       /* -1: nothing is left */
/* `size` elements at a time, stacked along a new first axis; the last ones of a pass are a smaller batch, or are left out
 * (drop_remainder). FLOW_INVALID_ARGUMENT comes with the first elements whose shapes differ. */
FLOW_API flow_status flow_dataset_batch(flow_dataset *input, double size, int drop_remainder, flow_dataset **out);
/* tf.data's order for this pair of seeds. reshuffle: each pass, and each epoch of a repeated dataset, has its own order. */
FLOW_API flow_status flow_dataset_shuffle(flow_dataset *input, double size, double seed, double seed2, int reshuffle, flow_dataset **out);
/* `count` passes, one after the other. */
FLOW_API flow_status flow_dataset_repeat(flow_dataset *input, double count, flow_dataset **out);     /* -1: for ever */
/* Elements of all inputs at once, components one after the other, until the first input ends. */
FLOW_API flow_status flow_dataset_zip(flow_dataset *const *inputs, int count, flow_dataset **out);
/* One after the other. FLOW_INVALID_ARGUMENT unless both have as many components, of the same dtypes and ranks. */
FLOW_API flow_status flow_dataset_concatenate(flow_dataset *first, flow_dataset *second, flow_dataset **out);
/* Elements index, index + count, index + 2 count, ... of each pass. count -1: all, until
 * flow_dataset_auto_shard, with the policy FLOW_SHARD_HINT, puts a worker's numbers in. */
FLOW_API flow_status flow_dataset_shard(flow_dataset *input, double count, double index, flow_dataset **out);
/* A thread makes up to `size` elements before they are asked for. */
FLOW_API flow_status flow_dataset_prefetch(flow_dataset *input, double size, flow_dataset **out);    /* -1: by measured waiting */
/* How flow_dataset_auto_shard divides the dataset, one of these, and whether parallel stages keep the order (-1: as before). */
enum { FLOW_SHARD_KEEP = -2, FLOW_SHARD_OFF = -1, FLOW_SHARD_AUTO = 0, FLOW_SHARD_FILE, FLOW_SHARD_DATA, FLOW_SHARD_HINT };
FLOW_API flow_status flow_dataset_with_options(flow_dataset *input, int auto_shard_policy, int deterministic, flow_dataset **out);
/* The part of worker number `index` (from 0) of this many, by the dataset's policy: FILE needs a file for each (FLOW_INVALID_ARGUMENT) and
 * a pipeline that begins with records (FLOW_NOT_FOUND); AUTO then takes DATA. */
FLOW_API flow_status flow_dataset_auto_shard(flow_dataset *dataset, double workers, double index, flow_dataset **out);
/* The policy that flow_dataset_with_options has set last; FLOW_SHARD_AUTO if it has set none. */
FLOW_API int         flow_dataset_auto_shard_policy(const flow_dataset *dataset);
/* Whether parallel stages keep the order, as flow_dataset_with_options has said last; 1 if it has said nothing. */
FLOW_API int flow_dataset_deterministic(const flow_dataset *dataset);
/* Rows of its elements, except for the last ones of a pass, as batch, padded_batch or rebatch made them; 0: not known. */
FLOW_API double flow_dataset_batch_rows(const flow_dataset *dataset);
/* Each row of an element becomes an element. Its components need the same number of rows. */
FLOW_API flow_status flow_dataset_unbatch(flow_dataset *input, flow_dataset **out);
/* The same rows in other batches, of sizes[0] rows, sizes[1], ..., and of sizes[0] again after the last size. What is left at the end is a
 * smaller batch, or is left out (drop_remainder). */
FLOW_API flow_status flow_dataset_rebatch(flow_dataset *input, const double *sizes, int count, int drop_remainder, flow_dataset **out);
/* Each element becomes a dataset, which the caller gives when callback number `callback` is asked; they look like `like`. `cycle` of
 * them are open and give `block` elements each in turn; parallel: a thread works ahead on each. */
FLOW_API flow_status flow_dataset_interleave(flow_dataset *input, int callback, flow_dataset *like, double cycle, double block,
                                             int parallel, flow_dataset **out);
/* Keeps the elements of the first complete pass in memory, and gives them in later ones. */
FLOW_API flow_status flow_dataset_cache(flow_dataset *input, flow_dataset **out);
/* The same in a file, which appears when it is complete, and serves later processes; PATH.lock names the pass that fills it. */
FLOW_API flow_status flow_dataset_cache_file(flow_dataset *input, const char *path, flow_dataset **out);
/* Rows of different sizes: a dimension is as long as the longest row's, or as shapes (dtypes do not count; NULL: none) ask for
 * where that is not -1; values (NULL: zeros): what the rest is filled with. */
FLOW_API flow_status flow_dataset_padded_batch(flow_dataset *input, double size, const flow_component *shapes, const double *values,
                                               int count, int drop_remainder, flow_dataset **out);
/* Elements that the caller gives when flow_iterator_next asks callback number `callback` for them. */
FLOW_API flow_status flow_dataset_from_generator(int callback, const flow_component *components, int count, flow_dataset **out);
/* Elements that the caller makes of those of inputs, with a state for each pass, when flow_iterator_next asks callback number `callback`:
 * the question has an element of the input that was wanted, or none, as at the beginning and at that input's end. The answer is an element
 * or none (count 0), and its `callback` says what is wanted next: 0: to be asked again, n: an element of input n, from 1; -1: this was the
 * end. cardinality: how many elements a pass has; -1: infinite, -2: unknown. */
FLOW_API flow_status flow_dataset_transform(flow_dataset *const *inputs, int input_count, int callback, const flow_component *components,
                                            int count, double cardinality, flow_dataset **out);
/* Batches of up to `size` elements, `stride` after each other, which begin `shift` elements after one another: at the end there are smaller
 * ones, unless drop_remainder. */
FLOW_API flow_status flow_dataset_window(flow_dataset *input, double size, double shift, double stride, int drop_remainder,
                                         flow_dataset **out);
/* The elements before the first one that a flow_function_filter does not keep. */
FLOW_API flow_status flow_dataset_take_while(flow_dataset *input, flow_function *function, flow_dataset **out);
/* Leaves out elements that cannot be made, with one warning each if log_warning. */
FLOW_API flow_status flow_dataset_ignore_errors(flow_dataset *input, int log_warning, flow_dataset **out);
/* Elements that a cache kept in a file. */
FLOW_API flow_status flow_dataset_load(const char *path, flow_dataset **out);
/* Applies the function to every element, on `calls` threads (0: none, -1: by measured waiting). deterministic 0: in the order
 * in which they are ready, 1: in their order, -1: as the options say. seed: of the function's random numbers. */
FLOW_API flow_status flow_dataset_map(flow_dataset *input, flow_function *function, double calls, int deterministic, double seed,
                                      flow_dataset **out);

/* One more reference, and one less (NULL is fine). From any thread: functions are shared and do not change once they are used. */
FLOW_API flow_function *flow_function_retain(flow_function *function);
FLOW_API void        flow_function_release(flow_function *function);
FLOW_API int         flow_function_random(const flow_function *function);    /* whether it draws random numbers */
/* Takes texts that are tf.train.Examples apart; components in the order in which features are added, before it is first used.
 * dtype uint8: one bytes value as a text; else float32 or int64 in this shape, {-1}: any number of them. initial (NULL: none): stands
 * for the values of a feature that is not there. */
FLOW_API flow_status flow_function_parse_example(flow_function **out);   /* new reference */
FLOW_API flow_status flow_function_parse_example_add(flow_function *function, const char *name, int dtype, int rank, const int64_t *shape,
                                                     const double *initial);
/* A plan over components inputs[0 .. input_count - 1] of an element (from 0). Component i of the result is output outputs[i] of the
 * plan or, if that is negative, component -1 - outputs[i] of the element. */
FLOW_API flow_status flow_function_from_plan(flow_plan *plan, const int *inputs, int input_count, const int *outputs, int output_count,
                                             flow_function **out);
/* Keeps the elements for which the plan's one output, a scalar of dtype bool, is true. */
FLOW_API flow_status flow_function_filter(flow_plan *plan, const int *inputs, int input_count, flow_function **out);
/* (path, ...) becomes (text, ...): the first `most` bytes of the file; -1: all. */
FLOW_API flow_status flow_function_load_text(double most, flow_function **out);
/* (path, ...) becomes (float32 {samples, channels}, ...) by flow_wave_load. */
FLOW_API flow_status flow_function_load_wave(double samples, flow_function **out);
/* (path, ...) becomes (float32 {height, width, channels}, ...) by flow_image_load and flow_image_resize, with interpolation nearest
 * uint8, as TensorFlow's. classes > 0: an int32 label after the path becomes float32 {classes} with a single 1. skip_broken: pictures that
 * cannot be decoded are left out. */
FLOW_API flow_status flow_function_load_image(int height, int width, int channels, const char *interpolation, int fit, int classes,
                                              int skip_broken, flow_function **out);

/* Iterators: opened at the first element. A failure of a worker thread is raised by the call that meets it. The context is
 * the caller's: its interrupt flag ends waiting. close stops and joins all threads. */
/* A pass, which has done nothing yet. It keeps the dataset, and borrows the context until it is closed. One caller at a time. */
FLOW_API flow_status flow_iterator_new(flow_context *context, flow_dataset *dataset, flow_iterator **out);
/* The same, as a look: the random stages of later passes draw as if it had not been. Restored to a position it is the pass that was saved
 * there. */
FLOW_API flow_status flow_iterator_peek(flow_context *context, flow_dataset *dataset, flow_iterator **out);
FLOW_API void        flow_iterator_close(flow_iterator *iterator);   /* and frees it; NULL is fine */
/* The next element; count 0 at the end. After a failure `out` holds nothing. FLOW_INVALID_STATE: the process has forked since the pass
 * began, and its threads are the parent's. */
FLOW_API flow_status flow_iterator_next(flow_iterator *iterator, flow_element *out);   /* releases what out holds, then fills it */
/* Answers the question that flow_iterator_next returned: with an element (shared; count 0: the end), a dataset or an error. */
FLOW_API flow_status flow_iterator_answer(flow_iterator *iterator, const flow_element *element, flow_dataset *dataset, const char *error);
FLOW_API flow_status flow_iterator_skip(flow_iterator *iterator, double count);        /* the next element is one that many further */
/* The position as text: what random stages drew and the number of elements delivered. Returns the whole length. */
FLOW_API int         flow_iterator_save(const flow_iterator *iterator, char *text, int size);
/* Brings an iterator of an equal pipeline, in this process or another, to a saved position. */
FLOW_API flow_status flow_iterator_restore(flow_iterator *iterator, const char *position);
/* position: saved by a look (flow_iterator_peek) at an equal pipeline, which may read another part of the data. From here on the random
 * stages of the iterator's dataset draw what those would have drawn from there on. Of an iterator with no element yet. */
FLOW_API flow_status flow_iterator_align(flow_iterator *iterator, const char *position);

typedef struct flow_stage_report {
  const char *name;                /* borrowed, static */
  int32_t     depth, threads;      /* distance from the last stage; threads that work for it now */
  double      elements, seconds;   /* delivered; spent in it and its inputs (parallel stages: of its threads) */
  double      queued, capacity;    /* elements that are ready now, at most */
  double      waited;              /* seconds that the stage's consumer waited for it */
} flow_stage_report;
/* What stage number `index` of the pass did so far, the last stage of the pipeline first; 0: there is none. */
FLOW_API int         flow_iterator_stage(const flow_iterator *iterator, int index, flow_stage_report *out);

#endif
