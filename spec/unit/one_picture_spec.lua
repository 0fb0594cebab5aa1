-- one_picture_spec.lua: layers that prepare pictures in a Sequential, which takes one picture as it takes a batch: as in ds:map.
local flow = require "flow"
local support = require "spec.support.init"

local layers = flow.layers
local function picture(height, width) return flow.random.uniform({ height, width, 3 }, { maxval = 255, seed = height }) end

describe("a Sequential of layers that prepare pictures", function()
  it("takes one picture after the other, of any size, and gives what its layers give", function()
    local resize, rescale = layers.Resizing(6, 5), layers.Rescaling(1 / 255)
    local model = flow.Sequential { resize, rescale }
    for _, x in ipairs { picture(8, 9), picture(10, 7), picture(8, 9):to "uint8" } do
      local y = model(x)
      assert.are.equal("{6, 5, 3}", tostring(y.shape))
      assert.are.equal(0, (y - rescale(resize(x))):abs():max():item())
    end
    assert.are.equal("{2, 6, 5, 3}", tostring(model(flow.zeros { 2, 8, 9, 3 }).shape))      -- and a batch after that
  end)

  it("is a function of ds:map, for pictures of one size and of several", function()
    local model = flow.Sequential { layers.Resizing(6, 6), layers.RandomFlip "horizontal", layers.RandomRotation(0.1),
                                    layers.RandomCrop(4, 4), layers.Rescaling(1 / 255) }
    local data = flow.data.Dataset.from_tensor_slices { flow.ones { 4, 8, 9, 3 }, { 0, 1, 2, 3 } }
    local mapped = data:map(function(x, y) return model(x, { training = true }), y end):batch(4)
    for x in mapped:iter() do assert.are.equal("{4, 4, 4, 3}", tostring(x.shape)) end
    local sizes = flow.data.Dataset.from_generator(function()
      local n = 0
      return function()
        n = n + 1
        if n <= 3 then return picture(5 + n, 9 - n) end
      end
    end, { output_signature = { { shape = { -1, -1, 3 }, dtype = "float32" } } })
    local count = 0
    for x in sizes:map(function(x) return model(x) end):iter() do
      count = count + 1
      assert.are.equal("{4, 4, 3}", tostring(x.shape))
    end
    assert.are.equal(3, count)
  end)

  it("takes an option of the call, and leaves models of other layers alone", function()
    local model = flow.Sequential { layers.RandomFlip("horizontal", { seed = 1 }) }
    local x = picture(4, 6)
    assert.are.equal(0, (model(x, { training = false }) - x):abs():max():item())
    assert.are.equal("{3, 4, 2}", tostring(flow.Sequential { layers.Dense(2) }(flow.ones { 3, 4, 5 }).shape))
    local mixed = flow.Sequential { layers.Resizing(6, 5), layers.Conv2D(2, 3) }
    assert.is_truthy(support.message_of(function() mixed(x) end):find("Resizing", 1, true))
    local known = flow.Sequential { flow.Input { 4, 6, 3 }, layers.Resizing(6, 5) }
    assert.is_truthy(support.message_of(function() known(x) end):find("expected (None, 4, 6, 3)", 1, true))
  end)
end)
