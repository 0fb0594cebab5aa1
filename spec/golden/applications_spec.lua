-- applications_spec.lua: narrow members of keras.applications, as Keras saved them (applications.py): what Lua and C predict is what Keras
-- predicts, within 1e-5 of the largest value, and what Lua saves of them is read back.
local ffi = require "ffi"
local support = require "spec.support.init"
local model_files = require "spec.support.model_files"
local flow = require "flow"
require "spec.support.precision"

local function stored(name) return flow.load_npz(support.root .. "spec/golden/applications.npz", name) end

-- The file that Keras saved.
local function file_of(name)
  local bytes = stored(name)
  return support.file(name .. ".keras", ffi.string(bytes:data(), bytes.size))
end

local function close(found, y, reader)
  assert.same(y.shape, found.shape)
  local difference = ((found - y):abs():max() / y:abs():max()):item()
  assert.truthy(difference <= 1e-5, ("%s: differs by %g of the largest value"):format(reader, difference))
end

describe("keras.applications", function()
  local sizes = { InceptionV3 = 75, Xception = 71 }
  for _, name in ipairs { "MobileNet", "MobileNetV2", "MobileNetV3Small", "EfficientNetB0", "EfficientNetV2B0", "DenseNet121",
                          "NASNetMobile", "Xception", "ResNet50V2", "InceptionV3", "VGG16" } do
    it(name .. " predicts what Keras predicts", function()
      local path, y = file_of(name), stored(name .. "_y")
      local x = stored("images_" .. (sizes[name] or 32)):to "float32"
      local model = flow.load_model(path)
      close(model:predict(x, { verbose = 0 }), y, "Lua")
      close(model_files.predict_in_c(path, { x })[1], y, "C")
      model_files.assert_returns(model, { x })
    end)
  end
end)
