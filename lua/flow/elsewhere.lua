-- elsewhere.lua: where to find what scripts for Keras and TensorFlow have under another name. Loaded when somebody asks for such a name.

return {
  flow = {
    preprocessing = "flow.image_dataset_from_directory reads pictures, and layers such as layers.RandomFlip change them",
    saved_model = "flow.load_model opens .keras files, model:export(folder) writes a folder for serving",
    ["function"] = "functions are traced by flow.fn(f)",
    reduce_mean = "flow.mean(x, axis, keepdims)", reduce_sum = "flow.sum(x, axis, keepdims)", reduce_max = "flow.max(x, axis, keepdims)",
    reduce_min = "flow.min(x, axis, keepdims)", reduce_prod = "flow.prod(x, axis, keepdims)",
    Tensor = "tensors are made by flow.tensor, flow.zeros and flow.random",
    convert_to_tensor = "flow.tensor(value) makes a tensor",
    constant_initializer = "initializers are in flow.initializers",
    estimator = "model:fit trains, and callbacks.BackupAndRestore(folder) goes on where a run was stopped",
  },
  ["flow.config"] = { experimental = "devices are in flow.config: list_physical_devices, set_logical_devices" },
  ["flow.distribute"] = {
    TPUStrategy = "there are CPUs and GPUs: MirroredStrategy() takes those of a machine, MultiWorkerMirroredStrategy() those of several",
    CentralStorageStrategy = "MirroredStrategy() keeps the variables of all replicas equal",
  },
  ["flow.models"] = { Layer = "layers are made by flow.layers.Layer:extend(name)" },
  ["flow.optimizers"] = { legacy = "flow.optimizers.Adam and the others are those of Keras 3" },
  -- methods of objects
  model = {
    fit_generator = "model:fit takes data sets, and flow.data.Dataset.from_generator makes one of a function",
    evaluate_generator = "model:evaluate takes data sets", predict_generator = "model:predict takes data sets",
    predict_classes = "the classes are model:predict(x):classes()", predict_proba = "model:predict(x) returns them",
  },
  -- options of calls
  ["model:fit"] = { nb_epoch = "it is epochs", workers = "data sets have threads: ds:map(f, { num_parallel_calls = 4 })",
    use_multiprocessing = "data sets have threads: ds:map(f, { num_parallel_calls = 4 })",
    max_queue_size = "data sets read ahead: ds:prefetch(4)" },
}
