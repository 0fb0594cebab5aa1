-- same_masks_spec.lua: a traced step that the user writes draws the same Dropout masks under every strategy of one replica, and leaves the
-- same random state.
local flow = require "flow"
local layers = flow.layers

local function masks(strategy)
  flow.clear_session()
  flow.set_random_seed(5)
  local first, second = layers.Dropout(0.5), layers.Dropout(0.5)
  local x, list = flow.ones { 4, 8 }, {}
  local step = flow.fn(function(y) return second(first(y, { training = true }), { training = true }) end)
  for i = 1, 3 do list[i] = strategy:run(step, { x }):totable() end
  list[4] = flow.random.uniform({ 4 }):totable()
  return list
end

describe("a traced step with Dropout", function()
  it("draws what it draws under the default strategy under others of one replica, too", function()
    local expected = masks(flow.distribute.get_strategy())
    assert.not_same(expected[1], expected[2])
    assert.same(expected, masks(flow.distribute.OneDeviceStrategy("cpu:0")))
    assert.same(expected, masks(flow.distribute.MirroredStrategy { devices = { "cpu:0" } }))
  end)
end)
