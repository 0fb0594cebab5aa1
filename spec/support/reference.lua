--- Nets that can be built twice: from layers, as users build them, and as plain ops in float64, eagerly, to compare with.
-- A net is a function(b, x): b.Dense(x, units, options) and its kin stand for the layers of the same names.
local flow = require "flow"
local backend = require "spec.support.backend"

local reference = {}
local layers = flow.layers

---- with layers ------------------------------------------------------------------------------------------------------------

--- How many of the arguments after x are positional, by layer; the options follow.
local positional = {
  Dense = 1, Conv2D = 2, DepthwiseConv2D = 1, BatchNormalization = 0, MaxPooling2D = 1, AveragePooling2D = 1, GlobalAveragePooling2D = 0,
  GlobalMaxPooling2D = 0, Flatten = 0, Activation = 1, ReLU = 0, Add = 0, Concatenate = 0, Rescaling = 1, Dropout = 1,
}

--- The net as a functional model for inputs of `shape` (without the batch); second result: its layers in the order of calls.
function reference.model(net, shape)
  local calls, builder = {}, {}
  for name, count in pairs(positional) do
    builder[name] = function(x, ...)
      local arguments = { ... }
      for i = #arguments + 1, count do assert(nil, name .. ": argument " .. i) end
      local layer = layers[name](unpack(arguments))
      calls[#calls + 1] = layer
      return layer(x)
    end
  end
  local input = flow.Input(shape)
  return flow.Model { inputs = input, outputs = net(builder, input) }, calls
end

---- with ops ---------------------------------------------------------------------------------------------------------------

local ops = {}

local function pair(value, default)
  value = value or default
  return type(value) == "table" and value or { value, value }
end

--- The smallest distance from zero that an input of a ReLU had since this was set, as a share of the largest of that call.
local nearest = math.huge

local function relu(y)
  local size = y:abs()
  nearest = math.min(nearest, size:min():item() / math.max(size:max():item(), 1e-300))
  return y:relu()
end

local function activate(y, name)
  if name == "relu" then return relu(y) end
  return name and name ~= "linear" and flow[name](y) or y
end

--- top, bottom, left, right: as TensorFlow pads for "same".
local function padding_of(options, x, window, stride, dilation)
  local result = { 0, 0, 0, 0 }
  for i = 1, options.padding == "same" and 2 or 0 do
    local size = x.shape[1 + i]
    local total = math.max(0, (math.ceil(size / stride[i]) - 1) * stride[i] + (window[i] - 1) * dilation[i] + 1 - size)
    result[2 * i - 1], result[2 * i] = math.floor(total / 2), math.ceil(total / 2)
  end
  return result
end

function ops.Dense(x, weights, _, options)
  local y = x:matmul(weights[1])
  return activate(weights[2] and y + weights[2] or y, options and options.activation)
end

function ops.Conv2D(x, weights, _, kernel, options)
  options = options or {}
  local stride, dilation = pair(options.strides, 1), pair(options.dilation_rate, 1)
  local y = backend.apply("convolution", { x, weights[1]:value() }, { convolution = {
    stride = stride, dilation = dilation, groups = options.groups or 1, padding = padding_of(options, x, pair(kernel), stride, dilation),
  } })[1]
  return activate(weights[2] and y + weights[2] or y, options.activation)
end

--- One ordinary convolution a channel, concatenated: nothing that DepthwiseConv2D's own op does.
function ops.DepthwiseConv2D(x, weights, kernel, options)
  local parts, kernels = {}, weights[1]:value()
  local stride, dilation = pair(options.strides, 1), pair(options.dilation_rate, 1)
  for c = 1, x.shape[4] do
    parts[c] = backend.apply("convolution", { x[{ {}, {}, {}, { c, c } }], kernels[{ {}, {}, { c, c } }] }, { convolution = {
      stride = stride, dilation = dilation, groups = 1, padding = padding_of(options, x, pair(kernel), stride, dilation),
    } })[1]
  end
  local y = flow.concat(parts, 4)
  return activate(weights[2] and y + weights[2] or y, options.activation)
end

--- Ioffe and Szegedy 2015, with the statistics of the batch.
function ops.BatchNormalization(x, weights, options)
  local axes = {}
  for i = 1, x.rank - 1 do axes[i] = i end
  local centered = x - x:mean(axes, true)
  return centered / (centered:square():mean(axes, true) + (options and options.epsilon or 1e-3)):sqrt() * weights[1] + weights[2]
end

local function pooled(op, x, size, options)
  options = options or {}
  local window = pair(size)
  local stride = pair(options.strides, window)
  return backend.apply(op, { x }, { pool = {
    size = window, stride = stride, padding = padding_of(options, x, window, stride, { 1, 1 }),
  } })[1]
end

function ops.MaxPooling2D(x, _, size, options) return pooled("max_pool", x, size, options) end
function ops.AveragePooling2D(x, _, size, options) return pooled("average_pool", x, size, options) end
function ops.GlobalAveragePooling2D(x) return x:mean { 2, 3 } end
function ops.GlobalMaxPooling2D(x) return x:max { 2, 3 } end
function ops.Flatten(x) return x:reshape(x.shape[1], -1) end
function ops.Activation(x, _, name) return activate(x, name) end
function ops.ReLU(x) return relu(x) end
function ops.Add(list) return list[1] + list[2] end
function ops.Concatenate(list) return flow.concat(list, list[1].rank) end
function ops.Rescaling(x, _, scale) return x * scale end

--- The net over ops in float64: a function of x, and the variables that it reads, which start as those of the layers.
function reference.function_of(net, calls)
  local weights, variables = {}, {}
  for i, layer in ipairs(calls) do
    weights[i] = {}
    for k, v in ipairs(layer.trainable_variables) do
      weights[i][k] = flow.Variable(v:value():to("float64"))
      variables[#variables + 1] = weights[i][k]
    end
  end
  local function run(x)
    local at, builder = 0, {}
    for name, op in pairs(ops) do
      builder[name] = function(inputs, ...)
        at = at + 1
        return op(inputs, weights[at], ...)
      end
    end
    return net(builder, x)
  end
  return run, variables
end

---- losses and gradients -----------------------------------------------------------------------------------------------------

--- The mean cross entropy of logits, in their dtype.
function reference.loss(labels, logits)
  return backend.apply("sparse_cross_entropy", { logits, labels })[1]:mean()
end

--- Loss and gradients of a function of x by the variables; works in a trace, too.
--- Third result, where the function is of function_of: how near to zero an input of a ReLU came. What is within the rounding of
--- float32 there has a slope of 0 or 1 by chance, so that gradients cannot be compared.
function reference.step(run, variables, x, labels)
  nearest = math.huge
  local tape = flow.GradientTape()
  local loss = tape:record(function() return reference.loss(labels, run(x)) end)
  local gradients = tape:gradient(loss, variables)
  tape:close()
  return loss, gradients, nearest
end

--- Fails unless losses agree to `tolerance` and gradients to 10 times that of the largest gradient of the same variable,
--- or of a hundredth of the largest of all: what cancels to almost zero has rounding errors of what cancels.
function reference.compare(expected_loss, expected, loss, gradients, tolerance, what)
  local e, a = expected_loss:item(), loss:item()
  if not (math.abs(e - a) <= tolerance * math.max(1, math.abs(e))) then
    error(("%s: loss %.9g, expected %.9g"):format(what, a, e), 2)
  end
  local largest = 0
  for _, gradient in ipairs(expected) do largest = math.max(largest, gradient:abs():max():item()) end
  for i, gradient in ipairs(expected) do
    local difference = (gradients[i]:to("float64") - gradient):abs():max():item()
    local allowed = 10 * tolerance * math.max(gradient:abs():max():item(), largest / 100)
    if not (difference <= allowed) then
      error(("%s: gradient %d differs by %.3g, allowed %.3g"):format(what, i, difference, allowed), 2)
    end
  end
end

--- The trainable variables of a model's layers, in the order in which they are called.
function reference.trainable(calls)
  local variables = {}
  for _, layer in ipairs(calls) do
    for _, v in ipairs(layer.trainable_variables) do variables[#variables + 1] = v end
  end
  return variables
end

return reference
