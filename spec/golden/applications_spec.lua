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

describe("keras.applications without top, for pictures of any size", function()
  local sizes = { InceptionV3 = 75, Xception = 71 }
  --- The pictures with their first 13 columns once more on the right.
  local function wider(x) return flow.concat({ x, x[{ {}, {}, { 1, 13 } }] }, 3) end

  for _, name in ipairs { "MobileNetV2", "ResNet50", "EfficientNetB0", "DenseNet121", "VGG16", "Xception", "InceptionV3" } do
    it(name .. " predicts what Keras predicts, at two sizes", function()
      local path, x = file_of(name .. "_any"), stored("images_" .. (sizes[name] or 32)):to "float32"
      local model = flow.load_model(path)
      assert.same({ -1, -1, -1, 3 }, model.input_shape)
      assert.same({ -1, -1, -1, stored(name .. "_any_y").shape[4] }, model.output_shape)
      for size, pictures in pairs { y = x, wide = wider(x) } do
        local y = stored(name .. "_any_" .. size)
        close(model:predict(pictures, { verbose = 0 }), y, "Lua")
        close(model_files.predict_in_c(path, { pictures })[1], y, "C")
        model_files.assert_returns(model, { pictures })
      end
    end)
  end

  it("is fine-tuned: new layers are trained on pictures of several sizes, saved, loaded and trained on", function()
    local base = flow.load_model(file_of "MobileNetV2_any")
    base.trainable = false
    local model = flow.Sequential { base, flow.layers.GlobalAveragePooling2D(), flow.layers.Dense(2) }
    model:compile { optimizer = flow.optimizers.Adam(0.01), loss = "mse" }
    local x, y, path = stored("images_32"):to "float32" / 255, flow.tensor { { 0, 1 }, { 1, 0 } }, support.file("tuned.keras", "")
    local frozen, first, last = base:get_weights(), nil, nil
    for step = 1, 20 do
      last = model:train_on_batch(step % 2 == 0 and x or wider(x), y).loss
      first = first or last
    end
    assert.truthy(last < first, ("%g, %g"):format(first, last))
    model_files.assert_same_bits(frozen, base:get_weights(), "what is frozen")
    model:save(path)
    local again = flow.load_model(path)
    assert.equal(model:train_on_batch(x, y).loss, again:train_on_batch(x, y).loss)
    assert.equal(21, again.optimizer.iterations)
  end)
end)
