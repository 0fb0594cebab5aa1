-- random_sequences_spec.lua: random programs of 8 to 20 calls on one model: trainings with options, single batches, evaluations, changed
-- weights and rates, another compile, frozen layers, clones, errors in the middle. Each call gives the same bits if the program is written
-- in another way: the model is saved and opened again after each call, calls run in coroutines while the collector works, or on other
-- threads. FLOW_CASES=10000 tries this many, FLOW_CASE=number that one in all ways.
local support = require "spec.support.init"
local flow = require "flow"
local arguments = require "spec.backend.random_ops.arguments"
local random_trainings = require "spec.support.random_trainings"

local FIRST, LAST, CASES = (require "spec.support.case_numbers")(24)
local ONLY = FIRST == LAST

---- calls ---------------------------------------------------------------------------------------------------------------------------

local function rows(t, count)
  local function part(all) return all and all[{ { 1, count } }] end
  return part(t.x), part(t.y), part(t.weights)
end

local function compiled(s, model, t)
  model:compile { optimizer = flow.optimizers[s.pick { "SGD", "Adam", "Nadam" }](s.pick { 0.1, 0.01 }), loss = t.loss(),
    metrics = s.maybe(0.5) and { "mse" } or nil }
end

--- Options of fit; its callbacks end or fail in the middle, or change the model.
local function fit_options(s, t)
  local options = { batch_size = s.draw(1, 9), epochs = s.draw(1, 3), shuffle = false, verbose = 0, sample_weight = t.weights }
  if s.maybe(0.2) then options.initial_epoch = s.draw(1, 3) end
  if s.maybe(0.3) then options.validation_data = { rows(t, 2) } end
  if s.maybe(0.2) then options.steps_per_epoch = 1 end
  local kind, when = s.pick { "stop", "fail", "halve", "evaluate", "rate", "none", "none" }, s.draw(0, 2)
  local model
  options.callbacks = { flow.callbacks.LambdaCallback {
    on_train_batch_end = function(batch)
      if batch == when and kind == "stop" then model.stop_training = true end
      if batch == when and kind == "fail" then error("planned", 0) end
    end,
    on_epoch_end = function()
      local weights = model:get_weights()
      for i, w in ipairs(kind == "halve" and weights or {}) do weights[i] = w * 0.5 end
      if kind == "halve" then model:set_weights(weights) end
      if kind == "evaluate" then model:evaluate(t.x, t.y, { verbose = 0 }) end
    end } }
  if kind == "rate" then options.callbacks[2] = flow.callbacks.LearningRateScheduler(function(_, rate) return rate * 0.5 end) end
  if s.maybe(0.2) then
    table.insert(options.callbacks, flow.callbacks.EarlyStopping {
      monitor = "loss", patience = 0, min_delta = s.pick { 0, 10 }, restore_best_weights = true })
  end
  return options, function(now) model = now end
end

--- What a program may do. Each draws its options and returns f(model, t), which gives the model to go on with, if another, and a result.
local CALLS = {
  fit = function(s, t)
    local options, on = fit_options(s, t)
    return function(model)
      on(model)
      return nil, model:fit(t.x, t.y, options).history
    end
  end,
  fit_dataset = function(s, t)
    local batch, epochs = s.draw(1, 9), s.draw(1, 2)
    return function(model)
      local data = flow.data.Dataset.from_tensor_slices({ t.x, t.y }):batch(batch)
      return nil, model:fit(data, { epochs = epochs, verbose = 0 }).history
    end
  end,
  train_on_batch = function(s, t)
    local count = s.draw(1, 3)
    return function(model)
      local x, y, weights = rows(t, count)
      return nil, model:train_on_batch(x, y, { sample_weight = weights })
    end
  end,
  evaluate = function(s, t)
    local batch = s.draw(1, 9)
    return function(model) return nil, model:evaluate(t.x, t.y, { batch_size = batch, verbose = 0, sample_weight = t.weights }) end
  end,
  predict = function(s, t)
    local batch = s.draw(1, 9)
    return function(model) return nil, model:predict(t.x, { batch_size = batch, verbose = 0 }):totable() end
  end,
  call = function(_, t) return function(model) return nil, model(t.x):totable() end end,
  scale = function(s)
    local factor = s.pick { 0.5, 0.9, 2 }
    return function(model)
      local weights = model:get_weights()
      for i, w in ipairs(weights) do weights[i] = w * factor end
      model:set_weights(weights)
    end
  end,
  rate = function(s)
    local rate = s.pick { 0.1, 0.001 }
    return function(model) model.optimizer.learning_rate = rate end
  end,
  compile = function(s, t)
    local seed = s.draw(1, 1e6)
    return function(model) compiled(arguments.source(seed), model, t) end
  end,
  freeze = function(s, t)
    local place, value, seed = s.draw(0, 9), s.maybe(0.4), s.draw(1, 1e6)
    return function(model)
      local layer = model.layers[place % #model.layers + 1]
      layer.trainable = value
      compiled(arguments.source(seed), model, t)
      return nil, { #model.trainable_weights, #model.non_trainable_weights }
    end
  end,
  clone = function(s)
    local fresh = s.maybe(0.5)
    return function(model)
      local clone = flow.models.clone_model(model)
      if fresh then model:close() end
      for i, w in ipairs(clone.weights) do w:assign(flow.sin(flow.reshape(flow.arange(w.size), w.shape):to(w.dtype) + i)) end
      return clone
    end
  end,
  description = function()
    return function(model)
      local other = flow.models.model_from_json(model:to_json())
      return nil, { other:count_params(), #other.trainable_weights, #other.layers }
    end
  end,
  mistake = function(s, t)
    local kind = s.pick { "rows", "layer", "weights" }
    return function(model)
      if kind == "rows" then model:fit(t.x, (rows(t, 1)), { verbose = 0 })
      elseif kind == "layer" then model:get_layer "none"
      else model:set_weights {} end
    end
  end,
}
local NAMES = {}
for name in pairs(CALLS) do NAMES[#NAMES + 1] = name end
table.sort(NAMES)
for _ = 1, 4 do NAMES[#NAMES + 1] = "fit" end
for _ = 1, 2 do NAMES[#NAMES + 1] = "train_on_batch" end

---- ways -----------------------------------------------------------------------------------------------------------------------------

--- Runs a call, and gives what it returns; a way returns the model to go on with, too.
local path
local WAYS = {
  ["saved after each call"] = function(f, model)
    local other, result = f(model)
    model = other or model
    model:save(path)
    model:close()
    return flow.load_model(path), result
  end,
  ["in coroutines"] = function(f, model)
    collectgarbage()
    local thread = coroutine.create(f)
    local ok, other, result = coroutine.resume(thread, model)
    if not ok then error(other, 0) end
    assert.equal("dead", coroutine.status(thread))
    return other, result
  end,
  ["on three threads"] = function(f, model)
    flow.config.set_threads(3)
    return f(model)
  end,
}
local WAY_NAMES = {}
for name in pairs(WAYS) do WAY_NAMES[#WAY_NAMES + 1] = name end
table.sort(WAY_NAMES)

--- Numbers as text with all their digits, names sorted; places in messages are left out, and numbers of objects.
local function told(value)
  if type(value) == "number" then return ("%.17g"):format(value) end
  if type(value) ~= "table" then return (tostring(value):gsub("^[^\n]-:%d+: ", ""):gsub('"[%w_]+"', ""):gsub("_%d+", "")) end
  local list, keys = {}, {}
  for key in pairs(value) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  for i, key in ipairs(keys) do list[i] = tostring(key) .. " " .. told(value[key]) end
  return "{" .. table.concat(list, ", ") .. "}"
end

--- The results of a program's calls, each with its name, and the weights at its end.
local function run(seed, way)
  local t, s, list = random_trainings.of(seed), arguments.source(seed + 7), {}
  if t.draws then return end
  flow.config.set_threads(1)
  local model = t.make "sequential"
  for _ = 1, s.draw(8, 20) do
    local name = s.pick(NAMES)
    local f = CALLS[name](s, t)
    local ok, other, result = pcall(way or f, way and f or model, model)
    list[#list + 1] = name .. ": " .. told(ok and (result or "done") or other)
    if ok and other then model = other end
  end
  for i, w in ipairs(model.weights) do list[#list + 1] = ("weight %d: %s"):format(i, told(w:totable())) end
  list[#list + 1] = "iterations: " .. tostring(model.optimizer.iterations)
  model:close()
  return list
end

describe("a program of many calls", function()
  it("gives the same bits when it is written in another way", function()
    path = support.file("model.keras", "")
    local threads = flow.config.get_threads()
    finally(function() flow.config.set_threads(threads) end)
    local failures, compared = {}, 0
    for case = FIRST, LAST do
      local expected = run(case)
      for i, name in ipairs(expected and WAY_NAMES or {}) do
        if ONLY or (case + i) % 2 == 0 then
          local found = run(case, WAYS[name])
          compared = compared + 1
          for k = 1, math.max(#expected, #found) do
            if expected[k] ~= found[k] then
              failures[#failures + 1] = ("case %d %s, call %d: %s, expected %s"):format(case, name, k, tostring(found[k]):sub(1, 300),
                tostring(expected[k]):sub(1, 300))
              break
            end
          end
        end
      end
    end
    assert.equal(0, #failures, ("%d of %d: %s"):format(#failures, CASES, table.concat(failures, "\n", 1, math.min(#failures, 20))))
    assert.is_true(compared > (ONLY and 0 or CASES / 2), ("only %d were compared"):format(compared))
  end)
end)
