-- coordinator.lua: ClusterCoordinator: functions that the workers of a ParameterServerStrategy run, each when it has nothing to do.
--
--   local coordinator = flow.distribute.ClusterCoordinator(strategy)
--   local data = coordinator:create_per_worker_dataset(function() return dataset end)
--   local iterator = data:iter()
--   for i = 1, 100 do coordinator:schedule(train_step, { iterator }) end
--   coordinator:join()
--
-- No code travels: all tasks run the same script and come to the same calls. The chief's schedule tells ps:0 the number of the function, in
-- the order in which functions were first scheduled, and its arguments; the other workers only note the function. In join and fetch all
-- compute what was scheduled, the chief too, and go on together. An iterator of create_per_worker_dataset is each worker's own; for a
-- flow.fn it stands for the values of its next element.

local debug = require("flow.host").debug
local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local signature = require "flow.signature"
local fn = require "flow.tensor.fn"
local placement = require "flow.tensor.placement"
local crew = require "flow.distribute.servers.crew"

local raise = errors.raise
local takes = signature.takes
local coordinators = signature.module "flow.distribute"
local WHAT, PER_WORKER = "ClusterCoordinator", "flow.per_worker"

local Coordinator = object.class(WHAT)
local RemoteValue = object.class "RemoteValue"
local PerWorker = object.class "PerWorkerDataset"
local PerWorkerIterator = object.class "PerWorkerIterator"

---- data ----------------------------------------------------------------------------------------------------------------------------------

-- Each worker's own data set, of a function that makes it, or of a Dataset, which is not divided. element_spec is the Dataset's.
takes "dataset_fn"
function Coordinator:create_per_worker_dataset(dataset_fn)
  local dataset = dataset_fn
  if fn.is(dataset_fn) then dataset_fn = dataset_fn.f end      -- as TensorFlow's, which is a tf.function
  if type(dataset_fn) == "function" then dataset = placement.within(self.strategy._placement, dataset_fn) end
  if type(dataset) ~= "table" or not dataset.iter then
    raise("%s: create_per_worker_dataset takes a function that returns a Dataset, or a Dataset, got %s", WHAT, errors.describe(dataset))
  end
  return object.new(PerWorker, { _dataset = dataset, _coordinator = self, element_spec = dataset.element_spec })
end

-- An iterator of each worker, to be scheduled with.
function PerWorker:iter()
  local list = self._coordinator._iterators
  local made = object.new(PerWorkerIterator, { _number = #list + 1, _iterator = self._dataset:iter() })
  list[#list + 1] = made
  return made
end

-- The next values of this worker's, and how many these are.
function PerWorkerIterator:_count()
  local waiting = rawget(self, "_waiting") or { self._iterator:next() }
  rawset(self, "_waiting", waiting)
  return #waiting
end
function PerWorkerIterator:next()
  local waiting = rawget(self, "_waiting")
  rawset(self, "_waiting", nil)
  if waiting then return unpack(waiting) end
  return self._iterator:next()
end
PerWorkerIterator._call = PerWorkerIterator.next

-- What travels in place of an argument.
local function outgoing(value)
  if object.is(value, PerWorkerIterator) then return { [PER_WORKER] = value._number } end
  if object.is(value, RemoteValue) then raise("schedule: an argument is a RemoteValue: give what coordinator:fetch(value) returns") end
  if type(value) ~= "table" or getmetatable(value) then return value end
  local copy = {}
  for key, entry in pairs(value) do copy[key] = outgoing(entry) end
  return copy
end

-- An argument as a worker gets it: in place of what stands for a per-worker iterator, this worker's own. Tables of plain values are changed
-- in place, since they came out of a message.
local function incoming(self, value)
  if type(value) ~= "table" or getmetatable(value) then return value end
  if value[PER_WORKER] then
    return self._iterators[value[PER_WORKER]] or raise("this worker has no per-worker iterator %g: do all tasks run the same script?",
      value[PER_WORKER])
  end
  for key, entry in pairs(value) do value[key] = incoming(self, entry) end
  return value
end

---- running -----------------------------------------------------------------------------------------------------------------------------

-- Whether a flow.fn takes iterators themselves, as TensorFlow's step functions do: it has no parameters for all of their values.
local function takes_iterators(f, list, count)
  local own, n, any = debug.getinfo(f.f, "u"), 0, false
  for i = 1, own.isvararg and 0 or count do
    local is_iterator = object.is(list[i], PerWorkerIterator)
    n, any = n + (is_iterator and list[i]:_count() or 1), any or is_iterator
  end
  return any and n > own.nparams
end

-- Arguments of a flow.fn: an iterator gives its next values.
local function spread(list, count)
  local values, n = {}, 0
  for i = 1, count do
    if object.is(list[i], PerWorkerIterator) then
      local next_values = { list[i]:next() }
      if #next_values == 0 then raise("the data of create_per_worker_dataset has ended: repeat_() it") end
      for k, value in ipairs(next_values) do values[n + k] = value end
      n = n + #next_values
    else
      n = n + 1
      values[n] = list[i]
    end
  end
  return values, n
end

-- What a flow.fn has failed with. If iterators were among its arguments and it has never run, it may be written to take their elements by
-- itself, as TensorFlow's step functions do.
local function explained(self, f, arguments, count, problem)
  if not fn.is(f) or self._has_run[f] then return problem end
  for i = 1, count do
    if object.is(arguments[i], PerWorkerIterator) then
      return problem .. " (a flow.fn gets the values of the iterator's next element in its place, function(x, y); a function without "
        .. "flow.fn gets the iterator)"
    end
  end
  return problem
end

-- Computes what an item says. Errors of the function are the chief's to raise.
local function run(self, order)
  local f = self._functions[order.f] or raise("%s: function %d is not known here: do all tasks run the same script?", WHAT, order.f)
  local results, arguments
  local ok, problem = pcall(function()
    arguments = incoming(self, order.arguments)
    local list, n = arguments, order.count
    local called = f
    if fn.is(f) and takes_iterators(f, list, n) then called = f.f      -- what it gives to strategy:run is traced
    elseif fn.is(f) then list, n = spread(list, n) end
    results = { placement.within(self.strategy._placement, called, unpack(list, 1, n)) }
  end)
  if not ok then
    if native.interrupted() or native.preempted() then error(problem, 0) end
    return { failed = explained(self, f, arguments or {}, order.count, tostring(problem)) }
  end
  self._has_run[f] = true
  local text, pieces = crew.encode(results, "what a scheduled function returned")
  return { result = text, pieces = pieces }
end

local function job_of(self)
  return { scope = "coordinator", phase = self._phase, knows = #self._functions, run = function(_, order) return run(self, order) end,
           read = function(said, bytes, count) return crew.decode(said.text, bytes, count, WHAT) end }
end

-- Raises what a function has failed with, if one has, which ends what was scheduled.
local function check_failure(said)
  if not said.failed then return end
  raise("%s: a scheduled function has failed: %s", WHAT, said.failed)
end

local function open_phase(self)
  local said = self._store.links:ask(1, { is = "open", scope = "coordinator", count = 0, settles = true })
  rawset(self, "_phase", said.phase)
  rawset(self, "_published", false)
end

-- The number of a function, from 1, in the order in which the script schedules them: that of all tasks, since all run the same script.
local function number_of(self, f)
  if not self._numbers[f] then
    self._functions[#self._functions + 1] = f
    self._numbers[f] = #self._functions
  end
  return self._numbers[f]
end

-- Has f(unpack(args)) run by whichever worker is free; returns a RemoteValue at once. Workers that are lost leave their work to others, so
-- that f may run more than once. Raises what a function that was scheduled before has failed with.
takes "f, args?"
function Coordinator:schedule(f, args)
  signature.check_callable("schedule", f)
  if args ~= nil and (type(args) ~= "table" or getmetatable(args)) then
    raise("schedule: args is a list such as { iterator }, got %s", errors.describe(args))
  end
  local number, count = number_of(self, f), table.maxn(args or {})
  local value = object.new(RemoteValue, { _coordinator = self, _phase = self._phase, _item = self._scheduled })
  rawset(self, "_scheduled", self._scheduled + 1)
  if not self._store.is_chief then return value end
  if not self._published then
    self._store:publish()
    rawset(self, "_published", true)
  end
  local text, pieces = crew.encode({ f = number, arguments = outgoing(args or {}), count = count }, "the arguments of schedule")
  local said = self._store.links:ask(1, { is = "add", scope = "coordinator", item = text, needs = number }, pieces)
  if said.failed then self:_end_phase() end
  check_failure(said)
  rawset(value, "_item", said.item)
  return value
end

function Coordinator:_end_phase()
  self._store:take_what_is_left(self._phase)
  rawset(self, "_scheduled", 0)
  if self._store.is_chief then open_phase(self) else rawset(self, "_phase", self._phase + 1) end
end

-- Computes what was scheduled with the others until all of it is done; then all have the same variables. Raises what a function has failed
-- with, on the chief; what was scheduled after it is left out.
function Coordinator:join()
  local said = crew.work(self._store, job_of(self))
  self:_end_phase()
  if self._store.is_chief then check_failure(said) end
end

-- Whether all that was scheduled is done. A worker that is not the chief computes what there is to do, after which it is: what the chief
-- has scheduled since then its script has not come to.
function Coordinator:done()
  if not self._store.is_chief then
    local job = job_of(self)
    job.returns = true
    crew.work(self._store, job)
    return true
  end
  local said = self._store.links:ask(1, { is = "status", scope = "coordinator", phase = self._phase })
  if said.failed then
    self:_end_phase()
    check_failure(said)
  end
  return said.done
end

-- What a scheduled function has returned, as soon as it is there.
local function get(value)
  local self = value._coordinator
  local asked = { is = "result", scope = "coordinator", phase = value._phase, item = value._item,
                  knows = #self._functions }
  local said, bytes, count = self._store.links:ask(1, asked)
  while not (said.result or said.failed) do      -- there is work, which may be this
    local job = job_of(self)
    job.returns = true
    crew.work(self._store, job)
    said, bytes, count = self._store.links:ask(1, asked)
  end
  check_failure(said)
  local results = crew.decode(said.result, bytes, count, "the result of a scheduled function")
  return unpack(results, 1, table.maxn(results))
end

-- The value, or a table of values, with what RemoteValues in it hold in their places; waits for these.
function Coordinator:fetch(value)
  if object.is(value, RemoteValue) then return get(value) end
  if type(value) ~= "table" or getmetatable(value) then return value end
  local copy = {}
  for key, entry in pairs(value) do copy[key] = self:fetch(entry) end
  return copy
end

function RemoteValue:fetch() return get(self) end
function RemoteValue:get() return get(self) end

-- ClusterCoordinator(strategy): one for a strategy, the same each time.
takes "strategy"
function coordinators.ClusterCoordinator(strategy)
  local store = type(strategy) == "table" and rawget(strategy, "_store")
  if not store then
    raise("%s takes a ParameterServerStrategy whose cluster this process is a chief or worker of, got %s", WHAT, errors.describe(strategy))
  end
  if rawget(strategy, "_coordinator") then return strategy._coordinator end
  local self = object.new(Coordinator, { strategy = strategy, _store = store, _functions = {}, _numbers = {}, _has_run = {},
                                         _iterators = {}, _phase = 1, _scheduled = 0, _published = false })
  if store.is_chief then open_phase(self) end
  if self._phase > 1 then
    raise("%s: the chief was started again, and what it had scheduled is lost: start the job again, from its last checkpoint", WHAT)
  end
  rawset(strategy, "_coordinator", self)
  return self
end

return coordinators
