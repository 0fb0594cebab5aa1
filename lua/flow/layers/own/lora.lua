-- lora.lua: Dense, EinsumDense, embeddings and convolutions that learn a change of low rank of their weights, which are frozen (Hu et al.,
-- LoRA: Low-Rank Adaptation of Large Language Models, 2021), as in Keras:
--
--   dense:enable_lora(4)                            of a layer that is built; layers.Dense(8, { lora_rank = 4, lora_alpha = 8 })
--
-- The layer computes with kernel + alpha / rank * a b. Files hold that sum as the kernel, and the rank: who reads them begins with a change
-- of zero.

local errors = require "flow.errors"
local json = require "flow.json"
local object = require "flow.object"
local ops = require "flow.tensor.ops"
local finished = require "flow.layers.own.finished"
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

-- The weight with the change.
local function merged(layer)
  local state, weight = rawget(layer, "_lora"), layer[WEIGHT[layer._record_name]]
  return weight + ops.matmul(state.a, state.b) * (state.alpha / state.rank)
end

-- What the layer computes with the change, by the class of the library.
local CALLS = {
  Dense = function(layer, x) return finished(layer, ops.matmul(x, merged(layer))) end,
  EinsumDense = function(layer, x) return finished(layer, ops.einsum(layer.equation, x, merged(layer))) end,
  Embedding = function(layer, x)
    local state = rawget(layer, "_lora")
    local rows = x:to("int32") + 1
    local change = ops.matmul(ops.take(state.a:value(), rows, 1), state.b)
    return ops.take(layer.embeddings:value(), rows, 1) + change * (state.alpha / state.rank)
  end,
}

-- Back, it multiplies by the transposed table with the change, or by a table of its own, which does not change.
function CALLS.ReversibleEmbedding(layer, x, options)
  if not (options and options.reverse) then return CALLS.Embedding(layer, x) end
  local table_of = layer.tie_weights and ops.transpose(merged(layer)) or layer.reverse_embeddings:value()
  local y, cap = ops.matmul(x, table_of), layer.logit_soft_cap
  return type(cap) == "number" and ops.tanh(y / cap) * cap or y
end

local function convolve(layer, x) return finished(layer, layer:convolution_op(ops.operand(x, nil, layer.name), merged(layer))) end
for _, name in ipairs { "Conv1D", "Conv2D", "Conv3D" } do CALLS[name] = convolve end

-- Begins the change. a_initializer, b_initializer: of the two factors.
function lora.enable(layer, rank, alpha, a_initializer, b_initializer)
  local name, title = WEIGHT[layer._record_name], object.title(layer)
  if not layer._built then errors.raise("%s: enable_lora() is for a layer that is built: call layer:build(shape) before it", title) end
  if rawget(layer, "_lora") then errors.raise("%s: LoRA is enabled already", title) end
  if layer[name .. "_constraint"] or layer._activity or layer.quantization_mode then
    errors.raise("%s: LoRA does not go with a constraint, an activity_regularizer or quantization", title)
  end
  local weight = layer[name]
  local shape = weight.shape
  local rows, last = { unpack(shape, 1, #shape - 1) }, shape[#shape]
  rows[#rows + 1] = rank
  local a = layer:add_weight { name = "lora_" .. name .. "_a", shape = rows, initializer = a_initializer or "he_uniform" }
  local b = layer:add_weight { name = "lora_" .. name .. "_b", shape = { rank, last }, initializer = b_initializer or "zeros" }
  weight.trainable = false
  rawset(layer, "_lora", { rank = rank, alpha = alpha or rank, a = a, b = b })
  rawset(layer, "_own_call", true)
  rawset(layer, "call", CALLS[layer._record_name])
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
      local count = 0
      for _, v in ipairs(self.weights) do
        local last = v.name
        if not last:find "^lora_" then
          store[tostring(count)] = last == name and merged(self) or v:value()
          count = count + 1
        end
      end
    end

    takes "store: table"
    function class:load_own_variables(store)
      local state, count = rawget(self, "_lora"), 0
      if not state then return Layer.load_own_variables(self, store) end
      for _, v in ipairs(self.weights) do
        if not v.name:find "^lora_" then
          v:assign(store[tostring(count)] or errors.raise("%s: load_own_variables() found no \"%d\"", object.title(self), count))
          count = count + 1
        end
      end
      for _, v in ipairs { state.a, state.b } do v:assign(ops.zeros_like(v:value())) end
    end
  end
end

return lora
