-- fit_servers.lua: fit under ParameterServerStrategy. The chief opens each epoch, whose items are the numbers of its batches, and ps:0
-- hands them out (distribute/servers/work.lua); all workers, the chief too, compute the gradients of those that they get. All use the
-- chief's order of the data, so that an epoch has each batch once, also if workers join or leave. The chief runs callbacks, progress bars
-- and validation.
--
-- state is of one epoch: number, of its first step; at, the batch at which this process's data set stands; position, that of the data when
-- the epoch began, to go back to.

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local log = require "flow.log"
local batches = require "flow.train.batches"
local training = require "flow.train.compile"
local steps = require "flow.train.steps"
local tensor = require "flow.tensor"
local History = require "flow.train.history"
local hook_of = require("flow.train.callback").hook_of
local codec = require "flow.state_codec"
local crew = require "flow.distribute.servers.crew"

local raise = errors.raise
local WHAT = "ParameterServerStrategy"
local fit_servers = {}

local BATCH_HOOKS = { "on_train_batch_begin", "on_train_batch_end" }

-- The store of variables (distribute/servers/variables.lua) of the model's strategy, or nil.
function fit_servers.of(model)
  local p = model._placement
  return p and rawget(p, "servers") or nil
end

-- Whether this process takes part in a fit that the chief leads, or is a chief that was started again after the fit.
function fit_servers.follows(model)
  local store = fit_servers.of(model)
  if not store or not store.is_chief then return store ~= nil end
  return store:surely(function() return store.links:ask(1, { is = "is_closed", scope = "fit " .. store.fits + 1 }).closed end)
end

-- Fits are counted: the same number means the same call of the script in all tasks.
local function next_scope(store)
  store.fits = store.fits + 1
  return "fit " .. store.fits
end

-- All variables that a training step writes, in the same order in all tasks.
local function register(model, store)
  store:register(model.variables)
  for _, metric in ipairs(model.metrics) do store:register(metric.variables) end
  store:define()
end

local function none(t) error(("a tensor in what followers learn: %s"):format(tostring(t)), 0) end

---- one batch ----------------------------------------------------------------------------------------------------------------------------

-- The position of this process's pass in the epoch: the number of the next batch of its data.
local function go_to(pass, state, item)
  if pass.source then
    pass.source.position = item
    return
  end
  if item < state.at then                    -- the worker that had it was lost
    pass.feed:set_state(state.position)
    state.at = 0
  end
  if item > state.at then pass.feed.iterator:skip(item - state.at) end
  state.at = item
end

-- Computes batch `item`. Returns how many rows it has, 0: the data has no such batch.
local function run_item(model, pass, state, item)
  go_to(pass, state, item)
  local number = state.number + item
  local status, done, rows
  if pass.feed then
    status, done, rows = pass.feed:run(number, 1)
    if status ~= 0 then training.fail(model, status, pass.feed.rows) end
    state.at = state.at + done
    pass.feed.ended = false
  else
    local source = pass.source
    if item >= batches.count(source) then return 0 end
    status, done = batches.run(source, steps.renew(pass, model), training.seed(model), number, 1)
    if status ~= 0 then training.fail(model, status, source.position * source.size, source.order) end
    rows = math.min(source.position * source.size, source.rows) - item * source.size
  end
  steps.finish(model)
  return done > 0 and rows or 0
end

---- the chief -----------------------------------------------------------------------------------------------------------------------------

-- What the others need to read the same batches.
local function describe_epoch(model, pass, run, state)
  local info = { epoch = run.epoch, seed = training.seed(model), number = state.number, position = state.position }
  local order = pass.source and pass.source.order
  local pieces = order and { n = 1, at = native.array("const void *", 1), bytes = native.array("int64_t", 1) }
  -- The order stays where it is until the epoch is over: pieces point into it.
  if pieces then pieces.at[0], pieces.bytes[0] = native.data(order), 8 * pass.source.rows end
  return codec.encode(info, none), pieces
end

-- As in Keras, callbacks cannot observe batches: workers do not run the same batch at the same time.
local function check_callback(member)
  local asks
  for _, option in ipairs { "save_freq", "update_freq" } do
    local every = rawget(member, option)
    if every and every ~= "epoch" then asks = option end
  end
  for _, hook in ipairs(BATCH_HOOKS) do      -- the library's own look at batches where the options say so; a LambdaCallback has its hooks
    local own = rawget(member, hook) or not member._is_stock and hook_of(member, hook)
    asks = asks or own and hook
  end
  if asks then
    raise("%s: fit: callbacks with hooks of batches are not supported (%s of %s): workers do not run the same batch at the same time",
      WHAT, asks, object.title(member))
  end
end

-- Runs the batches of an epoch on all workers; like run_batches of fit.lua.
function fit_servers.lead(model, pass, list, bar, number, stops, run)
  local store = fit_servers.of(model)
  for _, member in ipairs(list.members) do check_callback(member) end
  if run.batch > 0 then raise("%s: fit: a backup of the middle of an epoch cannot be continued here: save at epochs", WHAT) end
  local state = { number = number, at = 0, position = pass.feed and pass.feed:state(true) or nil }
  local count = pass.limit or pass.feed and pass.feed:expected() or pass.source and batches.count(pass.source) or math.huge
  if count == math.huge then count = -1 end
  store:surely(function() register(model, store) end)
  rawset(run, "scope", rawget(run, "scope") or next_scope(store))      -- of the whole fit: all of its epochs have it
  store:publish(model:_optimizers())
  local info, pieces = describe_epoch(model, pass, run, state)
  local function open(after)
    if pieces then store.links:ask(1, { is = "expect", bytes = tonumber(pieces.bytes[0]) }) end
    return store.links:ask(1, { is = "open", scope = run.scope, count = count, info = info, after = after }, pieces).phase
  end
  local function again(phase)      -- it is unknown which batches were done: the epoch begins again
    log.warning("%s: ps:0 has lost its list of batches: epoch %d begins again, with the weights as they are", WHAT, run.epoch + 1)
    training.reset(model)
    store:publish()
    return open(phase)
  end
  local interrupted, done = false, 0
  local last = crew.work(store, { scope = run.scope, phase = store:surely(open), again = again, run = function(item)
    local rows = run_item(model, pass, state, item)
    if rows > 0 then bar:advance(1, rows) end
    return { ended = rows == 0 or nil }
  end })
  done = last.finished or done
  if done > bar.done then bar:advance(done - bar.done) end      -- those of other workers
  store:surely(function() store:pull() end)
  if store:survives() then store:fetch() end
  if pass.feed then
    pass.feed.ended = count < 0 or done < count or not pass.limit
    if not pass.feed.ended and done > state.at then pass.feed.iterator:skip(done - state.at) end
  end
  rawset(model, "_train_steps", model._train_steps + done)
  run.batch = 0
  return interrupted, done
end

-- Called at the end of the chief's fit.
function fit_servers.finish(model, history)
  local store = fit_servers.of(model)
  if not store then return end
  local message = { is = "close", scope = "fit " .. store.fits,
                    result = codec.encode({ history = history.history, epoch = history.epoch }, none) }
  table.insert(store.closed, message)
  store:surely(function() store.links:ask(1, message) end)
end

---- the others ----------------------------------------------------------------------------------------------------------------------------

-- Goes to the chief's position in the data when an epoch begins; returns the state of the epoch. bytes, count: the chief's order of the
-- rows, int64, and its length in bytes; nothing of a data set.
local function begin_epoch(model, pass, info, bytes, count)
  rawset(model, "_seed", info.seed)
  if pass.feed then
    pass.feed:set_state(info.position)
  elseif pass.source.order then
    if count ~= 8 * pass.source.rows then
      raise("%s: fit: this process has %d samples, the chief %d: do all tasks read the same data?", WHAT, pass.source.rows, count / 8)
    end
    local order = tensor.zeros({ pass.source.rows }, { dtype = "int64", device = "cpu" })
    native.copy(native.data(order), bytes, count)
    batches.reorder(pass.source, order)
  end
  return { number = info.number, at = 0, position = info.position }
end

-- The fit of a worker: computes what the chief hands out, and returns its History.
function fit_servers.follow(model, pass)
  local store, history, state = fit_servers.of(model), History(), nil
  store:surely(function() register(model, store) end)
  if store.is_chief then log.info("fit: it was over before this process was started again")
  else log.info("fit: this worker computes what the chief hands out; bars, callbacks and validation are the chief's") end
  local function again(phase) return phase end      -- which the chief opens again
  local last = crew.work(store, { scope = next_scope(store), phase = 0, again = again, begin = function(said, bytes, count)
    state = begin_epoch(model, pass, codec.decode(said.info, none), bytes, count)
  end, run = function(item) return { ended = run_item(model, pass, state, item) == 0 or nil } end })
  if pass.feed then pass.feed:close() end
  store:surely(function() store:take_what_is_left() end)
  local told = codec.decode(last.closed, none)
  rawset(history, "history", told.history)
  rawset(history, "epoch", told.epoch)
  rawset(history, "model", model)
  rawset(model, "history", history)
  return history
end

return fit_servers
