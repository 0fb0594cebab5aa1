--- The cases of the back end's specs: every op of ops.def with the shapes, attributes and ranges that its kernels tell
-- apart. Their form is described in spec/support/backend.lua. Further fields:
--   gradient = false       not differentiated; the reason is beside it
--   all_outputs            gradients flow into every output
--   whole = false          not run in integers; the reason is beside it
--   empty = "message"      what the op says about a batch without rows, where that is an error
--   traced = false         not run in a trace; the reason is beside it
--   rounding               tolerance where results legitimately differ in rounding from run to run of another shape
local flow = require "flow"
local backend = require "spec.support.backend"

local cases = {}

--- add("op", inputs, options)
local function add(op, inputs, options)
  local case = options or {}
  case.op, case.inputs = op, inputs
  cases[#cases + 1] = case
end

---- elementwise -----------------------------------------------------------------------------------------------------------

local function image(low, high, options)
  local input = { -1, 5, 9, low = low, high = high }
  for key, value in pairs(options or {}) do input[key] = value end
  return input
end

for _, op in ipairs { "neg", "abs", "sign", "square", "relu", "floor", "ceil", "round", "copy", "stop_gradient" } do
  add(op, { image(-3, 3) })
end
add("all_reduce", { { 5, 9, low = -3, high = 3 } }, { whole = false })      -- of one replica; sums are those of floats
for _, entry in ipairs {
  { "exp", -2, 2 }, { "expm1", -2, 2 }, { "log", 0.1, 4 }, { "log1p", -0.5, 3 }, { "sqrt", 0.1, 4 }, { "rsqrt", 0.1, 4 },
  { "arctan", -4, 4 },
  { "reciprocal", 0.5, 3 }, { "sin", -3, 3 }, { "cos", -3, 3 }, { "tan", -1.4, 1.4 }, { "tanh", -4, 4 }, { "sigmoid", -4, 4 },
  { "erf", -3, 3 }, { "erfc", -3, 6 },
  { "softplus", -4, 4 }, { "softsign", -4, 4 }, { "gelu", -4, 4 }, { "gelu_tanh", -4, 4 }, { "silu", -4, 4 },
} do
  add(entry[1], { image(entry[2], entry[3]) })
end
add("logical_not", { image(-1, 1, { round = true }) })
add("is_finite", { image(-1, 1) })
add("cast", { image(-3, 3) }, { name = "to float64", attributes = { cast = { dtype = 3 } }, output_dtype = "float64" })
add("cast", { image(-90, 90) }, { name = "to int8", attributes = { cast = { dtype = 4 } },
  gradient = false, whole = false })     -- integers have no gradient; floats saturate, integers wrap

for _, op in ipairs { "add", "sub", "mul", "maximum", "minimum", "gelu_gradient", "gelu_tanh_gradient", "silu_gradient",
                      "relu_gradient" } do
  add(op, { image(-2, 2), image(-2, 2) })
end
for _, op in ipairs { "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or" } do
  add(op, { image(-1.4, 1.4, { round = true }), image(-1.4, 1.4, { round = true }) })
end
add("div", { image(-2, 2), image(0.5, 2) })
add("divide_no_nan", { image(-2, 2), image(0.5, 2) })
add("divide_no_nan", { image(-2, 2), image(-1, 1, { round = true }) }, { name = "by zeros", gradient = false })  -- has a jump at 0
add("pow", { image(0.5, 3), image(-2, 2) }, { whole = false })     -- negative powers of integers are 0
add("mod", { image(-5, 5), image(1, 3) })
add("floor_divide", { image(-5, 5), image(1, 3) }, { gradient = false })      -- steps
add("where", { image(0, 1, { round = true, dtype = "bool" }), image(-2, 2), image(-2, 2) })
-- Broadcasting: a row, a column, both at once, a scalar.
for _, op in ipairs { "add", "mul", "div", "maximum" } do
  add(op, { image(0.5, 2), { 9, low = 0.5, high = 2 } }, { name = "a row" })
  add(op, { image(0.5, 2), { 5, 1, low = 0.5, high = 2 } }, { name = "a column" })
  add(op, { { -1, 1, 9, low = 0.5, high = 2 }, { 5, 1, low = 0.5, high = 2 } }, { name = "row by column" })
  add(op, { image(0.5, 2), { low = 0.5, high = 2 } }, { name = "a scalar" })
end
add("where", { { 5, 1, low = 0, high = 1, round = true, dtype = "bool" }, image(-2, 2), { 9, low = -2, high = 2 } }, { name = "broadcast",
  traced = false })     -- flow.fn takes the rows of the first input for the batch's, and the condition has none
add("broadcast_to", { { -1, 1, 9 } }, { attributes = function(rows) return { shape = { rank = 3, dims = { rows, 5, 9 } } } end })
add("broadcast_to", { { 5, 1 } }, { name = "new axes", attributes = { shape = { rank = 3, dims = { 2, 5, 9 } } } })

---- reductions --------------------------------------------------------------------------------------------------------------

local function over(...)
  return { reduce = { count = select("#", ...), axes = { ... } } }
end

for _, entry in ipairs {
  { "of the last axis", 2 }, { "of the middle axis", 1 }, { "of rows", 0 }, { "of rows and the last axis", 0, 2 },
} do
  local attributes = over(unpack(entry, 2))
  local rows = entry[2] == 0
  add("sum", { image(-1, 1) }, { name = entry[1], attributes = attributes, rounding = rows and 1e-5 or nil })
  add("prod", { image(0.9, 1.1) }, { name = entry[1], attributes = attributes, rounding = rows and 1e-5 or nil,
    whole = #entry == 2 })     -- 63 factors do not fit int64
  for _, op in ipairs { "max", "min" } do
    add(op, { image(-1, 1) }, { name = entry[1], attributes = attributes, empty = rows and "there are no elements along" or nil })
  end
  add("logsumexp", { image(-3, 3) }, { name = entry[1], attributes = attributes })
  for _, op in ipairs { "any", "all" } do
    add(op, { image(op == "any" and -0.52 or -0.5, op == "any" and 0.51 or 20, { round = true }) },
      { name = entry[1], attributes = attributes })
  end
  if #entry == 2 then
    for _, op in ipairs { "argmax", "argmin" } do
      add(op, { image(-1, 1) }, { name = entry[1], attributes = attributes, empty = rows and "there are no elements along" or nil })
    end
  end
end
add("sum", { image(-1, 1) }, { name = "of everything", rounding = 1e-5 })
add("sum", { image(-1, 1) }, { name = "kept axes", attributes = { reduce = { count = 1, keepdims = 1, axes = { 1 } } } })
add("max", { image(-1, 1) }, { name = "of everything", empty = "there are no elements along" })
add("argmax", { image(-1, 1) },
  { name = "of everything from 1", attributes = { reduce = { base = 1 } }, empty = "there are no elements along" })
add("element_count", { image(-1, 1) }, { name = "of rows", attributes = over(0, 2), output_dtype = "float32" })

---- movement ---------------------------------------------------------------------------------------------------------------------

add("reshape", { { -1, 5, 9 } }, { name = "flat", attributes = function(rows) return { shape = { rank = 2, dims = { rows, 45 } } } end })
add("reshape", { { -1, 5, 9 } },
  { name = "into rows", attributes = function(rows) return { shape = { rank = 2, dims = { rows * 5, 9 } } } end })
add("transpose", { { -1, 5, 9 } }, { name = "within rows", attributes = { transpose = { rank = 3, axes = { 0, 2, 1 } } } })
add("transpose", { { -1, 5, 9 } }, { name = "of rows", attributes = { transpose = { rank = 3, axes = { 2, 1, 0 } } } })
add("concat", { { -1, 5, 9 }, { -1, 2, 9 }, { -1, 1, 9 } }, { name = "middle axis", attributes = { axis = { axis = 1 } } })
add("concat", { { -1, 5, 3 }, { -1, 5, 17 } }, { name = "last axis", attributes = { axis = { axis = -1 } } })
add("concat", { { -1, 5, 3 }, { -1, 5, 3 } }, { name = "rows", attributes = { axis = { axis = 0 } } })
local ALL = 2 ^ 62
add("slice", { { -1, 5, 9 } }, { name = "within rows",
  attributes = { slice = { rank = 3, begin = { 0, 1, 2 }, ["end"] = { ALL, 4, ALL }, step = { 1, 1, 3 } } } })
add("slice", { { 6, 5, 9 } }, { name = "of rows",
  attributes = { slice = { rank = 3, begin = { 1, 0, 0 }, ["end"] = { 5, ALL, ALL }, step = { 2, 1, 1 } } } })
add("slice", { { 6, 5, 9 } }, { name = "that goes back",
  attributes = { slice = { rank = 3, begin = { 5, 4, 8 }, ["end"] = { -1, 0, -1 }, step = { -1, -2, -1 } } } })
add("slice_gradient", { { 3, 2, 5 } }, { name = "that goes back",
  attributes = { slice = { rank = 3, begin = { 5, 4, 8 }, ["end"] = { 0, 1, -1 }, step = { -2, -2, -2 }, dims = { 6, 5, 9 } } } })
add("slice_gradient", { { -1, 3, 3 } }, { attributes = function(rows)
  return { slice = { rank = 3, begin = { 0, 1, 2 }, ["end"] = { ALL, 4, ALL }, step = { 1, 1, 3 }, dims = { rows, 5, 9 } } }
end })
add("pack", { { 5, 9 }, { 3 }, { 2, 2 } })
add("fill", {}, { attributes = function(_, dtype)
  return { fill = { value = 1.5, rank = 2, dims = { 5, 9 }, dtype = dtype == "float64" and 3 or 0 } }
end, traced = false })     -- has no operand that a trace could follow

---- products --------------------------------------------------------------------------------------------------------------------

add("matmul", { { -1, 9 }, { 9, 17 } }, { name = "odd sizes" })
add("matmul", { { -1, 70 }, { 70, 66 } }, { name = "several blocks" })
add("matmul", { { -1, 9 }, { 17, 9 } }, { name = "b transposed", attributes = { matmul = { transpose_b = 1 } } })
add("matmul", { { -1, 9 }, { -1, 17 } },
  { name = "a transposed: sums over rows", attributes = { matmul = { transpose_a = 1 } }, rounding = 1e-5 })
add("matmul", { { -1, 5, 9 }, { 9, 6 } }, { name = "one b for all" })
add("matmul", { { -1, 5, 9 }, { -1, 9, 6 } }, { name = "a batch of products" })
add("matmul", { { -1, 3, 7, 9 }, { -1, 3, 20, 9 } },
  { name = "several products a row, b transposed", attributes = { matmul = { transpose_b = 1 } } })
add("matmul", { { -1, 2, 9, 13 }, { -1, 2, 9, 6 } },
  { name = "several products a row, a transposed", attributes = { matmul = { transpose_a = 1 } } })
add("matmul", { { -1, 9 }, { 9 } }, { name = "by a vector" })
for activation, name in pairs { [0] = "linear", [1] = "relu" } do
  add("dense", { { -1, 9 }, { 9, 17 }, { 17 } }, { name = name, attributes = { matmul = { activation = activation } } })
  add("dense", { { -1, 64 }, { 64, 10 }, { 10 } }, { name = "64 to 10, " .. name, attributes = { matmul = { activation = activation } } })
end

---- convolution and pooling ---------------------------------------------------------------------------------------------------

--- Attributes of a convolution with the same padding on all sides.
local function convolved(options)
  local p = options.padding or 0
  return { convolution = {
    stride = options.stride or { 1, 1 }, dilation = options.dilation or { 1, 1 }, padding = options.sides or { p, p, p, p },
    groups = options.groups or 1, activation = options.relu and 1 or 0, pool = options.pool or { 0, 0 },
    pool_stride = options.pool or { 0, 0 }, has_bias = options.bias and 1 or 0,
  } }
end

local convolutions = {
  { "3 to 17, 3x3 same", { 8, 10, 3 }, { 3, 3, 3, 17 }, { padding = 1 } },
  { "17 to 33, 3x3 valid", { 6, 5, 17 }, { 3, 3, 17, 33 }, {} },
  { "5x5 stride 2", { 9, 11, 3 }, { 5, 5, 3, 17 }, { stride = { 2, 2 }, sides = { 1, 2, 1, 2 } } },
  { "5x5 stride 2 odd channels", { 9, 9, 17 }, { 5, 5, 17, 6 }, { stride = { 2, 2 }, padding = 2 } },
  { "1x1", { 5, 6, 17 }, { 1, 1, 17, 33 }, {} },
  { "1x1 stride 2", { 5, 6, 16 }, { 1, 1, 16, 32 }, { stride = { 2, 2 } } },
  { "depthwise", { 8, 8, 19 }, { 3, 3, 1, 19 }, { padding = 1, groups = 19 } },
  { "depthwise stride 2, two each", { 8, 8, 6 }, { 3, 3, 1, 12 }, { padding = 1, groups = 6, stride = { 2, 2 } } },
  { "2 groups", { 6, 6, 10 }, { 3, 3, 5, 14 }, { padding = 1, groups = 2 } },
  { "dilated", { 9, 9, 3 }, { 3, 3, 3, 5 }, { dilation = { 2, 2 }, padding = 2 } },
  { "2x5 kernel, strides 1 and 3", { 8, 12, 3 }, { 2, 5, 3, 5 }, { stride = { 1, 3 }, sides = { 0, 1, 2, 2 } } },
  { "bias and relu", { 8, 8, 8 }, { 3, 3, 8, 16 }, { padding = 1, bias = true, relu = true } },
  { "bias, relu and pool", { 8, 8, 3 }, { 3, 3, 3, 16 }, { padding = 1, bias = true, relu = true, pool = { 2, 2 } } },
  { "one channel, bias, relu, pool", { 9, 9, 1 }, { 3, 3, 1, 17 }, { bias = true, relu = true, pool = { 2, 2 } } },
  { "pool of 3 by 2 without relu", { 9, 8, 5 }, { 3, 3, 5, 7 }, { padding = 1, pool = { 3, 2 } } },
}

--- The inputs { x, w } or { x, w, b } of a convolution.
local function operands(x, w, options)
  local list = { { -1, x[1], x[2], x[3] }, { w[1], w[2], w[3], w[4], low = -0.4, high = 0.4 } }
  if options.bias then list[3] = { w[4] } end
  return list
end

for _, entry in ipairs(convolutions) do
  local name, x, w, options = unpack(entry)
  local attributes = convolved(options)
  add("convolution", operands(x, w, options), { name = name, attributes = attributes })

  local list = operands(x, w, options)
  local y = backend.apply("convolution", {
    flow.zeros { 1, x[1], x[2], x[3] }, flow.zeros { w[1], w[2], w[3], w[4] }, options.bias and flow.zeros { w[4] },
  }, attributes)[1].shape
  local backward = convolved(options)
  backward.convolution.input_size = { x[1], x[2] }
  table.insert(list, 1, { -1, y[2], y[3], y[4] })
  add("convolution_gradient", list, { name = name, attributes = backward, all_outputs = true, rounding = 1e-5,
    prepare = function(inputs)
      local forward = backend.apply("convolution", { inputs[2], inputs[3], inputs[4] }, attributes)
      return { inputs[1], inputs[2], inputs[3], flow.stop_gradient(forward[1]), forward[2] }
    end })
end

local pools = {
  { "2x2", { 8, 9, 5 }, { size = { 2, 2 }, stride = { 2, 2 } } },
  { "3x3 stride 2 padded", { 9, 8, 17 }, { size = { 3, 3 }, stride = { 2, 2 }, padding = { 1, 1, 0, 1 } } },
  { "2x3 stride 1", { 5, 6, 16 }, { size = { 2, 3 }, stride = { 1, 1 } } },
  { "3x1 stride 4", { 9, 6, 33 }, { size = { 3, 1 }, stride = { 4, 1 }, padding = { 0, 2, 0, 0 } } },   -- cells that no window covers
}
for _, entry in ipairs(pools) do
  local name, x, pool = unpack(entry)
  add("max_pool", { { -1, x[1], x[2], x[3] } }, { name = name, attributes = { pool = pool } })
  local y = backend.apply("max_pool", { flow.zeros { 1, x[1], x[2], x[3] } }, { pool = pool })[1].shape
  local backward = { size = pool.size, stride = pool.stride, padding = pool.padding, input_size = { x[1], x[2] } }
  add("max_pool_gradient", { { -1, y[2], y[3], y[4] }, { -1, x[1], x[2], x[3] } }, { name = name, attributes = { pool = backward },
    prepare = function(inputs) return { inputs[1], backend.apply("max_pool", { inputs[2] }, { pool = pool })[2] } end })
  add("average_pool", { { -1, x[1], x[2], x[3] } }, { name = name, attributes = { pool = pool } })
  add("average_pool_gradient", { { -1, y[2], y[3], y[4] } }, { name = name, attributes = { pool = backward } })
end

---- images ------------------------------------------------------------------------------------------------------------------

local resizings = {
  { "smaller, nearest", { 7, 9, 3 }, { size = { 4, 5 }, interpolation = 0 } },
  { "larger, nearest", { 7, 9, 17 }, { size = { 13, 11 }, interpolation = 0 } },
  { "smaller, bilinear", { 7, 9, 3 }, { size = { 4, 5 }, interpolation = 1 } },
  { "larger, bilinear", { 5, 4, 33 }, { size = { 9, 16 }, interpolation = 1 } },
  { "bilinear, antialias", { 9, 16, 3 }, { size = { 3, 5 }, interpolation = 1, antialias = 1 } },
  { "bicubic", { 7, 9, 3 }, { size = { 12, 5 }, interpolation = 2 } },
  { "bicubic, antialias", { 9, 12, 4 }, { size = { 4, 5 }, interpolation = 2, antialias = 1 } },
  { "area", { 9, 12, 5 }, { size = { 4, 17 }, interpolation = 3 } },
  { "lanczos3", { 7, 9, 16 }, { size = { 11, 6 }, interpolation = 4 } },
  { "lanczos5, antialias", { 14, 9, 3 }, { size = { 5, 6 }, interpolation = 5, antialias = 1 } },
}
for _, entry in ipairs(resizings) do
  local name, x, resize = unpack(entry)
  add("resize", { { -1, x[1], x[2], x[3] } }, { name = name, attributes = { resize = resize } })
  local backward = { size = resize.size, interpolation = resize.interpolation, antialias = resize.antialias, input_size = { x[1], x[2] } }
  add("resize_gradient", { { -1, resize.size[1], resize.size[2], x[3] } }, { name = name, attributes = { resize = backward } })
end

--- The transforms of each image: a fixed one for all, with a little of the random numbers in t.
local function transformed(inputs)
  local base = flow.tensor({ { 0.91371, -0.30713, 2.2117, 0.25191, 1.1073, -3.0171, 0.001, 0.002 } }, { dtype = inputs[2].dtype })
  return { inputs[1], flow.stop_gradient(inputs[2] * 0.01 + base) }
end
for fill_mode, fill in ipairs { "reflect", "wrap", "constant", "nearest" } do
  for interpolation, kind in ipairs { "nearest", "bilinear" } do
    local attributes = { sampling = { interpolation = interpolation - 1, fill_mode = fill_mode - 1, fill_value = 3 } }
    for _, op in ipairs { "sample_image", "sample_image_gradient" } do
      add(op, { { -1, 7, 9, fill_mode == 2 and 17 or 3 }, { -1, 8 } }, { name = fill .. ", " .. kind, attributes = attributes,
        prepare = transformed, gradient = false })     -- spec/unit/images_spec.lua: nothing flows back to the transforms
    end
  end
end
--- The same transform for every image, as many as there are rows.
for _, op in ipairs { "sample_image", "sample_image_gradient" } do
  local attributes = { sampling = { interpolation = 1, fill_mode = 2, fill_value = 3 } }
  add(op, { { -1, 7, 9, 3 } }, { name = "of the image alone", attributes = attributes,
    prepare = function(inputs)
      local rows = inputs[1]:sum(4):sum(3):sum(2, true) * 0      -- {n, 1}
      return transformed { inputs[1], flow.stop_gradient(rows) }
    end })
end
add("sample_uniform", { { -1, 2 } }, { attributes = { random = { rank = 1, dims = { 5 }, low = -1, high = 2, seed = 3, stream = 4 } },
  gradient = false, traced = false })     -- nothing flows back; draws other numbers in every run of a plan

---- normalization, softmax, losses, dropout -----------------------------------------------------------------------------------

for _, entry in ipairs { { "of a vector", { -1, 5 } }, { "of images", { -1, 5, 6, 17 } }, { "of 64 channels", { -1, 3, 3, 64 } } } do
  local name, shape = entry[1], entry[2]
  local channels = shape[#shape]
  local attributes = { normalization = { epsilon = 1e-3, axis = -1 } }
  local gamma = { channels, low = 0.5, high = 2 }
  add("batch_norm", { shape, gamma, { channels } }, { name = name, attributes = attributes, rounding = 1e-5 })
  add("batch_norm_gradient", { shape, shape, gamma }, { name = name, attributes = attributes, rounding = 1e-5,
    prepare = function(inputs)
      local beta = flow.zeros({ channels }, { dtype = inputs[3].dtype })
      local forward = backend.apply("batch_norm", { inputs[2], inputs[3], beta }, attributes)
      return { inputs[1], inputs[2], inputs[3], forward[2], forward[3] }
    end })
end
for _, entry in ipairs { { "of a line", { -1, 5 }, -1 }, { "of pixels", { -1, 5, 6, 33 }, -1 }, { "of images", { -1, 3, 3, 64 }, 1 } } do
  local name, shape, axis = unpack(entry)
  local ones, parameter = { -1 }, {}
  for i = 2, #shape do ones[i] = (axis == 1 or i == #shape) and 1 or shape[i] end
  for i = axis == 1 and 2 or #shape, #shape do parameter[#parameter + 1] = shape[i] end
  for uncentered = 0, 1 do
    local attributes = { normalization = { epsilon = 1e-3, axis = axis, uncentered = uncentered } }
    local function add_normalized(op, inputs, note, made_by_plans)      -- after gradients were taken
      add(op, inputs, { name = name .. (uncentered == 1 and ", uncentered" or "") .. (note or ""), attributes = attributes,
        rounding = 1e-5, all_outputs = true, gradient = not made_by_plans })
    end
    add_normalized("normalize", { shape })
    add_normalized("normalize_gradient", { shape, shape, ones })
    add_normalized("layer_norm", { shape, parameter }, "", true)
    add_normalized("layer_norm", { shape, parameter, parameter }, ", shifted", true)
  end
end
for axis, name in pairs { [-1] = "last axis", [1] = "middle axis" } do
  local attributes = { axis = { axis = axis } }
  add("softmax", { image(-3, 3) }, { name = name, attributes = attributes })
  add("log_softmax", { image(-3, 3) }, { name = name, attributes = attributes })
  add("softmax_gradient", { image(-1, 1), image(0, 1) }, { name = name, attributes = attributes })
end
add("softmax", { { -1, 1000, low = -3, high = 3 } }, { name = "of 1000", attributes = { axis = { axis = -1 } } })
add("sparse_cross_entropy", { { -1, 10, low = -3, high = 3 }, { -1, classes = 10 } })
add("sparse_cross_entropy", { { -1, 3, 5, low = -3, high = 3 }, { -1, 3, classes = 5, dtype = "uint8" } }, { name = "of pixels" })
add("sparse_cross_entropy_gradient", { { -1 }, { -1, 10, low = -3, high = 3 }, { -1, classes = 10, dtype = "int64" } })
for axis, name in pairs { [-1] = "of the last axis", [1] = "of the middle axis", [0] = "of rows" } do
  local along = { along = { axis = axis } }
  add("argsort", { { axis == 0 and 6 or -1, 5, 9 } }, { name = name, attributes = along })
  add("argsort", { { axis == 0 and 6 or -1, 5, 9 } },
    { name = name .. ", the largest first", attributes = { along = { axis = axis, reverse = 1, base = 1 } } })
  add("argsort", { { axis == 0 and 6 or -1, 5, 9 } },
    { name = name .. ", the three smallest", attributes = { along = { axis = axis, size = 3 } } })
  add("cumsum", { { axis == 0 and 6 or -1, 5, 9 } }, { name = name, attributes = along })
  add("cumsum", { { axis == 0 and 6 or -1, 5, 9 } },
    { name = name .. ", of the others from the end", attributes = { along = { axis = axis, reverse = 1, exclusive = 1 } } })
end
add("argsort", { { -1, 500 } }, { name = "the 20 largest", attributes = { along = { axis = -1, reverse = 1, size = 20 } } })
-- Real lines of an even length, complex ones, one number, and a length with a large prime factor, which is a convolution inside.
for name, entry in pairs { real = { 1, 9, 12, 7 }, ["odd, real"] = { 1, 9, 9, 9 }, complex = { 2, 9, 10, 10 }, single = { 1, 1, 1, 1 },
                           ["a prime"] = { 2, 9, 67, 5 } } do
  local inputs = {}
  for i = 1, entry[1] do inputs[i] = { -1, 5, entry[2], low = -1, high = 1 } end
  for inverse = 0, 1 do
    add("fourier", inputs, { name = name .. (inverse == 1 and ", inverse" or ""), all_outputs = true, whole = false,      -- of floats only
      attributes = { fourier = { size = entry[3], count = entry[4], inverse = inverse } } })
  end
end
-- Matrices: of floats only. What is added to the diagonal keeps them far from singular, and their values apart.
local function matrices(m, n) return { -1, m, n, low = -1, high = 1 } end
local function firm(inputs)
  local x, n = inputs[1], inputs[1].shape[3]
  local diagonal = flow.eye(x.shape[2], n, { dtype = x.dtype }) * (flow.arange(n):to(x.dtype) * 3 + 4)
  return { x + diagonal, inputs[2] }
end
add("cholesky", { matrices(5, 5) }, { whole = false, prepare = function(inputs)
  local x = firm(inputs)[1]
  return { flow.matmul(x, x:swapaxes(-1, -2)) }
end })
for _, entry in ipairs { { "solve", 0, 0 }, { "solve", 0, 1 }, { "solve_triangle", 0, 0 }, { "solve_triangle", 1, 0 },
                         { "solve_triangle", 1, 1 } } do
  add(entry[1], { matrices(5, 5), matrices(5, 2) }, { whole = false, prepare = firm,
    name = (entry[2] == 1 and "lower" or "upper") .. (entry[3] == 1 and " transposed" or ""),
    attributes = { matrix = { lower = entry[2], transposed = entry[3] } } })
end
add("lu", { matrices(5, 5) }, { whole = false, prepare = firm })
add("eigh", { matrices(5, 5) }, { whole = false, all_outputs = true, prepare = firm })
for _, sizes in ipairs { { 5, 3 }, { 3, 5 }, { 4, 4 } } do
  local name = ("%d by %d"):format(sizes[1], sizes[2])
  for _, op in ipairs { "qr", "svd" } do
    add(op, { matrices(sizes[1], sizes[2]) }, { name = name, whole = false, all_outputs = true, prepare = firm })
    add(op, { matrices(sizes[1], sizes[2]) }, { name = name .. ", all", whole = false, prepare = firm, gradient = false,      -- not unique
      attributes = { matrix = { full = 1 } } })
  end
end
add("take_along", { { -1, 5, 9 }, { -1, 5, 4, classes = 9 } }, { name = "last axis", attributes = { along = { axis = -1 } } })
add("take_along", { { -1, 5, 9 }, { -1, 7, 9, classes = 5 } }, { name = "middle axis", attributes = { along = { axis = 1 } } })
add("take_along", { { 6, 5 }, { 4, 5, classes = 6 } }, { name = "rows", attributes = { along = { axis = 0 } } })
add("take_along_gradient", { { -1, 5, 4 }, { -1, 5, 4, classes = 9 } }, { whole = false,      -- of floats only
  attributes = { along = { axis = 2, size = 9 } } })
add("gather", { { 10, 9 }, { -1, classes = 10 } }, { traced = false })                 -- as where: the first input has no rows
add("gather", { { 7, 3, 2 }, { -1, 4, classes = 7, dtype = "uint8" } }, { name = "several a row", traced = false })
add("gather_gradient", { { -1, 9 }, { -1, classes = 10 } }, { whole = false,      -- of floats only
  attributes = { shape = { rank = 2, dims = { 10, 9 } } } })
add("gather_gradient", { { -1, 5, 20 }, { -1, 5, classes = 2000 } }, { name = "large table", whole = false,
  attributes = { shape = { rank = 2, dims = { 2000, 20 } } } })
add("dropout", { image(-1, 1) }, { attributes = { dropout = { rate = 0.4, seed = 5, stream = 9 } },
  traced = false })     -- draws another mask in every run of a plan

---- recurrent cells --------------------------------------------------------------------------------------------------------------

for _, units in ipairs { 3, 16, 37 } do
  for _, masked in ipairs { false, true } do
    local steps, mask = 5, masked and { -1, 5, round = true, dtype = "bool", low = 0, high = 1 } or nil
    local name = ("%d units%s"):format(units, masked and ", masked, reversed" or "")
    local function x(gates) return { -1, steps, gates * units } end
    local function w(gates) return { units, gates * units, low = -0.3, high = 0.3 } end
    local state, sequence = { -1, units }, { -1, steps, units }
    local function add_cell(op, inputs, recurrent, note)
      recurrent.reverse = masked and 1 or 0
      if mask then inputs[#inputs + 1] = mask end
      local full = name .. (recurrent.reset_after and ", reset after" or "") .. (note or "")
      add(op, inputs, { name = full, attributes = { recurrent = recurrent },
        rounding = 1e-5, whole = false })      -- of floats only
      return { recurrent = recurrent }
    end
    add_cell("simple_rnn", { x(1), w(1), state }, {})
    add_cell("lstm", { x(4), w(4), state, state }, { history = 1 })
    add_cell("lstm", { x(4), w(4), state, state }, {}, ", no history")
    for _, reset_after in ipairs { false, 1 } do
      add_cell("gru", { x(3), w(3), state, { 3 * units } }, { history = 1, reset_after = reset_after or nil })
    end
    add_cell("simple_rnn_gradient", { sequence, w(1), sequence }, {})
    add_cell("lstm_gradient", { sequence, state, w(4), state, { -1, steps, 5 * units } }, {})
    for _, reset_after in ipairs { false, 1 } do
      add_cell("gru_gradient", { sequence, w(3), state, sequence, { -1, steps, 4 * units } }, { reset_after = reset_after or nil })
    end
  end
end

---- random numbers -----------------------------------------------------------------------------------------------------------------

for _, entry in ipairs { { "random_uniform", -1, 2 }, { "random_normal", 1, 2 }, { "random_truncated_normal", 1, 2 } } do
  add(entry[1], {}, { attributes = function(_, dtype)
    return { random = {
      rank = 2, dims = { 130, 257 }, dtype = dtype == "float64" and 3 or 0, low = entry[2], high = entry[3], seed = 3, stream = 4,
    } }
  end, draws_per_dtype = true, traced = false })     -- as fill
end

---- effects, through what users call ----------------------------------------------------------------------------------------------

local function assigned(method)
  return function(inputs)
    local variable = flow.Variable(inputs[1])
    variable[method](variable, inputs[2])
    return { variable:value():copy() }
  end
end
add("assign", { image(-1, 1), { 9 } }, { run = assigned("assign"), gradient = false, traced = false })          -- creates variables
add("assign_add", { image(-1, 1), { 9 } }, { run = assigned("assign_add"), gradient = false, traced = false })  -- as assign

require "spec.backend.optimizer_cases"(add)

-- Tables by name have no order, processes that compare their results need one.
table.sort(cases, function(a, b) return backend.title(a) < backend.title(b) end)
for i = 2, #cases do assert(backend.title(cases[i]) ~= backend.title(cases[i - 1]), backend.title(cases[i])) end

return cases
