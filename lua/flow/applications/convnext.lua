-- convnext.lua: ConvNeXtTiny to ConvNeXtXLarge (Liu et al. 2022, arXiv:2201.03545; keras/src/applications/convnext.py).

local layers = require "flow.layers"
local models = require "flow.models"
local application = require "flow.applications.application"

-- A depthwise convolution of 7 x 7, LayerNormalization, a wide and a narrow Dense layer with gelu between them, a learned scale for each
-- channel, and the input added. The layer "_identity" is what Keras has where a block may be dropped, which its functions of this family
-- never ask for.
local function block(inputs, width, name)
  local x = layers.Conv2D(width, 7, { padding = "same", groups = width, name = name .. "_depthwise_conv" })(inputs)
  x = layers.LayerNormalization { epsilon = 1e-6, name = name .. "_layernorm" }(x)
  x = layers.Dense(4 * width, { name = name .. "_pointwise_conv_1" })(x)
  x = layers.Activation("gelu", { name = name .. "_gelu" })(x)
  x = layers.Dense(width, { name = name .. "_pointwise_conv_2" })(x)
  x = layers.LayerScale { init_values = 1e-6, projection_dim = width, name = name .. "_layer_scale" }(x)
  return inputs + layers.Activation("linear", { name = name .. "_identity" })(x)
end

-- Before each stage the pictures become smaller: at first by 4, then by 2.
local function shrink(name, width, stage)
  if stage == 0 then
    return models.Sequential({ layers.Conv2D(width, 4, { strides = 4, name = name .. "_stem_conv" }),
      layers.LayerNormalization { epsilon = 1e-6, name = name .. "_stem_layernorm" } }, { name = name .. "_stem" })
  end
  local number = stage - 1
  return models.Sequential({ layers.LayerNormalization { epsilon = 1e-6, name = ("%s_downsampling_layernorm_%d"):format(name, number) },
    layers.Conv2D(width, 2, { strides = 2, name = ("%s_downsampling_conv_%d"):format(name, number) }) },
    { name = ("%s_downsampling_block_%d"):format(name, number) })
end

local MEANS, DEVIATIONS = { 0.485, 0.456, 0.406 }, { 0.229, 0.224, 0.225 }

-- include_preprocessing: takes values from 0 to 255 to mean 0 and deviation 1 of ImageNet's channels.
local function normalize(x, name)
  local mean, variance = {}, {}
  for i = 1, 3 do mean[i], variance[i] = MEANS[i] * 255, (DEVIATIONS[i] * 255) ^ 2 end
  return layers.Normalization { mean = mean, variance = variance, name = name .. "_prestem_normalization" }(x)
end

local function record(kind, depths, widths)
  local standard = "convnext_" .. kind
  return {
    name = standard, default_size = 224, least_size = 32, options = "include_preprocessing: boolean = true",
    files = function(options)
      return ("https://storage.googleapis.com/tensorflow/keras-applications/convnext/%s%s.h5"):format(standard,
        options.include_top and "" or "_notop")
    end,
    body = function(x, options)
      local name = options.name or standard
      if options.include_preprocessing and x.shape[4] == 3 then x = normalize(x, name) end
      for stage, width in ipairs(widths) do
        x = shrink(name, width, stage - 1)(x)
        for i = 1, depths[stage] do x = block(x, width, ("%s_stage_%d_block_%d"):format(name, stage - 1, i - 1)) end
      end
      return x
    end,
    top = function(x, options)
      local name = options.name or standard
      x = layers.GlobalAveragePooling2D { name = name .. "_head_gap" }(x)
      x = layers.LayerNormalization { epsilon = 1e-6, name = name .. "_head_layernorm" }(x)
      return layers.Dense(options.classes, { activation = application.activation(options), name = name .. "_head_dense" })(x)
    end,
    bottom = function(x, options)
      return layers.LayerNormalization { epsilon = 1e-6 }(application.pool(x, options.pooling))
    end,
  }
end

return {
  ConvNeXtTiny = record("tiny", { 3, 3, 9, 3 }, { 96, 192, 384, 768 }),
  ConvNeXtSmall = record("small", { 3, 3, 27, 3 }, { 96, 192, 384, 768 }),
  ConvNeXtBase = record("base", { 3, 3, 27, 3 }, { 128, 256, 512, 1024 }),
  ConvNeXtLarge = record("large", { 3, 3, 27, 3 }, { 192, 384, 768, 1536 }),
  ConvNeXtXLarge = record("xlarge", { 3, 3, 27, 3 }, { 256, 512, 1024, 2048 }),
}
