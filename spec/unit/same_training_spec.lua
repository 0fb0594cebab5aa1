-- same_training_spec.lua: one training, written in other ways, ends with the same bits: fit with tensors or a Dataset, train_on_batch, a
-- loop with a GradientTape, eager or traced, a training that goes on from a file, a model in other forms. Models, optimizers, losses and
-- batches are random (spec/support/random_trainings.lua). FLOW_CASES=10000 tries this many, FLOW_CASE=number that one in all ways.
local support = require "spec.support.init"
local flow = require "flow"
local backend = require "spec.support.backend"
local random_trainings = require "spec.support.random_trainings"

local FIRST, LAST, CASES = (require "spec.support.case_numbers")(40)
local ONLY = FIRST == LAST

--- f(x, y, weights) of each batch, in order, of `epochs` epochs; from and to: the first and the last step.
local function each_batch(t, f, from, to)
  local step = 0
  for _ = 1, t.epochs do
    for first = 1, t.x.shape[1], t.batch do
      local last = math.min(first + t.batch - 1, t.x.shape[1])
      local function part(all) return all and all[{ { first, last } }]:copy() end
      step = step + 1
      if step >= (from or 1) and step <= (to or math.huge) then f(part(t.x), part(t.y), part(t.weights)) end
    end
  end
end

local function fit(model, t, options)
  local all = { batch_size = t.batch, epochs = t.epochs, shuffle = false, verbose = 0, sample_weight = t.weights }
  for name, value in pairs(options or {}) do all[name] = value end
  model:fit(t.x, t.y, all)
  return model
end

local function train_on_batches(model, t, from, to)
  each_batch(t, function(x, y, weights) model:train_on_batch(x, y, { sample_weight = weights }) end, from, to)
  return model
end

--- What fit does at its end.
local function finalize(model)
  model.optimizer:finalize_variable_values(model.trainable_variables)
  return model
end

--- A step of one's own, as it is or traced.
local function by_tape(t, traced)
  local model, loss = t.make "functional", t.loss()
  local variables = model.trainable_variables
  local function step(x, y, weights)
    local tape = flow.GradientTape()
    local value = tape:record(function()
      local sum = loss(y, model(x, { training = true }), weights)
      for _, penalty in ipairs(model.losses) do sum = sum + penalty end
      return sum
    end)
    model.optimizer:apply_gradients(tape:gradient(value, variables), variables)
  end
  each_batch(t, traced and flow.fn(step) or step)
  return finalize(model)
end

local file

--- Ways to train; each gives the trained model, or nil where it does not say the same.
local WAYS = {
  ["fit, functional"] = function(t) return fit(t.make "functional", t) end,
  ["fit, subclassed"] = function(t) return fit(t.make "subclassed", t) end,
  ["fit with a Dataset"] = function(t)
    local parts = { t.x, t.y, t.weights }
    local data = flow.data.Dataset.from_tensor_slices(parts):batch(t.batch)
    local model = t.make "sequential"
    model:fit(data, { epochs = t.epochs, verbose = 0 })
    return model
  end,
  train_on_batch = function(t) return finalize(train_on_batches(t.make "sequential", t)) end,
  ["train_on_batch, subclassed"] = function(t) return finalize(train_on_batches(t.make "subclassed", t)) end,
  -- A traced step may take algorithms that round in another way where the precision is not exact, and adds up the gradients of filters by
  -- chunks of rows.
  ["an eager loop with a tape"] = function(t)
    return t.exact and not t.draws and not t.title:find "Conv" and by_tape(t, false) or nil
  end,
  ["a traced loop with a tape"] = function(t) return not t.draws and by_tape(t, true) or nil end,
  ["a training that goes on from a file"] = function(t)
    if t.draws then return end      -- the file does not say how many numbers were drawn; BackupAndRestore does
    local steps = 0
    each_batch(t, function() steps = steps + 1 end)
    local stop = math.floor(steps / 2)
    train_on_batches(t.make "functional", t, 1, stop):save(file)
    return finalize(train_on_batches(flow.load_model(file), t, stop + 1))
  end,
  ["fit that goes on from a file"] = function(t)
    if t.draws or t.averages then return end
    local stop = math.floor(t.epochs / 2)
    local model = t.make "functional"
    if stop > 0 then fit(model, t, { epochs = stop }) end
    model:save(file)
    return fit(flow.load_model(file), t, { initial_epoch = stop })
  end,
}
local NAMES = {}
for name in pairs(WAYS) do NAMES[#NAMES + 1] = name end
table.sort(NAMES)

local function values_of(model)
  local list = {}
  for _, group in ipairs { model.weights, model.optimizer.variables } do
    for _, v in ipairs(group) do list[#list + 1] = v:value():copy() end
  end
  return list
end

describe("a training that is written in another way", function()
  it("ends with the same weights and the same state of its optimizer, to the last bit", function()
    file = support.file("model.keras", "")
    finally(function() flow.config.set_precision("fast") end)
    local failures, compared = {}, 0
    for case = FIRST, LAST do
      local title = "seed " .. case
      local ok, message = pcall(function()
        local t = random_trainings.of(case)
        title = t.title
        flow.config.set_precision(t.exact and "exact" or "fast")
        local expected = values_of(fit(t.make "sequential", t))
        for i = 1, ONLY and #NAMES or 3 do
          local name = NAMES[ONLY and i or (case * 3 + i - 1) % #NAMES + 1]
          local ran, problem = pcall(function()
            local model = WAYS[name](t)
            if not model then return end
            local found = values_of(model)
            assert.equal(#expected, #found, name)
            backend.each(backend.identical, expected, found, #expected, name .. ", variable")
            compared = compared + 1
            model:close()
          end)
          if not ran then error(name .. ": " .. tostring(problem), 0) end
        end
      end)
      if not ok then failures[#failures + 1] = ("%s: %s"):format(title, tostring(message)) end
      if case % 20 == 0 then collectgarbage() end
    end
    assert.equal(0, #failures, ("%d of %d: %s"):format(#failures, CASES, table.concat(failures, "\n", 1, math.min(#failures, 20))))
    assert.truthy(compared > (ONLY and 0 or CASES), ("only %d were compared"):format(compared))
  end)
end)
