-- sizes_from_tensors_spec.lua: sizes and places that a function computes, as TensorFlow's functions for pictures take them, eagerly and in
-- the function of ds:map, which is called with values where a trace has none.
local support = require "spec.support.init"
local flow = require "flow"

local pictures = flow.arange(4 * 8 * 8 * 3):to("float32"):reshape { 4, 8, 8, 3 }
local function drawn(low, high) return flow.random.uniform({}, { minval = low, maxval = high, dtype = "int32" }) end
local function whole(n) return flow.tensor(n, { dtype = "int32" }) end

-- What gives a picture of 8 x 8 another size by tensors, and that size.
local CASES = {
  random_crop = { function(x) local side = drawn(5, 6) return flow.image.random_crop(x, { side, side, 3 }) end, { 5, 5, 3 } },
  random_crop_by_list = { function(x) return flow.image.random_crop(x, flow.tensor({ 4, 6, 3 }, { dtype = "int32" })) end, { 4, 6, 3 } },
  resize = { function(x) local side = drawn(7, 8) return flow.image.resize(x, { side, side }) end, { 7, 7, 3 } },
  resize_by_list = { function(x) return flow.image.resize(x, flow.stack { drawn(7, 8), drawn(9, 10) }) end, { 7, 9, 3 } },
  pad = { function(x) local n = drawn(0, 5) return flow.pad(x, { { n, 4 - n }, { 0, 0 }, { 0, 0 } }) end, { 12, 8, 3 } },
  slice = { function(x) local n = drawn(1, 5) return x[{ { n, n + 3 } }] end, { 4, 8, 3 } },
  tile = { function(x) return flow.tile(x, flow.stack { drawn(2, 3), whole(1), whole(1) }) end, { 16, 8, 3 } },
  tile_by_entries = { function(x) return flow.tile(x, { drawn(2, 3), 1, 1 }) end, { 16, 8, 3 } },
}

describe("a size that is computed", function()
  for name, case in pairs(CASES) do
    it("is taken by " .. name, function()
      assert.same(case[2], case[1](pictures[1]).shape)
      local count = 0
      for x in flow.data.Dataset.from_tensor_slices(pictures):map(case[1]):iter() do
        assert.same(case[2], x.shape)
        count = count + 1
      end
      assert.equal(4, count)
    end)
  end

  it("gives what the number gives", function()
    local x = pictures[1]
    assert.same(flow.pad(x, { { 1, 2 }, { 0, 0 }, { 0, 0 } }):totable(), flow.pad(x, { { whole(1), 2 }, { 0, 0 }, { 0, 0 } }):totable())
    assert.same(flow.image.resize(x, { 5, 6 }):totable(), flow.image.resize(x, { whole(5), 6 }):totable())
    local ids = { 0, 0, 1, 1, 0, 1, 0, 1 }
    assert.same(flow.segment_sum(x, ids, 3):totable(), flow.segment_sum(x, ids, whole(3)):totable())
  end)

  it("is refused where a traced function has no value of it, and where it is no whole number", function()
    local crop = flow.fn(function(x, n) return flow.image.random_crop(x, { n, n, 3 }) end)
    assert.matches("a size is a whole number from 0, got a tensor", support.message_of(function() crop(pictures[1], whole(3)) end))
    assert.matches("a size is a whole number from 0, got the number 2.5", support.message_of(function()
      flow.image.random_crop(pictures[1], { flow.tensor(2.5), 2, 3 })
    end))
  end)
end)
