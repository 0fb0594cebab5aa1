-- long_masks_spec.lua: the mask of a recurrent layer over many steps takes memory in proportion to them.
require "spec.support.init"
local flow = require "flow"
local native = require "flow.ffi"
local layers = flow.layers

describe("the mask of a recurrent layer", function()
  it("over 4000 steps takes less than 5 MB, not a matrix of steps times steps", function()
    for _, backwards in ipairs { false, true } do
      local layer = layers.SimpleRNN(1, { return_sequences = true, go_backwards = backwards, kernel_initializer = "ones",
        recurrent_initializer = "zeros", activation = "linear" })
      local f = flow.fn(function(x, mask) return layer(x, { mask = mask, initial_state = flow.zeros { 1, 1 } }) end)
      local x = flow.concat({ flow.zeros { 1, 10, 1 }, flow.ones { 1, 1000, 1 }, flow.zeros { 1, 2990, 1 } }, 2)
      local mask = x:squeeze(3):gt(0)
      local before = native.C.flow_live_bytes()
      local y = f(x, mask)
      assert.is_true(native.C.flow_live_bytes() - before < 5e6)
      -- Steps that are left out repeat the output before them, 0 before the first one that is not.
      assert.equal(backwards and 1010 or 3990, y:sum():item())
    end
  end)
end)
