-- fit_recovery.lua: fit, evaluate and predict as stretches that continue after a worker was lost (distribute/recovery.lua): what the state
-- of a worker is, and how all workers take over the newest state. It has what a backup has (callbacks/backup_and_restore.lua), but goes
-- from one process's memory to the others.

local training = require "flow.train.compile"
local fit_position = require "flow.train.fit_position"
local together = require "flow.train.sync_start"
local workers = require "flow.distribute.model_workers"
local datasets = require "flow.distribute.dataset"
local recovery = require "flow.distribute.recovery"
local placement = require "flow.tensor.placement"
local data = require "flow.data"
local data_draws = require "flow.distribute.data_draws"

local fit_recovery = {}

-- Drops the steps that a run's passes hold: they were made for workers that have left, or for this worker alone.
local function forget_steps(run)
  for _, pass in pairs { run.train, run.test } do
    pass.step = false
    if pass.feed then pass.feed.step = false end
  end
end

-- The strategy whose workers train a model. joins: also for a model that was made outside of all scopes.
local function strategy_of(model, joins)
  local p = model._placement or joins and placement.joined()
  return p and p.workers > 1 and p.strategy or nil
end

-- All variables of a run, in the same order on all workers.
local function variables_of(model)
  local list = {}
  local function add(variables)
    for _, v in ipairs(variables) do list[#list + 1] = v end
  end
  add(model.weights)
  for _, optimizer in ipairs(model:_optimizers()) do add(optimizer.variables) end
  for _, entry in ipairs(training.trackers(model, true)) do add(entry.metric.variables) end
  return list
end

-- The state of a model's steps besides variables.
local function counts_of(model)
  return { steps = model._train_steps, others = model._other_steps, seed = rawget(model, "_seed"), traces = model._trace_states }
end

-- Sets what counts_of() gave, of another worker.
local function set_counts(model, counts)
  rawset(model, "_train_steps", counts.steps)
  rawset(model, "_other_steps", counts.others)
  rawset(model, "_seed", counts.seed)
  rawset(model, "_trace_states", counts.traces)
end

-- Brings all models that were trained so far, in the order of their first fits, to the newest worker's state: a worker that was started
-- again skipped these fits. extra() returns a table of what else that worker passes on, which this returns.
local function share_models(own, worker, extra)
  local state, models = { models = {} }, own.models
  for _, model in ipairs(models) do together.compare(model) end
  worker:share_random_state()
  for i, model in ipairs(models) do
    for _, v in ipairs(variables_of(model)) do worker:broadcast_variable(v) end
    state.models[i] = counts_of(model)
  end
  if worker.rank == worker.newest then state.draws, state.extra = data_draws.save(own.draws), extra() end
  state = worker:broadcast_value(state, "the run")
  for i, model in ipairs(models) do set_counts(model, state.models[i]) end
  data_draws.restore(own.draws, state.draws)
  return state.extra
end

-- Adds a model to those that were trained.
local function note_model(models, model)
  for _, known in ipairs(models) do
    if known == model then return end
  end
  models[#models + 1] = model
end

-- The stretch of a call, which is repeated from its beginning after a loss. first, second: data sets that it reads, or other data.
local function beginning(own, first, second)
  local list, stretch = {}, { result = nil }
  for _, dataset in pairs { first, second } do
    if datasets.is(dataset) then dataset = dataset._dataset end
    if data.is(dataset) then list[#list + 1] = dataset end
  end
  data_draws.note(own.draws, list)
  function stretch.step() return 0 end
  function stretch.where() return recovery.BEGIN end
  function stretch.share(worker)
    stretch.result = share_models(own, worker, function() return { result = stretch.result } end).result
  end
  return stretch
end

-- Runs f(), a model's evaluate or predict, which all workers run together.
function fit_recovery.whole(model, dataset, f)
  local strategy = strategy_of(model)
  local own = recovery.of(strategy)
  if not own or own.inside then return f() end
  return recovery.whole(own, strategy, beginning(own, dataset), f)
end

---- fit --------------------------------------------------------------------------------------------------------------------------------

local Recovery = {}
Recovery.__index = Recovery

-- The recovery of a fit that begins; nil: the fit ends when a worker is lost. first, second: its data.
function fit_recovery.begin(model, first, second)
  local strategy = strategy_of(model, true)
  local own = recovery.of(strategy)
  if not own or own.inside then return nil end
  recovery.begin(own)
  local opening = beginning(own, first, second)
  opening.opens = true
  recovery.catch_up(own, strategy, opening)
  return setmetatable({ own = own, strategy = strategy, opening = opening, over = false }, Recovery)
end

-- Runs f(), which makes everything that a run has before its first epoch.
function Recovery:open(f)
  return recovery.run(self.own, self.strategy, self.opening, f)
end

-- Called when a run is ready for its first epoch. Returns whether the others have ended this fit already; then history is theirs.
function Recovery:enter(run, history)
  local own, first = self.own, run.model._train_steps
  self.run, self.history = run, history
  recovery.enter(own)
  note_model(own.models, run.model)
  self.stretch = {
    step = function() return run.origin.steps + run.batch - first end,
    where = function() return ("%d %s"):format(run.epoch, run.hooked) end,
    share = function(worker)
      data_draws.let_go(own.draws)
      if self.strategy._placement.elastic then forget_steps(run) end
      local state = share_models(own, worker, function() return { first = first, run = fit_position.get_progress(run) } end)
      first = state.first
      fit_position.set_progress(run, state.run, worker.rank)
    end,
  }
  if self.strategy._worker.apart then forget_steps(run) end
  self.over = recovery.catch_up(own, self.strategy, self.stretch, function(where)
    local epoch, hooked = (where or ""):match("^(%d+) (%a+)$")
    if hooked == "true" then run.list:call("on_epoch_begin", tonumber(epoch), {}) end      -- as the others did when it began
  end)
  if not self.over then return false end
  own.inside = false
  local result = recovery.result(own)
  if result then history:set_state(result) end
  return true
end

-- Calls f, which runs the next epoch or the rest of it, and calls it again after a worker was lost and has come back. Returns whether
-- another epoch follows.
function Recovery:run_epoch(f)
  return recovery.run(self.own, self.strategy, self.stretch, f, function()
    local result = recovery.result(self.own)
    if result then self.history:set_state(result) end
    self.over = true
    return false
  end)
end

-- Runs f(), such as a validation, without a pause for workers that join.
function Recovery:hold(f)
  return function() return self.strategy._worker:without_pause(f) end
end

-- Called when the last epoch has ended. A worker that skipped this fit gets the others' History.
function Recovery:leave(history)
  if self.over then self.own.inside = false
  else recovery.leave(self.own, self.stretch, history:get_state()) end
end

-- Called when the data of an epoch is open. If workers read their own data, all learn the position of each, so that one that comes back
-- finds its own.
function Recovery:mark_epoch()
  local feed, worker = self.run.train.feed, workers.of(self.run.model)
  if feed then feed:set_mark(function(mark) return worker:gather_texts(mark) end) end
end

return fit_recovery
