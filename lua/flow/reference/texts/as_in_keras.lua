-- as_in_keras.lua: what flow.help says of names that objects have because Keras' have them: see reference/texts.lua for the form.
return [==[
initializer.scale: The factor of the variance, of initializers that scale it by the sizes of the shape.
  print(flow.initializers.HeNormal().scale)      --> 2
initializer.mode: Which sizes count: fan_in, fan_out or fan_avg.
  print(flow.initializers.GlorotUniform().mode)      --> fan_avg
initializer.distribution: What is drawn: uniform, truncated_normal or untruncated_normal.
  print(flow.initializers.GlorotUniform().distribution)      --> uniform
initializer:clone: An equal initializer.
  print(flow.initializers.RandomNormal({ stddev = 0.5 }):clone().stddev)      --> 0.5
layer.activity_regularizer: The regularizer of what it gives, nil where there is none.
  print(layers.Dense(2, { activity_regularizer = "l2" }).activity_regularizer.class_name)      --> L2
layer.autocast: Whether its inputs are converted to the type in which it computes.
  print(layers.Dense(2).autocast)      --> true
layer.cell: The step of LSTM, GRU and SimpleRNN: its options, the weights, which are the layer's, and cell(x, states).
  print(layers.LSTM(3).cell.units)      --> 3
layer.input_dtype: The type to which its inputs are converted.
  print(layers.Dense(2, { dtype = "mixed_float16" }).input_dtype)      --> float16
layer.input_spec: What it says of its inputs, an InputSpec or a list of them, nil: nothing. Calls on inputs that do not fit are errors.
  local Twice = layers.Layer:extend "Twice"
  function Twice:init() self.input_spec = layers.InputSpec { ndim = 2 } end
  function Twice:call(x) return x * 2 end
  print((pcall(Twice(), flow.ones { 2, 3, 4 })))      --> false
flow.layers.InputSpec: What a layer says of an input: the number of its axes, sizes of some, its dtype. -1 or false stand for any size.
  print(layers.InputSpec { min_ndim = 2, axes = { [-1] = 8 } }.axes[-1])      --> 8
spec.dtype: The dtype of an input, nil: any.
  print(layers.InputSpec({ dtype = "int32" }).dtype)      --> int32
spec.shape: The shape of an input, with -1 or false for any size; nil: not said.
  print(layers.InputSpec({ shape = { -1, 3 } }).shape[2])      --> 3
spec.ndim: How many axes an input has, nil: any number.
  print(layers.InputSpec({ shape = { -1, 3 } }).ndim)      --> 2
spec.min_ndim: How many axes an input has at least.
  print(layers.InputSpec({ min_ndim = 2 }).min_ndim)      --> 2
spec.max_ndim: How many axes an input has at most.
  print(layers.InputSpec({ max_ndim = 3 }).max_ndim)      --> 3
spec.name: The name by which a table of inputs has it.
  print(layers.InputSpec({ name = "age" }).name)      --> age
spec:get_config: Its options by name, as InputSpec.from_config takes them.
  print(layers.InputSpec({ ndim = 2 }):get_config().ndim)      --> 2
layer.path: Its name.
  print(layers.Dense(2, { name = "out" }).path)      --> out
layer.quantization_mode: int8 where it computes in int8, else nil.
  print(layers.Dense(2).quantization_mode)      --> nil
layer.single_state: Whether a recurrent layer keeps one tensor from step to step.
  print(layers.GRU(2).single_state)      --> true
layer.supports_jit: Whether plans may contain it: true.
  print(layers.Dense(2).supports_jit)      --> true
layer:add_variable: add_weight with its arguments in the order that Keras has.
  local Scale = layers.Layer:extend "Scale"
  function Scale:build(shape) self.gain = self:add_variable({ shape[#shape] }, "ones", { name = "gain" }) end
  function Scale:call(x) return x * self.gain end
  print(Scale()(flow.ones { 1, 2 }):sum():item())      --> 2
layer:build_from_config: Builds the layer as get_build_config() of another one says.
  local dense = layers.Dense(2)
  dense:build_from_config { input_shape = { -1, 3 } }
  print(dense:count_params())      --> 8
layer:compute_output_shape: The shape of its output for an input shape, or several; -1: a size that is not known. Builds nothing.
  print(layers.Dense(2):compute_output_shape({ -1, 3 })[2])      --> 2
layer:compute_output_spec: What it gives for symbolic tensors: symbolic tensors that belong to no model.
  print(layers.Dense(2):compute_output_spec(flow.Input { 3 }).shape)      --> (None, 2)
layer:get_build_config: The input shape that it was built for, as build_from_config takes it.
  local dense = layers.Dense(2)
  dense:build { -1, 3 }
  print(dense:get_build_config().input_shape[2])      --> 3
layer:get_initial_state: The states with which a recurrent layer or a cell begins, zeros, for a number of rows.
  print(#layers.LSTM(2):get_initial_state(4))      --> 2
layer:convolution_op: The convolution of a Conv layer, without bias and activation; a class that extends it may define its own.
  local Halved = layers.Conv1D:extend "Halved"
  function Halved:convolution_op(inputs, kernel) return layers.Conv1D.convolution_op(self, inputs, kernel * 0.5) end
  print(Halved(1, 1, { kernel_initializer = "ones" })(flow.ones { 1, 2, 1 }):sum():item())      --> 1
layer:enable_lora: Freezes the weights of Dense, EinsumDense or Embedding and adds a change of low rank that training learns.
  local dense = layers.Dense(8)
  dense:build { -1, 16 }
  dense:enable_lora(2)
  print(#dense.trainable_weights)      --> 3
layer.lora_enabled: Whether it learns a change of low rank.
  print(layers.Dense(2).lora_enabled)      --> false
layer.lora_rank: The rank of that change, nil where there is none.
  print(layers.Dense(2, { lora_rank = 4 }).lora_rank)      --> 4
layer.lora_alpha: The change counts alpha / rank.
  print(layers.Dense(2, { lora_rank = 4, lora_alpha = 8 }).lora_alpha)      --> 8
layer.lora_kernel_a: The first factor of the change of a kernel.
  local dense = layers.Dense(2, { lora_rank = 4 })
  dense:build { -1, 3 }
  print(dense.lora_kernel_a.shape[2])      --> 4
layer.lora_kernel_b: The second factor of the change of a kernel.
  local dense = layers.Dense(2, { lora_rank = 4 })
  dense:build { -1, 3 }
  print(dense.lora_kernel_b.shape[1])      --> 4
layer.lora_embeddings_a: The first factor of the change of embeddings.
  local embedding = layers.Embedding(5, 2, { lora_rank = 1 })
  embedding:build { -1, 3 }
  print(embedding.lora_embeddings_a.shape[1])      --> 5
layer.lora_embeddings_b: The second factor of the change of embeddings.
  local embedding = layers.Embedding(5, 2, { lora_rank = 1 })
  embedding:build { -1, 3 }
  print(embedding.lora_embeddings_b.shape[2])      --> 2
layer:quantize: Makes a Dense, EinsumDense, embedding or attention layer compute in int8, as model:quantize "int8" does.
  local dense = layers.Dense(2)
  dense:build { -1, 3 }
  dense:quantize "int8"
  print(dense.quantization_mode)      --> int8
layer:save_own_variables: Puts the values of its variables into a table that a file will hold; a class of your own may add to them.
  local dense, store = layers.Dense(2), {}
  dense:build { -1, 3 }
  dense:save_own_variables(store)
  print(store["0"].shape[1])      --> 3
layer:load_own_variables: Sets its variables from what save_own_variables() gave.
  local dense = layers.Dense(1, { use_bias = false })
  dense:build { -1, 1 }
  dense:load_own_variables { ["0"] = { { 3 } } }
  print(dense(flow.ones { 1, 1 }):item())      --> 3
layer:stateless_call: A call with other values of the variables: the result, and what the variables that do not train have then.
  local dense = layers.Dense(1)
  dense:build { -1, 2 }
  local y, others = dense:stateless_call({ flow.ones { 2, 1 }, flow.zeros { 1 } }, {}, flow.ones { 1, 2 })
  print(y:item() + #others)      --> 2
loss.dtype: The type in which it is computed.
  print(flow.losses.Huber().dtype)      --> float32
metric.dtype: The type that Keras names for it.
  print(flow.metrics.Mean().dtype)      --> float32
metric.accumulator: The variable with the count, of TruePositives and the like.
  print(flow.metrics.TruePositives().accumulator.shape[1])      --> 1
metric.init_thresholds: The thresholds as they were given.
  print(flow.metrics.Precision({ thresholds = 0.25 }).init_thresholds)      --> 0.25
metric.thresholds: The thresholds as a list.
  print(flow.metrics.Precision().thresholds[1])      --> 0.5
metric.num_thresholds: The number of thresholds.
  print(flow.metrics.AUC().num_thresholds)      --> 200
metric.value: What the other rate must reach, of SensitivityAtSpecificity and the like.
  print(flow.metrics.PrecisionAtRecall(0.75).value)      --> 0.75
metric:stateless_reset_state: The values that its variables begin with.
  print(#flow.metrics.Mean():stateless_reset_state())      --> 2
metric:stateless_update_state: What update_state() makes of these values of its variables.
  local mean = flow.metrics.Mean()
  print(mean:stateless_update_state(mean:stateless_reset_state(), { 3, 5 })[1]:item())      --> 8
metric:stateless_result: The result for these values of its variables.
  print(flow.metrics.Mean():stateless_result { 8, 2 })      --> 4
model.compiled: Whether compile() was called.
  print(flow.Sequential({ layers.Dense(1) }).compiled)      --> false
model.jit_compile: Whether steps run as plans, as compile() said.
  local model = flow.Sequential { layers.Dense(1) }
  model:compile { loss = "mse" }
  print(model.jit_compile)      --> true
model.metrics_variables: The variables of its metrics, that of the running loss among them.
  local model = flow.Sequential { layers.Dense(1) }
  model:compile { loss = "mse" }
  print(#model.metrics_variables)      --> 2
model.steps_per_execution: How many steps run at once, as compile() said.
  print(flow.Sequential({ layers.Dense(1) }).steps_per_execution)      --> 1
model:get_state_tree: The values of its variables, of the optimizer and the metrics as well, as tables by the parts of their names.
  local model = flow.Sequential({ layers.Input { 2 }, layers.Dense(1, { name = "out" }) }, { name = "m" })
  print(model:get_state_tree().trainable_variables.m.out.kernel.shape[1])      --> 2
model:set_state_tree: Sets what get_state_tree() gave, or parts of it.
  local model = flow.Sequential({ layers.Input { 2 }, layers.Dense(1, { name = "out" }) }, { name = "m" })
  model:set_state_tree { trainable_variables = { m = { out = { kernel = { { 1 }, { 2 } }, bias = { 0 } } } } }
  print(model(flow.ones { 1, 2 }):item())      --> 3
optimizer.built: Whether it has the variables that it needs for its updates.
  print(flow.optimizers.Adam().built)      --> false
optimizer:set_weights: Sets all variables of the optimizer, in their order.
  local sgd = flow.optimizers.SGD()
  sgd:set_weights { 3, 0.5 }
  print(sgd.learning_rate)      --> 0.5
optimizer:stateless_apply: An update of other values than variables have: the new values, and those of the optimizer's variables.
  local v, sgd = flow.Variable { 1 }, flow.optimizers.SGD(0.5)
  sgd:build { v }
  print(sgd:stateless_apply({ 0, 0.5 }, { flow.ones { 1 } }, { flow.tensor { 4 } })[1]:item())      --> 3.5
policy.quantization_mode: nil: layers are quantized one by one.
  print(flow.mixed_precision.Policy("mixed_bfloat16").quantization_mode)      --> nil
policy:get_config: Its name, as DTypePolicy.from_config takes it.
  print(flow.mixed_precision.Policy("mixed_bfloat16"):get_config().name)      --> mixed_bfloat16
layer:get_random_transformation: What a layer for pictures would draw for these: the same for pictures and masks.
  local flip, x = layers.RandomFlip(), flow.ones { 2, 4, 4, 3 }
  print(flip:get_random_transformation(x).flips.shape[1])      --> 2
layer:transform_images: Pictures, changed by what get_random_transformation gave.
  local crop, x = layers.RandomCrop(2, 2), flow.ones { 5, 4, 4, 3 }
  print(crop:transform_images(x, crop:get_random_transformation(x)).shape[2])      --> 2
layer:transform_segmentation_masks: Classes of pixels, moved as the pictures are by the same transformation.
  local flip, x = layers.RandomFlip(), flow.ones { 2, 4, 4, 3 }
  local transformation = flip:get_random_transformation(x)
  print(flip:transform_segmentation_masks(flow.ones({ 2, 4, 4, 1 }, { dtype = "int32" }), transformation).dtype)      --> int32
layer:transform_labels: Labels, changed with the pictures by the layers that mix them, else as they are.
  print(layers.RandomFlip():transform_labels(flow.tensor { 1, 0 }).shape[1])      --> 2
layer:transform_bounding_boxes: Boxes, changed by the layers that take them.
  local few = layers.MaxNumBoundingBoxes(3)
  local boxes = few:transform_bounding_boxes({ boxes = flow.ones { 1, 2, 4 }, labels = flow.ones { 1, 2 } })
  print(boxes.boxes.shape[2])      --> 3
layer:transform_single_image: transform_images of one picture.
  print(layers.CenterCrop(2, 2):transform_single_image(flow.ones { 4, 4, 3 }).shape[1])      --> 2
layer:transform_single_segmentation_mask: transform_segmentation_masks of one picture's.
  print(layers.CenterCrop(2, 2):transform_single_segmentation_mask(flow.ones { 4, 4, 1 }).shape[1])      --> 2
layer:transform_single_label: transform_labels of one picture's.
  print(layers.RandomFlip():transform_single_label(flow.tensor(3)):item())      --> 3
layer:transform_single_bounding_box: transform_bounding_boxes of one picture's.
  local few = layers.MaxNumBoundingBoxes(3)
  print(few:transform_single_bounding_box({ boxes = flow.ones { 1, 2, 4 }, labels = flow.ones { 1, 2 } }).labels.shape[2])      --> 3
layer.query_dense: The layer inside of an attention that projects queries; its variables are the attention's.
  local attention = layers.MultiHeadAttention(2, 4)
  attention(flow.ones { 1, 3, 8 }, flow.ones { 1, 3, 8 })
  print(attention.query_dense.kernel.shape[1])      --> 8
layer.key_dense: The layer inside of an attention that projects keys; its variables are the attention's.
  local attention = layers.MultiHeadAttention(2, 4)
  attention(flow.ones { 1, 3, 8 }, flow.ones { 1, 3, 8 })
  print(attention.key_dense.kernel.shape[1])      --> 8
layer.value_dense: The layer inside of an attention that projects values; its variables are the attention's.
  local attention = layers.MultiHeadAttention(2, 4)
  attention(flow.ones { 1, 3, 8 }, flow.ones { 1, 3, 8 })
  print(attention.value_dense.kernel.shape[1])      --> 8
layer.output_dense: The layer inside of an attention that projects outputs; its variables are the attention's.
  local attention = layers.MultiHeadAttention(2, 4)
  attention(flow.ones { 1, 3, 8 }, flow.ones { 1, 3, 8 })
  print(attention.output_dense.kernel.shape[1])      --> 2
variable.path: Its name with that of its layer.
  print(flow.Variable(1, { name = "gain" }).path)      --> gain
variable.regularizer: nil: layers have them.
  print(flow.Variable(1).regularizer)      --> nil
variable.overwrite_with_gradient: Whether an update sets it to its gradient: false.
  print(flow.Variable(1).overwrite_with_gradient)      --> false
]==]
