-- lora.lua: Dense, EinsumDense, embeddings and convolutions that learn a change of low rank of their weights, which are frozen (Hu et al.,
-- LoRA: Low-Rank Adaptation of Large Language Models, 2021), as in Keras:
--
--   dense:enable_lora(4)                            of a layer that is built; layers.Dense(8, { lora_rank = 4, lora_alpha = 8 })
--
-- The layer computes with kernel + alpha / rank * a b. Files hold that sum as the kernel, and the rank: who reads them begins with a change
-- of zero. A layer that is quantized by rows (flow/layers/quantization.lua) multiplies what bytes can say of its inputs and of its kernel,
-- and adds the change in floats, as in Keras; it can train, and files have the bytes of the sum.

local errors = require "flow.errors"
local json = require "flow.json"
local object = require "flow.object"
local ops = require "flow.tensor.ops"
local finish = require "flow.layers.kernels.bias_and_activation"
local takes = require("flow.signature").takes

local lora = {}

-- What is changed: the name of the weight, which the factors have, too.
local WEIGHT = { Dense = "kernel", EinsumDense = "kernel", Embedding = "embeddings", ReversibleEmbedding = "embeddings",
                 Conv1D = "kernel", Conv2D = "kernel", Conv3D = "kernel" }

-- The options lora_rank and lora_alpha of a constructor or a config are taken out of a table: { rank =, alpha = }, nil: there are none.
function lora.take(class_name, named)
  if not WEIGHT[class_name] then return nil end
  local rank, alpha = named.lora_rank, named.lora_alpha
  named.lora_rank, named.lora_alpha = nil, nil
  if rank == nil or rank == false or rank == json.null then return nil end
  if type(rank) ~= "number" or rank < 1 or rank % 1 ~= 0 then
    errors.raise("%s: lora_rank is a whole number from 1, got %s", class_name, errors.describe(rank))
  end
  if alpha == false or alpha == json.null then alpha = nil end
  if alpha ~= nil and type(alpha) ~= "number" then
    errors.raise("%s: lora_alpha is a number, got %s", class_name, errors.describe(alpha))
  end
  return { rank = rank, alpha = alpha }
end

-- A weight with its change.
local function changed(weight, state) return weight + ops.matmul(state.a, state.b) * (state.alpha / state.rank) end
local function merged(layer) return changed(layer[WEIGHT[layer._record_name]], rawget(layer, "_lora")) end

-- Makes the factors of a weight, as weights of a layer with a regularizer, if the weight has one, and freezes the weight. prefix: of their
-- names.
local function freeze(layer, weight, prefix, rank, alpha, a_initializer, b_initializer, regularizer)
  local shape = weight.shape
  local rows, last = { unpack(shape, 1, #shape - 1) }, shape[#shape]
  rows[#rows + 1] = rank
  local function add(which, of_shape, initializer)
    return layer:add_weight { name = prefix .. which, shape = of_shape, initializer = initializer, regularizer = regularizer }
  end
  local a, b = add("_a", rows, a_initializer or "he_uniform"), add("_b", { rank, last }, b_initializer or "zeros")
  weight.trainable = false
  return { rank = rank, alpha = alpha or rank, a = a, b = b }
end

local function is_quantized(layer) return require("flow.layers.quantization").get(layer) == "QUANTIZED_BY_ROW" end

-- multiply(x, kernel) with the change: one product, or, of a layer that is quantized, that of what bytes say and that of the change.
-- axes_of(): those of a row of x.
local function product(quantized, x, kernel, state, multiply, axes_of)
  if not quantized then return multiply(x, changed(kernel, state)) end
  local rows = require("flow.layers.kernels.byte_kernels").round_rows(x, axes_of())
  return multiply(rows, kernel:value()) + multiply(x, ops.matmul(state.a, state.b) * (state.alpha / state.rank))
end
lora.product = product

-- The axes of the input that an equation sums; "..." is before its letters or after them.
function lora.summed(equation, rank)
  local input, output = equation:gsub("%s", ""):match "^([^,]*),[^-]*->(.*)$"
  local letters, from, axes = input:gsub("%.", ""), 0, {}
  if input:sub(1, 1) == "." then from = rank - #letters end
  for i = 1, #letters do
    if not output:find(letters:sub(i, i), 1, true) then axes[#axes + 1] = from + i end
  end
  return axes
end

-- What the layer computes with the change, by the class of the library.
local CALLS = {
  Dense = function(layer, x)
    local state = rawget(layer, "_lora")
    return finish(layer, product(is_quantized(layer), x, layer.kernel, state, ops.matmul, function() return { #x.shape } end))
  end,
  EinsumDense = function(layer, x)
    local function multiply(rows, kernel) return ops.einsum(layer.equation, rows, kernel) end
    local function axes_of() return lora.summed(layer.equation, #x.shape) end
    return finish(layer, product(is_quantized(layer), x, layer.kernel, rawget(layer, "_lora"), multiply, axes_of))
  end,
  Embedding = function(layer, x)
    local state = rawget(layer, "_lora")
    local rows = x:to("int32") + 1
    local change = ops.matmul(ops.take(state.a:value(), rows, 1), state.b)
    return ops.take(layer.embeddings:value(), rows, 1) + change * (state.alpha / state.rank)
  end,
}

-- Back, it multiplies by the transposed table with the change, or by its own table, which does not change.
function CALLS.ReversibleEmbedding(layer, x, options)
  if not (options and options.reverse) then return CALLS.Embedding(layer, x) end
  local quantized = is_quantized(layer)      -- Keras leaves the change out then
  if quantized then x = require("flow.layers.kernels.byte_kernels").round_rows(x, { #x.shape }) end
  local table_of = layer.tie_weights and ops.transpose(quantized and layer.embeddings or merged(layer)) or layer.reverse_embeddings
  local y, cap = ops.matmul(x, table_of), layer.logit_soft_cap
  return type(cap) == "number" and ops.tanh(y / cap) * cap or y
end

local function convolve(layer, x) return finish(layer, layer:convolution_op(ops.operand(x, nil, layer.name), merged(layer))) end
for _, name in ipairs { "Conv1D", "Conv2D", "Conv3D" } do CALLS[name] = convolve end

-- Begins the change. a_initializer, b_initializer: of the two factors.
function lora.enable(layer, rank, alpha, a_initializer, b_initializer)
  local name, title = WEIGHT[layer._record_name], object.title(layer)
  if not layer._built then errors.raise("%s: enable_lora() is for a layer that is built: call layer:build(shape) before it", title) end
  if rawget(layer, "_lora") then errors.raise("%s: LoRA is enabled already", title) end
  if layer[name .. "_constraint"] or layer._activity or layer.quantization_mode and not is_quantized(layer) then
    errors.raise("%s: LoRA does not go with a constraint, an activity_regularizer or the ranges of a calibration", title)
  end
  rawset(layer, "_lora", freeze(layer, layer[name], "lora_" .. name, rank, alpha, a_initializer, b_initializer,
    layer[name .. "_regularizer"]))
  rawset(layer, "_own_call", true)
  rawset(layer, "call", CALLS[layer._record_name])
end

---- the projections of attentions: kernels/projections.lua -------------------------------------------------------------------------------
--
-- The attention has the variables: its _low_rank are the factors by the kernel that they change. From the first of them on it computes in
-- Lua (attention_hook.lua).

-- Begins the change of a projection, `part` by its name in paths.
function lora.enable_part(attention, kernel, part, rank, alpha, a_initializer, b_initializer)
  local changes, title = rawget(attention, "_low_rank") or {}, object.title(attention)
  if changes[kernel] then errors.raise("%s: LoRA is enabled already for its %s", title, part) end
  if attention.kernel_constraint or attention._activity then
    errors.raise("%s: LoRA does not go with a constraint or an activity_regularizer", title)
  end
  if #attention._input_shape[1] ~= 3 or attention._record_name ~= "GroupQueryAttention" and attention.attention_axes then
    errors.raise("%s: LoRA is for inputs {batch, steps, features} without attention_axes", title)
  end
  changes[kernel] = freeze(attention, kernel, part .. "/lora_kernel", rank, alpha, a_initializer, b_initializer,
    attention.kernel_regularizer)
  rawset(attention, "_low_rank", changes)
  rawset(attention, "_hook", "flow.layers.classes.attention_hook")
  if not rawget(attention, "_extended") then rawset(attention, "call", require("flow.layers.classes.attention_hook").call) end
  rawset(attention, "_own_call", true)
  return changes[kernel]
end

lora.changed = changed

-- The variables of a layer without the factors, in the order of files.
local function in_order(layer)
  local list = {}
  for _, kind in ipairs { "kernel", "embeddings", "reverse_embeddings", "bias" } do
    for _, v in ipairs(layer.weights) do list[#list + 1] = v.name == kind and v or nil end
  end
  return list
end

-- Of an attention: the value of a kernel with its change; nil: it has none.
function lora.stored_in_bytes(layer)
  local states = rawget(layer, "_low_rank")
  return states and function(v) return states[v] and changed(v, states[v]) end
end

-- What a layer with LoRA that is quantized stores: the bytes of its weight with the change.
function lora.store_bytes(layer, store)
  local name = WEIGHT[layer._record_name]
  local function value_of(v) return v.name == name and merged(layer) or nil end
  local group = require("flow.layers.kernels.byte_kernels").group(layer, in_order(layer), value_of)
  for i, value in ipairs(group) do store[tostring(i - 1)] = value end
end

-- Whether a variable is one of the factors of an attention.
function lora.is_factor(layer, v)
  for _, state in pairs(rawget(layer, "_low_rank") or {}) do
    if state.a == v or state.b == v then return true end
  end
  return false
end

-- What files keep of a variable: a kernel with its change, or the variable itself.
function lora.stored(layer, v)
  local state = rawget(layer, "_low_rank") and layer._low_rank[v]
  return state and changed(v, state) or v
end

-- After its variables were read from a file: the changes begin with zero.
local function set_zero(state)
  for _, v in ipairs { state.a, state.b } do v:assign(ops.zeros_like(v:value())) end
end
function lora.begin_again(layer)
  for _, state in pairs(rawget(layer, "_low_rank") or {}) do set_zero(state) end
end

-- The variables of an attention begin after position `from` of a list, with the factors of LoRA at its end. Moves each factor after the
-- variables of its projection, as in Keras.
function lora.arrange(layer, list, from)
  if not rawget(layer, "_low_rank") then return list end
  local parts, order = {}, {}
  for i = from + 1, #list do
    local part = list[i].path:match "([^/]+)/[^/]+$"
    if not parts[part] then
      parts[part] = {}
      order[#order + 1] = parts[part]
    end
    table.insert(parts[part], list[i])
  end
  local at = from
  for _, part in ipairs(order) do
    for _, v in ipairs(part) do
      at = at + 1
      list[at] = v
    end
  end
  return list
end

-- Gives a class its methods and fields, if it can have them. Layer: the class of all.
function lora.install(class, Layer)
  local name = WEIGHT[class.name]
  if name then
    takes "rank: count, lora_alpha?: number, a_initializer = 'he_uniform', b_initializer = 'zeros'"
    function class:enable_lora(rank, alpha, a_initializer, b_initializer) lora.enable(self, rank, alpha, a_initializer, b_initializer) end

    local function of(key, default)
      return function(self)
        local state = rawget(self, "_lora") or rawget(self, "_lora_wanted")
        return state and state[key] or default
      end
    end
    class.fields.lora_rank, class.fields.lora_alpha = of "rank", of "alpha"
    class.fields["lora_" .. name .. "_a"], class.fields["lora_" .. name .. "_b"] = of "a", of "b"
    function class.fields.lora_enabled(self) return rawget(self, "_lora") ~= nil end

    function class:get_config()
      local config = Layer.get_config(self)
      if self.lora_rank then config.lora_rank, config.lora_alpha = self.lora_rank, self.lora_alpha or self.lora_rank end
      return config
    end

    -- The weight with the change in it, and the bias.
    takes "store: table"
    function class:save_own_variables(store)
      if not rawget(self, "_lora") then return Layer.save_own_variables(self, store) end
      for i, v in ipairs(in_order(self)) do store[tostring(i - 1)] = v.name == name and merged(self) or v:value() end
    end

    takes "store: table"
    function class:load_own_variables(store)
      local state, list = rawget(self, "_lora"), in_order(self)
      if not state then return Layer.load_own_variables(self, store) end
      local function stored(at)
        return store[tostring(at)] or errors.raise("%s: load_own_variables() found no \"%d\"", object.title(self), at)
      end
      local in_bytes = stored(0).dtype == "int8"
      if in_bytes and not is_quantized(self) then
        errors.raise("%s: load_own_variables() found bytes for %s, as Keras' quantize(\"int8\") writes them: quantize() the layer before",
          object.title(self), list[1].name)
      end
      local byte_kernels = require "flow.layers.kernels.byte_kernels"
      local places = in_bytes and byte_kernels.places(list)
      for i, v in ipairs(list) do
        local value = stored(places and places[i][1] or i - 1)
        if places and places[i][2] then value = byte_kernels.floats(self, v, value, stored(places[i][2])) end
        v:assign(value)
      end
      set_zero(state)
    end
  end
end

return lora
