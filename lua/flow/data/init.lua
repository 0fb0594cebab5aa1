-- init.lua: flow.data: datasets as Lua objects. C describes, checks and runs every stage (core/data). This room has the names, options and
-- defaults, traces the functions of map and filter, and answers what a pass asks Lua for (generators, interleave).
--
--   local ds = flow.data.Dataset.from_tensor_slices { x, y }
--   ds = ds:shuffle(1000, { seed = 1 }):map(function(x, y) return x / 255, y end):batch(32):prefetch(flow.AUTOTUNE)
--   for x, y in ds:iter() do ... end
--
-- How other modules add sources and stages: data.wrap(handle, { parent }) makes a Dataset of a flow_dataset * that native.own has;
-- data.element_function(handle) is what ds:map takes besides Lua functions.
--
-- The room: data sets. May use: tensor.

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local printed = require "flow.classes.printed"
local integers = require "flow.tensor.integers"
local passes = require "flow.tensor.passes"
local signature = require "flow.signature"
local scopes = require "flow.scopes"
local random = require "flow.tensor.random"
local elements = require "flow.data.elements"
local Iterator = require "flow.data.iterator"
local options_of = require "flow.data.options"
local structure = require "flow.data.structure"
local trace = require "flow.data.trace"

local C, check, raise = native.C, native.check, errors.raise
local context = native.context

local takes = signature.takes
local data = signature.module("flow.data", {
  INFINITE_CARDINALITY = -1, UNKNOWN_CARDINALITY = -2, SHARD_HINT = -1, AUTOTUNE = -1,
  AutoShardPolicy = options_of.AutoShardPolicy,
})
local internal = signature.internal(data)

local Dataset = object.class("Dataset")
getmetatable(Dataset).__call = function()
  raise("flow.data.Dataset is not called: Dataset.from_tensor_slices { x, y }, from_generator, range and others make one")
end
data.Dataset = Dataset
local out = native.out("flow_dataset")

-- What passes through every stage.
local PASSED = { "class_names", "file_paths" }

---- objects ---------------------------------------------------------------------------------------------------------------

-- A Dataset of a handle that native.own holds; parents: the Datasets it is made of.
function internal.wrap(handle, parents)
  local self = object.new(Dataset, { _handle = handle, _parents = parents or {}, _passed = {}, _last = false, _structure = false,
                                     _window = false })
  local first = self._parents[1]
  if first then
    rawset(self, "_structure", first._structure)
    rawset(self, "_window", first._window)
  end
  for i = #self._parents, 1, -1 do
    for _, name in ipairs(PASSED) do self._passed[name] = self._parents[i]._passed[name] or self._passed[name] end
  end
  return self
end

-- Calls a constructor of flow.h, f(..., out), and wraps what it made.
local function make(parents, f, ...)
  native.keep(parents)
  check(f(...))
  return data.wrap(native.own(out, C.flow_dataset_release), parents)
end

-- The dataset, of which a stage made something else than its parents' elements: false, or what structure.lua says.
local function with_structure(dataset, own, window)
  rawset(dataset, "_structure", own)
  rawset(dataset, "_window", window or false)
  return dataset
end

-- Lets ds:name(...) of Datasets that other modules make be written as one line.
function internal.stage(self, f, ...)
  local n = select("#", ...)
  local list = { ... }
  list[n + 1] = out
  return make({ self }, f, self._handle, unpack(list, 1, n + 1))
end

function internal.is(value)
  return object.is(value, Dataset)
end

local function need_dataset(what, value)
  if not data.is(value) then raise("%s: expected a Dataset, got %s", what, errors.describe(value)) end
  return value
end

for _, name in ipairs(PASSED) do
  Dataset.fields[name] = function(self)
    local value = self._passed[name]
    if value == nil then raise("this Dataset has no %s: image_dataset_from_directory gives them", name) end
    return value
  end
  Dataset.setters[name] = function(self, value) self._passed[name] = value end
end

Dataset.metatable.__tostring = function(self)
  local parts = {}
  for i, spec in ipairs(self._specs) do parts[i] = elements.spec_text(spec) end
  return ("Dataset (%s)"):format(table.concat(structure.bracketed(self._structure, parts), ", "))
end

-- What elements are: a list with { shape = { ... }, dtype = "float32" } for each component, or a table of these by name; -1 is a size that
-- varies, dtype "string" stands for text.
function Dataset.fields.element_spec(self)
  local specs = self._specs
  for _, spec in ipairs(specs) do printed(spec) end
  return printed((structure.pack(self._structure, specs)))
end

-- The same, side by side.
function Dataset.fields._specs(self)
  return elements.specs(self._handle)
end

-- The number of elements; -1: infinite, -2: unknown.
function Dataset:cardinality()
  return C.flow_dataset_cardinality(self._handle)
end

function Dataset:len()
  local count = self:cardinality()
  if count < 0 then raise("the dataset's length is %s", count == -1 and "infinite" or "unknown") end
  return count
end
Dataset.metatable.__len = Dataset.len

---- passes ---------------------------------------------------------------------------------------------------------------

-- A pass over the data: call it for the next element, as `for x, y in ds:iter() do` does. it:save() and it:restore(text) keep its
-- position, it:skip(n), it:stats(), it:close().
function Dataset:iter()
  rawset(self, "_last", Iterator._open(self))
  return self._last
end
Dataset.metatable.__call = function(self, ...)
  if select("#", ...) > 0 then raise("a data set is not a function: loop over it by `for x, y in ds:iter() do`") end
  return self:iter()
end

-- What the stages of the newest pass did: a list from the last stage to the first.
function Dataset:stats()
  return self._last and self._last:stats() or {}
end

-- Its elements as lists of components, for a for loop.
function internal.components(dataset)
  local pass = Iterator._open(dataset)
  return function() return (pass:_components()) end
end

-- The components of the first element without being noticed: shuffles below keep the order of their next pass. nil: there is none.
function internal.first(dataset)
  local pass = Iterator._open(dataset, true)
  local components = pass:_components()
  pass:close()
  return components
end

---- sources ---------------------------------------------------------------------------------------------------------------

require "flow.data.slices" (Dataset, make, out)
require "flow.data.collections" (Dataset, internal, make, out)
require "flow.data.choice" (Dataset, internal)
require "flow.data.interleave" (Dataset, internal, make, out, with_structure)
require "flow.data.zip" (Dataset, internal, make, out, with_structure)
require "flow.data.lua_map" (Dataset, internal)

-- range([start,] stop [, step, { dtype = "int64" }]); TensorFlow says output_type. Raises if integers are asked of fractions.
takes "start: numeric, stop?: numeric, step: numeric = 1, { dtype = 'int64', output_type? }"
function Dataset.range(start, stop, step, options)
  local exact
  options.dtype = options.output_type or options.dtype
  if not tostring(options.dtype):find "float" then integers.check_whole("range", { start, stop or 0, step }, options.dtype) end
  start, stop, step, exact = integers.range("range", start, stop, step)
  local make_range = exact and C.flow_dataset_range_integers or C.flow_dataset_range
  return make({}, make_range, start, stop, step, native.dtype(options.dtype), out)
end

local function caught(ok, ...) return ok, { ... } end

-- Elements that a Lua function gives: f() returns what a generic for takes (a function to call for each element, a state, a
-- first control value). output_signature = { { shape = { -1, 3 }, dtype = "int32" }, ... }, dtype "string" for text; without
-- it the first element tells, and all others have its shapes.
takes "generator, { output_signature?, args?: list, output_types?, output_shapes? }"
function Dataset.from_generator(f, options)
  if type(f) ~= "function" then raise("from_generator: expected a function that returns an iterator, got %s", errors.describe(f)) end
  local specs = elements.asked("from_generator", options)
  local own
  if specs == nil then
    local next_element, state, control = errors.of_library("from_generator", f, unpack(options.args or {}))
    signature.check_callable("from_generator: a for loop over what the function returned", next_element)
    local first = { next_element(state, control) }
    if table.maxn(first) == 0 then
      raise("from_generator: the generator gives nothing; name what it would give: { output_signature = ... }")
    end
    first, own = structure.flatten("from_generator", first)
    specs = elements.specs_of_values(first)
  else
    specs, own = elements.signature("from_generator", specs)
  end
  local components, count = elements.components("from_generator", specs)
  local number = Iterator._register(function()
    local next_element, state, control = f(unpack(options.args or {}))
    if type(next_element) ~= "function" and not (type(next_element) == "table" and getmetatable(next_element)) then
      raise("from_generator: the function returned %s, expected an iterator", errors.describe(next_element))
    end
    local has_thrown = false
    return function()
      local ok, values = caught(pcall(next_element, state, control))
      if not ok then
        local is_dead = type(values[1]) == "string" and values[1]:find("cannot resume dead coroutine", 1, true)
        if has_thrown and is_dead then return {} end      -- it ended by what it threw, as Python's generators do
        has_thrown = true
        error(values[1], 0)
      end
      control = values[1]
      return control == nil and {} or (structure.flatten("from_generator", values, own))
    end
  end, specs)
  local dataset = with_structure(make({}, C.flow_dataset_from_generator, number.id, components, count, out), own)
  rawset(dataset, "_callback", number)
  return dataset
end

-- Files that match a glob pattern, or several: in a new random order every pass, or sorted with { shuffle = false }.
takes "file_pattern, shuffle: boolean = true, seed?"
function Dataset.list_files(pattern, shuffled, seed)
  local patterns = type(pattern) == "table" and pattern or { pattern }
  errors.check_list("list_files", patterns)
  local dataset
  local texts, io = {}, require "flow.io"
  for _, entry in ipairs(patterns) do
    for _, path in ipairs(io.glob_path(io.path(entry, "list_files"))) do texts[#texts + 1] = path end
  end
  if #texts == 0 then raise("list_files: no files match %s", table.concat(patterns, ", ")) end
  table.sort(texts)
  dataset = Dataset.from_tensor_slices(texts)
  if not shuffled then return dataset end
  return dataset:shuffle(#texts, { seed = seed })
end

---- stages: numbers -----------------------------------------------------------------------------------------------------------

local function number(what, name, value, default)
  if value == nil then value = default end
  if type(value) ~= "number" then raise("%s: %s is a number, got %s", what, name, errors.describe(value)) end
  return value
end

-- nil: on the caller's thread, else a number of threads or AUTOTUNE.
function internal.parallel_calls(what, value)
  if value == nil then return 0 end
  if type(value) ~= "number" or value ~= math.floor(value) or (value < 1 and value ~= data.AUTOTUNE) then
    raise("%s: num_parallel_calls is a whole number from 1, flow.AUTOTUNE or nil, got %s", what, errors.describe(value))
  end
  return value
end

takes "count: integer"
function Dataset:take(count)
  return make({ self }, C.flow_dataset_take, self._handle, count, out)
end

takes "count: integer"
function Dataset:skip(count)
  return make({ self }, C.flow_dataset_skip, self._handle, count, out)
end

-- count nil or -1: for ever. repeat is a word of Lua, hence the underscore.
takes "count: integer = -1"
function Dataset:repeat_(count)
  return make({ self }, C.flow_dataset_repeat, self._handle, count, out)
end

takes "batch_size: count, drop_remainder: boolean = false, num_parallel_calls?, deterministic?: boolean"
function Dataset:batch(size, drop_remainder, parallel)
  internal.parallel_calls("batch", parallel)
  return make({ self }, C.flow_dataset_batch, self._handle, size, drop_remainder and 1 or 0, out)
end

takes "num_shards: integer, index?: integer"
function Dataset:shard(count, index)
  if count == data.SHARD_HINT then index = 0 end
  return make({ self }, C.flow_dataset_shard, self._handle, count, number("shard", "index", index), out)
end

takes "dataset"
function Dataset:concatenate(other)
  return make({ self, need_dataset("concatenate", other) }, C.flow_dataset_concatenate, self._handle, other._handle, out)
end

takes "buffer_size: integer = -1"
function Dataset:prefetch(size)
  return make({ self }, C.flow_dataset_prefetch, self._handle, size, out)
end

-- tf.data's pair of seeds: the global one or 87654321, then the stage's own. Without any seed the order differs from process to
-- process only as the global seed does.
local function seed_pair(what, seed)
  local global = random.global_seed and random.global_seed % (2 ^ 31 - 1) or 87654321      -- as TensorFlow: below 2^31 - 1
  if seed == nil then return global, C.flow_context_next_seed(context) end
  return global, random.check_seed(what, seed) % (2 ^ 31 - 1)
end

-- ds:shuffle(1000), ds:shuffle(1000, { seed = 1, reshuffle_each_iteration = false })
takes "buffer_size: count, seed?, reshuffle_each_iteration: boolean = true"
function Dataset:shuffle(size, seed, reshuffles)
  local first, second = seed_pair("shuffle", seed)
  return make({ self }, C.flow_dataset_shuffle, self._handle, size, first, second, reshuffles and 1 or 0, out)
end

-- Elements with their number in front, from `start` (0) on.
takes "start: integer = 0"
function Dataset:enumerate(start)
  local made = Dataset.zip { Dataset.range(start, 2 ^ 53), self }
  return with_structure(made, structure.numbered(self))
end

function Dataset:apply(f)
  signature.check_callable("apply", f)
  return need_dataset("apply", f(self))
end

---- stages: functions -----------------------------------------------------------------------------------------------------------

local ElementFunction = object.class("ElementFunction")

-- What ds:map applies besides Lua functions: a flow_function * that native.own has.
function internal.element_function(handle)
  return object.new(ElementFunction, { handle = handle })
end

local function deterministic(value)
  if value == nil then return -1 end
  return value and 1 or 0
end

-- Raises for elements that are data sets, of which C knows nothing.
local function need_tensors(what, self)
  if self._window then raise("%s: the elements are data sets, as window made them: flat_map gives what a function makes of each", what) end
end

local function map_with(self, what, handle, parallel, in_order)
  local seed = C.flow_function_random(handle) ~= 0 and C.flow_context_next_seed(context) or 0
  native.keep(handle)
  return make({ self }, C.flow_dataset_map, self._handle, handle, internal.parallel_calls(what, parallel), deterministic(in_order), seed,
    out)
end

-- The dataset with one more component, which a step of the host makes (flow.tensor.host_calls).
local function with_step(self, step, parallel, in_order)
  if step.handle then return map_with(self, "map", step.handle, parallel, in_order) end
  local specs = self._specs
  specs[#specs + 1] = step.spec
  return internal.transform({ self }, specs, false, self:cardinality(), function(pull, give)
    for values in pull do
      values[#values + 1] = step.call(values[step.component])
      give(values)
    end
  end)
end

-- f is called once, on symbols; what it does with them runs in C for every element, on num_parallel_calls threads. Functions of Lua that
-- layers for strings were given are called by the thread that reads, and so is f, for each element, if it computes with texts, with
-- sizes that vary, with the number of rows of batches that do not say it, or with numbers as sizes or as texts (lua_map.lua).
takes "map_func, num_parallel_calls?, deterministic?: boolean"
function Dataset:map(f, parallel, in_order)
  need_tensors("map", self)
  if object.is(f, ElementFunction) then return map_with(self, "map", f.handle, parallel, in_order) end
  trace.check_function("map", f)
  local dataset, added, own_scopes = self, 0, scopes.own()
  own_scopes.needs_values = nil
  while true do
    local ok, handle, steps, own, again, constants = pcall(trace.map_function, f, dataset._specs, self._structure, added)
    if constants and not internal.are_constant(self, f, constants) then return internal.map_in_lua(self, f, "# of a text is not traced") end
    if not ok and (own_scopes.needs_values or internal.has_loose(self._specs)) then return internal.map_in_lua(self, f, handle) end
    if not ok then error(handle, 0) end
    for _, step in ipairs(steps) do dataset = with_step(dataset, step, parallel, in_order) end
    dataset = with_structure(map_with(dataset, "map", handle, parallel, in_order), own)
    if not again then return dataset end
    added = added + 1
  end
end

-- Keeps the elements for which f gives true, a scalar of dtype bool.
takes "predicate?: any"
function Dataset:filter(f)
  need_tensors("filter", self)
  trace.check_function("filter", f)
  local handle = internal.predicate(self, f)
  if not handle then return internal.filter_in_lua("filter", self, f) end
  return map_with(self, "filter", handle)
end

-- Keeps the elements of the first complete pass, in memory or in the file `path`, where later processes find them; later passes read
-- them. Shuffle after it, not before.
takes "filename?"
function Dataset:cache(path)
  if path == nil or path == "" then return make({ self }, C.flow_dataset_cache, self._handle, out) end
  return make({ self }, C.flow_dataset_cache_file, self._handle, require("flow.io").path(path, "cache"), out)
end

-- Rows of different sizes, filled up with padding_values (0): padded_shapes = { { -1, 3 }, {} } for each component, -1: as long as
-- the longest row of the batch.
-- One number is the shape of components with one axis.
takes "batch_size: count, padded_shapes?, padding_values?, drop_remainder: boolean = false"
function Dataset:padded_batch(size, padded_shapes, fill, drop_remainder)
  local specs = self._specs
  local shapes, values, count = nil, native.array("double", C.FLOW_MAX_COMPONENTS), #specs
  if type(padded_shapes) == "number" then padded_shapes = { padded_shapes } end
  if padded_shapes ~= nil and (type(padded_shapes) ~= "table" or getmetatable(padded_shapes)) then
    raise("padded_batch: padded_shapes is a list or a number, got %s", errors.describe(padded_shapes))
  end
  padded_shapes = structure.settings("padded_batch", "padded_shapes", self._structure, padded_shapes)
  fill = structure.settings("padded_batch", "padding_values", self._structure, fill, 0)
  local is_list = type(fill) == "table" and not getmetatable(fill)
  for _, value in ipairs(is_list and fill or { fill }) do
    if type(value) == "string" then return require "flow.data.text_padding" (self, internal, size, padded_shapes, fill, drop_remainder) end
  end
  if padded_shapes then
    local list = type(padded_shapes[1]) == "table" and padded_shapes or { padded_shapes }
    local wanted = {}
    for i, shape in ipairs(list) do wanted[i] = { shape = shape, dtype = specs[i] and specs[i].dtype } end
    shapes, count = elements.components("padded_batch", wanted)
  end
  for i = 1, #specs do
    local value = is_list and (fill[i] or 0) or fill
    values[i - 1] = number("padded_batch", "padding_values", native.is_tensor(value) and value:item() or value, 0)
  end
  return make({ self }, C.flow_dataset_padded_batch, self._handle, size, shapes, values, count, drop_remainder and 1 or 0, out)
end

function Dataset:unbatch()
  return make({ self }, C.flow_dataset_unbatch, self._handle, out)
end

-- The same rows in batches of another size, or of several sizes in turn.
takes "batch_size: count|list, drop_remainder: boolean = false"
function Dataset:rebatch(size, drop_remainder)
  local list = type(size) == "table" and size or { size }
  local sizes = native.array("double", math.max(#list, 1))
  for i = 1, #list do sizes[i - 1] = number("rebatch", "batch_size", list[i]) end
  return make({ self }, C.flow_dataset_rebatch, self._handle, sizes, #list, drop_remainder and 1 or 0, out)
end

-- f(state, x, y) -> state over all elements, in Lua; returns the last state.
takes "initial_state?: any, reduce_func?: any"
function Dataset:reduce(initial, f)
  if type(f) ~= "function" then raise("reduce takes an initial state and a function(state, x, y), got %s", errors.describe(f)) end
  passes.check_end("reduce", self)
  local pass = self:iter()
  local function fold(state, first, ...)
    if first == nil then return state end
    return fold(f(state, first, ...), pass())
  end
  return fold(initial, pass())
end

---- options ------------------------------------------------------------------------------------------------------------------------

data.Options = options_of.Options

-- options: { auto_shard_policy = "DATA", deterministic = false }, or what flow.data.Options() made.
takes "options: table"
function Dataset:with_options(options)
  local policy, in_order = options_of.read(options)
  return make({ self }, C.flow_dataset_with_options, self._handle, policy, deterministic(in_order), out)
end

function Dataset:options()
  return { auto_shard_policy = options_of.policy_name(C.flow_dataset_auto_shard_policy(self._handle)),
           deterministic = C.flow_dataset_deterministic(self._handle) ~= 0 }
end

object.strict(Dataset, "flow.data.Dataset")
---- files of records and tables ---------------------------------------------------------------------------------------------------------
local record_data, records = require "flow.data.record_data", require "flow.data.records"
data.TFRecordDataset, data.parse_example = record_data.TFRecordDataset, record_data.parse_example
data.TFRecordWriter, data.serialize_example = records.TFRecordWriter, records.serialize_example
data.load_csv, data.TextLineDataset = require "flow.data.tables", require "flow.data.text_lines"
data.experimental = require "flow.data.experimental" (data)
return data
