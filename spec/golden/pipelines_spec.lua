-- pipelines_spec.lua: stages of data sets give what tf.data's give, and FeatureSpace what Keras' gives (pipelines.py).
require "spec.support.init"
local flow = require "flow"
local cases = require "spec.golden.pipelines"

local Dataset = flow.data.Dataset

local function sequences()
  return Dataset.from_generator(function()
    local lengths, i = { 1, 5, 2, 7, 3, 3, 4, 9, 1, 6 }, 0
    return function()
      i = i + 1
      return lengths[i] and flow.full({ lengths[i] }, lengths[i])
    end
  end, { output_signature = { shape = { -1 }, dtype = "float32" } })
end

local function int64(value) return flow.tensor(value, { dtype = "int64" }) end
local function pairs_of_numbers()
  return Dataset.zip { Dataset.range(7), Dataset.range(7):map(function(x) return x:to "float32" / 2 end) }
end

local function batch(size) return function(window) return window:batch(size) end end
local function length(x) return x.shape[1] end

local function texts() return Dataset.from_tensor_slices { "the cat sat", "a dog", "birds fly over the sea", "one" } end
local function words() return texts():map(function(s) return flow.strings.split(s) end) end
local function named() return Dataset.zip { Dataset.range(4), words() }:map(function(n, text) return { n = n, text = text } end) end

local made = {
  buckets_texts = function()
    return words():bucket_by_sequence_length(function(x) return flow.shape(x)[1] end, { 3, 5 }, { 2, 2, 2 }, { padding_values = "-" })
  end,
  pad_number = function() return sequences():padded_batch(4, { padded_shapes = 9, padding_values = flow.tensor(-1) }) end,
  pad_texts = function() return words():padded_batch(3, { padding_values = "<pad>" }) end,
  pad_texts_wide = function()
    return words():padded_batch(3, { padded_shapes = { 6 }, padding_values = "<pad>", drop_remainder = true })
  end,
  pad_named = function()
    return named():padded_batch(3, { padded_shapes = { text = { 6 }, n = {} }, padding_values = { text = "-", n = 0 } })
  end,
  pad_split = function() return texts():batch(3):map(function(s) return flow.strings.split(s):to_tensor "?" end) end,
  joined_texts = function() return words():map(function(s) return flow.concat { { "[S]" }, s, { "[E]" } } end) end,
  stacked_texts = function() return words():map(function(s) return flow.stack({ s, s }, 2) end) end,
  texts = function() return Dataset.from_tensors("a"):repeat_(2) end,
  sizes = function() return Dataset.range(1, 4):map(function(x) return flow.full({ x, 2 }, x) end) end,
  numbers_as_texts = function()
    return Dataset.range(3):map(function(x) return flow.strings.join({ "n", flow.strings.as_string(x) }, { separator = "-" }) end)
  end,
  window = function() return Dataset.range(7):window(3):flat_map(batch(3)) end,
  window_shift = function() return Dataset.range(7):window(3, { shift = 1 }):flat_map(batch(3)) end,
  window_full = function() return Dataset.range(7):window(3, { shift = 1, drop_remainder = true }):flat_map(batch(3)) end,
  window_stride = function() return Dataset.range(7):window(3, 1, 2):flat_map(batch(3)) end,
  window_apart = function() return Dataset.range(9):window(2, { shift = 4 }):flat_map(batch(2)) end,
  window_stride_full = function() return Dataset.range(9):window(2, 2, 3, true):flat_map(batch(2)) end,
  window_pairs = function()
    return pairs_of_numbers():window(3, { shift = 2 }):flat_map(function(x, y) return Dataset.zip { x:batch(2), y:batch(2) } end)
  end,
  group_by_window = function()
    return Dataset.range(10):group_by_window(function(x) return x % 3 end, function(_, group) return group:batch(2) end,
      { window_size = 2 })
  end,
  group_keys = function()
    return Dataset.range(10):group_by_window(function(x) return x % 2 end, function(key, group)
      return group:map(function(x) return x * 10 + key end)
    end, { window_size_func = function(key) return key + 2 end })
  end,
  buckets = function() return sequences():bucket_by_sequence_length(length, { 3, 5 }, { 2, 3, 2 }) end,
  buckets_dropped = function() return sequences():bucket_by_sequence_length(length, { 3, 5 }, { 2, 3, 2 }, { drop_remainder = true }) end,
  buckets_boundary = function()
    return sequences():bucket_by_sequence_length(length, { 4, 10 }, { 2, 3, 1 }, { pad_to_bucket_boundary = true, padding_values = -1 })
  end,
  scan = function() return Dataset.range(6):scan(int64(1), function(state, x) return state + x, state * x end) end,
  scan_pair = function()
    return pairs_of_numbers():scan({ int64(0), flow.tensor(1) }, function(s, x, y) return { s[1] + x, s[2] + y }, s[1], s[2] * y end)
  end,
  take_while = function() return Dataset.range(10):take_while(function(x) return (x * x):lt(20) end) end,
  unique = function() return Dataset.from_tensor_slices(flow.tensor({ 3, 1, 3, 2, 1, 5 }, { dtype = "int32" })):unique() end,
  unique_texts = function() return Dataset.from_tensor_slices({ "b", "a", "b", "c" }):unique() end,
  enumerate = function() return Dataset.range(3, 6):enumerate(2) end,
  rebatch = function() return Dataset.range(10):batch(4):rebatch { 3, 2 } end,
  counter = function() return Dataset.counter(3, 2):take(4) end,
  choose = function()
    local order = Dataset.from_tensor_slices(int64 { 1, 0, 1, 1, 0, 1, 0 })
    return Dataset.choose_from_datasets({ Dataset.range(3), Dataset.range(10, 14) }, order)
  end,
}

local RAW = {
  age = { 21.0, 35.5, 48.25, 62.0, 21.0, 30.0 }, income = { 1.5, 2.5, 0.5, 8.0, 4.0, 3.0 }, height = { 1.5, 1.75, 1.6, 1.9, 1.8, 1.7 },
  job = { "cook", "smith", "cook", "nurse", "clerk", "smith" }, city = { "bern", "rome", "oslo", "rome", "bern", "bern" },
  rooms = flow.tensor({ 1, 2, 3, 2, 2, 5 }, { dtype = "int32" }), code = flow.tensor({ 10, 11, 12, 13, 14, 15 }, { dtype = "int32" }),
}

local function new_space(output_mode, kind)
  local Space = flow.utils.FeatureSpace
  local space = Space({
    age = "float_normalized", income = Space.float_discretized { num_bins = 3, output_mode = kind }, height = Space.float_rescaled(2, -1),
    job = Space.string_categorical { max_tokens = 4, num_oov_indices = 1, output_mode = kind },
    city = Space.string_hashed { num_bins = 5, output_mode = kind }, rooms = Space.integer_categorical { output_mode = kind },
    code = Space.integer_hashed { num_bins = 4, output_mode = kind },
  }, { crosses = { { "job", "rooms" }, Space.cross({ "city", "code" }, 6, kind) }, crossing_dim = 8, output_mode = output_mode })
  space:adapt(Dataset.from_tensor_slices(RAW))
  return space
end

local function row(i)
  local one = {}
  for name, values in pairs(RAW) do one[name] = values[i] end
  return one
end

local function sorted_values(by_name)
  local names, values = {}, {}
  for name in pairs(by_name) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do values[i] = by_name[name] end
  return values
end

local spaces = {
  space_concat = function()
    local space = new_space "concat"
    return { { space(RAW) }, { space(row(2)) } }
  end,
  space_dict = function() return { sorted_values(new_space "dict"(RAW)) } end,
  space_int = function() return { sorted_values(new_space("dict", "int")(RAW)) } end,
}

local function elements_of(dataset)
  local list = {}
  for x, y in dataset:iter() do
    local is_named = type(x) == "table" and not getmetatable(x)
    list[#list + 1] = is_named and { x.n, x.text } or { x, y }
  end
  return list
end

-- With tolerance 0 numbers are the same.
local function assert_same(name, expected, found, tolerance)
  assert.equal(#expected, #found, name)
  for i, element in ipairs(expected) do
    assert.equal(#element, #found[i], name)
    for k, part in ipairs(element) do
      local value = found[i][k]
      if type(value) == "string" then
        assert.same(part.values, { value }, name)
      elseif value.dtype == "string" then
        assert.same(part.shape, value.shape, name)
        assert.same(part.values, value:reshape({ -1 }):totable(), name)
      else
        assert.same(part.shape, { unpack(value.shape) }, name)
        for n, number in ipairs(#part.values > 0 and value:reshape({ -1 }):totable() or {}) do
          assert.is_true(math.abs(number - part.values[n]) <= tolerance, ("%s: element %d, value %d: %g, expected %g"):format(name, i, n,
            number, part.values[n]))
        end
      end
    end
  end
end

describe("pipelines", function()
  for _, case in ipairs(cases) do
    if spaces[case.name] then
      it("encodes as FeatureSpace: " .. case.name, function() assert_same(case.name, case.elements, spaces[case.name](), 2e-6) end)
    else
      it("has the elements of tf.data: " .. case.name, function()
        local dataset = made[case.name]()
        local found = elements_of(dataset)
        assert_same(case.name, case.elements, found, 0)
        if #found > 2 then      -- a pass that goes on in the middle
          local pass = dataset:iter()
          pass()
          local position = pass:save()
          local rest = {}
          for x, y in dataset:iter():restore(position) do rest[#rest + 1] = { x, y } end
          assert_same(case.name, { unpack(case.elements, 2) }, rest, 0)
        end
      end)
    end
  end
end)
