-- host_layer_configs_spec.lua: layers that prepare data come back from their configs, whatever options they were given.
local flow = require "flow"
local layers = flow.layers

-- Of each class options that have lists and texts in them.
local GIVEN = {
  { "Hashing", { num_bins = 3, salt = { 5, 7 }, mask_value = "a" }, "b" },
  { "Hashing", { num_bins = 4, salt = 9, output_mode = "one_hot" }, "b" },
  { "HashedCrossing", { num_bins = 3 }, { "a", "b" } },
  { "CategoryEncoding", { num_tokens = 3, output_mode = "one_hot" }, 2 },
  { "Discretization", { bin_boundaries = { 0, 1.5, 2 } }, { 1, 3 } },
  { "StringLookup", { vocabulary = { "a", "b" }, num_oov_indices = 2, mask_token = "m" }, "b" },
  { "StringLookup", { vocabulary = { "a", "b" }, idf_weights = { 1, 2 }, output_mode = "tf_idf" }, { "b", "a" } },
  { "IntegerLookup", { vocabulary = { 7, 8 } }, { 8, 9 } },
  { "TextVectorization", { vocabulary = { "a", "b" }, output_sequence_length = 3 }, "b a" },
  { "TextVectorization", { vocabulary = { "a", "b" }, ngrams = { 1, 2 }, split = "character" }, "ba" },
  { "Normalization", { mean = { 1, 2 }, variance = { 3, 4 } }, { { 1, 2 } } },
}

-- Those whose configs in Keras leave the flag out.
local FORGETS = { HashedCrossing = true, Discretization = true }

local function plain(value) return flow.is_tensor(value) and value:totable() or value end

describe("HashedCrossing", function()
  it("takes lists of whole numbers", function()
    local layer, texts = layers.HashedCrossing { num_bins = 7 }, { "a", "b", "c" }
    assert.same(layer({ texts, flow.tensor({ 1, 2, 3 }, "int64") }):totable(), layer({ texts, { 1, 2, 3 } }):totable())
    local ok, problem = pcall(layer, { texts, { 1, 2.5, 3 } })
    assert.is_false(ok)
    assert.matches("strings or whole numbers, found float32", problem)
    ok, problem = pcall(layer, {})
    assert.is_false(ok)
    assert.matches("is called on a list of at least two tensors, got 0", problem)
  end)
end)

describe("a layer that prepares data", function()
  for i, case in ipairs(GIVEN) do
    local name, options, input = unpack(case)
    for _, trainable in ipairs { true, false } do
      it(("%s (%d) comes back from its config, trainable = %s"):format(name, i, tostring(trainable)), function()
        local named = { trainable = trainable }
        for key, value in pairs(options) do named[key] = value end
        local layer = layers[name](named)
        local again = layers[name].from_config(layer:get_config())
        assert.equal(trainable, layer.trainable)
        if not FORGETS[name] then assert.equal(trainable, again.trainable) end
        local x = name == "Normalization" and flow.tensor(input) or input
        assert.same(plain(layer(x)), plain(again(x)))
        assert.same(layer:get_config(), again:get_config())
      end)
    end
  end
end)
