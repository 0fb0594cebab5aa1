/* load_image.c: the element function of image_dataset_from_directory: (path, label ...) becomes (float32 {height, width, channels} with
 * values 0 to 255, by `nearest` uint8, label ...).
 *
 * A picture is decoded into the resizer (image/resize.h), which writes the result; of a format that is decoded line by line no copy of
 * the whole picture in its own size is made. A worker of map keeps the decoder's and the resizer's memory for its next picture. A
 * picture that cannot be decoded fails with its path, or is left out with one warning; what is not a fault of the picture (memory, a
 * file that is gone, a missing plugin) always fails. */
#include "data/function.h"
#include "base/need.h"
#include "image/image.h"
#include "image/resize.h"

/* The parameters, checked when it was made. fit: FLOW_STRETCH, FLOW_CROP or FLOW_PAD. */
typedef struct load_image {
  flow_function base;
  int height, width, channels, method, fit;
  int classes;               /* > 0: the label becomes a row of this many zeros with a single 1 */
} load_image;

/* What one thread keeps from picture to picture. */
typedef struct worker {
  flow_picture picture;
  flow_resizer resizer;
  const load_image *load;    /* of the picture under way, and where it goes */
  void         *to;
  char        *path;
  int          path_capacity;
} worker;

/* The path becomes a picture of a known size; a label after it stays, or becomes one-hot. */
static flow_status give_spec(const flow_function *function, const flow_element_spec *in, flow_element_spec *out)
{
  const load_image *load = (const load_image *)function;
  if (in->count < 1 || !in->components[0].text || in->components[0].rank != 1) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "loading pictures needs elements that begin with a path, got %s",
                     in->count > 0 ? flow_component_text(&in->components[0]) : "nothing");
  }
  *out = *in;
  out->components[0] = (flow_component){ .dtype = flow_resize_dtype(load->method), .rank = 3,
                                         .shape = { load->height, load->width, load->channels } };
  if (load->classes == 0) return FLOW_OK;
  if (in->count < 2 || in->components[1].dtype != FLOW_INT32 || in->components[1].rank != 0) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "categorical labels are made of int32 numbers");
  }
  out->components[1] = (flow_component){ .dtype = FLOW_FLOAT32, .rank = 1, .shape = { load->classes } };
  return FLOW_OK;
}

/* begin, give_room and take_all are what flow_picture_read_rows calls while it decodes: the size is known, a block for lines is needed,
 * all lines are there. */
static flow_status begin(void *target, int height, int width, int channels)
{
  worker *own = target;
  const load_image *load = own->load;
  return flow_resize_begin(&own->resizer, FLOW_UINT8, height, width, channels, load->method, load->fit, load->height, load->width,
                           flow_resize_dtype(load->method), own->to);
}

/* *line: room for lines that are decoded next. */
static flow_status give_room(void *target, unsigned char **line)
{
  return flow_resize_room(&((worker *)target)->resizer, line);
}

/* For decoders that give a whole picture at once. */
static void take_all(void *target, const unsigned char *pixels)
{
  flow_resizer *resizer = &((worker *)target)->resizer;
  flow_resize_lines(resizer, pixels, 0, resizer->height);
}

/* Decodes into the resizer, and that into the tensor: `place`, if there is one. */
static flow_status load_picture(const load_image *load, worker *own, flow_tensor *place, flow_tensor **out)
{
  int64_t shape[3] = { load->height, load->width, load->channels };
  flow_picture_rows rows = { begin, give_room, take_all, own };
  if (place) *out = flow_tensor_retain(place);
  else FLOW_TRY(flow_tensor_new_uninitialized(flow_resize_dtype(load->method), 3, shape, out));
  own->load = load;
  own->to = (*out)->data;
  flow_status status = flow_picture_read_rows(own->path, load->channels, &own->picture, &rows);
  if (status == FLOW_OK) {
    flow_resize_end(&own->resizer);
    return FLOW_OK;
  }
  flow_tensor_release(*out);
  *out = NULL;
  return status;
}

/* label: int32, a scalar, as give_spec has checked. */
static flow_status one_hot(int classes, const flow_tensor *label, flow_tensor **out)
{
  int64_t shape[1] = { classes };
  int32_t class = *(const int32_t *)label->data;
  FLOW_TRY(flow_tensor_new(FLOW_FLOAT32, 1, shape, out));
  if (class >= 0 && class < classes) ((float *)(*out)->data)[class] = 1;      /* tf.one_hot: no 1 for others */
  return FLOW_OK;
}

/* Whether on_error = "skip" may leave the picture out. */
static int is_broken(flow_status status)
{
  return status == FLOW_CORRUPT_DATA || status == FLOW_UNSUPPORTED || status == FLOW_IO_ERROR;
}

/* The picture is written straight into its row of the batch where the consumer offers one (place). Messages of the decoder are kept in
 * `text`, since writing a new failure replaces the old. */
static flow_status apply(const flow_function *function, void *worker_block, const flow_element_key *key, const flow_element *place,
                         flow_element *in, flow_element *out)
{
  const load_image *load = (const load_image *)function;
  worker *own = worker_block;
  (void)key;
  FLOW_TRY(flow_function_path(in->tensors[0], &own->path, &own->path_capacity));
  flow_tensor *picture = NULL, *label = NULL;
  flow_status status = load_picture(load, own, place->count > 0 ? place->tensors[0] : NULL, &picture);
  if (status != FLOW_OK && function->class->drops && is_broken(status)) {
    char text[1200];
    flow_text warning = flow_text_into(text, sizeof text);
    flow_text_add(&warning, "left out: %s", flow_last_error());
    flow_log(FLOW_LOG_WARNING, text);
    return FLOW_OK;
  }
  if (status != FLOW_OK && is_broken(status)) {
    char text[1200];
    flow_text said = flow_text_into(text, sizeof text);
    flow_text_add(&said, "%s", flow_last_error());
    return flow_fail(status, "%s; on_error = \"skip\" leaves out what cannot be read", text);
  }
  if (status == FLOW_OK && load->classes > 0) status = one_hot(load->classes, in->tensors[1], &label);
  if (status != FLOW_OK) {
    flow_tensor_release(picture);
    return status;
  }
  flow_element_move(out, in);
  flow_tensor_release(out->tensors[0]);
  out->tensors[0] = picture;
  if (label) {
    flow_tensor_release(out->tensors[1]);
    out->tensors[1] = label;
  }
  return FLOW_OK;
}

/* Once for each thread of the pass, when it ends. */
static void close_worker(const flow_function *function, void *worker_block)
{
  worker *own = worker_block;
  (void)function;
  flow_picture_free(&own->picture);
  flow_resizer_free(&own->resizer);
  flow_free(own->path);
}

static const flow_function_class raising = {
  .name = "load_image", .function_bytes = sizeof(load_image), .worker_bytes = sizeof(worker), .fills_slots = 1,
  .spec = give_spec, .apply = apply, .close = close_worker,
};

static const flow_function_class skipping = {
  .name = "load_image_or_skip", .function_bytes = sizeof(load_image), .worker_bytes = sizeof(worker), .fills_slots = 1, .drops = 1,
  .spec = give_spec, .apply = apply, .close = close_worker,
};

/* Sizes of the result: height * width is bounded by what the image room decodes at most. */
static flow_status check(int height, int width, int channels, int fit, int classes)
{
  if (height < 1 || width < 1 || (int64_t)height * width > FLOW_MOST_PIXELS) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "pictures of %d x %d pixels cannot be made: each side is 1 or more, the product %lld at most",
                     height, width, (long long)FLOW_MOST_PIXELS);
  }
  if (channels != 1 && channels != 3 && channels != 4) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "pictures have 1, 3 or 4 channels, not %d", channels);
  }
  if (fit < FLOW_STRETCH || fit > FLOW_PAD) return flow_fail(FLOW_INVALID_ARGUMENT, "fit is 0, 1 or 2, got %d", fit);
  if (classes < 0) return flow_fail(FLOW_INVALID_ARGUMENT, "the number of classes is %d, expected 0 or more", classes);
  return FLOW_OK;
}

/* fit: FLOW_STRETCH, FLOW_CROP or FLOW_PAD. classes 0: labels stay unchanged. All of it is part of the identity, so that a position is
 * refused after another size was chosen. */
flow_status flow_function_load_image(int height, int width, int channels, const char *interpolation, int fit, int classes,
                                     int skip_broken, flow_function **out)
{
  FLOW_NEED(out);
  *out = NULL;
  FLOW_NEED(interpolation);
  FLOW_TRY(check(height, width, channels, fit, classes));
  int method = flow_resize_method(interpolation);
  if (method < 0)
    return flow_fail(FLOW_INVALID_ARGUMENT,
                     "there is no interpolation \"%s\"; there are bilinear, nearest, bicubic, area, lanczos3, lanczos5, "
                     "gaussian and mitchellcubic",
                     interpolation);
  FLOW_TRY(flow_function_new(skip_broken ? &skipping : &raising, out));
  load_image *load = (load_image *)*out;
  load->height = height;
  load->width = width;
  load->channels = channels;
  load->method = method;
  load->fit = fit;
  load->classes = classes;
  const int parameters[] = { height, width, channels, method, fit, classes };
  for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++) {
    load->base.identity = flow_mix(load->base.identity, (uint64_t)parameters[i]);
  }
  return FLOW_OK;
}
