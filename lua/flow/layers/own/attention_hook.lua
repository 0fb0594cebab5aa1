-- attention_hook.lua: classes that extend MultiHeadAttention with a _compute_attention() of their own, as programs for Keras do:
--
--   local Scaled = layers.MultiHeadAttention:extend "Scaled"
--   function Scaled:_compute_attention(query, key, value, attention_mask, training) ... return output, scores end
--
-- query, key and value are projected, {batch, steps, heads, size}; the masks of a call are one, {batch, query steps, value steps} or nil.
-- self._dot_product_equation, self._combine_equation, self:_masked_softmax(scores, mask), self._dropout_layer, self._key_dim and
-- self._num_heads are what Keras' class has for it.

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

-- The kernel or bias of a projection.
local function weight_of(layer, projection, name)
  for _, v in ipairs(layer.weights) do
    if v.path:find("/" .. projection .. "/" .. name, 1, true) then return v end
  end
end

local function project(layer, x, projection, equation)
  local y, bias = ops.einsum(equation, x, weight_of(layer, projection, "kernel")), weight_of(layer, projection, "bias")
  return bias and y + bias or y
end

-- The masks of a call as one, or nil.
local function mask_of(given, query, value)
  local mask
  local function add(one)
    if one == nil then return end
    one = ops.operand(one, nil, "a mask"):to "bool"
    mask = mask and ops.logical_and(mask, one) or one
  end
  add(given.query_mask and ops.expand_dims(given.query_mask, -1))
  add(given.value_mask and ops.expand_dims(given.value_mask, 2))
  add(given.key_mask and ops.expand_dims(given.key_mask, 2))
  if given.use_causal_mask then
    local rows, columns = tensor.arange(query.shape[2]):expand_dims(-1), tensor.arange(value.shape[2]):expand_dims(1)
    add(ops.expand_dims(rows:ge(columns), 1))
  end
  add(given.attention_mask)
  return mask
end

-- What the layer computes by the class's _compute_attention: the output, or, with return_attention_scores, a list of it and the scores.
function hook.call(layer, ...)
  local call, training = several.read(layer, ...)
  if training == nil then training = scopes.own().training or false end
  local given = call.options
  local query, value = call.arguments[1] or given.query, call.arguments[2] or given.value
  local key = call.arguments[3] or given.key or value
  if #query.shape ~= 3 or #value.shape ~= 3 then
    errors.raise("%s: with a _compute_attention() of its own it takes inputs {batch, steps, features}", object.title(layer))
  end
  local q = project(layer, query, "query", "abc,cde->abde")
  local k, v = project(layer, key, "key", "abc,cde->abde"), project(layer, value, "value", "abc,cde->abde")
  local output, scores = layer:_compute_attention(q, k, v, mask_of(given, query, value), training,
    given.return_attention_scores or false)
  output = project(layer, output, "attention_output", "abcd,cde->abe")
  if given.return_attention_scores then return { output, scores } end
  return output
end

return hook
