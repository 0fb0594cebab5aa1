-- fit_recovery.lua: fit as a stretch that goes on when a worker was lost (distribute/recovery.lua): what a worker's state is, and how
-- all take over the newest one. It is what a backup holds (callbacks/backup_and_restore.lua), from one process's memory to the others.

local training = require "flow.train.compile"
local fit_position = require "flow.train.fit_position"
local together = require "flow.train.sync_start"
local workers = require "flow.distribute.model_workers"
local recovery = require "flow.distribute.recovery"

local fit_recovery = {}

local function strategy_of(model)
  local p = model._placement
  return p and p.workers > 1 and p.strategy or nil
end

-- All variables of a run, the same ones in the same order on all workers.
local function variables_of(model)
  local list = {}
  local function add(variables)
    for _, v in ipairs(variables) do list[#list + 1] = v end
  end
  add(model.weights)
  add(model.optimizer.variables)
  for _, entry in ipairs(training.trackers(model)) do add(entry.metric.variables) end
  return list
end

-- What a model knows of its steps besides variables.
local function counts_of(model)
  return { steps = model._train_steps, seed = rawget(model, "_seed"), traces = model._trace_states }
end

local function set_counts(model, counts)
  rawset(model, "_train_steps", counts.steps)
  rawset(model, "_seed", counts.seed)
  rawset(model, "_trace_states", counts.traces)
end

-- models: all that a fit has trained so far, in the order of their first fits; a worker that was started again has left these fits out.
local function share(run, models, worker)
  local state, speaks = { models = {} }, worker.rank == worker.newest
  for _, model in ipairs(models) do together.compare(model) end
  worker:with_speaker(worker.newest, function()
    worker:share_random_state()
    for i, model in ipairs(models) do
      for _, v in ipairs(variables_of(model)) do worker:broadcast_variable(v) end
      state.models[i] = counts_of(model)
    end
    state.run = speaks and fit_position.get_progress(run) or nil
    state = worker:broadcast_value(speaks and state or nil, "the run")
  end)
  for i, model in ipairs(models) do set_counts(model, state.models[i]) end
  fit_position.set_progress(run, state.run, worker.rank)
end

-- A model is among those that were trained from here on.
local function note_model(models, model)
  for _, known in ipairs(models) do
    if known == model then return end
  end
  models[#models + 1] = model
end

local Recovery = {}
Recovery.__index = Recovery

-- Of a run of fit that is about to begin; nil: it ends when a worker is lost.
function fit_recovery.begin(run)
  local strategy = strategy_of(run.model)
  local own = recovery.of(strategy)
  if not own then return nil end
  recovery.begin(own)
  note_model(own.models, run.model)
  return setmetatable({ own = own, strategy = strategy, run = run, stretch = {
    step = function() return run.origin.steps + run.batch end,
    where = function() return ("%d %s"):format(run.epoch, run.hooked) end,
    share = function(worker) share(run, own.models, worker) end,
  } }, Recovery)
end

-- To be called when all is made that a run has, before its first epoch. Returns whether the others have ended this fit already.
function Recovery:catch_up()
  local run = self.run
  for _, pass in pairs(self.strategy._worker.apart and { run.train, run.test } or {}) do      -- what was made for this worker alone
    pass.step = false
    if pass.feed then pass.feed.step = false end
  end
  return recovery.catch_up(self.own, self.strategy, self.stretch, function(where)
    local epoch, hooked = (where or ""):match("^(%d+) (%a+)$")
    if hooked == "true" then run.list:call("on_epoch_begin", tonumber(epoch), {}) end      -- as the others did when it began
  end)
end

-- Calls f, which does the next epoch or the rest of it, again when a worker was lost and has come back.
function Recovery:run_epoch(f)
  return recovery.run(self.own, self.strategy, self.stretch, f)
end

-- The data of an epoch is open. Where workers read data of their own, all know the place of each, so that one who comes back finds its own.
function Recovery:mark_epoch()
  local feed, worker = self.run.train.feed, workers.of(self.run.model)
  if feed then feed:set_mark(function(mark) return worker:gather_texts(mark) end) end
end

return fit_recovery
