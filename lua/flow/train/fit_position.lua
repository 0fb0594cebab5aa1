-- fit_position.lua: where a run of fit is, besides what variables hold: epoch and batch, the order of the rows and the place in it, the
-- positions of data sets, the seeds of random ops, what callbacks remember. With the variables of model, optimizer and metrics it is all
-- that another process needs to continue the run exactly (callbacks/backup_and_restore.lua).
--
-- A run is a table that fit keeps up to date:
--   model, train, test (passes of fit.lua), list (callbacks)
--   epoch, batch        batches of this epoch that ran, hooks included; batch 0: the epoch has not begun
--   pending             how many of these the source and the model have not counted yet, because their loop is still running
--   logs                results of the last whole epoch
--   of this epoch: hooked (the hooks of its beginning were called), begun (its data is open), fresh (at the beginning of a data set),
--   trained (all of its batches ran), results (of these); else false
--   origin              see set_origin

local errors = require "flow.errors"
local object = require "flow.object"
local log = require "flow.log"
local training = require "flow.train.compile"
local model_steps = require "flow.train.model_steps"
local steps = require "flow.train.steps"
local batches = require "flow.train.batches"
local codec = require "flow.state_codec"
local workers = require "flow.distribute.model_workers"

local raise = errors.raise
local position = {}

---- callbacks -------------------------------------------------------------------------------------------------------------------

-- Calls f(key, member) for each callback; the key is its class and its number among those of the class.
local function each_callback(list, f)
  local counts = {}
  for _, member in ipairs(list.members) do
    local name = object.class_of(member).name
    counts[name] = (counts[name] or 0) + 1
    f(name .. " " .. counts[name], member)
  end
end

-- The states of the callbacks that have one, by key.
local function callbacks_state(list)
  local states = {}
  each_callback(list, function(key, member)
    if member.get_state and member.set_state then states[key] = member:get_state() end
  end)
  return states
end

-- Hands each callback its state; a state without a callback is a warning, a callback without a state stays as on_train_begin left it.
local function restore_callbacks(list, states)
  local left = {}
  for key in pairs(states) do left[key] = true end
  each_callback(list, function(key, member)
    if states[key] == nil then return end
    left[key] = nil
    member:set_state(states[key])
  end)
  local lost = next(left)
  if lost then log.warning("the backup has the state of a callback that this run does not have: %s", lost) end
end

---- data ------------------------------------------------------------------------------------------------------------------------

-- The position in arrays. pending: batches that ran and that the source has not counted yet.
local function source_state(source, pending)
  return { rows = source.rows, size = source.size, position = source.position + pending, order = source.order }
end

-- Goes to such a position; raises if the data or the size of batches is another one.
local function restore_source(source, state)
  if source.rows ~= state.rows or source.size ~= state.size or (source.order ~= nil) ~= (state.order ~= nil) then
    raise("fit: the backup was made with %d samples in batches of %d%s, this run has %d in batches of %d%s; delete it to start over",
      state.rows, state.size, state.order and ", shuffled" or "", source.rows, source.size, source.order and ", shuffled" or "")
  end
  source.position = state.position
  if source.order then batches.reorder(source, state.order) end
end

-- The positions of all workers, if each reads its own data. All workers call this at once.
local function feed_state(model, feed, begun)
  local mine, worker = feed:state(begun), feed.own and workers.of(model)
  if not worker then return mine end
  local each = {}
  for i, text in ipairs(worker:gather_texts(codec.encode(mine, nil, "the data"))) do each[i] = codec.decode(text, nil, "the data") end
  return { each = each }
end

-- Goes to the position of feed_state. Raises unless as many workers read their own data as when it was saved. what: "training" or
-- "validation".
local function restore_feed(model, what, feed, state)
  local worker = feed.own and workers.of(model)
  local count, before = worker and worker.count or 0, state.each and #state.each or 0
  if count ~= before then
    raise("fit: the backup was made by %s, this run has %s (%s); delete it to start over",
      before == 0 and "workers that share one data set" or ("%d workers that each read their own data"):format(before),
      count == 0 and "a shared data set" or ("%d with their own data"):format(count), what)
  end
  feed:set_state(worker and state.each[worker.rank + 1] or state)
end

local function pass_state(model, pass, pending, begun)
  if not pass then return nil end
  return pass.feed and { feed = feed_state(model, pass.feed, begun) } or { source = source_state(pass.source, pending) }
end

-- Sets a pass to a position of pass_state; does nothing without one, as of a validation that this run does not have. Raises if one is of
-- tensors and the other of a data set. what: "training" or "validation".
local function restore_pass(model, what, pass, state)
  if not pass or not state then return end
  if (pass.feed ~= nil) ~= (state.feed ~= nil) then
    raise("fit: the backup was made with %s for %s, this run has %s; delete the backup to start over",
      state.feed and "a Dataset" or "tensors", what, pass.feed and "a Dataset" or "tensors")
  end
  if pass.feed then restore_feed(model, what, pass.feed, state.feed) else restore_source(pass.source, state.source) end
end

-- Calls f, which begins a pass over data, or runs a whole one. If it fails, the pass begins again later, in the same order.
function position.hold_pass(run, f)
  local feeds = {}
  for _, pass in pairs { run.train, run.test } do feeds[#feeds + 1] = pass.feed end
  for _, feed in ipairs(feeds) do feed:hold(true) end
  f()
  for _, feed in ipairs(feeds) do feed:hold(false) end
end

---- the whole -------------------------------------------------------------------------------------------------------------------

-- The position as a table that state_codec.lua can write. All workers call this at once; the chief's table holds for all: they share the
-- data, or it has the position of each.
function position.get_state(run)
  local model = run.model
  return {
    epoch = run.epoch, batch = run.batch, begun = run.begun, trained = run.trained, results = run.results,
    logs = run.logs, stopped = model.stop_training, seed = rawget(model, "_seed"),
    steps = model._train_steps + run.pending, others = model._other_steps, traces = model._trace_states,
    callbacks = callbacks_state(run.list),
    train = pass_state(model, run.train, run.pending, run.begun), test = pass_state(model, run.test, 0, false),
  }
end

-- What both kinds of positions set once the data are where they were: the callbacks, the place in the epoch, and the model's counts of
-- steps, from which its random numbers follow.
local function set_counts(run, state)
  local model = run.model
  restore_callbacks(run.list, state.callbacks)
  run.epoch, run.batch, run.pending, run.logs, run.stopped = state.epoch, state.batch, 0, state.logs, state.stopped
  rawset(model, "_seed", state.seed)
  rawset(model, "_train_steps", state.steps)
  rawset(model, "_other_steps", state.others or 0)      -- older backups have none
  rawset(model, "_trace_states", state.traces)
  position.set_origin(run)
end

-- Sets a run to such a position, in any process whose model, data and callbacks are equal. Raises if the data differ; what the model and
-- its callbacks have is set after that.
function position.set_state(run, state)
  local model = run.model
  restore_pass(model, "training", run.train, state.train)
  restore_pass(model, "validation", run.test, state.test)
  run.begun, run.trained, run.results = state.begun or state.batch > 0, state.trained or false, state.results or false
  set_counts(run, state)
end

---- for a worker that takes over from another -----------------------------------------------------------------------------------

-- The position of this worker after its last batch, found without communication after a failure anywhere in fit. As get_state, but the
-- position in the data is that of the beginning of the epoch, with the number of batches since.
function position.get_progress(run)
  local model, train, test = run.model, run.train, run.test
  local state = {
    epoch = run.epoch, batch = run.batch, hooked = run.hooked, begun = run.begun, fresh = run.fresh, trained = run.trained,
    results = run.results, logs = run.logs, stopped = model.stop_training, seed = rawget(model, "_seed"),
    steps = run.origin.steps + run.batch, others = model._other_steps, traces = model._trace_states, callbacks = callbacks_state(run.list),
  }
  if train.source then
    state.source = source_state(train.source, 0)
    state.source.position = run.origin.source + run.batch
  else state.feed = train.feed:progress(run.begun and not run.trained or train.limit) end
  state.test_feed = test and test.feed and test.feed:progress(false) or nil      -- a validation that was interrupted begins again
  return state
end

-- Sets a run to such a position. rank: this worker's, from 0. All workers call it, also the one that the state comes from.
function position.set_progress(run, state, rank)
  local train, test = run.train, run.test
  if state.source then restore_source(train.source, state.source)
  else train.feed:set_progress(state.feed, rank) end
  if test and test.feed then test.feed:set_progress(state.test_feed, rank) end
  run.hooked, run.begun, run.fresh, run.trained, run.results = state.hooked, state.begun, state.fresh, state.trained, state.results
  rawset(run.model, "stop_training", state.stopped)
  set_counts(run, state)
end

-- Notes how many steps the model had made, and batches the source had given, when this epoch began. Called between loops over batches:
-- they count their batches when they end.
function position.set_origin(run)
  local source = run.train.source
  run.origin = { steps = run.model._train_steps - run.batch, source = source and source.position - run.batch }
end

-- Makes the variables that a backup fills: those of a model that its first batch would build, and the optimizer's slots.
function position.prepare(run)
  local model = run.model
  if run.train.feed then
    training.seed(model)      -- before the layers draw their weights, as in the first batch
    local specs = {}
    for i, spec in ipairs(run.train.feed.dataset._specs) do
      specs[i] = { dtype = spec.dtype, shape = { -1, unpack(spec.shape, 2) } }
    end
    steps.ensure_built(model, "train", specs, run.train.feed.layout)
  end
  if model_steps.overrides(model, "train_step") then return end      -- it made what its optimizers need
  local trainable = model.trainable_variables
  if #trainable > 0 then model.optimizer:build(trainable) end      -- does nothing if it is built
end

-- A run that begins at this epoch.
function position.new(model, train, test, list, epoch)
  local run = { model = model, train = train, test = test, list = list, epoch = epoch, batch = 0, pending = 0, logs = {}, stopped = false,
                hooked = false, begun = false, trained = false, results = false, fresh = false }
  position.set_origin(run)
  return run
end

return position
