-- convolution_hook.lua: classes that extend Conv1D, Conv2D or Conv3D with their own convolution_op(), as in Keras:
--
--   local Standardized = layers.Conv2D:extend "Standardized"
--   function Standardized:convolution_op(inputs, kernel) return layers.Conv2D.convolution_op(self, inputs, standardized(kernel)) end

local ops = require "flow.tensor.ops"
local finish = require "flow.layers.kernels.bias_and_activation"
local takes = require("flow.signature").takes

local hook = {}

-- Gives a class of the library its convolution_op.
function hook.install(class)
  -- The convolution of the inputs by a kernel with the layer's strides, padding and dilation, without bias and activation.
  takes "inputs, kernel"
  function class:convolution_op(inputs, kernel)
    local padding, dilation = self.padding, self.dilation_rate
    if padding == "causal" then
      inputs = ops.pad(inputs, { { 0, 0 }, { (kernel.shape[1] - 1) * dilation[1], 0 }, { 0, 0 } })
      padding = "valid"
    end
    return ops.conv(inputs, kernel, { strides = self.strides, padding = padding, dilation_rate = dilation })
  end
end

-- What the layer computes by the class's convolution_op.
function hook.call(layer, inputs)
  return finish(layer, layer:convolution_op(ops.operand(inputs, nil, layer.name), layer.kernel:value()))
end

return hook
