-- init.lua: flow.applications: the architectures of keras.applications with Keras' names of layers, so that they take its files of weights.
--
--   local model = flow.applications.MobileNetV2 { input_shape = { 160, 160, 3 }, include_top = false, weights = "mobilenet_v2.h5" }
--   local x = flow.applications.mobilenet_v2.preprocess_input(pictures)
--
-- weights: "imagenet" (the default: the file that Keras would fetch, from ~/.keras/models), the path of a file, or false for random ones.
--
-- The room: flow.applications. May use: tensor, layers, models.

local signature = require "flow.signature"

local takes, takes_named = signature.takes, signature.takes_named

-- A module of each name of keras.applications: its file here, what its preprocess_input does, and its applications.
local MODULES = {
  convnext = { "convnext", "none", "ConvNeXtTiny", "ConvNeXtSmall", "ConvNeXtBase", "ConvNeXtLarge", "ConvNeXtXLarge" },
  densenet = { "densenet", "torch", "DenseNet121", "DenseNet169", "DenseNet201" },
  efficientnet = { "efficientnet", "none", "EfficientNetB0", "EfficientNetB1", "EfficientNetB2", "EfficientNetB3", "EfficientNetB4",
    "EfficientNetB5", "EfficientNetB6", "EfficientNetB7" },
  inception_v3 = { "inception_v3", "tf", "InceptionV3" },
  mobilenet = { "mobilenet", "tf", "MobileNet" },
  mobilenet_v2 = { "mobilenet_v2", "tf", "MobileNetV2" },
  mobilenet_v3 = { "mobilenet_v3", "none", "MobileNetV3Small", "MobileNetV3Large" },
  resnet = { "resnet", "caffe", "ResNet50", "ResNet101", "ResNet152" },
  resnet50 = { "resnet", "caffe", "ResNet50" },
  resnet_v2 = { "resnet", "tf", "ResNet50V2", "ResNet101V2", "ResNet152V2" },
  vgg16 = { "vgg", "caffe", "VGG16" },
  vgg19 = { "vgg", "caffe", "VGG19" },
  xception = { "xception", "tf", "Xception" },
}

local HOMES = {}      -- the module of each application
for name, home in pairs(MODULES) do
  for i = 3, #home do if name ~= "resnet50" then HOMES[home[i]] = name end end
end

-- The arguments of an application as a signature has them: its own first, then those that all have. input_shape comes among its own where
-- Keras has it first.
local function arguments_of(record)
  local common = require("flow.applications.application").COMMON
  if not record.options then return common end
  if record.options:find "input_shape" then common = common:gsub(" input_shape%?: list,", "") end
  return record.options .. ", " .. common
end

local applications

-- The function of an application, made on demand.
local function define(name)
  local record = require("flow.applications." .. MODULES[HOMES[name]][1])[name]
  takes_named(arguments_of(record))
  applications[name] = function(options)
    return require("flow.applications.application").make("flow.applications." .. name, record, options)
  end
  return rawget(applications, name)
end

-- flow.applications.<name>: its applications, preprocess_input and decode_predictions, made when it is first asked for.
local function open_module(name)
  local home, title = MODULES[name], "flow.applications." .. name
  local module = signature.module(title)
  for i = 3, #home do rawset(module, home[i], applications[home[i]]) end
  takes "x: data"
  function module.preprocess_input(x)
    return require("flow.applications.pictures").preprocess(title .. ".preprocess_input", home[2], x)
  end
  takes "preds: data, top: count = 5"
  function module.decode_predictions(predictions, top)
    return require("flow.applications.pictures").decode(title .. ".decode_predictions", predictions, top)
  end
  rawset(applications, name, module)
  return module
end

applications = signature.module("flow.applications", nil, function(_, name)
  return MODULES[name] and open_module(name) or HOMES[name] and define(name) or nil
end)

getmetatable(applications).names = function()
  local names = {}
  for name in pairs(MODULES) do names[#names + 1] = name end
  for name in pairs(HOMES) do names[#names + 1] = name end
  return names
end

return applications
