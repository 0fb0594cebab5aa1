-- same_masks_spec.lua: a traced step that the user writes draws the same Dropout masks under every strategy of one replica, and leaves the
-- same random state.
local flow = require "flow"
local layers = flow.layers

local function masks(strategy, of)
  flow.clear_session()
  flow.set_random_seed(5)
  local first, second = layers.Dropout(0.5), layers.Dropout(0.5)
  local x, list = flow.ones { 4, 8 }, {}
  local step = of(function(y) return second(first(y, { training = true }), { training = true }) end)
  for i = 1, 3 do list[i] = strategy:run(step, { x }):totable() end
  list[4] = flow.random.uniform({ 4 }):totable()
  return list
end

local function as_it_is(f) return f end

describe("a step with Dropout", function()
  for title, of in pairs { ["that is traced"] = flow.fn, ["that is a plain function"] = as_it_is } do
    it(title .. " draws what it draws under the default strategy under others of one replica, too", function()
      local expected = masks(flow.distribute.get_strategy(), of)
      assert.not_same(expected[1], expected[2])
      assert.same(expected, masks(flow.distribute.OneDeviceStrategy("cpu:0"), of))
      assert.same(expected, masks(flow.distribute.MirroredStrategy { devices = { "cpu:0" } }, of))
    end)
  end

  it("that cannot be traced runs as it is under the default strategy, each time", function()
    local calls = 0
    local function step(x)
      calls = calls + 1
      return x:sum():item() + calls
    end
    local strategy = flow.distribute.get_strategy()
    strategy:run(step, { flow.ones { 2 } })
    local before = calls
    assert.equal(2 + before + 1, strategy:run(step, { flow.ones { 2 } }))
  end)
end)
