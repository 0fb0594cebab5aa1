-- saved_applications_spec.lua: a model of flow.applications that was saved opens again, in Lua and in C, and predicts the same bits: of
-- each family its smallest architecture; with FLOW_CASES, of each as many as that.
local flow = require "flow"
local model_files = require "spec.support.model_files"

local COUNT = tonumber(os.getenv "FLOW_CASES") or 1

-- Each family: the size of its pictures, and its architectures, the smallest first.
local FAMILIES = {
  { 32, "ConvNeXtTiny", "ConvNeXtSmall", "ConvNeXtBase", "ConvNeXtLarge", "ConvNeXtXLarge" },
  { 32, "DenseNet121", "DenseNet169", "DenseNet201" },
  { 32, "EfficientNetB0", "EfficientNetB1", "EfficientNetB2", "EfficientNetB3", "EfficientNetB4", "EfficientNetB5", "EfficientNetB6",
    "EfficientNetB7" },
  { 75, "InceptionV3" },
  { 32, "MobileNet" },
  { 32, "MobileNetV2" },
  { 32, "MobileNetV3Small", "MobileNetV3Large" },
  { 32, "ResNet50", "ResNet101", "ResNet152" },
  { 32, "ResNet50V2", "ResNet101V2", "ResNet152V2" },
  { 32, "VGG16", "VGG19" },
  { 71, "Xception" },
}

describe("a saved model of flow.applications opens again:", function()
  for _, family in ipairs(FAMILIES) do
    for i = 2, math.min(#family, 1 + COUNT) do
      it(family[i], function()
        flow.clear_session()
        flow.set_random_seed(i)
        local size = family[1]
        local shape = { size, size, 3 }
        local model = flow.applications[family[i]] { weights = false, include_top = false, pooling = "avg", input_shape = shape }
        local again = model_files.assert_returns(model, { flow.random.uniform { 1, size, size, 3 } * 255 })
        assert.equal(model:count_params(), again:count_params())
        assert.is_true(model:predict(flow.ones { 1, size, size, 3 }, { verbose = 0 }):abs():max():item() > 0)
        model:close()
        again:close()
      end)
    end
  end

  it("the list has all of them", function()
    local known = {}
    for _, family in ipairs(FAMILIES) do
      for i = 2, #family do known[family[i]] = true end
    end
    for _, name in ipairs(getmetatable(flow.applications).names()) do
      if name:find "^%u" then assert.is_true(known[name], name) end
    end
  end)
end)
