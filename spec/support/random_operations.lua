--- Random models of operations on symbolic tensors, for files: every op that has a form in them, with random options, on random operands.
local flow = require "flow"

local operations = {}

-- An operand beside a tensor {rows, 4, 3}: that tensor's neighbour, a number, a constant.
local function operand(draw, other)
  return draw.pick {
    other, other, draw.number(-2, 2), draw.integer(1, 3),
    flow.random.uniform({ 3 }, { minval = 0.5, maxval = 2, seed = draw.integer(1, 1e6) }),
    flow.random.uniform({ 4, 1 }, { minval = -2, maxval = 2, seed = draw.integer(1, 1e6) }),
  }
end

local function binary(name)
  return function(draw, x, y)
    local other = operand(draw, y)
    if draw.chance(0.3) then return flow[name](other, x) end
    return flow[name](x, other)
  end
end
local function unary(name) return function(_, x) return flow[name](x) end end
local function some_axis(draw) return draw.pick { 2, 3, -1, -2 } end
local function reduction(name)
  return function(draw, x)
    local axis = draw.pick { 2, 3, -1, { 2, 3 }, { -1 }, { -2, -1 } }
    if name ~= "any" and name ~= "all" and draw.chance(0.1) then return x - flow[name](x) end
    return flow[name](x, axis, draw.chance(0.5))
  end
end
local function positive(f) return function(draw, x, y) return f(draw, flow.abs(x) + 0.1, flow.abs(y) + 0.1) end end

-- f(draw, x, y, labels): x and y float32 {rows, 4, 3}, labels int32 {rows, 4}. Gives a tensor or a list.
local OPS = {
  pow = positive(binary "pow"), log = positive(unary "log"), sqrt = positive(unary "sqrt"), rsqrt = positive(unary "rsqrt"),
  log1p = positive(unary "log1p"), neg = function(_, x) return -x end,
  where = function(draw, x, y) return flow.where(flow.gt(x, operand(draw, y)), draw.pick { x, 1, y }, draw.pick { y, 0.25 }) end,
  round = function(draw, x) return flow.round(x, draw.pick { 0, 1, 2, -1 }) end,
  elu = function(draw, x) return draw.chance(0.5) and flow.elu(x) or flow.elu(x, draw.number(0.1, 2)) end,
  leaky_relu = function(draw, x) return draw.chance(0.5) and flow.leaky_relu(x) or flow.leaky_relu(x, draw.number(0, 0.5)) end,
  gelu = function(draw, x) return draw.chance(0.5) and flow.gelu(x) or flow.gelu(x, draw.chance(0.5)) end,
  softmax = function(draw, x) return flow.softmax(x, some_axis(draw)) end,
  log_softmax = function(draw, x) return flow.log_softmax(x, some_axis(draw)) end,
  classes = unary "classes",
  clip = function(draw, x) return flow.clip(x, draw.number(-2, 0), draw.number(0, 2)) end,
  cast = function(draw, x) return flow.cast(x * 10, draw.pick { "int32", "float16", "bool", "float64", "uint8" }) end,
  to = function(draw, x) return x:to(draw.pick { "int64", "bfloat16", "float32" }) end,
  concat = function(draw, x, y) return flow.concat({ x, y, draw.pick { x, y } }, some_axis(draw)) end,
  stack = function(draw, x, y) return flow.stack({ y, x }, draw.pick { 2, 3, 4, -1, -2 }) end,
  reshape = function(draw, x) return draw.pick { x:reshape { -1, 12 }, x:reshape(-1, 3, 4), x:reshape { -1, 2, 2, 3 } } end,
  transpose = function(draw, x) return draw.pick { x:transpose { 1, 3, 2 }, x:permute(1, 3, 2), x:swapaxes(2, -1) } end,
  expand_dims = function(draw, x) return flow.expand_dims(x, draw.pick { 2, 3, 4, -1 }) end,
  squeeze = function(draw, x)
    local one = flow.sum(x, draw.pick { 2, 3 }, true)
    return one:squeeze(one.shape[2] == 1 and draw.pick { 2, -2 } or draw.pick { 3, { -1 } })
  end,
  flip = function(draw, x) return flow.flip(x, some_axis(draw)) end,
  split = function(draw, x)
    local parts = draw.pick { function() return flow.split(x, 2, 2) end, function() return flow.split(x, { 1, 3 }, -2) end,
                              function() return flow.split(x, 3, 3) end } ()
    return { parts[#parts], parts[1] }
  end,
  unstack = function(draw, x)
    local parts = flow.unstack(x, nil, some_axis(draw))
    return { parts[2], parts[#parts] }
  end,
  tile = function(draw, x) return flow.tile(x, draw.pick { { 1, 2, 1 }, { 3 }, { 1, 1, 2 }, 2 }) end,
  repeat_ = function(draw, x) return flow.repeat_(x, draw.integer(1, 3), some_axis(draw)) end,
  pad = function(draw, x)
    local widths = { { 0, 0 }, { draw.integer(0, 2), draw.integer(0, 2) }, { draw.integer(0, 2), draw.integer(0, 2) } }
    local mode = draw.pick { "constant", "reflect", "symmetric" }
    if mode == "constant" and draw.chance(0.5) then return flow.pad(x, widths, { constant_values = draw.number(-1, 1) }) end
    return flow.pad(x, widths, mode)
  end,
  one_hot = function(draw, _, _, labels)
    if draw.chance(0.5) then return flow.one_hot(labels, 5) end
    return flow.one_hot(labels, 7, { dtype = draw.pick { "float16", "int32", "bool" } })
  end,
  take = function(draw, x) return flow.take(x, draw.pick { 1, { 2, 1, -1 }, { { 1, 2 }, { 3, -3 } } }, some_axis(draw)) end,
  index = function(draw, x)
    return x[draw.pick { { {}, 2 }, { {}, {}, -1 }, { {}, { 2, 3 } }, { {}, { 1, -2 }, { -2 } }, { {}, { 1, 4, 2 }, 1 },
                         { { 1, -1 }, -1 }, { {}, { -1, 1, -1 } }, { {}, { 4, 2, -2 }, { nil, nil, -1 } } }]
  end,
  mod_of_integers = function(draw, _, _, labels)
    return draw.pick { labels % 3, labels + 0.5, 2 - labels, labels:eq(2), labels * labels }
  end,
}
for _, name in ipairs { "add", "sub", "mul", "div", "mod", "divide_no_nan", "maximum", "minimum", "eq", "ne", "lt", "le", "gt", "ge",
                        "logical_and", "logical_or" } do OPS[name] = binary(name) end
for _, name in ipairs { "abs", "exp", "expm1", "square", "reciprocal", "sin", "cos", "tanh", "erf", "sign", "floor", "ceil", "is_finite",
                        "isnan", "logical_not", "stop_gradient", "relu", "relu6", "sigmoid", "softplus", "softsign", "silu", "selu",
                        "hard_sigmoid", "hard_silu", "zeros_like", "ones_like" } do OPS[name] = unary(name) end
for _, name in ipairs { "sum", "prod", "mean", "var", "std", "max", "min", "any", "all", "logsumexp" } do OPS[name] = reduction(name) end
OPS.matmul = function(draw, x, y)
  return flow.matmul(x, draw.pick { y:transpose { 1, 3, 2 }, flow.random.uniform({ 3, 2 }, { seed = draw.integer(1, 1e6) }) })
end

operations.names = {}
for name in pairs(OPS) do operations.names[#operations.names + 1] = name end
table.sort(operations.names)

-- What keeps the shape and stays in range.
local CHAIN = { "tanh", "sigmoid", "add", "mul", "maximum", "flip", "softmax", "clip", "gelu", "hard_silu", "mod", "relu" }

--- A model of one of the operations, by the seed, after up to three others, with its inputs and the name of the op.
function operations.model(seed, draw)
  local name, rows = operations.names[1 + seed % #operations.names], draw.integer(1, 4)
  local x, y = flow.Input { 4, 3 }, flow.Input { 4, 3 }
  local labels, value = flow.Input({ 4 }, { dtype = "int32" }), x
  for _ = 1, draw.integer(0, 3) do value = OPS[draw.pick(CHAIN)](draw, value, y, labels) end
  local outputs = OPS[name](draw, value, y, labels)
  if getmetatable(outputs) ~= nil then outputs = { outputs } end
  if draw.chance(0.3) then      -- operations feed layers, too
    outputs[#outputs + 1] = flow.layers.Dense(2)(flow.layers.Flatten()(flow.cast(outputs[1], "float32"))) * 0.5
  end
  outputs[#outputs + 1] = x * y - flow.expand_dims(labels, -1)      -- every input has a call
  local model = flow.Model { inputs = { x, y, labels }, outputs = outputs }
  local function values() return flow.random.uniform({ rows, 4, 3 }, { minval = -2, maxval = 2, seed = draw.integer(1, 1e6) }) end
  return model, { values(), values(), flow.random.randint({ rows, 4 }, 0, 6, { seed = draw.integer(1, 1e6) }) }, name
end

return operations
