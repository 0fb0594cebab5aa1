-- distribute_spec.lua: strategies of this build: one replica, with the calls that scripts for many make.
local support = require "spec.support.init"
local flow = require "flow"
local layers = flow.layers
local message_of = support.message_of

describe("a strategy", function()
  local strategy = flow.distribute.MirroredStrategy()

  it("runs a function in its scope, in both forms, and returns its results", function()
    local function inside() return flow.distribute.get_strategy(), "two" end
    assert.same({ strategy, "two" }, { strategy.scope(inside) })
    assert.same({ strategy, "two" }, { strategy:scope(inside) })
    assert.is_false(flow.distribute.has_strategy())
    assert.equal(1, strategy.num_replicas_in_sync)
  end)

  it("leaves the scope when the function fails, and passes the error through", function()
    assert.has_error(function() strategy.scope(function() error("wrong", 0) end) end, "wrong")
    assert.is_false(flow.distribute.has_strategy())
    assert.truthy(message_of(function() strategy.scope() end):find("takes a function, got nil", 1, true))
    assert.truthy(message_of(function() strategy:scope(3) end):find("takes a function, got the number 3", 1, true))
  end)

  it("nests scopes", function()
    local other = flow.distribute.OneDeviceStrategy("cpu:0")
    strategy.scope(function()
      other.scope(function() assert.equal(other, flow.distribute.get_strategy()) end)
      assert.equal(strategy, flow.distribute.get_strategy())
    end)
  end)

  it("holds two models that train independently", function()
    local first, second
    strategy.scope(function()
      first = flow.Sequential { layers.Input { 2 }, layers.Dense(1) }
      second = flow.Sequential { layers.Input { 2 }, layers.Dense(1) }
      first:compile { optimizer = "sgd", loss = "mse" }
      second:compile { optimizer = "adam", loss = "mse" }
    end)
    local before = second.layers[1].kernel:totable()
    local history = first:fit(flow.ones { 8, 2 }, flow.ones { 8, 1 }, { epochs = 3, verbose = 0 }).history
    assert.is_true(history.loss[3] < history.loss[1])
    assert.same(before, second.layers[1].kernel:totable())
    second:fit(flow.ones { 8, 2 }, flow.zeros { 8, 1 }, { verbose = 0 })
    assert.not_same(before, second.layers[1].kernel:totable())
  end)

  it("runs a step and reduces its results", function()
    local result = strategy:run(function(a, b) return a + b end, { flow.tensor { 1, 2 }, 1 })
    assert.same({ 2, 3 }, strategy:reduce("SUM", result):totable())
    assert.equal(5, strategy:reduce("sum", result, 1):item())
    assert.equal(2.5, strategy:reduce("mean", result, 1):item())
    assert.equal(result, strategy:experimental_local_results(result)[1])
    assert.truthy(message_of(function() strategy:reduce("max", result) end):find('"sum" or "mean", got the string "max"', 1, true))
  end)

  it("names devices that are not there", function()
    assert.truthy(message_of(function() flow.distribute.MirroredStrategy { devices = { "cpu:0", "cpu:0" } } end)
      :find("this build has one device", 1, true))
    assert.truthy(#message_of(function() flow.distribute.MirroredStrategy { devices = { "gpu:0" } } end) > 0)
    assert.truthy(message_of(function() flow.distribute.MirroredStrategy { device = "cpu:0" } end):find('did you mean "devices"?', 1, true))
    assert.truthy(message_of(function() return flow.distribute.MiroredStrategy end):find('did you mean "MirroredStrategy"?', 1, true))
  end)
end)
