-- changes_spec.lua: variables that a callback or the script changes on one of two workers alone, between steps: the next step says so on
-- both, before they train different models; the next fit begins with the chief's numbers, and says so, too. What a step itself assigns of
-- a worker's own rows is a warning.
local clusters = require "spec.support.clusters"

local BEGIN = [[
  local flow = require "flow"
  local layers = flow.layers
  local index = tonumber(os.getenv("TF_CONFIG"):match('"index":(%d)'))
  local strategy = flow.distribute.MultiWorkerMirroredStrategy()
  flow.set_random_seed(1)
  local x, y = flow.random.normal({ 12, 4 }, { seed = 1 }), flow.random.normal({ 12, 1 }, { seed = 2 })
  local function digest()
    local sum = 0
    for i, v in ipairs(model:get_weights()) do sum = sum + i * (v:to("float64") * v:to("float64")):sum():item() end
    return ("%.17g"):format(sum)
  end
  model = strategy.scope(function()
    local made = flow.Sequential { layers.Input { 4 }, layers.Dense(6, { name = "first" }), layers.BatchNormalization(), layers.Dense(1) }
    made:compile { optimizer = flow.optimizers.Adam(0.01), loss = "mse" }
    return made
  end)
  local first = model.layers[1]
  local function fit(callbacks)
    model:fit(x, y, { epochs = 3, batch_size = 4, verbose = 0, callbacks = callbacks })
  end
  local function step()
    local tape = flow.GradientTape()
    local loss = tape:record(function() return (model(x, { training = true }) - y):square():mean() end)
    model.optimizer:apply_gradients(tape:gradient(loss, model.trainable_variables), model.trainable_variables)
    return loss
  end
  local function set_first(factor)
    local weights = model:get_weights()
    weights[1] = weights[1] * factor
    model:set_weights(weights)
  end
]]

local function launch(script)
  return clusters.launch(script, { begin = BEGIN, launch = "--kill-after 1" })
end

-- What both workers say: the sentence, without addresses.
local function said_by_both(script)
  local said, output, code = launch(script)
  assert.equal(0, code, output)
  for worker = 0, 1 do assert.equal(1, #said[worker], output) end
  local texts = {}
  for worker = 0, 1 do texts[worker] = said[worker][1]:gsub(" 127[%d.:]+", "") end
  return texts, output
end

describe("a variable that one worker has changed alone is named by all at the next step", function()
  local ADVICE = "callbacks and the script change variables on all workers alike, or before a fit, which begins with the chief's numbers"
  local CASES = {
    { "of fit, changed by a callback", [[
      print("=", pcall(fit, { flow.callbacks.LambdaCallback { on_epoch_end = function(epoch)
        if epoch == 0 and index == 1 then first.kernel:assign_add(1) end
      end } }))]] },
    { "of fit, changed by a callback after a batch", [[
      print("=", pcall(fit, { flow.callbacks.LambdaCallback { on_train_batch_end = function(batch)
        if batch == 1 and index == 1 then first.kernel:assign_sub(1) end
      end } }))]] },
    { "of train_on_batch", [[
      model:train_on_batch(x, y)
      if index == 1 then set_first(2) end
      print("=", pcall(model.train_on_batch, model, x, y))]] },
    { "of evaluate", [[
      if index == 1 then set_first(2) end
      print("=", pcall(model.evaluate, model, x, y, { verbose = 0 }))]] },
    { "of predict, after weights were loaded", [[
      local path = arg[0] .. index      -- in the folder of this script
      if index == 1 then
        local other = flow.Sequential { layers.Input { 4 }, layers.Dense(6), layers.BatchNormalization(), layers.Dense(1) }
        flow.distribute.OneDeviceStrategy("cpu:0").scope(function() other:save_weights(path .. ".weights.h5") end)
        model:load_weights(path .. ".weights.h5")
      end
      print("=", pcall(model.predict, model, x, { verbose = 0 }))]] },
    { "of strategy:run", [[
      strategy:run(step)
      if index == 1 then first.kernel:assign(flow.zeros { 4, 6 }) end
      print("=", pcall(strategy.run, strategy, step))]] },
  }
  for _, case in ipairs(CASES) do
    it(case[1], function()
      local said, output = said_by_both(case[2])
      for worker = 0, 1 do
        local wanted = 'worker:1 has changed variable "first/kernel" since the last step, and worker:0 has not: ' .. ADVICE
        assert.truthy(said[worker]:find("^false\t.*" .. wanted:gsub("%p", "%%%0")), output)
      end
    end)
  end

  it("also a moving statistic, and one to which both have assigned", function()
    local said, output = said_by_both [[
      model:train_on_batch(x, y)
      model.layers[2].moving_mean:assign_add(0.5 + index)
      print("=", pcall(model.train_on_batch, model, x, y))]]
    for worker = 0, 1 do
      local wanted = 'worker:0 and worker:1 have assigned different numbers to variable "batch_normalization/moving_mean"'
      assert.truthy(said[worker]:find(wanted, 1, true), output)
    end
  end)

  it("and does not go on at the steps after that, but after the next fit begins", function()
    local said, output, code = launch [[
      if index == 1 then set_first(2) end
      for _ = 1, 2 do print("=", (pcall(model.train_on_batch, model, x, y))) end
      fit()
      print("=", (pcall(model.train_on_batch, model, x, y)))
      print("=", digest())]]
    assert.equal(0, code, output)
    assert.same({ "false", "false", "true", said[0][4] }, said[1], output)
    assert.same(said[0], said[1], output)
  end)
end)

describe("what both workers have in the end", function()
  it("is not a fault if it is the same: assigned alike, assigned and put back, or assigned as it was", function()
    local said, output, code = launch [[
      model:train_on_batch(x, y)
      set_first(3)
      model:train_on_batch(x, y)
      if index == 0 then
        local weights = model:get_weights()
        set_first(0)
        model:set_weights(weights)
      end
      model:train_on_batch(x, y)
      if index == 1 then set_first(1) end
      fit { flow.callbacks.LambdaCallback { on_train_batch_end = function() first.bias:assign(first.bias:value() * 0.5) end } }
      strategy:run(step)
      print("=", digest())]]
    assert.equal(0, code, output)
    assert.equal(1, #said[0], output)
    assert.same(said[0], said[1], output)
  end)

  it("is the chief's after fit has begun, and who had other numbers says so once", function()
    local said, output, code = launch [[
      fit()
      if index == 1 then set_first(2) end
      local before = digest()
      fit()
      print("=", digest())
      if index == 0 then set_first(0.5) end
      fit()
      print("=", digest())]]
    assert.equal(0, code, output)
    assert.same(said[0], said[1], output)
    local sentence = "fit: worker:1 127[%d.:]+ had other numbers than worker:0 127[%d.:]+ in 1 of %d+ variables, "
      .. "such as \"sequential/first/kernel\"; all workers begin with those of worker:0"
    assert.equal(2, select(2, output:gsub("%[worker:1%] " .. sentence, "")), output)
    assert.equal(2, select(2, output:gsub(sentence, "")), output)
  end)
end)

describe("a step that assigns what each worker has computed from its own rows", function()
  local SCRIPT = [[
    local own, same, summed, local_sum = strategy.scope(function()
      return flow.Variable(0, { name = "own" }), flow.Variable(0, { name = "same" }), flow.Variable(0, { name = "summed" }),
        flow.Variable(0, { name = "local_sum", sync = "SUM_ON_READ", trainable = false })
    end)
    local function assign(rows, rate)
      local context = flow.distribute.get_replica_context()
      own:assign(rows:mean())
      same:assign(rate * 2)
      summed:assign(context:all_reduce("SUM", rows:mean()))
      local_sum:assign_add(rows:mean())
    end
    for i = 1, 12 do strategy:run(assign, { flow.ones { 3, 2 } * (index + i), flow.tensor(0.1 * i) }) end
    print("=", own:item(), ("%.3f"):format(same:item()), summed:item(), local_sum:item())
    own:assign(index)
    strategy:run(assign, { flow.ones { 3, 2 }, flow.tensor(0.1) })
    print("=", own:item())]]

  it("is told once that the workers have different numbers then, and goes on", function()
    local said, output, code = launch(SCRIPT)
    assert.equal(0, code, output)
    assert.same({ "12\t2.400\t25\t168", "1" }, said[0], output)
    assert.same({ "13\t2.400\t25\t168", "1" }, said[1], output)
    local sentence = 'variable "own": a step assigns to it what each replica computes from its own data, and the workers have different'
    assert.equal(2, select(2, output:gsub(sentence, "")), output)
    assert.equal(2, select(2, output:gsub("a step assigns to it", "")), output)
  end)
end)
