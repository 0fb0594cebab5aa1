-- feed.lua: batches of a Dataset for fit, evaluate and predict. The tensors of an element are the step's inputs; nothing is copied, and no
-- Lua object is made for a batch. If the rows are kept on a device, elements are row numbers (device_data.lua): those of several batches
-- are sent together, and their steps run in one call.

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local training = require "flow.train.compile"
local model_steps = require "flow.train.model_steps"
local steps = require "flow.train.steps"
local data = require "flow.data"
local Iterator = require "flow.data.iterator"
local tensor = require "flow.tensor"
local datasets = require "flow.distribute.dataset"
local workers = require "flow.distribute.model_workers"
local resident = require "flow.train.device_data"
local host_inputs = require "flow.model.host_inputs"
local named = require "flow.model.named_data"
local py_dataset = require "flow.data.py_dataset"
local structure = require "flow.data.structure"

local C, raise = native.C, errors.raise
local context = native.context

local Feed = {}
Feed.__index = Feed

-- How many of an element's components are inputs, targets and weights. own: the structure of elements that an own step gets as they are.
local function layout_of(model, kind, what, specs, own)
  local inputs, outputs = host_inputs.fed(model), rawget(model, "outputs")
  local x, y, count = inputs and #inputs or 1, outputs and #outputs or 1, #specs
  local is_own = not inputs and model_steps.overrides(model, kind .. "_step")      -- it may take any element
  for i, spec in ipairs(specs) do
    if spec.dtype == "string" then raise("%s: component %d of the dataset is text: map it to numbers first", what, i) end
    if #spec.shape == 0 then raise("%s: component %d of the dataset is a single number: call batch() first", what, i) end
  end
  if own then return { x = count, y = 0, weights = 0, element = true, structure = own } end
  if is_own and (count > 3 or kind == "predict") then return { x = count, y = 0, weights = 0, element = true } end
  local is_element = x == 1      -- several values are one list of inputs
  if kind == "predict" and count >= x then return { x = x, y = 0, weights = 0, element = is_element } end
  if count == x then return { x = x, y = 0, weights = 0, element = is_element } end
  local with_loss = model._compiled and model._compiled.loss_count or y      -- the targets of other outputs may be left out
  if count < x + y and count == x + with_loss then return { x = x, y = with_loss, weights = 0 } end
  if count == x + y then return { x = x, y = y, weights = 0 } end
  if count == x + y + 1 then return { x = x, y = y, weights = 1 } end
  if count == x + y + y then return { x = x, y = y, weights = y } end
  local own_loss = model_steps.overrides(model, "compute_loss")      -- it may take one target for several outputs
  if own_loss and (count == x + 1 or count == x + 2) then return { x = x, y = 1, weights = count - x - 1 } end
  raise("%s: an element of the dataset has %d components; %s takes x, y or x, y, sample_weight: %d to %d of them", what, count,
    object.title(model), x, x + y + 1)
end

-- The dataset with components side by side: inputs and targets that elements have by name are in the order of the model's. Where the
-- structure of elements tells what is x, y and weights, also returns it: a step of the model's own gets them as they are, and so does a
-- model that is not a graph of layers.
local function ordered(model, kind, what, dataset)
  local own, steps_own = dataset._structure, model_steps.overrides(model, kind .. "_step")
  if not own then return dataset end
  if not rawget(model, "inputs") or steps_own and (structure.is_deep(own) or not rawget(model, "_host")) then
    return dataset:map(function(...)
      local list = {}
      for i = 1, #own do
        for _, component in ipairs(structure.components(own[i], (select(i, ...)))) do list[#list + 1] = component end
      end
      return list
    end), own
  end
  local kinds, orders = { "inputs", "outputs", "outputs" }, {}
  for i, names in ipairs(own) do
    local by_name = {}
    if names and names.parts then names = false end
    for _, name in ipairs(names or {}) do by_name[name] = name end
    orders[i] = names and named.complete(model, ("%s: value %d of an element"):format(what, i), kinds[i] or "outputs", by_name)
  end
  return dataset:map(function(...)
    local given, list = { ... }, {}
    for i in ipairs(own) do
      for _, name in ipairs(orders[i] or {}) do list[#list + 1] = given[i][name] end
      for _, component in ipairs(not orders[i] and structure.components(own[i], given[i]) or {}) do list[#list + 1] = component end
    end
    return list
  end)
end

-- The dataset with a third component: the weight of each sample by its class.
local function weighted(model, what, dataset, by_class)
  local specs = dataset._specs
  local layout, weights_of = layout_of(model, "train", what, specs), training.class_weight_function(by_class)
  if layout.weights > 0 then raise("class_weight and sample_weight cannot be given together") end
  if layout.y ~= 1 then raise("class_weight works with one output, the dataset has %d targets", layout.y) end
  return dataset:map(function(...)
    local values = { ... }
    values[#values + 1] = weights_of(values[#values])
    return values
  end)
end

-- What a worker reads of a data set: all of it, of which it computes its part of each batch, or its own shard (strategies of several
-- workers). Also returns the number of rows of all workers' batches together, or nil.
local function arrange(model, what, dataset)
  local placed = model._placement
  if py_dataset.is(dataset) then dataset = dataset:_dataset(false) end
  if not data.is(dataset) then
    return dataset._dataset, placed and placed.workers > 1 and dataset:_feed_mode() == "own", dataset._rows
  end
  if not placed or placed.workers == 1 then return dataset, false end
  local mode, part, rows = datasets.arrange(what, dataset, placed)
  return part, mode == "own", rows
end

local LIMITS = { fit = "steps_per_epoch", validation_data = "validation_steps", evaluate = "steps", predict = "steps" }

-- dataset: a Dataset, or a distributed one. limit: batches of an epoch at most, or nil. what: the call, or "validation_data". by_class:
-- weights of samples, or nil.
function Feed.new(model, kind, what, dataset, limit, by_class)
  local own, usual
  dataset, own, usual = arrange(model, what, dataset)
  if not limit and dataset:cardinality() == data.INFINITE_CARDINALITY then
    raise("%s: the dataset repeats without end: give %s, or call repeat_(n) with a number", what, LIMITS[what])
  end
  local passed = dataset._passed
  local as_it_is
  dataset, as_it_is = ordered(model, kind, what, dataset)
  dataset = host_inputs.map(model, what, dataset)
  if by_class then dataset = weighted(model, what, dataset, by_class) end
  local specs = dataset._specs
  local layout = layout_of(model, kind, what, specs, as_it_is)
  local fixed = true
  for _, spec in ipairs(specs) do
    for axis = 2, #spec.shape do fixed = fixed and spec.shape[axis] >= 0 end
  end
  if kind == "train" and passed.class_names then rawset(model, "_class_names", passed.class_names) end
  return setmetatable({
    model = model, kind = kind, dataset = dataset, limit = limit, layout = layout, used = layout.x + layout.y + layout.weights,
    is_own = model_steps.overrides(model, kind .. "_step"),      -- parts of a batch may have different numbers of rows
    fixed = fixed, step = false, iterator = false, ended = true, rows = 0, what = what,
    pending = false,      -- position at which the next pass begins
    usual = usual,        -- rows of those of all workers together, or nil
    own = own,            -- the batches are this worker's, not those of all: the others may have more of them
    exhausted = false,    -- this worker has no more
    keeps = false, store = false,      -- rows that come again stay on the model's device; where they are
    numbers = false,      -- of those of the next batches
    mark = false,         -- of a run that goes on when a worker was lost: position at which the present epoch began; marks: those of all
    marks = false,        -- workers, where each reads its own data
    ran = 0,              -- batches since then
    unrun = 0,            -- batches that were read after the last one that ran
    later = false,        -- how passes drew before the one that is about to begin
    seen = false,         -- shapes of the last batch that a step was made for
  }, Feed)
end

function Feed.is(value)
  return data.is(value) or datasets.is(value) or py_dataset.is(value)
end

-- The number of batches of an epoch: a number, math.huge, or nil if it is unknown.
function Feed:expected()
  if self.own then return self.limit end      -- the other workers may have more
  local known = self.dataset:cardinality()
  if known == data.INFINITE_CARDINALITY then known = math.huge end
  if known == data.UNKNOWN_CARDINALITY then return self.limit end
  return math.min(self.limit or math.huge, known)
end

-- From now on rows that every pass reads stay on the model's device, if it has room.
function Feed:keep_rows()
  self.keeps = true
end

-- Opens an iterator, at `pending` where a position was taken over. Rows in the buffer belong to the pass before and are forgotten.
local function open(self)
  self:close()
  -- a pass that goes on was counted already, which the order of later ones depends on
  self.iterator, self.ended, self.exhausted, self.rows = Iterator._open(self.dataset, self.pending ~= false), false, false, 0
  if self.numbers then self.numbers.batches, self.numbers.rows = 0, 0 end
  if self.keeps then
    self.store = self.store or resident.row_store(self.model) or false
    self.keeps = self.store and self.iterator:_keep_rows(self.store)
  end
  rawset(self.dataset, "_last", self.iterator)
  if self.pending then self.iterator:restore(self.pending) end
  self.pending, self.unrun = false, 0
end

-- Begins a new pass over the data.
function Feed:restart()
  open(self)
  self.mark = false
  local placed = self.model._placement
  if placed and not self.own then datasets.agree(placed.strategy, self.dataset, self.iterator) end
end

-- The position of the feed, for set_state in another process. begun: an epoch is under way; else the position is the one at which the next
-- pass begins, unless epochs follow each other in one pass.
function Feed:state(begun)
  if self.later and not begun then return { position = self.later, rows = 0, open = false } end      -- the pass under way begins again
  if self.iterator and not self.ended and (begun or self.limit) then
    return { position = self.iterator:_save_before(self.unrun), rows = self.rows, open = true }
  end
  if self.pending then return { position = self.pending, rows = self.rows, open = false } end
  return { position = Iterator._look(self.dataset), rows = self.rows, open = false }
end

function Feed:set_state(state)
  if state.open and self.iterator then      -- another pass would change the order of the next one
    self.iterator:restore(state.position)
    self.ended, self.exhausted = false, false
  else
    self:close()
    self.pending = state.position
    if state.open then open(self) end      -- workers have the chief's position: there is nothing to compare
  end
  self.rows = state.rows
end

-- Begins an epoch: from the beginning, or where the one before ended if the number of its batches is given. Returns which.
function Feed:begin_epoch()
  local over = not self.limit or self:is_over()
  if over then self:restart() end
  return over
end

-- Whether no batch of this pass is left, as far as that is known without asking for one.
function Feed:is_over()
  return self.ended or not self.own and self.iterator:_is_over(self.unrun)
end

-- Called when an epoch begins: counts batches from now on. exchange(text) returns the texts of all workers, in their order.
function Feed:set_mark(exchange)
  if not self.iterator then return end      -- a backup says that all of its batches ran
  local mark = self.iterator:save()
  local marks = self.own and exchange(mark)
  self.mark, self.marks, self.ran = mark, marks, 0
end

-- Called before a pass begins, which may fail (true), and after it has begun (false).
function Feed:hold(holds)
  self.later = holds and Iterator._look(self.dataset)
end

-- The state for a worker that takes over from another, found without communication: how later passes are shuffled, and, if a pass is
-- under way and `under_way` asks for it, where it began and how many of its batches ran.
function Feed:progress(under_way)
  local state = { later = self.later or Iterator._look(self.dataset), pending = self.pending or nil, rows = self.rows }
  if under_way and self.mark and self.iterator and not self.ended then
    state.mark, state.marks, state.ran = self.mark, self.marks or nil, self.ran
  end
  return state
end

-- Takes over such a state. rank: this worker's, from 0.
function Feed:set_progress(state, rank)
  self:close()
  Iterator._align(self.dataset, state.later)
  self.pending, self.rows, self.later = state.pending or false, state.rows, false
  if not state.mark then return end
  local mark = state.marks and state.marks[rank + 1] or state.mark
  self.pending = mark
  open(self)
  self.iterator:skip(state.ran)
  self.rows, self.mark, self.marks, self.ran = state.rows, mark, state.marks or false, state.ran
end

-- Ends the pass and its threads. A position that was saved before stays valid.
function Feed:close()
  if self.iterator then self.iterator:close() end
  self.iterator, self.ended = false, true
end

-- Tensors without rows, for a worker whose data ended before that of others: with the shapes of the last batch, or of the signature.
local function no_rows(self)
  local tensors = {}
  for i = 1, self.used do
    local spec, seen = self.dataset._specs[i], self.seen and self.seen[i]
    local shape = { 0 }
    for axis = 2, #spec.shape do shape[axis] = seen and seen[axis] or math.max(spec.shape[axis], 0) end
    tensors[i] = tensor.new(native.dtype(spec.dtype), shape)
  end
  if not self.step or self.step.capacity < 0 then
    self.step = steps.get(self.model, self.kind, tensors, self.layout, 1, self.own, self.usual)
  end
  return tensors
end

-- The step for batches with the dtypes and shapes of these tensors, and at least as many rows.
local function prepare(self, tensors, rows)
  local unequal = false
  for i, t in ipairs(tensors) do
    if t.shape[1] ~= rows and not self.is_own then
      raise("%s: component %d of a batch has %d rows, component 1 has %d; if the data set's elements are single samples, batch them first: "
        .. "dataset:batch(32)", self.what, i, t.shape[1], rows)
    end
    unequal = unequal or t.shape[1] ~= rows
  end
  if unequal then self.step = steps.of_unequal_rows(self.model, self.kind, self.layout)
  else self.step = steps.get(self.model, self.kind, tensors, self.layout, rows, self.own, self.usual) end
  self.seen = {}
  for i, t in ipairs(tensors) do self.seen[i] = t.shape end
end

-- The same for an element, whose tensors it holds meanwhile.
local function prepare_for_element(self, element, rows)
  local tensors = {}
  for i = 1, self.used do tensors[i] = native.tensor(C.flow_tensor_retain(element.tensors[i - 1])) end
  prepare(self, tensors, rows)
end

-- Runs an eager step on a batch. Returns its rows.
local function run_eagerly(self, element, outputs)
  local tensors = {}
  for i = 1, self.used do tensors[i] = native.tensor(C.flow_tensor_retain(element.tensors[i - 1])) end
  C.flow_element_clear(element)
  self.step.eager(tensors, outputs)
  return tensors[1].shape[1]
end

-- Whether a part of a batch has another number of rows than the first, and the step is not made for that.
local function is_unequal(self, element, rows)
  if not self.is_own or self.step.eager then return false end
  for i = 1, self.used - 1 do
    if C.flow_tensor_dim(element.tensors[i], 0) ~= rows then return true end
  end
  return false
end

-- Runs one step on a batch, or on no rows if this worker has no batch. Returns a status and the rows of all workers that were trained on. 0
-- rows: no worker had a batch, one requests a stop, or the step failed.
local function run_step(self, seed, number, outputs)
  local element = self.iterator._element
  local inputs, empty = element.tensors, self.exhausted and no_rows(self)
  if empty then
    inputs = native.pointers(empty)
  else
    local rows = C.flow_tensor_dim(element.tensors[0], 0)
    if not self.step or not self.fixed or rows > self.step.capacity or is_unequal(self, element, rows) then
      prepare_for_element(self, element, rows)
    end
  end
  if self.step.eager then return 0, run_eagerly(self, element, outputs) end
  local instance = self.step.instance
  C.flow_instance_scalars(instance, seed, number, 0)
  local status = tonumber(C.flow_instance_run(context, instance, inputs, self.used, outputs))
  C.flow_element_clear(element)
  if status ~= 0 and C.flow_instance_committed(instance) ~= 0 then return status, C.flow_instance_global_rows(instance) end
  if status ~= 0 or C.flow_instance_stop_agreed(instance) ~= 0 then return status, 0 end
  return 0, C.flow_instance_global_rows(instance)
end

---- rows that are on a device ---------------------------------------------------------------------------------------------------------

local MOST = 16      -- batches whose row numbers are sent together
local out_done = native.array("double", 1)

-- The tables of the store, and a buffer of row numbers for MOST batches. room: the most rows of a batch.
local function make_numbers(self, rows)
  local tables, shapes = native.array("flow_tensor *", self.used), {}
  for i = 1, self.used do
    tables[i - 1] = C.flow_row_store_table(self.store, i - 1)
    local t = native.tensor(C.flow_tensor_retain(tables[i - 1]))
    local shape = t.shape
    shape[1] = rows
    shapes[i] = { dtype = t.dtype, shape = shape }
  end
  if not self.step or rows > self.step.capacity then prepare(self, shapes, rows) end
  local order = tensor.zeros({ MOST * rows }, { dtype = "int64", device = "cpu" })
  return { tables = tables, room = rows, rows = 0, batches = 0, size = 0, order = order,
           there = tensor.to_device(order, steps.device(self.model)) }
end

-- Runs the batches whose numbers were gathered. Returns a status, how many ran, and their rows.
local function run_numbers(self, seed, number)
  local n = self.numbers
  if not n or n.batches == 0 then return 0, 0, 0 end
  local batches, rows = n.batches, n.rows
  n.batches, n.rows = 0, 0
  native.check(C.flow_tensor_copy(native.pointer(n.there), native.pointer(n.order)))
  local instance = self.step.instance
  C.flow_instance_scalars(instance, seed, number, 0)
  local order = native.pointer(n.there)
  local status = tonumber(C.flow_instance_run_batches(context, instance, n.tables, self.used, order, 0, rows, n.size, out_done))
  local ran = out_done[0]
  return status, ran, ran == batches and rows or ran * n.size
end

-- Adds an element's row numbers to the buffer, unless it has another size or there is no room.
local function take_numbers(self, element)
  local rows, n = C.flow_tensor_dim(element.tensors[0], 0), self.numbers
  if not n or rows > n.room or self.step.capacity < rows then
    if n and n.batches > 0 then return false end
    self.numbers = make_numbers(self, rows)
    n = self.numbers
  end
  if n.batches > 0 and rows ~= n.size then return false end
  local to = native.cast("int64_t *", C.flow_tensor_data(native.pointer(n.order))) + n.rows
  native.copy(to, C.flow_tensor_data(element.tensors[0]), 8 * rows)
  n.batches, n.rows, n.size = n.batches + 1, n.rows + rows, rows
  C.flow_element_clear(element)
  return true
end

---- the loop ----------------------------------------------------------------------------------------------------------------------------

-- Three ways for a batch: row numbers go to a buffer, of which several batches run in one call (flush); any other element runs by
-- itself, after the buffer (run_one); a worker without batches runs empty steps as long as others have some. `read` counts batches taken
-- from the iterator, `batch` those that ran: the difference is what a position saved now has to go back by. Statuses are C's: a failure
-- ends the loop, and the caller raises it, so that no error of Lua's leaves the counts half done. SIGTERM ends it between batches;
-- several workers agree on that in their steps.
local function loop(self, seed, number, count, watch, outputs, collect)
  local iterator = self.iterator
  local batch, read = 0, 0      -- batches that ran; batches that were read

  -- Counts batches that ran. Returns whether to end.
  local function note(ran, rows)
    self.rows, self.ran = self.rows + rows, self.ran + ran
    if collect then collect(rows) end
    batch = batch + ran
    return watch and watch.after(batch - 1, rows)
  end

  -- Runs the batches in the buffer. Returns a status, and whether to end.
  local function flush()
    local status, ran, rows = run_numbers(self, seed, number + batch)
    local stop = ran > 0 and note(ran, rows)
    return status, stop or self.step and self.step.instance and C.flow_instance_stop_agreed(self.step.instance) ~= 0
  end

  -- Adds the element to the buffer. Returns a status.
  local function gather(element)
    if take_numbers(self, element) then return 0 end
    local status = flush()
    if status == 0 then take_numbers(self, element) end
    return status
  end

  -- Runs the element on its own, or an empty step if this worker has none. Returns a status, and whether to end.
  local function run_one()
    local status = flush()
    if status ~= 0 or (self.exhausted and not self.own) then
      self.ended = status == 0
      return status, true
    end
    local rows
    status, rows = run_step(self, seed, number + batch, outputs)
    if status ~= 0 then
      if rows > 0 then self.rows, self.ran, batch = self.rows + rows, self.ran + 1, batch + 1 end
      return status, true
    end
    if rows == 0 then
      self.ended = C.flow_instance_stop_agreed(self.step.instance) == 0
      return 0, true
    end
    return 0, note(1, rows)
  end

  -- Takes the next batch. Returns a status, and whether to end.
  local function go_on()
    local status, stop = 0, false
    if not self.exhausted then
      status = iterator:_pull()
      self.exhausted = status == 0 and iterator._element.count == 0
      read = read + (self.exhausted and 0 or 1)
    end
    if status ~= 0 then
      local before = flush()
      return before ~= 0 and before or status
    end
    if iterator._element.numbers == 1 then
      status = gather(iterator._element)
      local most = math.min(MOST, count - batch, watch and watch.every() or MOST)
      if status == 0 and self.numbers.batches >= most then status, stop = flush() end
    else
      status, stop = run_one()
    end
    return status, stop
  end

  local alone, status, stop = not workers.of(self.model), 0, false
  while batch < count and status == 0 and not stop do
    if alone and native.preempted() then
      status, stop = flush()
      status = status == 0 and C.FLOW_INTERRUPTED or status
    else
      status, stop = go_on()
    end
  end
  self.unrun = math.max(read - batch, 0)
  return status, batch
end

-- Runs up to `count` batches; number: of the first step; watch: of batch_watch.lua, or nil. Returns a status, the number of batches that
-- ran, and of their rows.
function Feed:run(number, count, watch, outputs, collect)
  local before = self.rows
  local seed = training.seed(self.model)
  local status, done = loop(self, seed, number, count, watch, outputs, collect)
  return status, done, self.rows - before
end

return Feed
