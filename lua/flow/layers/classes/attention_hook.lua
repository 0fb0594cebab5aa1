-- attention_hook.lua: classes that extend MultiHeadAttention with their own _compute_attention(), as programs for Keras do:
--
--   local Scaled = layers.MultiHeadAttention:extend "Scaled"
--   function Scaled:_compute_attention(query, key, value, attention_mask, training) ... return output, scores end
--
-- query, key and value are projected, {batch, steps, heads, size}; the masks of a call are one, {batch, query steps, value steps} or nil.
-- self._dot_product_equation, self._combine_equation, self:_masked_softmax(scores, mask), self._dropout_layer, self._key_dim and
-- self._num_heads are what Keras' class has for it.
--
-- Attentions with a projection that has LoRA (lora.lua) are computed here, too, with the library's formula (core/layers/attention.c).

local errors = require "flow.errors"
local object = require "flow.object"
local ops = require "flow.tensor.ops"
local tensor = require "flow.tensor"
local scopes = require "flow.scopes"
local several = require "flow.layers.several"

local hook = {}

-- What is added to the scores that a mask hides, as by Keras' Softmax.
local function hidden(dtype) return dtype == "float16" and -3e4 or -1e9 end

-- Gives the class of the library what scripts' classes use.
function hook.install(class)
  local fields = class.fields
  function fields._dot_product_equation() return "aecd,abcd->acbe" end
  function fields._combine_equation() return "acbe,aecd->abcd" end
  function fields._key_dim(self) return self.key_dim end
  function fields._num_heads(self) return self.num_heads end
  function fields._inverse_sqrt_key_dim(self) return self.key_dim ^ -0.5 end
  function fields._dropout_layer(self)
    local kept = rawget(self, "_dropout_inside") or { require("flow.layers").Dropout(self.dropout) }      -- in a table: not a part
    rawset(self, "_dropout_inside", kept)
    return kept[1]
  end
  function class:_masked_softmax(scores, mask)
    if mask ~= nil then scores = scores + (1 - ops.expand_dims(mask, 2):to(scores.dtype)) * hidden(scores.dtype) end
    return ops.softmax(scores, -1)
  end
end

local function project(layer, x, projection) return require "flow.layers.kernels.projections" (layer, projection):call(x) end

-- The masks of a call as one, or nil. window: how far apart steps are that see each other, or nil.
local function mask_of(given, query, value, window)
  local mask
  local function add(one)
    if one == nil then return end
    one = ops.operand(one, nil, "a mask"):to "bool"
    mask = mask and ops.logical_and(mask, one) or one
  end
  add(given.query_mask and ops.expand_dims(given.query_mask, -1))
  add(given.value_mask and ops.expand_dims(given.value_mask, 2))
  add(given.key_mask and ops.expand_dims(given.key_mask, 2))
  if given.use_causal_mask or window then
    local rows, columns = tensor.arange(query.shape[2]):expand_dims(-1), tensor.arange(value.shape[2]):expand_dims(1)
    if given.use_causal_mask then add(ops.expand_dims(rows:ge(columns), 1)) end
    if window then add(ops.expand_dims((rows - columns):abs():lt(window), 1)) end
  end
  add(given.attention_mask)
  return mask
end

-- The library's formula: the softmax is in float32; a step that sees nothing gets zeros where Keras has no fused product, else the mean.
local function compute(layer, query, key, value, mask, training, with_scores)
  local scores = ops.einsum("abhd,achd->ahbc", query * query.shape[4] ^ -0.5, key)
  local dtype, rate = scores.dtype, layer.dropout
  scores = dtype == "float64" and scores or scores:to "float32"
  if mask ~= nil then
    while #mask.shape < 4 do mask = ops.expand_dims(mask, 2) end
    scores = ops.where(mask, scores, -1e9)
  end
  local weights = ops.softmax(scores, -1)
  if mask ~= nil and (rate > 0 or with_scores) then weights = ops.where(mask, weights, 0) end
  weights = weights:to(dtype)
  local used = training and rate > 0 and layer._dropout_layer(weights, { training = true }) or weights
  return ops.einsum("ahbc,achd->abhd", used, value), weights
end

-- Each head of the key once for each head of the query that shares it.
local function shared(x, heads)
  local each = heads / x.shape[3]
  return each == 1 and x or ops.repeat_(x, each, 3)
end

-- What the layer computes by the class's _compute_attention: the output, or, with return_attention_scores, a list of it and the scores.
function hook.call(layer, ...)
  local call, training = several.read(layer, ...)
  if training == nil then training = scopes.own().training or false end
  local given = {}
  for name, entry in pairs(call.options) do given[name] = entry end
  for i, entry in ipairs(call.arguments) do given[layer._named_inputs.arguments[i]] = entry end
  if given.cache ~= nil then
    errors.raise("%s: a cache does not go with LoRA or with a script's _compute_attention(): leave the cache out, or save the " ..
      "model and load it again, which adds LoRA's change to the kernels", object.title(layer))
  end
  local query, value = given.query, given.value
  if value == nil and layer._named_inputs.names.cache then value = query end
  local key = given.key or value
  if #query.shape ~= 3 or #value.shape ~= 3 then
    errors.raise("%s: with its own _compute_attention() it takes inputs {batch, steps, features}", object.title(layer))
  end
  local gate = layer.use_gate and ops.sigmoid(project(layer, query, "gate_dense"))
  local q = project(layer, query, "query_dense")
  local k, v = shared(project(layer, key, "key_dense"), q.shape[3]), shared(project(layer, value, "value_dense"), q.shape[3])
  local mask = mask_of(given, query, value, layer.sliding_window)
  local own, with_scores = rawget(object.class_of(layer), "in_lua") and layer._compute_attention, given.return_attention_scores or false
  local output, scores
  if own then output, scores = own(layer, q, k, v, mask, training, with_scores)
  else output, scores = compute(layer, q, k, v, mask, training, with_scores) end
  output = project(layer, gate and output * gate or output, "output_dense")
  if given.return_attention_scores then return { output, scores } end
  return output
end

return hook
