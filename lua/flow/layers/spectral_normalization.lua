-- spectral_normalization.lua: SpectralNormalization: a layer whose kernel is divided by its largest singular value before each call in
-- training (T. Miyato et al., "Spectral normalization for generative adversarial networks", 2018). Names, defaults, results and files are
-- Keras' (keras.src.layers.normalization.spectral_normalization). As in Keras the quotient is the kernel from then on.

local errors = require "flow.errors"
local object = require "flow.object"
local signature = require "flow.signature"
local ops = require "flow.tensor.ops"
local Layer = require "flow.layers.layer"
local choices = require "flow.layers.choices"
local entries = require "flow.layers.entries"
local own_build = require "flow.layers.classes.build"

local raise = errors.raise
local SpectralNormalization = object.class("SpectralNormalization", Layer)

signature.takes("layer, power_iterations: count = 1, { name?: string, trainable: boolean = true, dtype? }")
signature.constructor(SpectralNormalization, "flow.layers.SpectralNormalization", function(layer, power_iterations, options)
  if type(layer) == "table" and not getmetatable(layer) and #layer == 1 then layer = layer[1] end
  if not object.is(layer, Layer) then
    raise("SpectralNormalization takes a layer such as layers.Dense(8), got %s", errors.describe(layer))
  end
  local self = object.new(SpectralNormalization):_prepare("SpectralNormalization", options)
  rawset(self, "power_iterations", power_iterations)
  rawset(self, "_assignments", { layer = layer })
  rawset(layer, "_stays_floats", true)      -- in files: quantization.lua
  self._children[1] = layer
  return self
end)

function SpectralNormalization.fields._autocasts() return false end      -- its layer does

-- The variable that is normalized.
local function kernel_of(self)
  for _, name in ipairs { "kernel", "embeddings" } do
    for _, v in ipairs(self.layer.weights) do
      if v.name == name then return v end
    end
  end
  raise("%s: %s has neither a kernel nor embeddings", object.title(self), object.title(self.layer))
end

SpectralNormalization.build = own_build.once(function(self, shape)
  self.layer:_ensure_built({ shape }, true)
  self._own[1] = kernel_of(self)      -- as in Keras, whose files have it twice
  local dims = self._own[1].shape
  local initializer = choices.initializers.TruncatedNormal { stddev = 0.02 }
  rawset(self, "_vector_u", self:add_weight { name = "vector_u", shape = { 1, dims[#dims] }, initializer = initializer, trainable = false })
end)

local function normalized(x) return x * ops.minimum(ops.rsqrt(ops.sum(ops.square(x))), 1e7) end

-- Power iterations bring vector_u nearer to the singular vector of the largest singular value.
local function normalize(self)
  local variable = kernel_of(self)
  local kernel, u, dims = variable:value(), self._vector_u:value(), variable.shape
  local matrix, v = ops.reshape(kernel, { -1, dims[#dims] }), nil
  for _ = 1, self.power_iterations do
    v = normalized(ops.matmul(u, ops.transpose(matrix)))
    u = normalized(ops.matmul(v, matrix))
  end
  local is_zero = ops.eq(ops.max(ops.abs(kernel)), 0)
  local value = ops.reshape(ops.matmul(ops.matmul(v, matrix), ops.transpose(u)), {})
  self._vector_u:assign(ops.where(is_zero, self._vector_u:value(), u))
  variable:assign(kernel / ops.where(is_zero, 1, value))
end

function SpectralNormalization:call(x, options)
  entries.need_one(self, x)
  if options.training then normalize(self) end
  return self.layer(x, { training = options.training })
end

-- What the layer inside hands on.
function SpectralNormalization.fields.supports_masking(self) return self.layer.supports_masking end
function SpectralNormalization:compute_mask(inputs, mask) return self.layer:compute_mask(inputs, mask) end

function SpectralNormalization:get_config()
  local config = entries.base(self)
  config.layer, config.power_iterations = entries.inner(self.layer), self.power_iterations
  return config
end

function SpectralNormalization._from_config(class, content, reader)
  local options = entries.options(content)
  options.layer, options.dtype = entries.read_inner(content.layer, reader, "SpectralNormalization: layer"), entries.dtype(content)
  return class(options)
end

return { SpectralNormalization = SpectralNormalization }
