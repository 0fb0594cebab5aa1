-- printed_spec.lua: tables that scripts get as results print as what they hold, and are plain tables otherwise.
require "spec.support.init"
local flow = require "flow"
local layers = flow.layers

local x, y = flow.ones { 4, 4 }, flow.ones { 4, 1 }

local function compiled()
  local model = flow.Sequential { layers.Input { 4 }, layers.Dense(1, { kernel_initializer = "zeros" }) }
  model:compile { optimizer = flow.optimizers.SGD(0), loss = "mse", metrics = { "mae" } }
  return model
end

describe("printed", function()
  it("are results of models", function()
    local model = compiled()
    assert.equal("{ loss = 1, mae = 1 }", tostring(model:evaluate(x, y, { verbose = 0 })))
    assert.equal("{ 1, 1 }", tostring(model:evaluate(x, y, { verbose = 0, return_dict = false })))
    assert.equal("{ loss = 1, mae = 1 }", tostring(model:train_on_batch(x, y)))
    assert.equal("{ loss = 1, mae = 1 }", tostring(model:test_on_batch(x, y)))
  end)

  it("are histories, also of a run that went on, and the logs of callbacks", function()
    local lines = {}
    local watch = flow.callbacks.LambdaCallback { on_epoch_end = function(epoch, logs) lines[#lines + 1] = epoch .. ": " .. logs end }
    local history = compiled():fit(x, y, { epochs = 2, verbose = 0, callbacks = { watch } })
    assert.same({ "0: { loss = 1, mae = 1 }", "1: { loss = 1, mae = 1 }" }, lines)
    assert.equal("{ loss = { 1, 1 }, mae = { 1, 1 } }", tostring(history.history))
    assert.equal("{ 1, 1 } { 0, 1 }", tostring(history.history.loss) .. " " .. tostring(history.epoch))
    local again = flow.callbacks.History()
    again:set_state { history = { loss = { 3 } }, epoch = { 0 } }
    assert.equal("{ loss = { 3 } }", tostring(again.history))
  end)

  it("are specs of elements and shapes", function()
    local spec = flow.data.Dataset.from_tensor_slices { a = x }.element_spec
    assert.equal('{ { a = { dtype = "float32", shape = { 4 } } } }', tostring(spec))
    assert.equal('{ dtype = "int32", shape = { 2, -1 } }', tostring(flow.TensorSpec({ 2, -1 }, "int32")))
    assert.equal('{ "cpu:0" }', tostring(flow.config.list_physical_devices "CPU"))
    assert.equal('{ "cpu:0" }', tostring(flow.config.list_logical_devices "CPU"))
    local path = flow.train.Checkpoint({ v = flow.Variable { 1, 2 } }):write(require("spec.support.init").folder() .. "/ckpt")
    assert.equal('{ { "save_counter", {} }, { "v", { 2 } } }', tostring(flow.train.list_variables(path)))
    assert.equal("{ save_counter = {}, v = { 2 } }", tostring(flow.train.load_checkpoint(path):get_variable_to_shape_map()))
    assert.equal("{4, 4} {2}", flow.shape(x) .. " " .. flow.shape(flow.tensor { "a", "b" }))
    assert.equal("{1}", tostring(flow.tensor { "a" }.shape))
    assert.equal("(None, 3)", tostring(flow.shape(flow.Input { 3 })))
    assert.equal("(None, 1)", tostring(compiled():compute_output_shape { -1, 4 }))
    assert.equal("{ (2, 3), (2, 3), (2, 3) }", tostring(layers.LSTM(3, { return_state = true }):compute_output_shape { 2, 5, 4 }))
  end)

  it("are tables as others for all that takes tables", function()
    local results = compiled():evaluate(x, y, { verbose = 0 })
    assert.falsy(getmetatable(results))
    assert.equal(2, flow.fn(function(t) return flow.ones {} * t.loss + t.mae end)(results):item())
    assert.same({ loss = 1, mae = 1 }, results)
    results.own = results
    assert.truthy(tostring(results):find("own = {...} }", 1, true))      -- it ends
  end)
end)
