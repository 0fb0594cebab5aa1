-- utils.lua: flow.utils: the helpers of keras.utils, by their names and with their rules.
--
-- The room: flow.utils. May use: tensor, layers, data, distribute, plot.

local native = require "flow.ffi"
local random = require "flow.tensor.random"
local errors = require "flow.errors"
local tensor = require "flow.tensor"
local ops = require "flow.tensor.ops"
local signature = require "flow.signature"

local raise, takes = errors.raise, signature.takes

local ELSEWHERE = {
  DatasetCreator = { "flow.distribute.dataset", "DatasetCreator" },
  FeatureSpace = { "flow.layers.feature_space", "FeatureSpace" },
  timeseries_dataset_from_array = { "flow.data.timeseries", "from_array" },
  image_dataset_from_directory = { "flow.data.image_dataset", "from_directory" },
  text_dataset_from_directory = { "flow.data.text_dataset", "from_directory" },
  audio_dataset_from_directory = { "flow.data.audio_dataset", "from_directory" },
  bounding_boxes = { "flow.tensor.composed.bounding_boxes", "bounding_boxes" },
  PyDataset = { "flow.data.py_dataset", "PyDataset" }, Sequence = { "flow.data.py_dataset", "PyDataset" },
}
for _, name in ipairs { "load_img", "save_img", "img_to_array", "array_to_img", "smart_resize" } do
  ELSEWHERE[name] = { "flow.tensor.image_utils", name }
end
for _, name in ipairs { "register_keras_serializable", "custom_object_scope", "CustomObjectScope", "get_custom_objects",
    "get_registered_name", "get_registered_object" } do
  ELSEWHERE[name] = { "flow.custom_objects", name }
end

-- What is in another module is loaded when a script names it.
local utils = signature.module("flow.utils", nil, function(utils, name)
  local place = ELSEWHERE[name]
  local module = place and require(place[1])
  if name == "FeatureSpace" then module.above = rawget(utils, "_above") end      -- what writes files
  return module and module[place[2]] or nil
end)
signature.names_of(utils, function()
  return require("flow.names").sorted(ELSEWHERE)
end)

-- Automatic names of layers count from the beginning again.
function utils.clear_session() require("flow.names").reset() end

-- Labels {...} from 0 as rows of num_classes with a single 1, float32 {..., num_classes}; a last axis of 1 is dropped. Without
-- num_classes: the largest label and 1.
takes "x: data, num_classes?: count"
function utils.to_categorical(x, classes)
  local labels = native.is_tensor(x) and x or tensor.tensor(x)
  local shape = labels.shape
  if #shape > 1 and shape[#shape] == 1 then labels = labels:squeeze(-1) end
  if labels.size == 0 and not classes then raise("flow.utils.to_categorical: without labels num_classes has to be given") end
  if labels.size > 0 and labels.dtype:find "float" and labels:ne(labels):any():item() then
    raise("flow.utils.to_categorical: a label is NaN, expected the number of a class")
  end
  local integers = labels:to("int64")
  local least, largest = 0, classes and classes - 1
  if integers.size > 0 then      -- Lua's numbers cannot hold items beyond 2^53
    least, largest = tonumber(integers:min():item()), math.max(tonumber(integers:max():item()), largest or 0)
  end
  if least < 0 or largest >= (classes or 2 ^ 53) then
    local last = classes and ("num_classes - 1 = %d"):format(classes - 1) or "classes - 1"
    raise("flow.utils.to_categorical: labels are from 0 to %s, found %.0f", last, least < 0 and least or largest)
  end
  return ops.one_hot(integers, classes or largest + 1)
end

-- Sequences of several lengths (lists of numbers, or tensors whose first axis is the time) as one tensor {count, maxlen, ...}: short ones
-- are filled up with `value`, long ones cut, both at their beginning unless padding or truncating is "post". Entries have the same shape in
-- all.
takes("sequences: list, maxlen?: count, dtype: string = 'int32', padding: 'pre'|'post' = 'pre', " ..
  "truncating: 'pre'|'post' = 'pre', value: number = 0")
function utils.pad_sequences(sequences, most, dtype, padding, truncating, value)
  local what = "flow.utils.pad_sequences"
  local rows, longest, inner = {}, 0, nil
  for i = 1, errors.check_list(what, sequences) do
    local row = sequences[i]
    if not native.is_tensor(row) and (type(row) ~= "table" or getmetatable(row)) then
      raise("%s: sequence %d is %s, expected a list or a tensor", what, i, errors.describe(row))
    end
    rows[i] = native.is_tensor(row) and row or #row > 0 and tensor.tensor(row) or false
    if rows[i] and #rows[i].shape == 0 then raise("%s: sequence %d is a single number, expected a list or a tensor", what, i) end
    if rows[i] and rows[i].shape[1] == 0 then rows[i] = false end
    if rows[i] then
      local rest = { unpack(rows[i].shape, 2) }
      inner = inner or { rest = rest, first = i }
      if table.concat(inner.rest, "x") ~= table.concat(rest, "x") then
        raise("%s: an entry of sequence %d has the shape {%s}, of sequence %d {%s}: expected equal ones", what, i, table.concat(rest, ", "),
          inner.first, table.concat(inner.rest, ", "))
      end
      longest = math.max(longest, rows[i].shape[1])
    end
  end
  most = most or longest
  -- Nothing to stack: a tensor without elements, or without rows.
  if #rows == 0 or most == 0 then return tensor.full({ #rows, most, unpack(inner and inner.rest or {}) }, value, { dtype = dtype }) end
  for i, row in ipairs(rows) do
    local rest = inner and inner.rest or {}
    local length = row and math.min(row.shape[1], most) or 0
    local parts = {}
    if length > 0 then
      local from = truncating == "pre" and row.shape[1] - length + 1 or 1
      parts[1] = row:to(dtype)[{ { from, from + length - 1 } }]
    end
    if length < most then
      table.insert(parts, padding == "pre" and 1 or #parts + 1, tensor.full({ most - length, unpack(rest) }, value, { dtype = dtype }))
    end
    rows[i] = #parts == 1 and parts[1] or ops.concat(parts, 1)
  end
  return ops.stack(rows, 1)
end

-- x over the norm of its vectors along an axis, float32 or as x; a norm of 0 counts as 1. order: from 1, math.huge for the largest absolute
-- value.
takes "x: data, axis: integer = -1, order: number = 2"
function utils.normalize(x, axis, order)
  local values = native.is_tensor(x) and x or tensor.tensor(x)
  if not (order >= 1) then raise("flow.utils.normalize: order is a number from 1, got %g", order) end
  local size = values:abs()
  local norm
  if order == math.huge then norm = size:max(axis, true)
  elseif order == 1 then norm = size:sum(axis, true)
  elseif order == 2 then norm = (size * size):sum(axis, true):sqrt()
  else norm = (size ^ order):sum(axis, true) ^ (1 / order) end
  return values / ops.where(norm:eq(0), tensor.ones(norm.shape, { dtype = norm.dtype }), norm)
end

-- The parts of what a step gets: x, y and sample_weight, nil where there is none. A table by name is x, as a dict is in Keras.
takes "data: data"
function utils.unpack_x_y_sample_weight(data)
  if type(data) ~= "table" or getmetatable(data) then return data end
  local count = table.maxn(data)
  if count == 0 and next(data) ~= nil then return data end
  if count == 0 or count > 3 then
    raise("flow.utils.unpack_x_y_sample_weight: data is x, { x }, { x, y } or { x, y, sample_weight }, got %s", errors.describe(data))
  end
  return data[1], data[2], data[3]
end

---- words -------------------------------------------------------------------------------------------------------------------

-- Pairs of words that stand at most window_size apart in a sequence, with the label 1, and negative_samples times as many of words with
-- random ones, with the label 0, in random order: as keras.preprocessing.sequence.skipgrams. Words are whole numbers; 0 is left out.
-- sampling_table[w + 1]: how probably word w is taken. Returns two lists.
takes("sequence: list, vocabulary_size: count, window_size: whole = 4, negative_samples: number = 1, shuffle: boolean = true, "
  .. "categorical: boolean = false, sampling_table?: list, seed?: whole")
function utils.skipgrams(sequence, vocabulary_size, window_size, negative_samples, shuffle, categorical, sampling_table, seed)
  -- Each draw has its own seed, so that one seed does not give the same numbers twice.
  local draws = 0
  local function uniform(count)
    draws = draws + 1
    return random.uniform({ count }, { seed = seed and seed + draws }):totable()
  end
  local couples, labels = {}, {}
  local function add(word, other, label)
    couples[#couples + 1] = { word, other }
    labels[#labels + 1] = categorical and { 1 - label, label } or label
  end
  for i, word in ipairs(sequence) do
    if type(word) ~= "number" or word < 0 or word ~= math.floor(word) or sampling_table and word ~= 0 and not sampling_table[word + 1] then
      raise("flow.utils.skipgrams: word %d is %s, expected a whole number from 0%s", i, errors.describe(word),
        sampling_table and (" to %d, which sampling_table has"):format(#sampling_table - 1) or "")
    end
  end
  local kept = sampling_table and uniform(#sequence)
  for i, word in ipairs(sequence) do
    local is_taken = word ~= 0 and not (kept and sampling_table[word + 1] < kept[i])
    for j = math.max(1, i - window_size), is_taken and math.min(#sequence, i + window_size) or 0 do
      if j ~= i and sequence[j] ~= 0 then add(word, sequence[j], 1) end
    end
  end
  local positive = #couples
  local negative = math.floor(positive * negative_samples)
  local order, others = negative > 0 and random.permutation(positive, { seed = seed }):totable(), negative > 0 and uniform(negative)
  for i = 1, negative do
    add(couples[order[(i - 1) % positive + 1]][1], 1 + math.floor(others[i] * (vocabulary_size - 1)), 0)
  end
  if not shuffle or #couples == 0 then return couples, labels end
  local moved_couples, moved_labels = {}, {}
  for i, from in ipairs(random.permutation(#couples, { seed = seed }):totable()) do
    moved_couples[i], moved_labels[i] = couples[from], labels[from]
  end
  return moved_couples, moved_labels
end

-- How probably skipgrams takes each word of a vocabulary whose words are in the order of how frequent they are, word 0 first: seldom the
-- most frequent ones. As keras.preprocessing.sequence.make_sampling_table; Zipf's law says how frequent word r is. A list.
takes "size: count, sampling_factor: number = 1e-5"
function utils.make_sampling_table(size, factor)
  local list = {}
  for i = 0, size - 1 do
    local rank = math.max(i, 1)
    local inverse = rank * (math.log(rank) + 0.577) + 0.5 - 1 / (12 * rank)
    list[i + 1] = math.min(1, math.sqrt(factor * inverse))
  end
  return list
end

-- What a step gets, of its parts.
takes "x: data, y?: data, sample_weight?: data"
function utils.pack_x_y_sample_weight(x, y, weight)
  if y == nil and weight == nil then return type(x) == "table" and not getmetatable(x) and { x } or x end
  return { x, y, weight }
end

---- data sets ---------------------------------------------------------------------------------------------------------------

-- The number of elements that left_size or right_size asks for, which may be a fraction: it is rounded by the caller.
local function size_of(name, size, total)
  if size == nil then return nil end
  local whole = size == math.floor(size) and size >= 1
  if not (whole and size < total or size > 0 and size < 1) then
    raise("flow.utils.split_dataset: %s is a whole number from 1 to %d, or a part between 0 and 1, got %g", name, total - 1, size)
  end
  return whole and size or size * total
end

-- Half to even, as Python does.
local function round(x)
  local low = math.floor(x)
  local above = x - low
  if above > 0.5 or above == 0.5 and low % 2 == 1 then return low + 1 end
  return low
end

-- Two data sets of the elements of one (a data set, whose elements may be batches, a tensor, or a list of tensors): the first left_size and
-- the last right_size of them, each a number of elements or a part of all.
takes "dataset: data, left_size?: number, right_size?: number, shuffle: boolean = false, seed?: whole"
function utils.split_dataset(dataset, left, right, shuffle, seed)
  local Dataset = require("flow.data").Dataset
  local what = "flow.utils.split_dataset"
  if left == nil and right == nil then raise("%s: left_size or right_size has to be given", what) end
  local metatable = getmetatable(dataset)
  if native.is_tensor(dataset) or type(dataset) == "table" and not metatable then
    dataset = Dataset.from_tensor_slices(dataset)
  elseif type(metatable) ~= "table" or not metatable[Dataset] then
    raise("%s: expected a data set, a tensor or a list of tensors, got %s", what, errors.describe(dataset))
  end
  local total = dataset:cardinality()
  if total < 0 then      -- not known: one pass counts them
    total = 0
    if dataset:cardinality() == require("flow.data").INFINITE_CARDINALITY then raise("%s: the data set has no end", what) end
    for _ in dataset:iter() do total = total + 1 end
  end
  if total < 2 then raise("%s: the data set has %d elements, expected at least 2", what, total) end
  local first, last = size_of("left_size", left, total), size_of("right_size", right, total)
  first, last = first and round(first) or total - round(last), last and round(last) or total - round(first)
  if first + last > total then
    raise("%s: left_size and right_size are %d and %d elements, more than the data set's %d", what, first, last, total)
  elseif first == 0 or last == 0 then
    raise("%s: of %d elements %s would have none", what, total, first == 0 and "the left part" or "the right part")
  end
  if shuffle then
    seed = seed or math.floor(require("flow.tensor.random").uniform({ 1 }):item() * 2 ^ 24)
    dataset = dataset:shuffle(total, { seed = seed, reshuffle_each_iteration = false })
  end
  return dataset:take(first), dataset:skip(total - last)
end

---- what is elsewhere ---------------------------------------------------------------------------------------------------

-- The seed of everything random: weights, dropout, shuffles.
function utils.set_random_seed(seed)
  return require("flow.tensor.random").set_seed(seed)
end

-- Whether x is a symbolic tensor, as Inputs are and what layers make of them.
takes "x: any"
function utils.is_keras_tensor(x)
  return require("flow.layers.symbolic").is(x)
end

-- Whether value is an object of a class, or of one that extends it; classes: one, or a list of which one is enough.
takes "value: any, classes: any"
function utils.isinstance(value, classes)
  local object = require "flow.object"
  local list = type(classes) == "table" and not object.classes[classes] and classes or { classes }
  if #list == 0 then raise("isinstance: takes a class, such as flow.layers.Dense, or a list of them, got an empty list") end
  for i, class in ipairs(list) do
    if type(class) ~= "table" or not object.classes[class] then
      raise("isinstance: takes a class, such as flow.layers.Dense, or a list of them, got %s%s",
        type(classes) == "table" and "at entry " .. i .. " " or "", errors.describe(class))
    end
  end
  for _, class in ipairs(list) do
    if type(value) == "table" and getmetatable(value) and object.is(value, class) then return true end
  end
  return false
end

-- The name of a dtype; without one float32.
takes "dtype?: any"
function utils.standardize_dtype(dtype)
  if dtype == nil then return "float32" end
  if dtype == "string" then return dtype end
  return native.dtype_names[native.dtype(dtype)]
end

-- Raises unless a file has the digest that was given, by its own name ("sha256", "md5") or that of its length ("auto").
local function check_digest(path, hash, algorithm)
  local digest = require "flow.digest"
  local kind = digest.DIGITS[#hash]
  if algorithm ~= "auto" and algorithm ~= "md5" and algorithm ~= "sha256" or not kind or hash:find "%X"
    or algorithm ~= "auto" and algorithm ~= kind then
    raise("flow.utils.get_file: file_hash is 64 hexadecimal digits of sha256 or 32 of md5, got %q for %s", hash, algorithm)
  end
  local file, problem = require("flow.host").io.open(path, "rb")
  if not file then raise("flow.utils.get_file: %s", problem) end
  local found = digest.of(function(count) return file:read(count) end, kind)
  file:close()
  if found ~= hash:lower() then
    raise("flow.utils.get_file: %s has the %s digest %s, expected %s: it is another file, or damaged; get it again",
      path, kind, found, hash)
  end
end

-- The path of a file that Keras would download: it has to be there, in cache_dir (KERAS_HOME, or .keras in the home folder) below
-- cache_subdir, packed or not as it is, with the digest file_hash, if that is given.
takes("fname?: string, origin?: string, { untar?: boolean, md5_hash?: string, file_hash?: string, "
  .. "cache_subdir: string = 'datasets', hash_algorithm: string = 'auto', extract?: boolean, archive_format?: string, cache_dir?: path, "
  .. "force_download?: boolean; }")
function utils.get_file(name, origin, options)
  local io, host = require "flow.io", require "flow.host"
  name = name or origin and origin:match("([^/]+)/*$")
  if not name then raise("flow.utils.get_file: give the name of the file") end
  local home = options.cache_dir or host.getenv("KERAS_HOME") or io.join(host.getenv("HOME") or "", ".keras")
  local path = name:sub(1, 1) == "/" and name or io.join(home, options.cache_subdir, name)
  if options.extract or options.untar then
    local folder = path:gsub("%.tgz$", ""):gsub("%.tar%.%w+$", ""):gsub("%.zip$", ""):gsub("%.tar$", "")
    if io.isdir(folder) then return folder end
  end
  if io.exists(path) then
    local hash = options.file_hash or options.md5_hash
    if hash then check_digest(path, hash, options.file_hash and options.hash_algorithm or "md5") end
    return path
  end
  raise("flow.utils.get_file: %s does not exist, and nothing is downloaded%s", path, origin and ": get it from " .. origin or "")
end

-- Draws a model's graph; what is drawn is what model:plot(file) draws.
takes("model: any, to_file: path = 'model.png', { show_shapes?: boolean, show_dtype?: boolean, show_layer_names?: boolean, " ..
  "rankdir?: 'TB'|'LR', expand_nested?: boolean, dpi?: number, show_layer_activations?: boolean, show_trainable?: boolean; }")
function utils.plot_model(model, file, options)
  if type(model) ~= "table" or type(getmetatable(model)) ~= "table" or not model.layers then
    raise("flow.utils.plot_model: expected a model, got %s", errors.describe(model))
  end
  return require("flow.plot").model(model, file, options)
end

return utils
