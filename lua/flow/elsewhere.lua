-- elsewhere.lua: where to find what scripts for Keras and TensorFlow have under another name. Loaded when somebody asks for such a name.

return {
  flow = {
    keras = "what is in keras is in flow itself: flow.layers, flow.Sequential, flow.optimizers",
    utils = "labels become one-hot rows by flow.one_hot(labels, classes), pictures of a folder a data set by " ..
      "flow.image_dataset_from_directory, a model a picture by model:plot(file)",
    preprocessing = "flow.image_dataset_from_directory reads pictures, and layers such as layers.RandomFlip change them",
    saved_model = "flow.load_model opens .keras files, model:export(folder) writes a folder for serving",
    ["function"] = "functions are traced by flow.fn(f)",
    Tensor = "tensors are made by flow.tensor, flow.zeros and flow.random",
    convert_to_tensor = "flow.tensor(value) makes a tensor",
    constant_initializer = "initializers are in flow.initializers",
    estimator = "model:fit trains, and callbacks.BackupAndRestore(folder) goes on where a run was stopped",
  },
  ["flow.data"] = {
    Options = "options are a table: dataset:with_options { auto_shard_policy = \"DATA\" }",
    experimental = "the policies are texts: dataset:with_options { auto_shard_policy = \"DATA\" }; flow.AUTOTUNE is there",
  },
  ["flow.io"] = { gfile = "its functions are in flow.io: flow.io.exists, makedirs, glob, copy, remove, rmtree" },
  ["flow.models"] = { Layer = "layers are made by flow.layers.Layer:extend(name)" },
  ["flow.optimizers"] = { legacy = "flow.optimizers.Adam and the others are those of Keras 3" },
}
