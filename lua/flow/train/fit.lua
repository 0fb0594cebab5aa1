-- fit.lua: the loops over data: fit, evaluate, predict. steps.lua has the step of one batch, batches.lua the hot loop.
--
-- The room: compile, fit and what they take: losses, metrics, optimizers. May use: tensor, layers, data, distribute, model, plot, utils.
--
-- fit runs in this order: fit_data reads the arguments, open_fit makes passes, callbacks and the run (fit_position.lua), the returned
-- function runs epochs, each of which is open_epoch, run_batches, a test_pass for validation, and the hooks. Under a strategy all workers
-- run the same code at the same time; what one of them has to tell the others goes through workers.any between epochs, and through the
-- steps themselves within one.
--
-- A pass is what goes over data once: { feed = Feed, limit = } of a data set; { source = (batches.lua), limit =, step =, kind =, arrays =,
-- layout =, capacity = rows of a batch } of arrays.

local native = require "flow.ffi"
local errors = require "flow.errors"
local models = require "flow.model"
local training = require "flow.train.compile"
local steps = require "flow.train.steps"
local batches = require "flow.train.batches"
local callback = require "flow.train.callback"
local History = require "flow.train.history"
local progress = require "flow.train.progress"
local Feed = require "flow.train.feed"
local log = require "flow.log"
local tensor = require "flow.tensor"
local view_rows = require "flow.tensor.rows"
local fit_position = require "flow.train.fit_position"
local ownership = require "flow.distribute.ownership"
local together = require "flow.train.sync_start"
local fit_recovery = require "flow.train.fit_recovery"
local workers = require "flow.distribute.model_workers"
local live_status = require "flow.distribute.status"
local executions = require "flow.train.batch_watch"
local validation_epochs = require "flow.train.validation_epochs"
local fit_data = require "flow.train.fit_data"
local predictions = require "flow.train.predictions"
local fit_servers = require "flow.train.fit_servers"
local named_data = require "flow.model.named_data"

local C, raise = native.C, errors.raise
local context = native.context
local Model = models.Model
local takes_named = require("flow.signature").takes_named

---- options ---------------------------------------------------------------------------------------------------------------------

-- In Keras' order; all may also be given by position.
local FIT = "x?: data, y?: data, batch_size?: count, epochs: whole = 1, verbose: verbosity = 'auto', callbacks?: given, "
  .. "validation_split: number = 0, validation_data?: given, shuffle: boolean = true, class_weight?: gaps, "
  .. "sample_weight?: given, initial_epoch: whole = 0, steps_per_epoch?: count, validation_steps?: count, "
  .. "validation_batch_size?: count, validation_freq: count|list = 1"
local EVALUATE = "x?: data, y?: data, batch_size?: count, verbose: verbosity = 'auto', sample_weight?: given, steps?: count, "
  .. "callbacks?: given, return_dict: boolean = true"
local PREDICT = "x?: data, batch_size?: count, verbose: verbosity = 'auto', steps?: count, callbacks?: given"

-- Whether a table with names is data, by the names of a model's inputs or outputs, rather than options: { x = x, epochs = 3 } is options
-- unless an input is called x.
local function is_data(model, value, parameter)
  if parameter == "y" then return named_data.has_outputs(model, value) end
  if value.x == nil then return next(value) ~= nil end
  for _, name in ipairs(named_data.names(model, "inputs") or {}) do
    if name == "x" then return true end
  end
  return false
end

-- Raises if a call was given no data.
local function check_call(what, options)
  if options.x == nil then raise("%s: there is no data: x is nil", what) end
end

---- data ------------------------------------------------------------------------------------------------------------------------------

-- The tensors of fit_data.read as one list, contiguous: inputs, targets, weights; and the layout that tells them apart (steps.lua).
local function flat(data)
  local list = {}
  for _, name in ipairs { "x", "y", "weights" } do
    for _, t in ipairs(data[name]) do list[#list + 1] = t:contiguous() end
  end
  return list, { x = #data.x, y = #data.y, weights = #data.weights, is_x_alone = data.is_x_alone,
                 of_x = data.of_x }
end

---- loops -----------------------------------------------------------------------------------------------------------------------------

-- A pass over data. kind: "train", "test" or "predict"; size: rows of a batch; limit: the most batches of an epoch, or nil; order: of the
-- rows, or nil. The step for arrays is made here, so that what a model cannot do with the data is an error before any hook runs.
local function new_pass(model, kind, data, size, limit, order)
  if data.feed then return { feed = data.feed, limit = limit } end
  local arrays, layout = flat(data)
  local pass = { source = batches.source(arrays, data.rows, size, order), limit = limit, step = false, kind = kind, arrays = arrays,
                 layout = layout, capacity = math.min(size, data.rows) }
  steps.renew(pass, model)
  return pass
end

-- Keeps the data of a pass that runs in each epoch on the model's device, if it has room.
local function keep_data(pass, model)
  if pass.feed then pass.feed:keep_rows() else batches.keep_on_device(pass.source, model) end
  return pass
end

-- The most batches that the rest of this epoch has, math.huge where that is not known. start: how many of them ran before.
local function batch_count(pass, start)
  if pass.feed then return (pass.feed:expected() or math.huge) - start end
  return math.min((pass.limit or math.huge) - start, batches.count(pass.source) - pass.source.position)
end

-- Whether a loop ended because of an interrupt or of SIGTERM, whose flag is lowered then; the loop's status is 0 if it ended between two
-- batches.
local function was_interrupted(status)
  if status ~= C.FLOW_INTERRUPTED and (status ~= 0 or not (native.interrupted() or native.preempted())) then return false end
  native.clear_interrupt()
  return true
end

-- The observer of a pass of training or testing (batch_watch.lua). run: of training, whose position it updates.
local function watch_pass(model, pass, what, list, bar, count, stops, run)
  local function logs() return training.results(model, what) end
  local function stop() return stops() and workers.request_stop(model, pass.step or pass.feed.step) end
  return executions.watch { model = model, what = what, list = list, bar = bar, count = count, stops = stops, stop = stop, run = run,
                            logs = logs, shown = logs }
end

-- Counts batches that were started; whether they succeeded is known when the device has finished them (settle).
local function note_done(run, start, done)
  if run then run.batch, run.pending = start + done, done end
end

-- Counts batches that have succeeded, in the model; from here on the run's position needs no `pending`.
local function settle(model, what, run, done)
  steps.count(model, what, done)
  if run then run.pending = 0 end
end

-- run_batches of a data set.
local function run_feed(model, pass, what, list, bar, number, stops, run)
  local start = run and run.batch or 0
  local feed, count = pass.feed, batch_count(pass, start)
  local watch = watch_pass(model, pass, what, list, bar, count, stops, run)
  local status, done, rows = feed:run(number, count, watch)
  note_done(run, start, done)
  if status == 0 and watch then watch.finish() end
  if not watch then bar:advance(done, rows) end
  local interrupted = was_interrupted(status)
  if status ~= 0 and not interrupted then
    if feed.iterator then feed.iterator:_rethrow() end
    training.fail(model, status, feed.rows)
  end
  if not interrupted then steps.finish(model) end
  settle(model, what, run, done)
  return interrupted, done
end

-- Runs the batches of a pass, or the rest of them. what: "train" or "test"; number: of the first step, for the random ops; stops: whether a
-- stop is requested; run: of training, nil of testing. Returns whether it was interrupted, and how many batches ran; other failures are
-- raised.
local function run_batches(model, pass, what, list, bar, number, stops, run)
  if run and fit_servers.of(model) then return fit_servers.lead(model, pass, list, bar, number, stops, run) end
  if pass.feed then return run_feed(model, pass, what, list, bar, number, stops, run) end
  local start = run and run.batch or 0
  local source, count = pass.source, batch_count(pass, start)
  local watch = watch_pass(model, pass, what, list, bar, count, stops, run)
  local before = source.position
  local step = steps.renew(pass, model)
  local status, done = batches.run(source, step, training.seed(model), number, count, watch)
  note_done(run, start, done)
  if not watch then bar:advance(done, math.min(source.position * source.size, source.rows) - before * source.size) end
  local interrupted = was_interrupted(status)
  if status ~= 0 and not interrupted then training.fail(model, status, source.position * source.size, source.order) end
  if not interrupted then steps.finish(model) end
  settle(model, what, run, done)
  return interrupted, done
end

local function never() return false end

-- One pass of test steps; results land in the model's metrics. Returns whether it was interrupted, and the results.
local function test_pass(model, pass, list, bar)
  if pass.feed then pass.feed:restart() else pass.source.position = 0 end
  training.reset(model)
  list:call("on_test_begin", {})
  local interrupted, done = run_batches(model, pass, "test", list, bar, steps.number(model, "test"), never)
  if pass.feed then pass.feed:close() end
  local results = done > 0 and training.results(model, "test") or {}      -- without batches there is no loss, not one of 0
  list:call("on_test_end", results)
  return interrupted, results
end

-- Keras' text.
local function warn_of_end()
  log.warning("Your input ran out of data; interrupting training. Make sure that your data can generate at least " ..
    "`steps_per_epoch * epochs` batches.")
end

-- Goes to the first batch of an epoch: with steps_per_epoch to the one after the last of the epoch before, as in Keras. Returns whether it
-- is the first one of the data; nothing of arrays.
local function begin_epoch(pass)
  local source = pass.source
  if pass.feed then return pass.feed:begin_epoch() end
  if not pass.limit or source.position == batches.count(source) then batches.restart(source) end
  if pass.limit and batch_count(pass, 0) < pass.limit then warn_of_end() end
end

-- Opens the data of an epoch and notes where it begins. If workers may be lost, a failure here makes the pass begin again in the same
-- order.
local function open_epoch(run)
  local recovers = run.recovery
  if recovers then
    fit_position.hold_pass(run, function()
      run.fresh = begin_epoch(run.train)
      recovers:mark_epoch()
    end)
  else
    run.fresh = begin_epoch(run.train)
  end
  run.begun = true
  fit_position.set_origin(run)
end

-- Called on all workers when one of them is about to end: callbacks that save do so, and the worker leaves. Raises on all.
local function make_way(model, run)
  run.list:call("_before_end", run)
  workers.part(model, "fit, after batch %d of epoch %d", run.batch, run.epoch + 1)
end

-- One epoch of training, or the rest of it. Returns how many batches it has, whether it was interrupted, and whether on this worker.
local function train_epoch(model, run, bar)
  local pass, start = run.train, run.batch
  if start == 0 and not run.begun then open_epoch(run) end
  bar:skip(start)
  local function stops() return model.stop_training end
  local interrupted, done = false, 0
  -- A backup of the data's last execution, of which steps_per_execution made less than a whole one, was saved after the data had ended.
  local over = start > 0 and pass.feed and pass.feed.ended
  if not run.stopped and not run.trained and not over then
    local function go() return run_batches(model, pass, "train", run.list, bar, steps.number(model, "train"), stops, run) end
    interrupted, done = go()
    -- The epoch before took the last batches, which no one could know before this one asked for another.
    if start + done == 0 and pass.feed and pass.feed.ended and not run.fresh and not interrupted and not fit_servers.of(model) then
      open_epoch(run)
      interrupted, done = go()
    end
  end
  if pass.feed and pass.limit and start + done < pass.limit and pass.feed:is_over() then warn_of_end() end
  -- Workers agree here, at the same batch: one that left alone would keep the others waiting in their next sum.
  local stop, some_interrupted, some_preempted = workers.any(model, model.stop_training, interrupted, native.preempted())
  if some_preempted then make_way(model, run) end
  run.trained = true
  if stop and not model.stop_training then log.info("fit: another worker asked to stop") end
  if stop or some_interrupted then rawset(model, "stop_training", true) end
  return start + done, some_interrupted, interrupted
end

-- The validation after an epoch: adds its results to `logs` as val_NAME, unless an interrupt cut it short. bar: one that shows nothing.
-- Returns whether it was interrupted, and whether on this worker.
local function validate(model, run, test, list, bar, logs)
  local interrupted, here, results
  local function pass()
    local preempted
    here, results = test_pass(model, test, list, bar)
    interrupted, preempted = workers.any(model, here, native.preempted())
    if preempted then make_way(model, run) end
  end
  fit_position.hold_pass(run, run.recovery and run.recovery:hold(pass) or pass)
  if interrupted then rawset(model, "stop_training", true) end
  for key, value in pairs(not interrupted and results or {}) do logs["val_" .. key] = value end
  return interrupted, here
end

-- Runs an epoch, or the rest of it, with its validation and hooks. shown: what the run shows, { verbose =, target = batches of an epoch as
-- far as it is known, history = }. Returns whether another one follows.
local function run_epoch(model, run, options, shown)
  local list, test = run.list, run.test
  local epoch = run.epoch
  if epoch >= options.epochs or run.stopped and run.batch == 0 then return false end
  if run.batch == 0 and not run.trained then training.reset(model) end
  if not run.hooked then
    list:call("on_epoch_begin", epoch, {})
    if run.begun then      -- of a backup: what these hooks do was done when the epoch began
      list:call("_resume", run)
      rawset(model, "stop_training", run.stopped)
      if run.recovery then run.recovery:mark_epoch() end
    end
    run.hooked = true
  end
  if shown.verbose > 0 and options.epochs > 1 then log.print("%s", ("Epoch %d/%d\n"):format(epoch + 1, options.epochs)) end
  local bar = progress.new(shown.verbose, shown.target)
  local done, interrupted, here = train_epoch(model, run, bar)
  shown.target = shown.target or done
  -- validation counts with the same means, so these are read before it
  run.results = run.results or done > 0 and training.results(model, "train") or {}
  local logs = {}
  for key, value in pairs(run.results) do logs[key] = value end
  if test and validation_epochs.has(options.validation_freq, epoch) and not interrupted then
    interrupted, here = validate(model, run, test, list, progress.new(0), logs)
  end
  run.logs = {}      -- for on_train_end: without what callbacks add
  for key, value in pairs(logs) do run.logs[key] = value end
  list:call("on_epoch_end", epoch, logs)      -- the bar comes last: callbacks may add to the logs
  run.epoch, run.batch, run.interrupted = epoch + 1, 0, interrupted
  run.hooked, run.begun, run.trained, run.results = false, false, false, false
  fit_position.set_origin(run)
  if not interrupted then list:call("_after_epoch", run) end      -- a backup, of which the run says that the epoch is over
  bar:finish(logs)
  if interrupted then
    shown.history.interrupted = true
    native.note_cut()
    log.info("fit: %s after batch %d of the epoch; what was learnt and the History are kept", here and "interrupted"
      or "another worker was interrupted", done)
  end
  local stop, preempted = workers.any(model, model.stop_training, native.preempted())
  if preempted then make_way(model, run) end
  return not stop
end

-- Makes everything that a run needs. Returns a function that runs its epochs and returns the History. recovers: of fit_recovery.lua, or
-- nil.
local function open_fit(model, data, validation, options, recovers)
  local order = options.shuffle and data.rows and tensor.arange(data.rows, { dtype = "int64", device = "cpu" }) or nil
  local train = keep_data(new_pass(model, "train", data, options.batch_size, options.steps_per_epoch, order), model)
  if train.source then train.source.position = batches.count(train.source) end      -- the first epoch starts from the beginning
  if fit_servers.follows(model) then return function() return fit_servers.follow(model, train) end end
  local test = validation and keep_data(new_pass(model, "test", validation, options.validation_batch_size, options.validation_steps), model)
  local target = options.steps_per_epoch or train.source and batches.count(train.source) or train.feed and train.feed:expected()
  if target == math.huge then target = nil end
  local list = callback.list(options.callbacks, model, { epochs = options.epochs, steps = target, verbose = options.verbose })
  local history = list:find(History) or list:add(History())
  if live_status.is_shown() then list:add(require("flow.train.status_report")()) end
  local shown = { target = target, history = history }
  shown.verbose = list:has("_draws_bar") and 0 or options.verbose      -- which draws the bar itself
  rawset(model, "history", history)
  rawset(model, "stop_training", false)

  local run = fit_position.new(model, train, test, list, options.initial_epoch)
  list:call("on_train_begin", {})
  list:call("_resume", run)
  together.begin(run, options)
  local function go_on() return run_epoch(model, run, options, shown) end
  return function()
    run.recovery = recovers
    if recovers and recovers:enter(run, history) then
      log.info("fit: the other workers ended this fit before this one came back: it is skipped here")
      return history
    end
    repeat
      local more
      if recovers then more = recovers:run_epoch(go_on) else more = go_on() end
    until not more
    if train.feed then train.feed:close() end
    if recovers then recovers:leave(history) end
    fit_servers.finish(model, history)
    for _, optimizer in ipairs(history.interrupted and {} or model:_optimizers()) do
      optimizer:finalize_variable_values(model.trainable_variables)
    end
    list:call("on_train_end", run.logs)
    list:call("_after_train", run)
    return history
  end
end

---- the calls -------------------------------------------------------------------------------------------------------------------------

Model.fields.stop_training = function() return false end
Model.settable.stop_training = true

-- model:fit(x, y, { epochs = 3, ... }) -> History.
takes_named(FIT, is_data)
function Model:fit(options)
  check_call("fit", options)
  training.compiled(self, "fit")
  local recovers = fit_recovery.begin(self, options.x, options.validation_data)
  local function open()
    ownership.adopt(self, "fit")
    together.random(self)
    local data, validation, how = fit_data.read_fit(self, options)
    return native.defer_interrupts(open_fit, self, data, validation, how, recovers)
  end
  return native.defer_interrupts(recovers and recovers:open(open) or open())
end

-- model:evaluate(x, y, { ... }) -> { loss =, accuracy = }, or { loss, accuracy } with return_dict = false
takes_named(EVALUATE, is_data)
function Model:evaluate(options)
  check_call("evaluate", options)
  local x, y = options.x, options.y
  training.compiled(self, "evaluate")
  ownership.say_apart(self, "evaluate")
  training.check_sample_weight(options.sample_weight)
  local size, limit = options.batch_size or 32, options.steps
  local verbose = progress.verbosity(options.verbose)
  local function evaluate()
    local data = Feed.is(x) and fit_data.read_feed(self, "test", "evaluate", x, y, options, limit) or
      fit_data.read(self, "evaluate", x, y, options.sample_weight)
    local pass = new_pass(self, "test", data, size, limit)
    local count = batch_count(pass, 0)
    if count == math.huge then count = nil end
    local list = callback.list(options.callbacks, self, { steps = count, verbose = verbose })
    local bar = progress.new(list:has("_draws_bar") and 0 or verbose, count)
    local interrupted, results = test_pass(self, pass, list, bar)
    workers.check_stop(self, pass.step or pass.feed.step, "evaluate")
    if interrupted then native.raise_interrupted("evaluate: interrupted") end
    bar:finish(results)
    return results
  end
  return training.asked(self, native.defer_interrupts(fit_recovery.whole, self, x, evaluate), options.return_dict)
end

-- The observer of predict; hooks get the outputs of an execution.
local function watch_predict(model, list, bar, count, made)
  local function logs() return { outputs = made:take() } end
  return executions.watch { model = model, what = "predict", list = list, bar = bar, count = count, logs = logs }
end

-- The outputs for arrays: the rows of each batch are views, and the plan is told the position of the first one, since a prediction that
-- draws random numbers draws them for each row of the data. After the first execution the library runs several batches at a time, if it
-- can. Returns what predict returns.
local function run_predict(self, data, size, limit, list, bar)
  local arrays, layout = flat(data)
  local pass = { step = false, kind = "predict", arrays = arrays, layout = layout, capacity = math.min(size, data.rows) }
  local count = math.min(limit or math.huge, math.ceil(data.rows / size))
  local made = predictions.new(self, math.min(data.rows, count * size), list:has("on_predict_batch_end"))
  list:call("on_predict_begin", {})
  local watch, number = watch_predict(self, list, bar, count, made), steps.number(self, "predict")
  for batch = 0, count - 1 do
    local first = batch * size
    local n = math.min(size, data.rows - first)
    local rest = { step = pass.step, number = number, arrays = arrays, size = size, batch = batch, count = count, watch = watch }
    if batch > 0 and batch % executions.size(self) == 0 and made:run_rest(rest) then
      if not watch then bar:advance(count - batch, data.rows - first) end
      break
    end
    local views = {}
    for i, array in ipairs(arrays) do views[i] = view_rows(array, first, n) end
    local step = steps.renew(pass, self)
    if step.eager then
      step.eager(views, made.outputs)
    else
      C.flow_instance_scalars(step.instance, training.seed(self), number, first)
      local pointers, inputs = native.pointers(views)
      native.check(C.flow_instance_run(context, step.instance, pointers, inputs, made.outputs))
    end
    workers.check_stop(self, step, "predict")
    made:add(n)
    if watch then watch.after(batch, n) else bar:advance(1, n) end
  end
  steps.count(self, "predict", pass.step and pass.step.eager and count or 1)      -- one that was traced counts rows from the first
  return made:results()
end

-- The same for a Dataset, whose number of rows is not known.
local function predict_feed(self, feed, list, bar)
  local made, count, batch = predictions.new(self, nil, list:has("on_predict_batch_end")), feed:expected() or math.huge, 0
  list:call("on_predict_begin", {})
  local watch = watch_predict(self, list, bar, count, made)
  local function collect(rows)
    made:add(rows)
    if watch then watch.after(batch, rows) else bar:advance(1, rows) end
    batch = batch + 1
  end
  feed:restart()
  local status = feed:run(steps.number(self, "predict"), count, nil, made.outputs, collect)
  if status ~= 0 and feed.iterator then feed.iterator:_rethrow() end
  native.check(status)
  steps.count(self, "predict", batch)
  workers.check_stop(self, feed.step, "predict")
  if watch then watch.finish() end
  feed:close()
  if batch == 0 then raise("predict: the dataset has no batches") end
  return made:results()
end

-- model:predict(x, { batch_size = 32 }) -> a tensor, or a list of them for several outputs.
takes_named(PREDICT, is_data)
function Model:predict(options)
  check_call("predict", options)
  local x = options.x
  training.prepare(self)
  ownership.say_apart(self, "predict")
  local size, limit = options.batch_size or 32, options.steps
  local verbose = progress.verbosity(options.verbose)
  return fit_recovery.whole(self, x, function()
    local feed = Feed.is(x) and fit_data.read_feed(self, "predict", "predict", x, nil, options, limit).feed
    local data = not feed and fit_data.read(self, "predict", x)
    local target = feed and feed:expected() or data and math.min(limit or math.huge, math.ceil(data.rows / size))
    if target == math.huge then target = nil end
    local list = callback.list(options.callbacks, self, { steps = target, verbose = verbose })
    local bar = progress.new(list:has("_draws_bar") and 0 or verbose, target)
    local results
    if feed then results = predict_feed(self, feed, list, bar)
    else results = run_predict(self, data, size, limit, list, bar) end
    list:call("on_predict_end", {})
    bar:finish()
    return results
  end)
end
