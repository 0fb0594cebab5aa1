-- network.lua: what layers and losses compute, as functions: normalizations, cross entropies, attention, labels as vectors, alignments of
-- sequences (CTC).

local errors = require "flow.errors"
local tensor = require "flow.tensor"
local tools = require "flow.tensor.composed.tools"
local takes = require("flow.signature").takes

local raise = errors.raise
local ops, define, operand, floats = tools.ops, tools.define, tools.operand, tools.floats

local EPSILON = 1e-7

---- normalizations ---------------------------------------------------------------------------------

-- Mean and variance over axes.
takes "x, axes: number|list, keepdims: boolean = false"
define(function(x, axes, keepdims)
  x = floats(x, "moments")
  return ops.mean(x, axes, keepdims), ops.var(x, axes, keepdims)
end, "moments")

-- v, of the sizes of these axes of x in their order, in a shape that broadcasts against x.
local function along(v, x, axes)
  if v == nil then return nil end
  v = operand(v, "normalization", x.dtype):to(x.dtype)
  local dims, shape = tools.dims(x), {}
  if #tools.dims(v) == #dims then return v end
  for i = 1, #dims do shape[i] = 1 end
  for _, axis in ipairs(tools.axes(x, axes, "normalization")) do shape[axis] = dims[axis] end
  return ops.reshape_raw(v, shape)
end

takes "x, mean, variance, axis: integer, { offset?, scale?, epsilon: number = 0.001; }"
tools.define_long(function(x, mean, variance, axis, options)
  x = floats(x, "batch_normalization")
  local factor = ops.rsqrt(along(variance, x, axis) + options.epsilon)
  if options.scale ~= nil then factor = factor * along(options.scale, x, axis) end
  local y = (x - along(mean, x, axis)) * factor
  return options.offset ~= nil and y + along(options.offset, x, axis) or y
end, "batch_normalization")

takes "x, gamma?, beta?, axis: number|list = -1, epsilon?: number"
tools.define_long(function(x, gamma, beta, axis, epsilon)
  x = floats(x, "layer_normalization")
  local y = (x - ops.mean(x, axis, true)) * ops.rsqrt(ops.var(x, axis, true) + (epsilon or EPSILON))
  if gamma ~= nil then y = y * along(gamma, x, axis) end
  return beta ~= nil and y + along(beta, x, axis) or y
end, "layer_normalization")

takes "x, scale?, axis: number|list = -1, epsilon?: number"
tools.define_long(function(x, scale, axis, epsilon)
  x = floats(x, "rms_normalization")
  local y = x * ops.rsqrt(ops.mean(ops.square(x), axis, true) + (epsilon or EPSILON))
  return scale ~= nil and y * along(scale, x, axis) or y
end, "rms_normalization")

-- x over its norm of an order along an axis, which counts as epsilon at least.
takes "x, axis: number|list = -1, order: count = 2, epsilon?: number"
tools.define_long(function(x, axis, order, epsilon)
  x, epsilon = floats(x, "normalize"), epsilon or EPSILON
  if order == 2 then return x * ops.rsqrt(ops.maximum(ops.sum(ops.square(x), axis, true), epsilon * epsilon)) end
  return x / ops.maximum(ops.norm(x, order, axis, true), epsilon)
end, "normalize")

-- tf.math.l2_normalize: x over the root of its sum of squares, which counts as epsilon at least; without an axis, of all elements.
takes "x, axis?: number|list, epsilon: number = 1e-12"
tools.define_long(function(x, axis, epsilon)
  x = floats(x, "l2_normalize")
  return x * ops.rsqrt(ops.maximum(ops.sum(ops.square(x), axis, axis ~= nil), epsilon))
end, "l2_normalize")

---- losses -----------------------------------------------------------------------------------------

takes "target, output, from_logits: boolean = false"
tools.define_long(function(target, output, from_logits)
  output = floats(output, "binary_crossentropy")
  target = operand(target, "binary_crossentropy", output.dtype):to(output.dtype)
  if from_logits then return ops.softplus(output) - output * target end
  output = ops.clip(output, EPSILON, 1 - EPSILON)
  return -(target * ops.log(output) + (1 - target) * ops.log(1 - output))
end, "binary_crossentropy")

-- The logarithm of probabilities, which are scaled to the sum 1 and kept off 0 and 1.
local function log_probabilities(output, from_logits, axis)
  if from_logits then return ops.log_softmax(output, axis) end
  return ops.log(ops.clip(output / ops.sum(output, axis, true), EPSILON, 1 - EPSILON))
end

takes "target, output, from_logits: boolean = false, axis: integer = -1"
tools.define_long(function(target, output, from_logits, axis)
  output = floats(output, "categorical_crossentropy")
  target = operand(target, "categorical_crossentropy", output.dtype):to(output.dtype)
  return -ops.sum(target * log_probabilities(output, from_logits, axis), axis)
end, "categorical_crossentropy")

-- Labels from 0.
takes "target, output, from_logits: boolean = false, axis: integer = -1"
tools.define_long(function(target, output, from_logits, axis)
  local what = "sparse_categorical_crossentropy"
  output, target = floats(output, what), operand(target, what, "int32")
  if tools.is_float(target) then target = target:to("int64") end
  axis = tools.axis(output, axis, what)
  local rank = #tools.dims(output)
  if #tools.dims(target) == rank and tools.dims(target)[rank] == 1 then target = ops.squeeze(target, rank) end
  local logs = from_logits and ops.log_softmax(output, axis) or ops.log(ops.clip(output, EPSILON, 1 - EPSILON))
  if not from_logits then logs = logs - ops.logsumexp(logs, axis, true) end
  return -ops.squeeze(tools.take_along(logs, ops.expand_dims(target, axis), axis), axis)
end, "sparse_categorical_crossentropy")

-- Decibels: 20 log10(max_val) - 10 log10(mean squared difference).
takes "a, b, max_val: number"
define(function(a, b, largest)
  a, b = floats(a, "psnr"), floats(b, "psnr")
  return (ops.log(ops.mean(ops.square(a - b))) * -10 + 20 * math.log(largest)) / math.log(10)
end, "psnr")

---- labels -----------------------------------------------------------------------------------------

-- Which of the classes from 0 occur, as ones. As in Keras: ones of each label stand along `axis`, of which those along the second axis of
-- the labels, or along their only one, become one vector.
takes "labels, num_classes: count, { axis: integer = -1, dtype = 'float32'; }"
define(function(labels, classes, options)
  labels = operand(labels, "multi_hot", "int32")
  options = options or {}
  local hits, rank = ops.one_hot(labels, classes, { dtype = options.dtype or "float32" }), #tools.dims(labels)
  if rank == 0 then return hits end
  local axis = options.axis or -1
  if axis ~= -1 then hits = ops.moveaxis(hits, -1, axis) end
  return ops.max(hits, rank > 1 and 2 or 1, false, 0)
end, "multi_hot")

---- attention --------------------------------------------------------------------------------------

-- softmax(query key^T scale + bias) value of {batch, length, heads, size}; a mask {batch, heads, length, length}, or one that broadcasts
-- to it, says which keys a query sees. Where query has more heads than key and value, groups of heads share theirs.
takes [[query, key, value, { bias?, mask?, scale?: number, is_causal: boolean = false, flash_attention?: boolean,
  attn_logits_soft_cap?: number; }]]
tools.define_long(function(query, key, value, options)
  local what = "dot_product_attention"
  query, key, value = floats(query, what), floats(key, what), floats(value, what)
  local heads, shared, size = tools.length(query, 3, what), tools.length(key, 3, what), tools.length(query, 4, what)
  if heads % shared ~= 0 then raise("flow.%s: %d heads of query do not divide into groups for %d of key", what, heads, shared) end
  if heads ~= shared then key, value = ops.repeat_(key, heads / shared, 3), ops.repeat_(value, heads / shared, 3) end
  -- the query has fewer elements than the scores; plans take products, mask, softmax and product as one op
  local scores = ops.einsum("btnh,bsnh->bnts", query * (options.scale or 1 / math.sqrt(size)), key)
  local cap = options.attn_logits_soft_cap
  if cap then scores = ops.tanh(scores / cap) * cap end
  if options.bias ~= nil then scores = scores + operand(options.bias, what) end
  local mask = options.mask
  if options.is_causal then
    local rows, columns = tools.length(query, 2, what), tools.length(key, 2, what)
    local causal = ops.le(tensor.arange(columns), ops.expand_dims(tensor.arange(rows), 2))
    mask = mask ~= nil and ops.logical_and(operand(mask, what), causal) or causal
  end
  if mask ~= nil then scores = ops.where(operand(mask, what), scores, -1e9) end
  return ops.einsum("bnts,bsnh->btnh", ops.softmax(scores, -1), value)
end, "dot_product_attention")

---- connectionist temporal classification ----------------------------------------------------------

-- Graves et al., 2006: minus the logarithm of the sum over all paths of labels and blanks that read as the target. target {batch, labels}
-- from 0, output {batch, steps, classes} as logits. Probabilities of the states blank, label 1, blank, label 2, ..., blank go forward by
-- steps, as logarithms.
takes "target, output, target_length, output_length, mask_index: integer = 0"
tools.define_long(function(target, output, target_length, output_length, blank)
  local what = "ctc_loss"
  target, output = operand(target, what, "int32"):to("int32"), floats(output, what)
  target_length, output_length = operand(target_length, what, "int32"), operand(output_length, what, "int32")
  local labels, steps = tools.length(target, 2, what), tools.length(output, 2, what)
  local logs = ops.log_softmax(output, -1)
  local states = 2 * labels + 1
  local blanks = ops.full_like(ops.expand_dims(target, 3), blank)
  local symbols = ops.reshape(ops.concat({ blanks, ops.expand_dims(target, 3) }, 3), { -1, 2 * labels })
  symbols = ops.concat({ symbols, tools.part(ops.squeeze(blanks, 3), 2, 1, 1) }, 2)
  local never = -1e30
  -- A state is entered from the one before the one before, too, if that is another label.
  local jumps = ops.logical_and(ops.ne(tools.part(symbols, 2, 3, states), blank),
    ops.ne(tools.part(symbols, 2, 3, states), tools.part(symbols, 2, 1, states - 2)))
  local emitted = tools.take_along(logs, ops.repeat_(ops.expand_dims(symbols, 2), steps, 2), 3)
  local function at(step) return ops.squeeze(tools.part(emitted, 2, step, step), 2) end
  local position = tensor.arange(states)
  local alpha = ops.where(ops.lt(position, 2), at(1), never)
  local function moved(x, by) return ops.concat({ ops.full_like(tools.part(x, 2, 1, by), never), tools.part(x, 2, 1, states - by) }, 2) end
  for step = 2, steps do
    local jump = tools.part(alpha, 2, 1, states - 2)
    jump = ops.concat({ ops.full_like(tools.part(alpha, 2, 1, 2), never), ops.where(jumps, jump, never) }, 2)
    local entered = ops.logsumexp(ops.stack({ alpha, moved(alpha, 1), jump }, 1), 1) + at(step)
    alpha = ops.where(ops.expand_dims(ops.lt(step - 1, output_length), 2), entered, alpha)
  end
  local last = ops.expand_dims(target_length * 2, 2)
  local ends = ops.logical_or(ops.eq(position, last), ops.eq(position, last - 1))
  return -ops.logsumexp(ops.where(ends, alpha, never), -1)
end, "ctc_loss")

-- The labels that a batch of outputs {batch, steps, classes} reads as, of eager tensors: those of the largest entries, without repetitions
-- and blanks. Returns the labels {1, batch, steps}, -1 where there are no more, and minus the sums of the entries, {batch, 1}.
local function greedy(values, lengths, blank, merge)
  local rows, scores = {}, {}
  for b, row in ipairs(values) do
    local labels, before, score = {}, nil, 0
    for step = 1, lengths[b] do
      local best = 1
      for class, x in ipairs(row[step]) do best = x > row[step][best] and class or best end
      score = score - row[step][best]
      local label = best - 1
      if label ~= blank and not (merge and label == before) then labels[#labels + 1] = label end
      before = label
    end
    rows[b], scores[b] = labels, { score }
  end
  return { rows }, scores
end

-- log(e^a + e^b)
local function log_add(a, b)
  if a == -math.huge then return b end
  if b == -math.huge then return a end
  return math.max(a, b) + math.log(1 + math.exp(-math.abs(a - b)))
end

-- The best first; of equal ones the one whose labels come first.
local function sort_beams(list)
  for _, b in ipairs(list) do b.score = log_add(b.blank, b.label) end
  table.sort(list, function(a, b)
    if a.score ~= b.score then return a.score > b.score end
    for i = 1, math.min(#a.labels, #b.labels) do
      if a.labels[i] ~= b.labels[i] then return a.labels[i] < b.labels[i] end
    end
    return #a.labels < #b.labels
  end)
end

-- Prefix beam search (A. Hannun et al., 2014): for each prefix the logarithms of its probability with a blank at its end, and without.
local function beam_search(row, steps, blank, width, paths)
  local beams = { [""] = { labels = {}, blank = 0, label = -math.huge } }
  for step = 1, steps do
    local logs, top = {}, -math.huge
    for _, x in ipairs(row[step]) do top = math.max(top, x) end
    local sum = 0
    for _, x in ipairs(row[step]) do sum = sum + math.exp(x - top) end
    for class, x in ipairs(row[step]) do logs[class - 1] = x - top - math.log(sum) end
    local next_beams = {}
    local function beam(labels)
      local key = table.concat(labels, ",")
      next_beams[key] = next_beams[key] or { labels = labels, blank = -math.huge, label = -math.huge }
      return next_beams[key]
    end
    for _, old in pairs(beams) do
      local total, last = log_add(old.blank, old.label), old.labels[#old.labels]
      local same = beam(old.labels)
      same.blank = log_add(same.blank, total + logs[blank])
      if last then same.label = log_add(same.label, old.label + logs[last]) end
      for class, x in pairs(logs) do
        if class ~= blank then
          local longer = { unpack(old.labels) }
          longer[#longer + 1] = class
          local extended = beam(longer)
          extended.label = log_add(extended.label, (class == last and old.blank or total) + x)
        end
      end
    end
    local order = {}
    for _, b in pairs(next_beams) do order[#order + 1] = b end
    sort_beams(order)
    beams = {}
    for i = 1, math.min(width, #order) do beams[table.concat(order[i].labels, ",")] = order[i] end
  end
  local order = {}
  for _, b in pairs(beams) do order[#order + 1] = b end
  sort_beams(order)
  if #order < paths then raise("flow.ctc_decode: there are %d paths, top_paths asks for %d", #order, paths) end
  return order
end

takes [[inputs, sequence_lengths: data, { strategy: 'greedy'|'beam_search' = 'greedy', beam_width: count = 100, top_paths: count = 1,
  merge_repeated: boolean = true, mask_index: whole = 0; }]]
tools.define_long(function(inputs, lengths, options)
  inputs = floats(inputs, "ctc_decode")
  local dims = tools.dims(inputs)
  if #dims ~= 3 then raise("flow.ctc_decode: inputs are {batch, steps, classes}, got shape %s", tensor.shape_text(dims)) end
  if options.mask_index >= dims[3] then
    raise("flow.ctc_decode: mask_index is %d, the inputs have %d classes, counted from 0", options.mask_index, dims[3])
  end
  local values = tensor.on_host(inputs):totable()
  lengths = operand(lengths, "ctc_decode", "int32"):totable()
  if type(lengths) ~= "table" or #lengths ~= dims[1] then
    raise("flow.ctc_decode: sequence_lengths is one number for each of %d rows, got %s", dims[1],
      type(lengths) == "table" and #lengths or errors.describe(lengths))
  end
  for b, length in ipairs(lengths) do
    if type(length) ~= "number" or not (length >= 0 and length <= dims[2]) then
      raise("flow.ctc_decode: the length of row %d is %s, expected a number from 0 to %d, the steps", b, errors.describe(length), dims[2])
    end
  end
  local all, scores
  if options.strategy == "greedy" then
    all, scores = greedy(values, lengths, options.mask_index, options.merge_repeated)
  else
    all, scores = {}, {}
    for path = 1, options.top_paths do all[path] = {} end
    for b, row in ipairs(values) do
      local found = beam_search(row, lengths[b], options.mask_index, options.beam_width, options.top_paths)
      scores[b] = {}
      for path = 1, options.top_paths do
        all[path][b], scores[b][path] = found[path].labels, found[path].score
      end
    end
  end
  for _, rows in ipairs(all) do
    for b, labels in ipairs(rows) do
      for i = #labels + 1, #values[b] do labels[i] = -1 end
    end
  end
  return tensor.tensor(all, { dtype = "int32" }), tensor.tensor(scores, { dtype = inputs.dtype })
end, "ctc_decode")
