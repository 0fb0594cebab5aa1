-- sync_start.lua: how the workers of a strategy begin to fit: they compare what they are about to do, and start from the chief's values. So
-- it is enough if the chief has loaded the model, and random numbers that a worker drew before make no difference.

local native = require "flow.ffi"
local errors = require "flow.errors"
local log = require "flow.log"
local object = require "flow.object"
local fit_position = require "flow.train.fit_position"
local workers = require "flow.distribute.model_workers"

local C, check = native.C, native.check
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
    local ok, config = pcall(optimizer.to_json, optimizer)      -- a schedule in Lua may have none
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

-- Hashes of the numbers that this process has, one for each variable.
local function hashes_of(variables)
  local handles, hashes = native.array("flow_variable *", #variables), native.array("uint64_t", #variables)
  for i, v in ipairs(variables) do handles[i - 1] = v.handle end
  check(C.flow_variables_hash(handles, #variables, -1, hashes))
  native.keep(variables)
  return hashes
end

-- Gives variables the numbers of the chief, or of the worker with the newest ones. A worker that had others says so: it is meant where the
-- chief alone has loaded a model, and is not where this worker alone has.
local function share(worker, variables)
  local before = hashes_of(variables)
  for _, v in ipairs(variables) do worker:broadcast_variable(v) end
  local after, found, first = hashes_of(variables), 0, nil
  for i, v in ipairs(variables) do
    if before[i - 1] ~= after[i - 1] then found, first = found + 1, first or v.path end
  end
  if found == 0 then return end
  log.info("fit: %s had other numbers than %s in %d of %d variables, such as %q; all workers begin with those of %s",
    worker:name_of(worker.rank), worker:name_of(worker.speaker), found, #variables, first, worker:name_of(worker.speaker))
end

-- Called when a run is about to begin, with the options of fit. Makes the model's and the optimizer's variables if they are not there yet.
function together.begin(run, options)
  local model = run.model
  local worker = workers.of(model)
  if not worker then return end
  fit_position.prepare(run)
  worker:agree("model", describe_model(model))
  worker:agree("way to fit", describe_run(run, options))
  local variables = { unpack(model.weights) }
  for _, optimizer in ipairs(model:_optimizers()) do
    for _, v in ipairs(optimizer.variables) do variables[#variables + 1] = v end
  end
  share(worker, variables)
end

return together
