-- vgg.lua: VGG16 and VGG19 (Simonyan and Zisserman 2015, arXiv:1409.1556; keras/src/applications/vgg16.py).

local layers = require "flow.layers"
local application = require "flow.applications.application"

-- depths: how many convolutions each of the five blocks has.
local function record(name, depths)
  return {
    name = name, default_size = 224, least_size = 32,
    files = function(options)
      return ("https://storage.googleapis.com/tensorflow/keras-applications/%s/%s_weights_tf_dim_ordering_tf_kernels%s.h5")
        :format(name, name, options.include_top and "" or "_notop")
    end,
    body = function(x)
      for block, filters in ipairs { 64, 128, 256, 512, 512 } do
        for i = 1, depths[block] do
          x = layers.Conv2D(filters, 3, { activation = "relu", padding = "same", name = ("block%d_conv%d"):format(block, i) })(x)
        end
        x = layers.MaxPooling2D(2, { strides = 2, name = ("block%d_pool"):format(block) })(x)
      end
      return x
    end,
    top = function(x, options)
      x = layers.Flatten { name = "flatten" }(x)
      x = layers.Dense(4096, { activation = "relu", name = "fc1" })(x)
      x = layers.Dense(4096, { activation = "relu", name = "fc2" })(x)
      return layers.Dense(options.classes, { activation = application.activation(options), name = "predictions" })(x)
    end,
  }
end

return { VGG16 = record("vgg16", { 2, 2, 3, 3, 3 }), VGG19 = record("vgg19", { 2, 2, 4, 4, 4 }) }
