-- keras.lua: what flow.help says of your own initializers and regularizers, of configs and of flow.keras: see reference/texts.lua.
return [==[
flow.initializers.STFT: Kernels of a convolution that gives the real or imaginary part of a Fourier transform of frames, under a window.
  print(flow.initializers.STFT { side = "imag", window = "hamming" }({ 64, 1, 33 }).shape[3])      --> 33
flow.initializers.Initializer: What initializers written in Lua extend: call(shape, options) gives a tensor of this shape.
  local Half = flow.initializers.Initializer:extend "Half"
  function Half:call(shape, options) return flow.full(shape, 0.5, { dtype = options.dtype }) end
  print(layers.Dense(1, { kernel_initializer = Half() })(flow.ones { 1, 4 }):item())      --> 2
initializer:call: A new tensor of this shape; initializer(shape) is the same.
  print(flow.initializers.Constant(3):call({ 2 })[1]:item())      --> 3
Initializer.extend: A class of initializers written in Lua.
  local Half = flow.initializers.Initializer:extend "Half"
  function Half:call(shape, options) return flow.full(shape, 0.5, { dtype = options.dtype }) end
  print(Half()({ 2 })[1]:item())      --> 0.5
flow.regularizers.Regularizer: What regularizers written in Lua extend: call(x) gives what they add to the loss for weights x.
  local Mean = flow.regularizers.Regularizer:extend "Mean"
  function Mean:call(x) return flow.mean(x) end
  local layer = layers.Dense(1, { kernel_initializer = "ones", kernel_regularizer = Mean() })
  layer(flow.ones { 1, 4 })
  print(layer.losses[1]:item())      --> 1
regularizer:call: What it adds to the loss for weights, a scalar; regularizer(x) is the same.
  print(flow.regularizers.L2(0.5):call(flow.ones { 4 }):item())      --> 2
Regularizer.extend: A class of regularizers written in Lua.
  local Mean = flow.regularizers.Regularizer:extend "Mean"
  function Mean:call(x) return flow.mean(x) end
  print(Mean()(flow.ones { 4 }):item())      --> 1
choice:get_config: The options of an initializer, regularizer or constraint, as Keras' config has them: axes from 0.
  print(flow.regularizers.L2(0.5):get_config().l2)      --> 0.5
flow.initializers.get: The object of a name or of what serialize gave; an object or a function is itself, nil is nil.
  print(flow.initializers.get("he_normal"))      --> HeNormal
flow.initializers.serialize: What a Keras file says of the object: { module =, class_name =, config =, registered_name = }.
  print(flow.initializers.serialize(flow.initializers.Constant(3)).class_name)      --> Constant
flow.initializers.deserialize: The object again of what serialize, or Keras, gave.
  local entry = flow.initializers.serialize(flow.initializers.Constant(3))
  print(flow.initializers.serialize(flow.initializers.deserialize(entry)).class_name)      --> Constant
flow.regularizers.get: The object of a name or of what serialize gave; an object or a function is itself, nil is nil.
  print(flow.regularizers.get("l2"))      --> L2
flow.regularizers.serialize: What a Keras file says of the object: { module =, class_name =, config =, registered_name = }.
  print(flow.regularizers.serialize(flow.regularizers.L2(0.5)).class_name)      --> L2
flow.regularizers.deserialize: The object again of what serialize, or Keras, gave.
  local entry = flow.regularizers.serialize(flow.regularizers.L2(0.5))
  print(flow.regularizers.serialize(flow.regularizers.deserialize(entry)).class_name)      --> L2
flow.constraints.get: The object of a name or of what serialize gave; an object or a function is itself, nil is nil.
  print(flow.constraints.get("non_neg"))      --> NonNeg
flow.constraints.serialize: What a Keras file says of the object: { module =, class_name =, config =, registered_name = }.
  print(flow.constraints.serialize(flow.constraints.NonNeg()).class_name)      --> NonNeg
flow.constraints.deserialize: The object again of what serialize, or Keras, gave.
  local entry = flow.constraints.serialize(flow.constraints.NonNeg())
  print(flow.constraints.serialize(flow.constraints.deserialize(entry)).class_name)      --> NonNeg
flow.losses.serialize: What a Keras file says of the object: { module =, class_name =, config =, registered_name = }.
  print(flow.losses.serialize(flow.losses.Huber(0.5)).class_name)      --> Huber
flow.losses.deserialize: The object again of what serialize, or Keras, gave.
  local entry = flow.losses.serialize(flow.losses.Huber(0.5))
  print(flow.losses.serialize(flow.losses.deserialize(entry)).class_name)      --> Huber
flow.metrics.serialize: What a Keras file says of the object: { module =, class_name =, config =, registered_name = }.
  print(flow.metrics.serialize(flow.metrics.Precision()).class_name)      --> Precision
flow.metrics.deserialize: The object again of what serialize, or Keras, gave.
  local entry = flow.metrics.serialize(flow.metrics.Precision())
  print(flow.metrics.serialize(flow.metrics.deserialize(entry)).class_name)      --> Precision
flow.optimizers.serialize: What a Keras file says of the object: { module =, class_name =, config =, registered_name = }.
  print(flow.optimizers.serialize(flow.optimizers.SGD(0.5)).class_name)      --> SGD
flow.optimizers.deserialize: The object again of what serialize, or Keras, gave.
  local entry = flow.optimizers.serialize(flow.optimizers.SGD(0.5))
  print(flow.optimizers.serialize(flow.optimizers.deserialize(entry)).class_name)      --> SGD
flow.optimizers.schedules.serialize: What a Keras file says of the object: { module =, class_name =, config =, registered_name = }.
  print(flow.optimizers.schedules.serialize(flow.optimizers.schedules.ExponentialDecay(1, 10, 0.5)).class_name)      --> ExponentialDecay
flow.optimizers.schedules.deserialize: The object again of what serialize, or Keras, gave.
  local entry = flow.optimizers.schedules.serialize(flow.optimizers.schedules.ExponentialDecay(1, 10, 0.5))
  print(flow.optimizers.schedules.serialize(flow.optimizers.schedules.deserialize(entry)).class_name)      --> ExponentialDecay
flow.layers.serialize: What a Keras file says of the object: { module =, class_name =, config =, registered_name = }.
  print(flow.layers.serialize(layers.Dense(2)).class_name)      --> Dense
flow.layers.deserialize: The object again of what serialize, or Keras, gave.
  local entry = flow.layers.serialize(layers.Dense(2))
  print(flow.layers.serialize(flow.layers.deserialize(entry)).class_name)      --> Dense
flow.utils.serialize_keras_object: What Keras files say of a layer, loss, initializer or other object, or of a list or table of them.
  print(flow.utils.serialize_keras_object(layers.Dense(2)).class_name)      --> Dense
flow.utils.deserialize_keras_object: The object, or the list or table of them, again.
  local entry = flow.utils.serialize_keras_object { a = layers.Dense(2), b = 3 }
  print(flow.utils.deserialize_keras_object(entry).a.units)      --> 2
loss:get_config: The arguments that make the loss again, as a table.
  print(flow.losses.Huber(0.5):get_config().delta)      --> 0.5
metric:get_config: The arguments that make the metric again, as a table.
  print(flow.metrics.TopKCategoricalAccuracy(3):get_config().k)      --> 3
schedule:get_config: The arguments that make the schedule again, as a table.
  print(flow.optimizers.schedules.ExponentialDecay(1, 10, 0.5):get_config().decay_rate)      --> 0.5
model:get_compile_config: What compile() was given, as a file describes it.
  local model = flow.Sequential { layers.Input { 2 }, layers.Dense(1) }
  model:compile { optimizer = "sgd", loss = "mse" }
  print(model:get_compile_config().loss)      --> mse
model:compile_from_config: Compiles the model as get_compile_config() of another said.
  local model = flow.Sequential { layers.Input { 2 }, layers.Dense(1) }
  model:compile { optimizer = "sgd", loss = "mse" }
  model:compile_from_config(model:get_compile_config())
flow.models.save_model: model:save(path), as a function.
  flow.models.save_model(flow.Sequential { layers.Input { 2 }, layers.Dense(1) }, "m.keras")
flow.models.save_weights: model:save_weights(path), as a function.
  flow.models.save_weights(flow.Sequential { layers.Input { 2 }, layers.Dense(1) }, "m.weights.h5")
flow.models.load_weights: model:load_weights(path), as a function.
  local model = flow.Sequential { layers.Input { 2 }, layers.Dense(1) }
  model:save_weights("m.weights.h5")
  flow.models.load_weights(model, "m.weights.h5")
flow.keras.activations.get: The function of a name; nil is the one that changes nothing.
  print(flow.keras.activations.get("relu")(flow.tensor { -1 }):item())      --> 0
flow.keras.activations.serialize: The name of an activation, as files have it.
  print(flow.keras.activations.serialize(flow.relu))      --> relu
flow.keras.activations.deserialize: The function that serialize named.
  print(flow.keras.activations.deserialize("relu")(flow.tensor { -1 }):item())      --> 0
flow.keras.backend.get_uid: 1, 2, ... for each prefix.
  print(flow.keras.backend.get_uid("block") < flow.keras.backend.get_uid("block"))      --> true
flow.keras.backend.is_float_dtype: Whether a dtype is one of floats.
  print(flow.keras.backend.is_float_dtype("bfloat16"))      --> true
flow.keras.backend.is_int_dtype: Whether a dtype is one of integers.
  print(flow.keras.backend.is_int_dtype("uint8"))      --> true
flow.keras.config.backend: The name of what computes.
  print(flow.keras.config.backend())      --> flowlua
flow.keras.config.dtype_policy: The policy of layers that name none.
  print(flow.keras.config.dtype_policy().name)      --> float32
flow.keras.config.set_dtype_policy: Sets it: flow.mixed_precision.set_global_policy(policy).
  flow.keras.config.set_dtype_policy "float32"
flow.keras.config.floatx: The dtype of layers' weights.
  print(flow.keras.config.floatx())      --> float32
flow.keras.config.epsilon: The small number of losses.
  print(flow.keras.config.epsilon())      --> 1e-07
flow.keras.config.image_data_format: The order of the axes of pictures in tensors.
  print(flow.keras.config.image_data_format())      --> channels_last
flow.keras.config.set_floatx: Takes "float32", which it is; anything else is an error that says what to write.
  flow.keras.config.set_floatx "float32"
flow.keras.config.set_epsilon: Takes 1e-7, which it is; anything else is an error that says what to write.
  flow.keras.config.set_epsilon(1e-7)
flow.keras.config.set_image_data_format: Takes "channels_last", which it is; anything else is an error that says what to write.
  flow.keras.config.set_image_data_format "channels_last"
flow.keras.distribution.DataParallel: A replica of the model on each device, as flow.distribute.MirroredStrategy.
  local parallel = flow.keras.distribution.DataParallel { devices = { "cpu:0" } }
  local model = parallel.scope(function() return flow.Sequential { flow.layers.Input { 2 }, flow.layers.Dense(1) } end)
  print(#model.layers)      --> 1
flow.keras.distribution.list_devices: The names of the devices of a kind.
  print(flow.keras.distribution.list_devices("cpu")[1])      --> cpu:0
flow.keras.distribution.get_device_count: How many devices of a kind there are.
  print(flow.keras.distribution.get_device_count("cpu"))      --> 1
flow.keras.distribution.distribution: The strategy of the scope that is open, or nil.
  print(flow.keras.distribution.distribution())      --> nil
flow.keras.distribution.set_distribution: Nothing but an error that names scopes: a strategy counts in its scope.
  flow.keras.distribution.set_distribution(nil)
flow.keras.tree.is_nested: Whether a value is a list or table with its own entries.
  print(flow.keras.tree.is_nested(flow.ones { 2 }))      --> false
flow.keras.tree.flatten: All leaves as a list: lists in their order, tables by their keys, sorted.
  print(table.concat(flow.keras.tree.flatten { b = { 2, 3 }, a = 1 }, " "))      --> 1 2 3
flow.keras.tree.flatten_with_path: A list of { path, leaf }; a path is a list of keys.
  print(flow.keras.tree.flatten_with_path({ a = { 5 } })[1][1][1])      --> a
flow.keras.tree.map_structure: The structure of the first, with f of the leaves of each place.
  print(flow.keras.tree.map_structure(function(a, b) return a + b end, { x = 1 }, { x = 10 }).x)      --> 11
flow.keras.tree.map_structure_up_to: The same down to the leaves of the first structure only.
  print(flow.keras.tree.map_structure_up_to({ x = 0 }, function(list) return #list end, { x = { 7, 8 } }).x)      --> 2
flow.keras.tree.pack_sequence_as: The structure with the leaves of a list.
  print(flow.keras.tree.pack_sequence_as({ a = 0, b = { 0 } }, { 5, 6 }).b[1])      --> 6
flow.keras.tree.assert_same_structure: Raises unless two structures have the same keys at each level.
  flow.keras.tree.assert_same_structure({ a = 1 }, { a = 2 })
flow.keras.tree.assert_same_paths: The same.
  flow.keras.tree.assert_same_paths({ a = 1 }, { a = 2 })
flow.keras.tree.traverse: What f makes of each node and leaf; where it returns nil the node stays.
  print(flow.keras.tree.traverse(function(x) return type(x) == "number" and -x or nil end, { 1, { 2 } })[2][1])      --> -2
flow.datasets.fashion_mnist: The pictures of clothes of IDX files in a folder: x_train, y_train, x_test, y_test.
  print((pcall(flow.datasets.fashion_mnist, { path = "nowhere" })))      --> false
flow.utils.clear_session: Automatic names of layers count from the beginning again.
  flow.utils.clear_session()
flow.datasets.fashion_mnist.load_data: The four tensors of Fashion-MNIST from files that are there.
  local ok, problem = pcall(flow.datasets.fashion_mnist.load_data, "nowhere")
  print(problem:find("no data found", 1, true) ~= nil)      --> true
]==]
