-- as_in_keras.lua: what Keras' layers have beside the rest, and programs ask for now and then: names of fields, add_variable, and calls
-- with other weights, layer:stateless_call(trainable, others, x).

local errors = require "flow.errors"
local object = require "flow.object"
local several = require "flow.layers.several"
local stateless = require "flow.layers.classes.stateless"
local takes = require("flow.signature").takes

-- Variables that are fields, by their suffixes in Keras.
local VARIABLES = "kernel bias gamma beta moving_mean moving_variance mean variance embeddings reverse_embeddings depthwise_kernel " ..
  "pointwise_kernel"

return function(Layer)
  local fields = Layer.fields
  for name in VARIABLES:gmatch "%S+" do      -- the variable itself: layer.kernel
    fields[name] = function(self) return require("flow.layers.layer_config").variable(self, name) end
  end
  function fields.path(self) return self.name end
  function fields.autocast(self) return self._autocasts end
  function fields.supports_jit() return true end
  function fields.input_spec(self) return require("flow.layers.classes.input_spec").of(self) end
  function Layer.setters.input_spec(self, value) require("flow.layers.classes.input_spec").set(self, value) end
  function fields.input_dtype(self) return self.compute_dtype end
  -- The regularizer of the outputs, nil: there is none.
  function fields.activity_regularizer(self)
    local own = self._own_choices
    if own and own.activity_regularizer then return own.activity_regularizer end
    if not self._handle then return self._activity or nil end
    local entry = self:get_config().activity_regularizer
    if type(entry) ~= "table" or not entry.class_name then return nil end
    return require("flow.layers.choices").regularizers[entry.class_name](entry.config)
  end
  -- "int8" of a layer that is quantized; else nil.
  function fields.quantization_mode(self)
    if not self._handle then return nil end
    return require("flow.layers.quantization").get(self):find "^QUANTIZED" and "int8" or nil
  end

  -- Computes in int8 from now on, as model:quantize "int8" makes layers do.
  takes "mode: 'int8' = 'int8'"
  function Layer:quantize()
    local quantization = require "flow.layers.quantization"
    if not quantization.BY_ROW[self._record_name] or not quantization.can(self, true) then
      errors.raise("%s: quantize() is for Dense, EinsumDense, embeddings and attentions; model:quantize(data) makes convolutions " ..
        "compute in int8, too", object.title(self))
    end
    quantization.by_row(self)
  end

  -- add_weight with its arguments in Keras' order.
  takes("shape: list, initializer = 'glorot_uniform', dtype?, trainable: boolean = true, autocast?, regularizer?, constraint?, " ..
    "{ name = 'variable' }")
  function Layer:add_variable(shape, initializer, dtype, trainable, _, regularizer, constraint, options)
    return self:add_weight { shape = shape, initializer = initializer, dtype = dtype, trainable = trainable, regularizer = regularizer,
                             constraint = constraint, name = options.name }
  end

  -- A call with other values of the variables, which keep their own: layer:stateless_call(trainable, others, x, options). The result, and
  -- the values that the others have after the call; with return_losses = true the losses of the call, too.
  takes("trainable_variables: list, non_trainable_variables: list, inputs: data, { training?: boolean, mask?: data, " ..
    "return_losses: boolean = false }")
  function Layer:stateless_call(trainable, others, inputs, known)
    if not self._built then
      errors.raise("%s: stateless_call() needs a layer that is built: call layer:build(shape) before it", object.title(self))
    end
    local options = (known.training ~= nil or known.mask ~= nil) and { training = known.training, mask = known.mask } or nil
    local variables, values, count = { unpack(self.trainable_variables) }, {}, #self.trainable_variables
    for i, v in ipairs(self.non_trainable_variables) do variables[count + i] = v end
    for i = 1, count do values[i] = trainable[i] or false end
    for i = 1, #variables - count do values[count + i] = others[i] or false end
    if #trainable ~= count or #others ~= #variables - count then
      errors.raise("%s: stateless_call() takes the values of %d trainable and %d other variables, got %d and %d", object.title(self), count,
        #variables - count, #trainable, #others)
    end
    local losses
    local after, result = stateless(object.title(self) .. ": stateless_call", variables, values, true, function()
      local y = several.gathered(self(inputs, options))
      losses = known.return_losses and self.losses
      return y
    end)
    local new_others = { unpack(after, count + 1) }
    if losses then return result, new_others, losses end
    return result, new_others
  end
end
