-- collections.lua: stages whose elements are made of several others: window, group_by_window, bucket_by_sequence_length, scan, unique,
-- rejection_resample, and what ends or counts a pass: take_while, get_single_element, assert_cardinality. Those that C has no stage for
-- are coroutines in Lua (internal.transform), run by the thread that reads; their inputs are stages of the same pass.

local native = require "flow.ffi"
local errors = require "flow.errors"
local signature = require "flow.signature"
local random = require "flow.tensor.random"
local ops = require "flow.tensor.ops"
local elements = require "flow.data.elements"
local structure = require "flow.data.structure"
local Iterator = require "flow.data.iterator"

local C, raise = native.C, errors.raise
local takes = signature.takes

local UNKNOWN = -2

-- The values of components as a function of the script gets them.
local function unpacked(dataset, components)
  local values, count = structure.pack(dataset._structure, components)
  return unpack(values, 1, count)
end

-- The whole number that a function of a script gave, a number, a boolean or a scalar tensor; raises for anything else.
local function number_of(what, value)
  if native.is_tensor(value) then value = value:item() end
  if type(value) == "boolean" then value = value and 1 or 0 end
  if type(value) ~= "number" or value ~= math.floor(value) or math.abs(value) > 2 ^ 53 then
    raise("%s: the function returned %s, expected a whole number", what, errors.describe(value))
  end
  return value
end

-- A function that gives numbers from 0 to below 1, one after the other, the same ones for the same seed. They are drawn 256 at a time.
local function uniforms(seed)
  local drawn, at, block = nil, 0, 0
  return function()
    at = at + 1
    if not drawn or at > #drawn then
      drawn, at = random.uniform({ 256 }, { seed = (seed + block) % 2 ^ 31 }):totable(), 1
      block = block + 1
    end
    return drawn[at]
  end
end

-- Lets sizes of the specs vary that differ in others; all of them, if others have other dtypes or ranks or are nil.
local function join_sizes(specs, others)
  for i, spec in ipairs(specs) do
    local other = others and #others == #specs and others[i].dtype == spec.dtype and #others[i].shape == #spec.shape and others[i]
    for axis, size in ipairs(spec.shape) do spec.shape[axis] = other and other.shape[axis] == size and size or -1 end
  end
end

-- A data set of elements that are there, as lists of components.
local function of_elements(internal, list, specs, own)
  return internal.transform({}, specs, own, #list, function(_, give)
    for _, components in ipairs(list) do give(components) end
  end)
end

---- windows -----------------------------------------------------------------------------------------------------------------

local function define_windows(Dataset, make, out)
  -- Windows as elements: a Dataset for each component, of up to `size` elements, `stride` after each other in this one, the first of them
  -- `shift` (size) elements after the first one of the window before. Elements have the same sizes. flat_map, interleave and loops take
  -- windows, take, skip, shuffle and others pass them on.
  takes "size: count, shift?: count, stride: count = 1, drop_remainder: boolean = false"
  function Dataset:window(size, shift, stride, drop_remainder)
    if self._window then raise("window: the elements are data sets already") end
    local dataset = make({ self }, C.flow_dataset_window, self._handle, size, shift or size, stride, drop_remainder and 1 or 0, out)
    rawset(dataset, "_window", function(components)
      local windows = {}
      for i, rows in ipairs(components) do windows[i] = Dataset.from_tensor_slices { rows } end
      return windows
    end)
    return dataset
  end
end

---- groups --------------------------------------------------------------------------------------------------------------------

local function define_groups(Dataset, internal)
  -- group_by_window. keys: with which reduce_func is tried, too, since sizes may depend on the key; those that it refuses do not count.
  local function group_by_window(self, what, key_func, reduce_func, window_size, window_size_func, keys)
    local specs = self._specs
    local function reduce(key, group)
      local made = reduce_func(ops.operand(key, "int64", what), of_elements(internal, group, specs, self._structure))
      if not internal.is(made) then raise("%s: reduce_func returned %s, expected a Dataset", what, errors.describe(made)) end
      return made
    end
    -- What reduce_func makes of a group of one tells the signature of the elements.
    local learnt, own = internal.learn(self, function(components)
      local like = reduce(number_of(what, key_func(unpacked(self, components))), { components })
      local found = like._specs
      for _, key in ipairs(keys) do
        local ok, other = pcall(reduce, key, { components })
        if ok then join_sizes(found, other._specs) end
      end
      return found, like._structure
    end)
    if not learnt then return self end
    return internal.transform({ self }, learnt, own, UNKNOWN, function(pull, give)
      local groups, order = {}, {}      -- by key, lists of components with `size`; keys in the order of their first elements
      local function finish(key)
        local group = groups[key]
        groups[key] = nil
        local made = reduce(key, group)
        for components in internal.components(made) do give(components) end
      end
      for components in pull do
        local key = number_of(what, key_func(unpacked(self, components)))
        local group = groups[key]
        if not group then
          group = { size = window_size or number_of(what, window_size_func(ops.operand(key, "int64", what))) }
          if group.size < 1 then raise("%s: window_size_func returned %g, expected a whole number from 1", what, group.size) end
          groups[key], order[#order + 1] = group, key
        end
        group[#group + 1] = components
        if #group >= group.size then finish(key) end
      end
      table.sort(order)      -- what is left comes by key; a key stands in `order` once for each group that it had
      for _, key in ipairs(order) do
        if groups[key] then finish(key) end
      end
    end)
  end

  -- Elements with the same key, a whole number, are gathered; each group of window_size (or window_size_func(key)), and at the end what is
  -- left, becomes the Dataset that reduce_func(key, group) makes of it, whose elements follow each other. The functions run in Lua.
  takes "key_func: callable, reduce_func: callable, window_size?: count, window_size_func?: callable"
  function Dataset:group_by_window(key_func, reduce_func, window_size, window_size_func)
    local what = "group_by_window"
    if (window_size == nil) == (window_size_func == nil) then raise("%s takes either window_size or window_size_func", what) end
    return group_by_window(self, what, key_func, reduce_func, window_size, window_size_func, { 0, 1 })
  end

  -- Batches of sequences of similar lengths: those below bucket_boundaries[i] (and not below the one before) in batches of
  -- bucket_batch_sizes[i], of which there is one more, padded as padded_batch does or, with pad_to_bucket_boundary, to the boundary - 1.
  takes("element_length_func: callable, bucket_boundaries: list, bucket_batch_sizes: list, padded_shapes?, "
    .. "padding_values?, pad_to_bucket_boundary: boolean = false, no_padding: boolean = false, "
    .. "drop_remainder: boolean = false")
  function Dataset:bucket_by_sequence_length(length_of, boundaries, sizes, shapes, fill, to_boundary, no_padding, drop_remainder)
    local what = "bucket_by_sequence_length"
    if #sizes ~= #boundaries + 1 then
      raise("%s: bucket_batch_sizes has one more entry than bucket_boundaries: expected %d, got %d", what, #boundaries + 1, #sizes)
    end
    for i, boundary in ipairs(boundaries) do
      if type(boundary) ~= "number" then
        raise("%s: entry %d of bucket_boundaries is %s, expected a length", what, i, errors.describe(boundary))
      end
      if i > 1 and not (boundary > boundaries[i - 1]) then raise("%s: bucket_boundaries grow, entry %d is %g", what, i, boundary) end
    end
    local function bucket_of(...)
      local length = number_of(what, length_of(...))
      for i, boundary in ipairs(boundaries) do
        if length < boundary then return i - 1 end
      end
      if to_boundary then
        raise("%s: with pad_to_bucket_boundary every length is below the last boundary %g, one is %g", what, boundaries[#boundaries],
          length)
      end
      return #boundaries
    end
    local function batch(key, group)
      local bucket = key:item() + 1
      if no_padding then return group:batch(sizes[bucket], { drop_remainder = drop_remainder }) end
      local padded = shapes
      if to_boundary then
        padded = {}
        for i, spec in ipairs(group._specs) do
          padded[i] = {}
          for axis, n in ipairs(spec.shape) do padded[i][axis] = n < 0 and boundaries[bucket] - 1 or n end
        end
      end
      return group:padded_batch(sizes[bucket], { padded_shapes = padded, padding_values = fill, drop_remainder = drop_remainder })
    end
    local keys = {}
    for i in ipairs(sizes) do keys[i] = i - 1 end
    return group_by_window(self, what, bucket_of, batch, nil, function(key) return sizes[key:item() + 1] end, keys)
  end
end

---- elements with a memory -------------------------------------------------------------------------------------------------------

local function define_states(Dataset, internal)
  -- f(state, element) -> state, result for one element after the other; the results are the elements. A state of several tensors is a list.
  takes "initial_state: any, scan_func: callable"
  function Dataset:scan(initial, f)
    local what = "scan"
    local function state_of(value)
      if type(value) == "table" and not getmetatable(value) then return value end
      return type(value) == "string" and value or ops.operand(value, nil, what)
    end
    initial = state_of(initial)
    local function step(state, components)
      local results = { f(state, unpacked(self, components)) }
      if #results < 2 then raise("%s: the function returns the next state and a result, got %d values", what, #results) end
      state = table.remove(results, 1)
      return state, structure.flatten(what, #results == 1 and type(results[1]) == "table" and not getmetatable(results[1])
        and not structure.is_named(results[1]) and results[1] or results)
    end
    local specs, own = internal.learn(self, function(components)
      local _, values, found = step(initial, components)
      return elements.specs_of_values(values), found
    end)
    if not specs then return self end
    return internal.transform({ self }, specs, own, self:cardinality(), function(pull, give)
      local state = initial
      for components in pull do
        local made
        state, made = step(state, components)
        give(made)
      end
    end)
  end

  -- Each element once: numbers or strings, of which the first ones stay.
  function Dataset:unique()
    local specs = self._specs
    if #specs ~= 1 or #specs[1].shape > 0 then raise("unique: elements are single numbers or strings, these are %s", tostring(self)) end
    return internal.transform({ self }, specs, self._structure, UNKNOWN, function(pull, give)
      local seen = {}
      for components in pull do
        local value = type(components[1]) == "string" and components[1] or components[1]:item()
        if not seen[value] then
          seen[value] = true
          give(components)
        end
      end
    end)
  end

  -- Pairs (class, element), an element of several values as a list of them, in which classes are as often as target_dist says, by leaving
  -- elements out. class_func(element) gives a class from 0. Without initial_dist the classes seen so far tell how often they are. Passes
  -- with one seed leave out the same elements.
  takes "class_func: callable, target_dist: list|tensor, initial_dist?: list|tensor, seed?: whole"
  function Dataset:rejection_resample(class_func, target, start, seed)
    local what, specs = "rejection_resample", self._specs
    if native.is_tensor(target) then target = target:reshape(-1):totable() end
    if native.is_tensor(start) then start = start:reshape(-1):totable() end
    seed = seed or C.flow_context_next_seed(native.context) % 2 ^ 31
    for name, list in pairs { target_dist = target, initial_dist = start } do
      for i, part in ipairs(list) do
        if type(part) ~= "number" or not (part >= 0 and part < math.huge) then
          raise("%s: %s is a list of parts from 0, entry %d is %s", what, name, i, errors.describe(part))
        end
      end
    end
    if start and #start ~= #target then raise("%s: initial_dist has %d entries, target_dist %d", what, #start, #target) end
    local element = structure.of_element(self)
    local own = element and { false, element }      -- as zip: the class, and the element as one value
    table.insert(specs, 1, { shape = {}, dtype = "int64" })
    return internal.transform({ self }, specs, own, UNKNOWN, function(pull, give)
      local counts, draw = {}, uniforms(seed)
      for i in ipairs(target) do counts[i] = start and start[i] or 1 end      -- as tf.data begins
      for components in pull do
        local class = number_of(what, class_func(unpacked(self, components)))
        if not counts[class + 1] then raise("%s: class_func returned %g, classes are 0 to %d", what, class, #target - 1) end
        if not start then counts[class + 1] = counts[class + 1] + 1 end
        -- An element stays with the chance target / found of its class, over the largest such ratio of all classes: so the rarest class,
        -- measured by what is wanted of it, is kept whole (tf.data's _rejection_resample).
        local most, total = 0, 0
        for i in ipairs(target) do total = total + counts[i] end
        for i, part in ipairs(target) do most = math.max(most, counts[i] > 0 and part / (counts[i] / total) or 0) end
        local kept = most > 0 and target[class + 1] / (counts[class + 1] / total) / most or 0
        if draw() < kept then give { ops.operand(class, "int64", what), unpack(components) } end
      end
    end)
  end
end

---- ends and numbers -------------------------------------------------------------------------------------------------------------

local function define_ends(Dataset, internal, make, out)
  -- The elements before the first one for which predicate gives false: a scalar of dtype bool. It is traced, or called in Lua, as filter's.
  takes "predicate: callable"
  function Dataset:take_while(predicate)
    local handle = internal.predicate(self, predicate)
    if not handle then return internal.filter_in_lua("take_while", self, predicate, true) end
    native.keep(handle)
    return make({ self }, C.flow_dataset_take_while, self._handle, handle, out)
  end

  -- Leaves out elements whose file cannot be read, or whose function fails on them.
  takes "log_warning: boolean = false"
  function Dataset:ignore_errors(log_warning)
    return make({ self }, C.flow_dataset_ignore_errors, self._handle, log_warning and 1 or 0, out)
  end

  -- The one element that there is.
  function Dataset:get_single_element()
    local pass = self:iter()
    local values = { pass() }
    if values[1] == nil then raise("get_single_element: the data set has no elements") end
    if pass() ~= nil then raise("get_single_element: the data set has more than one element") end
    pass:close()
    return unpack(values)
  end

  -- The elements; an error in a pass that has another number of them. cardinality() is this number.
  takes "expected: whole"
  function Dataset:assert_cardinality(expected)
    return internal.transform({ self }, self._specs, self._structure, expected, function(pull, give)
      local found = 0
      for components in pull do
        found = found + 1
        if found > expected then raise("assert_cardinality: the data set has more than %d elements", expected) end
        give(components)
      end
      if found < expected then raise("assert_cardinality: the data set has %d elements, expected %d", found, expected) end
    end)
  end

  -- As iter(): a pass whose values are tensors and strings.
  function Dataset:as_numpy_iterator() return self:iter() end

  takes "batch_size: count, drop_remainder: boolean = false"
  function Dataset:ragged_batch()
    raise("ragged_batch: %s cannot become ragged tensors, rows of tensors are of one size: padded_batch fills them up", tostring(self))
  end

  takes "batch_size: count, row_shape?: list"
  function Dataset:sparse_batch()
    raise("sparse_batch: %s cannot become sparse tensors: batch gives whole ones", tostring(self))
  end
end

---- files ------------------------------------------------------------------------------------------------------------------------

local function define_files(Dataset, internal, make, out)
  -- The folder of a path, and the files of its elements and of their structure.
  local function file_in(what, path)
    local io = require "flow.io"
    path = io.path(path, what):gsub("/+$", "")
    return path, path .. "/elements", path .. "/names.json"
  end

  -- Raises for a compression: files are not compressed.
  local function check_compression(what, value)
    if value ~= nil and value ~= "" and value ~= "NONE" and value ~= "AUTO" then
      raise("%s: compression %s is not supported: elements stand in the file as they are", what, errors.describe(value))
    end
  end

  -- Writes all elements into the folder `path`, from which Dataset.load reads them.
  takes "path: path, compression?"
  function Dataset:save(path, compression)
    check_compression("save", compression)
    require("flow.tensor.passes").check_end("save", self)
    local io = require "flow.io"
    local folder, file, names = file_in("save", path)
    io.makedirs(folder)
    local new = file .. ".new"      -- what was saved before stays until these are whole; they may be made of it
    if io.exists(new) then io.remove(new) end
    for _ in internal.components(self:cache(new)) do end      -- luacheck: ignore
    io.rename(new, file, true)
    io.write(names, require("flow.json").encode { structure = self._structure or {} })
  end

  -- What save wrote. The signature is in the files.
  takes "path: path, compression?"
  function Dataset.load(path, compression)
    local io, json = require "flow.io", require "flow.json"
    check_compression("load", compression)
    local _, file, names = file_in("load", path)
    if not io.exists(file) then raise("load: %s holds no data set: Dataset:save(path) writes one", path) end
    local dataset = make({}, C.flow_dataset_load, file, out)
    local own = io.exists(names) and json.decode(io.read_file(names)).structure or {}
    local count = 0
    for _, entry in ipairs(own) do count = count + structure.count(entry) end
    if count > 0 and count ~= #dataset._specs then
      raise("load: %s names %d components, the elements have %d", names, count, #dataset._specs)
    end
    rawset(dataset, "_structure", count > 0 and own)
    return dataset
  end

  -- The elements of the first complete pass, which stay in the folder `path`: later passes and processes read them there.
  takes "path: path, compression?, reader_func?: callable, shard_func?: callable"
  function Dataset:snapshot(path, compression, reader_func, shard_func)
    if reader_func or shard_func then raise("snapshot: reader_func and shard_func are not supported: there is one file, read in order") end
    check_compression("snapshot", compression)
    local folder, file = file_in("snapshot", path)
    require("flow.io").makedirs(folder)
    return self:cache(file)
  end
end

---- sources ------------------------------------------------------------------------------------------------------------------------

local function define_sources(Dataset, internal)
  -- start, start + step, ... without end.
  takes "start: numeric = 0, step: numeric = 1, { dtype = 'int64' }"
  function Dataset.counter(start, step, options)
    return internal.transform({}, { { shape = {}, dtype = options.dtype } }, false, -1, function(_, give)
      local value = start
      while true do
        give { ops.operand(value, options.dtype, "counter") }
        value = value + step
      end
    end)
  end

  -- Random whole numbers from 0 to below 2^32, without end, the same in every pass.
  takes "seed?: whole"
  function Dataset.random(seed)
    seed = seed or C.flow_context_next_seed(native.context) % 2 ^ 31
    return internal.transform({}, { { shape = {}, dtype = "int64" } }, false, -1, function(_, give)
      local draw = uniforms(seed)
      while true do
        give { ops.operand(math.floor(draw() * 65536) * 65536 + math.floor(draw() * 65536), "int64", "random") }
      end
    end)
  end
end

return function(Dataset, internal, make, out)
  internal.uniforms = uniforms

  -- A data set of elements of these specs that body(pull, give) makes of those of inputs (Iterator._register_transform). inputs: a list of
  -- data sets; own: the structure of the elements; cardinality: their number, -1 or -2.
  function internal.transform(inputs, specs, own, cardinality, body)
    local handles, are_texts = native.out("flow_dataset", math.max(#inputs, 1)), {}
    for i, input in ipairs(inputs) do
      handles[i - 1], are_texts[i] = input._handle, {}
      for k, spec in ipairs(input._specs) do are_texts[i][k] = spec.dtype == "string" end
    end
    local components, count = elements.components("transform", specs)
    local callback = Iterator._register_transform(body, specs, are_texts)
    local dataset = make({ unpack(inputs) }, C.flow_dataset_transform, handles, #inputs, callback.id, components, count, cardinality, out)
    rawset(dataset, "_callback", callback)
    rawset(dataset, "_structure", own)
    rawset(dataset, "_window", false)
    return dataset
  end

  -- What f(components) -> specs, structure, ... says of an element of the dataset. If the dataset's sizes vary, f is called again with
  -- zeros of other sizes: sizes of the specs that differ then vary, too, and all sizes do if f fails on zeros. If there are no elements, f
  -- gets zeros alone; nil: it fails on them.
  function internal.learn(dataset, f)
    local varies = false
    for _, spec in ipairs(dataset._specs) do
      for _, n in ipairs(spec.shape) do varies = varies or n < 0 end
    end
    local first = internal.first(dataset)
    local results
    if first then
      results = { f(first) }
    else
      first = elements.blank(dataset._specs)
      results = { pcall(f, first) }
      if not table.remove(results, 1) then return nil end
    end
    if not varies then return unpack(results, 1, 3) end
    local ok, others = pcall(f, elements.blank(dataset._specs, first))
    join_sizes(results[1], ok and others)
    return unpack(results, 1, 3)
  end

  define_windows(Dataset, make, out)
  define_groups(Dataset, internal)
  define_states(Dataset, internal)
  define_ends(Dataset, internal, make, out)
  define_files(Dataset, internal, make, out)
  define_sources(Dataset, internal)
end
