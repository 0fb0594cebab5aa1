-- dataset.lua: data sets whose batches are split over replicas.
--
--   local dist = strategy:experimental_distribute_dataset(ds)          ds gives batches of the global size
--   for x, y in dist:iter() do strategy:run(step, { x, y }) end        x and y are PerReplica, plain tensors with one local replica
--
-- A batch of n rows becomes N parts of ceil(n / N) rows, one after the other, for the N replicas of all workers; the last parts may be
-- shorter or empty. Two ways lead to it:
--   shared   every worker computes the whole batch and takes its parts. auto_shard_policy DATA; AUTO where there are no files, or too few
--   own      every worker reads its own data, in batches of the size of its parts. FILE, HINT, and OFF, where all have all data
-- A pass ends on all workers together, when none has data left; until then who has none gets batches of no rows.

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local signature = require "flow.signature"
local log = require "flow.log"
local data = require "flow.data"
local PlainIterator = require "flow.data.iterator"
local tensor = require "flow.tensor"
local rows_of = require "flow.tensor.rows"
local values = require "flow.distribute.values"
local replica = require "flow.distribute.replica"
local shards = require "flow.shards"

local C, check, raise = native.C, native.check, errors.raise
local datasets = {}

local Distributed = object.class("DistributedDataset")
local Iterator = object.class("DistributedIterator")
local POLICY = data.AutoShardPolicy

---- which data a worker reads ----------------------------------------------------------------------------------------------------

-- Rows of a batch of the data set, by the stage that made batches or by looking at the first one.
local function batch_rows(what, dataset)
  local rows = C.flow_dataset_batch_rows(dataset._handle)
  if rows > 0 then return rows end
  local first = data.first(dataset)
  if first == nil then raise("%s: the data set is empty", what) end
  return native.is_tensor(first[1]) and first[1].shape[1] or #first[1]
end

-- Raises unless it is a Dataset whose components all have a first axis, which is divided; returns it.
local function need_batches(what, dataset)
  if not data.is(dataset) then raise("%s: expected a Dataset, got %s", what, errors.describe(dataset)) end
  for i, spec in ipairs(dataset._specs) do
    if #spec.shape == 0 then
      raise("%s: component %d of the data set has no rows to split over replicas: call batch() with the global batch size first", what, i)
    end
  end
  return dataset
end

-- The sizes, in turn, of this worker's part of global batches of `global` rows: of every step's total the first replicas have a row
-- more where it does not divide, and which those are goes around (tf.data's rebatching). A worker takes one row at least: a step in which
-- nobody has rows ends the pass, and what a worker had left then would be lost.
local function own_sizes(global, p)
  local sizes, base, more = {}, math.floor(global / p.count), global % p.count
  local further = p.pairwise and shards.least(p.workers) or p.replicas      -- from step to step
  for step = 0, p.count / further - 1 do
    local rows = 0
    for i = 0, p.replicas - 1 do
      local place = (p.first + step * further + i) % p.count
      rows = rows + base + (place < more and 1 or 0)
    end
    sizes[step + 1] = math.max(rows, 1)
  end
  for step = 2, #sizes do
    if sizes[step] ~= sizes[1] then return sizes end
  end
  return { sizes[1] }
end

local out = native.out("flow_dataset")

-- The worker's part of the pipeline by its policy; nil and the reason where FILE finds no file for each worker.
local function shard(dataset, p)
  local status = tonumber(C.flow_dataset_auto_shard(dataset._handle, p.workers, p.worker_index, out))
  if status == C.FLOW_NOT_FOUND then return nil, native.string(C.flow_last_error()) end
  check(status)
  return data.wrap(native.own(out, C.flow_dataset_release), { dataset })
end

-- What a worker has of its own would have to be read by others when it is lost.
local function refuse_own(what)
  raise("%s: workers that may go on with fewer (min_workers) read the same data: use auto_shard_policy DATA, which AUTO is then", what)
end

-- How the workers of a placement read a data set in batches of the global size: "shared" or "own", the data set of this worker, and the
-- rows of a batch, or nil where workers may know different numbers.
function datasets.arrange(what, dataset, p)
  need_batches(what, dataset)
  local policy = C.flow_dataset_auto_shard_policy(dataset._handle)
  local rows = C.flow_dataset_batch_rows(dataset._handle)
  if p.workers == 1 or policy == POLICY.DATA or p.elastic and policy == POLICY.AUTO then return "shared", dataset, rows end
  if p.elastic then refuse_own(what) end
  local own, reason = dataset
  if policy == POLICY.AUTO then
    own, reason = shard(dataset:with_options { auto_shard_policy = "FILE" }, p)
    if not own then
      if p.worker_index == 0 then
        log.info("auto_shard_policy AUTO is DATA here, all workers compute everything and take their part of each batch: %s",
          reason:match(": (.*)$"))
      end
      return "shared", dataset, rows
    end
  elseif policy ~= POLICY.OFF then
    own, reason = shard(dataset, p)
    if not own then raise("%s", reason) end
  end
  return "own", own:rebatch(own_sizes(batch_rows(what, dataset), p)), policy ~= POLICY.OFF and rows or nil
end

---- data sets ------------------------------------------------------------------------------------------------------------------------

-- For fit: whether _dataset gives whole global batches ("shared") or those of this worker ("own").
function Distributed:_feed_mode() return self._mode end
function Distributed.fields.element_spec(self) return self._dataset.element_spec end
function Distributed.fields.class_names(self) return self._dataset.class_names end
-- The number of steps of this worker; -1: infinite, -2: unknown.
function Distributed:cardinality() return self._dataset:cardinality() end

-- Data of fit, evaluate and predict that each worker makes by itself when the call begins, as
-- tf.keras.utils.experimental.DatasetCreator: a function of an input context gives it. input_options, Keras' way of prefetching to
-- devices, are refused: that is the library's own business.
local DatasetCreator = object.class "DatasetCreator"
datasets.DatasetCreator = DatasetCreator

signature.takes "dataset_fn: callable, input_options?"
signature.constructor(DatasetCreator, "flow.utils.DatasetCreator", function(dataset_fn, input_options)
  if input_options ~= nil then raise("flow.utils.DatasetCreator: input_options are not supported: leave them out") end
  return object.new(DatasetCreator, { dataset_fn = dataset_fn })
end)

function datasets.is(value)
  return object.is(value, Distributed) or object.is(value, DatasetCreator)
end

function datasets.distribute(strategy, dataset)
  local mode, own, rows = datasets.arrange("experimental_distribute_dataset", dataset, strategy._placement)
  return object.new(Distributed, { _strategy = strategy, _mode = mode, _dataset = own, _per_replica = false, _rows = rows or false })
end

local InputContext = object.class("InputContext")

-- The batch size of a replica, for a global one.
function InputContext:get_per_replica_batch_size(global)
  local count = self.num_replicas_in_sync
  if type(global) ~= "number" or global < 1 or global ~= math.floor(global) then
    raise("get_per_replica_batch_size: a whole number from 1, got %s", errors.describe(global))
  end
  if global % count ~= 0 then raise("The global batch size %d is not divisible by num_replicas_in_sync, %d", global, count) end
  return global / count
end

-- What a function that makes a worker's data set is given.
function datasets.context(pipelines, id, replicas)
  return object.new(InputContext, { num_input_pipelines = pipelines, input_pipeline_id = id, num_replicas_in_sync = replicas })
end

function datasets.from_function(strategy, dataset_fn)
  local what, p = "distribute_datasets_from_function", strategy._placement
  if p.elastic then refuse_own(what) end
  if type(dataset_fn) ~= "function" then raise("%s takes a function of an input context, got %s", what, errors.describe(dataset_fn)) end
  local dataset = need_batches(what, dataset_fn(datasets.context(p.workers, p.worker_index, p.count)))
  local own = p.replicas > 1 and dataset:rebatch(batch_rows(what, dataset) * p.replicas) or dataset
  return object.new(Distributed, { _strategy = strategy, _mode = "own", _dataset = own, _per_replica = dataset, _rows = false })
end

-- What a creator makes for a call of a model; other data as it is. In batches of a replica's size where the strategy has replicas, whose
-- workers each make their own; the tasks of a ParameterServerStrategy read the same batches, which ps:0 hands out.
function datasets.made(dataset, model, what)
  if not object.is(dataset, DatasetCreator) then return dataset end
  local placed = model._placement
  if placed and not rawget(placed, "servers") then return datasets.from_function(placed.strategy, dataset.dataset_fn) end
  local made = dataset.dataset_fn(datasets.context(1, 0, 1))
  if data.is(made) then return made end
  raise("%s: the function of flow.utils.DatasetCreator gives a Dataset, it gave %s", what, errors.describe(made))
end

---- passes -----------------------------------------------------------------------------------------------------------------------------

-- Raises on all workers of a strategy unless these passes over data that they share will give the same elements in the same order: a
-- worker that drew its own random numbers before it made the data set would shuffle it in another way.
function datasets.agree(strategy, dataset, iterator)
  local others = strategy:_others()
  if not others then return end
  local draws = iterator:save():match("^%S+ %x+ %d+ (.*)$")      -- after format, pipeline and position (core/data/iterator.c)
  local count = dataset:cardinality()
  local words = count == -1 and "no end" or count < 0 and "an unknown number of elements" or count == 1 and "1 element"
  others:agree("data set", ("%s\nrandom order %s"):format(words or ("%d elements"):format(count), draws))
end

-- A pass: call it for the next step's values, as for loops do; all workers must take the same number of steps.
function Distributed:iter()
  local dataset = self._per_replica or self._dataset
  local iterator = dataset:iter()
  if self._mode == "shared" then datasets.agree(self._strategy, dataset, iterator) end
  return object.new(Iterator, { _distributed = self, _iterator = iterator, _last = false })
end
Distributed.metatable.__call = function(self) return self:iter() end

-- What its passes read.
function Distributed:_source() return self._per_replica or self._dataset end

-- How the next pass will draw; and lets it draw as told by another worker.
function Distributed:_look() return PlainIterator._look(self:_source()) end
function Distributed:_align(position) PlainIterator._align(self:_source(), position) end

-- The pass that began at a position, of which `steps` were taken.
function Distributed:_reopen(position, steps)
  local iterator = PlainIterator._open(self:_source(), true)
  iterator:restore(position)
  iterator:skip(steps * (self._per_replica and self._strategy._placement.replicas or 1))
  return object.new(Iterator, { _distributed = self, _iterator = iterator, _last = false })
end

-- Where a pass that has just begun begins: a text for all workers, or, where each reads its own data, a list of theirs.
function Iterator:_begins()
  local others, position = self._distributed._strategy:_others(), self._iterator:save()
  return others and self._distributed._mode == "own" and others:gather_texts(position) or position
end

local function part_of(value, first, count)
  if native.is_tensor(value) then return rows_of(value:contiguous(), first, count) end
  return { unpack(value, first + 1, first + count) }
end

-- A batch of no rows: as the last one, or as the signature says.
local function no_rows(self)
  local list = {}
  for i, spec in ipairs(self._distributed.element_spec) do
    local last = self._last and self._last[i]
    if last then
      list[i] = part_of(last, 0, 0)
    elseif spec.dtype == "string" then
      list[i] = {}
    else
      local shape = { 0 }
      for axis = 2, #spec.shape do shape[axis] = math.max(spec.shape[axis], 0) end
      list[i] = tensor.new(native.dtype(spec.dtype), shape)
    end
  end
  return list
end

-- The parts first .. first + replicas - 1 of `parts` of an element, as PerReplica values.
local function split(what, element, parts, first, replicas)
  local rows
  local list = {}
  for i, value in ipairs(element) do
    local found = native.is_tensor(value) and value.shape[1] or #value
    rows = rows or found
    if found ~= rows then raise("%s: component %d of a batch has %d rows, component 1 has %d", what, i, found, rows) end
  end
  local most = math.ceil(rows / parts)
  for i, value in ipairs(element) do
    local entries = {}
    for k = 1, replicas do
      local from = math.min((first + k - 1) * most, rows)
      entries[k] = part_of(value, from, math.min(most, rows - from))
    end
    list[i] = values.per_replica(entries)
  end
  return list
end

-- The values of the next step on this worker, or nil: it has none.
local function next_of_worker(self, p)
  local dist = self._distributed
  if not dist._per_replica then
    local element = { self._iterator:next() }
    if element[1] == nil then return nil end
    self._last = element
    if dist._mode == "own" then return split("the data set", element, p.replicas, 0, p.replicas) end
    return split("the data set", element, p.count, p.first, p.replicas)
  end
  local elements = {}
  for k = 1, p.replicas do
    local element = { self._iterator:next() }
    if element[1] == nil then
      if k == 1 then return nil end
      element = no_rows(self)
    else
      self._last = element
    end
    elements[k] = element
  end
  local list = {}
  for i = 1, #elements[1] do
    local entries = {}
    for k = 1, p.replicas do entries[k] = elements[k][i] end
    list[i] = values.per_replica(entries)
  end
  return list
end

-- A batch without rows for each replica of this worker, for a step that other workers have rows for.
local function nothing(self, p)
  local empty, list = no_rows(self), {}
  for i, value in ipairs(empty) do
    local entries = {}
    for k = 1, p.replicas do entries[k] = value end
    list[i] = values.per_replica(entries)
  end
  return list
end

-- The components of the next batch; nothing at the end, which closes the iterator. All workers have to call it
-- equally often: they agree on whether any of them has rows, and those that have none get batches without rows. Of a shared data set
-- without end they need not ask.
function Iterator:next()
  if replica.current() then raise("the next batch was asked for by a function that strategy:run runs: give it as an argument of run") end
  if not self._iterator then return end
  local dist = self._distributed
  local strategy = dist._strategy
  local p, others = strategy._placement, strategy:_others()
  local list = next_of_worker(self, p)
  if others and not (dist._mode == "shared" and dist:cardinality() == data.INFINITE_CARDINALITY) then
    local any = 0
    for _, has in ipairs(others:gather_numbers(list and 1 or 0)) do any = any + has end
    if any > 0 then list = list or nothing(self, p) end
  end
  if not list then
    self:close()
    return
  end
  return unpack(list)
end
Iterator._call = Iterator.next
for name, method in pairs(require "flow.data.optional") do Iterator[name] = method end

function Iterator:close()
  if self._iterator then self._iterator:close() end
  rawset(self, "_iterator", false)
  rawset(self, "_last", false)
end

return datasets
