-- sync_start.lua: how the workers of a strategy begin to fit: they compare what they are about to do, and start from the chief's values. So
-- it is enough if the chief has loaded the model, and random numbers that a worker drew before make no difference.

local errors = require "flow.errors"
local object = require "flow.object"
local fit_position = require "flow.train.fit_position"
local workers = require "flow.distribute.model_workers"

local together = {}

-- What must be equal on all workers, a line for each property: how a model is built, and, at the start, the options of its optimizer, which
-- callbacks may change later.
local function describe_parts(model)
  local lines = { "results " .. table.concat(model.metrics_names, ", ") }
  for i, v in ipairs(model.weights) do
    lines[#lines + 1] = ("variable %d: %s {%s}%s"):format(i, v.dtype, table.concat(v.shape, ", "), v.trainable and "" or ", not trained")
  end
  return table.concat(lines, "\n")
end

-- The same with the optimizers.
local function describe_model(model)
  local lines = {}
  for i, optimizer in ipairs(model:_optimizers()) do
    local ok, config = pcall(optimizer.to_json, optimizer)      -- a schedule in Lua has no config
    lines[i] = "optimizer " .. (ok and config or object.title(optimizer))
  end
  return table.concat(lines, "\n") .. "\n" .. describe_parts(model)
end

-- What must be equal of a fit: where it begins, how long it is, how the data is cut.
local function describe_run(run, options)
  local source = run.train.source
  local data = source and ("data of %d samples in batches of %d%s"):format(source.rows, source.size, source.order and ", shuffled" or "")
  return table.concat({
    ("begins in epoch %d after batch %d"):format(run.epoch + 1, run.batch),
    ("epochs %d"):format(options.epochs),
    ("steps_per_epoch %s"):format(options.steps_per_epoch or "nil"),
    data or "a data set",
    ("validation %s"):format(run.test and "every " .. errors.describe(options.validation_freq) .. " epochs" or "none"),
  }, "\n")
end

-- Called first: random numbers that are drawn while steps are traced and data is read are the chief's.
function together.random(model)
  local worker = workers.of(model)
  if not worker then return end
  worker:share_random_state()
  local seed = rawget(model, "_seed")      -- drawn at the first step, where a single process draws it, too
  rawset(model, "_seed", tonumber(worker:broadcast_text(seed and ("%.17g"):format(seed) or "")))
end

-- Raises on all workers unless they train models of the same structure.
function together.compare(model)
  local worker = workers.of(model)
  if worker then worker:agree("model", describe_parts(model)) end
end

-- Called when a run is about to begin, with the options of fit. Makes the model's and the optimizer's variables if they are not there yet.
function together.begin(run, options)
  local model = run.model
  local worker = workers.of(model)
  if not worker then return end
  fit_position.prepare(run)
  worker:agree("model", describe_model(model))
  worker:agree("way to fit", describe_run(run, options))
  for _, v in ipairs(model.weights) do worker:broadcast_variable(v) end
  for _, optimizer in ipairs(model:_optimizers()) do
    for _, v in ipairs(optimizer.variables) do worker:broadcast_variable(v) end
  end
end

return together
