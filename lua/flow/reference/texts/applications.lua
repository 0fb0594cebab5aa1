-- applications.lua: what is said of flow.applications (texts.lua says how it is read).

local modules = { "convnext", "densenet", "efficientnet", "inception_v3", "mobilenet", "mobilenet_v2", "mobilenet_v3", "resnet", "resnet50",
  "resnet_v2", "vgg16", "vgg19", "xception" }

local text = {
  [[
flow.applications.CLASS: The architecture CLASS of keras.applications: with random weights, those of a file, or of ImageNet.
  local function build() return flow.applications.CLASS { weights = false, include_top = false } end
  print(type(build))      --> function]]
}

-- Each module has these two; the names of classes in it are those of flow.applications.
for _, name in ipairs(modules) do
  text[#text + 1] = (([[
flow.applications.MODULE.preprocess_input: Pictures with values from 0 to 255 as the members of this module take them, float32.
  print(flow.applications.MODULE.preprocess_input(flow.zeros { 1, 2, 2, 3 }).dtype)      --> float32
flow.applications.MODULE.decode_predictions: The best classes of predictions {count, 1000}: lists of { id, name, score }.
  local function best(predictions) return flow.applications.MODULE.decode_predictions(predictions, 3)[1] end
  print(type(best))      --> function]]):gsub("MODULE", name))
end

return table.concat(text, "\n")
