-- fields.lua: what flow.help says of the fields of tensors and objects, and of constants: see reference/texts.lua for the form.
return [==[
tensor.shape: The sizes of the dimensions, a list.
  local shape = flow.zeros({ 2, 3 }).shape
  print(table.concat(shape, " x "))      --> 2 x 3
tensor.dtype: The type of the elements: "float32", "int64", "bool", "string" and others.
  print(flow.ones({ 2 }):to("float16").dtype)      --> float16
tensor.device: Where the elements are: "cpu", "gpu:0".
  print(flow.ones({ 2 }).device)
tensor.rank: The number of dimensions.
  print(flow.zeros({ 2, 3 }).rank)      --> 2
tensor.ndim: The number of dimensions, as NumPy calls it.
  print(flow.zeros({ 2, 3 }).ndim)      --> 2
tensor.size: The number of elements.
  print(flow.zeros({ 2, 3 }).size)      --> 6
variable.shape: The sizes of the dimensions, a list.
  print(flow.Variable({ 1, 2, 3 }).shape[1])      --> 3
variable.dtype: The type of the elements.
  print(flow.Variable({ 1, 2 }).dtype)      --> float32
variable.device: Where the elements are.
  print(flow.Variable({ 1, 2 }).device)
variable.rank: The number of dimensions.
  print(flow.Variable({ 1, 2 }).rank)      --> 1
variable.ndim: The number of dimensions, as NumPy calls it.
  print(flow.Variable({ 1, 2 }).ndim)      --> 1
variable.size: The number of elements.
  print(flow.Variable({ 1, 2 }).size)      --> 2
variable.name: Its name in the layer or optimizer that owns it, such as kernel.
  print(flow.Variable(1, { name = "gain" }).name)      --> gain
variable.trainable: Whether training changes it.
  print(flow.Variable(1, { trainable = false }).trainable)      --> false
layer.weights: All variables of the layer and of its layers, a list: those that are trained first.
  local dense = layers.Dense(2)
  dense:build { 4, 3 }
  print(#dense.weights)      --> 2
layer.variables: All variables, as weights.
  local dense = layers.Dense(2)
  dense:build { 4, 3 }
  print(#dense.variables)      --> 2
layer.trainable: Whether its variables are trained; false freezes them, for the layers inside, too. Compile the model again after a change.
  local dense = layers.Dense(2)
  dense.trainable = false
  print(dense.trainable)      --> false
layer.trainable_variables: The variables that training changes, a list.
  local norm = layers.BatchNormalization()
  norm:build { 4, 3 }
  print(#norm.trainable_variables)      --> 2
layer.trainable_weights: The variables that training changes, as trainable_variables.
  local norm = layers.BatchNormalization()
  norm:build { 4, 3 }
  print(#norm.trainable_weights)      --> 2
layer.non_trainable_variables: The variables that training leaves alone, such as moving statistics.
  local norm = layers.BatchNormalization()
  norm:build { 4, 3 }
  print(#norm.non_trainable_variables)      --> 2
layer.non_trainable_weights: The variables that training leaves alone, as non_trainable_variables.
  local norm = layers.BatchNormalization()
  norm:build { 4, 3 }
  print(#norm.non_trainable_weights)      --> 2
layer.name: Its name, which stands in summaries and files; a new one can be set.
  local dense = layers.Dense(2)
  dense.name = "head"
  print(dense.name)      --> head
layer.kernel: The variable of this name, if the layer has one.
  local dense = layers.Dense(2)
  dense:build { 4, 3 }
  print(table.concat(dense.kernel.shape, " x "))      --> 3 x 2
layer.bias: The variable of this name, if the layer has one.
  local dense = layers.Dense(2)
  dense:build { 4, 3 }
  print(dense.bias.shape[1])      --> 2
layer.reverse_embeddings: The table by which a ReversibleEmbedding goes back, where it is another one.
  local both = layers.ReversibleEmbedding(5, 2, { tie_weights = false })
  both:build { -1 }
  print(both.reverse_embeddings.shape[1])      --> 2
layer.embeddings: The table of an Embedding.
  local table_of = layers.Embedding(5, 2)
  table_of:build { -1 }
  print(table_of.embeddings.shape[1])      --> 5
layer.depthwise_kernel: Of a separable convolution: the kernels of each channel.
  local separable = layers.SeparableConv1D(4, 3)
  separable:build { -1, 9, 2 }
  print(separable.depthwise_kernel.shape[1])      --> 3
layer.pointwise_kernel: Of a separable convolution: what mixes the channels.
  local separable = layers.SeparableConv1D(4, 3)
  separable:build { -1, 9, 2 }
  print(separable.pointwise_kernel.shape[3])      --> 4
layer.gamma: The scale of a normalization.
  local norm = layers.BatchNormalization()
  norm:build { 4, 3 }
  print(norm.gamma.shape[1])      --> 3
layer.beta: The offset of a normalization.
  local norm = layers.BatchNormalization()
  norm:build { 4, 3 }
  print(norm.beta.shape[1])      --> 3
layer.moving_mean: The moving mean of a BatchNormalization.
  local norm = layers.BatchNormalization()
  norm:build { 4, 3 }
  print(norm.moving_mean.shape[1])      --> 3
layer.moving_variance: The moving variance of a BatchNormalization.
  local norm = layers.BatchNormalization()
  norm:build { 4, 3 }
  print(norm.moving_variance.shape[1])      --> 3
layer.adapt_mean: The variable of a Normalization that holds the mean of what it adapted to.
  local norm = layers.Normalization()
  norm:adapt(flow.tensor { { 1, 5 }, { 3, 7 } })
  print(norm.adapt_mean:totable()[2])      --> 6
layer.adapt_variance: The variable of a Normalization that holds the variance of what it adapted to.
  local norm = layers.Normalization()
  norm:adapt(flow.tensor { { 1, 5 }, { 3, 7 } })
  print(norm.adapt_variance:totable()[1])      --> 1
layer.mean: What Normalization subtracts, in a shape that broadcasts against the input.
  local norm = layers.Normalization()
  norm:adapt(flow.tensor { { 1 }, { 3 } })
  print(norm.mean:item())      --> 2
layer.variance: The square of what Normalization divides by, in a shape that broadcasts against the input.
  local norm = layers.Normalization()
  norm:adapt(flow.tensor { { 1 }, { 3 } })
  print(norm.variance:item())      --> 1
layer.bin_boundaries: Where the bins of a Discretization begin, after adapt or as given.
  print(layers.Discretization({ bin_boundaries = { 0, 1 } }).bin_boundaries[2])      --> 1
layer.built: Whether its variables have been made.
  print(layers.Dense(2).built)      --> false
layer.class_name: The name of its class.
  print(layers.Dense(2).class_name)      --> Dense
layer.dtype: The type of its variables, as variable_dtype.
  print(layers.Dense(2).dtype)      --> float32
layer.variable_dtype: The type in which its variables are kept.
  print(layers.Dense(2, { dtype = "mixed_float16" }).variable_dtype)      --> float32
layer.compute_dtype: The type in which it computes.
  print(layers.Dense(2, { dtype = "mixed_float16" }).compute_dtype)      --> float16
layer.dtype_policy: The policy that says in which types it computes and keeps variables.
  print(layers.Dense(2, { dtype = "mixed_float16" }).dtype_policy.name)      --> mixed_float16
layer.input: What it was called on in a functional model.
  local dense = layers.Dense(2)
  dense(flow.Input { 3 })
  print(dense.input.shape[2])      --> 3
layer.output: What it gave in a functional model.
  local dense = layers.Dense(2)
  dense(flow.Input { 3 })
  print(dense.output.shape[2])      --> 2
layer.losses: What it adds to the loss: penalties of regularizers, and what add_loss was given.
  print(#layers.Dense(2).losses)      --> 0
layer.supports_masking: Whether the mask of its input is that of its output.
  print(layers.Dropout(0.5).supports_masking)      --> true
layer.state_size: How large the states of a recurrent cell are.
  print(layers.GRUCell(4).state_size)      --> 4
layer.states: What a recurrent layer with stateful = true keeps from call to call: variables, none before the first call.
  local recurrent = layers.LSTM(4, { stateful = true })
  recurrent(flow.ones { 2, 3, 5 })
  print(#recurrent.states * recurrent.states[1].shape[1])      --> 4
layer.output_size: How large the output of a recurrent cell is.
  print(layers.GRUCell(4).output_size)      --> 4
model.layers: Its layers in the order of calls: the first is layers[1].
  print(#flow.Sequential({ layers.Input { 3 }, layers.Dense(2) }).layers)      --> 1
model.input: What stands for its input, from which further models can be made.
  print(flow.Sequential({ layers.Input { 3 }, layers.Dense(2) }).input.shape[2])      --> 3
model.output: What stands for its output.
  print(flow.Sequential({ layers.Input { 3 }, layers.Dense(2) }).output.shape[2])      --> 2
model.input_shape: The shape of its input; the first size is that of the batch, -1.
  print(flow.Sequential({ layers.Input { 3 }, layers.Dense(2) }).input_shape[2])      --> 3
model.output_shape: The shape of its output; the first size is that of the batch, -1.
  print(flow.Sequential({ layers.Input { 3 }, layers.Dense(2) }).output_shape[2])      --> 2
model.optimizer: What it was compiled with, an optimizer.
  local model = flow.Sequential { layers.Input { 3 }, layers.Dense(2) }
  model:compile { optimizer = "sgd", loss = "mse" }
  print(model.optimizer.learning_rate)
model.loss: The loss that it was compiled with.
  local model = flow.Sequential { layers.Input { 3 }, layers.Dense(2) }
  model:compile { optimizer = "sgd", loss = "mse" }
  print(model.loss)      --> mse
model.metrics: The metrics of training, a list: the mean of the loss first.
  local model = flow.Sequential { layers.Input { 3 }, layers.Dense(2) }
  model:compile { optimizer = "sgd", loss = "mse" }
  print(model.metrics[1].name)      --> loss
model.metrics_names: The names of its metrics.
  local model = flow.Sequential { layers.Input { 3 }, layers.Dense(2) }
  model:compile { optimizer = "sgd", loss = "mse" }
  print(model.metrics_names[1])      --> loss
model.run_eagerly: Whether the compiled model runs its steps without plans; can be set after compile.
  local model = flow.Sequential { layers.Input { 3 }, layers.Dense(2) }
  model:compile { optimizer = "sgd", loss = "mse" }
  model.run_eagerly = true
  print(model.run_eagerly)      --> true
model.stop_training: Set to true by a callback, it ends fit after the epoch.
  print(flow.Sequential({ layers.Input { 3 }, layers.Dense(2) }).stop_training)      --> false
model.class_names: The names of the classes of the data that it was trained on, if it had names; a file keeps them.
  local model = flow.Sequential { layers.Input { 3 }, layers.Dense(2) }
  print(model.class_names)      --> nil
model.distribute_strategy: The strategy in whose scope it was made.
  print(flow.Sequential({ layers.Input { 3 }, layers.Dense(2) }).distribute_strategy.num_replicas_in_sync)      --> 1
optimizer.learning_rate: The rate, a number; another one can be assigned.
  local optimizer = flow.optimizers.SGD(0.5)
  optimizer.learning_rate = 0.25
  print(optimizer.learning_rate)      --> 0.25
optimizer.iterations: The number of steps that it has done.
  print(flow.optimizers.SGD(0.5).iterations)      --> 0
optimizer.variables: Its state: variables that it keeps for those that it trains.
  print(#flow.optimizers.SGD(0.5).variables)
dataset.element_spec: The shapes and dtypes of its elements.
  print(flow.data.Dataset.range(3).element_spec[1].dtype)      --> int64
dataset.class_names: The names of the folders that a data set of files was made from.
  flow.io.gfile.makedirs "photos/rose"
  flow.image.save("photos/rose/1.png", flow.zeros { 2, 2, 3 })
  local ds = flow.image_dataset_from_directory("photos", { image_size = { 2, 2 } })
  print(ds.class_names[1])      --> rose
dataset.file_paths: The paths of a data set of files.
  flow.io.gfile.makedirs "photos/rose"
  flow.image.save("photos/rose/1.png", flow.zeros { 2, 2, 3 })
  local ds = flow.image_dataset_from_directory("photos", { image_size = { 2, 2 } })
  print(#ds.file_paths)      --> 1
manager.checkpoints: The paths that are kept, the oldest first.
  local manager = flow.train.CheckpointManager(flow.train.Checkpoint { v = flow.Variable(1) }, "checkpoints", { max_to_keep = 2 })
  manager:save()
  print(#manager.checkpoints)      --> 1
manager.latest_checkpoint: The path of the newest one, or nil.
  local manager = flow.train.CheckpointManager(flow.train.Checkpoint { v = flow.Variable(1) }, "no_checkpoints", { max_to_keep = 2 })
  print(manager.latest_checkpoint)      --> nil
resolver.task_type: What this process is in its cluster: "worker", "chief", "ps", "evaluator"; nil without a cluster.
  print(flow.distribute.MultiWorkerMirroredStrategy().cluster_resolver.task_type)
resolver.task_id: Which of the tasks of its type this process is, counted from 0; nil without a cluster.
  print(flow.distribute.MultiWorkerMirroredStrategy().cluster_resolver.task_id)
resolver.num_workers: The number of workers.
  print(flow.distribute.MultiWorkerMirroredStrategy().cluster_resolver.num_workers)      --> 1
resolver.is_chief: Whether this process is the one that writes files for all.
  print(flow.distribute.MultiWorkerMirroredStrategy().cluster_resolver.is_chief)      --> true
strategy.cluster_resolver: What tells which task of which cluster this process is.
  print(flow.distribute.MultiWorkerMirroredStrategy().cluster_resolver.num_workers)      --> 1
context.num_replicas_in_sync: The number of replicas that take part in a step.
  print(flow.distribute.get_replica_context().num_replicas_in_sync)      --> 1
writer.path: The path of the file that it writes.
  print(#flow.summary.create_file_writer("logs").path > 0)      --> true
flow.AUTOTUNE: For num_parallel_calls and prefetch: the library chooses.
  print(flow.AUTOTUNE)      --> -1
flow.newaxis: In an index a new axis of size 1; false says the same.
  print(#flow.ones({ 2, 3 })[{ "...", flow.newaxis }].shape)      --> 3
flow.data.AUTOTUNE: For num_parallel_calls and prefetch: the library chooses.
  print(flow.data.AUTOTUNE)      --> -1
flow.data.INFINITE_CARDINALITY: What dataset:cardinality() gives for data that repeats without end.
  print(flow.data.Dataset.range(3):repeat_():cardinality() == flow.data.INFINITE_CARDINALITY)      --> true
flow.data.UNKNOWN_CARDINALITY: What dataset:cardinality() gives where only reading the data tells.
  print(flow.data.Dataset.range(3):filter(function(i) return i:gt(1) end):cardinality() == flow.data.UNKNOWN_CARDINALITY)      --> true
flow.data.SHARD_HINT: For dataset:shard in what a strategy distributes: each worker puts its own numbers there.
  print(flow.data.SHARD_HINT)      --> -1
flow.data.AutoShardPolicy: How workers share a data set: FILE, DATA (its elements), AUTO, HINT (it says itself) or OFF.
  print(flow.data.AutoShardPolicy.DATA)      --> 2
flow.data.Dataset: Data in stages that run on their own threads; made by from_tensor_slices, from_generator, range and others.
  for x in flow.data.Dataset.from_tensor_slices({ 1, 2, 3 }):batch(2):iter() do print(x.shape[1]) end
flow.distribute.ReduceOp: How values of replicas become one: SUM or MEAN.
  print(flow.distribute.ReduceOp.SUM)      --> SUM
flow.distribute.CommunicationImplementation: How workers add up: AUTO, RING, NCCL or MPI.
  print(flow.distribute.CommunicationImplementation.RING)      --> RING
flow.distribute.CollectiveCommunication: How workers add up, by TensorFlow's older name.
  print(flow.distribute.CollectiveCommunication.RING)      --> RING
flow.io.mounts: Where buckets are mounted: paths of gs://bucket are below mounts.gs.
  print(flow.io.mounts.gs)      --> /gcs
flow.library: The path of the library that this process uses.
  print(#flow.library > 0)      --> true
flow.random.global_seed: What flow.set_random_seed was given last, or false.
  flow.set_random_seed(3)
  print(flow.random.global_seed)      --> 3
flow.version: The version of the library.
  print(#flow.version > 0)      --> true
]==]
