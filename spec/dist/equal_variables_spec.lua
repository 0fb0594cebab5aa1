-- equal_variables_spec.lua: two workers whose seeds differ: what is made in the scope is equal on both before anything uses it, and what is
-- made outside is trained together or not at all.
local clusters = require "spec.support.clusters"
local support = require "spec.support.init"

local program = support.command

local BEGIN = [[
  local flow = require "flow"
  local layers = flow.layers
  local index = tonumber(os.getenv("TF_CONFIG"):match('"index":(%d)'))
  local strategy = flow.distribute.MultiWorkerMirroredStrategy()
  local folder = ...
  flow.set_random_seed(100 + index)
  local x, y = flow.random.normal({ 12, 4 }, { seed = 1 }), flow.random.normal({ 12, 1 }, { seed = 2 })
  local function digest(list)
    local sum = 0
    for i, v in ipairs(list) do sum = sum + i * (v:to("float64") * v:to("float64")):sum():item() end
    return ("%.17g"):format(sum)
  end
  local function net(input)
    local model = flow.Sequential { layers.Dense(6, { activation = "relu" }), layers.Dense(1) }
    if input then model = flow.Sequential { input, layers.Dense(6, { activation = "relu" }), layers.Dense(1) } end
    model:compile { optimizer = flow.optimizers.Adam(0.01), loss = "mse" }
    return model
  end
]]

local function launch(script, arguments)
  return clusters.launch(script, { begin = BEGIN, arguments = arguments, launch = "--kill-after 1" })
end

local function equal_on_both(name, lines, script)
  it(name, function()
    local said, output, code = launch(script)
    assert.equal(0, code, output)
    assert.equal(lines, #said[0], output)
    assert.same(said[0], said[1], output)
  end)
end

describe("variables of two workers with different seeds are equal", function()
  equal_on_both("as soon as they are made, in the scope and after it", 7, [[
    local Scale = layers.Layer:extend("Scale")
    function Scale:build(shape) self.gain = self:add_weight { name = "gain", shape = { shape[#shape] }, initializer = "glorot_normal" } end
    function Scale:call(input) return input * self.gain end
    strategy.scope(function()
      local variable = flow.Variable(flow.random.normal { 3 })
      print("=", variable:sum():item())
      local dense = layers.Dense(5)
      print("=", digest { dense(x) })
      local scale = Scale()
      print("=", digest { scale(x) })
      local model = net(layers.Input { 4 })
      print("=", digest(model:get_weights()))
      print("=", digest { model(x) })
      print("=", model.layers[1].kernel:sum():item())
      local later = net()      -- built by its first call
      print("=", digest { later(x) })
    end)]])

  equal_on_both("when they are evaluated, predicted with and saved before any step", 4, [[
    local model, later = strategy.scope(function() return net(layers.Input { 4 }), net() end)
    print("=", model:evaluate(x, y, { verbose = 0 }).loss)
    print("=", later:evaluate(x, y, { verbose = 0 }).loss)
    print("=", digest { later:predict(x, { verbose = 0 }) })
    local path = arg[0] .. index      -- in the folder of this script
    model:save_weights(path .. ".weights.h5")
    model:load_weights(path .. ".weights.h5")
    print("=", digest(model:get_weights()))]])

  equal_on_both("when an optimizer written in Lua makes some, and trains", 3, [[
    local Momentum = flow.optimizers.Optimizer:extend("Momentum")
    function Momentum:build(variables) self.slots = self:add_optimizer_variables(variables, "slot", "random_normal") end
    function Momentum:update_step(gradient, variable, learning_rate)
      local slot = self.slots[self:_get_variable_index(variable)]
      slot:assign(slot * 0.5 - gradient * learning_rate)
      variable:assign_add(slot)
    end
    local model = strategy.scope(function()
      local made = net(layers.Input { 4 })
      made:compile { optimizer = Momentum { learning_rate = 0.1, clipnorm = 0.5 }, loss = "mse" }
      return made
    end)
    model:fit(x, y, { epochs = 2, batch_size = 4, shuffle = false, verbose = 0 })
    print("=", digest(model:get_weights()))
    print("=", digest(model.optimizer.variables))
    print("=", model.optimizer.iterations)]])

  equal_on_both("when the files that they are loaded from differ", 2, [[
    local path = arg[0] .. index      -- in the folder of this script
    local other = net(layers.Input { 4 })
    other:save(path .. ".keras")
    local before = digest(other:get_weights())
    local model = strategy.scope(function() return flow.load_model(path .. ".keras") end)
    print("=", digest(model:get_weights()))
    print("=", index == 1 and before ~= digest(model:get_weights()) or index == 0 and before == digest(model:get_weights()))]])
end)

describe("what is made outside of the scope", function()
  equal_on_both("is trained together: a model, by fit and by train_on_batch", 5, [[
    local model = net(layers.Input { 4 })
    local history = model:fit(x, y, { epochs = 2, batch_size = 5, verbose = 0 })
    print("=", history.history.loss[2])
    print("=", digest(model:get_weights()), model.optimizer.iterations)
    local second = net()
    print("=", second:train_on_batch(x, y).loss)
    print("=", digest(second:get_weights()))
    print("=", second:evaluate(x, y, { verbose = 0 }).loss)]])

  it("is said to be, once, and to be trained as one process does from the chief's values", function()
    local script = [[
      local model = net(layers.Input { 4 })
      for _ = 1, 2 do model:fit(x, y, { epochs = 2, batch_size = 4, shuffle = false, verbose = 0 }) end
      print("=", ("%.6g"):format(tonumber(digest(model:get_weights()))))]]
    local said, output, code = launch(script)
    assert.equal(0, code, output)
    local said_so = "was made outside of the scope of MultiWorkerMirroredStrategy: all 2 workers train it together"
    assert.equal(2, select(2, output:gsub(said_so, "")))
    local alone = support.run(("%s %s"):format(program, support.file("alone.lua", BEGIN:gsub("local index = [^\n]*", "local index = 0")
      .. script)))
    assert.equal(alone:match("=\t(%S+)"), said[0][1], output .. alone)
    assert.same(said[0], said[1])
  end)

  it("evaluates and predicts on each worker by itself, which is said once, with the results that the workers together have", function()
    local said, output, code = launch [[
      local weights = {}
      local outside, inside = net(layers.Input { 4 }), strategy.scope(function() return net(layers.Input { 4 }) end)
      for i, v in ipairs(outside:get_weights()) do weights[i] = flow.random.normal(v.shape, { seed = i }) end
      outside:set_weights(weights)
      inside:set_weights(weights)
      local data = flow.data.Dataset.from_tensor_slices({ x, y }):batch(5)
      for _, model in ipairs { outside, inside } do
        print("=", ("%.5f"):format(model:evaluate(data, { verbose = 0 }).loss))
        print("=", ("%.5f"):format(model:evaluate(x, y, { verbose = 0 }).loss))
        print("=", ("%.5f"):format(tonumber(digest { model:predict(data, { verbose = 0 }) })))
        print("=", #model:predict(x, { verbose = 0 }))
      end
      if index == 0 then print("=", outside:evaluate(x, y, { verbose = 0 }).loss > 0) end]]
    assert.equal(0, code, output)
    for i = 1, 4 do assert.equal(said[0][i], said[0][4 + i], output) end
    assert.equal("12", said[0][4], output)
    assert.equal("true", table.remove(said[0]), output)
    assert.same(said[0], said[1], output)
    local sentence = "was made outside of the scope of MultiWorkerMirroredStrategy: this worker computes all"
    assert.equal(2, select(2, output:gsub(sentence, "")), output)
  end)

  it("is refused in its own loop that strategy:run does not call", function()
    local said, output = launch [[
      local function step(model, optimizer)
        return function()
          local tape = flow.GradientTape()
          local loss = tape:record(function() return (model(x) - y):square():mean() end)
          optimizer:apply_gradients(tape:gradient(loss, model.trainable_variables), model.trainable_variables)
          return loss
        end
      end
      local outside, optimizer = net(layers.Input { 4 }), flow.optimizers.SGD(0.1)
      print("=", pcall(step(outside, optimizer)))
      print("=", pcall(flow.fn(step(outside, optimizer))))
      local inside = strategy.scope(function() return net(layers.Input { 4 }) end)
      print("=", pcall(step(inside, optimizer)))
      strategy:run(step(outside, flow.optimizers.SGD(0.1)))
      print("=", digest(outside:get_weights()))
      print("=", pcall(strategy.scope, step(inside, flow.optimizers.SGD(0.1))))
      local alone = flow.distribute.OneDeviceStrategy("cpu:0")
      print("=", pcall(alone.run, alone, step(alone.scope(function() return net(layers.Input { 4 }) end), flow.optimizers.SGD(0.1))))
      strategy:close()
      print("=", pcall(step(outside, optimizer)))]]
    for worker = 0, 1 do
      for _, i in ipairs { 1, 2, 3, 5 } do
        assert.truthy(said[worker][i]:find("^false\t.*SGD.*apply_gradients: this process is one of the 2 workers of MultiWorkerM"), output)
      end
      for i = 6, 7 do assert.truthy(said[worker][i]:find("^true\t"), output) end
    end
    assert.equal(said[0][4], said[1][4], output)
  end)
end)
