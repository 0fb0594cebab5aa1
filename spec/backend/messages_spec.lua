--- What ops say about shapes and dtypes that do not fit: the op, what was found, what was expected. The expected words are
-- written out, so that a message that loses a shape is seen.
local flow = require "flow"
local backend = require "spec.support.backend"

local function zeros(...) return flow.zeros { ... } end
local function ints(...) return flow.zeros({ ... }, { dtype = "int32" }) end
local function doubles(...) return flow.zeros({ ... }, { dtype = "float64" }) end

local function bytes(dtype, ...) return flow.zeros({ ... }, { dtype = dtype }) end

local convolution = { convolution = { stride = { 1, 1 }, dilation = { 1, 1 }, groups = 1 } }
local depthwise = { convolution = { stride = { 1, 1 }, dilation = { 1, 1 }, groups = 2 } }
local pool = { pool = { size = { 2, 2 }, stride = { 2, 2 }, input_size = { 4, 4 } } }
local over_axis_5 = { reduce = { count = 1, axes = { 5 } } }

--- { op, inputs, attributes, words that the message must hold ... }
local wrong = {
  { "convolution", { zeros(2, 8, 8), zeros(3, 3, 3, 4) }, convolution, "{2, 8, 8}", "{batch, height, width, channels}" },
  { "convolution", { zeros(2, 8, 8, 5), zeros(3, 3, 3, 4) }, convolution, "{2, 8, 8, 5}", "5 channels", "{3, 3, 3, 4}" },
  { "convolution", { zeros(2, 8, 8, 3), doubles(3, 3, 3, 4) }, convolution, "the kernel", "float64", "float32" },
  { "convolution", { ints(2, 8, 8, 3), ints(3, 3, 3, 4) }, convolution, "floating-point", "int32" },
  { "convolution", { zeros(2, 2, 2, 3), zeros(3, 3, 3, 4) }, convolution, "2", "3" },
  { "convolution_gradient", { zeros(2, 5, 5, 4), zeros(2, 8, 8, 3), zeros(3, 3, 3, 4), zeros(2, 6, 6, 4),
    flow.zeros({ 0 }, { dtype = "uint8" }) }, convolution, "the gradient", "{2, 5, 5, 4}", "{2, 6, 6, 4}" },
  { "max_pool", { zeros(2, 8, 8) }, pool, "{2, 8, 8}", "{batch, height, width, channels}" },
  { "max_pool", { zeros(2, 1, 8, 3) }, pool, "1" },
  { "max_pool_gradient", { zeros(2, 2, 2, 3), flow.zeros({ 2, 2, 3, 3 }, { dtype = "uint8" }) }, pool, "{2, 2, 3, 3}", "{2, 2, 2, 3}" },
  { "average_pool", { zeros(2, 8, 8) }, pool, "{2, 8, 8}", "{batch, height, width, channels}" },
  { "average_pool", { ints(2, 8, 8, 3) }, pool, "floating-point", "int32" },
  { "average_pool_gradient", { zeros(2, 2, 3, 3) }, pool, "{2, 2, 3, 3}", "{2, 2, 2, 3}" },
  { "matmul", { zeros(2, 3), zeros(4, 5) }, nil, "{2, 3}", "{4, 5}" },
  { "matmul", { zeros(2, 2, 3), zeros(3, 3, 5) }, nil, "{2}", "{3}" },
  { "dense", { zeros(2, 3), zeros(4, 5), zeros(5) }, nil, "{2, 3}", "{4, 5}" },
  { "dense", { zeros(2, 3), zeros(3, 5), zeros(4) }, nil, "{4}", "{5}" },
  { "dense", { ints(2, 3), ints(3, 5), ints(5) }, nil, "floating-point", "int32" },
  { "batch_norm", { zeros(2, 3), zeros(4), zeros(3) }, nil, "gamma", "{4}", "{3}" },
  { "batch_norm", { zeros(3), zeros(3), zeros(3) }, nil, "{3}", "{batch, ..., channels}" },
  { "batch_norm_gradient", { zeros(2, 4), zeros(2, 3), zeros(3), zeros(3), zeros(3) }, nil, "{2, 4}", "{2, 3}" },
  { "normalize", { ints(2, 3) }, { normalization = { axis = -1 } }, "floating-point", "int32" },
  { "normalize", { zeros(2, 3) }, { normalization = { axis = 2 } }, "axis 3 (counted from 1)", "{2, 3}" },
  { "normalize", { zeros(2, 3) }, { normalization = { axis = 1, epsilon = -0.5 } }, "epsilon is -0.5", "0 or more" },
  { "normalize_gradient", { zeros(2, 4), zeros(2, 3), zeros(2, 1) }, { normalization = { axis = 1 } }, "{2, 4}", "{2, 3}" },
  { "normalize_gradient", { zeros(2, 3), zeros(2, 3), zeros(2, 3) }, { normalization = { axis = 1 } }, "r has", "{2, 1}" },
  { "layer_norm", { zeros(2, 3), zeros(2, 3) }, { normalization = { axis = 1 } }, "gamma", "{2, 3}", "{3}" },
  { "layer_norm", { zeros(2, 3), zeros(1, 3), zeros(4) }, { normalization = { axis = 1 } }, "beta", "{4}", "{3}" },
  { "softmax", { ints(2, 3) }, { axis = { axis = -1 } }, "floating-point", "int32" },
  { "softmax", { zeros(2, 3) }, { axis = { axis = 2 } }, "2", "{2, 3}" },
  { "log_softmax", { zeros(2, 3) }, { axis = { axis = -3 } }, "-3", "{2, 3}" },
  { "softmax_gradient", { zeros(2, 3), zeros(2, 4) }, { axis = { axis = -1 } }, "{2, 4}", "{2, 3}" },
  { "sparse_cross_entropy", { zeros(2, 3), zeros(2) }, nil, "the labels", "float32", "integers" },
  { "sparse_cross_entropy", { zeros(2, 3), ints(3) }, nil, "the labels", "{3}", "{2}" },
  { "sparse_cross_entropy_gradient", { zeros(3), zeros(2, 3), ints(2) }, nil, "{3}", "{2}" },
  { "simple_rnn", { zeros(2, 3), zeros(3, 3), zeros(2, 3) }, nil, "{2, 3}", "{batch, steps, gates}" },
  { "simple_rnn_gradient", { zeros(2, 4, 3), zeros(3, 3), zeros(2, 5, 3) }, nil, "the sequence", "{2, 5, 3}", "{2, 4, 3}" },
  { "lstm", { zeros(2, 4, 12), zeros(3, 9), zeros(2, 3), zeros(2, 3) }, nil, "{3, 9}", "{3, 12}" },
  { "lstm", { zeros(2, 4, 12), zeros(3, 12), zeros(2, 3), zeros(3, 3) }, nil, "c has", "{3, 3}", "{2, 3}" },
  { "lstm", { zeros(2, 4, 12), zeros(3, 12), zeros(2, 3), zeros(2, 3), ints(2, 4) }, nil, "floating-point", "int32" },
  { "lstm_gradient", { zeros(2, 4, 3), zeros(2, 3), zeros(3, 12), zeros(2, 3), zeros(2, 4, 12) }, nil, "the history", "{2, 4, 15}" },
  { "gru", { zeros(2, 4, 9), zeros(3, 9), zeros(2, 3), zeros(3) }, nil, "b has", "{3}", "{9}" },
  { "gru", { zeros(2, 4, 9), zeros(3, 9), zeros(2, 3), zeros(9), flow.zeros({ 2, 5 }, { dtype = "bool" }) }, nil, "the mask", "{2, 5}",
    "{2, 4}" },
  { "gru_gradient", { zeros(2, 4, 3), zeros(3, 9), zeros(2, 3), zeros(2, 4, 3), zeros(2, 4, 9) }, nil, "the history", "{2, 4, 12}" },
  { "resize", { zeros(2, 8, 8) }, { resize = { size = { 4, 4 } } }, "{2, 8, 8}", "{batch, height, width, channels}" },
  { "resize", { ints(2, 8, 8, 3) }, { resize = { size = { 4, 4 } } }, "floating-point", "int32" },
  { "resize", { zeros(2, 8, 8, 3) }, { resize = { size = { 0, 4 } } }, "0 by 4", "from 1" },
  { "resize", { zeros(2, 8, 8, 3) }, { resize = { size = { 4, 4 }, interpolation = 6 } }, "interpolation 6", "there is no" },
  { "resize_gradient", { zeros(2, 4, 4, 3) }, { resize = { size = { 5, 4 }, input_size = { 8, 8 } } }, "{2, 4, 4, 3}", "{2, 5, 4, 3}" },
  { "sample_image", { zeros(2, 8, 8, 3), zeros(3, 8) }, nil, "{3, 8}", "{2, 8}" },
  { "sample_image", { zeros(2, 8, 8, 3), zeros(2, 8) }, { sampling = { fill_mode = 4 } }, "fill mode 4", "there is no" },
  { "sample_image_gradient", { zeros(2, 8, 8, 3), zeros(2, 6) }, nil, "{2, 6}", "{2, 8}" },
  { "sample_uniform", { zeros(2) }, { random = { rank = 1, dims = { 3 }, low = 2, high = 1 } }, "2 to 1", "lower end first" },
  { "dropout", { ints(2) }, nil, "floating-point", "int32" },
  { "dropout", { zeros(2) }, { dropout = { rate = 1.5 } }, "1.5", "0 to 1" },
  { "where", { zeros(2), zeros(3), zeros(3) }, nil, "{2}", "{3}" },
  { "broadcast_to", { zeros(2, 3) }, { shape = { rank = 2, dims = { 2, 4 } } }, "{2, 3}", "{2, 4}" },
  { "cast", { zeros(2) }, { cast = { dtype = 77 } }, "77" },
  { "casts", { zeros(2) }, { cast = { dtype = 3 } }, "number 3", "float16 or bfloat16" },
  { "casts", { doubles(2) }, { cast = { dtype = 2 } }, "float64", "float32" },
  { "transpose_filters", { zeros(3, 3, 8) }, { transpose_filters = { dtype = 0 } }, "{3, 3, 8}", "channels in / groups, channels out" },
  { "transpose_filters", { zeros(3, 3, 8, 4) }, { transpose_filters = { dtype = 6 } }, "number 6", "that of a float" },
  { "reshape", { zeros(2, 3) }, { shape = { rank = 1, dims = { 7 } } }, "{2, 3}", "{7}" },
  { "transpose", { zeros(2, 3) }, { transpose = { rank = 2, axes = { 0, 0 } } }, "axis 1", "permutation" },
  { "concat", { zeros(2, 3), zeros(3, 4) }, { axis = { axis = 1 } }, "{2, 3}", "{3, 4}" },
  { "slice", { zeros(2, 3) }, { slice = { rank = 1, ["end"] = { 2 }, step = { 1 } } }, "{2, 3}", "1" },
  { "slice_gradient", { zeros(2, 3) }, { slice = { rank = 2, ["end"] = { 9, 9 }, step = { 1, 1 }, dims = { 4, 4 } } }, "{2, 3}", "{4, 4}" },
  { "argmax", { zeros(2, 3) }, { reduce = { count = 2, axes = { 0, 1 } } }, "2 axes" },
  { "max", { zeros(0, 3) }, nil, "{0, 3}" },
  { "pack", { zeros(2), doubles(2) }, nil, "float32", "float64" },
  { "fill", {}, { fill = { rank = 9 } }, "9", "8" },
  { "random_normal", {}, { random = { rank = 1, dims = { 2 }, dtype = 6, high = 1 } }, "int32" },
  { "random_uniform", {}, { random = { rank = 1, dims = { 2 }, low = 2, high = 1 } }, "2 to 1" },
  { "random_truncated_normal", {}, { random = { rank = 1, dims = { 2 }, high = -1 } }, "-1" },
  { "assign", { zeros(2, 3), zeros(4) }, nil, "{4}", "{2, 3}" },
  { "assign_add", { zeros(3), zeros(2, 3) }, nil, "{2, 3}", "{3}" },
  { "sgd", { zeros(2), zeros(3), zeros() }, nil, "{2}", "{3}" },
  { "rmsprop", { zeros(3), zeros(3), zeros(), flow.zeros({}, { dtype = "int64" }), zeros(2) }, nil, "velocity", "{2}", "{3}" },
  { "adagrad", { zeros(3), zeros(3), zeros(2), flow.zeros({}, { dtype = "int64" }), zeros(3) }, nil, "the learning rate", "{2}" },
  { "adadelta", { zeros(3), zeros(3), zeros(), zeros(), zeros(3), zeros(3) }, nil, "the iteration count", "float32", "int64" },
  { "adamax", { zeros(3), zeros(3), zeros(), flow.zeros({}, { dtype = "int64" }), zeros(3), zeros(4) }, nil, "norm", "{4}", "{3}" },
  { "schedule", { ints(1), doubles(2) }, nil, "the step", "int32", "int64" },
  { "quantize", { zeros(2) }, { quantization = { low = 1, high = 2 } }, "1 to 2", "around 0" },
  { "quantize", { ints(2) }, { quantization = { low = 0, high = 2 } }, "x is int32", "float32" },
  { "quantize_weights", { doubles(2, 3) }, nil, "w is float64", "float32" },
  { "quantize_weights", { zeros() }, nil, "a scalar", "{..., outputs}" },
  { "quantized_convolution", { zeros(1, 4, 4, 2), bytes("int8", 1, 1, 2, 3), zeros(3) }, convolution, "float32", "uint8 and int8" },
  { "quantized_convolution", { bytes("uint8", 1, 4, 4, 2), bytes("int8", 1, 1, 5, 3), zeros(3) }, convolution, "2 channels",
    "{1, 1, 5, 3}" },
  { "quantized_convolution", { bytes("uint8", 1, 4, 4, 2), bytes("int8", 1, 1, 2, 3), zeros(3) }, convolution, "the range of x", "0 to 0" },
  { "convolution", { zeros(1, 4, 4, 2), zeros(1, 1, 2, 3) },
    { convolution = { stride = { 1, 1 }, dilation = { 1, 1 }, groups = 1, ceiling = -1 } }, "a ceiling of -1", "above 0" },
  { "convolution", { zeros(1, 4, 4, 2), zeros(1, 1, 2, 3) },
    { convolution = { stride = { 1, 1 }, dilation = { 1, 1 }, groups = 1, ceiling = 6, pool = { 2, 2 }, pool_stride = { 2, 2 } } },
    "a ceiling of 6 and a pool", "only one" },
  { "convolution_add", { zeros(1, 4, 4, 2), zeros(1, 1, 2, 3), zeros(3), zeros(1, 4, 4, 2) },
    { convolution = { stride = { 1, 1 }, dilation = { 1, 1 }, groups = 1, has_bias = 1 } }, "the addend", "{1, 4, 4, 2}", "{1, 4, 4, 3}" },
  { "convolution_add", { doubles(1, 4, 4, 2), doubles(1, 1, 2, 3), doubles(3), zeros(1, 4, 4, 3) },
    { convolution = { stride = { 1, 1 }, dilation = { 1, 1 }, groups = 1, has_bias = 1 } }, "float64", "expected float32" },
  { "separable_convolution", { zeros(1, 4, 4, 2), zeros(1, 1, 1, 4), zeros(1, 1, 2, 3) }, depthwise, "2 groups and 4 filters",
    "2 channels" },
  { "separable_convolution", { zeros(1, 4, 4, 2), zeros(1, 1, 1, 2), zeros(1, 1, 3, 3) }, depthwise, "the second kernel", "{1, 1, 3, 3}",
    "{1, 1, 2, 3}" },
  { "separable_convolution", { zeros(1, 4, 4, 2), zeros(1, 1, 1, 2), zeros(1, 1, 2, 3), zeros(3) }, depthwise, "4 inputs", "biases" },
  { "separable_convolution", { doubles(1, 4, 4, 2), doubles(1, 1, 1, 2), zeros(1, 1, 2, 3) }, depthwise, "float64", "float32" },
  { "attention", { zeros(2, 5, 3), zeros(2, 4, 3), doubles(2, 4, 3) }, nil, "v is float64", "float32" },
  { "attention", { doubles(2, 5, 3), doubles(2, 4, 3), doubles(2, 4, 3) }, nil, "q is float64", "16 bits" },
  { "attention", { zeros(2, 5, 3), zeros(1, 4, 3), zeros(2, 4, 3) }, nil, "{1, 4, 3}", "the same axes" },
  { "attention", { zeros(2, 5, 3), zeros(2, 4, 2), zeros(2, 4, 3) }, nil, "3 columns", "2 rows" },
  { "attention", { zeros(2, 5, 3), zeros(2, 4, 3), zeros(2, 5, 3) }, nil, "4 columns", "5 rows" },
  { "attention", { zeros(2, 5, 3), zeros(2, 4, 3), zeros(2, 4, 3), bytes("bool", 5, 4) }, nil, "a mask of bool", "scalar" },
  { "attention", { zeros(2, 5, 3), zeros(2, 4, 3), zeros(2, 4, 3), bytes("bool", 4, 5), zeros() }, nil, "{4, 5}" },
  { "attention_gradient", { zeros(2, 5, 2), zeros(2, 5, 3), zeros(2, 4, 3), zeros(2, 4, 3) }, nil, "g has", "{2, 5, 3}" },
  { "argsort", { zeros() }, nil, "axis", "number" },
  { "argsort", { zeros(3, 2) }, { along = { axis = 1, size = 3 } }, "along.size is 3", "{3, 2}" },
  { "cumsum", { zeros(3, 2) }, { along = { axis = 4 } }, "axis", "2" },
  { "fourier", { ints(3, 2) }, { fourier = { size = 2, count = 2 } }, "floating-point", "int32" },
  { "fourier", { zeros(3) }, { fourier = { size = 3, count = 3 } }, "{3}", "{lines, elements}" },
  { "fourier", { zeros(3, 2), zeros(3, 4) }, { fourier = { size = 4, count = 2 } }, "{3, 4}", "{3, 2}" },
  { "fourier", { zeros(3, 4) }, { fourier = { size = 2, count = 2 } }, "4 elements", "which is 2" },
  { "fourier", { zeros(2 ^ 35, 0) }, { fourier = { size = 2 ^ 30, count = 0 } }, "{34359738368, 8589934592}", "more elements than can be" },
  { "fourier", { zeros(3, 2) }, { fourier = { size = 0 } }, "fourier.size is 0", "1 to" },
  { "fourier", { zeros(3, 2) }, { fourier = { size = 2, count = 3 } }, "fourier.count is 3", "which is 2" },
  { "cholesky", { zeros(3, 2) }, nil, "{3, 2}", "square" },
  { "lu", { zeros(3) }, nil, "{3}", "a matrix" },
  { "solve", { zeros(2, 2), zeros(3, 1) }, nil, "b has", "{3, 1}", "{2, 1}" },
  { "solve_triangle", { zeros(2, 2), zeros(2) }, nil, "b has", "{2}" },
  { "qr", { zeros(3) }, nil, "{3}", "a matrix" },
  { "svd", { zeros() }, nil, "{}", "a matrix" },
  { "eigh", { ints(2, 2) }, nil, "floating-point", "int32" },
  { "take_along", { zeros(3, 2), ints(4, 3) }, { along = { axis = 1 } }, "{3, 2}", "{4, 3}" },
  { "take_along_gradient", { zeros(3, 2), ints(3, 3) }, { along = { axis = 1, size = 4 } }, "{3, 2}", "{3, 3}" },
  { "gather", { zeros(3, 2), zeros(4) }, nil, "the indices", "float32", "integers" },
  { "gather_dense", { zeros(3, 2), zeros(4, 2), zeros(2, 5), zeros(5) }, nil, "the indices", "float32", "integers" },
  { "gather_dense", { ints(3, 2), ints(4, 2), zeros(2, 5), zeros(5) }, nil, "the table is int", "expected float32" },
  { "gather_dense", { zeros(3), ints(4, 2), zeros(2, 5), zeros(5) }, nil, "the table has 1 dimension {3}", "{rows, width}" },
  { "gather_dense", { zeros(3, 4), ints(4, 2), zeros(2, 5), zeros(5) }, nil, "4 values in its last axis" },
  { "gather_sum", { zeros(3, 2), zeros(4, 2) }, nil, "the indices", "float32", "integers" },
  { "gather_sum", { ints(3), ints(4, 2) }, nil, "the table is int", "expected float32" },
  { "gather_gradient", { zeros(3, 2), ints(4) }, { shape = { rank = 2, dims = { 5, 2 } } }, "{3, 2}", "{4, 2}" },
  { "adam", { zeros(3), doubles(3), zeros(3), zeros(3), zeros(), flow.zeros({}, { dtype = "int64" }) }, nil, "the gradient", "float64" },
}
for _, op in ipairs { "add", "sub", "mul", "div", "divide_no_nan", "pow", "mod", "floor_divide", "maximum", "minimum", "eq", "ne", "lt",
                      "le", "gt", "ge",
                      "logical_and", "logical_or", "gelu_gradient", "gelu_tanh_gradient", "silu_gradient", "relu_gradient" } do
  wrong[#wrong + 1] = { op, { zeros(2, 3), zeros(4) }, nil, "{2, 3}", "{4}" }
end
for _, op in ipairs { "sum", "prod", "min", "logsumexp", "any", "all", "argmin", "element_count" } do
  wrong[#wrong + 1] = { op, { zeros(2, 3) }, over_axis_5, "axis 6 (counted from 1)", "{2, 3}" }
end

--- Ops that take a tensor of any shape and dtype, or are made by plans only.
local exceptions = {
  fused = "made by plans from ops that were checked", all_gather = "made by plans, too",
  batch_norm_relu = "made by plans of a batch_norm that was checked",
  convolution_gradient_relu = "made by plans of a convolution_gradient that was checked",
  loop = "made of traces, whose messages are in spec/unit/loops_spec.lua", global_rows = "takes no tensor", row_share = "takes no tensor",
}

describe("the message about what does not fit", function()
  it("is checked for every op that can refuse its inputs", function()
    local checked, missing = {}, {}
    for _, case in ipairs(wrong) do checked[case[1]] = true end
    for name, record in pairs(backend.records()) do
      local takes_anything = record.shape == "same" or record.shape == "predicate"
      if not takes_anything and not checked[name] and not exceptions[name] then missing[#missing + 1] = name end
    end
    assert.same({}, missing)
  end)

  for i, case in ipairs(wrong) do
    local op, inputs, attributes = case[1], case[2], case[3]
    it(("names the op and its words: %s (%d)"):format(op, i), function()
      local ok, message = pcall(backend.apply, op, inputs, attributes)
      assert.is_false(ok)
      message = tostring(message):gsub("^[^\n]-%.lua:%d+: ", "")
      assert.equal(op, message:match("^[%w_]+"), message)
      for w = 4, #case do assert.truthy(message:find(case[w], 1, true), ("%q is not in: %s"):format(case[w], message)) end
    end)
  end

  it("names a label that is not a class, and its row", function()
    local labels = flow.tensor({ 1, 3 }, { dtype = "int32" })
    local ok, message = pcall(backend.apply, "sparse_cross_entropy", { zeros(2, 3), labels })
    assert.is_false(ok)
    assert.truthy(tostring(message):find("label 3 of row 2 is outside 0..2", 1, true), message)
  end)

  it("names an index that is not in the table, and its row", function()
    for _, wrong_index in ipairs { 3, -1 } do
      local indices = flow.tensor({ 1, wrong_index }, { dtype = "int32" })
      local ok, message = pcall(backend.apply, "gather", { zeros(3, 2), indices })
      assert.is_false(ok)
      assert.truthy(tostring(message):find(("index %d of row 2 is outside 0..2"):format(wrong_index), 1, true), message)
    end
  end)
end)
