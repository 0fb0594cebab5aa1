-- projections.lua: the layers inside of MultiHeadAttention and GroupQueryAttention, as Keras has them: attention.query_dense, key_dense,
-- value_dense and output_dense, each an einsum with a kernel and a bias. Here the variables are the attention's; these objects show
-- them, and compute one projection alone. Where trainable is set, it is set for the variables. enable_lora(rank) freezes a kernel, and adds
-- a change of low rank to it (lora.lua).

local errors = require "flow.errors"
local object = require "flow.object"
local ops = require "flow.tensor.ops"
local Layer = require "flow.layers.layer"
local lora = require "flow.layers.kernels.lora"
local byte_kernels = require "flow.layers.kernels.byte_kernels"
local takes = require("flow.signature").takes

local Projection = object.class("EinsumDense", Layer)

-- What Keras names a projection, and how the variables of the attention are named.
local SUFFIX = { query_dense = "query", key_dense = "key", gate_dense = "gate", value_dense = "value", output_dense = "attention_output" }

-- The equation of a product of an input with some free axes, and bound ones, which a kernel with some axes of its own takes away.
local function equation_of(free, bound, own)
  local letters = {}
  for i = 1, free + bound + own do letters[i] = string.char(96 + i) end
  local function part(from, count) return table.concat(letters, "", from, from + count - 1) end
  return ("%s,%s->%s"):format(part(1, free + bound), part(free + 1, bound + own), part(1, free) .. part(free + bound + 1, own))
end

function Projection:call(x)
  local state, quantized = rawget(self, "_lora"), self.quantization_mode
  x = ops.operand(x, nil, object.title(self))
  local function multiply(rows, kernel) return ops.einsum(self.equation, rows, kernel) end
  local function axes_of() return lora.summed(self.equation, #x.shape) end
  local y
  if state then y = lora.product(quantized, x, self.kernel, state, multiply, axes_of)
  else y = multiply(quantized and byte_kernels.round_rows(x, axes_of()) or x, self.kernel:value()) end
  return self.use_bias and y + self.bias or y
end

takes "rank: count, lora_alpha?: number, a_initializer = 'he_uniform', b_initializer = 'zeros'"
function Projection:enable_lora(rank, alpha, a_initializer, b_initializer)
  local state = lora.enable_part(self._attention[1], self.kernel, self.name, rank, alpha, a_initializer, b_initializer)
  rawset(self, "_lora", state)
  self._own[#self._own + 1], self._own[#self._own + 2] = state.a, state.b
end

local function of(key)
  return function(self)
    local state = rawget(self, "_lora")
    return state and state[key]
  end
end
Projection.fields.lora_rank, Projection.fields.lora_alpha = of "rank", of "alpha"
Projection.fields.lora_kernel_a, Projection.fields.lora_kernel_b = of "a", of "b"
function Projection.fields.lora_enabled(self) return rawget(self, "_lora") ~= nil end

-- As the attention is.
function Projection.fields.quantization_mode(self) return self._attention[1].quantization_mode end

function Projection.fields.trainable(self) return self.kernel.trainable end
function Projection.setters.trainable(self, value)
  for _, v in ipairs(self._own) do v.trainable = value end
end

-- The projection of an attention that is built; it is made once.
return function(attention, name)
  local made = rawget(attention, "_projections") or {}      -- in a table: no parts of the layer, which has their variables
  rawset(attention, "_projections", made)
  if made[name] then return made[name] end
  if not attention._built then
    errors.raise("%s has no %s yet: it is made when the layer is first called", object.title(attention), name)
  end
  local self, found = object.new(Projection):_prepare("EinsumDense", { name = SUFFIX[name] }), {}
  for _, v in ipairs(attention.weights) do
    for _, last in ipairs { "kernel", "bias" } do
      if v.path:find("/" .. SUFFIX[name] .. "/" .. last, 1, true) then found[last] = v end
    end
  end
  local rank, is_output = #found.kernel.shape, name == "output_dense"
  local free = #attention._input_shape[1] - 1
  rawset(self, "equation", equation_of(free, is_output and rank - 1 or 1, is_output and 1 or rank - 1))
  rawset(self, "kernel", found.kernel)
  rawset(self, "bias", found.bias or false)
  rawset(self, "use_bias", found.bias ~= nil)
  rawset(self, "_attention", { attention })      -- in a table: not a part
  self._own[1], self._own[2] = found.kernel, found.bias
  rawset(self, "_built", true)
  made[name] = self
  return self
end
