-- long_names_spec.lua: names of variables are as long as those of their layers, so that no two are the same, and files hold them.
local flow = require "flow"
local support = require "spec.support.init"
local layers = flow.layers

local LONG = ("x"):rep(280)

local function model_of()
  local input = flow.Input { 3, 4 }
  local h = layers.GRU(3, { name = LONG .. "_gru", return_sequences = true })(layers.Normalization { name = LONG .. "_norm" } (input))
  h = layers.Dense(2, { name = LONG .. "_a" })(layers.Dense(2, { name = LONG .. "_b" })(h))
  local model = flow.Model { inputs = input, outputs = h }
  model:compile { optimizer = flow.optimizers.Adam(0.1), loss = "mse" }
  model:fit(flow.ones { 4, 3, 4 }, flow.zeros { 4, 3, 2 }, { verbose = 0 })
  return model
end

-- The paths in a list of variables, none of them twice.
local function paths(variables)
  local list, met = {}, {}
  for i, variable in ipairs(variables) do
    list[i] = variable.path
    assert.is_nil(met[list[i]], list[i])
    met[list[i]] = true
  end
  return list
end

describe("names of more than 255 bytes", function()
  local model = model_of()

  it("are whole in variables of layers", function()
    local found = table.concat(paths(model.weights), "\n") .. "\n"
    for _, ending in ipairs { "_a/kernel", "_a/bias", "_b/kernel", "_norm/count" } do
      assert.truthy(found:find(LONG .. ending .. "\n", 1, true), ending)
    end
  end)

  it("are whole in states of recurrent layers", function()
    local layer = layers.LSTM(2, { name = LONG, stateful = true })
    layer(flow.ones { 2, 3, 4 })
    local found = {}
    for _, state in ipairs(layer.states) do found[#found + 1] = state.path end
    assert.same({ LONG .. "/rnn_state", LONG .. "/rnn_state" }, found)
  end)

  it("are whole in an optimizer's variables", function()
    local found = table.concat(paths(model.optimizer.variables), "\n") .. "\n"
    assert.truthy(found:find(LONG .. "_a_kernel_momentum\n", 1, true))
    assert.truthy(found:find(LONG .. "_b_kernel_velocity\n", 1, true))
    local named, v = flow.optimizers.SGD { name = LONG }, flow.Variable { 1, 2 }
    named:apply_gradients({ flow.ones { 2 } }, { v })
    assert.equal(LONG .. "/iteration", named.variables[1].path)
  end)

  it("are in files", function()
    local x = flow.random.normal({ 2, 3, 4 }, { seed = 1 })
    local expected, path = model:predict(x, { verbose = 0 }):totable(), support.file("long.keras", "")
    model:save(path)
    local again = flow.load_model(path)
    assert.same(expected, again:predict(x, { verbose = 0 }):totable())
    assert.same(paths(model.optimizer.variables), paths(again.optimizer.variables))
    for i, variable in ipairs(model.optimizer.variables) do
      assert.same(variable:value():totable(), again.optimizer.variables[i]:value():totable())
    end
    for _, ending in ipairs { ".weights.h5", ".safetensors" } do
      local other, weights = model_of(), support.file("long" .. ending, "")
      model:save_weights(weights)
      other:load_weights(weights)
      assert.same(expected, other:predict(x, { verbose = 0 }):totable(), ending)
    end
  end)
end)
