-- Images of uint8 go into the first convolution as they are: no float32 copy of them is made, and the results are the same.
local flow = require "flow"
local layers = flow.layers

local function net(pool)
  flow.set_random_seed(4)
  local list = { layers.Input { 20, 22, 3 }, layers.Rescaling(1 / 255), layers.Conv2D(9, 3, { padding = "same", activation = "relu" }) }
  if pool then list[#list + 1] = layers.MaxPooling2D() end
  list[#list + 1] = layers.Conv2D(4, 3, { strides = 2 })
  list[#list + 1] = layers.Flatten()
  list[#list + 1] = layers.Dense(3)
  local model = flow.Sequential(list)
  model:compile { optimizer = "sgd", loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
  return model
end

describe("uint8 images", function()
  local bytes = flow.random.uniform({ 12, 20, 22, 3 }, { maxval = 256, dtype = "int32", seed = 1 }):to("uint8")
  local labels = flow.random.uniform({ 12 }, { maxval = 3, dtype = "int32", seed = 2 })

  for _, pool in ipairs { true, false } do
    it(("train as their float32 copies do, without being copied (%s)"):format(pool and "pooled" or "not pooled"), function()
      local models, losses = {}, {}
      for i, x in ipairs { bytes, bytes:to("float32") } do
        models[i] = net(pool)
        losses[i] = models[i]:fit(x, labels, { batch_size = 5, epochs = 4, shuffle = false, verbose = 0 }).history.loss
      end
      for epoch = 1, 4 do assert.is_near(losses[2][epoch], losses[1][epoch], 1e-6) end
      local of_bytes, of_floats = models[1]:get_weights(), models[2]:get_weights()
      for i = 1, #of_bytes do assert.is_true((of_bytes[i] - of_floats[i]):abs():max():item() < 1e-6) end
      assert.is_true((models[1]:predict(bytes) - models[2]:predict(bytes:to("float32"))):abs():max():item() < 1e-5)
      local profile = flow.profile(function() models[1]:fit(bytes, labels, { batch_size = 5, verbose = 0 }) end)
      for _, row in ipairs(profile.rows) do
        assert.is_false(row.op == "cast" and row.shape:find("20, 22, 3", 1, true) ~= nil, row.shape)
        assert.is_false(row.op == "mul" and row.shape:find("20, 22, 3", 1, true) ~= nil, row.shape)
        assert.are_not.equal("plain", row.variant, row.op)
      end
    end)
  end

  it("are still no input of a convolution by itself", function()
    assert.has_error(function() layers.Conv2D(2, 3)(bytes) end)
  end)
end)
