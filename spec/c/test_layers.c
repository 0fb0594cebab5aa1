/* test_layers.c: records, what layers compute in C without Lua, their variables, config and failures. */
#include "layer_options.h"

static flow_tensor *floats(const double *values, int rank, const int64_t *shape) { return tensor_of(FLOW_FLOAT32, values, rank, shape); }

static flow_layer *layer_of(const char *class, const char *name, const char *options)
{
  flow_layer *layer = NULL;
  flow_arguments *arguments = options_of(options);
  if (flow_layer_new(class, name, arguments, &layer) != FLOW_OK) fail_msg("%s", flow_last_error());
  flow_arguments_release(arguments);
  return layer;
}

/* layer(x); releases x. */
static flow_tensor *call(flow_layer *layer, flow_tensor *x, int training)
{
  flow_tensor *y = NULL;
  if (flow_layer_call(context, layer, &x, 1, training, &y) != FLOW_OK) fail_msg("%s", flow_last_error());
  flow_tensor_release(x);
  return y;
}

/* The same of a layer for this one call. */
static flow_tensor *apply(const char *class, const char *options, flow_tensor *x)
{
  flow_layer *layer = layer_of(class, "layer", options);
  flow_tensor *y = call(layer, x, 0);
  flow_layer_release(layer);
  return y;
}

static void set_variable(flow_layer *layer, int index, const double *values)
{
  flow_tensor *storage;
  assert_int_equal(flow_variable_tensor(flow_layer_variable(layer, index), &storage), FLOW_OK);
  assert_int_equal(flow_tensor_write(storage, values, flow_tensor_size(storage)), FLOW_OK);
  flow_tensor_release(storage);
}

static flow_tensor *variable_of(const flow_layer *layer, int index)
{
  flow_tensor *storage;
  assert_int_equal(flow_variable_tensor(flow_layer_variable(layer, index), &storage), FLOW_OK);
  return storage;
}

/* ---- records --------------------------------------------------------------------------------------------------------- */

static void every_record_is_complete(void **state)
{
  (void)state;
  for (int i = 0; i < flow_layer_class_count(); i++) {
    const flow_layer_class *class = flow_layer_class_record(i);
    assert_int_equal(flow_layer_class_find(class->name), i);      /* names are unique */
    if (class->alias) assert_int_equal(flow_layer_class_find(class->alias), i);
    assert_true(class->doc && class->doc[0]);
    assert_true(class->call || class->call_named);
    assert_true(class->max_inputs == 0 || (!class->input_names && class->max_inputs >= class->min_inputs));
    assert_in_range(class->positional, 0, flow_layer_class_argument_count(i));
    for (int j = 0; j < flow_layer_class_argument_count(i); j++) {
      const char *name = flow_layer_class_argument(i, j);
      assert_int_equal(flow_argument_find(class->parameters, name), j);
      assert_non_null(flow_layer_class_argument_type(i, j));
      /* what has no default comes first, so that it can be given by position */
      if (!flow_layer_class_argument_default(i, j)) assert_true(j < class->positional);
    }
    assert_true(flow_argument_find(class->parameters, "trainable") >= 0);
    assert_true(flow_argument_find(class->parameters, "dtype") >= 0);
  }
  assert_null(flow_layer_class_name(-1));
  assert_null(flow_layer_class_argument(0, 1000));
}

/* ---- what layers compute ---------------------------------------------------------------------------------------------- */

static void shapes_and_elementwise_layers(void **state)
{
  (void)state;
  const double *six = LIST(1, 2, 3, 4, 5, 6), *signs = LIST(-2, -0.5, 0, 1, 3, 8);
  assert_values(apply("Flatten", "", floats(six, SHAPE(1, 2, 3))), six, SHAPE(1, 6));
  assert_values(apply("Flatten", "", floats(six, SHAPE(6))), six, SHAPE(6, 1));
  assert_values(apply("Flatten", "", floats(LIST(0), SHAPE(0, 2, 3))), six, SHAPE(0, 6));
  assert_values(apply("Reshape", "target_shape=3,-1", floats(six, SHAPE(1, 6))), six, SHAPE(1, 3, 2));
  assert_values(apply("Reshape", "target_shape=-1,1", floats(six, SHAPE(2, 3))), six, SHAPE(2, 3, 1));
  assert_values(apply("Rescaling", "scale=0.5 offset=1", tensor_of(FLOW_UINT8, LIST(0, 255), SHAPE(2, 1))), LIST(1, 128.5), SHAPE(2, 1));
  assert_values(apply("ReLU", "", floats(signs, SHAPE(6))), LIST(0, 0, 0, 1, 3, 8), SHAPE(6));
  assert_values(apply("ReLU", "max_value=6 negative_slope=0.5", floats(signs, SHAPE(6))), LIST(-1, -0.25, 0, 1, 3, 6), SHAPE(6));
  assert_values(apply("ReLU", "threshold=1 negative_slope=0.5", floats(signs, SHAPE(6))), LIST(-1.5, -0.75, -0.5, 0, 3, 8), SHAPE(6));
  assert_values(apply("Softmax", "axis=0", floats(LIST(0, log(3)), SHAPE(2, 1))), LIST(0.25, 0.75), SHAPE(2, 1));
  assert_values(apply("Activation", "activation=tanh", floats(LIST(1), SHAPE(1))), LIST(tanh(1)), SHAPE(1));
  assert_values(apply("GlobalAveragePooling2D", "", floats(six, SHAPE(1, 3, 1, 2))), LIST(3, 4), SHAPE(1, 2));
  assert_values(apply("GlobalAveragePooling2D", "keepdims=true", floats(six, SHAPE(1, 3, 1, 2))), LIST(3, 4), SHAPE(1, 1, 1, 2));
  assert_values(apply("MaxPooling2D", "", floats(six, SHAPE(1, 2, 3, 1))), LIST(5), SHAPE(1, 1, 1, 1));
  assert_values(apply("MaxPooling2D", "padding=same", floats(six, SHAPE(1, 2, 3, 1))), LIST(5, 6), SHAPE(1, 1, 2, 1));
  assert_values(apply("AveragePooling2D", "", floats(six, SHAPE(1, 2, 3, 1))), LIST(3), SHAPE(1, 1, 1, 1));
  assert_values(apply("AveragePooling2D", "padding=same", floats(six, SHAPE(1, 2, 3, 1))), LIST(3, 4.5), SHAPE(1, 1, 2, 1));
  assert_values(apply("GlobalMaxPooling2D", "", floats(six, SHAPE(1, 3, 1, 2))), LIST(5, 6), SHAPE(1, 2));
  assert_values(apply("GlobalMaxPooling2D", "keepdims=true", floats(six, SHAPE(1, 3, 1, 2))), LIST(5, 6), SHAPE(1, 1, 1, 2));
}

static void dense_and_conv2d_by_hand(void **state)
{
  (void)state;
  flow_layer *dense = layer_of("Dense", "dense", "units=2 activation=relu");
  flow_tensor_release(call(dense, floats(LIST(0, 0, 0), SHAPE(1, 3)), 0));       /* builds it */
  assert_int_equal(flow_layer_variable_count(dense), 2);
  assert_string_equal(flow_variable_name(flow_layer_variable(dense, 0)), "dense/kernel");
  set_variable(dense, 0, LIST(1, 2, 3, 4, 5, 6));
  set_variable(dense, 1, LIST(10, -100));
  assert_values(call(dense, floats(LIST(1, 1, 1, 0, 1, 0), SHAPE(2, 1, 3)), 0), LIST(19, 0, 13, 0), SHAPE(2, 1, 2));
  flow_layer_release(dense);
  /* SAME with stride 2 over 4: one cell of padding, below and to the right of the image */
  flow_layer *convolution = layer_of("Conv2D", "conv2d", "filters=1 kernel_size=3 strides=2 padding=same kernel_initializer=ones");
  const double *image = LIST(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
  assert_values(call(convolution, floats(image, SHAPE(1, 4, 4, 1)), 0), LIST(54, 45, 72, 54), SHAPE(1, 2, 2, 1));
  flow_layer_release(convolution);
  convolution = layer_of("Conv2D", "conv2d", "filters=2 kernel_size=1 groups=2 use_bias=false kernel_initializer=ones");
  assert_values(call(convolution, floats(LIST(1, 2, 3, 4), SHAPE(1, 1, 1, 4)), 0), LIST(3, 7), SHAPE(1, 1, 1, 2));
  assert_int_equal(flow_layer_variable_count(convolution), 1);
  flow_layer_release(convolution);
}

static void depthwise_conv2d_by_hand(void **state)
{
  (void)state;
  flow_layer *layer = layer_of("DepthwiseConv2D", "dw", "kernel_size=1,2 depth_multiplier=2");
  flow_tensor_release(call(layer, floats(LIST(0, 0, 0, 0), SHAPE(1, 1, 2, 2)), 0));       /* builds it */
  assert_int_equal(flow_layer_variable_count(layer), 2);
  assert_string_equal(flow_variable_name(flow_layer_variable(layer, 0)), "dw/kernel");
  set_variable(layer, 0, LIST(1, 2, 3, 4, 5, 6, 7, 8));       /* {1, 2, 2, 2} */
  set_variable(layer, 1, LIST(100, 200, 300, 400));
  assert_values(variable_of(layer, 0), LIST(1, 2, 3, 4, 5, 6, 7, 8), SHAPE(1, 2, 2, 2));
  /* channel 0 is 1, 3: under kernels 1, 5 and 2, 6; channel 1 is 2, 4: under 3, 7 and 4, 8 */
  assert_values(call(layer, floats(LIST(1, 2, 3, 4), SHAPE(1, 1, 2, 2)), 0), LIST(116, 220, 334, 440), SHAPE(1, 1, 1, 4));
  flow_layer_release(layer);
  layer = layer_of("DepthwiseConv2D", "dw", "kernel_size=2 strides=2 padding=same use_bias=false activation=relu "
                   "depthwise_initializer=ones");
  assert_values(call(layer, floats(LIST(1, -2, 3, 4, 5, -6), SHAPE(1, 3, 1, 2)), 0), LIST(4, 2, 5, 0), SHAPE(1, 2, 1, 2));
  assert_int_equal(flow_layer_variable_count(layer), 1);
  flow_layer_release(layer);
}

static void batch_normalization_moves_its_averages(void **state)
{
  (void)state;
  const double *x = LIST(1, 10, 3, 30), *training = LIST(-0.99950037, -0.999995, 0.99950037, 0.999995);
  flow_layer *layer = layer_of("BatchNormalization", "norm", "momentum=0.5");
  assert_values(call(layer, floats(x, SHAPE(2, 2)), 1), training, SHAPE(2, 2));
  assert_int_equal(flow_layer_variable_count(layer), 4);
  assert_values(variable_of(layer, 2), LIST(1, 10), SHAPE(2));             /* 0 / 2 + {2, 20} / 2 */
  assert_values(variable_of(layer, 3), LIST(1, 50.5), SHAPE(2));           /* 1 / 2 + {1, 100} / 2: biased */
  assert_int_equal(flow_variable_trainable(flow_layer_variable(layer, 0)), 1);
  assert_int_equal(flow_variable_trainable(flow_layer_variable(layer, 2)), 0);
  set_variable(layer, 0, LIST(2, 1));
  set_variable(layer, 1, LIST(0, 5));
  const double *inference = LIST(0, 5, 4 / sqrt(1.001), 5 + 20 / sqrt(50.501));
  assert_values(call(layer, floats(x, SHAPE(2, 2)), 0), inference, SHAPE(2, 2));
  flow_layer_set_trainable(layer, 0);                                      /* frozen: inference, even in training */
  assert_int_equal(flow_variable_trainable(flow_layer_variable(layer, 0)), 0);
  assert_values(call(layer, floats(x, SHAPE(2, 2)), 1), inference, SHAPE(2, 2));
  flow_layer_set_trainable(layer, 1);
  assert_int_equal(flow_variable_trainable(flow_layer_variable(layer, 1)), 1);
  assert_int_equal(flow_variable_trainable(flow_layer_variable(layer, 3)), 0);
  flow_layer_release(layer);
  /* the same numbers along axis 1 of three, without gamma and beta */
  layer = layer_of("BatchNormalization", "norm", "axis=1 center=false scale=false momentum=0.5");
  assert_values(call(layer, floats(LIST(1, 3, 10, 30), SHAPE(1, 2, 2)), 1), LIST(-0.99950037, 0.99950037, -0.999995, 0.999995),
                SHAPE(1, 2, 2));
  assert_int_equal(flow_layer_variable_count(layer), 2);
  assert_values(variable_of(layer, 1), LIST(1, 50.5), SHAPE(2));
  assert_values(call(layer, floats(LIST(1, 3, 10, 30), SHAPE(1, 2, 2)), 0), LIST(0, 2 / sqrt(1.001), 0, 20 / sqrt(50.501)), SHAPE(1, 2, 2));
  flow_layer_release(layer);
}

static void dropout_depends_on_its_seed_alone(void **state)
{
  (void)state;
  double found[3][64], again[64];
  static const char *const names[3] = { "a", "b", "b" }, *const arguments[3] = { "rate=0.5 seed=7", "rate=0.5 seed=7", "rate=0.5 seed=8" };
  for (int i = 0; i < 3; i++) {
    flow_layer *layer = layer_of("Dropout", names[i], arguments[i]);
    flow_tensor *x;
    int64_t shape[2] = { 8, 8 };
    assert_int_equal(flow_tensor_new(FLOW_FLOAT32, 2, shape, &x), FLOW_OK);
    assert_int_equal(flow_tensor_fill(x, 1), FLOW_OK);
    flow_tensor *y = call(layer, flow_tensor_retain(x), 0);
    assert_ptr_equal(x, y);                                                /* identity outside training */
    flow_tensor_release(y);
    y = call(layer, flow_tensor_retain(x), 1);
    assert_int_equal(flow_tensor_read(y, found[i], 64), FLOW_OK);
    flow_tensor_release(y);
    y = call(layer, x, 1);
    assert_int_equal(flow_tensor_read(y, again, 64), FLOW_OK);
    assert_memory_not_equal(found[i], again, sizeof again);                /* each call outside of a trace draws new numbers */
    flow_tensor_release(y);
    flow_layer_release(layer);
  }
  int kept = 0;
  for (int i = 0; i < 64; i++) {
    assert_true(found[0][i] == 0 || found[0][i] == 2);
    kept += found[0][i] != 0;
  }
  assert_in_range(kept, 16, 48);
  assert_memory_equal(found[0], found[1], sizeof found[0]);
  assert_memory_not_equal(found[0], found[2], sizeof found[0]);
}

static void merging_layers(void **state)
{
  (void)state;
  flow_layer *add = layer_of("Add", "add", ""), *concatenate = layer_of("Concatenate", "concatenate", "axis=1");
  flow_tensor *a = floats(LIST(1, 2, 3, 4), SHAPE(2, 1, 2)), *b = floats(LIST(10, 20, 30, 40), SHAPE(2, 2)), *y;
  flow_tensor *c = floats(LIST(5, 6, 7, 8, 9, 10, 11, 12), SHAPE(2, 2, 2)), *wrong = floats(LIST(1, 2, 3), SHAPE(3, 1));
  assert_int_equal(flow_layer_call(context, add, (flow_tensor *[]){ a, b, a }, 3, 0, &y), FLOW_OK);   /* b as {2, 1, 2} */
  assert_values(y, LIST(12, 24, 36, 48), SHAPE(2, 1, 2));
  assert_int_equal(flow_layer_call(context, concatenate, (flow_tensor *[]){ a, c }, 2, 0, &y), FLOW_OK);
  assert_values(y, LIST(1, 2, 5, 6, 7, 8, 3, 4, 9, 10, 11, 12), SHAPE(2, 3, 2));
  assert_int_equal(flow_layer_call(context, add, (flow_tensor *[]){ a, wrong }, 2, 0, &y), FLOW_INVALID_ARGUMENT);
  assert_string_equal(flow_last_error(), "Add \"add\": inputs 1 and 2 have shapes {2, 1, 2} and {3, 1}, which cannot be added");
  assert_int_equal(flow_layer_call(context, concatenate, (flow_tensor *[]){ a, b }, 2, 0, &y), FLOW_INVALID_ARGUMENT);
  assert_string_equal(flow_last_error(),
                      "Concatenate \"concatenate\": inputs 1 and 2 have shapes {2, 1, 2} and {2, 2}; they may differ along "
                      "axis 2 only");
  flow_tensor_release(a), flow_tensor_release(b), flow_tensor_release(c), flow_tensor_release(wrong);
  flow_layer_release(add), flow_layer_release(concatenate);
}

/* ---- config ------------------------------------------------------------------------------------------------------------ */

static void assert_config(const char *class, const char *name, const char *options, const char *expected)
{
  char text[2048];
  flow_layer *layer = layer_of(class, name, options);
  int length = flow_layer_config(layer, text, sizeof text);
  assert_string_equal(text, expected);
  assert_int_equal(length, strlen(expected));
  assert_int_equal(flow_layer_config(layer, NULL, 0), length);
  assert_int_equal(flow_layer_config(layer, text, 10), length);
  assert_int_equal(strlen(text), 9);
  flow_layer_release(layer);
}

#define POLICY "\"dtype\":{\"module\":\"keras\",\"class_name\":\"DTypePolicy\",\"config\":{\"name\":\"float32\"},\"registered_name\":null}"

static void config_is_the_one_of_keras(void **state)
{
  (void)state;
  assert_config("MaxPooling2D", "pool", "pool_size=3", "{\"name\":\"pool\",\"trainable\":true," POLICY ","
                "\"pool_size\":[3,3],\"strides\":[3,3],\"padding\":\"valid\",\"data_format\":\"channels_last\"}");
  assert_config("ZeroPadding2D", "pad", "padding=1,2", "{\"name\":\"pad\",\"trainable\":true," POLICY ","
                "\"padding\":[[1,1],[2,2]],\"data_format\":\"channels_last\"}");
  assert_config("Cropping2D", "crop", "cropping=1,2,3,4", "{\"name\":\"crop\",\"trainable\":true," POLICY ","
                "\"cropping\":[[1,2],[3,4]],\"data_format\":\"channels_last\"}");
  assert_config("SpatialDropout2D", "drop", "rate=0.5", "{\"name\":\"drop\"," POLICY ",\"rate\":0.5,\"data_format\":\"channels_last\","
                "\"seed\":null}");      /* without trainable, which Keras' constructor does not take */
  assert_config("UpSampling2D", "up", "size=3", "{\"name\":\"up\",\"trainable\":true," POLICY ","
                "\"size\":[3,3],\"data_format\":\"channels_last\",\"interpolation\":\"nearest\"}");
  assert_config("LeakyReLU", "leaky", "", "{\"name\":\"leaky\",\"trainable\":true," POLICY ",\"negative_slope\":0.3}");
  assert_config("AveragePooling2D", "pool", "pool_size=2,3 strides=1 padding=same", "{\"name\":\"pool\",\"trainable\":true," POLICY ","
                "\"pool_size\":[2,3],\"strides\":[1,1],\"padding\":\"same\",\"data_format\":\"channels_last\"}");
  assert_config("DepthwiseConv2D", "dw", "kernel_size=3 depth_multiplier=2 activation=relu depthwise_initializer=zeros",
                "{\"name\":\"dw\",\"trainable\":true," POLICY ",\"kernel_size\":[3,3],\"strides\":[1,1],\"padding\":\"valid\","
                "\"depth_multiplier\":2,\"data_format\":\"channels_last\",\"dilation_rate\":[1,1],\"activation\":\"relu\","
                "\"use_bias\":true,\"depthwise_initializer\":{\"module\":\"keras.initializers\",\"class_name\":\"Zeros\","
                "\"config\":{},\"registered_name\":null},"
                "\"bias_initializer\":{\"module\":\"keras.initializers\",\"class_name\":\"Zeros\",\"config\":{},\"registered_name\":null},"
                "\"depthwise_regularizer\":null,\"bias_regularizer\":null,"
                "\"depthwise_constraint\":null,\"bias_constraint\":null}");
  assert_config("Dense", "d", "units=3 trainable=false kernel_initializer=random_normal kernel_initializer.stddev=0.1",
                "{\"name\":\"d\",\"trainable\":false," POLICY ",\"units\":3,\"activation\":\"linear\",\"use_bias\":true,"
                "\"kernel_initializer\":{\"module\":\"keras.initializers\",\"class_name\":\"RandomNormal\","
                "\"config\":{\"mean\":0.0,\"stddev\":0.1,"
                "\"seed\":null},\"registered_name\":null},\"bias_initializer\":{\"module\":\"keras.initializers\",\"class_name\":\"Zeros\","
                "\"config\":{},\"registered_name\":null},\"kernel_regularizer\":null,"
                "\"bias_regularizer\":null,"
                "\"kernel_constraint\":null,\"bias_constraint\":null}");
  assert_config("Input", "in", "shape=4,-1 dtype=uint8",
                "{\"batch_shape\":[null,4,null],\"dtype\":\"uint8\",\"sparse\":false,\"ragged\":false,"
                "\"name\":\"in\",\"optional\":false}");
}

/* ---- failures ------------------------------------------------------------------------------------------------------------ */

static void assert_not_made(const char *class, const char *options, flow_status status, const char *text)
{
  flow_layer *layer = NULL;
  flow_arguments *arguments = options_of(options);
  assert_int_equal(flow_layer_new(class, "x", arguments, &layer), status);
  assert_null(layer);
  assert_string_equal(flow_last_error(), text);
  flow_arguments_release(arguments);
}

static void assert_not_called(const char *class, const char *options, flow_tensor *x, const char *text)
{
  flow_tensor *y = NULL;
  flow_layer *layer = layer_of(class, "x", options);
  assert_int_equal(flow_layer_call(context, layer, &x, 1, 0, &y), FLOW_INVALID_ARGUMENT);
  assert_string_equal(flow_last_error(), text);
  assert_null(y);
  flow_layer_release(layer);
  flow_tensor_release(x);
}

/* A group's number counts the earlier objects with that group, whatever their classes; an object without a class has no group. */
static void groups_of_a_list_are_numbered_as_in_keras(void **state)
{
  (void)state;
  const char *classes[] = { "Dense", "Conv2D", "Dense", NULL, "MyDense", "myDense", "Dense", "GroupQueryAttention", "", "", "My_Dense" };
  const char *names[] = { "dense", "conv2d", "dense_1",  NULL, "my_dense", "my_dense_1", "dense_2", "grouped_query_attention",
                          "",      "_1",     "my__dense" };
  char one[400], expected[410];
  flow_group_names *list = NULL;
  assert_int_equal(flow_group_names_new(classes, 11, &list), FLOW_OK);
  for (int i = 0; i < 11; i++) {
    if (names[i]) assert_string_equal(flow_group_names_at(list, i), names[i]);
    else assert_null(flow_group_names_at(list, i));
  }
  assert_null(flow_group_names_at(list, 11));
  assert_null(flow_group_names_at(list, -1));
  flow_group_names_release(list);
  memset(one, 'a', sizeof one);
  one[sizeof one - 1] = '\0';
  snprintf(expected, sizeof expected, "%s_2", one); /* names of any length are whole */
  assert_int_equal(flow_group_names_new((const char *[]){ one, one, one }, 3, &list), FLOW_OK);
  assert_string_equal(flow_group_names_at(list, 2), expected);
  flow_group_names_release(list);
  assert_int_equal(flow_group_names_new(NULL, 0, &list), FLOW_OK);
  assert_null(flow_group_names_at(list, 0));
  flow_group_names_release(list);
  assert_int_equal(flow_group_names_new(NULL, 1, &list), FLOW_INVALID_ARGUMENT);
  flow_fail_allocation(0);
  assert_int_equal(flow_group_names_new(classes, 11, &list), FLOW_OUT_OF_MEMORY);
  flow_fail_allocation(-1);
}

static void failures_say_what_to_do(void **state)
{
  (void)state;
  const double *six = LIST(1, 2, 3, 4, 5, 6);
  assert_not_made("Conv2d", "", FLOW_INVALID_ARGUMENT, "there is no layer class \"Conv2d\"; did you mean \"Conv2D\"?");
  assert_not_made("Dense", "units=0", FLOW_INVALID_ARGUMENT, "Dense \"x\": units must be greater than 0, found 0");
  assert_not_made("Conv2D", "filters=4 kernel_size=3,0", FLOW_INVALID_ARGUMENT,
                  "Conv2D \"x\": kernel_size must be greater than 0, found 0");
  assert_not_made("Conv2D", "filters=4 kernel_size=3 groups=3", FLOW_INVALID_ARGUMENT,
                  "Conv2D \"x\": filters 4 cannot be divided into 3 groups");
  assert_not_made("Conv2D", "filters=4 kernel_size=3 strides=2 dilation_rate=1,2", FLOW_INVALID_ARGUMENT,
                  "Conv2D \"x\": strides {2, 2} and dilation_rate {1, 2} cannot both be greater than 1");
  assert_not_made("DepthwiseConv2D", "kernel_size=3 strides=2,1", FLOW_INVALID_ARGUMENT,
                  "DepthwiseConv2D \"x\": strides {2, 1} of a depthwise convolution must be equal");
  assert_not_made("DepthwiseConv2D", "kernel_size=3 depth_multiplier=0", FLOW_INVALID_ARGUMENT,
                  "DepthwiseConv2D \"x\": depth_multiplier must be greater than 0, found 0");
  assert_not_made("Flatten", "data_format=channels_first", FLOW_UNSUPPORTED,
                  "Flatten: data_format \"channels_first\" is not supported; use \"channels_last\"");
  assert_not_made("Dropout", "rate=1.5", FLOW_INVALID_ARGUMENT, "Dropout \"x\": rate must be between 0 and 1, found 1.5");
  assert_not_made("Reshape", "target_shape=-1,-1", FLOW_INVALID_ARGUMENT,
                  "Reshape \"x\": target_shape holds -1 2 times: only one dimension can be inferred");
  assert_not_made("ReLU", "negative_slope=-1", FLOW_INVALID_ARGUMENT, "ReLU \"x\": negative_slope must be 0 or greater, found -1");
  assert_not_made("Input", "", FLOW_INVALID_ARGUMENT, "InputLayer \"x\": give either shape (without the batch) or batch_shape");
  assert_not_called("Conv2D", "filters=4 kernel_size=3", floats(six, SHAPE(6)),
                    "Conv2D \"x\": input has 1 dimension {6}, expected 4 {batch, height, width, channels}; "
                    "did you mean to put it before Flatten?");
  assert_not_called("DepthwiseConv2D", "kernel_size=3", floats(six, SHAPE(1, 2, 3)),
                    "DepthwiseConv2D \"x\": input has 3 dimensions {1, 2, 3}, expected 4 {batch, height, width, channels}; "
                    "an image without channels? Put Reshape before it");
  assert_not_called("AveragePooling2D", "", floats(six, SHAPE(6)),
                    "AveragePooling2D \"x\": input has 1 dimension {6}, expected 4 {batch, height, width, channels}; "
                    "did you mean to put it before Flatten?");
  assert_not_called("Conv2D", "filters=4 kernel_size=1 groups=2", floats(six, SHAPE(1, 1, 2, 3)),
                    "Conv2D \"x\": 3 input channels cannot be divided into 2 groups");
  assert_not_called("Dense", "units=2", floats(six, SHAPE(6)),
                    "Dense \"x\": input has 1 dimension {6}, expected at least 2 {batch, ..., features}");
  assert_not_called("Reshape", "target_shape=4,-1", floats(six, SHAPE(1, 6)),
                    "Reshape \"x\": a sample {6} has 6 elements, which do not fit target_shape {4, -1}");
  assert_not_called("Softmax", "axis=2", floats(six, SHAPE(2, 3)),
                    "Softmax \"x\": axis 3 (counted from 1) is outside an input of 2 dimensions");
  assert_not_called("BatchNormalization", "axis=0", floats(six, SHAPE(2, 3)),
                    "BatchNormalization \"x\": the normalized axis of the input {2, 3} must have a known size and not be the batch");
  assert_not_called("Input", "shape=2,2", floats(six, SHAPE(1, 2, 3)),
                    "InputLayer \"x\": input has shape {1, 2, 3}, expected {None, 2, 2}");
}

static void a_built_layer_keeps_its_channels(void **state)
{
  (void)state;
  flow_layer *layer = layer_of("Dense", "dense", "units=2");
  int rank = 2;
  const int64_t shape[2] = { -1, 3 }, *shapes[1] = { shape };
  assert_int_equal(flow_layer_build(context, layer, 1, &rank, shapes), FLOW_OK);
  assert_true(flow_layer_built(layer));
  flow_tensor *x = floats(LIST(1, 2), SHAPE(1, 2)), *y = NULL;
  assert_int_equal(flow_layer_call(context, layer, &x, 1, 0, &y), FLOW_INVALID_ARGUMENT);
  assert_string_equal(flow_last_error(), "Dense \"dense\": input {1, 2} has 2 features, but the layer was built for 3");
  assert_int_equal(flow_layer_call(context, layer, (flow_tensor *[]){ x, x }, 2, 0, &y), FLOW_INVALID_ARGUMENT);
  assert_string_equal(flow_last_error(), "Dense \"dense\": takes 1 input, found 2");
  flow_tensor_release(x);
  flow_layer_release(layer);
}

/* Every allocation of making, building and calling a layer fails once; nothing leaks or stays half built. */
static void memory_may_run_out_anywhere(void **state)
{
  (void)state;
  int failures = 0;
  flow_tensor *x = floats(LIST(1, 2, 3, 4), SHAPE(2, 2));
  flow_arguments *arguments = options_of("momentum=0.9");
  for (int after = 0;; after++) {
    flow_layer *layer = NULL;
    flow_tensor *y = NULL;
    flow_fail_allocation(after);
    flow_status status = flow_layer_new("BatchNormalization", "norm", arguments, &layer);
    if (status == FLOW_OK) status = flow_layer_call(context, layer, &x, 1, 1, &y);
    flow_fail_allocation(-1);
    if (layer) assert_int_equal(flow_layer_variable_count(layer), flow_layer_built(layer) ? 4 : 0);
    flow_layer_release(layer);
    if (status == FLOW_OK) {
      flow_tensor_release(y);
      break;
    }
    assert_int_equal(status, FLOW_OUT_OF_MEMORY);
    assert_null(y);
    failures++;
  }
  assert_true(failures > 20);
  flow_arguments_release(arguments);
  flow_tensor_release(x);
}

/* The states of a stateful layer are made by its first call: one that had memory for the first of them alone is not the last one. */
static void states_are_made_after_a_failure(void **state)
{
  (void)state;
  static const double values[2 * 3 * 4];
  flow_layer *layer = layer_of("LSTM", "lstm", "units=2 stateful=true");
  flow_tensor *x = floats(values, SHAPE(2, 3, 4)), *y = NULL;
  int rank = 3;
  const int64_t shape[3] = { 2, 3, 4 }, *shapes[1] = { shape };
  assert_int_equal(flow_layer_build(context, layer, 1, &rank, shapes), FLOW_OK);
  flow_status status = FLOW_OUT_OF_MEMORY;
  for (int after = 0; status != FLOW_OK; after++) {
    flow_fail_allocation(after);
    status = flow_layer_call(context, layer, &x, 1, 0, &y);
    flow_fail_allocation(-1);
    if (status != FLOW_OK) assert_int_equal(status, FLOW_OUT_OF_MEMORY);
  }
  assert_int_equal(flow_layer_state_count(layer), 2);
  for (int i = 0; i < 2; i++) assert_non_null(flow_layer_state(layer, i));
  flow_tensor_release(y);
  flow_tensor_release(x);
  flow_layer_release(layer);
}

static void regularizers_check_their_arguments(void **state)
{
  (void)state;
  flow_tensor *w = floats(LIST(1, -2), SHAPE(2)), *out = NULL;
  assert_int_equal(flow_regularize(context, "l1", NULL, w, NULL), FLOW_INVALID_ARGUMENT);
  assert_string_equal(flow_last_error(), "flow_regularize: out is NULL");
  assert_int_equal(flow_regularize(context, "l1", NULL, NULL, &out), FLOW_INVALID_ARGUMENT);
  flow_arguments *not_a_tensor = options_of("l1=1");
  assert_int_equal(flow_regularize(context, "l1", NULL, (flow_tensor *)(void *)not_a_tensor, &out), FLOW_INVALID_ARGUMENT);
  assert_null(out);
  flow_arguments_release(not_a_tensor);
  flow_tensor_release(w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_record_is_complete),
    cmocka_unit_test(shapes_and_elementwise_layers),
    cmocka_unit_test(dense_and_conv2d_by_hand),
    cmocka_unit_test(depthwise_conv2d_by_hand),
    cmocka_unit_test(batch_normalization_moves_its_averages),
    cmocka_unit_test(dropout_depends_on_its_seed_alone),
    cmocka_unit_test(merging_layers),
    cmocka_unit_test(config_is_the_one_of_keras),
    cmocka_unit_test(groups_of_a_list_are_numbered_as_in_keras),
    cmocka_unit_test(failures_say_what_to_do),
    cmocka_unit_test(a_built_layer_keeps_its_channels),
    cmocka_unit_test(memory_may_run_out_anywhere),
    cmocka_unit_test(states_are_made_after_a_failure),
    cmocka_unit_test(regularizers_check_their_arguments),
  };
  return cmocka_run_group_tests(tests, make_context, release_context);
}
