-- elsewhere_torch7.lua: where to find what scripts for Torch7, PyTorch's predecessor in Lua, have under another name; elsewhere.lua takes
-- it in. Its tensors change in place, those of flow do not.

local GRADIENTS = "gradients are taken by a tape: tape:record(f), tape:gradient(loss, model.trainable_variables)"
local STEP = "optimizer:apply_gradients(gradients, model.trainable_variables) after tape:gradient, or model:fit"
local TENSORS = "flow.zeros(shape), or flow.tensor(values, { dtype = ... })"
local GRAPHS = "flow.Model { inputs = input, outputs = output } holds layers that are called on each other's results"
local DTYPES = "layers take dtype, and flow.mixed_precision.set_global_policy(\"mixed_bfloat16\") is for all of them"
local CONV1, CONV2, CONV3 = "layers.Conv1D(filters, kernel_size)", "layers.Conv2D(filters, kernel_size), channels last",
  "layers.Conv3D(filters, kernel_size), channels last"

local criteria = {
  MSECriterion = "flow.losses.MeanSquaredError()", AbsCriterion = "flow.losses.MeanAbsoluteError()",
  ClassNLLCriterion = "flow.losses.SparseCategoricalCrossentropy() takes probabilities and classes from 0",
  CrossEntropyCriterion = "flow.losses.SparseCategoricalCrossentropy { from_logits = true }, whose classes count from 0",
  BCECriterion = "flow.losses.BinaryCrossentropy()", SmoothL1Criterion = "flow.losses.Huber()",
  DistKLDivCriterion = "flow.losses.KLDivergence()", MarginCriterion = "flow.losses.Hinge()",
}

local layers = {
  SpatialConvolution = CONV2, SpatialConvolutionMM = CONV2, TemporalConvolution = CONV1, VolumetricConvolution = CONV3,
  SpatialFullConvolution = "layers.Conv2DTranspose(filters, kernel_size), channels last",
  SpatialMaxPooling = "layers.MaxPooling2D(pool_size)", SpatialAveragePooling = "layers.AveragePooling2D(pool_size)",
  TemporalMaxPooling = "layers.MaxPooling1D(pool_size)", SpatialBatchNormalization = "layers.BatchNormalization()",
  SpatialDropout = "layers.SpatialDropout2D(rate)", SpatialZeroPadding = "layers.ZeroPadding2D(padding)",
  SpatialUpSamplingNearest = "layers.UpSampling2D(size)", SoftMax = "layers.Softmax()",
  LogSoftMax = "layers.Activation(\"log_softmax\")", SoftPlus = "layers.Activation(\"softplus\")", View = "layers.Reshape(shape)",
  LookupTable = "layers.Embedding(input_dim, output_dim), whose ids count from 0", JoinTable = "layers.Concatenate { axis = -1 }",
  CAddTable = "layers.Add()", CSubTable = "layers.Subtract()", CMulTable = "layers.Multiply()", Parallel = GRAPHS, ParallelTable = GRAPHS,
  ConcatTable = GRAPHS, Concat = GRAPHS, DepthConcat = GRAPHS, SelectTable = GRAPHS, gModule = GRAPHS,
}
local modules = { BatchNormalization = "layers.BatchNormalization()", Sigmoid = "layers.Activation(\"sigmoid\")" }
for _, names in ipairs { layers, criteria } do
  for name, place in pairs(names) do modules[name] = place end
end

return {
  flow = {
    manualSeed = "flow.set_random_seed(seed)", multinomial = "flow.random.categorical(logits, count)",
    setnumthreads = "flow.config.set_threads(n)", setdefaulttensortype = DTYPES,
    FloatTensor = TENSORS, DoubleTensor = TENSORS, LongTensor = TENSORS, IntTensor = TENSORS,
    ByteTensor = TENSORS, CudaTensor = "x:to(\"gpu:0\") is on a GPU", isTensor = "flow.is_tensor(x)", Timer = "os.clock() counts seconds",
    cmul = "flow.multiply(a, b)", cdiv = "flow.divide(a, b)", Linear = "layers.Dense(units)",
  },
  ["flow.nn"] = modules, ["flow.layers"] = layers, ["flow.losses"] = criteria,
  tensor = {
    nElement = "x.size is the number of elements", nDimension = "x.rank is the number of axes",
    narrow = "x[{ {}, { first, last } }] is a part of an axis",
    zero = "flow.zeros_like(x) is a new tensor, v:assign(value) changes a variable",
    fill = "flow.full_like(x, value) is a new tensor, v:assign(value) changes a variable", double = "x:to(\"float64\")",
    byte = "x:to(\"uint8\")", char = "x:to(\"int8\")", cmul = "x * y is a new tensor", cdiv = "x / y is a new tensor",
    csub = "x - y is a new tensor", cadd = "x + y is a new tensor", mv = "x:matmul(y)", index = "flow.take(x, positions, axis)",
    indexSelect = "flow.take(x, positions, axis)", type = "x.dtype is its type, x:to(dtype) gives another one",
    expandAs = "x:broadcast_to(y.shape)", repeatTensor = "x:tile(repeats)", storage = "x:data() is a pointer to its elements",
    apply = "operations take whole tensors, x:totable() gives Lua's numbers", isSameSizeAs = "x.shape == y.shape",
    chunk = "flow.split(x, parts, axis)",
    maskedSelect = "flow.boolean_mask(x, mask)", maskedFill = "flow.where(mask, value, x)", resize = "x:reshape(shape)",
    resizeAs = "x:reshape(y.shape)", typeAs = "x:to(y.dtype)",
  },
  model = {
    backward = GRADIENTS, getParameters = "model.trainable_variables is a list of them", zeroGradParameters = GRADIENTS,
    updateParameters = STEP, updateGradInput = GRADIENTS, accGradParameters = GRADIENTS, updateOutput = "model(x) computes",
    training = "model(x, { training = true }) and model:fit train", get = "model.layers[i] is a layer",
    size = "#model.layers is the number of layers", float = DTYPES, double = DTYPES,
  },
  layer = { backward = GRADIENTS, getParameters = "layer.trainable_variables is a list of them", updateOutput = "layer(x) computes" },
}
